//! The ways in which a value violates a schema or is damaged under it: one formula per constraint. Constraints of child
//! nodes stay unexpanded, so that a search expands only what it needs.

use serde_json::Value;

use super::embedded::ways_to_be_none;
use super::formula::{Formula, Level, Role, Unique, almost_whole, filled_in, flipped, free_values, types_of};
use super::listed::Listed;
use super::number::{Held, held};
use super::types::Types;
use crate::schema::model::{Limit, Schema, Window};

/// The constraints of a schema, each turned into the formula of violating it. `defaults` is the skeleton node whose
/// defaults are filled in before. `may_meet` tells whether a default may satisfy a formula.
pub(super) fn ways_to_violate<'s>(
    schema: &'s Schema,
    role: Role<'s>,
    may_meet: impl Fn(&Formula<'s>, &Value) -> bool,
) -> Vec<Formula<'s>> {
    let skeleton = match role {
        Role::Stored(_) => Some(schema),
        Role::Branch(skeleton) => skeleton,
    };
    let mut ways = vec![violates_type(schema, role)];
    ways.extend(scalar_ways(schema, filled_in(role)));
    let default_of =
        |name: &str| skeleton.and_then(|node| node.properties.get(name)).and_then(|field| field.default.as_ref());
    ways.extend(schema.required.iter().filter(|name| default_of(name).is_none()).map(|name| Formula::lacks(name)));
    for (name, field) in &schema.properties {
        let node = skeleton.and_then(|node| node.properties.get(name));
        let role = inner_role(role, node, Level::Field);
        ways.push(Formula::has(name, Formula::Violates(field, role)));
        // If the field is absent, its default is judged instead.
        if let (Some(default), Role::Branch(_)) = (default_of(name), role) {
            let violated = Formula::Violates(field, Role::Branch(node));
            if may_meet(&violated, default) {
                ways.push(Formula::lacks(name));
            }
        }
    }
    if let Some(additional) = free_values(schema) {
        let node = skeleton.and_then(free_values);
        let inner = Formula::Violates(additional, inner_role(role, node, Level::Field));
        ways.push(Formula::HasOther(vec![schema], Box::new(inner)));
    }
    if let Some(items) = &schema.items {
        let node = skeleton.and_then(|node| node.items.as_deref());
        ways.push(Formula::HasItem(Box::new(Formula::Violates(items, inner_role(role, node, Level::Item)))));
    }
    ways.extend(combinator_ways(schema, skeleton).into_iter().map(|(_, way)| way));
    ways
}

fn inner_role<'s>(role: Role<'s>, node: Option<&'s Schema>, place: Level) -> Role<'s> {
    match role {
        Role::Stored(_) => Role::Stored(place),
        Role::Branch(_) => Role::Branch(node),
    }
}

/// The formula of violating `type` and `nullable`.
pub(super) fn violates_type<'s>(schema: &'s Schema, role: Role<'s>) -> Formula<'s> {
    outside_of_types(schema, types_of(schema, role))
}

/// A value of none of the types, or a fraction that the schema does not accept as an integer.
pub(super) fn outside_of_types<'s>(schema: &'s Schema, types: Types) -> Formula<'s> {
    let others = Formula::Types(types.not());
    match almost_whole(schema) {
        Some(factor) => Formula::Any(vec![others, Formula::IsNoMultiple(factor)]),
        None => others,
    }
}

/// The constraints on scalars, and on the size of strings, lists and objects.
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
    // Any of the defaults may be filled in before fields are counted; the pipeline tells which.
    ways.extend(schema.property_count.most.map(|most| Formula::HasAtLeast(most.saturating_add(1) - filled)));
    ways.extend(Unique::of(schema).map(Formula::HasRepeated));
    if schema.unique_items {
        ways.push(Formula::HasRepeated(Unique::Items));
    }
    ways
}

/// The numbers that a `minimum` rejects.
pub(super) fn below(schema: &Schema, minimum: Limit) -> Formula<'static> {
    outside(schema, minimum.value, Formula::IsBelow(flipped(minimum)))
}

