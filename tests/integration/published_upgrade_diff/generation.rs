//! The chapter on generation: each row of the table of changes and injections, and the two worked examples, from what was
//! detected to the experiment that comes of it.

use std::path::Path;

use serde_json::{Value, json};

use super::{Walk, list, text};
use crate::simulate::{substance, yaml};

const MAPPED: &str = "upgrade simulate --from mapping/v2.20 --to mapping/v2.21 --dry-run --format json";

/// Injections and files of a type of change; of what is for people, the subject.
fn of_type(manifest: &Value, change_type: &str) -> String {
    let is_it = |entry: &&Value| text(entry, "changeType") == change_type;
    let experiments = list(manifest, "experiments").filter(is_it);
    let experiments = experiments.map(|entry| format!("{} {}\n", text(entry, "injection"), text(entry, "file")));
    let manual = list(manifest, "manual").filter(is_it);
    let manual = manual.map(|entry| format!("manual: {} {}", text(entry, "component"), text(entry, "subject")));
    experiments.chain(manual.map(|line| line.trim_end().to_owned() + "\n")).collect()
}

pub(super) fn walk(walk: &mut Walk) {
    walk.chapter("Experiment generation");
    for (statement, change_type, expected) in [
        ("A component comes: PodKill on it", "ComponentAdded", &["PodKill component-added-fresh.yaml"][..]),
        ("A component goes: no experiment, a note for people", "ComponentRemoved", &["manual: gone"]),
        (
            "A managed resource comes: ConfigDrift of a ConfigMap, CRDMutation of a custom resource",
            "ResourceAdded",
            &[
                "ConfigDrift resource-added-settings-configmap.yaml",
                "CRDMutation resource-added-defaults-inferenceservice.yaml",
            ],
        ),
        (
            "A managed resource goes: no experiment, a note for people",
            "ResourceRemoved",
            &["manual: kserve-controller-manager Service kserve/left-behind"],
        ),
        (
            "A definition breaks: CRDMutation of the field",
            "FieldRemoved",
            &["CRDMutation crd-breaking-storage-removed.yaml"],
        ),
        (
            "A webhook comes: WebhookDisrupt on it",
            "WebhookAdded",
            &["WebhookDisrupt webhook-added-kserve-mutator.yaml"],
        ),
        (
            "A finalizer comes: FinalizerBlock on an object that will carry it",
            "FinalizerAdded",
            &["FinalizerBlock finalizer-added-kserve-inferenceservice-finalizers.yaml"],
        ),
        (
            "A dependency comes: PodKill on the dependency",
            "DependencyAdded",
            &["PodKill dependency-added-modelregistry.yaml"],
        ),
    ] {
        walk.shows(statement, MAPPED, 0, |ran| of_type(&ran.json(), change_type), expected);
    }
    let folder = walk.place.directory();
    walk.shows(
        "… and the collateral: the experiment looks at what depends on it, too",
        "upgrade simulate --from mapping/v2.20 --to mapping/v2.21 --output mapped",
        0,
        |_| checked(&folder.join("mapped/dependency-added-modelregistry.yaml")),
        &["Deployment/kserve-controller-manager", "Deployment/modelregistry"],
    );
    walk.shows(
        "The time to recover changes: every experiment has the new one",
        "upgrade validate mapped",
        0,
        |ran| format!("{}{}", ran.stdout, recovery_times(&folder.join("mapped"))),
        &["7 experiments are valid", "600s"],
    );

    walk.chapter("Worked example: a breaking change of a definition");
    walk.shows(
        "What is detected: path, type, severity, and both schemas",
        "diff-crds --old crds/storage-old.yaml --new crds/storage-new.yaml --format json",
        10,
        |ran| {
            let change = &ran.json()["crds"][0]["apiVersions"][0]["schemaChanges"][0];
            ["path", "type", "severity", "oldSchema", "newSchema"]
                .map(|key| format!("{}: {}\n", json!(key), change[key]))
                .concat()
        },
        &[
            r#""path": "spec.storage""#,
            r#""type": "FieldRemoved""#,
            r#""severity": "breaking""#,
            r#""oldSchema": {"type":"object"}"#,
            r#""newSchema": null"#,
        ],
    );
    walk.shows(
        "What is generated is the published experiment; the value is another that the old definition takes",
        "simulate-upgrade --from knowledge/v2.20/ --to knowledge/v2.21/ --output worked-suite",
        0,
        |_| {
            let ours = yaml(folder.join("worked-suite/crd-breaking-storage-removed.yaml"));
            let published = yaml(folder.join("worked/storage-field-removed.yaml"));
            let value = text(&ours["spec"]["injection"]["parameters"], "value").to_owned();
            let value: Value = serde_json::from_str(&value).expect("a value");
            let keys: Vec<&String> = value.as_object().expect("an object, as published").keys().collect();
            assert!(keys.iter().all(|key| ["type", "bucket"].contains(&key.as_str())), "{keys:?}");
            same(&ours, &published)
        },
        &["the same: CRDMutation of spec.storage of InferenceService test-isvc, 300s"],
    );

    walk.chapter("Worked example: a new webhook");
    walk.shows(
        "What is detected: the component, the type, and the webhook with its name, type and path",
        "upgrade diff --from knowledge/v2.20 --to knowledge/v2.21 --format json",
        10,
        |ran| {
            let report = ran.json();
            let rows = list(&report, "componentChanges");
            let found = rows.flat_map(|row| list(row, "changes").map(move |change| (row, change)));
            let found = found.filter(|(_, change)| text(change, "type") == "WebhookAdded");
            let line =
                |(row, change): (&Value, &Value)| format!("{}: {}\n", text(row, "componentName"), change["webhook"]);
            found.map(line).collect()
        },
        &[concat!(
            r#"llmisvc-controller-manager: {"name":"validating.llmisvc.kserve.io","type":"validating","#,
            r#""path":"/validate-llmisvc-v1alpha1"}"#
        )],
    );
    walk.shows(
        "What is generated is the published experiment; the time to recover is the model's",
        "upgrade validate worked-suite",
        0,
        |ran| {
            let ours = yaml(folder.join("worked-suite/webhook-added-llmisvc-validator.yaml"));
            let published = yaml(folder.join("worked/llmisvc-webhook-added.yaml"));
            format!("{}{}", ran.stdout, same(&ours, &published))
        },
        &["4 experiments are valid", "the same: WebhookDisrupt of validating.llmisvc.kserve.io, 300s"],
    );
}

