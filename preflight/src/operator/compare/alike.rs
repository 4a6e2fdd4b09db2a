//! Components that resemble others without being paired with them: hints at splits, merges and renames.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;

use super::super::difference::{Change, ChangeType, Severity};
use super::super::matching::Pairing;
use super::super::model::Operator;

/// A hint, on the row of an old or of a new component.
#[derive(Debug)]
pub(super) enum Hint {
    /// By index of the old side.
    Old(usize, Change),
    /// By index of the new side.
    New(usize, Change),
}

/// What the pairing leaves open.
pub(super) fn hints(old: &Operator, new: &Operator, pairing: &Pairing) -> Vec<Hint> {
    let fuzzy: BTreeMap<usize, usize> =
        pairing.pairs.iter().filter(|pair| pair.score.is_some()).map(|pair| (pair.old, pair.new)).collect();
    let partner_of: BTreeMap<usize, usize> = fuzzy.iter().map(|(old, new)| (*new, *old)).collect();
    let removed: BTreeSet<usize> = pairing.removed.iter().copied().collect();
    let added: BTreeSet<usize> = pairing.added.iter().copied().collect();
    let mut parts: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    let mut wholes: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    for alike in &pairing.alike {
        if added.contains(&alike.new) {
            parts.entry(alike.old).or_default().insert(alike.new);
        }
        if removed.contains(&alike.old) {
            wholes.entry(alike.new).or_default().insert(alike.old);
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
    for alike in &pairing.alike {
        let is_open = removed.contains(&alike.old) && added.contains(&alike.new);
        if is_open && is_alone(&parts, alike.old) && is_alone(&wholes, alike.new) {
            let (before, after) = (name(old, alike.old), name(new, alike.new));
            let message = format!("possibly renamed to {after} (similarity {:.3})", alike.score);
            let change = Change::new(ChangeType::PossibleRename, Severity::Info, "", message);
            let change = change.values(Some(json!(before)), Some(json!(after)));
            hints.push(Hint::Old(alike.old, change.at(&old.components[alike.old].position)));
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
