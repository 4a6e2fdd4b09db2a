//! Failing pods: what ends the wait, when, and what only delays it.

use super::State::{Failed, InProgress, Ready};
use super::*;

const PATIENCE: Duration = Duration::from_secs(300);

fn crash_loop() -> Value {
    json!({"phase": "Running", "containerStatuses": [{
        "name": "web", "ready": false, "restartCount": 3, "state": {"waiting": {"reason": "CrashLoopBackOff"}},
        "lastState": {"terminated": {"exitCode": 1}}
    }]})
}

/// Status of a container between two crashes.
fn crashed_and_running() -> Value {
    json!({"phase": "Running", "containerStatuses": [{
        "name": "web", "ready": false, "restartCount": 3, "state": {"running": {}},
        "lastState": {"terminated": {"exitCode": 1}}
    }]})
}

fn running() -> Value {
    json!({"phase": "Running", "conditions": [condition("Ready", "True", "")],
        "containerStatuses": [{"name": "web", "ready": true, "state": {"running": {}}}]})
}

fn unschedulable() -> Value {
    json!({"phase": "Pending", "conditions": [condition("PodScheduled", "False", "Unschedulable")]})
}

fn replica_set(conditions: &[Value]) -> Arc<Value> {
    Arc::new(json!({
        "kind": "ReplicaSet",
        "metadata": {"name": "web-1", "uid": "rs", "ownerReferences": [{"uid": "u"}]},
        "status": {"conditions": conditions}
    }))
}

fn deployment() -> Value {
    object("apps/v1", "Deployment", json!({"spec": {"replicas": 4}, "status": {"observedGeneration": 2}}))
}

/// Follows an object over the seconds of a wait, as the engine does; returns the state at each of them.
fn follow(object: &Value, replica_sets: &[Arc<Value>], story: &[(u64, Vec<Arc<Value>>)]) -> Vec<State> {
    let mut troubles = Troubles::default();
    let states = story.iter().map(|(second, pods)| {
        let related = Related { pods, replica_sets, ..Related::default() };
        let waited = Duration::from_secs(*second);
        let context = Context { related, waited, failure_timeout: PATIENCE, ..Context::default() };
        troubles.observe(object, &context);
        assess(object, &Context { troubles: Some(&troubles), ..context }).state
    });
    states.collect()
}

fn of_deployment(story: &[(u64, Value)]) -> Vec<State> {
    let story: Vec<_> = story.iter().map(|(second, status)| (*second, vec![pod("p", "rs", status.clone())])).collect();
    follow(&deployment(), &[replica_set(&[])], &story)
}

#[test]
fn what_never_heals_fails_after_a_grace_and_what_may_heal_after_a_long_standstill() {
    let terminal = [
        waiting("InvalidImageName", "couldn't parse image name"),
        waiting("ErrImageNeverPull", ""),
        waiting("CreateContainerConfigError", "couldn't find key x in ConfigMap shop/c"),
    ];
    let transient = [
        waiting("CreateContainerConfigError", "configmap \"c\" not found"),
        waiting("CreateContainerConfigError", "failed to sync configmap cache: timed out"),
        waiting("ImagePullBackOff", ""),
        waiting("ErrImagePull", ""),
        waiting("RunContainerError", ""),
        crash_loop(),
        crashed_and_running(),
    ];
    let never = [unschedulable(), waiting("ContainerCreating", ""), waiting("PodInitializing", "")];
    for (statuses, grace, patience) in
        [(&terminal[..], Failed, Failed), (&transient[..], InProgress, Failed), (&never[..], InProgress, InProgress)]
    {
        for status in statuses {
            let seconds = [100, 129, 130, 399, 400].map(|second| (second, status.clone()));
            let [first, before, after, late, last] = of_deployment(&seconds)[..] else { panic!("five states") };
            // The time runs from the first observation, not from the write.
            assert_eq!([first, before, after], [InProgress, InProgress, grace], "{status}");
            assert_eq!([late, last], [grace, patience], "{status}");
        }
    }
}

#[test]
fn a_failure_that_passes_starts_anew_when_it_comes_back() {
    let broken = waiting("InvalidImageName", "");
    let story = [(0, broken.clone()), (29, running()), (30, broken.clone()), (59, broken.clone()), (60, broken)];
    assert_eq!(of_deployment(&story), [InProgress, InProgress, InProgress, InProgress, Failed]);
}

