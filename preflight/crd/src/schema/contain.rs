//! Whether all that an old schema lets into etcd gets through a new one unharmed: three-valued, difference by difference,
//! with an object that suffers where the answer is no. What is not proved either way is unknown, never safe.

mod admits;
mod branches;
mod claims;
mod confirm;
mod defaults;
mod demands;
mod embedded;
mod formula;
mod implied;
mod list;
mod listed;
mod logic;
mod merged;
mod minimise;
mod number;
mod object;
mod probe;
mod retyped;
mod rules;
mod solve;
mod step;
mod text;
mod values;
mod walk;

#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod tests;

use std::cell::Cell;
use std::rc::Rc;

use serde_json::{Value, json};

use super::model::Schema;
use super::pipeline::{self, Resource, Server};
pub(crate) use branches::branches_of;
use confirm::{Confirmed, confirm};
pub use confirm::{Damage, Effect, Sufferer, suffering};
use formula::{Formula, Place, Role};
use rules::Refused;
use solve::{Outcome, Solver};
use step::Step;
use walk::{Question, Suspect};

/// A step from a node of a schema to one below.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SchemaStep {
    /// `properties` under this name.
    Property(String),
    /// `additionalProperties`
    Additional,
    /// `items`
    Items,
}

/// What is known of a difference.
#[derive(Clone, Debug, PartialEq)]
pub enum Proof {
    /// No old object suffers from it.
    Safe,
    /// This object was accepted before, and suffers now.
    Breaking {
        /// A whole custom resource.
        witness: Value,
        /// What becomes of it.
        damage: Damage,
    },
    /// Neither could be proved.
    Unknown {
        /// The keyword that stood in the way.
        keyword: String,
        /// Why, where there is more to say than the keyword.
        reason: Option<String>,
    },
}

/// One difference between two schemas.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The node, from the root of the schema.
    pub path: Vec<SchemaStep>,
    /// The keyword that differs, or the name of what happened to the node.
    pub keyword: &'static str,
    /// Before.
    pub old: Option<Value>,
    /// After.
    pub new: Option<Value>,
    /// What it does to old objects.
    pub proof: Proof,
}

