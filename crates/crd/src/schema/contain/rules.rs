//! CEL rules: what is proved about them without an object, and the objects tried against them, both to violate a new
//! rule and to satisfy the old ones.

use std::collections::BTreeSet;

use serde_json::Value;

use super::claims::plain_type;
use super::confirm::{self, Confirmed};
use super::difference::SchemaProof;
use super::formula::{Formula, free_values};
use super::judge::{Judge, Refused, evaluations};
use super::minimise::breaking;
use super::outcome::Outcome;
use super::probe::{COMBINATIONS, Constraint, combinations, joined};
use super::retyped::{self, computes_otherwise};
use super::solve::size_of;
use super::step::Step;
use super::step::{lifted, node_at};
use super::telling::telling_values;
use super::unusual::holds_unusual;
use super::walk::Suspect;
use crate::path::{PathSegment, value_at};
use crate::schema::cel::{Distinct, Known, Program, Truth};
use crate::schema::model::{CelRule, ListType, Schema, Type};
use crate::schema::pipeline;

/// Maximum number of nodes whose old rules are satisfied one after the other for one witness.
const REPAIRS: usize = 8;

/// Maximum number of objects per question that are repaired.
const REPAIRED: usize = 3;

impl<'s> Judge<'s> {
    /// Whether an old object violates one of the new rules of a node.
    pub(super) fn judge_rules(&mut self, suspect: &Suspect<'s>) -> SchemaProof {
        let (Some(old), Some(new)) = (node_at(self.before, &suspect.steps), node_at(self.after, &suspect.steps)) else {
            return SchemaProof::unknown(suspect.keyword);
        };
        let before: BTreeSet<(String, bool)> = old.rules.iter().filter_map(identity).collect();
        let is_new = |rule: &&CelRule| {
            !identity(rule).is_some_and(|it| before.contains(&it)) || computes_otherwise(rule, old, new)
        };
        let rules: Vec<&CelRule> = new.rules.iter().filter(is_new).collect();
        let proof = self.judge_new_rules(suspect, &rules, [old, new]);
        if matches!(proof, SchemaProof::Breaking { .. }) {
            return proof;
        }
        match self.judge_misread(suspect, &rules, [old, new]) {
            Some(SchemaProof::Breaking { witness, mut damage }) => {
                damage.is_unusual = proof == SchemaProof::Safe && holds_unusual(self.before, &witness);
                return SchemaProof::Breaking { witness, damage };
            }
            Some(open) if proof == SchemaProof::Safe => return open,
            _ => {}
        }
        match (proof, self.judge_costs(suspect, &rules, old)) {
            (SchemaProof::Safe, Some(costly)) | (_, Some(costly @ SchemaProof::Breaking { .. })) => costly,
            (proof, _) => proof,
        }
    }

