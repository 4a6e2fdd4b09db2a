//! `pushback upgrade simulate`: experiments that test what changed between two releases.

use clap::builder::{PathBufValueParser, TypedValueParser};
use clap::{Args, ValueEnum};
use pushback_events::exit::ExitCode;
use pushback_preflight::experiment::suite::Tool;
use pushback_upgrade::report::formats::{self, Format};
use pushback_upgrade::report::suite_text;

use super::arguments::{DefinitionsArgs, MatchingArgs, Place, SidesArgs, output_path, report_format};
use super::ended::{RenderedReport, ended};
use super::execute::ExecuteArgs;
use super::recover::RecoverArgs;
use crate::cli::arguments::{GlobalArgs, NewBaseArgs, Output, RenderArgs};
use crate::cli::reports::HeldDocument;
use crate::cli::screen::{ProgressNotes, complete, start_for_report};
use crate::run::answer::Answer;
use crate::run::error::CommandError;
use crate::run::upgrade::execute::Source;
use crate::run::upgrade::simulate::{AtHandOptions, Simulate};

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
    #[arg(long, value_name = "DIR", required_unless_present_any = ["dry_run", "execute", "recover"],
          value_parser = PathBufValueParser::new().map(Output::Path))]
    output: Option<Output>,
    /// Write nothing, and print all files instead; with --format, the summary
    #[arg(long)]
    dry_run: bool,
    /// Only what comes from changes of this component; can be given more than once
    #[arg(long, value_name = "NAME")]
    component: Vec<String>,
    /// Inject into what the cluster has: custom resources and webhook configurations are looked up there. So do --execute
    /// and app:NAME
    #[arg(long)]
    live: bool,
    /// Write what this tool can express too, into a folder of its name; can be given more than once
    #[arg(long, value_name = "TOOL")]
    export: Vec<ExportTool>,
    /// Format of the summary; json and yaml are the manifest of the suite [default: table]
    #[arg(long, short = 'o', value_name = "FORMAT", value_parser = report_format())]
    format: Option<&'static Format>,
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
    /// Old release: a folder (read recursively; rendered if it has a kustomization or chart), a file, git:REF:PATH,
    /// kustomize:DIR, helm:CHART or helm:CHART@VERSION, oci://REGISTRY/REPOSITORY:TAG or @DIGEST, an https URL, - for standard input, or app:NAME for a live app; can be given more than once [aliases: --old, --source]
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
    #[command(flatten)]
    base: NewBaseArgs,
    #[command(flatten)]
    rendering: RenderArgs,
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
        return ended(global, generate(global, arguments).await);
    }
    complete(global, start_for_report(global, HeldDocument::default()), async |run| {
        let SimulateArgs { dry_run, format, .. } = arguments;
        let executing = arguments.executing.clone();
        let source = Source::Generated(Box::new(arguments.resolve(global)?));
        let place = Place { path: None, format: format.unwrap_or(&formats::TABLE) };
        executing.resolve(global, source, place, dry_run)?.run(run, &ProgressNotes(global)).await
    })
    .await
}

/// Generates the suite without running it. It is written or, in a dry run without a format, printed with all files.
async fn generate(global: &GlobalArgs, arguments: SimulateArgs) -> Result<RenderedReport, CommandError> {
    let SimulateArgs { dry_run, format, .. } = arguments;
    let suite = arguments.resolve(global)?.run(&ProgressNotes(global)).await?;
    match format {
        None if dry_run => Ok(RenderedReport::good(suite_text::documents(&suite), None)),
        format => {
            RenderedReport::of(Answer::good(suite), Place { path: None, format: format.unwrap_or(&formats::TABLE) })
        }
    }
}

impl SimulateArgs {
    /// Resolves to options.
    fn resolve(self, global: &GlobalArgs) -> Result<Simulate, CommandError> {
        let Self { sides, matching, definitions, output, dry_run, component, export, live, execute, executing, .. } =
            self;
        let folder = output_path(output.as_ref())?;
        let SimulatedSidesArgs { from, to, allow_http, follow_links, rendering, base } = sides;
        let sides = SidesArgs { from, to, allow_http, follow_links, rendering, base }.resolve(global)?;
        let has_app = !sides.old.apps.is_empty() || !sides.new.apps.is_empty();
        let at_hand = match live || execute || has_app {
            true => Some(AtHandOptions { cluster: global.cluster()?, namespaces: executing.allow_namespace }),
            false => None,
        };
        Ok(Simulate {
            at_hand,
            sides,
            options: matching.options(&definitions),
            components: component,
            tools: export.into_iter().map(Tool::from).collect(),
            folder: folder.filter(|_| !dry_run),
        })
    }
}
