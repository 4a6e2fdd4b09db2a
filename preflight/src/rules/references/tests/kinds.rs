//! Every kind of reference, in every state of what it leads to.

use serde_json::{Value, json};

use super::*;

/// Name, what refers, and what it refers to.
type Kind = (&'static str, Value, Value);

fn pod(spec: Value) -> Value {
    deployment("web", spec)
}

fn volume(source: Value) -> Value {
    pod(json!({"volumes": [source]}))
}

fn wide(api_version: &str, kind: &str, name: &str, fields: Value) -> Value {
    let mut object = object(api_version, kind, name, fields);
    object["metadata"].as_object_mut().expect("metadata").shift_remove("namespace");
    object
}

fn ingress(spec: Value) -> Value {
    object("networking.k8s.io/v1", "Ingress", "web", json!({"spec": spec}))
}

fn binding(kind: &str, role: &str) -> Value {
    let fields = json!({"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": role, "name": "it"}});
    object("rbac.authorization.k8s.io/v1", kind, "web", fields)
}

fn hook(kind: &str) -> Value {
    let called = json!({"service": {"namespace": "shop", "name": "it"}});
    wide(
        "admissionregistration.k8s.io/v1",
        kind,
        "web",
        json!({"webhooks": [{"name": "a.ex.com", "clientConfig": called}]}),
    )
}

fn claim(spec: Value) -> Value {
    object("v1", "PersistentVolumeClaim", "web", json!({"spec": spec}))
}

