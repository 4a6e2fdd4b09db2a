//! Steps into an object, from the root to a value.

use serde_json::Value;

use super::formula::{Formula, child, free_values};
use crate::schema::model::Schema;

/// A step into an object.
#[derive(Clone, Debug)]
pub(super) enum Step<'s> {
    /// The field of this name.
    Field(&'s str),
    /// A field that none of the schemas names.
    Other(Vec<&'s Schema>),
    /// An item of a list.
    Item,
}

impl<'s> Step<'s> {
    /// The formula of a value that contains, one step below, a value satisfying `inner`.
    pub(super) fn around(&self, inner: Formula<'s>) -> Formula<'s> {
        match self {
            Self::Field(name) => Formula::has(name, inner),
            Self::Other(schemas) => Formula::HasOther(schemas.clone(), Box::new(inner)),
            Self::Item => Formula::HasItem(Box::new(inner)),
        }
    }

    /// Whether both lead to the same place, provided each leads to a single one.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Field(one), Self::Field(other)) => one == other,
            (Self::Other(_), Self::Other(_)) | (Self::Item, Self::Item) => true,
            _ => false,
        }
    }
}

/// A step from a schema node to a child.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SchemaStep {
    /// `properties` under this name.
    Property(String),
    /// `additionalProperties`
    Additional,
    /// `items`
    Items,
}

impl SchemaStep {
    /// Returns the child of a node; `None` if the schema does not have it.
    #[must_use]
    pub fn child<'s>(&self, node: &'s Schema) -> Option<&'s Schema> {
        match self {
            Self::Property(name) => node.properties.get(name).or_else(|| node.additional_schema()),
            Self::Additional => node.additional_schema(),
            Self::Items => node.items.as_deref(),
        }
    }

    /// Returns the node at the end of a path; `None` if the schema does not have it.
    #[must_use]
    pub fn follow<'s>(path: &[Self], schema: &'s Schema) -> Option<&'s Schema> {
        path.iter().try_fold(schema, |node, step| step.child(node))
    }
}

pub(super) fn schema_step(step: &Step<'_>) -> SchemaStep {
    match step {
        Step::Field(name) => SchemaStep::Property((*name).to_owned()),
        Step::Other(_) => SchemaStep::Additional,
        Step::Item => SchemaStep::Items,
    }
}

/// The formula of an object that contains, at the end of the steps, a value satisfying the formula.
pub(super) fn lifted<'s>(steps: &[Step<'s>], formula: Formula<'s>) -> Formula<'s> {
    steps.iter().rev().fold(formula, |inner, step| step.around(inner))
}

pub(super) fn node_at<'s>(schema: &'s Schema, steps: &[Step<'s>]) -> Option<&'s Schema> {
    steps.iter().try_fold(schema, |node, step| match step {
        Step::Field(name) => child(node, name),
        Step::Other(_) => free_values(node),
        Step::Item => node.items.as_deref(),
    })
}

/// Returns the first value at the end of the steps.
pub(super) fn first_value_at<'v>(object: &'v mut Value, steps: &[Step<'_>]) -> Option<&'v mut Value> {
    steps.iter().try_fold(object, |value, step| match (step, value) {
        (Step::Field(name), Value::Object(fields)) => fields.get_mut(*name),
        (Step::Other(_), Value::Object(fields)) => fields.values_mut().next(),
        (Step::Item, Value::Array(items)) => items.first_mut(),
        _ => None,
    })
}
