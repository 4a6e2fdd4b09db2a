//! `pushback upgrade`: compares releases of operators. A file for each subcommand; what they share stands here.

pub mod diff;
pub mod diff_crds;
pub mod execute;
pub mod model;
pub mod recover;
pub mod simulate;
pub mod step;
pub mod validate;
pub mod validate_version;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::builder::{PathBufValueParser, TypedValueParser};
use clap::{Args, Subcommand, ValueEnum};
use pushback_preflight::operator::{Severity, compare, definitions, matching};
use serde::Serialize;

use super::arguments::{GlobalArgs, Output as OutputArgument, app_name};
use super::screen::{fail, theme};
use crate::exit::ExitCode;
use crate::manifest::InputWarning;
use crate::report::check::file::write_text;
use crate::report::error_text::warning_text;
use crate::report::escape::terminal_safe_json;
use crate::report::output::Output;
use crate::run::error::CommandError;
use crate::run::options::NamespaceOptions;
use crate::run::upgrade::sides::{LiveInput, SideOptions, Sides};
use crate::text::counted;

/// Compare two releases of an operator.
#[derive(Debug, Args)]
pub struct UpgradeArgs {
    #[command(subcommand)]
    command: UpgradeCommand,
}

#[derive(Debug, Subcommand)]
enum UpgradeCommand {
    /// Say what changed between two releases: components, resources, webhooks, finalizers, definitions
    Diff(diff::UpgradeDiffArgs),
    /// Generate experiments that test what changed between two releases
    Simulate(simulate::SimulateArgs),
    /// Check chaos experiments: what every runner and API server would refuse
    Validate(validate::ValidateArgs),
    /// Say every difference between the CustomResourceDefinitions of two releases
    DiffCrds(diff_crds::DiffCrdsArgs),
    /// Check that a folder of models is complete for one version
    ValidateVersion(validate_version::ValidateVersionArgs),
    /// Work with operator models: derive one from manifests or a live app
    Model(model::ModelArgs),
    /// Run experiments on a cluster, and take back what they inject
    Run(execute::RunArgs),
    /// Take back what killed runs of experiments have left
    Recover(recover::RecoverArgs),
}

impl UpgradeArgs {
    /// Whether the global `--output json` means anything here; commands whose `--output` is a path say so themselves.
    #[must_use]
    pub fn prints_events_or_json(&self) -> bool {
        !matches!(self.command, UpgradeCommand::Validate(_) | UpgradeCommand::Recover(_))
    }
}

/// Runs the command.
pub async fn run(global: &GlobalArgs, arguments: UpgradeArgs) -> ExitCode {
    match arguments.command {
        UpgradeCommand::Diff(arguments) => ended(global, diff::run(global, arguments).await),
        UpgradeCommand::Simulate(arguments) => simulate::run(global, arguments).await,
        UpgradeCommand::Validate(arguments) => ended(global, validate::run(global, &arguments)),
        UpgradeCommand::DiffCrds(arguments) => diff_crds(global, arguments).await,
        UpgradeCommand::ValidateVersion(arguments) => validate_version(global, arguments),
        UpgradeCommand::Model(arguments) => ended(global, model::run(global, arguments).await),
        UpgradeCommand::Run(arguments) => execute::run(global, arguments).await,
        UpgradeCommand::Recover(arguments) => recover::run(global, arguments).await,
    }
}

/// Runs `diff-crds`, which is a command of its own too.
pub async fn diff_crds(global: &GlobalArgs, arguments: diff_crds::DiffCrdsArgs) -> ExitCode {
    ended(global, diff_crds::run(global, arguments).await)
}

/// `upgrade validate-version`, which is also published as a command of its own.
pub fn validate_version(global: &GlobalArgs, arguments: validate_version::ValidateVersionArgs) -> ExitCode {
    ended(global, validate_version::run(global, arguments))
}

/// The two releases.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Releases")]
pub struct SidesArgs {
    /// Old release: a folder (read recursively), a file, git:REF:PATH, an https URL, - for standard input, or
    /// app:NAME for a live app; can be given more than once [aliases: --old, --source, --source-crds]
    #[arg(long, aliases = ["old", "source", "source-crds"], value_name = "PATH", required = true)]
    pub from: Vec<String>,
    /// New release, as --from [aliases: --new, --target, --target-crds]
    #[arg(long, aliases = ["new", "target", "target-crds"], value_name = "PATH", required = true)]
    pub to: Vec<String>,
    /// Allow http URLs
    #[arg(long, hide_short_help = true)]
    pub allow_http: bool,
    /// Follow symbolic links that lead out of a directory that is read
    #[arg(long, hide_short_help = true)]
    pub follow_links: bool,
}

