//! Clients of a served version that lacks fields of another one, under strategy None.

use serde_json::{Value, json};

use super::*;

/// A CRD whose versions, v1 stored and v1beta1, have these text fields.
fn crd(v1: &[&str], v1beta1: &[&str]) -> Value {
    let spec = |fields: &[&str]| {
        let fields: Map<String, Value> =
            fields.iter().map(|it| ((*it).to_owned(), json!({"type": "string"}))).collect();
        json!({"type": "object", "properties": fields})
    };
    edited(|crd| {
        for (index, fields) in [v1, v1beta1].into_iter().enumerate() {
            let version = &mut crd["spec"]["versions"][index];
            version["schema"]["openAPIV3Schema"]["properties"]["spec"] = spec(fields);
            let version = version.as_object_mut().expect("a version");
            version.retain(|key, _| ["name", "served", "storage", "schema"].contains(&key.as_str()));
        }
        crd["status"] = json!({"storedVersions": ["v1"]});
    })
}

fn holding(name: &str, fields: Value, version: &str) -> Value {
    json!({
        "apiVersion": "ex.com/v1", "kind": "Foo",
        "metadata": {"name": name, "namespace": "shop", "managedFields": [
            {"manager": "gitops", "apiVersion": format!("ex.com/{version}"), "operation": "Update", "time": "2026-01-01T00:00:00Z"},
        ]},
        "spec": fields,
    })
}

/// Findings of an update with these objects, as check, severity, version, fields and affected objects.
fn told(old: Value, new: Value, objects: Vec<Value>) -> Vec<String> {
    let report = run_with(vec![update(old, new)], &Value::Null, Ok(objects));
    let of_clients = report.findings.iter().filter(|finding| finding.check == "crossVersionLoss");
    let line = |finding: &Finding| {
        let (version, fields) = (finding.version.clone().unwrap_or_default(), finding.old.clone().unwrap_or_default());
        let writers = finding.version_use.iter().flat_map(|used| &used.writers).map(|writer| writer.manager.as_str());
        let writers: Vec<&str> = writers.collect();
        format!("{:?} {:?} {version} {fields} {} {writers:?}", finding.verdict, finding.severity, finding.affected())
    };
    of_clients.map(line).collect()
}

#[test]
fn field_gained_by_one_of_two_served_versions_is_named_and_not_refused() {
    let (old, new) = (crd(&["a"], &["a"]), crd(&["a", "b"], &["a"]));
    assert_eq!(told(old.clone(), new.clone(), Vec::new()), [r#"Change Warning v1beta1 ["spec.b"] 0 []"#]);
    let report = run_with(vec![update(old.clone(), new.clone())], &Value::Null, Ok(Vec::new()));
    assert!(report.outcome != Outcome::Refused, "{}", lines(&report));
    let client = holding("a", json!({"a": "x"}), "v1beta1");
    assert_eq!(told(old, new, vec![client]), [r#"Change Warning v1beta1 ["spec.b"] 0 ["gitops"]"#]);
}

#[test]
fn field_gained_by_a_version_that_is_not_stored_is_named() {
    let (old, new) = (crd(&["a"], &["a"]), crd(&["a"], &["a", "b"]));
    assert_eq!(told(old, new, Vec::new()), [r#"Change Warning v1beta1 ["spec.b"] 0 []"#]);
}

#[test]
fn loss_that_was_there_before_is_named_only_if_an_object_holds_the_field() {
    let (old, mut new) = (crd(&["a", "b"], &["a"]), crd(&["a", "b"], &["a"]));
    new["metadata"]["labels"] = json!({"release": "2"});
    assert_eq!(told(old.clone(), new.clone(), Vec::new()), [""; 0]);
    let without = holding("a", json!({"a": "x"}), "v1");
    assert_eq!(told(old.clone(), new.clone(), vec![without.clone()]), [""; 0]);
    let with = holding("b", json!({"b": "x"}), "v1");
    assert_eq!(told(old, new, vec![without, with]), [r#"Change Warning v1beta1 ["spec.b"] 1 []"#]);
}

#[test]
fn new_served_version_with_more_fields_is_named_at_the_version_that_lacks_them() {
    let mut old = crd(&["a"], &["a"]);
    old["spec"]["versions"].as_array_mut().expect("versions").remove(0);
    old["spec"]["versions"][0]["storage"] = json!(true);
    old["status"]["storedVersions"] = json!(["v1beta1"]);
    let mut new = crd(&["a", "b"], &["a"]);
    new["status"]["storedVersions"] = json!(["v1beta1"]);
    let found = told(old, new, Vec::new());
    assert_eq!(found, [r#"Change Warning v1beta1 ["spec.b"] 0 []"#]);
}

#[test]
fn version_that_gains_a_part_of_what_it_lacks_and_versions_with_a_webhook_are_not_named() {
    let nested = |fields: &[&str]| {
        let mut value = crd(&["a"], &["a"]);
        let fields: Map<String, Value> =
            fields.iter().map(|it| ((*it).to_owned(), json!({"type": "string"}))).collect();
        value["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["c"] =
            json!({"type": "object", "properties": {"d": {"type": "string"}, "e": {"type": "string"}}});
        if !fields.is_empty() {
            value["spec"]["versions"][1]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["c"] =
                json!({"type": "object", "properties": fields});
        }
        value
    };
    assert_eq!(told(nested(&[]), nested(&["d"]), Vec::new()), [""; 0]);
    let (old, mut new) = (crd(&["a"], &["a"]), crd(&["a", "b"], &["a"]));
    new["spec"]["conversion"] = json!({"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"],
        "clientConfig": {"url": "https://example.com/convert"}}});
    assert_eq!(told(old, new, Vec::new()), [""; 0]);
}
