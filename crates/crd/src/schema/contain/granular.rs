//! The effect of server-side apply on a map whose fields are now owned one by one: a manager that applied the map as a whole
//! owns none of them, so what it no longer applies stays, and both together may violate the schema.

use serde_json::Value;

use super::confirm::Damage;
use super::difference::SchemaProof;
use super::formula::{Formula, Role};
use super::judge::Judge;
use super::merged::is_replaced_with_another;
use super::outcome::Outcome;
use super::step::{first_value_at, lifted, node_at};
use super::walk::Suspect;
use crate::schema::pipeline;

/// Branches of which each is applied over each other one at most.
const MOST_BRANCHES: usize = 6;

impl<'s> Judge<'s> {
    /// Returns whether a map is rejected when one of another branch is applied over it.
    pub(super) fn judge_granular(&mut self, suspect: &Suspect<'s>) -> SchemaProof {
        let unknown = SchemaProof::unknown(suspect.keyword);
        let steps = &suspect.steps;
        let Some(new) = node_at(self.after, steps) else { return unknown };
        if is_replaced_with_another(self.after, steps) {
            return unknown;
        }
        let branches = new.one_of.len().min(MOST_BRANCHES);
        let mut objects = Vec::new();
        for index in 0..branches {
            let branch = Formula::SatisfiesOne(&new.one_of, index, Role::Branch(Some(new)));
            if let Outcome::Found(object) = self.search(lifted(steps, branch))
                && self.is_taken(&object)
            {
                objects.push(object);
            }
        }
        for (first, second) in objects.iter().flat_map(|first| objects.iter().map(move |second| (first, second))) {
            if let Some(proof) = self.applied_over(suspect, first, second) {
                return proof;
            }
        }
        unknown
    }

    /// Returns whether both schemas accept an object and keep it as it is.
    pub(super) fn is_taken(&self, object: &Value) -> bool {
        [self.old, self.new].into_iter().all(|resource| {
            let admission = pipeline::create(resource, self.server, object);
            admission.accepted() == Some(true) && !admission.loses()
        })
    }

    /// The error of the first object once the map of the second is applied over its own.
    fn applied_over(&self, suspect: &Suspect<'s>, first: &Value, second: &Value) -> Option<SchemaProof> {
        let mut both = first.clone();
        let applied = first_value_at(&mut second.clone(), &suspect.steps)?.as_object_mut()?.clone();
        let kept = first_value_at(&mut both, &suspect.steps)?.as_object_mut()?;
        let stays: Vec<String> = kept.keys().filter(|name| !applied.contains_key(*name)).cloned().collect();
        let shown = Value::Object(applied.clone());
        kept.extend(applied);
        let error = pipeline::create(self.new, self.server, &both).errors.into_iter().next()?;
        let message =
            format!("{} when {shown} is applied, as {} stays: {}", error.keyword, stays.join(", "), error.message);
        let damage = Damage { message, ..Damage::rejected(&error) };
        Some(SchemaProof::Breaking { witness: first.clone(), damage })
    }
}
