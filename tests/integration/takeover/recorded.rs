//! Every app that was recorded from kapp: where nothing has changed nothing is shown and nothing moves, entries of
//! others are as they were. Versioned objects have tests of their own.

use std::time::Duration;

use pushback_deploy::plan::original::Rules;
use pushback_manifest::config::Config;
use serde_json::{Value, json};

use super::{api, assert_settled, content, foreign_entries, managers, notes, shown, shown_fields};
use crate::support::apply::TestApp;
use crate::support::{TestCase, TestCluster, cases, kapp, wait_until};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        ApiServer: a_plain_app_is_taken_over_without_a_change,
        ApiServer: an_app_after_updates_is_taken_over_without_a_change,
        ApiServer: an_app_with_a_qualified_record_is_taken_over_without_a_change,
        ApiServer: an_app_with_a_custom_resource_is_taken_over_without_a_change,
        ApiServer: an_app_with_an_orphan_is_taken_over_without_a_change,
        ApiServer: an_app_without_label_scoping_is_taken_over_without_a_change,
        ApiServer: an_app_in_two_namespaces_is_taken_over_without_a_change,
        ApiServer: an_app_with_a_long_name_is_taken_over_without_a_change,
        ApiServer: what_others_have_done_to_an_app_of_kapp_stays,
    ]
}

/// The recorded objects that are the app's own: neither record nor history.
fn own(objects: &[Value]) -> Vec<&Value> {
    let is_own = |object: &&Value| {
        let metadata = &object["metadata"];
        metadata["annotations"]["kapp.k14s.io/identity"].is_string()
            && metadata["labels"]["kapp.k14s.io/app"].is_string()
    };
    objects.iter().filter(is_own).collect()
}

/// What kapp keeps for itself on every object; nothing else may go.
fn without_originals(object: &Value) -> Value {
    let mut content = content(object);
    let annotations = content["metadata"]["annotations"].as_object_mut().expect("annotations");
    annotations.retain(|name, _| !name.starts_with("kapp.k14s.io/original"));
    content
}

/// Revives an app, looks at the diff, applies its last input, and compares every object before and after.
#[track_caller]
fn assert_taken_over_as_it_is(recording: &str, last_input: usize, name: &str, further: &[&str]) {
    let cluster = TestCluster::shared();
    let (namespace, other) = (cluster.namespace("recorded"), cluster.namespace("recorded"));
    let namespaces = [("kd-a", namespace.as_str()), ("kd-b", other.as_str())];
    let objects = kapp::revive_with_managers(recording, &namespaces);
    let app = TestApp::new(name, &namespace);
    let input = kapp::input(recording, last_input, &namespaces);
    let paths: Vec<String> = own(&objects).into_iter().map(|object| api().path_of(object)).collect();
    assert!(!paths.is_empty());
    let before: Vec<Value> = paths.iter().map(|path| api().get(path).ok()).collect();

    app.pushback.write("app.yaml", &input);
    let diff = app.run("diff", &[&["-f", "app.yaml"], further].concat()).expect(0);
    for change in shown(&diff) {
        let is_unverified = change["notes"].to_string().contains("not verified by the server");
        assert_eq!(
            change["operation"],
            if is_unverified { "update" } else { "noop" },
            "only its owners change: {change}"
        );
        assert_eq!(change["fields"], json!([]), "{recording}: noise in the diff of {}", change["object"]);
        assert!(change["notes"].to_string().contains("continues the work of kapp"), "{change}");
    }
    let untouched: Vec<Value> = paths.iter().map(|path| api().get(path).ok()).map(|object| content(&object)).collect();
    assert_eq!(untouched, before.iter().map(content).collect::<Vec<_>>(), "a diff has written");

    app.apply(&input, &[&["--wait=false"], further].concat()).expect(0);
    for (path, before) in paths.iter().zip(&before) {
        let after = api().get(path).ok();
        assert_eq!(without_originals(&after), without_originals(before), "{recording}: {path}");
        assert_ready_for_kapp(&after, before);
        assert_eq!(managers(&after), ["pushback Apply"], "{recording}: {path}");
    }
    let record = api().path_of(objects.iter().find(|object| is_record(object)).expect("a record"));
    let selected = kapp::selected(&api().get(&record).ok());
    assert_eq!(selected.len(), paths.len(), "kapp would find {selected:?}");
    assert_settled(&app, &input, further, &[paths.as_slice(), &[record]].concat());
    app.delete(&["--wait=false", "--preflight=none"]).expect(0);
    for path in &paths {
        // A definition goes when its objects have gone.
        wait_until("it is gone with the app", Duration::from_secs(60), || {
            (api().get(path).status != 200).then_some(())
        });
    }
}

