//! A run that is killed after any of its requests leaves nothing behind that a later run does not know of, and the same
//! command again finishes what it has begun.

mod large;

use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::Stdio;
use std::time::Duration;

use crate::support::api::ApiClient;
use crate::support::bookkeeping::{self, Bookkeeping};
use crate::support::proxy::{Exchange, FaultProxy, Matching, Verb, any, reads, writes};
use crate::support::pushback::Pushback;
use crate::support::{TestCase, TestCluster, cases, rounds, wait_until};

pub(crate) fn tests() -> Vec<TestCase> {
    [
        cases![
            Controllers: a_deploy_killed_after_a_write_is_finished_by_the_next,
            Controllers: a_deploy_killed_after_any_write_whose_answer_is_lost_is_finished_by_the_next,
            Controllers: a_deploy_killed_after_a_read_is_finished_by_the_next,
            Controllers: a_first_deploy_killed_after_any_write_is_finished_by_the_next,
            Controllers: a_deletion_killed_after_any_write_is_finished_by_the_next,
        ],
        large::tests(),
    ]
    .concat()
}

/// What is there before.
const BEFORE: &str = "\
{apiVersion: v1, kind: ConfigMap, metadata: {name: changed}, data: {step: '1'}}
---
{apiVersion: v1, kind: ConfigMap, immutable: true, data: {step: '1'}, metadata: {name: replaced, annotations: \
{kapp.k14s.io/update-strategy: fallback-on-replace}}}
---
{apiVersion: v1, kind: Secret, metadata: {name: pruned}, stringData: {key: one}}
---
{apiVersion: v1, kind: Service, metadata: {name: kept}, spec: {ports: [{port: 80}]}}
";

/// What is deployed: something is created, updated, replaced, pruned and kept, a definition comes with its resource,
/// and a Job runs.
const AFTER: &str = "\
{apiVersion: v1, kind: ConfigMap, metadata: {name: changed}, data: {step: '2'}}
---
{apiVersion: v1, kind: ConfigMap, immutable: true, data: {step: '2'}, metadata: {name: replaced, annotations: \
{kapp.k14s.io/update-strategy: fallback-on-replace}}}
---
{apiVersion: v1, kind: Service, metadata: {name: kept}, spec: {ports: [{port: 80}]}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: created}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.NAMESPACE.example.com}
spec:
  group: NAMESPACE.example.com
  scope: Namespaced
  names: {kind: Widget, plural: widgets}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, \
properties: {size: {type: integer}}}}}}}
---
{apiVersion: NAMESPACE.example.com/v1, kind: Widget, metadata: {name: one}, spec: {size: 1}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: migrate}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: registry.example/main:1}]}}}
";

/// Everywhere that an app of these manifests has objects.
fn collections(namespace: &str) -> Vec<String> {
    let mut all: Vec<String> = ["configmaps", "secrets", "services", "serviceaccounts"]
        .map(|plural| format!("/api/v1/namespaces/{namespace}/{plural}"))
        .into();
    all.push(format!("/apis/batch/v1/namespaces/{namespace}/jobs"));
    all.push(format!("/apis/{namespace}.example.com/v1/namespaces/{namespace}/widgets"));
    all
}

/// Everything that the app has in the cluster, its definition too.
fn owned(api: &ApiClient, namespace: &str) -> BTreeMap<String, String> {
    let mut found = bookkeeping::owned(api, &collections(namespace));
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions".to_owned();
    let of_this_test = format!("widgets.{namespace}.example.com");
    let definitions = bookkeeping::owned(api, &[definitions]);
    found.extend(definitions.into_iter().filter(|(key, _)| key.ends_with(&of_this_test)));
    found
}

/// Kills a run at its first request that is meant. `None` where it has none and came to its end.
pub(crate) fn killed(
    cluster: &TestCluster,
    place: &Pushback,
    arguments: &[String],
    at: Matching,
    answered: bool,
) -> Option<FaultProxy> {
    let proxy = FaultProxy::start(cluster.kubeconfig_path());
    let mut reached = proxy.end_after(at, answered);
    killed_once(&proxy, place, arguments, || reached.try_recv().is_ok()).then_some(proxy)
}

