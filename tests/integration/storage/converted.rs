//! A bridge with a conversion plan: fields that have another name in the new version come along, with their owners, also
//! if the run is killed on the way.

use std::fs;
use std::io::Write as _;

use serde_json::{Value, json};

use super::crd::{TestCrd, without_clients};
use crate::kill_points::killed;
use crate::support::apply::TestApp;
use crate::support::proxy::{Matching, Verb, any, matching, writes};
use crate::support::{Ran, TestCase, TestCluster, cases, rounds};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        ApiServer: objects_are_converted_by_a_plan_when_their_version_goes,
        ApiServer: what_the_new_version_refuses_is_named_before_anything_is_written,
        ApiServer: a_conversion_that_has_begun_is_not_left_half_done,
        ApiServer: a_conversion_killed_at_any_write_is_finished_by_the_next_run,
    ]
}

/// `size`, `colour` and `status.phase`.
fn old(crd: &TestCrd) -> Value {
    let spec = json!({"size": {"type": "integer"}, "colour": {"type": "string"}});
    crd.manifest(&[("v1", true, true, spec)])
}

/// `size`, `color` and `status.state`.
fn new(crd: &TestCrd) -> Value {
    let spec = json!({"size": {"type": "integer"}, "color": {"type": "string", "maxLength": 5}});
    let mut manifest = crd.manifest(&[("v2", true, true, spec)]);
    let status = json!({"type": "object", "properties": {"state": {"type": "string"}}});
    manifest["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"] = status;
    manifest
}

fn plan(crd: &TestCrd) -> Value {
    json!({
        "apiVersion": "pushback.dev/v1alpha1", "kind": "ConversionPlan", "metadata": {"name": crd.name()},
        "steps": [{"from": "v1", "to": "v2", "renames": {"spec.colour": "spec.color", "status.phase": "status.state"}}],
    })
}

fn input(documents: &[Value]) -> String {
    documents.iter().chain([&without_clients()]).map(Value::to_string).collect::<Vec<_>>().join("\n---\n")
}

fn apply(crd: &TestCrd, documents: &[Value], arguments: &[&str]) -> Ran {
    TestApp::new("cogs", &crd.namespace).apply(&input(documents), arguments)
}

/// The old definition, and objects of it: applied by an owner, with a label, a finalizer and a status.
fn deployed(prefix: &str, objects: usize) -> TestCrd {
    let crd = TestCrd::new(prefix);
    let ran = apply(&crd, &[old(&crd)], &[]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    crd.await_version("v1", true);
    for number in 0..objects {
        let name = format!("cog-{number}");
        let mut object = crd.object("v1", &name, &json!({"size": number, "colour": "red"}));
        object["metadata"]["labels"] = json!({"team": "a"});
        object["metadata"]["finalizers"] = json!(["example.com/kept"]);
        crd.api().apply_with(&object, OWNER).ok();
        let status = format!("{}/status", crd.object_path("v1", &name));
        crd.api().merge_patch(&status, &json!({"status": {"phase": "Ready"}})).ok();
    }
    crd
}

const OWNER: &str = "fieldManager=owner&force=true";

/// What has to be there afterwards, of every object, in the version that is read.
fn contents(crd: &TestCrd, version: &str) -> Vec<Value> {
    let objects = crd.api().list(&format!("/apis/{}/{version}/namespaces/{}/cogs", crd.group, crd.namespace));
    let metadata = |object: &Value, key: &str| object["metadata"][key].clone();
    let row = |object: &Value| {
        let kept = ["uid", "labels", "finalizers", "annotations"].map(|key| metadata(object, key));
        json!([kept, object["spec"], object["status"]])
    };
    objects.iter().map(row).collect()
}

/// The same in the words of the new version.
fn renamed(contents: Vec<Value>) -> Vec<Value> {
    let text = Value::from(contents).to_string().replace("\"colour\"", "\"color\"").replace("\"phase\"", "\"state\"");
    serde_json::from_str(&text).expect("JSON")
}

const BRIDGE: [&str; 2] = ["--storage", "bridge"];

fn objects_are_converted_by_a_plan_when_their_version_goes() {
    let crd = deployed("convert", 7);
    let before = contents(&crd, "v1");
    // Without a plan, the field would be lost.
    let ran = apply(&crd, &[new(&crd)], &BRIDGE);
    assert_eq!(ran.code, 10, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("7 of 7 objects would lose fields: spec.colour (7"), "{}", ran.stdout);
    let backup = tempfile::tempdir().expect("a folder");
    let folder = backup.path().to_str().expect("a path");
    let arguments = [&BRIDGE[..], &["--storage-backup", folder]].concat();
    let ran = apply(&crd, &[new(&crd), plan(&crd)], &arguments);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("7 objects converted from v1"), "{}", ran.stdout);
    assert_eq!((crd.in_etcd().as_str(), crd.stored_versions()), ("v2: 7", json!(["v2"])));
    assert_eq!(contents(&crd, "v2"), renamed(before));
    let live = crd.live();
    assert_eq!(live["spec"]["versions"].as_array().map(Vec::len), Some(1));
    assert_eq!(live["metadata"]["annotations"].get("pushback.dev/converting"), None, "{}", live["metadata"]);
    // As they were.
    let kept =
        fs::read_to_string(backup.path().join(crd.name()).join(&crd.namespace).join("cog-3.json")).expect("a backup");
    let kept: Value = serde_json::from_str(&kept).expect("JSON");
    assert_eq!((&kept["apiVersion"], &kept["spec"]["colour"]), (&json!(format!("{}/v1", crd.group)), &json!("red")));
    // The owner still owns its fields: what it no longer sets goes, and nothing else.
    let mut object = crd.object("v2", "cog-3", &json!({"size": 3}));
    object["metadata"]["finalizers"] = json!(["example.com/kept"]);
    let entries = crd.api().get(&crd.object_path("v2", "cog-3")).ok()["metadata"]["managedFields"].clone();
    let applied = crd.api().apply_with(&object, OWNER).ok();
    assert_eq!(applied["spec"], json!({"size": 3}), "{entries:#}");
    assert_eq!((&applied["metadata"]["labels"], &applied["status"]), (&Value::Null, &json!({"state": "Ready"})));
    // Nothing is left to do.
    let ran = apply(&crd, &[new(&crd), plan(&crd)], &[&BRIDGE[..], &["--apply-exit-status"]].concat());
    assert_eq!(ran.code, 2, "{}{}", ran.stdout, ran.stderr);
}

