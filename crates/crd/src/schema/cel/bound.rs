//! Estimates the maximum cost of one evaluation of a rule on the server, by the sizes that a schema allows; sizes without
//! a maximum count as 10,000.
//!
//! Follows the prices of cel-go `interpreter/runtimecost.go` and k8s.io/apiserver `pkg/cel/library/cost.go`, rounded up.

use super::syntax::{Expression, Node};
use crate::schema::Schema;
use crate::schema::model::Type;

/// Items or keys that a list or map without a maximum is taken to have at most: more hardly fit into an object.
const ITEMS: u64 = 10_000;
/// Characters that a text without a maximum is taken to have at most.
const CHARACTERS: u64 = 10_000;
/// Length that the server assumes for the pattern of a named format.
const FORMAT: u64 = 128;

/// The maximum cost of a node, and the maximum size of its value: characters, items or keys.
#[derive(Clone, Copy, Debug, Default)]
struct Bound<'s> {
    cost: u64,
    size: u64,
    /// The schema of the value, if it is a part of the object.
    schema: Option<&'s Schema>,
}

impl<'s> Bound<'s> {
    /// A value without a size, such as a number.
    fn scalar(cost: u64) -> Self {
        Self { cost, size: 1, schema: None }
    }

    /// A value of which only the size is known.
    fn sized(cost: u64, size: u64) -> Self {
        Self { cost, size, schema: None }
    }

    /// A value whose schema, if it is known, limits its size.
    fn of_schema(cost: u64, schema: Option<&'s Schema>) -> Self {
        Self { cost, size: schema.map_or(CHARACTERS, size_of), schema }
    }

    fn plus(self, cost: u64) -> Self {
        Self { cost: self.cost.saturating_add(cost), ..self }
    }
}

/// Variables in scope, innermost last.
type Scope<'a> = Vec<(&'a str, Bound<'a>)>;

/// Estimates the maximum cost of one evaluation on the server.
pub(super) fn maximum_cost(root: &Node, schema: &Schema) -> u64 {
    let this = Bound::of_schema(0, Some(schema));
    bound(root, &mut vec![("self", this), ("oldSelf", this)]).cost
}

fn bound<'a>(node: &'a Node, scope: &mut Scope<'a>) -> Bound<'a> {
    let mut sum = |nodes: &mut dyn Iterator<Item = &'a Node>| -> u64 {
        nodes.map(|node| bound(node, scope).cost).fold(0, u64::saturating_add)
    };
    match &node.expression {
        Expression::Name(name) => {
            let known = scope.iter().rev().find(|(known, _)| known == name);
            known.map_or_else(|| Bound::of_schema(1, None), |(_, value)| Bound { cost: 1, ..*value })
        }
        Expression::Select { operand, field, .. } => {
            let Bound { cost, schema, .. } = bound(operand, scope).plus(1);
            let below = schema.and_then(|schema| schema.properties.get(field).or_else(|| schema.additional_schema()));
            Bound::of_schema(cost, below)
        }
        Expression::Has { operand, .. } | Expression::Unary { operand, .. } => {
            Bound::scalar(bound(operand, scope).plus(1).cost)
        }
        Expression::Index { operand, index, .. } => {
            let Bound { cost, schema, .. } = bound(operand, scope).plus(bound(index, scope).cost).plus(1);
            Bound::of_schema(cost, schema.and_then(value_schema))
        }
        Expression::Binary { operator, left, right } => operation(operator, bound(left, scope), bound(right, scope)),
        Expression::Call { function, target, arguments } => {
            let target = target.as_deref();
            let is_namespace = matches!(target.map(|node| &node.expression), Some(Expression::Name(name))
                if name == "sets" && scope.iter().all(|(known, _)| known != name));
            let operands = target.filter(|_| !is_namespace).into_iter().chain(arguments);
            let operands: Vec<Bound<'_>> = operands.map(|operand| bound(operand, scope)).collect();
            call(function, is_namespace, &operands)
        }
        Expression::And(parts) | Expression::Or(parts) => Bound::scalar(sum(&mut parts.iter())),
        Expression::Conditional { condition, then, otherwise } => {
            let [one, other] = [then, otherwise].map(|way| bound(way, scope));
            let is_same = matches!((one.schema, other.schema), (Some(one), Some(other)) if std::ptr::eq(one, other));
            let cost = bound(condition, scope).cost.saturating_add(one.cost.max(other.cost));
            Bound { cost, size: one.size.max(other.size), schema: one.schema.filter(|_| is_same) }
        }
        Expression::List(items) => {
            Bound::sized(sum(&mut items.iter().map(|(_, item)| item)).saturating_add(10), items.len() as u64)
        }
        Expression::Map(entries) => {
            let keys = sum(&mut entries.iter().map(|(_, key, _)| key));
            let values = sum(&mut entries.iter().map(|(_, _, value)| value));
            Bound::sized(keys.saturating_add(values).saturating_add(30), entries.len() as u64)
        }
        Expression::Macro { function, range, variables, bodies } => {
            let range = bound(range, scope);
            repetition(function, range, variables, bodies, scope)
        }
        Expression::String(text) => Bound::sized(0, text.len() as u64),
        Expression::Bytes(bytes) => Bound::sized(0, bytes.len() as u64),
        Expression::Null | Expression::Bool(_) | Expression::Int(_) | Expression::Uint(_) | Expression::Double(_) => {
            Bound::scalar(0)
        }
    }
}

