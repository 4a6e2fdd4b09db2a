//! Judges one difference at a time: does it affect an old object? The search proposes one, the pipeline confirms it.

use std::cell::Cell;
use std::collections::HashMap;
use std::rc::Rc;

use serde_json::Value;

use super::claims::KnownClaim;
use super::confirm::{Confirmed, Damage, confirm};
use super::defaults;
use super::difference::{Difference, SchemaProof};
use super::formula::{Formula, Level, Role};
use super::minimise::breaking;
use super::outcome::Outcome;
use super::solve::Solver;
use super::step::{SchemaStep, Step, lifted, node_at, schema_step};
use super::walk::{BUILT_IN, Question, Suspect};
use crate::schema::cel::{self, FieldPath};
use crate::schema::model::Schema;
use crate::schema::pipeline::{self, Path, Resource, Server};

pub(super) struct Judge<'s> {
    pub(super) old: &'s Resource<'s>,
    pub(super) new: &'s Resource<'s>,
    pub(super) server: Server,
    pub(super) before: &'s Schema,
    /// Schema that old objects satisfy, where that is less strict than `before`.
    pub(super) searched: &'s Schema,
    pub(super) after: &'s Schema,
    pub(super) envelope: &'s Schema,
    pub(super) solver: Solver,
    /// The claims of old rules, by the address of the node they were collected from and the path below it.
    pub(super) claims: HashMap<(usize, FieldPath), Rc<[KnownClaim]>>,
    /// The rules of both schemas that the pipeline evaluates for an object with one of everything.
    pub(super) rules: u64,
    /// The remaining number of values that the pipeline may examine.
    pub(super) values: &'s Cell<u64>,
}

impl<'s> Judge<'s> {
    pub(super) fn judge(&mut self, suspect: Suspect<'s>) -> Difference {
        let mut proof = match &suspect.question {
            Question::Harmless => SchemaProof::Safe,
            Question::Undecidable => SchemaProof::unknown(suspect.keyword),
            Question::Exists(formula) => {
                let proof = self.exists(&suspect, &suspect.steps, formula);
                self.mark_unusual(&suspect.steps, formula, proof)
            }
            Question::Default(formula) => {
                // Asked of the parent, as the field is absent.
                let parent = suspect.steps.len().saturating_sub(1);
                match self.exists(&suspect, &suspect.steps[..parent], formula) {
                    SchemaProof::Safe => self.written_without(&suspect),
                    proof => proof,
                }
            }
            Question::Merged(unique) => self.judge_merged(&suspect, unique),
            Question::Granular => self.judge_granular(&suspect),
            Question::Rules => self.judge_rules(&suspect),
        };
        if let SchemaProof::Breaking { damage, .. } = &proof
            && damage.others > 0
            && let Some(better) = self.only_this(&suspect, damage)
        {
            proof = better;
        }
        Difference {
            path: suspect.steps.iter().map(schema_step).collect(),
            keyword: suspect.keyword,
            old: suspect.old,
            new: suspect.new,
            proof,
        }
    }

