//! The three steps by which a client of another version deletes a field under strategy None, on a real API server: what
//! the default rules say before, and what happens then. Objects of a server that a conversion plan would change.

use serde_json::{Value, json};

use super::crd::TestCrd;
use crate::support::apply::TestApp;
use crate::support::{TestCase, cases};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        ApiServer: field_that_a_client_of_another_version_deletes_was_named_before,
        ApiServer: live_objects_that_a_plan_changes_are_named_and_nothing_is_written,
    ]
}

fn text() -> Value {
    json!({"type": "string"})
}

/// The findings of default rules about clients, of a check of this manifest.
fn named(app: &TestApp, manifest: &Value) -> Vec<Value> {
    app.pushback.write("app.yaml", manifest.to_string());
    let arguments = ["-f", "app.yaml", "--dangerous-override-ownership-of-existing-resources"];
    let report = app.run("check", &arguments).expect(0).json();
    let findings = report["findings"].as_array().expect("findings").iter();
    findings.filter(|finding| finding["check"] == "crossVersionLoss").cloned().collect()
}

fn field_that_a_client_of_another_version_deletes_was_named_before() {
    let versions = |v1: Value| [("v1", true, true, v1), ("v1beta1", true, false, json!({"size": {"type": "integer"}}))];
    let crd = TestCrd::new("clients");
    crd.put(&versions(json!({"size": {"type": "integer"}})));
    crd.create("v1beta1", 1);
    let app = TestApp::of(crd.pushback(), "clients", &crd.namespace);
    let new = versions(json!({"size": {"type": "integer"}, "note": text()}));
    let found = named(&app, &crd.manifest(&new));
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!((&found[0]["version"], &found[0]["old"]), (&json!("v1beta1"), &json!(["spec.note"])));
    assert_eq!((&found[0]["verdict"], &found[0]["severity"]), (&json!("change"), &json!("warning")));
    assert!(found[0]["versionUse"]["objects"] == 1, "a client writes at that version: {found:#?}");

    crd.put(&new);
    let [v1, v1beta1] = ["v1", "v1beta1"].map(|version| crd.object_path(version, "cog-0"));
    crd.api().merge_patch(&v1, &json!({"spec": {"note": "keep this"}})).ok();
    let mut labelled = crd.manifest(&new);
    labelled["metadata"]["labels"] = json!({"release": "2"});
    let found = named(&app, &labelled);
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!(found[0]["liveObjects"]["affected"], 1, "the object holds the field: {found:#?}");

    // Read, and written back unchanged.
    let shown = crd.api().get(&v1beta1).ok();
    crd.api().put(&v1beta1, &shown).ok();
    assert_eq!(crd.api().get(&v1).ok()["spec"].get("note"), None, "deleted without an error");
    assert_eq!(named(&app, &labelled), [json!(null); 0], "no object holds it any more");
}

fn live_objects_that_a_plan_changes_are_named_and_nothing_is_written() {
    let versions = [
        ("v1", true, true, json!({"size": {"type": "integer"}})),
        ("v2", true, false, json!({"amount": {"type": "integer"}})),
    ];
    let crd = TestCrd::new("live");
    crd.put(&versions);
    crd.create("v1", 2);
    crd.api().merge_patch(&crd.object_path("v1", "cog-1"), &json!({"spec": {"size": 500}})).ok();
    let before = crd.api().get(&crd.object_path("v1", "cog-1")).ok();
    let pushback = crd.pushback();
    let plan = |cel: &str| {
        json!({
            "apiVersion": "pushback.dev/v1alpha1", "kind": "ConversionPlan", "metadata": {"name": crd.name()},
            "policy": {"bag": "annotation"}, "steps": [{
                "from": "v1", "to": "v2", "removed": {"spec.size": {"reason": "is amount now", "drop": true}},
                "acknowledge": {"spec.size": "is amount now"},
                "up": [{"set": "spec.amount", "cel": cel}], "down": [{"set": "spec.size", "cel": "self.spec.amount"}],
            }],
        })
    };
    pushback.write("crd.yaml", crd.manifest(&versions).to_string());
    let run = |cel: &str| {
        pushback.write("plan.yaml", plan(cel).to_string());
        pushback.run(&["storage", "test", "--crd", "crd.yaml", "--plan", "plan.yaml", "--live", "-o", "json"])
    };
    let report = run("self.spec.size > 100 ? 100 : self.spec.size").expect(10).json();
    let object = format!("{}/cog-1", crd.namespace);
    let affected = json!([{"object": object, "through": "v2", "paths": ["spec.size"]}]);
    assert_eq!(report["live"], json!({"examined": 2, "affected": affected}), "{report}");
    let report = run("self.spec.size").expect(0).json();
    assert_eq!(report["live"], json!({"examined": 2, "affected": []}), "{report}");
    assert_eq!(crd.api().get(&crd.object_path("v1", "cog-1")).ok(), before);
}
