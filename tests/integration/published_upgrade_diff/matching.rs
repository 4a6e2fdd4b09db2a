//! The chapters on stages and on matching: what pairs components, how likeness is computed, and from where on it counts.

use super::{Walk, changes, pairs};

/// A model of one component, of which only what likeness looks at is said.
fn model(name: &str, controller: &str, resources: &[(&str, &str)]) -> String {
    let mut text = format!(
        "operator: {{name: o, namespace: shop}}\nrecovery: {{reconcileTimeout: 300s, maxReconcileCycles: 10}}\ncomponents:\n\
         - name: {name}\n  controller: {controller}\n  managedResources:\n"
    );
    for (index, (kind, labels)) in resources.iter().enumerate() {
        text +=
            &format!("  - {{apiVersion: v1, kind: {kind}, name: r{index}, namespace: shop, labels: {{{labels}}}}}\n");
    }
    text
}

pub(super) fn walk(walk: &mut Walk) {
    walk.chapter("Overview");
    walk.shows(
        "Two releases are compared: changed definitions, resources that change hands, and the graph of dependencies",
        "upgrade diff --from mapping/v2.20 --to mapping/v2.21 --format json",
        10,
        changes,
        &[
            "info ComponentAdded",
            "warning ComponentRemoved",
            "info ResourceAdded ConfigMap/settings",
            "info ResourceAdded InferenceService/defaults",
            "warning ResourceRemoved Service/left-behind",
            "warning WebhookAdded mutating/mutating.isvc.kserve.io",
            "warning FinalizerAdded inferenceservice.finalizers",
            "warning DependencyAdded modelregistry",
            "info RecoveryChanged recovery.reconcileTimeout",
            "breaking CRDSchemaChange spec.storage",
            "info RecoveryChanged recovery.reconcileTimeout",
        ],
    );
    walk.shows(
        "Stages one, two and three follow each other: paired, compared, and made into a suite of experiments",
        "simulate-upgrade --from knowledge/v2.20 --to knowledge/v2.21 --dry-run --format json",
        0,
        |ran| format!("{} experiments", ran.json()["experiments"].as_array().map_or(0, Vec::len)),
        &["4 experiments"],
    );

    walk.chapter("Matching");
    walk.shows(
        "Components of one name are a pair (the snippet): nothing else is left to compare in it",
        "upgrade diff --from same-name/v2.20 --to same-name/v2.21 --format json",
        0,
        |ran| ran.json()["summary"].to_string(),
        &[concat!(
            r#"{"componentsAdded":0,"componentsRemoved":0,"componentsModified":0,"componentsRenamed":0,"#,
            r#""breakingChanges":0,"warnings":0,"infoChanges":0}"#
        )],
    );
    walk.shows(
        "Those that are left are compared by likeness; the worked example: 0.4·2/3 + 0.3·2/3 + 0.2·1 + 0.1·2/3 = 0.7333",
        "upgrade diff --from renamed/v2.20 --to renamed/v2.21 --format json",
        10,
        pairs,
        &["fuzzy llmisvc-controller-manager <- llm-controller 0.7333"],
    );

    let place = &walk.place;
    place.write("like/old.yaml", model("old", "K", &[("Deployment", "x: '1'")]));
    for (file, controller, resources) in [
        ("all", "K", &[("Deployment", "x: '2'")][..]),
        ("kinds", "K", &[("Service", "x: '1'")]),
        ("labels", "K", &[("Deployment", "z: '1'")]),
        ("controller", "L", &[("Deployment", "x: '1'")]),
        ("count", "K", &[("Deployment", "x: '1'"), ("Deployment", "x: '1'")]),
        ("below", "K", &[("Service", "x: '1'"), ("Service", "x: '1'")]),
    ] {
        place.write(&format!("like/{file}.yaml"), model("new", controller, resources));
    }
    for (statement, file, code, expected) in [
        (
            "All four signals alike are 1; values of labels do not count, only their keys",
            "all",
            10,
            &["fuzzy new <- old 1.0000"][..],
        ),
        ("Kinds weigh 0.4, and exactly 0.6 is enough", "kinds", 10, &["fuzzy new <- old 0.6000"]),
        ("Label keys weigh 0.3", "labels", 10, &["fuzzy new <- old 0.7000"]),
        ("The controller weighs 0.2, all or nothing", "controller", 10, &["fuzzy new <- old 0.8000"]),
        ("The number of resources weighs 0.1: 1 − |1 − 2| / 2", "count", 10, &["fuzzy new <- old 0.9500"]),
        (
            "Below 0.6 there is no pair (0.55): one component went and another came",
            "below",
            0,
            &["added new", "removed old"],
        ),
    ] {
        let command = format!("upgrade diff --from like/old.yaml --to like/{file}.yaml --format json");
        walk.shows(statement, &command, code, pairs, expected);
    }

    let place = &walk.place;
    let resources = [("Deployment", "a: '', b: ''"), ("Service", "a: ''")];
    place.write("jaccard/old.yaml", model("old", "K", &resources));
    place.write("jaccard/new.yaml", model("new", "K", &[resources[0], resources[0], resources[1], resources[1]]));
    walk.shows(
        "Kinds and label keys are sets (Jaccard): what stands twice counts once, only the number differs",
        "upgrade diff --from jaccard/old.yaml --to jaccard/new.yaml --format json",
        10,
        pairs,
        &["fuzzy new <- old 0.9500"],
    );
}