/// The numbers that a `maximum` rejects.
pub(super) fn above(schema: &Schema, maximum: Limit) -> Formula<'static> {
    outside(schema, maximum.value, Formula::IsAbove(flipped(maximum)))
}

/// The numbers that a `multipleOf` rejects.
pub(super) fn no_multiple(schema: &Schema, factor: f64) -> Formula<'static> {
    outside(schema, factor, Formula::IsNoMultiple(factor))
}

/// The numbers that a bound or factor rejects: those of the formula, if the server compares with it.
fn outside(schema: &Schema, bound: f64, compared: Formula<'static>) -> Formula<'static> {
    match held(schema, bound) {
        Held::Compared => compared,
        Held::Refusing => Formula::Types(Types::NUMBER),
        Held::Unsure => Formula::Any(vec![compared, Formula::Types(Types::WHOLE)]),
    }
}

/// `allOf`, `anyOf`, `oneOf` and `not`, each with the formula of violating it.
pub(super) fn combinator_ways<'s>(
    schema: &'s Schema,
    skeleton: Option<&'s Schema>,
) -> Vec<(&'static str, Formula<'s>)> {
    let role = Role::Branch(skeleton);
    let violates =
        |branches: &'s [Schema]| branches.iter().map(|branch| Formula::Violates(branch, role)).collect::<Vec<_>>();
    let mut ways = Vec::new();
    if !schema.all_of.is_empty() {
        ways.push(("allOf", Formula::Any(violates(&schema.all_of))));
    }
    if !schema.any_of.is_empty() {
        ways.push(("anyOf", Formula::All(violates(&schema.any_of))));
    }
    if !schema.one_of.is_empty() {
        let mut either = vec![Formula::All(violates(&schema.one_of))];
        // Expanded only on demand: the number of pairs is quadratic in the branches.
        let firsts = 0..schema.one_of.len() - 1;
        either.extend(firsts.map(|first| Formula::SatisfiesTwo(&schema.one_of, first, role)));
        ways.push(("oneOf", Formula::Any(either)));
    }
    if let Some(not) = &schema.not {
        ways.push(("not", Formula::Satisfies(not, role)));
    }
    // The server does not apply it to null.
    let present = |way| Formula::All(vec![Formula::Types(Types::NULL.not()), way]);
    ways.into_iter().map(|(keyword, way)| (keyword, present(way))).collect()
}

/// All ways in which a value is rejected, pruned or altered at a skeleton node or below.
pub(super) fn ways_to_damage(schema: &Schema, place: Level) -> Vec<Formula<'_>> {
    let role = Role::Stored(place);
    let mut ways = vec![violates_type(schema, role)];
    ways.extend(scalar_ways(schema, 0));
    let given = |name: &String| schema.properties.get(name).is_none_or(|field| field.default.is_none());
    ways.extend(schema.required.iter().filter(|name| given(name)).map(|name| Formula::lacks(name)));
    ways.extend(combinator_ways(schema, Some(schema)).into_iter().map(|(_, way)| way));
    if !schema.keeps_unknown() && place != Level::Metadata {
        ways.push(Formula::HasOther(vec![schema], Box::new(Formula::anything())));
    }
    for (name, field) in &schema.properties {
        ways.push(Formula::has(name, Formula::Damaged(field, Level::Field)));
    }
    if let Some(additional) = free_values(schema) {
        ways.push(Formula::HasOther(vec![schema], Box::new(Formula::Damaged(additional, Level::Field))));
    }
    if let Some(items) = &schema.items {
        ways.push(Formula::HasItem(Box::new(Formula::Damaged(items, Level::Item))));
    } else if schema.kind.is_none() && !schema.int_or_string && !schema.preserve_unknown {
        // Nothing says that it is no list, and nothing describes what is in it.
        ways.push(Formula::HasItem(Box::new(Formula::HasAtLeast(1))));
    }
    if schema.embedded_resource {
        ways.extend(ways_to_be_none());
    }
    ways
}
