//! The fields of an experiment: names, types, and which are mandatory. The runner parses strictly, so an unknown field
//! is an error, as is a type that the API server rejects.

use pushback_objects::object::describe;
use pushback_objects::source::PathSegment;
use pushback_objects::suggest;
use serde_json::{Map, Value};

use super::problems::Findings;

/// The type of a field.
#[derive(Clone, Copy, Debug)]
enum Shape {
    Text,
    Integer,
    Boolean,
    TextList,
    TextMap,
    Map(&'static [Field]),
    List(&'static [Field]),
    /// Set by the server or a controller.
    Anything,
}

#[derive(Clone, Copy, Debug)]
struct Field {
    name: &'static str,
    shape: Shape,
    required: bool,
}

const fn field(name: &'static str, shape: Shape) -> Field {
    Field { name, shape, required: false }
}

const fn required(name: &'static str, shape: Shape) -> Field {
    Field { name, shape, required: true }
}

const EXPERIMENT: &[Field] = &[
    required("apiVersion", Shape::Text),
    required("kind", Shape::Text),
    required("metadata", Shape::Map(METADATA)),
    required("spec", Shape::Map(SPEC)),
    field("status", Shape::Anything),
];

const METADATA: &[Field] = &[
    required("name", Shape::Text),
    field("generateName", Shape::Text),
    field("namespace", Shape::Text),
    field("labels", Shape::TextMap),
    field("annotations", Shape::TextMap),
    field("finalizers", Shape::TextList),
    field("ownerReferences", Shape::Anything),
    field("managedFields", Shape::Anything),
    field("selfLink", Shape::Anything),
    field("uid", Shape::Anything),
    field("resourceVersion", Shape::Anything),
    field("generation", Shape::Anything),
    field("creationTimestamp", Shape::Anything),
    field("deletionTimestamp", Shape::Anything),
    field("deletionGracePeriodSeconds", Shape::Anything),
];

const SPEC: &[Field] = &[
    required("target", Shape::Map(TARGET)),
    field("steadyState", Shape::Map(STEADY_STATE)),
    required("injection", Shape::Map(INJECTION)),
    required("blastRadius", Shape::Map(BLAST_RADIUS)),
    required("hypothesis", Shape::Map(HYPOTHESIS)),
    field("tier", Shape::Integer),
];

const TARGET: &[Field] =
    &[required("operator", Shape::Text), required("component", Shape::Text), field("resource", Shape::Text)];

const STEADY_STATE: &[Field] = &[field("checks", Shape::List(CHECK)), field("timeout", Shape::Text)];

const CHECK: &[Field] = &[
    required("type", Shape::Text),
    field("apiVersion", Shape::Text),
    field("kind", Shape::Text),
    field("name", Shape::Text),
    field("namespace", Shape::Text),
    field("conditionType", Shape::Text),
    field("fieldPath", Shape::Text),
    field("expectedValue", Shape::Text),
];

const INJECTION: &[Field] = &[
    required("type", Shape::Text),
    field("parameters", Shape::TextMap),
    field("count", Shape::Integer),
    field("ttl", Shape::Text),
    field("dangerLevel", Shape::Text),
];

const BLAST_RADIUS: &[Field] = &[
    required("maxPodsAffected", Shape::Integer),
    field("allowedNamespaces", Shape::TextList),
    field("forbiddenResources", Shape::TextList),
    field("allowDangerous", Shape::Boolean),
    field("dryRun", Shape::Boolean),
];

const HYPOTHESIS: &[Field] = &[required("description", Shape::Text), field("recoveryTimeout", Shape::Text)];

/// Reports unknown fields, wrong types and missing fields.
pub(super) fn check(document: &Value, findings: &mut Findings) {
    match document {
        Value::Object(map) => fields(map, EXPERIMENT, &mut Vec::new(), findings),
        other => findings.error(&[], "wrong-type", format!("expected a map, found {}", describe(other))),
    }
}

fn fields(map: &Map<String, Value>, known: &[Field], path: &mut Vec<PathSegment>, findings: &mut Findings) {
    for (key, value) in map {
        path.push(key.as_str().into());
        match known.iter().find(|field| field.name == key) {
            Some(field) => shape(value, field.shape, path, findings),
            None => {
                let nearest = suggest::nearest(key, known.iter().map(|field| field.name));
                findings.error(path, "unknown-field", format!("unknown field{}", suggest::hint(nearest)));
            }
        }
        path.pop();
    }
    for field in known.iter().filter(|field| field.required) {
        if map.get(field.name).is_none_or(Value::is_null) {
            path.push(field.name.into());
            findings.error(path, "required", "is missing".to_owned());
            path.pop();
        }
    }
}

fn shape(value: &Value, expected: Shape, path: &mut Vec<PathSegment>, findings: &mut Findings) {
    let wrong = |what: &str| format!("expected {what}, found {}", describe(value));
    match (expected, value) {
        (Shape::Anything, _)
        // Null counts as absent; a missing mandatory field is reported already.
        | (_, Value::Null)
        | (Shape::Text, Value::String(_))
        | (Shape::Boolean, Value::Bool(_)) => {}
        (Shape::Integer, Value::Number(number)) if number.as_i64().is_some() => {}
        (Shape::Map(known), Value::Object(map)) => fields(map, known, path, findings),
        (Shape::List(known), Value::Array(items)) => {
            for (index, item) in items.iter().enumerate() {
                path.push(index.into());
                shape(item, Shape::Map(known), path, findings);
                path.pop();
            }
        }
        (Shape::TextList, Value::Array(items)) => {
            for (index, item) in items.iter().enumerate() {
                path.push(index.into());
                shape(item, Shape::Text, path, findings);
                path.pop();
            }
        }
        (Shape::TextMap, Value::Object(map)) => {
            for (key, item) in map {
                path.push(key.as_str().into());
                if !item.is_string() {
                    let message = format!("expected a string, found {}; put it in quotes", describe(item));
                    findings.error(path, "wrong-type", message);
                }
                path.pop();
            }
        }
        (Shape::Text, _) => findings.error(path, "wrong-type", wrong("a string")),
        (Shape::Boolean, _) => findings.error(path, "wrong-type", wrong("true or false")),
        (Shape::Integer, Value::Number(_)) => findings.error(path, "wrong-type", "expected a whole number".to_owned()),
        (Shape::Integer, _) => findings.error(path, "wrong-type", wrong("a whole number")),
        (Shape::List(_) | Shape::TextList, _) => findings.error(path, "wrong-type", wrong("a list")),
        (Shape::Map(_) | Shape::TextMap, _) => findings.error(path, "wrong-type", wrong("a map")),
    }
}
