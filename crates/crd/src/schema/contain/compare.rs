//! Compares two schemas: finds their differences and judges each.

use std::cell::Cell;
use std::collections::HashMap;

use serde_json::{Value, json};

use super::budget::Budget;
use super::difference::{Difference, Spent};
use super::formula::{Formula, Level, Role};
use super::judge::Judge;
use super::outcome::Outcome;
use super::solve::Solver;
use super::types::Types;
use super::walk::{self, Question};
use crate::schema::cel;
use crate::schema::model::{Limit, Schema, status};
use crate::schema::pipeline::{self, Resource, Server};

/// Compares two versions of a definition. Equal schemas have no differences. The differences are in the order of the
/// old schema, then of the new one.
#[must_use]
pub fn compare(old: &Resource<'_>, new: &Resource<'_>, server: Server) -> Vec<Difference> {
    compare_within(old, new, server, &Budget::default())
}

/// Like [`compare`], with the work that it took.
#[must_use]
pub fn compare_and_count(old: &Resource<'_>, new: &Resource<'_>, server: Server) -> (Vec<Difference>, Spent) {
    let budget = Budget::default();
    let before = budget.left();
    let differences = compare_within(old, new, server, &budget);
    let after = budget.left();
    let spent = Spent {
        steps: before.steps - after.steps,
        automata: before.automata - after.automata,
        values: before.values - after.values,
    };
    (differences, spent)
}

/// Like [`compare`], with the rest of a budget that several comparisons share.
#[must_use]
pub fn compare_within(old: &Resource<'_>, new: &Resource<'_>, server: Server, budget: &Budget) -> Vec<Difference> {
    let (met_old, met_new) = (met(old, server), met(new, server));
    let before = met_old.as_ref().unwrap_or(old.schema);
    let after = met_new.as_ref().unwrap_or(new.schema);
    if before.digest == after.digest {
        return Vec::new();
    }
    let alone = if old.status { status::written_alone(before) } else { None };
    let searched = alone.as_ref().unwrap_or(before);
    let envelope = envelope(old);
    let left = budget.of_one_comparison();
    let values = Cell::new(left.values);
    let solver = Solver::new(left.steps, left.automata, budget.take_texts());
    let rules = rules_of(before) + rules_of(after);
    // Earlier evaluations on this thread do not count.
    let _ = cel::steps_taken();
    let mut judge = Judge {
        old,
        new,
        server,
        before,
        after,
        searched,
        envelope: &envelope,
        solver,
        claims: HashMap::new(),
        rules,
        values: &values,
    };
    // Rules last: trying objects for them must not use up the budget of the proofs.
    let (rules, others): (Vec<_>, Vec<_>) = walk::suspects(before, after, new.status)
        .into_iter()
        .enumerate()
        .partition(|(_, suspect)| matches!(suspect.question, Question::Rules));
    let mut judged: Vec<(usize, Difference)> =
        others.into_iter().chain(rules).map(|(place, suspect)| (place, judge.judge(suspect))).collect();
    judged.sort_by_key(|(place, _)| *place);
    let (steps, automata) = judge.solver.left();
    budget.take(Spent {
        steps: left.steps - steps,
        automata: left.automata - automata,
        values: left.values - values.get(),
    });
    budget.keep_texts(judge.solver.into_texts());
    judged.into_iter().map(|(_, difference)| difference).collect()
}

/// The schema as this server applies it, if that differs from the written one.
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

/// The number of differences between two schemas: the work of [`compare`] before it judges them, to be measured by
/// itself.
#[cfg(feature = "testing")]
#[must_use]
pub fn count_differences(old: &Schema, new: &Schema) -> usize {
    walk::suspects(old, new, false).len()
}

/// The number of rules of a schema, at all its nodes.
fn rules_of(schema: &Schema) -> u64 {
    schema.rules.len() as u64 + schema.children().map(rules_of).sum::<u64>()
}

