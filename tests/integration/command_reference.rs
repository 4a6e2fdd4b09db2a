//! `docs/commands.md` is made of the command line's own definitions (`UPDATE_DOCS=1`): every command that there is, with
//! what its help says of usage, flags, defaults, examples and exit codes. What is documented there is accepted here.

use std::fmt::Write as _;
use std::path::Path;

use clap::{Arg, Command};

use crate::support::{Pushback, TestCase, cases};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        Nothing: the_page_of_commands_is_up_to_date,
        Nothing: every_command_says_how_it_is_used_and_how_it_ends,
        Nothing: every_example_of_every_command_is_accepted,
        Nothing: every_flag_of_every_command_is_explained,
        Nothing: every_page_of_help_fits_a_terminal,
    ]
}

/// A command that does something, with the words that lead to it.
struct Leaf {
    words: Vec<String>,
    command: Command,
}

impl Leaf {
    fn title(&self) -> String {
        format!("pushback {}", self.words.join(" "))
    }

    fn help(&self, flag: &str) -> String {
        let arguments: Vec<&str> = self.words.iter().map(String::as_str).chain([flag]).collect();
        Pushback::new().run(&arguments).expect(0).stdout
    }

    fn after_help(&self) -> String {
        self.command.get_after_help().map(ToString::to_string).unwrap_or_default()
    }

    /// The example lines of its help, without what explains them.
    fn examples(&self) -> Vec<String> {
        let title = self.title();
        let text = self.after_help();
        let lines = text.lines().filter(|line| line.starts_with("  "));
        let commands = lines.filter_map(|line| line.find(&title).map(|at| &line[at..]));
        commands.map(|line| line.split("  ").next().unwrap_or_default().trim_end_matches(')').to_owned()).collect()
    }
}

fn whole() -> Command {
    let mut command = pushback::cli::command();
    command.build();
    command
}

/// Every command that does something by itself, in the order of the help; `hidden` ones are other spellings.
fn leaves(command: &Command, words: &[String], hidden: bool) -> Vec<Leaf> {
    let mut found = Vec::new();
    for subcommand in command.get_subcommands().filter(|subcommand| subcommand.is_hide_set() == hidden) {
        let words: Vec<String> = words.iter().cloned().chain([subcommand.get_name().to_owned()]).collect();
        if !subcommand.is_subcommand_required_set() {
            found.push(Leaf { words: words.clone(), command: subcommand.clone() });
        }
        found.extend(leaves(subcommand, &words, hidden));
    }
    found
}

/// Text in a cell of a table, or between blocks.
fn cell(text: &str) -> String {
    text.replace('\n', " ").replace('|', "\\|")
}

fn anchor(title: &str) -> String {
    title.replace(' ', "-")
}

/// Flags as they are typed, with the names of their values.
fn typed(argument: &Arg) -> String {
    let short = argument.get_short().map(|short| format!("-{short}, ")).unwrap_or_default();
    format!("`{short}{argument}`")
}

/// What can be given, where that is a list, and what is assumed.
fn values(argument: &Arg) -> String {
    let takes_values = argument.get_action().takes_values();
    let possible = argument.get_possible_values();
    let shown = possible.iter().filter(|value| !value.is_hide_set() && !value.get_name().is_empty());
    let names: Vec<String> = shown.map(|value| format!("`{}`", value.get_name())).collect();
    if takes_values && names.len() > 1 { format!(" One of {}.", names.join(", ")) } else { String::new() }
}

fn default(argument: &Arg) -> String {
    let values: Vec<String> = argument.get_default_values().iter().map(|value| value.display().to_string()).collect();
    match values.join(",") {
        value if value.is_empty() || !argument.get_action().takes_values() => String::new(),
        value => format!("`{value}`"),
    }
}

/// The help, as a sentence.
fn explained(argument: &Arg) -> String {
    let help = argument.get_long_help().or(argument.get_help()).map(ToString::to_string).unwrap_or_default();
    let environment = match argument.get_env() {
        Some(name) => format!(" Also `{}` in the environment.", name.display()),
        None => String::new(),
    };
    let stop = if help.ends_with('.') { "" } else { "." };
    cell(&format!("{help}{stop}{}{environment}", values(argument)))
}

/// The heading under which the help shows an argument.
fn heading(argument: &Arg) -> &str {
    match argument.get_help_heading() {
        _ if argument.is_positional() => "Arguments",
        Some(heading) => heading,
        None => "Options",
    }
}

fn row(argument: &Arg) -> String {
    format!("| {} | {} | {} |\n", typed(argument), explained(argument), default(argument))
}

