//! Failing pods below an object: a terminal failure fails it soon, a recoverable one only after a long time without
//! progress. Failing at once is as unhelpful as waiting to the end: a database may still be starting, an image still
//! being pulled.

use std::time::Duration;

use pushback_objects::{ObjectExt, ObjectRef};
use serde_json::Value;

use super::conditions::{find, is_true, list};
use super::context::{Context, Related};
use super::fields::number;
use super::own_state::own_state;
use super::pods::{Container, owned_by, terminal_pod_failure};
use super::reasons::{events_of, time_of};
use super::status::{State, Status, seconds};
use super::troubles::{GRACE, STABLE, Troubles};
use super::workloads::newest_replica_set;

impl Troubles {
    /// Records the state of an object's pods.
    pub fn observe(&mut self, object: &Value, context: &Context<'_>) {
        if !is_weighed(object, context) {
            return;
        }
        let now = context.waited;
        let revision = revision(object, &context.related);
        if revision != self.revision {
            *self = Self { revision: revision.to_owned(), ..Self::default() };
        }
        let pods = current_pods(object, &context.related);
        let well = pods.iter().filter(|pod| is_well(pod)).count();
        let is_job = object.text("/kind") == "Job";
        let is_terminal = pods.iter().any(|pod| terminal_pod_failure(pod).is_some());
        let is_transient = is_refused(object, &context.related) || pods.iter().any(|pod| is_troubled(pod, is_job));
        self.terminal = is_terminal.then(|| self.terminal.unwrap_or(now));
        self.transient = match self.transient {
            Some(since) if well <= self.best => is_transient.then_some(since),
            _ => is_transient.then_some(now),
        };
        self.best = self.best.max(well);
        self.ended_badly |= pods.iter().flat_map(|pod| Container::all(pod)).any(|container| has_crashed(&container));
        if self.ended_badly {
            let is_ready = own_state(object, context).state == State::Ready;
            self.ready = is_ready.then(|| self.ready.unwrap_or(now));
        }
    }
}

/// Adjusts a status by the state of the pods below, and by how long they have been in it.
pub(super) fn weigh(status: Status, object: &Value, context: &Context<'_>) -> Status {
    if !is_weighed(object, context) {
        return status;
    }
    let mut since_the_write = Troubles::default();
    let troubles = context.troubles.unwrap_or_else(|| {
        since_the_write.observe(object, &Context { waited: Duration::ZERO, ..*context });
        &since_the_write
    });
    let held = |since: Option<Duration>| since.map(|since| context.waited.saturating_sub(since));
    match status.state {
        State::Failed | State::Unblocked => status,
        State::Ready => match held(troubles.ready) {
            Some(ready) if ready < STABLE => {
                Status::in_progress(format!("{}, for less than {} after a crash", status.message, seconds(STABLE)))
            }
            _ => status,
        },
        State::InProgress => {
            if let Some(pod) = blocking_pod(object, &context.related) {
                let (namespace, name) = (pod.namespace(), pod.name());
                let message = format!(
                    "{}; Pod {name} of an older revision is not ready and keeps the update from starting",
                    status.message
                );
                if !is_stuck(pod) {
                    return Status::in_progress(message);
                }
                let message = format!("{message}: kubectl delete pod -n {namespace} {name}");
                return match context.waited >= GRACE {
                    true => Status::failed(message),
                    false => Status::in_progress(message),
                };
            }
            if held(troubles.terminal).is_some_and(|held| held >= GRACE) {
                let pods = current_pods(object, &context.related);
                if let Some(failure) = pods.iter().filter_map(|pod| terminal_pod_failure(pod)).min() {
                    // A pod's own failure needs no pod name in front.
                    return Status::failed(failure);
                }
            }
            let patience = context.failure_timeout;
            if !patience.is_zero() && held(troubles.transient).is_some_and(|held| held >= patience) {
                return Status::failed(format!(
                    "{}; Pods have been failing for {} with no progress (--wait-failure-timeout)",
                    status.message,
                    seconds(patience)
                ));
            }
            status
        }
    }
}

/// Whether an object's pods affect its readiness: kinds that run pods, unless a wait rule decides.
fn is_weighed(object: &Value, context: &Context<'_>) -> bool {
    let reference = ObjectRef::of(object);
    let runs_pods = matches!(
        (reference.group.as_str(), reference.kind.as_str()),
        ("apps" | "extensions", "Deployment" | "ReplicaSet" | "StatefulSet" | "DaemonSet")
            | ("batch", "Job")
            | ("", "Pod")
    );
    runs_pods && context.wait_rule.is_none() && !object.is_terminating()
}

/// What distinguishes pods of the current revision from older ones; empty if there is only one revision.
fn revision<'a>(object: &'a Value, related: &Related<'a>) -> &'a str {
    match object.text("/kind") {
        "Deployment" => newest_replica_set(object, related.replica_sets).map(ObjectExt::uid).unwrap_or_default(),
        "StatefulSet" => object.text("/status/updateRevision"),
        "DaemonSet" => object.annotation("deprecated.daemonset.template.generation").unwrap_or_default(),
        _ => "",
    }
}

