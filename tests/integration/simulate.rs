//! Suites of experiments for upgrades: generated from real releases, valid by our validator and for a real API server, and
//! written so that nothing of anybody else is lost. `accepted` posts all of them to an API server.

mod accepted;
mod at_hand;

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value, json};

use crate::support::{Pushback, TestCase, cases};

pub(crate) fn tests() -> Vec<TestCase> {
    let cases = cases![
        Nothing: every_experiment_for_a_real_upgrade_is_valid_and_ready,
        Nothing: the_published_examples_are_what_is_generated,
        Nothing: two_suites_for_the_same_releases_are_the_same_bytes,
        Nothing: nobody_elses_files_are_written_over,
        Nothing: a_dry_run_prints_what_would_be_written,
        Nothing: exports_lie_beside_the_suite,
        Nothing: wrong_arguments_are_answered,
        Nothing: wrong_experiments_are_refused_with_their_places,
    ];
    [cases, accepted::tests(), at_hand::tests()].concat()
}

fn data(path: &str) -> String {
    format!("{}/tests/data/upgrade/{path}", env!("CARGO_MANIFEST_DIR"))
}

/// Generates the suite for two releases of the test data.
fn simulate(place: &Pushback, from: &str, to: &str, more: &[&str]) -> String {
    let (from, to) = (data(from), data(to));
    let arguments = [["upgrade", "simulate", "--from", &from, "--to", &to].as_slice(), more].concat();
    place.run(&arguments).expect(0).stdout
}

const REAL: (&str, &str) = ("../knowledge/odh-v2.10", "../knowledge/rhoai-v3.3");
const SEED: (&str, &str) = ("seed/v2.20", "seed/v2.21");

/// The files of a folder of the test, by name.
fn files(place: &Pushback, folder: &str) -> BTreeSet<String> {
    let entries = std::fs::read_dir(place.directory().join(folder)).expect("the folder is there");
    entries.map(|entry| entry.expect("it is there").file_name().into_string().expect("it is there")).collect()
}

