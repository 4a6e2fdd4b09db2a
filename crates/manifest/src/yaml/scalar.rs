//! What a scalar means: the YAML 1.1 rules of the Go library behind kubectl (`sigs.k8s.io/yaml`),
//! so that `0644`, `on`, `1_000` and `1.0` reach the server as the same values.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Number, Value};

/// A tag, as far as it affects the meaning of a scalar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tag {
    /// No tag: a plain scalar is resolved, a quoted one is a string.
    None,
    Str,
    Int,
    Float,
    Bool,
    Null,
    Timestamp,
    Binary,
    Merge,
    /// `!foo`, `!`, `!!omap`: ignored, and the scalar is a string.
    Other,
}

impl Tag {
    /// Parses the part after `tag:yaml.org,2002:`; `None` for other tags.
    pub(super) fn from_suffix(suffix: Option<&str>) -> Self {
        match suffix {
            Some("str") => Self::Str,
            Some("int") => Self::Int,
            Some("float") => Self::Float,
            Some("bool") => Self::Bool,
            Some("null") => Self::Null,
            Some("timestamp") => Self::Timestamp,
            Some("binary") => Self::Binary,
            Some("merge") => Self::Merge,
            _ => Self::Other,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Str => "!!str",
            Self::Int => "!!int",
            Self::Float => "!!float",
            Self::Bool => "!!bool",
            Self::Null => "!!null",
            Self::Timestamp => "!!timestamp",
            Self::Binary => "!!binary",
            Self::Merge => "!!merge",
            Self::None | Self::Other => "!",
        }
    }
}

/// The value of a scalar.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Scalar {
    Null,
    Bool(bool),
    Int(i64),
    /// Above the signed range: only a float can carry this number to the server.
    Unsigned(u64),
    Float(f64),
    Text(String),
}

/// A plain scalar that is probably not what its author thinks it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Surprise {
    /// A number with a leading zero.
    Octal,
    /// `yes`, `off`, `n`.
    Boolean,
}

/// Resolves a scalar. The error never quotes the text: it may be secret.
pub(super) fn resolve(text: &str, plain: bool, tag: Tag) -> Result<Scalar, String> {
    match tag {
        Tag::None if !plain => Ok(Scalar::Text(text.to_owned())),
        Tag::None => Ok(implicit(text)),
        Tag::Str | Tag::Merge | Tag::Other => Ok(Scalar::Text(text.to_owned())),
        Tag::Binary => binary(text),
        Tag::Timestamp => timestamp(text),
        Tag::Int | Tag::Float | Tag::Bool | Tag::Null => {
            let value = implicit(text);
            match (tag, value) {
                (Tag::Int, value @ (Scalar::Int(_) | Scalar::Unsigned(_)))
                | (Tag::Float, value @ (Scalar::Float(_) | Scalar::Int(_) | Scalar::Unsigned(_)))
                | (Tag::Bool, value @ Scalar::Bool(_))
                | (Tag::Null, value @ Scalar::Null) => Ok(value),
                _ => Err(format!("the value does not fit its tag {}", tag.name())),
            }
        }
    }
}

/// Whether the plain, untagged scalar is surprising. `value` is its resolved value.
pub(super) fn surprise(text: &str, value: &Scalar) -> Option<Surprise> {
    match value {
        Scalar::Bool(_) if !matches!(text, "true" | "True" | "TRUE" | "false" | "False" | "FALSE") => {
            Some(Surprise::Boolean)
        }
        Scalar::Int(_) | Scalar::Unsigned(_) | Scalar::Float(_) => {
            let digits = text.trim_start_matches(['+', '-']);
            let octal = digits.len() > 1
                && digits.starts_with('0')
                && digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_');
            octal.then_some(Surprise::Octal)
        }
        _ => None,
    }
}

