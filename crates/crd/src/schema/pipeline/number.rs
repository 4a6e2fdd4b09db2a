//! Numbers as the API server computes with them: 64-bit integers if written as an integer that fits, else 64-bit
//! floats, with the server's conversions between the two.
//!
//! Follows k8s.io/kube-openapi `pkg/validation/validate/values.go` (bounds, `MultipleOf`) and `type.go` (which numbers
//! are integers).

use serde_json::Number;

/// A number as the server decodes it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Numeric {
    /// Written without fraction or exponent, and within 64 bits.
    Integer(i64),
    /// Any other number.
    Float(f64),
}

impl Numeric {
    pub(super) fn of(number: &Number) -> Self {
        number.as_i64().map_or_else(|| Self::Float(number.as_f64().unwrap_or(f64::NAN)), Self::Integer)
    }

    #[expect(clippy::cast_precision_loss, reason = "the server loses the same digits")]
    pub(super) fn as_float(self) -> f64 {
        match self {
            Self::Integer(value) => value as f64,
            Self::Float(value) => value,
        }
    }

    /// Whether this type and format can hold it at all.
    pub(super) fn fits(self, is_integer: bool, format: Option<&str>) -> bool {
        match (is_integer, format) {
            (true, format) => {
                let value = match self {
                    Self::Integer(value) => Some(value),
                    // The server writes it with the fewest digits and parses that again, which turns -2^63 into less.
                    Self::Float(value) if value.fract() == 0.0 && value.abs() < BEYOND => to_integer(value),
                    Self::Float(_) => None,
                };
                value.is_some_and(|value| format != Some("int32") || i32::try_from(value).is_ok())
            }
            (false, Some("float")) => self.as_float().to_string().parse::<f32>().is_ok_and(|value| value.is_finite()),
            (false, _) => true,
        }
    }
}

/// The smallest positive integer that does not fit in 64 bits.
const BEYOND: f64 = 9_223_372_036_854_775_808.0;

/// Truncates; `None` if the value does not fit and the result depends on the server's processor.
pub(super) fn to_integer(value: f64) -> Option<i64> {
    #[expect(clippy::cast_possible_truncation, reason = "truncation is what is asked for")]
    (-BEYOND..BEYOND).contains(&value).then_some(value as i64)
}

/// Truncates a bound: if it is too small, it becomes the least integer on every processor.
pub(super) fn bound_to_integer(bound: f64) -> Option<i64> {
    if bound < -BEYOND { Some(i64::MIN) } else { to_integer(bound) }
}

/// Whether a float counts as an integer: whole, or so close to it that the server cannot tell.
pub(super) fn is_integral(value: f64) -> bool {
    const LIMIT: f64 = 9_007_199_254_740_991.0;
    if !(-LIMIT..=LIMIT).contains(&value) {
        return false;
    }
    if value.fract() == 0.0 {
        return true;
    }
    // Negative values wrap around in the server's conversion, so they are never close to an integer.
    let whole = if value >= 0.0 { value.trunc() } else { wrapped(value) };
    if whole == 0.0 {
        return false;
    }
    (value - whole).abs() / (value.abs() + whole.abs()).min(f64::MAX) < 1e-9
}

#[expect(clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "the server's conversion wraps and rounds too")]
fn wrapped(value: f64) -> f64 {
    to_integer(value).map_or(0.0, |value| value as u64 as f64)
}

/// `multipleOf` for floats.
pub(in crate::schema) fn is_multiple(value: f64, factor: f64) -> bool {
    factor > 0.0 && is_integral(if factor < 1.0 { 1.0 / factor * value } else { value / factor })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn almost_whole_positive_numbers_count_as_integers() {
        for (value, expected) in [
            (5.0, true),
            (-5.0, true),
            (0.0, true),
            (5.5, false),
            (5.000_000_000_1, true),
            (-5.000_000_000_1, false),
            (0.000_000_000_1, false),
            (-0.5, false),
            (1e300, false),
            (9_007_199_254_740_991.0, true),
            (9_007_199_254_740_992.0, false),
        ] {
            assert_eq!(is_integral(value), expected, "{value}");
        }
    }

    #[test]
    fn formats_bound_their_numbers() {
        assert!(Numeric::Integer(2_147_483_647).fits(true, Some("int32")));
        assert!(!Numeric::Integer(2_147_483_648).fits(true, Some("int32")));
        assert!(Numeric::Float(5.0).fits(true, Some("int32")));
        assert!(!Numeric::Float(5.000_000_000_1).fits(true, None));
        for float in [BEYOND, -BEYOND, 1e19] {
            assert!(
                !Numeric::Float(float).fits(true, Some("int64")) && !Numeric::Float(float).fits(true, None),
                "{float}"
            );
        }
        assert!(
            Numeric::Integer(i64::MIN).fits(true, None)
                && Numeric::Float(-9_223_372_036_854_774_784.0).fits(true, None)
        );
        assert!(Numeric::Float(3.4e38).fits(false, Some("float")));
        assert!(!Numeric::Float(3.5e38).fits(false, Some("float")));
        assert!(Numeric::Float(3.5e38).fits(false, Some("double")));
    }
}
