//! Many deploys of one app, each of other objects, while its connection fails in every way, runs are killed and somebody
//! else edits what is deployed. In the end everything is as the last manifests say, and the record was valid all along.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::api::ApiClient;
use crate::support::bookkeeping::{Bookkeeping, owned};
use crate::support::dice::Dice;
use crate::support::proxy::{Fault, FaultProxy, Request, Verb, any, writes};
use crate::support::{Pushback, Running, TestCase, TestCluster, cases, rounds, wait_until};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![ApiServer: every_deploy_of_many_under_faults_leaves_a_valid_record_and_the_last_its_manifests]
}

/// No deploy takes so long, whatever the faults.
const DEADLINE: Duration = Duration::from_secs(300);
const SLOTS: u64 = 16;
const PLURALS: [&str; 4] = ["configmaps", "secrets", "services", "serviceaccounts"];

/// The objects of a deploy: a path below the namespace, and the manifest.
fn objects(dice: &mut Dice) -> BTreeMap<String, Value> {
    let mut objects = BTreeMap::new();
    for slot in 0..SLOTS {
        let (kind, value) = (slot % 4, dice.throw(4));
        if dice.one_in(3) {
            continue;
        }
        let mut metadata =
            json!({"name": format!("slot-{slot}"), "annotations": {"example.com/value": value.to_string()}});
        // Some wait for others, so that runs have several steps.
        if slot >= 8 && slot % 2 == 0 {
            metadata["annotations"]["kapp.k14s.io/change-rule"] = json!("upsert after upserting example.com/first");
        } else if slot < 4 {
            metadata["annotations"]["kapp.k14s.io/change-group"] = json!("example.com/first");
        }
        let object = match kind {
            0 => {
                json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"value": value.to_string()}})
            }
            1 => {
                json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"value": value.to_string()}})
            }
            2 => json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata,
                "spec": {"selector": {"app": "x"}, "ports": [{"port": 80 + value}]}}),
            _ => json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}),
        };
        let plural = PLURALS[usize::try_from(kind).unwrap_or_default()];
        objects.insert(format!("{plural}/slot-{slot}"), object);
    }
    objects
}

fn manifest(objects: &BTreeMap<String, Value>) -> String {
    objects.values().map(|object| format!("---\n{object}\n")).collect()
}

/// What goes wrong with a request, if anything.
fn fault(dice: &mut Dice, request: &Request) -> Option<Fault> {
    if !dice.one_in(16) {
        return None;
    }
    let effect = |fault: Fault, with_effect: bool| if with_effect { fault.with_effect() } else { fault };
    let lost = dice.one_in(2);
    Some(match dice.throw(8) {
        0 => Fault::status(429).retry_after(1),
        1 => effect(Fault::status(500), lost),
        2 => effect(Fault::status(503), lost),
        3 | 4 => effect(Fault::close(), lost),
        5 => Fault::Cut(usize::try_from(dice.throw(400)).unwrap_or_default()),
        6 if request.verb == Verb::Apply && !request.dry_run => Fault::status(409),
        6 => Fault::CloseAfter,
        _ => Fault::Delay(Duration::from_millis(dice.throw(300))),
    })
}

/// Somebody else's edit of one object.
fn edit(dice: &mut Dice, api: &ApiClient, namespace: &str) {
    let slot = dice.throw(SLOTS);
    let plural = PLURALS[usize::try_from(slot % 4).unwrap_or_default()];
    let path = format!("/api/v1/namespaces/{namespace}/{plural}/slot-{slot}");
    let note = json!({"metadata": {"labels": {"example.com/note": dice.throw(1000).to_string()}}});
    let ours = json!({"metadata": {"annotations": {"example.com/value": "somebody else's"}}});
    // Whether the object is there is chance, too.
    let _ = match dice.throw(8) {
        0 => api.request("DELETE", &path, None, None),
        1 | 2 => api.request(
            "PATCH",
            &format!("{path}?fieldManager=editor"),
            Some("application/merge-patch+json"),
            Some(&ours),
        ),
        _ => api.request(
            "PATCH",
            &format!("{path}?fieldManager=editor"),
            Some("application/merge-patch+json"),
            Some(&note),
        ),
    };
}

struct Soak {
    cluster: &'static TestCluster,
    namespace: String,
    place: Pushback,
    proxy: FaultProxy,
    /// Exit codes and how often; -1 is a run that was killed.
    codes: BTreeMap<i32, usize>,
    records: usize,
}

impl Soak {
    fn arguments(&self) -> Vec<&str> {
        vec!["apply", "-a", "soak", "-n", &self.namespace, "-f", "app.yaml", "--yes", "--output=json"]
    }

    fn collections(&self) -> Vec<String> {
        PLURALS.map(|plural| format!("/api/v1/namespaces/{}/{plural}", self.namespace)).into()
    }

