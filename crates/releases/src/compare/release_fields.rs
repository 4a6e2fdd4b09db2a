//! Fields of manifests that a release manager asks about: scheduling, limits, probes, rights of containers, how pods are
//! replaced, priorities, budgets, ports. Other fields of `spec` are named without their values.
//!
//! What the API server fills in (k8s.io/api defaults) is no difference, so that a live object and a manifest compare equal.

use std::collections::BTreeSet;

use pushback_crd::definition::listed;
use pushback_crd::order::canonical;
use pushback_objects::object::{ObjectExt, split_api_version};
use serde_json::{Map, Value, json};

use super::super::difference::Severity;
use super::manifest_difference::{ManifestDifference, REFUSED, shown};

/// Maximum number of fields named in a message.
const SHOWN: usize = 5;

/// Fields of `spec` that are compared elsewhere, or say nothing about a release.
const ELSEWHERE: [&str; 10] = [
    "template",
    "jobTemplate",
    "selector",
    "replicas",
    "serviceName",
    "podManagementPolicy",
    "volumeClaimTemplates",
    "clusterIP",
    "clusterIPs",
    "caBundle",
];

/// Fields of admission policies in which the API server sets absent selectors to those that select all.
const DEFAULTED: [&str; 2] = ["matchConstraints", "matchResources"];

/// Fields that the API server fills in, with its value.
fn defaults(kind: &str) -> Vec<(&'static str, Value)> {
    let rolling = |parameters: Value| json!({"type": "RollingUpdate", "rollingUpdate": parameters});
    match kind {
        "Deployment" => vec![
            ("strategy", rolling(json!({"maxSurge": "25%", "maxUnavailable": "25%"}))),
            ("revisionHistoryLimit", json!(10)),
            ("progressDeadlineSeconds", json!(600)),
        ],
        "StatefulSet" => vec![
            ("updateStrategy", rolling(json!({"partition": 0}))),
            ("revisionHistoryLimit", json!(10)),
            ("persistentVolumeClaimRetentionPolicy", json!({"whenDeleted": "Retain", "whenScaled": "Retain"})),
        ],
        "DaemonSet" => vec![
            ("updateStrategy", rolling(json!({"maxSurge": 0, "maxUnavailable": 1}))),
            ("revisionHistoryLimit", json!(10)),
        ],
        _ => Vec::new(),
    }
}

/// Differences outside the pod template. `called`: whether a webhook calls this Service.
/// `covered`: fields of `spec` that are reported by value.
pub(super) fn differences(old: &Value, new: &Value, called: bool, covered: &[&str]) -> Vec<ManifestDifference> {
    let kind = new.text("/kind");
    match (split_api_version(new.text("/apiVersion")).0, kind) {
        ("scheduling.k8s.io", "PriorityClass") => priority(old, new).into_iter().collect(),
        ("policy", "PodDisruptionBudget") => budget(old, new),
        ("", "Service") => service(old, new, called),
        ("" | "rbac.authorization.k8s.io" | "apiextensions.k8s.io" | "admissionregistration.k8s.io", _) => Vec::new(),
        ("apps", "Deployment" | "StatefulSet" | "DaemonSet") => workload(kind, old, new),
        _ => other(old, new, covered).into_iter().collect(),
    }
}

/// Whether an object was read from a cluster, so that it may have fields that nobody has written.
pub(super) fn is_live(object: &Value) -> bool {
    !object.uid().is_empty()
}

/// Names of the fields that differ. A field that only a live object has may be a default.
pub(super) fn differing<'a>(
    old: &'a Map<String, Value>,
    new: &'a Map<String, Value>,
    is_live: bool,
    defaults: &[(&str, Value)],
) -> BTreeSet<&'a str> {
    let default_of = |key: &str| defaults.iter().find(|(name, _)| *name == key).map(|(_, value)| value);
    let differs = |key: &&String| {
        let (was, is) = (old.get(*key), new.get(*key));
        match (was.or(default_of(key)), is.or(default_of(key))) {
            (Some(was), Some(is)) => !is_equal(was, is, !DEFAULTED.contains(&key.as_str())),
            (Some(was), None) => !is_live && (!is_nothing(was) || selects_all(key, was)),
            (None, Some(is)) => !is_nothing(is) || (!is_live && selects_all(key, is)),
            (None, None) => false,
        }
    };
    old.keys().chain(new.keys()).filter(differs).map(String::as_str).collect()
}

