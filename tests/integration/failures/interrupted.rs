//! Signals, at each stage of a run: before anything is written it just ends; afterwards it says what is left, frees the
//! app, and the next run goes on. A second signal ends it at once.

use std::net::TcpListener;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};

use super::{SECRET_VALUE, app, lock, secret, sound, unfinished};
use crate::support::apply::{TestApp, config_map, config_map_path};
use crate::support::gate::Gate;
use crate::support::snapshot::snapshot;
use crate::support::terminal::AtTerminal;
use crate::support::webhook::{Form, Verdict, Webhook};
use crate::support::{Pushback, Running, TestCase, TestCluster, cases};

/// A run that was told to stop may take some seconds for what is under way and for the record, and no more.
const PROMPTLY: Duration = Duration::from_secs(60);

pub(super) fn tests() -> Vec<TestCase> {
    cases![
        Nothing: a_signal_while_connecting_ends_the_run,
        Nothing: a_signal_at_the_question_ends_the_run_and_nothing_is_written,
        Controllers: a_signal_while_the_lock_is_waited_for_leaves_the_lock_to_its_holder,
        Controllers: a_signal_while_the_server_is_asked_leaves_nothing_behind,
        Controllers: a_signal_during_a_write_cuts_it_off_and_frees_the_app,
        Controllers: a_second_signal_ends_the_run_at_once_and_the_next_one_goes_on,
    ]
}

/// A webhook that holds up what `holds` says, and its gate.
fn holding(holds: impl Fn(&Value) -> bool + Send + Sync + 'static) -> (Webhook, Gate) {
    let gate = Gate::default();
    let held = gate.clone();
    let webhook = Webhook::start(&[], move |request| {
        if holds(request) {
            held.pass();
        }
        Verdict::Allow
    });
    (webhook, gate)
}

fn start(app: &TestApp, input: &str, arguments: &[&str]) -> Running {
    app.pushback.write("app.yaml", input);
    let common = ["apply", "-a", &app.name, "-n", &app.namespace, "-o", "json", "-f", "app.yaml", "--yes"];
    Running::start(app.pushback.command(&[&common[..], arguments].concat()))
}

fn is_planning(words: &'static str) -> impl Fn(&Value) -> bool {
    move |event| {
        event["type"] == "diagnostic" && event["message"].as_str().is_some_and(|message| message.contains(words))
    }
}

fn is_written(name: &'static str) -> impl Fn(&Value) -> bool {
    move |event| event["type"] == "change.start" && event["object"]["name"] == name
}

fn a_signal_while_connecting_ends_the_run() {
    // It takes connections and never answers.
    let silent = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let server = format!("http://{}", silent.local_addr().expect("an address"));
    let kubeconfig = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "users": [{"name": "u", "user": {"token": SECRET_VALUE}}],
    });
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let pushback = Pushback::new();
        pushback.write("kubeconfig", kubeconfig.to_string());
        let pushback = pushback.with("KUBECONFIG", "kubeconfig");
        let app = TestApp::of(pushback, "shop", "default");
        let mut run = start(&app, &secret(), &[]);
        run.wait_for("it connects", is_planning("connecting"));
        run.signal(signal);
        let ran = sound(run.finish_within(PROMPTLY), code);
        assert_eq!(ran.end()["error"], "interrupted before anything was written");
    }
}

fn a_signal_at_the_question_ends_the_run_and_nothing_is_written() {
    let pushback = Pushback::new();
    pushback.write("app.yaml", config_map("first", "1"));
    let arguments = ["apply", "-a", "shop", "-f", "app.yaml", "--cluster", "dir:live", "--output", "plain"];
    let mut run = AtTerminal::start(pushback.command(&arguments), 100);
    run.wait_for("[y/N]");
    run.signal(Signal::TERM);
    let shown = run.finish();
    assert_eq!(shown.code, 143, "{}", shown.screen);
    assert!(shown.screen.contains("interrupted before anything was written"), "{}", shown.screen);
    assert_eq!(pushback.tree("live").len(), 0);
}