#[test]
fn a_pod_that_becomes_ready_is_movement() {
    let story = |ready: usize| -> Vec<Arc<Value>> {
        let well = (0..ready).map(|index| pod(&format!("w{index}"), "rs", running()));
        well.chain([pod("x", "rs", crash_loop())]).collect()
    };
    let states = follow(
        &deployment(),
        &[replica_set(&[])],
        // A pod that becomes unready for a while and then recovers is no progress.
        &[(0, story(0)), (200, story(1)), (300, story(0)), (450, story(1)), (499, story(1)), (500, story(1))],
    );
    assert_eq!(states, [InProgress, InProgress, InProgress, InProgress, InProgress, Failed]);
}

#[test]
fn pods_that_a_quota_refuses_are_a_failure_that_may_heal() {
    let refused = [replica_set(&[condition("ReplicaFailure", "True", "FailedCreate")])];
    let story: Vec<_> = [0, 299, 300].map(|second| (second, Vec::new())).into();
    assert_eq!(follow(&deployment(), &refused, &story), [InProgress, InProgress, Failed]);
}

/// State after 300 s of a kind whose controller reports refused pods by events alone.
fn after_refusal(kind: (&str, &str), event: &Value, pods: &[Arc<Value>]) -> State {
    let mut owner = object(kind.0, kind.1, json!({"status": {"startTime": "2026-01-01T00:00:00Z"}}));
    owner["metadata"]["managedFields"] = json!([
        {"manager": "pushback", "time": "2026-01-01T00:10:00Z"},
        {"manager": "kube-controller-manager", "subresource": "status", "time": "2026-01-01T00:50:00Z"},
    ]);
    let events = [Arc::new(event.clone())];
    let related = Related { pods, events: &events, ..Related::default() };
    let mut troubles = Troubles::default();
    let mut last = InProgress;
    for second in [0, 299, 300] {
        assert_eq!(last, InProgress, "not before the time is over");
        let context = Context { related, waited: Duration::from_secs(second), ..Context::default() };
        let context = Context { failure_timeout: PATIENCE, ..context };
        troubles.observe(&owner, &context);
        last = assess(&owner, &Context { troubles: Some(&troubles), ..context }).state;
    }
    last
}

#[test]
fn refused_pods_of_kinds_without_a_condition_are_known_by_their_events() {
    let refused = |time: &str| {
        json!({"type": "Warning", "reason": "FailedCreate", "message": "exceeded quota", "lastTimestamp": time,
            "involvedObject": {"uid": "u"}})
    };
    let now = refused("2026-01-01T00:10:00Z");
    let precise = json!({"type": "Warning", "reason": "FailedCreate", "regarding": {"uid": "u"},
        "eventTime": "2026-01-01T00:10:00.000123Z"});
    let mut created = Arc::unwrap_or_clone(pod("p", "u", json!({"phase": "Pending"})));
    created["metadata"]["creationTimestamp"] = json!("2026-01-01T00:20:00Z");
    let created = [Arc::new(created)];
    for kind in [("apps/v1", "StatefulSet"), ("apps/v1", "DaemonSet"), ("batch/v1", "Job")] {
        assert_eq!(after_refusal(kind, &now, &[]), Failed, "{kind:?}");
        assert_eq!(after_refusal(kind, &precise, &[]), Failed, "{kind:?}");
        assert_eq!(
            after_refusal(kind, &refused("2026-01-01T00:09:59Z"), &[]),
            InProgress,
            "{kind:?}: before the write"
        );
        assert_eq!(after_refusal(kind, &now, &created), InProgress, "{kind:?}: a pod was created since");
        assert_eq!(after_refusal(kind, &refused("2026-01-01T00:30:00Z"), &created), Failed, "{kind:?}: refused again");
        let mut other = now.clone();
        other["reason"] = json!("FailedDelete");
        assert_eq!(after_refusal(kind, &other, &[]), InProgress, "{kind:?}");
    }
}

#[test]
fn without_a_limit_what_may_heal_is_waited_for_to_the_end() {
    let pods = [pod("p", "rs", crash_loop())];
    let sets = [replica_set(&[])];
    let related = Related { pods: &pods, replica_sets: &sets, ..Related::default() };
    let mut troubles = Troubles::default();
    for second in [0, 100_000] {
        let context = Context { related, waited: Duration::from_secs(second), ..Context::default() };
        troubles.observe(&deployment(), &context);
        assert_eq!(assess(&deployment(), &Context { troubles: Some(&troubles), ..context }).state, InProgress);
    }
}

