//! What no later apply brings back, on a real API server: claims and volumes, namespaces with what others keep in them,
//! replaced StatefulSets, replicas that fall back to a default, and most of an app at once.

use serde_json::{Value, json};

use crate::support::api::ApiClient;
use crate::support::apply::{TestApp, config_map, config_map_path};
use crate::support::pushback::Ran;
use crate::support::{Pushback, TestCase, TestCluster, cases};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        ApiServer: a_claim_is_not_pruned_while_its_volume_goes_with_it,
        ApiServer: a_user_who_may_not_read_the_volume_gets_unknown,
        ApiServer: a_namespace_is_not_pruned_while_others_keep_something_in_it,
        ApiServer: a_claim_is_replaced_only_by_its_own_wish_and_refused_then,
        Nothing: a_definition_is_judged_once_whichever_rules_run,
        ApiServer: a_replaced_stateful_set_is_refused,
        ApiServer: replicas_that_fall_back_to_a_default_are_refused,
        ApiServer: most_of_an_app_is_not_pruned_at_once,
        Controllers: deleting_an_app_deletes_what_it_owns_and_warns_of_its_data,
        ApiServer: deleting_an_app_refuses_what_is_not_its_own,
        Nothing: a_folder_is_judged_too,
    ]
}

fn api() -> &'static ApiClient {
    TestCluster::shared().api()
}

fn app() -> TestApp {
    TestApp::new("app", &TestCluster::shared().namespace("loss"))
}

fn config(settings: &Value) -> String {
    let rules = json!([{"name": "DestructiveChange", "config": settings}]);
    json!({"apiVersion": "pushback.dev/v1alpha1", "kind": "Config", "preflightRules": rules}).to_string()
}

/// Applies with the rule, and only it.
fn apply(app: &TestApp, input: &str, settings: &Value) -> Ran {
    app.pushback.write("config.yaml", config(settings));
    app.apply(input, &["--config", "config.yaml", "--wait=false"])
}

/// Exit code and findings of a check with the rule, and only it: `check severity Kind`.
fn check(app: &TestApp, input: &str, settings: &Value) -> (String, Value) {
    app.pushback.write("config.yaml", config(settings)).write("app.yaml", input);
    let ran = app.run("check", &["-f", "app.yaml", "--config", "config.yaml"]);
    let report = ran.json();
    let shown = said(report["findings"].as_array().expect("findings"));
    (format!("{} {}", ran.code, shown.join(", ")), report)
}

fn said(findings: &[Value]) -> Vec<String> {
    let word = |value: &Value| value.as_str().expect("a text").to_owned();
    findings
        .iter()
        .map(|it| format!("{} {} {}", word(&it["check"]), word(&it["severity"]), word(&it["object"]["kind"])))
        .collect()
}

/// A volume of this policy, and the manifest of a claim that is bound to it.
fn storage(app: &TestApp, policy: &str) -> String {
    let name = format!("{}-{}", app.namespace, policy.to_lowercase());
    let volume = json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": {
        "persistentVolumeReclaimPolicy": policy, "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
        "storageClassName": "none", "hostPath": {"path": "/tmp/x"},
    }});
    api().post("/api/v1/persistentvolumes", &volume).ok();
    format!(
        "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {{name: {}}}\nspec:\n  volumeName: {name}\n  storageClassName: none\n  accessModes: [ReadWriteOnce]\n  resources: {{requests: {{storage: 1Gi}}}}\n",
        policy.to_lowercase()
    )
}

