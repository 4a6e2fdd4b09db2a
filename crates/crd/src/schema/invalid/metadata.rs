//! Metadata of a CRD: its name, labels, annotations, finalizers and owners, and the approval of groups of Kubernetes.
//!
//! Follows `ValidateObjectMeta` in k8s.io/apimachinery, and `validateAPIApproval` in k8s.io/apiextensions-apiserver
//! `pkg/apis/apiextensions/validation`.

use serde_json::{Value, json};

use super::{Collector, text};
use crate::path::PathSegment;
use crate::schema::pipeline::format::uri_parts;
use crate::schema::pipeline::object_metadata_errors;

const APPROVAL: &str = "api-approved.kubernetes.io";

pub(super) fn check(found: &mut Collector, definition: &Value) {
    let spec = definition.get("spec").unwrap_or(&Value::Null);
    let (plural, group) = (text(&spec["names"], "plural"), text(spec, "group"));
    let metadata = definition.get("metadata").unwrap_or(&Value::Null);
    let name = text(metadata, "name");
    let is_name = |path: &[PathSegment]| matches!(path, [_, PathSegment::Key(key)] if key == "name");
    let mut counted = json!({"metadata": metadata});
    // The server sets it, whatever the manifest says.
    let generation = metadata.get("generation").filter(|value| value.is_i64());
    if let Some(metadata) = counted["metadata"].as_object_mut().filter(|_| generation.is_some()) {
        metadata.remove("generation");
    }
    // Null in a map counts as empty there.
    for map in ["/metadata/labels", "/metadata/annotations"] {
        let values = counted.pointer_mut(map).and_then(Value::as_object_mut);
        for value in values.into_iter().flat_map(serde_json::Map::values_mut).filter(|value| value.is_null()) {
            *value = "".into();
        }
    }
    for error in object_metadata_errors(&counted).into_iter().filter(|error| !is_name(&error.path)) {
        let outside = std::mem::replace(&mut found.path, error.path);
        found.here(error.message);
        found.path = outside;
    }
    found.below("metadata", |found| {
        let prefix = text(metadata, "generateName");
        if !prefix.is_empty() && prefix != format!("{plural}.{group}") {
            found.at("generateName", "must not be set: the name follows from spec.names.plural and spec.group");
        }
        if !plural.is_empty() && !group.is_empty() && name != format!("{plural}.{group}") {
            found.at("name", format!("must be {plural}.{group}, of spec.names.plural and spec.group"));
        }
        let is_protected = ["k8s.io", "kubernetes.io"]
            .iter()
            .any(|domain| group == *domain || group.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.')));
        if is_protected {
            approval(found, text(&metadata["annotations"], APPROVAL));
        }
    });
}

fn approval(found: &mut Collector, approval: &str) {
    let is_url = || uri_parts(approval).is_some_and(|uri| !uri.scheme.is_empty() && !uri.host.is_empty());
    if approval.is_empty() {
        found.at("annotations", format!("groups of Kubernetes need the annotation {APPROVAL}"));
    } else if !approval.starts_with("unapproved") && !is_url() {
        found.below("annotations", |found| {
            found.at(APPROVAL, "must be a URL, or a reason that starts with unapproved");
        });
    }
}
