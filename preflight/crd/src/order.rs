//! Values in one form: two that differ in the order of keys alone, or in how a whole number is written, are one.

use std::collections::BTreeSet;

use serde_json::{Map, Number, Value};

/// With all keys in order, as maps are compared.
pub fn sorted(value: &Value) -> Value {
    let mut value = value.clone();
    value.sort_all_objects();
    value
}

/// The same value in one form: maps sorted, whole numbers as such.
#[must_use]
pub fn canonical(value: &Value) -> Value {
    match value {
        Value::Number(number) => whole(number).map_or_else(|| value.clone(), Value::from),
        Value::Array(items) => items.iter().map(canonical).collect(),
        Value::Object(fields) => sorted_map(fields, canonical),
        other => other.clone(),
    }
}

/// The same for a schema, where the order of a list means nothing; to tell schemas apart, not to show them.
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

/// `5` for `5.0`.
fn whole(number: &Number) -> Option<i64> {
    let float = number.as_f64().filter(|_| number.is_f64())?;
    #[expect(clippy::cast_possible_truncation, reason = "checked to be whole and small")]
    (float.fract() == 0.0 && float.abs() < 9e15).then_some(float as i64)
}

/// The text of a value, whatever the order of its keys.
pub fn in_order(value: &Value) -> String {
    if value.is_object() || value.is_array() { sorted(value).to_string() } else { value.to_string() }
}

/// Those of the values that are not among the others.
#[must_use]
pub fn without(these: &[Value], those: &[Value]) -> Vec<Value> {
    let those: BTreeSet<String> = those.iter().map(Value::to_string).collect();
    these.iter().filter(|value| !those.contains(&value.to_string())).cloned().collect()
}
