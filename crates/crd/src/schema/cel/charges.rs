//! What the API server charges for a call or an operator when it evaluates a rule, by the sizes of the operands.
//!
//! Follows cel-go `interpreter/runtimecost.go` and `ext/lists.go`, and k8s.io/apiserver `pkg/cel/library/cost.go`.

use super::value::Value;

/// Creating a list, with the call.
const NEW_LIST: u64 = 11;
/// Length that the server assumes for the pattern of a named format.
const FORMAT: u64 = 128;

/// Returns the charge of a function; for a member call, the target is the first argument. Without a result, it failed.
pub(super) fn of_call(function: &str, arguments: &[Value<'_>], result: Option<&Value<'_>>) -> u64 {
    let size = |index: usize| arguments.get(index).map_or(1, size_of);
    let of_result = result.map_or(1, size_of);
    let pair = |factor: u64| size(0).saturating_mul(size(1)).saturating_mul(factor).saturating_add(1);
    match function {
        "slice" | "reverse" | "lists.range" => of_result.saturating_add(NEW_LIST),
        "flatten" => {
            let depth = match arguments.get(1) {
                Some(Value::Int(depth)) => u64::try_from(*depth).unwrap_or_default(),
                _ => 1,
            };
            size(0).saturating_mul(depth).saturating_add(NEW_LIST)
        }
        "distinct" | "sort" => {
            let is_text = match arguments.first() {
                Some(Value::List(list)) => matches!(list.items.first(), Some(Value::String(_) | Value::Bytes(_))),
                _ => false,
            };
            let pairs = size(0).saturating_mul(size(0));
            let compared = if is_text { pairs.saturating_mul(21) / 10 } else { pairs.saturating_mul(2) };
            compared.saturating_add(NEW_LIST)
        }
        "sets.contains" | "sets.intersects" => pair(1),
        "sets.equivalent" => pair(2),
        "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" => arguments.first().map_or(0, traversal),
        "url" | "lowerAscii" | "upperAscii" | "substring" | "trim" | "startsWith" | "endsWith" | "format" | "cidr"
        | "isIP" | "isCIDR" | "quantity" | "isQuantity" | "semver" | "isSemver" => tenths(size(0)),
        "ip" | "bytes" | "string" if matches!(arguments.first(), Some(Value::String(_) | Value::Bytes(_))) => {
            // A string of a string costs nothing more.
            let converts = function != "string" || matches!(arguments.first(), Some(Value::Bytes(_)));
            if converts { tenths(size(0)) } else { 1 }
        }
        "replace" | "split" | "ip.isCanonical" => tenths(size(0).saturating_mul(2)),
        "join" => tenths(of_result.saturating_mul(2)),
        "matches" | "find" | "findAll" => matched(size(0), size(1)),
        "validate" => matched(size(1), FORMAT),
        "contains" => tenths(size(0)).saturating_mul(tenths(size(1))),
        "containsIP" | "containsCIDR" => {
            let bits = if function == "containsCIDR" { tenths(size(0)).saturating_add(1) } else { 0 };
            let text = if matches!(arguments.get(1), Some(Value::String(_))) { tenths(size(1)) } else { 0 };
            tenths(size(0).saturating_mul(2)).saturating_add(bits).saturating_add(text)
        }
        _ => 1,
    }
}

/// Returns the charge of an operator with two operands.
pub(super) fn of_operator(operator: &str, left: &Value<'_>, right: &Value<'_>) -> u64 {
    let is_text = |value: &Value<'_>| matches!(value, Value::String(_) | Value::Bytes(_));
    match (operator, left, right) {
        ("in", _, Value::List(list)) => list.items.len() as u64,
        (
            "==" | "!=",
            Value::Quantity(_) | Value::Ip(_) | Value::Cidr(_) | Value::Url(_) | Value::Semver(_) | Value::Format(_),
            _,
        ) => 1,
        ("==" | "!=", ..) => tenths(size_of(left).min(size_of(right))),
        ("<" | "<=" | ">" | ">=", ..) if is_text(left) => tenths(size_of(left).min(size_of(right))),
        ("+", ..) if is_text(left) => tenths(size_of(left).saturating_add(size_of(right))),
        _ => 1,
    }
}

/// A tenth, rounded up.
fn tenths(size: u64) -> u64 {
    size.div_ceil(10)
}

fn matched(text: u64, pattern: u64) -> u64 {
    tenths(text.saturating_add(1)).saturating_mul(pattern.div_ceil(4))
}

fn size_of(value: &Value<'_>) -> u64 {
    match value {
        Value::String(text) => text.chars().count() as u64,
        Value::Bytes(bytes) => bytes.len() as u64,
        Value::List(list) => list.items.len() as u64,
        Value::Map(map) => map.len() as u64,
        Value::Cidr(network) => u64::from(network.length).div_ceil(8),
        Value::Optional(Some(held)) => size_of(held),
        _ => 1,
    }
}

fn traversal(value: &Value<'_>) -> u64 {
    match value {
        Value::String(text) => text.len() as u64 / 10,
        Value::Bytes(bytes) => bytes.len() as u64 / 10,
        Value::List(list) => list.items.iter().map(traversal).fold(0, u64::saturating_add),
        // The keys and values of a map cost more.
        Value::Map(map) => map.len() as u64,
        _ => 1,
    }
}
