//! `pushback serve-admission`: as a server by itself, and behind a real API server.

mod behind;
mod manifests;
mod requests;
mod server;

use serde_json::{Value, json};

use crate::support::TestCase;

pub(crate) fn tests() -> Vec<TestCase> {
    [behind::tests(), manifests::tests(), requests::tests()].concat()
}

/// A CRD of a group whose field `spec.f` has a schema.
fn crd(group: &str, field: &Value) -> Value {
    let spec = json!({"type": "object", "properties": {"f": field}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("foos.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"kind": "Foo", "listKind": "FooList", "plural": "foos", "singular": "foo"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
            }],
        },
    })
}

fn wide(group: &str) -> Value {
    crd(group, &json!({"type": "string"}))
}

fn narrow(group: &str) -> Value {
    crd(group, &json!({"type": "string", "enum": ["A"]}))
}

/// The review of an update, or of a deletion if `new` is null.
fn review(old: &Value, new: &Value) -> Vec<u8> {
    let operation = if new.is_null() { "DELETE" } else { "UPDATE" };
    let request = json!({
        "uid": "u", "operation": operation, "name": old["metadata"]["name"],
        "kind": {"group": "apiextensions.k8s.io", "version": "v1", "kind": "CustomResourceDefinition"},
        "userInfo": {"username": "dev"}, "oldObject": old, "object": new,
    });
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}).to_string().into_bytes()
}
