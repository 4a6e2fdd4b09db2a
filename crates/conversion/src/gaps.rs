//! What holds only for all steps together: where bags can be, and fields that go and come back in another shape.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use pushback_crd::schema::{Additional, Schema};
use pushback_objects::source::InputError;

use super::derive::{Derived, Leftover, Pair};
use super::lineage::Lineage;
use super::path::FieldPath;
use super::plan::StepPlan;

/// One direction of a step, with its objects and fields by their paths.
struct Way<'w> {
    to: usize,
    step: &'w StepPlan,
    objects: HashMap<&'w FieldPath, (&'w FieldPath, bool)>,
    /// Fields that only the start has.
    gone: HashMap<(&'w FieldPath, &'w str), &'w Leftover>,
    /// Fields that only the end has, by the object of the start.
    come: HashMap<(&'w FieldPath, &'w str), &'w Leftover>,
    is_up: bool,
}

impl<'w> Way<'w> {
    fn new(to: usize, found: &'w Derived, step: &'w StepPlan, is_up: bool) -> Self {
        let object = |pair: &'w Pair| {
            let (here, there) = if is_up { (&pair.older, &pair.newer) } else { (&pair.newer, &pair.older) };
            (here, (there, pair.is_same))
        };
        let (mut gone, mut come) = (HashMap::new(), HashMap::new());
        for leftover in &found.leftovers {
            let Some(key) = &leftover.key else { continue };
            let start = if is_up { &leftover.parents.0 } else { &leftover.parents.1 };
            let list = if leftover.is_newer == is_up { &mut come } else { &mut gone };
            list.insert((start, key.as_str()), leftover);
        }
        Self { to, step, objects: found.pairs.iter().map(object).collect(), gone, come, is_up }
    }

    /// Where an object of the start is at the end; `None` if it is not there as an object.
    fn mapped(&self, path: &FieldPath) -> Option<FieldPath> {
        if let Some((there, _)) = self.objects.get(path) {
            return Some((*there).clone());
        }
        let starts = (0..path.steps().len()).rev().map(|end| path.first(end));
        let mut same = starts.filter_map(|start| {
            let (there, is_same) = self.objects.get(&start)?;
            Some(is_same.then_some(there.join(&path.below(&start)?)))
        });
        same.next()?
    }

    fn start_of<'l>(&self, leftover: &'l Leftover) -> &'l FieldPath {
        if self.is_up { &leftover.parents.0 } else { &leftover.parents.1 }
    }

    fn end_of<'l>(&self, leftover: &'l Leftover) -> &'l FieldPath {
        if self.is_up { &leftover.parents.1 } else { &leftover.parents.0 }
    }
}

/// Both directions of every step, by the version that they start from.
fn ways<'w>(
    lineage: &Lineage,
    steps: &'w BTreeMap<(usize, usize), StepPlan>,
    derived: &'w BTreeMap<(usize, usize), Derived>,
) -> Vec<Vec<Way<'w>>> {
    let mut ways: Vec<Vec<Way<'w>>> = lineage.versions.iter().map(|_| Vec::new()).collect();
    for (&(older, newer), found) in derived {
        let Some(step) = steps.get(&(older, newer)) else { continue };
        ways[older].push(Way::new(newer, found, step, true));
        ways[newer].push(Way::new(older, found, step, false));
    }
    ways
}

/// The objects of every version that may have a bag.
pub(super) fn bags(
    lineage: &Lineage,
    steps: &BTreeMap<(usize, usize), StepPlan>,
    derived: &BTreeMap<(usize, usize), Derived>,
) -> Vec<BTreeSet<FieldPath>> {
    let ways = ways(lineage, steps, derived);
    let mut places: Vec<BTreeSet<FieldPath>> = vec![BTreeSet::new(); lineage.versions.len()];
    let mut queue: Vec<(usize, FieldPath)> = Vec::new();
    for ((older, newer), found) in derived {
        for (path, new_path) in &found.bags {
            queue.extend([(*older, path.clone()), (*newer, new_path.clone())]);
        }
    }
    while let Some((version, path)) = queue.pop() {
        if places[version].insert(path.clone()) {
            queue.extend(ways[version].iter().filter_map(|way| Some((way.to, way.mapped(&path)?))));
        }
    }
    places
}