/// Estimates a macro whose range has this bound.
fn repetition<'a>(
    function: &str,
    range: Bound<'a>,
    variables: &'a [String],
    bodies: &'a [Node],
    scope: &mut Scope<'a>,
) -> Bound<'a> {
    let is_optional = matches!(function, "optMap" | "optFlatMap");
    let count = if is_optional { 1 } else { range.size };
    let is_map = range.schema.is_some_and(|schema| schema.kind == Some(Type::Object));
    let outside = scope.len();
    for (index, name) in variables.iter().enumerate() {
        let is_value = index + 1 == variables.len() && (index > 0 || !is_map);
        let value = match is_value {
            _ if is_optional => range,
            true => Bound::of_schema(0, range.schema.and_then(value_schema)),
            false if is_map || range.schema.is_none() => Bound::of_schema(0, None),
            false => Bound::scalar(0),
        };
        scope.push((name, value));
    }
    let bodies: Vec<Bound<'_>> = bodies.iter().map(|body| bound(body, scope)).collect();
    scope.truncate(outside);
    let body = bodies.iter().map(|body| body.cost).fold(20, u64::saturating_add);
    let pairs = if function == "sortBy" { compared(range.size) } else { 0 };
    let cost = range.plus(count.saturating_mul(body)).plus(pairs).plus(20).cost;
    match function {
        "filter" | "sortBy" => Bound { cost, ..range },
        "optMap" | "optFlatMap" => bodies.last().map_or_else(|| Bound::scalar(cost), |body| Bound { cost, ..*body }),
        "all" | "exists" | "exists_one" => Bound::scalar(cost),
        _ => Bound::sized(cost, range.size),
    }
}

/// Estimates an operator with two operands.
fn operation<'a>(operator: &str, left: Bound<'a>, right: Bound<'a>) -> Bound<'a> {
    let sizes = left.size.saturating_add(right.size);
    let own = match operator {
        "in" => right.size.saturating_add(8),
        _ => scan(sizes),
    };
    let cost = left.plus(right.cost).plus(own).cost;
    if operator == "+" { Bound::sized(cost, sizes) } else { Bound::scalar(cost) }
}

