//! The test control plane does what the other tests rely on.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{TestCase, TestCluster, cases, wait_until};

const SOON: Duration = Duration::from_secs(60);

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        ApiServer: the_api_server_reports_its_version,
        ApiServer: tests_get_namespaces_of_their_own,
        ApiServer: applied_objects_are_found_again,
        ApiServer: a_write_to_an_outdated_object_conflicts,
        ApiServer: an_unknown_field_is_refused,
        ApiServer: a_user_without_rights_is_refused,
        ApiServer: a_user_has_the_rights_of_the_groups,
        Controllers: a_deployment_becomes_ready,
        Controllers: a_pod_marked_for_failure_fails,
        Controllers: a_deleted_namespace_goes_with_what_is_in_it,
    ]
}

fn the_api_server_reports_its_version() {
    let version = TestCluster::shared().api().get("/version").ok();
    let reported = version["gitVersion"].as_str().unwrap_or_default();
    if std::env::var_os("KUBEBUILDER_ASSETS").is_some() {
        assert!(reported.starts_with("v1."), "{version}");
    } else {
        assert_eq!(reported, "v1.36.3");
        assert_eq!((&version["major"], &version["minor"]), (&json!("1"), &json!("36")));
    }
}

fn tests_get_namespaces_of_their_own() {
    let cluster = TestCluster::shared();
    let (first, second) = (cluster.namespace("own"), cluster.namespace("own"));
    assert_ne!(first, second);
    assert_eq!(cluster.api().get(&format!("/api/v1/namespaces/{second}")).ok()["metadata"]["name"], second.as_str());
}

fn config_map(namespace: &str, name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"namespace": namespace, "name": name, "labels": {"test": "smoke"}}, "data": {"key": "value"},
    })
}

fn applied_objects_are_found_again() {
    let cluster = TestCluster::shared();
    let namespace = cluster.namespace("applied");
    let object = config_map(&namespace, "settings");
    assert_eq!(cluster.api().apply(&object).status, 201);
    assert_eq!(cluster.api().apply(&object).status, 200);

    let found = cluster.api().list(&format!("/api/v1/namespaces/{namespace}/configmaps?labelSelector=test%3Dsmoke"));
    assert_eq!(found.iter().map(|one| &one["data"]["key"]).collect::<Vec<_>>(), [&json!("value")]);

    let path = cluster.api().path_of(&object);
    cluster.api().delete(&path).ok();
    assert_eq!(cluster.api().get(&path).status, 404);
}

fn a_write_to_an_outdated_object_conflicts() {
    let cluster = TestCluster::shared();
    let object = config_map(&cluster.namespace("outdated"), "settings");
    let path = cluster.api().path_of(&object);
    let mut seen = cluster.api().apply(&object).ok();
    cluster.api().merge_patch(&path, &json!({"data": {"key": "changed"}})).ok();

    seen["data"]["key"] = json!("mine");
    assert_eq!(cluster.api().put(&path, &seen).status, 409);
    assert_eq!(cluster.api().get(&path).ok()["data"]["key"], "changed");
}

fn an_unknown_field_is_refused() {
    let cluster = TestCluster::shared();
    let mut object = config_map(&cluster.namespace("strict"), "settings");
    object["dta"] = json!({"key": "value"});
    let answer = cluster.api().apply(&object);
    assert_ne!(answer.status / 100, 2);
    assert!(answer.message().contains(".dta"), "{}", answer.body);
}

fn a_user_without_rights_is_refused() {
    let cluster = TestCluster::shared();
    let namespace = cluster.namespace("restricted");
    let stranger = cluster.api_for("stranger", &[]);
    let answer = stranger.get(&format!("/api/v1/namespaces/{namespace}/configmaps"));
    assert_eq!(answer.status, 403);
    assert!(answer.message().contains(r#"User "stranger" cannot list resource "configmaps""#), "{}", answer.body);
}

fn a_user_has_the_rights_of_the_groups() {
    let cluster = TestCluster::shared();
    let namespace = cluster.namespace("groups");
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
        "metadata": {"namespace": namespace, "name": "reader"},
        "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]}],
    });
    cluster.api().apply(&role).ok();
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": {"namespace": namespace, "name": "readers"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "readers"}],
    });
    cluster.api().apply(&binding).ok();
    let reader = cluster.api_for("ada", &["engineers", "readers"]);
    // The authorizer learns of a new binding through a watch.
    wait_until("the binding takes effect", SOON, || {
        (reader.get(&format!("/api/v1/namespaces/{namespace}/configmaps")).status == 200).then_some(())
    });
    assert_eq!(reader.apply(&config_map(&namespace, "settings")).status, 403);
}

fn a_deployment_becomes_ready() {
    let cluster = TestCluster::shared();
    let namespace = cluster.namespace("rollout");
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"namespace": namespace, "name": "web"},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {
                    "nodeSelector": {"kubernetes.io/os": "linux"},
                    "containers": [{"name": "web", "image": "registry.example/web:1"}],
                },
            },
        },
    });
    cluster.api().apply(&deployment).ok();
    let path = cluster.api().path_of(&deployment);
    wait_until("both replicas are ready", SOON, || {
        let status = cluster.api().get(&path).ok()["status"].take();
        (status["readyReplicas"] == 2 && status["availableReplicas"] == 2).then_some(())
    });
}

fn a_pod_marked_for_failure_fails() {
    let cluster = TestCluster::shared();
    let namespace = cluster.namespace("failing");
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "namespace": namespace, "name": "doomed",
            "labels": {"pod-container-running-failed.stage.kwok.x-k8s.io": "true"},
        },
        "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "registry.example/main:1"}]},
    });
    cluster.api().apply(&pod).ok();
    let path = cluster.api().path_of(&pod);
    wait_until("the Pod has failed", SOON, || {
        (cluster.api().get(&path).ok()["status"]["phase"] == "Failed").then_some(())
    });
}

fn a_deleted_namespace_goes_with_what_is_in_it() {
    let cluster = TestCluster::shared();
    let namespace = cluster.namespace("going");
    let object = config_map(&namespace, "settings");
    cluster.api().apply(&object).ok();
    cluster.api().delete(&format!("/api/v1/namespaces/{namespace}")).ok();
    wait_until("the namespace is gone", SOON, || {
        (cluster.api().get(&format!("/api/v1/namespaces/{namespace}")).status == 404).then_some(())
    });
    assert_eq!(cluster.api().get(&cluster.api().path_of(&object)).status, 404);
}
