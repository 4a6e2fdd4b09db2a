//! Evaluates a rule when only some fields are known: those that are always absent, and those that always have their
//! default.

use serde_json::Value as Json;

use super::names::unescape;
use super::order::Order;
use super::syntax::{Expression, Node};
use super::time::duration;

/// What is known about a field below `self` for all objects.
#[derive(Clone, Debug, PartialEq)]
pub enum Known {
    /// It is always absent.
    Absent,
    /// It always has this value.
    Value(Json),
    /// It always has this value, a duration in nanoseconds.
    Duration(i64),
}

impl Known {
    /// Reads a text of format `duration` as rules do; `None` if they cannot.
    #[must_use]
    pub fn duration(text: &str) -> Option<Self> {
        duration(text).map(Self::Duration)
    }
}

/// Whether the node is true or false for every object; `None` if that depends.
pub(super) fn decide(node: &Node, known: &dyn Fn(&[&str]) -> Option<Known>) -> Option<bool> {
    let decided = |node: &Node| decide(node, known);
    match &node.expression {
        Expression::Bool(value) => Some(*value),
        Expression::Has { operand, field } => {
            let field = unescape(field).unwrap_or_else(|| field.clone());
            let path = path_of(operand)?;
            let names: Vec<&str> = path.iter().map(String::as_str).chain([field.as_str()]).collect();
            known(&names).map(|known| known != Known::Absent)
        }
        Expression::Unary { operator: "!", operand } => decided(operand).map(|value| !value),
        // One false operand decides a conjunction even if another fails; one true operand decides a disjunction.
        Expression::And(parts) => junction(parts.iter().map(decided), false),
        Expression::Or(parts) => junction(parts.iter().map(decided), true),
        Expression::Conditional { condition, then, otherwise } => match decided(condition) {
            Some(true) => decided(then),
            Some(false) => decided(otherwise),
            None => None,
        },
        Expression::Binary { operator: operator @ ("==" | "!=" | "<" | "<=" | ">" | ">="), left, right } => {
            if let (Some(left), Some(right)) = (measure(left, known), measure(right, known)) {
                return Order::of(operator).map(|order| order.holds(left, right));
            }
            let same = value(left, known)? == value(right, known)?;
            match *operator {
                "==" => Some(same),
                "!=" => Some(!same),
                _ => None,
            }
        }
        Expression::Binary { operator: "in", left, right } => {
            let Expression::List(items) = &right.expression else { return None };
            let wanted = value(left, known)?;
            let values: Option<Vec<Json>> = items.iter().map(|(_, item)| value(item, known)).collect();
            Some(values?.contains(&wanted))
        }
        _ => match value(node, known)? {
            Json::Bool(value) => Some(value),
            _ => None,
        },
    }
}

/// `deciding` if one part is; the opposite if all parts are the opposite.
fn junction(parts: impl Iterator<Item = Option<bool>>, deciding: bool) -> Option<bool> {
    let mut all_known = true;
    for part in parts {
        match part {
            Some(value) if value == deciding => return Some(deciding),
            Some(_) => {}
            None => all_known = false,
        }
    }
    all_known.then_some(!deciding)
}

/// A number, a size, or a duration in nanoseconds, if it is small enough to be exact. Numbers of different types compare by
/// value.
fn measure(node: &Node, known: &dyn Fn(&[&str]) -> Option<Known>) -> Option<f64> {
    let number = |number: f64| Some(number).filter(|number| number.abs() < 9e15);
    #[expect(clippy::cast_precision_loss, reason = "what is too large is left out")]
    let whole = |value: i64| number(value as f64);
    let of_field = |node: &Node| {
        let path = path_of(node)?;
        let names: Vec<&str> = path.iter().map(String::as_str).collect();
        match known(&names)? {
            Known::Value(value) => Some(value),
            Known::Absent | Known::Duration(_) => None,
        }
    };
    if let Some(nanos) = nanoseconds(node, known) {
        return whole(nanos);
    }
    match &node.expression {
        Expression::Int(value) => whole(*value),
        Expression::Double(value) => number(*value),
        Expression::Unary { operator: "-", operand } => measure(operand, known).map(|value| -value),
        Expression::Select { .. } => match of_field(node)? {
            Json::Number(value) => number(value.as_f64()?),
            // A text compares with a duration only if its format is that.
            _ => None,
        },
        Expression::Call { function, target, arguments } => {
            let operand = match (target.as_deref(), arguments.as_slice()) {
                (Some(operand), []) | (None, [operand]) => operand,
                _ => return None,
            };
            let count = |count: usize| whole(i64::try_from(count).ok()?);
            match (function.as_str(), of_field(operand)?) {
                ("size", Json::String(text)) => count(text.chars().count()),
                ("size", Json::Array(items)) => count(items.len()),
                _ => None,
            }
        }
        _ => None,
    }
}

/// Returns a duration in nanoseconds: that of a field, or one that is written out.
fn nanoseconds(node: &Node, known: &dyn Fn(&[&str]) -> Option<Known>) -> Option<i64> {
    match &node.expression {
        Expression::Call { function, target: None, arguments } if function == "duration" => {
            match arguments.as_slice() {
                [Node { expression: Expression::String(text), .. }] => duration(text),
                _ => None,
            }
        }
        Expression::Select { .. } => {
            let path = path_of(node)?;
            let names: Vec<&str> = path.iter().map(String::as_str).collect();
            match known(&names)? {
                Known::Duration(nanos) => Some(nanos),
                Known::Absent | Known::Value(_) => None,
            }
        }
        _ => None,
    }
}

/// Strings and booleans only: equality of numbers depends on their types.
fn value(node: &Node, known: &dyn Fn(&[&str]) -> Option<Known>) -> Option<Json> {
    match &node.expression {
        Expression::String(text) => Some(text.as_str().into()),
        Expression::Bool(value) => Some((*value).into()),
        Expression::Select { .. } => {
            let path = path_of(node)?;
            let names: Vec<&str> = path.iter().map(String::as_str).collect();
            match known(&names)? {
                Known::Value(value) if value.is_string() || value.is_boolean() => Some(value),
                _ => None,
            }
        }
        _ => None,
    }
}

/// The fields from `self` to a node; `None` for anything else.
fn path_of(node: &Node) -> Option<Vec<String>> {
    match &node.expression {
        Expression::Name(name) if name == "self" => Some(Vec::new()),
        Expression::Select { operand, field, optional: false } => {
            let mut path = path_of(operand)?;
            path.push(unescape(field).unwrap_or_else(|| field.clone()));
            Some(path)
        }
        _ => None,
    }
}
