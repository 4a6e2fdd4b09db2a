//! Reads `-f` and `--config` into manifests and Config, and the documents that rules refer to.

use std::collections::BTreeMap;

use pushback_manifest::{FileDigest, Input, Manifest, collect};
use pushback_objects::source::Document;
use pushback_preflight::rule::DocumentKind;
use pushback_preflight::selection::{Selected, Selection};
use pushback_preflight::{Answer, Need};

use super::error::CommandError;
use super::options::InputOptions;
use super::policy::Configured;

/// The user's input.
#[derive(Debug)]
pub struct LoadedInput {
    /// Manifests, and warnings about them.
    pub input: Input,
    /// Config, and the source of each setting.
    pub config: Configured,
}

/// Files and manifests that a run has read: those of the input and of `--config`.
#[derive(Clone, Debug)]
pub struct InputSources {
    /// Digests of the input's files.
    pub files: Vec<FileDigest>,
    /// Digests of the policy's files.
    pub policy: Vec<FileDigest>,
    /// The manifests.
    pub manifests: Vec<Manifest>,
}

impl LoadedInput {
    /// Takes the sources, with which a saved plan is compared.
    #[must_use]
    pub fn take_sources(&mut self) -> InputSources {
        InputSources {
            files: std::mem::take(&mut self.input.digests),
            policy: self.config.file_digests().to_vec(),
            manifests: std::mem::take(&mut self.input.manifests),
        }
    }
}

/// Reads manifests and Config.
///
/// # Errors
/// All errors in the input at once.
pub fn read(options: &InputOptions) -> Result<LoadedInput, CommandError> {
    let mut input = collect::load(&options.files, &options.load)?;
    let documents = std::mem::take(&mut input.configs);
    let mut config =
        Configured::read(&documents, &options.config, options.allow_unknown_config_keys, &mut input.warnings)?;
    config.add_plans(std::mem::take(&mut input.plans))?;
    Ok(LoadedInput { input, config })
}

/// Reads Config alone, for commands without manifests.
///
/// # Errors
/// All errors in the Config at once.
pub fn read_config_only(files: &[String]) -> Result<Configured, CommandError> {
    Configured::read(&[], files, false, &mut Vec::new())
}

/// Reads the documents that rule settings name.
///
/// # Errors
/// All errors in them.
pub fn documents(selection: &Selection) -> Result<BTreeMap<Need, Answer>, CommandError> {
    let mut answers = BTreeMap::new();
    for (DocumentKind::Models, path) in selection.rules.iter().flat_map(Selected::input_paths) {
        answers.insert(Need::Models { path: path.to_owned() }, Answer::Models { documents: operator_models(path)? });
    }
    Ok(answers)
}

#[cfg(feature = "upgrade")]
fn operator_models(path: &str) -> Result<Vec<Document>, CommandError> {
    let side = pushback_upgrade::sources::read(&[path.to_owned()], false, false)?;
    if side.models.is_empty() {
        let message = format!("{path} holds no operator model");
        let hint = "`pushback upgrade model derive` prints one to start from";
        return Err(CommandError::usage_with_hint(message, hint));
    }
    side.check_models()?;
    Ok(side.models)
}

#[cfg(not(feature = "upgrade"))]
fn operator_models(path: &str) -> Result<Vec<Document>, CommandError> {
    Err(CommandError::built_without("upgrade", &format!("cannot read operator models from {path}")))
}
