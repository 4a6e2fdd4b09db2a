//! Sets of JSON types that a schema accepts. Integers and fractions are distinguished, as on the server.

use serde_json::Value;

use crate::schema::model::{Schema, Type};
use crate::schema::pipeline::{self, Server};

/// A set of JSON types; integers and other numbers are distinguished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Types(u8);

impl Types {
    pub(super) const NONE: Self = Self(0);
    pub(super) const NULL: Self = Self(1);
    pub(super) const BOOLEAN: Self = Self(2);
    pub(super) const WHOLE: Self = Self(4);
    /// Numbers that `type: integer` rejects: fractions and integers that are too large.
    pub(super) const FRACTION: Self = Self(8);
    pub(super) const STRING: Self = Self(16);
    pub(super) const ARRAY: Self = Self(32);
    pub(super) const OBJECT: Self = Self(64);
    pub(super) const NUMBER: Self = Self(4 | 8);
    pub(super) const SCALAR: Self = Self(2 | 4 | 8 | 16);
    pub(super) const ANY: Self = Self(127);
    /// Each type by itself, in the order in which readable examples are sought.
    pub(super) const EACH: [Self; 7] =
        [Self::STRING, Self::WHOLE, Self::BOOLEAN, Self::OBJECT, Self::ARRAY, Self::FRACTION, Self::NULL];

    pub(super) fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    pub(super) fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(super) fn not(self) -> Self {
        Self(!self.0 & Self::ANY.0)
    }

    pub(super) fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// The type of a value.
    pub(super) fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::NULL,
            Value::Bool(_) => Self::BOOLEAN,
            Value::Number(number) if number.is_i64() => Self::WHOLE,
            // The server accepts a float as an integer if both mean the same in JavaScript.
            Value::Number(number) => match number.as_f64() {
                Some(float) if float.fract() == 0.0 && float.abs() <= 9_007_199_254_740_991.0 => Self::WHOLE,
                _ => Self::FRACTION,
            },
            Value::String(_) => Self::STRING,
            Value::Array(_) => Self::ARRAY,
            Value::Object(_) => Self::OBJECT,
        }
    }

    /// The types that `type`, `format` and `x-kubernetes-int-or-string` of a schema accept, apart from null. For an
    /// int-or-string, fractions are limited to those of [`almost_whole`](super::formula::almost_whole).
    pub(super) fn allowed_by(schema: &Schema) -> Self {
        match schema.kind {
            _ if schema.int_or_string => Self::NUMBER.or(Self::STRING),
            // A string format that the server knows accepts lists too and, without a type, nothing else.
            None | Some(Type::String) if has_format_of_texts(schema) => Self::STRING.or(Self::ARRAY),
            None => Self::ANY.and(Self::NULL.not()),
            Some(Type::Boolean) => Self::BOOLEAN,
            Some(Type::Integer) => Self::WHOLE,
            Some(Type::Number) => Self::NUMBER,
            Some(Type::String) => Self::STRING,
            Some(Type::Array) => Self::ARRAY,
            Some(Type::Object) => Self::OBJECT,
        }
    }

    /// The types that the schema is meant to accept, without quirks of the server.
    pub(super) fn meant_by(schema: &Schema) -> Self {
        let allowed = Self::allowed_by(schema);
        if schema.kind == Some(Type::String) { allowed.and(Self::ARRAY.not()) } else { allowed }
    }
}

fn has_format_of_texts(schema: &Schema) -> bool {
    schema.format.as_deref().is_some_and(|format| pipeline::is_known_format(format, Server::default()))
}
