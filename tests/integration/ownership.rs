//! Whose an object is: another app's is refused by name and place, nobody's is taken on, once.

use serde_json::{Value, json};

use crate::support::api::ApiClient;
use crate::support::apply::{TestApp, config_map, config_map_path, error, planned};
use crate::support::{TestCase, TestCluster, cases};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        ApiServer: an_object_of_another_app_is_refused_with_that_apps_name_and_the_place,
        ApiServer: objects_of_other_apps_are_taken_over_on_demand,
        ApiServer: only_objects_of_allowed_apps_are_taken_over,
        ApiServer: the_record_of_an_app_is_no_object_of_another,
        ApiServer: what_kubectl_created_is_adopted_once,
        ApiServer: what_kubectl_applied_is_adopted_with_its_removals,
        ApiServer: an_object_of_a_server_side_apply_keeps_the_other_managers_fields,
        ApiServer: a_selector_of_an_adopted_object_stays_as_it_is,
        Controllers: what_admission_has_filled_in_does_not_stand_in_the_way,
        ApiServer: what_cannot_be_removed_stays_and_is_no_obstacle,
    ]
}

fn api() -> &'static ApiClient {
    TestCluster::shared().api()
}

fn two_apps() -> (TestApp, TestApp) {
    let namespace = TestCluster::shared().namespace("owner");
    (TestApp::new("first", &namespace), TestApp::new("second", &namespace))
}

fn owner(app: &TestApp, name: &str) -> Value {
    api().get(&config_map_path(&app.namespace, name)).ok()["metadata"]["labels"]["kapp.k14s.io/app"].take()
}

fn an_object_of_another_app_is_refused_with_that_apps_name_and_the_place() {
    let (first, second) = two_apps();
    first.apply(&config_map("shared", "1"), &[]).expect(0);
    let ran = second.apply(&(config_map("new", "1") + &config_map("shared", "2")), &[]).expect(1);
    let message = error(&ran);
    for part in ["ConfigMap", "shared", "'first'", "app.yaml:9"] {
        assert!(message.contains(part), "no {part} in {message}");
    }
    assert_eq!(api().get(&config_map_path(&second.namespace, "new")).status, 404);
    assert_eq!(api().get(&second.record_path()).status, 404, "nothing is written, not even the record");
    assert_eq!(owner(&first, "shared"), first.label());
}

fn objects_of_other_apps_are_taken_over_on_demand() {
    let (first, second) = two_apps();
    first.apply(&(config_map("shared", "1") + &config_map("own", "1")), &[]).expect(0);
    second.apply(&config_map("shared", "2"), &["--dangerous-override-ownership-of-existing-resources"]).expect(0);
    assert_eq!(owner(&second, "shared"), second.label());
    first.apply(&(config_map("shared", "1") + &config_map("own", "1")), &[]).expect(1);
    // The first app does not prune what is no longer its own, although it remembers the uid.
    assert_eq!(planned(&first.apply(&config_map("own", "1"), &[]).expect(0)), Vec::<String>::new());
    first.delete(&[]).expect(0);
    assert_eq!(owner(&second, "shared"), second.label());
}

fn only_objects_of_allowed_apps_are_taken_over() {
    let (first, second) = two_apps();
    first.apply(&config_map("shared", "1"), &[]).expect(0);
    let ran = second.apply(&config_map("shared", "2"), &["--ownership-override-allowed-apps", "third"]).expect(1);
    assert!(error(&ran).contains("'first'"));
    second.apply(&config_map("shared", "2"), &["--ownership-override-allowed-apps", "third,first"]).expect(0);
    assert_eq!(owner(&second, "shared"), second.label());
}

fn the_record_of_an_app_is_no_object_of_another() {
    let (first, second) = two_apps();
    first.apply(&config_map("a", "1"), &[]).expect(0);
    let before = first.record();
    let all = "--dangerous-override-ownership-of-existing-resources";
    let ran = second.apply(&config_map("first", "2"), &[all]).expect(1);
    assert!(error(&ran).contains("is the record of an app"), "{}", error(&ran));
    assert_eq!(first.record(), before);
}

/// Applies twice: the first takes it on, the second has nothing to do and writes nothing.
fn assert_adopted(app: &TestApp, input: &str, path: &str) -> Value {
    app.apply(input, &["--wait=false"]).expect(0);
    let adopted = api().get(path).ok();
    assert_eq!(adopted["metadata"]["labels"]["kapp.k14s.io/app"], app.label().as_str());
    assert_eq!(planned(&app.apply(input, &["--wait=false"]).expect(0)), Vec::<String>::new());
    // A status may have come since; what we own has not been written again.
    let ours = |object: &Value| {
        let entries = object["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
        entries.into_iter().filter(|entry| entry["manager"] == "pushback").collect::<Vec<_>>()
    };
    let after = api().get(path).ok();
    assert_eq!(ours(&after), ours(&adopted));
    assert_eq!(after["metadata"]["generation"], adopted["metadata"]["generation"]);
    adopted
}

fn what_kubectl_created_is_adopted_once() {
    let (app, _) = two_apps();
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"key": "1", "gone": "x"},
        "metadata": {"namespace": app.namespace, "name": "a"}});
    let collection = format!("/api/v1/namespaces/{}/configmaps", app.namespace);
    api().post(&format!("{collection}?fieldManager=kubectl-create"), &object).ok();
    let adopted = assert_adopted(&app, &config_map("a", "1"), &config_map_path(&app.namespace, "a"));
    // Nobody has said that the object is described by a manifest: what the input does not have is left alone.
    assert_eq!(adopted["data"], json!({"key": "1", "gone": "x"}));
    assert_eq!(planned(&app.apply(&config_map("b", "1"), &[]).expect(0)), ["create ConfigMap b", "delete ConfigMap a"]);
}