/// kapp's copy of the manifest says what it said, and kapp would compare with it, not with the live object.
#[track_caller]
fn assert_ready_for_kapp(after: &Value, before: &Value) {
    let copy = |object: &Value| {
        let text = &object["metadata"]["annotations"]["kapp.k14s.io/original"];
        text.as_str().map(|text| serde_json::from_str::<Value>(text).expect("JSON"))
    };
    assert_eq!(copy(after), copy(before));
    assert_eq!(Rules::of(&Config::default()).outdated(after), None, "{after}");
}

fn is_record(object: &Value) -> bool {
    object["metadata"]["labels"]["kapp.k14s.io/is-app"].is_string()
}

fn a_plain_app_is_taken_over_without_a_change() {
    assert_taken_over_as_it_is("01-plain", 1, "shop", &[]);
}

fn an_app_after_updates_is_taken_over_without_a_change() {
    assert_taken_over_as_it_is("02-updated-and-pruned", 3, "shop", &[]);
}

fn an_app_with_a_qualified_record_is_taken_over_without_a_change() {
    assert_taken_over_as_it_is("04-fq-names-and-labels", 1, "shop", &[]);
}

fn an_app_with_a_custom_resource_is_taken_over_without_a_change() {
    assert_taken_over_as_it_is("05-crd-and-custom-resource", 1, "shop", &[]);
}

fn an_app_with_an_orphan_is_taken_over_without_a_change() {
    assert_taken_over_as_it_is("06-orphaned", 2, "shop", &[]);
}

fn an_app_without_label_scoping_is_taken_over_without_a_change() {
    assert_taken_over_as_it_is("07-no-scoping-no-original", 1, "shop", &["--default-label-scoping-rules=false"]);
}

fn an_app_in_two_namespaces_is_taken_over_without_a_change() {
    assert_taken_over_as_it_is("08-other-namespace", 1, "shop", &[]);
}

fn an_app_with_a_long_name_is_taken_over_without_a_change() {
    assert_taken_over_as_it_is("09-long-name-and-ordering", 1, &format!("shop-{}", "x".repeat(64)), &[]);
}

fn what_others_have_done_to_an_app_of_kapp_stays() {
    let namespace = TestCluster::shared().namespace("recorded");
    let objects = kapp::revive_with_managers("10-edited-by-others", &[("kd-a", &namespace)]);
    let app = TestApp::new("shop", &namespace);
    let path = |kind: &str| api().path_of(own(&objects).into_iter().find(|object| object["kind"] == kind).expect(kind));
    let (settings, deployment) = (path("ConfigMap"), path("Deployment"));
    let before = api().get(&settings).ok();
    let mut theirs = foreign_entries(&before);
    theirs.retain(|entry| entry["manager"] != "kapp");
    assert_eq!(theirs.len(), 2, "not what is tested: {theirs:?}");

    let input = kapp::input("10-edited-by-others", 1, &[]);
    let ran = app.apply(&input, &["--wait=false"]).expect(0);
    assert_eq!(shown_fields(&ran, "ConfigMap a"), Vec::<String>::new());
    // What the manifest sets is the manifest's, whoever has set it since; it is shown, with whose it was.
    assert_eq!(shown_fields(&ran, "Deployment web"), ["spec.replicas: 5 → 2"]);
    assert!(notes(&ran, "Deployment web").contains("takes over spec.replicas from kubectl"), "{}", ran.stdout);
    let after = api().get(&settings).ok();
    assert_eq!(after["data"], json!({"added": "later", "k": "v"}));
    assert_eq!(after["metadata"]["labels"]["by"], "hand");
    assert_eq!(foreign_entries(&after), theirs);
    assert_eq!(api().get(&deployment).ok()["spec"]["replicas"], 2);
    assert_settled(&app, &input, &[], &[settings, deployment]);
}
