//! Inventories that do not fit the record: their shards come and go with runs that are killed, and none is left.

use std::collections::BTreeSet;
use std::time::Duration;

use super::{killed, killed_once};
use crate::support::bookkeeping::{Bookkeeping, owned, shards};
use crate::support::proxy::{Fault, FaultProxy, Matching, Verb, matching, writes};
use crate::support::pushback::Pushback;
use crate::support::{TestCase, TestCluster, cases};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        ApiServer: shards_of_a_new_app_killed_before_its_record_is_there_are_removed_by_the_next_run,
        ApiServer: a_large_inventory_survives_a_kill_after_any_write,
        ApiServer: a_record_leads_to_no_shard_that_is_gone_wherever_its_deletion_is_killed,
        ApiServer: what_a_killed_run_has_sent_is_done_before_the_test_looks,
        ApiServer: a_lost_answer_to_the_last_write_of_the_record_is_no_other_runs_change,
    ]
}

/// So many objects of long names do not fit the record.
const MANY: usize = 640;

/// Objects whose inventory needs shards; one of them says how often it was changed.
fn many(step: usize) -> String {
    let padding = "n".repeat(230);
    (0..MANY)
        .map(|number| {
            let data = if number == 0 { step } else { 0 };
            format!("---\n{{apiVersion: v1, kind: ConfigMap, metadata: {{name: o{number:04}{padding}}}, data: {{step: '{data}'}}}}\n")
        })
        .collect()
}

const FEW: &str = "{apiVersion: v1, kind: ConfigMap, metadata: {name: few}}";

struct App {
    cluster: &'static TestCluster,
    namespace: String,
    place: Pushback,
}

impl App {
    fn new() -> Self {
        let cluster = TestCluster::shared();
        let place = Pushback::with_kubeconfig(cluster.kubeconfig_path());
        place.write("many.yaml", many(0)).write("few.yaml", FEW);
        Self { cluster, namespace: cluster.namespace("large"), place }
    }

    fn arguments(&self, command: &str, file: &str) -> Vec<String> {
        let mut arguments = vec![command, "-a", "app", "-n", &self.namespace, "--yes", "--preflight=none"];
        if command == "apply" {
            arguments.extend(["-f", file]);
        }
        arguments.into_iter().map(str::to_owned).collect()
    }

    fn killed(&self, command: &str, file: &str, at: Matching) -> bool {
        killed(self.cluster, &self.place, &self.arguments(command, file), at, false).is_some()
    }

    fn run(&self, command: &str, file: &str) {
        let arguments = self.arguments(command, file);
        self.place.run(&arguments.iter().map(String::as_str).collect::<Vec<_>>()).expect(0);
    }

    fn config_maps(&self) -> String {
        format!("/api/v1/namespaces/{}/configmaps", self.namespace)
    }

    fn record(&self) -> Option<Bookkeeping> {
        Bookkeeping::read(self.cluster.api(), &self.namespace, "app")
    }

    fn assert_settled(&self) {
        let (api, live) = (self.cluster.api(), owned(self.cluster.api(), &[self.config_maps()]));
        self.record().expect("a record").assert_settled(api, &self.namespace, &live);
    }

    fn shards(&self) -> BTreeSet<String> {
        shards(self.cluster.api(), &self.namespace)
    }
}

/// Writes to the record, the history and the shards.
fn bookkeeping_writes() -> Matching {
    writes().that(|request| {
        request.resource == "configmaps" && (request.name.is_empty() || request.name.starts_with("app"))
    })
}

fn shards_of_a_new_app_killed_before_its_record_is_there_are_removed_by_the_next_run() {
    for point in 1..=3 {
        let app = App::new();
        assert!(app.killed("apply", "many.yaml", bookkeeping_writes().nth(point)));
        assert!(!app.shards().is_empty(), "point {point}: this needs no shards");
        assert_eq!(app.record().is_some(), point > 1);
        app.run("apply", "few.yaml");
        // What the killed run may still have had under way is forgotten one run later.
        app.run("apply", "few.yaml");
        assert_eq!(app.shards(), BTreeSet::new(), "point {point}");
        app.assert_settled();
    }
}