/// Estimates a call. The target of a member call is the first operand.
fn call<'a>(function: &str, is_of_sets: bool, operands: &[Bound<'a>]) -> Bound<'a> {
    let characters = operands.iter().map(|operand| operand.size).fold(0, u64::saturating_add);
    let given = operands.iter().map(|operand| operand.cost).fold(0, u64::saturating_add);
    let [first, second] = [0, 1].map(|index| operands.get(index).copied().unwrap_or_default());
    let pairs = first.size.saturating_mul(second.size);
    let own = match function {
        "size" => 0,
        "equivalent" if is_of_sets => pairs.saturating_mul(2),
        _ if is_of_sets => pairs,
        // Each item is compared with each other one.
        "distinct" | "sort" => compared(first.size),
        "reverse" | "slice" => first.size,
        "flatten" => pairs.max(first.size),
        "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" => traversal(first),
        "matches" | "find" | "findAll" => tenths(first.size.saturating_add(1)).saturating_mul(second.size.div_ceil(4)),
        "validate" => tenths(second.size.saturating_add(1)).saturating_mul(FORMAT.div_ceil(4)),
        "contains" => tenths(first.size).saturating_mul(tenths(second.size)),
        "join" => tenths(joined(first, second).saturating_mul(2)),
        "replace" | "split" => tenths(first.size.saturating_mul(2)),
        _ => 0,
    };
    let cost = given.saturating_add(own).saturating_add(scan(if function == "size" { 0 } else { characters }));
    match function {
        // The result is not larger than the target.
        "distinct" | "filter" | "lowerAscii" | "or" | "orValue" | "reverse" | "slice" | "sort" | "substring"
        | "trim" | "upperAscii" | "value" | "find" => {
            let is_alternative = matches!(function, "or" | "orValue");
            Bound { cost, size: if is_alternative { first.size.max(second.size) } else { first.size }, ..first }
        }
        "string" | "dyn" | "of" | "ofNonZeroValue" if operands.len() == 1 => {
            Bound { cost, size: if is_number(first) { 40 } else { first.size }, ..first }
        }
        "split" | "findAll" => Bound::sized(cost, first.size.saturating_add(1)),
        "join" => Bound::sized(cost, joined(first, second)),
        "charAt" | "contains" | "double" | "endsWith" | "equivalent" | "hasValue" | "indexOf" | "int"
        | "intersects" | "isSorted" | "lastIndexOf" | "matches" | "size" | "startsWith" | "uint" => Bound::scalar(cost),
        "first" | "last" | "max" | "min" => Bound::of_schema(cost, first.schema.and_then(value_schema)),
        _ => Bound::of_schema(cost, None),
    }
}

/// Returns the cost of reading values of this size once, with the call.
fn scan(size: u64) -> u64 {
    (size / 10 + 2).saturating_mul(3).saturating_add(2)
}

/// Returns the cost of comparing each item of a list with each other one.
fn compared(count: u64) -> u64 {
    (count.saturating_mul(count).saturating_mul(21) / 10).saturating_add(11)
}

/// Returns the cost of reading each item of a list, or a text, whose characters have up to four bytes.
fn traversal(value: Bound<'_>) -> u64 {
    let is_text = |schema: &Schema| matches!(schema.kind, Some(Type::String) | None);
    match value.schema {
        Some(list) if list.kind == Some(Type::Array) => {
            let item = Bound::of_schema(0, list.items.as_deref());
            value.size.saturating_mul(traversal(item).saturating_add(1))
        }
        Some(other) if !is_text(other) => value.size,
        _ => tenths(value.size.saturating_mul(4)),
    }
}

/// Returns the most characters of the joined texts of a list.
fn joined(list: Bound<'_>, separator: Bound<'_>) -> u64 {
    let item = list.schema.and_then(value_schema).map_or(CHARACTERS, size_of);
    list.size.saturating_mul(item.saturating_add(separator.size))
}

fn is_number(value: Bound<'_>) -> bool {
    value.schema.is_some_and(|schema| matches!(schema.kind, Some(Type::Integer | Type::Number | Type::Boolean)))
}

/// A tenth, rounded up.
fn tenths(size: u64) -> u64 {
    size.div_ceil(10)
}

/// The schema of the items of a list, or of the values of a map.
fn value_schema(schema: &Schema) -> Option<&Schema> {
    schema.items.as_deref().or_else(|| schema.additional_schema())
}

/// The most items or keys.
fn count_of(schema: &Schema) -> u64 {
    let most = if schema.kind == Some(Type::Array) { schema.item_count.most } else { schema.property_count.most };
    most.map_or(ITEMS, |most| u64::try_from(most).unwrap_or(0))
}

/// The size of a value: characters, items or keys.
fn size_of(schema: &Schema) -> u64 {
    match schema.kind {
        Some(Type::Array | Type::Object) => count_of(schema),
        Some(Type::String) | None => {
            let listed = schema.enumeration.iter().flatten().filter_map(|value| value.as_str()).map(str::len).max();
            let most = schema.length.most.map(|most| u64::try_from(most).unwrap_or(0));
            listed.map(|longest| longest as u64).or(most).unwrap_or(CHARACTERS)
        }
        Some(_) => 1,
    }
}
