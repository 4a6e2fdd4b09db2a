//! What rules imply together: whether the old rules and the old schema imply a new rule, and which objects they leave
//! for another difference to harm.

use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::LazyLock;

use serde_json::json;

use super::claims::{Asked, KnownClaim, Scene, is_stable, weight};
use super::formula::Formula;
use super::judge::Judge;
use super::logic::{Logic, at};
use super::outcome::Outcome;
use super::step::Step;
use super::step::lifted;
use super::step::node_at;
use super::types::Types;
use super::walk::Suspect;
use crate::schema::cel::{Claim, FieldPath, Program, Term};
use crate::schema::model::{CelRule, Schema};

/// The schema of a node that is no longer described.
static NOTHING: LazyLock<Schema> = LazyLock::new(|| Schema::of(&json!({})));

impl<'s> Judge<'s> {
    /// An old object that a new rule rejects. An empty outcome proves that there is none; a found object is a guess, as
    /// the formula does not capture everything in a rule. `None` if nothing can be said.
    pub(super) fn refused(&mut self, suspect: &Suspect<'s>, rule: &CelRule) -> Option<Outcome> {
        let writes = Program::shared(rule).ok()?.claims_of_writes(&[])?.len();
        let outcomes = (0..writes).map(|write| self.refused_by(suspect, rule, write)).collect::<Option<Vec<_>>>()?;
        // A rule with an `optionalOldSelf` is another one on an update: an object cannot show what that refuses.
        outcomes
            .iter()
            .position(|outcome| *outcome != Outcome::Empty)
            .map_or(Some(Outcome::Empty), |first| (first == 0).then(|| outcomes[0].clone()))
    }

    /// The same for the rule as it applies to one of the ways to write.
    fn refused_by(&mut self, suspect: &Suspect<'s>, rule: &CelRule, write: usize) -> Option<Outcome> {
        let steps = &suspect.steps;
        let claimed = |below: &[String]| Some(Program::shared(rule).ok()?.claims_of_writes(below)?.swap_remove(write));
        let outcome = self.refused_at(steps, claimed);
        // A rule on items is also a rule on their list.
        match steps.iter().rposition(|step| !matches!(step, Step::Field(_))) {
            Some(item) if matches!(steps[item], Step::Item) && outcome != Some(Outcome::Empty) => {
                let inner = names(&steps[item + 1..]);
                let of_list = self.refused_at(&steps[..item], |below| of_each(below, rule, &inner, claimed(&inner)?));
                if of_list == Some(Outcome::Empty) { of_list } else { outcome }
            }
            _ => outcome,
        }
    }

