//! Compares two schemas: finds the differences, and has each of them judged.

use std::cell::Cell;

use serde_json::{Value, json};

use super::confirm;
use super::difference::{Difference, Spent};
use super::formula::{Formula, Place, Role};
use super::judge::Judge;
use super::outcome::Outcome;
use super::solve::Solver;
use super::types::Types;
use super::walk::{self, Question};
use crate::schema::model::Schema;
use crate::schema::pipeline::{self, Resource, Server};

/// Compares two versions of a definition. Equal schemas have no differences; the order is that of the old schema, then of
/// the new one.
#[must_use]
pub fn compare(old: &Resource<'_>, new: &Resource<'_>, server: Server) -> Vec<Difference> {
    compare_and_count(old, new, server).0
}

/// As [`compare`], with what it took.
#[must_use]
pub fn compare_and_count(old: &Resource<'_>, new: &Resource<'_>, server: Server) -> (Vec<Difference>, Spent) {
    let (met_old, met_new) = (met(old, server), met(new, server));
    let before = met_old.as_ref().unwrap_or(old.schema);
    let after = met_new.as_ref().unwrap_or(new.schema);
    if before.digest == after.digest {
        return (Vec::new(), Spent::default());
    }
    let envelope = envelope(old);
    let values = Cell::new(confirm::VALUES);
    let solver = Solver::default();
    let rules = rules_of(before) + rules_of(after);
    let mut judge = Judge { old, new, server, before, after, envelope: &envelope, solver, rules, values: &values };
    // Rules last: what they look through must not use up what the proofs need.
    let (rules, others): (Vec<_>, Vec<_>) = walk::suspects(before, after, new.status)
        .into_iter()
        .enumerate()
        .partition(|(_, suspect)| matches!(suspect.question, Question::Rules));
    let mut judged: Vec<(usize, Difference)> =
        others.into_iter().chain(rules).map(|(place, suspect)| (place, judge.judge(suspect))).collect();
    judged.sort_by_key(|(place, _)| *place);
    let (steps, automata) = judge.solver.spent();
    let spent = Spent { steps, automata, values: confirm::VALUES - values.get() };
    (judged.into_iter().map(|(_, difference)| difference).collect(), spent)
}

/// The schema as objects meet it on this server, where that is another one than is written.
fn met(resource: &Resource<'_>, server: Server) -> Option<Schema> {
    let opened = resource.preserve_unknown_fields.then(|| resource.schema.opened());
    let is_newer = |format: &str| {
        !pipeline::is_known_format(format, server) && pipeline::is_known_format(format, Server::default())
    };
    fn has_format(schema: &Schema, is_newer: &impl Fn(&str) -> bool) -> bool {
        schema.format.as_deref().is_some_and(is_newer) || schema.children().any(|inner| has_format(inner, is_newer))
    }
    if server != Server::default() && has_format(resource.schema, &is_newer) {
        return Some(opened.as_ref().unwrap_or(resource.schema).without_formats(&is_newer));
    }
    opened
}

/// How many differences two schemas have: what [`compare`] does before it judges the first of them, to be measured alone.
#[cfg(feature = "testing")]
#[must_use]
pub fn count_differences(old: &Schema, new: &Schema) -> usize {
    walk::suspects(old, new, false).len()
}

/// How many rules a schema has, at all its nodes.
fn rules_of(schema: &Schema) -> u64 {
    schema.rules.len() as u64 + schema.children().map(rules_of).sum::<u64>()
}

/// A value of a field that the old schema takes and the new one rejects, prunes or alters; without a new one, a value that
/// the old one takes and that holds something, where it can. `None` where none is found.
#[must_use]
pub fn harmed_value(old: &Schema, new: Option<&Schema>) -> Option<Value> {
    let taken = || vec![Formula::Satisfies(old, Role::Stored(Place::Field)), Formula::Types(Types::NULL.not())];
    let asked = match new {
        Some(new) => vec![Formula::Damaged(new, Place::Field)],
        None => vec![Formula::HasAtLeast(1), Formula::anything()],
    };
    asked.into_iter().find_map(|constraint| {
        let mut formulas = taken();
        formulas.push(constraint);
        match Solver::default().search(formulas) {
            Outcome::Found(value) => Some(value),
            Outcome::Empty | Outcome::Unknown(_) => None,
        }
    })
}

/// An object of the resource with a field at its top that holds something: data, not only that it is there. `Err` where it
/// is not known whether there can be one.
///
/// # Errors
/// The keyword that stood in the way.
pub fn object_with(resource: &Resource<'_>, field: &str) -> Result<Option<Value>, String> {
    let opened = resource.preserve_unknown_fields.then(|| resource.schema.opened());
    let schema = opened.as_ref().unwrap_or(resource.schema);
    let envelope = envelope(resource);
    let holds = Formula::Any(vec![
        Formula::HasAtLeast(1),
        Formula::HasItem(Box::new(Formula::anything())),
        Formula::Types(Types::SCALAR),
    ]);
    let outcome = Solver::default().search(vec![
        Formula::Satisfies(schema, Role::Stored(Place::Root)),
        Formula::Satisfies(&envelope, Role::Branch(None)),
        Formula::has(field, holds),
    ]);
    match outcome {
        Outcome::Found(object) => Ok(Some(object)),
        Outcome::Empty => Ok(None),
        Outcome::Unknown(keyword) => Err(keyword),
    }
}

/// What every object of the kind has, apart from its schema.
fn envelope(resource: &Resource<'_>) -> Schema {
    Schema::of(&json!({
        "type": "object",
        "required": ["apiVersion", "kind", "metadata"],
        "properties": {
            "apiVersion": {"type": "string", "enum": [format!("{}/{}", resource.group, resource.version)]},
            "kind": {"type": "string", "enum": [resource.kind]},
            "metadata": {"type": "object", "required": ["name"], "properties": {
                "name": {
                    "type": "string", "minLength": 1, "maxLength": 253,
                    "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$",
                },
                // Of what ends in a hyphen, the server looks at all but the last two bytes.
                "generateName": {
                    "type": "string", "maxLength": 254,
                    "pattern": "^(|[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\
                        |([a-z0-9]([-a-z0-9]*[a-z0-9])?\\.)*([a-z0-9][-a-z0-9]*)?[\\x00-\\x7f]-)$",
                },
            }},
        },
    }))
}