/// Starts a run behind a proxy and kills it once it is there; false where it came to its end.
pub(crate) fn killed_once(
    proxy: &FaultProxy,
    place: &Pushback,
    arguments: &[String],
    mut is_there: impl FnMut() -> bool,
) -> bool {
    let complaints = place.place().join("complaints");
    let mut child = place
        .command(&arguments.iter().map(String::as_str).collect::<Vec<_>>())
        .env("KUBECONFIG", proxy.kubeconfig())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(std::fs::File::create(&complaints).expect("a file"))
        .spawn()
        .expect("the binary starts");
    let ended = wait_until("the run is at its point or its end", Duration::from_secs(180), || {
        if is_there() {
            return Some(None);
        }
        child.try_wait().expect("it runs or has ended").map(Some)
    });
    let Some(status) = ended else {
        child.kill().expect("it is killed");
        child.wait().expect("it ends");
        // What it had sent before still has its effect, and would have it between two reads of the test.
        wait_until("what the killed run had sent is done", Duration::from_secs(60), || {
            (proxy.under_way() == 0).then_some(())
        });
        return true;
    };
    assert!(status.success(), "{status}: {}", std::fs::read_to_string(&complaints).unwrap_or_default());
    false
}

/// One round: an app in a namespace of its own, a run that is killed, and the same command again.
struct Round {
    cluster: &'static TestCluster,
    namespace: String,
    place: Pushback,
    before: bool,
    arguments: Vec<String>,
}

impl Round {
    fn new(before: Option<&str>, command: &str) -> Self {
        let cluster = TestCluster::shared();
        let namespace = cluster.namespace("kill");
        let place = Pushback::with_kubeconfig(cluster.kubeconfig_path());
        for (name, text) in [("before.yaml", before.unwrap_or_default()), ("after.yaml", AFTER)] {
            place.write(name, text.replace("NAMESPACE", &namespace));
        }
        let mut arguments = vec![command, "-a", "app", "-n", &namespace, "--yes", "--preflight=none"];
        if command == "apply" {
            arguments.extend(["-f", "after.yaml"]);
        }
        let arguments = arguments.into_iter().map(str::to_owned).collect();
        let round = Self { cluster, namespace, place, before: before.is_some(), arguments };
        if round.before {
            let apply = ["apply", "-a", "app", "-n", &round.namespace, "--yes", "-f", "before.yaml"];
            round.place.run(&apply).expect(0);
        }
        round
    }

    /// Kills a run at its first request that is meant. `None` where it has none and came to its end.
    fn killed(&self, at: Matching, answered: bool) -> Option<FaultProxy> {
        killed(self.cluster, &self.place, &self.arguments, at, answered)
    }

    /// The same command again, and what it sent.
    fn again(&self) -> Vec<Exchange> {
        let proxy = FaultProxy::start(self.cluster.kubeconfig_path());
        let mut command = self.place.command(&self.arguments.iter().map(String::as_str).collect::<Vec<_>>());
        command.env("KUBECONFIG", proxy.kubeconfig());
        crate::support::pushback::finish(command, b"").expect(0);
        proxy.requests()
    }

    /// Whatever an app has made is in its record.
    fn assert_known(&self, point: &str) {
        let api = self.cluster.api();
        let live = owned(api, &self.namespace);
        let known = Bookkeeping::read(api, &self.namespace, "app").map(|record| record.inventory).unwrap_or_default();
        for key in live.keys() {
            assert!(known.contains_key(key), "{point}: {key} is live and not in the inventory {known:?}");
        }
    }

