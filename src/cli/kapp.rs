//! kapp's command line: the same tree of commands under kapp's names, with kapp's flags for output and tuning, and with
//! kapp's way of writing flags that are true or false.

use std::ffi::OsString;

use clap::builder::TypedValueParser as _;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgAction, Args, Command, FromArgMatches};

use super::arguments::GlobalArgs;
use super::{Cli, command};
use crate::report::kapp::{DiffLook, Style, Ui};
use crate::report::output::Output;
use crate::run::options::Details;

/// Names of kapp for a command of the tree that it does not have by itself.
const NAMES: [(&str, &[&str]); 4] =
    [("apply", &["d", "dep"]), ("delete", &["del", "rm"]), ("inspect", &["i", "is", "insp"]), ("list", &["l"])];

/// Environment variables of kapp for flags of the tree.
const VARIABLES: [(&str, &str); 3] = [
    ("namespace", "KAPP_NAMESPACE"),
    ("kubeconfig", "KAPP_KUBECONFIG"),
    ("kubeconfig_context", "KAPP_KUBECONFIG_CONTEXT"),
];

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
    #[arg(long, hide = true)]
    kube_api_qps: Option<String>,
    #[arg(long, hide = true)]
    kube_api_burst: Option<String>,
    #[arg(long, hide = true)]
    profile: Option<String>,
    #[arg(long, hide = true)]
    profile_output: Option<String>,
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
    /// Secrets stay masked
    #[arg(long, hide = true, value_parser = truth(), num_args = 0..=1, require_equals = true, default_missing_value = "true",
          default_value = "true", action = ArgAction::Set)]
    diff_mask: bool,
    #[arg(long, hide = true, value_parser = truth(), num_args = 0..=1, require_equals = true,
          default_missing_value = "true")]
    diff_against_last_applied: Option<bool>,
    #[arg(long, hide = true, value_parser = truth(), num_args = 0..=1, require_equals = true,
          default_missing_value = "true")]
    diff_ui_alpha: Option<bool>,
    #[arg(long, hide = true, value_parser = truth(), num_args = 0..=1, require_equals = true,
          default_missing_value = "true")]
    diff_anchored: Option<bool>,
    #[arg(long, hide = true)]
    apply_check_interval: Option<String>,
    #[arg(long, hide = true)]
    apply_concurrency: Option<String>,
    #[arg(long, hide = true)]
    wait_check_interval: Option<String>,
    #[arg(long, hide = true)]
    wait_concurrency: Option<String>,
    #[arg(long, hide = true)]
    existing_non_labeled_resources_check_concurrency: Option<String>,
}

/// kapp's flags of `delete` that the tree does not have.
#[derive(Clone, Debug, Args)]
struct KappDeleteArgs {
    /// Show changes as text, with the lines around them
    #[arg(long, short = 'c')]
    diff_changes: bool,
}

/// kapp's flags, resolved.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How output looks.
    pub style: Style,
}

impl Settings {
    /// What the run's events have to carry.
    #[must_use]
    pub fn details(&self) -> Details {
        Details { placeholder: |number| format!("<-- value not shown (#{number})") }
    }

    /// Output of a command without a run.
    #[must_use]
    pub fn ui(&self) -> Ui {
        Ui::new(self.style.clone(), Output::standard())
    }
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
    tree = KappOutputArgs::augment_args(tree).mut_args(boolean);
    for name in
        ["json", "tty", "column", "debug", "warnings", "kube_api_qps", "kube_api_burst", "profile", "profile_output"]
    {
        tree = tree.mut_arg(name, |argument| argument.global(true));
    }
    tree = tree.mut_arg("color", |argument| argument.num_args(0..=1).default_missing_value("true"));
    for (name, aliases) in NAMES {
        tree = tree.mut_subcommand(name, |command| {
            let command = command.aliases(aliases).args_override_self(true);
            let command =
                if matches!(name, "apply" | "delete") { KappDiffArgs::augment_args(command) } else { command };
            let command = if name == "delete" { KappDeleteArgs::augment_args(command) } else { command };
            command.mut_args(|argument| named_by_kapp(boolean(argument)))
        });
    }
    tree
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
    argument
        .action(ArgAction::Set)
        .num_args(0..=1)
        .require_equals(true)
        .value_parser(truth())
        .default_value("false")
        .default_missing_value("true")
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
    let mut cli = Cli::from_arg_matches(&matches)?;
    let (mut leaf, mut name) = (&matches, "");
    while let Some((next, below)) = leaf.subcommand() {
        (leaf, name) = (below, next);
    }
    let output = KappOutputArgs::from_arg_matches(leaf)?;
    let mut ignored = vec![
        ("kube-api-qps", output.kube_api_qps.is_some()),
        ("kube-api-burst", output.kube_api_burst.is_some()),
        ("profile", output.profile.is_some()),
        ("profile-output", output.profile_output.is_some()),
    ];
    let mut style = Style {
        tty: output.tty.unwrap_or(matches!(name, "apply" | "delete")),
        json: output.json,
        columns: output.column,
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
        };
        ignored.extend([
            // Nothing secret reaches a log.
            ("diff-mask=false", !diff.diff_mask),
            ("diff-against-last-applied", diff.diff_against_last_applied.is_some()),
            ("diff-ui-alpha", diff.diff_ui_alpha.is_some()),
            ("diff-anchored", diff.diff_anchored.is_some()),
            ("apply-check-interval", diff.apply_check_interval.is_some()),
            ("apply-concurrency", diff.apply_concurrency.is_some()),
            ("wait-check-interval", diff.wait_check_interval.is_some()),
            ("wait-concurrency", diff.wait_concurrency.is_some()),
            (
                "existing-non-labeled-resources-check-concurrency",
                diff.existing_non_labeled_resources_check_concurrency.is_some(),
            ),
        ]);
    }
    let ignored: Vec<String> =
        ignored.into_iter().filter(|(_, given)| *given).map(|(flag, _)| format!("--{flag}")).collect();
    if !ignored.is_empty() {
        let text = format!("kapp: Note: without effect here: {}\n", ignored.join(", "));
        Output::standard().progress(&text);
    }
    if output.debug {
        cli.global.verbose = cli.global.verbose.max(2);
    }
    cli.global.kapp = Some(Settings { style });
    Ok(cli)
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
                None => format!("command does not accept extra arguments '{argument}'"),
            }
        }
        ErrorKind::InvalidSubcommand
        | ErrorKind::MissingSubcommand
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            "Invalid command - see available commands/subcommands above".to_owned()
        }
        ErrorKind::MissingRequiredArgument if named(ContextKind::InvalidArg).contains("--app ") => {
            "Expected app name to be non-empty".to_owned()
        }
        _ => {
            let text = error.to_string();
            let text = text.split("\n\n").next().unwrap_or_default();
            text.strip_prefix("error: ").unwrap_or(text).to_owned()
        }
    }
}

impl GlobalArgs {
    /// What the run's events have to carry for kapp's voice.
    #[must_use]
    pub fn details(&self) -> Option<Details> {
        self.kapp.as_ref().map(Settings::details)
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
    fn the_tree_is_consistent() {
        tree().debug_assert();
    }

    #[test]
    fn commands_have_the_names_that_kapp_gives_them() {
        for command in ["deploy", "d", "dep"] {
            assert!(parsed(&format!("kapp {command} -a app -f -")).is_ok(), "{command}");
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
        let style = global.kapp.expect("settings").style;
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
    }
}
