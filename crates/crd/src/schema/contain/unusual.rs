//! Values that the server lets through by a quirk, and that hardly any object holds: a list in a string with a known format,
//! a fraction in an integer or int-or-string, any letter before the hyphen at the end of `metadata.generateName`.

use serde_json::{Value, json};

use std::sync::LazyLock;

use super::difference::SchemaProof;
use super::formula::{Formula, Role, child};
use super::judge::Judge;
use super::outcome::Outcome;
use super::step::{Step, lifted, node_at};
use super::types::Types;
use crate::names::is_dns_subdomain;
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
            && is_generate_name(steps)
            && !witness.pointer("/metadata/generateName").and_then(Value::as_str).is_some_and(is_usual_prefix)
        {
            let usual = Formula::All(vec![formula.clone(), Formula::Satisfies(&USUAL_PREFIX, Role::Branch(None))]);
            damage.is_unusual = self.search(lifted(steps, usual)) == Outcome::Empty;
        } else if let SchemaProof::Breaking { witness, damage } = &mut proof
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

/// A `generateName` that is the start of a name. The server ignores its last two bytes where it ends with a hyphen.
static USUAL_PREFIX: LazyLock<Schema> = LazyLock::new(|| {
    let pattern = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*-*)?$";
    Schema::of(&json!({"type": "string", "pattern": pattern}))
});

fn is_usual_prefix(name: &str) -> bool {
    let bare = name.trim_end_matches('-');
    bare.is_empty() && name.is_empty() || is_dns_subdomain(bare)
}

fn is_generate_name(steps: &[Step<'_>]) -> bool {
    matches!(steps, [Step::Field("metadata"), Step::Field("generateName")])
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::contain::compare;
    use crate::schema::pipeline::Server;
    use crate::schema::testing::resource;

    /// Whether only unusual values are affected by a pattern of `generateName`; `None` if none is.
    fn affects_unusual_only(pattern: &str) -> Option<bool> {
        let schema = |prefix: Value| {
            let metadata = json!({"type": "object", "properties": {"generateName": prefix}});
            Schema::of(&json!({"type": "object", "properties": {"metadata": metadata}}))
        };
        let old = Schema::of(&json!({"type": "object", "properties": {"metadata": {"type": "object"}}}));
        let new = schema(json!({"type": "string", "pattern": pattern}));
        compare(&resource(&old), &resource(&new), Server::default()).into_iter().find_map(|found| match found.proof {
            SchemaProof::Breaking { damage, .. } => Some(damage.is_unusual),
            _ => None,
        })
    }

    #[test]
    fn generate_name_with_a_masked_letter_is_unusual() {
        assert_eq!(affects_unusual_only("^[-.a-z0-9]*$"), Some(true));
        assert_eq!(affects_unusual_only("^[-.a-z]*$"), Some(false));
        assert_eq!(affects_unusual_only("^([a-z0-9].*)?$"), Some(true));
        assert_eq!(affects_unusual_only("-$"), Some(false));
    }
}
