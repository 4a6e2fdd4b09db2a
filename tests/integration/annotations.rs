//! What annotations do to objects that the app owns already: none of them leads to a deletion that nobody asked for.

use std::collections::BTreeMap;

use pushback_deploy::plan::annotations::ACCEPTED;
use serde_json::{Value, json};

use crate::support::api::ApiClient;
use crate::support::apply::{TestApp, config_map, config_map_path, error, planned, warnings};
use crate::support::{TestCase, TestCluster, cases};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        ApiServer: no_annotation_on_an_owned_object_deletes_it,
        ApiServer: what_is_never_to_be_touched_stays_with_the_app,
        ApiServer: a_live_annotation_keeps_an_object_that_is_gone_from_the_input,
        ApiServer: deleting_the_app_leaves_what_is_never_to_be_touched_and_says_so,
        ApiServer: a_nonce_makes_every_deploy_an_update,
        ApiServer: a_template_without_ownership_labels_is_on_request,
        Nothing: in_a_folder_too_what_is_never_to_be_touched_stays,
    ]
}

fn api() -> &'static ApiClient {
    TestCluster::shared().api()
}

fn app(prefix: &str) -> TestApp {
    TestApp::new("shop", &TestCluster::shared().namespace(prefix))
}

/// One object each of five kinds, whose deletion takes along ever more.
fn five_kinds(app: &TestApp) -> Vec<Value> {
    let group = format!("{}.example.com", app.namespace);
    vec![
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings", "namespace": app.namespace},
            "data": {"key": "value"}}),
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": app.namespace},
            "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "main", "image": "registry.example/web:1"}]}}}}),
        json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": {"name": "data", "namespace": app.namespace},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}),
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": format!("{}-team", app.namespace)}}),
        json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("gauges.{group}")},
            "spec": {"group": group, "scope": "Namespaced", "names": {"plural": "gauges", "kind": "Gauge"},
                "versions": [{"name": "v1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": {"type": "object"}}}]}}),
    ]
}

fn annotate(objects: &[Value], key: &str, value: &str) -> Vec<Value> {
    let annotated = |object: &Value| {
        let mut object = object.clone();
        object["metadata"]["annotations"] = json!({key: value});
        object
    };
    objects.iter().map(annotated).collect()
}

fn text(objects: &[Value]) -> String {
    objects.iter().map(|object| format!("---\n{object}\n")).collect()
}

/// The uid of each object that is there and does not go.
fn uids(objects: &[Value]) -> BTreeMap<String, Value> {
    let look = |object: &Value| {
        let live = api().get(&api().path_of(object)).body;
        let stays = live["metadata"]["deletionTimestamp"].is_null();
        let name = format!("{} {}", object["kind"], object["metadata"]["name"]);
        (name, if stays { live["metadata"]["uid"].clone() } else { Value::Null })
    };
    objects.iter().map(look).collect()
}

/// What an annotation is tried with.
fn values_of(name: &str, values: &'static [&'static str]) -> Vec<&'static str> {
    match (name, values) {
        ("change-rule", _) => vec!["upsert after upserting example.com/none"],
        ("change-group", _) => vec!["example.com/some"],
        ("num-versions", _) => vec!["3"],
        ("renew-duration", _) => vec!["1h"],
        ("versioned-explicit-ref", _) => vec!["{apiVersion: v1, kind: ConfigMap, name: settings}"],
        // Versions replace the object under its plain name: that is what is asked for.
        ("versioned", _) => Vec::new(),
        ("apps-v1-deployment-wait-minimum-replicas-available", _) => vec!["1"],
        (_, []) => vec![""],
        (_, values) => values.to_vec(),
    }
}

fn no_annotation_on_an_owned_object_deletes_it() {
    let app = app("annotated");
    let objects = five_kinds(&app);
    // A selector without the app's label, so that no annotation about labels is refused for its sake.
    let quick = ["--wait=false", "--default-label-scoping-rules=false"];
    app.apply(&text(&objects), &quick).expect(0);
    // What others keep goes with a namespace that is deleted, and so do the objects of a definition.
    let team = format!("{}-team", app.namespace);
    let foreign = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "theirs", "namespace": team}});
    api().apply(&foreign).ok();
    let before = uids(&objects);
    for (name, values) in ACCEPTED {
        for value in values_of(name, values) {
            let key = format!("kapp.k14s.io/{name}");
            let annotated = text(&annotate(&objects, &key, value));
            app.pushback.write("app.yaml", &annotated);
            let shown = planned(&app.run("diff", &["-f", "app.yaml", quick[1]]).expect(0));
            let deletes: Vec<&String> = shown.iter().filter(|line| line.starts_with("delete")).collect();
            assert!(deletes.is_empty(), "{key}: {value:?} deletes {deletes:?}");
            if value == "always-replace" {
                assert!(shown.iter().all(|line| line.starts_with("replace")), "{shown:?}");
                continue;
            }
            app.apply(&annotated, &quick).expect(0);
            assert_eq!(uids(&objects), before, "{key}: {value:?}");
            assert_eq!(app.inspected().len(), objects.len(), "{key}: {value:?}: all stay in the app");
        }
    }
    app.apply(&text(&objects), &quick).expect(0);
    assert_eq!(uids(&objects), before);
    assert_eq!(api().get(&api().path_of(&foreign)).status, 200);
}

