//! The excerpt of a schema that a change shows: without texts, and cut if it is large, so that the size of a report
//! depends only on the number of changes.

use serde_json::{Map, Value};

/// Maximum cost of an excerpt: one per node, and one per 64 bytes of text.
const MOST: usize = 96;

/// Keywords that do not restrict objects.
const TEXTS: [&str; 4] = ["description", "title", "example", "externalDocs"];

/// Keywords that contain schemas or rules.
const NESTED: [&str; 8] =
    ["properties", "items", "additionalProperties", "allOf", "anyOf", "oneOf", "not", "x-kubernetes-validations"];

/// The whole schema if it is small, else without nested schemas, else its scalars alone.
pub(super) fn excerpt(schema: Option<&Value>) -> Value {
    let Some(schema) = schema else { return Value::Null };
    if let Some(whole) = copy(schema, Inside::Schema, &mut { MOST }) {
        return whole;
    }
    let Value::Object(keywords) = schema else { return Value::Null };
    let mut left = MOST;
    let mut kept = Map::new();
    for (keyword, value) in keywords {
        if TEXTS.contains(&keyword.as_str()) || (NESTED.contains(&keyword.as_str()) && !value.is_boolean()) {
            continue;
        }
        // A value that is too long is omitted by itself.
        let mut rest = left;
        if let Some(value) = copy(value, Inside::Value, &mut rest) {
            kept.insert(keyword.clone(), value);
            left = rest;
        }
    }
    kept.sort_keys();
    Value::Object(kept)
}

/// The meaning of a map in a schema.
#[derive(Clone, Copy, PartialEq)]
enum Inside {
    Schema,
    /// Schemas of fields, by name.
    Fields,
    /// Any other value: its keys are not keywords.
    Value,
}

/// A copy with sorted keys and without texts; `None` if its cost exceeds `left`.
fn copy(value: &Value, inside: Inside, left: &mut usize) -> Option<Value> {
    let text = value.as_str().map_or(0, str::len);
    *left = left.checked_sub(1 + text / 64)?;
    Some(match value {
        Value::Array(items) => Value::Array(items.iter().map(|item| copy(item, inside, left)).collect::<Option<_>>()?),
        Value::Object(fields) => {
            let mut kept = Map::new();
            for (name, value) in fields {
                if inside == Inside::Schema && TEXTS.contains(&name.as_str()) {
                    continue;
                }
                let below = match (inside, name.as_str()) {
                    (Inside::Schema, "properties") => Inside::Fields,
                    (Inside::Schema, "items" | "additionalProperties" | "not" | "allOf" | "anyOf" | "oneOf")
                    | (Inside::Fields, _) => Inside::Schema,
                    _ => Inside::Value,
                };
                *left = left.checked_sub(name.len() / 64)?;
                kept.insert(name.clone(), copy(value, below, left)?);
            }
            kept.sort_keys();
            Value::Object(kept)
        }
        scalar => scalar.clone(),
    })
}
