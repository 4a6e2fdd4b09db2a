//! What is offered to who deploys for clients of a version that is removed or no longer served.

use pushback_objects::remedy::{Remedy, RemedyKind};

use super::*;

/// A CRD of another group with the same versions.
fn named(mut crd: Value, group: &str) -> Value {
    crd["spec"]["group"] = json!(group);
    crd["metadata"]["name"] = json!(format!("foos.{group}"));
    crd
}

fn without_beta() -> Value {
    edited(|crd| crd["spec"]["versions"].as_array_mut().expect("a list").truncate(1))
}

fn found<'r>(report: &'r RunReport, check: &str) -> Vec<&'r Finding> {
    report.findings.iter().filter(|finding| finding.check == check).collect()
}

fn first(finding: &Finding, kind: RemedyKind) -> &Remedy {
    finding.remedies.iter().find(|remedy| remedy.kind == kind).expect("a remedy of the kind")
}

#[test]
fn stored_version_that_is_removed_has_a_finding_for_its_clients_once_its_objects_are_accepted() {
    let report = run(update(live(&["v1beta1", "v1"]), without_beta()));
    let [stored] = found(&report, "storedVersionRemoval")[..] else { panic!("{report:#?}") };
    assert!(stored.also.contains(&format!("{NAME}/servedVersionRemoval")), "{:?}", stored.also);
    let [client] = &stored.client_waivers[..] else { panic!("{stored:#?}") };
    let command = &first(stored, RemedyKind::MoveObjects).commands[0];
    assert!(command.contains("--storage=migrate") && command.contains(&format!("--waive={client}=")), "{command}");

    let off = json!({"checks": {"storedVersionRemoval": "off"}});
    let report = run_with(vec![update(live(&["v1beta1", "v1"]), without_beta())], &off, Ok(vec![]));
    let [served] = found(&report, "servedVersionRemoval")[..] else { panic!("{report:#?}") };
    assert_eq!((served.severity, &served.fingerprint), (Severity::Error, client));
    let command = &first(served, RemedyKind::Accept).commands[0];
    assert!(command.contains(&format!("--waive={client}=")) && !command.contains("--storage"), "{command}");
}

#[test]
fn version_that_several_crds_remove_is_accepted_by_one_command() {
    let changes = ["a.com", "b.com"].map(|group| update(named(live(&["v1"]), group), named(without_beta(), group)));
    let report = run_with(changes.to_vec(), &json!({}), Ok(vec![]));
    let served = found(&report, "servedVersionRemoval");
    let fingerprints: Vec<String> = served.iter().map(|finding| finding.fingerprint.clone()).collect();
    assert_eq!(fingerprints.len(), 2);
    for finding in served {
        let command = &first(finding, RemedyKind::Accept).commands[0];
        assert!(fingerprints.iter().all(|fingerprint| command.contains(fingerprint)), "{command}");
    }
}

#[test]
fn clients_that_were_warned_need_no_waiver() {
    let announced = |mut crd: Value| {
        crd["spec"]["versions"][1]["deprecated"] = json!(true);
        crd
    };
    let report = run(update(announced(live(&["v1beta1", "v1"])), without_beta()));
    let [stored] = found(&report, "storedVersionRemoval")[..] else { panic!("{report:#?}") };
    assert_eq!(first(stored, RemedyKind::MoveObjects).commands, ["pushback apply --storage=migrate"]);
    let softened = json!({"versions": {"removed": "warn"}});
    let report = run_with(vec![update(live(&["v1beta1", "v1"]), without_beta())], &softened, Ok(vec![]));
    let [stored] = found(&report, "storedVersionRemoval")[..] else { panic!("{report:#?}") };
    assert_eq!(first(stored, RemedyKind::MoveObjects).commands, ["pushback apply --storage=migrate"]);
}

#[test]
fn objects_are_moved_before_an_announced_version_is_no_longer_served() {
    let versions = |deprecated: bool, served: bool| {
        edited(|crd| {
            crd["spec"]["versions"][1]["deprecated"] = json!(deprecated);
            crd["spec"]["versions"][1]["served"] = json!(served);
        })
    };
    let unserved = |deprecated: bool, stored: &[&str]| {
        let mut before = versions(deprecated, true);
        before["status"] = json!({"storedVersions": stored});
        let report = run(update(before, versions(deprecated, false)));
        let found = report.findings.into_iter().find(|finding| finding.check == "servedVersionUnserved");
        found.expect("a finding").remedies.into_iter().map(|remedy| remedy.kind).collect::<Vec<_>>()
    };
    use RemedyKind::{Accept, Change, Configure, MoveObjects};
    assert_eq!(unserved(true, &["v1beta1", "v1"]), [MoveObjects, Accept, Configure, Change]);
    // To move its objects does not help its clients.
    assert_eq!(unserved(false, &["v1beta1", "v1"]), [Accept, Configure, Change]);
}
