//! Conversion plans: the Person case study through all its versions, operations, errors, and hostile input.

mod errors;
mod hostile;
mod json_schema;
mod operations;
mod person;
mod properties;
mod review;

use std::sync::Arc;

use serde_json::{Map, Value, json};

pub(super) use person::people;
use pushback_objects::source::testing::numbered;
use pushback_objects::source::{Document, InputError};

use super::{Converter, compile, read};

fn yaml(text: &str) -> Value {
    serde_yaml::from_str(text).expect("YAML")
}

/// Reads and compiles; every node of the plan has a line of its own.
pub(super) fn load(plan: &Value, definition: &Value) -> Result<Converter, Vec<InputError>> {
    let document = Document { value: plan.clone(), positions: Arc::new(numbered(plan, "plan.yaml")) };
    let read = read(&document)?;
    json_schema::accept(plan);
    compile(&read, definition)
}

/// A definition of the kind Test in example.com whose versions have these fields in `spec`.
pub(super) fn definition(versions: &[(&str, Value)]) -> Value {
    let version = |(name, spec): &(&str, Value)| {
        json!({"name": name, "served": true, "storage": false, "schema": {"openAPIV3Schema": {
            "type": "object", "properties": {"spec": {"type": "object", "properties": spec}},
        }}})
    };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "tests.example.com"},
        "spec": {"group": "example.com", "names": {"kind": "Test", "plural": "tests"},
                 "versions": versions.iter().map(version).collect::<Vec<_>>()},
    })
}

/// A plan for it with these steps and other keys.
pub(super) fn plan(more: Value) -> Value {
    let mut plan = json!({
        "apiVersion": "pushback.dev/v1alpha1", "kind": "ConversionPlan", "metadata": {"name": "tests.example.com"},
    });
    if let (Value::Object(plan), Value::Object(more)) = (&mut plan, more) {
        plan.extend(more);
    }
    plan
}

pub(super) fn converter(versions: &[(&str, Value)], more: Value) -> Converter {
    load(&plan(more), &definition(versions)).unwrap_or_else(|errors| panic!("{errors:#?}"))
}

pub(super) fn object(version: &str, spec: Value) -> Value {
    json!({"apiVersion": format!("example.com/{version}"), "kind": "Test", "metadata": {"name": "a"}, "spec": spec})
}

/// An object without its bags, for comparison.
fn without_bag(value: &Value, bag: &str) -> Value {
    match value {
        Value::Object(map) => {
            let kept = map.iter().filter(|(key, _)| *key != bag);
            Value::Object(kept.map(|(key, value)| (key.clone(), without_bag(value, bag))).collect::<Map<_, _>>())
        }
        Value::Array(items) => items.iter().map(|item| without_bag(item, bag)).collect(),
        other => other.clone(),
    }
}