impl SidesArgs {
    /// The two sides.
    ///
    /// # Errors
    /// A live app or the cluster is not named as it should be.
    pub fn resolve(self, global: &GlobalArgs) -> Result<Sides, CommandError> {
        let Self { from, to, allow_http, follow_links } = self;
        Ok(Sides { old: side(global, from)?, new: side(global, to)?, allow_http, follow_links })
    }
}

/// What names a live app among the inputs of a side: `app:NAME`, `app:NAMESPACE/NAME`.
const LIVE: &str = "app:";

fn side(global: &GlobalArgs, inputs: Vec<String>) -> Result<SideOptions, CommandError> {
    let (apps, files) = inputs.into_iter().partition::<Vec<_>, _>(|input| input.starts_with(LIVE));
    let apps = apps.into_iter().map(|input| live_input(global, input)).collect::<Result<_, _>>()?;
    Ok(SideOptions { files, apps })
}

fn live_input(global: &GlobalArgs, input: String) -> Result<LiveInput, CommandError> {
    let named = input.strip_prefix(LIVE).unwrap_or(&input);
    let (namespace, name) = match named.split_once('/') {
        Some((namespace, name)) => (Some(namespace.to_owned()), name),
        None => (None, named),
    };
    if namespace.as_ref().is_some_and(String::is_empty) || name.is_empty() {
        let message = format!("{input}: expected app:NAME or app:NAMESPACE/NAME");
        return Err(CommandError::usage_with_hint(message, "`pushback list -A` shows all apps"));
    }
    let app = app_name(name).map_err(|reason| CommandError::usage(format!("{input}: {reason}")))?;
    let namespace = NamespaceOptions { namespace, of_record: None };
    Ok(LiveInput { cluster: global.cluster()?, app, namespace, input })
}

/// How components are recognised.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Comparison")]
pub struct MatchingArgs {
    /// How components that have another name are recognised: by the published formula alone, or only where a fact in
    /// common guards against chance [default: published for models, guarded where one is derived from manifests]
    #[arg(long, value_name = "HOW")]
    pub matching: Option<Matching>,
}

/// Ways of pairing by likeness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Matching {
    /// The formula alone.
    Published,
    /// The formula, and a fact in common.
    Guarded,
}

/// How definitions are compared.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Comparison")]
pub struct DefinitionsArgs {
    /// How bad a field is that becomes required and has a default, which the server fills in
    #[arg(long, value_name = "SEVERITY", default_value = "breaking")]
    pub required_with_default: RequiredWithDefault,
}

/// What a required field with a default may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RequiredWithDefault {
    /// As any required field.
    Breaking,
    /// A warning.
    Warning,
}

impl DefinitionsArgs {
    /// What the comparison takes.
    #[must_use]
    pub fn options(&self) -> definitions::Options {
        definitions::Options { required_with_default_warns: self.required_with_default == RequiredWithDefault::Warning }
    }
}

impl MatchingArgs {
    /// What the comparison takes.
    #[must_use]
    pub fn options(&self, definitions: &DefinitionsArgs) -> compare::Options {
        let matching = self.matching.map(|matching| match matching {
            Matching::Published => matching::Matching::Published,
            Matching::Guarded => matching::Matching::Guarded,
        });
        compare::Options { matching, definitions: definitions.options() }
    }
}

/// How it is shown.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Report")]
pub struct ShownArgs {
    /// Format of what is printed [default: what the ending of --output says (.json, .yaml, .md), else table]
    #[arg(long, value_name = "FORMAT")]
    pub format: Option<ReportFormat>,
    /// Write it to this file instead of standard output
    #[arg(long, short = 'o', value_name = "PATH",
          value_parser = PathBufValueParser::new().map(OutputArgument::Path))]
    pub output: Option<OutputArgument>,
}

/// Formats of reports about releases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ReportFormat {
    /// For people.
    Table,
    /// JSON.
    Json,
    /// The same as YAML.
    Yaml,
    /// For a comment on a pull request.
    Markdown,
}

impl ReportFormat {
    /// What the ending of a file's name says.
    fn of_file(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "json" => Some(Self::Json),
            "yaml" | "yml" => Some(Self::Yaml),
            "md" => Some(Self::Markdown),
            _ => None,
        }
    }
}

impl ShownArgs {
    /// Where it goes, standard output where nothing is said, and in which format.
    ///
    /// # Errors
    /// A format was given where the path belongs.
    pub fn place(&self) -> Result<(Option<PathBuf>, ReportFormat), CommandError> {
        let path = output_path(self.output.as_ref())?;
        let format = self.format.or_else(|| ReportFormat::of_file(path.as_deref()?)).unwrap_or(ReportFormat::Table);
        Ok((path, format))
    }
}

