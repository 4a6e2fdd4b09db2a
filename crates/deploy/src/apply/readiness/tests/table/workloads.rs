//! Rows for kinds that run pods.

use super::Kstatus::{Current, Error, Failed as Fails, InProgress as Waits, Terminating};
use super::State::{Failed, InProgress, Ready};
use super::*;

const UNOBSERVED: &str = "counts that nobody has looked at since the write are those of nothing";

#[test]
fn deployment() {
    let conditions = |progressing: Value, available: &str| json!([progressing, condition("Available", available, "")]);
    let done = condition("Progressing", "True", "NewReplicaSetAvailable");
    let base = json!({
        "spec": {"replicas": 4, "progressDeadlineSeconds": 600},
        "status": {
            "observedGeneration": 2, "replicas": 4, "updatedReplicas": 4, "availableReplicas": 4, "readyReplicas": 4,
            "conditions": conditions(done.clone(), "True"),
        }
    });
    let progressing = |status: &str, reason: &str| json!({"status": {"conditions": conditions(condition("Progressing", status, reason), "True")}});
    let nothing = json!({"replicas": 0, "updatedReplicas": 0, "availableReplicas": 0, "readyReplicas": 0});
    let status = |field: &str, value: Value| json!({"status": {field: value}});
    check(
        "apps/v1",
        "Deployment",
        &base,
        vec![
            same("rolled out", Current, Ready, "4/4 ready", json!({})),
            same("our write not observed", Waits, InProgress, "observed", status("observedGeneration", json!(1))),
            gap(
                "never observed",
                (Current, InProgress),
                "observed",
                UNOBSERVED,
                status("observedGeneration", Value::Null),
            ),
            same(
                "deadline exceeded",
                Fails,
                Failed,
                "ProgressDeadlineExceeded",
                progressing("False", "ProgressDeadlineExceeded"),
            ),
            gap(
                "ReplicaSet refused",
                (Waits, Failed),
                "ReplicaSetCreateError",
                "kapp's rule, after a grace: the controller has given it up for now",
                progressing("False", "ReplicaSetCreateError"),
            ),
            same("fewer than wanted", Waits, InProgress, "2/4 created", status("replicas", json!(2))),
            same("fewer updated", Waits, InProgress, "3/4 updated", status("updatedReplicas", json!(3))),
            same("old pods left", Waits, InProgress, "1 old pod to end", status("replicas", json!(5))),
            same("fewer available", Waits, InProgress, "1/4 available", status("availableReplicas", json!(1))),
            same("fewer ready", Waits, InProgress, "2/4 ready", status("readyReplicas", json!(2))),
            same("a count of a wrong type", Waits, InProgress, "0/4 ready", status("readyReplicas", json!("4"))),
            gap(
                "some unavailable",
                (Current, InProgress),
                "1 unavailable",
                "kapp's rule",
                status("unavailableReplicas", json!(1)),
            ),
            same(
                "new ReplicaSet not available",
                Waits,
                InProgress,
                "new ReplicaSet",
                progressing("True", "ReplicaSetUpdated"),
            ),
            same(
                "without a deadline",
                Current,
                Ready,
                "4/4",
                json!({"spec": {"progressDeadlineSeconds": i32::MAX}, "status": {"conditions": [condition("Available", "True", "")]}}),
            ),
            same(
                "not available",
                Waits,
                InProgress,
                "not available",
                json!({"status": {"conditions": conditions(done.clone(), "False")}}),
            ),
            same(
                "replicas default to one",
                Waits,
                InProgress,
                "3 old pods to end",
                json!({"spec": {"replicas": null}}),
            ),
            same("no replicas wanted", Current, Ready, "0/0", json!({"spec": {"replicas": 0}, "status": nothing})),
            gap(
                "paused",
                (Waits, Ready),
                "paused",
                "nothing moves until somebody resumes it",
                json!({"spec": {"paused": true}, "status": {"updatedReplicas": 0}}),
            ),
            same(
                "being deleted",
                Terminating,
                InProgress,
                "being deleted",
                json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}),
            ),
        ],
    );
    // The old group has the same rule.
    check("extensions/v1beta1", "Deployment", &base, vec![same("rolled out", Current, Ready, "4/4 ready", json!({}))]);
}

#[test]
fn replica_set() {
    let base = json!({
        "spec": {"replicas": 2},
        "status": {"observedGeneration": 2, "replicas": 2, "fullyLabeledReplicas": 2, "availableReplicas": 2, "readyReplicas": 2}
    });
    let status = |field: &str, value: Value| json!({"status": {field: value}});
    check(
        "apps/v1",
        "ReplicaSet",
        &base,
        vec![
            same("all ready", Current, Ready, "2/2 ready", json!({})),
            same(
                "cannot create pods",
                Waits,
                InProgress,
                "FailedCreate",
                status("conditions", json!([condition("ReplicaFailure", "True", "FailedCreate")])),
            ),
            same("fewer labelled", Waits, InProgress, "1/2 labelled", status("fullyLabeledReplicas", json!(1))),
            same("fewer available", Waits, InProgress, "1/2 available", status("availableReplicas", json!(1))),
            same("fewer ready", Waits, InProgress, "1/2 ready", status("readyReplicas", json!(1))),
            same("too many", Waits, InProgress, "1 old pod to end", status("replicas", json!(3))),
            gap(
                "never observed",
                (Current, InProgress),
                "observed",
                UNOBSERVED,
                status("observedGeneration", Value::Null),
            ),
        ],
    );
}

