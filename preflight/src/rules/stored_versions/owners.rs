//! Field owners at versions that are removed: the API server forgets them at the next write, and answers 500 to their
//! next server-side apply.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{NAME, OWNERS, Subject};
use crate::facts::{Facts, Folded, Need};
use crate::finding::{Finding, LiveObjects, Severity, Verdict};
use crate::object::ObjectExt;
use crate::rules::stored_remedy;

/// Maximum number of managers, and of objects, kept by name.
const SHOWN: usize = 5;

/// Counts for each version of the group the objects with an entry at it, with some of their managers and names.
pub(super) fn fold(group: &str, state: &mut Value, page: &[Value]) {
    if !state.is_object() {
        *state = Value::Object(Map::new());
    }
    for object in page {
        let entries = object.pointer("/metadata/managedFields").and_then(Value::as_array).into_iter().flatten();
        let mut managers: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for entry in entries {
            let text = |key: &str| entry.get(key).and_then(Value::as_str).unwrap_or_default();
            if let Some((_, version)) = text("apiVersion").split_once('/').filter(|(of, _)| *of == group) {
                managers.entry(version).or_default().push(text("manager"));
            }
        }
        for (version, managers) in managers {
            let counts = &mut state[version];
            if !counts.is_object() {
                *counts = json!({"objects": 0, "names": [], "managers": []});
            }
            counts["objects"] = json!(counts["objects"].as_u64().unwrap_or_default() + 1);
            add(&mut counts["names"], &object.full_name());
            managers.into_iter().for_each(|manager| add(&mut counts["managers"], manager));
        }
    }
}

fn add(list: &mut Value, text: &str) {
    if let Some(list) = list.as_array_mut().filter(|list| list.len() < SHOWN && !list.iter().any(|known| known == text))
    {
        list.push(text.into());
    }
}

/// A finding for each version that is removed and that nothing is stored in, if field owners are recorded at it.
/// Migrating the objects moves them, so there is nothing to add where a stored version is removed.
pub(super) fn check(subject: &Subject<'_>, facts: &Facts) -> Vec<Finding> {
    let gone = subject.gone();
    let need = Need::objects_of(&subject.live).filter(|_| !gone.is_empty());
    let Some(folded) = need.as_ref().and_then(|need| facts.folded(NAME, need)) else { return Vec::new() };
    let mut findings = Vec::new();
    for version in gone {
        let (message, objects) = match folded {
            Folded::State { state, examined, .. } => {
                let counts = &state[version];
                let Some(affected) = counts["objects"].as_u64() else { continue };
                let texts = |key: &str| -> Vec<String> {
                    counts[key].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
                };
                let owners = texts("managers").join(", ");
                let message = format!(
                    "version \"{version}\" is removed, and fields of {affected} objects are owned at it by {owners}: these \
                     owners are forgotten, or their next apply fails"
                );
                (message, Some(LiveObjects { affected, examined, names: texts("names") }))
            }
            Folded::Unable(reason) => {
                let message = format!(
                    "unable to determine whether fields are owned at version \"{version}\", which is removed: {reason}"
                );
                (message, None)
            }
        };
        let mut finding = subject
            .finding(OWNERS, Verdict::Change, version, message)
            .values(Some(version.into()), None)
            .bound_to(&json!(version))
            .remedy(stored_remedy::of_owners(&subject.live));
        finding.severity = Severity::Warning;
        finding.live_objects = objects;
        findings.push(finding);
    }
    findings
}