pub(crate) fn yaml(path: impl AsRef<Path>) -> Value {
    let path = path.as_ref();
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_yaml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn every_experiment_for_a_real_upgrade_is_valid_and_ready() {
    let place = Pushback::new();
    let sides = ["upgrade", "simulate", "--from", &data(REAL.0), "--to", &data(REAL.1)];
    let ran = place.run(&[&sides[..], &["--output", "suite"]].concat()).expect(0);
    assert!(ran.stderr.ends_with("note: 43 experiments written to suite\n"), "{}", ran.stderr);
    let shown = ran.stdout;
    let counts = "43 experiments: 43 ready, 0 need values; ";
    assert!(shown.lines().last().is_some_and(|line| line.starts_with(counts)), "{shown}");
    let valid = place.run(&["upgrade", "validate", "suite"]).expect(0);
    assert_eq!(valid.stdout, "43 experiments are valid\n");
    let manifest = yaml(place.directory().join("suite/suite-manifest.yaml"));
    let listed: BTreeSet<String> = manifest["experiments"]
        .as_array()
        .expect("it is there")
        .iter()
        .map(|entry| entry["file"].as_str().expect("it is there").to_owned())
        .chain(["suite-manifest.yaml".to_owned()])
        .collect();
    assert_eq!(listed, files(&place, "suite"));
    let renamed = listed.iter().filter(|file| file.starts_with("component-renamed-")).count();
    let removed = manifest["manual"]
        .as_array()
        .expect("it is there")
        .iter()
        .filter(|entry| entry["changeType"] == "ComponentRemoved");
    assert_eq!((renamed, removed.count()), (5, 5));
}

/// What an experiment does, without what may be said in other words.
pub(crate) fn substance(experiment: &Value) -> Value {
    let spec = &experiment["spec"];
    let annotations = &experiment["metadata"]["annotations"];
    let annotation = |key: &str| annotations[format!("chaos.operatorchaos.io/{key}")].clone();
    let mut parameters = spec["injection"]["parameters"].clone();
    // Any value will do that the old definition takes and the new one drops.
    if spec["injection"]["type"] == "CRDMutation" {
        parameters.as_object_mut().expect("it is there").remove("value");
    }
    json!({
        "name": experiment["metadata"]["name"],
        "namespace": experiment["metadata"]["namespace"],
        "generatedBy": annotation("generated-by"),
        "version": annotation("upgrade-version"),
        "target": [spec["target"]["operator"], spec["target"]["component"]],
        "type": spec["injection"]["type"],
        "danger": spec["injection"]["dangerLevel"],
        "parameters": parameters,
        "blastRadius": spec["blastRadius"],
    })
}

fn the_published_examples_are_what_is_generated() {
    let place = Pushback::new();
    simulate(&place, SEED.0, SEED.1, &["--output", "suite"]);
    let files = files(&place, "suite");
    for file in ["webhook-added-llmisvc-validator.yaml", "dependency-added-modelregistry.yaml", "suite-manifest.yaml"] {
        assert!(files.contains(file), "{file}: {files:?}");
    }
    for (file, published) in [
        ("webhook-added-llmisvc-validator.yaml", "llmisvc-webhook-added.yaml"),
        ("crd-breaking-storage-removed.yaml", "storage-field-removed.yaml"),
    ] {
        let ours = substance(&yaml(place.directory().join("suite").join(file)));
        assert_eq!(ours, substance(&yaml(data(&format!("experiments/{published}")))), "{file}");
    }
    let valid = place.run(&["upgrade", "validate", &data("experiments")]).expect(0);
    assert_eq!(valid.stdout, "2 experiments are valid\n");
    place.run(&["upgrade", "validate", "suite"]).expect(0);
}

fn two_suites_for_the_same_releases_are_the_same_bytes() {
    let place = Pushback::new();
    for folder in ["one", "two"] {
        simulate(&place, REAL.0, REAL.1, &["--output", folder]);
    }
    for file in files(&place, "one") {
        let read =
            |folder: &str| std::fs::read(place.directory().join(format!("{folder}/{file}"))).expect("it is there");
        assert_eq!(read("one"), read("two"), "{file}");
    }
    // Over an earlier suite that nobody has edited, it is written again.
    simulate(&place, SEED.0, SEED.1, &["--output", "two"]);
    assert!(!files(&place, "two").contains("component-renamed-kuberay.yaml"));
}

fn nobody_elses_files_are_written_over() {
    let place = Pushback::new();
    place.write("mine/notes.md", "mine");
    let (from, to) = (data(SEED.0), data(SEED.1));
    let refused = |folder: &str| {
        place.run(&["upgrade", "simulate", "--from", &from, "--to", &to, "--output", folder]).expect(1).stderr
    };
    let error = refused("mine");
    assert!(error.contains("mine/notes.md is in the way: the folder holds other files than a suite"), "{error}");
    assert!(error.contains("name another folder, or remove what is there"), "{error}");
    simulate(&place, SEED.0, SEED.1, &["--output", "suite"]);
    let file = place.directory().join("suite/webhook-added-llmisvc-validator.yaml");
    let text = std::fs::read_to_string(&file).expect("it is there");
    std::fs::write(&file, text.replace("webhookName: validating.llmisvc.kserve.io", "webhookName: llmisvc"))
        .expect("it is there");
    let error = refused("suite");
    assert!(error.contains("webhook-added-llmisvc-validator.yaml was edited since it was generated"), "{error}");
    assert!(std::fs::read_to_string(&file).expect("it is there").contains("webhookName: llmisvc"));
}

fn a_dry_run_prints_what_would_be_written() {
    let place = Pushback::new();
    let printed = simulate(&place, SEED.0, SEED.1, &["--dry-run", "--output", "suite"]);
    assert!(!place.directory().join("suite").exists());
    place.write("printed.yaml", &printed);
    place.run(&["upgrade", "validate", "printed.yaml"]).expect(0);
    assert!(printed.contains("---\n# suite-manifest.yaml\n"));
    let manifest = simulate(&place, SEED.0, SEED.1, &["--dry-run", "--format", "json"]);
    let manifest: Value = serde_json::from_str(&manifest).expect("it is there");
    assert_eq!(
        (&manifest["kind"], &manifest["metadata"]["name"]),
        (&json!("UpgradeSuite"), &json!("upgrade-v2-20-to-v2-21"))
    );
}

fn exports_lie_beside_the_suite() {
    let place = Pushback::new();
    let tools = ["--export", "chaos-mesh", "--export", "litmus", "--export", "krkn", "--output", "suite"];
    simulate(&place, REAL.0, REAL.1, &tools);
    for (tool, count) in [("chaos-mesh", 36), ("litmus", 36), ("krkn", 37)] {
        assert_eq!(files(&place, &format!("suite/{tool}")).len(), count, "{tool}");
    }
    // What is for other tools is no experiment of the suite.
    assert_eq!(place.run(&["upgrade", "validate", "suite"]).expect(0).stdout, "43 experiments are valid\n");
    simulate(&place, SEED.0, SEED.1, &tools);
    let manifest = yaml(place.directory().join("suite/suite-manifest.yaml"));
    let left_out = manifest["exports"][0]["notExportable"].as_array().expect("it is there");
    assert!(
        left_out.iter().any(|entry| entry["reason"] == "chaos-mesh has nothing like WebhookDisrupt"),
        "{left_out:?}"
    );
}

fn wrong_arguments_are_answered() {
    let place = Pushback::new();
    let (from, to) = (data(SEED.0), data(SEED.1));
    let refused = |arguments: &[&str]| place.run(arguments).expect(1).stderr;
    let sides = ["--from", from.as_str(), "--to", to.as_str()];
    let with = |command: &[&'static str], more: &[&'static str]| refused(&[command, &sides, more].concat());
    assert!(with(&["upgrade", "simulate"], &[]).contains("--output <DIR>"));
    let error = with(&["upgrade", "simulate"], &["--output", "json"]);
    assert!(error.contains("--output is a path in this command, and \"json\" is a format"), "{error}");
    let error = with(&["upgrade", "simulate"], &["--dry-run", "--component", "llmisvc-controler-manager"]);
    assert!(error.contains("neither release has a component \"llmisvc-controler-manager\""), "{error}");
    assert!(error.contains("did you mean \"llmisvc-controller-manager\"?"), "{error}");
    let other_spelling = ["simulate-upgrade", "--old", &from, "--new", &to, "--output", "suite"];
    place.run(&other_spelling).expect(0);
    assert!(place.directory().join("suite/suite-manifest.yaml").exists());
}

fn wrong_experiments_are_refused_with_their_places() {
    let place = Pushback::new();
    let good = std::fs::read_to_string(data("experiments/llmisvc-webhook-added.yaml")).expect("it is there");
    place.write(
        "bad.yaml",
        good.replace("maxPodsAffected: 1", "maxPodsAffected: 0").replace("webhookType", "webhokType"),
    );
    place.write("other.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n");
    let refused = place.run(&["upgrade", "validate", "bad.yaml", "other.yaml"]).expect(1);
    for line in [
        "bad.yaml:27:5: spec.blastRadius.maxPodsAffected: must be at least 1, found 0",
        "spec.injection.parameters.webhokType: WebhookDisrupt does not read it; did you mean \"webhookType\"?",
        "other.yaml:1:1: ConfigMap a is no experiment",
    ] {
        assert!(refused.stderr.contains(line), "{line}\n{}", refused.stderr);
    }
}
