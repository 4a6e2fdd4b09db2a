//! The storage schema of a version: the same fields, all of them optional and without constraints, and a property bag
//! wherever conversions keep values that the version has no field for.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::path::{FieldPath, FieldStep};

/// Names of the bag, in order of preference.
pub(super) const BAG_NAMES: [&str; 4] =
    ["$propertyBag", "$propertyStash", "$pushbackPropertyBag", "$pushbackPropertyStash"];

/// Keywords that decide which fields there are and of which types.
const SHAPE: [&str; 5] = [
    "type",
    "nullable",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-int-or-string",
    "x-kubernetes-embedded-resource",
];

/// Nodes below this depth are left out, as in the model of schemas.
const MAX_DEPTH: usize = pushback_crd::schema::model::MAX_DEPTH;

/// What is left of a schema without constraints, defaults and texts.
pub(super) fn skeleton(schema: &Value) -> Value {
    reduced(schema, &SHAPE, 0)
}

/// The skeleton with the values of enumerations.
pub(super) fn with_enumerations(schema: &Value) -> Value {
    reduced(schema, &[SHAPE.as_slice(), &["enum"]].concat(), 0)
}

fn reduced(schema: &Value, keywords: &[&str], depth: usize) -> Value {
    let Some(map) = schema.as_object().filter(|_| depth < MAX_DEPTH) else { return json!({}) };
    let below = |schema: &Value| reduced(schema, keywords, depth + 1);
    let mut kept = Map::new();
    for (keyword, value) in map {
        let value = match (keyword.as_str(), value) {
            ("properties", Value::Object(properties)) => {
                properties.iter().map(|(name, schema)| (name.clone(), below(schema))).collect::<Map<_, _>>().into()
            }
            ("items" | "additionalProperties", Value::Object(_)) => below(value),
            ("additionalProperties", Value::Bool(true)) => value.clone(),
            (keyword, value) if keywords.contains(&keyword) => value.clone(),
            _ => continue,
        };
        kept.insert(keyword.clone(), value);
    }
    Value::Object(kept)
}

/// The schema of a bag.
fn bag() -> Value {
    json!({"type": "object", "additionalProperties": {"type": "string"}})
}

fn is_bag(schema: &Value) -> bool {
    skeleton(schema) == bag()
}

/// The first name that no version has a field of, other than as a bag.
pub(super) fn free_name(schemas: &[&Value]) -> Option<&'static str> {
    BAG_NAMES.into_iter().find(|name| !schemas.iter().any(|schema| has_other(schema, name, 0)))
}

fn has_other(schema: &Value, name: &str, depth: usize) -> bool {
    if depth > MAX_DEPTH {
        return false;
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    let inner = [schema.get("items"), schema.get("additionalProperties")];
    properties.into_iter().flatten().any(
        |(key, field)| {
            if key == name { !is_bag(field) } else { has_other(field, name, depth + 1) }
        },
    ) || inner.into_iter().flatten().any(|inner| has_other(inner, name, depth + 1))
}

/// Takes the declared bags out of a schema, and says where they were.
pub(super) fn without_bags(schema: &mut Value, name: &str) -> BTreeSet<FieldPath> {
    let mut found = BTreeSet::new();
    take_bags(schema, name, &FieldPath::default(), &mut found);
    found
}

fn take_bags(schema: &mut Value, name: &str, here: &FieldPath, found: &mut BTreeSet<FieldPath>) {
    let Some(map) = schema.as_object_mut() else { return };
    if let Some(Value::Object(properties)) = map.get_mut("properties") {
        if properties.shift_remove(name).is_some() {
            found.insert(here.clone());
        }
        for (key, field) in properties {
            take_bags(field, name, &here.field(key), found);
        }
    }
    for keyword in ["items", "additionalProperties"] {
        if let Some(inner) = map.get_mut(keyword) {
            take_bags(inner, name, &here.each(), found);
        }
    }
}

/// Adds a bag at each of these places.
pub(super) fn add_bags(schema: &mut Value, name: &str, places: &BTreeSet<FieldPath>) {
    for place in places {
        if let Some(Value::Object(node)) = node_mut(schema, place.steps()) {
            let properties = node.entry("properties").or_insert_with(|| json!({}));
            if let Value::Object(properties) = properties {
                properties.insert(name.to_owned(), bag());
            }
        }
    }
}

fn node_mut<'v>(schema: &'v mut Value, steps: &[FieldStep]) -> Option<&'v mut Value> {
    let mut node = schema;
    for step in steps {
        node = match step {
            FieldStep::Field(name) => node.get_mut("properties")?.get_mut(name)?,
            FieldStep::Each if node.get("items").is_some() => node.get_mut("items")?,
            FieldStep::Each => node.get_mut("additionalProperties")?,
        };
    }
    Some(node)
}

/// The node of a schema at a path.
pub(super) fn node<'v>(schema: &'v Value, steps: &[FieldStep]) -> Option<&'v Value> {
    let mut node = schema;
    for step in steps {
        node = match step {
            FieldStep::Field(name) => node.get("properties")?.get(name)?,
            FieldStep::Each => node.get("items").or_else(|| node.get("additionalProperties"))?,
        };
    }
    Some(node)
}
