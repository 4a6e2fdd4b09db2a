//! Releases made from real apps by removing, moving, renaming, replacing and re-owning objects. Each is applied to the
//! control plane; every object that disappeared or changed had to be named before the first write.

mod cluster_state;
mod releases;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use serde_json::Value;

use self::cluster_state::{ClusterState, Identity};
use self::releases::Release;
use crate::support::case::show;
use crate::support::dice::Dice;
use crate::support::pushback::Ran;
use crate::support::{Options, Pushback, TestCase, TestCluster, cases, rounds};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![Controllers: every_loss_is_named_before_the_first_write]
}

/// Totals over all releases.
#[derive(Debug, Default)]
struct Totals {
    releases: usize,
    refused: usize,
    waived: usize,
    disappeared: usize,
    changed: usize,
    unnamed: Vec<String>,
}

/// Rounds on one cluster: what each leaves behind makes the next one slower.
const ROUNDS_OF_A_CLUSTER: usize = 25;

/// Clusters at once in a long run.
const CLUSTERS: usize = 2;

impl Totals {
    fn add(&mut self, other: Self) {
        self.releases += other.releases;
        self.refused += other.refused;
        self.waived += other.waived;
        self.disappeared += other.disappeared;
        self.changed += other.changed;
        self.unnamed.extend(other.unnamed);
    }

    fn show(&self) {
        show(&format!(
            "{} releases: {} refused, {} of them applied with waivers; {} objects disappeared, {} changed, {} of them unnamed",
            self.releases,
            self.refused,
            self.waived,
            self.disappeared,
            self.changed,
            self.unnamed.len()
        ));
    }
}

fn every_loss_is_named_before_the_first_write() {
    let count = rounds(4, 500);
    let (next, totals) = (AtomicUsize::new(0), Mutex::new(Totals::default()));
    let work = || {
        loop {
            let first = next.fetch_add(ROUNDS_OF_A_CLUSTER, Ordering::SeqCst);
            if first >= count {
                break;
            }
            let cluster = TestCluster::start(&Options::whole());
            let mut of_cluster = Totals::default();
            for round in first..count.min(first + ROUNDS_OF_A_CLUSTER) {
                try_release(&cluster, &mut Dice(round as u64), round, &mut of_cluster);
            }
            let mut totals = totals.lock().unwrap_or_else(PoisonError::into_inner);
            totals.add(of_cluster);
            totals.show();
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..CLUSTERS.min(count.div_ceil(ROUNDS_OF_A_CLUSTER)) {
            scope.spawn(work);
        }
    });
    let totals = totals.into_inner().unwrap_or_else(PoisonError::into_inner);
    assert!(totals.unnamed.is_empty(), "not named before the write:\n{}", totals.unnamed.join("\n"));
    assert!(totals.disappeared > 0 && totals.changed > 0, "nothing was lost or changed: {totals:?}");
}

