//! Custom resources without a wait rule: a status is waited for where the kind has a controller, and only there.

use serde_json::{Value, json};

use super::App;
use crate::support::apply::{moment, short};
use crate::support::{TestCase, cases};

pub(super) fn tests() -> Vec<TestCase> {
    cases![ApiServer: a_kind_that_nobody_reports_on_is_not_waited_for]
}

fn definition(group: &str, kind: &str) -> Value {
    let plural = format!("{}s", kind.to_lowercase());
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced", "names": {"plural": plural, "kind": kind},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            }],
        },
    })
}

fn a_kind_that_nobody_reports_on_is_not_waited_for() {
    let app = App::new("observed");
    let group = format!("{}.example.com", app.namespace);
    let object = |kind: &str, name: &str| json!({"apiVersion": format!("{group}/v1"), "kind": kind, "metadata": {"name": name}, "spec": {"size": 1}});
    let definitions = [definition(&group, "Widget"), definition(&group, "Gadget")];
    let first = [object("Widget", "old"), object("Gadget", "old")];
    app.write(&[&definitions[..], &first[..]].concat());
    app.apply(&[]).expect(0);
    // Only Widgets have a controller.
    let path = format!("/apis/{group}/v1/namespaces/{}/widgets/old/status", app.namespace);
    app.cluster.api().merge_patch(&path, &json!({"status": {"phase": "Ready"}})).ok();

    // The one that is not waited for is written last.
    let mut both = [object("Widget", "new"), object("Gadget", "new")];
    both[0]["metadata"]["annotations"] = json!({"kapp.k14s.io/change-group": "example.com/first"});
    both[1]["metadata"]["annotations"] =
        json!({"kapp.k14s.io/change-rule": "upsert after upserting example.com/first"});
    app.write(&[&definitions[..], &first[..], &both[..]].concat());
    let events = app.apply(&[]).expect(0).events();
    let gadget = events.iter().rposition(|event| short(&event["object"]) == "Gadget new").expect("its last event");
    let widget = moment(&events, "wait.done", "Widget new");
    assert!(gadget < widget, "the one with a controller gets the time to be seen by it: {events:#?}");
}
