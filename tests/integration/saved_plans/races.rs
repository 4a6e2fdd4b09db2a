//! The world moves while a plan is carried out: after its comparison, before a write. Nothing else than the plan is written
//! in silence.

use serde_json::json;

use crate::support::apply::{TestApp, config_map, config_map_path};
use crate::support::proxy::{FaultProxy, Verb, matching};
use crate::support::{Pushback, TestCase, TestCluster, cases};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        ApiServer: another_run_between_comparison_and_lock_makes_it_stale,
        ApiServer: an_object_that_moves_right_before_its_write_is_not_overwritten_in_silence,
    ]
}

/// `a` is to change, `b` goes, `c` comes, through a proxy.
fn prepared(prefix: &str) -> (TestApp, FaultProxy) {
    let cluster = TestCluster::shared();
    let proxy = FaultProxy::start(cluster.kubeconfig_path());
    let app = TestApp::of(Pushback::with_kubeconfig(&proxy.kubeconfig()), "raced", &cluster.namespace(prefix));
    app.apply(&(config_map("a", "old") + &config_map("b", "old")), &[]).expect(0);
    app.pushback.write("app.yaml", config_map("a", "new") + &config_map("c", "new"));
    app.run("plan", &["-f", "app.yaml", "--out", "app.plan"]).expect(0);
    (app, proxy)
}

fn another_run_between_comparison_and_lock_makes_it_stale() {
    let (app, proxy) = prepared("plan-raced");
    let other = TestApp::new("raced", &app.namespace);
    other.pushback.write("app.yaml", config_map("a", "theirs") + &config_map("b", "old"));
    let namespace = app.namespace.clone();
    // The first write of a run takes its lock.
    proxy.before(crate::support::proxy::writes().in_namespace(&namespace).first(1), move |_| {
        other.run("apply", &["-f", "app.yaml", "--yes"]).expect(0);
    });
    let end = app.pushback.run(&["apply", "--plan", "app.plan", "-o", "json"]).expect(11).end();
    let error = end["error"].as_str().unwrap_or_default();
    assert!(error.contains("/a: its change is another now: data.key theirs → new"), "{error}");
    let api = TestCluster::shared().api();
    assert_eq!(api.get(&config_map_path(&namespace, "a")).ok()["data"]["key"], "theirs");
    assert!(api.get(&config_map_path(&namespace, "c")).status == 404);
}

fn an_object_that_moves_right_before_its_write_is_not_overwritten_in_silence() {
    for (verb, name) in [(Verb::Apply, "a"), (Verb::Delete, "b"), (Verb::Apply, "c")] {
        let (app, proxy) = prepared("plan-late");
        let path = config_map_path(&app.namespace, name);
        let collection = format!("/api/v1/namespaces/{}/configmaps", app.namespace);
        let (here, name) = (app.namespace.clone(), name.to_owned());
        let late = matching(verb, "configmaps").named(&name).in_namespace(&here).first(1);
        let (at, of) = (path.clone(), name.clone());
        proxy.before(late, move |_| {
            let api = TestCluster::shared().api();
            let theirs =
                json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": of}, "data": {"key": "late"}});
            if of == "c" {
                api.post(&collection, &theirs).ok();
            } else {
                api.merge_patch(&at, &json!({"data": {"key": "late"}})).ok();
            }
        });
        let end = app.pushback.run(&["apply", "--plan", "app.plan", "-o", "json"]).expect(20).end();
        let unfinished: Vec<&str> = end["unfinished"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|it| it["object"]["name"].as_str().expect("a name"))
            .collect();
        assert_eq!(unfinished, [name.as_str()], "{end}");
        let message = end["unfinished"][0]["message"].as_str().expect("a message");
        assert!(
            message.contains("since it was planned: data") || message.contains("somebody else has created it"),
            "{end}"
        );
        assert_eq!(TestCluster::shared().api().get(&path).ok()["data"]["key"], "late", "{end}");
        // What was done is recorded: a new plan goes on from here.
        proxy.clear();
        app.run("plan", &["-f", "app.yaml", "--out", "app.plan"]);
        if name != "c" {
            app.pushback.run(&["apply", "--plan", "app.plan", "-o", "json"]).expect(0);
        }
    }
}