/// The value as sent to the server. `None` for infinities and not-a-number, which JSON lacks.
pub(super) fn to_value(scalar: Scalar) -> Option<Value> {
    Some(match scalar {
        Scalar::Null => Value::Null,
        Scalar::Bool(value) => Value::Bool(value),
        Scalar::Int(value) => Value::Number(value.into()),
        #[expect(clippy::cast_precision_loss, reason = "the server reads numbers beyond int64 as floats")]
        Scalar::Unsigned(value) => Value::Number(Number::from_f64(value as f64)?),
        Scalar::Float(value) => Value::Number(float(value)?),
        Scalar::Text(value) => Value::String(value),
    })
}

/// Go prints the shortest form of a float, without an exponent below 1e21, and reads back an integer if it can.
fn float(value: f64) -> Option<Number> {
    if value.fract() == 0.0 && value.abs() < 1e21 {
        if let Ok(integer) = format!("{value}").parse::<i64>() {
            return Some(integer.into());
        }
        if value == 0.0 {
            return Some(0.into());
        }
    }
    Number::from_f64(value)
}

/// The scalar as a key of a JSON object; the error names the unsupported kind of key.
pub(super) fn to_key(scalar: Scalar) -> Result<String, &'static str> {
    match scalar {
        Scalar::Text(text) => Ok(text),
        Scalar::Int(value) => Ok(value.to_string()),
        Scalar::Bool(value) => Ok(value.to_string()),
        Scalar::Float(value) => Ok(float_key(value)),
        Scalar::Null => Err("null"),
        Scalar::Unsigned(_) => Err("a number beyond the signed 64-bit range"),
    }
}

