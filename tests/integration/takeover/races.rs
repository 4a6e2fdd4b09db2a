//! A takeover is two writes. What comes between them, or before them, neither loses a field nor lets one go that was
//! not shown; a run that is killed between them is finished by the next.

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

use serde_json::{Value, json};

use super::{api, assert_settled, create, managers, new_app, shown_fields};
use crate::support::apply::{TestApp, config_map, config_map_path};
use crate::support::proxy::{Fault, FaultProxy, Matching, Request, Verb, dry_runs, matching};
use crate::support::pushback::Ran;
use crate::support::{Pushback, TestCase, TestCluster, cases};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        ApiServer: a_change_of_somebody_else_before_the_takeover_is_kept,
        ApiServer: a_change_of_somebody_else_between_its_writes_is_kept,
        ApiServer: what_a_predecessor_adds_before_the_takeover_does_not_go_unseen,
        ApiServer: what_a_predecessor_adds_between_its_writes_does_not_go_unseen,
        ApiServer: a_run_killed_between_the_writes_is_finished_by_the_next,
        ApiServer: a_lost_answer_to_the_first_write_is_no_obstacle,
        ApiServer: an_object_whose_status_changes_with_every_question_is_compared,
        ApiServer: an_object_whose_status_keeps_changing_is_written,
    ]
}

const SOON: Duration = Duration::from_secs(60);

/// The write that makes the entries ours.
fn rewrite() -> Matching {
    let is_one = |request: &Request| {
        let operations = request.json();
        operations.as_array().is_some_and(|all| all.iter().any(|one| one["path"] == "/metadata/managedFields"))
    };
    matching(Verb::Patch, "configmaps").named("taken").that(is_one).first(1)
}

/// The apply.
fn apply() -> Matching {
    matching(Verb::Apply, "configmaps").named("taken").first(1)
}

/// An object of kapp with a field that the input drops.
fn of_kapp(app: &TestApp) -> String {
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "taken"},
        "data": {"key": "before", "gone": "x"}});
    create(app, "fieldManager=kapp", object)
}

/// Applies through a proxy; somebody else writes once, just before a write of ours gets to the server.
fn apply_while(app: &TestApp, before: Matching, manager: &'static str, patch: Value) -> Ran {
    let proxy = FaultProxy::start(TestCluster::shared().kubeconfig_path());
    let path = format!("{}?fieldManager={manager}", config_map_path(&app.namespace, "taken"));
    let (done, told) = channel();
    proxy.before(before, move |_| {
        let answer = api().request("PATCH", &path, Some("application/merge-patch+json"), Some(&patch));
        answer.expect("an answer").ok();
        let _ = done.send(());
    });
    let other = TestApp::of(Pushback::with_kubeconfig(&proxy.kubeconfig()), &app.name, &app.namespace);
    let ran = other.apply(&config_map("taken", "after"), &["--wait=false"]);
    told.try_recv().unwrap_or_else(|_| panic!("nothing was written meanwhile: {}", ran.stdout));
    ran
}

fn assert_finished(app: &TestApp, data: &Value, entries: &[&str]) {
    let path = config_map_path(&app.namespace, "taken");
    let after = api().get(&path).ok();
    assert_eq!(after["data"], *data);
    assert_eq!(managers(&after), entries);
    assert_settled(app, &config_map("taken", "after"), &[], &[path]);
}

fn assert_a_stranger_is_heard(before: Matching) {
    let app = new_app();
    of_kapp(&app);
    let patch = json!({"metadata": {"labels": {"by": "somebody"}}, "data": {"theirs": "z"}});
    apply_while(&app, before, "somebody", patch).expect(0);
    assert_finished(&app, &json!({"key": "after", "theirs": "z"}), &["pushback Apply", "somebody Update"]);
}

fn a_change_of_somebody_else_before_the_takeover_is_kept() {
    assert_a_stranger_is_heard(rewrite());
}

fn a_change_of_somebody_else_between_its_writes_is_kept() {
    assert_a_stranger_is_heard(apply());
}

fn assert_nothing_goes_unseen(before: Matching) {
    let app = new_app();
    of_kapp(&app);
    let ran = apply_while(&app, before, "kapp", json!({"data": {"new": "z"}})).expect(0);
    // Planned and shown anew before it goes.
    let plans = ran.events_of("plan");
    assert_eq!(plans.len(), 2, "{}", ran.stdout);
    assert!(!plans[0].to_string().contains("data.new"), "{}", plans[0]);
    let shown = shown_fields(&ran, "ConfigMap taken");
    assert!(shown.contains(&"data.new: z → -".to_owned()), "{shown:?}");
    assert!(ran.stdout.contains("it was changed since it was planned: data.new"), "{}", ran.stdout);
    assert_finished(&app, &json!({"key": "after"}), &["pushback Apply"]);
}

fn what_a_predecessor_adds_before_the_takeover_does_not_go_unseen() {
    assert_nothing_goes_unseen(rewrite());
}

fn what_a_predecessor_adds_between_its_writes_does_not_go_unseen() {
    assert_nothing_goes_unseen(apply());
}

