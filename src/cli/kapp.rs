//! kapp's command line: the same tree of commands under kapp's names, with kapp's flags for output and tuning, and with
//! kapp's way of writing flags that are true or false.

use std::ffi::OsString;

use clap::builder::TypedValueParser as _;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgAction, Args, Command, FromArgMatches};
use pushback_kapp::{DiffLook, Style};
use pushback_terminal::output::Output;
use pushback_terminal::raw_objects::placeholder;
use secrecy::{ExposeSecret as _, SecretString};

use super::arguments::{GlobalArgs, PreflightArgs};
use super::reports::HeldDocument;
use super::{Cli, command};
use crate::run::delete::Derived;
use crate::run::error::CommandError;
use crate::run::options::{Details, PlanOptions, PreflightOptions, WriteOptions};

/// Names of kapp for a command of the tree that it does not have by itself.
const NAMES: [(&str, &[&str]); 5] = [
    ("apply", &["d", "dep"]),
    ("delete", &["del", "rm"]),
    ("inspect", &["i", "is", "insp"]),
    ("list", &["l"]),
    ("logs", &[]),
];

/// Other commands of kapp, whose subcommands are kapp's too.
const OTHERS: [&str; 5] = ["app-change", "history", "label", "rename", "tools"];

/// Environment variables of kapp for flags of the tree.
const VARIABLES: [(&str, &str); 4] = [
    ("fq_configmap_names", "KAPP_FQ_CONFIGMAP_NAMES"),
    ("namespace", "KAPP_NAMESPACE"),
    ("kubeconfig", "KAPP_KUBECONFIG"),
    ("kubeconfig_context", "KAPP_KUBECONFIG_CONTEXT"),
];

/// kapp's flags of every command that are taken and have no effect here: they tune a client that this is not.
const TUNING: [&str; 4] = ["kube-api-qps", "kube-api-burst", "profile", "profile-output"];

/// The same of the commands that show changes.
const TUNING_OF_CHANGES: [&str; 5] = [
    "apply-check-interval",
    "apply-concurrency",
    "wait-check-interval",
    "wait-concurrency",
    "existing-non-labeled-resources-check-concurrency",
];

/// The same, true or false.
const SWITCHES_OF_CHANGES: [&str; 3] = ["diff-against-last-applied", "diff-ui-alpha", "diff-anchored"];

/// The same of `deploy`. Its table is in the same order either way; existing objects are always looked for; what
/// controllers have made is theirs; and an app's kinds are in its record.
const SWITCHES_OF_DEPLOY: [&str; 5] =
    ["sort", "existing-non-labeled-resources-check", "apply-ignored", "wait-ignored", "dangerous-disable-gk-scoping"];

/// The same of `delete` and `inspect`: groups that do not answer are left out either way.
const FAILING_SERVICES: &str = "dangerous-ignore-failing-api-services";

/// The same of `delete`, with a value: it updates nothing.
const TUNING_OF_DELETE: [&str; 1] = ["apply-default-update-strategy"];

/// The same of `app-group deploy`, which deletes apps too.
const TUNING_OF_GROUP: [&str; 5] = [
    "delete-apply-check-interval",
    "delete-apply-concurrency",
    "delete-apply-default-update-strategy",
    "delete-wait-check-interval",
    "delete-wait-concurrency",
];

/// The same, true or false.
const SWITCHES_OF_GROUP: [&str; 1] = ["delete-apply-exit-status"];

/// The same of `tools diff`: files have no last applied copy, and kapp exits with 0 whatever it has found.
const SWITCHES_OF_TOOLS: [&str; 7] =
    ["against-last-applied", "anchored", "ui-alpha", "run", "mask", "exit-status", "sort"];

/// Without effect where it is false: nothing secret reaches a log.
const MASK: &str = "diff-mask";

