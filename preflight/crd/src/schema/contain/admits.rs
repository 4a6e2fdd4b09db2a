//! Whether one value meets demands: what the search needs for the elements of an enum and for defaults.

use std::cell::Cell;
use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::demands::{Demands, Objects};
use super::formula::{Formula, Types, Unique};
use super::solve::is_excepted;
use super::values::{key, same};
use crate::schema::model::Schema;

/// Three-valued: `None` where something cannot be told and nothing else decides, or the steps have run out.
pub(super) fn admits(demands: &Demands<'_>, value: &Value, steps: &Cell<u64>) -> Option<bool> {
    steps.set(steps.get().checked_sub(1)?);
    let kind = Types::of(value);
    let certain = demands.types.has(kind)
        && demands.values.as_ref().is_none_or(|values| values.iter().any(|it| same(it, value)))
        && !is_excepted(value, demands);
    if !certain {
        return Some(false);
    }
    let own = match value {
        Value::Null | Value::Bool(_) => Some(true),
        Value::Number(number) => Some(demands.number.admits(number)),
        Value::String(text) => demands.text.admits(text),
        Value::Array(items) => list(demands, items, steps),
        Value::Object(fields) => object(&demands.object, fields, steps),
    };
    let chosen = demands.choices.iter().map(|ways| any(ways.iter().map(|way| holds(way, value, steps))));
    all(std::iter::once(own).chain(chosen))
}

/// Whether a value meets a formula; `None` where that cannot be told.
pub(super) fn holds(formula: &Formula<'_>, value: &Value, steps: &Cell<u64>) -> Option<bool> {
    let mut demands = Demands::new();
    demands.add(formula.clone());
    admits(&demands, value, steps)
}

fn list(demands: &Demands<'_>, items: &[Value], steps: &Cell<u64>) -> Option<bool> {
    let demands = &demands.list;
    if !demands.count.holds(items.len()) {
        return Some(false);
    }
    let each = demands
        .items
        .iter()
        .flat_map(|(schema, role)| items.iter().map(move |item| holds(&Formula::Obeys(schema, *role), item, steps)));
    let some = demands.has.iter().map(|formula| any(items.iter().map(|item| holds(formula, item, steps))));
    let unique = demands.unique.iter().map(|unique| Some(!repeats(unique, items)));
    let repeated = demands.repeated.iter().map(|unique| Some(repeats(unique, items)));
    all(each.chain(some).chain(unique).chain(repeated))
}

/// Whether two items are equal in the way that `unique` forbids.
pub(super) fn repeats(unique: &Unique<'_>, items: &[Value]) -> bool {
    let mut seen = BTreeSet::new();
    let identity = |item: &Value| match unique {
        Unique::Items => vec![Some(key(item))],
        Unique::Keys(keys) => keys.iter().map(|name| item.get(name).map(key)).collect(),
    };
    items.iter().any(|item| !seen.insert(identity(item)))
}

fn object(demands: &Objects<'_>, fields: &Map<String, Value>, steps: &Cell<u64>) -> Option<bool> {
    if !demands.count.holds(fields.len())
        || demands.lacks.iter().any(|name| fields.contains_key(&**name))
        || demands.has.keys().any(|name| !fields.contains_key(&**name))
    {
        return Some(false);
    }
    let each = fields.iter().map(|(name, value)| match demands.demands_on(name) {
        None => Some(false),
        Some(formulas) => all(formulas.iter().map(|formula| holds(formula, value, steps))),
    });
    let other = demands.has_other.iter().map(|(schemas, formula)| {
        let unnamed = fields.iter().filter(|(name, _)| !is_named(schemas, name));
        any(unnamed.map(|(_, value)| holds(formula, value, steps)))
    });
    all(each.chain(other))
}

/// Whether one of the schemas names the field.
pub(super) fn is_named(schemas: &[&Schema], name: &str) -> bool {
    schemas.iter().any(|schema| schema.properties.contains_key(name))
}

fn all(answers: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    let mut known = true;
    for answer in answers {
        match answer {
            Some(false) => return Some(false),
            Some(true) => {}
            None => known = false,
        }
    }
    known.then_some(true)
}

fn any(answers: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    let mut known = true;
    for answer in answers {
        match answer {
            Some(true) => return Some(true),
            Some(false) => {}
            None => known = false,
        }
    }
    known.then_some(false)
}
