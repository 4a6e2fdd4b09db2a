//! Which value of an old object corresponds to a value of the new one, and whether the two are equal in the sense of
//! validation ratcheting.
//!
//! Follows k8s.io/apiserver `pkg/cel/common/equality.go` (`CorrelatedObject`) and KEP-4008.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::number::Numeric;
use crate::schema::model::{ListType, Schema, Type};

/// Equal in every digit and type: 5 and 5.0 differ.
pub(super) fn is_identical(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => Numeric::of(one) == Numeric::of(other),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| is_identical(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(key, one)| other.get(key).is_some_and(|other| is_identical(one, other)))
        }
        _ => one == other,
    }
}

/// The schema of the value under `key`, if there is one.
fn child<'a>(schema: &'a Schema, key: &str) -> Option<&'a Schema> {
    schema.properties.get(key).or_else(|| schema.additional_schema())
}

/// Whether an update left the value unchanged. Fields without a schema never count as unchanged.
pub(super) fn is_unchanged(schema: &Schema, old: &Value, new: &Value) -> bool {
    match (old, new) {
        (Value::Array(old_items), Value::Array(new_items)) => {
            if old_items.len() != new_items.len() {
                return false;
            }
            if schema.list_type != Some(ListType::Map) {
                return is_identical(old, new);
            }
            let Some(item) = &schema.items else { return new_items.is_empty() };
            let old_items = OldItems::of(schema, Some(old));
            new_items.iter().all(|new| old_items.get(new).is_some_and(|old| is_unchanged(item, old, new)))
        }
        (Value::Object(old), Value::Object(new)) => {
            old.len() == new.len()
                && new.iter().all(|(key, new)| {
                    let (Some(old), Some(schema)) = (old.get(key), child(schema, key)) else { return false };
                    is_unchanged(schema, old, new)
                })
        }
        _ => is_identical(old, new),
    }
}

/// The old value under `key`, if old and new can be correlated.
pub(super) fn old_field<'v>(schema: &Schema, old: Option<&'v Value>, key: &str) -> Option<&'v Value> {
    child(schema, key)?;
    old?.as_object()?.get(key)
}

/// The items of an old list of type `map`, by their keys. Items of other lists cannot be correlated.
#[derive(Debug)]
pub(super) struct OldItems<'v> {
    keys: &'v [String],
    items: BTreeMap<String, &'v Value>,
}

impl<'v> OldItems<'v> {
    pub(super) fn of(schema: &'v Schema, old: Option<&'v Value>) -> Self {
        let keys = schema.list_map_keys.as_slice();
        let mut items = BTreeMap::new();
        let is_map = schema.list_type == Some(ListType::Map) && schema.kind == Some(Type::Array) && !keys.is_empty();
        for item in old.and_then(Value::as_array).filter(|_| is_map).into_iter().flatten() {
            if let Some(key) = item.as_object().and_then(|map| composite_key(keys, map)) {
                items.entry(key).or_insert(item);
            }
        }
        Self { keys, items }
    }

    pub(super) fn get(&self, new: &Value) -> Option<&'v Value> {
        self.items.get(&composite_key(self.keys, new.as_object()?)?).copied()
    }
}

/// The item's key; `None` if a part of it is absent or not a scalar.
fn composite_key(keys: &[String], map: &Map<String, Value>) -> Option<String> {
    let mut composite = String::new();
    for key in keys {
        let part = match map.get(key)? {
            Value::Bool(value) => value.to_string(),
            Value::String(text) => Value::from(text.as_str()).to_string(),
            Value::Number(number) => match Numeric::of(number) {
                Numeric::Integer(value) => value.to_string(),
                // Composite keys are compared as text, with six digits after the decimal point.
                Numeric::Float(value) if keys.len() > 1 => format!("{value:.6}"),
                Numeric::Float(value) => format!("{value:e}"),
            },
            Value::Null | Value::Array(_) | Value::Object(_) => return None,
        };
        composite.push_str(&part);
        composite.push('\0');
    }
    Some(composite)
}
