//! `pushback upgrade validate-version`: whether a folder of models is complete for one version of a release.

use clap::Args;
use pushback_upgrade::report::versioned_text::Versioned;

use super::arguments::ShownArgs;
use super::ended::RenderedReport;
use crate::cli::arguments::GlobalArgs;
use crate::cli::screen::ProgressNotes;
use crate::run::answer::Answer;
use crate::run::error::CommandError;
use crate::run::upgrade::validate;

/// Check a folder of models.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pushback upgrade validate-version knowledge/v2.21
  pushback upgrade validate-version knowledge/odh-v2.10 --format json

Exit codes: 0 complete, 1 something is missing or contradicts itself.")]
pub struct ValidateVersionArgs {
    /// Folder with the models of one version, and their definitions in crds/; git:REF:PATH too [alias: --knowledge-dir]
    #[arg(value_name = "DIR", required_unless_present = "knowledge_dir")]
    directory: Option<String>,
    #[arg(long, value_name = "DIR", hide = true, conflicts_with = "directory")]
    knowledge_dir: Option<String>,
    #[command(flatten)]
    shown: ShownArgs,
}

/// Runs the command.
///
/// # Errors
/// It is not a folder, or a file in it cannot be read.
pub fn run(global: &GlobalArgs, arguments: ValidateVersionArgs) -> Result<RenderedReport, CommandError> {
    let place = arguments.shown.place()?;
    let directory = arguments.directory.or(arguments.knowledge_dir).unwrap_or_default();
    let Answer { report: checks, code, reason } = validate::version(&directory, &ProgressNotes(global))?;
    RenderedReport::of(Answer { report: Versioned { directory: &directory, checks: &checks }, code, reason }, place)
}
