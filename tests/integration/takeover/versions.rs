//! Entries in another API version than the object is applied in: they are moved to that version first.

use std::time::Duration;

use serde_json::{Value, json};

use super::{api, assert_settled, create, managers, manifest, new_app, notes, shown_fields};
use crate::support::{TestCase, cases, wait_until};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        ApiServer: entries_in_an_older_version_are_moved_and_taken_over,
        ApiServer: newer_version_with_a_new_default_is_applied_without_a_retry,
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

fn entries_in_an_older_version_are_moved_and_taken_over() {
    for old_is_served in [true, false] {
        let app = new_app();
        let group = format!("{}.example.com", app.namespace);
        let definition = definition(&group, old_is_served);
        define(&self::definition(&group, true), &group, "v1alpha1", true);
        create(&app, "fieldManager=kapp", widget(&group, "v1alpha1", &json!({"kept": "one", "gone": "x"})));
        define(&definition, &group, "v1alpha1", old_is_served);
        define(&definition, &group, "v1", true);
        let path = format!("/apis/{group}/v1/namespaces/{}/widgets/w", app.namespace);
        let new = manifest(&[widget(&group, "v1", &json!({"kept": "one"}))]);
        app.pushback.write("app.yaml", &new);
        let ran = app.run("diff", &["-f", "app.yaml"]).expect(0);
        let note = notes(&ran, "Widget w");
        for part in ["continues the work of kapp", "/v1alpha1 to v1 first"] {
            assert!(note.contains(part), "no {part} in {note}");
        }
        assert_eq!(shown_fields(&ran, "Widget w"), ["spec.gone: x → -"]);
        app.apply(&new, &[]).expect(0);
        let after = api().get(&path).ok();
        assert_eq!((&after["spec"], managers(&after)), (&json!({"kept": "one"}), vec!["pushback Apply".to_owned()]));
        assert_settled(&app, &new, &[], &[path]);
        api().delete(&api().path_of(&definition)).ok();
    }
}

fn newer_version_with_a_new_default_is_applied_without_a_retry() {
    let app = new_app();
    let group = format!("{}.example.com", app.namespace);
    let mut definition = definition(&group, true);
    definition["spec"]["versions"][1]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["policy"] =
        json!({"type": "string", "default": "deny"});
    define(&definition, &group, "v1alpha1", true);
    define(&definition, &group, "v1", true);
    let manifest = |version: &str| manifest(&[widget(&group, version, &json!({"kept": "one"}))]);
    app.apply(&manifest("v1alpha1"), &[]).expect(0);
    let path = format!("/apis/{group}/v1/namespaces/{}/widgets/w", app.namespace);
    // Somebody else owns a field at the old version, too.
    let label = json!({"apiVersion": format!("{group}/v1alpha1"), "kind": "Widget",
        "metadata": {"name": "w", "namespace": app.namespace, "labels": {"team": "a"}}});
    api().apply_with(&label, "fieldManager=labeller").ok();
    let ran = app.apply(&manifest("v1"), &[]).expect(0);
    assert_eq!(ran.events_of("retry"), Vec::<Value>::new());
    let after = api().get(&path).ok();
    assert_eq!(after["spec"], json!({"kept": "one", "policy": "deny"}));
    assert_eq!(after["metadata"]["labels"]["team"], "a");
    let mut owners = managers(&after);
    owners.sort();
    assert_eq!(owners, ["labeller Apply", "pushback Apply"]);
    assert_settled(&app, &manifest("v1"), &[], &[path]);
    // And back.
    app.apply(&manifest("v1alpha1"), &[]).expect(0);
    api().delete(&api().path_of(&definition)).ok();
}
