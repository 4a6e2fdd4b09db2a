//! A server that is busy, broken, slow or away for a while: at any one request the run goes on as if nothing had been;
//! where it does not come right, the run says what is left, and the next one finishes it.

use std::collections::BTreeMap;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};

use super::{lock, secret, sound, unfinished};
use crate::support::apply::{TestApp, config_map, config_map_path, error, warnings};
use crate::support::proxy::{Fault, FaultProxy, Request, Verb, any, dry_runs, matching, writes};
use crate::support::{Options, Pushback, Ran, Running, TestCase, TestCluster, cases, wait_until};

const SOON: Duration = Duration::from_secs(60);

pub(super) fn tests() -> Vec<TestCase> {
    cases![
        ApiServer: a_first_apply_survives_a_fault_at_any_request,
        ApiServer: an_update_survives_a_fault_at_any_request,
        ApiServer: a_busy_server_is_waited_for_and_told,
        ApiServer: a_server_that_cannot_be_read_ends_the_run_before_anything_is_written,
        ApiServer: a_kind_that_cannot_be_listed_loses_nothing,
        ApiServer: a_write_that_stays_broken_fails_that_object_and_is_finished_by_the_next_run,
        ApiServer: a_record_that_cannot_be_closed_is_a_warning_and_the_next_run_goes_on,
        ApiServer: an_answer_that_never_comes_is_asked_for_again,
        ApiServer: a_slow_connection_is_only_slow,
        ApiServer: an_object_that_changes_under_the_run_keeps_both_changes,
        ApiServer: a_signal_during_preflight_ends_the_run_and_nothing_is_written,
        ApiServer: a_signal_while_the_lock_is_taken_ends_the_run_soon,
        ApiServer: a_server_that_restarts_under_a_run_is_waited_for,
    ]
}

/// An app whose requests go through a proxy, and the proxy.
fn proxied(prefix: &str) -> (FaultProxy, TestApp) {
    let cluster = TestCluster::shared();
    let proxy = FaultProxy::start(cluster.kubeconfig_path());
    let app = TestApp::of(Pushback::with_kubeconfig(&proxy.kubeconfig()), "shop", &cluster.namespace(prefix));
    (proxy, app)
}

/// The same app, straight at the server.
fn direct(app: &TestApp) -> TestApp {
    TestApp::new(&app.name, &app.namespace)
}

/// What can happen to one request.
fn faults() -> Vec<(&'static str, Fault)> {
    vec![
        ("429 with Retry-After", Fault::status(429).retry_after(1)),
        ("429", Fault::status(429)),
        ("500", Fault::status(500)),
        ("500 after the effect", Fault::status(500).with_effect()),
        ("503", Fault::status(503)),
        ("504 after the effect", Fault::status(504).with_effect()),
        ("connection closed", Fault::close()),
        ("answer lost", Fault::close().with_effect()),
        ("answer cut", Fault::Cut(20)),
        ("answer truncated", Fault::Truncate(20)),
        ("connection closed after the answer", Fault::CloseAfter),
    ]
}

const BEFORE: &[(&str, &str)] = &[("kept", "1"), ("changed", "1"), ("old", "1")];
const AFTER: &[(&str, &str)] = &[("kept", "1"), ("changed", "2"), ("new", "1")];

fn input(config_maps: &[(&str, &str)]) -> String {
    let service = "---\napiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {ports: [{port: 80}]}\n";
    config_maps.iter().map(|(name, value)| config_map(name, value)).collect::<String>() + service + &secret()
}

/// The app's ConfigMaps and their values.
fn stored(app: &TestApp) -> BTreeMap<String, String> {
    let path = format!("/api/v1/namespaces/{}/configmaps?labelSelector=kapp.k14s.io%2Fapp", app.namespace);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let objects = TestCluster::shared().api().list(&path);
    objects.iter().map(|object| (text(&object["metadata"]["name"]), text(&object["data"]["key"]))).collect()
}

