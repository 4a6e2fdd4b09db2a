//! The type of what an expression gives, as those see it who put the value into a field.

use super::types::Type;

/// The type of what an expression gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Given {
    /// A boolean.
    Boolean,
    /// An integer.
    Integer,
    /// A number that may have a fraction.
    Number,
    /// A string.
    String,
    /// A list.
    List,
    /// A map or an object.
    Map,
    /// It is not known before the evaluation.
    Any,
    /// A type that JSON has no form for, by its name.
    Other(String),
}

impl Given {
    pub(super) fn of(kind: &Type) -> Self {
        match kind {
            Type::Bool => Self::Boolean,
            Type::Int | Type::Uint => Self::Integer,
            Type::Double => Self::Number,
            Type::String => Self::String,
            Type::List(_) => Self::List,
            Type::Map(..) | Type::Struct(_) => Self::Map,
            Type::Optional(of) => Self::of(of),
            Type::Dyn | Type::Variable(_) => Self::Any,
            other => Self::Other(other.shown()),
        }
    }
}