/// Arguments by heading, in the order of the help.
fn by_heading<'a>(arguments: impl Iterator<Item = &'a Arg>) -> Vec<(&'a str, Vec<&'a Arg>)> {
    let mut groups: Vec<(&str, Vec<&Arg>)> = Vec::new();
    for argument in arguments.filter(|argument| !argument.is_hide_set()) {
        let name = heading(argument);
        match groups.iter_mut().find(|(other, _)| *other == name) {
            Some((_, list)) => list.push(argument),
            None => groups.push((name, vec![argument])),
        }
    }
    groups
}

fn table(heading: &str, rows: &[String]) -> String {
    format!("\n| {heading} | | default |\n|---|---|---|\n{}", rows.concat())
}

/// A table for each group of flags.
fn tables<'a>(arguments: impl Iterator<Item = &'a Arg>) -> String {
    let rows = |list: Vec<&Arg>| list.into_iter().map(row).collect::<Vec<_>>();
    by_heading(arguments).into_iter().map(|(name, list)| table(name, &rows(list))).collect()
}

/// The rows that several commands share, by heading: each is printed once. A flag that is explained in several ways has
/// the row of most commands here.
struct SharedRows(Vec<(String, Vec<String>)>);

impl SharedRows {
    fn new<'a>(commands: &'a [Leaf]) -> Self {
        /// A flag, its row, and the number of commands that have this row.
        type RowCount = (String, String, usize);
        let mut groups: Vec<(String, Vec<RowCount>)> = Vec::new();
        let flags = |leaf: &'a Leaf| without_globals(&leaf.command).filter(|argument| !argument.is_positional());
        for (name, list) in commands.iter().flat_map(|leaf| by_heading(flags(leaf))) {
            if !groups.iter().any(|(other, _)| other == name) {
                groups.push((name.to_owned(), Vec::new()));
            }
            let (_, rows) = groups.iter_mut().find(|(other, _)| other == name).expect("the group was added");
            for argument in list {
                let row = row(argument);
                match rows.iter_mut().find(|(_, other, _)| *other == row) {
                    Some((_, _, count)) => *count += 1,
                    None => rows.push((typed(argument), row, 1)),
                }
            }
        }
        let kept = |rows: Vec<RowCount>| {
            let most = |flag: &str| rows.iter().filter(|(other, ..)| other == flag).max_by_key(|(.., count)| *count);
            let is_shared =
                |(flag, row, count): &&RowCount| *count > 1 && most(flag).is_some_and(|(_, other, _)| other == row);
            rows.iter().filter(is_shared).map(|(_, row, _)| row.clone()).collect::<Vec<_>>()
        };
        let groups = groups.into_iter().map(|(name, rows)| (name, kept(rows)));
        Self(groups.filter(|(_, rows)| !rows.is_empty()).collect())
    }

    fn contain(&self, heading: &str, row: &str) -> bool {
        self.0.iter().any(|(name, rows)| name == heading && rows.iter().any(|other| other == row))
    }

    fn page(&self) -> String {
        let section = |(name, rows): &(String, Vec<String>)| format!("\n### {name}\n{}", table("flag", rows));
        self.0.iter().map(section).collect()
    }

    /// The flags of a command: names of those that are shared, with a link to their table, and tables of the others.
    fn flags(&self, command: &Command) -> String {
        let (mut shared, mut own) = (Vec::new(), String::new());
        for (name, list) in by_heading(without_globals(command)) {
            let (elsewhere, here): (Vec<&Arg>, Vec<&Arg>) =
                list.into_iter().partition(|argument| self.contain(name, &row(argument)));
            if !elsewhere.is_empty() {
                let flags: Vec<String> = elsewhere.into_iter().map(short_form).collect();
                let link = anchor(&name.to_lowercase());
                shared.push(format!("- [{name}](#{link}): {}\n", flags.join(", ")));
            }
            if !here.is_empty() {
                own += &table(name, &here.into_iter().map(row).collect::<Vec<_>>());
            }
        }
        if shared.is_empty() { own } else { format!("{own}\nFlags shared with other commands:\n\n{}", shared.concat()) }
    }
}

fn short_form(argument: &Arg) -> String {
    match (argument.get_long(), argument.get_short()) {
        (Some(long), _) => format!("`--{long}`"),
        (None, Some(short)) => format!("`-{short}`"),
        (None, None) => format!("`{argument}`"),
    }
}

/// What follows the flags: lines that are set in are examples, the others are text.
fn blocks(text: &str) -> String {
    let mut page = String::new();
    let mut in_code = false;
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let next_is_code = lines.peek().is_some_and(|line| line.starts_with("  "));
        let is_code = line.starts_with("  ") || (in_code && line.is_empty() && next_is_code);
        if is_code != in_code {
            page += if is_code { "\n```sh\n" } else { "```\n" };
            in_code = is_code;
        }
        if !matches!(line, "Examples:" | "Example:") {
            let _ = writeln!(page, "{}", line.strip_prefix("  ").unwrap_or(line));
        }
    }
    if in_code {
        page += "```\n";
    }
    page
}