/// Reports fields that a later version calls by the name of one that went before, with another shape: its value would be
/// taken for the new field's.
pub(super) fn check(
    lineage: &Lineage,
    steps: &BTreeMap<(usize, usize), StepPlan>,
    derived: &BTreeMap<(usize, usize), Derived>,
    errors: &mut Vec<InputError>,
) {
    let ways = ways(lineage, steps, derived);
    let mut reported: BTreeSet<(String, String)> = BTreeSet::new();
    for start in 0..lineage.versions.len() {
        for way in &ways[start] {
            for (&(_, key), gone) in &way.gone {
                let mut queue = vec![(start, way.to, way.end_of(gone).clone())];
                while let Some((before, here, parent)) = queue.pop() {
                    for next in ways[here].iter().filter(|next| next.to != before) {
                        let back = next.come.get(&(&parent, key));
                        if let Some(back) = back {
                            let path = way.start_of(gone).field(&gone.name).to_string();
                            let ends = [lineage.versions[start].clone(), lineage.versions[next.to].clone()];
                            let pair = (
                                ends.iter().min().cloned().unwrap_or_default() + &path,
                                ends.iter().max().cloned().unwrap_or_default(),
                            );
                            if !is_same_shape(&gone.schema, &back.schema) && reported.insert(pair) {
                                let later = if start < next.to { next.step } else { way.step };
                                let separate = next.end_of(back).field(&back.name);
                                errors.push(InputError {
                                    message: format!(
                                        "{path} of {} is not in {}, and comes back in {} with another shape",
                                        lineage.versions[start], lineage.versions[here], lineage.versions[next.to]
                                    ),
                                    position: later.position.clone(),
                                    hints: vec![format!(
                                        "list {separate} under `separate` of the step from {} to {}: it then shares only the name",
                                        later.from, later.to
                                    )],
                                });
                            }
                            continue;
                        }
                        let other = next.gone.get(&(&parent, key));
                        if other.is_some() {
                            let path = way.start_of(gone).field(&gone.name);
                            let pair = (path.to_string() + &lineage.versions[start], lineage.versions[here].clone());
                            if reported.insert(pair) {
                                errors.push(InputError {
                                    message: format!(
                                        "{path} of {} is not in {}, and {} has another field of this name, which is not in {} either",
                                        lineage.versions[start], lineage.versions[way.to], lineage.versions[here], lineage.versions[next.to]
                                    ),
                                    position: way.step.position.clone(),
                                    hints: vec![format!(
                                        "list {path} under `separate` of the step from {} to {}",
                                        way.step.from, way.step.to
                                    )],
                                });
                            }
                        } else if let Some(parent) = next.mapped(&parent) {
                            queue.push((here, next.to, parent));
                        }
                    }
                }
            }
        }
    }
}

/// Whether two nodes have the same fields and types.
fn is_same_shape(one: &Schema, other: &Schema) -> bool {
    let same = |one: Option<&Schema>, other: Option<&Schema>| match (one, other) {
        (None, None) => true,
        (Some(one), Some(other)) => is_same_shape(one, other),
        _ => false,
    };
    let is_any = |schema: &Schema| matches!(schema.additional, Some(Additional::Anything));
    one.digest == other.digest
        || (one.kind, one.nullable, one.int_or_string, one.preserve_unknown, is_any(one))
            == (other.kind, other.nullable, other.int_or_string, other.preserve_unknown, is_any(other))
            && same(one.items.as_deref(), other.items.as_deref())
            && same(one.additional_schema(), other.additional_schema())
            && one.properties.len() == other.properties.len()
            && one.properties.iter().all(|(name, schema)| same(Some(schema), other.properties.get(name)))
}
