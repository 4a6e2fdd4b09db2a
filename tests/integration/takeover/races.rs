//! A takeover is two writes. What comes between them, or before them, neither loses a field nor lets one go that was
//! not shown; a run that is killed between them is finished by the next.

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use serde_json::{Value, json};

use super::{api, assert_settled, create, managers, new_app, shown_fields};
use crate::support::api::ApiClient;
use crate::support::apply::{TestApp, config_map, config_map_path};
use crate::support::proxy::{self, Hook, Request, Then};
use crate::support::pushback::Ran;
use crate::support::{Pushback, TestCase, cases};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        ApiServer: a_change_of_somebody_else_before_the_takeover_is_kept,
        ApiServer: a_change_of_somebody_else_between_its_writes_is_kept,
        ApiServer: what_a_predecessor_adds_before_the_takeover_does_not_go_unseen,
        ApiServer: what_a_predecessor_adds_between_its_writes_does_not_go_unseen,
        ApiServer: a_run_killed_between_the_writes_is_finished_by_the_next,
        ApiServer: a_lost_answer_to_the_first_write_is_no_obstacle,
    ]
}

const SOON: Duration = Duration::from_secs(60);

/// Which of the two writes is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Write {
    Rewrite,
    Apply,
}

impl Write {
    fn is(self, request: &Request) -> bool {
        request.path.contains("/configmaps/taken")
            && match self {
                Self::Rewrite => request.rewrites_managers(),
                Self::Apply => request.applies(),
            }
    }
}

/// Somebody writes once, just before a write of ours gets to the server.
struct Meanwhile {
    before: Write,
    manager: &'static str,
    patch: Value,
    path: String,
    done: AtomicBool,
}

impl Hook for Meanwhile {
    fn before(&self, request: &Request, api: &ApiClient) {
        if self.before.is(request) && !self.done.swap(true, Ordering::SeqCst) {
            let path = format!("{}?fieldManager={}", self.path, self.manager);
            let answer = api.request("PATCH", &path, Some("application/merge-patch+json"), Some(&self.patch));
            answer.expect("an answer").ok();
        }
    }
}

/// An object of kapp with a field that the input drops.
fn of_kapp(app: &TestApp) -> String {
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "taken"},
        "data": {"key": "before", "gone": "x"}});
    create(app, "fieldManager=kapp", object)
}

/// Applies through a proxy, while somebody else writes.
fn apply_while(app: &TestApp, before: Write, manager: &'static str, patch: Value) -> Ran {
    let path = config_map_path(&app.namespace, "taken");
    let hook = Meanwhile { before, manager, patch, path, done: AtomicBool::new(false) };
    let hook = Arc::new(hook);
    let kubeconfig = proxy::start(api(), &app.pushback.directory(), Arc::clone(&hook) as Arc<dyn Hook>);
    let other = TestApp::of(Pushback::with_kubeconfig(&kubeconfig), &app.name, &app.namespace);
    let ran = other.apply(&config_map("taken", "after"), &["--wait=false"]);
    assert!(hook.done.load(Ordering::SeqCst), "nothing was written meanwhile: {}", ran.stdout);
    ran
}

fn assert_finished(app: &TestApp, data: &Value, entries: &[&str]) {
    let path = config_map_path(&app.namespace, "taken");
    let after = api().get(&path).ok();
    assert_eq!(after["data"], *data);
    assert_eq!(managers(&after), entries);
    assert_settled(app, &config_map("taken", "after"), &[], &[path]);
}

fn assert_a_stranger_is_heard(before: Write) {
    let app = new_app();
    of_kapp(&app);
    let patch = json!({"metadata": {"labels": {"by": "somebody"}}, "data": {"theirs": "z"}});
    apply_while(&app, before, "somebody", patch).expect(0);
    assert_finished(&app, &json!({"key": "after", "theirs": "z"}), &["pushback Apply", "somebody Update"]);
}

fn a_change_of_somebody_else_before_the_takeover_is_kept() {
    assert_a_stranger_is_heard(Write::Rewrite);
}

fn a_change_of_somebody_else_between_its_writes_is_kept() {
    assert_a_stranger_is_heard(Write::Apply);
}

fn assert_nothing_goes_unseen(before: Write) {
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
    assert_nothing_goes_unseen(Write::Rewrite);
}

fn what_a_predecessor_adds_between_its_writes_does_not_go_unseen() {
    assert_nothing_goes_unseen(Write::Apply);
}

/// Keeps the answer to the first write of a takeover, once.
struct Silent {
    reached: Sender<()>,
    done: AtomicBool,
}

impl Hook for Silent {
    fn after(&self, request: &Request) -> Then {
        if !Write::Rewrite.is(request) || self.done.swap(true, Ordering::SeqCst) {
            return Then::Answer;
        }
        let _ = self.reached.send(());
        Then::Silence
    }
}

fn a_run_killed_between_the_writes_is_finished_by_the_next() {
    let app = new_app();
    let path = of_kapp(&app);
    let input = config_map("taken", "after");
    app.pushback.write("app.yaml", &input);
    let (reached, told) = channel();
    let hook = Silent { reached, done: AtomicBool::new(false) };
    let kubeconfig = proxy::start(api(), &app.pushback.directory(), Arc::new(hook));
    let mut child = Command::new(env!("CARGO_BIN_EXE_pushback"))
        .args(["apply", "-a", &app.name, "-n", &app.namespace, "-f", "app.yaml", "--yes", "--wait=false"])
        .current_dir(app.pushback.directory())
        .env_clear()
        .env("KUBECONFIG", kubeconfig)
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
    let (reached, told) = channel();
    let hook = Silent { reached, done: AtomicBool::new(false) };
    let kubeconfig = proxy::start(api(), &app.pushback.directory(), Arc::new(hook));
    let other = TestApp::of(Pushback::with_kubeconfig(&kubeconfig), &app.name, &app.namespace);
    other.apply(&config_map("taken", "after"), &["--wait=false"]).expect(0);
    told.try_recv().expect("an answer was lost");
    assert_finished(&app, &json!({"key": "after"}), &["pushback Apply"]);
}
