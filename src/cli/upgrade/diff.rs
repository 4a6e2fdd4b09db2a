//! `pushback upgrade diff`: what changed between two releases.

use clap::Args;
use pushback_releases::Severity;

use super::arguments::{DefinitionsArgs, FailOn, MatchingArgs, ShownArgs, SidesArgs};
use super::ended::RenderedReport;
use crate::cli::arguments::GlobalArgs;
use crate::cli::screen::ProgressNotes;
use crate::run::error::CommandError;
use crate::run::upgrade::compare::CompareReleases;

/// Say what changed between two releases.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pushback upgrade diff --from knowledge/v2.20 --to knowledge/v2.21     models that you write
  pushback upgrade diff --from git:v2.20:deploy --to deploy             manifests, without a model
  pushback upgrade diff --from app:shop --to deploy --cluster kube      a live app as the old side
  pushback upgrade diff --from v2.20.yaml --to v2.21.yaml --format json
  pushback upgrade diff --from old.yaml --to new.yaml --breaking --format markdown --output diff.md
  pushback upgrade diff --from old.yaml --to new.yaml --min-severity warning --fail-on warning

Exit codes: 0 done, 1 wrong input, 10 a change is as bad as --fail-on says.")]
pub struct UpgradeDiffArgs {
    #[command(flatten)]
    sides: SidesArgs,
    #[command(flatten)]
    matching: MatchingArgs,
    #[command(flatten)]
    definitions: DefinitionsArgs,
    /// List changes of this severity and worse; the counts stay those of all
    #[arg(long, value_name = "SEVERITY", default_value = "info", value_parser = ["info", "warning", "breaking"],
        ignore_case = true, help_heading = "Comparison")]
    min_severity: String,
    /// The same as --min-severity=breaking
    #[arg(long, conflicts_with = "min_severity", help_heading = "Comparison")]
    breaking: bool,
    #[command(flatten)]
    shown: ShownArgs,
    /// Exit with 10 where a change is at least this bad
    #[arg(long, value_name = "SEVERITY", default_value = "breaking", ignore_case = true, help_heading = "Report")]
    fail_on: FailOn,
}

/// Runs the command.
///
/// # Errors
/// The releases cannot be read.
pub async fn run(global: &GlobalArgs, arguments: UpgradeDiffArgs) -> Result<RenderedReport, CommandError> {
    let UpgradeDiffArgs { sides, matching, definitions, min_severity, breaking, shown, fail_on } = arguments;
    let least = Severity::of(&min_severity.to_lowercase()).unwrap_or(Severity::Info);
    let place = shown.place()?;
    let compare = CompareReleases {
        sides: sides.resolve(global)?,
        options: matching.options(&definitions),
        least: if breaking { Severity::Breaking } else { least },
        fail_on: fail_on.least(),
    };
    RenderedReport::of(compare.run(&ProgressNotes(global)).await?, place)
}