#[test]
fn stateful_set() {
    let base = json!({
        "spec": {"replicas": 3, "updateStrategy": {"type": "RollingUpdate"}},
        "status": {
            "observedGeneration": 2, "replicas": 3, "readyReplicas": 3, "currentReplicas": 3, "updatedReplicas": 3,
            "currentRevision": "b", "updateRevision": "b"
        }
    });
    let status = |field: &str, value: Value| json!({"status": {field: value}});
    let on_delete = |ready: i64| json!({"spec": {"updateStrategy": {"type": "OnDelete"}}, "status": {"readyReplicas": ready, "updatedReplicas": 0, "currentRevision": "a"}});
    let partition = |updated: i64| json!({"spec": {"updateStrategy": {"rollingUpdate": {"partition": 1}}}, "status": {"updatedReplicas": updated, "currentRevision": "a"}});
    check(
        "apps/v1",
        "StatefulSet",
        &base,
        vec![
            same("rolled out", Current, Ready, "3/3 ready", json!({})),
            same("updated on delete, pods run", Current, Ready, "updated when they are deleted", on_delete(3)),
            gap(
                "updated on delete, pods do not run",
                (Current, InProgress),
                "2/3 ready",
                "that pods run can be waited for, whoever updates them",
                on_delete(2),
            ),
            same("fewer than wanted", Waits, InProgress, "2/3 created", status("replicas", json!(2))),
            same("fewer ready", Waits, InProgress, "1/3 ready", status("readyReplicas", json!(1))),
            same("too many", Waits, InProgress, "1 old pod to end", status("replicas", json!(4))),
            same("partition not reached", Waits, InProgress, "1/2 updated", partition(1)),
            same("partition reached", Current, Ready, "2 updated by the partition", partition(2)),
            same(
                "fewer of the current revision",
                Waits,
                InProgress,
                "1/3 of the current revision",
                status("currentReplicas", json!(1)),
            ),
            same("revisions differ", Waits, InProgress, "update revision", status("currentRevision", json!("a"))),
            gap(
                "ready, but not for long enough",
                (Current, InProgress),
                "1/3 available",
                "minReadySeconds are the user's wish",
                json!({"spec": {"minReadySeconds": 10}, "status": {"availableReplicas": 1}}),
            ),
            gap(
                "never observed",
                (Current, InProgress),
                "observed",
                UNOBSERVED,
                status("observedGeneration", Value::Null),
            ),
        ],
    );
}

#[test]
fn daemon_set() {
    let base = json!({"status": {
        "observedGeneration": 2, "desiredNumberScheduled": 3, "currentNumberScheduled": 3, "updatedNumberScheduled": 3,
        "numberAvailable": 3, "numberReady": 3
    }});
    let status = |field: &str, value: Value| json!({"status": {field: value}});
    check("apps/v1", "DaemonSet", &base, vec![
        same("on every node", Current, Ready, "3/3 ready", json!({})),
        same("without a generation", Waits, InProgress, "observed", json!({"metadata": {"generation": null}})),
        same("never observed", Waits, InProgress, "observed", status("observedGeneration", Value::Null)),
        same("nodes not counted yet", Waits, InProgress, "no count", status("desiredNumberScheduled", Value::Null)),
        same("fewer scheduled", Waits, InProgress, "2/3 scheduled", status("currentNumberScheduled", json!(2))),
        same("fewer updated", Waits, InProgress, "1/3 updated", status("updatedNumberScheduled", json!(1))),
        same("fewer available", Waits, InProgress, "2/3 available", status("numberAvailable", json!(2))),
        same("fewer ready", Waits, InProgress, "0/3 ready", status("numberReady", json!(0))),
        same("no node wants it", Current, Ready, "0/0 ready", json!({"status": {"desiredNumberScheduled": 0}, "spec": {}})).with(json!({"status": {"currentNumberScheduled": 0, "updatedNumberScheduled": 0, "numberAvailable": 0, "numberReady": 0}})),
        gap("some unavailable", (Current, InProgress), "1 unavailable", "kapp's rule", status("numberUnavailable", json!(1))),
        gap("updated on delete", (Waits, Ready), "3/3", "it would wait for the user to delete the pods", json!({"spec": {"updateStrategy": {"type": "OnDelete"}}, "status": {"updatedNumberScheduled": 0}})),
    ]);
}

