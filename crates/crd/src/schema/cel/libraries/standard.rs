//! CEL's own functions: sizes, string tests, conversions between types, parts of timestamps, and optional values.
//!
//! Follows cel-go `common/stdlib/standard.go` and `cel/library.go` (optional values).

use std::rc::Rc;

use super::super::evaluator::Evaluator;
use super::super::operators::moment;
use super::super::stop::Stop;
use super::super::time;
use super::super::value::{Outcome, Value};
use super::Call;
use crate::duration::nanoseconds;

pub(in super::super) fn call<'a>(call: &Call<'_, 'a>) -> Option<Outcome<'a>> {
    let Call { evaluator, function, is_member, arguments } = *call;
    Some(match (function, arguments) {
        ("size", [value]) => size(evaluator, value)?,
        ("contains" | "startsWith" | "endsWith", [Value::String(text), Value::String(part)]) if is_member => {
            if let Err(stop) = evaluator.charge_text(text.len()) {
                return Some(Err(stop));
            }
            Ok(Value::Bool(match function {
                "contains" => text.contains(&**part),
                "startsWith" => text.starts_with(&**part),
                _ => text.ends_with(&**part),
            }))
        }
        ("dyn", [value]) if !is_member => Ok(value.clone()),
        ("type", [value]) if !is_member => Ok(Value::Type(value.type_name())),
        ("int" | "uint" | "double" | "string" | "bool" | "bytes" | "duration" | "timestamp", [value]) if !is_member => {
            convert(function, value)?
        }
        (_, [Value::Duration(nanos)]) if is_member => duration_part(function, *nanos)?,
        (_, [Value::Timestamp(nanos)]) if is_member => timestamp_part(function, *nanos)?,
        (_, [Value::Timestamp(_), Value::String(_)]) if function.starts_with("get") => {
            Err(Stop::unknown(format!("{function}() in a time zone")))
        }
        ("string", [value]) if is_member => convert(function, value)?,
        _ => return None,
    })
}

fn size<'a>(evaluator: &Evaluator<'a>, value: &Value<'a>) -> Option<Outcome<'a>> {
    let size = match value {
        Value::String(text) => {
            if let Err(stop) = evaluator.charge_text(text.len()) {
                return Some(Err(stop));
            }
            text.chars().count()
        }
        Value::Bytes(bytes) => bytes.len(),
        Value::List(list) => list.items.len(),
        Value::Map(map) => map.len(),
        _ => return None,
    };
    Some(Ok(Value::Int(i64::try_from(size).unwrap_or(i64::MAX))))
}

/// The exact bounds of 64-bit integers as floating point numbers.
const INT_BOUND: f64 = 9_223_372_036_854_775_808.0;
const UINT_BOUND: f64 = 18_446_744_073_709_551_616.0;

fn convert<'a>(function: &str, value: &Value<'a>) -> Option<Outcome<'a>> {
    let range = || Stop::error("range error");
    let unreadable = |text: &str| Stop::error(format!("type conversion error: {text:?} to {function}"));
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "bounds are tested, and precision is lost on the server, too"
    )]
    Some(match (function, value) {
        ("int", Value::Int(_)) | ("uint", Value::Uint(_)) | ("double", Value::Double(_)) => Ok(value.clone()),
        ("string", Value::String(_)) | ("bool", Value::Bool(_)) | ("bytes", Value::Bytes(_)) => Ok(value.clone()),
        ("duration", Value::Duration(_)) | ("timestamp", Value::Timestamp(_)) => Ok(value.clone()),
        ("int", Value::Uint(number)) => i64::try_from(*number).map(Value::Int).map_err(|_| range()),
        ("int", Value::Double(number)) => {
            if *number > -INT_BOUND && *number < INT_BOUND {
                Ok(Value::Int(*number as i64))
            } else {
                Err(range())
            }
        }
        ("int", Value::String(text)) => text.parse().map(Value::Int).map_err(|_| unreadable(text)),
        ("int", Value::Timestamp(nanos)) => {
            i64::try_from(nanos.div_euclid(1_000_000_000)).map(Value::Int).map_err(|_| range())
        }
        ("int", Value::Duration(nanos)) => Ok(Value::Int(*nanos)),
        ("uint", Value::Int(number)) => u64::try_from(*number).map(Value::Uint).map_err(|_| range()),
        ("uint", Value::Double(number)) => {
            if *number >= 0.0 && *number < UINT_BOUND {
                Ok(Value::Uint(*number as u64))
            } else {
                Err(range())
            }
        }
        ("uint", Value::String(text)) if text.starts_with('+') => Err(unreadable(text)),
        ("uint", Value::String(text)) => text.parse().map(Value::Uint).map_err(|_| unreadable(text)),
        ("double", Value::Int(number)) => Ok(Value::Double(*number as f64)),
        ("double", Value::Uint(number)) => Ok(Value::Double(*number as f64)),
        ("double", Value::String(text)) => float(text),
        ("bool", Value::String(text)) => match &**text {
            "1" | "t" | "T" | "TRUE" | "true" | "True" => Ok(Value::Bool(true)),
            "0" | "f" | "F" | "FALSE" | "false" | "False" => Ok(Value::Bool(false)),
            _ => Err(unreadable(text)),
        },
        ("bytes", Value::String(text)) => Ok(Value::Bytes(Rc::from(text.as_bytes()))),
        ("string", Value::Bool(value)) => Ok(Value::text(&value.to_string())),
        ("string", Value::Int(number)) => Ok(Value::text(&number.to_string())),
        ("string", Value::Uint(number)) => Ok(Value::text(&number.to_string())),
        // The server's %g differs for large and small numbers.
        ("string", Value::Double(number)) if *number == 0.0 || (1e-4..1e6).contains(&number.abs()) => {
            Ok(Value::text(&number.to_string()))
        }
        ("string", Value::Double(_)) => Err(Stop::unknown("string() of a very large or small number")),
        ("string", Value::Bytes(bytes)) => match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Value::text(text)),
            Err(_) => Err(Stop::error("invalid UTF-8 in bytes, cannot convert to string")),
        },
        ("string", Value::Ip(address)) => Ok(Value::text(&address.to_string())),
        ("string", Value::Cidr(network)) => Ok(Value::text(&network.to_string())),
        ("string", Value::Duration(_) | Value::Timestamp(_)) => Err(Stop::unknown("string() of a time")),
        ("duration", Value::String(text)) => nanoseconds(text).map(Value::Duration).ok_or_else(|| unreadable(text)),
        ("duration", Value::Int(_)) => Err(Stop::unknown("duration() of an integer")),
        ("timestamp", Value::String(text)) => match time::rfc3339(text) {
            Some(nanos) => moment(nanos),
            None => Err(unreadable(text)),
        },
        ("timestamp", Value::Int(seconds)) => moment(i128::from(*seconds) * 1_000_000_000),
        _ => return None,
    })
}

