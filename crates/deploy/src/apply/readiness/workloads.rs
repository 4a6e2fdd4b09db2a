//! Deployments, ReplicaSets, StatefulSets and DaemonSets: counts of pods, once the controller has observed our write.
//! The rules combine kstatus and kapp; comments say where those wait forever or not long enough.

use std::sync::Arc;

use pushback_objects::ObjectExt;
use serde_json::Value;

use super::conditions::{detail, find, is_true};
use super::context::{Context, OBSERVATION_WINDOW};
use super::fields::{generation, not_observed, number, observed_generation};
use super::pods::owned_by;
use super::status::Status;
use super::troubles::GRACE;

const MINIMUM_AVAILABLE: &str = "kapp.k14s.io/apps-v1-deployment-wait-minimum-replicas-available";

/// In progress if a count is too low, with a message such as `2/4 ready`.
fn short_of(have: i64, want: i64, what: &str) -> Option<Status> {
    (have < want).then(|| Status::in_progress(format!("{have}/{want} {what}")))
}

/// Before the first observation the counts mean nothing; kstatus takes missing counts for a match at zero replicas.
fn unobserved(object: &Value) -> Option<Status> {
    let is_unobserved = generation(object).is_some() && observed_generation(object).is_none();
    is_unobserved.then(|| Status::in_progress(not_observed(object)))
}

fn count(object: &Value, field: &str) -> i64 {
    number(object, &format!("/status/{field}")).unwrap_or_default()
}

fn wanted(object: &Value) -> i64 {
    number(object, "/spec/replicas").unwrap_or(1)
}

pub(super) fn deployment(object: &Value, context: &Context<'_>) -> Status {
    if let Some(status) = unobserved(object) {
        return status;
    }
    if object.pointer("/spec/paused") == Some(&Value::Bool(true)) {
        return Status::ready("paused");
    }
    let progressing = find(object, "Progressing");
    if let Some(condition) = progressing {
        // Right after a write that changes no pod (replicas), the condition may still describe the previous state. If
        // nothing was written it is older than the run, which may be about to repair the cause.
        let window = if context.unchanged { GRACE } else { OBSERVATION_WINDOW };
        let is_late = condition.reason == "ProgressDeadlineExceeded" && context.waited >= window;
        // The controller retries after any other failure, such as a webhook that refused the ReplicaSet.
        let is_stuck = condition.is("False") && context.waited >= GRACE;
        if is_late || is_stuck {
            return Status::failed(format!("not progressing: {}", detail(&condition)));
        }
    }
    let replicas = wanted(object);
    let newest = newest_replica_set(object, context.related.replica_sets);
    if let Some(minimum) = object.annotation(MINIMUM_AVAILABLE) {
        return minimum_available(minimum, replicas, newest);
    }
    let (total, updated, available) =
        (count(object, "replicas"), count(object, "updatedReplicas"), count(object, "availableReplicas"));
    let ready = count(object, "readyReplicas");
    let short = short_of(total, replicas, "created")
        .or_else(|| short_of(updated, replicas, "updated"))
        .or_else(|| extra(total, replicas))
        .or_else(|| short_of(available, updated, "available"))
        .or_else(|| short_of(ready, replicas, "ready"));
    if let Some(status) = short {
        return status;
    }
    let unavailable = count(object, "unavailableReplicas");
    if unavailable > 0 {
        return Status::in_progress(format!("{unavailable} unavailable"));
    }
    let has_deadline =
        number(object, "/spec/progressDeadlineSeconds").is_some_and(|seconds| seconds != i64::from(i32::MAX));
    let is_rolled_out =
        progressing.is_some_and(|condition| condition.is("True") && condition.reason == "NewReplicaSetAvailable");
    if has_deadline && !is_rolled_out {
        return Status::in_progress("the new ReplicaSet is not available yet");
    }
    if !is_true(object, "Available") {
        return Status::in_progress("not available yet");
    }
    Status::ready(format!("{ready}/{replicas} ready"))
}

fn extra(total: i64, replicas: i64) -> Option<Status> {
    let extra = total.saturating_sub(replicas);
    let pods = if extra == 1 { "pod" } else { "pods" };
    (extra > 0).then(|| Status::in_progress(format!("{extra} old {pods} to end")))
}

/// kapp's annotation: done once the newest ReplicaSet has this many available, at least one and at most all.
fn minimum_available(minimum: &str, replicas: i64, newest: Option<&Value>) -> Status {
    let parsed = match minimum.strip_suffix('%') {
        // Rounded up, as Kubernetes rounds what must be available.
        Some(percent) => percent
            .parse::<u32>()
            .ok()
            .map(|percent| i64::from(percent).saturating_mul(replicas).saturating_add(99) / 100),
        None => minimum.parse::<u32>().ok().map(i64::from),
    };
    let Some(parsed) = parsed else {
        return Status::failed(format!(
            "annotation {MINIMUM_AVAILABLE}: expected a number or a percentage, found {minimum:?}"
        ));
    };
    let needed = parsed.max(1).min(replicas);
    let Some(newest) = newest else { return Status::in_progress("no ReplicaSet yet") };
    let available = count(newest, "availableReplicas");
    match short_of(available, needed, "available (minimum)") {
        Some(status) => status,
        None => Status::ready(format!("{available}/{replicas} available")),
    }
}