fn what_kubectl_applied_is_adopted_with_its_removals() {
    let (app, _) = two_apps();
    let last = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"key": "1", "gone": "x"},
        "metadata": {"namespace": app.namespace, "name": "a", "annotations": {}}});
    let mut object = last.clone();
    object["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"] = json!(last.to_string());
    let collection = format!("/api/v1/namespaces/{}/configmaps", app.namespace);
    api().post(&format!("{collection}?fieldManager=kubectl-client-side-apply"), &object).ok();
    let path = config_map_path(&app.namespace, "a");
    // Somebody has edited it since; that is not ours to undo.
    let edit = api().request(
        "PATCH",
        &format!("{path}?fieldManager=kubectl-edit"),
        Some("application/merge-patch+json"),
        Some(&json!({"data": {"edited": "by hand"}})),
    );
    edit.expect("an answer").ok();
    let adopted = assert_adopted(&app, &config_map("a", "1"), &path);
    assert_eq!(adopted["data"], json!({"key": "1", "edited": "by hand"}));
}

fn an_object_of_a_server_side_apply_keeps_the_other_managers_fields() {
    let (app, _) = two_apps();
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"key": "theirs", "theirs": "x"},
        "metadata": {"namespace": app.namespace, "name": "a"}});
    api().apply_with(&object, "fieldManager=gitops&force=true").ok();
    let adopted = assert_adopted(&app, &config_map("a", "1"), &config_map_path(&app.namespace, "a"));
    assert_eq!(adopted["data"], json!({"key": "1", "theirs": "x"}));
}

fn a_selector_of_an_adopted_object_stays_as_it_is() {
    let (app, _) = two_apps();
    let input = "
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: 'registry.example/web:1'}]}
";
    let paths: Vec<String> = serde_yaml::from_multiple::<Value>(input)
        .expect("YAML")
        .into_iter()
        .map(|mut object| {
            object["metadata"]["namespace"] = json!(app.namespace);
            let path = api().path_of(&object);
            let (collection, _) = path.rsplit_once('/').expect("a collection");
            api().post(&format!("{collection}?fieldManager=kubectl-create"), &object).ok();
            path
        })
        .collect();
    app.apply(input, &["--wait=false"]).expect(0);
    assert_eq!(api().get(&paths[0]).ok()["spec"]["selector"], json!({"app": "web"}));
    let deployment = api().get(&paths[1]).ok();
    assert_eq!(deployment["spec"]["selector"]["matchLabels"], json!({"app": "web"}));
    assert_eq!(deployment["spec"]["template"]["metadata"]["labels"]["kapp.k14s.io/app"], app.label().as_str());
    assert_eq!(planned(&app.apply(input, &["--wait=false"]).expect(0)), Vec::<String>::new());
}

/// Creates an object as a tool does that sends whole objects.
fn create_as(manager: &str, app: &TestApp, input: &str) -> String {
    let mut object: Value = serde_yaml::from_str(input).expect("YAML");
    object["metadata"]["namespace"] = json!(app.namespace);
    let path = api().path_of(&object);
    let (collection, _) = path.rsplit_once('/').expect("a collection");
    api().post(&format!("{collection}?fieldManager={manager}"), &object).ok();
    path
}

fn what_admission_has_filled_in_does_not_stand_in_the_way() {
    let (app, _) = two_apps();
    // The server has put tolerations and a token volume into the Pod, and kubectl counts as who has set them.
    let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: main, image: 'registry.example/main:1'}]}\n";
    let path = create_as("kubectl-client-side-apply", &app, pod);
    let before = api().get(&path).ok();
    assert!(before["spec"]["tolerations"].is_array(), "not what is tested: {before}");
    let adopted = assert_adopted(&app, pod, &path);
    assert_eq!(adopted["metadata"]["uid"], before["metadata"]["uid"]);
    assert_eq!(adopted["spec"]["tolerations"], before["spec"]["tolerations"]);
}

fn what_cannot_be_removed_stays_and_is_no_obstacle() {
    let (app, _) = two_apps();
    let claim = |class: &str| {
        format!(
            "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {{name: data}}\nspec:\n{class}  accessModes: [ReadWriteOnce]\n  resources: {{requests: {{storage: 1Gi}}}}\n"
        )
    };
    // As a default class is recorded: set by the tool that sent the claim, although its manifest had none.
    let path = create_as("kubectl-client-side-apply", &app, &claim("  storageClassName: filled-in\n"));
    let adopted = assert_adopted(&app, &claim(""), &path);
    assert_eq!(adopted["spec"]["storageClassName"], "filled-in");
}
