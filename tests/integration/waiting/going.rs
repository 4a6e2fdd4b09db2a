//! Objects that go: terminating ones, held ones, replaced ones, and those that are let go.

use rustix::process::Signal;
use serde_json::{Value, json};

use super::{App, config_map, end, unfinished};
use crate::support::{TestCase, cases};

pub(super) fn tests() -> Vec<TestCase> {
    cases![
        Controllers: a_terminating_namespace_is_waited_for_and_made_anew,
        ApiServer: nothing_is_applied_into_a_namespace_that_goes,
        ApiServer: an_object_that_never_goes_is_named_with_its_finalizer,
        ApiServer: a_deletion_is_requested_until_the_object_is_gone,
        ApiServer: an_orphan_stays_without_the_apps_label,
        ApiServer: an_immutable_change_replaces_where_that_is_allowed,
        ApiServer: a_replacement_waits_for_the_old_object_and_says_what_keeps_it,
    ]
}

/// Sets the finalizers of an object.
fn finalize(app: &App, path: &str, finalizers: &[&str]) {
    app.cluster.api().merge_patch(path, &json!({"metadata": {"finalizers": finalizers}})).ok();
}

fn a_terminating_namespace_is_waited_for_and_made_anew() {
    let app = App::new("records");
    let target = app.cluster.namespace("going");
    let held = format!("/api/v1/namespaces/{target}/configmaps/held");
    let mut object = config_map("held");
    object["metadata"]["namespace"] = json!(target);
    app.cluster.api().apply(&object).ok();
    finalize(&app, &held, &["example.com/hold"]);
    app.cluster.api().delete(&format!("/api/v1/namespaces/{target}")).ok();

    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": target}});
    let mut settings = config_map("settings");
    settings["metadata"]["namespace"] = json!(target);
    app.write(&[namespace, settings]);
    let mut run = app.start(&[]);
    run.wait_for("it says what it waits for, and what keeps it", |event| {
        event["type"] == "wait.progress"
            && event["wanted"] == "deleted"
            && event["object"]["name"] == *target
            && event["message"].as_str().is_some_and(|message| message.contains("example.com/hold"))
    });
    finalize(&app, &held, &[]);
    run.finish().expect(0);
    let found = app.cluster.api().get(&format!("/api/v1/namespaces/{target}/configmaps/settings"));
    assert_eq!(found.status, 200);
}

fn nothing_is_applied_into_a_namespace_that_goes() {
    let app = App::new("records");
    let target = app.cluster.namespace("going");
    finalize(&app, &format!("/api/v1/namespaces/{target}"), &["example.com/hold"]);
    app.cluster.api().delete(&format!("/api/v1/namespaces/{target}")).ok();
    let mut settings = config_map("settings");
    settings["metadata"]["namespace"] = json!(target);
    app.write(&[config_map("first"), settings]);
    let ran = app.apply(&[]).expect(10);
    let findings = ran.events_of("finding");
    assert_eq!(findings.len(), 1, "{}", ran.stdout);
    assert_eq!(findings[0]["finding"]["check"], "terminating", "{}", findings[0]);
    assert!(findings[0].to_string().contains("is being terminated"), "{}", findings[0]);
    assert!(!app.is_there("configmaps/first"), "nothing is written before the verdict");
    finalize(&app, &format!("/api/v1/namespaces/{target}"), &[]);
}

fn an_object_that_never_goes_is_named_with_its_finalizer() {
    let app = App::new("held");
    app.write(&[config_map("kept"), config_map("held")]);
    app.apply(&[]).expect(0);
    finalize(&app, &app.path("configmaps/held"), &["kubernetes.io/test-protection"]);
    app.write(&[config_map("kept")]);
    let ran = app.apply(&["--wait-timeout", "2s"]).expect(22);
    let expected = ("ConfigMap/held not deleted".to_owned(), "finalizer kubernetes.io/test-protection".to_owned());
    assert_eq!(unfinished(&ran), std::slice::from_ref(&expected));

    // It is remembered: the next run waits for it again, and so does the deletion of the app.
    let ran = app.apply(&["--wait-timeout", "2s"]).expect(22);
    assert_eq!(unfinished(&ran), std::slice::from_ref(&expected));
    let ran = app.place.run(&app.arguments("delete", &["--wait-timeout", "2s"])).expect(22);
    assert_eq!(unfinished(&ran), [expected]);
    assert!(app.is_there("configmaps/shop"), "an app that is not gone keeps its record");

    finalize(&app, &app.path("configmaps/held"), &[]);
    app.place.run(&app.arguments("delete", &[])).expect(0);
    assert!(!app.is_there("configmaps/shop") && !app.is_there("configmaps/kept"));
}

