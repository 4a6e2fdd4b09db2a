//! Equality, order and arithmetic, including the API server's semantics of lists that are sets or maps. Numbers of
//! different types compare by value, but arithmetic needs equal types.
//!
//! Follows cel-go `common/types` and, for lists, k8s.io/apiserver `pkg/cel/common/valuesunstructured.go`.

use std::cmp::Ordering;
use std::rc::Rc;

use serde_json::Value as Json;

use super::evaluator::Evaluator;
use super::stop::Stop;
use super::value::{List, ListKind, Map, Outcome, Value, field_schema};
use crate::schema::Schema;

/// The first second of year 1 and the last of year 9999, in Unix time.
const TIMESTAMPS: std::ops::RangeInclusive<i128> = -62_135_596_800..=253_402_300_799;
const SECOND: i128 = 1_000_000_000;

impl<'a> Value<'a> {
    /// The text for messages.
    pub(super) fn shown(&self) -> String {
        match self {
            Self::String(text) => text.to_string(),
            Self::Int(number) => number.to_string(),
            Self::Bool(value) => value.to_string(),
            other => other.type_name().to_owned(),
        }
    }

    pub(super) fn equals(&self, other: &Value<'a>, evaluator: &Evaluator<'_>) -> Result<bool, Stop> {
        evaluator.charge(1)?;
        Ok(match (self, other) {
            (Self::Opaque(what), _) | (_, Self::Opaque(what)) => return Err(Stop::unknown(*what)),
            (Self::Null, Self::Null) => true,
            (Self::Null, _) | (_, Self::Null) => false,
            (Self::Bool(left), Self::Bool(right)) => left == right,
            (Self::String(left), Self::String(right)) => {
                evaluator.charge_text(left.len().min(right.len()))?;
                left == right
            }
            (Self::Bytes(left), Self::Bytes(right)) => {
                evaluator.charge_text(left.len().min(right.len()))?;
                left == right
            }
            (Self::List(left), Self::List(right)) => left.equals(right, evaluator)?,
            (Self::Map(left), Self::Map(right)) => left.equals(right, evaluator)?,
            (Self::List(_) | Self::Map(_), _) | (_, Self::List(_) | Self::Map(_)) => {
                if evaluator.is_untyped {
                    return Ok(false);
                }
                return Err(Stop::unknown("a list or map compared with something else"));
            }
            (Self::Duration(left), Self::Duration(right)) => left == right,
            (Self::Timestamp(left), Self::Timestamp(right)) => left == right,
            (Self::Type(left), Self::Type(right)) => left == right,
            (Self::Optional(left), Self::Optional(right)) => match (left, right) {
                (Some(left), Some(right)) => left.equals(right, evaluator)?,
                (left, right) => left.is_none() && right.is_none(),
            },
            (Self::Duration(_), Self::Int(0)) | (Self::Int(0), Self::Duration(_)) => {
                return Err(Stop::unknown("values of different types"));
            }
            (Self::Quantity(_), Self::Quantity(right)) if right.is_computed() => {
                // The server currently fails on these; a later version may not.
                return Err(Stop::unknown("a comparison with a computed quantity"));
            }
            (Self::Quantity(left), Self::Quantity(right)) => left == right,
            (Self::Ip(left), Self::Ip(right)) => left == right,
            (Self::Cidr(left), Self::Cidr(right)) => left == right,
            (Self::Url(left), Self::Url(right)) => left.text() == right.text(),
            (Self::Semver(left), Self::Semver(right)) => left.compare(right) == Ordering::Equal,
            (Self::Format(left), Self::Format(right)) => left == right,
            _ => match numeric(self, other) {
                Some(order) => order == Some(Ordering::Equal),
                None => false,
            },
        })
    }

    /// Compares two values; `None` if their types are not ordered.
    pub(super) fn compare(&self, other: &Value<'a>) -> Option<Result<Ordering, Stop>> {
        Some(Ok(match (self, other) {
            (Self::Bool(left), Self::Bool(right)) => left.cmp(right),
            (Self::String(left), Self::String(right)) => left.as_bytes().cmp(right.as_bytes()),
            (Self::Bytes(left), Self::Bytes(right)) => left.cmp(right),
            (Self::Duration(left), Self::Duration(right)) => left.cmp(right),
            (Self::Timestamp(left), Self::Timestamp(right)) => left.cmp(right),
            _ => {
                return numeric(self, other)
                    .map(|order| order.ok_or_else(|| Stop::error("NaN values cannot be ordered")));
            }
        }))
    }
}

