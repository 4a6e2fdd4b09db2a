//! A server's objects change between plan and apply: each is named where it matters, and does not stand in the way where
//! it does not.

use serde_json::json;

use crate::support::apply::{TestApp, config_map, config_map_path};
use crate::support::{Options, Pushback, Ran, TestCase, TestCluster, cases};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        ApiServer: a_plan_for_a_new_app_is_carried_out_as_it_is,
        ApiServer: a_change_of_each_object_that_the_plan_rests_on_is_found,
        ApiServer: what_others_set_beside_it_does_not_matter,
        ApiServer: a_plan_is_for_one_cluster,
    ]
}

fn plan(app: &TestApp) -> Ran {
    app.run("plan", &["-f", "app.yaml", "--out", "app.plan"])
}

fn apply(app: &TestApp) -> Ran {
    app.pushback.run(&["apply", "--plan", "app.plan", "-o", "json"])
}

/// `a` is to change, `b` stays, `c` goes, `d` comes.
fn prepared(prefix: &str) -> TestApp {
    let app = TestApp::new("moved", &TestCluster::shared().namespace(prefix));
    let old: String = ["a", "b", "c"].iter().map(|name| config_map(name, "old")).collect();
    app.apply(&old, &[]).expect(0);
    app.pushback.write("app.yaml", config_map("a", "new") + &config_map("b", "old") + &config_map("d", "new"));
    app
}

fn a_plan_for_a_new_app_is_carried_out_as_it_is() {
    let app = TestApp::new("moved", &TestCluster::shared().namespace("plan-new"));
    app.pushback.write("app.yaml", config_map("a", "1") + &config_map("b", "1"));
    plan(&app).expect(0);
    apply(&app).expect(0);
    let plan = app.pushback.read("app.plan");
    assert!(plan.contains(&format!("\"label\":\"{}\"", app.label())), "the app has another label than its plan");
    let again = apply(&app).expect(11).end();
    assert_eq!(again["outcome"], "stale");
    assert!(again["error"].as_str().is_some_and(|error| error.contains("/a: ")), "{again}");
}

fn a_change_of_each_object_that_the_plan_rests_on_is_found() {
    let app = prepared("plan-moved");
    let api = TestCluster::shared().api();
    let path = |name: &str| config_map_path(&app.namespace, name);
    let set = |name: &str, value: &str| api.merge_patch(&path(name), &json!({"data": {"key": value}})).ok();
    let made = |name: &str| {
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"key": "x"}});
        api.post(&format!("/api/v1/namespaces/{}/configmaps", app.namespace), &object).ok()
    };
    type Act<'a> = Box<dyn Fn() + 'a>;
    let cases: Vec<(&str, Act<'_>, Act<'_>, &str)> = vec![
        (
            "a",
            Box::new(|| drop(set("a", "theirs"))),
            Box::new(|| drop(set("a", "old"))),
            "its change is another now: data.key",
        ),
        (
            "b",
            Box::new(|| drop(set("b", "theirs"))),
            Box::new(|| drop(set("b", "old"))),
            "and now it would be updated: data.key",
        ),
        ("c", Box::new(|| drop(set("c", "theirs"))), Box::new(|| drop(set("c", "old"))), "data.key"),
        ("d", Box::new(|| drop(made("d"))), Box::new(|| drop(api.delete(&path("d")))), "the plan has it created"),
        ("b", Box::new(|| drop(api.delete(&path("b")))), Box::new(|| ()), "and it was deleted"),
    ];
    for (name, change, back, expected) in &cases {
        plan(&app).expect(0);
        change();
        let end = apply(&app).expect(11).end();
        let error = end["error"].as_str().unwrap_or_default();
        assert!(error.contains(&format!("/{name}: ")) && error.contains(expected), "{name}: {error}");
        assert_eq!(end["done"]["update"], 0);
        back();
    }
    plan(&app).expect(0);
    apply(&app).expect(0);
}

fn what_others_set_beside_it_does_not_matter() {
    let app = prepared("plan-beside");
    let api = TestCluster::shared().api();
    plan(&app).expect(0);
    for name in ["a", "b", "c"] {
        let path = config_map_path(&app.namespace, name);
        api.merge_patch(&path, &json!({"metadata": {"annotations": {"theirs": "1"}}, "data": {"other": "1"}})).ok();
    }
    apply(&app).expect(0);
}

fn a_plan_is_for_one_cluster() {
    let app = prepared("plan-elsewhere");
    plan(&app).expect(0);
    let other = TestCluster::start(&Options::default());
    let elsewhere = Pushback::on(&other);
    elsewhere.write("app.yaml", app.pushback.read("app.yaml")).write("app.plan", app.pushback.read("app.plan"));
    let error = elsewhere.run(&["apply", "--plan", "app.plan"]).expect(11).stderr;
    assert!(error.contains("the plan is for cluster "), "{error}");
}
