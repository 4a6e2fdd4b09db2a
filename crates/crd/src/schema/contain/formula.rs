//! Formulas: requirements on a value, to satisfy or violate a schema or to meet single constraints. The solver
//! decomposes them only as far as a search needs.

use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::LazyLock;

use serde_json::{Value, json};

use super::listed::Listed;
use super::types::Types;
use crate::schema::model::{Additional, Limit, ListType, Schema, Window};

/// How a schema applies to a value.
#[derive(Clone, Copy, Debug)]
pub(super) enum Role<'s> {
    /// As a node of the skeleton, for an object as stored: pruned, without dropped nulls, defaults filled in.
    Stored(Level),
    /// As a branch of a combinator, or without the pipeline around it. The contained schema is the skeleton node of the
    /// same value: its defaults are filled in before the branch is evaluated.
    Branch(Option<&'s Schema>),
}

/// The position of a skeleton node; decides the handling of null and which fields are never pruned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    /// The root of the object.
    Root,
    /// A field or map value: null is dropped unless the schema is nullable.
    Field,
    /// An item of a list.
    Item,
    /// `metadata` of an object: known to the server, never pruned.
    Metadata,
}

/// Which uniqueness a list requires.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Unique<'s> {
    /// No two items are equal.
    Items,
    /// No two items have equal keys.
    Keys(&'s [String]),
}

impl<'s> Unique<'s> {
    pub(super) fn of(schema: &'s Schema) -> Option<Self> {
        match schema.list_type {
            Some(ListType::Set) => Some(Self::Items),
            Some(ListType::Map) => Some(Self::Keys(&schema.list_map_keys)),
            _ => None,
        }
    }
}

/// A requirement on one value. A value of another type meets a constraint, unless its name begins with `Is` or `Has`.
#[derive(Clone, Debug)]
pub(super) enum Formula<'s> {
    All(Vec<Formula<'s>>),
    Any(Vec<Formula<'s>>),
    /// It satisfies the schema.
    Satisfies(&'s Schema, Role<'s>),
    /// It violates the schema.
    Violates(&'s Schema, Role<'s>),
    /// It satisfies the branch at this index and no other.
    SatisfiesOne(&'s [Schema], usize, Role<'s>),
    /// It satisfies the branch at this index and a later one.
    SatisfiesTwo(&'s [Schema], usize, Role<'s>),
    /// It, or something in it, is rejected, pruned or altered under this skeleton node.
    Damaged(&'s Schema, Level),
    /// It is of one of the types.
    Types(Types),
    /// It is one of the values.
    Is(Rc<Vec<Value>>),
    /// It is none of the values.
    IsNot(Rc<Vec<Value>>),
    /// It is not an element of the enum.
    IsUnlisted(Listed),
    /// It is a fraction that truncates to one of these numbers.
    IsCutTo(Rc<BTreeSet<i64>>),
    /// It is a number below the limit, or at it if the limit is not exclusive.
    IsBelow(Limit),
    /// It is a number above the limit, or at it likewise.
    IsAbove(Limit),
    /// It is a number that is not a multiple of this factor.
    IsNoMultiple(f64),
    /// It is a string that the pattern does not match.
    IsNoMatch(&'s str),
    /// It is a string whose length is outside these bounds.
    IsOfLengthOutside(Window),
    /// It is a string or number that the format rejects.
    IsAgainstFormat(&'s str, &'s Schema),
    /// It is a list whose length is outside these bounds.
    HasCountOutside(Window),
    /// It is a list with an item that satisfies the formula.
    HasItem(Box<Formula<'s>>),
    /// It is a list with two items that are equal, or have equal keys.
    HasRepeated(Unique<'s>),
    /// It is an object with this field, whose value satisfies the formula.
    Has(Rc<str>, Box<Formula<'s>>),
    /// It is an object without this field.
    Lacks(Rc<str>),
    /// It is an object with a field that none of the schemas declares and that satisfies the formula.
    HasOther(Vec<&'s Schema>, Box<Formula<'s>>),
    /// It is an object with at least this many fields.
    HasAtLeast(i64),
    /// It is an object with at most this many fields.
    HasAtMost(i64),
}

impl<'s> Formula<'s> {
    pub(super) fn anything() -> Self {
        Self::All(Vec::new())
    }

    /// The cost of copying it.
    pub(super) fn weight(&self) -> u64 {
        match self {
            Self::All(inner) | Self::Any(inner) => 1 + inner.iter().map(Self::weight).sum::<u64>(),
            Self::HasItem(inner) | Self::Has(_, inner) | Self::HasOther(_, inner) => 1 + inner.weight(),
            _ => 1,
        }
    }

    pub(super) fn has(name: &str, inner: Self) -> Self {
        Self::Has(name.into(), Box::new(inner))
    }

    pub(super) fn lacks(name: &str) -> Self {
        Self::Lacks(name.into())
    }
}

/// The node of a field in a schema.
pub(super) fn child<'s>(schema: &'s Schema, name: &str) -> Option<&'s Schema> {
    schema.properties.get(name).or_else(|| free_values(schema))
}

/// The schema of values under undeclared keys. `additionalProperties: true` accepts any value and prunes every object
/// in it to `{}`.
pub(super) fn free_values(schema: &Schema) -> Option<&Schema> {
    static ANY_VALUE: LazyLock<Schema> = LazyLock::new(|| {
        // As deep as nested lists are worth distinguishing.
        let schema = (0..4).fold(json!({"nullable": true}), |items, _| json!({"nullable": true, "items": items}));
        Schema::of(&schema)
    });
    match &schema.additional {
        Some(Additional::Schema(values)) => Some(values),
        Some(Additional::Anything) => Some(&ANY_VALUE),
        _ => None,
    }
}

/// The `multipleOf` of the numbers that the schema accepts. An int-or-string accepts numbers that the server cannot
/// tell from integers, such as 5.0000000001; with `type: integer` the server parses the number again and rejects it.
pub(super) fn almost_whole(schema: &Schema) -> Option<f64> {
    schema.int_or_string.then_some(1.0)
}

/// The types that a schema accepts at its position.
pub(super) fn types_of(schema: &Schema, role: Role<'_>) -> Types {
    let types = Types::allowed_by(schema);
    let typed = schema.kind.is_some() || schema.int_or_string;
    let null = match role {
        Role::Stored(Level::Root | Level::Metadata) => false,
        Role::Stored(Level::Field) => schema.nullable,
        Role::Stored(Level::Item) | Role::Branch(_) => schema.nullable || !typed,
    };
    if null { types.or(Types::NULL) } else { types }
}

/// The maximum number of fields filled in before a branch is evaluated.
pub(super) fn filled_in(role: Role<'_>) -> i64 {
    let Role::Branch(Some(node)) = role else { return 0 };
    i64::try_from(node.properties.values().filter(|field| field.default.is_some()).count()).unwrap_or(i64::MAX)
}

/// The bound that accepts exactly what this one rejects.
pub(super) fn flipped(limit: Limit) -> Limit {
    Limit { exclusive: !limit.exclusive, ..limit }
}
