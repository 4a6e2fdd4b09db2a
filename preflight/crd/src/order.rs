//! Values with the keys of their maps in order: two that differ in the order of keys alone are one.

use std::collections::BTreeSet;

use serde_json::Value;

/// With all keys in order, as maps are compared.
pub fn sorted(value: &Value) -> Value {
    let mut value = value.clone();
    value.sort_all_objects();
    value
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
