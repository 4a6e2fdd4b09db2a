//! What is asked of a value: a formula over schemas that it obeys or breaks, and over single demands that schemas make.
//! Formulas are taken apart by the solver only as far as a search needs them.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::LazyLock;

use serde_json::{Value, json};

use super::listed::Listed;
use super::number::{Held, held};
use crate::schema::model::{Additional, Limit, ListType, Schema, Type, Window};
use crate::schema::pipeline::{self, Server};

/// Steps that it may take to judge one default.
pub(super) const STEPS_FOR_A_DEFAULT: u64 = 1_000;

/// A set of JSON types; whole numbers and others are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Types(u8);

impl Types {
    pub(super) const NONE: Self = Self(0);
    pub(super) const NULL: Self = Self(1);
    pub(super) const BOOLEAN: Self = Self(2);
    pub(super) const WHOLE: Self = Self(4);
    /// Numbers that `type: integer` does not take: fractions, and what is too large.
    pub(super) const FRACTION: Self = Self(8);
    pub(super) const STRING: Self = Self(16);
    pub(super) const ARRAY: Self = Self(32);
    pub(super) const OBJECT: Self = Self(64);
    pub(super) const NUMBER: Self = Self(4 | 8);
    pub(super) const SCALAR: Self = Self(2 | 4 | 8 | 16);
    pub(super) const ANY: Self = Self(127);
    /// One by one, in the order in which a readable example is looked for.
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
            // The server takes a float for an integer where both have the same meaning in JavaScript.
            Value::Number(number) => match number.as_f64() {
                Some(float) if float.fract() == 0.0 && float.abs() <= 9_007_199_254_740_991.0 => Self::WHOLE,
                _ => Self::FRACTION,
            },
            Value::String(_) => Self::STRING,
            Value::Array(_) => Self::ARRAY,
            Value::Object(_) => Self::OBJECT,
        }
    }

    /// What `type`, `format` and `x-kubernetes-int-or-string` of a schema let in, apart from null; of fractions in an
    /// int-or-string only those that [`almost_whole`] is about.
    pub(super) fn allowed_by(schema: &Schema) -> Self {
        match schema.kind {
            _ if schema.int_or_string => Self::NUMBER.or(Self::STRING),
            // A format of texts that the server knows lets lists in too, and, without a type, nothing else.
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

    /// The same without what only a quirk of the server lets in.
    pub(super) fn meant_by(schema: &Schema) -> Self {
        let allowed = Self::allowed_by(schema);
        if schema.kind == Some(Type::String) { allowed.and(Self::ARRAY.not()) } else { allowed }
    }
}

fn has_format_of_texts(schema: &Schema) -> bool {
    schema.format.as_deref().is_some_and(|format| pipeline::is_known_format(format, Server::default()))
}

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

/// What is asked of one value. Demands on a type other than the value's are met, except where the name says `Is…`/`Has…`.
#[derive(Clone, Debug)]
pub(super) enum Formula<'s> {
    All(Vec<Formula<'s>>),
    Any(Vec<Formula<'s>>),
    /// It obeys the schema.
    Obeys(&'s Schema, Role<'s>),
    /// It breaks the schema.
    Breaks(&'s Schema, Role<'s>),
    /// It obeys the branch of this index and no other.
    ObeysOne(&'s [Schema], usize, Role<'s>),
    /// It obeys the branch of this index and one that comes later.
    ObeysTwo(&'s [Schema], usize, Role<'s>),
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

/// The demands that a schema makes, one by one, each turned into the formula of breaking it.
/// `defaults` is the node of the skeleton whose defaults are filled in before.
pub(super) fn ways_to_break<'s>(schema: &'s Schema, role: Role<'s>) -> Vec<Formula<'s>> {
    let skeleton = match role {
        Role::Stored(_) => Some(schema),
        Role::Branch(skeleton) => skeleton,
    };
    let mut ways = vec![breaks_type(schema, role)];
    ways.extend(scalar_ways(schema, filled_in(role)));
    let default_of =
        |name: &str| skeleton.and_then(|node| node.properties.get(name)).and_then(|field| field.default.as_ref());
    ways.extend(schema.required.iter().filter(|name| default_of(name).is_none()).map(|name| Formula::lacks(name)));
    for (name, field) in &schema.properties {
        let node = skeleton.and_then(|node| node.properties.get(name));
        let role = inner_role(role, node, Place::Field);
        ways.push(Formula::has(name, Formula::Breaks(field, role)));
        // Where the field is left out, its default is judged in its place.
        if let (Some(default), Role::Branch(_)) = (default_of(name), role) {
            let broken = Formula::Breaks(field, Role::Branch(node));
            if super::admits::holds(&broken, default, &Cell::new(STEPS_FOR_A_DEFAULT)) != Some(false) {
                ways.push(Formula::lacks(name));
            }
        }
    }
    if let Some(additional) = free_values(schema) {
        let node = skeleton.and_then(free_values);
        let inner = Formula::Breaks(additional, inner_role(role, node, Place::Field));
        ways.push(Formula::HasOther(vec![schema], Box::new(inner)));
    }
    if let Some(items) = &schema.items {
        let node = skeleton.and_then(|node| node.items.as_deref());
        ways.push(Formula::HasItem(Box::new(Formula::Breaks(items, inner_role(role, node, Place::Item)))));
    }
    ways.extend(combinator_ways(schema, skeleton).into_iter().map(|(_, way)| way));
    ways
}

fn inner_role<'s>(role: Role<'s>, node: Option<&'s Schema>, place: Place) -> Role<'s> {
    match role {
        Role::Stored(_) => Role::Stored(place),
        Role::Branch(_) => Role::Branch(node),
    }
}

/// `type` and `nullable`.
pub(super) fn breaks_type<'s>(schema: &'s Schema, role: Role<'s>) -> Formula<'s> {
    outside_of_types(schema, types_of(schema, role))
}

/// What is of none of the types, or a fraction that the schema does not take for a whole number.
pub(super) fn outside_of_types<'s>(schema: &'s Schema, types: Types) -> Formula<'s> {
    let others = Formula::Types(types.not());
    match almost_whole(schema) {
        Some(factor) => Formula::Any(vec![others, Formula::IsNoMultiple(factor)]),
        None => others,
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

/// The demands on values without inner structure, and on the size of those with.
fn scalar_ways(schema: &Schema, filled: i64) -> Vec<Formula<'_>> {
    let mut ways = Vec::new();
    if let Some(values) = &schema.enumeration {
        ways.push(Formula::IsUnlisted(Listed::of(values)));
    }
    ways.extend(schema.minimum.map(|limit| below(schema, limit)));
    ways.extend(schema.maximum.map(|limit| above(schema, limit)));
    ways.extend(schema.multiple_of.map(|factor| no_multiple(schema, factor)));
    ways.extend(schema.pattern.as_deref().map(Formula::IsNoMatch));
    ways.extend(schema.format.as_deref().map(|format| Formula::IsAgainstFormat(format, schema)));
    if schema.length != Window::default() {
        ways.push(Formula::IsOfLengthOutside(schema.length));
    }
    if schema.item_count != Window::default() {
        ways.push(Formula::HasCountOutside(schema.item_count));
    }
    ways.extend(schema.property_count.least.map(|least| Formula::HasAtMost(least.saturating_sub(1))));
    // Any of the defaults may be filled in before fields are counted; which, the second opinion tells.
    ways.extend(schema.property_count.most.map(|most| Formula::HasAtLeast(most.saturating_add(1) - filled)));
    ways.extend(Unique::of(schema).map(Formula::HasRepeated));
    if schema.unique_items {
        ways.push(Formula::HasRepeated(Unique::Items));
    }
    ways
}

/// The numbers that a `minimum` keeps out.
pub(super) fn below(schema: &Schema, minimum: Limit) -> Formula<'static> {
    outside(schema, minimum.value, Formula::IsBelow(flipped(minimum)))
}

/// The numbers that a `maximum` keeps out.
pub(super) fn above(schema: &Schema, maximum: Limit) -> Formula<'static> {
    outside(schema, maximum.value, Formula::IsAbove(flipped(maximum)))
}