#[test]
fn a_job_has_a_limit_of_its_own_for_crashes_but_none_for_images() {
    let job = object("batch/v1", "Job", json!({"status": {"startTime": "2026-01-01T00:00:00Z"}}));
    for (status, last) in [
        (crash_loop(), InProgress),
        (waiting("ImagePullBackOff", ""), Failed),
        (waiting("InvalidImageName", ""), Failed),
    ] {
        let story: Vec<_> = [0, 300].map(|second| (second, vec![pod("p", "u", status.clone())])).into();
        assert_eq!(follow(&job, &[], &story), [InProgress, last], "{status}");
    }
}

#[test]
fn an_init_container_counts_as_any_other() {
    let init = json!({"phase": "Pending",
        "initContainerStatuses": [{"name": "migrate", "ready": false, "state": {"waiting": {"reason": "CrashLoopBackOff"}},
            "lastState": {"terminated": {"exitCode": 1}}}],
        "containerStatuses": [{"name": "web", "ready": false, "state": {"waiting": {"reason": "PodInitializing"}}}]});
    assert_eq!(of_deployment(&[(0, init.clone()), (299, init.clone()), (300, init)]), [InProgress, InProgress, Failed]);
}

#[test]
fn pod_of_an_older_revision_fails_only_the_stateful_set_that_waits_for_it() {
    let mut old = (*pod("p", "u", waiting("InvalidImageName", ""))).clone();
    merge(&mut old, json!({"metadata": {"labels": {"controller-revision-hash": "a", "pod-template-generation": "1"}}}));
    let mut new = old.clone();
    merge(&mut new, json!({"metadata": {"labels": {"controller-revision-hash": "b", "pod-template-generation": "2"}}}));
    let stateful_set = |spec: Value| {
        let status = json!({"observedGeneration": 2, "updateRevision": "b"});
        object("apps/v1", "StatefulSet", json!({"spec": spec, "status": status}))
    };
    let daemon_set = object(
        "apps/v1",
        "DaemonSet",
        json!({"metadata": {"annotations": {"deprecated.daemonset.template.generation": "2"}},
            "status": {"observedGeneration": 2, "desiredNumberScheduled": 1}}),
    );
    let (waits, parallel) = (stateful_set(json!({})), stateful_set(json!({"podManagementPolicy": "Parallel"})));
    for (owner, of_old) in [(&waits, Failed), (&parallel, InProgress), (&daemon_set, InProgress)] {
        for (pod, state) in [(&new, Failed), (&old, of_old)] {
            let story: Vec<_> = [0, 30].map(|second| (second, vec![Arc::new(pod.clone())])).into();
            assert_eq!(follow(owner, &[], &story), [InProgress, state]);
        }
    }
    let pods = [Arc::new(old)];
    let context = Context { related: Related { pods: &pods, ..Related::default() }, ..Context::default() };
    let message = assess(&waits, &context).message;
    assert!(message.contains("kubectl delete pod -n "), "{message}");
}

#[test]
fn what_crashed_while_it_was_waited_for_must_stay_ready_for_a_while() {
    let ready = running();
    let pod_at = |status: &Value| object("v1", "Pod", json!({"status": status}));
    let mut troubles = Troubles::default();
    let mut states = Vec::new();
    for (second, status) in
        [(0, &crash_loop()), (1, &ready), (10, &ready), (10, &crash_loop()), (12, &ready), (21, &ready), (22, &ready)]
    {
        let value = pod_at(status);
        let context = Context { waited: Duration::from_secs(second), ..Context::default() };
        troubles.observe(&value, &context);
        states.push(assess(&value, &Context { troubles: Some(&troubles), ..context }).state);
    }
    assert_eq!(states, [InProgress, InProgress, InProgress, InProgress, InProgress, InProgress, Ready]);
    // A pod that crashed only before the wait is ready at once.
    let mut calm = Troubles::default();
    let context = settled();
    calm.observe(&pod_at(&ready), &context);
    assert_eq!(assess(&pod_at(&ready), &Context { troubles: Some(&calm), ..context }).state, Ready);
}

