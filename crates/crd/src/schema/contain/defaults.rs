//! Defaults that appear or disappear with their nodes: new ones that combinators and enums further up see, and old ones
//! that are no longer filled in because their node is no longer described.

use serde_json::Value;

use super::formula::child;
use super::step::Step;
use crate::schema::model::{ListType, Schema};

/// Whether objects get a default from the new node or its descendants that they did not get before.
pub(super) fn gains(old: Option<&Schema>, new: &Schema) -> bool {
    if old.is_some_and(|old| old.digest == new.digest) {
        return false;
    }
    let fields = new.properties.iter().any(|(name, field)| {
        let before = old.and_then(|old| child(old, name));
        let had = before.is_some_and(|before| before.default.is_some());
        (field.default.is_some() && !had) || gains(before, field)
    });
    fields
        || new.additional_schema().is_some_and(|after| gains(old.and_then(Schema::additional_schema), after))
        || new.items.as_deref().is_some_and(|after| gains(old.and_then(|old| old.items.as_deref()), after))
}

/// Whether a node constrains its value as a whole, not just single fields.
pub(super) fn is_asked_as_a_whole(node: &Schema) -> bool {
    [&node.all_of, &node.any_of, &node.one_of].into_iter().any(|branches| !branches.is_empty())
        || node.not.is_some()
        || node.enumeration.is_some()
        || !node.rules.is_empty()
}

/// Whether the defaults below a node can turn its own default into a value that the node rejects.
pub(super) fn counts_defaults(node: &Schema) -> bool {
    fn asks(node: &Schema) -> bool {
        is_asked_as_a_whole(node)
            || node.property_count.most.is_some()
            || matches!(node.list_type, Some(ListType::Set | ListType::Map))
            || node.children().any(asks)
    }
    let below = node.properties.values().chain(node.items.as_deref()).chain(node.additional_schema());
    asks(node) && below.into_iter().any(|field| field.default.is_some() || gains(None, field))
}

/// A default of a field.
#[derive(Debug)]
pub(super) struct FieldDefault<'s> {
    /// Steps from the node where the search began, including the field.
    pub(super) steps: Vec<Step<'s>>,
    pub(super) name: &'s str,
    pub(super) default: &'s Value,
}

/// The defaults of the node at the end of the steps (its own if it is a field) and of its descendants.
pub(super) fn defaults_of<'s>(steps: Vec<Step<'s>>, node: &'s Schema) -> Vec<FieldDefault<'s>> {
    let mut found = Vec::new();
    collect(steps, node, &mut found);
    found
}

fn collect<'s>(steps: Vec<Step<'s>>, node: &'s Schema, found: &mut Vec<FieldDefault<'s>>) {
    if let (Some(Step::Field(name)), Some(default)) = (steps.last(), &node.default) {
        found.push(FieldDefault { name, default, steps: steps.clone() });
    }
    let with = |step: Step<'s>| steps.iter().cloned().chain([step]).collect::<Vec<_>>();
    for (name, field) in &node.properties {
        collect(with(Step::Field(name)), field, found);
    }
    if let Some(additional) = node.additional_schema() {
        collect(with(Step::Other(vec![node])), additional, found);
    }
    if let Some(items) = &node.items {
        collect(with(Step::Item), items, found);
    }
}

/// Removes the field at the end of the steps from an object if it holds its default; whether it did.
pub(super) fn leave_out(value: &mut Value, steps: &[Step<'_>], default: &Value) -> bool {
    let Some((step, rest)) = steps.split_first() else { return false };
    match (step, value) {
        (Step::Field(name), Value::Object(fields)) if rest.is_empty() => {
            fields.get(*name) == Some(default) && fields.shift_remove(*name).is_some()
        }
        (Step::Field(name), Value::Object(fields)) => {
            fields.get_mut(*name).is_some_and(|field| leave_out(field, rest, default))
        }
        (Step::Other(_), Value::Object(fields)) => fields.values_mut().any(|field| leave_out(field, rest, default)),
        (Step::Item, Value::Array(items)) => items.iter_mut().any(|item| leave_out(item, rest, default)),
        _ => false,
    }
}