/// Deploys an app, lets others add objects, and applies the next release of it.
fn try_release(cluster: &TestCluster, dice: &mut Dice, round: usize, totals: &mut Totals) {
    let namespace = cluster.namespace(&format!("losses{round}"));
    let pushback = Pushback::on(cluster);
    let mut release = Release::new(dice, &namespace);
    let first = apply(&pushback, &namespace, &release.manifests(), &["--preflight=none"]);
    assert_eq!(first.code, 0, "round {round}: the first release: {}", first.stderr);
    release.add_objects_of_others(dice, cluster.api());
    let owned = release.change(dice, cluster.api());

    let before = ClusterState::settled(cluster.api(), &namespace);
    let mut ran = apply(&pushback, &namespace, &release.manifests(), &[]);
    totals.releases += 1;
    if ran.code == 10 {
        totals.refused += 1;
        let after = ClusterState::settled(cluster.api(), &namespace);
        let written = before.losses(&after);
        totals
            .unnamed
            .extend(written.iter().map(|(object, loss)| format!("round {round}: refused, and {object:?} {loss}")));
        let waivers: Vec<String> = fingerprints(&ran).iter().map(|print| format!("--waive={print}=losses")).collect();
        ran =
            apply(&pushback, &namespace, &release.manifests(), &waivers.iter().map(String::as_str).collect::<Vec<_>>());
        assert_ne!(ran.code, 10, "round {round}: refused in spite of the waivers: {}", ran.stderr);
        totals.waived += 1;
    }
    let after = ClusterState::settled(cluster.api(), &namespace);
    let mut named = Named::before_the_first_write(&ran);
    for (object, loss) in before.losses(&after) {
        match loss {
            cluster_state::Loss::Disappeared => totals.disappeared += 1,
            cluster_state::Loss::Changed => totals.changed += 1,
        }
        if !named.take(&object) {
            totals.unnamed.push(format!("round {round} (exit {}): {object:?} {loss}; {owned:?}", ran.code));
        }
    }
    show(&format!("round {round}: exit {}", ran.code));
    for manifest in release.objects().iter().filter(|_| ran.code == 0) {
        let is_missing = !after.contains(&Identity::from_manifest(manifest));
        if is_missing && !Identity::from_manifest(manifest).is_in(&named.findings) {
            totals.unnamed.push(format!("round {round}: applied, and missing: {}", manifest["metadata"]));
        }
    }
}

fn apply(pushback: &Pushback, namespace: &str, manifests: &str, more: &[&str]) -> Ran {
    pushback.write("app.yaml", manifests);
    let common = ["apply", "-a", "app", "-n", namespace, "-f", "app.yaml", "--yes", "-o", "json", "--wait=false"];
    pushback.run(&[&common[..], more].concat())
}

/// Fingerprints of the findings that refuse.
fn fingerprints(ran: &Ran) -> BTreeSet<String> {
    let findings = ran.events_of("finding").into_iter().map(|event| event["finding"].clone());
    let errors = findings.filter(|finding| finding["severity"] == "error");
    errors.filter_map(|finding| finding["fingerprint"].as_str().map(ToOwned::to_owned)).collect()
}

/// Everything that a run reports before its first write.
#[derive(Debug, Default)]
struct Named {
    /// Objects of the plan.
    planned: BTreeSet<Identity>,
    /// The findings as text.
    findings: String,
    /// Number of objects that findings count beyond those that they name.
    counted: u64,
}

impl Named {
    fn before_the_first_write(ran: &Ran) -> Self {
        let mut named = Self::default();
        for event in ran.events().iter().take_while(|event| event["type"] != "change.start") {
            if event["type"] == "plan" {
                collect_objects(event, &mut named.planned);
            } else if event["type"] == "finding" {
                let live = &event["finding"]["liveObjects"];
                let shown = live["names"].as_array().map_or(0, Vec::len) as u64;
                named.counted += live["affected"].as_u64().unwrap_or_default().saturating_sub(shown);
                named.findings.push_str(&event.to_string());
            }
        }
        named
    }

    /// Whether an object is named; a number without a name stands for one object.
    fn take(&mut self, object: &Identity) -> bool {
        let is_named = self.planned.contains(object) || object.is_in(&self.findings);
        if !is_named && self.counted > 0 {
            self.counted -= 1;
            return true;
        }
        is_named
    }
}

/// Collects everything in a value that is shaped as the reference to an object.
fn collect_objects(value: &Value, named: &mut BTreeSet<Identity>) {
    match value {
        Value::Object(map) => {
            if let (Some(kind), Some(name)) = (value["kind"].as_str(), value["name"].as_str()) {
                named.insert(Identity::new(kind, value["namespace"].as_str().unwrap_or_default(), name));
            }
            map.values().for_each(|value| collect_objects(value, named));
        }
        Value::Array(items) => items.iter().for_each(|value| collect_objects(value, named)),
        _ => {}
    }
}
