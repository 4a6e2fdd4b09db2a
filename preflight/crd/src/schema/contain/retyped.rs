//! Unchanged rules that evaluate differently: CEL sees a value by the type and format of its node, so a wider type or a
//! dropped format may change the result of a rule, and a rule sees new defaults.

use super::defaults::gains;
use super::probe::node_at;
use crate::schema::cel::{Hint, Program, Step};
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
    // Integers and floats compare alike; arithmetic on them and their text form may differ.
    let computes = ["/", "%", "string", "type", "format"].into_iter().any(|word| rule.rule.contains(word));
    let read = program.hints().paths.into_iter().filter(|(_, hint)| hint.read);
    read.map(|(path, _)| path).any(|path| match (node_at(old, &path), node_at(new, &path)) {
        (Some(old), Some(new)) => format(old) != format(new) || (computes && is_float(old) != is_float(new)),
        _ => false,
    })
}

/// The node's format, if CEL has a type for it.
fn format(node: &Schema) -> Option<&str> {
    let known = ["byte", "date", "date-time", "datetime", "duration"];
    node.format.as_deref().filter(|format| node.kind == Some(Type::String) && known.contains(format))
}

/// Whether CEL sees the values as floats. It sees values of any type, or of one of two types, unconverted, integers
/// included.
fn is_float(node: &Schema) -> bool {
    node.kind == Some(Type::Number) && !node.int_or_string
}
