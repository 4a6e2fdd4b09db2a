//! Components that resemble others without being matched: hints at splits, merges and renames.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;

use super::super::difference::{Change, ChangeType, Severity};
use super::super::matching::Pairing;
use super::super::model::Operator;

/// A hint for the row of an old or a new component.
#[derive(Debug)]
pub(super) enum Hint {
    /// Index of the old component.
    Old(usize, Change),
    /// Index of the new component.
    New(usize, Change),
}

/// Hints for components that the matching leaves open.
pub(super) fn hints(old: &Operator, new: &Operator, pairing: &Pairing) -> Vec<Hint> {
    let fuzzy: BTreeMap<usize, usize> =
        pairing.pairs.iter().filter(|pair| pair.score.is_some()).map(|pair| (pair.old, pair.new)).collect();
    let partner_of: BTreeMap<usize, usize> = fuzzy.iter().map(|(old, new)| (*new, *old)).collect();
    let removed: BTreeSet<usize> = pairing.removed.iter().copied().collect();
    let added: BTreeSet<usize> = pairing.added.iter().copied().collect();
    let mut parts: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    let mut wholes: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    for similar in &pairing.similar {
        if added.contains(&similar.new) {
            parts.entry(similar.old).or_default().insert(similar.new);
        }
        if removed.contains(&similar.old) {
            wholes.entry(similar.new).or_default().insert(similar.old);
        }
    }
    for (index, parts) in &mut parts {
        parts.extend(fuzzy.get(index));
    }
    for (index, wholes) in &mut wholes {
        wholes.extend(partner_of.get(index));
    }
    let name = |operator: &Operator, index: usize| operator.components[index].name.clone();
    let names = |operator: &Operator, indices: &BTreeSet<usize>| -> Vec<String> {
        let mut names: Vec<String> = indices.iter().map(|&index| name(operator, index)).collect();
        names.sort();
        names
    };
    let mut hints = Vec::new();
    for (&index, parts) in parts.iter().filter(|(_, parts)| parts.len() > 1) {
        let names = names(new, parts);
        let message = format!("possibly split into {}", names.join(", "));
        let change = Change::new(ChangeType::PossibleSplit, Severity::Info, "", message);
        let change = change.values(Some(json!(name(old, index))), Some(json!(names)));
        hints.push(Hint::Old(index, change.at(&old.components[index].position)));
    }
    for (&index, wholes) in wholes.iter().filter(|(_, wholes)| wholes.len() > 1) {
        let names = names(old, wholes);
        let message = format!("possibly merged from {}", names.join(", "));
        let change = Change::new(ChangeType::PossibleMerge, Severity::Info, "", message);
        let change = change.values(Some(json!(names)), Some(json!(name(new, index))));
        hints.push(Hint::New(index, change.at(&new.components[index].position)));
    }
    let is_alone = |map: &BTreeMap<usize, BTreeSet<usize>>, index| map.get(&index).is_none_or(|set| set.len() == 1);
    for similar in &pairing.similar {
        let is_open = removed.contains(&similar.old) && added.contains(&similar.new);
        if is_open && is_alone(&parts, similar.old) && is_alone(&wholes, similar.new) {
            let (before, after) = (name(old, similar.old), name(new, similar.new));
            let message = format!("possibly renamed to {after} (similarity {:.3})", similar.score);
            let change = Change::new(ChangeType::PossibleRename, Severity::Info, "", message);
            let change = change.values(Some(json!(before)), Some(json!(after)));
            hints.push(Hint::Old(similar.old, change.at(&old.components[similar.old].position)));
        }
    }
    if pairing.too_many
        && let Some(&index) = pairing.removed.first()
    {
        let message = format!(
            "{} removed and {} added components are too many to compare: no renames were detected",
            pairing.removed.len(),
            pairing.added.len()
        );
        hints.push(Hint::Old(index, Change::new(ChangeType::PossibleRename, Severity::Info, "", message)));
    }
    hints
}
