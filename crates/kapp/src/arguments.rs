//! kapp's command line: a tree of commands under kapp's names, with kapp's flags for output and tuning, and with kapp's way
//! of writing flags that are true or false. The commands themselves are the program's.

use clap::builder::TypedValueParser as _;
use clap::{ArgAction, ArgMatches, Args, Command, FromArgMatches};
use secrecy::{ExposeSecret as _, SecretString};

use super::style::{DiffLook, Style};

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

/// Name of the single-app command with the same flags.
fn kind<'n>(path: &[&'n str]) -> &'n str {
    match path {
        ["app-group", "deploy"] => "apply",
        [.., leaf] => leaf,
        [] => "",
    }
}

/// Adds kapp's own flags to a command that shows changes.
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

/// Parses a boolean as Go does.
fn truth() -> impl clap::builder::TypedValueParser<Value = bool> {
    clap::builder::PossibleValuesParser::new([
        "true", "false", "1", "0", "t", "f", "T", "F", "TRUE", "FALSE", "True", "False",
    ])
    .map(|text| matches!(text.as_str(), "true" | "1" | "t" | "T" | "TRUE" | "True"))
}

/// Returns the program's command tree with kapp's names and flags.
#[must_use]
pub fn tree(command: Command) -> Command {
    let mut tree = command.name("kapp").bin_name("kapp").args_override_self(true);
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

/// Lets a switch take a value, as kapp's do: `--yes=false`.
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

/// Values of the flags that only kapp has.
#[derive(Clone, Debug)]
pub struct KappArguments {
    /// How output looks.
    pub style: Style,
    /// Log what is sent.
    pub debug: bool,
    /// The kubeconfig itself.
    pub kubeconfig_yaml: Option<SecretString>,
    /// Whether objects that controllers created are deleted with an app.
    pub deletes_derived: bool,
    /// Whether a deletion waits for objects that controllers created.
    pub awaits_derived: bool,
    /// Given flags without effect, as they are written.
    pub ignored: Vec<String>,
}

impl KappArguments {
    /// Reads the matches of a command line that [`tree`] parsed.
    ///
    /// # Errors
    /// The parser's.
    pub fn from_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let (mut leaf, mut path) = (matches, Vec::new());
        while let Some((next, below)) = leaf.subcommand() {
            leaf = below;
            path.push(next);
        }
        let name = kind(&path);
        let output = KappOutputArgs::from_arg_matches(leaf)?;
        let is_false = |flag: &str| leaf.try_get_one(flag).ok().flatten() == Some(&false);
        let mut style = Style {
            tty: output.tty.unwrap_or(matches!(name, "apply" | "delete")),
            json: output.json,
            columns: output.column,
            no_wait: is_false("wait"),
            no_warnings: !output.warnings,
            all_errors: is_false("exit_early_on_apply_error") || is_false("exit_early_on_wait_error"),
            diff: DiffLook::default(),
        };
        if matches!(name, "apply" | "delete") {
            let diff = KappDiffArgs::from_arg_matches(leaf)?;
            style.diff = DiffLook {
                summary: diff.diff_summary,
                changes: leaf.try_get_one::<bool>("diff_changes").ok().flatten().copied().unwrap_or_default(),
                context: usize::try_from(diff.diff_context).ok(),
                line_numbers: diff.diff_line_numbers,
                yaml: diff.diff_changes_yaml,
            };
        }
        let (deletes_derived, awaits_derived) = match (name, path.first()) {
            ("delete", _) => {
                let derived = KappDeleteArgs::from_arg_matches(leaf)?;
                (derived.apply_ignored, derived.wait_ignored)
            }
            (_, Some(&"app-group")) => {
                let derived = KappGroupArgs::from_arg_matches(leaf)?;
                (derived.delete_apply_ignored, derived.delete_wait_ignored)
            }
            _ => (false, false),
        };
        Ok(Self {
            debug: output.debug,
            kubeconfig_yaml: output.kubeconfig_yaml.filter(|yaml| !yaml.expose_secret().is_empty()),
            deletes_derived,
            awaits_derived: awaits_derived && !style.no_wait,
            ignored: ignored(leaf, &path),
            style,
        })
    }
}

/// Returns the flags without effect that a command line has.
fn ignored(leaf: &ArgMatches, path: &[&str]) -> Vec<String> {
    let name = kind(path);
    let is_group = path.first() == Some(&"app-group");
    let of_command: &[&str] = match name {
        "apply" => &SWITCHES_OF_DEPLOY,
        "delete" => &TUNING_OF_DELETE,
        _ => &[],
    };
    let flags = TUNING.iter().chain(&TUNING_OF_CHANGES).chain(&SWITCHES_OF_CHANGES).chain(of_command);
    let flags = flags.chain([FAILING_SERVICES].iter().filter(|_| matches!(name, "delete" | "inspect")));
    let flags = flags.chain(TUNING_OF_GROUP.iter().chain(&SWITCHES_OF_GROUP).filter(|_| is_group));
    let flags = flags.chain(SWITCHES_OF_TOOLS.iter().filter(|_| path == ["tools", "diff"]));
    let given = flags.filter(|flag| leaf.try_contains_id(flag).unwrap_or_default());
    let is_unmasked = leaf.try_get_one(MASK).ok().flatten() == Some(&false);
    let unmasked = is_unmasked.then(|| format!("--{MASK}=false"));
    unmasked.into_iter().chain(given.map(|flag| format!("--{flag}"))).collect()
}
