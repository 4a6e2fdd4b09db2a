//! `pushback upgrade validate`: what every runner and API server would refuse in chaos experiments.

use clap::Args;
use pushback_preflight::experiment::{self, suite};
use pushback_preflight::finding::Severity;

use super::{Ended, warn};
use crate::cli::arguments::GlobalArgs;
use crate::exit::ExitCode;
use crate::manifest::{InputError, InputWarning, Manifest};
use crate::manifest::{LoadOptions, collect};
use crate::run::error::CommandError;
use crate::upgrade::suite_folder;

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
/// Everything that is wrong with the experiments, at once.
pub fn run(global: &GlobalArgs, arguments: &ValidateArgs) -> Result<Ended, CommandError> {
    let ValidateArgs { allow_http, follow_links, .. } = *arguments;
    let options = LoadOptions { allow_http, follow_links, ..LoadOptions::default() };
    let input = collect::load(&suite_folder::expanded(&arguments.paths), &options)?;
    warn(global, &input.warnings);
    let mut errors = Vec::new();
    let mut warnings = Vec::new();
    let mut experiments = 0;
    for manifest in input.manifests.iter().filter(|manifest| !is_suite(manifest)) {
        experiments += 1;
        if !is_experiment(manifest) {
            errors.push(InputError {
                message: format!("{} is no experiment", manifest.object),
                position: manifest.positions.start(),
                hints: vec![format!("An experiment is of kind {} of {}.", experiment::KIND, experiment::API_VERSION)],
            });
            continue;
        }
        for problem in experiment::validate(&manifest.value) {
            let position = problem.position(&manifest.positions);
            match problem.severity {
                Severity::Error => {
                    errors.push(InputError { message: problem.to_string(), position, hints: Vec::new() });
                }
                Severity::Warning | Severity::Info => {
                    warnings.push(InputWarning { code: problem.rule, message: problem.to_string(), position });
                }
            }
        }
    }
    warn(global, &warnings);
    if !errors.is_empty() {
        return Err(CommandError::from(errors));
    }
    let text = match experiments {
        1 => "1 experiment is valid\n".to_owned(),
        count => format!("{count} experiments are valid\n"),
    };
    Ok(Ended { text, path: None, code: ExitCode::Success, reason: None })
}

/// Of the right kind, in whatever version: the version is one of the demands.
fn is_experiment(manifest: &Manifest) -> bool {
    manifest.object.group == "chaos.operatorchaos.io" && manifest.object.kind == experiment::KIND
}

/// The manifest of a suite lies beside its experiments.
fn is_suite(manifest: &Manifest) -> bool {
    manifest.object.api_version() == suite::API_VERSION && manifest.object.kind == suite::KIND
}
