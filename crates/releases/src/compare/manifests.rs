//! Differences between two manifests of a resource that model files do not show: permissions, bindings, how pods are
//! started, configuration keys, and immutable fields.

use std::collections::BTreeMap;

use pushback_objects::object::ObjectExt;
use serde_json::{Value, json};

use super::super::difference::{ChangeType, Severity};
use super::super::model::Resource;
use super::context::Context;
use super::manifest_difference::{ManifestDifference, names};
use super::{bindings, immutable_fields, pods, release_fields};
use crate::permissions;

/// All differences, if both sides have a manifest.
pub(super) fn differences(context: &Context<'_>, before: &Resource, after: &Resource) -> Vec<ManifestDifference> {
    let (Some(old), Some(new)) = (before.manifest.as_deref(), after.manifest.as_deref()) else { return Vec::new() };
    let mut found = roles(old, new);
    found.extend(bindings::differences(context, before, after, (old, new)));
    found.extend(configuration(old, new));
    let covered: Vec<&str> =
        before.expected_spec.keys().chain(after.expected_spec.keys()).map(String::as_str).collect();
    found.extend(release_fields::differences(old, new, context.is_called(&after.object), &covered));
    let of_pods = pods::differences(old, new);
    // An object recreated under another name or namespace has no changed fields.
    if before.object.key() == after.object.key() {
        let has_new_pods = !of_pods.is_empty() || before.expected_spec != after.expected_spec;
        found.extend(immutable_fields::differences(old, new, has_new_pods));
    }
    found.extend(of_pods);
    found
}

fn roles(old: &Value, new: &Value) -> Vec<ManifestDifference> {
    let lost = permissions::surplus(old, new).map(|lost| {
        let message = format!("permissions removed: {}", lost.shown());
        ManifestDifference::new(Severity::Warning, "rules", message)
            .kind(ChangeType::PermissionsNarrowed)
            .values(Some(json!(lost.permissions)), None)
    });
    let gained = permissions::surplus(new, old).map(|gained| {
        let (severity, effect) = match gained.is_everything() {
            true => (Severity::Warning, ": everything in the cluster that its bindings reach"),
            false => (Severity::Info, ""),
        };
        let message = format!("permissions added: {}{effect}", gained.shown());
        ManifestDifference::new(severity, "rules", message)
            .kind(ChangeType::PermissionsWidened)
            .values(None, Some(json!(gained.permissions)))
    });
    lost.into_iter().chain(gained).collect()
}

/// Added, removed and changed keys of a ConfigMap. Values may be secret all the same.
fn configuration(old: &Value, new: &Value) -> Option<ManifestDifference> {
    let is_map = |value: &Value| value.text("/kind") == "ConfigMap" && value.text("/apiVersion") == "v1";
    // That its data cannot be changed is told instead.
    let is_immutable = old.get("immutable") == Some(&Value::Bool(true)) && old.name() == new.name();
    if !is_map(old) || !is_map(new) || is_immutable {
        return None;
    }
    let keys = |value: &Value| -> BTreeMap<String, Value> {
        let maps = ["data", "binaryData"].into_iter().filter_map(|field| value.get(field)?.as_object().cloned());
        maps.flatten().collect()
    };
    names("data", "key", "keys", &keys(old), &keys(new))
}
