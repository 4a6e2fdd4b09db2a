//! What the server knows about an embedded resource without a schema: which type and version it may have, and its
//! metadata. Existing objects may have any of them; the search for examples tries readable ones first.

use std::sync::LazyLock;

use serde_json::{Value, json};

use super::formula::{Formula, Role};
use crate::schema::model::Schema;

/// Every type and version that the server accepts. Its requirements on metadata exceed what a schema can express. It
/// also accepts the Kelvin sign, which it lower-cases to k; that is left out.
static ANY: LazyLock<Schema> = LazyLock::new(|| resource("^[^/]*(/[^/]*)?$", "^[a-zA-Z]([-a-zA-Z0-9]*[a-zA-Z0-9])?$"));

/// Types and versions that are easy to read.
static READABLE: LazyLock<Schema> = LazyLock::new(|| resource("^v1$", "^[A-Z][a-z]*$"));

/// The metadata fields with their types.
static METADATA: LazyLock<Schema> = LazyLock::new(|| {
    let text = json!({"type": "string"});
    let texts = json!({"type": "object", "additionalProperties": text});
    let list = json!({"type": "array", "items": {"x-kubernetes-preserve-unknown-fields": true}});
    Schema::of(&json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "not": {"pattern": "[/%]|^[.][.]?$"}},
            "generateName": {"type": "string", "not": {"pattern": "[/%]"}},
            "namespace": {"type": "string", "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "maxLength": 63},
            "selfLink": text, "uid": text, "resourceVersion": text,
            "generation": {"type": "integer", "minimum": 0}, "deletionGracePeriodSeconds": {"type": "integer"},
            "creationTimestamp": text, "deletionTimestamp": text,
            "labels": texts, "annotations": texts, "ownerReferences": list, "finalizers": list, "managedFields": list,
        },
    }))
});

/// Metadata fields of which the server validates more than the type.
const MORE: [&str; 7] = [
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
    "managedFields",
    "creationTimestamp",
    "deletionTimestamp",
];

fn resource(api_version: &str, kind: &str) -> Schema {
    Schema::of(&json!({
        "required": ["apiVersion", "kind"],
        "properties": {
            "apiVersion": {"type": "string", "minLength": 1, "pattern": api_version},
            "kind": {"type": "string", "minLength": 1, "maxLength": 63, "pattern": kind},
            "metadata": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        },
    }))
}

/// The formulas of an embedded resource, readable ones first.
pub(super) fn is_resource() -> Vec<Formula<'static>> {
    vec![Formula::Satisfies(&READABLE, Role::Branch(None)), Formula::Satisfies(&ANY, Role::Branch(None))]
}

/// Every way in which a value is not an embedded resource, or loses metadata as one.
pub(super) fn ways_to_be_none() -> Vec<Formula<'static>> {
    let metadata = |inner: Formula<'static>| Formula::has("metadata", inner);
    let mut ways = vec![
        Formula::lacks("apiVersion"),
        Formula::lacks("kind"),
        Formula::Violates(&ANY, Role::Branch(None)),
        metadata(Formula::Violates(&METADATA, Role::Branch(None))),
        metadata(Formula::HasOther(vec![&METADATA], Box::new(Formula::anything()))),
    ];
    // Whether their content is valid is left to the pipeline.
    let some = |name: &str| {
        let empty = [Value::Object(serde_json::Map::new()), json!([]), json!("")];
        metadata(Formula::has(name, Formula::IsNot(std::rc::Rc::new(empty.to_vec()))))
    };
    ways.extend(MORE.into_iter().map(some));
    ways
}
