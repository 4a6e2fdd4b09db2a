//! Releases made from real apps by removing, moving, renaming, replacing and re-owning objects. Each is applied to the
//! control plane; every object that disappeared or changed had to be named before the first write.

mod cluster_state;
mod releases;

use std::collections::BTreeSet;

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

fn every_loss_is_named_before_the_first_write() {
    let cluster = TestCluster::start(&Options::whole());
    let mut totals = Totals::default();
    for round in 0..rounds(4, 500) {
        let mut dice = Dice(round as u64);
        try_release(&cluster, &mut dice, round, &mut totals);
    }
    show(&format!(
        "{} releases: {} refused, {} of them applied with waivers; {} objects disappeared, {} changed, {} of them unnamed",
        totals.releases,
        totals.refused,
        totals.waived,
        totals.disappeared,
        totals.changed,
        totals.unnamed.len()
    ));
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