/// Compares two numbers by value; `Some(None)` with a NaN, `None` if one is not a number.
fn numeric(left: &Value<'_>, right: &Value<'_>) -> Option<Option<Ordering>> {
    let integer = |value: &Value<'_>| match value {
        Value::Int(number) => Some(i128::from(*number)),
        Value::Uint(number) => Some(i128::from(*number)),
        _ => None,
    };
    match (left, right) {
        (Value::Double(left), Value::Double(right)) => Some(left.partial_cmp(right)),
        (Value::Double(left), right) => integer(right).map(|right| against_float(right, *left).map(Ordering::reverse)),
        (left, Value::Double(right)) => integer(left).map(|left| against_float(left, *right)),
        (left, right) => Some(Some(integer(left)?.cmp(&integer(right)?))),
    }
}

fn against_float(integer: i128, float: f64) -> Option<Ordering> {
    if float.is_nan() {
        return None;
    }
    // Every 64-bit integer is within these bounds.
    if float >= 1.9e19 {
        return Some(Ordering::Less);
    }
    if float <= -1.9e19 {
        return Some(Ordering::Greater);
    }
    #[expect(clippy::cast_possible_truncation, reason = "within bounds, and the fraction is looked at below")]
    let whole = float.trunc() as i128;
    Some(integer.cmp(&whole).then_with(|| 0.0_f64.partial_cmp(&float.fract()).unwrap_or(Ordering::Equal)))
}