/// A value of a field that the old schema accepts and the new one rejects, prunes or alters. Without a new schema, a
/// value that the old one accepts, preferably one with data. `None` if none is found.
#[must_use]
pub fn harmed_value(old: &Schema, new: Option<&Schema>) -> Option<Value> {
    let taken = || vec![Formula::Satisfies(old, Role::Stored(Level::Field)), Formula::Types(Types::NULL.not())];
    let asked = match new {
        Some(new) => vec![Formula::Damaged(new, Level::Field)],
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

/// An object of the resource with data at a path, rather than just a field; `None` if there is none. Without a value at
/// `and_none_at`, if that leaves any.
///
/// # Errors
/// The keyword that prevents an answer.
pub fn object_with(
    resource: &Resource<'_>,
    path: &[&str],
    and_none_at: Option<&[&str]>,
) -> Result<Option<Value>, String> {
    let opened = resource.preserve_unknown_fields.then(|| resource.schema.opened());
    let schema = opened.as_ref().unwrap_or(resource.schema);
    let envelope = envelope(resource);
    let holds = Formula::Any(vec![
        // A telling number, which is none that an absent field counts as.
        Formula::IsAbove(Limit { value: 0.0, exclusive: true }),
        Formula::HasAtLeast(1),
        Formula::HasItem(Box::new(Formula::anything())),
        Formula::Types(Types::SCALAR),
    ]);
    let holds = path.iter().rev().fold(holds, |inner, name| Formula::has(name, inner));
    let search = |more: Formula<'_>| {
        Solver::default().search(vec![
            Formula::Satisfies(schema, Role::Stored(Level::Root)),
            Formula::Satisfies(&envelope, Role::Branch(None)),
            holds.clone(),
            more,
        ])
    };
    if let Some((name, parents)) = and_none_at.and_then(<[&str]>::split_last) {
        let lacks = parents.iter().rev().fold(Formula::lacks(name), |inner, name| {
            Formula::Any(vec![Formula::lacks(name), Formula::has(name, inner)])
        });
        if let Outcome::Found(object) = search(lacks) {
            return Ok(Some(object));
        }
    }
    match search(Formula::anything()) {
        Outcome::Found(object) => Ok(Some(object)),
        Outcome::Empty => Ok(None),
        Outcome::Unknown(keyword) => Err(keyword),
    }
}

/// An object of the resource that the server rejects under this scale subresource; `None` if there is none.
///
/// # Errors
/// The keyword that prevents an answer.
pub fn unscalable_object(resource: &Resource<'_>, scale: &Value, server: Server) -> Result<Option<Value>, String> {
    let opened = resource.preserve_unknown_fields.then(|| resource.schema.opened());
    let schema = opened.as_ref().unwrap_or(resource.schema);
    let (envelope, required) = (envelope(resource), Schema::of(&pipeline::scale::schema(scale)));
    let found = Solver::default().search(vec![
        Formula::Satisfies(schema, Role::Stored(Level::Root)),
        Formula::Satisfies(&envelope, Role::Branch(None)),
        Formula::Violates(&required, Role::Branch(None)),
    ]);
    match found {
        Outcome::Empty => Ok(None),
        Outcome::Unknown(keyword) => Err(keyword),
        Outcome::Found(object) => {
            let before = pipeline::create(resource, server, &object);
            let scaled = Resource { scale: Some(scale), ..*resource };
            let is_refused = !pipeline::create(&scaled, server, &before.object).errors.is_empty();
            if before.accepted() == Some(true) && is_refused {
                Ok(Some(object))
            } else {
                Err("scaleSubresource".to_owned())
            }
        }
    }
}

/// The schema of what every object of the resource has, whatever its own schema: type, metadata, and the fields of the
/// scale subresource.
fn envelope(resource: &Resource<'_>) -> Schema {
    let mut scaled = resource.scale.map_or_else(|| json!({}), pipeline::scale::schema);
    let Value::Object(root) = &mut scaled else { return Schema::default() };
    let identity = json!({
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
                // The server ignores the last two bytes if there is a trailing hyphen.
                "generateName": {
                    "type": "string", "maxLength": 254,
                    "pattern": "^(|[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\
                        |([a-z0-9]([-a-z0-9]*[a-z0-9])?\\.)*([a-z0-9][-a-z0-9]*)?[\\x00-\\x7f]-)$",
                },
            }},
        },
    });
    for (keyword, value) in identity.as_object().into_iter().flatten() {
        match (root.get_mut(keyword), value) {
            (Some(Value::Object(known)), Value::Object(more)) => known.extend(more.clone()),
            _ => drop(root.insert(keyword.clone(), value.clone())),
        }
    }
    Schema::of(&scaled)
}
