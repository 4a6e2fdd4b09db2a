//! A difference between two manifests of a resource, and messages about added and removed names.

use std::collections::{BTreeMap, BTreeSet};

use pushback_crd::definition;
use serde_json::{Map, Value, json};

use super::super::difference::{ChangeType, Severity};

/// Maximum number of names of each kind in a message.
const SHOWN: usize = 5;

/// The consequence of changing an immutable field.
pub(super) const REFUSED: &str =
    "which cannot be: the API server refuses the update, it must be deleted and created again";

/// A difference between two manifests.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ManifestDifference {
    pub(super) kind: ChangeType,
    pub(super) severity: Severity,
    /// Path of the field, `spec.template.spec.volumes`.
    pub(super) field: String,
    pub(super) message: String,
    pub(super) old: Option<Value>,
    pub(super) new: Option<Value>,
}

impl ManifestDifference {
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

/// Added, removed and changed names. Values may be secret, so they are not shown.
pub(super) fn names(
    field: &str,
    one: &str,
    many: &str,
    before: &BTreeMap<String, Value>,
    after: &BTreeMap<String, Value>,
) -> Option<ManifestDifference> {
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
    let told: Vec<String> = told.map(|(what, names)| format!("{} {what}", definition::listed(names, SHOWN))).collect();
    let message = format!("{} {}", if total == 1 { one } else { many }, told.join("; "));
    let listed = |sorts: &[(&str, &Vec<&str>)]| -> Option<Value> {
        let named = sorts.iter().filter(|(_, names)| !names.is_empty());
        let map: Map<String, Value> = named.map(|(what, names)| ((*what).to_owned(), json!(names))).collect();
        (!map.is_empty()).then_some(Value::Object(map))
    };
    let (old, new) = (listed(&sorts[1..2]), listed(&[sorts[0], sorts[2]]));
    Some(ManifestDifference::new(Severity::Info, field, message).values(old, new))
}

/// A value as shown in messages.
pub(super) fn shown(value: &Value) -> String {
    const LENGTH: usize = 80;
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    match text.char_indices().nth(LENGTH) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
