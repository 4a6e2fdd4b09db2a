//! `pushback upgrade simulate`: experiments that test what changed between two releases.

use std::collections::BTreeSet;

use clap::builder::{PathBufValueParser, TypedValueParser};
use clap::{Args, ValueEnum};
use pushback_preflight::experiment::export;
use pushback_preflight::experiment::generate::{self, Options};
use pushback_preflight::experiment::suite::{Suite, SuiteExperiment, Tool};
use pushback_preflight::operator::{Release, ReleaseDiff, compare};
use pushback_preflight::suggest;

use super::execute::{ExecuteArgs, Told, execute_and_tell};
use super::recover::RecoverArgs;
use super::{DefinitionsArgs, Ended, MatchingArgs, ReportFormat, SidesArgs, data_text, ended, output_path, warn};
use crate::cli::arguments::{GlobalArgs, Output};
use crate::cli::screen::{HeldDocument, complete, note, start_for_report};
use crate::exit::ExitCode;
use crate::report::escape::terminal_safe_lines;
use crate::report::release::suite_text;
use crate::run::error::CommandError;
use crate::text::written_experiments;
use crate::upgrade::outcome::Outcome;
use crate::upgrade::run::blank;
use crate::upgrade::{sources, suite_folder};

/// Generate experiments that test what changed between two releases.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pushback upgrade simulate --from knowledge/v2.20 --to knowledge/v2.21 --output upgrade-suite
  pushback upgrade simulate --from knowledge/v2.20 --to knowledge/v2.21 --dry-run
  pushback upgrade simulate --from git:v1:deploy --to deploy --output suite --export chaos-mesh
  pushback upgrade simulate --from old --to new --component kserve-controller-manager --dry-run

  pushback upgrade simulate --from old --to new --execute --allow-namespace backup-system --yes
  pushback upgrade simulate --recover

Without --execute nothing is injected: the suite is written for `kubectl apply` or another runner.
suite-manifest.yaml lists the experiments in their order, what each needs before it can run, and the
changes that people must look at.

Exit codes: 0 written, 1 wrong input; with --execute those of `pushback upgrade run`, with --recover
those of `pushback upgrade recover`.")]
pub struct SimulateArgs {
    #[command(flatten)]
    sides: SimulatedSidesArgs,
    #[command(flatten)]
    matching: MatchingArgs,
    #[command(flatten)]
    definitions: DefinitionsArgs,
    /// Folder for the suite: written as a whole or not at all; one that holds other files than a suite is refused
    #[arg(long, short = 'o', value_name = "DIR", required_unless_present_any = ["dry_run", "execute", "recover"],
          value_parser = PathBufValueParser::new().map(Output::Path))]
    output: Option<Output>,
    /// Write nothing, and print all files instead; with --format, the summary
    #[arg(long)]
    dry_run: bool,
    /// Only what comes from changes of this component; can be given more than once
    #[arg(long, value_name = "NAME")]
    component: Vec<String>,
    /// Write what this tool can express too, into a folder of its name; can be given more than once
    #[arg(long, value_name = "TOOL")]
    export: Vec<ExportTool>,
    /// Format of the summary; json and yaml are the manifest of the suite [default: table]
    #[arg(long, value_name = "FORMAT")]
    format: Option<ReportFormat>,
    /// Run the experiments too, as `pushback upgrade run` does; with --dry-run, say what would be injected. --format is
    /// then that of the run's report
    #[arg(long, help_heading = "Run", requires = "allow_namespace")]
    execute: bool,
    /// Take back what a killed run has left, as `pushback upgrade recover` does, and nothing else
    #[arg(long, help_heading = "Run", conflicts_with = "execute")]
    recover: bool,
    #[command(flatten)]
    executing: ExecuteArgs,
}

/// The two releases, where there are any.
#[derive(Debug, Args)]
#[command(next_help_heading = "Releases")]
struct SimulatedSidesArgs {
    /// Old release: a folder (read recursively), a file, git:REF:PATH, an https URL, - for standard input, or
    /// app:NAME for a live app; can be given more than once [aliases: --old, --source]
    #[arg(long, aliases = ["old", "source"], value_name = "PATH", required_unless_present = "recover")]
    from: Vec<String>,
    /// New release, as --from [aliases: --new, --target]
    #[arg(long, aliases = ["new", "target"], value_name = "PATH", required_unless_present = "recover")]
    to: Vec<String>,
    /// Allow http URLs
    #[arg(long, hide_short_help = true)]
    allow_http: bool,
    /// Follow symbolic links that lead out of a directory that is read
    #[arg(long, hide_short_help = true)]
    follow_links: bool,
}

/// Tools that experiments can be written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ExportTool {
    ChaosMesh,
    Litmus,
    Krkn,
}

impl From<ExportTool> for Tool {
    fn from(tool: ExportTool) -> Self {
        match tool {
            ExportTool::ChaosMesh => Self::ChaosMesh,
            ExportTool::Litmus => Self::Litmus,
            ExportTool::Krkn => Self::Krkn,
        }
    }
}

