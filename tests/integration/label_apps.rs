//! Apps that a label defines, `-a label:KEY=VALUE`: they have no record, so that every object with the label is looked for in
//! every kind, and each is compared by the server.

use serde_json::json;

use crate::support::api::ApiClient;
use crate::support::apply::{TestApp, config_map, config_map_path, error, planned};
use crate::support::{Pushback, TestCase, TestCluster, cases};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        ApiServer: it_is_written_compared_pruned_and_deleted_without_a_record,
        ApiServer: templates_and_selectors_have_its_label,
        ApiServer: what_has_the_label_by_somebody_else_stays,
        ApiServer: an_object_of_another_value_is_refused,
        ApiServer: nothing_of_an_app_with_a_record_is_deleted_by_its_label,
        ApiServer: under_kapps_name_it_reads_as_an_app,
        Nothing: a_folder_has_no_such_app,
    ]
}

const KEY: &str = "example.com/part";

fn api() -> &'static ApiClient {
    TestCluster::shared().api()
}

/// An app that is named after its namespace, since labels reach over the whole cluster.
fn app(prefix: &str) -> TestApp {
    let namespace = TestCluster::shared().namespace(prefix);
    TestApp::new(&format!("label:{KEY}={namespace}"), &namespace)
}

/// The ConfigMaps of a namespace, without that of the cluster.
fn config_maps(namespace: &str) -> Vec<String> {
    let all = api().list(&format!("/api/v1/namespaces/{namespace}/configmaps"));
    let names = all.iter().filter_map(|object| object["metadata"]["name"].as_str());
    names.filter(|name| *name != "kube-root-ca.crt").map(str::to_owned).collect()
}

fn it_is_written_compared_pruned_and_deleted_without_a_record() {
    let app = app("label");
    let both = |value: &str| config_map("a", value) + &config_map("b", "1");
    let ran = app.apply(&both("1"), &[]).expect(0);
    assert_eq!(planned(&ran), ["create ConfigMap a", "create ConfigMap b"]);
    assert_eq!(config_maps(&app.namespace), ["a", "b"]);
    let metadata = api().get(&config_map_path(&app.namespace, "a")).ok()["metadata"].take();
    assert_eq!(metadata["labels"][KEY], app.namespace.as_str());
    assert_eq!(metadata["labels"]["kapp.k14s.io/app"], json!(null));
    let identity = format!("v1;{}//ConfigMap/a;v1", app.namespace);
    assert_eq!(metadata["annotations"]["kapp.k14s.io/identity"], identity.as_str());

    assert_eq!(planned(&app.apply(&both("1"), &[]).expect(0)), Vec::<String>::new());
    assert_eq!(planned(&app.apply(&both("2"), &[]).expect(0)), ["update ConfigMap a"]);
    assert_eq!(app.inspected(), ["ConfigMap a", "ConfigMap b"]);
    assert_eq!(planned(&app.apply(&config_map("a", "2"), &[]).expect(0)), ["delete ConfigMap b"]);
    assert_eq!(config_maps(&app.namespace), ["a"]);
    assert_eq!(planned(&app.delete(&[]).expect(0)), ["delete ConfigMap a"]);
    assert!(config_maps(&app.namespace).is_empty());
    app.delete(&[]).expect(0);
}

fn templates_and_selectors_have_its_label() {
    let app = app("label");
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "main", "image": "registry.example/web:1"}]}}},
    });
    let input = format!("---\n{deployment}\n");
    app.apply(&input, &["--wait=false"]).expect(0);
    let live = api().get(&format!("/apis/apps/v1/namespaces/{}/deployments/web", app.namespace)).ok();
    assert_eq!(live["spec"]["template"]["metadata"]["labels"][KEY], app.namespace.as_str());
    assert_eq!(live["spec"]["selector"]["matchLabels"][KEY], app.namespace.as_str());
    assert_eq!(planned(&app.apply(&input, &["--wait=false"]).expect(0)), Vec::<String>::new());
    app.delete(&["--wait=false"]).expect(0);
}

