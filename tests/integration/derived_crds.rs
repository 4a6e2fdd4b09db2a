//! Objects that controllers make CRDs from, and bundles of OLM, on folders: the verdict, and the positions of findings.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::support::{Pushback, TestCase, cases};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        Nothing: change_of_an_object_that_defines_a_crd_is_judged_by_its_crd,
        Nothing: unreadable_object_that_defines_a_crd_is_refused_with_its_place,
        Nothing: bundle_of_olm_is_judged_by_its_crds,
    ]
}

fn data(path: &str) -> String {
    format!("{}/tests/data/{path}", env!("CARGO_MANIFEST_DIR"))
}

/// Compares two folders of the test data, and returns the JSON report.
fn compared(folder: &str, new: &str, old: &str, code: i32) -> Value {
    let cluster = format!("dir:{}", data(&format!("{folder}/{old}")));
    let manifests = data(&format!("{folder}/{new}"));
    Pushback::new().run(&["check", "-f", &manifests, "--cluster", &cluster, "-o", "json"]).expect(code).json()
}

/// CRD, check, the object that defines the CRD, line and column of each breaking finding.
fn breaking(report: &Value) -> BTreeSet<String> {
    let findings = report["findings"].as_array().expect("findings");
    let breaking = findings.iter().filter(|finding| finding["verdict"] == "breaking");
    breaking
        .map(|finding| {
            let position = &finding["position"];
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            format!(
                "{} {} {}/{} {}:{}",
                text(&finding["object"]["name"]),
                text(&finding["check"]),
                text(&finding["derivedFrom"]["kind"]),
                text(&finding["derivedFrom"]["name"]),
                position["line"],
                position["column"]
            )
        })
        .collect()
}

fn change_of_an_object_that_defines_a_crd_is_judged_by_its_crd() {
    let expected = [
        "applications.kro.run default ResourceGraphDefinition/my-app 28:5",
        "applications.kro.run default ResourceGraphDefinition/my-app 30:7",
        "applications.kro.run existingFieldRemoval ResourceGraphDefinition/my-app 28:5",
        "applications.kro.run type ResourceGraphDefinition/my-app 30:7",
        "buckets.storage.example.org enum CompositeResourceDefinition/buckets.storage.example.org 19:38",
        "buckets.storage.example.org existingFieldRemoval CompositeResourceDefinition/buckets.storage.example.org 18:13",
        "k8srequiredlabels.constraints.gatekeeper.sh type ConstraintTemplate/k8srequiredlabels 44:22",
    ];
    let found = breaking(&compared("derived-crds", "new", "old", 10));
    assert_eq!(found, expected.map(str::to_owned).into());
    assert_eq!(breaking(&compared("derived-crds", "safe", "old", 0)), BTreeSet::new());
    assert_eq!(breaking(&compared("derived-crds", "old", "old", 0)), BTreeSet::new());
}

fn unreadable_object_that_defines_a_crd_is_refused_with_its_place() {
    let pushback = Pushback::new();
    pushback.write(
        "new/graph.yaml",
        "apiVersion: kro.run/v1alpha1\nkind: ResourceGraphDefinition\nmetadata: {name: my-app}\nspec:\n  schema:\n    \
         apiVersion: v1alpha1\n    kind: Application\n    spec: {name: A}\n    types:\n      A: '[]B'\n      B: {a: A}\n",
    );
    let old = format!("dir:{}", data("derived-crds/old"));
    let report = pushback.run(&["check", "-f", "new", "--cluster", &old, "-o", "json"]).expect(10).json();
    let findings = report["findings"].as_array().expect("findings");
    let finding = findings.iter().find(|finding| finding["check"] == "derivedCrd").expect("a finding");
    assert_eq!((&finding["verdict"], &finding["object"]["name"]), (&"unknown".into(), &"my-app".into()));
    assert_eq!((&finding["position"]["line"], &finding["position"]["column"]), (&10.into(), &7.into()));
}

fn bundle_of_olm_is_judged_by_its_crds() {
    let manifests = |side: &str| data(&format!("olm-bundle/{side}"));
    let pushback = Pushback::new();
    let cluster = format!("dir:{}/manifests", manifests("old"));
    for new in [manifests("new"), manifests("new") + "/manifests"] {
        let report = pushback.run(&["check", "-f", &new, "--cluster", &cluster, "-o", "json"]).expect(10).json();
        assert_eq!(breaking(&report), BTreeSet::from(["memcacheds.cache.example.com type / 19:22".to_owned()]));
    }
}
