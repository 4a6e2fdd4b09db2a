//! Requirements for model files, and the errors for files that do not meet them.

use std::sync::Arc;

use pushback_objects::source::Positions;
use serde_json::{Value, json};

use super::*;

fn read(documents: &[Value]) -> Result<Release, Vec<String>> {
    let documents: Vec<Document> = documents
        .iter()
        .map(|value| Document { value: value.clone(), positions: Arc::new(Positions::of_file("m.yaml")) })
        .collect();
    release(&documents, Vec::new()).map_err(|errors| {
        errors
            .iter()
            .map(|error| format!("{error}{}", error.hints.iter().map(|hint| format!(" | {hint}")).collect::<String>()))
            .collect()
    })
}

fn minimal() -> Value {
    json!({
        "operator": {"name": "o", "namespace": "n"},
        "components": [{
            "name": "c",
            "controller": "K",
            "managedResources": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}],
        }],
        "recovery": {"reconcileTimeout": "300s", "maxReconcileCycles": 10},
    })
}

#[test]
fn the_smallest_model_is_read() {
    let release = read(&[minimal()]).unwrap();
    let operator = &release.operators[0];
    assert_eq!((operator.name.as_str(), operator.namespace.as_str()), ("o", "n"));
    assert_eq!(operator.recovery, Recovery { reconcile_timeout_seconds: 300, max_reconcile_cycles: 10 });
    assert_eq!(operator.components[0].resources[0].object.to_string(), "Deployment d");
}

#[test]
fn all_errors_are_told_at_once() {
    let mut model = minimal();
    model["operator"]["versoin"] = json!("1.0");
    model["components"][0]["managedResources"][0]["labels"] = json!({"a": 1});
    model["components"][0]["webhooks"] = json!([{"name": "w", "type": "validatng", "path": "/"}]);
    model["recovery"]["reconcileTimeout"] = json!("5 minutes");
    assert_eq!(
        read(&[model]).unwrap_err(),
        [
            "m.yaml: operator.versoin: unknown key | did you mean `version`?",
            "m.yaml: components[0].managedResources[0].labels.a: expected a string, found the number 1 | write it in quotes: \"1\"",
            "m.yaml: components[0].webhooks[0].type: expected `validating` or `mutating`, found \"validatng\" | did you mean `validating`?",
            "m.yaml: recovery.reconcileTimeout: expected a duration such as 90s, 5m or 1h30m, found \"5 minutes\"",
        ]
    );
}

#[test]
fn documents_of_one_operator_are_merged() {
    let mut other = minimal();
    other["components"][0]["name"] = json!("other");
    let release = read(&[minimal(), other]).unwrap();
    let names: Vec<_> = release.operators[0].components.iter().map(|component| component.name.as_str()).collect();
    assert_eq!((release.operators.len(), names), (1, vec!["c", "other"]));
}

#[test]
fn of_very_many_errors_the_first_are_told() {
    let mut model = minimal();
    for number in 0..1_000 {
        model["operator"][format!("key{number}")] = json!(1);
    }
    let errors = read(&[model]).unwrap_err();
    assert_eq!(errors.len(), 100);
    assert!(errors[0].starts_with("m.yaml: operator.key0: unknown key"), "{}", errors[0]);
}

#[test]
fn what_is_null_is_absent() {
    let mut model = minimal();
    model["components"][0]["webhooks"] = Value::Null;
    model["operator"]["version"] = Value::Null;
    assert!(read(&[model.clone()]).is_ok());
    model["operator"]["namespace"] = Value::Null;
    assert_eq!(read(&[model]).unwrap_err(), ["m.yaml: operator: missing key `namespace`"]);
}
