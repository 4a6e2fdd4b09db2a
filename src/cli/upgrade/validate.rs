//! `pushback upgrade validate`: what any runner or API server would reject in chaos experiments.

use clap::Args;
use pushback_manifest::LoadOptions;

use super::ended::RenderedReport;
use crate::cli::arguments::GlobalArgs;
use crate::cli::screen::ProgressNotes;
use crate::run::error::CommandError;
use crate::run::upgrade::validate;

/// Check chaos experiments.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pushback upgrade validate experiments/upgrade-suite
  pushback upgrade validate my-experiment.yaml another.yaml
  helm template chaos | pushback upgrade validate -

Every experiment is held against all demands at once: those on its text, and those that the
original's runner makes only when it runs.

Exit codes: 0 all are valid, 1 a demand is not met, or the input cannot be read.")]
pub struct ValidateArgs {
    /// Experiments: files, folders (read recursively), git:REF:PATH, https URLs, or - for standard input
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<String>,
    /// Allow http URLs
    #[arg(long, hide_short_help = true)]
    allow_http: bool,
    /// Follow symbolic links that lead out of a directory that is read
    #[arg(long, hide_short_help = true)]
    follow_links: bool,
}

/// Runs the command.
///
/// # Errors
/// All errors in the experiments at once.
pub fn run(global: &GlobalArgs, arguments: &ValidateArgs) -> Result<RenderedReport, CommandError> {
    let ValidateArgs { allow_http, follow_links, .. } = *arguments;
    let options = LoadOptions { allow_http, follow_links, ..LoadOptions::default() };
    let text = match validate::experiments(&arguments.paths, &options, &ProgressNotes(global))? {
        1 => "1 experiment is valid\n".to_owned(),
        count => format!("{count} experiments are valid\n"),
    };
    Ok(RenderedReport::good(text, None))
}
