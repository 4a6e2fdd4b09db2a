//! Rule ExistingObjects on a real API server: what it says of an object is what happens when the object is written.

use serde_json::{Value, json};

use crate::storage::crd::{DEADLINE, TestCrd, size};
use crate::support::apply::TestApp;
use crate::support::{TestCase, cases, wait_until};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        ApiServer: an_object_called_lossy_loses_the_field,
        ApiServer: an_object_called_ratcheted_can_be_kept_and_not_created,
        ApiServer: an_object_called_apply_broken_cannot_be_applied,
        ApiServer: an_object_called_blocked_cannot_be_written_back,
        ApiServer: an_object_with_another_generation_gets_it,
        ApiServer: an_object_that_nothing_is_said_of_is_kept_as_it_is,
    ]
}

/// A definition with one object, `cog-0`.
fn with_object(prefix: &str, properties: Value, spec: &Value) -> TestCrd {
    let crd = TestCrd::new(prefix);
    crd.put(&[("v1", true, true, properties)]);
    let path = format!("/apis/{}/v1/namespaces/{}/cogs", crd.group, crd.namespace);
    crd.api().post(&path, &crd.object("v1", "cog-0", spec)).ok();
    crd
}

/// What the rule says of the object under a definition, which is written then.
#[track_caller]
fn judged(crd: &TestCrd, mut manifest: Value) -> Vec<String> {
    let app = TestApp::of(crd.pushback(), "existing", &crd.namespace);
    app.pushback.write("app.yaml", manifest.to_string());
    let arguments =
        ["-f", "app.yaml", "--preflight=ExistingObjects", "--dangerous-override-ownership-of-existing-resources"];
    let report = app.run("check", &arguments).json();
    let findings = report["findings"].as_array().expect("findings").iter();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let said = findings
        .map(|it| format!("{} {} {}", text(&it["check"]), text(&it["version"]), text(&it["severity"])))
        .collect();
    manifest["metadata"]["resourceVersion"] = crd.live()["metadata"]["resourceVersion"].clone();
    let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{}", crd.name());
    crd.api().put(&path, &manifest).ok();
    said
}

fn label() -> Value {
    json!({"metadata": {"labels": {"touched": "yes"}}})
}

fn an_object_called_lossy_loses_the_field() {
    let old = json!({"size": {"type": "integer"}, "old": {"type": "string"}});
    let crd = with_object("existing-lossy", old, &json!({"size": 1, "old": "kept"}));
    assert_eq!(judged(&crd, crd.manifest(&[("v1", true, true, size())])), ["lossy v1 error"]);
    let path = crd.object_path("v1", "cog-0");
    wait_until("the field is hidden", DEADLINE, || crd.api().get(&path).ok()["spec"]["old"].is_null().then_some(()));
    crd.api().merge_patch(&path, &label()).ok();
    // With the field back in the schema, the value is gone.
    crd.put(&[("v1", true, true, json!({"size": {"type": "integer"}, "old": {"type": "string"}}))]);
    wait_until("the schema is back", DEADLINE, || {
        let probe = crd.object("v1", "probe", &json!({"old": "x"}));
        let written = crd.api().apply_with(&probe, "fieldManager=probe&force=true&dryRun=All");
        (written.body["spec"]["old"] == "x").then_some(())
    });
    assert_eq!(crd.api().get(&path).ok()["spec"], json!({"size": 1}));
}

fn an_object_called_ratcheted_can_be_kept_and_not_created() {
    let crd = with_object("existing-ratcheted", size(), &json!({"size": 9}));
    let narrow = json!({"size": {"type": "integer", "maximum": 5}});
    assert_eq!(judged(&crd, crd.manifest(&[("v1", true, true, narrow)])), ["ratcheted v1 warning"]);
    let path = format!("/apis/{}/v1/namespaces/{}/cogs?dryRun=All", crd.group, crd.namespace);
    let copy = crd.object("v1", "copy", &json!({"size": 9}));
    wait_until("a copy is refused", DEADLINE, || (crd.api().post(&path, &copy).status == 422).then_some(()));
    assert_eq!(crd.api().merge_patch(&crd.object_path("v1", "cog-0"), &label()).status, 200);
}

fn an_object_called_apply_broken_cannot_be_applied() {
    let crd = with_object("existing-type", size(), &json!({"size": 1}));
    let text = json!({"size": {"type": "string"}});
    assert_eq!(judged(&crd, crd.manifest(&[("v1", true, true, text)])), ["applyBroken v1 error"]);
    let mut applied = crd.object("v1", "cog-0", &json!({}));
    applied["metadata"]["labels"] = json!({"a": "b"});
    wait_until("an apply fails", DEADLINE, || {
        (crd.api().apply_with(&applied, "fieldManager=owner&force=true").status == 500).then_some(())
    });
    assert_eq!(crd.api().merge_patch(&crd.object_path("v1", "cog-0"), &label()).status, 200);
}

fn an_object_called_blocked_cannot_be_written_back() {
    let crd = with_object("existing-blocked", size(), &json!({"size": 1}));
    let strict = json!({"size": {"type": "integer"}, "mode": {"type": "string", "default": "slow"}});
    let mut manifest = crd.manifest(&[("v1", true, false, size()), ("v2", true, true, strict)]);
    manifest["spec"]["versions"][1]["schema"]["openAPIV3Schema"]["properties"]["spec"]["required"] = json!(["colour"]);
    assert_eq!(judged(&crd, manifest), ["migrationBlocked v2 error"]);
    crd.await_version("v2", true);
    assert_eq!(crd.api().merge_patch(&crd.object_path("v2", "cog-0"), &json!({})).status, 422);
    assert_eq!(crd.api().merge_patch(&crd.object_path("v1", "cog-0"), &json!({})).status, 200);
}

fn an_object_with_another_generation_gets_it() {
    let crd = with_object("existing-generation", size(), &json!({"size": 1}));
    let added = json!({"size": {"type": "integer"}, "mode": {"type": "string", "default": "slow"}});
    let manifest = crd.manifest(&[("v1", true, false, size()), ("v2", true, true, added)]);
    assert_eq!(judged(&crd, manifest), ["generation v2 info"]);
    crd.await_version("v2", true);
    let written = crd.api().merge_patch(&crd.object_path("v2", "cog-0"), &json!({})).ok();
    assert_eq!((&written["metadata"]["generation"], &written["spec"]["mode"]), (&json!(2), &json!("slow")));
}

fn an_object_that_nothing_is_said_of_is_kept_as_it_is() {
    let crd = with_object("existing-ok", size(), &json!({"size": 1}));
    let wider = json!({"size": {"type": "integer"}, "more": {"type": "string"}});
    let manifest = crd.manifest(&[("v1", true, false, size()), ("v2", true, true, wider)]);
    assert_eq!(judged(&crd, manifest), Vec::<String>::new());
    crd.await_version("v2", true);
    let written = crd.api().merge_patch(&crd.object_path("v2", "cog-0"), &json!({})).ok();
    assert_eq!((&written["metadata"]["generation"], &written["spec"]), (&json!(1), &json!({"size": 1})));
    assert_eq!(crd.in_etcd(), "v2: 1");
}