    /// One deploy of these objects with everything that the dice have for it.
    fn deploy(&mut self, dice: &mut Dice, number: usize) {
        self.place.write("app.yaml", manifest(&objects(dice)));
        self.proxy.clear();
        let seed = dice.throw(u64::MAX);
        self.proxy.on_each(move |request| {
            let request_number = u64::try_from(request.number).unwrap_or_default();
            fault(&mut Dice(seed ^ request_number.wrapping_mul(0x2545_f491_4f6c_dd1d)), request)
        });
        for _ in 0..dice.throw(3) {
            let (api, namespace) = (self.cluster.api().clone(), self.namespace.clone());
            let state = Arc::new(AtomicU64::new(dice.throw(u64::MAX)));
            let at = usize::try_from(1 + dice.throw(20)).unwrap_or_default();
            self.proxy
                .before(writes().nth(at), move |_| edit(&mut Dice(state.load(Ordering::SeqCst)), &api, &namespace));
        }
        let mut reached = None;
        if dice.one_in(4) {
            let at = usize::try_from(1 + dice.throw(70)).unwrap_or_default();
            reached = Some(self.proxy.end_after(any().nth(at), dice.one_in(2)));
        }
        let before = self.proxy.requests().len();
        let mut command = self.place.command(&self.arguments());
        command.env("KUBECONFIG", self.proxy.kubeconfig());
        let mut run = Running::start(command);
        wait_until("the deploy is at its end", DEADLINE, || {
            if reached.as_mut().is_some_and(|reached| reached.try_recv().is_ok()) {
                run.signal(Signal::KILL);
            }
            run.has_ended().then_some(())
        });
        let ran = run.finish();
        // Refused as the server could not be asked, away before the first write, or left half done: all of it passes.
        let said = || format!("deploy {number}: exit {}\n{}\n{}", ran.code, ran.stdout, ran.stderr);
        assert!(matches!(ran.code, 0 | 10 | 12 | 13 | 20 | 22 | -1), "{}", said());
        assert!(!ran.stderr.contains("panicked"), "{}", said());
        *self.codes.entry(ran.code).or_default() += 1;
        self.assert_valid(before, &said());
    }

    /// Every state of the record that was written was valid, and whatever is live is in it.
    fn assert_valid(&mut self, before: usize, said: &str) {
        for exchange in self.proxy.requests().split_off(before) {
            if exchange.accepted() && exchange.request.object().ends_with("/soak") && !exchange.answer.is_empty() {
                Bookkeeping::of_record(&exchange.stored());
                self.records += 1;
            }
        }
        let live = owned(self.cluster.api(), &self.collections());
        let record = Bookkeeping::read(self.cluster.api(), &self.namespace, "soak");
        let known = record.map(|record| record.inventory).unwrap_or_default();
        let unknown: Vec<&String> = live.keys().filter(|key| !known.contains_key(*key)).collect();
        assert!(unknown.is_empty(), "live and not in the inventory: {unknown:?}\n{said}");
    }

    /// A deploy without faults, and everything is as its manifests say.
    fn converge(&mut self, dice: &mut Dice) {
        let objects = objects(dice);
        self.place.write("app.yaml", manifest(&objects));
        // What a run that was cut off may still have had under way is forgotten by the second after it.
        for _ in 0..2 {
            self.place.run(&self.arguments()).expect(0);
        }
        let api = self.cluster.api();
        let live = owned(api, &self.collections());
        let mut names: Vec<&str> = live.keys().filter_map(|key| key.rsplit('/').next()).collect();
        let mut wanted: Vec<&str> = objects.keys().filter_map(|path| path.rsplit('/').next()).collect();
        names.sort_unstable();
        wanted.sort_unstable();
        assert_eq!(names, wanted);
        for (path, wanted) in &objects {
            let stored = api.get(&format!("/api/v1/namespaces/{}/{path}", self.namespace)).ok();
            let value = |object: &Value| object["metadata"]["annotations"]["example.com/value"].clone();
            assert_eq!(value(&stored), value(wanted), "{path}");
            assert_eq!(
                stored["data"]["value"].is_string(),
                wanted["kind"] == "ConfigMap" || wanted["kind"] == "Secret"
            );
            if wanted["kind"] == "ConfigMap" {
                assert_eq!(stored["data"], wanted["data"], "{path}");
            }
            if wanted["kind"] == "Service" {
                assert_eq!(stored["spec"]["ports"][0]["port"], wanted["spec"]["ports"][0]["port"], "{path}");
            }
        }
        let record = Bookkeeping::read(api, &self.namespace, "soak").expect("a record");
        record.assert_settled(api, &self.namespace, &live);
        let again = self.place.run(&self.arguments()).expect(0);
        assert_eq!(again.end()["outcome"], "unchanged");
    }
}

fn every_deploy_of_many_under_faults_leaves_a_valid_record_and_the_last_its_manifests() {
    let deploys = rounds(10, 200);
    let seed = std::env::var("PUSHBACK_SEED").ok().map_or(7, |seed| seed.parse().expect("PUSHBACK_SEED is a number"));
    let cluster = TestCluster::shared();
    let proxy = FaultProxy::start(cluster.kubeconfig_path());
    let place = Pushback::with_kubeconfig(cluster.kubeconfig_path());
    let namespace = cluster.namespace("soak");
    let mut soak = Soak { cluster, namespace, place, proxy, codes: BTreeMap::new(), records: 0 };
    let mut dice = Dice(seed);
    for number in 1..=deploys {
        soak.deploy(&mut dice, number);
        if number % 10 == 0 {
            soak.converge(&mut dice);
        }
    }
    soak.converge(&mut dice);
    let faults = soak.proxy.requests().iter().filter(|exchange| exchange.fault.is_some()).count();
    let _ = writeln!(
        std::io::stderr(),
        "soak: {deploys} deploys, seed {seed}: {} requests, {faults} with a fault, {} records written, exit codes {:?}",
        soak.proxy.requests().len(),
        soak.records,
        soak.codes,
    );
    assert!(faults > deploys, "{faults} faults in {deploys} deploys");
}