/// kapp's flags of every command that the tree does not have.
#[derive(Clone, Debug, Args)]
struct KappOutputArgs {
    /// Output one JSON object at the end
    #[arg(long)]
    json: bool,
    /// Output for a person [default: true for deploy and delete]
    #[arg(long, value_parser = truth(), num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    tty: Option<bool>,
    /// Show only these columns
    #[arg(long, value_delimiter = ',', value_name = "COLUMNS")]
    column: Vec<String>,
    /// Log what is sent
    #[arg(long)]
    debug: bool,
    /// Show warnings of the server
    #[arg(long, value_parser = truth(), num_args = 0..=1, require_equals = true, default_missing_value = "true",
          default_value = "true", action = ArgAction::Set)]
    warnings: bool,
    /// The kubeconfig itself
    #[arg(long, value_name = "YAML", env = "KAPP_KUBECONFIG_YAML", hide_env_values = true)]
    kubeconfig_yaml: Option<SecretString>,
}

/// kapp's flags of the commands that show changes.
#[derive(Clone, Debug, Args)]
struct KappDiffArgs {
    /// Show the table of changes
    #[arg(long, value_parser = truth(), num_args = 0..=1, require_equals = true, default_missing_value = "true",
          default_value = "true", action = ArgAction::Set)]
    diff_summary: bool,
    /// Lines around a change; negative: all
    #[arg(long, default_value_t = 2, allow_negative_numbers = true, value_name = "LINES")]
    diff_context: i64,
    /// Show line numbers
    #[arg(long, value_parser = truth(), num_args = 0..=1, require_equals = true, default_missing_value = "true",
          default_value = "true", action = ArgAction::Set)]
    diff_line_numbers: bool,
    /// Print what is applied as YAML
    #[arg(long, value_parser = truth(), num_args = 0..=1, require_equals = true, default_missing_value = "true",
          default_value = "false", action = ArgAction::Set)]
    diff_changes_yaml: bool,
}

/// kapp's flags of `delete` that the tree does not have.
#[derive(Clone, Debug, Args)]
struct KappDeleteArgs {
    /// Show changes as text, with the lines around them
    #[arg(long, short = 'c')]
    diff_changes: bool,
    /// Delete what controllers have made, too
    #[arg(long)]
    apply_ignored: bool,
    /// Wait until what controllers have made is gone
    #[arg(long, value_parser = truth(), num_args = 0..=1, require_equals = true, default_missing_value = "true",
          default_value = "true", action = ArgAction::Set)]
    wait_ignored: bool,
}

/// kapp's flags of `app-group deploy` about the apps that it deletes.
#[derive(Clone, Debug, Args)]
struct KappGroupArgs {
    /// Delete what controllers have made, too
    #[arg(long, value_parser = truth(), num_args = 0..=1, require_equals = true, default_missing_value = "true",
          default_value = "false", action = ArgAction::Set)]
    delete_apply_ignored: bool,
    /// Wait until what controllers have made is gone
    #[arg(long, value_parser = truth(), num_args = 0..=1, require_equals = true, default_missing_value = "true",
          default_value = "true", action = ArgAction::Set)]
    delete_wait_ignored: bool,
}

/// What becomes of what controllers have made, by kapp's two flags.
fn derived(is_applied: bool, is_waited_for: bool) -> Derived {
    match (is_applied, is_waited_for) {
        (true, _) => Derived::Deleted,
        (false, true) => Derived::WaitedFor,
        (false, false) => Derived::Ignored,
    }
}

/// The command of a single app that has the flags of this one.
fn kind<'n>(path: &[&'n str]) -> &'n str {
    match path {
        ["app-group", "deploy"] => "apply",
        [.., leaf] => leaf,
        [] => "",
    }
}

