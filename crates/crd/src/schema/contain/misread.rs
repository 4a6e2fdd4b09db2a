//! Objects with values that the server stores and that a rule reads otherwise: a list in a string with a format, on which
//! every rule that reads it fails, and integers that become equal when they are rounded to floats.

use std::rc::Rc;

use serde_json::json;

use super::confirm::Confirmed;
use super::difference::SchemaProof;
use super::formula::Formula;
use super::judge::{Judge, Refused};
use super::minimise::breaking;
use super::outcome::Outcome;
use super::probe::{lifted as lifted_to, node_at};
use super::retyped::{EXACT, may_be_rounded};
use super::step::lifted;
use super::types::Types;
use super::walk::Suspect;
use crate::schema::cel::{Program, Step};
use crate::schema::model::{CelRule, Schema, Type};

/// Maximum number of objects that are tried for one question.
const TRIED: usize = 24;

impl<'s> Judge<'s> {
    /// Finds an object that these rules read otherwise, and reject. Unknown, if one of the objects could not be judged.
    pub(super) fn judge_misread(
        &mut self,
        suspect: &Suspect<'s>,
        rules: &[&CelRule],
        nodes: [&'s Schema; 2],
    ) -> Option<SchemaProof> {
        let look = self.opinion(suspect);
        let mut open = None;
        let formulas: Vec<Formula<'s>> =
            rules.iter().flat_map(|rule| unusual_values(rule, nodes)).take(TRIED).collect();
        for formula in formulas {
            let object = match self.search(lifted(&suspect.steps, formula.clone())) {
                Outcome::Found(object) => object,
                Outcome::Empty => continue,
                Outcome::Unknown(keyword) => {
                    open.get_or_insert_with(|| SchemaProof::unknown(&keyword));
                    continue;
                }
            };
            match look(&object) {
                Confirmed::Damaged(damage) if damage.keyword == suspect.keyword => {
                    return Some(breaking(object, damage, &look));
                }
                Confirmed::NotAccepted(place, keyword) if keyword == suspect.keyword => {
                    let refused = Refused { object, place };
                    let found = self.satisfying(suspect, &suspect.steps, &formula, refused);
                    if let Some(proof @ SchemaProof::Breaking { .. }) = found {
                        return Some(proof);
                    }
                }
                Confirmed::Undecided(reason) => {
                    let keyword = suspect.keyword.to_owned();
                    open.get_or_insert(SchemaProof::Unknown { keyword, reason: Some(reason) });
                }
                _ => {}
            }
        }
        open
    }
}

/// Formulas of objects with such values at the paths that a rule reads.
fn unusual_values<'s>(rule: &CelRule, [old, new]: [&'s Schema; 2]) -> Vec<Formula<'s>> {
    let Ok(program) = Program::shared(rule) else { return Vec::new() };
    let read: Vec<Vec<Step>> = program.hints().paths.into_keys().collect();
    let of = |is_it: &dyn Fn(&Schema, &Schema) -> bool| -> Vec<Vec<Step>> {
        let is_it =
            |path: &&Vec<Step>| node_at(old, path).zip(node_at(new, path)).is_some_and(|(old, new)| is_it(old, new));
        read.iter().filter(is_it).cloned().collect()
    };
    let rounded = of(&may_be_rounded);
    let number = |path: &[Step], number: i64| lifted_to(path, old, Formula::Is(Rc::new(vec![json!(number)])));
    let mut found = Vec::new();
    for (index, path) in rounded.iter().enumerate() {
        for other in &rounded[index + 1..] {
            for [one, two] in [[EXACT, EXACT + 1], [EXACT + 1, EXACT]] {
                found.push(Formula::All(vec![number(path, one), number(other, two)]));
            }
        }
    }
    for path in &rounded {
        found.extend([EXACT + 1, -EXACT - 1, i64::MAX].map(|value| number(path, value)));
    }
    let is_text = |node: &Schema| node.kind == Some(Type::String);
    let holds_lists = |old: &Schema, new: &Schema| {
        is_text(old) && is_text(new) && [old, new].into_iter().all(|node| Types::allowed_by(node).has(Types::ARRAY))
    };
    found.extend(of(&holds_lists).iter().map(|path| lifted_to(path, old, Formula::Types(Types::ARRAY))));
    found
}
