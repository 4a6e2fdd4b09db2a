//! The report for each kind of change, in both directions, with the verdict.

mod bounds;
mod fields;
mod lifecycle;
mod properties;
mod published;

use std::sync::Arc;

use pushback_objects::source::testing::numbered;
use serde_json::{Value, json};

use super::*;
use crate::difference::INVALID;

/// A definition whose only version has this schema for `spec`.
fn with_spec(spec: &Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "foos.ex.com"},
        "spec": {
            "group": "ex.com", "scope": "Namespaced", "names": {"kind": "Foo", "plural": "foos"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
            }],
        },
    })
}

/// Like [`with_spec`], with one field in `spec`.
fn with_field(field: &Value) -> Value {
    with_spec(&json!({"type": "object", "properties": {"f": field}}))
}

fn definition(value: Value) -> Definition {
    let name = value["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    Definition { name, value: Arc::new(value), positions: None }
}

/// All changes, including those of definitions that a server rejects; [`refused`] shows the rejections.
fn changes(old: &Value, new: &Value) -> Vec<DefinitionChange> {
    let mut all = compare(&[definition(old.clone())], &[definition(new.clone())], Options::default());
    all.retain(|change| change.keyword != INVALID);
    all
}

#[test]
fn refused_definitions_are_told_once_and_at_their_place() {
    let old = with_field(&json!({"type": "string"}));
    let new = with_field(&json!({"type": "string", "uniqueItems": true}));
    let refused = |old: &Value, new: &Value| -> Vec<String> {
        let all = compare(&[definition(old.clone())], &[definition(new.clone())], Options::default());
        let refused = all.iter().filter(|change| change.keyword == INVALID);
        refused.map(|change| format!("{} {}", change.version, line(change))).collect()
    };
    assert_eq!(refused(&old, &new), ["v1 breaking invalid spec.f breaking"]);
    // A defect that existed before is not reported, nor is a fixed one.
    assert_eq!(refused(&new, &old), [""; 0]);
    let mut described = new.clone();
    described["spec"]["versions"][0]["deprecated"] = json!(true);
    assert_eq!(refused(&new, &described), [""; 0]);
}

/// A change on one line: severity, type or keyword, path, verdict.
fn line(change: &DefinitionChange) -> String {
    let what = match change.change_type {
        ChangeType::ConstraintChanged => change.keyword.clone(),
        change_type => change_type.name(),
    };
    let path = if change.path.is_empty() { "." } else { &change.path };
    format!("{} {what} {path} {}", change.severity.as_str(), change.verdict.as_str())
}

fn lines(old: &Value, new: &Value) -> Vec<String> {
    changes(old, new).iter().map(line).collect()
}

/// Asserts the lines of a change and of its reverse.
fn expect(old: &Value, new: &Value, forward: &[&str], back: &[&str]) {
    assert_eq!(lines(old, new), forward, "{old} -> {new}");
    assert_eq!(lines(new, old), back, "back: {new} -> {old}");
}

#[test]
fn changes_are_grouped_by_definition_and_version_and_counted() {
    let old = with_field(&json!({"type": "integer", "default": 1}));
    let mut new = with_field(&json!({"type": "string"}));
    new["spec"]["scope"] = json!("Cluster");
    let gone = json!({"metadata": {"name": "bars.ex.com"}, "spec": {"names": {"kind": "Bar"}}});
    let reported = compare(&[definition(old), definition(gone)], &[definition(new)], Options::default());
    let diff = DefinitionsDiff::of(reported.clone());
    assert_eq!(diff.changes().cloned().collect::<Vec<_>>(), reported);
    assert_eq!(diff.changes().map(|change| change.severity).max(), Some(Severity::Breaking));
    let names: Vec<_> = diff.crds.iter().map(|crd| (crd.crd_name.as_str(), crd.change_type)).collect();
    assert_eq!(names, [("bars.ex.com", Presence::Removed), ("foos.ex.com", Presence::Modified)]);
    let foos = &diff.crds[1];
    assert_eq!((foos.changes.len(), foos.api_versions.len()), (1, 1));
    assert_eq!(foos.api_versions[0].schema_changes[0].change_type, ChangeType::TypeChanged);
    let summary = &diff.summary;
    assert_eq!((summary.crds_added, summary.crds_removed, summary.crds_modified), (0, 1, 1));
    assert_eq!((summary.breaking_changes, summary.warnings, summary.info_changes), (3, 0, 0));
    assert_eq!(summary.verdicts, Verdicts { safe: 0, breaking: 3, unknown: 0 });
}
