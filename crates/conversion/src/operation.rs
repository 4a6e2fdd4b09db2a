//! Operations on single values: each is exact or gives nothing, so that what it cannot express is kept beside it and
//! never rounded.

use serde_json::{Number, Value};

use pushback_crd::schema::{Schema, Type};

/// A type of single values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scalar {
    Boolean,
    Integer,
    Number,
    String,
    IntOrString,
}

impl Scalar {
    /// The type of a node; `None` for anything but a single value.
    pub(super) fn of(schema: &Schema) -> Option<Self> {
        if schema.int_or_string {
            return Some(Self::IntOrString);
        }
        Some(match schema.kind? {
            Type::Boolean => Self::Boolean,
            Type::Integer => Self::Integer,
            Type::Number => Self::Number,
            Type::String => Self::String,
            Type::Array | Type::Object => return None,
        })
    }

    /// Whether every value of this type is also one of the other, or the reverse.
    pub(super) fn overlaps(self, other: Self) -> bool {
        use Scalar::{IntOrString, Integer, Number, String};
        matches!(
            (self, other),
            (Integer, Number) | (Number, Integer) | (Integer | String, IntOrString) | (IntOrString, Integer | String)
        )
    }

    /// Whether a plan can have one converted into the other.
    pub(super) fn can_become(self, other: Self) -> bool {
        let text = |scalar| matches!(scalar, Self::String | Self::IntOrString);
        self == other || self.overlaps(other) || text(self) || text(other)
    }
}

/// The value as one of another type, if there is an exact one.
pub(super) fn as_scalar(value: &Value, to: Scalar) -> Option<Value> {
    match (to, value) {
        (Scalar::String, Value::String(_))
        | (Scalar::Boolean, Value::Bool(_))
        | (Scalar::Number, Value::Number(_))
        | (Scalar::IntOrString, Value::String(_)) => Some(value.clone()),
        (Scalar::Integer | Scalar::IntOrString, Value::Number(number)) => whole(number).map(Value::Number),
        (Scalar::String, Value::Number(number)) => Some(number.to_string().into()),
        (Scalar::String | Scalar::IntOrString, Value::Bool(flag)) => Some(flag.to_string().into()),
        (Scalar::Boolean, Value::String(text)) => text.parse().ok().map(Value::Bool),
        (Scalar::Integer, Value::String(text)) => integer(text).map(Value::Number),
        (Scalar::Number, Value::String(text)) => {
            let float = || Number::from_f64(text.parse().ok()?);
            integer(text).or_else(float).map(Value::Number)
        }
        _ => None,
    }
}

fn integer(text: &str) -> Option<Number> {
    let signed = text.parse::<i64>().map(Number::from);
    signed.or_else(|_| text.parse::<u64>().map(Number::from)).ok()
}

/// A whole number without a decimal point.
fn whole(number: &Number) -> Option<Number> {
    if !number.is_f64() {
        return Some(number.clone());
    }
    let float = number.as_f64()?;
    #[expect(clippy::cast_possible_truncation, reason = "whole, and within the range that is exact in 64 bits")]
    (float.fract() == 0.0 && float.abs() < 9_007_199_254_740_992.0).then(|| Number::from(float as i64))
}

/// A quantity as the integer that it stands for, or an integer as a quantity.
pub(super) fn as_quantity(value: &Value, to: Scalar) -> Option<Value> {
    match (to, value) {
        (Scalar::Integer | Scalar::Number, Value::String(text)) => quantity(text).map(Value::from),
        _ => as_scalar(value, to),
    }
}

/// Binary and decimal suffixes of quantities, and what they multiply by.
const SUFFIXES: [(&str, i128); 12] = [
    ("Ki", 1 << 10),
    ("Mi", 1 << 20),
    ("Gi", 1 << 30),
    ("Ti", 1 << 40),
    ("Pi", 1 << 50),
    ("Ei", 1 << 60),
    ("k", 1_000),
    ("M", 1_000_000),
    ("G", 1_000_000_000),
    ("T", 1_000_000_000_000),
    ("P", 1_000_000_000_000_000),
    ("E", 1_000_000_000_000_000_000),
];

/// The whole number that a quantity stands for.
fn quantity(text: &str) -> Option<i64> {
    let (digits, times) =
        SUFFIXES.iter().find_map(|(suffix, times)| Some((text.strip_suffix(suffix)?, *times))).unwrap_or((text, 1));
    let (digits, divided) = match digits.strip_suffix('m') {
        Some(thousandths) if times == 1 => (thousandths, 1_000),
        _ => (digits, 1),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || fraction.len() > 9 || !is_number(fraction) {
        return None;
    }
    let scale = 10_i128.checked_pow(u32::try_from(fraction.len()).ok()?)? * divided;
    let digits = format!("{whole}{fraction}").parse::<i64>().ok()?;
    let value = i128::from(digits).checked_mul(times)?;
    (value % scale == 0).then(|| i64::try_from(value / scale).ok())?
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_value_becomes_another_type_only_exactly() {
        for (value, to, expected) in [
            (json!("80"), Scalar::Integer, Some(json!(80))),
            (json!("080"), Scalar::Integer, Some(json!(80))),
            (json!("http"), Scalar::Integer, None),
            (json!("18446744073709551615"), Scalar::Integer, Some(json!(u64::MAX))),
            (json!(80), Scalar::String, Some(json!("80"))),
            (json!(2.0), Scalar::Integer, Some(json!(2))),
            (json!(2.5), Scalar::Integer, None),
            (json!(1e300), Scalar::Integer, None),
            (json!("true"), Scalar::Boolean, Some(json!(true))),
            (json!("yes"), Scalar::Boolean, None),
            (json!("1.5"), Scalar::Number, Some(json!(1.5))),
            (json!("NaN"), Scalar::Number, None),
            (json!([1]), Scalar::String, None),
        ] {
            assert_eq!(as_scalar(&value, to), expected, "{value}");
        }
    }

    #[test]
    fn a_quantity_is_the_number_that_it_stands_for() {
        for (text, expected) in [
            ("1Ki", Some(1024)),
            ("1.5Gi", Some(1_610_612_736)),
            ("2k", Some(2000)),
            ("3000m", Some(3)),
            ("500m", None),
            ("0.5", None),
            ("-1Ki", Some(-1024)),
            ("9Ei", None),
            ("Ki", None),
            ("1.", Some(1)),
            ("1.2.3", None),
            ("", None),
        ] {
            assert_eq!(as_quantity(&json!(text), Scalar::Integer), expected.map(Value::from), "{text}");
        }
    }
}