/// The numbers that a `multipleOf` keeps out.
pub(super) fn no_multiple(schema: &Schema, factor: f64) -> Formula<'static> {
    outside(schema, factor, Formula::IsNoMultiple(factor))
}

/// The numbers that a bound or factor keeps out, which are those of the formula where the server compares with it.
fn outside(schema: &Schema, bound: f64, compared: Formula<'static>) -> Formula<'static> {
    match held(schema, bound) {
        Held::Compared => compared,
        Held::Refusing => Formula::Types(Types::NUMBER),
        Held::Unsure => Formula::Any(vec![compared, Formula::Types(Types::WHOLE)]),
    }
}

/// The bound that lets in what this one keeps out.
pub(super) fn flipped(limit: Limit) -> Limit {
    Limit { exclusive: !limit.exclusive, ..limit }
}

/// `allOf`, `anyOf`, `oneOf` and `not`, each with the formula of breaking it.
pub(super) fn combinator_ways<'s>(
    schema: &'s Schema,
    skeleton: Option<&'s Schema>,
) -> Vec<(&'static str, Formula<'s>)> {
    let role = Role::Branch(skeleton);
    let breaks =
        |branches: &'s [Schema]| branches.iter().map(|branch| Formula::Breaks(branch, role)).collect::<Vec<_>>();
    let mut ways = Vec::new();
    if !schema.all_of.is_empty() {
        ways.push(("allOf", Formula::Any(breaks(&schema.all_of))));
    }
    if !schema.any_of.is_empty() {
        ways.push(("anyOf", Formula::All(breaks(&schema.any_of))));
    }
    if !schema.one_of.is_empty() {
        let mut either = vec![Formula::All(breaks(&schema.one_of))];
        // Taken apart only when it is looked at: there are as many pairs as the square of the branches.
        let firsts = 0..schema.one_of.len() - 1;
        either.extend(firsts.map(|first| Formula::ObeysTwo(&schema.one_of, first, role)));
        ways.push(("oneOf", Formula::Any(either)));
    }
    if let Some(not) = &schema.not {
        ways.push(("not", Formula::Obeys(not, role)));
    }
    // The server never asks it of null.
    let present = |way| Formula::All(vec![Formula::Types(Types::NULL.not()), way]);
    ways.into_iter().map(|(keyword, way)| (keyword, present(way))).collect()
}

