//! Secrets and plans: no value is in a plan or can be guessed from it, and another value is found all the same.

use serde_json::json;

use crate::support::apply::TestApp;
use crate::support::markers::Markers;
use crate::support::{Pushback, TestCase, TestCluster, cases};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        ApiServer: no_value_of_a_secret_is_in_a_plan_or_in_what_is_said_of_it,
        ApiServer: another_value_of_a_secret_makes_a_plan_stale,
        Nothing: in_a_folder_values_are_bound_by_a_key_or_not_at_all,
        Nothing: credentials_of_a_url_are_not_kept,
    ]
}

fn secret(name: &str, value: &str) -> String {
    format!("---\napiVersion: v1\nkind: Secret\nmetadata:\n  name: {name}\nstringData:\n  password: {value}\n")
}

fn no_value_of_a_secret_is_in_a_plan_or_in_what_is_said_of_it() {
    let mut markers = Markers::default();
    let (old, new, moved) = (markers.value("old"), markers.value("new"), markers.value("moved"));
    let (edited, key) = (markers.value("edited"), markers.value("key"));
    let pushback = Pushback::on(TestCluster::shared()).with("PUSHBACK_PLAN_KEY", &key);
    let app = TestApp::of(pushback, "secrets", &TestCluster::shared().namespace("plan-secret"));
    let three = |value: &str| ["a", "b", "c"].iter().map(|name| secret(name, value)).collect::<String>();
    app.apply(&three(&old), &[]).expect(0);
    app.pushback.write("app.yaml", secret("a", &new) + &secret("b", &old) + &secret("d", &new));
    let ran = app.run("plan", &["-f", "app.yaml", "--out", "app.plan", "--facts-out", "facts.json"]).expect(0);
    markers.look_at_run("plan", &ran);
    markers.look_at("the plan", app.pushback.read("app.plan").as_bytes());
    markers.look_at("the facts", app.pushback.read("facts.json").as_bytes());
    for arguments in [["plan", "show", "app.plan", "-v"], ["plan", "show", "app.plan", "-ojson"]] {
        markers.look_at_run("plan show", &app.pushback.run(&arguments).expect(0));
    }
    for name in ["a", "b", "c"] {
        let path = format!("/api/v1/namespaces/{}/secrets/{name}", app.namespace);
        TestCluster::shared().api().merge_patch(&path, &json!({"stringData": {"password": moved}})).ok();
    }
    let apply = ["apply", "--plan", "app.plan"];
    markers.look_at_run("moved", &app.pushback.run(&apply).expect(11));
    app.pushback.write("app.yaml", three(&edited));
    markers.look_at_run("edited", &app.pushback.run(&apply).expect(11));
    markers.assert_hidden(10);
}

fn another_value_of_a_secret_makes_a_plan_stale() {
    let app = TestApp::new("secrets", &TestCluster::shared().namespace("plan-value"));
    app.apply(&secret("a", "one"), &[]).expect(0);
    app.pushback.write("app.yaml", secret("a", "two"));
    let plan = || app.run("plan", &["-f", "app.yaml", "--out", "app.plan"]).expect(0);
    let refused = |part: &str| {
        let error = app.pushback.run(&["apply", "--plan", "app.plan"]).expect(11).stderr;
        assert!(error.contains(part), "{error}");
    };
    plan();
    app.pushback.write("app.yaml", secret("a", "six"));
    refused("app.yaml was edited");
    plan();
    let path = format!("/api/v1/namespaces/{}/secrets/a", app.namespace);
    TestCluster::shared().api().merge_patch(&path, &json!({"stringData": {"password": "own"}})).ok();
    refused("Secret ");
    plan();
    app.pushback.run(&["apply", "--plan", "app.plan"]).expect(0);
}

fn in_a_folder_values_are_bound_by_a_key_or_not_at_all() {
    let plan = ["plan", "-a", "shop", "-f", "app.yaml", "--cluster", "dir:live", "--out", "app.plan"];
    let apply = ["apply", "--plan", "app.plan", "--cluster", "dir:live"];
    let folder = |pushback: Pushback| {
        std::fs::create_dir(pushback.directory().join("live")).expect("a folder");
        pushback.write("app.yaml", secret("a", "one"));
        pushback
    };
    let without = folder(Pushback::new());
    let ran = without.run(&plan).expect(0);
    assert!(ran.stderr.contains("the values of Secrets are not part of the plan"), "{}", ran.stderr);
    let first = without.read("app.plan");
    without.write("app.yaml", secret("a", "six"));
    without.run(&plan).expect(0);
    let line = |text: &str| text.lines().filter(|line| line.contains("digest") || line.contains("Secret")).count();
    assert_eq!(line(&first), line(&without.read("app.plan")));
    without.run(&apply).expect(0);
    let keyed = folder(Pushback::new().with("PUSHBACK_PLAN_KEY", "a key of the pipeline"));
    keyed.run(&plan).expect(0);
    keyed.write("app.yaml", secret("a", "six"));
    assert!(keyed.run(&apply).expect(11).stderr.contains("app.yaml was edited"));
    keyed.write("app.yaml", secret("a", "one"));
    let other = keyed.with("PUSHBACK_PLAN_KEY", "another");
    assert!(other.run(&apply).expect(11).stderr.contains("app.yaml was edited"));
}

fn credentials_of_a_url_are_not_kept() {
    let given = pushback::cli::plan::given::Given::of("plan", &{
        let command = pushback::cli::command();
        let url = "https://user:Mk0123Zq@example.com/app.yaml?token=Mk0123Zq";
        let arguments = ["pushback", "plan", "-a", "shop", "--out", "x", "--patch", "-f", url];
        let matches = command.try_get_matches_from(arguments).expect("a command line");
        matches.subcommand().expect("plan").1.clone()
    });
    let kept = given.to_keep();
    assert_eq!(kept["--file"], ["https://example.com/app.yaml"]);
    assert_eq!(kept.keys().map(String::as_str).collect::<Vec<_>>(), ["--app", "--file", "--patch"]);
}
