//! Annotation `create-strategy`: what becomes of an object that somebody else creates between the plan and its write. By
//! then another object of the run is written, so that nothing can be planned anew.

use serde_json::json;

use crate::support::api::ApiClient;
use crate::support::apply::{TestApp, annotated, config_map_path, error, planned};
use crate::support::proxy::{FaultProxy, Verb, matching};
use crate::support::{Pushback, Ran, TestCase, TestCluster, cases};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        ApiServer: an_object_that_appears_is_updated_where_its_strategy_says_so,
        ApiServer: an_object_that_appears_is_left_alone_without_a_strategy,
        ApiServer: an_object_of_another_app_is_never_taken,
        ApiServer: an_object_that_is_there_is_adopted_with_either_strategy,
        ApiServer: under_kapps_name_what_appears_is_told_as_the_server_says_it,
        ApiServer: the_strategy_stands_in_kapps_table,
    ]
}

const STRATEGY: &str = "kapp.k14s.io/create-strategy";
const STRATEGIES: [&str; 2] = ["fallback-on-update", "fallback-on-update-or-noop"];

fn api() -> &'static ApiClient {
    TestCluster::shared().api()
}

/// One object, and a second one that is written after it.
fn input(strategy: &str) -> String {
    let first = annotated("first", &[("kapp.k14s.io/change-group", "example.com/first")]);
    let rule = ("kapp.k14s.io/change-rule", "upsert after upserting example.com/first");
    first + &annotated("second", &[rule, (STRATEGY, strategy)])
}

/// Applies while somebody creates the second object, right before its write.
fn apply_while_somebody_creates(strategy: &str, labels: &serde_json::Value) -> (TestApp, Ran) {
    let cluster = TestCluster::shared();
    let namespace = cluster.namespace("appears");
    let proxy = FaultProxy::start(cluster.kubeconfig_path());
    let theirs = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "data": {"key": "theirs", "more": "theirs"},
        "metadata": {"namespace": namespace, "name": "second", "labels": labels},
    });
    proxy.before(matching(Verb::Apply, "configmaps").named("second").first(1), move |_| {
        api().apply(&theirs).ok();
    });
    let app = TestApp::of(Pushback::with_kubeconfig(&proxy.kubeconfig()), "shop", &namespace);
    let ran = app.apply(&input(strategy), &[]);
    (TestApp::new("shop", &namespace), ran)
}

fn an_object_that_appears_is_updated_where_its_strategy_says_so() {
    for strategy in STRATEGIES {
        let (app, ran) = apply_while_somebody_creates(strategy, &json!({}));
        assert_eq!(planned(&ran.expect(0)), ["create ConfigMap first", "create ConfigMap second"]);
        let live = api().get(&config_map_path(&app.namespace, "second")).ok();
        assert_eq!(live["data"], json!({"key": "value", "more": "theirs"}), "{strategy}");
        assert_eq!(app.inspected(), ["ConfigMap first", "ConfigMap second"], "{strategy}");
        let again = app.apply(&input(strategy), &[]).expect(0);
        assert_eq!(planned(&again), Vec::<String>::new(), "{strategy}");
    }
}

fn an_object_that_appears_is_left_alone_without_a_strategy() {
    let (app, ran) = apply_while_somebody_creates("", &json!({}));
    let said = error(&ran.expect(20)) + &app.run("inspect", &[]).stdout;
    let live = api().get(&config_map_path(&app.namespace, "second")).ok();
    assert_eq!(live["data"]["key"], "theirs", "{said}");
    assert_eq!(app.inspected(), ["ConfigMap first"]);
}

fn under_kapps_name_what_appears_is_told_as_the_server_says_it() {
    let cluster = TestCluster::shared();
    let namespace = cluster.namespace("appears");
    let proxy = FaultProxy::start(cluster.kubeconfig_path());
    let theirs = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": namespace, "name": "second"},
    });
    proxy.before(matching(Verb::Apply, "configmaps").named("second").first(1), move |_| {
        api().apply(&theirs).ok();
    });
    let kapp = Pushback::with_kubeconfig(&proxy.kubeconfig()).with("PUSHBACK_VOICE", "kapp");
    kapp.write("app.yaml", input(""));
    let ran = kapp.run(&["deploy", "-a", "shop", "-n", &namespace, "-f", "app.yaml", "-y"]).expect(1);
    let object = format!("configmap/second (v1) namespace: {namespace}");
    let expected = format!(
        "kapp: Error: create {object}:\n  Creating resource {object}:\n    API server says: configmaps \"second\" \
         already exists (reason: AlreadyExists)\n"
    );
    assert_eq!(ran.stderr, expected);
}

fn an_object_of_another_app_is_never_taken() {
    let (app, ran) = apply_while_somebody_creates(STRATEGIES[0], &json!({"kapp.k14s.io/app": "1234567890123456789"}));
    ran.expect(20);
    let live = api().get(&config_map_path(&app.namespace, "second")).ok();
    assert_eq!(live["data"]["key"], "theirs");
    assert_eq!(live["metadata"]["labels"]["kapp.k14s.io/app"], "1234567890123456789");
}

fn an_object_that_is_there_is_adopted_with_either_strategy() {
    for strategy in STRATEGIES {
        let app = TestApp::new("shop", &TestCluster::shared().namespace("there"));
        let theirs = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "data": {"key": "theirs"},
            "metadata": {"namespace": app.namespace, "name": "second"},
        });
        api().apply(&theirs).ok();
        let ran = app.apply(&input(strategy), &[]).expect(0);
        assert_eq!(planned(&ran), ["create ConfigMap first", "update ConfigMap second"], "{strategy}");
        let live = api().get(&config_map_path(&app.namespace, "second")).ok();
        assert_eq!(live["data"]["key"], "value", "{strategy}");
        assert_eq!(live["metadata"]["labels"]["kapp.k14s.io/app"], app.label().as_str(), "{strategy}");
    }
}

fn the_strategy_stands_in_kapps_table() {
    let namespace = TestCluster::shared().namespace("table");
    let kapp = Pushback::on(TestCluster::shared()).with("PUSHBACK_VOICE", "kapp").with("KAPP_NAMESPACE", &namespace);
    for strategy in STRATEGIES {
        kapp.write("app.yaml", input(strategy));
        let ran = kapp.run(&["deploy", "-a", "shop", "-f", "app.yaml", "--diff-run", "--tty=false"]).expect(0);
        let expected = format!("\tsecond\tConfigMap\t-\tcreate\t{}\treconcile\t", strategy.replace('-', " "));
        let squeezed: String = ran.stdout.lines().map(|line| line.replace(" \t", "\t") + "\n").collect();
        assert!(squeezed.contains(&expected), "{squeezed}");
    }
}
