//! Versioned objects: a change is a new object under the next version, references follow, and older versions stay as
//! long as kapp keeps them. The names and what stays were compared with a real kapp on the same input.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::api::ApiClient;
use crate::support::apply::{TestApp, config_map, config_map_path, error, planned, short};
use crate::support::pushback::Pushback;
use crate::support::{TestCase, TestCluster, cases, kapp, poll};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        ApiServer: a_change_is_a_new_version_and_references_follow,
        ApiServer: as_many_older_versions_stay_as_the_annotation_says,
        ApiServer: the_original_stays_beside_its_versions,
        ApiServer: an_object_becomes_versioned_and_plain_again,
        ApiServer: a_version_that_cannot_be_changed_or_was_edited_gets_a_successor,
        ApiServer: what_is_to_be_renewed_is_written_again_when_its_time_has_come,
        ApiServer: a_config_names_further_references,
        ApiServer: an_app_of_kapp_with_versions_is_taken_over,
        Nothing: in_a_folder_versions_are_kept_the_same_way,
        Nothing: what_cannot_be_versioned_is_told_with_its_place,
    ]
}

fn api() -> &'static ApiClient {
    TestCluster::shared().api()
}

fn app() -> TestApp {
    TestApp::new("shop", &TestCluster::shared().namespace("versioned"))
}

/// A versioned ConfigMap with one value, and further annotations as lines of YAML.
fn settings(name: &str, value: &str, annotations: &str) -> String {
    format!(
        "---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n  annotations:\n    \
         kapp.k14s.io/versioned: ''\n{annotations}data:\n  key: {value:?}\n"
    )
}

fn refers_to(name: &str) -> String {
    format!(
        "    kapp.k14s.io/versioned-explicit-ref: |\n      apiVersion: v1\n      kind: ConfigMap\n      name: {name}\n"
    )
}

/// A Deployment with every kind of reference, without Pods.
const WEB: &str = "---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 0
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      imagePullSecrets: [{name: sec}]
      initContainers:
      - name: first
        image: registry.example/web:1
        env: [{name: A, valueFrom: {configMapKeyRef: {name: cfg, key: key}}}]
      containers:
      - name: main
        image: registry.example/web:1
        envFrom: [{configMapRef: {name: cfg}}, {secretRef: {name: sec}}, {configMapRef: {name: other}}]
        env: [{name: B, valueFrom: {secretKeyRef: {name: sec, key: password}}}]
      volumes:
      - {name: one, configMap: {name: cfg}}
      - {name: two, secret: {secretName: sec}}
      - {name: three, projected: {sources: [{configMap: {name: cfg}}, {secret: {name: sec}}]}}
";

const SECRET: &str = "---\napiVersion: v1\nkind: Secret\nmetadata: {name: sec, annotations: {kapp.k14s.io/versioned: \
                      ''}}\nstringData: {password: example-only}\n";

/// Names in a Deployment, in the order of [`WEB`].
fn names(deployment: &Value) -> Vec<String> {
    let pod = &deployment["spec"]["template"]["spec"];
    let main = &pod["containers"][0];
    [
        &pod["imagePullSecrets"][0]["name"],
        &pod["initContainers"][0]["env"][0]["valueFrom"]["configMapKeyRef"]["name"],
        &main["envFrom"][0]["configMapRef"]["name"],
        &main["envFrom"][1]["secretRef"]["name"],
        &main["envFrom"][2]["configMapRef"]["name"],
        &main["env"][0]["valueFrom"]["secretKeyRef"]["name"],
        &pod["volumes"][0]["configMap"]["name"],
        &pod["volumes"][1]["secret"]["secretName"],
        &pod["volumes"][2]["projected"]["sources"][0]["configMap"]["name"],
        &pod["volumes"][2]["projected"]["sources"][1]["secret"]["name"],
    ]
    .map(|name| name.as_str().unwrap_or_default().to_owned())
    .to_vec()
}

/// Names of the app's ConfigMaps and Secrets.
fn stored(app: &TestApp) -> Vec<String> {
    let selector = format!("labelSelector=kapp.k14s.io/app%3D{}", app.label());
    let mut names: Vec<String> = ["configmaps", "secrets"]
        .iter()
        .flat_map(|kind| api().list(&format!("/api/v1/namespaces/{}/{kind}?{selector}", app.namespace)))
        .map(|object| object["metadata"]["name"].as_str().expect("a name").to_owned())
        .collect();
    names.sort();
    names
}

