//! The order of a plan in one picture: its changes in waves, those of a kind together where they are many, and which of
//! them wait for which. What stays as it is is left out; what waits for it waits for what it waits for.

use std::collections::{BTreeMap, BTreeSet};

use pushback_manifest::config::ordering::expand;
use pushback_objects::ObjectRef;
use pushback_preflight::Operation;
use serde::{Deserialize, Serialize};

use super::{Plan, Planned};

/// Most objects of one kind and wave that are shown one by one.
const FEW: usize = 3;
/// Most boxes of a wave in which some objects are shown one by one.
const BOXES: usize = 10;

/// The changes of a plan in waves.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waves {
    /// What is shown, by wave.
    pub boxes: Vec<WaveBox>,
    /// Pairs (first, waiting) of indexes in `boxes`, without those that follow from others.
    pub arrows: Vec<(usize, usize)>,
}

/// One object, or several of a kind, to which the same is done in the same wave.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaveBox {
    /// Number of changes that have to come before, one after the other.
    pub wave: usize,
    /// The kind.
    pub kind: String,
    /// What is done.
    pub operation: Operation,
    /// Names of the objects, as `namespace/name`.
    pub objects: Vec<String>,
    /// Change groups that annotations name.
    pub groups: BTreeSet<String>,
}

impl Waves {
    /// The waves of a plan.
    #[must_use]
    pub fn of(plan: &Plan) -> Self {
        let is_change = |planned: &Planned| !matches!(planned.operation(), Operation::Noop | Operation::Exists);
        let waves = plan.graph.wave_numbers(|node| is_change(&plan.objects[node]));
        let mut kinds: BTreeMap<(usize, &str, &str, Operation), Vec<usize>> = BTreeMap::new();
        for (node, planned) in plan.objects.iter().enumerate().filter(|(_, planned)| is_change(planned)) {
            let object = &planned.object;
            let key = (waves[node], object.kind.as_str(), object.group.as_str(), planned.operation());
            kinds.entry(key).or_default().push(node);
        }
        let mut sizes: BTreeMap<usize, usize> = BTreeMap::new();
        for ((wave, ..), nodes) in &kinds {
            *sizes.entry(*wave).or_default() += if nodes.len() > FEW { 1 } else { nodes.len() };
        }
        let mut boxes = Vec::new();
        let mut set = vec![None; plan.objects.len()];
        for ((wave, kind, _, operation), nodes) in kinds {
            let few = if sizes[&wave] > BOXES { 1 } else { FEW };
            let size = if nodes.len() > few { nodes.len() } else { 1 };
            for together in nodes.chunks(size) {
                together.iter().for_each(|node| set[*node] = Some(boxes.len()));
                let planned = || together.iter().map(|node| &plan.objects[*node]);
                boxes.push(WaveBox {
                    wave,
                    kind: kind.to_owned(),
                    operation,
                    objects: planned().map(|planned| full_name(&planned.object)).collect(),
                    groups: planned().flat_map(groups).collect(),
                });
            }
        }
        let arrows = direct(&plan.graph.arrows(&set), boxes.len());
        Self { boxes, arrows }
    }
}

fn full_name(object: &ObjectRef) -> String {
    if object.namespace.is_empty() { object.name.clone() } else { format!("{}/{}", object.namespace, object.name) }
}

/// The groups that an object's annotations name.
fn groups(planned: &Planned) -> impl Iterator<Item = String> {
    let object = planned.desired.as_deref().or(planned.live.as_deref());
    let groups = planned.strategies.change_groups.iter();
    groups.filter_map(move |(_, group)| expand(group, object?).ok())
}

/// Arrows without those that follow from others. Each leads to a later wave, and so to a higher index.
fn direct(arrows: &BTreeSet<(usize, usize)>, count: usize) -> Vec<(usize, usize)> {
    let mut reached: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); count];
    let mut kept = Vec::new();
    for to in 0..count {
        let mut firsts: Vec<usize> = arrows.iter().filter(|arrow| arrow.1 == to).map(|arrow| arrow.0).collect();
        firsts.sort_unstable_by(|one, other| other.cmp(one));
        let mut known = BTreeSet::new();
        for first in firsts {
            if known.insert(first) {
                kept.push((first, to));
                known.extend(&reached[first]);
            }
        }
        reached[to] = known;
    }
    kept.sort_unstable();
    kept
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_follows_from_other_arrows_is_left_out() {
        let arrows = BTreeSet::from([(0, 1), (1, 2), (0, 2), (0, 3)]);
        assert_eq!(direct(&arrows, 4), [(0, 1), (0, 3), (1, 2)]);
    }

    proptest! {
        #[test]
        fn the_same_can_be_reached(pairs in prop::collection::btree_set((0_usize..8, 0_usize..8), 0..20)) {
            let arrows: BTreeSet<_> = pairs.into_iter().filter(|(from, to)| from < to).collect();
            let kept: BTreeSet<_> = direct(&arrows, 8).into_iter().collect();
            prop_assert!(kept.is_subset(&arrows));
            let reach = |arrows: &BTreeSet<(usize, usize)>| {
                let mut reach = arrows.clone();
                for through in 0..8 {
                    for (from, to) in reach.clone().into_iter().filter(|arrow| arrow.1 == through) {
                        let next: Vec<_> = reach.iter().filter(|arrow| arrow.0 == to).map(|arrow| (from, arrow.1)).collect();
                        reach.extend(next);
                    }
                }
                reach
            };
            prop_assert_eq!(reach(&kept), reach(&arrows));
            for arrow in &kept {
                let without: BTreeSet<_> = kept.iter().filter(|other| *other != arrow).copied().collect();
                prop_assert!(!reach(&without).contains(arrow), "{arrow:?} follows from others");
            }
        }
    }
}
