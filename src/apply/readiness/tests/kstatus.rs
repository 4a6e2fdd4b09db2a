//! The rules of kstatus (sigs.k8s.io/cli-utils, pkg/kstatus/status), and where this module deliberately differs.

use super::State::{Failed, InProgress, Ready, Unblocked};
use super::*;

#[test]
fn any_object_follows_the_general_order_of_rules() {
    let now = "2026-01-01T00:00:00Z";
    check_rows(
        "ex.com/v1",
        "Thing",
        &json!({}),
        &[
            (
                json!({"metadata": {"deletionTimestamp": now}, "status": {"observedGeneration": 1}}),
                InProgress,
                "being deleted",
            ),
            (
                json!({"metadata": {"deletionTimestamp": now, "finalizers": ["ex.com/a"]}}),
                InProgress,
                "being deleted: finalizer ex.com/a",
            ),
            // A custom resource without a wait rule holds up nothing, so what kstatus calls in progress is unblocked.
            (json!({"status": {"observedGeneration": 1}}), Unblocked, "generation 2 to be observed, last was 1"),
            (json!({"status": {"observedGeneration": "2"}}), Ready, ""),
            (json!({"status": {"conditions": [condition("Reconciling", "True", "Working")]}}), Unblocked, "Working"),
            (json!({"status": {"conditions": [condition("Stalled", "True", "BadSpec")]}}), Failed, "BadSpec"),
            (
                json!({"status": {"conditions": [condition("Stalled", "True", "A"), condition("Reconciling", "True", "B")]}}),
                Failed,
                "A",
            ),
            (
                json!({"status": {"conditions": [condition("Reconciling", "True", "B"), condition("Stalled", "True", "A")]}}),
                Unblocked,
                "B",
            ),
            (json!({"status": {"conditions": [condition("Ready", "True", "")]}}), Ready, "ready"),
            (
                json!({"status": {"conditions": [condition("Ready", "False", "Wait")]}}),
                Unblocked,
                "Ready is False (Wait)",
            ),
            (json!({"status": {"conditions": [condition("Ready", "Unknown", "")]}}), Unblocked, "Ready is Unknown"),
            (
                json!({"status": {"conditions": [condition("Ready", "True", ""), condition("Synced", "False", "ReconcileError")]}}),
                Unblocked,
                "Synced is False",
            ),
            // kstatus does not look at the generation of a condition.
            (
                json!({"status": {"conditions": [{"type": "Ready", "status": "True", "observedGeneration": 1}]}}),
                Unblocked,
                "Ready: waiting for generation 2",
            ),
            (json!({"status": {"phase": "whatever"}}), Ready, "ready"),
        ],
    );
}

#[test]
fn kinds_that_are_ready_once_stored() {
    for (api_version, kind) in [
        ("v1", "ConfigMap"),
        ("v1", "Secret"),
        ("batch/v1", "CronJob"),
        ("policy/v1", "PodDisruptionBudget"),
        ("networking.k8s.io/v1", "Ingress"),
        ("rbac.authorization.k8s.io/v1", "Role"),
    ] {
        check_rows(api_version, kind, &json!({}), &[(json!({}), Ready, "ready")]);
    }
    let late = json!({"status": {"observedGeneration": 1}});
    check_rows("policy/v1", "PodDisruptionBudget", &json!({}), &[(late, InProgress, "observed")]);
}

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
    check_rows(
        "apps/v1",
        "Deployment",
        &base,
        &[
            (json!({}), Ready, "4/4 ready"),
            (json!({"status": {"observedGeneration": 1}}), InProgress, "observed"),
            // kstatus makes no decision without an observed generation.
            (json!({"status": {"observedGeneration": null}}), InProgress, "observed"),
            (
                json!({"status": {"conditions": conditions(condition("Progressing", "False", "ProgressDeadlineExceeded"), "True")}}),
                Failed,
                "ProgressDeadlineExceeded",
            ),
            (json!({"status": {"replicas": 2}}), InProgress, "2/4 created"),
            (json!({"status": {"updatedReplicas": 3}}), InProgress, "3/4 updated"),
            (json!({"status": {"replicas": 5}}), InProgress, "1 old pod to end"),
            (json!({"status": {"availableReplicas": 1}}), InProgress, "1/4 available"),
            (json!({"status": {"readyReplicas": 2}}), InProgress, "2/4 ready"),
            (json!({"status": {"readyReplicas": "4"}}), InProgress, "0/4 ready"),
            (
                json!({"status": {"conditions": conditions(condition("Progressing", "True", "ReplicaSetUpdated"), "True")}}),
                InProgress,
                "new ReplicaSet",
            ),
            (
                json!({"spec": {"progressDeadlineSeconds": i32::MAX}, "status": {"conditions": [condition("Available", "True", "")]}}),
                Ready,
                "4/4",
            ),
            (json!({"status": {"conditions": conditions(done.clone(), "False")}}), InProgress, "not available"),
            (json!({"spec": {"replicas": null}}), InProgress, "3 old pods to end"),
            (
                json!({"spec": {"replicas": 0}, "status": {"replicas": 0, "updatedReplicas": 0, "availableReplicas": 0, "readyReplicas": 0}}),
                Ready,
                "0/0",
            ),
            // kstatus waits for ever for a paused one.
            (json!({"spec": {"paused": true}, "status": {"updatedReplicas": 0}}), Ready, "paused"),
        ],
    );
}