/// The flags that kapp has and the tree does not, of a command that shows changes.
fn with_changes(command: Command, kind: &str) -> Command {
    let command = match kind {
        "apply" | "delete" => augmented::<KappDiffArgs>(command)
            .args(TUNING_OF_CHANGES.map(without_effect))
            .args(SWITCHES_OF_CHANGES.into_iter().chain([MASK]).map(|name| switch(without_effect(name)))),
        _ => command,
    };
    match kind {
        // kapp writes what plain writes take.
        "apply" => command
            .args(SWITCHES_OF_DEPLOY.map(|name| switch(without_effect(name))))
            .mut_arg("strict", |argument| argument.default_value("false")),
        "delete" => augmented::<KappDeleteArgs>(command)
            .args(TUNING_OF_DELETE.map(without_effect))
            .arg(switch(without_effect(FAILING_SERVICES))),
        "inspect" => command.arg(switch(without_effect(FAILING_SERVICES))),
        _ => command,
    }
}

/// Adds flags to a command that keeps what it says of itself; the documentation of the flags would take its place.
fn augmented<A: Args>(command: Command) -> Command {
    let (about, long_about) = (command.get_about().cloned(), command.get_long_about().cloned());
    let command = A::augment_args(command).about(None).long_about(None);
    let command = about.into_iter().fold(command, Command::about);
    long_about.into_iter().fold(command, Command::long_about)
}

/// A boolean as Go reads it.
fn truth() -> impl clap::builder::TypedValueParser<Value = bool> {
    clap::builder::PossibleValuesParser::new([
        "true", "false", "1", "0", "t", "f", "T", "F", "TRUE", "FALSE", "True", "False",
    ])
    .map(|text| matches!(text.as_str(), "true" | "1" | "t" | "T" | "TRUE" | "True"))
}

/// The tree with kapp's names and flags.
#[must_use]
pub fn tree() -> Command {
    let mut tree = command().name("kapp").bin_name("kapp").args_override_self(true);
    tree = tree.mut_args(|argument| named_by_kapp(boolean(argument)));
    tree = augmented::<KappOutputArgs>(tree).mut_args(boolean);
    for name in ["json", "tty", "column", "debug", "warnings", "kubeconfig_yaml"] {
        tree = tree.mut_arg(name, |argument| argument.global(true));
    }
    tree = tree.args(TUNING.map(|name| without_effect(name).global(true)));
    tree = tree.mut_arg("color", |argument| argument.num_args(0..=1).default_missing_value("true"));
    for (name, aliases) in NAMES {
        tree = tree.mut_subcommand(name, |command| {
            let command = command.aliases(aliases).args_override_self(true);
            with_changes(command, name).mut_args(|argument| named_by_kapp(boolean(argument)))
        });
    }
    for name in OTHERS {
        tree = tree.mut_subcommand(name, |command| {
            with_flags_of_kapp(command).mut_subcommands(with_flags_of_kapp).arg_required_else_help(false)
        });
    }
    tree = tree.mut_subcommand("tools", |group| {
        group.mut_subcommand("diff", |diff| diff.args(SWITCHES_OF_TOOLS.map(|name| switch(without_effect(name)))))
    });
    tree = tree.mut_subcommand("app-group", |group| {
        let deploy = |command| {
            let command = with_changes(command, "apply").args(TUNING_OF_GROUP.map(without_effect));
            augmented::<KappGroupArgs>(command.args(SWITCHES_OF_GROUP.map(|name| switch(without_effect(name)))))
        };
        let group = group.mut_subcommand("deploy", deploy);
        let group = group.mut_subcommand("delete", |command| with_changes(command, "delete"));
        group.mut_subcommands(with_flags_of_kapp).arg_required_else_help(false)
    });
    tree
}

fn with_flags_of_kapp(command: Command) -> Command {
    command.args_override_self(true).mut_args(|argument| named_by_kapp(boolean(argument)))
}

fn without_effect(name: &'static str) -> clap::Arg {
    clap::Arg::new(name).long(name).hide(true)
}

fn switch(argument: clap::Arg) -> clap::Arg {
    argument.num_args(0..=1).require_equals(true).value_parser(truth()).default_missing_value("true")
}

