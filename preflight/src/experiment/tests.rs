//! One case for each rule of the validator; valid experiments survive reading and writing unchanged.

use pushback_objects::finding::Severity;
use serde_json::{Value, json};

use super::*;

/// A valid experiment with this injection.
fn experiment(kind: &str, danger: &str, parameters: Value) -> Value {
    let is_high = danger == "high";
    let mut blast = json!({"maxPodsAffected": 1});
    let cluster = kind == "WebhookDisrupt" || parameters["bindingType"] == "ClusterRoleBinding";
    if !cluster {
        blast["allowedNamespaces"] = json!(["shop"]);
    }
    if is_high {
        blast["allowDangerous"] = json!(true);
    }
    json!({
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": "an-experiment", "namespace": "shop"},
        "spec": {
            "tier": 1,
            "target": {"operator": "shop-operator", "component": "web"},
            "injection": {"type": kind, "dangerLevel": danger, "parameters": parameters},
            "hypothesis": {"description": "web recovers", "recoveryTimeout": "300s"},
            "blastRadius": blast,
        },
    })
}

fn pod_kill() -> Value {
    experiment("PodKill", "low", json!({"labelSelector": "app=web"}))
}

/// The experiment with the value at a pointer replaced; null removes it.
fn with(mut document: Value, pointer: &str, value: Value) -> Value {
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    let map = document.pointer_mut(parent).unwrap().as_object_mut().unwrap();
    if value.is_null() {
        map.remove(key);
    } else {
        map.insert(key.to_owned(), value);
    }
    document
}

fn shown(document: &Value) -> Vec<String> {
    let word = |severity| if severity == Severity::Error { "error" } else { "warning" };
    validate(document).iter().map(|problem| format!("{} {} {problem}", word(problem.severity), problem.rule)).collect()
}

#[test]
fn every_type_has_a_valid_form() {
    let object = json!({"apiVersion": "example.com/v1", "kind": "Widget", "name": "one"});
    let merged = |more: Value| {
        let mut map = object.clone();
        map.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        map
    };
    let table = [
        ("PodKill", "low", json!({"labelSelector": "app=web,tier in (a,b)"})),
        ("NetworkPartition", "medium", json!({"labelSelector": "app=web,tier==a"})),
        ("ConfigDrift", "medium", json!({"name": "settings", "key": "a.b", "value": ""})),
        ("ConfigDrift", "high", json!({"name": "settings", "key": "a", "value": "x", "resourceType": "Secret"})),
        ("CRDMutation", "medium", merged(json!({"field": "size", "value": "3"}))),
        ("CRDMutation", "high", merged(json!({"path": "spec.template.replicas", "value": "{\"a\": 1}"}))),
        ("FinalizerBlock", "medium", merged(json!({"finalizer": "example.com/block"}))),
        ("OwnerRefOrphan", "medium", object.clone()),
        (
            "LabelStomping",
            "medium",
            merged(json!({"labelKey": "example.com/tier", "action": "overwrite", "newValue": "x"})),
        ),
        (
            "ClientFault",
            "medium",
            json!({"faults": "{\"get\": {\"errorRate\": 0.5, \"error\": \"no\", \"delay\": \"1s\"}}"}),
        ),
        (
            "WebhookDisrupt",
            "high",
            json!({"webhookName": "Shop-Webhooks.v1", "action": "setFailurePolicy", "webhookType": "mutating", "value": "Ignore"}),
        ),
        ("RBACRevoke", "high", json!({"bindingName": "shop", "bindingType": "ClusterRoleBinding"})),
        ("RBACRevoke", "medium", json!({"bindingName": "shop", "bindingType": "RoleBinding"})),
        ("WebhookLatency", "high", json!({"resources": "deployments", "apiGroups": "apps", "delay": "5s"})),
        ("QuotaExhaustion", "medium", json!({"quotaName": "none", "pods": "0"})),
        ("NamespaceDeletion", "high", json!({"namespace": "shop"})),
        ("SecretDeletion", "high", json!({"name": "cert"})),
        ("ResourceDeletion", "high", object.clone()),
        ("LeaderElectionDisrupt", "high", json!({"name": "leader"})),
        ("DeploymentScaleZero", "high", json!({"name": "web"})),
        ("CrashLoopInject", "high", json!({"name": "web", "containerName": "main"})),
        ("ImageCorrupt", "high", json!({"name": "web"})),
        ("PDBBlock", "high", json!({"labelSelector": "app=web"})),
    ];
    let mut seen = std::collections::BTreeSet::new();
    for (kind, danger, parameters) in table {
        let document = experiment(kind, danger, parameters);
        let newer = InjectionType::of(kind).is_some_and(|kind| !kind.is_in_shipped_definition());
        let expected: Vec<String> = newer
            .then(|| {
                format!(
                    "warning shipped-definition spec.injection.type: the published definition does not know {kind}: an API server that uses it rejects this"
                )
            })
            .into_iter()
            .collect();
        assert_eq!(shown(&document), expected, "{kind}");
        let read = Experiment::read(&document).unwrap();
        assert_eq!(Experiment::read(&read.to_value()).unwrap(), read, "{kind}");
        seen.insert(kind);
    }
    assert_eq!(seen.len(), InjectionType::ALL.len());
}