fn what_is_never_to_be_touched_stays_with_the_app() {
    let app = app("noop");
    let objects = five_kinds(&app);
    app.apply(&text(&objects), &["--wait=false"]).expect(0);
    // Controllers go on writing status and finalizers.
    let state = || -> Vec<Value> {
        let look = |object: &Value| {
            let live = api().get(&api().path_of(object)).ok();
            let metadata = &live["metadata"];
            json!([metadata["uid"], metadata["labels"], metadata["annotations"], live["data"], live["spec"]])
        };
        objects.iter().map(look).collect()
    };
    let (before, inventory) = (state(), app.record()["data"]["pushback-inventory"].clone());
    let mut untouched = annotate(&objects, "kapp.k14s.io/noop", "");
    // What it says besides is nothing to anybody.
    untouched[0]["data"]["key"] = json!("other");
    for input in [text(&untouched), text(&untouched) + &config_map("more", "1"), text(&untouched)] {
        app.apply(&input, &["--wait=false"]).expect(0);
        assert_eq!(state(), before, "not even written");
    }
    assert_eq!(app.record()["data"]["pushback-inventory"], inventory);
    // It is the app's all the while: gone from the input, it goes.
    app.apply(&text(&objects[1..]), &["--wait=false"]).expect(0);
    assert_eq!(api().get(&config_map_path(&app.namespace, "settings")).status, 404);
}

fn a_live_annotation_keeps_an_object_that_is_gone_from_the_input() {
    let app = app("noop-live");
    let objects = five_kinds(&app);
    for key in ["kapp.k14s.io/noop", "kapp.k14s.io/exists"] {
        app.apply(&text(&objects), &["--wait=false"]).expect(0);
        let before = uids(&objects);
        let set = |value: Value| {
            for object in &objects {
                api().merge_patch(&api().path_of(object), &json!({"metadata": {"annotations": {key: value}}})).ok();
            }
        };
        set(json!(""));
        for _ in 0..2 {
            let ran = app.apply(&config_map("rest", "1"), &["--wait=false"]).expect(0);
            assert!(planned(&ran).iter().all(|line| !line.starts_with("delete")), "{key}: {:?}", planned(&ran));
            assert_eq!(warnings(&ran).len(), objects.len(), "{key}: each is told: {:?}", warnings(&ran));
        }
        assert_eq!(uids(&objects), before, "{key}");
        assert_eq!(app.inspected().len(), objects.len() + 1, "{key}: they are the app's");
        set(Value::Null);
    }
}

fn deleting_the_app_leaves_what_is_never_to_be_touched_and_says_so() {
    let app = app("noop-delete");
    app.apply(&(config_map("a", "1") + &config_map("kept", "1")), &[]).expect(0);
    let path = config_map_path(&app.namespace, "kept");
    api().merge_patch(&path, &json!({"metadata": {"annotations": {"kapp.k14s.io/noop": ""}}})).ok();
    let ran = app.delete(&[]).expect(0);
    assert_eq!(planned(&ran), ["delete ConfigMap a"]);
    let told = warnings(&ran).join("\n");
    assert!(told.contains("ConfigMap") && told.contains("kept") && told.contains("kapp.k14s.io/noop"), "{told}");
    assert_eq!(api().get(&path).status, 200);
}

fn in_a_folder_too_what_is_never_to_be_touched_stays() {
    let place = crate::support::Pushback::new();
    let noop =
        "---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: kept\n  annotations:\n    kapp.k14s.io/noop: ''\n";
    let apply = |input: &str| {
        place.write("app.yaml", input);
        place.run(&["apply", "-a", "shop", "--cluster", "dir:live", "-f", "app.yaml", "--yes"]).expect(0);
        place.tree("live").values().any(|text| text.contains("name: kept"))
    };
    assert!(apply(&(config_map("a", "1") + &config_map("kept", "1"))));
    assert!(apply(&(config_map("a", "2") + noop)), "it was deleted");
    assert!(apply(&(config_map("a", "1") + noop)), "it was deleted");
    assert!(!apply(&config_map("a", "1")), "the app has forgotten it");
}

fn a_nonce_makes_every_deploy_an_update() {
    let app = app("nonce");
    let objects = [json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}})];
    let input = text(&annotate(&objects, "kapp.k14s.io/nonce", ""));
    let path = config_map_path(&app.namespace, "one");
    let nonce = || {
        let value = api().get(&path).ok()["metadata"]["annotations"]["kapp.k14s.io/nonce"].take();
        value.as_str().and_then(|nonce| nonce.parse::<u64>().ok()).expect("a number")
    };
    app.apply(&input, &[]).expect(0);
    let first = nonce();
    assert_eq!(planned(&app.apply(&input, &[]).expect(0)), ["update ConfigMap one"]);
    assert!(nonce() > first);
    let refused = app.apply(&text(&annotate(&objects, "kapp.k14s.io/nonce", "mine")), &[]).expect(1);
    assert!(error(&refused).contains("kapp.k14s.io/nonce"), "{}", error(&refused));
}

fn a_template_without_ownership_labels_is_on_request() {
    let app = app("unlabelled");
    let deployment = five_kinds(&app).swap_remove(1);
    let mut input = annotate(&[deployment], "kapp.k14s.io/disable-default-ownership-label-rules", "").remove(0);
    // The selector would not select the Pods.
    input["metadata"]["annotations"]["kapp.k14s.io/disable-default-label-scoping-rules"] = json!("");
    app.apply(&text(&[input.clone()]), &["--wait=false"]).expect(0);
    let live = api().get(&api().path_of(&input)).ok();
    assert_eq!(live["spec"]["template"]["metadata"]["labels"], json!({"app": "web"}));
    assert_eq!(live["spec"]["selector"]["matchLabels"], json!({"app": "web"}));
    assert_eq!(live["metadata"]["labels"]["kapp.k14s.io/app"], app.label().as_str());
    assert_eq!(planned(&app.apply(&text(&[input]), &["--wait=false"]).expect(0)), Vec::<String>::new());
}