/// Flags that are there or not take a value in kapp: `--yes=false`.
fn boolean(argument: clap::Arg) -> clap::Arg {
    let is_truth = argument.is_require_equals_set() && matches!(argument.get_action(), ArgAction::Set);
    if is_truth && argument.get_default_values().first().is_some_and(|value| value == "true" || value == "false") {
        return argument.value_parser(truth());
    }
    if !matches!(argument.get_action(), ArgAction::SetTrue) {
        return argument;
    }
    switch(argument.action(ArgAction::Set)).default_value("false")
}

fn named_by_kapp(argument: clap::Arg) -> clap::Arg {
    let variable = VARIABLES.iter().find(|(id, _)| argument.get_id() == *id);
    match variable {
        Some((_, variable)) => argument.env(*variable),
        None => argument,
    }
}

/// Parses a command line of kapp.
///
/// # Errors
/// The parser's.
pub fn parse(arguments: &[OsString]) -> Result<Cli, clap::Error> {
    let matches = tree().try_get_matches_from(arguments)?;
    let mut cli = Cli::from_matches(&matches)?;
    let (mut leaf, mut path) = (&matches, Vec::new());
    while let Some((next, below)) = leaf.subcommand() {
        leaf = below;
        path.push(next);
    }
    let name = kind(&path);
    let is_group = path.first() == Some(&"app-group");
    let output = KappOutputArgs::from_arg_matches(leaf)?;
    let mut style = Style {
        tty: output.tty.unwrap_or(matches!(name, "apply" | "delete")),
        json: output.json,
        columns: output.column,
        no_wait: leaf.try_get_one("wait").ok().flatten() == Some(&false),
        all_errors: ["exit_early_on_apply_error", "exit_early_on_wait_error"]
            .into_iter()
            .any(|flag| leaf.try_get_one(flag).ok().flatten() == Some(&false)),
        diff: DiffLook::default(),
    };
    if matches!(name, "apply" | "delete") {
        let diff = KappDiffArgs::from_arg_matches(leaf)?;
        let changes = leaf.try_get_one::<bool>("diff_changes").ok().flatten().copied().unwrap_or_default();
        style.diff = DiffLook {
            summary: diff.diff_summary,
            changes,
            context: usize::try_from(diff.diff_context).ok(),
            line_numbers: diff.diff_line_numbers,
            yaml: diff.diff_changes_yaml,
        };
    }
    if name == "delete" {
        let ignored = KappDeleteArgs::from_arg_matches(leaf)?;
        cli.global.derived = derived(ignored.apply_ignored, ignored.wait_ignored && !style.no_wait);
    } else if is_group {
        let ignored = KappGroupArgs::from_arg_matches(leaf)?;
        cli.global.derived = derived(ignored.delete_apply_ignored, ignored.delete_wait_ignored && !style.no_wait);
    }
    let is_given = |name: &&str| leaf.try_contains_id(name).unwrap_or_default();
    let of_command: &[&str] = match name {
        "apply" => &SWITCHES_OF_DEPLOY,
        "delete" => &TUNING_OF_DELETE,
        _ => &[],
    };
    let tuning = TUNING.iter().chain(&TUNING_OF_CHANGES).chain(&SWITCHES_OF_CHANGES).chain(of_command);
    let tuning = tuning.chain([FAILING_SERVICES].iter().filter(|_| matches!(name, "delete" | "inspect")));
    let tuning = tuning.chain(TUNING_OF_GROUP.iter().chain(&SWITCHES_OF_GROUP).filter(|_| is_group));
    let tuning = tuning.chain(SWITCHES_OF_TOOLS.iter().filter(|_| path == ["tools", "diff"]));
    let tuning = tuning.copied().filter(is_given);
    let unmasked = leaf.try_get_one(MASK).ok().flatten() == Some(&false);
    let ignored = unmasked.then(|| format!("--{MASK}=false")).into_iter().chain(tuning.map(|name| format!("--{name}")));
    let ignored: Vec<String> = ignored.collect();
    if !ignored.is_empty() {
        let text = format!("kapp: Note: without effect here: {}\n", ignored.join(", "));
        Output::standard().progress(&text);
    }
    cli.global.kubeconfig_yaml = output.kubeconfig_yaml.filter(|yaml| !yaml.expose_secret().is_empty());
    if output.debug {
        cli.global.verbose = cli.global.verbose.max(2);
    }
    cli.global.kapp = Some(style);
    Ok(cli)
}

