//! Unchanged rules that evaluate differently: CEL sees a value by the type and format of its node, so a wider type or a
//! dropped format may change the result of a rule, and a rule sees new defaults.

use super::defaults::gains;
use super::probe::node_at;
use crate::schema::cel::{Claim, Hint, Order, Program, Step};
use crate::schema::model::{CelRule, Schema, Type};

/// Whether the rule may be true of an object under the old schema and not under the new one.
pub(super) fn computes_otherwise(rule: &CelRule, old: &Schema, new: &Schema) -> bool {
    let Ok(program) = Program::shared(rule) else { return true };
    is_retyped(rule, &program, old, new) || is_filled(rule, &program, old, new)
}

/// Whether the rule uses whole objects that contain new defaults. If it compares objects of one node with each other,
/// as with their old selves, all get the same defaults and compare as before.
fn is_filled(rule: &CelRule, program: &Program, old: &Schema, new: &Schema) -> bool {
    let is_compound =
        |node: &Schema| !node.int_or_string && matches!(node.kind, None | Some(Type::Array | Type::Object));
    let wholes: Vec<(Vec<Step>, Hint)> = program
        .hints()
        .paths
        .into_iter()
        .filter(|(path, hint)| hint.whole && node_at(new, path).is_some_and(is_compound))
        .collect();
    let is_filled = |path: &[Step]| node_at(new, path).is_some_and(|after| gains(node_at(old, path), after));
    let among_themselves = match wholes.as_slice() {
        [(_, hint)] => hint.literals.is_empty() && !rule.rule.contains('{'),
        _ => false,
    };
    !among_themselves && wholes.iter().any(|(path, _)| is_filled(path))
}

/// Whether the rule reads a value whose CEL type changes.
fn is_retyped(rule: &CelRule, program: &Program, old: &Schema, new: &Schema) -> bool {
    // Arithmetic on integers and floats, and their text form, may differ.
    let computes = ["/", "%", "string", "type", "format"].into_iter().any(|word| rule.rule.contains(word));
    let read = program.hints().paths.into_iter().filter(|(_, hint)| hint.read);
    let mut is_rounded = false;
    let is_retyped = read.map(|(path, _)| path).any(|path| match (node_at(old, &path), node_at(new, &path)) {
        (Some(old), Some(new)) => {
            is_rounded |= may_be_rounded(old, new);
            format(old) != format(new) || (computes && is_float(old) != is_float(new))
        }
        _ => false,
    });
    // A transition rule compares a stored object with itself, in which all numbers are rounded alike.
    is_retyped
        || (is_rounded && !program.uses_old_self() && !program.claim(&[]).is_some_and(|it| rounds_alike(&it, true)))
}

/// The greatest number up to which floats represent every integer.
pub(super) const EXACT: i64 = 9_007_199_254_740_992;

/// Returns whether integers become floats, some of them beyond [`EXACT`].
pub(super) fn may_be_rounded(old: &Schema, new: &Schema) -> bool {
    #[expect(clippy::cast_precision_loss, reason = "it is a power of two")]
    let exact = EXACT as f64;
    let is_bounded =
        old.minimum.is_some_and(|limit| limit.value >= -exact) && old.maximum.is_some_and(|limit| limit.value <= exact);
    let is_small = |value: &serde_json::Value| value.as_i64().is_some_and(|value| value.abs() <= EXACT);
    let is_listed = old.enumeration.as_ref().is_some_and(|values| values.iter().all(is_small));
    old.kind == Some(Type::Integer)
        && !old.int_or_string
        && is_float(new)
        && !is_bounded
        && !is_listed
        && old.format.as_deref() != Some("int32")
}

/// Returns whether a claim that is true of integers stays true when they are rounded to floats, or stays false if it is not
/// asserted. Rounding keeps the order of numbers, though it may make different ones equal.
fn rounds_alike(claim: &Claim, asserted: bool) -> bool {
    let all = |claims: &[Claim], asserted| claims.iter().all(|claim| rounds_alike(claim, asserted));
    let is_exact = |literal: &serde_json::Value| match literal.as_i64() {
        Some(number) => number.abs() <= EXACT,
        None => !literal.is_number() || literal.is_f64(),
    };
    match claim {
        Claim::Constant(_) | Claim::Present(_) | Claim::Counted(..) | Claim::Matches(..) | Claim::Error => true,
        Claim::All(claims) | Claim::Any(claims) => all(claims, asserted),
        Claim::Not(inner) => rounds_alike(inner, !asserted),
        Claim::Same(parts) => all(&**parts, true) && all(&**parts, false),
        Claim::If(parts) => {
            let [condition, rest @ ..] = &**parts;
            rounds_alike(condition, true) && rounds_alike(condition, false) && all(rest, asserted)
        }
        Claim::OfString(_, ways) => all(&**ways, asserted),
        Claim::Each { body, .. } => rounds_alike(body, asserted),
        Claim::Tallied { body, .. } => rounds_alike(body, true) && rounds_alike(body, false),
        Claim::Compared(term, _, literal) => (term.path.is_some() || !literal.is_number()) && is_exact(literal),
        Claim::Contains(_, literal) => is_exact(literal),
        Claim::True(term) => term.path.is_some(),
        Claim::Related(left, order, right) => {
            let is_kept = match order {
                Order::Equal | Order::AtMost | Order::AtLeast => asserted,
                Order::Unequal | Order::Less | Order::Greater => !asserted,
            };
            is_kept && left.path.is_some() && right.path.is_some()
        }
    }
}

/// The node's format, if CEL has a type for it.
pub(super) fn format(node: &Schema) -> Option<&str> {
    let known = ["byte", "date", "date-time", "datetime", "duration"];
    node.format.as_deref().filter(|format| node.kind == Some(Type::String) && known.contains(format))
}

/// Whether CEL sees the values as floats. It sees values of any type, or of one of two types, unconverted, integers
/// included.
fn is_float(node: &Schema) -> bool {
    node.kind == Some(Type::Number) && !node.int_or_string
}
