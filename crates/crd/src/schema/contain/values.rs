//! Values that are equal as JSON, one by one and in sets: 1 and 1.0 are the same number, every digit of a whole number
//! counts, and the order of fields does not matter.

use std::collections::BTreeSet;

use serde_json::{Number, Value};

/// Whether two values are equal as JSON.
pub(super) fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => digits(one) == digits(other),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(name, one)| other.get(name).is_some_and(|other| same(one, other)))
        }
        _ => one == other,
    }
}

/// A set of values, for enums with tens of thousands of elements.
pub(in crate::schema) struct ValueSet(BTreeSet<String>);

impl ValueSet {
    pub(in crate::schema) fn of<'v>(values: impl IntoIterator<Item = &'v Value>) -> Self {
        Self(values.into_iter().map(key).collect())
    }

    pub(in crate::schema) fn len(&self) -> usize {
        self.0.len()
    }

    pub(in crate::schema) fn contains(&self, value: &Value) -> bool {
        self.0.contains(&key(value))
    }
}

/// The canonical text of a number. Integers keep all their digits, which a float would lose.
fn digits(number: &Number) -> String {
    match (number.as_i64(), number.as_f64()) {
        (Some(whole), _) => whole.to_string(),
        // Adding zero turns -0 into 0.
        (None, Some(float)) => (float + 0.0).to_string(),
        (None, None) => number.to_string(),
    }
}

/// A text that is the same for equal values only.
pub(super) fn key(value: &Value) -> String {
    match value {
        Value::Number(number) => digits(number),
        Value::Array(items) => format!("[{}]", items.iter().map(key).collect::<Vec<_>>().join(",")),
        Value::Object(fields) => {
            let mut fields: Vec<String> =
                fields.iter().map(|(name, value)| format!("{}:{}", Value::from(name.as_str()), key(value))).collect();
            fields.sort_unstable();
            format!("{{{}}}", fields.join(","))
        }
        value => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_set_holds_what_is_the_same_and_nothing_else() {
        let values = [
            json!(1),
            json!(1.0),
            json!(-0.0),
            json!(0),
            json!(u64::MAX),
            json!(i64::MAX),
            json!(i64::MAX - 1),
            json!(9_007_199_254_740_992_i64),
            json!(9_007_199_254_740_992.0),
            json!(9_007_199_254_740_993_i64),
            json!(1.5),
            json!("1"),
            json!("[1]"),
            json!([1]),
            json!([1.0]),
            json!([[1], 2]),
            json!([1, 2]),
            json!({"a": 1, "b": "x,y"}),
            json!({"b": "x,y", "a": 1.0}),
            json!({"a": "1,\"b\":\"x"}),
            json!(null),
            json!("null"),
            json!(true),
        ];
        for one in &values {
            let set = ValueSet::of([one]);
            for other in &values {
                assert_eq!(set.contains(other), same(one, other), "{one} {other}");
            }
        }
    }

    #[test]
    fn whole_numbers_differ_in_every_digit() {
        assert!(!same(&json!(9_007_199_254_740_992_i64), &json!(9_007_199_254_740_993_i64)));
        assert!(same(&json!(9_007_199_254_740_992_i64), &json!(9_007_199_254_740_992.0)));
        assert!(same(&json!(1), &json!(1.0)));
    }
}
