//! Values that the server lets through by a quirk, and that hardly any object holds: a list in a string with a known format,
//! a fraction in an integer or int-or-string.

use serde_json::Value;

use super::difference::SchemaProof;
use super::formula::{Formula, child};
use super::judge::Judge;
use super::outcome::Outcome;
use super::step::{Step, lifted, node_at};
use super::types::Types;
use crate::schema::model::{Schema, Type};

impl<'s> Judge<'s> {
    /// The proof, marked if no usual value satisfies the formula at the end of the steps.
    pub(super) fn mark_unusual(
        &mut self,
        steps: &[Step<'s>],
        formula: &Formula<'s>,
        mut proof: SchemaProof,
    ) -> SchemaProof {
        if let SchemaProof::Breaking { witness, damage } = &mut proof
            && holds_unusual(self.before, witness)
            && let Some(node) = node_at(self.before, steps)
            && let Some(usual) = usual_types(node)
        {
            let usual = Formula::All(vec![formula.clone(), Formula::Types(usual)]);
            damage.is_unusual = self.search(lifted(steps, usual)) == Outcome::Empty;
        }
        proof
    }
}

/// The types that a node is meant to hold, if the server lets others through.
fn usual_types(node: &Schema) -> Option<Types> {
    match node.kind {
        _ if node.int_or_string => Some(Types::WHOLE.or(Types::STRING).or(Types::NULL)),
        Some(Type::String) => Some(Types::STRING.or(Types::NULL)),
        _ => None,
    }
}

/// Returns whether an object holds such a value.
pub(super) fn holds_unusual(node: &Schema, value: &Value) -> bool {
    match value {
        Value::Array(_) if node.kind == Some(Type::String) => true,
        Value::Number(number) => (node.int_or_string || node.kind == Some(Type::Integer)) && !number.is_i64(),
        Value::Array(items) => {
            node.items.as_deref().is_some_and(|node| items.iter().any(|item| holds_unusual(node, item)))
        }
        Value::Object(fields) => {
            fields.iter().any(|(name, value)| child(node, name).is_some_and(|field| holds_unusual(field, value)))
        }
        _ => false,
    }
}
