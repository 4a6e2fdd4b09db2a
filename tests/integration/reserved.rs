//! Labels that say whose an object is, on things that they do not belong on: they hide nothing, and nobody can take
//! another app's objects with them.

use serde_json::{Value, json};

use crate::support::api::ApiClient;
use crate::support::apply::{TestApp, config_map, config_map_path, error, planned};
use crate::support::{Pushback, TestCase, TestCluster, cases};

const LABELS: [&str; 9] = [
    "kapp.k14s.io/app",
    "kapp.k14s.io/association",
    "kapp.k14s.io/orphaned",
    "kapp.k14s.io/is-app",
    "kapp.k14s.io/is-app-change",
    "kapp.k14s.io/app-change-app",
    "kapp.k14s.io/app-change-app-label",
    "pushback.dev/inventory",
    "pushback.dev/experiment",
];

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        Nothing: reserved_labels_in_the_input_are_refused_with_their_place,
        ApiServer: a_reserved_label_hides_no_object,
        ApiServer: what_only_looks_like_bookkeeping_is_not_deleted_with_it,
        ApiServer: a_forged_record_deletes_nothing_of_another_app,
        ApiServer: a_forged_record_takes_no_object_of_another_app_over,
        ApiServer: a_forged_record_beside_an_app_s_own_stands_for_nothing,
        ApiServer: a_copied_record_deletes_nothing_and_neither_does_the_original,
    ]
}

fn api() -> &'static ApiClient {
    TestCluster::shared().api()
}

fn app(prefix: &str) -> TestApp {
    TestApp::new("shop", &TestCluster::shared().namespace(prefix))
}

fn reserved_labels_in_the_input_are_refused_with_their_place() {
    let place = Pushback::new();
    std::fs::create_dir(place.directory().join("live")).expect("a folder");
    let refused = |input: &str| {
        place.write("app.yaml", input);
        let ran = place.run(&["apply", "-a", "shop", "--cluster", "dir:live", "-f", "app.yaml", "--yes"]).expect(1);
        assert_eq!(place.tree("live").len(), 0, "nothing is written");
        ran.stderr
    };
    // What every object of an app has is on objects that are dumped from a cluster.
    let of_every_object = |label: &str| LABELS[..2].contains(&label);
    for label in LABELS {
        for kind in ["apiVersion: v1\nkind: ConfigMap", "apiVersion: apps/v1\nkind: Deployment"] {
            let input = format!("{kind}\nmetadata:\n  name: a\n  labels:\n    tier: web\n    {label}: ''\n");
            if of_every_object(label) {
                place.write("app.yaml", &input);
                let diff = ["diff", "-a", "shop", "--cluster", "dir:live", "-f", "app.yaml", "-c"];
                let ran = place.run(&diff).expect(0);
                assert!(ran.stderr.contains("app.yaml:7:5") && ran.stderr.contains("left out"), "{}", ran.stderr);
                assert!(!ran.stdout.contains(label), "{}", ran.stdout);
                continue;
            }
            let said = refused(&input);
            assert!(said.contains("app.yaml:7:5") && said.contains(&format!("label {label} is reserved")), "{said}");
            assert!(said.contains("hint: remove it"), "{said}");
        }
        let config = "apiVersion: pushback.dev/v1alpha1\nkind: Config\nadditionalLabels:\n";
        let said = refused(&format!("{}---\n{config}  {label}: x\n", config_map("a", "1")));
        assert!(said.contains("app.yaml:12:3") && said.contains("is reserved"), "{said}");
    }
}

fn a_reserved_label_hides_no_object() {
    let app = app("hidden");
    let secret = "---\napiVersion: v1\nkind: Secret\nmetadata:\n  name: keys\nstringData: {key: value}\n";
    let service = "---\napiVersion: v1\nkind: Service\nmetadata:\n  name: web\nspec: {ports: [{port: 80}]}\n";
    let all = config_map("a", "1") + secret + service;
    let paths = ["configmaps/a", "secrets/keys", "services/web"]
        .map(|path| format!("/api/v1/namespaces/{}/{path}", app.namespace));
    for label in &LABELS[2..] {
        app.apply(&all, &[]).expect(0);
        for path in &paths {
            api().merge_patch(path, &json!({"metadata": {"labels": {*label: "x"}}})).ok();
        }
        assert_eq!(app.inspected(), ["ConfigMap a", "Secret keys", "Service web"], "{label}");
        // It can be updated all the same.
        let ran = app.apply(&(config_map("a", "2") + service), &[]).expect(0);
        assert_eq!(planned(&ran), ["update ConfigMap a", "delete Secret keys"], "{label}");
        let mut deleted = planned(&app.delete(&[]).expect(0));
        deleted.sort();
        assert_eq!(deleted, ["delete ConfigMap a", "delete Service web"], "{label}");
        for path in &paths {
            assert_eq!(api().get(path).status, 404, "{label}: {path}");
        }
    }
}

