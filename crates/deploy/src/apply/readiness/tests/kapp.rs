//! The waiters of kapp, its annotation for partial rollouts, and wait rules.

use pushback_manifest::config::{ConditionMatcher, WaitRule};

use super::State::{Failed, InProgress, Ready, Unblocked};
use super::*;

fn with_conditions(conditions: &[Value]) -> Value {
    json!({"status": {"observedGeneration": 2, "conditions": conditions}})
}

#[test]
fn kapp_controller_kinds() {
    for (api_version, kind) in [
        ("kappctrl.k14s.io/v1alpha1", "App"),
        ("packaging.carvel.dev/v1alpha1", "PackageInstall"),
        ("packaging.carvel.dev/v1alpha1", "PackageRepository"),
    ] {
        let mut failed = with_conditions(&[condition("ReconcileFailed", "True", "")]);
        merge(&mut failed, json!({"status": {"usefulErrorMessage": "kapp: Error: no"}}));
        check_rows(
            api_version,
            kind,
            &json!({}),
            &[
                (with_conditions(&[condition("ReconcileSucceeded", "True", "")]), Ready, "reconciled"),
                (
                    json!({"status": {"observedGeneration": 1, "conditions": [condition("ReconcileSucceeded", "True", "")]}}),
                    InProgress,
                    "observed",
                ),
                (json!({}), InProgress, "observed"),
                (failed, Failed, "kapp: Error: no"),
                (with_conditions(&[condition("DeleteFailed", "True", "why")]), Failed, "DeleteFailed: why"),
                (with_conditions(&[condition("Reconciling", "True", "")]), InProgress, "reconciling"),
                (with_conditions(&[condition("Deleting", "True", "")]), InProgress, "deleting"),
                (with_conditions(&[]), InProgress, "not reconciled"),
            ],
        );
    }
}

#[test]
fn custom_resource_definitions_and_api_services() {
    check_rows(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        &json!({}),
        &[
            (
                with_conditions(&[condition("Established", "True", ""), condition("NamesAccepted", "True", "")]),
                Ready,
                "established",
            ),
            (with_conditions(&[condition("Established", "True", "")]), InProgress, "not established"),
        ],
    );
    check_rows(
        "apiregistration.k8s.io/v1",
        "APIService",
        &json!({}),
        &[
            (with_conditions(&[condition("Available", "True", "")]), Ready, "available"),
            (with_conditions(&[condition("Available", "False", "MissingEndpoints")]), InProgress, "MissingEndpoints"),
            (json!({}), InProgress, "not available"),
        ],
    );
}

#[test]
fn pods_and_services() {
    let conditions = ["Initialized", "Ready", "PodScheduled"].map(|kind| condition(kind, "True", ""));
    let waiting = json!([{"name": "c", "state": {"waiting": {"reason": "ErrImagePull"}}}]);
    check_rows(
        "v1",
        "Pod",
        &json!({}),
        &[
            (json!({"status": {"phase": "Succeeded"}}), Ready, ""),
            (json!({"status": {"phase": "Running", "conditions": conditions}}), Ready, ""),
            (json!({"status": {"phase": "Failed"}}), Failed, "failed"),
            // kapp fails here, although the node may come back.
            (json!({"status": {"phase": "Unknown"}}), InProgress, "node"),
            (
                json!({"status": {"phase": "Pending", "containerStatuses": waiting}}),
                InProgress,
                "pending: ErrImagePull",
            ),
        ],
    );
    check_rows(
        "v1",
        "Service",
        &json!({}),
        &[
            (json!({"spec": {"type": "ExternalName"}}), Ready, ""),
            (json!({"spec": {"type": "ClusterIP"}}), InProgress, "cluster IP"),
            (json!({"spec": {"clusterIP": "None"}}), Ready, ""),
            (json!({"spec": {"type": "LoadBalancer", "clusterIP": "10.0.0.1"}}), InProgress, "load balancer"),
            (
                json!({"spec": {"type": "LoadBalancer", "clusterIP": "10.0.0.1"}, "status": {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}}}),
                Ready,
                "",
            ),
        ],
    );
}

