//! Checks chaos experiments for what any runner or API server would reject, and a folder of models for completeness.

use pushback_events::exit::ExitCode;
use pushback_manifest::{InputError, InputWarning, LoadOptions, Manifest, collect};
use pushback_objects::finding::Severity;
use pushback_objects::text::counted;
use pushback_preflight::experiment::{self, suite};
use pushback_releases::versioned::{self, Check};
use pushback_upgrade::{sources, suite_folder};

use crate::run::answer::{Answer, Notes};
use crate::run::error::CommandError;

/// Validates every experiment in the inputs; returns their number.
///
/// # Errors
/// All errors in them at once.
pub fn experiments(paths: &[String], options: &LoadOptions, notes: &dyn Notes) -> Result<usize, CommandError> {
    let input = collect::load(&suite_folder::expanded(paths), options)?;
    notes.warn(&input.warnings);
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
    notes.warn(&warnings);
    if errors.is_empty() { Ok(experiments) } else { Err(CommandError::from(errors)) }
}

/// Whether a manifest is an experiment, in any version: the version itself is validated.
fn is_experiment(manifest: &Manifest) -> bool {
    manifest.object.group == "chaos.operatorchaos.io" && manifest.object.kind == experiment::KIND
}

/// Whether a manifest is a suite's, which is stored next to its experiments.
fn is_suite(manifest: &Manifest) -> bool {
    manifest.object.api_version() == suite::API_VERSION && manifest.object.kind == suite::KIND
}

/// Checks that a folder of models is complete for one version of a release.
///
/// # Errors
/// It is not a folder, or a file in it cannot be read.
pub fn version(directory: &str, notes: &dyn Notes) -> Result<Answer<Vec<Check>>, CommandError> {
    let (folder, warnings) = sources::versioned(directory)?;
    notes.warn(&warnings);
    let checks = versioned::check(&folder);
    let failed = checks.iter().filter(|check| !check.problems.is_empty()).count();
    let wrong = (failed > 0).then(|| format!("{} failed.", counted(failed, "check")));
    Ok(Answer::unless(checks, ExitCode::Usage, wrong))
}