/// Says what the experiments do, if they do the same.
fn same(ours: &Value, published: &Value) -> String {
    let (one, other) = (substance(ours), substance(published));
    if one != other {
        return format!("not the same:\n{one:#}\n{other:#}");
    }
    let injection = &ours["spec"]["injection"];
    let parameters = &injection["parameters"];
    let what = match text(parameters, "webhookName") {
        "" => {
            format!("spec.{} of {} {}", text(parameters, "field"), text(parameters, "kind"), text(parameters, "name"))
        }
        name => name.to_owned(),
    };
    let recovery = text(&ours["spec"]["hypothesis"], "recoveryTimeout");
    format!("the same: {} of {what}, {recovery}", text(injection, "type"))
}

/// The objects that the steady state of an experiment looks at.
fn checked(file: &Path) -> String {
    let experiment = yaml(file);
    let checks = list(&experiment["spec"]["steadyState"], "checks");
    let mut names: Vec<String> =
        checks.map(|check| format!("{}/{}\n", text(check, "kind"), text(check, "name"))).collect();
    names.sort();
    names.concat()
}

/// The times to recover of a suite, each once.
fn recovery_times(folder: &Path) -> String {
    let files = super::files(folder);
    let experiments = files.iter().filter(|file| !file.ends_with("suite-manifest.yaml"));
    let mut times: Vec<String> =
        experiments.map(|file| text(&yaml(file)["spec"]["hypothesis"], "recoveryTimeout").to_owned()).collect();
    times.sort();
    times.dedup();
    times.join(" ")
}