/// `strconv.FormatFloat(value, 'g', -1, 32)`.
fn float_key(value: f64) -> String {
    #[expect(clippy::cast_possible_truncation, reason = "kubectl formats float keys in single precision")]
    let value = value as f32;
    if value.is_nan() {
        return ".nan".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { ".inf" } else { "-.inf" }.to_owned();
    }
    let scientific = format!("{value:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if (-4..6).contains(&exponent) || value == 0.0 {
        return format!("{value}");
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}

/// The meaning of a plain scalar without a tag.
fn implicit(text: &str) -> Scalar {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Scalar::Null,
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => return Scalar::Bool(true),
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            return Scalar::Bool(false);
        }
        ".nan" | ".NaN" | ".NAN" => return Scalar::Float(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => return Scalar::Float(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => return Scalar::Float(f64::NEG_INFINITY),
        _ => {}
    }
    if !text.starts_with(|first: char| first.is_ascii_digit() || matches!(first, '+' | '-' | '.')) {
        return Scalar::Text(text.to_owned());
    }
    let digits = text.replace('_', "");
    integer(&digits).or_else(|| decimal(&digits)).unwrap_or_else(|| Scalar::Text(text.to_owned()))
}

/// An integer with Go's base prefixes; a leading zero means base 8.
fn integer(text: &str) -> Option<Scalar> {
    let (sign, magnitude) = match text.as_bytes().first()? {
        b'+' | b'-' => text.split_at(1),
        _ => ("", text),
    };
    let prefix = magnitude.get(..2).unwrap_or_default();
    let (radix, digits) = match prefix {
        "0x" | "0X" => (16, &magnitude[2..]),
        "0o" | "0O" => (8, &magnitude[2..]),
        "0b" | "0B" => (2, &magnitude[2..]),
        _ if magnitude.len() > 1 && magnitude.starts_with('0') => (8, &magnitude[1..]),
        _ => (10, magnitude),
    };
    if digits.is_empty() || !digits.chars().all(|digit| digit.is_digit(radix)) {
        return None;
    }
    let value = i128::from(u64::from_str_radix(digits, radix).ok()?);
    let value = if sign == "-" { -value } else { value };
    match i64::try_from(value) {
        Ok(value) => Some(Scalar::Int(value)),
        // Go's parser of unsigned numbers accepts no sign.
        Err(_) if sign.is_empty() => u64::try_from(value).ok().map(Scalar::Unsigned),
        Err(_) => None,
    }
}

/// A decimal float: `[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?`.
fn decimal(text: &str) -> Option<Scalar> {
    fn skip_digits(text: &str) -> &str {
        text.trim_start_matches(|c: char| c.is_ascii_digit())
    }
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let after_whole = skip_digits(unsigned);
    let mut rest = after_whole;
    if let Some(fraction) = after_whole.strip_prefix('.') {
        rest = skip_digits(fraction);
        if after_whole.len() == unsigned.len() && rest.len() == fraction.len() {
            return None;
        }
    } else if after_whole.len() == unsigned.len() {
        return None;
    }
    if let Some(exponent) = rest.strip_prefix(['e', 'E']) {
        let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        rest = skip_digits(exponent);
        if rest.len() == exponent.len() {
            return None;
        }
    }
    if !rest.is_empty() {
        return None;
    }
    // A number that overflows stays a string, as in Go.
    text.parse::<f64>().ok().filter(|value| value.is_finite()).map(Scalar::Float)
}

/// A date, with or without a time, stays a string; only its format is checked.
fn timestamp(text: &str) -> Result<Scalar, String> {
    let mut parts = text.splitn(3, '-');
    let year = parts.next().filter(|year| year.len() == 4);
    let month = parts.next().filter(|month| matches!(month.len(), 1 | 2));
    let day = parts.next().map(|rest| rest.split(['T', 't', ' ']).next().unwrap_or_default());
    let numbers = [year, month, day.filter(|day| matches!(day.len(), 1 | 2))];
    let dated = numbers.iter().all(|number| number.is_some_and(|text| text.bytes().all(|byte| byte.is_ascii_digit())));
    if dated {
        Ok(Scalar::Text(text.to_owned()))
    } else {
        Err(format!("the value does not fit its tag {}", Tag::Timestamp.name()))
    }
}

/// Standard base64, line breaks ignored. Invalid UTF-8 becomes replacement characters, as in kubectl.
fn binary(text: &str) -> Result<Scalar, String> {
    let joined = text.replace(['\r', '\n'], "");
    let bytes = STANDARD
        .decode(joined)
        .map_err(|_| "the value of the tag !!binary is not padded standard base64".to_owned())?;
    Ok(Scalar::Text(String::from_utf8_lossy(&bytes).into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        match resolve(text, true, Tag::None).map(to_value) {
            Ok(Some(value)) => value.to_string(),
            Ok(None) => "not a JSON value".to_owned(),
            Err(message) => message,
        }
    }

    /// Expected values are those of kubectl 1.32.4 (`kubectl label --local -o json`).
    #[test]
    fn plain_scalars_mean_what_kubectl_reads() {
        for (text, expected) in [
            ("0644", "420"),
            ("0o644", "420"),
            ("0O17", "15"),
            ("-0o17", "-15"),
            ("0o8", "\"0o8\""),
            ("0899", "899"),
            ("08.5", "8.5"),
            ("-0644", "-420"),
            ("0_7", "7"),
            ("07777777777777777777777777", "7.777777777777778e+24"),
            ("0x1F", "31"),
            ("0X1f", "31"),
            ("-0x10", "-16"),
            ("0x_1", "1"),
            ("0x", "\"0x\""),
            ("0x1p4", "\"0x1p4\""),
            ("0xfffffffffffffffff", "\"0xfffffffffffffffff\""),
            ("0b101", "5"),
            ("-0b101", "-5"),
            ("0B11", "3"),
            ("0b2", "\"0b2\""),
            ("0b", "\"0b\""),
            ("1_000", "1000"),
            ("1__0", "10"),
            ("_1", "\"_1\""),
            ("1_0.5", "10.5"),
            ("+12", "12"),
            ("1.", "1"),
            ("1.0", "1"),
            (".5", "0.5"),
            ("+.5", "0.5"),
            (".5e1", "5"),
            (".", "\".\""),
            ("-0.0", "0"),
            ("12e03", "12000"),
            ("1e-7", "1e-7"),
            ("1e21", "1e+21"),
            ("1e400", "\"1e400\""),
            ("9223372036854775807", "9223372036854775807"),
            ("-9223372036854775808", "-9223372036854775808"),
            ("18446744073709551615", "1.8446744073709552e+19"),
            ("4611686018427387904.0", "4611686018427388000"),
            ("123456789012345678901234567890", "1.2345678901234568e+29"),
            ("yes", "true"),
            ("Off", "false"),
            ("y", "true"),
            ("N", "false"),
            ("tRue", "\"tRue\""),
            ("~", "null"),
            ("", "null"),
            ("Null", "null"),
            ("1:30", "\"1:30\""),
            ("190:20:30", "\"190:20:30\""),
            ("2001-12-14", "\"2001-12-14\""),
            ("1Gi", "\"1Gi\""),
            ("=", "\"=\""),
            ("<<", "\"<<\""),
            (".inf", "not a JSON value"),
            ("-.INF", "not a JSON value"),
            (".NaN", "not a JSON value"),
        ] {
            assert_eq!(shown(text), expected, "{text}");
        }
    }

    #[test]
    fn tags_decide_and_a_misfit_never_shows_the_value() {
        let tagged = |text, tag| resolve(text, false, tag);
        assert_eq!(tagged("123", Tag::Str), Ok(Scalar::Text("123".to_owned())));
        assert_eq!(tagged("12", Tag::Other), Ok(Scalar::Text("12".to_owned())));
        assert_eq!(tagged("0644", Tag::Int), Ok(Scalar::Int(420)));
        assert_eq!(tagged("3", Tag::Float), Ok(Scalar::Int(3)));
        assert_eq!(tagged("yes", Tag::Bool), Ok(Scalar::Bool(true)));
        assert_eq!(tagged("", Tag::Null), Ok(Scalar::Null));
        assert_eq!(tagged("2001-1-1", Tag::Timestamp), Ok(Scalar::Text("2001-1-1".to_owned())));
        assert_eq!(tagged("aGVs\nbG8=", Tag::Binary), Ok(Scalar::Text("hello".to_owned())));
        assert_eq!(tagged("/w==", Tag::Binary), Ok(Scalar::Text("\u{fffd}".to_owned())));
        for (text, tag) in [
            ("s3cret", Tag::Int),
            ("1.5", Tag::Int),
            ("s3cret", Tag::Float),
            ("s3cret", Tag::Bool),
            ("s3cret", Tag::Null),
            ("s3cret", Tag::Timestamp),
            ("s3cret@", Tag::Binary),
        ] {
            let message = tagged(text, tag).unwrap_err();
            assert!(!message.contains(text), "{message}");
        }
    }

    #[test]
    fn keys_are_written_as_kubectl_writes_them() {
        for (text, expected) in [
            ("on", Ok("true")),
            ("010", Ok("8")),
            ("-0644", Ok("-420")),
            ("0x10", Ok("16")),
            ("1.0", Ok("1")),
            ("1.5", Ok("1.5")),
            ("1e6", Ok("1e+06")),
            ("1e30", Ok("1e+30")),
            ("1e-5", Ok("1e-05")),
            ("3.14159265358979", Ok("3.1415927")),
            (".inf", Ok(".inf")),
            ("2001-12-14", Ok("2001-12-14")),
            ("~", Err("null")),
            ("18446744073709551615", Err("a number beyond the signed 64-bit range")),
        ] {
            let scalar = resolve(text, true, Tag::None).unwrap();
            assert_eq!(to_key(scalar).as_deref(), expected.as_deref(), "{text}");
        }
    }

    #[test]
    fn only_what_reads_differently_than_it_looks_surprises() {
        let of = |text: &str| surprise(text, &implicit(text));
        for text in ["yes", "On", "y", "NO"] {
            assert_eq!(of(text), Some(Surprise::Boolean), "{text}");
        }
        for text in ["0644", "-010", "0899", "00"] {
            assert_eq!(of(text), Some(Surprise::Octal), "{text}");
        }
        for text in ["true", "FALSE", "0", "10", "0o644", "0.5", "0x1F", "1e3", "yesterday"] {
            assert_eq!(of(text), None, "{text}");
        }
    }
}