/// Parses a number in a form that Go and Rust parse alike.
fn float<'a>(text: &str) -> Outcome<'a> {
    let plain = |character: char| character.is_ascii_digit() || "+-.eE".contains(character);
    if text.is_empty() || (text.chars().all(plain) && text.parse::<f64>().is_err()) {
        return Err(Stop::error(format!("type conversion error: {text:?} to double")));
    }
    match text.parse::<f64>() {
        Ok(number) if text.chars().all(plain) && number.is_finite() => Ok(Value::Double(number)),
        Ok(number) if number.is_infinite() && text.chars().all(plain) => {
            Err(Stop::error(format!("type conversion error: {text:?} to double")))
        }
        Err(_) if text.chars().all(|character| !"xX_iInN".contains(character)) => {
            Err(Stop::error(format!("type conversion error: {text:?} to double")))
        }
        _ => Err(Stop::unknown(format!("double({text:?})"))),
    }
}

fn duration_part<'a>(function: &str, nanos: i64) -> Option<Outcome<'a>> {
    let unit = match function {
        "getHours" => 3_600_000_000_000,
        "getMinutes" => 60_000_000_000,
        "getSeconds" => 1_000_000_000,
        "getMilliseconds" => 1_000_000,
        _ => return None,
    };
    Some(Ok(Value::Int(nanos / unit)))
}

/// A part of a timestamp in UTC; the overloads with a time zone are not implemented here.
fn timestamp_part<'a>(function: &str, nanos: i128) -> Option<Outcome<'a>> {
    let seconds = i64::try_from(nanos.div_euclid(1_000_000_000)).ok()?;
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (year, month, day) = time::civil(days);
    Some(Ok(Value::Int(match function {
        "getFullYear" => year,
        "getMonth" => month - 1,
        "getDayOfMonth" => day - 1,
        "getDate" => day,
        "getDayOfWeek" => (days + 4).rem_euclid(7),
        "getDayOfYear" => days - time::days(year, 1, 1),
        "getHours" => second / 3600,
        "getMinutes" => second / 60 % 60,
        "getSeconds" => second % 60,
        "getMilliseconds" => i64::try_from(nanos.rem_euclid(1_000_000_000) / 1_000_000).ok()?,
        _ => return None,
    })))
}

pub(in super::super) fn optional<'a>(call: &Call<'_, 'a>) -> Option<Outcome<'a>> {
    let Call { function, is_member, arguments, .. } = *call;
    Some(Ok(match (function, arguments) {
        ("optional.none", []) => Value::Optional(None),
        ("optional.of", [value]) if !is_member => Value::some(value.clone()),
        ("optional.ofNonZeroValue", [value]) if !is_member => {
            let zero = match value {
                Value::Null | Value::Bool(false) | Value::Int(0) | Value::Uint(0) | Value::Duration(0) => true,
                Value::Double(number) => *number == 0.0,
                Value::String(text) => text.is_empty(),
                Value::Bytes(bytes) => bytes.is_empty(),
                Value::List(list) => list.items.is_empty(),
                Value::Map(map) => map.len() == 0,
                Value::Bool(_) | Value::Int(_) | Value::Uint(_) | Value::Duration(_) => false,
                _ => return Some(Err(Stop::unknown("optional.ofNonZeroValue()"))),
            };
            if zero { Value::Optional(None) } else { Value::some(value.clone()) }
        }
        ("hasValue", [Value::Optional(held)]) if is_member => Value::Bool(held.is_some()),
        ("value", [Value::Optional(held)]) if is_member => {
            return Some(
                held.as_ref()
                    .map_or_else(|| Err(Stop::error("optional.none() dereference")), |value| Ok((**value).clone())),
            );
        }
        _ => return None,
    }))
}