/// One run with one fault, judged.
fn survives(prefix: &str, before: Option<&str>, number: usize, what: &str, fault: Fault) -> usize {
    let (proxy, app) = proxied(prefix);
    let direct = direct(&app);
    if let Some(before) = before {
        sound(direct.apply(before, &[]), 0);
    }
    proxy.on_each(move |request: &Request| (request.number == number).then(|| fault.clone()));
    let ran = app.apply(&input(AFTER), &[]);
    let requests = proxy.requests();
    let hit = requests
        .get(number.saturating_sub(1))
        .map(|exchange| format!("{} {}", exchange.request.verb, exchange.request.path));
    let context = format!("{what} at request {number} ({})", hit.unwrap_or_default());
    assert_eq!(ran.code, 0, "{context}\n{}\n{}", ran.stdout, ran.stderr);
    sound(ran, 0);
    let expected: BTreeMap<String, String> =
        AFTER.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    assert_eq!(stored(&direct), expected, "{context}");
    assert_eq!(lock(&direct), Value::Null, "{context}");
    let mut created = BTreeMap::<String, usize>::new();
    requests.iter().filter(|exchange| exchange.created() && !exchange.request.name.is_empty()).for_each(|exchange| {
        *created.entry(exchange.request.path.clone()).or_default() += 1;
    });
    assert!(created.values().all(|times| *times == 1), "{context}: {created:?}");
    let again = sound(direct.apply(&input(AFTER), &[]), 0);
    assert_eq!(again.end()["outcome"], "unchanged", "{context}\n{}", again.stdout);
    requests.len()
}

/// Each request of a run with another fault; with `PUSHBACK_ROUNDS` each request with every fault.
fn at_any_request(prefix: &str, before: Option<&str>) {
    let every = std::env::var_os("PUSHBACK_ROUNDS").is_some();
    let faults = faults();
    let whole = survives(prefix, before, 0, "no fault", Fault::CloseAfter);
    assert!(whole > 10, "{whole} requests only");
    let mut tried = Vec::new();
    for number in 1..=whole {
        let (start, count) = (number % faults.len(), if every { faults.len() } else { 1 });
        for step in 0..count {
            let (what, fault) = faults[(start + step) % faults.len()].clone();
            tried.push((number, what, fault));
        }
    }
    // A few at a time: most of a run is waiting for the next attempt.
    for chunk in tried.chunks(4) {
        std::thread::scope(|scope| {
            for (number, what, fault) in chunk.iter().cloned() {
                scope.spawn(move || survives(prefix, before, number, what, fault));
            }
        });
    }
}

fn a_first_apply_survives_a_fault_at_any_request() {
    at_any_request("fault-first", None);
}

fn an_update_survives_a_fault_at_any_request() {
    at_any_request("fault-update", Some(&input(BEFORE)));
}

fn retries(ran: &Ran) -> Vec<String> {
    ran.events_of("retry").iter().map(|event| format!("{}: {}", event["request"], event["reason"])).collect()
}

fn a_busy_server_is_waited_for_and_told() {
    let (proxy, app) = proxied("busy");
    proxy.on(dry_runs("configmaps").first(3), Fault::status(429).retry_after(1));
    proxy.on(matching(Verb::Apply, "configmaps").first(3), Fault::status(429));
    let ran = sound(app.apply(&input(AFTER), &[]), 0);
    assert_eq!(retries(&ran).len(), 6, "{:?}", retries(&ran));
    // Nothing is asked for again before the time that the server named.
    let requests = proxy.requests();
    let refused = requests.iter().filter(|exchange| exchange.fault.is_some() && exchange.request.dry_run);
    for first in refused {
        let again = requests.iter().find(|other| {
            other.request.number > first.request.number
                && other.request.dry_run
                && other.request.path == first.request.path
        });
        let waited = again.expect("another attempt").request.at.saturating_sub(first.request.at);
        assert!(waited >= Duration::from_secs(1), "{waited:?}");
    }
    assert_eq!(direct(&app).run("inspect", &[]).expect(0).json()["objects"].as_array().map(Vec::len), Some(5));
}

/// A rule asks what the user may do.
fn is_review(request: &Request) -> bool {
    request.group == "authorization.k8s.io"
}

fn nothing_is_written(proxy: &FaultProxy) {
    assert_eq!(proxy.count(&writes()), 0, "{:?}", proxy.counts());
}

fn a_server_that_cannot_be_read_ends_the_run_before_anything_is_written() {
    let unreadable = |request: &Request| request.verb == Verb::Discovery;
    let cases = [
        ("discovery", any().that(unreadable), 13),
        ("the record", matching(Verb::Get, "configmaps").named("shop"), 13),
        // What the server could not be asked is nothing to be sure of.
        ("a dry-run", dry_runs("configmaps").named("changed"), 10),
        ("a question of a rule", any().that(is_review), 10),
    ];
    for (what, broken, code) in cases {
        let (proxy, app) = proxied("unreadable");
        sound(direct(&app).apply(&input(BEFORE), &[]), 0);
        proxy.on(broken, Fault::status(500));
        let ran = app.apply(&input(AFTER), &[]);
        assert_eq!(ran.code, code, "{what}: {}", ran.stdout);
        let ran = sound(ran, code);
        nothing_is_written(&proxy);
        assert!(!retries(&ran).is_empty(), "{what}");
        sound(direct(&app).apply(&input(AFTER), &[]), 0);
    }
}

