//! Readiness row by row: kstatus' rules, kapp's waiters, and the causes found below an object. Each row is a small
//! object and its expected assessment.

mod causes;
mod kapp;
mod kstatus;
mod table;
mod trouble;

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::*;

/// A context long after the write, when no grace period applies.
fn settled() -> Context<'static> {
    Context { waited: Duration::from_secs(60), ..Context::default() }
}

/// An object of a kind with the given fields.
fn object(api_version: &str, kind: &str, rest: Value) -> Value {
    let mut object = json!({
        "apiVersion": api_version, "kind": kind,
        "metadata": {"name": "web", "namespace": "shop", "uid": "u", "generation": 2}
    });
    merge(&mut object, rest);
    object
}

fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from,
    }
}

fn condition(kind: &str, status: &str, reason: &str) -> Value {
    json!({"type": kind, "status": status, "reason": reason})
}

/// A pod with its owner.
fn pod(name: &str, owner: &str, status: Value) -> Arc<Value> {
    let mut value =
        object("v1", "Pod", json!({"metadata": {"name": name, "uid": name, "ownerReferences": [{"uid": owner}]}}));
    value["spec"] = json!({"containers": [{"name": "web", "image": "reg/web:1"}]});
    value["status"] = status;
    Arc::new(value)
}

/// Status of a pod whose container waits.
fn waiting(reason: &str, message: &str) -> Value {
    json!({"phase": "Pending", "containerStatuses": [{"name": "web", "state": {"waiting": {"reason": reason, "message": message}}}]})
}

/// A table row: fields added to the kind's minimum, the expected state, and part of the message.
type Row = (Value, State, &'static str);

fn check_rows(api_version: &str, kind: &str, base: &Value, rows: &[Row]) {
    for (number, (rest, state, message)) in rows.iter().enumerate() {
        let mut value = object(api_version, kind, base.clone());
        merge(&mut value, rest.clone());
        let status = assess(&value, &settled());
        assert_eq!(status.state, *state, "{kind} row {number}: {status:?}\n{value:#}");
        assert!(status.message.contains(message), "{kind} row {number}: {status:?} lacks {message:?}");
    }
}

#[test]
fn nothing_in_an_object_makes_it_panic() {
    let odd = [json!(null), json!([]), json!("x"), json!(-1), json!({"a": [null]}), json!(i64::MIN), json!(u64::MAX)];
    let kinds = [
        ("apps/v1", "Deployment"),
        ("apps/v1", "ReplicaSet"),
        ("apps/v1", "StatefulSet"),
        ("apps/v1", "DaemonSet"),
        ("v1", "Pod"),
        ("v1", "Service"),
        ("v1", "PersistentVolumeClaim"),
        ("batch/v1", "Job"),
        ("autoscaling/v2", "HorizontalPodAutoscaler"),
        ("gateway.networking.k8s.io/v1", "HTTPRoute"),
        ("kappctrl.k14s.io/v1alpha1", "App"),
    ];
    for (api_version, kind) in kinds {
        for value in &odd {
            for rest in [
                json!({"metadata": value}),
                json!({"spec": value, "status": value}),
                json!({"status": {"observedGeneration": 2, "conditions": [value], "containerStatuses": [value], "replicas": value}}),
                json!({"spec": {"replicas": value}, "status": {"observedGeneration": 2, "replicas": value}}),
            ] {
                let value = object(api_version, kind, rest);
                let events = [Arc::new(value.clone())];
                let related = Related {
                    pods: &events,
                    replica_sets: &events,
                    events: &events,
                    storage_classes: &events,
                    backends: &[],
                    frees_names: false,
                };
                let mut troubles = Troubles::default();
                troubles.observe(&value, &Context { related, ..settled() });
                assert!(!assess(&value, &Context { related, ..settled() }).message.is_empty());
                let _ = deletion_blockers(&value);
            }
        }
    }
}

#[test]
fn what_a_terminating_object_waits_for_is_named() {
    let finalizers = json!({"metadata": {"finalizers": ["ex.com/a", "ex.com/b"]}});
    assert_eq!(deletion_blockers(&finalizers), "finalizers ex.com/a, ex.com/b");
    assert_eq!(
        deletion_blockers(&json!({"metadata": {"finalizers": ["kubernetes.io/pvc-protection"]}})),
        "finalizer kubernetes.io/pvc-protection"
    );
    assert_eq!(deletion_blockers(&json!({})), "");
    let namespace = json!({"status": {"conditions": [
        {"type": "NamespaceDeletionContentFailure", "status": "False", "message": "all is well"},
        {"type": "NamespaceContentRemaining", "status": "True", "message": "some resources are remaining: pods. has 1 resource instances"},
        {"type": "NamespaceFinalizersRemaining", "status": "True", "message": "finalizers remain: ex.com/a in 1 instances"},
    ]}});
    assert_eq!(
        deletion_blockers(&namespace),
        "some resources are remaining: pods. has 1 resource instances; finalizers remain: ex.com/a in 1 instances"
    );
}
