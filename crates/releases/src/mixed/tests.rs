//! What remains comparable between a model file and a derived model.

use std::sync::Arc;

use pushback_objects::source::{Document, Positions};
use serde_json::{Value, json};

use super::make_comparable;
use crate::compare::{Options, compare};
use crate::derive::{Given, Settings, derive};
use crate::model::Release;
use crate::model_file;

fn derived(replicas: u64) -> Release {
    let template = json!({
        "metadata": {"labels": {"app": "web"}},
        "spec": {"serviceAccountName": "web", "containers": [{"name": "c", "image": "example.com/web:1"}]}
    });
    let selector = json!({"matchLabels": {"app": "web"}});
    let metadata = |name: &str| json!({"name": name, "namespace": "prod", "labels": {"team": "a"}});
    let objects = [
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata("web"),
               "spec": {"replicas": replicas, "selector": selector, "template": template}}),
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata("web")}),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata("settings")}),
    ];
    let given = objects.map(|value| Given { value: value.into(), positions: None });
    let settings = Settings { app: "shop".to_owned(), version: "1".to_owned(), ..Settings::default() };
    derive(&given, &settings)
}

fn model(document: Value) -> Release {
    let document = Document { value: document, positions: Arc::new(Positions::of_file("model.yaml")) };
    model_file::release(&[document], Vec::new()).expect("the model is sound")
}

fn written(replicas: u64, account: &str) -> Release {
    depending(replicas, account, &[])
}

fn depending(replicas: u64, account: &str, dependencies: &[&str]) -> Release {
    model(json!({
        "operator": {"name": "shop", "namespace": "prod", "version": "1"},
        "components": [{
            "name": "web",
            "controller": "Shop",
            "managedResources": [
                {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "namespace": "prod",
                 "labels": {"app": "web"}, "expectedSpec": {"replicas": replicas}},
                {"apiVersion": "v1", "kind": "ServiceAccount", "name": account, "namespace": "prod"},
                {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "name": "leader", "namespace": "prod"},
            ],
            "dependencies": dependencies,
            "steadyState": {"checks": [{"type": "conditionTrue", "apiVersion": "apps/v1", "kind": "Deployment", "name": "web",
                                        "conditionType": "Progressing"}], "timeout": "90s"},
            "finalizers": ["shop.example.com/cleanup"],
        }],
        "recovery": {"reconcileTimeout": "60s", "maxReconcileCycles": 3},
    }))
}

fn changes(mut written: Release, mut derived: Release) -> Vec<String> {
    make_comparable(&mut written, &mut derived);
    let diff = compare(&written, &derived, Options::default());
    let changes = diff.component_changes.iter().flat_map(|component| &component.changes);
    changes.map(|change| format!("{} {}", change.change_type.name(), change.path)).collect()
}

#[test]
fn a_model_of_the_very_same_release_shows_what_manifests_cannot_and_no_change() {
    assert_eq!(changes(written(1, "web"), derived(1)), ["NotObservable finalizers"]);
    let depending = depending(1, "web", &["database"]);
    assert_eq!(changes(depending, derived(1)), ["NotObservable dependencies", "NotObservable finalizers"]);
}

#[test]
fn what_both_can_say_is_compared() {
    let changed = changes(written(1, "old"), derived(3));
    for expected in ["SpecChanged Deployment/web spec.replicas", "ResourceRemoved ServiceAccount/old"] {
        assert!(changed.iter().any(|change| change == expected), "{expected} in {changed:?}");
    }
    assert!(!changed.iter().any(|change| change.contains("Lease") || change.contains("ConfigMap")), "{changed:?}");
}