fn a_kind_that_cannot_be_listed_loses_nothing() {
    let (proxy, app) = proxied("unlisted");
    sound(direct(&app).apply(&input(BEFORE), &[]), 0);
    proxy.on(matching(Verb::List, "configmaps"), Fault::status(500));
    let ran = sound(app.apply(&input(AFTER), &[]), 0);
    assert!(warnings(&ran).iter().any(|warning| warning.contains("nothing of it is pruned")), "{:?}", warnings(&ran));
    assert_eq!(stored(&app).get("old").map(String::as_str), Some("1"));
    // It was not forgotten.
    assert_eq!(sound(direct(&app).apply(&input(AFTER), &[]), 0).end()["done"]["delete"], 1);
}

fn a_write_that_stays_broken_fails_that_object_and_is_finished_by_the_next_run() {
    for fault in [Fault::status(500), Fault::status(503), Fault::close(), Fault::status(500).with_effect()] {
        let (proxy, app) = proxied("broken-write");
        proxy.on(matching(Verb::Apply, "configmaps").named("changed"), fault);
        let ran = app.apply(&input(AFTER), &["--apply-timeout", "2s", "--lock-lease", "3m"]);
        let ran = sound(ran, 20);
        let left = unfinished(&ran);
        let states: Vec<&str> = left.iter().map(|(what, _)| what.as_str()).collect();
        assert_eq!(states, ["ConfigMap/changed failed", "Service/web not applied"], "{left:?}");
        assert_eq!(ran.end()["done"]["create"], 3, "{}", ran.stdout);
        assert_eq!(lock(&direct(&app)), Value::Null);
        sound(direct(&app).apply(&input(AFTER), &["--lock-wait", "0s"]), 0);
        assert_eq!(sound(direct(&app).apply(&input(AFTER), &[]), 0).end()["outcome"], "unchanged");
    }
}

fn a_record_that_cannot_be_closed_is_a_warning_and_the_next_run_goes_on() {
    let (proxy, app) = proxied("unclosed");
    // The write that takes the lock is the record's creation.
    proxy.on(matching(Verb::Patch, "configmaps").named("shop"), Fault::status(500));
    let ran = sound(app.apply(&input(AFTER), &[]), 0);
    assert!(warnings(&ran).iter().any(|warning| warning.contains("the next run puts the record right")), "{ran:?}");
    assert_ne!(lock(&direct(&app)), Value::Null);
    let again = sound(direct(&app).apply(&input(AFTER), &["--lock-wait", "0s"]), 0);
    assert_eq!(again.end()["done"]["update"], 0, "{}", again.stdout);
    assert_eq!(lock(&direct(&app)), Value::Null);
}

fn an_answer_that_never_comes_is_asked_for_again() {
    let (proxy, app) = proxied("stalled");
    proxy.on(dry_runs("configmaps").first(1), Fault::stall());
    proxy.on(matching(Verb::Apply, "configmaps").first(1), Fault::stall().with_effect());
    proxy.on(matching(Verb::List, "services").first(1), Fault::StallInside(10));
    let ran = sound(app.apply(&input(AFTER), &["--request-timeout", "2s", "--lock-lease", "3m"]), 0);
    assert!(retries(&ran).iter().any(|retry| retry.contains("no answer from")), "{:?}", retries(&ran));
    assert_eq!(sound(direct(&app).apply(&input(AFTER), &[]), 0).end()["outcome"], "unchanged");
}

fn a_slow_connection_is_only_slow() {
    let (proxy, app) = proxied("slow");
    proxy.latency(Duration::from_millis(300));
    // Every fiftieth request is lost on the way.
    proxy.on_each(|request| (request.number % 50 == 49).then(Fault::close));
    sound(app.apply(&input(BEFORE), &[]), 0);
    sound(app.apply(&input(AFTER), &[]), 0);
    assert_eq!(sound(app.apply(&input(AFTER), &[]), 0).end()["outcome"], "unchanged");
}