/// The path that `--output` names in this family of commands.
///
/// # Errors
/// A format was given where the path belongs.
pub fn output_path(output: Option<&OutputArgument>) -> Result<Option<PathBuf>, CommandError> {
    let misplaced = |word: &str| {
        Err(CommandError::usage_with_hint(
            format!("--output is a path in this command, and {word:?} is a format"),
            format!("say --format {word}; for a file of that name: --output ./{word}"),
        ))
    };
    match output {
        None => Ok(None),
        Some(OutputArgument::Format(format)) => {
            misplaced(format.to_possible_value().as_ref().map_or("json", |value| value.get_name()))
        }
        Some(OutputArgument::Path(path)) => match path.to_str() {
            Some(word @ ("tty" | "plain" | "json" | "yaml" | "table" | "markdown")) => misplaced(word),
            _ => Ok(Some(path.clone())),
        },
    }
}

/// What makes the command fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FailOn {
    /// A breaking change.
    Breaking,
    /// A warning, or worse.
    Warning,
    /// Any change.
    Info,
    /// Nothing.
    Never,
}

impl FailOn {
    /// The exit code for changes of these severities, and why it is not 0.
    #[must_use]
    pub fn judge(self, changes: impl IntoIterator<Item = Severity>) -> (ExitCode, Option<String>) {
        let least = match self {
            Self::Breaking => Severity::Breaking,
            Self::Warning => Severity::Warning,
            Self::Info => Severity::Info,
            Self::Never => return (ExitCode::Success, None),
        };
        let mut counts: BTreeMap<Severity, usize> = BTreeMap::new();
        for severity in changes.into_iter().filter(|severity| *severity >= least) {
            *counts.entry(severity).or_default() += 1;
        }
        if counts.is_empty() {
            return (ExitCode::Success, None);
        }
        let words: Vec<String> = counts.iter().rev().map(|(severity, count)| of_severity(*severity, *count)).collect();
        let reason = format!("Refused by --fail-on {}: {}.", least.as_str(), words.join(", "));
        (ExitCode::Refused, Some(reason))
    }
}

/// `1 change is breaking`.
fn of_severity(severity: Severity, count: usize) -> String {
    let verb = if count == 1 { "is" } else { "are" };
    let word = match severity {
        Severity::Breaking => "breaking",
        Severity::Warning => "of severity warning",
        Severity::Info => "of severity info",
    };
    format!("{} {verb} {word}", counted(count, "change"))
}

/// A report that is to be shown, and how the command ends then.
#[derive(Debug)]
pub struct Ended {
    /// The report.
    pub text: String,
    /// Where it goes; `None`: to standard output.
    pub path: Option<PathBuf>,
    /// The exit code.
    pub code: ExitCode,
    /// Why the exit code is not 0, for whoever does not read the report.
    pub reason: Option<String>,
}

/// JSON or YAML of a report.
///
/// # Errors
/// It has no such form.
pub fn data_text(report: &impl Serialize, format: ReportFormat) -> Result<String, CommandError> {
    let failed = |error: String| CommandError::usage(format!("the report cannot be written: {error}"));
    let json = serde_json::to_string_pretty(report).map_err(|error| failed(error.to_string()))?;
    // JSON is YAML; what a terminal would act on is escaped there, so that YAML is written from the same text.
    if format == ReportFormat::Yaml {
        let value = serde_json::to_value(report).map_err(|error| failed(error.to_string()))?;
        let yaml = serde_yaml::to_string(&value).map_err(|error| failed(error.to_string()))?;
        return Ok(crate::report::escape::terminal_safe_lines(&yaml).into_owned());
    }
    Ok(terminal_safe_json(&json) + "\n")
}

/// Shows warnings of the input.
pub fn warn(global: &GlobalArgs, warnings: &[InputWarning]) {
    let theme = theme(global, std::io::IsTerminal::is_terminal(&std::io::stderr()));
    let mut output = Output::standard();
    for warning in warnings {
        output.progress(&warning_text(&warning.message, Some(&warning.position), theme));
    }
}

/// Prints or writes the report.
pub fn ended(global: &GlobalArgs, result: Result<Ended, CommandError>) -> ExitCode {
    let written = result.and_then(|ended| {
        let path = ended.path.unwrap_or_else(|| PathBuf::from("-"));
        write_text(&path, &ended.text).map_err(|error| CommandError::usage(error.to_string()))?;
        if let Some(reason) = ended.reason {
            Output::standard().progress(&format!("{reason}\n"));
        }
        Ok(ended.code)
    });
    written.unwrap_or_else(|error| fail(global, &error))
}