impl<'a> List<'a> {
    fn equals(&self, other: &List<'a>, evaluator: &Evaluator<'_>) -> Result<bool, Stop> {
        if self.items.len() != other.items.len() {
            return Ok(false);
        }
        match self.kind {
            ListKind::Plain => {
                self.in_order()?;
                other.in_order()?;
                for (left, right) in self.items.iter().zip(other.items.iter()) {
                    if !left.equals(right, evaluator)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            ListKind::Set => {
                for item in other.items.iter() {
                    if !self.holds(item, evaluator)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            ListKind::Keyed(keys) => {
                for item in other.items.iter() {
                    let same = match self.with_keys_of(item, keys, evaluator)? {
                        Some(found) => found.equals(item, evaluator)?,
                        None => false,
                    };
                    if !same {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
        }
    }

    /// Whether the set contains the item. The server compares the raw object values, not what rules see.
    fn holds(&self, item: &Value<'a>, evaluator: &Evaluator<'_>) -> Result<bool, Stop> {
        for candidate in self.items.iter() {
            match (candidate, item) {
                (Value::String(_), Value::String(_))
                | (Value::Int(_), Value::Int(_))
                | (Value::Bool(_), Value::Bool(_)) => {
                    if candidate.equals(item, evaluator)? {
                        return Ok(true);
                    }
                }
                _ => return Err(Stop::unknown("a set of anything but strings, integers or booleans")),
            }
        }
        Ok(false)
    }

    /// The item of the list map with the same keys; the last one if there are several.
    fn with_keys_of(
        &self,
        item: &Value<'a>,
        keys: &[String],
        evaluator: &Evaluator<'_>,
    ) -> Result<Option<&Value<'a>>, Stop> {
        let wanted = keys_of(item, keys)?;
        for candidate in self.items.iter().rev() {
            evaluator.charge(keys.len())?;
            if keys_of(candidate, keys)? == wanted {
                return Ok(Some(candidate));
            }
        }
        Ok(None)
    }

    pub(super) fn contains(&self, wanted: &Value<'a>, evaluator: &Evaluator<'_>) -> Result<bool, Stop> {
        let mut stopped = None;
        for item in self.items.iter() {
            match item.equals(wanted, evaluator) {
                Ok(true) => return Ok(true),
                Ok(false) => {}
                Err(stop @ (Stop::Budget | Stop::Cost | Stop::Abort(_))) => return Err(stop),
                Err(stop) => stopped = Some(stop),
            }
        }
        stopped.map_or(Ok(false), Err)
    }

    fn plus(&self, other: &List<'a>, evaluator: &Evaluator<'_>) -> Result<List<'a>, Stop> {
        evaluator.charge(self.items.len() + other.items.len())?;
        let mut items: Vec<Value<'a>> = (*self.items).clone();
        for item in other.items.iter() {
            match self.kind {
                ListKind::Plain => items.push(item.clone()),
                ListKind::Set => {
                    let known = List { kind: ListKind::Set, ..List::built(items.clone(), false) };
                    evaluator.charge(items.len())?;
                    if !known.holds(item, evaluator)? {
                        items.push(item.clone());
                    }
                }
                ListKind::Keyed(keys) => {
                    let wanted = keys_of(item, keys)?;
                    let mut place = None;
                    for (position, candidate) in items.iter().enumerate() {
                        evaluator.charge(keys.len())?;
                        if keys_of(candidate, keys)? == wanted {
                            place = Some(position);
                        }
                    }
                    match place.and_then(|position| items.get_mut(position)) {
                        Some(place) => *place = item.clone(),
                        None => items.push(item.clone()),
                    }
                }
            }
        }
        Ok(List {
            items: Rc::new(items),
            kind: self.kind,
            unordered: self.unordered || other.unordered,
            schema: self.schema.or(other.schema),
        })
    }
}

/// The raw values of an item under the keys of its list.
fn keys_of<'a>(item: &Value<'a>, keys: &[String]) -> Result<Vec<Option<&'a Json>>, Stop> {
    let Value::Map(Map::Typed { entries, .. }) = item else {
        return Err(Stop::unknown("an item of a list map that the rule itself builds"));
    };
    // The server looks up the keys in their escaped form, so it never finds keys that need escaping.
    if keys.iter().any(|key| super::names::unescape(key).as_deref() != Some(key) || key.contains(['.', '-', '/'])) {
        return Err(Stop::unknown("a key of a list map that rules write otherwise"));
    }
    Ok(keys.iter().map(|key| entries.get(key)).collect())
}

impl<'a> Map<'a> {
    fn equals(&self, other: &Map<'a>, evaluator: &Evaluator<'_>) -> Result<bool, Stop> {
        if self.len() != other.len() {
            return Ok(false);
        }
        match self {
            Self::Built(entries) => {
                for (key, value) in entries.iter() {
                    match other.find(key, evaluator)? {
                        Some(right) if value.equals(&right, evaluator)? => {}
                        _ => return Ok(false),
                    }
                }
                Ok(true)
            }
            Self::Untyped(entries) => {
                for (name, value) in *entries {
                    evaluator.charge(1)?;
                    let left = Value::of_json(value, evaluator)?;
                    match other.find(&Value::text(name), evaluator)? {
                        Some(right) if left.equals(&right, evaluator)? => {}
                        _ => return Ok(false),
                    }
                }
                Ok(true)
            }
            Self::Typed { entries, schema } => {
                for (name, value) in *entries {
                    evaluator.charge(1)?;
                    let declared = match schema.additional_schema() {
                        Some(additional) => Some(additional),
                        None => field_schema(schema, name),
                    };
                    let same = match (declared, other) {
                        (Some(below), Self::Typed { entries: right, .. }) => match (value, right.get(name)) {
                            (Json::Null, None | Some(Json::Null)) => true,
                            (_, Some(right)) => typed_equal(value, right, below, evaluator)?,
                            (_, None) => false,
                        },
                        // The server compares fields without a schema only if both sides have them.
                        (None, Self::Typed { entries: right, .. }) => match right.get(name) {
                            Some(right) => raw_equal(value, right, evaluator)?,
                            None => true,
                        },
                        (Some(below), Self::Built(_)) => {
                            let left = Value::of(value, below, evaluator)?;
                            match other.find(&Value::text(name), evaluator)? {
                                Some(right) => left.equals(&right, evaluator)?,
                                None => false,
                            }
                        }
                        (_, Self::Untyped(_)) => return Err(Stop::unknown("values with and without a schema")),
                        (None, Self::Built(_)) => return Err(Stop::unknown("an object compared with a map")),
                    };
                    if !same {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
        }
    }
}

fn typed_equal<'a>(
    left: &'a Json,
    right: &'a Json,
    schema: &'a Schema,
    evaluator: &Evaluator<'_>,
) -> Result<bool, Stop> {
    if schema.kind.is_none() && !schema.int_or_string {
        return raw_equal(left, right, evaluator);
    }
    Value::of(left, schema, evaluator)?.equals(&Value::of(right, schema, evaluator)?, evaluator)
}

fn raw_equal(left: &Json, right: &Json, evaluator: &Evaluator<'_>) -> Result<bool, Stop> {
    evaluator.charge(1)?;
    match (left, right) {
        (Json::Array(left), Json::Array(right)) => {
            if left.len() != right.len() {
                return Ok(false);
            }
            for (left, right) in left.iter().zip(right) {
                if !raw_equal(left, right, evaluator)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        (Json::Object(left), Json::Object(right)) => {
            if left.len() != right.len() {
                return Ok(false);
            }
            for (key, value) in left {
                let same = match right.get(key) {
                    Some(other) => raw_equal(value, other, evaluator)?,
                    None => false,
                };
                if !same {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        (Json::String(text), Json::String(other)) => {
            evaluator.charge_text(text.len())?;
            Ok(text == other)
        }
        _ => Ok(left == right),
    }
}

impl<'a> Evaluator<'a> {
    pub(super) fn unary(&self, operator: &str, operand: &Value<'a>) -> Outcome<'a> {
        match (operator, operand) {
            ("!", Value::Bool(value)) => Ok(Value::Bool(!value)),
            ("-", Value::Int(number)) => number.checked_neg().map(Value::Int).ok_or_else(overflow),
            ("-", Value::Double(number)) => Ok(Value::Double(-number)),
            ("-", Value::Duration(nanos)) => nanos.checked_neg().map(Value::Duration).ok_or_else(overflow),
            _ => Err(self.no_overload(operator, &[operand])),
        }
    }

    pub(super) fn binary(&self, operator: &str, left: &Value<'a>, right: &Value<'a>) -> Outcome<'a> {
        let ordered = |wanted: fn(Ordering) -> bool| match left.compare(right) {
            Some(order) => order.map(|order| Value::Bool(wanted(order))),
            None => Err(self.no_overload(operator, &[left, right])),
        };
        if let (Value::String(left), Value::String(right)) = (left, right) {
            self.charge_text(left.len().min(right.len()))?;
        }
        match operator {
            "==" => left.equals(right, self).map(Value::Bool),
            "!=" => left.equals(right, self).map(|same| Value::Bool(!same)),
            "<" => ordered(Ordering::is_lt),
            "<=" => ordered(Ordering::is_le),
            ">" => ordered(Ordering::is_gt),
            ">=" => ordered(Ordering::is_ge),
            "in" => match right {
                Value::List(list) => list.contains(left, self).map(Value::Bool),
                Value::Map(map) => Ok(Value::Bool(map.find(left, self)?.is_some())),
                other => Err(self.no_overload("in", &[left, other])),
            },
            _ => self.arithmetic(operator, left, right),
        }
    }

    fn arithmetic(&self, operator: &str, left: &Value<'a>, right: &Value<'a>) -> Outcome<'a> {
        match (left, right) {
            (Value::Int(left), Value::Int(right)) => integers(operator, *left, *right).map(Value::Int),
            (Value::Uint(left), Value::Uint(right)) => naturals(operator, *left, *right).map(Value::Uint),
            (Value::Double(left), Value::Double(right)) => Ok(Value::Double(match operator {
                "+" => left + right,
                "-" => left - right,
                "*" => left * right,
                "/" => left / right,
                _ => return Err(self.no_overload(operator, &[&Value::Double(*left), &Value::Double(*right)])),
            })),
            _ if operator == "+" => self.plus(left, right),
            _ if operator == "-" => self.minus(left, right),
            _ => Err(self.no_overload(operator, &[left, right])),
        }
    }

    pub(super) fn plus(&self, left: &Value<'a>, right: &Value<'a>) -> Outcome<'a> {
        match (left, right) {
            (Value::String(left), Value::String(right)) => {
                self.charge_text(left.len() + right.len())?;
                Ok(Value::text(&format!("{left}{right}")))
            }
            (Value::Bytes(left), Value::Bytes(right)) => {
                self.charge_text(left.len() + right.len())?;
                Ok(Value::Bytes(Rc::from([&**left, &**right].concat())))
            }
            (Value::List(left), Value::List(right)) => left.plus(right, self).map(Value::List),
            (Value::Duration(left), Value::Duration(right)) => {
                left.checked_add(*right).map(Value::Duration).ok_or_else(overflow)
            }
            (Value::Timestamp(time), Value::Duration(nanos)) | (Value::Duration(nanos), Value::Timestamp(time)) => {
                moment(time + i128::from(*nanos))
            }
            (Value::Int(left), Value::Int(right)) => integers("+", *left, *right).map(Value::Int),
            (Value::Uint(left), Value::Uint(right)) => naturals("+", *left, *right).map(Value::Uint),
            (Value::Double(left), Value::Double(right)) => Ok(Value::Double(left + right)),
            _ => Err(self.no_overload("+", &[left, right])),
        }
    }

    fn minus(&self, left: &Value<'a>, right: &Value<'a>) -> Outcome<'a> {
        match (left, right) {
            (Value::Duration(left), Value::Duration(right)) => {
                left.checked_sub(*right).map(Value::Duration).ok_or_else(overflow)
            }
            (Value::Timestamp(time), Value::Duration(nanos)) => moment(time - i128::from(*nanos)),
            (Value::Timestamp(left), Value::Timestamp(right)) => {
                i64::try_from(left - right).map(Value::Duration).map_err(|_| overflow())
            }
            _ => Err(self.no_overload("-", &[left, right])),
        }
    }

    /// The positions of the values in sorted order.
    pub(super) fn sorted_positions(&self, values: &[Value<'a>]) -> Result<Vec<usize>, Stop> {
        let rounds = values.len().checked_ilog2().map_or(1, |log| log as usize + 1);
        self.charge(values.len() * rounds)?;
        let mut order: Vec<usize> = (0..values.len()).collect();
        // Compare neighbours first, since the sort itself cannot fail.
        for pair in values.windows(2) {
            match pair[0].compare(&pair[1]) {
                Some(Ok(_)) if std::mem::discriminant(&pair[0]) == std::mem::discriminant(&pair[1]) => {}
                Some(Err(stop)) => return Err(stop),
                _ => return Err(Stop::unknown("sorting values of different types")),
            }
        }
        order.sort_by(|left, right| match values[*left].compare(&values[*right]) {
            Some(Ok(order)) => order,
            _ => Ordering::Equal,
        });
        Ok(order)
    }
}

/// A timestamp, if it is in the range that the server supports.
pub(super) fn moment<'a>(nanos: i128) -> Outcome<'a> {
    if TIMESTAMPS.contains(&nanos.div_euclid(SECOND)) { Ok(Value::Timestamp(nanos)) } else { Err(overflow()) }
}

fn overflow() -> Stop {
    Stop::error("overflow")
}

fn integers(operator: &str, left: i64, right: i64) -> Result<i64, Stop> {
    match operator {
        "+" => left.checked_add(right),
        "-" => left.checked_sub(right),
        "*" => left.checked_mul(right),
        "/" | "%" if right == 0 => return Err(by_zero(operator)),
        "/" => left.checked_div(right),
        _ => left.checked_rem(right),
    }
    .ok_or_else(overflow)
}

fn naturals(operator: &str, left: u64, right: u64) -> Result<u64, Stop> {
    match operator {
        "+" => left.checked_add(right),
        "-" => left.checked_sub(right),
        "*" => left.checked_mul(right),
        "/" | "%" if right == 0 => return Err(by_zero(operator)),
        "/" => left.checked_div(right),
        _ => left.checked_rem(right),
    }
    .ok_or_else(overflow)
}

fn by_zero(operator: &str) -> Stop {
    Stop::error(if operator == "/" { "division by zero" } else { "modulus by zero" })
}
