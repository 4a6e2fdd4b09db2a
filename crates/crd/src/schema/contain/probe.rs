//! Objects to try against CEL rules, which the search cannot analyse: combinations of what a rule reads, each field
//! present or absent, with the values and sizes in the rule and their neighbours.

use std::rc::Rc;

use serde_json::{Value, json};

use super::formula::{Formula, Level, Role, free_values, types_of};
use super::step::Step;
use super::types::Types;
use crate::schema::cel::{Hint, Program, Step as HintStep};
use crate::schema::model::{Limit, Schema, Type, Window};

/// Maximum number of combinations tried for one question.
pub(super) const COMBINATIONS: usize = 320;
/// Maximum number of alternatives tried for one path.
const WAYS: usize = 14;

/// Formulas for a node, each a combination of constraints on what the rules read: single ones first, then pairs and
/// larger ones.
pub(super) fn combinations<'s>(rules: &[Program], node: &'s Schema) -> Vec<Formula<'s>> {
    let mut paths: std::collections::BTreeMap<Vec<HintStep>, Hint> = std::collections::BTreeMap::new();
    let mut loose = Vec::new();
    for rule in rules {
        let hints = rule.hints();
        for (path, hint) in hints.paths {
            let known = paths.entry(path).or_default();
            known.literals.extend(hint.literals);
            known.sizes.extend(hint.sizes);
            known.presence |= hint.presence;
        }
        loose.extend(hints.literals);
    }
    let ways: Vec<Vec<Formula<'s>>> = paths
        .iter()
        .map(|(path, hint)| {
            let mut ways = ways(path, hint, &loose, node);
            ways.truncate(WAYS);
            ways
        })
        .filter(|ways| !ways.is_empty())
        .collect();
    combined(&ways)
}

/// Every choice of at most one alternative per path, first those that fix few paths, then those that fix all.
fn combined<'s>(ways: &[Vec<Formula<'s>>]) -> Vec<Formula<'s>> {
    let mut found = Vec::new();
    for one in ways {
        found.extend(one.iter().cloned());
    }
    for (index, one) in ways.iter().enumerate() {
        for other in &ways[index + 1..] {
            for (first, second) in one.iter().flat_map(|first| other.iter().map(move |second| (first, second))) {
                if found.len() >= COMBINATIONS / 2 {
                    break;
                }
                found.push(Formula::All(vec![first.clone(), second.clone()]));
            }
        }
    }
    // All paths at once, in the order of a counter with one digit per path.
    let total = ways.iter().try_fold(1_usize, |total, one| total.checked_mul(one.len())).unwrap_or(usize::MAX);
    let room = COMBINATIONS.saturating_sub(found.len());
    if ways.len() > 2 {
        let stride = (total / room.max(1)).max(1) | 1;
        for number in (0..total).step_by(stride).take(room) {
            let mut rest = number;
            let all = ways.iter().map(|one| {
                let way = one[rest % one.len()].clone();
                rest /= one.len();
                way
            });
            found.push(Formula::All(all.collect()));
        }
    }
    found.truncate(COMBINATIONS);
    found
}

/// The alternatives to try at one path below the node.
fn ways<'s>(path: &[HintStep], hint: &Hint, loose: &[Value], node: &'s Schema) -> Vec<Formula<'s>> {
    let Some(target) = node_at(node, path) else { return Vec::new() };
    let mut inner = Vec::new();
    let is = |value: Value| Formula::Is(Rc::new(vec![value]));
    for literal in hint.literals.iter().chain(loose) {
        inner.push(is(literal.clone()));
        if let Some(number) = literal.as_i64() {
            inner.extend([is(json!(number.saturating_add(1))), is(json!(number.saturating_sub(1)))]);
        }
    }
    if !hint.literals.is_empty() {
        inner.push(Formula::IsNot(Rc::new(hint.literals.clone())));
    }
    for size in &hint.sizes {
        inner.extend(
            [*size, size.saturating_add(1), size.saturating_sub(1)].into_iter().map(|size| of_size(target, size)),
        );
    }
    inner.extend(of_type(target));
    let mut ways: Vec<Formula<'s>> = inner.into_iter().map(|formula| lifted(path, node, formula)).collect();
    if let Some((HintStep::Field(name), parents)) = path.split_last() {
        ways.push(lifted(parents, node, Formula::lacks(name)));
    }
    ways
}

