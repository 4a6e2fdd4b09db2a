//! A run that is to stop starts nothing more: of many objects that are ready to be written, only those whose requests
//! are under way at that moment are.

use std::fmt::Write as _;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rustix::process::Signal;

use crate::support::apply::{TestApp, config_map};
use crate::support::case::{rounds, show};
use crate::support::gate::Gate;
use crate::support::proxy::{Fault, FaultProxy, Matching, Verb, matching};
use crate::support::running::Running;
use crate::support::{Pushback, TestCase, TestCluster, cases, wait_until};

/// As many requests as there are under way at most.
const UNDER_WAY: usize = 256;

pub(super) fn tests() -> Vec<TestCase> {
    cases![
        ApiServer: after_a_signal_only_requests_that_are_under_way_complete,
        ApiServer: after_the_first_failure_only_requests_that_are_under_way_complete,
    ]
}

/// A run over many objects that are all ready to be written.
struct Scene {
    proxy: FaultProxy,
    app: TestApp,
    input: String,
    count: usize,
}

impl Scene {
    fn new(prefix: &str) -> Self {
        let cluster = TestCluster::shared();
        let proxy = FaultProxy::start(cluster.kubeconfig_path());
        let pushback = Pushback::with_kubeconfig(&proxy.kubeconfig());
        let count = rounds(400, 3_000);
        let input = (0..count).fold(String::new(), |mut text, number| {
            let _ = write!(text, "{}", config_map(&format!("object-{number}"), "value"));
            text
        });
        Self { app: TestApp::of(pushback, "many", &cluster.namespace(prefix)), proxy, input, count }
    }

    fn start(&self) -> Running {
        self.app.pushback.write("app.yaml", &self.input);
        let app = &self.app;
        let arguments = ["apply", "-a", &app.name, "-n", &app.namespace, "-o", "json", "-f", "app.yaml", "--yes"];
        Running::start(app.pushback.command(&arguments))
    }

    /// Opens the gate once the run has let go of what waited, and checks what was written in all.
    fn finish(&self, mut run: Running, gate: &Gate, code: i32) {
        run.wait_for("it lets go of what has not been sent", |event| {
            event["type"] == "change.done" && event["outcome"] == "skipped"
        });
        gate.open();
        let ran = run.finish().expect(code);
        let sent = self.proxy.count(&object_writes());
        show(&format!("{} of {} objects were sent", sent, self.count));
        assert!(sent <= UNDER_WAY, "{sent} of {} were sent", self.count);
        let created = ran.end()["done"]["create"].as_u64().expect("a number");
        assert!(usize::try_from(created).is_ok_and(|created| created <= sent), "{created} of {sent}");
        let told = ran.end()["unfinished"].as_array().map_or(0, Vec::len);
        assert_eq!(told + usize::try_from(created).expect("a number"), self.count, "each is told");

        let ran = self.app.apply(&self.input, &[]).expect(0);
        assert_eq!(ran.end()["done"]["noop"], created, "the next run goes on");
    }
}

/// The writes of the app's objects; its record is a ConfigMap too.
fn object_writes() -> Matching {
    matching(Verb::Apply, "configmaps").that(|request| request.name.starts_with("object-"))
}

fn after_a_signal_only_requests_that_are_under_way_complete() {
    let scene = Scene::new("stopped");
    let gate = Gate::default();
    let held = gate.clone();
    scene.proxy.before(object_writes(), move |_| held.pass());
    let run = scene.start();
    wait_until("a write is under way", Duration::from_secs(120), || {
        (scene.proxy.count(&object_writes()) > 0).then_some(())
    });
    run.signal(Signal::INT);
    scene.finish(run, &gate, 130);
}

fn after_the_first_failure_only_requests_that_are_under_way_complete() {
    let scene = Scene::new("failed");
    let gate = Gate::default();
    let first: Arc<OnceLock<String>> = Arc::default();
    let (held, refused, passed) = (gate.clone(), Arc::clone(&first), first);
    scene.proxy.on_each(move |request| {
        let is_first =
            object_writes().accepts(request) && *refused.get_or_init(|| request.name.clone()) == request.name;
        is_first.then(|| Fault::status(403))
    });
    scene.proxy.before(object_writes(), move |request| {
        if *passed.get_or_init(|| request.name.clone()) != request.name {
            held.pass();
        }
    });
    let mut run = scene.start();
    run.wait_for("a write fails", |event| event["type"] == "change.done" && event["outcome"] == "failed");
    scene.proxy.clear();
    scene.finish(run, &gate, 20);
}
