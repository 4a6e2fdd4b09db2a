//! Small edits of a schema, for pairs that differ in a few changes.

use serde_json::{Map, Value, json};

use super::Generator;

/// The number in an environment variable, such as `PUSHBACK_ROUNDS` or `PUSHBACK_SEED`.
#[must_use]
pub fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

/// The keywords that a small edit chooses from.
const TAKEN: [&str; 24] = [
    "nullable",
    "default",
    "enum",
    "minimum",
    "maximum",
    "multipleOf",
    "pattern",
    "format",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    "required",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "additionalProperties",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-list-type",
    "exclusiveMinimum",
    "x-kubernetes-validations",
];

/// Makes a small change at one place of a schema, or replaces it.
pub fn edit(generator: &mut Generator, schema: &mut Value, depth: usize) {
    let Some(map) = schema.as_object_mut() else { return };
    // Mostly descend, so that edits spread over the tree.
    if depth < 4 && generator.chance(60) {
        let mut inner: Vec<&mut Value> = Vec::new();
        for (keyword, value) in map.iter_mut() {
            match keyword.as_str() {
                "properties" => inner.extend(value.as_object_mut().into_iter().flat_map(Map::values_mut)),
                "items" | "additionalProperties" if value.is_object() => inner.push(value),
                _ => {}
            }
        }
        if !inner.is_empty() {
            let index = generator.below(inner.len());
            return edit(generator, inner.swap_remove(index), depth + 1);
        }
    }
    let other = generator.node(2);
    match generator.below(8) {
        0 => *schema = other,
        1 | 2 => {
            let present: Vec<String> = map.keys().filter(|key| TAKEN.contains(&key.as_str())).cloned().collect();
            if !present.is_empty() {
                map.shift_remove(&present[generator.below(present.len())]);
            }
        }
        3 | 4 => {
            // Copy a keyword of another node of the same type.
            for _ in 0..6 {
                let donor = generator.node(2);
                if donor.get("type") == map.get("type") {
                    let offered: Vec<(String, Value)> = donor
                        .as_object()
                        .into_iter()
                        .flatten()
                        .filter(|(key, _)| TAKEN.contains(&key.as_str()))
                        .map(|(key, value)| (key.clone(), value.clone()))
                        .collect();
                    if !offered.is_empty() {
                        let (key, value) = offered[generator.below(offered.len())].clone();
                        map.insert(key, value);
                        break;
                    }
                }
            }
        }
        5 => {
            if let Some(fields) = map.get_mut("properties").and_then(Value::as_object_mut) {
                if generator.chance(50) && !fields.is_empty() {
                    let names: Vec<String> = fields.keys().cloned().collect();
                    fields.shift_remove(&names[generator.below(names.len())]);
                } else {
                    fields.insert("added".to_owned(), other);
                }
            }
        }
        6 => {
            // Move a constraint to another place.
            for key in ["enum", "pattern", "maximum", "minimum", "required", "minProperties", "maxLength"] {
                if let Some(value) = map.shift_remove(key) {
                    map.insert("allOf".to_owned(), json!([{key: value}]));
                    break;
                }
            }
        }
        _ => {
            for (_, value) in map.iter_mut().filter(|(key, value)| TAKEN.contains(&key.as_str()) && value.is_i64()) {
                let step = if generator.chance(50) { 1 } else { -1 };
                *value = json!(value.as_i64().unwrap_or(0).saturating_add(step));
            }
        }
    }
}