fn a_large_inventory_survives_a_kill_after_any_write() {
    let app = App::new();
    app.run("apply", "many.yaml");
    assert!(!app.shards().is_empty(), "this needs no shards");
    app.assert_settled();
    let mut point = 1;
    loop {
        app.place.write("many.yaml", many(point));
        let came_so_far = app.killed("apply", "many.yaml", writes().nth(point));
        let known = app.record().expect("a record").inventory;
        let live = owned(app.cluster.api(), &[app.config_maps()]);
        assert!(live.keys().all(|key| known.contains_key(key)), "killed after write {point}");
        app.run("apply", "many.yaml");
        if app.shards() != app.record().expect("a record").shards {
            // All was done but tidying up, and a run with nothing to write writes nothing: the next that does tidies.
            app.place.write("many.yaml", many(1000 + point));
            app.run("apply", "many.yaml");
        }
        app.assert_settled();
        if !came_so_far {
            break;
        }
        point += 1;
    }
    // Shards and record at both ends, the object, the history.
    assert!(point > 6, "{point}");

    // Each deletion comes one write of the bookkeeping further than the one before it.
    let mut point = 1;
    while app.killed("delete", "", bookkeeping_writes().nth(point)) {
        let known = app.record().map(|record| record.inventory);
        let live = owned(app.cluster.api(), &[app.config_maps()]);
        let known = known.unwrap_or_default();
        assert!(live.keys().all(|key| known.contains_key(key)), "killed after write {point}");
        point += 1;
    }
    app.run("delete", "");
    let left = app.cluster.api().list(&app.config_maps());
    let left: Vec<&str> = left.iter().filter_map(|object| object["metadata"]["name"].as_str()).collect();
    assert!(left.iter().all(|name| *name == "kube-root-ca.crt"), "{left:?}");
}

fn a_record_leads_to_no_shard_that_is_gone_wherever_its_deletion_is_killed() {
    let of_a_shard = || matching(Verb::Delete, "configmaps").that(|request| request.name.starts_with("app-inventory"));
    let app = App::new();
    app.run("apply", "many.yaml");
    let before = app.shards().len();
    // The run's own shards, after all objects are gone.
    assert!(app.killed("delete", "", of_a_shard().nth(before + 1)));
    let record = app.record().expect("a record");
    assert_eq!((record.shards, record.inventory.len()), (BTreeSet::new(), 0));
    app.run("delete", "");
    assert_eq!(app.shards(), BTreeSet::new());
    assert!(app.record().is_none());
}

/// Of the tests themselves: a write that lands between two of their reads shows them a state that never was.
fn what_a_killed_run_has_sent_is_done_before_the_test_looks() {
    let app = App::new();
    app.place.write("two.yaml", ["one", "two"].map(|name| FEW.replace("few", name)).join("\n---\n"));
    let proxy = FaultProxy::start(app.cluster.kubeconfig_path());
    let of_an_object = || matching(Verb::Apply, "configmaps").that(|request| matches!(&*request.name, "one" | "two"));
    // Both are under way at once; the run is killed when the second has come through.
    proxy.on(of_an_object().nth(1), Fault::Delay(Duration::from_secs(1)));
    let mut reached = proxy.end_after(of_an_object().nth(2), false);
    let arguments = app.arguments("apply", "two.yaml");
    assert!(killed_once(&proxy, &app.place, &arguments, || reached.try_recv().is_ok()));
    let slow = proxy.requests().into_iter().find(|exchange| exchange.fault.as_deref() == Some("delayed by 1s"));
    let slow = slow.expect("it was sent");
    assert!(slow.status.is_some(), "{slow:?}");
    let known = app.record().expect("a record").inventory;
    assert_eq!(known.len(), 2);
    assert_eq!(owned(app.cluster.api(), &[app.config_maps()]).len(), 2);
}

fn a_lost_answer_to_the_last_write_of_the_record_is_no_other_runs_change() {
    let app = App::new();
    app.run("apply", "few.yaml");
    let proxy = FaultProxy::start(app.cluster.kubeconfig_path());
    // The lock is taken with the first, and given back with the second.
    proxy.on(matching(Verb::Patch, "configmaps").named("app").nth(2), Fault::close().with_effect());
    app.place.write("few.yaml", FEW.replace("name: few}", "name: few}, data: {step: '2'}"));
    let mut arguments = app.arguments("apply", "few.yaml");
    arguments.push("--output=json".to_owned());
    let mut command = app.place.command(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
    command.env("KUBECONFIG", proxy.kubeconfig());
    let ran = crate::support::pushback::finish(command, b"").expect(0);
    let warned = ran.events_of("warning").into_iter().find(|warning| warning["code"] == "record");
    assert_eq!(warned, None);
    assert!(proxy.requests().iter().any(|exchange| exchange.fault.is_some()));
    app.assert_settled();
}
