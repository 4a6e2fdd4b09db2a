//! What of a schema is shown beside a change: the schema without its texts, cut where it is large, so that a report
//! grows with the number of changes alone.

use serde_json::{Map, Value};

/// What an excerpt may come to: one for every node, and one for every 64 bytes of text.
const MOST: usize = 96;

/// Keywords that say nothing of what objects may hold.
const TEXTS: [&str; 4] = ["description", "title", "example", "externalDocs"];

/// Keywords with schemas or rules in them.
const NESTED: [&str; 8] =
    ["properties", "items", "additionalProperties", "allOf", "anyOf", "oneOf", "not", "x-kubernetes-validations"];

/// The schema, whole where it is small; else without nested schemas; else its scalars alone.
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
        // What is too long by itself is left out alone.
        let mut rest = left;
        if let Some(value) = copy(value, Inside::Value, &mut rest) {
            kept.insert(keyword.clone(), value);
            left = rest;
        }
    }
    kept.sort_keys();
    Value::Object(kept)
}

/// What a value stands for.
#[derive(Clone, Copy, PartialEq)]
enum Inside {
    Schema,
    /// The schemas of fields, by their names.
    Fields,
    /// Anything else: names in it are no keywords.
    Value,
}

/// A copy with sorted keys and without texts; `None` if it comes to more than is left.
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