/// What a comparison took of its budgets. It is the same on every machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// Steps of searches.
    pub steps: u64,
    /// Steps of automata for patterns.
    pub automata: u64,
    /// Values that the pipeline was asked about.
    pub values: u64,
}

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
    let taken = || vec![Formula::Obeys(old, Role::Stored(Place::Field)), Formula::Types(formula::Types::NULL.not())];
    let asked = match new {
        Some(new) => vec![Formula::Damaged(new, Place::Field)],
        None => vec![Formula::HasAtLeast(1), Formula::anything()],
    };
    asked.into_iter().find_map(|demand| {
        let mut formulas = taken();
        formulas.push(demand);
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
        Formula::Types(formula::Types::SCALAR),
    ]);
    let outcome = Solver::default().search(vec![
        Formula::Obeys(schema, Role::Stored(Place::Root)),
        Formula::Obeys(&envelope, Role::Branch(None)),
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

struct Judge<'s> {
    old: &'s Resource<'s>,
    new: &'s Resource<'s>,
    server: Server,
    before: &'s Schema,
    after: &'s Schema,
    envelope: &'s Schema,
    solver: Solver,
    /// Of both schemas: what the pipeline evaluates for an object, at most where it has one of everything.
    rules: u64,
    /// What is left of the values that the pipeline may be asked about.
    values: &'s Cell<u64>,
}

impl<'s> Judge<'s> {
    fn judge(&mut self, suspect: Suspect<'s>) -> Difference {
        let proof = match &suspect.question {
            Question::Harmless => Proof::Safe,
            Question::Undecidable => unknown(suspect.keyword),
            Question::Exists(formula) => self.exists(&suspect, &suspect.steps, formula),
            Question::Default(formula) => {
                // Asked of the parent: the field is not there.
                let parent = suspect.steps.len().saturating_sub(1);
                match self.exists(&suspect, &suspect.steps[..parent], formula) {
                    Proof::Safe => self.written_without(&suspect),
                    proof => proof,
                }
            }
            Question::Merged(unique) => self.judge_merged(&suspect, unique),
            Question::Rules => self.judge_rules(&suspect),
        };
        Difference {
            path: suspect.steps.iter().map(schema_step).collect(),
            keyword: suspect.keyword,
            old: suspect.old,
            new: suspect.new,
            proof,
        }
    }

    /// Whether an old object is like this at the end of the steps.
    fn exists(&mut self, suspect: &Suspect<'s>, steps: &[Step<'s>], formula: &Formula<'s>) -> Proof {
        match self.search(lifted(steps, formula.clone())) {
            Outcome::Empty => Proof::Safe,
            Outcome::Unknown(keyword) => unknown(&keyword),
            Outcome::Found(object) => self.confirmed(suspect, steps, formula, object),
        }
    }

    /// Whether an object suffers that was written without a field and is stored with its old default: what is asked of the
    /// nodes around it is asked of the object with the default in it.
    fn written_without(&mut self, suspect: &Suspect<'s>) -> Proof {
        let (Some(default), Some(node)) = (&suspect.old, rules::node_at(self.before, &suspect.steps)) else {
            return Proof::Safe;
        };
        let filled = pipeline::filled_default(node, default);
        let mut object = match self.search(lifted(&suspect.steps, Formula::Is(Rc::new(vec![filled.clone()])))) {
            Outcome::Empty => return Proof::Safe,
            Outcome::Unknown(keyword) => return unknown(&keyword),
            Outcome::Found(object) => object,
        };
        if !defaults::leave_out(&mut object, &suspect.steps, &filled) {
            return Proof::Safe;
        }
        let look = self.opinion(suspect);
        match look(&object) {
            Confirmed::Damaged(damage) => breaking(object, damage, &look),
            Confirmed::Unharmed => Proof::Safe,
            other => disagreed(suspect, &other),
        }
    }

    /// Looks for an old object that is like this.
    fn search<'f>(&mut self, formula: Formula<'f>) -> Outcome
    where
        's: 'f,
    {
        self.solver.search(vec![
            Formula::Obeys(self.before, Role::Stored(Place::Root)),
            Formula::Obeys(self.envelope, Role::Branch(None)),
            formula,
        ])
    }

    /// The second opinion on objects for a suspect: the pipeline, which shares nothing with the search.
    fn opinion(&self, suspect: &Suspect<'s>) -> impl Fn(&Value) -> Confirmed + use<'s> {
        let Self { old, new, server, rules, values, .. } = *self;
        let path: Vec<SchemaStep> = suspect.steps.iter().map(schema_step).collect();
        move |object| {
            let confirmed = confirm(old, new, server, &path, object, values);
            values.set(values.get().saturating_sub(rules));
            confirmed
        }
    }

    /// Whether anything is asked of a whole node on the way to a field.
    fn is_asked_around(&self, steps: &[Step<'s>]) -> bool {
        let nodes = (0..steps.len()).filter_map(|length| rules::node_at(self.after, &steps[..length]));
        nodes.into_iter().any(defaults::is_asked_as_a_whole)
    }

    /// The second opinion has to agree before an object is told.
    fn confirmed(&mut self, suspect: &Suspect<'s>, steps: &[Step<'s>], formula: &Formula<'s>, object: Value) -> Proof {
        let look = self.opinion(suspect);
        match look(&object) {
            Confirmed::Damaged(damage) => breaking(object, damage, &look),
            // Another object may hold the larger default against what is asked of the nodes around it.
            Confirmed::Unharmed if ["default", "defaultOfNewField"].contains(&suspect.keyword) => {
                if suspect.old.is_some() && suspect.new.is_some() && self.is_asked_around(&suspect.steps) {
                    unknown(suspect.keyword)
                } else {
                    Proof::Safe
                }
            }
            Confirmed::NotAccepted(place, keyword) if keyword == "x-kubernetes-validations" => {
                let reason = Confirmed::NotAccepted(place.clone(), keyword);
                // What is about a default is about objects before they have it, of which rules say nothing.
                let told = (suspect.keyword != "default").then(|| self.with_rules(steps, formula)).flatten();
                match told {
                    Some(Outcome::Empty) => return Proof::Safe,
                    Some(Outcome::Found(object)) => {
                        if let Confirmed::Damaged(damage) = look(&object) {
                            return breaking(object, damage, &look);
                        }
                    }
                    _ => {}
                }
                let refused = Refused { object, place };
                self.satisfying(suspect, steps, formula, refused).unwrap_or_else(|| disagreed(suspect, &reason))
            }
            other => disagreed(suspect, &other),
        }
    }
}

/// Breaking, with the object made as small as the damage allows.
fn breaking(object: Value, damage: Damage, look: &impl Fn(&Value) -> Confirmed) -> Proof {
    let (witness, damage) = minimise::minimise(object, damage, look);
    Proof::Breaking { witness, damage }
}

fn disagreed(suspect: &Suspect<'_>, confirmed: &Confirmed) -> Proof {
    Proof::Unknown { keyword: suspect.keyword.to_owned(), reason: Some(confirmed.reason()) }
}

fn unknown(keyword: &str) -> Proof {
    Proof::Unknown { keyword: keyword.to_owned(), reason: None }
}

fn schema_step(step: &Step<'_>) -> SchemaStep {
    match step {
        Step::Field(name) => SchemaStep::Property((*name).to_owned()),
        Step::Other(_) => SchemaStep::Additional,
        Step::Item => SchemaStep::Items,
    }
}

/// The formula of an object that has, at the end of the steps, what the formula asks for.
fn lifted<'s>(steps: &[Step<'s>], formula: Formula<'s>) -> Formula<'s> {
    steps.iter().rev().fold(formula, |inner, step| step.around(inner))
}