/// Runs the command.
pub async fn run(global: &GlobalArgs, arguments: SimulateArgs) -> ExitCode {
    let SimulateArgs { recover, execute, .. } = arguments;
    if recover {
        let ExecuteArgs { allow_namespace, lock, .. } = arguments.executing;
        return super::recover::run(global, RecoverArgs { allow_namespace, accept_changed: false, lock }).await;
    }
    if !execute {
        return ended(global, simulate(global, arguments).await.map(|(_, ended)| ended));
    }
    let (executing, dry_run) = (arguments.executing.clone(), arguments.dry_run);
    let format = arguments.format.unwrap_or(ReportFormat::Table);
    complete(global, start_for_report(global, HeldDocument::default()), async |run| {
        let (suite, _) = simulate(global, arguments).await?;
        let (ready, open): (Vec<_>, Vec<_>) = suite.experiments.into_iter().partition(SuiteExperiment::is_enabled);
        let left_out = open.iter().map(|entry| {
            let needs: Vec<&str> = entry.needs.iter().filter(|need| need.is_open()).map(|need| need.as_str()).collect();
            let reason = format!("it must be filled in first: needs {}", needs.join(", "));
            Outcome { reason, ..blank(&entry.experiment) }
        });
        let left_out = left_out.collect();
        let experiments = ready.into_iter().map(|entry| entry.experiment).collect();
        let told = Told::of(None, format, &executing)?;
        let execute = executing.resolve(global, dry_run)?;
        execute_and_tell(run, &execute, &told, experiments, left_out).await
    })
    .await
}

/// Generates the suite, and writes it where that is asked for.
///
/// # Errors
/// The releases cannot be read, or the suite cannot be written.
async fn simulate(global: &GlobalArgs, arguments: SimulateArgs) -> Result<(Suite, Ended), CommandError> {
    let SimulateArgs { sides, matching, definitions, output, dry_run, component, export, format, .. } = arguments;
    let folder = output_path(output.as_ref())?;
    let SimulatedSidesArgs { from, to, allow_http, follow_links } = sides;
    let (old, new) =
        SidesArgs { from, to, allow_http, follow_links }.resolve(global)?.read(&|text| note(global, text)).await?;
    warn(global, &old.warnings);
    warn(global, &new.warnings);
    let (old, new) = sources::releases(&old, &new)?;
    let diff = compare::compare(&old, &new, matching.options(&definitions));
    let components = known_components(component, &old, &new)?;
    let suite = suite(&old, &new, &diff, components, &export);
    if dry_run && format.is_none() {
        let ended = Ended { text: documents(&suite), path: None, code: ExitCode::Success, reason: None };
        return Ok((suite, ended));
    }
    if let Some(folder) = folder.filter(|_| !dry_run) {
        suite_folder::write(&folder, &suite).map_err(|error| match error {
            suite_folder::SuiteError::Occupied { .. } => {
                CommandError::usage_with_hint(error.to_string(), "name another folder, or remove what is there")
            }
            suite_folder::SuiteError::Write { .. } => CommandError::usage(error.to_string()),
        })?;
        note(global, &written_experiments(suite.experiments.len(), &folder.display().to_string()));
    }
    let text = match format.unwrap_or(ReportFormat::Table) {
        ReportFormat::Table => suite_text::table(&suite),
        ReportFormat::Markdown => suite_text::markdown(&suite),
        format @ (ReportFormat::Json | ReportFormat::Yaml) => data_text(&suite.manifest(), format)?,
    };
    Ok((suite, Ended { text, path: None, code: ExitCode::Success, reason: None }))
}

fn suite(
    old: &Release,
    new: &Release,
    diff: &ReleaseDiff,
    components: BTreeSet<String>,
    tools: &[ExportTool],
) -> Suite {
    let mut suite = generate::generate(old, new, diff, &Options { components });
    let tools: BTreeSet<Tool> = tools.iter().copied().map(Tool::from).collect();
    suite.exports = tools.into_iter().map(|tool| export::export(&suite, tool)).collect();
    suite
}

/// The components, if the releases have them.
fn known_components(wanted: Vec<String>, old: &Release, new: &Release) -> Result<BTreeSet<String>, CommandError> {
    let components = old.operators.iter().chain(&new.operators).flat_map(|operator| &operator.components);
    let known: BTreeSet<&str> = components.map(|component| component.name.as_str()).collect();
    for name in &wanted {
        if !known.contains(name.as_str()) {
            let hint = suggest::hint(suggest::nearest(name, known.iter().copied()));
            return Err(CommandError::usage(format!("neither release has a component {name:?}{hint}")));
        }
    }
    Ok(wanted.into_iter().collect())
}

/// All files as one stream of YAML documents, each below its name.
fn documents(suite: &Suite) -> String {
    let files = suite_folder::texts(suite).into_iter().map(|(file, text)| {
        let text = terminal_safe_lines(&text).into_owned();
        format!("---\n# {file}\n{text}")
    });
    files.collect()
}