fn kinds() -> Vec<Kind> {
    let key = || json!({"name": "it", "key": "k"});
    let config = || config_map("it", json!({"k": "v"}));
    let hidden = || secret("it", json!({"k": "dg=="}));
    let account = || object("v1", "ServiceAccount", "it", json!({}));
    let backend = || json!({"service": {"name": "it", "port": {"number": 80}}});
    let set = |spec: Value| object("apps/v1", "StatefulSet", "web", json!({"spec": spec}));
    let role = |kind: &str| object("rbac.authorization.k8s.io/v1", kind, "it", json!({}));
    let storage = |kind: &str| wide("storage.k8s.io/v1", kind, "it", json!({}));
    let other_claim = || object("v1", "PersistentVolumeClaim", "it", json!({"spec": {}}));
    let env = |from: Value| pod(container(json!({"env": [{"name": "A", "valueFrom": from}]})));
    let caller = || json!({"service": {"namespace": "shop", "name": "it", "port": 8443}});
    let conversion = json!({"conversion": {"webhook": {"clientConfig": caller()}}});
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "it"});
    let annotations = json!({"kubernetes.io/service-account.name": "it"});
    let mut token = object("v1", "Secret", "web", json!({"type": "kubernetes.io/service-account-token"}));
    token["metadata"]["annotations"] = annotations;
    vec![
        ("env configMapKeyRef", env(json!({"configMapKeyRef": key()})), config()),
        ("env secretKeyRef", env(json!({"secretKeyRef": key()})), hidden()),
        ("envFrom configMapRef", pod(container(json!({"envFrom": [{"configMapRef": {"name": "it"}}]}))), config()),
        ("envFrom secretRef", needs_secret("it"), hidden()),
        ("initContainers", pod(json!({"initContainers": [{"envFrom": [{"secretRef": {"name": "it"}}]}]})), hidden()),
        ("volume configMap", volume(json!({"configMap": {"name": "it", "items": [{"key": "k"}]}})), config()),
        ("volume secret", volume(json!({"secret": {"secretName": "it"}})), hidden()),
        ("projected configMap", volume(json!({"projected": {"sources": [{"configMap": {"name": "it"}}]}})), config()),
        ("projected secret", volume(json!({"projected": {"sources": [{"secret": {"name": "it"}}]}})), hidden()),
        ("volume claim", volume(json!({"persistentVolumeClaim": {"claimName": "it"}})), other_claim()),
        ("volume csi", volume(json!({"csi": {"nodePublishSecretRef": {"name": "it"}}})), hidden()),
        ("volume azureFile", volume(json!({"azureFile": {"secretName": "it"}})), hidden()),
        ("imagePullSecrets", pod(json!({"imagePullSecrets": [{"name": "it"}]})), hidden()),
        ("serviceAccountName", pod(json!({"serviceAccountName": "it"})), account()),
        (
            "priorityClassName",
            pod(json!({"priorityClassName": "it"})),
            wide("scheduling.k8s.io/v1", "PriorityClass", "it", json!({})),
        ),
        (
            "runtimeClassName",
            pod(json!({"runtimeClassName": "it"})),
            wide("node.k8s.io/v1", "RuntimeClass", "it", json!({})),
        ),
        (
            "resourceClaims",
            pod(json!({"resourceClaims": [{"resourceClaimTemplateName": "it"}]})),
            object("resource.k8s.io/v1", "ResourceClaimTemplate", "it", json!({})),
        ),
        (
            "pull secret of an account",
            object("v1", "ServiceAccount", "web", json!({"imagePullSecrets": [{"name": "it"}]})),
            hidden(),
        ),
        ("account of a token", token, account()),
        (
            "ingressClassName",
            ingress(json!({"ingressClassName": "it"})),
            wide("networking.k8s.io/v1", "IngressClass", "it", json!({})),
        ),
        ("ingress defaultBackend", ingress(json!({"defaultBackend": backend()})), service("it", 80)),
        ("ingress path", ingress(json!({"rules": [{"http": {"paths": [{"backend": backend()}]}}]})), service("it", 80)),
        ("ingress tls", ingress(json!({"tls": [{"secretName": "it"}]})), hidden()),
        ("StatefulSet serviceName", set(json!({"serviceName": "it"})), service("it", 80)),
        (
            "StatefulSet template",
            set(json!({"volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {"storageClassName": "it"}}]})),
            storage("StorageClass"),
        ),
        (
            "CronJob",
            object(
                "batch/v1",
                "CronJob",
                "web",
                json!({"spec": {"jobTemplate": {"spec": {"template": {"spec": {"serviceAccountName": "it"}}}}}}),
            ),
            account(),
        ),
        (
            "scaleTargetRef",
            object("autoscaling/v2", "HorizontalPodAutoscaler", "web", json!({"spec": {"scaleTargetRef": target}})),
            deployment("it", json!({})),
        ),
        ("roleRef Role", binding("RoleBinding", "Role"), role("Role")),
        (
            "roleRef ClusterRole",
            binding("RoleBinding", "ClusterRole"),
            wide("rbac.authorization.k8s.io/v1", "ClusterRole", "it", json!({})),
        ),
        (
            "subject",
            object(
                "rbac.authorization.k8s.io/v1",
                "RoleBinding",
                "web",
                json!({"subjects": [{"kind": "ServiceAccount", "name": "it"}]}),
            ),
            account(),
        ),
        ("validating webhook", hook("ValidatingWebhookConfiguration"), service("it", 443)),
        ("mutating webhook", hook("MutatingWebhookConfiguration"), service("it", 443)),
        (
            "conversion webhook",
            wide("apiextensions.k8s.io/v1", "CustomResourceDefinition", "as.ex.com", json!({"spec": conversion})),
            service("it", 8443),
        ),
        (
            "APIService",
            wide(
                "apiregistration.k8s.io/v1",
                "APIService",
                "v1.ex.com",
                json!({"spec": {"service": {"namespace": "shop", "name": "it"}}}),
            ),
            service("it", 443),
        ),
        (
            "policyName",
            wide(
                "admissionregistration.k8s.io/v1",
                "ValidatingAdmissionPolicyBinding",
                "web",
                json!({"spec": {"policyName": "it"}}),
            ),
            wide("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", "it", json!({})),
        ),
        ("claim storageClassName", claim(json!({"storageClassName": "it"})), storage("StorageClass")),
        ("claim volumeName", claim(json!({"volumeName": "it"})), wide("v1", "PersistentVolume", "it", json!({}))),
        (
            "claim dataSource",
            claim(json!({"dataSource": {"kind": "PersistentVolumeClaim", "name": "it"}})),
            other_claim(),
        ),
    ]
}

/// The checks of what a trial found about the referrer.
fn checks(trial: Trial) -> Vec<String> {
    trial.run().report.findings.iter().map(|finding| finding.check.clone()).collect()
}

#[test]
fn every_kind_of_reference_is_judged_by_the_state_of_its_target() {
    assert!(kinds().len() >= 28);
    for (name, from, to) in kinds() {
        let alone = || vec![create(from.clone())];
        // Many a StatefulSet has no Service of that name.
        let missing = if name == "StatefulSet serviceName" { &[][..] } else { &[MISSING] };
        assert_eq!(checks(Trial::of(alone())), missing, "{name}: missing");
        let on_cluster = Trial { cluster: vec![to.clone()], ..Trial::of(alone()) };
        assert_eq!(checks(on_cluster), [""; 0], "{name}: on the cluster");
        let in_set = Trial::of(vec![create(from.clone()), create(to.clone())]).run();
        assert!(in_set.report.findings.is_empty() && in_set.asked.is_empty(), "{name}: in the set");
        let on_folder = Trial { side: ClusterSide::Directory, ..Trial::of(alone()) }.run();
        assert!(on_folder.report.findings.is_empty() && on_folder.asked.is_empty(), "{name}: on a folder");
        for side in [ClusterSide::Server, ClusterSide::Directory] {
            let deleted = vec![change(Some(from.clone()), Some(from.clone())), delete(to.clone())];
            let went = Trial { side, ..Trial::of(deleted) }.run();
            let found: Vec<&str> = went.report.findings.iter().map(|finding| finding.check.as_str()).collect();
            assert_eq!((found, went.asked.len()), (vec![DELETED], 0), "{name}: deleted");
        }
        let kept_target = Trial { kept: vec![to.clone()], ..Trial::of(alone()) };
        assert_eq!(checks(kept_target), [""; 0], "{name}: kept");
        let kept_referrer = Trial { kept: vec![from.clone()], ..Trial::of(vec![delete(to.clone())]) };
        assert_eq!(checks(kept_referrer), [DELETED], "{name}: needed by what is kept");
        let both_go = Trial::of(vec![delete(from.clone()), delete(to.clone())]);
        assert_eq!(checks(both_go), [""; 0], "{name}: both go");
        let mut orphaned = delete(to);
        orphaned.orphaned = true;
        assert_eq!(checks(Trial::of(vec![create(from), orphaned])), [""; 0], "{name}: stays without the app");
    }
}

#[test]
fn what_works_without_its_target_refuses_nothing() {
    let tolerated =
        ["imagePullSecrets", "pull secret of an account", "ingressClassName", "StatefulSet serviceName", "subject"];
    for (name, from, _) in kinds() {
        let went = Trial { config: json!({}), ..Trial::of(vec![create(from)]) }.run();
        assert_eq!(!went.report.outcome.refuses(), tolerated.contains(&name), "{name}");
    }
}
