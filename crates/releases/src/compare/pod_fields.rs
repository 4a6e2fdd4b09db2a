//! Changes in what pods may do, need and are: rights, limits, probes, scheduling, labels. Each has the weight that it has
//! for whoever rolls out the release.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use pushback_crd::schema::cel::{are_equal_quantities, compare_quantities};
use pushback_objects::object::ObjectExt;
use serde_json::{Map, Value, json};

use super::super::difference::Severity;
use super::manifest_difference::{ManifestDifference, names, shown};
use super::release_fields::{changed, differing};

/// Fields of a pod spec that are compared elsewhere. `serviceAccount` is a copy of `serviceAccountName`.
const SPEC_ELSEWHERE: [&str; 6] =
    ["containers", "initContainers", "volumes", "serviceAccountName", "serviceAccount", "ephemeralContainers"];

/// Fields of a container that are compared elsewhere, or that the API server fills in by the tag of the image.
const CONTAINER_ELSEWHERE: [&str; 8] =
    ["name", "image", "args", "command", "env", "envFrom", "ports", "imagePullPolicy"];

fn spec_defaults() -> [(&'static str, Value); 6] {
    [
        ("restartPolicy", json!("Always")),
        ("dnsPolicy", json!("ClusterFirst")),
        ("schedulerName", json!("default-scheduler")),
        ("terminationGracePeriodSeconds", json!(30)),
        ("enableServiceLinks", json!(true)),
        ("automountServiceAccountToken", json!(true)),
    ]
}

fn container_defaults() -> [(&'static str, Value); 2] {
    [("terminationMessagePath", json!("/dev/termination-log")), ("terminationMessagePolicy", json!("File"))]
}

/// Differences of the pod template at `path`, the path of its spec.
pub(super) fn template(path: &str, old: &Value, new: &Value, found: &mut Vec<ManifestDifference>) {
    let base = path.trim_end_matches(".spec");
    for (field, one, many) in [("labels", "label", "labels"), ("annotations", "annotation", "annotations")] {
        let texts = |template: &Value| -> BTreeMap<String, Value> {
            let map = template.pointer(&format!("/metadata/{field}")).and_then(Value::as_object);
            map.into_iter().flatten().map(|(key, value)| (key.clone(), value.clone())).collect()
        };
        let path = format!("{base}.metadata.{field}");
        if let Some(mut told) = names(&path, one, many, &texts(old), &texts(new)) {
            told.message += ": the Pods are replaced";
            found.push(told);
        }
    }
}

/// Differences of two pod specs.
pub(super) fn spec(path: &str, old: &Value, new: &Value, is_live: bool, found: &mut Vec<ManifestDifference>) {
    let empty = Map::new();
    let (was, is) = (old.as_object().unwrap_or(&empty), new.as_object().unwrap_or(&empty));
    for field in differing(was, is, is_live, &spec_defaults()) {
        if SPEC_ELSEWHERE.contains(&field) {
            continue;
        }
        let (before, after) = (was.get(field), is.get(field));
        let mut difference = changed(format!("{path}.{field}"), before, after);
        let effect = match field {
            "hostNetwork" | "hostPID" | "hostIPC" if after == Some(&Value::Bool(true)) => {
                "the namespace's Pod Security may refuse the Pods"
            }
            "securityContext" => "what the containers may do changes",
            "nodeSelector" | "affinity" | "topologySpreadConstraints" | "schedulerName" | "runtimeClassName" => {
                "there may be no node for the Pods"
            }
            "tolerations" if loses(before, after) => "there may be no node for the Pods",
            "priorityClassName" | "priority" => "other Pods are evicted first, or these are",
            "terminationGracePeriodSeconds" if is_lower(before.or(Some(&json!(30))), after) => {
                "containers that need longer to end are killed"
            }
            "imagePullSecrets" if loses(before, after) => "images may no longer be pulled",
            _ => "",
        };
        if !effect.is_empty() {
            difference.severity = Severity::Warning;
            difference.message = format!("{}: {effect}", difference.message);
        }
        found.push(difference);
    }
}

/// Differences of two containers of the same name.
pub(super) fn container(path: &str, old: &Value, new: &Value, is_live: bool, found: &mut Vec<ManifestDifference>) {
    let empty = Map::new();
    let (was, is) = (old.as_object().unwrap_or(&empty), new.as_object().unwrap_or(&empty));
    for field in differing(was, is, is_live, &container_defaults()) {
        let (before, after) = (was.get(field), is.get(field));
        match field {
            _ if CONTAINER_ELSEWHERE.contains(&field) => {}
            "resources" => resources(path, old, new, found),
            "securityContext" => rights(path, old, new, found),
            "livenessProbe" | "readinessProbe" | "startupProbe" => probe(path, field, before, after, is_live, found),
            _ => found.push(changed(format!("{path}.{field}"), before, after)),
        }
    }
}

/// Whether a quantity is less than another one; false if one of them is none.
fn is_less(one: &str, other: &str) -> bool {
    compare_quantities(one, other) == Some(Ordering::Less)
}

/// Limits and requests, each with both values.
fn resources(path: &str, old: &Value, new: &Value, found: &mut Vec<ManifestDifference>) {
    for group in ["limits", "requests"] {
        let quantities = |container: &Value| -> BTreeMap<String, String> {
            let map = container.pointer(&format!("/resources/{group}")).and_then(Value::as_object);
            map.into_iter().flatten().map(|(name, value)| (name.clone(), shown(value))).collect()
        };
        let (was, is) = (quantities(old), quantities(new));
        let all: BTreeSet<&String> = was.keys().chain(is.keys()).collect();
        for name in all {
            let (before, after) = (was.get(name), is.get(name));
            if before == after || before.zip(after).is_some_and(|(old, new)| are_equal_quantities(old, new)) {
                continue;
            }
            let effect = match (group, before, after) {
                ("limits", Some(old), Some(new)) if is_less(new, old) && name == "memory" => {
                    ": containers that need more are killed"
                }
                ("requests", old, Some(new)) if old.is_none_or(|old| is_less(old, new)) => {
                    ": there may be no node with that much left"
                }
                _ => "",
            };
            let value = |text: Option<&String>| text.map(|text| json!(text));
            let (before, after) = (value(before), value(after));
            let field = format!("{path}.resources.{group}.{name}");
            let mut difference = changed(field, before.as_ref(), after.as_ref());
            if !effect.is_empty() {
                difference.severity = Severity::Warning;
                difference.message += effect;
            }
            found.push(difference.values(before, after));
        }
    }
}

/// What a container may do: more of it may be refused, and is worth a look.
fn rights(path: &str, old: &Value, new: &Value, found: &mut Vec<ManifestDifference>) {
    let empty = Map::new();
    let context = |container: &Value| container.get("securityContext").and_then(Value::as_object).cloned();
    let (was, is) = (context(old).unwrap_or_else(|| empty.clone()), context(new).unwrap_or(empty));
    for field in differing(&was, &is, false, &[]) {
        let (before, after) = (was.get(field), is.get(field));
        let mut difference = changed(format!("{path}.securityContext.{field}"), before, after);
        let is_on = after == Some(&Value::Bool(true));
        let more = match field {
            "privileged" if is_on => {
                "the container may do everything on its node, and Pod Security may refuse the Pods"
            }
            "allowPrivilegeEscalation" if is_on => "processes may gain rights, and Pod Security may refuse the Pods",
            "runAsNonRoot" | "readOnlyRootFilesystem" if !is_on => "the container may do more",
            "runAsNonRoot" | "readOnlyRootFilesystem" => "an image that does not expect it fails to run",
            "runAsUser" | "runAsGroup" => "files that it owns by another number may be out of reach",
            "capabilities" | "seccompProfile" | "appArmorProfile" | "seLinuxOptions" | "procMount" => {
                "what the container may do changes"
            }
            _ => "",
        };
        if !more.is_empty() {
            difference.severity = Severity::Warning;
            difference.message = format!("{}: {more}", difference.message);
        }
        found.push(difference);
    }
}

fn probe(
    path: &str,
    field: &str,
    before: Option<&Value>,
    after: Option<&Value>,
    is_live: bool,
    found: &mut Vec<ManifestDifference>,
) {
    let defaults = [
        ("timeoutSeconds", json!(1)),
        ("periodSeconds", json!(10)),
        ("successThreshold", json!(1)),
        ("failureThreshold", json!(3)),
        ("initialDelaySeconds", json!(0)),
    ];
    let place = format!("{path}.{field}");
    let (Some(before), Some(after)) = (before, after) else {
        let mut difference = changed(place, before.map(|_| &Value::Null), after.map(|_| &Value::Null));
        let (what, effect) = match (after.is_some(), field) {
            (false, "readinessProbe") => ("removed", ": Pods get requests as soon as they run"),
            (false, _) => ("removed", ""),
            (true, "livenessProbe") => ("added", ": containers that do not answer it are restarted"),
            (true, _) => ("added", ""),
        };
        difference.message = format!("{what}{effect}");
        difference.severity = if effect.is_empty() { Severity::Info } else { Severity::Warning };
        return found.push(difference);
    };
    let empty = Map::new();
    let (was, is) = (before.as_object().unwrap_or(&empty), after.as_object().unwrap_or(&empty));
    for key in differing(was, is, is_live, &defaults) {
        let scheme = |value: Option<&Value>| value.map(|action| without_scheme(action.clone()));
        if scheme(was.get(key)) != scheme(is.get(key)) {
            found.push(changed(format!("{place}.{key}"), was.get(key), is.get(key)));
        }
    }
}

/// `scheme: HTTP` is the API server's own.
fn without_scheme(mut action: Value) -> Value {
    if action.text("/scheme") == "HTTP"
        && let Some(fields) = action.as_object_mut()
    {
        fields.shift_remove("scheme");
    }
    action
}

/// Whether a list has an item that the other one lacks.
fn loses(before: Option<&Value>, after: Option<&Value>) -> bool {
    let items = |list: Option<&Value>| list.and_then(Value::as_array).cloned().unwrap_or_default();
    let left = items(after);
    items(before).iter().any(|item| !left.contains(item))
}

fn is_lower(before: Option<&Value>, after: Option<&Value>) -> bool {
    let number = |value: Option<&Value>| value.and_then(Value::as_i64);
    number(before).zip(number(after)).is_some_and(|(before, after)| after < before)
}
