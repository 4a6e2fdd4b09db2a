//! Immutable fields: the API server rejects an update of them, so the object must be recreated. Selectors and the roles
//! of bindings are compared elsewhere.

use pushback_crd::schema::cel::are_equal_quantities;
use pushback_objects::object::{ObjectExt, split_api_version};
use serde_json::{Map, Value, json};

use super::super::difference::Severity;
use super::manifest_difference::{ManifestDifference, REFUSED};

/// Differences in immutable fields of the same object. `has_new_pods`: whether its pod template differs.
pub(super) fn differences(old: &Value, new: &Value, has_new_pods: bool) -> Vec<ManifestDifference> {
    match (split_api_version(new.text("/apiVersion")).0, new.text("/kind")) {
        ("apps", "StatefulSet") => stateful_set(old, new),
        ("batch", "Job") if has_new_pods => job(old).into_iter().collect(),
        ("", "Service") => service(old, new).into_iter().collect(),
        ("", "PersistentVolumeClaim") => claim("spec", &old["spec"], &new["spec"]),
        ("", "ConfigMap") => configuration(old, new).into_iter().collect(),
        _ => Vec::new(),
    }
}

fn changed(field: &str, old: Value, new: Value) -> ManifestDifference {
    let message = format!("changed from {} to {}, {REFUSED}", shown(&old), shown(&new));
    ManifestDifference::new(Severity::Breaking, field, message).values(Some(old), Some(new))
}

fn shown(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), |text| if text.is_empty() { "none".to_owned() } else { text.to_owned() })
}

fn stateful_set(old: &Value, new: &Value) -> Vec<ManifestDifference> {
    let mut found = Vec::new();
    for (field, default) in [("serviceName", ""), ("podManagementPolicy", "OrderedReady")] {
        let text = |object: &Value| match object.text(&format!("/spec/{field}")) {
            "" => default.to_owned(),
            text => text.to_owned(),
        };
        let (was, is) = (text(old), text(new));
        if was != is {
            found.push(changed(&format!("spec.{field}"), was.into(), is.into()));
        }
    }
    let templates = |object: &Value| -> Map<String, Value> {
        let listed = object.pointer("/spec/volumeClaimTemplates").and_then(Value::as_array).into_iter().flatten();
        listed.map(|template| (template.name().to_owned(), template["spec"].clone())).collect()
    };
    let (was, is) = (templates(old), templates(new));
    let path = "spec.volumeClaimTemplates";
    for (name, before) in &was {
        match is.get(name) {
            Some(after) => found.extend(claim(&format!("{path}.{name}"), before, after)),
            None => found.push(
                ManifestDifference::new(
                    Severity::Breaking,
                    format!("{path}.{name}"),
                    format!("template removed, {REFUSED}"),
                )
                .values(Some(json!(name)), None),
            ),
        }
    }
    for name in is.keys().filter(|name| !was.contains_key(*name)) {
        let message = format!("template added, {REFUSED}");
        let added = ManifestDifference::new(Severity::Breaking, format!("{path}.{name}"), message);
        found.push(added.values(None, Some(json!(name))));
    }
    found
}

/// A field that the manifest omits and the API server defaults is not a difference. A claim may grow, a template may
/// not.
fn claim(path: &str, old: &Value, new: &Value) -> Vec<ManifestDifference> {
    let is_template = path != "spec";
    let mut found = Vec::new();
    for field in ["storageClassName", "accessModes", "volumeMode"] {
        if let (Some(was), Some(is)) = (old.get(field), new.get(field))
            && was != is
        {
            found.push(changed(&format!("{path}.{field}"), was.clone(), is.clone()));
        }
    }
    let size = |claim: &Value| claim.pointer("/resources/requests/storage").map(shown);
    if let (Some(was), Some(is), true) = (size(old), size(new), is_template)
        && !are_equal_quantities(&was, &is)
    {
        found.push(changed(&format!("{path}.resources.requests.storage"), was.into(), is.into()));
    }
    found
}

/// A Job that is cleaned up when it ends, or that a tool recreates each time, is not affected.
fn job(old: &Value) -> Option<ManifestDifference> {
    let goes = old.pointer("/spec/ttlSecondsAfterFinished").is_some()
        || old.annotation("helm.sh/hook").is_some()
        || old.annotation("kapp.k14s.io/update-strategy").is_some();
    let message = "the pod template of a Job cannot be changed: while the old Job exists, the update is rejected";
    (!goes).then(|| ManifestDifference::new(Severity::Warning, "spec.template", message))
}

/// An assigned address stays unless its removal is requested.
fn service(old: &Value, new: &Value) -> Option<ManifestDifference> {
    let address = |service: &Value| service.text("/spec/clusterIP").to_owned();
    let has_address = |service: &Value| service.text("/spec/type") != "ExternalName";
    let (was, is) = (address(old), address(new));
    let differs = has_address(old) && has_address(new) && !is.is_empty() && was != is;
    // A different address than the live or configured one, or none for a Service that surely has one.
    (differs && (is == "None" || !was.is_empty())).then(|| changed("spec.clusterIP", was.into(), is.into()))
}

fn configuration(old: &Value, new: &Value) -> Option<ManifestDifference> {
    // A versioned object gets a new number, and so a new name.
    let is_immutable = old.get("immutable") == Some(&Value::Bool(true)) && old.name() == new.name();
    let differs = ["data", "binaryData"].into_iter().any(|field| old.get(field) != new.get(field));
    let message = format!("the ConfigMap is immutable and has other data, {REFUSED}");
    (is_immutable && differs).then(|| ManifestDifference::new(Severity::Breaking, "data", message))
}