fn a_claim_is_not_pruned_while_its_volume_goes_with_it() {
    let app = app();
    let rest = config_map("a", "1");
    let claims = storage(&app, "Delete") + &storage(&app, "Retain");
    apply(&app, &(rest.clone() + &claims), &json!({})).expect(0);
    let (found, report) = check(&app, &rest, &json!({}));
    assert_eq!(
        found,
        "10 persistentVolumeClaimDeleted error PersistentVolumeClaim, persistentVolumeClaimDeleted warning PersistentVolumeClaim"
    );
    let message = report["findings"][0]["message"].as_str().expect("a message");
    assert_eq!(
        message,
        format!(
            "the claim is deleted, and its volume {}-delete (1Gi) with all data (reclaim policy Delete)",
            app.namespace
        )
    );
    apply(&app, &rest, &json!({})).expect(10);
    let claim = format!("/api/v1/namespaces/{}/persistentvolumeclaims/delete", app.namespace);
    assert_eq!(api().get(&claim).ok()["metadata"]["deletionTimestamp"], Value::Null, "nothing is written");

    // The ways out that the finding names.
    let (warned, _) = check(&app, &rest, &json!({"checks": {"persistentVolumeClaimDeleted": "warn"}}));
    assert!(warned.starts_with("0 "), "{warned}");
    let orphan = json!({"metadata": {"annotations": {"kapp.k14s.io/delete-strategy": "orphan"}}});
    api().request("PATCH", &claim, Some("application/merge-patch+json"), Some(&orphan)).expect("an answer").ok();
    apply(&app, &rest, &json!({})).expect(0);
    assert_eq!(api().get(&claim).ok()["metadata"]["deletionTimestamp"], Value::Null, "it only leaves the app");
}

/// Somebody who may do everything in one namespace and nothing outside it.
fn only_in(namespace: &str) -> String {
    let user = format!("{namespace}-user");
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": {"name": user, "namespace": namespace},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    });
    api().apply(&binding).ok();
    user
}

fn a_user_who_may_not_read_the_volume_gets_unknown() {
    let cluster = TestCluster::shared();
    let namespace = cluster.namespace("loss");
    let user = only_in(&namespace);
    let pushback = Pushback::with_kubeconfig(&cluster.kubeconfig_once_allowed(&user, &namespace));
    let app = TestApp::of(pushback, "app", &namespace);
    let rest = config_map("a", "1");
    apply(&app, &(rest.clone() + &storage(&app, "Delete")), &json!({})).expect(0);
    let (closed, report) = check(&app, &rest, &json!({}));
    assert_eq!(closed, "10 persistentVolumeClaimDeleted error PersistentVolumeClaim");
    assert_eq!(report["findings"][0]["verdict"], "unknown");
    let (open, _) = check(&app, &rest, &json!({"failMode": "open"}));
    assert_eq!(open, "0 persistentVolumeClaimDeleted warning PersistentVolumeClaim");
}

fn a_namespace_is_not_pruned_while_others_keep_something_in_it() {
    let app = app();
    let inner = format!("{}-inner", app.namespace);
    let rest = config_map("a", "1");
    let own = format!("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: own, namespace: {inner}}}\n");
    let namespace = format!("---\napiVersion: v1\nkind: Namespace\nmetadata: {{name: {inner}}}\n");
    apply(&app, &(rest.clone() + &namespace + &own), &json!({})).expect(0);
    let (empty, _) = check(&app, &rest, &json!({}));
    assert_eq!(empty, "0 namespaceDeleted info Namespace", "all that is in it is the app's");

    let other = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "other", "namespace": inner}});
    api().post(&format!("/api/v1/namespaces/{inner}/secrets"), &other).ok();
    let (found, report) = check(&app, &rest, &json!({}));
    assert_eq!(found, "10 namespaceDeleted error Namespace");
    assert_eq!(report["findings"][0]["liveObjects"]["names"], json!([format!("Secret {inner}/other")]));
    apply(&app, &rest, &json!({})).expect(10);
    let live = api().get(&format!("/api/v1/namespaces/{inner}")).ok();
    assert_eq!(live["metadata"]["deletionTimestamp"], Value::Null, "nothing is written");
}

fn a_claim_is_replaced_only_by_its_own_wish_and_refused_then() {
    let app = app();
    let claim = storage(&app, "Delete");
    apply(&app, &claim, &json!({})).expect(0);
    let path = format!("/api/v1/namespaces/{}/persistentvolumeclaims/delete", app.namespace);
    let before = api().get(&path).ok()["metadata"]["uid"].take();
    let other_class = claim.replace("storageClassName: none", "storageClassName: other");
    for strategy in ["fallback-on-replace", "always-replace"] {
        let ran = app.apply(&other_class, &["--apply-default-update-strategy", strategy]).expect(10);
        let finding = &ran.events_of("finding")[0]["finding"];
        assert_eq!(finding["rule"], "server", "a setting for all objects replaces no data: {finding}");
        assert!(finding["remedy"].as_str().is_some_and(|remedy| remedy.contains("another name")), "{finding}");
    }
    let annotation = "{name: delete, annotations: {kapp.k14s.io/update-strategy: fallback-on-replace}}";
    let ran = apply(&app, &other_class.replace("{name: delete}", annotation), &json!({})).expect(10);
    let finding = &ran.events_of("finding")[0]["finding"];
    assert_eq!(finding["check"], "persistentVolumeClaimDeleted");
    assert!(
        finding["message"].as_str().is_some_and(|text| text.starts_with("the claim is deleted and created anew, "))
    );
    assert_eq!(api().get(&path).ok()["metadata"]["uid"], before);
}

