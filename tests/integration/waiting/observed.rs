//! Custom resources without a wait rule: a status is waited for where the kind has a controller, and only there.

use serde_json::{Value, json};

use super::{App, running_deployment};
use crate::support::apply::{moment, short};
use crate::support::{Ran, TestCase, cases};

pub(super) fn tests() -> Vec<TestCase> {
    cases![
        ApiServer: a_kind_that_nobody_reports_on_is_not_waited_for,
        ApiServer: custom_resources_without_a_status_are_named_at_the_end,
        Controllers: first_objects_of_a_kind_wait_for_the_controller_in_the_app,
    ]
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

/// The objects that a run names because no controller has reported on them.
fn unreported(ran: &Ran) -> Vec<String> {
    let warnings = ran.events_of("warning").into_iter().filter(|event| event["code"] == "no-status");
    warnings.map(|event| event["message"].as_str().unwrap_or_default().to_owned()).collect()
}

fn custom_resources_without_a_status_are_named_at_the_end() {
    let app = App::new("silent");
    let group = format!("{}.example.com", app.namespace);
    let object = |kind: &str, name: &str| json!({"apiVersion": format!("{group}/v1"), "kind": kind, "metadata": {"name": name}, "spec": {"size": 1}});
    let mut without_status = definition(&group, "Setting");
    without_status["spec"]["versions"][0].as_object_mut().expect("a version").shift_remove("subresources");
    let mut objects = vec![definition(&group, "Widget"), without_status];
    objects.extend([object("Widget", "a"), object("Widget", "b"), object("Setting", "c")]);
    app.write(&objects);
    let named = unreported(&app.apply(&[]).expect(0));
    assert_eq!(named.len(), 1, "{named:?}");
    let is_named = |name: &str| named[0].contains(&format!("/{name}"));
    assert_eq!([is_named("a"), is_named("b"), is_named("c")], [true, true, false], "{named:?}");
    assert_eq!(unreported(&app.apply(&[]).expect(0)), [""; 0], "unchanged");

    let path = format!("/apis/{group}/v1/namespaces/{}/widgets/a/status", app.namespace);
    app.cluster.api().merge_patch(&path, &json!({"status": {"phase": "Ready"}})).ok();
    objects[2]["spec"]["size"] = json!(2);
    app.write(&objects);
    assert_eq!(unreported(&app.apply(&[]).expect(0)), [""; 0], "it has a status");
    objects[3]["spec"]["size"] = json!(2);
    app.write(&objects);
    assert_eq!(unreported(&app.apply(&["--wait=false"]).expect(0)), [""; 0], "nothing is waited for");
}

/// The test is the controller: it reports on a Widget, and never on a Gadget.
fn first_objects_of_a_kind_wait_for_the_controller_in_the_app() {
    let app = App::new("operator");
    let group = format!("{}.example.com", app.namespace);
    let object = |kind: &str| json!({"apiVersion": format!("{group}/v1"), "kind": kind, "metadata": {"name": "first"}, "spec": {"size": 1}});
    let rbac = "rbac.authorization.k8s.io";
    let mut operator = running_deployment("operator");
    operator["spec"]["template"]["spec"]["serviceAccountName"] = json!("operator");
    app.write(&[
        definition(&group, "Widget"),
        definition(&group, "Gadget"),
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "operator"}}),
        json!({"apiVersion": format!("{rbac}/v1"), "kind": "Role", "metadata": {"name": "operator"},
            "rules": [{"apiGroups": [group], "resources": ["widgets/status", "gadgets/status"], "verbs": ["patch"]}]}),
        json!({"apiVersion": format!("{rbac}/v1"), "kind": "RoleBinding", "metadata": {"name": "operator"},
            "roleRef": {"apiGroup": rbac, "kind": "Role", "name": "operator"},
            "subjects": [{"kind": "ServiceAccount", "name": "operator"}]}),
        operator,
        object("Widget"),
        object("Gadget"),
    ]);
    let mut run = app.start(&[]);
    run.wait_for("the controller runs", |event| {
        event["type"] == "wait.done" && short(&event["object"]) == "Deployment operator"
    });
    let path = format!("/apis/{group}/v1/namespaces/{}/widgets/first/status", app.namespace);
    let ready =
        |status: &str| json!({"status": {"conditions": [{"type": "Ready", "status": status, "reason": "Syncing"}]}});
    app.cluster.api().merge_patch(&path, &ready("False")).ok();
    run.wait_for("the first status counts", |event| {
        event["type"] == "wait.progress" && event["message"].to_string().contains("Ready is False")
    });
    app.cluster.api().merge_patch(&path, &ready("True")).ok();
    let ran = run.finish().expect(0);
    let named = unreported(&ran);
    assert!(named.len() == 1 && named[0].contains("Gadget") && !named[0].contains("Widget"), "{named:?}");
    let events = ran.events();
    assert!(moment(&events, "wait.done", "Widget first") < moment(&events, "wait.done", "Gadget first"));
}
