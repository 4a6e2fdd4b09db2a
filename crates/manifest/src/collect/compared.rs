//! Differences between reading an input for a comparison and for an apply: other documents, and variants of a CRD.

use pushback_crd::definition::listed;
use std::collections::HashSet;

use pushback_objects::object::split_api_version;
use pushback_objects::{ObjectExt, Position};
use serde_json::Value;

use super::Collector;
use crate::input::{InputError, InputWarning, Manifest, error_in};
use crate::layout;
use crate::options::{ComparedSide, LoadOptions, SideRole};

/// Positions named one by one in a message.
const NAMED: usize = 5;

/// Returns whether a document in a folder is not a Kubernetes object: input of another tool, such as values, a patch or a bundle's
/// annotations. An incomplete object is still an object, and an error.
pub(super) fn is_not_an_object(value: &Value) -> bool {
    let Some(fields) = value.as_object() else { return true };
    let (group, _) = split_api_version(value.text("/apiVersion"));
    let has = |name: &str| fields.contains_key(name);
    layout::is_kustomization_document(value)
        || !has("apiVersion") && !has("kind")
        || has("apiVersion") && has("kind") && !has("metadata") && !is_of_kubernetes(group)
}

/// Returns whether an API server itself may serve a group. Groups of configuration files are never served.
fn is_of_kubernetes(group: &str) -> bool {
    let is_configuration = group.ends_with(".config.k8s.io") || group.ends_with("x-k8s.io");
    !group.contains('.') || group.ends_with(".k8s.io") && !is_configuration
}

/// Returns whether a document is probably meant as an operator model.
fn is_like_a_model(value: &Value) -> bool {
    value.get("operator").is_some() || value.get("components").is_some()
}

impl Collector {
    /// Returns whether the document is left out because nothing of it is compared. Records its position.
    pub(super) fn leaves_out(&mut self, value: &Value, position: &Position) -> bool {
        let is_left_out = self.is_found && is_not_an_object(value) && !(self.models && is_like_a_model(value));
        if is_left_out {
            self.left_out.push(position.clone());
        }
        is_left_out
    }

    /// Keeps a second CRD of the same name, if it is in another file and the input is compared.
    pub(super) fn keeps_variant(&mut self, manifest: &Manifest, earlier: usize) -> bool {
        let first = &self.input.manifests[earlier];
        let is_variant =
            self.compared.is_some()
                && manifest.object.is_definition()
                && manifest.positions.file() != first.positions.file()
                && !self.input.variants.iter().any(|known| {
                    known.object == manifest.object && known.positions.file() == manifest.positions.file()
                });
        if is_variant {
            self.input.variants.push(manifest.clone());
        }
        is_variant
    }

    /// Reports what was left out.
    pub(super) fn finish_compared(&mut self) {
        if let Some(first) = self.left_out.first() {
            let places: Vec<String> = self.left_out.iter().map(ToString::to_string).collect();
            let count = self.left_out.len();
            let subject = if count == 1 {
                "1 document is not a Kubernetes object".to_owned()
            } else {
                format!("{count} documents are not Kubernetes objects")
            };
            self.input.warnings.push(InputWarning {
                code: "not-an-object",
                message: format!("{subject}, and not compared: {}", listed(&places, NAMED)),
                position: Position { file: first.file.clone(), line: 0, column: 0 },
            });
        }
    }

    /// The error about a side without any object.
    pub(super) fn nothing_to_compare(&self, side: ComparedSide, input: &str) -> InputError {
        let files = self.files_read;
        let found = if files == 1 { "1 file".to_owned() } else { format!("{files} files") };
        let message = format!("expected Kubernetes objects, found {found} without any");
        let hint =
            format!("If they are rendered, as by kustomize or Helm, name the result: `{}rendered.yaml`.", side.option);
        let is_base = matches!(side.role, SideRole::Base { .. });
        let may_be_new = is_base && !self.has_manifests;
        let new = may_be_new.then_some("For a first release, which has no base, add --new-base.");
        let hints = [hint.as_str(), "Otherwise name the folder that holds the objects."];
        error_in(input, message, &hints.into_iter().chain(new).collect::<Vec<_>>())
    }

    /// A folder without manifests, or only with a policy, is as good as a missing base if the user has declared that.
    pub(super) fn declare_new_base(&mut self, inputs: &[String]) {
        let Some(SideRole::Base { may_be_missing }) = self.compared.map(|side| side.role) else { return };
        let has_policy = self.has_only_policy();
        if self.errors.is_empty() && !self.is_missing && (has_policy || may_be_missing && !self.has_manifests) {
            self.is_missing = true;
            self.input.missing.extend(inputs.iter().cloned());
            let warning = if has_policy && !may_be_missing { only_policy } else { new_base };
            self.input.warnings.extend(inputs.iter().map(|input| warning(input)));
        }
    }

    /// Returns whether every file that was read is one of a policy or of conversion plans.
    fn has_only_policy(&self) -> bool {
        let configs = self.input.configs.iter().map(|config| config.positions.file());
        let plans = self.input.plans.iter().map(|plan| plan.positions.file());
        let files: HashSet<&str> = configs.chain(plans).collect();
        !files.is_empty() && files.len() == self.manifests_read
    }

    /// Takes what the options ask for.
    pub(super) fn with_options(options: &LoadOptions) -> Self {
        Self { models: options.models, compared: options.compared, ..Self::default() }
    }
}

/// Warns of a base that does not exist, as the user has declared.
pub(super) fn new_base(input: &str) -> InputWarning {
    InputWarning {
        code: "new-base",
        message: "it has no objects, as --new-base declares: everything that is compared with it is new".to_owned(),
        position: Position { file: input.to_owned(), line: 0, column: 0 },
    }
}

/// Warns of a base with nothing but a policy: it landed before the first release.
pub(super) fn only_policy(input: &str) -> InputWarning {
    InputWarning {
        code: "new-base",
        message: "it has a policy and no objects: everything that is compared with it is new".to_owned(),
        position: Position { file: input.to_owned(), line: 0, column: 0 },
    }
}

/// Warns of a base that exists although the user has declared that there is none.
pub(super) fn needless_new_base(input: &str) -> InputWarning {
    InputWarning {
        code: "new-base",
        message: "it exists, and is compared although --new-base is given; remove --new-base".to_owned(),
        position: Position { file: input.to_owned(), line: 0, column: 0 },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn documents_of_other_tools_are_not_objects_and_incomplete_objects_are() {
        for other in [
            json!("text"),
            json!([{"op": "add"}]),
            json!({"annotations": {"operators.operatorframework.io.bundle.mediatype.v1": "registry+v1"}}),
            json!({"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization", "metadata": {"name": "a"}}),
            json!({"apiVersion": "kind.x-k8s.io/v1alpha4", "kind": "Cluster"}),
            json!({"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration"}),
        ] {
            assert!(is_not_an_object(&other), "{other}");
        }
        for object in [
            json!({"apiVersion": "apps/v1", "kind": "Deployment"}),
            json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}),
            json!({"kind": "Deployment", "metadata": {"name": "a"}}),
            json!({"apiVersion": "ex.com/v1", "kind": "Widget", "metadata": {}}),
        ] {
            assert!(!is_not_an_object(&object), "{object}");
        }
    }
}