fn what_only_looks_like_bookkeeping_is_not_deleted_with_it() {
    let app = app("look-alike");
    app.apply(&config_map("a", "1"), &[]).expect(0);
    let inventory = {
        use md5::Digest as _;
        md5::Md5::digest(&app.name).iter().map(|byte| format!("{byte:02x}")).collect::<String>()
    };
    let history = json!({"kapp.k14s.io/is-app-change": "", "kapp.k14s.io/app-change-app": app.name,
        "kapp.k14s.io/app-change-app-label": app.label()});
    let theirs = [
        ("theirs", history.clone(), json!({"key": "value"})),
        ("shop-change-log", history, json!({"key": "value"})),
        ("shop-inventory-list", json!({"pushback.dev/inventory": inventory}), json!({"key": "value"})),
        ("named", json!({}), json!({"entries": "[]"})),
    ];
    for (name, labels, data) in &theirs {
        let metadata = json!({"name": name, "namespace": app.namespace, "labels": labels});
        api().apply(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})).ok();
    }
    let assert_there = |when: &str| {
        for (name, ..) in &theirs {
            assert_eq!(api().get(&config_map_path(&app.namespace, name)).status, 200, "{name} is gone after {when}");
        }
    };
    app.apply(&config_map("a", "2"), &["--app-changes-max-to-keep", "0"]).expect(0);
    assert_there("an apply that keeps no history");
    // A record that names others' objects as parts of its inventory.
    let mut own: Value =
        serde_json::from_str(app.record()["data"]["pushback"].as_str().expect("a part")).expect("JSON");
    own["shards"] = json!(["named", "theirs"]);
    api().merge_patch(&app.record_path(), &json!({"data": {"pushback": own.to_string()}})).ok();
    app.apply(&config_map("a", "3"), &[]).expect(0);
    assert_there("an apply over a record that names them");
    app.delete(&[]).expect(0);
    assert_there("the deletion of the app");
    assert_eq!(api().get(&app.record_path()).status, 404);
    assert_eq!(api().get(&config_map_path(&app.namespace, "a")).status, 404);
}

fn a_forged_record_deletes_nothing_of_another_app() {
    let victim = app("victim");
    victim.apply(&(config_map("a", "1") + &config_map("b", "1") + &config_map("c", "1")), &[]).expect(0);
    let evil = TestApp::new("evil", &TestCluster::shared().namespace("evil"));
    let spec = json!({"labelKey": "kapp.k14s.io/app", "labelValue": victim.label(),
        "usedGKs": [{"Group": "", "Kind": "ConfigMap"}], "lastChange": {"namespaces": [victim.namespace]}});
    let forged = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "evil", "namespace": evil.namespace, "labels": {"kapp.k14s.io/is-app": ""}},
        "data": {"spec": spec.to_string()}});
    api().apply(&forged).ok();
    let there = |name: &str| api().get(&config_map_path(&victim.namespace, name)).status == 200;
    let assert_refused = |said: &str| {
        let record = format!("ConfigMap {}/shop is the record of an app with the same label", victim.namespace);
        assert!(said.contains(&record) && said.contains("nothing is deleted"), "{said}");
        assert!(there("a") && there("b") && there("c"));
    };
    assert_refused(&error(&evil.delete(&[]).expect(1)));
    assert_refused(&error(&evil.apply(&config_map("mine", "1"), &[]).expect(1)));

    // The app itself goes on as ever: its inventory knows each object's uid.
    let ran = victim.apply(&(config_map("a", "1") + &config_map("b", "1")), &[]).expect(0);
    assert_eq!(planned(&ran), ["delete ConfigMap c"]);
    victim.delete(&[]).expect(0);
    assert!(!there("a") && !there("b"));
}

