//! Evidence that an operator is at work on an object. Without any, an injection that nobody undoes says nothing about
//! the operator.

use pushback_cluster::managed_fields::{Element, ManagerEntry, managers};
use pushback_cluster::{Cluster, FIELD_MANAGER};
use pushback_objects::object::is_custom_group;
use pushback_preflight::experiment::{Check, Experiment};
use serde_json::Value;

use super::change::Target;

/// Kinds of workloads that checks name, and where their status counts ready Pods.
const WORKLOADS: [(&str, &str); 3] = [
    ("Deployment", "/status/readyReplicas"),
    ("StatefulSet", "/status/readyReplicas"),
    ("DaemonSet", "/status/numberReady"),
];
/// Prefixes of managers that belong to the cluster or to people.
const NOT_OPERATORS: [&str; 2] = ["kube-", "kubectl"];

/// A workload with ready Pods among those that the steady state names.
pub async fn ready_workload(cluster: &dyn Cluster, experiment: &Experiment, checks: &[Check]) -> Option<String> {
    let kinds = cluster.kinds().await.ok()?;
    for check in checks.iter().filter(|check| check.api_version == "apps/v1") {
        let Some((_, place)) = WORKLOADS.iter().find(|(kind, _)| *kind == check.object_kind) else { continue };
        let namespace =
            if check.namespace.is_empty() { experiment.injection_namespace() } else { check.namespace.as_str() };
        let target = Target {
            api_version: check.api_version.clone(),
            kind: check.object_kind.clone(),
            namespace: namespace.to_owned(),
            name: check.name.clone(),
            ..Target::default()
        };
        let Ok(address) = target.address(&kinds) else { continue };
        let Ok(Some(live)) = cluster.get(&address).await else { continue };
        if live.pointer(place).and_then(Value::as_u64).is_some_and(|ready| ready > 0) {
            return Some(format!("{target} has ready Pods"));
        }
    }
    None
}

/// What an operator has done to an object since an injection.
#[must_use]
pub fn trace(injected: &Value, now: &Value) -> Option<String> {
    let target = Target::of(now);
    let number = |value: &Value, pointer: &str| value.pointer(pointer).and_then(Value::as_i64);
    let observed = |value: &Value| number(value, "/status/observedGeneration");
    if observed(now) > observed(injected) {
        return Some(format!("the status of {target} follows its generation"));
    }
    // Kubernetes' own controllers write the status of the other kinds.
    if is_custom_group(&target.reference().group) && now.get("status") != injected.get("status") {
        return Some(format!("the status of {target} has changed"));
    }
    let before = managers(injected).unwrap_or_default();
    let mut since = managers(now).unwrap_or_default().into_iter();
    let wrote = since.find(|entry| is_operator(entry) && !before.contains(entry))?;
    Some(format!("{} has written {target}", wrote.owner.manager))
}

/// Whether a finalizer belongs to a manager that also writes the object's status, as an operator does.
#[must_use]
pub fn holds_finalizer(live: &Value, finalizer: &str) -> bool {
    let entries = managers(live).unwrap_or_default();
    let path = [Element::field("metadata"), Element::field("finalizers"), Element::value(&Value::from(finalizer))];
    let owners = entries.iter().filter(|entry| is_operator(entry) && entry.fields.contains(&path));
    let status = [Element::field("status")];
    owners.into_iter().any(|owner| {
        let mut same = entries.iter().filter(|entry| entry.owner.manager == owner.owner.manager);
        same.any(|entry| entry.owner.subresource == "status" || entry.fields.below(&status).is_some())
    })
}

fn is_operator(entry: &ManagerEntry) -> bool {
    let manager = entry.owner.manager.as_str();
    manager != FIELD_MANAGER && !NOT_OPERATORS.iter().any(|prefix| manager.starts_with(prefix))
}

/// Whether a check is about an object.
#[must_use]
pub fn is_about(check: &Check, target: &Target, experiment: &Experiment) -> bool {
    let namespace =
        if check.namespace.is_empty() { experiment.injection_namespace() } else { check.namespace.as_str() };
    check.object_kind == target.kind && check.name == target.name && namespace == target.namespace
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(status: &Value, managers: &[(&str, &str, &str)]) -> Value {
        let entries: Vec<Value> = managers
            .iter()
            .map(|(manager, subresource, time)| {
                let fields = if *subresource == "status" {
                    json!({"f:status": {"f:phase": {}}})
                } else {
                    json!({"f:metadata": {"f:finalizers": {"v:\"example.com/clean\"": {}}}})
                };
                json!({"manager": manager, "operation": "Update", "apiVersion": "example.com/v1", "time": time,
                    "subresource": subresource, "fieldsType": "FieldsV1", "fieldsV1": fields})
            })
            .collect();
        json!({"apiVersion": "example.com/v1", "kind": "Backup", "status": status,
            "metadata": {"name": "a", "generation": 2, "managedFields": entries}})
    }

    #[test]
    fn an_operator_shows_by_the_status_or_by_what_it_writes() {
        let idle = object(&json!({"phase": "Ready"}), &[("pushback", "", "1")]);
        assert_eq!(trace(&idle, &idle), None);
        let moved = object(&json!({"phase": "Degraded"}), &[("pushback", "", "1")]);
        assert_eq!(trace(&idle, &moved).as_deref(), Some("the status of Backup a has changed"));
        let observed = object(&json!({"phase": "Ready", "observedGeneration": 2}), &[("pushback", "", "1")]);
        assert_eq!(trace(&idle, &observed).as_deref(), Some("the status of Backup a follows its generation"));
        let written = object(&json!({"phase": "Ready"}), &[("pushback", "", "1"), ("backup-operator", "", "2")]);
        assert_eq!(trace(&idle, &written).as_deref(), Some("backup-operator has written Backup a"));
        // What was written before the injection, by people, or by ourselves does not count.
        assert_eq!(trace(&written, &written), None);
        for other in ["kubectl-edit", "kube-controller-manager", "pushback"] {
            let written = object(&json!({"phase": "Ready"}), &[("pushback", "", "1"), (other, "", "2")]);
            assert_eq!(trace(&idle, &written), None, "{other}");
        }
    }

    #[test]
    fn a_finalizer_is_an_operators_if_its_manager_writes_the_status() {
        let nothing = json!({});
        let both = [("backup-operator", "", "1"), ("backup-operator", "status", "1")];
        assert!(holds_finalizer(&object(&nothing, &both), "example.com/clean"));
        assert!(!holds_finalizer(&object(&nothing, &both), "example.com/other"));
        assert!(!holds_finalizer(&object(&nothing, &both[..1]), "example.com/clean"));
        let others = [("somebody", "", "1"), ("backup-operator", "status", "1")];
        assert!(!holds_finalizer(&object(&nothing, &others), "example.com/clean"));
        let by_hand = [("kubectl-patch", "", "1"), ("kubectl-patch", "status", "1")];
        assert!(!holds_finalizer(&object(&nothing, &by_hand), "example.com/clean"));
    }
}