#[test]
fn workloads() {
    let deployment = json!({
        "spec": {"replicas": 1, "progressDeadlineSeconds": 600},
        "status": {"observedGeneration": 2, "replicas": 1, "updatedReplicas": 1, "availableReplicas": 1, "readyReplicas": 1,
            "conditions": [condition("Progressing", "True", "NewReplicaSetAvailable"), condition("Available", "True", "")]}
    });
    check_rows(
        "apps/v1",
        "Deployment",
        &deployment,
        &[
            (json!({}), Ready, ""),
            (json!({"status": {"unavailableReplicas": 1}}), InProgress, "1 unavailable"),
            (json!({"status": {"readyReplicas": 0}}), InProgress, "0/1 ready"),
            (
                json!({"status": {"conditions": [condition("Progressing", "False", "ReplicaSetCreateError")]}}),
                Failed,
                "ReplicaSetCreateError",
            ),
            (
                json!({"status": {"readyReplicas": 0, "conditions": [condition("ReplicaFailure", "True", "FailedCreate")]}}),
                InProgress,
                "0/1 ready",
            ),
        ],
    );
    let daemon_set = json!({"status": {"observedGeneration": 2, "desiredNumberScheduled": 2, "currentNumberScheduled": 2,
        "updatedNumberScheduled": 2, "numberAvailable": 2, "numberReady": 2}});
    check_rows(
        "apps/v1",
        "DaemonSet",
        &daemon_set,
        &[(json!({}), Ready, ""), (json!({"status": {"numberUnavailable": 1}}), InProgress, "1 unavailable")],
    );
    check_rows("batch/v1", "CronJob", &json!({}), &[(json!({}), Ready, "")]);
    check_rows(
        "batch/v1",
        "Job",
        &json!({"status": {"startTime": "2026-01-01T00:00:00Z"}}),
        &[
            (json!({"status": {"conditions": [condition("Complete", "True", "")]}}), Ready, ""),
            (
                json!({"status": {"conditions": [{"type": "Failed", "status": "True", "reason": "DeadlineExceeded", "message": "too long"}]}}),
                Failed,
                "DeadlineExceeded: too long",
            ),
            (
                json!({"status": {"active": 1, "failed": 2, "succeeded": 3}}),
                InProgress,
                "3/1 succeeded, 1 active, 2 failed",
            ),
        ],
    );
}

#[test]
fn enough_replicas_of_the_newest_replica_set_are_enough() {
    let annotated = |minimum: &str| {
        object(
            "apps/v1",
            "Deployment",
            json!({
                "metadata": {"annotations": {
                    "kapp.k14s.io/apps-v1-deployment-wait-minimum-replicas-available": minimum,
                    "deployment.kubernetes.io/revision": "2"
                }},
                "spec": {"replicas": 20}, "status": {"observedGeneration": 2}
            }),
        )
    };
    let replica_set = |revision: &str, available: i64| {
        Arc::new(json!({
            "metadata": {"uid": revision, "ownerReferences": [{"uid": "u"}], "annotations": {"deployment.kubernetes.io/revision": revision}},
            "status": {"availableReplicas": available}
        }))
    };
    let replica_sets = [replica_set("1", 20), replica_set("2", 2), replica_set("10", 0)];
    let mut context = settled();
    context.related.replica_sets = &replica_sets;
    for (minimum, state) in [
        ("2", Ready),
        ("3", InProgress),
        ("10%", Ready),
        ("11%", InProgress),
        ("0", Ready),
        ("50", InProgress),
        ("half", Failed),
    ] {
        assert_eq!(assess(&annotated(minimum), &context).state, state, "{minimum}");
    }
    assert_eq!(assess(&annotated("1"), &settled()).state, InProgress);
}

fn matcher(kind: &str, status: &str) -> ConditionMatcher {
    ConditionMatcher {
        type_: kind.to_owned(),
        status: status.to_owned(),
        failure: false,
        success: false,
        unblock_changes: false,
        supports_observed_generation: false,
        timeout: None,
    }
}

fn rule(condition_matchers: Vec<ConditionMatcher>) -> WaitRule {
    WaitRule { supports_observed_generation: false, cel: None, condition_matchers, matchers: Vec::new() }
}

fn thing(conditions: &[Value]) -> Value {
    object("ex.com/v1", "Thing", json!({"status": {"conditions": conditions}}))
}

