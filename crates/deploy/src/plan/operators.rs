//! Operators of definitions whose objects are carried over: they pause where a field could be lost between the versions
//! that the old and the new release write, and run on elsewhere.

use std::collections::{BTreeMap, BTreeSet};

use pushback_crd::definition::{
    CarryOver, Crd, StoredState, Strategy, dropped_versions, pair_losses, path::field_path,
};
use pushback_crd::stack;
use pushback_objects::ObjectKey;
use pushback_preflight::Operation;
use pushback_preflight::operator_workloads::{DefinedResource, OPERATOR_OF, operator_workloads};
use serde_json::Value;

use super::{Planned, PlannedOperator};

/// Records the operators to pause for each CRD, and those to resume. `tells_order`: whether workloads come after CRDs where
/// no operator is recognised.
pub(super) fn assign(objects: &mut [Planned], tells_order: bool) {
    let carried: Vec<usize> = (0..objects.len()).filter(|&index| is_carried_over(&objects[index])).collect();
    if carried.is_empty() {
        return;
    }
    let indexes: BTreeMap<ObjectKey, usize> =
        objects.iter().enumerate().map(|(index, planned)| (planned.object.key(), index)).collect();
    let mut paused: BTreeSet<usize> = BTreeSet::new();
    for index in carried {
        let operators = operators(objects, &indexes, index);
        if operators.is_empty() {
            if tells_order && objects.iter().any(Planned::is_changed_workload) {
                objects[index].notes.push(format!(
                    "no operator of it is recognised (annotation {OPERATOR_OF} on a workload names one): every workload of \
                     the app is written after the CRD and its objects"
                ));
            }
            continue;
        }
        let names: Vec<String> = operators.iter().map(|&operator| objects[operator].object.to_string()).collect();
        let names = names.join(" and ");
        let reason = reason(&objects[index]);
        objects[index].notes.push(match &reason {
            None => format!("{names}: runs on, because nothing is lost between the old and the new version"),
            Some(reason) => format!("{names}: paused first, because {reason}; goes on once the objects are moved"),
        });
        if reason.is_some() {
            paused.extend(&operators);
        }
        let operators = operators.into_iter().map(|operator| PlannedOperator {
            index: operator,
            address: objects[operator].address(),
            pauses: reason.is_some(),
        });
        let operators = operators.collect();
        if let Some(difference) = objects[index].action.difference_mut() {
            difference.operators = operators;
        }
    }
    for index in paused {
        objects[index].resumes = true;
        objects[index].notes.push("paused while objects of its definitions are moved".to_owned());
    }
}

/// Returns whether stored objects of a CRD are moved in this run.
pub(super) fn is_carried_over(planned: &Planned) -> bool {
    matches!(planned.difference().carry_over, Some(CarryOver::Before | CarryOver::Bridge(_) | CarryOver::After))
}

/// The workloads of the old release that write objects of a definition.
fn operators(objects: &[Planned], indexes: &BTreeMap<ObjectKey, usize>, definition: usize) -> Vec<usize> {
    let Some(live) = objects[definition].live.as_deref() else { return Vec::new() };
    let definition = Crd::of(live);
    let resource = DefinedResource { group: definition.group(), plural: definition.plural() };
    // The manifest may say for the first time whose operator it is.
    let known = objects.iter().filter_map(|planned| planned.desired.as_deref().or(planned.live.as_deref()));
    let found = operator_workloads(known, resource);
    let found = found.iter().filter_map(|workload| indexes.get(&workload.object.key()).copied());
    // A DaemonSet has no replicas.
    found
        .filter(|&index| objects[index].live.is_some() && objects[index].kind.kind != "DaemonSet")
        .filter(|&index| objects[index].operation() != Operation::Exists)
        .collect()
}

/// Why operators of both releases must not write at the same time: what one of them writes is lost by the other one.
fn reason(planned: &Planned) -> Option<String> {
    let (live, wanted) = (planned.live.as_deref()?, planned.desired.as_deref()?);
    // A conversion webhook converts instead, and may be served by the operator itself.
    if Crd::of(live).strategy() == Strategy::Webhook {
        return None;
    }
    let new = StoredState::of(wanted).storage?;
    let mut old: Vec<String> = dropped_versions(live, wanted).into_iter().map(str::to_owned).collect();
    old.extend(StoredState::of(live).storage);
    old.retain(|version| *version != new);
    stack::with_room(|| {
        old.iter().find_map(|old| {
            let lost = |from: (&Value, &str), to: (&Value, &str)| {
                let losses = pair_losses(from, to)?;
                Some(format!("{} of {} is lost in {}", field_path(&losses.first()?.path), from.1, to.1))
            };
            lost((wanted, &new), (live, old)).or_else(|| lost((live, old), (wanted, &new)))
        })
    })
}
