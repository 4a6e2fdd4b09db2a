//! Runs of one app that meet: at the same moment, after a kill, after a pause that outlived the lease. Judged by what
//! the server accepted from whom, in its own order.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::bookkeeping::{Bookkeeping, owned};
use crate::support::proxy::{Exchange, FaultProxy, Matching, any, writes};
use crate::support::{Pushback, Ran, Running, TestCase, TestCluster, cases, rounds, wait_until};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        ApiServer: two_deploys_at_the_same_moment_never_both_write,
        ApiServer: a_deploy_whose_holder_is_killed_goes_on_with_what_is_there,
        ApiServer: a_holder_that_wakes_up_after_its_lease_overwrites_nothing,
        ApiServer: what_a_run_that_was_taken_over_creates_late_is_pruned_by_the_next,
        ApiServer: a_deletion_that_wakes_up_after_its_lease_leaves_the_new_app_alone,
    ]
}

const SOON: Duration = Duration::from_secs(120);
const OBJECTS: usize = 24;
const LEASE: [&str; 2] = ["--lock-lease", "2s"];

/// Objects that say who wrote them; in a chain, one is written after the other.
fn parts(writer: &str, chain: bool, numbers: std::ops::Range<usize>) -> String {
    let first = numbers.start;
    numbers
        .map(|number| {
            let mut annotations = json!({});
            if chain {
                annotations["kapp.k14s.io/change-group"] = json!(format!("example.com/part-{number}"));
                if number > first {
                    let before = number - 1;
                    annotations["kapp.k14s.io/change-rule"] =
                        json!(format!("upsert after upserting example.com/part-{before}"));
                }
            }
            let metadata = json!({"name": format!("part-{number}"), "annotations": annotations});
            let object = json!({
                "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"writer": writer},
            });
            format!("---\n{object}\n")
        })
        .collect()
}

/// Two users of one app, each with a kubeconfig of its own through one proxy.
struct Race {
    cluster: &'static TestCluster,
    namespace: String,
    proxy: FaultProxy,
    place: Pushback,
}

impl Race {
    fn new(prefix: &str) -> Self {
        let cluster = TestCluster::shared();
        let place = Pushback::with_kubeconfig(cluster.kubeconfig_path());
        let proxy = FaultProxy::start(cluster.kubeconfig_path());
        Self { cluster, namespace: cluster.namespace(prefix), proxy, place }
    }

    fn write(&self, writer: &str, manifests: &str) {
        self.place.write(&format!("{writer}.yaml"), manifests);
    }

