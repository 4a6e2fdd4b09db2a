//! Rules that stay as they are and compute otherwise: CEL sees a value by the type and format of its node, so that a
//! wider type or a format that is dropped may change what a rule makes of the same value, and it sees new defaults in it.

use super::defaults::gains;
use super::probe::node_at;
use crate::schema::cel::{Hint, Program, Step};
use crate::schema::model::{CelRule, Schema, Type};

/// Whether the rule may be true of an object under the old schema, and not under the new one.
pub(super) fn computes_otherwise(rule: &CelRule, old: &Schema, new: &Schema) -> bool {
    let Ok(program) = Program::shared(rule) else { return true };
    is_retyped(rule, &program, old, new) || is_filled(rule, &program, old, new)
}

/// Whether the rule takes objects as a whole that hold new defaults. Where it compares objects of one node with each other,
/// as with their old selves, all get the same, and are as different as they were.
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

/// Whether the rule reads something that CEL takes for a value of another type from now on.
fn is_retyped(rule: &CelRule, program: &Program, old: &Schema, new: &Schema) -> bool {
    // Whole numbers and floats compare alike; what is computed with them, or written down, may differ.
    let computes = ["/", "%", "string", "type", "format"].into_iter().any(|word| rule.rule.contains(word));
    let read = program.hints().paths.into_iter().filter(|(_, hint)| hint.read);
    read.map(|(path, _)| path).any(|path| match (node_at(old, &path), node_at(new, &path)) {
        (Some(old), Some(new)) => format(old) != format(new) || (computes && is_float(old) != is_float(new)),
        _ => false,
    })
}

/// The formats that CEL has types of its own for.
fn format(node: &Schema) -> Option<&str> {
    let known = ["byte", "date", "date-time", "datetime", "duration"];
    node.format.as_deref().filter(|format| node.kind == Some(Type::String) && known.contains(format))
}

/// Values of all types, and of two, are seen as they are, whole numbers as such.
fn is_float(node: &Schema) -> bool {
    node.kind == Some(Type::Number) && !node.int_or_string
}