fn a_definition_is_judged_once_whichever_rules_run() {
    let pushback = Pushback::new();
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"kind": "Widget", "plural": "widgets"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}],
        },
    });
    pushback.write("in/a.yaml", config_map("a", "1")).write("in/crd.json", definition.to_string());
    pushback.run(&["apply", "-a", "x", "-f", "in", "--cluster", "dir:live", "--yes"]).expect(0);
    let widget = json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "others", "namespace": "default"}});
    pushback.write("live/others.json", widget.to_string());
    std::fs::remove_file(pushback.directory().join("in/crd.json")).expect("a file");
    for (rules, found) in [
        ("DestructiveChange", "crdDeleted error CustomResourceDefinition"),
        ("CRDUpgradeSafety", "crdDeletion error CustomResourceDefinition"),
        ("DestructiveChange,CRDUpgradeSafety", "crdDeletion error CustomResourceDefinition"),
    ] {
        let check = ["check", "-a", "x", "-f", "in", "--cluster", "dir:live", "--preflight", rules, "-o", "json"];
        let report = pushback.run(&check).expect(10).json();
        assert_eq!(said(report["findings"].as_array().expect("findings")), [found], "{rules}");
    }
}

fn stateful_set(service: &str) -> String {
    format!(
        "
apiVersion: apps/v1
kind: StatefulSet
metadata:
  name: db
  annotations: {{kapp.k14s.io/update-strategy: fallback-on-replace}}
spec:
  serviceName: {service}
  replicas: 2
  selector: {{matchLabels: {{app: db}}}}
  template:
    metadata: {{labels: {{app: db}}}}
    spec: {{containers: [{{name: db, image: 'registry.example/db:1'}}]}}
  volumeClaimTemplates:
  - metadata: {{name: data}}
    spec: {{accessModes: [ReadWriteOnce], resources: {{requests: {{storage: 1Gi}}}}}}
"
    )
}

fn a_replaced_stateful_set_is_refused() {
    let app = app();
    apply(&app, &stateful_set("db"), &json!({})).expect(0);
    let path = format!("/apis/apps/v1/namespaces/{}/statefulsets/db", app.namespace);
    let before = api().get(&path).ok();
    let ran = apply(&app, &stateful_set("other"), &json!({})).expect(10);
    let finding = &ran.events_of("finding")[0]["finding"];
    assert_eq!(finding["check"], "statefulSetReplaced");
    let message = "the StatefulSet is deleted and created anew: its 2 Pods stop at the same time; the claims of its templates are used again";
    assert_eq!(finding["message"], message);
    assert_eq!(api().get(&path).ok()["metadata"]["uid"], before["metadata"]["uid"]);
}

fn replicas_that_fall_back_to_a_default_are_refused() {
    let app = app();
    let deployment = |replicas: &str| {
        format!(
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: web}}\nspec:\n{replicas}  selector: {{matchLabels: {{app: web}}}}\n  template:\n    metadata: {{labels: {{app: web}}}}\n    spec: {{containers: [{{name: web, image: 'registry.example/web:1'}}]}}\n"
        )
    };
    apply(&app, &deployment("  replicas: 3\n"), &json!({})).expect(0);
    let path = format!("/apis/apps/v1/namespaces/{}/deployments/web", app.namespace);
    let ran = apply(&app, &deployment(""), &json!({})).expect(10);
    let finding = &ran.events_of("finding")[0]["finding"];
    assert_eq!((&finding["check"], &finding["old"], &finding["new"]), (&json!("replicasReset"), &json!(3), &json!(1)));
    assert_eq!(api().get(&path).ok()["spec"]["replicas"], 3);
    let (wished, _) = check(&app, &deployment("  replicas: 1\n"), &json!({}));
    assert_eq!(wished, "0 ", "a number in the manifest is a wish");

    // An autoscaler keeps it: then nothing is reset.
    let scale = json!({"spec": {"replicas": 4}});
    let scaled = format!("{path}/scale?fieldManager=kube-controller-manager");
    api().request("PATCH", &scaled, Some("application/merge-patch+json"), Some(&scale)).expect("an answer").ok();
    let (kept, _) = check(&app, &deployment(""), &json!({}));
    assert_eq!(kept, "0 ");
}

