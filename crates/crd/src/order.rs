//! Canonical form of values: two that differ only in key order or in how a whole number is written become equal.

use std::collections::BTreeSet;

use serde_json::{Map, Number, Value};

/// The value with its map keys sorted at every level.
pub fn sorted(value: &Value) -> Value {
    let mut value = value.clone();
    value.sort_all_objects();
    value
}

/// The canonical form: keys sorted, whole numbers written as integers.
#[must_use]
pub fn canonical(value: &Value) -> Value {
    match value {
        Value::Number(number) => whole(number).map_or_else(|| value.clone(), Value::from),
        Value::Array(items) => items.iter().map(canonical).collect(),
        Value::Object(fields) => sorted_map(fields, canonical),
        other => other.clone(),
    }
}

/// The canonical form of a schema, where the order of lists does not matter either. For comparison, not for display.
#[must_use]
pub fn unordered(value: &Value) -> Value {
    match value {
        Value::Array(items) => {
            let mut items: Vec<Value> = items.iter().map(unordered).collect();
            items.sort_by_cached_key(Value::to_string);
            Value::Array(items)
        }
        Value::Object(fields) => sorted_map(fields, unordered),
        scalar => canonical(scalar),
    }
}

fn sorted_map(fields: &Map<String, Value>, form: fn(&Value) -> Value) -> Value {
    let mut fields: Map<String, Value> = fields.iter().map(|(name, value)| (name.clone(), form(value))).collect();
    fields.sort_keys();
    Value::Object(fields)
}

/// The integer that a number stands for: `5` for `5.0`.
fn whole(number: &Number) -> Option<i64> {
    let float = number.as_f64().filter(|_| number.is_f64())?;
    #[expect(clippy::cast_possible_truncation, reason = "checked to be whole and small")]
    (float.fract() == 0.0 && float.abs() < 9e15).then_some(float as i64)
}

/// The value as JSON text, independent of the order of its keys.
pub fn in_order(value: &Value) -> String {
    if value.is_object() || value.is_array() { sorted(value).to_string() } else { value.to_string() }
}

/// The values of `these` that are not among `those`.
#[must_use]
pub fn without(these: &[Value], those: &[Value]) -> Vec<Value> {
    let those: BTreeSet<String> = those.iter().map(Value::to_string).collect();
    these.iter().filter(|value| !those.contains(&value.to_string())).cloned().collect()
}