/// Whether kapp shows its help before the error: where no command is named that it has.
#[must_use]
pub fn wants_help(error: &clap::Error) -> bool {
    misread(error) == NO_COMMAND
}

/// Help for the whole command line.
#[must_use]
pub fn help() -> String {
    tree().render_help().to_string()
}

/// What kapp says of a command line that it cannot read.
#[must_use]
pub fn misread(error: &clap::Error) -> String {
    let named = |kind: ContextKind| match error.get(kind) {
        Some(ContextValue::String(text)) => text.clone(),
        Some(ContextValue::Strings(texts)) => texts.join(", "),
        _ => String::new(),
    };
    match error.kind() {
        ErrorKind::UnknownArgument => {
            let argument = named(ContextKind::InvalidArg);
            match argument.strip_prefix("--") {
                Some(flag) => format!("unknown flag: --{}", flag.split('=').next().unwrap_or_default()),
                None if argument.starts_with('-') => format!("unknown shorthand flag: {argument}"),
                None => {
                    format!("command '{}' does not accept extra arguments '{argument}'", called(error).join(" "))
                }
            }
        }
        ErrorKind::InvalidSubcommand if declined(&named(ContextKind::InvalidSubcommand)).is_some() => {
            declined(&named(ContextKind::InvalidSubcommand)).unwrap_or_default().to_owned()
        }
        ErrorKind::InvalidSubcommand | ErrorKind::MissingSubcommand if !subcommands(error).is_empty() => {
            format!("Use one of available subcommands: {}", subcommands(error).join(", "))
        }
        ErrorKind::InvalidSubcommand
        | ErrorKind::MissingSubcommand
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => NO_COMMAND.to_owned(),
        ErrorKind::MissingRequiredArgument if named(ContextKind::InvalidArg).contains("--app ") => {
            "Expected app name to be non-empty".to_owned()
        }
        ErrorKind::MissingRequiredArgument if named(ContextKind::InvalidArg).contains("--group ") => {
            "Expected group name to be non-empty".to_owned()
        }
        ErrorKind::MissingRequiredArgument if named(ContextKind::InvalidArg).contains("--directory ") => {
            "Reading directory '': open : no such file or directory".to_owned()
        }
        kind => {
            let is_of_value = matches!(kind, ErrorKind::ValueValidation | ErrorKind::InvalidValue);
            let known = is_of_value
                .then(|| wrong_value(&named(ContextKind::InvalidArg), &named(ContextKind::InvalidValue), error));
            known.flatten().unwrap_or_else(|| {
                let text = error.to_string();
                let text = text.split("\n\n").next().unwrap_or_default();
                text.strip_prefix("error: ").unwrap_or(text).to_owned()
            })
        }
    }
}

/// The error where no command is named, or one that does not exist.
const NO_COMMAND: &str = "Invalid command - see available commands/subcommands above";