fn without_globals(command: &Command) -> impl Iterator<Item = &Arg> {
    command.get_arguments().filter(|argument| !argument.is_global_set() && argument.get_id() != "help")
}

fn page() -> String {
    let whole = whole();
    let mut page = "\
# Commands

Written from the definitions of the command line: `pushback COMMAND --help` says the same. What exit codes mean is said
[once for all commands](../README.md#exit-codes); durations are written `90s`, `5m`,
`1h30m`, with the units `h`, `m`, `s`, `ms`, `us` and `ns`.

| command | |
|---|---|
"
    .to_owned();
    let commands = leaves(&whole, &[], false);
    for leaf in &commands {
        let (title, about) = (leaf.title(), about(&leaf.command));
        let _ = writeln!(page, "| [`{title}`](#{}) | {} |", anchor(&title), cell(&about));
    }
    for leaf in leaves(&whole, &[], true) {
        let _ = writeln!(page, "| `{}` | {} |", leaf.title(), cell(&about(&leaf.command)));
    }
    page += "\n## Global options\n\nEvery command takes them; its help leaves out those that mean nothing to it.\n";
    page += &tables(whole.get_arguments().filter(|argument| argument.is_global_set()));
    let shared = SharedRows::new(&commands);
    page += "\n## Shared flags\n\nSeveral commands take them; each command lists those that it has.\n";
    page += &shared.page();
    for leaf in &commands {
        let aliases: Vec<&str> = leaf.command.get_visible_aliases().collect();
        let usage = leaf.command.clone().render_usage().to_string();
        let usage = usage.trim_start_matches("Usage: ");
        let _ = write!(page, "\n## {}\n\n{}.", leaf.title(), about(&leaf.command));
        if !aliases.is_empty() {
            let _ = write!(page, " Also `pushback {}`.", aliases.join("`, `pushback "));
        }
        let _ = write!(page, "\n\n```text\n{usage}\n```\n");
        page += &blocks(&leaf.after_help());
        page += &shared.flags(&leaf.command);
    }
    page
}

fn about(command: &Command) -> String {
    command.get_about().map(ToString::to_string).unwrap_or_default()
}

fn the_page_of_commands_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/commands.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, page()).expect("the page is written");
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    let difference = similar::TextDiff::from_lines(&written, page()).unified_diff().to_string();
    assert!(
        difference.is_empty(),
        "docs/commands.md is stale: UPDATE_DOCS=1 cargo test --test integration -- command_reference\n{difference}"
    );
}

fn every_command_says_how_it_is_used_and_how_it_ends() {
    for leaf in leaves(&whole(), &[], false) {
        let title = leaf.title();
        assert!(!about(&leaf.command).is_empty(), "{title} does not say what it does");
        assert!(!leaf.examples().is_empty(), "{title} has no example:\n{}", leaf.after_help());
        assert!(leaf.after_help().contains("Exit codes: 0 "), "{title} does not say how it ends");
        // One that is broken into two lines cannot be copied.
        let wide: Vec<String> = leaf.after_help().lines().filter(|line| is_wide(line)).map(str::to_owned).collect();
        assert!(wide.is_empty(), "{title}: {wide:?}");
    }
}

/// Wider than the help is shown.
fn is_wide(line: &str) -> bool {
    line.chars().count() > 100
}

fn every_example_of_every_command_is_accepted() {
    let mut count = 0;
    let whole = whole();
    for leaf in leaves(&whole, &[], false).iter().chain(&leaves(&whole, &[], true)) {
        for example in leaf.examples() {
            let parsed = whole.clone().try_get_matches_from(example.split(' '));
            assert!(parsed.is_ok(), "{example}\n{}", parsed.expect_err("an error"));
            count += 1;
        }
    }
    assert!(count > 40, "{count} examples were found");
}

fn every_flag_of_every_command_is_explained() {
    let whole = whole();
    for leaf in leaves(&whole, &[], false) {
        let help = leaf.help("--help");
        for argument in leaf.command.get_arguments().filter(|argument| !argument.is_hide_set()) {
            let shown = argument.get_long().map_or_else(|| argument.to_string(), |long| format!("--{long}"));
            assert!(argument.get_help().is_some(), "{} {shown} is not explained", leaf.title());
            assert!(help.contains(&shown), "{} {shown} is not in its help", leaf.title());
        }
    }
}

fn every_page_of_help_fits_a_terminal() {
    for leaf in leaves(&whole(), &[], false) {
        for flag in ["-h", "--help"] {
            let page = leaf.help(flag);
            let wide: Vec<&str> = page.lines().filter(|line| is_wide(line)).collect();
            assert!(wide.is_empty(), "{} {flag}: {wide:?}", leaf.title());
        }
    }
}
