//! Rows for any object, for kinds without pods, and for kinds that kstatus has no rule for.

use super::Kstatus::{Current, Failed as Fails, InProgress as Waits, Terminating};
use super::State::{Failed, InProgress, Ready, Unblocked};
use super::*;

fn conditions(list: &[Value]) -> Value {
    json!({"status": {"conditions": list}})
}

#[test]
fn any_object_follows_the_general_order_of_rules() {
    let now = "2026-01-01T00:00:00Z";
    let (reconciling, stalled) = (condition("Reconciling", "True", "Working"), condition("Stalled", "True", "BadSpec"));
    // A custom resource without a wait rule blocks nothing: instead of in progress it is unblocked.
    check(
        "ex.com/v1",
        "Thing",
        &json!({}),
        vec![
            same(
                "1: being deleted",
                Terminating,
                InProgress,
                "being deleted",
                json!({"metadata": {"deletionTimestamp": now}, "status": {"observedGeneration": 1}}),
            ),
            same(
                "1: held by a finalizer",
                Terminating,
                InProgress,
                "being deleted: finalizer ex.com/a",
                json!({"metadata": {"deletionTimestamp": now, "finalizers": ["ex.com/a"]}}),
            ),
            same(
                "2: generation not observed",
                Waits,
                Unblocked,
                "generation 2 to be observed",
                json!({"status": {"observedGeneration": 1}}),
            ),
            same("2: generation of a wrong type", Current, Ready, "", json!({"status": {"observedGeneration": "2"}})),
            same("3: reconciling", Waits, Unblocked, "Working", conditions(std::slice::from_ref(&reconciling))),
            same("3: stalled", Fails, Failed, "BadSpec", conditions(std::slice::from_ref(&stalled))),
            same(
                "3: stalled before reconciling",
                Fails,
                Failed,
                "BadSpec",
                conditions(&[stalled.clone(), reconciling.clone()]),
            ),
            same("3: reconciling before stalled", Waits, Unblocked, "Working", conditions(&[reconciling, stalled])),
            same("5: ready", Current, Ready, "ready", conditions(&[condition("Ready", "True", "")])),
            same(
                "5: not ready",
                Waits,
                Unblocked,
                "Ready is False (Wait)",
                conditions(&[condition("Ready", "False", "Wait")]),
            ),
            same(
                "5: readiness unknown",
                Waits,
                Unblocked,
                "Ready is Unknown",
                conditions(&[condition("Ready", "Unknown", "")]),
            ),
            gap(
                "5: ready, as of an older generation",
                (Current, Unblocked),
                "Ready: waiting for generation 2",
                "controllers that observe per condition only",
                conditions(&[json!({"type": "Ready", "status": "True", "observedGeneration": 1})]),
            ),
            gap(
                "5: ready, but not synced",
                (Current, Unblocked),
                "Synced is False",
                "Crossplane says both",
                conditions(&[condition("Ready", "True", ""), condition("Synced", "False", "ReconcileError")]),
            ),
            same(
                "5: ready and synced",
                Current,
                Ready,
                "ready",
                conditions(&[condition("Ready", "True", ""), condition("Synced", "True", "")]),
            ),
            same("6: no conditions", Current, Ready, "ready", json!({"status": {"phase": "whatever"}})),
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
        // An Ingress gets no address if its class has no controller, which is not the app's concern.
        ("networking.k8s.io/v1", "Ingress"),
        ("rbac.authorization.k8s.io/v1", "Role"),
    ] {
        check(api_version, kind, &json!({}), vec![same("stored", Current, Ready, "ready", json!({}))]);
    }
    let late = json!({"status": {"observedGeneration": 1}});
    check(
        "policy/v1",
        "PodDisruptionBudget",
        &json!({}),
        vec![same("not observed", Waits, InProgress, "observed", late)],
    );
}

#[test]
fn service() {
    let balanced = |ingress: Value| json!({"spec": {"type": "LoadBalancer", "clusterIP": "10.0.0.1"}, "status": {"loadBalancer": {"ingress": ingress}}});
    check(
        "v1",
        "Service",
        &json!({}),
        vec![
            same("with a cluster IP", Current, Ready, "ready", json!({"spec": {"clusterIP": "10.0.0.1"}})),
            same("headless", Current, Ready, "ready", json!({"spec": {"clusterIP": "None"}})),
            same("a name outside", Current, Ready, "ready", json!({"spec": {"type": "ExternalName"}})),
            gap(
                "without a cluster IP",
                (Current, InProgress),
                "cluster IP",
                "kapp's rule",
                json!({"spec": {"type": "ClusterIP"}}),
            ),
            same(
                "load balancer without a cluster IP",
                Waits,
                InProgress,
                "cluster IP",
                json!({"spec": {"type": "LoadBalancer"}}),
            ),
            gap(
                "load balancer without an address",
                (Current, InProgress),
                "load balancer",
                "nobody reaches it",
                balanced(json!([])),
            ),
            same("load balancer with an address", Current, Ready, "ready", balanced(json!([{"ip": "1.2.3.4"}]))),
        ],
    );
}

#[test]
fn persistent_volume_claim() {
    check(
        "v1",
        "PersistentVolumeClaim",
        &json!({}),
        vec![
            same("bound", Current, Ready, "bound", json!({"status": {"phase": "Bound"}})),
            same("pending", Waits, Unblocked, "pending", json!({"status": {"phase": "Pending"}})),
            same("its volume is lost", Waits, Unblocked, "lost", json!({"status": {"phase": "Lost"}})),
            same("no phase yet", Waits, Unblocked, "pending", json!({})),
        ],
    );
}

#[test]
fn a_claim_that_waits_for_its_first_consumer_is_not_waited_for_without_one() {
    let pending = object(
        "v1",
        "PersistentVolumeClaim",
        json!({"spec": {"storageClassName": "local"}, "status": {"phase": "Pending"}}),
    );
    assert_eq!(kstatus(&pending), Waits);
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
fn custom_resource_definition() {
    let with = |names: &str, established: Value| {
        let mut object = conditions(&[condition("NamesAccepted", names, "r"), established]);
        if names == "False" {
            merge(&mut object, json!({"spec": {"names": {"plural": "foos", "shortNames": ["foo"]}}}));
            merge(&mut object, json!({"status": {"acceptedNames": {"plural": "foos"}}}));
        }
        object
    };
    check(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        &json!({}),
        vec![
            same(
                "names not accepted",
                Fails,
                Failed,
                "NamesAccepted is False",
                with("False", condition("Established", "True", "")),
            ),
            same(
                "not established",
                Fails,
                Failed,
                "NotAccepted",
                with("True", condition("Established", "False", "NotAccepted")),
            ),
            same(
                "being installed",
                Waits,
                InProgress,
                "not established",
                with("True", condition("Established", "False", "Installing")),
            ),
            same("established", Current, Ready, "established", with("True", condition("Established", "True", ""))),
            gap(
                "established, names not said",
                (Current, InProgress),
                "not established",
                "kapp's rule: both",
                conditions(&[condition("Established", "True", "")]),
            ),
            same("no conditions yet", Waits, InProgress, "not established", json!({})),
        ],
    );
}

#[test]
fn condition_of_other_names_than_those_of_the_spec_is_not_final() {
    let crd = |names: &str, spec: &[&str], accepted: &[&str]| {
        let conditions = [condition("NamesAccepted", names, "r"), condition("Established", "True", "")];
        let [spec, accepted] = [spec, accepted].map(|short| json!({"plural": "foos", "shortNames": short}));
        let status = json!({"conditions": conditions, "acceptedNames": accepted});
        let rest = json!({"spec": {"names": spec}, "status": status});
        object("apiextensions.k8s.io/v1", "CustomResourceDefinition", rest)
    };
    let just_written = Context::default();
    let later = Context { waited: OBSERVATION_WINDOW, ..just_written };
    let freeing = Context { related: Related { frees_names: true, ..Related::default() }, ..later };
    for (object, context, expected) in [
        // Refused names were replaced by those that are accepted.
        (crd("False", &["f"], &["f"]), just_written, Ready),
        (crd("False", &["f"], &[]), just_written, InProgress),
        (crd("False", &["f"], &[]), later, Failed),
        (crd("False", &["f"], &[]), freeing, InProgress),
        (crd("True", &["f"], &[]), just_written, InProgress),
        (crd("True", &["f"], &["f"]), just_written, Ready),
        (crd("True", &["f"], &[]), later, InProgress),
        (crd("True", &["f"], &[]), Context { unchanged: true, ..just_written }, Ready),
    ] {
        assert_eq!(assess(&object, &context).state, expected, "{object} {:?}", context.waited);
    }
}

#[test]
fn api_service() {
    let missing = "kstatus has no rule: current at once";
    check(
        "apiregistration.k8s.io/v1",
        "APIService",
        &json!({}),
        vec![
            same("available", Current, Ready, "available", conditions(&[condition("Available", "True", "")])),
            gap(
                "no endpoints",
                (Current, InProgress),
                "MissingEndpoints",
                missing,
                conditions(&[condition("Available", "False", "MissingEndpoints")]),
            ),
            gap("not looked at yet", (Current, InProgress), "not available", missing, json!({})),
        ],
    );
}

#[test]
fn horizontal_pod_autoscaler() {
    let able = |status: &str| condition("AbleToScale", status, "FailedGetScale");
    let active = |status: &str| condition("ScalingActive", status, "FailedGetResourceMetric");
    check(
        "autoscaling/v2",
        "HorizontalPodAutoscaler",
        &json!({}),
        vec![
            gap(
                "its target cannot be scaled",
                (Current, Unblocked),
                "FailedGetScale",
                "kstatus has no rule: current at once",
                conditions(&[able("False")]),
            ),
            same("no metrics", Current, Ready, "FailedGetResourceMetric", conditions(&[able("True"), active("False")])),
            same("scaling", Current, Ready, "ready", conditions(&[able("True"), active("True")])),
            same("nobody looks at it", Current, Ready, "ready", json!({})),
        ],
    );
}

#[test]
fn namespace() {
    check(
        "v1",
        "Namespace",
        &json!({}),
        vec![
            same("active", Current, Ready, "active", json!({"status": {"phase": "Active"}})),
            gap(
                "terminating",
                (Current, InProgress),
                "deleted",
                "nothing can be created in it",
                json!({"status": {"phase": "Terminating"}}),
            ),
        ],
    );
}

#[test]
fn gateway_api() {
    let missing = "kstatus knows `Ready` only";
    check(
        "gateway.networking.k8s.io/v1",
        "Gateway",
        &json!({}),
        vec![
            gap(
                "not programmed",
                (Current, Unblocked),
                "Pending",
                missing,
                conditions(&[condition("Programmed", "Unknown", "Pending")]),
            ),
            same("programmed", Current, Ready, "programmed", conditions(&[condition("Programmed", "True", "")])),
        ],
    );
    check(
        "gateway.networking.k8s.io/v1",
        "GatewayClass",
        &json!({}),
        vec![gap(
            "not accepted",
            (Current, Unblocked),
            "Accepted is False",
            missing,
            conditions(&[condition("Accepted", "False", "InvalidParameters")]),
        )],
    );
    let parent = |kind: &str, status: &str, generation: i64| {
        let condition =
            json!({"type": kind, "status": status, "reason": "NoMatchingParent", "observedGeneration": generation});
        json!({"status": {"parents": [{"parentRef": {"name": "gw"}, "conditions": [condition]}]}})
    };
    check(
        "gateway.networking.k8s.io/v1",
        "HTTPRoute",
        &json!({"spec": {"parentRefs": [{"name": "gw"}]}}),
        vec![
            gap(
                "not accepted by a parent",
                (Current, Unblocked),
                "gateway gw: Accepted is False",
                missing,
                parent("Accepted", "False", 2),
            ),
            gap(
                "a backend is missing",
                (Current, Unblocked),
                "gateway gw: ResolvedRefs is False",
                missing,
                parent("ResolvedRefs", "False", 2),
            ),
            gap(
                "accepted, as of an older generation",
                (Current, Unblocked),
                "observed",
                missing,
                parent("Accepted", "True", 1),
            ),
            same("accepted", Current, Ready, "accepted", parent("Accepted", "True", 2)),
            same("no gateway reports", Current, Ready, "accepted", json!({})),
        ],
    );
}

#[test]
fn controllers_with_words_of_their_own() {
    let missing = "kstatus knows `Ready` only";
    let health = |health: &str, sync: &str| json!({"status": {"health": {"status": health}, "sync": {"status": sync}}});
    check(
        "argoproj.io/v1alpha1",
        "Application",
        &json!({"spec": {"syncPolicy": {"automated": {}}}}),
        vec![
            same("healthy and synced", Current, Ready, "Healthy, Synced", health("Healthy", "Synced")),
            gap("progressing", (Current, Unblocked), "Progressing, Synced", missing, health("Progressing", "Synced")),
            gap("degraded", (Current, Unblocked), "Degraded", missing, health("Degraded", "Synced")),
            gap("out of sync", (Current, Unblocked), "OutOfSync", missing, health("Healthy", "OutOfSync")),
            same("synchronised by hand", Current, Ready, "by hand", health("Missing", "OutOfSync"))
                .with(json!({"spec": {"syncPolicy": null}})),
            same("nobody looks at it", Current, Ready, "ready", json!({})),
        ],
    );
    let phase = |phase: &str| json!({"status": {"observedGeneration": "2", "phase": phase, "message": "more replicas need to be updated"}});
    check(
        "argoproj.io/v1alpha1",
        "Rollout",
        &json!({}),
        vec![
            same("healthy", Current, Ready, "healthy", phase("Healthy")),
            same("paused", Current, Ready, "paused", phase("Paused")),
            gap("progressing", (Current, Unblocked), "progressing (more", missing, phase("Progressing")),
            gap("degraded", (Current, Failed), "degraded (more", missing, phase("Degraded")),
            gap("not observed", (Current, Unblocked), "observed", missing, phase("Healthy"))
                .with(json!({"status": {"observedGeneration": "1"}})),
        ],
    );
    // Flux sets `Ready`, and `Stalled` when it has given up.
    check(
        "kustomize.toolkit.fluxcd.io/v1",
        "Kustomization",
        &json!({}),
        vec![
            same(
                "build failed",
                Waits,
                Unblocked,
                "BuildFailed",
                conditions(&[condition("Ready", "False", "BuildFailed")]),
            ),
            same(
                "stalled",
                Fails,
                Failed,
                "InvalidSpec",
                conditions(&[condition("Ready", "False", "InvalidSpec"), condition("Stalled", "True", "InvalidSpec")]),
            ),
        ],
    );
}

#[test]
fn a_webhook_without_an_endpoint_is_waited_for_but_holds_up_nothing() {
    let value = object("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", json!({}));
    assert_eq!(kstatus(&value), Current);
    let at = |backends: &[(String, bool)]| {
        let related = Related { backends, ..Related::default() };
        assess(&value, &Context { related, ..settled() })
    };
    assert_eq!(at(&[]).state, Ready);
    assert_eq!(at(&[("shop/hook".to_owned(), true)]).state, Ready);
    let waiting = at(&[("shop/hook".to_owned(), true), ("shop/other".to_owned(), false)]);
    assert_eq!(
        (waiting.state, waiting.message.as_str()),
        (Unblocked, "no endpoint of Service shop/other is ready yet")
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
    assert_eq!(assess(&fresh, &Context { waited: OBSERVATION_WINDOW, ..just_written }).state, Ready);
    assert_eq!(assess(&fresh, &Context { unchanged: true, ..just_written }).state, Ready);
    assert_eq!(assess(&fresh, &Context { status_subresource: Some(false), ..just_written }).state, Ready);
}