fn what_has_the_label_by_somebody_else_stays() {
    let app = app("label");
    let theirs = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {
        "namespace": app.namespace, "name": "theirs", "labels": {KEY: app.namespace}}});
    api().apply(&theirs).ok();
    assert_eq!(planned(&app.apply(&config_map("a", "1"), &[]).expect(0)), ["create ConfigMap a"]);
    assert_eq!(planned(&app.delete(&[]).expect(0)), ["delete ConfigMap a"]);
    assert_eq!(config_maps(&app.namespace), ["theirs"]);
}

fn an_object_of_another_value_is_refused() {
    let app = app("label");
    app.apply(&config_map("a", "1"), &[]).expect(0);
    let other = TestApp::new(&format!("label:{KEY}=other"), &app.namespace);
    let said = error(&other.apply(&config_map("a", "2"), &[]).expect(1));
    assert!(said.contains(&format!("a different label '{KEY}={}'", app.namespace)), "{said}");
    assert_eq!(api().get(&config_map_path(&app.namespace, "a")).ok()["data"]["key"], "1");
    app.delete(&[]).expect(0);
}

fn nothing_of_an_app_with_a_record_is_deleted_by_its_label() {
    let shop = TestApp::new("shop", &TestCluster::shared().namespace("label"));
    shop.apply(&config_map("a", "1"), &[]).expect(0);
    let by_label = TestApp::new(&format!("label:kapp.k14s.io/app={}", shop.label()), &shop.namespace);
    assert_eq!(by_label.inspected(), ["ConfigMap a"]);
    let said = error(&by_label.delete(&[]).expect(1));
    assert!(said.contains("is the record of an app with the same label"), "{said}");
    assert_eq!(shop.history().len(), 1);
    assert_eq!(shop.inspected(), ["ConfigMap a"]);
}

fn under_kapps_name_it_reads_as_an_app() {
    let namespace = TestCluster::shared().namespace("label");
    let kapp =
        Pushback::on(TestCluster::shared()).with("PUSHBACK_VOICE", "kapp").with("KAPP_NAMESPACE", namespace.as_str());
    kapp.write("app.yaml", config_map("a", "1"));
    let label = format!("{KEY}={namespace}");
    let app = format!("label:{label}");
    let run = |arguments: &[&str]| kapp.run(&[arguments, &["-a", &app]].concat());
    let deployed = run(&["deploy", "-f", "app.yaml", "-y"]).expect(0).stdout;
    assert!(deployed.contains(" 1 create, 0 delete") && deployed.ends_with("\nSucceeded\n"), "{deployed}");
    assert_eq!(run(&["label"]).expect(0).stdout.trim(), label);
    assert!(run(&["inspect"]).expect(0).stdout.contains("\ta\tConfigMap\tkapp\tok\t"));
    run(&["logs"]).expect(0);
    assert_eq!(run(&["app-change", "list"]).expect(0).stdout, "");
    assert_eq!(kapp.run(&["list"]).expect(0).stdout, "");
    run(&["rename", "--new-name", "b", "-y"]).expect(1);
    let deleted = run(&["delete", "-y"]).expect(0).stdout;
    assert!(deleted.contains(" 1 delete, 0 update") && deleted.ends_with("\nSucceeded\n"), "{deleted}");
    let again = run(&["delete", "-y"]).expect(0).stdout;
    assert!(again.contains(" 0 delete, 0 update") && again.ends_with("\nSucceeded\n"), "{again}");
    for selector in ["label:a=b,c=d", "label:a", "label:a!=b"] {
        kapp.run(&["inspect", "-a", selector]).expect(1);
    }
}

fn a_folder_has_no_such_app() {
    let pushback = Pushback::new();
    pushback.write("app.yaml", config_map("a", "1"));
    let apply = ["apply", "-a", "label:a=b", "-n", "shop", "-f", "app.yaml", "--yes", "--cluster", "dir:live"];
    let ran = pushback.run(&apply).expect(1);
    assert!(ran.stderr.contains("is defined by a label, which objects in a folder do not have"), "{}", ran.stderr);
}
