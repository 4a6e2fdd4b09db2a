//! `pushback upgrade diff`: what changed between two releases.

use clap::Args;
use pushback_preflight::operator::{ReleaseDiff, Severity, compare};
use serde::Serialize;

use super::{DefinitionsArgs, Ended, FailOn, MatchingArgs, ReportFormat, ShownArgs, SidesArgs, data_text, warn};
use crate::cli::arguments::GlobalArgs;
use crate::cli::screen::note;
use crate::report::release::{difference_markdown, difference_text};
use crate::run::error::CommandError;
use crate::upgrade::sources;

/// Say what changed between two releases.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pushback upgrade diff --from knowledge/v2.20 --to knowledge/v2.21     models that you write
  pushback upgrade diff --from git:v2.20:deploy --to deploy             manifests, without a model
  pushback upgrade diff --from app:shop --to deploy --cluster kube      a live app as the old side
  pushback upgrade diff --from v2.20.yaml --to v2.21.yaml --format json
  pushback upgrade diff --from old.yaml --to new.yaml --breaking --format markdown --output diff.md
  pushback upgrade diff --from old.yaml --to new.yaml --fail-on warning

Exit codes: 0 done, 1 wrong input, 10 a change is as bad as --fail-on says.")]
pub struct UpgradeDiffArgs {
    #[command(flatten)]
    sides: SidesArgs,
    #[command(flatten)]
    matching: MatchingArgs,
    #[command(flatten)]
    definitions: DefinitionsArgs,
    /// List breaking changes only; the counts stay those of all
    #[arg(long, help_heading = "Comparison")]
    breaking: bool,
    #[command(flatten)]
    shown: ShownArgs,
    /// Exit with 10 where a change is at least this bad
    #[arg(long, value_name = "SEVERITY", default_value = "breaking", ignore_case = true, help_heading = "Report")]
    fail_on: FailOn,
}

/// The report for programs.
#[derive(Debug, Serialize)]
struct Report<'a> {
    #[serde(rename = "schemaVersion")]
    schema_version: u32,
    #[serde(flatten)]
    diff: &'a ReleaseDiff,
}

/// Runs the command.
///
/// # Errors
/// The releases cannot be read.
pub async fn run(global: &GlobalArgs, arguments: UpgradeDiffArgs) -> Result<Ended, CommandError> {
    let UpgradeDiffArgs { sides, matching, definitions, breaking, shown, fail_on } = arguments;
    let (path, format) = shown.place()?;
    let (old, new) = sides.resolve(global)?.read(&|text| note(global, text)).await?;
    warn(global, &old.warnings);
    warn(global, &new.warnings);
    let (old, new) = sources::releases(&old, &new)?;
    let mut diff = compare::compare(&old, &new, matching.options(&definitions));
    let (code, reason) = fail_on.judge(diff.severities());
    if breaking {
        diff.keep_from(Severity::Breaking);
    }
    let text = match format {
        ReportFormat::Table => difference_text::table(&diff),
        ReportFormat::Markdown => difference_markdown::text(&diff),
        format @ (ReportFormat::Json | ReportFormat::Yaml) => {
            data_text(&Report { schema_version: 1, diff: &diff }, format)?
        }
    };
    Ok(Ended { text, path, code, reason })
}