    /// Whether an old object satisfies the formula at the end of the steps.
    pub(super) fn exists(&mut self, suspect: &Suspect<'s>, steps: &[Step<'s>], formula: &Formula<'s>) -> SchemaProof {
        match self.search(lifted(steps, formula.clone())) {
            Outcome::Empty => SchemaProof::Safe,
            Outcome::Unknown(keyword) => SchemaProof::unknown(&keyword),
            Outcome::Found(object) => self.confirmed(suspect, steps, formula, object),
        }
    }

    /// Whether it affects an object that was written without a field and is stored with its old default: the
    /// constraints of the nodes around it apply to the object including the default.
    pub(super) fn written_without(&mut self, suspect: &Suspect<'s>) -> SchemaProof {
        let (Some(default), Some(node)) = (&suspect.old, node_at(self.before, &suspect.steps)) else {
            return SchemaProof::Safe;
        };
        let filled = pipeline::filled_default(node, default);
        let mut object = match self.search(lifted(&suspect.steps, Formula::Is(Rc::new(vec![filled.clone()])))) {
            Outcome::Empty => return SchemaProof::Safe,
            Outcome::Unknown(keyword) => return SchemaProof::unknown(&keyword),
            Outcome::Found(object) => object,
        };
        if !defaults::leave_out(&mut object, &suspect.steps, &filled) {
            return SchemaProof::Safe;
        }
        let look = self.opinion(suspect);
        match look(&object) {
            Confirmed::Damaged(damage) => breaking(object, damage, &look),
            Confirmed::Unharmed => SchemaProof::Safe,
            other => disagreed(suspect, &other),
        }
    }

    /// A witness that less else is wrong with: what is beside the difference satisfies the new schema too.
    fn only_this(&mut self, suspect: &Suspect<'s>, damage: &Damage) -> Option<SchemaProof> {
        let Question::Exists(formula) = &suspect.question else { return None };
        let missing =
            suspect.new.as_ref().filter(|_| suspect.keyword == "required").and_then(|names| names[0].as_str());
        let node = node_at(self.after, &suspect.steps);
        let end = node.map_or_else(Formula::anything, |node| sound_fields(node, missing));
        let around = suspect.steps.iter().enumerate().rev().fold(
            Formula::All(vec![formula.clone(), end]),
            |inner, (length, step)| {
                let name = if let Step::Field(name) = step { Some(*name) } else { None };
                let beside = node_at(self.after, &suspect.steps[..length]);
                let beside = beside.map_or_else(Formula::anything, |node| sound_fields(node, name));
                Formula::All(vec![step.around(inner), beside])
            },
        );
        let Outcome::Found(object) = self.search(around) else { return None };
        let look = self.opinion(suspect);
        match look(&object) {
            Confirmed::Damaged(found)
                if found.others < damage.others
                    && [damage.keyword.as_str(), suspect.keyword].contains(&found.keyword.as_str()) =>
            {
                Some(breaking(object, found, &look))
            }
            _ => None,
        }
    }

    /// Searches for an old object that satisfies the formula.
    pub(super) fn search<'f>(&mut self, formula: Formula<'f>) -> Outcome
    where
        's: 'f,
    {
        self.solver.search(vec![
            Formula::Satisfies(self.searched, Role::Stored(Level::Root)),
            Formula::Satisfies(self.envelope, Role::Branch(None)),
            formula,
        ])
    }

    /// Confirms objects for a suspect with the pipeline, which shares nothing with the search.
    pub(super) fn opinion(&self, suspect: &Suspect<'s>) -> impl Fn(&Value) -> Confirmed + use<'s> {
        let Self { old, new, server, rules, values, .. } = *self;
        let path: Vec<SchemaStep> = suspect.steps.iter().map(schema_step).collect();
        let keyword = suspect.keyword;
        move |object| {
            let confirmed = confirm(old, new, server, (&path, keyword), object, values);
            values.set(values.get().saturating_sub(rules + evaluations()));
            confirmed
        }
    }

    /// Whether a node on the way to a field constrains its value as a whole.
    pub(super) fn is_asked_around(&self, steps: &[Step<'s>]) -> bool {
        let nodes = (0..steps.len()).filter_map(|length| node_at(self.after, &steps[..length]));
        nodes.into_iter().any(defaults::is_asked_as_a_whole)
    }

    /// An object is reported only if the pipeline confirms it.
    pub(super) fn confirmed(
        &mut self,
        suspect: &Suspect<'s>,
        steps: &[Step<'s>],
        formula: &Formula<'s>,
        object: Value,
    ) -> SchemaProof {
        let look = self.opinion(suspect);
        match look(&object) {
            Confirmed::Damaged(damage) => breaking(object, damage, &look),
            // With another object, the larger default may violate the constraints of the nodes around it.
            Confirmed::Unharmed if ["default", "defaultOfNewField"].contains(&suspect.keyword) => {
                if suspect.old.is_some() && suspect.new.is_some() && self.is_asked_around(&suspect.steps) {
                    SchemaProof::unknown(suspect.keyword)
                } else {
                    SchemaProof::Safe
                }
            }
            Confirmed::NotAccepted(place, keyword) if keyword == "x-kubernetes-validations" => {
                let reason = Confirmed::NotAccepted(place.clone(), keyword);
                // A difference of defaults concerns objects before defaulting, about which rules say nothing.
                let told = (suspect.keyword != "default").then(|| self.with_rules(steps, formula)).flatten();
                match told {
                    Some(Outcome::Empty) => return SchemaProof::Safe,
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

/// Steps of evaluations that count as one examined value.
const STEPS: u64 = 8;

/// Returns the evaluations since they were last counted, in examined values.
pub(super) fn evaluations() -> u64 {
    cel::steps_taken() / STEPS
}

/// The fields of an object, except one, satisfy the schema, and those that it requires are there.
fn sound_fields<'s>(node: &'s Schema, except: Option<&str>) -> Formula<'s> {
    // The server checks what every resource has by itself.
    let is_asked = |name: &str| except != Some(name) && !BUILT_IN.contains(&name);
    let others = node.properties.iter().filter(|(name, _)| is_asked(name));
    let sound = others.map(|(name, field)| {
        let there = Formula::has(name, Formula::Satisfies(field, Role::Stored(Level::Field)));
        if node.required.contains(name) && field.default.is_none() {
            there
        } else {
            Formula::Any(vec![Formula::lacks(name), there])
        }
    });
    Formula::All(sound.collect())
}

fn disagreed(suspect: &Suspect<'_>, confirmed: &Confirmed) -> SchemaProof {
    SchemaProof::Unknown { keyword: suspect.keyword.to_owned(), reason: Some(confirmed.reason()) }
}

/// An object that an old rule rejects, and where.
pub(super) struct Refused {
    pub(super) object: Value,
    pub(super) place: Path,
}
