//! Fields that the manifest does not have: those that keep the server from accepting it are removed in place and shown,
//! whether somebody has set them by hand or the server has filled them in. All others stay.

mod edits;
mod unions;

use serde_json::{Value, json};

use crate::support::api::ApiClient;
use crate::support::apply::{TestApp, planned};
use crate::support::pushback::Ran;
use crate::support::{TestCase, TestCluster, cases};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        ApiServer: deploy_after_an_edit_by_hand_succeeds_in_place,
        ApiServer: change_of_a_union_member_is_an_update_in_place,
        ApiServer: removed_field_is_shown_with_its_manager_and_time,
        ApiServer: fallback_on_replace_does_not_replace_what_can_be_updated,
        ApiServer: immutable_field_is_refused_and_nothing_is_written,
        ApiServer: field_that_is_set_by_hand_during_the_run_is_not_removed_unseen,
        ApiServer: service_account_that_leaves_the_manifest_leaves_the_pod_template,
    ]
}

fn api() -> &'static ApiClient {
    TestCluster::shared().api()
}

fn new_app(name: &str) -> TestApp {
    TestApp::new("shop", &TestCluster::shared().namespace(name))
}

/// An object of the app.
fn placed(app: &TestApp, object: &Value) -> Value {
    let mut object = object.clone();
    object["metadata"]["namespace"] = json!(app.namespace);
    object
}

/// Edits an object as `kubectl patch --type json` does.
#[track_caller]
fn edit(path: &str, patch: &Value) {
    let path = format!("{path}?fieldManager=kubectl-patch");
    api().request("PATCH", &path, Some("application/json-patch+json"), Some(patch)).expect("an answer").ok();
}

fn deploy(app: &TestApp, object: &Value, more: &[&str]) -> Ran {
    app.apply(&object.to_string(), &[&["--wait=false"][..], more].concat())
}

fn notes(ran: &Ran) -> String {
    let events = ran.events();
    let plan = events.iter().rfind(|event| event["type"] == "plan").expect("a plan");
    plan["changes"][0]["notes"].to_string()
}

/// Fails unless the live object has every value of the manifest; items of a list are found by name or port.
#[track_caller]
fn assert_live(name: &str, manifest: &Value, live: &Value, place: &str) {
    match (manifest, live) {
        (Value::Object(wanted), Value::Object(found)) => {
            for (key, value) in wanted {
                let live = found.get(key).unwrap_or_else(|| panic!("{name}: {place}.{key} is not live"));
                assert_live(name, value, live, &format!("{place}.{key}"));
            }
        }
        (Value::Array(wanted), Value::Array(found)) => {
            for (index, value) in wanted.iter().enumerate() {
                let is_it = |item: &&Value| item["name"] == value["name"];
                let item = if value["name"].is_string() { found.iter().find(is_it) } else { found.get(index) };
                let item = item.unwrap_or_else(|| panic!("{name}: {place}: no {value} in {live}"));
                assert_live(name, value, item, &format!("{place}[{index}]"));
            }
        }
        _ => assert_eq!(manifest, live, "{name}: {place}"),
    }
}

/// Deploys `new` over `old` and the edit; it must be there in place of the same object, and the next run has nothing to do.
#[track_caller]
fn assert_updated(app: &TestApp, name: &str, old: &Value, patch: &Value, new: &Value) -> Ran {
    let (old, new) = (placed(app, old), placed(app, new));
    let first = deploy(app, &old, &[]);
    assert_eq!(first.code, 0, "{name}: the first deploy: {}", first.stderr);
    let path = api().path_of(&old);
    if !patch.is_null() {
        edit(&path, patch);
    }
    let before = api().get(&path).ok();
    let ran = deploy(app, &new, &[]);
    assert_eq!(ran.code, 0, "{name}: {} {}", ran.stdout, ran.stderr);
    let after = api().get(&path).ok();
    assert_eq!(after["metadata"]["uid"], before["metadata"]["uid"], "{name}: replaced");
    assert_live(name, &new["spec"], &after["spec"], "spec");
    let again = deploy(app, &new, &[]);
    assert_eq!(planned(&again.expect(0)), Vec::<String>::new(), "{name}: the next run");
    ran
}

fn deploy_after_an_edit_by_hand_succeeds_in_place() {
    let app = new_app("edits");
    for edits::Edit { name, old, patch, new } in edits::all() {
        assert_updated(&app, name, &old, &patch, &new);
    }
}

fn change_of_a_union_member_is_an_update_in_place() {
    let app = new_app("unions");
    for unions::Union { name, old, new } in unions::all() {
        assert_updated(&app, &format!("{name}: forth"), &old, &Value::Null, &new);
        assert_updated(&app, &format!("{name}: back"), &new, &Value::Null, &old);
    }
}