    /// An old object for which a claim about the value at the end of the steps is false. `claimed` builds the claim,
    /// given the field names that lead there from an ancestor.
    fn refused_at(&mut self, steps: &[Step<'s>], claimed: impl Fn(&[String]) -> Option<Claim>) -> Option<Outcome> {
        // From here on there are only fields, so every rule on the way can be read as one about the same object.
        let mut start = steps.iter().rposition(|step| !matches!(step, Step::Field(_))).map_or(0, |last| last + 1);
        let has_rules =
            |length: usize| node_at(self.before, &steps[..length]).is_some_and(|node| !node.rules.is_empty());
        start += (start..steps.len()).take_while(|length| !has_rules(*length)).count();
        let below = names(&steps[start..]);
        let (old, new) = (node_at(self.before, &steps[..start])?, node_at(self.after, &steps[..start])?);
        let claim = claimed(&below)?;
        let is_resource = start == 0;
        let stable = self.old.version == self.new.version && is_stable(old, new);
        let violated =
            Scene { schema: new, other: old, stable, old: Some(old), is_resource }.logic(&claim, Asked::NotTrue);
        let scene = Scene { schema: old, other: new, stable: true, old: Some(old), is_resource };
        let known = self.known_claims(&scene, &below);
        let mut subjects = BTreeSet::new();
        violated.subjects(&mut subjects);
        let mut all = vec![Logic::Plain(at(&below, Formula::anything())), violated];
        for KnownClaim { path, claim, .. } in known.iter().filter(|known| !subjects.is_disjoint(&known.subjects)) {
            if !self.solver.spend_outside(weight(claim) as u64) {
                return None;
            }
            let satisfied = scene.logic(claim, Asked::True);
            // A rule applies only to a present value.
            let satisfied = match below.starts_with(path) {
                true => satisfied,
                false => Logic::Any(vec![Logic::Plain(scene.absent(path)), satisfied]),
            };
            all.push(satisfied);
        }
        let formula = Logic::All(all).formula(&mut self.solver)?;
        Some(self.search(lifted(&steps[..start], formula)))
    }

    /// The claims of the old rules from the scene's node on; many new rules are judged beside the same ones.
    fn known_claims(&mut self, scene: &Scene<'s>, below: &[String]) -> Rc<[KnownClaim]> {
        let known = self.claims.entry((std::ptr::from_ref(scene.schema) as usize, below.to_vec()));
        let collect = || {
            let claims = claims_on_the_way(scene.schema, below).into_iter().map(|(path, claim)| {
                let mut subjects = BTreeSet::new();
                scene.logic(&claim, Asked::True).subjects(&mut subjects);
                KnownClaim { path, claim, subjects }
            });
            claims.collect()
        };
        Rc::clone(known.or_insert_with(collect))
    }

    /// An old object that satisfies the formula at the end of the steps, as far as old rules allow; `None` if they say
    /// nothing about it.
    pub(super) fn with_rules(&mut self, steps: &[Step<'s>], formula: &Formula<'s>) -> Option<Outcome> {
        let nodes: Vec<&Schema> =
            (0..=steps.len()).map(|length| node_at(self.before, &steps[..length])).collect::<Option<_>>()?;
        let after: Vec<Option<&Schema>> =
            (0..=steps.len()).map(|length| node_at(self.after, &steps[..length])).collect();
        let known: Vec<Vec<(FieldPath, Claim)>> = nodes
            .iter()
            .enumerate()
            .map(
                |(length, node)| {
                    if length == steps.len() { claims_on_the_way(node, &[]) } else { claims_of(node, &[]) }
                },
            )
            .collect();
        if known.iter().all(Vec::is_empty) {
            return None;
        }
        let mut satisfied = Vec::new();
        for (length, claims) in known.iter().enumerate() {
            let scene = Scene {
                schema: nodes[length],
                other: after[length].unwrap_or(&NOTHING),
                stable: true,
                old: Some(nodes[length]),
                is_resource: length == 0,
            };
            let each = claims.iter().filter_map(|(path, claim)| {
                if !self.solver.spend_outside(weight(claim) as u64) {
                    return None;
                }
                let claimed = scene.logic(claim, Asked::True);
                Logic::Any(vec![Logic::Plain(scene.absent(path)), claimed]).formula(&mut self.solver)
            });
            satisfied.push(Formula::All(each.collect()));
        }
        // Rules are not evaluated on null.
        let end = Formula::Any(vec![Formula::Types(Types::NULL), satisfied.pop()?]);
        let mut all = Formula::All(vec![formula.clone(), end]);
        for (step, claimed) in steps.iter().zip(satisfied).rev() {
            all = Formula::All(vec![claimed, step.around(all)]);
        }
        Some(self.search(all))
    }
}

fn names(steps: &[Step<'_>]) -> FieldPath {
    let name = |step: &Step<'_>| match step {
        Step::Field(name) => Some((*name).to_owned()),
        _ => None,
    };
    steps.iter().filter_map(name).collect()
}

/// The claims that a node's rules make about the value that holds it at the end of the path.
fn claims_of(node: &Schema, path: &[String]) -> Vec<(FieldPath, Claim)> {
    let claims = node.rules.iter().filter_map(|rule| Program::shared(rule).ok()?.claim(path));
    claims.map(|claim| (path.to_vec(), claim)).collect()
}

/// The claim that a rule on list items, or on a field in them, makes about the list.
fn of_each(list: &[String], rule: &CelRule, inner: &[String], claim: Claim) -> Option<Claim> {
    // A rule applies only to a present value.
    let absent = (1..=inner.len()).map(|length| Claim::Not(Box::new(Claim::Present(inner[..length].to_vec()))));
    let body = Claim::Any(absent.chain([claim]).collect());
    let text = format!("each of {list:?} {inner:?} {}", rule.rule);
    let range = Term::field(list.to_vec(), format!("{list:?}"));
    Some(Claim::Each { range, all: true, body: Box::new(body), text })
}

/// The claims of all rules from a node to the end of the path, of the fields below and of their items.
fn claims_on_the_way(node: &Schema, path: &[String]) -> Vec<(FieldPath, Claim)> {
    let mut found = Vec::new();
    let mut node = node;
    for (length, name) in path.iter().enumerate() {
        found.extend(claims_of(node, &path[..length]));
        match node.properties.get(name) {
            Some(field) => node = field,
            None => return found,
        }
    }
    let mut open = vec![(node, path.to_vec())];
    while let Some((node, path)) = open.pop() {
        found.extend(claims_of(node, &path));
        let items = node.items.iter().flat_map(|items| &items.rules);
        found.extend(items.filter_map(|rule| {
            let claim = Program::shared(rule).ok()?.claim(&[])?;
            Some((path.clone(), of_each(&path, rule, &[], claim)?))
        }));
        open.extend(
            node.properties
                .iter()
                .map(|(name, field)| (field, path.iter().cloned().chain([name.clone()]).collect::<Vec<_>>())),
        );
    }
    found
}