fn a_signal_while_the_lock_is_waited_for_leaves_the_lock_to_its_holder() {
    let app = app("signal-lock");
    sound(app.apply(&config_map("first", "1"), &[]), 0);
    let held = json!({
        "holder": "somebody", "host": "elsewhere", "boot": "another boot", "process": 1, "run": "theirs",
        "since": "2026-01-01T00:00:00Z", "leaseSeconds": 600, "renewals": 0,
    });
    let patch = json!({"data": {"pushback-lock": held.to_string()}});
    TestCluster::shared().api().merge_patch(&app.record_path(), &patch).ok();
    let before = snapshot(TestCluster::shared(), &app.namespace, &[]);
    let mut run = start(&app, &config_map("first", "2"), &["--lock-wait", "10m"]);
    run.wait_for("it waits for the lock", |event| event["code"] == "lock-waiting");
    run.signal(Signal::TERM);
    sound(run.finish_within(PROMPTLY), 143);
    assert_eq!(snapshot(TestCluster::shared(), &app.namespace, &[]), before);
    assert_eq!(lock(&app), held);
}

fn a_signal_while_the_server_is_asked_leaves_nothing_behind() {
    let cluster = TestCluster::shared();
    let app = app("signal-plan");
    let (webhook, gate) = holding(|request| request["name"] == "held");
    let _registered = webhook.register(cluster, Form::Validating, &app.namespace, json!({"timeoutSeconds": 30}));
    let before = snapshot(cluster, &app.namespace, &[]);
    let input = config_map("first", "1") + &config_map("held", "1") + &secret();
    let mut run = start(&app, &input, &[]);
    run.wait_for("it plans", is_planning("comparing"));
    run.signal(Signal::TERM);
    sound(run.finish_within(PROMPTLY), 143);
    assert_eq!(snapshot(cluster, &app.namespace, &[]), before, "nothing is written before the verdict");
    gate.open();
    sound(app.apply(&input, &["--lock-wait", "0s"]), 0);
}

/// An app of which one object's write hangs in a webhook, and a run that has come to it.
fn hanging_write(prefix: &str) -> (TestApp, String, Gate, Running, [Box<dyn std::any::Any>; 2]) {
    let cluster = TestCluster::shared();
    let app = app(prefix);
    let (webhook, gate) = holding(|request| request["name"] == "held" && request["dryRun"] != true);
    let registered = webhook.register(cluster, Form::Validating, &app.namespace, json!({"timeoutSeconds": 30}));
    let after = "kapp.k14s.io/change-rule: upsert after upserting example.com/held";
    let input = config_map("first", "1")
        + &secret()
        + "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: held, annotations: \
           {kapp.k14s.io/change-group: example.com/held}}\n"
        + &format!("---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: after\n  annotations: {{{after}}}\n");
    let mut run = start(&app, &input, &[]);
    run.wait_for("the write has begun", is_written("held"));
    run.wait_for("the others are written", |event| {
        event["type"] == "change.done" && event["object"]["name"] == "first"
    });
    (app, input, gate, run, [Box::new(webhook), Box::new(registered)])
}

fn is_there(app: &TestApp, name: &str) -> bool {
    TestCluster::shared().api().get(&config_map_path(&app.namespace, name)).status == 200
}

fn a_signal_during_a_write_cuts_it_off_and_frees_the_app() {
    let (app, input, gate, run, _alive) = hanging_write("signal-write");
    run.signal(Signal::TERM);
    let ran = sound(run.finish_within(PROMPTLY), 143);
    assert_eq!(ran.end()["error"], "stopped by SIGTERM");
    let left: Vec<String> = unfinished(&ran).into_iter().map(|(what, _)| what).collect();
    assert_eq!(left, ["ConfigMap/held unknown", "ConfigMap/after not applied"]);
    assert_eq!(lock(&app), Value::Null, "the lock is released");
    gate.open();
    sound(app.apply(&input, &["--lock-wait", "0s"]), 0);
    assert!(is_there(&app, "held") && is_there(&app, "after"));
    assert_eq!(sound(app.apply(&input, &[]), 0).end()["outcome"], "unchanged");
}

fn a_second_signal_ends_the_run_at_once_and_the_next_one_goes_on() {
    let (app, input, gate, run, _alive) = hanging_write("signal-twice");
    run.signal(Signal::TERM);
    run.signal(Signal::INT);
    let ran = run.finish_within(PROMPTLY);
    // Both may have come before the first was looked at; then it ends in order.
    assert!([130, 143].contains(&ran.code), "{ran:?}");
    assert!(!ran.stderr.contains("panicked"), "{}", ran.stderr);
    gate.open();
    // Whoever is gone from this machine holds no lock.
    sound(app.apply(&input, &["--lock-wait", "0s"]), 0);
    assert!(is_there(&app, "held") && is_there(&app, "after"));
    assert_eq!(lock(&app), Value::Null);
}