fn removed_field_is_shown_with_its_manager_and_time() {
    let app = new_app("shown");
    let object = unions::deployment("web", json!({"strategy": {"type": "Recreate"}}), json!({}));
    let by_hand = json!([
        {"op": "replace", "path": "/spec/strategy", "value": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}},
        {"op": "add", "path": "/spec/template/spec/hostname", "value": "by-hand"},
    ]);
    let ran = assert_updated(&app, "strategy", &object, &by_hand, &object);
    let notes = notes(&ran);
    let time = jiff::Timestamp::now().to_string();
    let day = time.split('T').next().expect("a day");
    assert!(notes.contains(&format!("removes spec.strategy.rollingUpdate, set by kubectl-patch at {day}")), "{notes}");
    // What does not stand against the manifest stays, and is named.
    let live = api().get(&api().path_of(&placed(&app, &object))).ok();
    assert_eq!(live["spec"]["template"]["spec"]["hostname"], "by-hand");
    let warnings = ran.events_of("warning");
    let named = warnings.iter().find(|event| event["code"] == "drift").expect("a warning")["message"].to_string();
    let expected = format!("spec.template.spec.hostname is not in the manifest: kubectl-patch set it at {day}");
    assert!(named.contains(&expected), "{named}");
}

fn fallback_on_replace_does_not_replace_what_can_be_updated() {
    let app = new_app("fallback");
    let mut old = unions::deployment("web", json!({}), json!({}));
    old["metadata"]["annotations"] = json!({"kapp.k14s.io/update-strategy": "fallback-on-replace"});
    let mut new = old.clone();
    new["spec"]["strategy"] = json!({"type": "Recreate"});
    assert_updated(&app, "in place", &old, &Value::Null, &new);
    // A selector cannot be changed in place.
    let path = api().path_of(&placed(&app, &new));
    let uid = api().get(&path).ok()["metadata"]["uid"].take();
    for place in ["/spec/selector/matchLabels", "/spec/template/metadata/labels"] {
        *new.pointer_mut(place).expect("labels") = json!({"app": "other"});
    }
    deploy(&app, &placed(&app, &new), &[]).expect(0);
    assert_ne!(api().get(&path).ok()["metadata"]["uid"], uid);
}

fn immutable_field_is_refused_and_nothing_is_written() {
    let app = new_app("immutable");
    let old = placed(&app, &unions::deployment("web", json!({}), json!({})));
    deploy(&app, &old, &[]).expect(0);
    let path = api().path_of(&old);
    let before = api().get(&path).ok();
    let mut new = old.clone();
    for place in ["/spec/selector/matchLabels", "/spec/template/metadata/labels"] {
        *new.pointer_mut(place).expect("labels") = json!({"app": "other"});
    }
    let ran = deploy(&app, &new, &[]).expect(10);
    let finding = ran.events_of("finding").into_iter().next().expect("a finding");
    assert_eq!(finding["finding"]["check"], "immutable");
    assert_eq!(api().get(&path).ok()["spec"], before["spec"]);
}

fn field_that_is_set_by_hand_during_the_run_is_not_removed_unseen() {
    let app = new_app("meanwhile");
    let old = placed(&app, &unions::deployment("web", json!({"strategy": {"type": "Recreate"}}), json!({})));
    deploy(&app, &old, &[]).expect(0);
    let path = api().path_of(&old);
    let rolling = json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}});
    edit(&path, &json!([{"op": "replace", "path": "/spec/strategy", "value": rolling}]));
    app.pushback.write("app.yaml", old.to_string());
    app.run("plan", &["-f", "app.yaml", "--out", "plan.json"]).expect(0);
    edit(&path, &json!([{"op": "replace", "path": "/spec/strategy/rollingUpdate/maxSurge", "value": 3}]));
    // The plan has shown another value.
    app.pushback.run(&["apply", "--plan", "plan.json", "--yes", "-o", "json"]).expect(11);
    assert_eq!(api().get(&path).ok()["spec"]["strategy"]["rollingUpdate"]["maxSurge"], 3);
}

/// The server stores it under two names, of which a manifest has one.
fn service_account_that_leaves_the_manifest_leaves_the_pod_template() {
    let app = new_app("accounts");
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "powerful"}});
    api().apply(&placed(&app, &account)).ok();
    for name in ["serviceAccountName", "serviceAccount"] {
        let new = unions::deployment("web", json!({}), json!({}));
        let mut old = new.clone();
        old["spec"]["template"]["spec"][name] = json!("powerful");
        let ran = assert_updated(&app, name, &old, &Value::Null, &new);
        let live = api().get(&api().path_of(&placed(&app, &new))).ok();
        let pod = &live["spec"]["template"]["spec"];
        assert!(pod["serviceAccountName"].is_null() && pod["serviceAccount"].is_null(), "{name}: {pod}");
        assert!(notes(&ran).contains("removes spec.template.spec.serviceAccount"), "{}", notes(&ran));
    }
    // An account that another manager has set stays.
    let plain = placed(&app, &unions::deployment("web", json!({}), json!({})));
    edit(
        &api().path_of(&plain),
        &json!([{"op": "add", "path": "/spec/template/spec/serviceAccountName", "value": "powerful"}]),
    );
    deploy(&app, &plain, &[]).expect(0);
    let live = api().get(&api().path_of(&plain)).ok();
    assert_eq!(live["spec"]["template"]["spec"]["serviceAccountName"], "powerful");
}