/// What kapp, or Go for it, says of a value that a flag cannot have.
fn wrong_value(argument: &str, value: &str, error: &clap::Error) -> Option<String> {
    let flag = argument.split([' ', '=', '[']).next().unwrap_or_default();
    let invalid = |why: &str| Some(format!("invalid argument \"{value}\" for \"{flag}\" flag: {why}"));
    let is_truth = matches!(error.get(ContextKind::ValidValue),
        Some(ContextValue::Strings(values)) if values.iter().any(|value| value == "true"));
    match flag {
        _ if is_truth => invalid(&format!("strconv.ParseBool: parsing \"{value}\": invalid syntax")),
        "--labels" if value.starts_with('=') => Some("Expected label key to be non-empty".to_owned()),
        "--labels" => Some("Expected label to be in 'key=val' format".to_owned()),
        "--map-ns" => Some(format!("Expected map namespace '{value}' to be in 'src-ns=dst-ns' format")),
        "--before" | "--after" => {
            Some(format!("unrecognized time format {value}, supported formats: [2006-01-02T15:04:05Z07:00 2006-01-02]"))
        }
        "--max" | "--lines" | "--context" | "--diff-context" | "--app-changes-max-to-keep" => {
            invalid(&format!("strconv.ParseInt: parsing \"{value}\": invalid syntax"))
        }
        _ if flag.ends_with("-timeout") => invalid(&format!("time: invalid duration \"{value}\"")),
        _ => None,
    }
}

/// Why a command of kapp is left out.
fn declined(command: &str) -> Option<&'static str> {
    match command {
        "config-map" | "cm" | "cfg" => Some("config-map list is left out: kubectl get configmaps lists them"),
        "service-account" | "sa" => Some("service-account list is left out: kubectl get serviceaccounts lists them"),
        "deploy-config" => Some(
            "deploy-config is left out: the default order, labels and scoping rules are kapp's, and rebase rules are not \
             needed with server-side apply",
        ),
        "list-labels" | "ls-labels" => Some("tools list-labels is left out: kubectl get --show-labels lists them"),
        _ => None,
    }
}

/// The command that was called, by its line of usage: `kapp app-change list`.
fn called(error: &clap::Error) -> Vec<String> {
    let Some(ContextValue::StyledStr(usage)) = error.get(ContextKind::Usage) else { return Vec::new() };
    let usage = usage.to_string();
    let words = usage.split_whitespace().skip_while(|word| *word != "kapp");
    words.take_while(|word| !word.starts_with(['[', '<', '-'])).map(str::to_owned).collect()
}

/// The subcommands of the group of commands that was called; none of the whole command line.
fn subcommands(error: &clap::Error) -> Vec<String> {
    let words: Vec<String> = called(error).into_iter().skip(1).collect();
    let tree = tree();
    let mut group = &tree;
    for word in &words {
        let Some(next) = group.find_subcommand(word) else { return Vec::new() };
        group = next;
    }
    let names = group.get_subcommands().map(|command| command.get_name().to_owned()).filter(|name| name != "help");
    let mut names: Vec<String> = names.filter(|_| !words.is_empty()).collect();
    names.sort();
    names
}

impl GlobalArgs {
    /// What the run's events have to carry for kapp's voice.
    #[must_use]
    pub fn details(&self) -> Option<Details> {
        let details = Details { placeholder };
        self.kapp.is_some().then_some(details)
    }

    /// How changes are planned for this command line. kapp does not create again what is deleted with a replaced parent.
    #[must_use]
    pub fn planning(&self, options: PlanOptions) -> PlanOptions {
        PlanOptions { recreates_contents: self.kapp.is_none(), ..options }
    }

    /// How changes are written for this command line. kapp does not compare what is stored with its dry run.
    #[must_use]
    pub fn writing(&self, mut options: WriteOptions) -> WriteOptions {
        options.engine.compares_writes = self.kapp.is_none();
        options.engine.awaits_controllers = self.kapp.is_none();
        options
    }

