//! Differences between two manifests of a resource that model files do not show: permissions, bindings, how pods are
//! started, configuration keys, and immutable fields.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::super::difference::{ChangeType, Severity};
use super::super::model::Resource;
use super::context::Context;
use super::manifest_difference::{ManifestDifference, names};
use super::{bindings, immutable_fields, permissions, pods};
use crate::object::ObjectExt;

/// All differences, if both sides have a manifest.
pub(super) fn differences(context: &Context<'_>, before: &Resource, after: &Resource) -> Vec<ManifestDifference> {
    let (Some(old), Some(new)) = (before.manifest.as_deref(), after.manifest.as_deref()) else { return Vec::new() };
    let mut found = roles(old, new);
    found.extend(bindings::differences(context, before, after, (old, new)));
    found.extend(configuration(old, new));
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
        let message = format!("permissions added: {}", gained.shown());
        ManifestDifference::new(Severity::Info, "rules", message)
            .kind(ChangeType::PermissionsWidened)
            .values(None, Some(json!(gained.permissions)))
    });
    lost.into_iter().chain(gained).collect()
}

/// Added and removed keys of a ConfigMap. Values are ignored: a release changes many of them.
fn configuration(old: &Value, new: &Value) -> Option<ManifestDifference> {
    let is_map = |value: &Value| value.text("/kind") == "ConfigMap" && value.text("/apiVersion") == "v1";
    if !is_map(old) || !is_map(new) {
        return None;
    }
    let keys = |value: &Value| -> BTreeMap<String, Value> {
        let maps = ["data", "binaryData"].into_iter().filter_map(|field| value.get(field)?.as_object().cloned());
        maps.flatten().map(|(key, _)| (key, Value::Null)).collect()
    };
    names("data", "key", "keys", &keys(old), &keys(new))
}
