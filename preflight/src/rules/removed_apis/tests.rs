//! What RemovedAPIs says of manifests, definitions and live objects, by Kubernetes version.

use std::sync::Arc;

use pushback_objects::source::Positions;
use serde_json::{Value, json};

use super::*;
use crate::facts::{ClusterFacts, ClusterSide, Operation, TakenFrom, Verification};
use crate::judge::{RuleOutcome, RunReport};
use crate::policy::select;
use crate::session::Session;

fn change(desired: Option<Value>, live: Option<Value>) -> Change {
    let object = ObjectRef::of(desired.as_ref().or(live.as_ref()).expect("a side"));
    let operation = match (&desired, &live) {
        (Some(_), None) => Operation::Create,
        (Some(_), Some(_)) => Operation::Update,
        _ => Operation::Delete,
    };
    Change {
        object,
        resource: "things".to_owned(),
        namespaced: true,
        operation,
        desired: desired.map(Arc::new),
        live: live.map(Arc::new),
        result: None,
        verification: Verification::Server,
        positions: None,
        orphaned: false,
        taken_from: Vec::new(),
    }
}

fn object(api_version: &str, kind: &str) -> Value {
    json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "a", "namespace": "shop"}})
}

fn judge(changes: Vec<Change>, cluster: ClusterFacts, flag: Option<&[String]>) -> RunReport {
    let mut selection = select(flag, None).expect("the default set");
    selection.rules.retain(|selected| selected.rule.meta().name == NAME);
    let mut session = Session::of(selection, ChangeSet { changes, ..ChangeSet::default() }, cluster);
    assert!(session.needs().is_empty(), "it asks nothing");
    session.finish(Judgement::default(), &[], "2026-01-01").0
}

fn server(release: Release) -> ClusterFacts {
    ClusterFacts { version: Some(release), ..ClusterFacts::default() }
}

/// `check: message; remedy` of each finding.
fn says(changes: Vec<Change>, release: Release) -> Vec<String> {
    let report = judge(changes, server(release), None);
    let line =
        |finding: Finding| format!("{}: {}; {}", finding.check, finding.message, finding.remedy.unwrap_or_default());
    report.findings.into_iter().map(line).collect()
}