fn a_run_killed_between_the_writes_is_finished_by_the_next() {
    let app = new_app();
    let path = of_kapp(&app);
    let input = config_map("taken", "after");
    app.pushback.write("app.yaml", &input);
    let (reached, told) = channel();
    let proxy = FaultProxy::start(TestCluster::shared().kubeconfig_path());
    proxy.on(rewrite(), Fault::stall().with_effect());
    proxy.after(rewrite(), move |_| {
        let _ = reached.send(());
    });
    let mut child = Command::new(env!("CARGO_BIN_EXE_pushback"))
        .args(["apply", "-a", &app.name, "-n", &app.namespace, "-f", "app.yaml", "--yes", "--wait=false"])
        .current_dir(app.pushback.directory())
        .env_clear()
        .env("KUBECONFIG", proxy.kubeconfig())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the binary starts");
    let came_so_far = told.recv_timeout(SOON);
    child.kill().expect("it is killed");
    child.wait().expect("it ends");
    came_so_far.expect("it has come to the first write");

    let between = api().get(&path).ok();
    assert_eq!(managers(&between), ["pushback Apply"], "not what is tested");
    assert_eq!(between["data"], json!({"key": "before", "gone": "x"}), "the first write changes no value");
    let ran = app.apply(&input, &["--wait=false"]).expect(0);
    assert_eq!(shown_fields(&ran, "ConfigMap taken"), ["data.key: before → after", "data.gone: x → -"]);
    assert_finished(&app, &json!({"key": "after"}), &["pushback Apply"]);
}

fn a_lost_answer_to_the_first_write_is_no_obstacle() {
    let app = new_app();
    of_kapp(&app);
    let proxy = FaultProxy::start(TestCluster::shared().kubeconfig_path());
    proxy.on(rewrite(), Fault::close().with_effect());
    let other = TestApp::of(Pushback::with_kubeconfig(&proxy.kubeconfig()), &app.name, &app.namespace);
    other.apply(&config_map("taken", "after"), &["--wait=false"]).expect(0);
    assert_eq!(proxy.count(&matching(Verb::Patch, "configmaps").named("taken")), 2, "no answer was lost");
    assert_finished(&app, &json!({"key": "after"}), &["pushback Apply"]);
}

/// A Service of kapp with a port that the input drops, and the input.
fn service_of_kapp(app: &TestApp) -> (String, String) {
    let service = |ports: Value| {
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "taken"},
            "spec": {"selector": {"app": "web"}, "ports": ports}})
    };
    let (http, admin) = (json!({"name": "http", "port": 80}), json!({"name": "admin", "port": 81}));
    let path = create(app, "fieldManager=kapp", service(json!([http, admin])));
    (path, service(json!([http])).to_string())
}

/// Applies through a proxy; a controller writes the object's status before each of these requests. Returns how often.
fn apply_with_status(app: &TestApp, path: &str, input: &str, before: &[Matching]) -> usize {
    let proxy = FaultProxy::start(TestCluster::shared().kubeconfig_path());
    let status = format!("{path}/status?fieldManager=controller");
    let written = Arc::new(AtomicUsize::new(0));
    for matching in before {
        let (status, written) = (status.clone(), Arc::clone(&written));
        proxy.before(matching.clone(), move |_| {
            let count = written.fetch_add(1, Ordering::SeqCst);
            let patch = json!({"status": {"conditions": [{"type": "Seen", "status": "True", "reason": "Counted",
                "message": count.to_string(), "lastTransitionTime": "2026-01-01T00:00:00Z"}]}});
            api()
                .request("PATCH", &status, Some("application/merge-patch+json"), Some(&patch))
                .expect("an answer")
                .ok();
        });
    }
    let other = TestApp::of(Pushback::with_kubeconfig(&proxy.kubeconfig()), &app.name, &app.namespace);
    let ran = other.apply(input, &["--wait=false"]).expect(0);
    assert_eq!(ran.events_of("plan").len(), 1, "{}", ran.stdout);
    let shown = shown_fields(&ran, "Service taken");
    assert!(shown.iter().any(|field| field.contains("spec.ports") && field.ends_with("→ -")), "{shown:?}");
    written.load(Ordering::SeqCst)
}

fn assert_taken_with_status(app: &TestApp, path: &str, input: &str, count: usize) {
    let after = api().get(path).ok();
    assert_eq!(managers(&after), ["pushback Apply"]);
    assert_eq!(after["spec"]["ports"].as_array().map(Vec::len), Some(1), "{after}");
    assert_eq!(after["status"]["conditions"][0]["message"], json!((count - 1).to_string()), "the status is kept");
    let entries = after["metadata"]["managedFields"].as_array().expect("entries");
    assert!(entries.iter().any(|entry| entry["manager"] == "controller" && entry["subresource"] == "status"));
    assert_settled(app, input, &[], &[path.to_owned()]);
}

fn an_object_whose_status_changes_with_every_question_is_compared() {
    let app = new_app();
    let (path, input) = service_of_kapp(&app);
    let count = apply_with_status(&app, &path, &input, &[dry_runs("services").named("taken")]);
    assert!(count >= 3, "{count}");
    assert_taken_with_status(&app, &path, &input, count);
}

fn an_object_whose_status_keeps_changing_is_written() {
    let app = new_app();
    let (path, input) = service_of_kapp(&app);
    let writes = [Verb::Patch, Verb::Apply].map(|verb| matching(verb, "services").named("taken").first(4));
    let before = [&writes[..], &[dry_runs("services").named("taken").first(12)]].concat();
    let count = apply_with_status(&app, &path, &input, &before);
    assert!(count >= 9, "{count}");
    assert_taken_with_status(&app, &path, &input, count);
}