    fn assert_deployed(&self, point: &str, first: &[Exchange], second: &[Exchange]) {
        let api = self.cluster.api();
        let live = owned(api, &self.namespace);
        let names: Vec<&str> = live.keys().filter_map(|key| key.rsplit('/').next()).collect();
        let definition = format!("widgets.{}.example.com", self.namespace);
        let mut expected = vec!["changed", "created", "kept", "migrate", "one", "replaced", &definition];
        let mut sorted = names.clone();
        expected.sort_unstable();
        sorted.sort_unstable();
        assert_eq!(sorted, expected, "{point}");
        for name in ["changed", "replaced"] {
            let stored = api.get(&format!("/api/v1/namespaces/{}/configmaps/{name}", self.namespace)).ok();
            assert_eq!(stored["data"]["step"], "2", "{point}");
        }
        Bookkeeping::read(api, &self.namespace, "app").expect("a record").assert_settled(api, &self.namespace, &live);
        let pods = api.list(&format!("/api/v1/namespaces/{}/pods?labelSelector=job-name", self.namespace));
        assert_eq!(pods.len(), 1, "{point}: the Job has run more than once");
        let mut created: BTreeMap<String, usize> = BTreeMap::new();
        for exchange in first.iter().chain(second).filter(|exchange| exchange.created()) {
            *created.entry(exchange.request.object()).or_default() += 1;
        }
        // Entries of the history get their names from the server.
        let twice = created.iter().find(|(object, count)| **count > 1 && !object.ends_with('/'));
        assert_eq!(twice, None, "{point}: created twice");
    }

    fn assert_deleted(&self, point: &str) {
        let api = self.cluster.api();
        assert_eq!(owned(api, &self.namespace), BTreeMap::new(), "{point}");
        let left = api.list(&format!("/api/v1/namespaces/{}/configmaps", self.namespace));
        let names: Vec<&str> = left.iter().filter_map(|object| object["metadata"]["name"].as_str()).collect();
        assert_eq!(names, ["kube-root-ca.crt"], "{point}: bookkeeping is left");
    }

    /// Definitions are not the namespace's, and every one makes discovery longer.
    fn clean_up(&self) {
        let definition = format!("widgets.{}.example.com", self.namespace);
        let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{definition}");
        let _ = self.cluster.api().request("DELETE", &path, None, None);
    }
}

/// Kills a run at one point, and looks. Whether it came so far.
fn at_point(before: Option<&str>, command: &str, at: Matching, answered: bool, point: &str) -> bool {
    let round = Round::new(before, command);
    let killed = round.killed(at, answered);
    let first = killed.as_ref().map(FaultProxy::requests).unwrap_or_default();
    if killed.is_some() {
        let last = first.iter().rev().find(|exchange| exchange.fault.is_none()).map(|last| last.request.kind());
        let point = format!("{point}, {}", last.unwrap_or_default());
        round.assert_known(&point);
        drop(killed);
        let second = round.again();
        match command {
            "apply" => round.assert_deployed(&point, &first, &second),
            _ => round.assert_deleted(&point),
        }
    }
    round.clean_up();
    !first.is_empty()
}

/// Where runs are killed: at every `step`th of these requests; at each request of all, reads too, in a full run.
fn points(ordinary: fn() -> Matching, step: usize) -> (fn() -> Matching, usize) {
    if rounds(0, 1) > 0 { (any, 1) } else { (ordinary, step) }
}

/// Kills a run at each of these points.
fn sweep(before: Option<&str>, command: &str, (points, step): (fn() -> Matching, usize), answered: bool) {
    let mut number = 1;
    while at_point(before, command, points().nth(number), answered, &format!("killed at point {number}")) {
        number += step;
    }
    assert!(number > 4, "a run has more than {number} requests");
    let how = if answered { "answered" } else { "its answer lost" };
    let _ = writeln!(std::io::stderr(), "{command} killed at {} points, the last request {how}", (number - 1) / step);
}

fn a_deploy_killed_after_a_write_is_finished_by_the_next() {
    sweep(Some(BEFORE), "apply", points(writes, 2), true);
}

fn a_deploy_killed_after_any_write_whose_answer_is_lost_is_finished_by_the_next() {
    sweep(Some(BEFORE), "apply", points(writes, 1), false);
}

fn a_deploy_killed_after_a_read_is_finished_by_the_next() {
    let point: fn() -> Matching = || reads().that(|request| request.verb != Verb::Discovery);
    sweep(Some(BEFORE), "apply", (point, 7), false);
}

fn a_first_deploy_killed_after_any_write_is_finished_by_the_next() {
    sweep(None, "apply", points(writes, 1), false);
}

fn a_deletion_killed_after_any_write_is_finished_by_the_next() {
    sweep(Some(AFTER), "delete", points(writes, 1), false);
}
