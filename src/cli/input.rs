//! From `-f` and `--config` to manifests, Config, and the selected preflight rules.

use std::collections::BTreeMap;

use pushback_preflight::rules::upgrade_diff::{self, NAME as UPGRADE_DIFF};
use pushback_preflight::selection::{self, ConfigRule, Selection, SelectionError};
use pushback_preflight::waiver::Waiver;
use pushback_preflight::{Answer, Need, PathSegment};

use super::arguments::{InputArgs, PreflightArgs};
use super::error::CommandError;
use crate::config::{self, Config};
use crate::manifest::collect::{self, LoadOptions};
use crate::manifest::{Input, InputError, Manifest, yaml};
use crate::upgrade::sources;

/// Everything that the user handed in.
#[derive(Debug)]
pub struct Given {
    /// Manifests and warnings.
    pub input: Input,
    /// Config, defaults included.
    pub config: Config,
}

/// Reads the input.
///
/// # Errors
/// Everything that is wrong with it, at once.
pub fn read(arguments: &InputArgs) -> Result<Given, CommandError> {
    let options = LoadOptions {
        allow_empty: arguments.dangerous_allow_empty_list_of_resources,
        allow_http: arguments.allow_http,
        follow_links: arguments.follow_links,
        ..LoadOptions::default()
    };
    let mut input = collect::load(&arguments.files, &options)?;
    let mut documents = std::mem::take(&mut input.configs);
    let config = read_config(&arguments.config, &mut documents, &mut input)?;
    Ok(Given { input, config })
}

/// Reads Config alone, for commands without manifests.
///
/// # Errors
/// Everything that is wrong with it, at once.
pub fn read_config_only(files: &[String]) -> Result<Config, CommandError> {
    read_config(files, &mut Vec::new(), &mut Input::default())
}

fn read_config(files: &[String], documents: &mut Vec<Manifest>, input: &mut Input) -> Result<Config, CommandError> {
    if !files.is_empty() {
        let (more, warnings) = collect::load_config_files(files)?;
        documents.extend(more);
        input.warnings.extend(warnings);
    }
    let parse_text = |file: &str, text: &str| {
        let loaded = yaml::load(file, text.as_bytes(), &yaml::Limits::default())?;
        Ok(loaded.documents.into_iter().map(|document| (document.value, document.positions)).collect())
    };
    let user = config::parse::parse(documents, env!("CARGO_PKG_VERSION"), &parse_text)?;
    Ok(Config::merge(config::defaults::defaults(), user))
}

/// The rules that run.
///
/// # Errors
/// Unknown or repeated rules, wrong settings; with the place where it is in a Config.
pub fn select(arguments: &PreflightArgs, config: &Config) -> Result<Selection, CommandError> {
    let entries: Option<Vec<ConfigRule<'_>>> = config
        .preflight_rules
        .as_ref()
        .map(|rules| rules.iter().map(|rule| ConfigRule { name: &rule.name, config: &rule.config }).collect());
    selection::select(arguments.preflight.as_deref(), entries.as_deref()).map_err(|errors| {
        let errors: Vec<InputError> = errors.iter().map(|error| placed(error, config)).collect();
        CommandError::from(errors)
    })
}

fn placed(error: &SelectionError, config: &Config) -> InputError {
    let rules = config.preflight_rules.as_deref().unwrap_or_default();
    let entry = error.config_index().and_then(|index| rules.get(index));
    let position = match (entry, error) {
        (Some(entry), SelectionError::Setting { error, .. }) => {
            let mut path = entry.places.prefix.clone();
            path.push(PathSegment::from("config"));
            path.extend(error.path.iter().cloned());
            entry.places.positions.locate(&path)
        }
        (Some(entry), _) => entry.position.clone(),
        (None, _) => Default::default(),
    };
    InputError {
        message: error.to_string(),
        position,
        hints: vec!["`pushback rules` lists the rules, `pushback rules NAME` explains one".to_owned()],
    }
}

/// The models that the settings of rules name.
///
/// # Errors
/// Everything that is wrong with them.
pub fn models(selection: &Selection) -> Result<BTreeMap<Need, Answer>, CommandError> {
    let mut answers = BTreeMap::new();
    for selected in selection.rules.iter().filter(|selected| selected.rule.meta().name == UPGRADE_DIFF) {
        let Some(path) = upgrade_diff::model_path(&selected.settings) else { continue };
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

/// Waivers of Config and command line.
pub fn waivers(arguments: &PreflightArgs, config: &Config) -> Vec<Waiver> {
    let configured = config.preflight_waivers.iter().map(|waiver| Waiver {
        rule: Some(waiver.rule.clone()),
        check: waiver.check.clone(),
        object: waiver.object.clone(),
        path: waiver.path.clone(),
        fingerprint: waiver.fingerprint.clone(),
        reason: waiver.reason.clone(),
        owner: waiver.owner.clone(),
        expires: waiver.expires.clone(),
        position: Some(waiver.position.clone()),
    });
    let given = arguments.waive.iter().map(|(fingerprint, reason)| Waiver {
        fingerprint: Some(fingerprint.clone()),
        reason: reason.clone(),
        ..Waiver::default()
    });
    configured.chain(given).collect()
}
