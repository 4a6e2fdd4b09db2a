//! Causes found below an object that is not ready.

use super::*;

fn crash_loop(restarts: i64) -> Value {
    json!({"phase": "Running", "containerStatuses": [{
        "name": "web", "ready": false, "restartCount": restarts, "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 40s"}},
        "lastState": {"terminated": {"exitCode": 1, "reason": "Error"}}
    }]})
}

fn event(uid: &str, reason: &str, message: &str, time: &str) -> Arc<Value> {
    Arc::new(
        json!({"type": "Warning", "reason": reason, "message": message, "lastTimestamp": time, "involvedObject": {"uid": uid}}),
    )
}

fn replica_set(conditions: &[Value]) -> Arc<Value> {
    Arc::new(json!({
        "kind": "ReplicaSet",
        "metadata": {"name": "web-1", "uid": "rs", "ownerReferences": [{"uid": "u"}]},
        "status": {"conditions": conditions}
    }))
}

fn of_deployment(pods: &[Arc<Value>], events: &[Arc<Value>]) -> Vec<String> {
    let deployment = object("apps/v1", "Deployment", json!({}));
    let replica_sets = [replica_set(&[])];
    reasons(&deployment, &Related { pods, replica_sets: &replica_sets, events, ..Related::default() })
}

#[test]
fn every_way_of_not_starting_is_told_in_a_few_words() {
    let init = json!({"phase": "Pending",
        "initContainerStatuses": [{"name": "migrate", "restartCount": 2, "state": {"waiting": {"reason": "CrashLoopBackOff"}},
            "lastState": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}}],
        "containerStatuses": [{"name": "web", "state": {"waiting": {"reason": "PodInitializing"}}}]});
    let unschedulable = json!({"phase": "Pending", "conditions": [
        {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes are available"}]});
    let unready =
        json!({"phase": "Running", "containerStatuses": [{"name": "web", "ready": false, "state": {"running": {}}}]});
    for (status, expected) in [
        (crash_loop(4), "pod p: CrashLoopBackOff (exit 1, restart 4)"),
        (waiting("ImagePullBackOff", "Back-off pulling"), "pod p: ImagePullBackOff (image reg/web:1)"),
        (waiting("ErrImagePull", "denied"), "pod p: ErrImagePull (image reg/web:1)"),
        (waiting("ErrImageNeverPull", ""), "pod p: ErrImageNeverPull (image reg/web:1)"),
        (waiting("InvalidImageName", ""), "pod p: InvalidImageName (image reg/web:1)"),
        (
            waiting("CreateContainerConfigError", "secret \"db\" not found"),
            "pod p: CreateContainerConfigError (secret \"db\" not found)",
        ),
        (init, "pod p: init container migrate: CrashLoopBackOff (OOMKilled, exit 137, restart 2)"),
        (unschedulable, "pod p: Unschedulable: 0/3 nodes are available"),
        (unready, "pod p: container web is running but not ready"),
        (
            json!({"phase": "Failed", "reason": "Evicted", "message": "low on disk"}),
            "pod p: failed: Evicted: low on disk",
        ),
        (
            json!({"phase": "Failed", "containerStatuses": [{"name": "web", "state": {"terminated": {"exitCode": 3, "reason": "Error"}}}]}),
            "pod p: failed: container web exit 3",
        ),
    ] {
        assert_eq!(of_deployment(&[pod("p", "rs", status)], &[]), [expected]);
    }
}

#[test]
fn pods_of_others_pods_that_end_and_pods_that_are_well_are_no_cause() {
    let mut terminating = (*pod("t", "rs", crash_loop(1))).clone();
    merge(&mut terminating, json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}));
    let well =
        json!({"phase": "Running", "containerStatuses": [{"name": "web", "ready": true, "state": {"running": {}}}]});
    let pods = [
        pod("a", "other", crash_loop(1)),
        Arc::new(terminating),
        pod("w", "rs", well),
        pod("s", "rs", json!({"phase": "Succeeded"})),
    ];
    assert_eq!(of_deployment(&pods, &[]), Vec::<String>::new());
}

#[test]
fn the_same_cause_of_many_pods_is_one_line_and_the_most_telling_comes_first() {
    let mut pods: Vec<_> = (0..4).map(|index| pod(&format!("p{index}"), "rs", crash_loop(index + 1))).collect();
    pods.push(pod("x", "rs", waiting("InvalidImageName", "")));
    pods.push(pod("y", "rs", waiting("ImagePullBackOff", "")));
    assert_eq!(
        of_deployment(&pods, &[]),
        [
            "pod x: InvalidImageName (image reg/web:1)",
            "pod p0: CrashLoopBackOff (exit 1, restart 1) (and 3 more)",
            "pod y: ImagePullBackOff (image reg/web:1)",
        ]
    );
    let many: Vec<_> = (0..9)
        .map(|index| pod(&format!("p{index}"), "rs", waiting("CreateContainerError", &format!("m{index}"))))
        .collect();
    assert_eq!(of_deployment(&many, &[]).len(), 5);
}

#[test]
fn what_could_not_be_created_is_said_once() {
    let failure =
        json!({"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "exceeded quota: q"});
    let deployment = object("apps/v1", "Deployment", json!({"status": {"conditions": [failure.clone()]}}));
    let replica_sets = [replica_set(&[failure])];
    let events = [event("rs", "FailedCreate", "Error creating: exceeded quota: q", "2026-01-01T00:00:00Z")];
    let related = Related { replica_sets: &replica_sets, events: &events, ..Related::default() };
    assert_eq!(reasons(&deployment, &related), ["FailedCreate: exceeded quota: q"]);
    let job = object("batch/v1", "Job", json!({}));
    let events = [event("u", "FailedCreate", "denied", "")];
    assert_eq!(reasons(&job, &Related { events: &events, ..Related::default() }), ["FailedCreate: denied"]);
}

#[test]
fn events_speak_where_containers_say_nothing_and_only_the_latest_of_a_kind() {
    let creating = waiting("ContainerCreating", "");
    let events = [
        event("p", "FailedMount", "secret \"new\" not found", "2026-01-02T00:00:00Z"),
        event("p", "FailedMount", "secret \"old\" not found", "2026-01-01T00:00:00Z"),
        event("other", "FailedMount", "not ours", "2026-01-03T00:00:00Z"),
    ];
    assert_eq!(of_deployment(&[pod("p", "rs", creating)], &events), ["pod p: FailedMount: secret \"new\" not found"]);
    let unready =
        json!({"phase": "Running", "containerStatuses": [{"name": "web", "ready": false, "state": {"running": {}}}]});
    let probe = [event("p", "Unhealthy", "Readiness probe failed: 500", "2026-01-01T00:00:00Z")];
    assert_eq!(of_deployment(&[pod("p", "rs", unready)], &probe), ["pod p: Readiness probe failed: 500"]);
}

#[test]
fn credentials_in_a_url_are_not_repeated_and_messages_are_one_line() {
    let message = format!("pull https://user:hunter2@reg.ex.com/v2/ failed\n{} because of this", "x".repeat(500));
    let events = [event("p", "FailedMount", &message, "")];
    let line = of_deployment(&[pod("p", "rs", waiting("ContainerCreating", ""))], &events).concat();
    assert!(
        line.contains("https://…@reg.ex.com/v2/ failed") && !line.contains("hunter2") && !line.contains('\n'),
        "{line}"
    );
    assert!(line.ends_with("x because of this"), "the cause is at the end: {line}");
}
