//! Compares a JSON Schema with the reader of its documents.

use serde_json::{Value, json};

/// Replaces each node of an example by values of other types, and lists the documents that only one of the two accepts.
/// `errors` are those of the reader.
#[must_use]
pub fn differences(
    example: &Value,
    is_valid: impl Fn(&Value) -> bool,
    errors: impl Fn(&Value) -> Vec<String>,
) -> Vec<String> {
    let mut pointers = Vec::new();
    list_pointers(example, "", &mut pointers);
    let replacements = [json!(null), json!(7), json!(true), json!(""), json!([]), json!({}), json!({"unknown": 1})];
    let mut found = Vec::new();
    for pointer in &pointers {
        for replacement in &replacements {
            let mut changed = example.clone();
            if let Some(node) = changed.pointer_mut(pointer) {
                *node = replacement.clone();
            }
            let errors = errors(&changed);
            if is_valid(&changed) != errors.is_empty() {
                found.push(format!("{pointer} = {replacement}: the reader says {errors:?}"));
            }
        }
    }
    found
}

/// Pointers to all nodes below the root.
fn list_pointers(value: &Value, prefix: &str, found: &mut Vec<String>) {
    let mut add = |key: &str, child: &Value| {
        let pointer = format!("{prefix}/{}", key.replace('~', "~0").replace('/', "~1"));
        found.push(pointer.clone());
        list_pointers(child, &pointer, found);
    };
    match value {
        Value::Object(map) => map.iter().for_each(|(key, child)| add(key, child)),
        Value::Array(items) => items.iter().enumerate().for_each(|(index, child)| add(&index.to_string(), child)),
        _ => {}
    }
}
