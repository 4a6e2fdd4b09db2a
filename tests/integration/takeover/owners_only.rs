//! Updates that change only who owns which field: reported as unchanged, and written.

use serde_json::{Value, json};

use super::{api, managers, manifest, new_app, shown};
use crate::support::apply::{TestApp, config_map, config_map_path, short};
use crate::support::{Ran, TestCase, cases, kapp};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        ApiServer: update_of_field_owners_only_counts_as_unchanged_and_is_written,
        ApiServer: field_that_another_manager_keeps_is_released_without_a_change,
        ApiServer: update_of_field_owners_beside_a_change_is_not_counted,
        ApiServer: saved_plan_of_field_owners_only_shows_nothing_to_change,
    ]
}

/// Gives the fields of an object to kapp, as if it had written them.
fn give_to_kapp(path: &str) {
    let fields = json!({"f:data": {"f:key": {}}});
    let entry = json!({"manager": "kapp", "operation": "Update", "apiVersion": "v1",
        "fieldsType": "FieldsV1", "fieldsV1": fields});
    kapp::set_managers(path, &[entry]);
}

/// The lines of a plan: operation, object, and whether there are notes.
fn lines(ran: &Ran) -> Vec<String> {
    let line = |change: &Value| {
        let noted = change["notes"].as_array().is_some_and(|notes| !notes.is_empty());
        format!("{} {} {noted}", change["operation"].as_str().expect("an operation"), short(&change["object"]))
    };
    shown(ran).iter().map(line).collect()
}

#[track_caller]
fn assert_unchanged(ran: &Ran) {
    assert_eq!(ran.end()["outcome"], "unchanged", "{}", ran.stdout);
    assert_eq!((&ran.end()["done"]["update"], ran.events_of("change.done").len()), (&json!(0), 0), "{}", ran.stdout);
}

fn update_of_field_owners_only_counts_as_unchanged_and_is_written() {
    let app = new_app();
    let input = config_map("a", "1") + &config_map("b", "1");
    app.apply(&input, &[]).expect(0);
    let history = app.history().len();
    let path = config_map_path(&app.namespace, "a");
    give_to_kapp(&path);
    let diff = app.run("diff", &["-f", "app.yaml", "--diff-exit-status"]).expect(2);
    assert_eq!(lines(&diff), ["noop ConfigMap a true"]);
    assert_eq!(diff.events_of("plan")[0]["counts"]["noop"], 2);
    // There is no question to answer.
    let ran = app.run("apply", &["-f", "app.yaml", "--apply-exit-status"]).expect(2);
    assert_unchanged(&ran);
    assert_eq!(managers(&api().get(&path).ok()), ["pushback Apply"]);
    assert_eq!(app.history().len(), history, "nothing that the history shows");
    let again = app.apply(&input, &[]).expect(0);
    assert_eq!(lines(&again), Vec::<String>::new());
}

fn field_that_another_manager_keeps_is_released_without_a_change() {
    let app = new_app();
    let object =
        |data: Value| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data});
    app.apply(&manifest(&[object(json!({"key": "1", "shared": "x"}))]), &[]).expect(0);
    let mut other = object(json!({"shared": "x"}));
    other["metadata"]["namespace"] = json!(app.namespace);
    api().apply_with(&other, "fieldManager=other&force=true").ok();
    let input = manifest(&[object(json!({"key": "1"}))]);
    let ran = app.apply(&input, &["--apply-exit-status"]).expect(2);
    assert_eq!(lines(&ran), ["noop ConfigMap a true"]);
    assert_unchanged(&ran);
    let live = api().get(&config_map_path(&app.namespace, "a")).ok();
    assert_eq!(live["data"], json!({"key": "1", "shared": "x"}));
    let entries = live["metadata"]["managedFields"].as_array().expect("entries").clone();
    let own = entries.iter().find(|entry| entry["manager"] == "pushback").expect("our entry");
    assert_eq!(own["fieldsV1"]["f:data"], json!({"f:key": {}}));
}

fn update_of_field_owners_beside_a_change_is_not_counted() {
    let app = new_app();
    app.apply(&(config_map("a", "1") + &config_map("b", "1")), &[]).expect(0);
    let path = config_map_path(&app.namespace, "a");
    give_to_kapp(&path);
    let ran = app.apply(&(config_map("a", "1") + &config_map("b", "2")), &["--apply-exit-status"]).expect(3);
    assert_eq!(lines(&ran), ["noop ConfigMap a true", "update ConfigMap b false"]);
    assert_eq!(ran.end()["done"]["update"], 1);
    assert_eq!(managers(&api().get(&path).ok()), ["pushback Apply"]);
}

fn saved_plan_of_field_owners_only_shows_nothing_to_change() {
    let app = new_app();
    app.apply(&config_map("a", "1"), &[]).expect(0);
    let path = config_map_path(&app.namespace, "a");
    give_to_kapp(&path);
    app.run("plan", &["-f", "app.yaml", "--out", "saved.plan", "--diff-exit-status"]).expect(2);
    let shown = app.pushback.run(&["plan", "show", "saved.plan"]).expect(0);
    assert!(shown.stdout.contains("nothing to change, 1 unchanged"), "{}", shown.stdout);
    assert_unchanged(&carry_out(&app));
    assert_eq!(managers(&api().get(&path).ok()), ["pushback Apply"]);
}

#[track_caller]
fn carry_out(app: &TestApp) -> Ran {
    app.pushback.run(&["apply", "--plan", "saved.plan", "-o", "json"]).expect(0)
}