fn most_of_an_app_is_not_pruned_at_once() {
    let app = app();
    let input = |names: &[&str]| names.iter().map(|name| config_map(name, "1")).collect::<String>();
    let all = ["a", "b", "c", "d", "e", "f", "g"];
    apply(&app, &input(&all), &json!({})).expect(0);
    let (few, _) = check(&app, &input(&all[..3]), &json!({}));
    assert_eq!(few, "0 ", "four are less than five");
    let ran = apply(&app, &input(&all[..2]), &json!({})).expect(10);
    let finding = &ran.events_of("finding")[0]["finding"];
    assert_eq!(finding["message"], "5 of the app's 7 objects are deleted, which is more than 50 %");
    assert_eq!(api().get(&config_map_path(&app.namespace, "g")).status, 200, "nothing is written");
    app.pushback.write("app.yaml", input(&all[..2]));
    let patch = app.run("check", &["-f", "app.yaml", "--config", "config.yaml", "--patch"]).expect(0);
    assert_eq!(patch.json()["findings"], json!([]));
    let waiver = format!("{}=moved elsewhere", finding["fingerprint"].as_str().expect("one"));
    app.apply(&input(&all[..2]), &["--config", "config.yaml", "--waive", &waiver]).expect(0);
    assert_eq!(api().get(&config_map_path(&app.namespace, "g")).status, 404);
}

fn deleting_an_app_deletes_what_it_owns_and_warns_of_its_data() {
    let app = app();
    let config_maps: String = (0..6).map(|number| config_map(&format!("c{number}"), "1")).collect();
    apply(&app, &(config_maps + &storage(&app, "Delete")), &json!({})).expect(0);
    let ran = app.delete(&["--config", "config.yaml"]).expect(0);
    let findings: Vec<Value> = ran.events_of("finding").into_iter().map(|mut event| event["finding"].take()).collect();
    assert_eq!(said(&findings), ["persistentVolumeClaimDeleted warning PersistentVolumeClaim"]);
    assert_eq!(api().get(&app.record_path()).status, 404);
}

fn deleting_an_app_refuses_what_is_not_its_own() {
    let app = app();
    let inner = format!("{}-inner", app.namespace);
    let namespace = format!("---\napiVersion: v1\nkind: Namespace\nmetadata: {{name: {inner}}}\n");
    apply(&app, &(config_map("a", "1") + &namespace), &json!({})).expect(0);
    let other = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "other", "namespace": inner}});
    api().post(&format!("/api/v1/namespaces/{inner}/configmaps"), &other).ok();
    let ran = app.delete(&["--config", "config.yaml"]).expect(10);
    let findings: Vec<Value> = ran.events_of("finding").into_iter().map(|mut event| event["finding"].take()).collect();
    assert_eq!(said(&findings), ["namespaceDeleted error Namespace"]);
    assert_eq!(api().get(&config_map_path(&app.namespace, "a")).status, 200, "nothing is written");
}

fn a_folder_is_judged_too() {
    let pushback = Pushback::new();
    let input = |names: &[&str]| names.iter().map(|name| config_map(name, "1")).collect::<String>();
    let claim = "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data}\nspec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n";
    pushback.write("in/all.yaml", input(&["a", "b", "c", "d", "e", "f"]) + claim);
    pushback.run(&["apply", "-a", "x", "-f", "in", "--cluster", "dir:live", "--yes"]).expect(0);
    pushback.write("in/all.yaml", input(&["a"]));
    let check =
        ["check", "-a", "x", "-f", "in", "--cluster", "dir:live", "--preflight=DestructiveChange", "-o", "json"];
    let ran = pushback.run(&check).expect(10);
    let report = ran.json();
    let findings = report["findings"].as_array().expect("findings");
    assert_eq!(said(findings), ["deletedShare error App", "persistentVolumeClaimDeleted error PersistentVolumeClaim"]);
    assert_eq!(findings[1]["verdict"], "unknown");
}