/// The ReplicaSet of the Deployment's current revision, otherwise the one of the highest revision.
pub(super) fn newest_replica_set<'a>(deployment: &Value, replica_sets: &'a [Arc<Value>]) -> Option<&'a Value> {
    const REVISION: &str = "deployment.kubernetes.io/revision";
    let revision = |object: &Value| object.annotation(REVISION).and_then(|text| text.parse::<i64>().ok());
    let current = revision(deployment);
    let owned = replica_sets.iter().map(Arc::as_ref).filter(|replica_set| owned_by(replica_set, deployment));
    owned.max_by_key(|replica_set| {
        let own = revision(replica_set);
        (own.is_some() && own == current, own)
    })
}

pub(super) fn replica_set(object: &Value) -> Status {
    if let Some(status) = unobserved(object) {
        return status;
    }
    if let Some(failure) = find(object, "ReplicaFailure").filter(|condition| condition.is("True")) {
        return Status::in_progress(format!("cannot create pods: {}", detail(&failure)));
    }
    let replicas = wanted(object);
    let short = short_of(count(object, "fullyLabeledReplicas"), replicas, "labelled")
        .or_else(|| short_of(count(object, "availableReplicas"), replicas, "available"))
        .or_else(|| short_of(count(object, "readyReplicas"), replicas, "ready"))
        .or_else(|| extra(count(object, "replicas"), replicas));
    short.unwrap_or_else(|| Status::ready(format!("{}/{replicas} ready", count(object, "readyReplicas"))))
}

pub(super) fn stateful_set(object: &Value) -> Status {
    if let Some(status) = unobserved(object) {
        return status;
    }
    let replicas = wanted(object);
    let update_revision = object.text("/status/updateRevision");
    let is_on_delete = object.text("/spec/updateStrategy/type") == "OnDelete";
    let ready = count(object, "readyReplicas");
    let short = short_of(count(object, "replicas"), replicas, "created")
        .or_else(|| short_of(ready, replicas, "ready"))
        .or_else(|| extra(count(object, "replicas"), replicas));
    if let Some(status) = short {
        return status;
    }
    if number(object, "/spec/minReadySeconds").unwrap_or_default() > 0
        && let Some(status) = short_of(count(object, "availableReplicas"), replicas, "available")
    {
        return status;
    }
    // The user deletes the pods: do not wait for the new revision, only for running pods.
    if is_on_delete {
        return Status::ready(format!("{ready}/{replicas} ready, pods are updated when they are deleted"));
    }
    let updated = count(object, "updatedReplicas");
    if let Some(partition) =
        number(object, "/spec/updateStrategy/rollingUpdate/partition").filter(|&partition| partition != 0)
    {
        let wanted = replicas.saturating_sub(partition).max(0);
        return short_of(updated, wanted, "updated (partition)")
            .unwrap_or_else(|| Status::ready(format!("{ready}/{replicas} ready, {updated} updated by the partition")));
    }
    let short = short_of(updated, replicas, "updated")
        .or_else(|| short_of(count(object, "currentReplicas"), replicas, "of the current revision"));
    if let Some(status) = short {
        return status;
    }
    if object.text("/status/currentRevision") != update_revision {
        return Status::in_progress("the update revision is not the current one yet");
    }
    Status::ready(format!("{ready}/{replicas} ready"))
}

pub(super) fn daemon_set(object: &Value) -> Status {
    if generation(object).is_none() || observed_generation(object).is_none() {
        return Status::in_progress(not_observed(object));
    }
    let Some(desired) = number(object, "/status/desiredNumberScheduled") else {
        return Status::in_progress("no count of nodes yet");
    };
    // With OnDelete the user deletes the pods; kstatus and kapp would wait forever.
    let is_on_delete = object.text("/spec/updateStrategy/type") == "OnDelete";
    let updated = if is_on_delete { desired } else { count(object, "updatedNumberScheduled") };
    let ready = count(object, "numberReady");
    let short = short_of(count(object, "currentNumberScheduled"), desired, "scheduled")
        .or_else(|| short_of(updated, desired, "updated"))
        .or_else(|| short_of(count(object, "numberAvailable"), desired, "available"))
        .or_else(|| short_of(ready, desired, "ready"));
    if let Some(status) = short {
        return status;
    }
    match count(object, "numberUnavailable") {
        0 => Status::ready(format!("{ready}/{desired} ready")),
        unavailable => Status::in_progress(format!("{unavailable} unavailable")),
    }
}
