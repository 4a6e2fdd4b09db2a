//! One side of a comparison: operator models, definitions and manifests from files, folders, standard input, URLs and
//! git refs.

use std::sync::Arc;

use pushback_preflight::operator::derive::{self, Given, Settings};
use pushback_preflight::operator::overlay;
use pushback_preflight::operator::written::{self, Document, ModelError};
use pushback_preflight::operator::{Definition, Release};

use crate::manifest::collect::{self, LoadOptions};
use crate::manifest::{Input, InputError, InputWarning, Manifest};

/// What the sources of one side hold.
#[derive(Clone, Debug, Default)]
pub struct Side {
    /// Models that people wrote.
    pub models: Vec<Document>,
    /// Kubernetes objects, definitions among them.
    pub manifests: Vec<Manifest>,
    /// Warnings.
    pub warnings: Vec<InputWarning>,
    /// The sources, as the user named them.
    pub named: String,
    /// The same, one by one.
    inputs: Vec<String>,
}

/// Reads the sources of one side: models, and manifests of any kind.
///
/// # Errors
/// Everything that is wrong with them, sorted by file and line.
pub fn read(inputs: &[String], allow_http: bool) -> Result<Side, Vec<InputError>> {
    let options = LoadOptions { models: true, allow_http, ..LoadOptions::default() };
    let Input { manifests, models, warnings, .. } = collect::load(inputs, &options)?;
    Ok(Side { models, manifests, warnings, named: inputs.join(", "), inputs: inputs.to_vec() })
}

impl Side {
    /// Its CustomResourceDefinitions.
    #[must_use]
    pub fn definitions(&self) -> Vec<Definition> {
        self.manifests
            .iter()
            .filter(|manifest| is_definition(manifest))
            .map(|manifest| Definition {
                name: manifest.object.name.clone(),
                value: Arc::new(manifest.value.clone()),
                positions: Some(Arc::clone(&manifest.positions)),
            })
            .collect()
    }

    /// The release: what people wrote of it, laid over what its manifests show. A model with nothing but definitions
    /// beside it stands for itself.
    ///
    /// # Errors
    /// What is wrong with the models.
    pub fn release(&self) -> Result<Release, Vec<InputError>> {
        let has_objects = self.manifests.iter().any(|manifest| !is_definition(manifest));
        let written = written::release(&self.models, self.definitions())
            .map_err(|errors| errors.into_iter().map(input_error).collect::<Vec<_>>())?;
        match (has_objects, written.operators.as_slice()) {
            (false, _) => Ok(written),
            (true, []) => Ok(self.derived("")),
            (true, [operator]) => Ok(overlay::merge(self.derived(&operator.name), written)),
            (true, _) => Ok(overlay::merge(self.derived(""), written)),
        }
    }

    /// The model that its manifests yield; the app is named by their labels where `app` is empty.
    #[must_use]
    pub fn derived(&self, app: &str) -> Release {
        let given: Vec<Given> = self.manifests.iter().map(given).collect();
        let version = self.inputs.iter().find_map(|input| version_in(input)).unwrap_or_default();
        derive::derive(&given, &Settings { app: app.to_owned(), version, ..Settings::default() })
    }
}

fn given(manifest: &Manifest) -> Given {
    Given { value: Arc::new(manifest.value.clone()), positions: Some(Arc::clone(&manifest.positions)) }
}

/// The version that a source is named after, as `releases/v1.2.3/install.yaml`, `git:v1.2.3:deploy` or
/// `controller-v1.2.3`: the last part of its name that holds one.
fn version_in(input: &str) -> Option<String> {
    input.rsplit(['/', '\\', ':']).find_map(|part| {
        let part = [".yaml", ".yml", ".json"].iter().find_map(|ending| part.strip_suffix(ending)).unwrap_or(part);
        let starts = part.char_indices().filter(|(at, c)| {
            let before = part[..*at].chars().next_back();
            c.is_ascii_digit() && before.is_none_or(|before| matches!(before, 'v' | 'V' | '-' | '_'))
        });
        let versions = starts.map(|(at, _)| &part[at..]).filter(|rest| {
            let (major, minor) = rest.split_once('.').unwrap_or_default();
            major.bytes().all(|byte| byte.is_ascii_digit()) && minor.starts_with(|c: char| c.is_ascii_digit())
        });
        versions.map(ToOwned::to_owned).next()
    })
}

/// Whether a manifest defines a kind.
#[must_use]
pub fn is_definition(manifest: &Manifest) -> bool {
    manifest.object.group == "apiextensions.k8s.io" && manifest.object.kind == "CustomResourceDefinition"
}

fn input_error(error: ModelError) -> InputError {
    InputError { message: error.message, position: error.position, hints: error.hints }
}

#[cfg(test)]
mod tests {
    use super::version_in;

    #[test]
    fn a_source_is_named_after_a_version_where_a_part_of_it_is_one() {
        for (input, version) in [
            ("releases/v1.2.3/install.yaml", Some("1.2.3")),
            ("apps/controller-v1.11.3/deploy.yaml", Some("1.11.3")),
            ("git:v2.0.0-rc.1:deploy/app", Some("2.0.0-rc.1")),
            ("deploy/app-0.4.yaml", Some("0.4")),
            ("v1.0/v2.0", Some("2.0")),
            ("deploy/v2/app", None),
            ("https://example.com/ipv4.local/a", None),
            ("-", None),
        ] {
            assert_eq!(version_in(input).as_deref(), version, "{input}");
        }
    }
}
