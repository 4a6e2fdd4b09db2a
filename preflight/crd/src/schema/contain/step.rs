//! Steps into an object, from the root to the value that a question is about.

use super::formula::Formula;
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
    /// The formula of a value that has, one step below, what `inner` asks for.
    pub(super) fn around(&self, inner: Formula<'s>) -> Formula<'s> {
        match self {
            Self::Field(name) => Formula::has(name, inner),
            Self::Other(schemas) => Formula::HasOther(schemas.clone(), Box::new(inner)),
            Self::Item => Formula::HasItem(Box::new(inner)),
        }
    }

    /// Whether both lead to the same place, where each leads to one.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Field(one), Self::Field(other)) => one == other,
            (Self::Other(_), Self::Other(_)) | (Self::Item, Self::Item) => true,
            _ => false,
        }
    }
}