/// Whether a field is a label selector without a condition.
fn selects_all(key: &str, value: &Value) -> bool {
    (key == "selector" || key.ends_with("Selector")) && value.is_object() && is_nothing(value)
}

/// Whether a value is what the API server takes an absent field for.
fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.values().all(is_nothing),
        Value::Number(_) => false,
        Value::String(text) => text.is_empty(),
    }
}

/// Whether two values mean the same: maps without a field that says nothing. An empty selector selects all, and an
/// absent one does not, unless the server sets it by default (`selectors` is false then).
fn is_equal(one: &Value, other: &Value, selectors: bool) -> bool {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            let keys: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
            keys.into_iter().all(|key| match (one.get(key), other.get(key)) {
                (Some(one), Some(other)) => is_equal(one, other, selectors && !DEFAULTED.contains(&key.as_str())),
                (Some(value), None) | (None, Some(value)) => {
                    is_nothing(value) && !(selectors && selects_all(key, value))
                }
                (None, None) => true,
            })
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| is_equal(one, other, selectors))
        }
        _ => canonical(one) == canonical(other),
    }
}

fn fields(object: &Value) -> Map<String, Value> {
    object.get("spec").and_then(Value::as_object).cloned().unwrap_or_default()
}

fn workload(kind: &str, old: &Value, new: &Value) -> Vec<ManifestDifference> {
    let (was, is) = (fields(old), fields(new));
    let mut found = Vec::new();
    for field in differing(&was, &is, is_live(old), &defaults(kind)) {
        if ELSEWHERE.contains(&field) {
            continue;
        }
        let path = format!("spec.{field}");
        let strategy = |object: &Value| match object.text(&format!("/spec/{field}/type")) {
            "" => "RollingUpdate".to_owned(),
            text => text.to_owned(),
        };
        let (before, after) = (strategy(old), strategy(new));
        found.push(match field {
            "strategy" | "updateStrategy" if before != after => {
                let effect = match after.as_str() {
                    "Recreate" => ": all old Pods end before the first new one starts",
                    "OnDelete" => ": Pods are replaced only when somebody deletes them",
                    _ => "",
                };
                let severity = if effect.is_empty() { Severity::Info } else { Severity::Warning };
                ManifestDifference::new(
                    severity,
                    format!("{path}.type"),
                    format!("changed from {before} to {after}{effect}"),
                )
                .values(Some(json!(before)), Some(json!(after)))
            }
            "paused" if is.get(field) == Some(&Value::Bool(true)) => {
                ManifestDifference::new(Severity::Warning, path, "paused: new Pods are not rolled out")
            }
            "strategy" | "updateStrategy" => {
                ManifestDifference::new(Severity::Info, path, "how many Pods are replaced at a time changes")
            }
            _ => changed(path, was.get(field), is.get(field)),
        });
    }
    found
}

/// A field with both values, if they are short.
pub(super) fn changed(path: String, old: Option<&Value>, new: Option<&Value>) -> ManifestDifference {
    let message = match (old, new) {
        (Some(old), Some(new)) if is_short(old) && is_short(new) => {
            format!("changed from {} to {}", shown(old), shown(new))
        }
        (None, Some(new)) if is_short(new) => format!("set to {}", shown(new)),
        (Some(old), None) if is_short(old) => format!("removed, was {}", shown(old)),
        (None, _) => "added".to_owned(),
        (_, None) => "removed".to_owned(),
        _ => "changed".to_owned(),
    };
    ManifestDifference::new(Severity::Info, path, message)
}

fn is_short(value: &Value) -> bool {
    matches!(value, Value::Bool(_) | Value::Number(_)) || value.as_str().is_some_and(|text| text.len() <= 60)
}