#[track_caller]
fn deploy(app: &TestApp, input: &str) -> Vec<String> {
    let mut lines = planned(&app.apply(input, &["--wait=false"]).expect(0));
    lines.retain(|line| !line.starts_with("noop"));
    lines.sort();
    lines
}

fn a_change_is_a_new_version_and_references_follow() {
    let app = app();
    // A chain: the second ConfigMap refers to the first one, the third to the second.
    let input = |value: &str| {
        let chain = settings("third", "x", &refers_to("second")) + &settings("second", "x", &refers_to("cfg"));
        chain + &settings("cfg", value, "") + SECRET + WEB + &config_map("other", "1")
    };
    app.apply(&input("1"), &["--wait=false"]).expect(0);
    let web = format!("/apis/apps/v1/namespaces/{}/deployments/web", app.namespace);
    let expected = |number: u32| {
        let cfg = format!("cfg-ver-{number}");
        let (cfg, sec) = (cfg.as_str(), "sec-ver-1");
        [sec, cfg, cfg, sec, "other", sec, cfg, sec, cfg, sec].map(str::to_owned).to_vec()
    };
    assert_eq!(names(&api().get(&web).ok()), expected(1));
    assert_eq!(stored(&app), ["cfg-ver-1", "other", "sec-ver-1", "second-ver-1", "third-ver-1"]);

    let unchanged = app.apply(&input("1"), &["--wait=false"]).expect(0);
    assert_eq!(unchanged.end()["outcome"], "unchanged", "{}", unchanged.end());

    let lines = deploy(&app, &input("2"));
    let create = ["cfg-ver-2", "second-ver-2", "third-ver-2"].map(|name| format!("create ConfigMap {name}"));
    assert_eq!(lines, [&create[..], &["update Deployment web".to_owned()]].concat());
    assert_eq!(names(&api().get(&web).ok()), expected(2));
    let third = api().get(&config_map_path(&app.namespace, "third-ver-2")).ok();
    let annotations = &third["metadata"]["annotations"];
    assert_eq!(
        annotations["kapp.k14s.io/versioned-explicit-ref"],
        "apiVersion: v1\nkind: ConfigMap\nname: second-ver-2\n"
    );
    let identity = format!("v1;{}//ConfigMap/third-ver-2;v1", app.namespace);
    assert_eq!(annotations["kapp.k14s.io/identity"], identity.as_str());

    // kapp finds the Pods of all versions by one label.
    let association = |name: &str| {
        let object = api().get(&config_map_path(&app.namespace, name)).ok();
        object["metadata"]["labels"]["kapp.k14s.io/association"].clone()
    };
    assert_eq!(association("cfg-ver-1"), association("cfg-ver-2"));
    assert_ne!(association("cfg-ver-1"), association("second-ver-1"));
    assert_eq!(stored(&app).len(), 8, "older versions stay");
    let inspected = app.inspected();
    assert!(inspected.contains(&"ConfigMap cfg-ver-1".to_owned()), "they belong to the app: {inspected:?}");
    // The older value again is not the older version again.
    assert_eq!(deploy(&app, &input("1"))[0], "create ConfigMap cfg-ver-3");
    app.delete(&["--wait=false"]).expect(0);
    assert_eq!(api().get(&config_map_path(&app.namespace, "cfg-ver-1")).status, 404, "they go with the app");
}

fn as_many_older_versions_stay_as_the_annotation_says() {
    let app = app();
    let input = |value: u32| settings("cfg", &value.to_string(), "    kapp.k14s.io/num-versions: \"2\"\n");
    for value in 1..=3 {
        deploy(&app, &input(value));
    }
    assert_eq!(stored(&app), ["cfg-ver-1", "cfg-ver-2", "cfg-ver-3"]);
    assert_eq!(deploy(&app, &input(4)), ["create ConfigMap cfg-ver-4", "delete ConfigMap cfg-ver-1"]);
    assert_eq!(deploy(&app, &input(4)), ["delete ConfigMap cfg-ver-2"]);
    assert_eq!(deploy(&app, &input(4)), Vec::<String>::new());

    let by_default = TestApp::new("other", &app.namespace);
    for value in 1..=7 {
        deploy(&by_default, &settings("many", &value.to_string(), ""));
    }
    let kept: Vec<String> = (2..=7).map(|number| format!("many-ver-{number}")).collect();
    assert_eq!(stored(&by_default), kept);
    // Numbers, not texts: the tenth comes after the ninth.
    for value in 8..=11 {
        deploy(&by_default, &settings("many", &value.to_string(), ""));
    }
    assert_eq!(api().get(&config_map_path(&app.namespace, "many-ver-11")).ok()["data"]["key"], "11");
}

