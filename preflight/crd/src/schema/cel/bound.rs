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

/// The cost of a node, and the schema of its value, if it is a part of the object.
type Bound<'s> = (u64, Option<&'s Schema>);

/// Variables in scope, innermost last.
type Scope<'a> = Vec<(&'a str, Option<&'a Schema>)>;

/// Estimates the maximum cost of one evaluation on the server.
pub(super) fn maximum_cost(root: &Node, schema: &Schema) -> u64 {
    let mut scope = vec![("self", Some(schema)), ("oldSelf", Some(schema))];
    bound(root, &mut scope).0
}

fn bound<'a>(node: &'a Node, scope: &mut Scope<'a>) -> Bound<'a> {
    let mut sum = |nodes: &mut dyn Iterator<Item = &'a Node>| -> u64 {
        nodes.map(|node| bound(node, scope).0).fold(0, u64::saturating_add)
    };
    match &node.expression {
        Expression::Name(name) => {
            let known = scope.iter().rev().find(|(known, _)| known == name);
            (1, known.and_then(|(_, schema)| *schema))
        }
        Expression::Select { operand, field, .. } => {
            let (cost, schema) = bound(operand, scope);
            let below = schema.and_then(|schema| schema.properties.get(field).or_else(|| schema.additional_schema()));
            (cost.saturating_add(1), below)
        }
        Expression::Has { operand, .. } => (bound(operand, scope).0.saturating_add(1), None),
        Expression::Index { operand, index, .. } => {
            let (cost, schema) = bound(operand, scope);
            let item = schema.and_then(|schema| schema.items.as_deref().or_else(|| schema.additional_schema()));
            (cost.saturating_add(bound(index, scope).0).saturating_add(1), item)
        }
        Expression::Unary { operand, .. } => (bound(operand, scope).0.saturating_add(1), None),
        Expression::Binary { left, right, .. } => (call(&[left, right], "", scope).0, None),
        Expression::Call { function, target, arguments } => {
            let operands: Vec<&Node> = target.as_deref().into_iter().chain(arguments).collect();
            let (cost, first) = call(&operands, function, scope);
            (cost, first.filter(|_| target.is_some() && !lengthens(function)))
        }
        Expression::And(parts) | Expression::Or(parts) => (sum(&mut parts.iter()), None),
        Expression::Conditional { condition, then, otherwise } => {
            let ways = bound(then, scope).0.max(bound(otherwise, scope).0);
            (bound(condition, scope).0.saturating_add(ways), None)
        }
        Expression::List(items) => (sum(&mut items.iter().map(|(_, item)| item)).saturating_add(10), None),
        Expression::Map(entries) => {
            let keys = sum(&mut entries.iter().map(|(_, key, _)| key));
            (keys.saturating_add(sum(&mut entries.iter().map(|(_, _, value)| value))).saturating_add(30), None)
        }
        Expression::Macro { function, range, variables, bodies } => {
            let (cost, list) = bound(range, scope);
            let count = match &range.expression {
                Expression::List(items) => items.len() as u64,
                _ => list.map_or(ITEMS, count_of),
            };
            let outside = scope.len();
            let item = list.and_then(|list| list.items.as_deref());
            let last = variables.len().saturating_sub(1);
            scope.extend(
                variables.iter().enumerate().map(|(index, name)| (name.as_str(), item.filter(|_| index == last))),
            );
            let body = bodies.iter().map(|body| bound(body, scope).0).fold(20, u64::saturating_add);
            scope.truncate(outside);
            let same = list.filter(|_| *function == "filter");
            (cost.saturating_add(count.saturating_mul(body)).saturating_add(20), same)
        }
        _ => (0, None),
    }
}

/// Estimates a call by its operands and their sizes. Returns the schema of the first one, too.
fn call<'a>(operands: &[&'a Node], function: &str, scope: &mut Scope<'a>) -> Bound<'a> {
    let mut first = None;
    let mut cost = 2_u64;
    let mut characters = 0_u64;
    let mut sizes = Vec::new();
    for (index, operand) in operands.iter().enumerate() {
        let (own, schema) = bound(operand, scope);
        if index == 0 {
            first = schema;
        }
        let size = match (&operand.expression, schema) {
            (Expression::String(text), _) => text.len() as u64,
            (expression, None) if is_scalar(expression) => 0,
            (_, Some(schema)) => size_of(schema),
            (Expression::List(items), _) => items.len() as u64,
            _ => CHARACTERS,
        };
        cost = cost.saturating_add(own);
        characters = characters.saturating_add(size);
        sizes.push(size);
    }
    let scan = characters / 10 + 2;
    let is_pattern = matches!(function, "matches" | "find" | "findAll" | "contains" | "validate");
    let [one, other] = [0, 1].map(|index| sizes.get(index).copied().unwrap_or_default());
    let pairs = match function {
        // Each item is compared with each other one.
        "distinct" | "sort" => one.saturating_mul(one).saturating_mul(21) / 10 + 11,
        "contains" if sizes.len() > 2 => one.saturating_mul(other),
        "intersects" | "equivalent" => one.saturating_mul(other).saturating_mul(2),
        _ => 0,
    };
    let cost = cost.saturating_add(pairs);
    let charge = match function {
        "size" => 0,
        _ if is_pattern => characters.min(1_000) / 4 + 40,
        _ => 3,
    };
    (cost.saturating_add(scan.saturating_mul(charge)), first)
}

/// Whether the result of a method may be larger than its target, or is another kind of value.
fn lengthens(function: &str) -> bool {
    const SHORTER: [&str; 9] =
        ["charAt", "distinct", "find", "lowerAscii", "orValue", "sort", "substring", "trim", "upperAscii"];
    !SHORTER.contains(&function)
}

/// Whether the value of an expression is a number or a boolean, which have no size.
fn is_scalar(expression: &Expression) -> bool {
    const SCALAR: [&str; 10] =
        ["contains", "double", "endsWith", "indexOf", "int", "lastIndexOf", "matches", "size", "startsWith", "uint"];
    match expression {
        Expression::Bool(_) | Expression::Int(_) | Expression::Uint(_) | Expression::Double(_) => true,
        Expression::Has { .. } | Expression::And(_) | Expression::Or(_) | Expression::Unary { .. } => true,
        Expression::Binary { operator, left, right } => {
            *operator != "+" || is_scalar(&left.expression) || is_scalar(&right.expression)
        }
        Expression::Call { function, .. } => SCALAR.contains(&function.as_str()),
        Expression::Macro { function, .. } => matches!(*function, "all" | "exists" | "exists_one" | "existsOne"),
        _ => false,
    }
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
