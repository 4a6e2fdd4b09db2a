//! The chapters on the four commands: the lines as they are published, the shape of the report, and the suite's folder.

use super::{Walk, text};
use crate::support::Ran;

fn hint(ran: &Ran) -> String {
    ran.complaints().lines().filter(|line| line.starts_with("hint: ")).collect()
}

fn failed(ran: &Ran) -> String {
    let report = ran.json();
    let checks = super::list(&report, "checks");
    let failed = checks.filter(|check| super::list(check, "problems").next().is_some());
    failed.map(|check| format!("{}\n", text(check, "name"))).collect()
}

pub(super) fn walk(walk: &mut Walk) {
    walk.chapter("operator-chaos diff");
    walk.shows(
        "Two folders of models become a report; its summary",
        "upgrade diff --from report/v2.20 --to report/v2.21 --format json",
        10,
        |ran| {
            let summary = ran.json()["summary"].clone();
            let keys = [
                "componentsAdded",
                "componentsRemoved",
                "componentsModified",
                "breakingChanges",
                "warnings",
                "infoChanges",
            ];
            keys.map(|key| format!("{key}: {}\n", summary[key])).concat()
        },
        &[
            "componentsAdded: 1",
            "componentsRemoved: 0",
            "componentsModified: 3",
            "breakingChanges: 2",
            "warnings: 1",
            "infoChanges: 5",
        ],
    );
    walk.shows(
        "… and its rows: a component, how it was paired, and its changes with type, severity, path and message",
        "upgrade diff --from report/v2.20 --to report/v2.21 --format json --breaking",
        10,
        |ran| {
            let row = ran.json()["componentChanges"][0].clone();
            let change = &row["changes"][0];
            let keys = ["type", "severity", "path", "message"].map(|key| format!("{key}: {}\n", text(change, key)));
            format!("{} {}\n{}", text(&row, "componentName"), text(&row, "matchType"), keys.concat())
        },
        &[
            "kserve-controller-manager exact",
            "type: CRDSchemaChange",
            "severity: breaking",
            "path: spec.storage",
            "message: field of type object removed",
        ],
    );
    walk.shows(
        "The command is `upgrade diff`: `diff` shows what apply would change, and says so",
        "diff --from knowledge/v2.20 --to knowledge/v2.21",
        1,
        hint,
        &["hint: two releases of an operator are compared by `pushback upgrade diff --from OLD --to NEW`"],
    );

    walk.chapter("operator-chaos diff-crds");
    let directory = walk.place.directory();
    for side in ["old", "new"] {
        let version = if side == "old" { "v2.20" } else { "v2.21" };
        let content = walk.place.read(&format!("crds/storage-{side}.yaml"));
        walk.place.write(&format!("crds/{version}/inferenceservice.yaml"), content);
    }
    walk.shows(
        "Definitions alone, without models; the published line writes JSON to the file that it names",
        "diff-crds --old crds/v2.20/inferenceservice.yaml --new crds/v2.21/inferenceservice.yaml --output schema-diff.json",
        10,
        |ran| {
            let written = std::fs::read_to_string(directory.join("schema-diff.json")).expect("the report");
            assert_eq!(ran.stdout, "");
            super::definition_changes(&Ran { stdout: written, ..ran.clone() })
        },
        &["breaking FieldRemoved spec.storage"],
    );

    walk.chapter("operator-chaos validate-version");
    walk.shows(
        "A folder that has all is valid",
        "validate-version knowledge/v2.21",
        0,
        |ran| {
            ran.stdout
                .lines()
                .filter(|line| line.trim_start().starts_with("ok "))
                .map(|line| format!("{}\n", line.trim()))
                .collect()
        },
        &[
            "ok     every model can be read",
            "ok     every model names version, platform and olmChannel",
            "ok     definitions stand in crds/",
            "ok     the name of the directory is the version of every model",
            "ok     models of one operator do not contradict each other",
        ],
    );
    let model = walk.place.read("knowledge/v2.21/kserve.yaml");
    let definition = walk.place.read("knowledge/v2.21/crds/inferenceservice.yaml");
    let twice = model.replace("namespace: kserve\n  version", "namespace: other\n  version");
    for (statement, folder, files, check) in [
        (
            "version is missing",
            "unnamed/v2.21",
            vec![("kserve.yaml", model.replace("  version: \"2.21\"\n", ""))],
            "metadata",
        ),
        (
            "platform is missing",
            "nowhere/v2.21",
            vec![("kserve.yaml", model.replace("  platform: odh\n", ""))],
            "metadata",
        ),
        (
            "olmChannel is missing",
            "off/v2.21",
            vec![("kserve.yaml", model.replace("  olmChannel: stable-2.21\n", ""))],
            "metadata",
        ),
        (
            "The folder is called otherwise than the version",
            "misnamed/v2.12",
            vec![("kserve.yaml", model.clone())],
            "directory",
        ),
        (
            "Two models of one operator contradict each other",
            "two/v2.21",
            vec![("a.yaml", model.clone()), ("b.yaml", twice)],
            "operators",
        ),
    ] {
        for (name, content) in files {
            walk.place.write(&format!("{folder}/{name}"), content);
        }
        walk.place.write(&format!("{folder}/crds/inferenceservice.yaml"), &definition);
        let command = format!("validate-version {folder} --format json");
        walk.shows(statement, &command, 1, failed, &[check]);
    }
    walk.place.write("bare/v2.21/kserve.yaml", &model);
    walk.shows("There are no definitions in crds/", "validate-version bare/v2.21 --format json", 1, failed, &["crds"]);

    walk.chapter("operator-chaos simulate-upgrade");
    walk.shows(
        "The published line generates, and runs nothing; the suite's folder is the published one",
        "simulate-upgrade --from knowledge/v2.20/ --to knowledge/v2.21/ --output experiments/upgrade-suite/",
        0,
        |_| {
            let files = super::files(&directory.join("experiments/upgrade-suite"));
            files.iter().filter_map(|file| file.file_name()?.to_str()).map(|name| format!("{name}\n")).collect()
        },
        &[
            "component-added-llmisvc.yaml",
            "crd-breaking-storage-removed.yaml",
            "dependency-added-modelregistry.yaml",
            "suite-manifest.yaml",
            "webhook-added-llmisvc-validator.yaml",
        ],
    );
    walk.shows(
        "The published line that runs it lacks the namespaces that may be touched: nothing is run without",
        "simulate-upgrade --from knowledge/v2.20/ --to knowledge/v2.21/ --execute --report-dir reports/upgrade-v2.20-to-v2.21/",
        1,
        |ran| ran.complaints().lines().filter(|line| line.contains("--allow-namespace")).take(1).collect(),
        &["  --allow-namespace <NAMESPACE>"],
    );
    walk.shows(
        "With them it asks for a cluster",
        "simulate-upgrade --from knowledge/v2.20/ --to knowledge/v2.21/ --execute --report-dir reports --allow-namespace kserve",
        1,
        |ran| ran.complaints().lines().filter_map(|line| line.split(':').nth(1)).take(1).collect(),
        &[" no kubeconfig found"],
    );
}