    /// Judges whether an old object with usual values violates one of these rules.
    fn judge_new_rules(
        &mut self,
        suspect: &Suspect<'s>,
        rules: &[&CelRule],
        [old, new]: [&'s Schema; 2],
    ) -> SchemaProof {
        let is_open = |rule: &&CelRule| !holds(rule, old, new) && !is_distinct_anyway(rule, old, new);
        let mut open: Vec<&CelRule> = rules.iter().copied().filter(is_open).collect();
        if open.is_empty() {
            return SchemaProof::Safe;
        }
        // There is never a value that the rules could reject.
        if self.search(lifted(&suspect.steps, Formula::anything())) == Outcome::Empty {
            return SchemaProof::Safe;
        }
        let look = self.opinion(suspect);
        let mut left = Vec::new();
        for rule in open {
            match self.refused(suspect, rule) {
                Some(Outcome::Empty) => continue,
                Some(Outcome::Found(object)) => match look(&object) {
                    Confirmed::Damaged(damage) if damage.keyword == suspect.keyword => {
                        return breaking(object, damage, &look);
                    }
                    _ => {}
                },
                _ => {}
            }
            left.push(rule);
        }
        open = left;
        if open.is_empty() {
            return SchemaProof::Safe;
        }
        let programs: Vec<Program> = open.iter().filter_map(|rule| Program::of(rule).ok()).collect();
        let unconditional: Vec<Program> = programs.iter().filter(|rule| rule.applies_on_creation()).cloned().collect();
        let mut undecided = None;
        let mut worth = REPAIRED;
        let telling: Vec<Formula<'s>> = open.iter().flat_map(|rule| telling_values(rule, old)).collect();
        let tried = std::iter::once(Formula::anything()).chain(telling).chain(combinations(&unconditional, old));
        for formula in tried {
            if self.values.get() == 0 {
                undecided.get_or_insert_with(|| confirm::TOO_MANY.to_owned());
                break;
            }
            let Outcome::Found(object) = self.search(lifted(&suspect.steps, formula.clone())) else { continue };
            // Evaluate the rules by themselves first: the whole pipeline costs a hundred times as much.
            let read = pipeline::read(self.new, &object).object;
            let answers: Vec<Truth> = values_at(&read, &suspect.steps)
                .into_iter()
                .flat_map(|value| unconditional.iter().map(|rule| rule.evaluate(new, value, None)))
                .collect();
            self.values.set(self.values.get().saturating_sub(size_of(&read) + answers.len() as u64 + evaluations()));
            let is_open = undecided.is_none() && answers.iter().any(|truth| matches!(truth, Truth::Unknown(_)));
            if !is_open && !answers.iter().any(Truth::rejects) {
                continue;
            }
            match look(&object) {
                Confirmed::Damaged(damage) if damage.keyword == suspect.keyword => {
                    return breaking(object, damage, &look);
                }
                Confirmed::NotAccepted(place, keyword) if keyword == suspect.keyword && worth > 0 => {
                    worth -= 1;
                    let refused = Refused { object, place };
                    if let Some(proof) = self.satisfying(suspect, &suspect.steps, &formula, refused) {
                        return proof;
                    }
                }
                Confirmed::Undecided(why) => {
                    undecided.get_or_insert(why);
                }
                _ => {}
            }
        }
        let reason = if programs.len() < open.len() {
            Some("a rule cannot be read".to_owned())
        } else if programs.iter().any(Program::uses_old_self) {
            Some("a rule is about transitions (oldSelf): it refuses changes, not objects".to_owned())
        } else {
            undecided
        };
        SchemaProof::Unknown { keyword: suspect.keyword.to_owned(), reason }
    }

    /// An object like the one found that old rules accept too.
    pub(super) fn satisfying(
        &mut self,
        suspect: &Suspect<'s>,
        steps: &[Step<'s>],
        formula: &Formula<'s>,
        mut refused: Refused,
    ) -> Option<SchemaProof> {
        let look = self.opinion(suspect);
        let mut fixed = vec![Constraint { steps: steps.to_vec(), formula: formula.clone() }];
        let mut budget = COMBINATIONS;
        for _ in 0..REPAIRS {
            let (node, node_steps) = steps_to(self.before, &refused.place)?;
            let programs: Vec<Program> = node.rules.iter().filter_map(|rule| Program::of(rule).ok()).collect();
            let is_refusing = |program: &&Program, object: &Value| {
                value_at(object, &refused.place).is_some_and(|value| program.evaluate(node, value, None).rejects())
            };
            let failing: Vec<Program> =
                programs.iter().filter(|program| is_refusing(program, &refused.object)).cloned().collect();
            let mut next = None;
            // What the failing rules read usually suffices, and is much less than what all rules read.
            for formula in combinations(&failing, node).into_iter().chain(combinations(&programs, node)) {
                budget = budget.checked_sub(1)?;
                let constraint = Constraint { steps: node_steps.clone(), formula };
                let constraints: Vec<Constraint<'s>> = fixed.iter().cloned().chain([constraint.clone()]).collect();
                let Outcome::Found(object) = self.search(joined(constraints)) else { continue };
                if failing.iter().any(|program| is_refusing(&program, &object)) {
                    continue;
                }
                match look(&object) {
                    Confirmed::Damaged(damage) => return Some(breaking(object, damage, &look)),
                    // These rules are satisfied and others are not: continue from here, preferably at another node.
                    Confirmed::NotAccepted(place, _) => {
                        let elsewhere = place != refused.place;
                        if elsewhere || next.is_none() {
                            next = Some((constraint, Refused { object, place }));
                        }
                        if elsewhere {
                            break;
                        }
                    }
                    _ => {}
                }
            }
            let (constraint, still) = next?;
            fixed.push(constraint);
            refused = still;
        }
        None
    }
}

/// The values at the end of the steps.
fn values_at<'v>(object: &'v Value, steps: &[Step<'_>]) -> Vec<&'v Value> {
    steps.iter().fold(vec![object], |values, step| {
        let below = values.into_iter().flat_map(|value| -> Box<dyn Iterator<Item = &'v Value>> {
            match (step, value) {
                (Step::Field(name), Value::Object(fields)) => Box::new(fields.get(*name).into_iter()),
                (Step::Other(_), Value::Object(fields)) => Box::new(fields.values()),
                (Step::Item, Value::Array(items)) => Box::new(items.iter()),
                _ => Box::new(std::iter::empty()),
            }
        });
        below.collect()
    })
}

/// The canonical text of a rule, with its `optionalOldSelf`.
fn identity(rule: &CelRule) -> Option<(String, bool)> {
    Some((Program::shared(rule).ok()?.normalised(), rule.optional_old_self))
}

/// Whether the two schemas alone imply that a rule is true of every old object.
fn holds(rule: &CelRule, old: &Schema, new: &Schema) -> bool {
    Program::shared(rule).is_ok_and(|program| program.decide(&|path| known(path, old, new)) == Some(true))
}

/// Whether a rule only says that the items of a list differ, which its type says already.
fn is_distinct_anyway(rule: &CelRule, old: &Schema, new: &Schema) -> bool {
    let Some(Distinct { list, key, guarded }) = Program::shared(rule).ok().and_then(|program| program.distinct())
    else {
        return false;
    };
    let lists = match list.as_slice() {
        [] => [Some(old), Some(new)],
        // Without the list the rule fails.
        [name] if guarded || old.required.contains(name) => [old, new].map(|node| node.properties.get(name)),
        _ => return false,
    };
    let is_simple = |node: &Schema| {
        !node.nullable && matches!(plain_type(node), Some(Type::String | Type::Integer | Type::Boolean))
    };
    let is_distinct = |list: &Schema| {
        let Some(items) = list.items.as_deref().filter(|_| guarded || !list.nullable) else { return false };
        match &key {
            None => list.list_type == Some(ListType::Set) && is_simple(items),
            Some(key) => {
                list.list_type == Some(ListType::Map)
                    && list.list_map_keys == [key.as_str()]
                    && items.required.contains(key)
                    && items.properties.get(key).is_some_and(is_simple)
            }
        }
    };
    let types = lists.map(|list| {
        let items = list?.items.as_deref()?;
        key.as_ref().map_or(items.kind, |key| items.properties.get(key)?.kind)
    });
    types[0] == types[1] && lists.iter().all(|list| list.is_some_and(is_distinct))
}

/// What is certain about a field of every old object under the new schema.
fn known<'s>(path: &[&str], old: &'s Schema, new: &'s Schema) -> Option<Known> {
    let (name, parents) = path.split_last()?;
    let mut nodes = Some((old, new));
    for parent in parents {
        // A default of the parent may contain the field.
        let plain = |(old, new): (&'s Schema, &'s Schema)| {
            let new = new.properties.get(*parent).filter(|node| node.default.is_none())?;
            Some((old.properties.get(*parent)?, new))
        };
        nodes = nodes.and_then(plain);
    }
    let (old, new) = nodes?;
    if old.properties.contains_key(*name) || old.keeps_unknown() {
        return None;
    }
    let field = new.properties.get(*name);
    match field.and_then(|field| field.default.as_ref()) {
        None => Some(Known::Absent),
        // Below another field, the default exists only if that field does.
        Some(_) if !parents.is_empty() => None,
        Some(default) => match field.and_then(retyped::format) {
            None => Some(Known::Value(default.clone())),
            Some("duration") => Known::duration(default.as_str()?),
            // CEL reads it as a value of another type.
            Some(_) => None,
        },
    }
}

/// The nearest node with rules on the way to a path in an object, and the steps to it.
fn steps_to<'s>(schema: &'s Schema, place: &[PathSegment]) -> Option<(&'s Schema, Vec<Step<'s>>)> {
    let mut steps = Vec::new();
    let mut node = schema;
    let mut found = (!node.rules.is_empty()).then(|| (node, steps.clone()));
    for segment in place {
        node = match segment {
            PathSegment::Key(key) => match node.properties.get_key_value(key) {
                Some((name, field)) => {
                    steps.push(Step::Field(name));
                    field
                }
                None => {
                    steps.push(Step::Other(vec![node]));
                    free_values(node)?
                }
            },
            PathSegment::Index(_) => {
                steps.push(Step::Item);
                node.items.as_deref()?
            }
        };
        if !node.rules.is_empty() {
            found = Some((node, steps.clone()));
        }
    }
    found
}