#[test]
fn pod() {
    let waiting = |reason: &str| json!([{"name": "c", "ready": false, "state": {"waiting": {"reason": reason}}}]);
    let status = |status: Value| json!({"status": status});
    check(
        "v1",
        "Pod",
        &json!({}),
        vec![
            same("succeeded", Current, Ready, "succeeded", status(json!({"phase": "Succeeded"}))),
            gap(
                "failed",
                (Current, Failed),
                "Evicted: low on memory",
                "a failed pod has not come to run",
                status(json!({"phase": "Failed", "reason": "Evicted", "message": "low on memory"})),
            ),
            same(
                "running and ready",
                Current,
                Ready,
                "ready",
                status(json!({"phase": "Running", "conditions": [condition("Ready", "True", "")]})),
            ),
            same("running, not ready", Waits, InProgress, "0/0 containers ready", status(json!({"phase": "Running"}))),
            gap(
                "crash loop",
                (Fails, InProgress),
                "0/1 containers ready",
                "it may come up when its database does; it fails once nothing has moved for --wait-failure-timeout",
                status(json!({"phase": "Running", "containerStatuses": waiting("CrashLoopBackOff")})),
            ),
            same(
                "crash loop of an init container",
                Waits,
                InProgress,
                "pending: CrashLoopBackOff",
                status(json!({"phase": "Pending", "initContainerStatuses": waiting("CrashLoopBackOff")})),
            ),
            gap(
                "no node takes it",
                (Fails, InProgress),
                "Unschedulable",
                "nodes may come; and the local clock decides for kstatus",
                status(
                    json!({"phase": "Pending", "conditions": [condition("PodScheduled", "False", "Unschedulable")]}),
                ),
            ),
            same("pending", Waits, InProgress, "pending", status(json!({"phase": "Pending"}))),
            same(
                "image not pulled",
                Waits,
                InProgress,
                "pending: ErrImagePull",
                status(json!({"phase": "Pending", "containerStatuses": waiting("ErrImagePull")})),
            ),
            same("no phase yet", Waits, InProgress, "no phase", json!({})),
            gap(
                "its node does not report",
                (Error, InProgress),
                "node",
                "the node may come back",
                status(json!({"phase": "Unknown"})),
            ),
            gap(
                "a phase nobody knows",
                (Error, InProgress),
                "Odd",
                "an error about the phase helps nobody",
                status(json!({"phase": "Odd"})),
            ),
            gap(
                "succeeded and cleared away",
                (Terminating, Ready),
                "succeeded",
                "what is over stays so",
                json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}, "status": {"phase": "Succeeded"}}),
            ),
        ],
    );
}

#[test]
fn job() {
    let with = |conditions: Value| json!({"status": {"startTime": "2026-01-01T00:00:00Z", "conditions": conditions}});
    let going =
        json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["foregroundDeletion"]}});
    let and_going = |mut job: Value| {
        merge(&mut job, going.clone());
        job
    };
    let early = "Kubernetes says it before the last pods have ended, and nothing leads back";
    let running = "a Job that runs has not done its work";
    let over = "a Job that its time to live removes has ended all the same";
    check(
        "batch/v1",
        "Job",
        &json!({"spec": {"completions": 2}}),
        vec![
            same("complete", Current, Ready, "complete", with(json!([condition("Complete", "True", "")]))),
            same(
                "failed",
                Fails,
                Failed,
                "BackoffLimitExceeded",
                with(json!([condition("Failed", "True", "BackoffLimitExceeded")])),
            ),
            gap(
                "about to fail",
                (Current, Failed),
                "PodFailurePolicy",
                early,
                with(json!([condition("FailureTarget", "True", "PodFailurePolicy")])),
            ),
            gap(
                "criteria met, pods still end",
                (Current, InProgress),
                "success criteria met",
                running,
                with(json!([condition("SuccessCriteriaMet", "True", "")])),
            ),
            same(
                "suspended",
                Current,
                Ready,
                "suspended",
                json!({"spec": {"suspend": true}, "status": {"conditions": [condition("Suspended", "True", "")]}}),
            ),
            gap(
                "resumed, condition not yet gone",
                (Current, InProgress),
                "0/2 succeeded",
                running,
                with(json!([condition("Suspended", "True", "")])),
            ),
            same("not started", Waits, InProgress, "not started", json!({})),
            gap("running", (Current, InProgress), "1/2 succeeded, 1 active, 3 failed", running, with(json!([])))
                .with(json!({"status": {"succeeded": 1, "active": 1, "failed": 3}})),
            gap(
                "complete and cleared away",
                (Terminating, Ready),
                "complete",
                over,
                and_going(with(json!([condition("Complete", "True", "")]))),
            ),
            gap(
                "failed and cleared away",
                (Terminating, Failed),
                "DeadlineExceeded",
                over,
                and_going(with(json!([condition("Failed", "True", "DeadlineExceeded")]))),
            ),
            same(
                "deleted while it runs",
                Terminating,
                InProgress,
                "being deleted: finalizer foregroundDeletion",
                and_going(with(json!([]))),
            ),
        ],
    );
}