#[test]
fn a_wait_rule_decides_alone_and_looks_at_failures_first() {
    let rule = rule(vec![
        ConditionMatcher { success: true, ..matcher("Ready", "True") },
        ConditionMatcher { failure: true, ..matcher("Broken", "True") },
        ConditionMatcher { unblock_changes: true, ..matcher("Started", "True") },
    ]);
    let context = Context { wait_rule: Some(&rule), ..settled() };
    let (ready, broken, started) =
        (condition("Ready", "True", ""), condition("Broken", "True", "x"), condition("Started", "True", ""));
    for (conditions, state) in [
        (vec![ready.clone()], Ready),
        (vec![ready.clone(), broken], Failed),
        (vec![started.clone()], Unblocked),
        (vec![started, ready], Ready),
        // Without the rule it would be unblocked.
        (vec![condition("Ready", "False", "")], InProgress),
        (vec![condition("Stalled", "True", "")], InProgress),
        (vec![], InProgress),
    ] {
        assert_eq!(assess(&thing(&conditions), &context).state, state, "{conditions:?}");
    }
    assert_eq!(assess(&thing(&[]), &context).message, "no failing or successful conditions found");
}

#[test]
fn a_wait_rule_can_require_the_current_generation() {
    let ready = json!({"type": "Ready", "status": "True", "observedGeneration": 1});
    let success = ConditionMatcher { success: true, ..matcher("Ready", "True") };
    let of_object = WaitRule { supports_observed_generation: true, ..rule(vec![success.clone()]) };
    let of_condition = rule(vec![ConditionMatcher { supports_observed_generation: true, ..success }]);
    let stale = object("ex.com/v1", "Thing", json!({"status": {"observedGeneration": 1, "conditions": [ready]}}));
    let mut current = stale.clone();
    merge(
        &mut current,
        json!({"status": {"observedGeneration": 2, "conditions": [{"type": "Ready", "status": "True", "observedGeneration": 2}]}}),
    );
    for rule in [&of_object, &of_condition] {
        let context = Context { wait_rule: Some(rule), ..settled() };
        assert_eq!(assess(&stale, &context).state, InProgress);
        assert_eq!(assess(&current, &context).state, Ready);
    }
}

#[test]
fn a_failure_with_a_timeout_must_hold_without_a_break() {
    let failing =
        ConditionMatcher { failure: true, timeout: Some(Duration::from_secs(10)), ..matcher("Ready", "False") };
    let rule = rule(vec![failing, ConditionMatcher { success: true, ..matcher("Ready", "True") }]);
    let (bad, unknown) =
        (thing(&[condition("Ready", "False", "NoImage")]), thing(&[condition("Ready", "Unknown", "")]));
    let mut ages = ConditionAges::default();
    let mut states = Vec::new();
    for (second, value) in [(0, &bad), (9, &bad), (10, &unknown), (11, &bad), (20, &bad), (21, &bad)] {
        let waited = Duration::from_secs(second);
        ages.observe(value, &rule, waited);
        let context = Context { wait_rule: Some(&rule), condition_ages: Some(&ages), waited, ..Context::default() };
        states.push(assess(value, &context).state);
    }
    assert_eq!(states, [InProgress, InProgress, InProgress, InProgress, InProgress, Failed]);
    let context = Context { wait_rule: Some(&rule), waited: Duration::from_secs(10), ..Context::default() };
    assert_eq!(assess(&bad, &context).message, "Ready is False (NoImage) for 10 s");
}

#[test]
fn a_time_limit_holds_for_a_condition_that_is_no_failure_by_itself() {
    let limited =
        ConditionMatcher { unblock_changes: true, timeout: Some(Duration::from_secs(10)), ..matcher("Moving", "True") };
    let rule = rule(vec![limited, ConditionMatcher { success: true, ..matcher("Ready", "True") }]);
    let moving = thing(&[condition("Moving", "True", "Copying")]);
    let at = |second| {
        let waited = Duration::from_secs(second);
        assess(&moving, &Context { wait_rule: Some(&rule), waited, ..Context::default() })
    };
    assert_eq!(at(9).state, Unblocked);
    assert_eq!((at(10).state, at(10).message.as_str()), (Failed, "Moving is True (Copying) for 10 s"));
}
