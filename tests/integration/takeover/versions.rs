//! Entries in another API version than the object is read in: nothing is taken over, and the plan says what to do.

use std::time::Duration;

use serde_json::{Value, json};

use super::{api, assert_settled, create, managers, manifest, new_app, notes, shown_fields};
use crate::support::{TestCase, cases, wait_until};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        ApiServer: entries_in_an_older_served_version_are_taken_over_by_way_of_that_version,
        ApiServer: entries_in_a_version_that_is_not_served_any_more_are_named,
    ]
}

const SOON: Duration = Duration::from_secs(60);

/// A definition with two versions of one schema, in a group of the test's own.
fn definition(group: &str, old_is_served: bool) -> Value {
    let schema = json!({"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "kept": {"type": "string"}, "gone": {"type": "string"}}}}}});
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
    "metadata": {"name": format!("widgets.{group}")},
    "spec": {"group": group, "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"}, "versions": [
        {"name": "v1alpha1", "served": old_is_served, "storage": false, "schema": schema},
        {"name": "v1", "served": true, "storage": true, "schema": schema},
    ]}})
}

fn widget(group: &str, version: &str, spec: &Value) -> Value {
    json!({"apiVersion": format!("{group}/{version}"), "kind": "Widget", "metadata": {"name": "w"}, "spec": spec})
}

fn define(definition: &Value, group: &str, version: &str, is_served: bool) {
    api().apply(definition).ok();
    wait_until("the definition is served", SOON, || {
        (api().serves(&widget(group, version, &json!({}))) == is_served).then_some(())
    });
}

fn entries_in_an_older_served_version_are_taken_over_by_way_of_that_version() {
    let app = new_app();
    let group = format!("{}.example.com", app.namespace);
    let definition = definition(&group, true);
    define(&definition, &group, "v1alpha1", true);
    define(&definition, &group, "v1", true);
    create(&app, "fieldManager=kapp", widget(&group, "v1alpha1", &json!({"kept": "one", "gone": "x"})));
    let path = format!("/apis/{group}/v1/namespaces/{}/widgets/w", app.namespace);
    let new = manifest(&[widget(&group, "v1", &json!({"kept": "one"}))]);
    app.pushback.write("app.yaml", &new);
    let ran = app.run("diff", &["-f", "app.yaml"]).expect(0);
    let note = notes(&ran, "Widget w");
    for part in ["does not continue the work of kapp", "(spec.gone)", "apply the object as", "v1alpha1 once"] {
        assert!(note.contains(part), "no {part} in {note}");
    }
    assert_eq!(shown_fields(&ran, "Widget w"), Vec::<String>::new());
    // As the note says.
    let old = manifest(&[widget(&group, "v1alpha1", &json!({"kept": "one"}))]);
    let ran = app.apply(&old, &[]).expect(0);
    assert_eq!(shown_fields(&ran, "Widget w"), ["spec.gone: x → -"]);
    app.apply(&new, &[]).expect(0);
    let after = api().get(&path).ok();
    assert_eq!((&after["spec"], managers(&after)), (&json!({"kept": "one"}), vec!["pushback Apply".to_owned()]));
    assert_settled(&app, &new, &[], &[path]);
    api().delete(&api().path_of(&definition)).ok();
}

fn entries_in_a_version_that_is_not_served_any_more_are_named() {
    let app = new_app();
    let group = format!("{}.example.com", app.namespace);
    define(&definition(&group, true), &group, "v1alpha1", true);
    create(&app, "fieldManager=kapp", widget(&group, "v1alpha1", &json!({"kept": "one", "gone": "x"})));
    define(&definition(&group, false), &group, "v1alpha1", false);
    let path = format!("/apis/{group}/v1/namespaces/{}/widgets/w", app.namespace);
    let input = manifest(&[widget(&group, "v1", &json!({"kept": "two"}))]);
    let ran = app.apply(&input, &[]).expect(0);
    let note = notes(&ran, "Widget w");
    for part in ["v1alpha1, which is not served any more", "(spec.gone)", "remove by hand what is not wanted"] {
        assert!(note.contains(part), "no {part} in {note}");
    }
    assert_eq!(shown_fields(&ran, "Widget w"), ["spec.kept: one → two"]);
    assert_eq!(api().get(&path).ok()["spec"], json!({"kept": "two", "gone": "x"}));
    // The server has dropped the entry that nobody can read; there is nothing left to say.
    assert_settled(&app, &input, &[], &[path]);
    api().delete(&api().path_of(&definition(&group, false))).ok();
}
