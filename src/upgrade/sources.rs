//! One side of a comparison: operator models, definitions and manifests from files, folders, standard input, URLs and
//! git refs.

use std::sync::Arc;

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
}

/// Reads the sources of one side: models, and manifests of any kind.
///
/// # Errors
/// Everything that is wrong with them, sorted by file and line.
pub fn read(inputs: &[String], allow_http: bool) -> Result<Side, Vec<InputError>> {
    let options = LoadOptions { models: true, allow_http, ..LoadOptions::default() };
    let Input { manifests, models, warnings, .. } = collect::load(inputs, &options)?;
    Ok(Side { models, manifests, warnings, named: inputs.join(", ") })
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

    /// The release: its models, and the definitions beside them.
    ///
    /// # Errors
    /// What is wrong with the models, or there are objects and no model of them.
    pub fn release(&self) -> Result<Release, Vec<InputError>> {
        let objects = self.manifests.iter().find(|manifest| !is_definition(manifest));
        if let Some(manifest) = objects.filter(|_| self.models.is_empty()) {
            return Err(vec![InputError {
                message: format!("{} is a manifest; expected operator models and definitions", manifest.object),
                position: manifest.positions.start(),
                hints: vec!["A model is a document with `operator:` and `components:`.".to_owned()],
            }]);
        }
        written::release(&self.models, self.definitions())
            .map_err(|errors| errors.into_iter().map(input_error).collect())
    }
}

/// Whether a manifest defines a kind.
#[must_use]
pub fn is_definition(manifest: &Manifest) -> bool {
    manifest.object.group == "apiextensions.k8s.io" && manifest.object.kind == "CustomResourceDefinition"
}

fn input_error(error: ModelError) -> InputError {
    InputError { message: error.message, position: error.position, hints: error.hints }
}