fn a_deletion_is_requested_until_the_object_is_gone() {
    let app = App::new("requested");
    app.write(&[config_map("free"), config_map("held")]);
    app.apply(&[]).expect(0);
    finalize(&app, &app.path("configmaps/held"), &["example.com/hold"]);
    let delete = |arguments: &[&str]| app.place.run(&app.arguments("delete", arguments));
    let list = || {
        let apps = app.place.run(&["list", "-n", &app.namespace, "-o", "json"]).expect(0).json()["apps"].take();
        (apps[0]["state"].clone(), apps[0]["successful"].clone())
    };

    for arguments in [&["--wait=false"][..], &["--wait-timeout", "2s"]] {
        let is_waited_for = arguments.len() == 2;
        let ran = delete(arguments).expect(if is_waited_for { 22 } else { 0 });
        let done = &end(&ran)["done"];
        let gone = u64::from(!is_waited_for);
        assert_eq!((&done["delete"], &done["deleting"]), (&json!(gone), &json!(1)), "{done}");
        let told =
            ran.events().into_iter().find(|event| event["type"] == "change.done" && event["object"]["name"] == "held");
        assert_eq!(told.expect("its change")["outcome"], "requested");
        let hints = end(&ran)["hints"].to_string();
        assert!(hints.contains("finalizer example.com/hold is removed by the controller of example.com"), "{hints}");
        assert!(!hints.contains("disable-wait"), "{hints}");
        assert!(app.is_there("configmaps/shop"), "what is still there must not be forgotten");
        assert_eq!(list(), (json!("deleting"), Value::Null));
    }
    let shown = app.place.run(&["delete", "-a", "shop", "-n", &app.namespace, "--yes", "--wait=false", "-o", "plain"]);
    let shown = shown.expect(0);
    let said = shown.stdout + &shown.stderr;
    assert!(said.contains("delete deleting configmap/") && said.contains(": 1 deleting."), "{said}");
    assert!(said.contains("Requested the deletion of shop") && !said.contains("Deleted shop"), "{said}");

    finalize(&app, &app.path("configmaps/held"), &[]);
    let ran = delete(&[]).expect(0);
    assert_eq!(end(&ran)["done"]["deleting"], Value::Null, "{}", ran.stdout);
    assert!(!app.is_there("configmaps/shop"));
}

fn an_orphan_stays_without_the_apps_label() {
    let app = App::new("orphan");
    let mut orphan = config_map("orphan");
    orphan["metadata"]["annotations"] = json!({"kapp.k14s.io/delete-strategy": "orphan"});
    app.write(&[config_map("kept"), orphan]);
    app.apply(&[]).expect(0);
    app.write(&[config_map("kept")]);
    app.apply(&[]).expect(0);
    let labels = app.get("configmaps/orphan")["metadata"]["labels"].take();
    assert_eq!((&labels["kapp.k14s.io/app"], &labels["kapp.k14s.io/orphaned"]), (&Value::Null, &json!("")), "{labels}");
    app.place.run(&app.arguments("delete", &[])).expect(0);
    assert!(app.is_there("configmaps/orphan") && !app.is_there("configmaps/kept"));
}

fn an_immutable_change_replaces_where_that_is_allowed() {
    let app = App::new("replaced");
    let settings = |value: &str, strategy: &str| {
        let mut object = config_map("settings");
        object["immutable"] = json!(true);
        object["data"]["key"] = json!(value);
        if !strategy.is_empty() {
            object["metadata"]["annotations"] = json!({"kapp.k14s.io/update-strategy": strategy});
        }
        object
    };
    let mut mutable = config_map("always");
    mutable["metadata"]["annotations"] = json!({"kapp.k14s.io/update-strategy": "always-replace"});
    app.write(&[settings("one", ""), mutable.clone()]);
    app.apply(&[]).expect(0);
    let uid = |name: &str| app.get(&format!("configmaps/{name}"))["metadata"]["uid"].take();
    let (first, always) = (uid("settings"), uid("always"));

    app.write(&[settings("two", ""), mutable.clone()]);
    let ran = app.apply(&[]).expect(10);
    assert_eq!(ran.events_of("finding")[0]["finding"]["check"], "immutable", "{}", ran.stdout);

    mutable["data"]["key"] = json!("other");
    app.write(&[settings("two", "fallback-on-replace"), mutable.clone()]);
    let ran = app.apply(&[]).expect(0);
    assert_eq!(end(&ran)["done"]["replace"], 2, "{}", ran.stdout);
    assert_ne!(uid("settings"), first);
    assert_ne!(uid("always"), always);
    assert_eq!(app.get("configmaps/settings")["data"]["key"], "two");
    // A change that the server takes is no reason to replace, and no change is none either.
    let second = uid("always");
    let mut labelled = settings("two", "fallback-on-replace");
    labelled["metadata"]["labels"] = json!({"tier": "web"});
    let before = uid("settings");
    app.write(&[labelled, mutable]);
    let done = end(&app.apply(&[]).expect(0))["done"].take();
    assert_eq!((&done["update"], &done["replace"]), (&json!(1), &json!(0)), "{done}");
    assert_eq!((uid("settings"), uid("always")), (before, second));
}

fn a_replacement_waits_for_the_old_object_and_says_what_keeps_it() {
    let app = App::new("held");
    let held = |value: &str| {
        let mut object = config_map("held");
        object["data"]["key"] = json!(value);
        object["metadata"]["annotations"] = json!({"kapp.k14s.io/update-strategy": "always-replace"});
        object
    };
    app.write(&[held("one")]);
    app.apply(&[]).expect(0);
    finalize(&app, &app.path("configmaps/held"), &["kubernetes.io/test-protection"]);
    app.write(&[held("two")]);
    let ran = app.apply(&["--apply-timeout", "2s"]).expect(20);
    let why = "timed out waiting for the old object to be deleted: finalizer kubernetes.io/test-protection";
    assert_eq!(unfinished(&ran), [("ConfigMap/held failed".to_owned(), why.to_owned())]);

    // Stopped while it waits, it has neither failed nor been written.
    let keeps = |event: &Value| {
        event["type"] == "wait.progress"
            && event["wanted"] == "deleted"
            && event["message"].as_str().is_some_and(|message| message.contains("kubernetes.io/test-protection"))
    };
    let mut run = app.start(&[]);
    run.wait_for("it says what keeps the old object", keeps);
    run.signal(Signal::INT);
    let ran = run.finish().expect(130);
    assert_eq!(unfinished(&ran)[0].0, "ConfigMap/held not applied");

    let mut run = app.start(&["--lock-wait", "0s"]);
    run.wait_for("it says what keeps the old object", keeps);
    finalize(&app, &app.path("configmaps/held"), &[]);
    run.finish().expect(0);
    assert_eq!(app.get("configmaps/held")["data"]["key"], "two");
}