fn the_original_stays_beside_its_versions() {
    let app = app();
    let input = |value: &str| settings("cfg", value, "    kapp.k14s.io/versioned-keep-original: ''\n");
    deploy(&app, &input("1"));
    assert_eq!(deploy(&app, &input("2")), ["create ConfigMap cfg-ver-2", "update ConfigMap cfg"]);
    assert_eq!(api().get(&config_map_path(&app.namespace, "cfg")).ok()["data"]["key"], "2");
    assert_eq!(deploy(&app, &input("2")), Vec::<String>::new());
}

fn an_object_becomes_versioned_and_plain_again() {
    let app = app();
    deploy(&app, &config_map("cfg", "1"));
    assert_eq!(deploy(&app, &settings("cfg", "1", "")), ["create ConfigMap cfg-ver-1", "delete ConfigMap cfg"]);
    deploy(&app, &settings("cfg", "2", ""));
    let plain = ["create ConfigMap cfg", "delete ConfigMap cfg-ver-1", "delete ConfigMap cfg-ver-2"];
    assert_eq!(deploy(&app, &config_map("cfg", "1")), plain);
}

fn a_version_that_cannot_be_changed_or_was_edited_gets_a_successor() {
    let app = app();
    let input = |value: &str| settings("cfg", value, "") + "immutable: true\n" + &settings("free", "1", "");
    deploy(&app, &input("1"));
    assert_eq!(deploy(&app, &input("2")), ["create ConfigMap cfg-ver-2"]);
    let free = config_map_path(&app.namespace, "free-ver-1");
    api().merge_patch(&free, &json!({"data": {"more": "of others"}})).ok();
    assert_eq!(deploy(&app, &input("2")), Vec::<String>::new(), "what others add is theirs");
    api().merge_patch(&free, &json!({"data": {"key": "edited"}})).ok();
    assert_eq!(deploy(&app, &input("2")), ["create ConfigMap free-ver-2"]);
    assert_eq!(api().get(&free).ok()["data"]["key"], "edited");
}

fn what_is_to_be_renewed_is_written_again_when_its_time_has_come() {
    let app = app();
    let input = |after: &str| {
        let renewed = format!("    kapp.k14s.io/renew-duration: {after}\n");
        let plain = settings("plain", "1", &renewed).replace("    kapp.k14s.io/versioned: ''\n", "");
        plain + &settings("cfg", "1", &renewed)
    };
    deploy(&app, &input("1h"));
    assert_eq!(deploy(&app, &input("1h")), Vec::<String>::new());
    // Any age is more than a nanosecond.
    let due = input("1ns");
    deploy(&app, &due);
    let renewed = |name: &str| {
        let object = api().get(&config_map_path(&app.namespace, name)).ok();
        object["metadata"]["annotations"]["kapp.k14s.io/last-renewed-time"].clone()
    };
    let first = renewed("plain");
    assert!(first.is_string(), "the first run after its time");
    // The time of a renewal has whole seconds, so that the next one changes it after a second.
    let again = poll(Duration::from_secs(10), || Some(deploy(&app, &due)).filter(|planned| !planned.is_empty()));
    assert_eq!(again.expect("a renewal"), ["create ConfigMap cfg-ver-3", "update ConfigMap plain"]);
    assert_ne!(renewed("plain"), first);
    assert!(renewed("cfg-ver-2").is_string() && renewed("cfg-ver-3").is_string());
    assert!(renewed("cfg-ver-1").is_null());
}

fn a_config_names_further_references() {
    let app = app();
    let config = "---
apiVersion: kapp.k14s.io/v1alpha1
kind: Config
templateRules:
- resourceMatchers: [{apiVersionKindMatcher: {apiVersion: v1, kind: ConfigMap}}]
  affectedResources:
    objectReferences:
    - path: [spec, rules, {allIndexes: true}, http, paths, {allIndexes: true}, backend, resource]
      resourceMatchers: [{apiGroupKindMatcher: {apiGroup: networking.k8s.io, kind: Ingress}}]
";
    let ingress = "---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web}
spec:
  rules:
  - http:
      paths:
      - {path: /a, pathType: Exact, backend: {resource: {kind: ConfigMap, name: cfg}}}
      - {path: /b, pathType: Exact, backend: {resource: {kind: Secret, name: cfg}}}
";
    app.apply(&(config.to_owned() + &settings("cfg", "1", "") + ingress), &["--wait=false"]).expect(0);
    let live = api().get(&format!("/apis/networking.k8s.io/v1/namespaces/{}/ingresses/web", app.namespace)).ok();
    let paths = &live["spec"]["rules"][0]["http"]["paths"];
    assert_eq!(paths[0]["backend"]["resource"]["name"], "cfg-ver-1");
    assert_eq!(paths[1]["backend"]["resource"]["name"], "cfg", "another kind of the same name");
}