/// Its input names them, so that nothing is left to delete; the uids in its inventory are right.
fn a_forged_record_takes_no_object_of_another_app_over() {
    let victim = app("victim");
    victim.apply(&(config_map("a", "1") + &config_map("b", "1")), &[]).expect(0);
    let evil = TestApp::new("evil", &victim.namespace);
    let record = victim.record();
    let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": record["data"],
        "metadata": {"name": "evil", "namespace": evil.namespace, "labels": {"kapp.k14s.io/is-app": ""}}});
    let uid = api().apply(&body).ok()["metadata"]["uid"].take();
    let mut own: Value = serde_json::from_str(record["data"]["pushback"].as_str().expect("a part")).expect("JSON");
    own["recordUid"] = uid;
    let value = |name: &str| api().get(&config_map_path(&victim.namespace, name)).ok()["data"]["key"].clone();
    for forged in [json!({"pushback": own.to_string()}), json!({"pushback": null, "pushback-inventory": null})] {
        api().merge_patch(&evil.record_path(), &json!({"data": forged})).ok();
        for input in [config_map("a", "evil") + &config_map("b", "evil"), config_map("a", "evil")] {
            let ran = evil.apply(&input, &["--patch"]).expect(1);
            let said = error(&ran);
            assert!(
                said.contains(&format!("ConfigMap {}/a", victim.namespace)) && said.contains("already associated with"),
                "{said}"
            );
            assert!(said.contains("different app 'shop'"), "{said}");
            assert_eq!((value("a"), value("b")), (json!("1"), json!("1")));
        }
    }
    // As with kapp, who says so takes them.
    evil.apply(&config_map("a", "2"), &["--patch", "--dangerous-override-ownership-of-existing-resources"]).expect(0);
    assert_eq!(value("a"), "2");
}

/// kapp reads the record under the longer name first.
fn a_forged_record_beside_an_app_s_own_stands_for_nothing() {
    let other = app("shadowed");
    other.apply(&config_map("theirs", "1"), &[]).expect(0);
    let app = TestApp::new("mine", &other.namespace);
    app.apply(&config_map("a", "1"), &[]).expect(0);
    let path = config_map_path(&app.namespace, "mine.apps.k14s.io");
    let shadow = |labels: Value, data: &Value| {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "data": data,
            "metadata": {"name": "mine.apps.k14s.io", "namespace": app.namespace, "labels": labels}})
    };
    // With the label of the other app, with its own, and with one of its own making.
    let fresh = json!({"spec": json!({"labelKey": "kapp.k14s.io/app", "labelValue": "1234"}).to_string()});
    for data in [other.record()["data"].clone(), app.record()["data"].clone(), fresh] {
        api().apply(&shadow(json!({"kapp.k14s.io/is-app": ""}), &data)).ok();
        let before = api().get(&path).ok();
        for ran in [app.apply(&config_map("a", "2"), &[]), app.apply(&config_map("b", "2"), &[]), app.delete(&[])] {
            let said = error(&ran.expect(1));
            assert!(said.contains("two records") && said.contains("mine.apps.k14s.io"), "{said}");
        }
        assert_eq!(api().get(&path).ok(), before);
        for (name, value) in [("a", "1"), ("theirs", "1")] {
            assert_eq!(api().get(&config_map_path(&app.namespace, name)).ok()["data"]["key"], value);
        }
        api().delete(&path).ok();
    }
    // Any other ConfigMap of that name is none of the app's.
    api().apply(&shadow(json!({}), &json!({"key": "value"}))).ok();
    app.apply(&config_map("a", "2"), &[]).expect(0);
    app.delete(&[]).expect(0);
    assert_eq!(api().get(&path).ok()["data"]["key"], "value");
}

fn a_copied_record_deletes_nothing_and_neither_does_the_original() {
    let original = app("original");
    original.apply(&config_map("a", "1"), &[]).expect(0);
    let copy = TestApp::new("copy", &original.namespace);
    let record = original.record();
    let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": record["data"],
        "metadata": {"name": "copy", "namespace": copy.namespace, "labels": {"kapp.k14s.io/is-app": ""}}});
    let uid = api().apply(&body).ok()["metadata"]["uid"].take();
    // Even its uid is as it should be.
    let mut own: Value = serde_json::from_str(record["data"]["pushback"].as_str().expect("a part")).expect("JSON");
    own["recordUid"] = uid;
    api().merge_patch(&copy.record_path(), &json!({"data": {"pushback": own.to_string()}})).ok();
    for (app, other) in [(&copy, "shop"), (&original, "copy")] {
        let said = error(&app.delete(&[]).expect(1));
        assert!(said.contains(&format!("ConfigMap {}/{other} is the record", app.namespace)), "{said}");
        assert_eq!(api().get(&config_map_path(&app.namespace, "a")).status, 200);
    }
    api().delete(&copy.record_path()).ok();
    original.delete(&[]).expect(0);
    assert_eq!(api().get(&config_map_path(&original.namespace, "a")).status, 404);
}
