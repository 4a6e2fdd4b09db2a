//! Parts of the JSON Schemas that editors use for documents people write. What `Reader` checks one value at a time, these
//! say in advance; the tests of each format compare the two.

#[cfg(any(test, feature = "testing"))]
pub mod testing;

use serde_json::{Map, Value, json};

/// The dialect of the schemas.
pub const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// A property: its key, a line that an editor shows, and the schema of its value.
pub type Property = (&'static str, &'static str, Value);

/// A string that is not blank.
#[must_use]
pub fn text() -> Value {
    json!({"type": "string", "pattern": r"\S"})
}

/// Any string.
#[must_use]
pub fn any_text() -> Value {
    json!({"type": "string"})
}

/// True or false.
#[must_use]
pub fn flag() -> Value {
    json!({"type": "boolean"})
}

/// A whole number in a range; `most` of `None` is without an end.
#[must_use]
pub fn whole_number(least: u64, most: Option<u64>) -> Value {
    let mut schema = json!({"type": "integer", "minimum": least});
    if let Some(most) = most {
        schema["maximum"] = most.into();
    }
    schema
}

/// One of these words.
#[must_use]
pub fn choice(words: &[&str]) -> Value {
    json!({"enum": words})
}

/// A list.
#[must_use]
pub fn list(items: &Value) -> Value {
    json!({"type": "array", "items": items})
}

/// A list with at least one element.
#[must_use]
pub fn filled_list(items: &Value) -> Value {
    json!({"type": "array", "items": items, "minItems": 1})
}

/// A map with any keys.
#[must_use]
pub fn map(values: &Value) -> Value {
    json!({"type": "object", "additionalProperties": values})
}

/// A map with any content.
#[must_use]
pub fn any_map() -> Value {
    json!({"type": "object"})
}

/// A definition of the same schema.
#[must_use]
pub fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/$defs/{name}")})
}

/// A map with no other keys than these, of which some are required.
#[must_use]
pub fn object(properties: Vec<Property>, required: &[&str]) -> Value {
    let describe = |(key, description, mut schema): Property| {
        if !description.is_empty() {
            schema["description"] = description.into();
        }
        (key.to_owned(), schema)
    };
    let properties: Map<String, Value> = properties.into_iter().map(describe).collect();
    let mut schema = json!({"type": "object", "properties": properties, "additionalProperties": false});
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}
