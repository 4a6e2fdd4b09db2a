//! Numbers in an object, such as generations and counts. A missing field and one of another type read alike.

use serde_json::Value;

pub(super) fn generation(object: &Value) -> Option<i64> {
    object.pointer("/metadata/generation").and_then(Value::as_i64)
}

pub(super) fn observed_generation(object: &Value) -> Option<i64> {
    object.pointer("/status/observedGeneration").and_then(Value::as_i64)
}

pub(super) fn not_observed(object: &Value) -> String {
    format!("waiting for generation {} to be observed", generation(object).unwrap_or_default())
}

/// The number at a pointer; `None` if it is missing or of another type.
pub(super) fn number(object: &Value, pointer: &str) -> Option<i64> {
    object.pointer(pointer).and_then(Value::as_i64)
}
