//! From `-f` and `--config` to manifests and Config, and to the documents that rules are to read.

use std::collections::BTreeMap;

use pushback_preflight::rule::DocumentKind;
use pushback_preflight::selection::{Selected, Selection};
use pushback_preflight::{Answer, Need};

use super::error::CommandError;
use super::options::InputOptions;
use super::policy::Configured;
use crate::manifest::{Input, collect};
use crate::upgrade::sources;

/// Everything that the user handed in.
#[derive(Debug)]
pub struct Given {
    /// Manifests and warnings.
    pub input: Input,
    /// Config, and who says what of it.
    pub config: Configured,
}

/// Reads the input.
///
/// # Errors
/// Everything that is wrong with it, at once.
pub fn read(options: &InputOptions) -> Result<Given, CommandError> {
    let mut input = collect::load(&options.files, &options.load)?;
    let documents = std::mem::take(&mut input.configs);
    let config = Configured::read(&documents, &options.config, &mut input.warnings)?;
    Ok(Given { input, config })
}

/// Reads Config alone, for commands without manifests.
///
/// # Errors
/// Everything that is wrong with it, at once.
pub fn read_config_only(files: &[String]) -> Result<Configured, CommandError> {
    Configured::read(&[], files, &mut Vec::new())
}

/// The documents that the settings of rules name.
///
/// # Errors
/// Everything that is wrong with them.
pub fn documents(selection: &Selection) -> Result<BTreeMap<Need, Answer>, CommandError> {
    let mut answers = BTreeMap::new();
    for (DocumentKind::Models, path) in selection.rules.iter().flat_map(Selected::input_paths) {
        let side = sources::read(&[path.to_owned()], false, false)?;
        if side.models.is_empty() {
            let message = format!("{path} holds no operator model");
            let hint = "`pushback upgrade model derive` prints one to start from";
            return Err(CommandError::usage_with_hint(message, hint));
        }
        side.check_models()?;
        answers.insert(Need::Models { path: path.to_owned() }, Answer::Models { documents: side.models });
    }
    Ok(answers)
}
