//! CEL rules: what is proved about them without an object, and the objects that are tried against them, both to break a
//! new rule and to satisfy the old ones.

use super::confirm::Confirmed;
use super::formula::{Formula, free_values};
use super::probe::{COMBINATIONS, Demand, combinations, joined};
use super::solve::Outcome;
use super::walk::{Step, Suspect};
use super::{Judge, Proof, breaking, lifted};
use crate::schema::cel::{Known, Program};
use crate::schema::model::{CelRule, Schema};
use crate::schema::pipeline::Path;
use crate::source::PathSegment;

/// Nodes whose old rules are satisfied one after the other for one witness.
const REPAIRS: usize = 3;

impl<'s> Judge<'s> {
    /// Whether an old object breaks one of the rules that a node has now.
    pub(super) fn judge_rules(&mut self, suspect: &Suspect<'s>) -> Proof {
        let (Some(old), Some(new)) = (node_at(self.before, &suspect.steps), node_at(self.after, &suspect.steps)) else {
            return super::unknown(suspect.keyword);
        };
        let open: Vec<&CelRule> = new.rules.iter().filter(|rule| !is_settled(rule, old, new)).collect();
        if open.is_empty() {
            return Proof::Safe;
        }
        // Nothing is ever there that the rules could refuse.
        if self.search(lifted(&suspect.steps, Formula::anything())) == Outcome::Empty {
            return Proof::Safe;
        }
        let programs: Vec<Program> = open.iter().filter_map(|rule| Program::of(rule).ok()).collect();
        let unconditional: Vec<Program> = programs.iter().filter(|rule| !rule.uses_old_self()).cloned().collect();
        let look = self.opinion(suspect);
        let mut undecided = None;
        let mut repairs = REPAIRS;
        for formula in std::iter::once(Formula::anything()).chain(combinations(&unconditional, old)) {
            let Outcome::Found(object) = self.search(lifted(&suspect.steps, formula.clone())) else { continue };
            match look(&object) {
                Confirmed::Damaged(damage) if damage.keyword == suspect.keyword => {
                    return breaking(object, damage, &look);
                }
                Confirmed::NotAccepted(place, keyword) if keyword == suspect.keyword && repairs > 0 => {
                    repairs -= 1;
                    if let Some(proof) = self.satisfying(suspect, &suspect.steps, &formula, place) {
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
        Proof::Unknown { keyword: suspect.keyword.to_owned(), reason }
    }

    /// An object like the one that was found, which old rules also let in: `place` is where one of them refused it.
    pub(super) fn satisfying(
        &mut self,
        suspect: &Suspect<'s>,
        steps: &[Step<'s>],
        formula: &Formula<'s>,
        place: Path,
    ) -> Option<Proof> {
        let look = self.opinion(suspect);
        let mut fixed = vec![Demand { steps: steps.to_vec(), formula: formula.clone() }];
        let mut refused = place;
        let mut budget = COMBINATIONS;
        for _ in 0..REPAIRS {
            let (node, node_steps) = steps_to(self.before, &refused)?;
            let programs: Vec<Program> = node.rules.iter().filter_map(|rule| Program::of(rule).ok()).collect();
            let mut next = None;
            for formula in combinations(&programs, node) {
                budget = budget.checked_sub(1)?;
                let demand = Demand { steps: node_steps.clone(), formula };
                let demands: Vec<Demand<'s>> = fixed.iter().cloned().chain([demand.clone()]).collect();
                let Outcome::Found(object) = self.search(joined(demands)) else { continue };
                match look(&object) {
                    Confirmed::Damaged(damage) => return Some(breaking(object, damage, &look)),
                    // This rule is satisfied, and another one is not: go on from here.
                    Confirmed::NotAccepted(other, _) if other != refused => {
                        next = Some((demand, other));
                        break;
                    }
                    _ => {}
                }
            }
            let (demand, other) = next?;
            fixed.push(demand);
            refused = other;
        }
        None
    }
}

/// Whether nothing is to be asked about a rule: the node had it before in other words, or it is true of every old object.
fn is_settled(rule: &CelRule, old: &Schema, new: &Schema) -> bool {
    let Ok(program) = Program::shared(rule) else { return false };
    let same = |known: &&CelRule| {
        known.optional_old_self == rule.optional_old_self
            && Program::shared(known).is_ok_and(|known| known.normalised() == program.normalised())
    };
    if old.rules.iter().any(|known| same(&known)) {
        return true;
    }
    program.decide(&|path| known(path, old, new)) == Some(true)
}

/// What is certain of a field of every old object under the new schema.
fn known(path: &[&str], old: &Schema, new: &Schema) -> Option<Known> {
    let (name, parents) = path.split_last()?;
    let mut nodes = Some((old, new));
    for parent in parents {
        nodes = nodes.and_then(|(old, new)| Some((old.properties.get(*parent)?, new.properties.get(*parent)?)));
    }
    let (old, new) = nodes?;
    if old.properties.contains_key(*name) || old.keeps_unknown() {
        return None;
    }
    match new.properties.get(*name).and_then(|field| field.default.as_ref()) {
        None => Some(Known::Absent),
        // Below another field the default is there only where that field is.
        Some(default) if parents.is_empty() => Some(Known::Value(default.clone())),
        Some(_) => None,
    }
}

fn node_at<'s>(schema: &'s Schema, steps: &[Step<'s>]) -> Option<&'s Schema> {
    steps.iter().try_fold(schema, |node, step| match step {
        Step::Field(name) => node.properties.get(*name).or_else(|| free_values(node)),
        Step::Other(_) => free_values(node),
        Step::Item => node.items.as_deref(),
    })
}

/// The nearest node with rules on the way to a place in an object, and the steps to it.
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