/// All ways in which a value is rejected, pruned or altered at a node of the skeleton or below.
pub(super) fn ways_to_damage(schema: &Schema, place: Place) -> Vec<Formula<'_>> {
    let role = Role::Stored(place);
    let mut ways = vec![breaks_type(schema, role)];
    ways.extend(scalar_ways(schema, 0));
    let given = |name: &String| schema.properties.get(name).is_none_or(|field| field.default.is_none());
    ways.extend(schema.required.iter().filter(|name| given(name)).map(|name| Formula::lacks(name)));
    ways.extend(combinator_ways(schema, Some(schema)).into_iter().map(|(_, way)| way));
    if !schema.keeps_unknown() && place != Place::Metadata {
        ways.push(Formula::HasOther(vec![schema], Box::new(Formula::anything())));
    }
    for (name, field) in &schema.properties {
        ways.push(Formula::has(name, Formula::Damaged(field, Place::Field)));
    }
    if let Some(additional) = free_values(schema) {
        ways.push(Formula::HasOther(vec![schema], Box::new(Formula::Damaged(additional, Place::Field))));
    }
    if let Some(items) = &schema.items {
        ways.push(Formula::HasItem(Box::new(Formula::Damaged(items, Place::Item))));
    }
    if schema.embedded_resource {
        ways.extend(super::embedded::ways_to_be_none());
    }
    ways
}
