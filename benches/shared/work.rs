//! The CPU-bound work whose figures are quoted, ready to be repeated: bundle of CRDs, change graph, diff, plan.

use std::sync::Arc;

use pushback_deploy::plan::{Action, Graph, Planned, ordering};
use pushback_manifest::config::{Config, defaults};
use pushback_objects::ObjectRef;
use pushback_preflight::Verification;
use serde_json::{Map, Value, json};

use super::objects;

/// Creates of a mix of kinds, as the plan hands them to the change graph.
pub(crate) fn creates(count: usize) -> Vec<Planned> {
    objects::mixed(count).iter().map(create).collect()
}

fn create(object: &Value) -> Planned {
    Planned {
        object: ObjectRef::of(object),
        action: Action::Create,
        desired: Some(Arc::new(object.clone())),
        verification: Verification::Server,
        wait: true,
        ..Planned::default()
    }
}

/// Binds the default groups and rules, and draws the graph.
pub(crate) fn draw(objects: &[Planned], config: &Config) -> Graph {
    ordering::draw(objects, config, "default", Some(&[])).expect("the default rules hold no cycle")
}

/// The built-in Config.
pub(crate) fn config() -> Config {
    defaults::defaults()
}

/// Two states of a ConfigMap that holds a text of so many lines, every second line changed.
pub(crate) fn long_texts(lines: usize) -> (Value, Value) {
    let object = |changed: &str| {
        let line = |number: usize| {
            let mark = if number % 2 == 1 { changed } else { "" };
            format!("setting.{number} = value-{number}{mark}\n")
        };
        let text: String = (0..lines).map(line).collect();
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "long", "namespace": "default"},
            "data": {"application.properties": text},
        })
    };
    (object(""), object("-changed"))
}

/// The unified diff of two objects, nothing masked.
pub(crate) fn diff(old: &Value, new: &Value) -> String {
    pushback_deploy::plan::diff::text(Some(old), Some(new), &|_| false)
}

/// A bundle of so many large CRDs, as YAML.
pub(crate) fn crd_bundle(count: usize) -> String {
    let crds: Vec<Value> = (0..count).map(crd).collect();
    objects::yaml(&crds)
}

fn crd(number: usize) -> Value {
    let (singular, plural) = (format!("widget{number}"), format!("widget{number}s"));
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.example.com")},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"kind": format!("Widget{number}"), "plural": plural, "singular": singular},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": schema(4)}}},
            }],
        },
    })
}

fn schema(depth: usize) -> Value {
    let mut properties = Map::new();
    for field in 0..5 {
        let name = format!("field{depth}{field}");
        let description =
            format!("{name} says how the widget is made, and what becomes of it when it is no longer used.");
        let child = match (depth, field) {
            (0, _) | (_, 0) => json!({"type": "string", "description": description, "maxLength": 253}),
            (_, 1) => json!({"type": "integer", "description": description, "format": "int32", "minimum": 0}),
            (_, 2) => json!({"type": "array", "description": description, "items": schema(depth - 1)}),
            _ => schema(depth - 1),
        };
        properties.insert(name, child);
    }
    json!({"type": "object", "description": "A part of a widget.", "properties": properties})
}
