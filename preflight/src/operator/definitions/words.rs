//! Values as changes show and tell them apart: in one form, and short.

use serde_json::{Map, Number, Value};

/// The same value in one form: maps sorted, whole numbers as such.
pub(super) fn canonical(value: &Value) -> Value {
    match value {
        Value::Number(number) => whole(number).map_or_else(|| value.clone(), Value::from),
        Value::Array(items) => items.iter().map(canonical).collect(),
        Value::Object(fields) => {
            let mut fields: Map<String, Value> =
                fields.iter().map(|(name, value)| (name.clone(), canonical(value))).collect();
            fields.sort_keys();
            Value::Object(fields)
        }
        other => other.clone(),
    }
}

/// The same for a schema, where the order of a list means nothing; to tell schemas apart, not to show them.
pub(super) fn unordered(value: &Value) -> Value {
    match value {
        Value::Array(items) => {
            let mut items: Vec<Value> = items.iter().map(unordered).collect();
            items.sort_by_cached_key(Value::to_string);
            Value::Array(items)
        }
        Value::Object(fields) => {
            let mut fields: Map<String, Value> =
                fields.iter().map(|(name, value)| (name.clone(), unordered(value))).collect();
            fields.sort_keys();
            Value::Object(fields)
        }
        scalar => canonical(scalar),
    }
}

/// `5` for `5.0`.
fn whole(number: &Number) -> Option<i64> {
    let float = number.as_f64().filter(|_| number.is_f64())?;
    #[expect(clippy::cast_possible_truncation, reason = "checked to be whole and small")]
    (float.fract() == 0.0 && float.abs() < 9e15).then_some(float as i64)
}

/// A value on one line, cut where it is long.
pub(super) fn short(value: &Value) -> String {
    cut(&value.to_string())
}

pub(super) fn cut(text: &str) -> String {
    const MOST: usize = 120;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