/// Plain and extreme examples of a type.
fn of_type<'s>(node: &'s Schema) -> Vec<Formula<'s>> {
    let is = |value: Value| Formula::Is(Rc::new(vec![value]));
    let below = |value: f64| Formula::IsBelow(Limit { value, exclusive: true });
    let above = |value: f64| Formula::IsAbove(Limit { value, exclusive: true });
    let mut ways = vec![Formula::anything()];
    ways.extend(node.enumeration.iter().flatten().take(6).cloned().map(is));
    let types = types_of(node, Role::Stored(Level::Field));
    if types.has(Types::BOOLEAN) && node.kind == Some(Type::Boolean) {
        ways.extend([is(true.into()), is(false.into())]);
    }
    if types.has(Types::WHOLE) && (node.kind.is_some() || node.int_or_string) {
        ways.extend([is(json!(1)), is(json!(2)), above(99.0), below(0.0)]);
    }
    if types.has(Types::STRING) && (node.kind.is_some() || node.int_or_string) {
        ways.extend([
            of_size(node, 0),
            of_size(node, 1),
            is("b".into()),
            is("A".into()),
            is("!".into()),
            of_size(node, 64),
        ]);
    }
    if node.kind == Some(Type::Array) {
        ways.extend([of_size(node, 0), of_size(node, 1), of_size(node, 2)]);
        ways.push(Formula::HasRepeated(super::formula::Unique::Items));
    }
    if node.kind == Some(Type::Object) {
        ways.extend([of_size(node, 0), of_size(node, 1), of_size(node, 2)]);
    }
    ways
}

/// The formula of having exactly this length or count.
fn of_size<'s>(node: &'s Schema, size: i64) -> Formula<'s> {
    let (below, above) = (
        Window { least: Some(size.saturating_add(1)), most: None },
        Window { least: None, most: Some(size.saturating_sub(1)) },
    );
    let least_above = (size > 0).then_some(above);
    match node.kind {
        Some(Type::Array) => {
            Formula::All(std::iter::once(below).chain(least_above).map(Formula::HasCountOutside).collect())
        }
        Some(Type::Object) => Formula::All(vec![Formula::HasAtLeast(size), Formula::HasAtMost(size)]),
        _ => Formula::All(std::iter::once(below).chain(least_above).map(Formula::IsOfLengthOutside).collect()),
    }
}

/// The node at a path.
pub(super) fn node_at<'s>(node: &'s Schema, path: &[HintStep]) -> Option<&'s Schema> {
    path.iter().try_fold(node, |node, step| match step {
        HintStep::Field(name) => node.properties.get(name).or_else(|| free_values(node)),
        HintStep::Item => node.items.as_deref().or_else(|| free_values(node)),
    })
}

/// The formula of a value that contains, at the end of the path, one that satisfies `formula`.
pub(super) fn lifted<'s>(path: &[HintStep], node: &'s Schema, formula: Formula<'s>) -> Formula<'s> {
    let Some((step, rest)) = path.split_first() else { return formula };
    let Some(below) = node_at(node, std::slice::from_ref(step)) else { return formula };
    let inner = lifted(rest, below, formula);
    match step {
        HintStep::Field(name) => Formula::has(name, inner),
        HintStep::Item if node.items.is_some() => Formula::HasItem(Box::new(inner)),
        HintStep::Item => Formula::HasOther(vec![node], Box::new(inner)),
    }
}

/// A formula for one place in an object.
#[derive(Clone, Debug)]
pub(super) struct Constraint<'s> {
    pub(super) steps: Vec<Step<'s>>,
    pub(super) formula: Formula<'s>,
}

/// Combines several constraints into one formula: where their steps agree, they concern the same field and the same
/// item.
pub(super) fn joined<'s>(constraints: Vec<Constraint<'s>>) -> Formula<'s> {
    let mut all = Vec::new();
    let mut groups: Vec<(Step<'s>, Vec<Constraint<'s>>)> = Vec::new();
    for Constraint { mut steps, formula } in constraints {
        if steps.is_empty() {
            all.push(formula);
            continue;
        }
        let first = steps.remove(0);
        let constraint = Constraint { steps, formula };
        match groups.iter_mut().find(|(step, _)| step.is_same(&first)) {
            Some((_, group)) => group.push(constraint),
            None => groups.push((first, vec![constraint])),
        }
    }
    for (step, group) in groups {
        all.push(step.around(joined(group)));
    }
    Formula::All(all)
}