#[test]
fn every_demand_is_made() {
    let crd = |danger: &str, more: Value| {
        let mut parameters = json!({"apiVersion": "example.com/v1", "kind": "Widget", "name": "one", "value": "1"});
        parameters.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        experiment("CRDMutation", danger, parameters)
    };
    let drift = |name: &str| experiment("ConfigDrift", "medium", json!({"name": name, "key": "a", "value": "b"}));
    let stomp = |key: &str, action: &str| {
        let parameters = json!({"apiVersion": "v1", "kind": "Service", "name": "web", "labelKey": key, "action": action, "newValue": "x"});
        experiment("LabelStomping", "medium", parameters)
    };
    let check = |check: Value| with(pod_kill(), "/spec/steadyState", json!({"checks": [check]}));
    let webhook = |parameters: Value| experiment("WebhookDisrupt", "high", parameters);
    let table: Vec<(Value, &[&str])> = vec![
        (json!([]), &["error wrong-type expected a map, found a list"]),
        (
            with(pod_kill(), "/kind", json!("Experiment")),
            &["error kind kind: expected ChaosExperiment, found \"Experiment\""],
        ),
        (with(pod_kill(), "/apiVersion", Value::Null), &["error required apiVersion: is missing"]),
        (
            with(pod_kill(), "/spec/hypotesis", json!({})),
            &["error unknown-field spec.hypotesis: unknown field; did you mean \"hypothesis\"?"],
        ),
        (
            with(pod_kill(), "/spec/blastRadius", Value::Null),
            &[
                "error required spec.blastRadius: is missing",
                "error namespace-scope spec.blastRadius.allowedNamespaces: PodKill needs the namespace that it may touch",
            ],
        ),
        (
            with(pod_kill(), "/spec/tier", json!("1")),
            &["error wrong-type spec.tier: expected a whole number, found a string"],
        ),
        (with(pod_kill(), "/spec/tier", json!(1.5)), &["error wrong-type spec.tier: expected a whole number"]),
        (with(pod_kill(), "/spec/tier", json!(7)), &["error tier spec.tier: must be from 1 to 6, found 7"]),
        (
            with(pod_kill(), "/metadata/name", json!("An_Experiment")),
            &[
                "error name metadata.name: \"An_Experiment\" is not a valid object name: small letters, digits, `-` and `.`, at most 253",
            ],
        ),
        (
            with(pod_kill(), "/metadata/labels", json!({"a b": "x", "c": "-"})),
            &[
                "error labels metadata.labels[\"a b\"]: \"a b\" is not a valid label or annotation key",
                "error labels metadata.labels.c: \"-\" is not a valid label value",
            ],
        ),
        (
            with(pod_kill(), "/spec/target/component", json!("Web App")),
            &[
                "error target spec.target.component: \"Web App\" is not accepted as a name: small letters, digits, `-` and `.`, at most 253",
            ],
        ),
        (
            with(pod_kill(), "/spec/hypothesis/description", json!(" ")),
            &["error hypothesis spec.hypothesis.description: say what is expected to happen"],
        ),
        (
            with(pod_kill(), "/spec/hypothesis/recoveryTimeout", json!("2h")),
            &[
                "error recovery-timeout spec.hypothesis.recoveryTimeout: 2h is longer than an hour, the most that is allowed",
            ],
        ),
        (
            with(pod_kill(), "/spec/injection/ttl", json!("-5s")),
            &["error ttl spec.injection.ttl: \"-5s\" is not a valid duration; write `90s` or `5m`"],
        ),
        (
            with(pod_kill(), "/spec/injection/count", json!(2)),
            &["error count spec.injection.count: 2 targets are more than blastRadius.maxPodsAffected, which is 1"],
        ),
        (
            with(pod_kill(), "/spec/injection/count", json!(0)),
            &["error count spec.injection.count: must be from 1 to 100, found 0"],
        ),
        (
            with(pod_kill(), "/spec/blastRadius/maxPodsAffected", json!(0)),
            &["error max-pods spec.blastRadius.maxPodsAffected: must be at least 1, found 0"],
        ),
        (
            with(pod_kill(), "/spec/injection/type", json!("podKill")),
            &[
                "error injection-type spec.injection.type: unknown type of injection \"podKill\"; did you mean \"PodKill\"?",
            ],
        ),
        (
            with(pod_kill(), "/spec/injection/dangerLevel", json!("hihg")),
            &[
                "error danger-level spec.injection.dangerLevel: expected low, medium or high, found \"hihg\"; did you mean \"high\"?",
            ],
        ),
        (
            with(pod_kill(), "/spec/injection/dangerLevel", json!("high")),
            &["error allow-dangerous spec.blastRadius.allowDangerous: danger level high needs allowDangerous: true"],
        ),
        (
            check(json!({"type": "conditionTrue", "kind": "Deployment", "name": "web"})),
            &["error check spec.steadyState.checks[0].conditionType: a check of type conditionTrue needs it"],
        ),
        (
            check(json!({"type": "exists"})),
            &["error check spec.steadyState.checks[0].type: unknown type of check \"exists\""],
        ),
        (
            check(json!({"type": "fieldEquals", "kind": "A", "name": "b", "fieldPath": "spec.x"})),
            &[
                "warning shipped-definition spec.steadyState.checks[0].type: the published definition knows only conditionTrue and resourceExists",
            ],
        ),
        (
            check(json!({"type": "resourceExists", "kind": "A", "name": "b", "namespace": "kube-system"})),
            &[
                "error namespace spec.steadyState.checks[0].namespace: namespace kube-system is protected: nothing is ever injected there",
            ],
        ),
        (
            with(pod_kill(), "/spec/blastRadius/allowedNamespaces", json!(["default"])),
            &[
                "error namespace spec.blastRadius.allowedNamespaces[0]: namespace default is protected: nothing is ever injected there",
            ],
        ),
        (
            with(pod_kill(), "/spec/blastRadius/allowedNamespaces", json!(["openshift-x"])),
            &[
                "error namespace spec.blastRadius.allowedNamespaces[0]: namespace openshift-x belongs to the platform: it needs blastRadius.allowDangerous",
            ],
        ),
        (
            with(pod_kill(), "/spec/blastRadius/allowedNamespaces", json!(["shop", "shop"])),
            &["error namespace spec.blastRadius.allowedNamespaces[1]: shop is listed twice"],
        ),
        (
            with(pod_kill(), "/spec/blastRadius/allowedNamespaces", json!(["a", "b"])),
            &[
                "error namespace-scope spec.blastRadius.allowedNamespaces: it would inject in namespace shop, which is not listed",
            ],
        ),
        (
            with(pod_kill(), "/spec/blastRadius/forbiddenResources", json!(["web/an-experiment"])),
            &["error forbidden-resource spec.blastRadius.forbiddenResources: web/an-experiment is what it targets"],
        ),
        (
            with(
                with(
                    webhook(json!({"webhookName": "a", "action": "setFailurePolicy"})),
                    "/metadata/namespace",
                    Value::Null,
                ),
                "/spec/blastRadius/allowedNamespaces",
                json!(["shop"]),
            ),
            &[
                "error cluster-scope spec.blastRadius.allowedNamespaces: WebhookDisrupt reaches the whole cluster here: no namespace bounds it, leave it out",
            ],
        ),
        (
            with(
                webhook(json!({"webhookName": "a", "action": "setFailurePolicy"})),
                "/metadata/namespace",
                Value::Null,
            ),
            &[
                "error namespace metadata.namespace: it would inject in namespace default: namespace default is protected: nothing is ever injected there",
            ],
        ),
        (
            with(
                webhook(json!({"webhookName": "a", "action": "setFailurePolicy"})),
                "/spec/injection/dangerLevel",
                json!("medium"),
            ),
            &[
                "error cluster-scope spec.injection.dangerLevel: WebhookDisrupt reaches the whole cluster here and needs dangerLevel: high",
            ],
        ),
        (
            webhook(json!({"webhookName": "a", "webhookLabelSelector": "a=b"})),
            &[
                "error parameters spec.injection.parameters.action: WebhookDisrupt needs it",
                "error parameters spec.injection.parameters.webhookName: give it or webhookLabelSelector, not both",
            ],
        ),
        (
            webhook(
                json!({"webhookName": "istio-sidecar-injector", "action": "setFailurePolicy", "value": "fail", "webhookType": "conversion"}),
            ),
            &[
                "error protected spec.injection.parameters.webhookName: the cluster depends on istio-sidecar-injector",
                "error parameters spec.injection.parameters.webhookType: expected validating or mutating, found \"conversion\"",
                "error parameters spec.injection.parameters.value: expected Fail or Ignore, found \"fail\"; did you mean \"Fail\"?",
            ],
        ),
        (
            experiment("PodKill", "low", json!({"labelSelector": ""})),
            &["error parameters spec.injection.parameters.labelSelector: PodKill needs it"],
        ),
        (
            experiment("PodKill", "low", json!({"labelSelector": " "})),
            &["error parameters spec.injection.parameters.labelSelector: it selects every pod; name a label"],
        ),
        (
            experiment("PodKill", "low", json!({"labelSelector": "a=b c"})),
            &[
                "error parameters spec.injection.parameters.labelSelector: label selector \"a=b c\" cannot be read at \"a=b c\"",
            ],
        ),
        (
            experiment("PodKill", "low", json!({"labelSelektor": "a=b"})),
            &[
                "warning unknown-parameter spec.injection.parameters.labelSelektor: PodKill does not read it; did you mean \"labelSelector\"?",
                "error parameters spec.injection.parameters.labelSelector: PodKill needs it",
            ],
        ),
        (
            experiment("NetworkPartition", "medium", json!({"labelSelector": "a in (b)"})),
            &[
                "error parameters spec.injection.parameters.labelSelector: NetworkPartition takes only key=value, joined by commas",
            ],
        ),
        (
            with(pod_kill(), "/spec/injection/parameters", json!({"labelSelector": 1})),
            &[
                "error wrong-type spec.injection.parameters.labelSelector: expected a string, found a number; put it in quotes",
            ],
        ),
        (
            drift("kube-root-ca.crt"),
            &["error protected spec.injection.parameters.name: the cluster depends on ConfigMap kube-root-ca.crt"],
        ),
        (
            drift("chaos-backup-x"),
            &["error protected spec.injection.parameters.name: chaos-backup-x belongs to the runner of experiments"],
        ),
        (
            with(drift("a"), "/spec/injection/parameters/value", json!("x".repeat(70_000))),
            &["error parameters spec.injection.parameters.value: longer than 64 KiB"],
        ),
        (
            with(drift("a"), "/spec/injection/parameters/resourceType", json!("Secret")),
            &[
                "error danger-level spec.injection.dangerLevel: a Secret, whose old value is kept in a second Secret, needs dangerLevel: high",
            ],
        ),
        (
            experiment(
                "ConfigDrift",
                "high",
                json!({"name": "a", "key": "A_B", "value": "x", "resourceType": "Secret"}),
            ),
            &[
                "error parameters spec.injection.parameters.key: \"A_B\" cannot be part of the name of the Secret that keeps the old value",
            ],
        ),
        (
            crd("medium", json!({})),
            &["error parameters spec.injection.parameters.field: CRDMutation needs field (below spec) or path"],
        ),
        (
            crd("medium", json!({"field": "a", "path": "spec.a"})),
            &["error parameters spec.injection.parameters.path: CRDMutation takes either field or path, not both"],
        ),
        (
            crd("medium", json!({"field": "a.b"})),
            &[
                "error parameters spec.injection.parameters.field: \"a.b\" is not the name of a field; use path for deeper ones",
            ],
        ),
        (
            crd("medium", json!({"path": "spec..a"})),
            &["error parameters spec.injection.parameters.path: \"spec..a\" is not a path such as spec.template.size"],
        ),
        (
            crd("medium", json!({"path": "metadata.uid"})),
            &["error protected spec.injection.parameters.path: metadata.uid identifies the object"],
        ),
        (
            crd("medium", json!({"path": "spec.a.replicas"})),
            &["error danger-level spec.injection.dangerLevel: field replicas needs dangerLevel: high"],
        ),
        (
            crd("medium", json!({"field": "a", "value": "[1]"})),
            &["error danger-level spec.injection.dangerLevel: a value that is a list needs dangerLevel: high"],
        ),
        (
            crd("medium", json!({"field": "a", "value": "null"})),
            &["error danger-level spec.injection.dangerLevel: null, which deletes the field, needs dangerLevel: high"],
        ),
        (
            crd("medium", json!({"field": "a", "apiVersion": "apps/v1", "kind": "Deployment"})),
            &[
                "error danger-level spec.injection.dangerLevel: apps/v1, which is not a custom resource, needs dangerLevel: high",
            ],
        ),
        (
            crd("medium", json!({"field": "a", "apiVersion": API_VERSION, "kind": KIND})),
            &["error protected spec.injection.parameters.kind: experiments do not experiment on experiments"],
        ),
        (
            crd("medium", json!({"field": "a", "kind": "ClusterQueue"})),
            &[
                "error cluster-scope spec.injection.dangerLevel: CRDMutation reaches the whole cluster here and needs dangerLevel: high",
                "error cluster-scope spec.blastRadius.allowedNamespaces: CRDMutation reaches the whole cluster here: no namespace bounds it, leave it out",
            ],
        ),
        (
            experiment("FinalizerBlock", "medium", json!({"kind": "Service", "name": "a"})),
            &["error danger-level spec.injection.dangerLevel: a finalizer on a Service needs dangerLevel: high"],
        ),
        (
            experiment(
                "FinalizerBlock",
                "medium",
                json!({"apiVersion": "a.io/v1", "kind": "A", "name": "a", "finalizer": "chaos.operatorchaos.io/cleanup"}),
            ),
            &["error protected spec.injection.parameters.finalizer: the runner's own controller uses it"],
        ),
        (
            experiment(
                "FinalizerBlock",
                "medium",
                json!({"apiVersion": "a.io/v1", "kind": "A", "name": "a", "finalizerName": "x"}),
            ),
            &[
                "warning unknown-parameter spec.injection.parameters.finalizerName: FinalizerBlock does not read it; did you mean \"finalizer\"?",
            ],
        ),
        (
            experiment("OwnerRefOrphan", "medium", json!({"apiVersion": "v1", "kind": "Node", "name": "a"})),
            &["error protected spec.injection.parameters.kind: a Node is never changed in this way"],
        ),
        (
            stomp("app.kubernetes.io/managed-by", "delete"),
            &[
                "error protected spec.injection.parameters.labelKey: the runner itself sets app.kubernetes.io/managed-by",
            ],
        ),
        (
            stomp("app.kubernetes.io/name", "delete"),
            &["error danger-level spec.injection.dangerLevel: label app.kubernetes.io/name needs dangerLevel: high"],
        ),
        (
            stomp("a/b/c", "delete"),
            &["error parameters spec.injection.parameters.labelKey: \"a/b/c\" is not a valid label key"],
        ),
        (
            stomp("a", "remove"),
            &["error parameters spec.injection.parameters.action: expected overwrite or delete, found \"remove\""],
        ),
        (
            experiment(
                "ClientFault",
                "medium",
                json!({"faults": "{\"gett\": {\"errorRate\": 2}}", "configMapName": "x"}),
            ),
            &[
                "error parameters spec.injection.parameters.configMapName: must start with operator-chaos-",
                "error parameters spec.injection.parameters.faults: unknown operation \"gett\"; did you mean \"get\"?",
                "error parameters spec.injection.parameters.faults: gett.errorRate must be from 0 to 1",
            ],
        ),
        (
            experiment(
                "RBACRevoke",
                "high",
                json!({"bindingName": "system:node", "bindingType": "ClusterRoleBinding"}),
            ),
            &[
                "error protected spec.injection.parameters.bindingName: the cluster depends on ClusterRoleBinding system:node",
            ],
        ),
        (
            experiment("RBACRevoke", "medium", json!({"bindingName": "a", "bindingType": "Role"})),
            &[
                "error parameters spec.injection.parameters.bindingType: expected ClusterRoleBinding or RoleBinding, found \"Role\"",
            ],
        ),
        (
            experiment("WebhookLatency", "high", json!({"resources": "pods", "apiGroups": "*", "delay": "30s"})),
            &["error parameters spec.injection.parameters.delay: expected a duration from 1s to 29s, found \"30s\""],
        ),
        (
            experiment("QuotaExhaustion", "medium", json!({"quotaName": "a"})),
            &[
                "error parameters spec.injection.parameters.quotaName: it limits nothing; give one of cpu, memory, pods, services, configmaps, secrets",
            ],
        ),
        (
            experiment("NamespaceDeletion", "medium", json!({"namespace": "openshift-x"})),
            &[
                "error danger-level spec.injection.dangerLevel: NamespaceDeletion needs dangerLevel: high",
                "error protected spec.injection.parameters.namespace: namespace openshift-x is protected: nothing is deleted there",
            ],
        ),
        (
            experiment("ResourceDeletion", "high", json!({"apiVersion": "v1", "kind": "Namespace", "name": "x"})),
            &[
                "warning shipped-definition spec.injection.type: the published definition does not know ResourceDeletion: an API server that uses it rejects this",
                "error protected spec.injection.parameters.kind: a Namespace has no namespace and is not deleted",
            ],
        ),
        (
            experiment("SecretDeletion", "high", json!({"name": "s".repeat(240)})),
            &[
                "warning shipped-definition spec.injection.type: the published definition does not know SecretDeletion: an API server that uses it rejects this",
                "error parameters spec.injection.parameters.name: too long to be kept for rollback: at most 233 characters",
            ],
        ),
    ];
    let wrong: Vec<_> = table
        .iter()
        .filter(|(document, expected)| shown(document) != *expected)
        .map(|(document, expected)| format!("expected {expected:#?}\nfound {:#?}", shown(document)))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn a_problem_knows_where_it_stands() {
    let mut builder = pushback_objects::source::PositionsBuilder::new("e.yaml".into());
    builder.open(&"".into(), 1, 1);
    builder.open(&"kind".into(), 2, 7);
    builder.close();
    builder.close();
    let positions = builder.finish();
    let problems = validate(&with(pod_kill(), "/kind", json!("Chaos")));
    assert_eq!(problems[0].position(&positions).to_string(), "e.yaml:2:7");
}

#[test]
fn reading_refuses_what_is_not_valid_and_takes_what_is_only_doubtful() {
    let bad = with(pod_kill(), "/spec/tier", json!(9));
    assert_eq!(Experiment::read(&bad).unwrap_err().len(), 1);
    let newer = experiment("SecretDeletion", "high", json!({"name": "cert"}));
    assert_eq!(Experiment::read(&newer).unwrap().injection.kind, InjectionType::SecretDeletion);
}

#[test]
fn the_namespace_of_the_injection_is_resolved_as_the_runner_does() {
    let resolved = |document: Value| Experiment::of(&document).injection_namespace().to_owned();
    let several = with(pod_kill(), "/spec/blastRadius/allowedNamespaces", json!(["a", "b"]));
    assert_eq!(resolved(with(pod_kill(), "/metadata/namespace", json!("other"))), "shop");
    assert_eq!(resolved(several.clone()), "shop");
    let checks = json!({"checks": [{"type": "resourceExists"}, {"type": "resourceExists", "namespace": "b"}]});
    assert_eq!(resolved(with(several.clone(), "/spec/steadyState", checks)), "b");
    assert_eq!(resolved(with(several, "/metadata/namespace", Value::Null)), "default");
}
