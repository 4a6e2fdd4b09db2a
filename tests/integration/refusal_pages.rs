//! What a refusal of a real release prints: short enough to be read from its first line to its last, never wider than
//! it should be, and with every finding in the JSON report.

use std::io::Read as _;
use std::path::Path;

use flate2::read::GzDecoder;
use serde_json::Value;

use crate::support::{Pushback, Ran, TestCase, cases};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        Nothing: a_refusal_of_a_real_release_is_a_page_that_can_be_read,
        Nothing: a_refusal_says_the_same_with_every_finding_if_asked,
        Nothing: a_cause_is_waived_by_the_entry_that_the_report_prints_and_new_members_are_not,
    ]
}

struct Release {
    app: &'static str,
    versions: [&'static str; 2],
    findings: usize,
    causes: usize,
    /// Most lines after the plan, with those on standard error.
    lines: usize,
}

const RELEASES: [Release; 4] = [
    Release { app: "argo-cd", versions: ["v2.14.21", "v3.5.1"], findings: 55, causes: 3, lines: 60 },
    Release { app: "strimzi", versions: ["0.48.0", "1.0.0"], findings: 14, causes: 3, lines: 60 },
    Release { app: "kube-prometheus", versions: ["v0.15.0", "v0.18.0"], findings: 174, causes: 102, lines: 200 },
    Release { app: "prometheus-operator", versions: ["v0.90.1", "v0.93.0"], findings: 105, causes: 25, lines: 150 },
];

impl Release {
    /// Both releases as folders, `old` and `new`.
    fn unpacked(&self) -> Pushback {
        unpacked(self.app, self.versions)
    }
}

/// Two releases of an app as folders, `old` and `new`.
pub(crate) fn unpacked(app: &str, versions: [&str; 2]) -> Pushback {
    let pushback = Pushback::new();
    for (side, version) in ["old", "new"].iter().zip(versions) {
        let path = format!("tests/data/apps/{app}/{version}.yaml.gz");
        let packed = std::fs::File::open(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).expect("the release");
        let mut text = String::new();
        GzDecoder::new(packed).read_to_string(&mut text).expect("packed YAML");
        pushback.write(&format!("{side}/release.yaml"), text);
    }
    pushback
}

const CHECK: [&str; 5] = ["check", "-f", "new", "--cluster", "dir:old"];

fn after_the_plan(ran: &Ran) -> Vec<&str> {
    let lines = ran.stdout.lines().skip_while(|line| !line.starts_with("Plan:")).skip(1);
    lines.chain(ran.stderr.lines()).collect()
}

fn a_refusal_of_a_real_release_is_a_page_that_can_be_read() {
    for release in &RELEASES {
        let pushback = release.unpacked();
        let refused = pushback.run(&[&CHECK[..], &["--report", "json=report.json"]].concat()).expect(10);
        let report: Value = serde_json::from_str(&pushback.read("report.json")).expect("a report");
        let count = |what: &str| report[what].as_array().expect("a list").len();
        let lines = after_the_plan(&refused);
        assert_eq!((count("findings"), count("causes")), (release.findings, release.causes), "{}", release.app);
        assert!(lines.len() <= release.lines, "{}: {} lines\n{}", release.app, lines.len(), lines.join("\n"));
        let widest =
            refused.stdout.lines().skip_while(|line| !line.starts_with("Plan:")).map(|line| line.chars().count()).max();
        assert!(widest <= Some(100), "{}: {widest:?} columns", release.app);
        // Each offending value is in view: a witness that is cut says nothing.
        let witnesses = lines.iter().filter(|line| line.starts_with("   = witness:")).count();
        assert!(witnesses > 0 || release.app == "strimzi", "{}", release.app);
        let members: usize = report["causes"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|cause| cause["members"].as_array().map_or(0, Vec::len))
            .sum();
        assert_eq!(members, release.findings, "each finding belongs to one cause");
    }
}

fn a_refusal_says_the_same_with_every_finding_if_asked() {
    let release = &RELEASES[0];
    let refused = release.unpacked().run(&[&CHECK[..], &["--verbose"]].concat()).expect(10);
    let fingerprints = refused.stdout.lines().filter(|line| line.starts_with("   = fingerprint: ")).count();
    assert_eq!(fingerprints, release.findings);
    assert!(refused.stdout.contains("preflightWaivers:\n- rule: CRDUpgradeSafety\n  cause: "), "{}", refused.stdout);
}

/// The waivers that `--verbose` prints, as a file.
fn entry(text: &str) -> String {
    let lines = text.lines().skip_while(|line| *line != "preflightWaivers:").take_while(|line| !line.is_empty());
    let config = "apiVersion: pushback.dev/v1alpha1\nkind: Config\n";
    format!("{config}{}\n", lines.collect::<Vec<_>>().join("\n")).replace("reason: \"\"", "reason: reviewed")
}

fn a_cause_is_waived_by_the_entry_that_the_report_prints_and_new_members_are_not() {
    let pushback = RELEASES[0].unpacked();
    let refused = pushback.run(&[&CHECK[..], &["--verbose"]].concat()).expect(10);
    let entry = entry(&refused.stdout);
    pushback.write("accepted.yaml", &entry);
    let check = [&CHECK[..], &["--config", "accepted.yaml"]].concat();
    let passed = pushback.run(&check).expect(0);
    assert!(passed.stdout.contains("waived: 55 findings"), "{}", passed.stdout);

    // A member that the waiver does not list is as if it was new since.
    let member = entry.lines().find(|line| line.starts_with("  - ")).expect("a member").to_owned();
    pushback.write("accepted.yaml", entry.replacen(&format!("{member}\n"), "", 1));
    let refused = pushback.run(&check).expect(10);
    assert!(refused.stdout.contains("= waived:  26 of 27 findings"), "{}", refused.stdout);
    assert!(refused.stdout.contains("preflightWaivers/newMembers"), "{}", refused.stdout);
}
