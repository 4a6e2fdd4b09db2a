//! `pushback serve-conversion`: as a server by itself, and behind a real definition.

mod behind;
mod first;
mod person;
mod reload;
mod requests;
mod start;

use serde_json::{Value, json};

use crate::support::TestCase;

pub(crate) fn tests() -> Vec<TestCase> {
    [behind::tests(), first::tests(), person::tests(), reload::tests(), requests::tests(), start::tests()].concat()
}

/// A definition for tests without a cluster: v1 and v2 of Test have a field in common, and one of their own.
fn definition() -> Value {
    let version = |name: &str, own: &str, storage: bool| {
        let spec = json!({"type": "object", "properties": {"both": {"type": "string"}, own: {"type": "string"}}});
        json!({
            "name": name, "served": true, "storage": storage,
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
        })
    };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "tests.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"kind": "Test", "plural": "tests"},
            "versions": [version("v1", "old", false), version("v2", "new", true)],
        },
    })
}

/// A plan for a definition; `more` is its other keys.
fn plan(name: &str, more: Value) -> Value {
    let mut plan = json!({
        "apiVersion": "pushback.dev/v1alpha1", "kind": "ConversionPlan", "metadata": {"name": name},
        "policy": {"unassessed": "stash"},
    });
    if let (Value::Object(plan), Value::Object(more)) = (&mut plan, more) {
        plan.extend(more);
    }
    plan
}

/// An object of v1 of [`definition`].
fn object(name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Test", "metadata": {"name": name}, "spec": spec})
}

/// A request to convert objects to v2.
fn review(objects: &[Value]) -> Vec<u8> {
    let request = json!({"uid": "u", "desiredAPIVersion": "example.com/v2", "objects": objects});
    let review = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": request});
    review.to_string().into_bytes()
}
