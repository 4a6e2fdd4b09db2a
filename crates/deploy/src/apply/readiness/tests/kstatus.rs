//! kstatus as published (sigs.k8s.io/cli-utils, pkg/kstatus/status), flaws included: the table compares our rules with
//! it. It reads no clock here: every object was created long ago.

use super::super::conditions::{Condition, all, find, list};
use super::super::fields::{generation, observed_generation};
use super::*;

/// kstatus' result for an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kstatus {
    Current,
    InProgress,
    Failed,
    Terminating,
    /// It gives up with an error.
    Error,
}

impl Kstatus {
    /// Whether our state means the same.
    pub(super) fn is_same_as(self, ours: State) -> bool {
        match self {
            Self::Current => ours == State::Ready,
            Self::InProgress => matches!(ours, State::InProgress | State::Unblocked),
            Self::Failed => ours == State::Failed,
            Self::Terminating => ours == State::InProgress,
            Self::Error => false,
        }
    }
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn integer(object: &Value, pointer: &str, default: i64) -> i64 {
    object.pointer(pointer).and_then(Value::as_i64).unwrap_or(default)
}

fn has(object: &Value, kind: &str, status: &str) -> bool {
    find(object, kind).is_some_and(|condition| condition.is(status))
}

/// Whether any pair of wanted and found counts falls short.
fn any_less(pairs: &[(i64, i64)]) -> bool {
    pairs.iter().any(|(wanted, found)| wanted > found)
}

pub(super) fn kstatus(object: &Value) -> Kstatus {
    use Kstatus::{Current, Failed, InProgress, Terminating};
    if !text(object, "/metadata/deletionTimestamp").is_empty() {
        return Terminating;
    }
    let (generation, observed) = (generation(object), observed_generation(object));
    if generation.is_some() && observed.is_some() && generation != observed {
        return InProgress;
    }
    for condition in all(object) {
        match (condition.kind, condition.status) {
            ("Reconciling", "True") => return InProgress,
            ("Stalled", "True") => return Failed,
            _ => {}
        }
    }
    let reference = ObjectRef::of(object);
    match (reference.group.as_str(), reference.kind.as_str()) {
        ("", "Service")
            if text(object, "/spec/type") == "LoadBalancer" && text(object, "/spec/clusterIP").is_empty() =>
        {
            InProgress
        }
        ("", "ConfigMap" | "Secret" | "Service") | ("batch", "CronJob") | ("policy", "PodDisruptionBudget") => Current,
        ("", "PersistentVolumeClaim") if text(object, "/status/phase") == "Bound" => Current,
        ("", "PersistentVolumeClaim") => InProgress,
        ("apps" | "extensions", "Deployment") => deployment(object),
        ("apps" | "extensions", "ReplicaSet") => replica_set(object),
        ("apps", "StatefulSet") => stateful_set(object),
        ("apps" | "extensions", "DaemonSet") => daemon_set(object),
        ("", "Pod") => pod(object),
        ("batch", "Job") => job(object),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => definition(object),
        _ => match find(object, "Ready") {
            Some(condition) if !condition.is("True") => InProgress,
            _ => Current,
        },
    }
}

fn deployment(object: &Value) -> Kstatus {
    let deadline = object.pointer("/spec/progressDeadlineSeconds").and_then(Value::as_i64);
    let mut progressing = deadline.is_none_or(|deadline| deadline == i64::from(i32::MAX));
    if let Some(condition) = find(object, "Progressing") {
        if condition.reason == "ProgressDeadlineExceeded" {
            return Kstatus::Failed;
        }
        progressing |= condition.is("True") && condition.reason == "NewReplicaSetAvailable";
    }
    let wanted = integer(object, "/spec/replicas", 1);
    let status = |field: &str| integer(object, &format!("/status/{field}"), 0);
    let less = any_less(&[
        (wanted, status("replicas")),
        (wanted, status("updatedReplicas")),
        (status("replicas"), wanted),
        (status("updatedReplicas"), status("availableReplicas")),
        (wanted, status("readyReplicas")),
    ]);
    if less || !progressing || !has(object, "Available", "True") { Kstatus::InProgress } else { Kstatus::Current }
}

fn replica_set(object: &Value) -> Kstatus {
    let wanted = integer(object, "/spec/replicas", 1);
    let status = |field: &str| integer(object, &format!("/status/{field}"), 0);
    let less = any_less(&[
        (wanted, status("fullyLabeledReplicas")),
        (wanted, status("availableReplicas")),
        (wanted, status("readyReplicas")),
        (status("replicas"), wanted),
    ]);
    if has(object, "ReplicaFailure", "True") || less { Kstatus::InProgress } else { Kstatus::Current }
}

fn stateful_set(object: &Value) -> Kstatus {
    if text(object, "/spec/updateStrategy/type") == "OnDelete" {
        return Kstatus::Current;
    }
    let wanted = integer(object, "/spec/replicas", 1);
    let status = |field: &str| integer(object, &format!("/status/{field}"), 0);
    if any_less(&[(wanted, status("replicas")), (wanted, status("readyReplicas")), (status("replicas"), wanted)]) {
        return Kstatus::InProgress;
    }
    let partition = object.pointer("/spec/updateStrategy/rollingUpdate/partition").and_then(Value::as_i64);
    if let Some(partition) = partition.filter(|&partition| partition != 0) {
        let is_less = status("updatedReplicas") < wanted - partition;
        return if is_less { Kstatus::InProgress } else { Kstatus::Current };
    }
    let is_current = text(object, "/status/currentRevision") == text(object, "/status/updateRevision");
    if wanted > status("currentReplicas") || !is_current { Kstatus::InProgress } else { Kstatus::Current }
}

fn daemon_set(object: &Value) -> Kstatus {
    let Some(desired) = object.pointer("/status/desiredNumberScheduled").and_then(Value::as_i64) else {
        return Kstatus::InProgress;
    };
    let status = |field: &str| integer(object, &format!("/status/{field}"), 0);
    let less = any_less(&[
        (desired, status("currentNumberScheduled")),
        (desired, status("updatedNumberScheduled")),
        (desired, status("numberAvailable")),
        (desired, status("numberReady")),
    ]);
    let is_unknown = generation(object).is_none() || observed_generation(object).is_none();
    if is_unknown || less { Kstatus::InProgress } else { Kstatus::Current }
}

fn pod(object: &Value) -> Kstatus {
    let waits = |container: &Value| text(container, "/state/waiting/reason") == "CrashLoopBackOff";
    match text(object, "/status/phase") {
        "Succeeded" | "Failed" => Kstatus::Current,
        "Running" if has(object, "Ready", "True") => Kstatus::Current,
        "Running" if list(object, "/status/containerStatuses").iter().any(waits) => Kstatus::Failed,
        "Pending"
            if find(object, "PodScheduled")
                .is_some_and(|condition| condition.is("False") && condition.reason == "Unschedulable") =>
        {
            Kstatus::Failed
        }
        "Running" | "Pending" | "" => Kstatus::InProgress,
        _ => Kstatus::Error,
    }
}

fn job(object: &Value) -> Kstatus {
    for condition in all(object).filter(|condition| condition.is("True")) {
        match condition.kind {
            "Complete" => return Kstatus::Current,
            "Failed" => return Kstatus::Failed,
            "Suspended" if object.pointer("/spec/suspend") == Some(&Value::Bool(true)) => return Kstatus::Current,
            _ => {}
        }
    }
    if text(object, "/status/startTime").is_empty() { Kstatus::InProgress } else { Kstatus::Current }
}

fn definition(object: &Value) -> Kstatus {
    if has(object, "NamesAccepted", "False") {
        return Kstatus::Failed;
    }
    match find(object, "Established") {
        Some(Condition { status: "False", reason, .. }) if reason != "Installing" => Kstatus::Failed,
        Some(Condition { status: "True", .. }) => Kstatus::Current,
        _ => Kstatus::InProgress,
    }
}