#[test]
fn replica_set() {
    let base = json!({
        "spec": {"replicas": 2},
        "status": {"observedGeneration": 2, "replicas": 2, "fullyLabeledReplicas": 2, "availableReplicas": 2, "readyReplicas": 2}
    });
    check_rows(
        "apps/v1",
        "ReplicaSet",
        &base,
        &[
            (json!({}), Ready, "2/2 ready"),
            (
                json!({"status": {"conditions": [condition("ReplicaFailure", "True", "FailedCreate")]}}),
                InProgress,
                "FailedCreate",
            ),
            (json!({"status": {"fullyLabeledReplicas": 1}}), InProgress, "1/2 labelled"),
            (json!({"status": {"availableReplicas": 1}}), InProgress, "1/2 available"),
            (json!({"status": {"readyReplicas": 1}}), InProgress, "1/2 ready"),
            (json!({"status": {"replicas": 3}}), InProgress, "1 old pod to end"),
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
    let on_delete = json!({"spec": {"updateStrategy": {"type": "OnDelete"}}, "status": {"updatedReplicas": 0, "currentRevision": "a"}});
    let mut on_delete_broken = on_delete.clone();
    merge(&mut on_delete_broken, json!({"status": {"readyReplicas": 2}}));
    let partition = |updated: i64| json!({"spec": {"updateStrategy": {"rollingUpdate": {"partition": 1}}}, "status": {"updatedReplicas": updated, "currentRevision": "a"}});
    check_rows(
        "apps/v1",
        "StatefulSet",
        &base,
        &[
            (json!({}), Ready, "3/3 ready"),
            (on_delete, Ready, "updated when they are deleted"),
            // kstatus calls it current whatever the pods do.
            (on_delete_broken, InProgress, "2/3 ready"),
            (json!({"status": {"replicas": 2}}), InProgress, "2/3 created"),
            (json!({"status": {"readyReplicas": 1}}), InProgress, "1/3 ready"),
            (json!({"status": {"replicas": 4}}), InProgress, "1 old pod to end"),
            (partition(1), InProgress, "1/2 updated"),
            (partition(2), Ready, "2 updated by the partition"),
            (json!({"status": {"currentReplicas": 1}}), InProgress, "1/3 of the current revision"),
            (json!({"status": {"currentRevision": "a"}}), InProgress, "update revision"),
            (json!({"spec": {"minReadySeconds": 10}, "status": {"availableReplicas": 1}}), InProgress, "1/3 available"),
        ],
    );
}

#[test]
fn daemon_set() {
    let base = json!({"status": {
        "observedGeneration": 2, "desiredNumberScheduled": 3, "currentNumberScheduled": 3, "updatedNumberScheduled": 3,
        "numberAvailable": 3, "numberReady": 3
    }});
    check_rows(
        "apps/v1",
        "DaemonSet",
        &base,
        &[
            (json!({}), Ready, "3/3 ready"),
            (json!({"metadata": {"generation": null}}), InProgress, "observed"),
            (json!({"status": {"observedGeneration": null}}), InProgress, "observed"),
            (json!({"status": {"desiredNumberScheduled": null}}), InProgress, "no count"),
            (json!({"status": {"currentNumberScheduled": 2}}), InProgress, "2/3 scheduled"),
            (json!({"status": {"updatedNumberScheduled": 1}}), InProgress, "1/3 updated"),
            (json!({"status": {"numberAvailable": 2}}), InProgress, "2/3 available"),
            (json!({"status": {"numberReady": 0}}), InProgress, "0/3 ready"),
            // kstatus would wait for the user to delete the pods.
            (
                json!({"spec": {"updateStrategy": {"type": "OnDelete"}}, "status": {"updatedNumberScheduled": 0}}),
                Ready,
                "3/3",
            ),
        ],
    );
}

#[test]
fn pod() {
    let crash_loop = json!([{"name": "c", "ready": false, "state": {"waiting": {"reason": "CrashLoopBackOff"}}}]);
    check_rows(
        "v1",
        "Pod",
        &json!({}),
        &[
            (json!({"status": {"phase": "Succeeded"}}), Ready, "succeeded"),
            // kstatus calls a failed pod current.
            (
                json!({"status": {"phase": "Failed", "reason": "Evicted", "message": "low on memory"}}),
                Failed,
                "Evicted: low on memory",
            ),
            (json!({"status": {"phase": "Running", "conditions": [condition("Ready", "True", "")]}}), Ready, "ready"),
            // kstatus fails at once; what crashes may come up when its database does.
            (
                json!({"status": {"phase": "Running", "containerStatuses": crash_loop}}),
                InProgress,
                "0/1 containers ready",
            ),
            (json!({"status": {"phase": "Running"}}), InProgress, "containers ready"),
            (
                json!({"status": {"phase": "Pending", "conditions": [condition("PodScheduled", "False", "Unschedulable")]}}),
                InProgress,
                "Unschedulable",
            ),
            (json!({"status": {"phase": "Pending"}}), InProgress, "pending"),
            (json!({}), InProgress, "no phase"),
            (json!({"status": {"phase": "Odd"}}), InProgress, "Odd"),
        ],
    );
}

#[test]
fn job() {
    let with = |conditions: Value| json!({"status": {"startTime": "2026-01-01T00:00:00Z", "conditions": conditions}});
    let suspended = json!({"spec": {"suspend": true}, "status": {"conditions": [condition("Suspended", "True", "")]}});
    check_rows(
        "batch/v1",
        "Job",
        &json!({"spec": {"completions": 2}}),
        &[
            (with(json!([condition("Complete", "True", "")])), Ready, "complete"),
            (with(json!([condition("Failed", "True", "BackoffLimitExceeded")])), Failed, "BackoffLimitExceeded"),
            (with(json!([condition("FailureTarget", "True", "PodFailurePolicy")])), Failed, "PodFailurePolicy"),
            (suspended, Ready, "suspended"),
            (json!({}), InProgress, "not started"),
            // kstatus calls a running Job current.
            (with(json!([])), InProgress, "0/2 succeeded"),
            (with(json!([condition("SuccessCriteriaMet", "True", "")])), InProgress, "success criteria met"),
        ],
    );
}

#[test]
fn custom_resource_definition() {
    let with = |names: &str, established: Value| json!({"status": {"conditions": [condition("NamesAccepted", names, "r"), established]}});
    check_rows(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        &json!({}),
        &[
            (with("False", condition("Established", "True", "")), Failed, "NamesAccepted is False"),
            (with("True", condition("Established", "False", "NotAccepted")), Failed, "NotAccepted"),
            (with("True", condition("Established", "False", "Installing")), InProgress, "not established"),
            (with("True", condition("Established", "True", "")), Ready, "established"),
            (json!({}), InProgress, "not established"),
        ],
    );
}

#[test]
fn claims_bind_or_wait_for_their_consumer() {
    let claim = |rest: Value| object("v1", "PersistentVolumeClaim", rest);
    let pending = claim(json!({"spec": {"storageClassName": "local"}, "status": {"phase": "Pending"}}));
    assert_eq!(assess(&claim(json!({"status": {"phase": "Bound"}})), &settled()).state, Ready);
    assert_eq!(assess(&pending, &settled()).state, Unblocked);
    let class = [Arc::new(json!({"metadata": {"name": "local"}, "volumeBindingMode": "WaitForFirstConsumer"}))];
    let mut context = settled();
    context.related.storage_classes = &class;
    assert_eq!(assess(&pending, &context).state, Ready);
    let consumer = [Arc::new(object(
        "v1",
        "Pod",
        json!({"spec": {"volumes": [{"persistentVolumeClaim": {"claimName": "web"}}]}}),
    ))];
    context.related.pods = &consumer;
    assert_eq!(assess(&pending, &context).state, Unblocked);
    let event = [Arc::new(json!({"reason": "WaitForFirstConsumer", "type": "Normal", "involvedObject": {"uid": "u"}}))];
    let mut context = settled();
    context.related.events = &event;
    assert_eq!(assess(&pending, &context).state, Ready);
    let mut selected = pending.clone();
    merge(&mut selected, json!({"metadata": {"annotations": {"volume.kubernetes.io/selected-node": "n"}}}));
    assert_eq!(assess(&selected, &context).state, Unblocked);
}

#[test]
fn kinds_that_kstatus_has_no_rule_for() {
    check_rows(
        "autoscaling/v2",
        "HorizontalPodAutoscaler",
        &json!({}),
        &[
            (
                json!({"status": {"conditions": [condition("AbleToScale", "False", "FailedGetScale")]}}),
                Unblocked,
                "FailedGetScale",
            ),
            (
                json!({"status": {"conditions": [condition("AbleToScale", "True", ""), condition("ScalingActive", "False", "FailedGetResourceMetric")]}}),
                Ready,
                "FailedGetResourceMetric",
            ),
            (json!({}), Ready, "ready"),
        ],
    );
    check_rows(
        "v1",
        "Namespace",
        &json!({}),
        &[
            (json!({"status": {"phase": "Active"}}), Ready, "active"),
            (json!({"status": {"phase": "Terminating"}}), InProgress, "deleted"),
        ],
    );
    check_rows(
        "gateway.networking.k8s.io/v1",
        "Gateway",
        &json!({}),
        &[
            (json!({"status": {"conditions": [condition("Programmed", "Unknown", "Pending")]}}), Unblocked, "Pending"),
            (json!({"status": {"conditions": [condition("Programmed", "True", "")]}}), Ready, "programmed"),
        ],
    );
    let parent = |status: &str, generation: i64| {
        let accepted = json!({"type": "Accepted", "status": status, "reason": "NoMatchingParent", "observedGeneration": generation});
        json!({"status": {"parents": [{"parentRef": {"name": "gw"}, "conditions": [accepted]}]}})
    };
    check_rows(
        "gateway.networking.k8s.io/v1",
        "HTTPRoute",
        &json!({"spec": {"parentRefs": [{"name": "gw"}]}}),
        &[
            (parent("False", 2), Unblocked, "gateway gw: Accepted is False"),
            (parent("True", 1), Unblocked, "observed"),
            (parent("True", 2), Ready, "accepted"),
        ],
    );
}

#[test]
fn a_status_from_before_our_write_is_not_believed() {
    let ready = object(
        "ex.com/v1",
        "Thing",
        json!({"status": {"observedGeneration": 2, "conditions": [condition("Ready", "True", "")]}}),
    );
    assert_eq!(assess(&ready, &Context { minimum_generation: 2, ..settled() }).state, Ready);
    assert_eq!(assess(&ready, &Context { minimum_generation: 3, ..settled() }).state, InProgress);
    let fresh = object("ex.com/v1", "Thing", json!({}));
    let just_written = Context { status_subresource: Some(true), ..Context::default() };
    assert_eq!(assess(&fresh, &just_written).state, Unblocked);
    assert_eq!(assess(&fresh, &Context { since_write: OBSERVATION_WINDOW, ..just_written }).state, Ready);
    assert_eq!(assess(&fresh, &Context { status_subresource: Some(false), ..just_written }).state, Ready);
}

#[test]
fn a_deadline_that_passed_before_the_write_is_not_a_failure_of_it() {
    let late = condition("Progressing", "False", "ProgressDeadlineExceeded");
    let value = object("apps/v1", "Deployment", json!({"status": {"observedGeneration": 2, "conditions": [late]}}));
    assert_eq!(assess(&value, &Context::default()).state, InProgress);
    assert_eq!(assess(&value, &settled()).state, Failed);
}
