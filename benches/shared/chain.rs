//! A kind whose versions form a chain: every step renames a field, adds one, takes one away and changes a nested object.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// The fields of a version.
fn spec(version: usize) -> Value {
    let string = || json!({"type": "string"});
    let mut fields: BTreeMap<String, Value> = (0..12).map(|index| (format!("kept{index}"), string())).collect();
    fields.insert(format!("key{version}"), string());
    fields.insert(format!("only{version}"), string());
    for added in 2..=version {
        fields.insert(format!("added{added}"), string());
    }
    let nested = json!({"street": string(), "city": string(), format!("part{version}"): string()});
    fields.insert("address".to_owned(), json!({"type": "object", "properties": nested}));
    let item = json!({"name": string(), "port": {"type": "integer"}, format!("old{version}"): string()});
    fields.insert("items".to_owned(), json!({"type": "array", "items": {"type": "object", "properties": item}}));
    json!({"type": "object", "properties": fields})
}

/// The definition with so many versions.
pub(crate) fn definition(versions: usize) -> Value {
    let version = |index: usize| {
        let schema = json!({"type": "object", "properties": {"spec": spec(index)}});
        json!({
            "name": format!("v{index}"), "served": true, "storage": index == versions,
            "schema": {"openAPIV3Schema": schema},
        })
    };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "tests.example.com"},
        "spec": {"group": "example.com", "names": {"kind": "Test", "plural": "tests"},
                 "versions": (1..=versions).map(version).collect::<Vec<_>>()},
    })
}

/// The plan for it.
pub(crate) fn plan(versions: usize) -> Value {
    let step = |from: usize| {
        let to = from + 1;
        json!({"from": format!("v{from}"), "to": format!("v{to}"), "renames": {
            format!("spec.key{from}"): format!("spec.key{to}"),
            format!("spec.items[*].old{from}"): format!("spec.items[*].old{to}"),
        }})
    };
    json!({
        "apiVersion": "pushback.dev/v1alpha1", "kind": "ConversionPlan", "metadata": {"name": "tests.example.com"},
        "policy": {"unassessed": "stash"}, "steps": (1..versions).map(step).collect::<Vec<_>>(),
    })
}

/// An object of the first version, of about 1 KiB.
pub(crate) fn object(name: &str) -> Value {
    let mut spec: Map<String, Value> = (0..12).map(|index| (format!("kept{index}"), "some text".into())).collect();
    spec.insert("key1".to_owned(), "key".into());
    spec.insert("only1".to_owned(), "only here".into());
    spec.insert("address".to_owned(), json!({"street": "12 St James's Square", "city": "London", "part1": "SW1"}));
    let item = |index: usize| json!({"name": format!("item-{index}"), "port": 8000 + index, "old1": "value"});
    spec.insert("items".to_owned(), (0..9).map(item).collect());
    let metadata = json!({
        "name": name, "namespace": "a-namespace", "uid": "7e1d6c4e-0d4c-4d6e-9c55-6fd4a1f2b8c0",
        "labels": {"app.kubernetes.io/name": "test"},
    });
    json!({"apiVersion": "example.com/v1", "kind": "Test", "metadata": metadata, "spec": spec})
}