/// API version, kind, minor release, check (none if current), start of the remedy.
const CASES: &[(&str, &str, u32, &str, &str)] = &[
    ("apps/v1", "Deployment", 36, "", ""),
    ("apps/v1beta1", "Deployment", 7, "", ""),
    ("apps/v1beta1", "Deployment", 8, DEPRECATED, "use apps/v1"),
    ("apps/v1beta1", "StatefulSet", 16, REMOVED, "use apps/v1, which is served since 1.9; `spec.selector`"),
    ("apps/v1beta2", "DaemonSet", 15, DEPRECATED, "use apps/v1"),
    ("apps/v1beta2", "ReplicaSet", 36, REMOVED, "use apps/v1"),
    ("extensions/v1beta1", "Deployment", 16, REMOVED, "use apps/v1"),
    ("extensions/v1beta1", "NetworkPolicy", 16, REMOVED, "use networking.k8s.io/v1"),
    ("extensions/v1beta1", "Ingress", 21, DEPRECATED, "use networking.k8s.io/v1"),
    (
        "extensions/v1beta1",
        "Ingress",
        22,
        REMOVED,
        "use networking.k8s.io/v1, which is served since 1.19; `spec.backend`",
    ),
    ("networking.k8s.io/v1beta1", "Ingress", 18, "", ""),
    ("networking.k8s.io/v1beta1", "Ingress", 19, DEPRECATED, "use networking.k8s.io/v1"),
    ("networking.k8s.io/v1beta1", "IngressClass", 22, REMOVED, "use networking.k8s.io/v1"),
    ("networking.k8s.io/v1", "Ingress", 36, "", ""),
    (
        "admissionregistration.k8s.io/v1beta1",
        "ValidatingWebhookConfiguration",
        22,
        REMOVED,
        "use admissionregistration",
    ),
    ("apiextensions.k8s.io/v1beta1", "CustomResourceDefinition", 21, DEPRECATED, "use apiextensions.k8s.io/v1"),
    ("apiextensions.k8s.io/v1beta1", "CustomResourceDefinition", 22, REMOVED, "use apiextensions.k8s.io/v1"),
    ("apiregistration.k8s.io/v1beta1", "APIService", 22, REMOVED, "use apiregistration.k8s.io/v1"),
    ("certificates.k8s.io/v1beta1", "CertificateSigningRequest", 22, REMOVED, "use certificates.k8s.io/v1"),
    ("coordination.k8s.io/v1beta1", "Lease", 22, REMOVED, "use coordination.k8s.io/v1"),
    ("rbac.authorization.k8s.io/v1beta1", "ClusterRole", 17, DEPRECATED, "use rbac.authorization.k8s.io/v1"),
    ("rbac.authorization.k8s.io/v1beta1", "RoleBinding", 22, REMOVED, "use rbac.authorization.k8s.io/v1"),
    ("scheduling.k8s.io/v1beta1", "PriorityClass", 22, REMOVED, "use scheduling.k8s.io/v1"),
    ("storage.k8s.io/v1beta1", "CSIDriver", 22, REMOVED, "use storage.k8s.io/v1"),
    ("storage.k8s.io/v1beta1", "CSIStorageCapacity", 26, DEPRECATED, "use storage.k8s.io/v1"),
    ("storage.k8s.io/v1beta1", "CSIStorageCapacity", 27, REMOVED, "use storage.k8s.io/v1"),
    ("batch/v1beta1", "CronJob", 20, "", ""),
    ("batch/v1beta1", "CronJob", 24, DEPRECATED, "use batch/v1"),
    ("batch/v1beta1", "CronJob", 25, REMOVED, "use batch/v1"),
    ("discovery.k8s.io/v1beta1", "EndpointSlice", 25, REMOVED, "use discovery.k8s.io/v1"),
    ("events.k8s.io/v1beta1", "Event", 25, REMOVED, "use events.k8s.io/v1"),
    ("autoscaling/v2beta1", "HorizontalPodAutoscaler", 25, REMOVED, "use autoscaling/v2"),
    ("autoscaling/v2beta2", "HorizontalPodAutoscaler", 25, DEPRECATED, "use autoscaling/v2"),
    ("autoscaling/v2beta2", "HorizontalPodAutoscaler", 26, REMOVED, "use autoscaling/v2"),
    ("policy/v1beta1", "PodDisruptionBudget", 25, REMOVED, "use policy/v1"),
    ("policy/v1beta1", "PodSecurityPolicy", 24, DEPRECATED, "use Pod Security Admission"),
    ("policy/v1beta1", "PodSecurityPolicy", 25, REMOVED, "use Pod Security Admission"),
    ("extensions/v1beta1", "PodSecurityPolicy", 25, REMOVED, "use Pod Security Admission"),
    ("node.k8s.io/v1beta1", "RuntimeClass", 25, REMOVED, "use node.k8s.io/v1"),
    ("flowcontrol.apiserver.k8s.io/v1beta1", "FlowSchema", 36, REMOVED, "use flowcontrol.apiserver.k8s.io/v1, "),
    ("flowcontrol.apiserver.k8s.io/v1beta2", "FlowSchema", 29, REMOVED, "use flowcontrol.apiserver.k8s.io/v1beta3"),
    ("flowcontrol.apiserver.k8s.io/v1beta3", "PriorityLevelConfiguration", 31, DEPRECATED, "use flowcontrol"),
    ("admissionregistration.k8s.io/v1beta1", "ValidatingAdmissionPolicy", 34, REMOVED, "use admissionregistration"),
    ("resource.k8s.io/v1beta1", "ResourceClaim", 36, DEPRECATED, "use resource.k8s.io/v1"),
    ("resource.k8s.io/v1beta1", "ResourceClaim", 38, REMOVED, "use resource.k8s.io/v1"),
    ("v1", "Endpoints", 32, "", ""),
    ("v1", "Endpoints", 36, DEPRECATED, "use EndpointSlice of discovery.k8s.io/v1"),
    ("v1", "Service", 36, "", ""),
    // A kind of that name in another group is another kind.
    ("ex.com/v1beta1", "Ingress", 36, "", ""),
];

#[test]
fn the_kubernetes_version_decides_what_is_said_of_an_api_version() {
    for (api_version, kind, minor, check, remedy) in CASES {
        let found = says(vec![change(Some(object(api_version, kind)), None)], (1, *minor));
        if check.is_empty() {
            assert!(found.is_empty(), "{api_version} {kind} in 1.{minor}: {found:?}");
            continue;
        }
        let [line] = found.as_slice() else { panic!("{api_version} {kind} in 1.{minor}: {found:?}") };
        assert!(line.starts_with(&format!("{check}: ")), "{api_version} {kind} in 1.{minor}: {line}");
        assert!(line.contains(&format!("; {remedy}")), "{line}");
    }
}

#[test]
fn what_goes_warns_unasked_and_refuses_if_asked_and_what_is_deprecated_never_refuses() {
    let removed = || vec![change(Some(object("batch/v1beta1", "CronJob")), None)];
    let named = [NAME.to_owned()];
    let outcome = |changes, flag| judge(changes, server((1, 36)), flag).rules[0].outcome;
    assert_eq!(outcome(removed(), None), RuleOutcome::Warned);
    assert_eq!(outcome(removed(), Some(&named)), RuleOutcome::Failed);
    let deprecated = vec![change(Some(object("v1", "Endpoints")), None)];
    assert_eq!(outcome(deprecated, Some(&named)), RuleOutcome::Warned);
}

