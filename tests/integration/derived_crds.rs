//! Objects that controllers make CRDs from, and bundles of OLM, on folders: the verdict, and the positions of findings.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::apply::TestApp;
use crate::support::{Options, Pushback, TestCase, TestCluster, cases, wait_until};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        Nothing: change_of_an_object_that_defines_a_crd_is_judged_by_its_crd,
        Nothing: unreadable_object_that_defines_a_crd_is_refused_with_its_place,
        Nothing: bundle_of_olm_is_judged_by_its_crds,
        Nothing: saved_facts_give_the_verdict_again,
        ApiServer: objects_and_crd_of_the_server_decide,
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

fn saved_facts_give_the_verdict_again() {
    let pushback = Pushback::new();
    let cluster = format!("dir:{}", data("derived-crds/old"));
    let manifests = data("derived-crds/new");
    let check = ["check", "-f", &manifests, "--cluster", &cluster, "--facts-out", "facts.json", "-o", "json"];
    let report = pushback.run(&check).expect(10).json();
    let again = pushback.run(&["check", "--facts", "facts.json", "-o", "json"]).expect(10).json();
    assert_eq!(breaking(&report), breaking(&again));
}

/// A CRD with one version `v1alpha1` of `kro.run`.
fn crd(kind: &str, plural: &str, scope: &str, schema: &Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.kro.run")},
        "spec": {
            "group": "kro.run", "scope": scope,
            "names": {"kind": kind, "listKind": format!("{kind}List"), "plural": plural, "singular": kind.to_lowercase()},
            "versions": [{
                "name": "v1alpha1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": schema}},
            }],
        },
    })
}

fn graph(fields: &str) -> String {
    format!(
        "apiVersion: kro.run/v1alpha1\nkind: ResourceGraphDefinition\nmetadata: {{name: my-app}}\nspec:\n  schema:\n    \
         apiVersion: v1alpha1\n    kind: Application\n    spec:\n      name: string\n{fields}"
    )
}

/// There is no kro here: the test writes the CRD, with fields of another release of kro.
fn objects_and_crd_of_the_server_decide() {
    const SOON: Duration = Duration::from_secs(60);
    const APPLICATIONS: &str = "/apis/kro.run/v1alpha1/namespaces/default/applications";
    let cluster = TestCluster::start(&Options::default());
    let api = cluster.api();
    let open = json!({"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    api.apply(&crd("ResourceGraphDefinition", "resourcegraphdefinitions", "Cluster", &open)).ok();
    let graphs = "/apis/kro.run/v1alpha1/resourcegraphdefinitions";
    wait_until("graphs are served", SOON, || (api.get(graphs).status == 200).then_some(()));
    let app = TestApp::of(Pushback::on(&cluster), "graphs", "default");
    app.apply(&graph("      size: integer\n"), &[]).expect(0);
    let text = || json!({"type": "string"});
    let schema = json!({
        "spec": {"type": "object", "properties": {"name": text(), "size": {"type": "integer"}}},
        "status": {"type": "object", "properties": {"state": text(), "former": text()}},
    });
    api.apply(&crd("Application", "applications", "Namespaced", &schema)).ok();
    wait_until("applications are served", SOON, || (api.get(APPLICATIONS).status == 200).then_some(()));
    let object = json!({"apiVersion": "kro.run/v1alpha1", "kind": "Application", "metadata": {"name": "one"}, "spec": {"size": 3}});
    api.post(APPLICATIONS, &object).ok();
    let findings = |report: &Value, check: &str| -> Vec<Value> {
        let findings = report["findings"].as_array().expect("findings").iter();
        findings.filter(|finding| finding["check"] == check).cloned().collect()
    };
    let judged = |fields: &str, code: i32| {
        app.pushback.write("new.yaml", graph(fields));
        app.run("check", &["-f", "new.yaml"]).expect(code).json()
    };

    let report = judged("", 10);
    let removed = findings(&report, "existingFieldRemoval");
    assert_eq!(removed.len(), 1, "what kro adds is not removed: {removed:#?}");
    assert_eq!(removed[0]["liveObjects"], json!({"affected": 1, "examined": 1, "names": ["default/one"]}));
    assert_eq!(removed[0]["derivedFrom"]["name"], "my-app");
    let tightened = findings(&judged("      size: integer | minimum=2\n", 0), "minimum");
    assert_eq!(tightened[0]["decided"], json!({"by": "liveObjects", "was": "breaking"}));
    judged("      size: integer | minimum=5\n", 10);

    let refused = app.delete(&[]).expect(10);
    let findings = refused.events_of("finding");
    assert!(findings.iter().any(|event| event["finding"]["check"] == "crdDeletion"), "{findings:#?}");
    api.delete(&format!("{APPLICATIONS}/one")).ok();
    app.delete(&[]).expect(0);
}