#[test]
fn time_alone_is_looked_at_again_exactly_when_it_may_change_something() {
    let at = |troubles: &Troubles, second| {
        let waited = Duration::from_secs(second);
        next_look(&Context { troubles: Some(troubles), failure_timeout: PATIENCE, waited, ..Context::default() })
            .map(|left| left.as_secs())
    };
    assert_eq!([0, 5, 29, 30].map(|second| at(&Troubles::default(), second)), [Some(5), Some(25), Some(1), None]);
    let mut troubles = Troubles::default();
    let value = object("v1", "Pod", json!({"status": waiting("InvalidImageName", "")}));
    troubles.observe(&value, &Context { waited: Duration::from_secs(100), ..Context::default() });
    assert_eq!([100, 130, 400].map(|second| at(&troubles, second)), [Some(30), Some(270), None]);
}

#[test]
fn a_failure_from_before_the_run_gets_the_same_grace() {
    let late = condition("Progressing", "False", "ProgressDeadlineExceeded");
    let value = object("apps/v1", "Deployment", json!({"status": {"observedGeneration": 2, "conditions": [late]}}));
    let at = |second, unchanged| {
        assess(&value, &Context { waited: Duration::from_secs(second), unchanged, ..Context::default() }).state
    };
    // Right after a write the condition may still describe the previous state.
    assert_eq!([at(4, false), at(5, false)], [InProgress, Failed]);
    // Another change of the run may repair an unchanged object.
    assert_eq!([at(0, true), at(29, true), at(30, true)], [InProgress, InProgress, Failed]);
}

#[test]
fn whoever_looks_only_once_sees_what_has_failed_since_the_write() {
    let broken = object("v1", "Pod", json!({"status": waiting("InvalidImageName", "")}));
    let after = |second| assess(&broken, &Context { waited: Duration::from_secs(second), ..Context::default() }).state;
    assert_eq!([after(29), after(30)], [InProgress, Failed]);
}

#[test]
fn another_revision_starts_anew() {
    let set = |uid: &str, revision: &str| {
        Arc::new(json!({
            "kind": "ReplicaSet",
            "metadata": {"uid": uid, "ownerReferences": [{"uid": "u"}], "annotations": {"deployment.kubernetes.io/revision": revision}},
        }))
    };
    let sets = [set("old", "1"), set("new", "2")];
    let deployment = |revision: &str| {
        let mut value = deployment();
        merge(&mut value, json!({"metadata": {"annotations": {"deployment.kubernetes.io/revision": revision}}}));
        value
    };
    let mut pods: Vec<_> = (0..3).map(|index| pod(&format!("o{index}"), "old", running())).collect();
    pods.push(pod("x", "old", crash_loop()));
    pods.push(pod("y", "new", crash_loop()));
    let mut troubles = Troubles::default();
    let mut at = |second: u64, revision: &str, pods: &[Arc<Value>]| {
        let related = Related { pods, replica_sets: &sets, ..Related::default() };
        let waited = Duration::from_secs(second);
        let context = Context { related, waited, failure_timeout: PATIENCE, ..Context::default() };
        troubles.observe(&deployment(revision), &context);
        assess(&deployment(revision), &Context { troubles: Some(&troubles), ..context }).state
    };
    assert_eq!([at(0, "1", &pods), at(200, "2", &pods), at(499, "2", &pods)], [InProgress; 3]);
    // Reaching the old revision's count is progress for the new one.
    pods.push(pod("z", "new", running()));
    assert_eq!([at(499, "2", &pods), at(798, "2", &pods), at(799, "2", &pods)], [InProgress, InProgress, Failed]);
}

#[test]
fn a_scheduler_that_nobody_runs_is_named() {
    let pod = |spec: Value, status: Value| {
        let mut pod = Arc::unwrap_or_clone(pod("p", "rs", status));
        pod["spec"] = spec;
        reasons(
            &deployment(),
            &Related { pods: &[Arc::new(pod)], replica_sets: &[replica_set(&[])], ..Related::default() },
        )
    };
    let pending = || json!({"phase": "Pending"});
    assert_eq!(
        pod(json!({"schedulerName": "gone"}), pending()),
        ["pod p: scheduler \"gone\" (spec.schedulerName) has not looked at it; does it run?"]
    );
    // The default scheduler is only slow; a scheduling gate keeps every scheduler away; one that has tried says why
    // itself.
    assert!(pod(json!({"schedulerName": "default-scheduler"}), pending()).is_empty());
    assert!(pod(json!({"schedulerName": "gone", "nodeName": "a"}), pending()).is_empty());
    assert!(pod(json!({"schedulerName": "gone", "schedulingGates": [{"name": "a"}]}), pending()).is_empty());
    assert_eq!(pod(json!({"schedulerName": "own"}), unschedulable()), ["pod p: Unschedulable"]);
}
