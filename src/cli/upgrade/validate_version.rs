//! `pushback upgrade validate-version`: whether a folder of models is complete for one version of a release.

use clap::Args;
use pushback_preflight::operator::versioned::{self, Check};
use serde::Serialize;

use super::{Ended, ReportFormat, ShownArgs, data_text, warn};
use crate::cli::arguments::GlobalArgs;
use crate::exit::ExitCode;
use crate::report::release::versioned_text;
use crate::run::error::CommandError;
use crate::text::counted;
use crate::upgrade::sources;

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

/// What was found, for programs.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Report<'a> {
    schema_version: u32,
    directory: &'a str,
    valid: bool,
    checks: &'a [Check],
}

/// Runs the command.
///
/// # Errors
/// It is no folder, or a file in it cannot be read at all.
pub fn run(global: &GlobalArgs, arguments: ValidateVersionArgs) -> Result<Ended, CommandError> {
    let (path, format) = arguments.shown.place()?;
    let directory = arguments.directory.or(arguments.knowledge_dir).unwrap_or_default();
    let (folder, warnings) = sources::versioned(&directory)?;
    warn(global, &warnings);
    let checks = versioned::check(&folder);
    let valid = checks.iter().all(|check| check.problems.is_empty());
    let text = match format {
        ReportFormat::Table => versioned_text::table(&directory, &checks),
        ReportFormat::Markdown => versioned_text::markdown(&directory, &checks),
        format @ (ReportFormat::Json | ReportFormat::Yaml) => {
            data_text(&Report { schema_version: 1, directory: &directory, valid, checks: &checks }, format)?
        }
    };
    let failed = checks.iter().filter(|check| !check.problems.is_empty()).count();
    let (code, reason) = match failed {
        0 => (ExitCode::Success, None),
        failed => (ExitCode::Usage, Some(format!("{} failed.", counted(failed, "check")))),
    };
    Ok(Ended { text, path, code, reason })
}