    /// Which rules run for this command line. kapp runs none that nobody has named.
    ///
    /// # Errors
    /// The arguments contradict each other.
    pub fn preflight(
        &self,
        arguments: PreflightArgs,
        document: &HeldDocument,
    ) -> Result<PreflightOptions, CommandError> {
        let options = arguments.resolve(self.standard_output(), document)?;
        Ok(PreflightOptions { only_listed: self.kapp.is_some(), ..options })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Cli, String> {
        let arguments: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        parse(&arguments).map_err(|error| misread(&error))
    }

    #[test]
    fn the_tree_is_consistent_and_says_what_its_commands_do() {
        tree().debug_assert();
        let (ours, tree) = (command(), tree());
        assert_eq!(tree.get_about(), ours.get_about());
        for command in ours.get_subcommands() {
            let under_kapps_name = tree.find_subcommand(command.get_name()).expect("a command");
            assert_eq!(under_kapps_name.get_about(), command.get_about(), "{}", command.get_name());
        }
    }

    #[test]
    fn commands_have_the_names_that_kapp_gives_them() {
        for command in ["deploy", "d", "dep"] {
            assert!(parsed(&format!("kapp {command} -a app -f -")).is_ok(), "{command}");
        }
        for command in
            ["app-group deploy -g a -d b --delete-wait=false", "ag d -g a -d b -c", "appgroup delete -g a -c"]
        {
            assert!(parsed(&format!("kapp {command}")).is_ok(), "{command}");
        }
        for command in ["ac gc -a app --max=1", "app-changes ls -a app", "label -a app", "appchange l -a app"] {
            assert!(parsed(&format!("kapp {command}")).is_ok(), "{command}");
        }
        for command in ["delete -a app", "inspect -a app", "i -a app", "is -a app", "insp -a app", "list", "l", "ls"] {
            assert!(parsed(&format!("kapp {command}")).is_ok(), "{command}");
        }
    }

    #[test]
    fn flags_are_written_as_go_reads_them() {
        let cli =
            parsed("kapp deploy -a app -f - --yes=false -yc --tty=false --json --column op,name --diff-context -1");
        let global = cli.expect("a command line").global;
        let style = global.kapp.expect("a style");
        assert!(global.yes && style.json && !style.tty && style.diff.changes);
        assert_eq!((style.columns, style.diff.context), (vec!["op".to_owned(), "name".to_owned()], None));
        assert!(parsed("kapp deploy -a app -f a -f b --wait=true --wait=0 --diff-changes=T --color").is_ok());
    }

    #[test]
    fn what_cannot_be_read_is_told_in_kapps_words() {
        let said = |line: &str| parsed(line).map(|_| ()).expect_err(line);
        assert_eq!(said("kapp deploy -a app -f - --nope=1"), "unknown flag: --nope");
        assert_eq!(said("kapp foo"), "Invalid command - see available commands/subcommands above");
        assert_eq!(said("kapp deploy -f -"), "Expected app name to be non-empty");
        for line in ["kapp config-map list", "kapp sa ls", "kapp deploy-config"] {
            assert!(said(line).contains(" is left out: "), "{line}");
        }
        for (line, text) in [
            ("deploy -a a -f - --labels x", "Expected label to be in 'key=val' format"),
            ("deploy -a a -f - --labels =x", "Expected label key to be non-empty"),
            ("deploy -a a -f - --map-ns a", "Expected map namespace 'a' to be in 'src-ns=dst-ns' format"),
            (
                "deploy -a a -f - --wait-timeout x",
                "invalid argument \"x\" for \"--wait-timeout\" flag: time: invalid duration \"x\"",
            ),
            (
                "deploy -a a -f - --wait=x",
                "invalid argument \"x\" for \"--wait\" flag: strconv.ParseBool: parsing \"x\": invalid syntax",
            ),
            (
                "ac gc -a a --max x",
                "invalid argument \"x\" for \"--max\" flag: strconv.ParseInt: parsing \"x\": invalid syntax",
            ),
            (
                "ac ls -a a --before 2024-13-01",
                "unrecognized time format 2024-13-01, supported formats: [2006-01-02T15:04:05Z07:00 2006-01-02]",
            ),
        ] {
            assert_eq!(said(&format!("kapp {line}")), text);
        }
        for line in ["kapp app-change", "kapp ac foo"] {
            assert_eq!(said(line), "Use one of available subcommands: garbage-collect, list");
        }
    }
}