fn what_the_new_version_refuses_is_named_before_anything_is_written() {
    let crd = deployed("convert-refused", 3);
    let path = crd.object_path("v1", "cog-1");
    crd.api().merge_patch(&path, &json!({"spec": {"colour": "turquoise"}})).ok();
    let before = (crd.live(), crd.in_etcd());
    let ran = apply(&crd, &[new(&crd), plan(&crd)], &BRIDGE);
    assert_eq!(ran.code, 10, "{}{}", ran.stdout, ran.stderr);
    let said = format!(
        "1 of 3 stored objects cannot be converted, such as {}/cog-1: v2 does not accept spec.color: ",
        crd.namespace
    );
    assert!(ran.stdout.contains(&said), "{}", ran.stdout);
    assert_eq!((crd.live(), crd.in_etcd()), before);
}

fn a_conversion_that_has_begun_is_not_left_half_done() {
    let crd = deployed("convert-begun", 4);
    let before = contents(&crd, "v1");
    let place = crd.pushback();
    place.write("wanted.yaml", input(&[new(&crd), plan(&crd)]));
    let arguments = ["apply", "-a", "cogs", "-f", "wanted.yaml", "--storage", "bridge", "--yes"];
    let owned: Vec<String> = arguments.map(str::to_owned).to_vec();
    // After the second object.
    let writes = matching(Verb::Patch, "cogs");
    assert!(killed(TestCluster::shared(), &place, &owned, writes.nth(3), true).is_some());
    // Moving objects now would leave old shapes in the new version.
    let ran = crd.pushback().run(&["storage", "migrate", &crd.name()]);
    assert_eq!(ran.code, 10, "{}{}", ran.stdout, ran.stderr);
    assert!(
        format!("{}{}", ran.stdout, ran.stderr).contains("its objects are being converted from v1"),
        "{}{}",
        ran.stdout,
        ran.stderr
    );
    // Nor does an apply without the plan, or without the policy.
    let ran = apply(&crd, &[new(&crd)], &BRIDGE);
    assert_eq!(ran.code, 10, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("apply with the same conversion plan"), "{}", ran.stdout);
    let ran = apply(&crd, &[new(&crd), plan(&crd)], &[]);
    assert_eq!(ran.code, 10, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("apply with --storage=bridge"), "{}", ran.stdout);
    let ran = place.run(&arguments);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert_eq!(contents(&crd, "v2"), renamed(before));
    assert_eq!(crd.in_etcd(), "v2: 4");
}

/// All requests that write in a usual run; every request in a full one.
fn a_conversion_killed_at_any_write_is_finished_by_the_next_run() {
    let points: fn() -> Matching = if rounds(0, 1) > 0 { any } else { writes };
    let mut number = 0;
    loop {
        number += 1;
        let crd = deployed("kill-convert", 3);
        let before = renamed(contents(&crd, "v1"));
        let place = crd.pushback();
        place.write("wanted.yaml", input(&[new(&crd), plan(&crd)]));
        let arguments = ["apply", "-a", "cogs", "-f", "wanted.yaml", "--storage", "bridge", "--yes"];
        let owned: Vec<String> = arguments.map(str::to_owned).to_vec();
        let was_killed = killed(TestCluster::shared(), &place, &owned, points().nth(number), number % 2 == 0).is_some();
        let ran = place.run(&arguments);
        assert_eq!(ran.code, 0, "killed at {number}: {}{}", ran.stdout, ran.stderr);
        assert_eq!(contents(&crd, "v2"), before, "killed at {number}");
        assert_eq!((crd.in_etcd().as_str(), crd.stored_versions()), ("v2: 3", json!(["v2"])), "killed at {number}");
        if !was_killed {
            break;
        }
    }
    assert!(number > 10, "a conversion has more than {number} writes");
    let _ = writeln!(std::io::stderr(), "a conversion killed at {} points", number - 1);
}
