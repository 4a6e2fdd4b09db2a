//! A user who may get, list, watch, create, update and delete, but not patch: the Role that kapp's users write. Objects are
//! created and updated whole, and everything else is as with server-side apply.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::support::api::ApiClient;
use crate::support::apply::{TestApp, config_map, config_map_path, planned, warnings};
use crate::support::pushback::Pushback;
use crate::support::{TestCase, TestCluster, cases, kapp};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        ApiServer: a_user_without_patch_deploys_updates_prunes_and_deletes,
        ApiServer: what_the_server_has_set_itself_is_no_change,
        ApiServer: an_object_is_released_and_an_app_of_kapp_taken_over_without_patch,
        ApiServer: who_may_neither_patch_nor_update_is_refused_before_the_first_write,
    ]
}

fn api() -> &'static ApiClient {
    TestCluster::shared().api()
}

/// An app of a user with these verbs on everything in its namespace.
fn app_with(namespace: &str, verbs: &[&str]) -> TestApp {
    let cluster = TestCluster::shared();
    let rbac = "rbac.authorization.k8s.io";
    let user = format!("{namespace}-deployer");
    let metadata = json!({"name": "deployer", "namespace": namespace});
    for object in [
        json!({"apiVersion": format!("{rbac}/v1"), "kind": "Role", "metadata": metadata,
            "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": verbs}]}),
        json!({"apiVersion": format!("{rbac}/v1"), "kind": "RoleBinding", "metadata": metadata,
            "roleRef": {"apiGroup": rbac, "kind": "Role", "name": "deployer"},
            "subjects": [{"apiGroup": rbac, "kind": "User", "name": user}]}),
    ] {
        api().apply(&object).ok();
    }
    let pushback = Pushback::with_kubeconfig(&cluster.kubeconfig_once_allowed(&user, namespace));
    TestApp::of(pushback, "shop", namespace)
}

const KAPPS_VERBS: [&str; 6] = ["get", "list", "watch", "create", "update", "delete"];

fn app() -> TestApp {
    app_with(&TestCluster::shared().namespace("plain"), &KAPPS_VERBS)
}

fn web(image: &str, further: &str) -> String {
    format!(
        "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: web, labels: {{{further}}}}}\nspec:\n  replicas: 0\n  \
         selector: {{matchLabels: {{app: web}}}}\n  template:\n    metadata: {{labels: {{app: web}}}}\n    spec:\n      \
         containers:\n      - {{name: main, image: {image}, ports: [{{containerPort: 80}}]}}\n"
    )
}

const SERVICE: &str = "---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {type: NodePort, selector: {app: web}, ports: [{port: 80}]}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: Secret
metadata: {name: login}
stringData: {password: example-only}
---
apiVersion: batch/v1
kind: Job
metadata: {name: once}
spec: {suspend: true, template: {spec: {restartPolicy: Never, containers: [{name: main, image: registry.example/a:1}]}}}
";

#[track_caller]
fn changes(app: &TestApp, input: &str) -> Vec<String> {
    let mut lines = planned(&app.apply(input, &["--wait=false"]).expect(0));
    lines.retain(|line| !line.starts_with("noop"));
    lines.sort();
    lines
}

fn a_user_without_patch_deploys_updates_prunes_and_deletes() {
    let app = app();
    let first = config_map("settings", "1") + &config_map("gone", "1") + &web("registry.example/web:1", "tier: a");
    let ran = app.apply(&first, &["--wait=false"]).expect(0);
    let told: BTreeSet<String> = warnings(&ran).into_iter().filter(|text| text.contains("may not patch")).collect();
    assert_eq!(told.len(), 2, "once for each resource: {told:?}");

    // Others set a label and a value; the manifest drops a label of its own.
    let settings = config_map_path(&app.namespace, "settings");
    api().merge_patch(&settings, &json!({"data": {"theirs": "x"}})).ok();
    let path = format!("/apis/apps/v1/namespaces/{}/deployments/web", app.namespace);
    api().merge_patch(&path, &json!({"metadata": {"labels": {"theirs": "x"}}})).ok();
    let second = config_map("settings", "2") + &web("registry.example/web:2", "");
    assert_eq!(changes(&app, &second), ["delete ConfigMap gone", "update ConfigMap settings", "update Deployment web"]);
    assert_eq!(api().get(&settings).ok()["data"], json!({"key": "2", "theirs": "x"}));
    let live = api().get(&path).ok();
    assert_eq!(live["spec"]["template"]["spec"]["containers"][0]["image"], "registry.example/web:2");
    let labels = live["metadata"]["labels"].as_object().expect("labels");
    assert!(labels.contains_key("theirs") && !labels.contains_key("tier"), "{labels:?}");
    assert_eq!(api().get(&config_map_path(&app.namespace, "gone")).status, 404);

    app.delete(&["--wait=false"]).expect(0);
    assert_eq!(api().get(&settings).status, 404);
    assert_eq!(api().get(&app.record_path()).status, 404);
}

fn what_the_server_has_set_itself_is_no_change() {
    let app = app();
    let input = SERVICE.to_owned() + &web("registry.example/web:1", "");
    assert_eq!(changes(&app, &input).len(), 5);
    let port = || {
        let path = format!("/api/v1/namespaces/{}/services/web", app.namespace);
        api().get(&path).ok()["spec"]["ports"][0]["nodePort"].clone()
    };
    let before = port();
    assert!(before.is_number());
    assert_eq!(changes(&app, &input), Vec::<String>::new());
    let other = input.replace("port: 80}]", "port: 80, targetPort: 8080}]");
    assert_eq!(changes(&app, &other), ["update Service web"]);
    assert_eq!(port(), before, "what the server has assigned stays");
}

fn an_object_is_released_and_an_app_of_kapp_taken_over_without_patch() {
    let namespace = TestCluster::shared().namespace("plain");
    kapp::revive_with_managers("01-plain", &[("kd-a", &namespace)]);
    let app = app_with(&namespace, &KAPPS_VERBS);
    let input = kapp::input("01-plain", 1, &[("kd-a", &namespace)]);
    app.apply(&input, &["--wait=false"]).expect(0);
    assert_eq!(changes(&app, &input), Vec::<String>::new());

    let kept = "---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: kept\n  annotations: \
                {kapp.k14s.io/delete-strategy: orphan}\n";
    changes(&app, &(input.clone() + kept));
    changes(&app, &input);
    let kept = api().get(&config_map_path(&namespace, "kept")).ok();
    assert_eq!(kept["metadata"]["labels"]["kapp.k14s.io/app"], Value::Null);
    assert!(kept["metadata"]["labels"]["kapp.k14s.io/orphaned"].is_string());
}

fn who_may_neither_patch_nor_update_is_refused_before_the_first_write() {
    let namespace = TestCluster::shared().namespace("plain");
    let admin = TestApp::new("shop", &namespace);
    admin.apply(&config_map("settings", "1"), &["--wait=false"]).expect(0);
    let app = app_with(&namespace, &["get", "list", "watch", "create", "delete"]);
    let ran = app.apply(&config_map("settings", "2"), &["--wait=false"]).expect(10);
    let refused = ran.events_of("finding").iter().any(|finding| finding.to_string().contains("not permitted to"));
    assert!(refused || ran.complaints().contains("cannot patch"), "{ran:?}");
    assert_eq!(api().get(&config_map_path(&namespace, "settings")).ok()["data"]["key"], "1");
}