fn an_app_of_kapp_with_versions_is_taken_over() {
    let namespace = TestCluster::shared().namespace("recorded");
    let objects = kapp::revive_with_managers("03-versioned", &[("kd-a", &namespace)]);
    let app = TestApp::new("shop", &namespace);
    let before = stored(&app);
    let input = kapp::input("03-versioned", 3, &[]);
    app.pushback.write("app.yaml", &input);
    let diff = app.run("diff", &["-f", "app.yaml"]).expect(0);
    let plan = diff.events_of("plan").pop().expect("a plan");
    for change in plan["changes"].as_array().expect("changes") {
        assert!(["update", "noop"].contains(&change["operation"].as_str().unwrap_or_default()), "{change}");
        assert_eq!(change["fields"].as_array().map_or(0, Vec::len), 0, "{change}");
    }
    app.apply(&input, &["--wait=false"]).expect(0);
    assert_eq!(stored(&app), before, "{} recorded objects", objects.len());

    let changed = input.replace("v: '3'", "v: '4'");
    assert_ne!(changed, input);
    let lines = deploy(&app, &changed);
    assert_eq!(lines[0], "create ConfigMap cfg-ver-4", "{lines:?}");
    assert!(lines.contains(&"update Deployment web".to_owned()), "{lines:?}");
    assert!(!lines.iter().any(|line| line.starts_with("delete")), "{lines:?}");
}

fn in_a_folder_versions_are_kept_the_same_way() {
    let pushback = Pushback::new();
    let apply = |input: &str| {
        pushback.write("app.yaml", input);
        let common = ["apply", "-a", "shop", "-o", "json", "--yes", "--cluster", "dir:live", "-f", "app.yaml"];
        let ran = pushback.run(&common).expect(0);
        let mut lines = planned(&ran);
        lines.retain(|line| !line.starts_with("noop"));
        lines.sort();
        lines
    };
    let input = |value: &str| settings("cfg", value, "") + WEB;
    assert_eq!(apply(&input("1")), ["create ConfigMap cfg-ver-1", "create Deployment web"]);
    assert_eq!(apply(&input("1")), Vec::<String>::new());
    assert_eq!(apply(&input("2")), ["create ConfigMap cfg-ver-2", "update Deployment web"]);
    let report = pushback.run(&["inspect", "-a", "shop", "--cluster", "dir:live", "-o", "json"]).expect(0).json();
    let mut inspected: Vec<String> =
        report["objects"].as_array().expect("objects").iter().map(|line| short(&line["object"])).collect();
    inspected.sort();
    assert_eq!(inspected, ["ConfigMap cfg-ver-1", "ConfigMap cfg-ver-2", "Deployment web"]);
}

fn what_cannot_be_versioned_is_told_with_its_place() {
    let refused = |input: &str| {
        let pushback = Pushback::new();
        pushback.write("app.yaml", input);
        let common = ["apply", "-a", "shop", "-o", "json", "--yes", "--cluster", "dir:live", "-f", "app.yaml"];
        error(&pushback.run(&common).expect(1))
    };
    let versioned = |kind: &str, version: &str| {
        let annotations = "annotations: {kapp.k14s.io/versioned: ''}";
        format!("apiVersion: {version}\nkind: {kind}\nmetadata: {{name: data, {annotations}}}\n")
    };
    for (kind, version) in [("Namespace", "v1"), ("PersistentVolumeClaim", "v1")] {
        let told = refused(&versioned(kind, version));
        assert!(told.contains("cannot be versioned") && told.contains("app.yaml:3"), "{told}");
    }
    let told = refused(&(settings("cfg", "1", "") + &config_map("cfg-ver-1", "2")));
    assert!(told.contains("ConfigMap default/cfg-ver-1 is also the name of a version"), "{told}");
    let told = refused(&settings("cfg", "1", "    kapp.k14s.io/num-versions: \"0\"\n"));
    assert!(told.contains("expected a number of at least 1") && told.contains("app.yaml:8"), "{told}");
    let told = refused(&settings("cfg", "1", "    kapp.k14s.io/versioned-explicit-ref.a: \"kind: ConfigMap\"\n"));
    assert!(told.contains("is no reference to an object") && told.contains("app.yaml:8"), "{told}");
}