/// Pods of the current revision that are not terminating.
pub(super) fn current_pods<'a>(object: &'a Value, related: &Related<'a>) -> Vec<&'a Value> {
    let kind = object.text("/kind");
    if kind == "Pod" {
        return vec![object];
    }
    let owner = match kind {
        "Deployment" => match newest_replica_set(object, related.replica_sets) {
            Some(newest) => newest,
            None => return Vec::new(),
        },
        _ => object,
    };
    let is_current = |pod: &&Value| match kind {
        "StatefulSet" => {
            let revision = object.text("/status/updateRevision");
            pod.label("controller-revision-hash").is_none_or(|hash| hash == revision)
        }
        "DaemonSet" => {
            let template = object.annotation("deprecated.daemonset.template.generation");
            pod.label("pod-template-generation").is_none_or(|label| Some(label) == template)
        }
        _ => true,
    };
    let owned = related.pods.iter().map(AsRef::as_ref).filter(|pod| owned_by(pod, owner) && !pod.is_terminating());
    owned.filter(is_current).collect()
}

/// Returns the Pod for which the controller of a StatefulSet waits before it replaces any: one of an older revision that is not
/// ready. The controller does not replace that one itself.
fn blocking_pod<'a>(object: &Value, related: &Related<'a>) -> Option<&'a Value> {
    let is_ordered = object.text("/kind") == "StatefulSet"
        && object.text("/spec/podManagementPolicy") != "Parallel"
        && object.text("/spec/updateStrategy/type") != "OnDelete";
    let revision = object.text("/status/updateRevision");
    if !is_ordered || revision.is_empty() {
        return None;
    }
    // Below the partition a Pod is created anew with the older revision.
    let partition = number(object, "/spec/updateStrategy/rollingUpdate/partition").unwrap_or_default();
    let ordinal = |pod: &Value| pod.name().rsplit_once('-').and_then(|(_, ordinal)| ordinal.parse::<i64>().ok());
    let is_old = |pod: &&Value| {
        let is_of_older_revision = pod.label("controller-revision-hash").is_some_and(|hash| hash != revision);
        is_of_older_revision && ordinal(pod).is_none_or(|ordinal| ordinal >= partition)
    };
    let owned = related.pods.iter().map(AsRef::as_ref).filter(|pod| owned_by(pod, object) && !pod.is_terminating());
    owned.filter(is_old).find(|pod| !is_well(pod))
}

/// Whether a Pod will hardly become ready by itself.
fn is_stuck(pod: &Value) -> bool {
    let is_unschedulable = find(pod, "PodScheduled").is_some_and(|condition| condition.is("False"));
    is_unschedulable || is_troubled(pod, false) || terminal_pod_failure(pod).is_some()
}

/// Whether a quota or a webhook refused to create pods.
fn is_refused(object: &Value, related: &Related<'_>) -> bool {
    if matches!(object.text("/kind"), "StatefulSet" | "DaemonSet" | "Job") {
        return is_creation_refused(object, related);
    }
    let failure = |object: &Value| find(object, "ReplicaFailure").is_some_and(|condition| condition.is("True"));
    let newest = || newest_replica_set(object, related.replica_sets).is_some_and(failure);
    failure(object) || (object.text("/kind") == "Deployment" && newest())
}

/// Returns whether the last attempt to create a Pod failed, for kinds without a condition for it: their controllers report
/// it by events alone. An event that is older than the newest pod, or than the last write of the object, is outdated.
fn is_creation_refused(object: &Value, related: &Related<'_>) -> bool {
    let owned = related.pods.iter().filter(|pod| owned_by(pod, object));
    let created = owned.map(|pod| pod.text("/metadata/creationTimestamp"));
    let entries = list(object, "/metadata/managedFields").iter();
    let written = entries.filter(|entry| entry.text("/subresource").is_empty()).map(|entry| entry.text("/time"));
    let latest = created.chain(written).map(whole_second).max().unwrap_or_default();
    events_of(object, related.events)
        .filter(|event| event.text("/type") == "Warning" && event.text("/reason") == "FailedCreate")
        .any(|event| whole_second(time_of(event)) >= latest)
}

/// A time without its fraction and zone; all are in UTC.
fn whole_second(time: &str) -> &str {
    time.get(.."2026-01-01T00:00:00".len()).unwrap_or(time)
}

fn is_well(pod: &Value) -> bool {
    pod.text("/status/phase") == "Succeeded" || is_true(pod, "Ready")
}

/// Whether a pod fails recoverably. Unschedulable pods are excluded, since nodes may be added late, and so are pods
/// that merely do not pass their probes yet.
fn is_troubled(pod: &Value, is_job: bool) -> bool {
    if matches!(pod.text("/status/phase"), "Succeeded" | "Failed") {
        return false;
    }
    Container::all(pod).any(|container| match container.waiting() {
        // A Job limits crashes itself.
        Some(("CrashLoopBackOff", _)) => !is_job,
        Some((reason, _)) => is_bad(reason),
        None => !is_job && has_crashed(&container),
    })
}

/// Argo CD's rule for waiting reasons; it excludes `ContainerCreating` and `PodInitializing`.
fn is_bad(reason: &str) -> bool {
    reason.starts_with("Err")
        || reason.ends_with("Error")
        || reason.ends_with("BackOff")
        || reason == "InvalidImageName"
}

/// Whether a container is down and has failed before.
fn has_crashed(container: &Container<'_>) -> bool {
    let is_up = container.status.get("ready") == Some(&Value::Bool(true));
    let code = container.terminated().and_then(|ended| number(ended, "/exitCode")).unwrap_or_default();
    !is_up && code != 0
}
