//! What two manifests of a resource differ in beyond what written models hold: permissions, bindings, how pods are
//! started, keys of configuration, and fields that the API server lets nobody change.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::super::difference::{ChangeType, Severity};
use super::super::model::Resource;
use super::context::Context;
use super::{bindings, fixed, permissions, pods};
use crate::object::ObjectExt;

/// Names that a message lists of each sort.
const SHOWN: usize = 5;

/// What becomes of a change of a field that the API server lets nobody change.
pub(super) const REFUSED: &str = "which cannot be: the API server refuses the update, it must be deleted and made anew";

/// A difference.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Found {
    pub(super) kind: ChangeType,
    pub(super) severity: Severity,
    /// `spec.template.spec.volumes`.
    pub(super) field: String,
    pub(super) message: String,
    pub(super) old: Option<Value>,
    pub(super) new: Option<Value>,
}

impl Found {
    pub(super) fn new(severity: Severity, field: impl Into<String>, message: impl Into<String>) -> Self {
        let (field, message) = (field.into(), message.into());
        Self { kind: ChangeType::SpecChanged, severity, field, message, old: None, new: None }
    }

    pub(super) fn kind(self, kind: ChangeType) -> Self {
        Self { kind, ..self }
    }

    pub(super) fn values(self, old: Option<Value>, new: Option<Value>) -> Self {
        Self { old, new, ..self }
    }
}

/// Everything that differs, where both sides have a manifest.
pub(super) fn differences(context: &Context<'_>, before: &Resource, after: &Resource) -> Vec<Found> {
    let (Some(old), Some(new)) = (before.manifest.as_deref(), after.manifest.as_deref()) else { return Vec::new() };
    let mut found = roles(old, new);
    found.extend(bindings::differences(context, before, after, (old, new)));
    found.extend(configuration(old, new));
    let of_pods = pods::differences(old, new);
    // What is made anew under another name or elsewhere is no change of a field.
    if before.object.key() == after.object.key() {
        let has_new_pods = !of_pods.is_empty() || before.expected_spec != after.expected_spec;
        found.extend(fixed::differences(old, new, has_new_pods));
    }
    found.extend(of_pods);
    found
}

fn roles(old: &Value, new: &Value) -> Vec<Found> {
    let lost = permissions::surplus(old, new).map(|lost| {
        let message = format!("permissions are gone that the old release had: {}", lost.shown());
        Found::new(Severity::Warning, "rules", message)
            .kind(ChangeType::PermissionsNarrowed)
            .values(Some(json!(lost.permissions)), None)
    });
    let gained = permissions::surplus(new, old).map(|gained| {
        let message = format!("permissions that the old release did not have: {}", gained.shown());
        Found::new(Severity::Info, "rules", message)
            .kind(ChangeType::PermissionsWidened)
            .values(None, Some(json!(gained.permissions)))
    });
    lost.into_iter().chain(gained).collect()
}

/// Keys of a ConfigMap that come and go. What stands there is another matter: a release changes much of it.
fn configuration(old: &Value, new: &Value) -> Option<Found> {
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

/// What came, went and changed among things that have names. Their values are not shown, as they may be secret.
pub(super) fn names(
    field: &str,
    one: &str,
    many: &str,
    before: &BTreeMap<String, Value>,
    after: &BTreeMap<String, Value>,
) -> Option<Found> {
    let of = |test: &dyn Fn(&str) -> bool| -> Vec<&str> {
        let all: BTreeSet<&str> = before.keys().chain(after.keys()).map(String::as_str).collect();
        all.into_iter().filter(|name| test(name)).collect()
    };
    let added = of(&|name| !before.contains_key(name));
    let removed = of(&|name| !after.contains_key(name));
    let changed = of(&|name| before.get(name).zip(after.get(name)).is_some_and(|(old, new)| old != new));
    let sorts = [("added", &added), ("removed", &removed), ("changed", &changed)];
    let total: usize = sorts.iter().map(|(_, names)| names.len()).sum();
    if total == 0 {
        return None;
    }
    let told = sorts.iter().filter(|(_, names)| !names.is_empty());
    let told: Vec<String> = told.map(|(what, names)| format!("{} {what}", shown(names))).collect();
    let message = format!("{} {}", if total == 1 { one } else { many }, told.join("; "));
    let listed = |sorts: &[(&str, &Vec<&str>)]| -> Option<Value> {
        let named = sorts.iter().filter(|(_, names)| !names.is_empty());
        let map: Map<String, Value> = named.map(|(what, names)| ((*what).to_owned(), json!(names))).collect();
        (!map.is_empty()).then_some(Value::Object(map))
    };
    let (old, new) = (listed(&sorts[1..2]), listed(&[sorts[0], sorts[2]]));
    Some(Found::new(Severity::Info, field, message).values(old, new))
}

fn shown(names: &[&str]) -> String {
    let some = names.iter().take(SHOWN).copied().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(SHOWN) {
        0 => some,
        rest => format!("{some} and {rest} more"),
    }
}
