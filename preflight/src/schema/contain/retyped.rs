//! Rules that stay as they are and compute otherwise: CEL sees a value by the type and format of its node, so that a
//! wider type or a format that is dropped may change what a rule makes of the same value.

use super::probe::node_at;
use crate::schema::cel::Program;
use crate::schema::model::{CelRule, Schema, Type};

/// Whether the rule reads something that CEL takes for a value of another type from now on.
pub(super) fn is_retyped(rule: &CelRule, old: &Schema, new: &Schema) -> bool {
    let Ok(program) = Program::shared(rule) else { return true };
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
