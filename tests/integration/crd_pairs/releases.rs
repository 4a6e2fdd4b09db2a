//! Witnesses of real upgrades on a real API server: what `check --witness-dir` writes is taken under the one release and
//! fares under the next as its finding says. Releases are those of `upgrades`; `PUSHBACK_SHOW=1` prints the table.

use std::collections::{BTreeMap, BTreeSet};

use pushback_manifest::yaml;
use pushback_objects::Verdict;
use pushback_objects::finding::Finding;
use serde_json::{Value, json};

use super::definition::Definition;
use super::trial::{Tally, Trial, is_between_versions, run};
use super::upgrades::upgrades;
use crate::support::case::show;
use crate::support::{Pushback, TestCase, TestCluster, cases};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![ApiServer: witnesses_of_real_upgrades_fare_as_their_findings_say]
}

fn witnesses_of_real_upgrades_fare_as_their_findings_say() {
    let cluster = TestCluster::shared();
    let namespace = cluster.namespace("releases");
    let mut all = Tally::default();
    show(
        "project and releases | definitions | witnesses confirmed | definitions confirmed | behind a refusal | otherwise",
    );
    for upgrade in upgrades() {
        let mut trials: Vec<Trial> = upgrade.changed.iter().flat_map(|(old, new)| trials(old, new)).collect();
        let mut tally = Tally::default();
        // Definitions of the same name, one after the other.
        while !trials.is_empty() {
            let mut names = BTreeSet::new();
            let (first, others) =
                trials.into_iter().partition(|trial| names.insert(Definition(&trial.old).name().to_owned()));
            let first: Vec<Trial> = first;
            tally.add(run(cluster.api(), &namespace, &first));
            trials = others;
        }
        let Tally { witnesses, definitions, masked, wrong, .. } = &tally;
        let (name, changed) = (&upgrade.name, upgrade.changed.len());
        show(&format!("{name} | {changed} | {witnesses} | {definitions} | {masked} | {}", wrong.len()));
        wrong.iter().for_each(|line| show(line));
        all.add(tally);
    }
    let Tally { witnesses, wrong, .. } = all;
    assert!(wrong.is_empty(), "{} otherwise:\n{}", wrong.len(), wrong.join("\n"));
    assert!(witnesses > 0, "no witness was tried");
}

/// What there is to try of an upgrade of one definition. Where a webhook converts, which does not run here, each version
/// stands alone: that is what a webhook that loses nothing amounts to.
fn trials(old: &Value, new: &Value) -> Vec<Trial> {
    let findings = check(old, new);
    let name = Definition(old).name().to_owned();
    if ![old, new].into_iter().any(|side| {
        Definition(side).converts_with_a_webhook()
            && side["spec"]["versions"].as_array().is_some_and(|all| all.len() > 1)
    }) {
        let any = findings.iter().any(|finding| finding.verdict == Verdict::Breaking || finding.witness.is_some());
        let trial = Trial { name, old: old.clone(), new: new.clone(), findings, plain: Vec::new() };
        return if any { vec![trial] } else { Vec::new() };
    }
    let with_witness = findings.into_iter().filter(|finding| finding.witness.is_some());
    let (between, within): (Vec<Finding>, Vec<Finding>) = with_witness.partition(is_between_versions);
    let mut by_version = BTreeMap::<String, Vec<Finding>>::new();
    for finding in within {
        by_version.entry(finding.version.clone().unwrap_or_default()).or_default().push(finding);
    }
    let alone = |(version, findings): (String, Vec<Finding>)| Trial {
        name: format!("{name} {version} alone"),
        old: alone(old, &version),
        new: alone(new, &version),
        findings,
        plain: Vec::new(),
    };
    let mut trials: Vec<Trial> = by_version.into_iter().map(alone).collect();
    if !between.is_empty() {
        let (old, new) = (unconverted(old), unconverted(new));
        trials.push(Trial { name, old, new, findings: between, plain: Vec::new() });
    }
    trials
}

/// The definition without its webhook.
fn unconverted(definition: &Value) -> Value {
    let mut definition = definition.clone();
    definition["spec"]["conversion"] = json!({"strategy": "None"});
    definition
}

/// The definition with one version only.
fn alone(definition: &Value, version: &str) -> Value {
    let mut definition = unconverted(definition);
    let mut only = Definition(&definition).version(version).cloned().unwrap_or_default();
    only["served"] = true.into();
    only["storage"] = true.into();
    definition["spec"]["versions"] = json!([only]);
    definition["status"] = json!({"storedVersions": [version]});
    definition
}

/// What the tool says of an upgrade, each witness as it is in its file.
fn check(old: &Value, new: &Value) -> Vec<Finding> {
    let pushback = Pushback::new();
    pushback.write("old/definition.json", old.to_string()).write("new/definition.json", new.to_string());
    let arguments = ["check", "--cluster", "dir:old", "-f", "new", "--witness-dir", "witnesses", "-o", "json"];
    let report = pushback.run(&arguments).json();
    let files = pushback.tree("witnesses");
    let read = |finding: &Value| {
        let mut finding: Finding =
            serde_json::from_value(finding.clone()).unwrap_or_else(|error| panic!("{error}: {finding}"));
        if finding.witness.is_some() {
            let mut of_finding = files.iter().filter(|(name, _)| name.contains(&finding.fingerprint));
            let (name, text) = of_finding.next().unwrap_or_else(|| panic!("no file for {}", finding.fingerprint));
            let loaded =
                yaml::load(name, text.as_bytes(), &yaml::Limits::default()).unwrap_or_else(|error| panic!("{error}"));
            finding.witness = loaded.documents.into_iter().next().map(|document| document.value.into());
        }
        finding
    };
    report["findings"].as_array().into_iter().flatten().map(read).collect()
}