    fn arguments<'a>(&'a self, command: &'a str, file: &'a str, more: &[&'a str]) -> Vec<&'a str> {
        let mut arguments = vec![command, "-a", "shop", "-n", &self.namespace, "--yes", "--output", "json"];
        if command == "apply" {
            arguments.extend(["-f", file]);
        }
        arguments.extend(more);
        arguments
    }

    /// Starts a run of a writer.
    fn start(&self, command: &str, writer: &str, kubeconfig: &PathBuf, more: &[&str]) -> Running {
        let file = format!("{writer}.yaml");
        let mut command = self.place.command(&self.arguments(command, &file, more));
        command.env("KUBECONFIG", kubeconfig);
        Running::start(command)
    }

    /// Runs without a proxy, to their ends: what a run that was cut off may still have had under way is forgotten by
    /// the second after it.
    #[track_caller]
    fn settle(&self, writer: &str) {
        let file = format!("{writer}.yaml");
        for _ in 0..2 {
            self.place.run(&self.arguments("apply", &file, &LEASE)).expect(0);
        }
    }

    /// Tells once the first request that is meant has had its effect.
    fn when(&self, matching: Matching) -> Receiver<()> {
        let (tell, told) = channel();
        self.proxy.after(matching.first(1), move |_| {
            let _ = tell.send(());
        });
        told
    }

    /// Everything is as a writer wants it, and the record knows it.
    #[track_caller]
    fn assert_all_of(&self, writer: &str, count: usize) {
        let collection = format!("/api/v1/namespaces/{}/configmaps", self.namespace);
        let api = self.cluster.api();
        let parts: Vec<Value> = api
            .list(&collection)
            .into_iter()
            .filter(|object| object["metadata"]["name"].as_str().is_some_and(|name| name.starts_with("part-")))
            .collect();
        let others: Vec<&Value> = parts.iter().filter(|part| part["data"]["writer"] != writer).collect();
        assert_eq!((others, parts.len()), (vec![], count));
        let live = owned(api, &[collection]);
        let record = Bookkeeping::read(api, &self.namespace, "shop").expect("a record");
        record.assert_settled(api, &self.namespace, &live);
    }
}

/// What the server accepted of two runs, in its own order.
#[derive(Debug, Default)]
struct Judgement {
    /// The writers in the order in which they took the lock.
    holders: Vec<String>,
    /// Writes of a run to an object after a run that took the lock later had written it.
    overwritten: Vec<String>,
    /// Writes of a run after another one has taken its lock.
    late: usize,
}

/// Writes to the app's objects.
fn parts_written() -> Matching {
    writes().that(|request| request.name.starts_with("part-"))
}

/// Writes to the app's record.
fn record_written() -> Matching {
    writes().that(|request| request.object().ends_with("/shop"))
}

fn judge(requests: &[Exchange]) -> Judgement {
    let mut accepted: Vec<(u64, &Exchange, Value)> = requests
        .iter()
        .filter(|exchange| exchange.accepted())
        .map(|exchange| (exchange, exchange.stored()))
        .filter_map(|(exchange, stored)| {
            let version = stored["metadata"]["resourceVersion"].as_str()?.parse().ok()?;
            Some((version, exchange, stored))
        })
        .collect();
    accepted.sort_by_key(|(version, ..)| *version);
    let mut judgement = Judgement::default();
    let mut turns: BTreeMap<&str, usize> = BTreeMap::new();
    let mut latest: BTreeMap<String, usize> = BTreeMap::new();
    for (_, exchange, stored) in &accepted {
        let client = exchange.request.client.as_str();
        let object = exchange.request.object();
        if object.ends_with("/shop") {
            let locked = stored["data"]["pushback-lock"].is_string();
            if locked && judgement.holders.last().is_none_or(|holder| holder != client) {
                judgement.holders.push(client.to_owned());
                turns.insert(client, judgement.holders.len());
            }
        } else if exchange.request.name.starts_with("part-") {
            let turn = turns.get(client).copied().unwrap_or_default();
            judgement.late += usize::from(turn < judgement.holders.len());
            let before = latest.entry(object.clone()).or_insert(turn);
            if *before > turn {
                judgement.overwritten.push(format!("{object} by {client}"));
            }
            *before = turn.max(*before);
        }
    }
    judgement
}

fn said(ended: &[Ran]) -> String {
    ended.iter().map(|ran| format!("exit {}\n{}\n{}\n", ran.code, ran.stdout, ran.stderr)).collect()
}

fn two_deploys_at_the_same_moment_never_both_write() {
    let rounds = rounds(10, 50);
    let mut contended = 0;
    for round in 0..rounds {
        let race = Race::new("contended");
        // Every third round begins with a new app: then the record itself is what both want to create.
        if round % 3 != 0 {
            race.write("seed", &parts("seed", false, 0..1));
            race.settle("seed");
        }
        let waits = round % 2 == 0;
        let more: &[&str] = if waits { &[] } else { &["--lock-wait", "0s"] };
        let runs: Vec<Running> = ["one", "two"]
            .map(|writer| {
                race.write(writer, &parts(writer, true, 0..OBJECTS));
                race.start("apply", writer, &race.proxy.kubeconfig_of(writer), more)
            })
            .into();
        let ended: Vec<Ran> = runs.into_iter().map(|run| run.finish_within(SOON)).collect();
        let codes: Vec<i32> = ended.iter().map(|ran| ran.code).collect();
        if waits {
            assert_eq!(codes, [0, 0], "round {round}: {}", said(&ended));
        } else {
            assert!(matches!(codes[..], [0, 0 | 12] | [12, 0]), "round {round}: {codes:?}\n{}", said(&ended));
        }

        let requests = race.proxy.requests();
        let judgement = judge(&requests);
        assert_eq!((judgement.late, judgement.overwritten.len()), (0, 0), "round {round}: {judgement:?}");
        // Each run that succeeded wrote all its objects, and the one that was refused wrote nothing.
        for (writer, code) in ["one", "two"].into_iter().zip(&codes) {
            let written = requests.iter().filter(|exchange| {
                exchange.accepted() && exchange.request.client == writer && exchange.request.name.starts_with("part-")
            });
            assert_eq!(written.count(), if *code == 0 { OBJECTS } else { 0 }, "round {round}: {}", said(&ended));
        }
        let last = judgement.holders.last().expect("somebody held the lock").clone();
        race.assert_all_of(&last, OBJECTS);
        let met = ended.iter().any(|ran| {
            ran.code == 12
                || ran.events().iter().any(|event| event["code"] == "lock-waiting" || event["code"] == "plan-again")
        });
        contended += usize::from(met);
    }
    tell("two at once", rounds, &format!("the runs met in {contended}"));
    assert!(contended > rounds / 2, "the runs met in {contended} of {rounds} rounds only");
}

/// Full rounds are run for their figures.
fn tell(what: &str, rounds: usize, figures: &str) {
    let _ = writeln!(std::io::stderr(), "{what}: {rounds} rounds, {figures}");
}

fn a_deploy_whose_holder_is_killed_goes_on_with_what_is_there() {
    let rounds = rounds(4, 20);
    let mut late = 0;
    for round in 0..rounds {
        let race = Race::new("killed-holder");
        let chain = round % 2 == 0;
        race.write("one", &parts("one", chain, 0..OBJECTS));
        race.write("two", &parts("two", chain, OBJECTS / 2..2 * OBJECTS));
        let [one, two] = ["one", "two"].map(|writer| race.proxy.kubeconfig_of(writer));
        let point = 1 + round * 7 % OBJECTS;
        let reached = race.when(parts_written().from("one").nth(point));
        let holder = race.start("apply", "one", &one, &[]);
        reached.recv_timeout(SOON).expect("the holder writes");
        // The other one waits for the lock already, or finds it abandoned.
        let waits = round % 4 < 2;
        let mut next = waits.then(|| race.start("apply", "two", &two, &[]));
        if let Some(next) = &mut next {
            next.wait_for("it waits for the lock, or is through", |event| {
                event["code"] == "lock-waiting" || event["type"] == "change.start"
            });
        }
        holder.signal(Signal::KILL);
        holder.finish();
        let next = next.unwrap_or_else(|| race.start("apply", "two", &two, &[]));
        let ran = next.finish_within(SOON);
        // A write of the dead that arrives while the other one is at work makes a conflict, and the next run good.
        assert!(matches!(ran.code, 0 | 20), "round {round}: {}", said(std::slice::from_ref(&ran)));
        let judgement = judge(&race.proxy.requests());
        assert_eq!(judgement.overwritten, Vec::<String>::new(), "round {round}");
        late += judgement.late;
        race.settle("two");
        race.assert_all_of("two", OBJECTS + OBJECTS / 2);
    }
    tell("holder killed", rounds, &format!("{late} writes accepted after the other one took over"));
}

fn a_holder_that_wakes_up_after_its_lease_overwrites_nothing() {
    let rounds = rounds(4, 20);
    let (mut late, mut in_flight) = (0, 0);
    for round in 0..rounds {
        let race = Race::new("paused-holder");
        // Updates of what is there in two rounds of three, otherwise objects that nobody has made yet.
        if round % 3 != 0 {
            race.write("seed", &parts("seed", false, 0..2 * OBJECTS));
            race.settle("seed");
        }
        let chain = round % 2 == 0;
        race.write("one", &parts("one", chain, 0..OBJECTS));
        race.write("two", &parts("two", false, OBJECTS / 2..2 * OBJECTS));
        let [one, two] = ["one", "two"].map(|writer| race.proxy.kubeconfig_of(writer));
        let point = 1 + round * 5 % (OBJECTS / 2);
        let reached = race.when(parts_written().from("one").nth(point));
        // What the holder sends after that arrives late: when the other one has the lock, or is done.
        let (open, closed) = std::sync::mpsc::sync_channel::<()>(0);
        let closed = std::sync::Mutex::new(closed);
        race.proxy.before(parts_written().from("one").after_first(point), move |_| {
            // Ends when the other side is dropped.
            let _ = closed.lock().map(|closed| closed.recv_timeout(SOON));
        });
        let taken = race.when(record_written().from("two"));
        let holder = race.start("apply", "one", &one, &LEASE);
        reached.recv_timeout(SOON).expect("the holder writes");
        holder.signal(Signal::STOP);
        let flying = race.proxy.requests();
        let flying = flying.iter().filter(|exchange| exchange.status.is_none() && exchange.request.writes()).count();
        let next = race.start("apply", "two", &two, &LEASE);
        taken.recv_timeout(SOON).expect("the other one takes over");
        let ran = if round % 4 < 2 {
            // In the middle of the other one's work.
            drop(open);
            holder.signal(Signal::CONT);
            next.finish_within(SOON)
        } else {
            let ran = next.finish_within(SOON);
            drop(open);
            holder.signal(Signal::CONT);
            ran
        };
        let held = holder.finish_within(SOON);
        assert!(matches!(ran.code, 0 | 20), "round {round}: {}", said(std::slice::from_ref(&ran)));
        assert_eq!(held.code, 20, "round {round}: {}", said(std::slice::from_ref(&held)));
        let error = held.end()["error"].as_str().unwrap_or_default().to_owned();
        assert!(error.starts_with("the lock was lost"), "round {round}: {error}");
        wait_until("what was in flight has arrived", SOON, || {
            let waits = |exchange: &Exchange| exchange.status.is_none() && exchange.request.writes();
            (!race.proxy.requests().iter().any(waits)).then_some(())
        });
        let judgement = judge(&race.proxy.requests());
        assert_eq!(judgement.overwritten, Vec::<String>::new(), "round {round}");
        late += judgement.late;
        in_flight += flying;
        // In a chain one write at a time is under way.
        assert!(!chain || judgement.late <= 1, "round {round}: {judgement:?}");
        race.settle("two");
        race.assert_all_of("two", OBJECTS + OBJECTS / 2);
    }
    let figures = format!("{late} writes accepted after the other one took over, {in_flight} in flight at the pause");
    tell("holder paused", rounds, &figures);
}

fn a_deletion_that_wakes_up_after_its_lease_leaves_the_new_app_alone() {
    for point in [1, 2] {
        let race = Race::new("paused-deletion");
        race.write("one", &parts("one", false, 0..4));
        race.write("two", &parts("two", false, 0..4));
        race.settle("one");
        let [one, two] = ["one", "two"].map(|writer| race.proxy.kubeconfig_of(writer));
        // At the end of the deletion: all objects are gone; the history, then the record are next.
        let last = any().from("one").that(|request| request.method == "DELETE" && !request.name.starts_with("part-"));
        let (open, closed) = std::sync::mpsc::sync_channel::<()>(0);
        let closed = std::sync::Mutex::new(closed);
        let (tell, told) = channel();
        race.proxy.before(last.nth(point), move |_| {
            let _ = tell.send(());
            let _ = closed.lock().map(|closed| closed.recv_timeout(SOON));
        });
        let deleting = race.start("delete", "one", &one, &LEASE);
        told.recv_timeout(SOON).expect("the deletion comes to its end");
        deleting.signal(Signal::STOP);
        race.start("apply", "two", &two, &LEASE).finish_within(SOON).expect(0);
        drop(open);
        deleting.signal(Signal::CONT);
        deleting.finish_within(SOON);
        race.settle("two");
        race.assert_all_of("two", 4);
    }
}

fn what_a_run_that_was_taken_over_creates_late_is_pruned_by_the_next() {
    let race = Race::new("late-create");
    // Of a kind that nobody else of the app has: only the inventory says that there may be one.
    let secret = "---\n{apiVersion: v1, kind: Secret, metadata: {name: late}, stringData: {key: value}}\n";
    race.write("one", &(parts("one", false, 0..2) + secret));
    race.write("two", &parts("two", false, 0..2));
    let [one, two] = ["one", "two"].map(|writer| race.proxy.kubeconfig_of(writer));
    let (open, closed) = std::sync::mpsc::sync_channel::<()>(0);
    let closed = std::sync::Mutex::new(closed);
    let (tell, told) = channel();
    let late = writes().named("late");
    race.proxy.before(late, move |_| {
        let _ = tell.send(());
        let _ = closed.lock().map(|closed| closed.recv_timeout(SOON));
    });
    let holder = race.start("apply", "one", &one, &LEASE);
    told.recv_timeout(SOON).expect("the Secret is on its way");
    holder.signal(Signal::KILL);
    holder.finish();
    race.start("apply", "two", &two, &LEASE).finish_within(SOON).expect(0);
    drop(open);
    let secrets = format!("/api/v1/namespaces/{}/secrets", race.namespace);
    let there = || race.cluster.api().get(&format!("{secrets}/late")).status == 200;
    wait_until("the Secret has arrived", SOON, || there().then_some(()));
    race.settle("two");
    assert!(!there(), "nobody knows of it any more");
    race.assert_all_of("two", 2);
}