fn an_object_that_changes_under_the_run_keeps_both_changes() {
    let (proxy, app) = proxied("moving");
    sound(direct(&app).apply(&input(BEFORE), &[]), 0);
    let path = config_map_path(&app.namespace, "changed");
    let edited = path.clone();
    proxy.before(matching(Verb::Apply, "configmaps").named("changed").first(3), move |request| {
        let patch = json!({"metadata": {"annotations": {"somebody": format!("{}", request.number)}}});
        TestCluster::shared().api().merge_patch(&edited, &patch).ok();
    });
    sound(app.apply(&input(AFTER), &[]), 0);
    let live = TestCluster::shared().api().get(&path).ok();
    assert_eq!(live["data"]["key"], "2");
    assert!(live["metadata"]["annotations"]["somebody"].is_string(), "{live}");
    // One field for two: the plan is made anew, and the manifest's value wins as the plan then says.
    let edited = path.clone();
    proxy.before(matching(Verb::Apply, "configmaps").named("changed").first(1), move |_| {
        TestCluster::shared().api().merge_patch(&edited, &json!({"data": {"key": "theirs"}})).ok();
    });
    let ran = sound(app.apply(&input(&[("kept", "1"), ("changed", "3"), ("new", "1")]), &[]), 0);
    assert!(warnings(&ran).iter().any(|warning| warning.contains("plan-again")), "{:?}", warnings(&ran));
    assert_eq!(ran.events_of("plan").len(), 2, "the changed plan is shown");
    assert_eq!(TestCluster::shared().api().get(&path).ok()["data"]["key"], "3");
}

fn start(app: &TestApp, input: &str, arguments: &[&str]) -> Running {
    app.pushback.write("app.yaml", input);
    let common = ["apply", "-a", &app.name, "-n", &app.namespace, "-o", "json", "-f", "app.yaml", "--yes"];
    Running::start(app.pushback.command(&[&common[..], arguments].concat()))
}

fn a_signal_during_preflight_ends_the_run_and_nothing_is_written() {
    let (proxy, app) = proxied("signal-preflight");
    proxy.on(any().that(is_review), Fault::stall());
    let mut run = start(&app, &input(AFTER), &[]);
    run.wait_for("it judges", |event| event["message"] == "running preflight");
    wait_until("a rule asks", SOON, || {
        proxy.requests().iter().any(|exchange| is_review(&exchange.request)).then_some(())
    });
    run.signal(Signal::TERM);
    sound(run.finish_within(SOON), 143);
    nothing_is_written(&proxy);
}

fn a_signal_while_the_lock_is_taken_ends_the_run_soon() {
    let (proxy, app) = proxied("signal-open");
    sound(direct(&app).apply(&input(BEFORE), &[]), 0);
    let before = stored(&app);
    proxy.on(matching(Verb::Patch, "configmaps").named("shop"), Fault::stall().with_effect());
    let run = start(&app, &input(AFTER), &[]);
    wait_until("the lock is being taken", SOON, || {
        (proxy.count(&matching(Verb::Patch, "configmaps").named("shop")) > 0).then_some(())
    });
    run.signal(Signal::TERM);
    // Less than the thirty seconds that a request may take.
    sound(run.finish_within(Duration::from_secs(20)), 143);
    assert_eq!(stored(&app), before);
    sound(direct(&app).apply(&input(AFTER), &["--lock-wait", "0s"]), 0);
}

fn a_server_that_restarts_under_a_run_is_waited_for() {
    let cluster = TestCluster::start(&Options::default());
    let app = TestApp::of(Pushback::on(&cluster), "shop", &cluster.namespace("restart"));
    let gate = "---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: gate\n  annotations:\n    \
                kapp.k14s.io/exists: ''\n    kapp.k14s.io/change-group: example.com/gate\n";
    let after = "---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: after\n  annotations:\n    \
                 kapp.k14s.io/change-rule: upsert after upserting example.com/gate\n";
    let mut run = start(&app, &(input(AFTER) + gate + after), &["--lock-lease", "3m"]);
    run.wait_for("the gate is waited for", |event| event["type"] == "retry" && event["attempt"] == 3);
    cluster.stop_api_server();
    run.wait_for("the run notices", |event| {
        event["type"] == "retry" && event["reason"].as_str().is_some_and(|reason| reason.contains("no connection to"))
    });
    cluster.restart_api_server();
    let object =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": app.namespace, "name": "gate"}});
    cluster.api().apply(&object).ok();
    let ran = sound(run.finish(), 0);
    assert_eq!(ran.end()["outcome"], "succeeded");
    assert_eq!(cluster.api().get(&config_map_path(&app.namespace, "after")).status, 200);
    // Now it is away for good: nothing is written that nobody can see, and nothing hangs.
    cluster.stop_api_server();
    let ran = sound(app.apply(&input(AFTER), &[]), 13);
    assert!(error(&ran).contains("no connection to"), "{}", error(&ran));
}