#[test]
fn the_version_asked_about_counts_and_without_a_server_the_newest_one() {
    let changes = || vec![change(Some(object("policy/v1beta1", "PodDisruptionBudget")), None)];
    let outcome = |cluster| judge(changes(), cluster, None).rules[0].outcome;
    let folder = ClusterFacts { side: ClusterSide::Directory, ..ClusterFacts::default() };
    assert_eq!(outcome(folder.clone()), RuleOutcome::Warned);
    assert_eq!(outcome(ClusterFacts { asked_version: Some((1, 20)), ..folder }), RuleOutcome::Passed);
    assert_eq!(outcome(server((1, 20))), RuleOutcome::Passed);
    assert_eq!(outcome(ClusterFacts { asked_version: Some((1, 25)), ..server((1, 20)) }), RuleOutcome::Warned);
}

#[test]
fn a_version_that_cannot_be_read_makes_the_rule_skipped_with_the_reason() {
    let named = [NAME.to_owned()];
    let report = judge(vec![], ClusterFacts::default(), Some(&named));
    assert_eq!(report.rules[0].outcome, RuleOutcome::Skipped);
    assert!(report.rules[0].skipped.as_deref().is_some_and(|reason| reason.contains("--kubernetes-version")));
}

#[test]
fn what_leaves_the_app_is_not_judged() {
    assert_eq!(says(vec![change(None, Some(object("batch/v1beta1", "CronJob")))], (1, 36)), [""; 0]);
}

fn definition(old: Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "foos.ex.com"},
        "spec": {"group": "ex.com", "names": {"kind": "Foo", "plural": "foos"}, "versions": [
            old,
            {"name": "v2", "served": true, "storage": true},
        ]},
    })
}

#[test]
fn a_definition_of_the_set_deprecates_versions_of_its_kind() {
    let of = |old: Value, written: &str| {
        let changes = vec![change(Some(definition(old)), None), change(Some(object(written, "Foo")), None)];
        says(changes, (1, 36))
    };
    let old = json!({"name": "v1", "served": true, "deprecated": true, "deprecationWarning": "v1 goes in May"});
    assert_eq!(
        of(old.clone(), "ex.com/v1"),
        ["deprecated: the definition of Foo deprecates ex.com/v1: v1 goes in May; use ex.com/v2"]
    );
    assert_eq!(of(old.clone(), "ex.com/v2"), [""; 0]);
    assert_eq!(of(old, "other.com/v1"), [""; 0]);
    assert_eq!(of(json!({"name": "v1", "served": true}), "ex.com/v1"), [""; 0]);
}

fn written(managers: &[(&str, &str)]) -> Value {
    let entries: Vec<Value> = managers
        .iter()
        .map(|(manager, version)| json!({"manager": manager, "apiVersion": version, "operation": "Update"}))
        .collect();
    let mut live = object("autoscaling/v2", "HorizontalPodAutoscaler");
    live["metadata"]["managedFields"] = json!(entries);
    live
}

#[test]
fn managers_that_write_a_live_object_in_an_old_version_are_named_once() {
    let of = |managers: &[(&str, &str)]| {
        let wanted = object("autoscaling/v2", "HorizontalPodAutoscaler");
        says(vec![change(Some(wanted), Some(written(managers)))], (1, 36))
    };
    let old = "autoscaling/v2beta2";
    let [line] = &*of(&[("scaler", old), ("scaler", old), ("tuner", old), ("kcm", "autoscaling/v2")]) else { panic!() };
    assert!(line.starts_with("writer: scaler, tuner has written it in autoscaling/v2beta2: "), "{line}");
    assert!(line.contains("have scaler, tuner updated: use autoscaling/v2"), "{line}");
    assert_eq!(of(&[("pushback", old)]), [""; 0]);
    assert_eq!(of(&[("kcm", "autoscaling/v2")]), [""; 0]);
}

#[test]
fn a_tool_that_the_app_is_taken_over_from_is_no_writer() {
    let wanted = object("autoscaling/v2", "HorizontalPodAutoscaler");
    let mut taken = change(Some(wanted), Some(written(&[("kubectl", "autoscaling/v2beta2")])));
    taken.taken_from = vec![TakenFrom { manager: "kubectl".to_owned(), predecessor: true, ..TakenFrom::default() }];
    assert_eq!(says(vec![taken], (1, 36)), [""; 0]);
}

#[test]
fn the_way_out_converts_the_file_and_runs_the_command_again() {
    let mut old = change(Some(object("batch/v1beta1", "CronJob")), None);
    old.positions = Some(Arc::new(Positions::of_file("app/jobs.yaml")));
    let report = judge(vec![old], server((1, 36)), None);
    let [remedy] = report.findings[0].remedies.as_slice() else { panic!("{:?}", report.findings[0].remedies) };
    assert_eq!(remedy.commands, ["kubectl convert -f app/jobs.yaml --output-version batch/v1", "pushback apply"]);
}
