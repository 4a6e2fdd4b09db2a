//! What is asked of a value: a formula over schemas that it satisfies or violates, and over single constraints.
//! Formulas are taken apart by the solver only as far as a search needs them.

use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::LazyLock;

use serde_json::{Value, json};

use super::listed::Listed;
use super::types::Types;
use crate::schema::model::{Additional, Limit, ListType, Schema, Window};

/// How a schema is read.
#[derive(Clone, Copy, Debug)]
pub(super) enum Role<'s> {
    /// A node of the skeleton, for an object as it is stored: pruned, without dropped nulls, defaults filled in.
    Stored(Place),
    /// A branch of a combinator, or a schema without the pipeline around it. `skeleton` is the node of the skeleton for
    /// the same value: its defaults are filled in before the branch is looked at.
    Branch(Option<&'s Schema>),
}

/// Where a node of the skeleton stands; decides what becomes of null, and which fields are never pruned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// The object itself.
    Root,
    /// The value of a field or a map key: null is dropped unless the schema is nullable.
    Field,
    /// An item of a list.
    Item,
    /// `metadata` of an object: known to the server, never pruned.
    Metadata,
}

/// Which uniqueness a list asks for.
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

/// What is asked of one value. Constraints on a type other than the value's are met, except where the name says `Is…`/`Has…`.
#[derive(Clone, Debug)]
pub(super) enum Formula<'s> {
    All(Vec<Formula<'s>>),
    Any(Vec<Formula<'s>>),
    /// It satisfies the schema.
    Satisfies(&'s Schema, Role<'s>),
    /// It violates the schema.
    Violates(&'s Schema, Role<'s>),
    /// It satisfies the branch of this index and no other.
    SatisfiesOne(&'s [Schema], usize, Role<'s>),
    /// It satisfies the branch of this index and one that comes later.
    SatisfiesTwo(&'s [Schema], usize, Role<'s>),
    /// It is rejected, pruned or altered under this node of the skeleton, or something in it is.
    Damaged(&'s Schema, Place),
    /// It is of one of the types.
    Types(Types),
    /// It is one of the values.
    Is(Rc<Vec<Value>>),
    /// It is none of the values.
    IsNot(Rc<Vec<Value>>),
    /// It is no element of the enum.
    IsUnlisted(Listed),
    /// It is a fraction that is one of these numbers when it is cut to a whole one.
    IsCutTo(Rc<BTreeSet<i64>>),
    /// It is a number below (or at, where not exclusive) the limit.
    IsBelow(Limit),
    /// It is a number above (or at) the limit.
    IsAbove(Limit),
    /// It is a number and no multiple.
    IsNoMultiple(f64),
    /// It is text that the pattern does not match.
    IsNoMatch(&'s str),
    /// It is text outside of the window of lengths.
    IsOfLengthOutside(Window),
    /// It is text or a number that the format refuses.
    IsAgainstFormat(&'s str, &'s Schema),
    /// It is a list with fewer or more items.
    HasCountOutside(Window),
    /// It is a list with such an item.
    HasItem(Box<Formula<'s>>),
    /// It is a list with two items that are equal, or have equal keys.
    HasRepeated(Unique<'s>),
    /// It is an object with such a field.
    Has(Rc<str>, Box<Formula<'s>>),
    /// It is an object without the field.
    Lacks(Rc<str>),
    /// It is an object with such a field under a name that neither schema declares.
    HasOther(Vec<&'s Schema>, Box<Formula<'s>>),
    /// It is an object with at least so many fields.
    HasAtLeast(i64),
    /// It is an object with at most so many fields.
    HasAtMost(i64),
}

impl<'s> Formula<'s> {
    pub(super) fn anything() -> Self {
        Self::All(Vec::new())
    }

    /// What it takes to copy it.
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

/// The node that stands for a field in a schema.
pub(super) fn child<'s>(schema: &'s Schema, name: &str) -> Option<&'s Schema> {
    schema.properties.get(name).or_else(|| free_values(schema))
}

/// The schema of values under keys that nobody names. `additionalProperties: true` lets all values in, and prunes every
/// object in them to nothing.
pub(super) fn free_values(schema: &Schema) -> Option<&Schema> {
    static ANY_VALUE: LazyLock<Schema> = LazyLock::new(|| {
        // As deep as lists of lists are worth to be told apart.
        let schema = (0..4).fold(json!({"nullable": true}), |items, _| json!({"nullable": true, "items": items}));
        Schema::of(&schema)
    });
    match &schema.additional {
        Some(Additional::Schema(values)) => Some(values),
        Some(Additional::Anything) => Some(&ANY_VALUE),
        _ => None,
    }
}

/// The factor of the numbers that the schema takes: an int-or-string takes what the server cannot tell from a whole number,
/// as 5.0000000001. With `type: integer` the server reads the number once more, and refuses it.
pub(super) fn almost_whole(schema: &Schema) -> Option<f64> {
    schema.int_or_string.then_some(1.0)
}

/// The types that a schema lets in where it stands.
pub(super) fn types_of(schema: &Schema, role: Role<'_>) -> Types {
    let types = Types::allowed_by(schema);
    let typed = schema.kind.is_some() || schema.int_or_string;
    let null = match role {
        Role::Stored(Place::Root | Place::Metadata) => false,
        Role::Stored(Place::Field) => schema.nullable,
        Role::Stored(Place::Item) | Role::Branch(_) => schema.nullable || !typed,
    };
    if null { types.or(Types::NULL) } else { types }
}

/// How many fields at most are filled in before a branch is looked at.
pub(super) fn filled_in(role: Role<'_>) -> i64 {
    let Role::Branch(Some(node)) = role else { return 0 };
    i64::try_from(node.properties.values().filter(|field| field.default.is_some()).count()).unwrap_or(i64::MAX)
}

/// The bound that lets in what this one keeps out.
pub(super) fn flipped(limit: Limit) -> Limit {
    Limit { exclusive: !limit.exclusive, ..limit }
}