fn priority(old: &Value, new: &Value) -> Option<ManifestDifference> {
    let value = |class: &Value| class.get("value").and_then(Value::as_i64).unwrap_or_default();
    let (was, is) = (value(old), value(new));
    let message = format!("changed from {was} to {is}, {REFUSED}");
    (was != is).then(|| {
        ManifestDifference::new(Severity::Breaking, "value", message).values(Some(json!(was)), Some(json!(is)))
    })
}

fn budget(old: &Value, new: &Value) -> Vec<ManifestDifference> {
    let allows_nothing = |budget: &Value| {
        let is = |field: &str, texts: &[&str]| {
            budget["spec"].get(field).is_some_and(|value| texts.contains(&shown(value).as_str()))
        };
        is("maxUnavailable", &["0", "0%"]) || is("minAvailable", &["100%"])
    };
    let (was, is) = (fields(old), fields(new));
    let mut found = Vec::new();
    for field in differing(&was, &is, is_live(old), &[]) {
        let path = format!("spec.{field}");
        let mut difference = changed(path, was.get(field), is.get(field));
        difference.severity = Severity::Warning;
        if field == "selector" {
            difference.message = "selector changed: it protects other Pods".to_owned();
        } else if allows_nothing(new) && !allows_nothing(old) {
            difference.message += ": no Pod may be evicted, and draining a node waits for ever";
        }
        found.push(difference.values(was.get(field).cloned(), is.get(field).cloned()));
    }
    found
}

/// Ports by number. One that goes while a webhook calls the Service makes that webhook fail.
fn service(old: &Value, new: &Value, called: bool) -> Vec<ManifestDifference> {
    let ports = |service: &Value| -> BTreeSet<String> {
        let listed = service.pointer("/spec/ports").and_then(Value::as_array).into_iter().flatten();
        let text = |port: &Value| {
            let protocol = Some(port.text("/protocol")).filter(|text| !text.is_empty()).unwrap_or("TCP").to_owned();
            format!("{}/{protocol}", port.get("port").map(shown).unwrap_or_default())
        };
        listed.map(text).collect()
    };
    let (was, is) = (ports(old), ports(new));
    let listing = |ports: Vec<&String>| listed(&ports, SHOWN);
    let mut found = Vec::new();
    let gone: Vec<&String> = was.difference(&is).collect();
    if !gone.is_empty() {
        let (severity, effect) = match called {
            true => (Severity::Breaking, ": a webhook calls this Service"),
            false => (Severity::Warning, ": clients that use it can no longer connect"),
        };
        let message = format!("port {} removed{effect}", listing(gone.clone()));
        found.push(ManifestDifference::new(severity, "spec.ports", message).values(Some(json!(gone)), None));
    }
    let fresh: Vec<&String> = is.difference(&was).collect();
    if !fresh.is_empty() {
        let message = format!("port {} added", listing(fresh.clone()));
        found.push(ManifestDifference::new(Severity::Info, "spec.ports", message).values(None, Some(json!(fresh))));
    }
    let kind = |service: &Value| match service.text("/spec/type") {
        "" => "ClusterIP".to_owned(),
        text => text.to_owned(),
    };
    let (was, is) = (kind(old), kind(new));
    if was != is {
        let message = format!("changed from {was} to {is}");
        found.push(
            ManifestDifference::new(Severity::Warning, "spec.type", message).values(Some(json!(was)), Some(json!(is))),
        );
    }
    found
}

/// The fields of `spec` that differ, without values.
fn other(old: &Value, new: &Value, covered: &[&str]) -> Option<ManifestDifference> {
    let (was, is) = (fields(old), fields(new));
    let differing = differing(&was, &is, is_live(old), &[]);
    let is_untold = |field: &&str| !ELSEWHERE.contains(field) && !covered.contains(field);
    let names: Vec<&str> = differing.into_iter().filter(is_untold).collect();
    let message = || format!("changed: {}", listed(&names, SHOWN));
    (!names.is_empty()).then(|| ManifestDifference::new(Severity::Info, "spec", message()))
}
