//! Matches the components of two releases: by name, then by similarity, with the published weights and threshold.

use std::collections::{BTreeMap, BTreeSet};

use super::difference::MatchType;
use super::model::Component;

/// Minimum similarity of a renamed component, in billionths. Scores that differ by less than a billionth are equal, so
/// that rounding decides nothing.
const THRESHOLD: u64 = 600_000_000 - 1;
/// Minimum similarity of the names of two components without a specific fact in common.
const MIN_NAME_SIMILARITY: f64 = 0.5;
/// Maximum number of comparisons per operator; a release with more unmatched components was not renamed.
const MAX_COMPARISONS: usize = 4_000_000;

/// What a match by similarity requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Matching {
    /// The published formula alone.
    Published,
    /// The published formula, and a shared fact that is unlikely for unrelated components.
    Guarded,
}

/// Two matched components.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pair {
    /// Index on the old side.
    pub old: usize,
    /// Index on the new side.
    pub new: usize,
    /// How they were matched.
    pub match_type: MatchType,
    /// Similarity of a fuzzy match.
    pub score: Option<f64>,
}

/// Two similar components that were not matched.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SimilarPair {
    /// Index on the old side.
    pub old: usize,
    /// Index on the new side.
    pub new: usize,
    /// Similarity, from 0 to 1.
    pub score: f64,
}

/// The matching of the components of an operator.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pairing {
    /// Matched components, in the order of the old side.
    pub pairs: Vec<Pair>,
    /// Indices of old components without a match.
    pub removed: Vec<usize>,
    /// Indices of new components without a match.
    pub added: Vec<usize>,
    /// Similar components that were not matched; none of them has a namesake on the other side.
    pub similar: Vec<SimilarPair>,
    /// Whether there were too many components to compare; then none was matched by similarity.
    pub too_many: bool,
}

/// Matches the components of one operator.
#[must_use]
pub fn pair(old: &[Component], new: &[Component], matching: Matching) -> Pairing {
    let mut pairing = Pairing::default();
    let mut partner_of_old: Vec<Option<usize>> = vec![None; old.len()];
    let mut is_paired: Vec<bool> = vec![false; new.len()];
    let mut by_name: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (index, component) in new.iter().enumerate().rev() {
        by_name.entry(&component.name).or_default().push(index);
    }
    for (index, component) in old.iter().enumerate() {
        if let Some(partner) = by_name.get_mut(component.name.as_str()).and_then(Vec::pop) {
            partner_of_old[index] = Some(partner);
            is_paired[partner] = true;
            pairing.pairs.push(Pair { old: index, new: partner, match_type: MatchType::Exact, score: None });
        }
    }
    let rest_old: Vec<usize> = (0..old.len()).filter(|&index| partner_of_old[index].is_none()).collect();
    let rest_new: Vec<usize> = (0..new.len()).filter(|&index| !is_paired[index]).collect();
    pairing.too_many = rest_old.len().saturating_mul(rest_new.len()) > MAX_COMPARISONS;
    if !pairing.too_many {
        by_similarity(old, new, (&rest_old, &rest_new), matching, &mut pairing);
    }
    pairing.pairs.sort_by_key(|pair| pair.old);
    let old_paired: BTreeSet<usize> = pairing.pairs.iter().map(|pair| pair.old).collect();
    let new_paired: BTreeSet<usize> = pairing.pairs.iter().map(|pair| pair.new).collect();
    pairing.removed = (0..old.len()).filter(|index| !old_paired.contains(index)).collect();
    pairing.added = (0..new.len()).filter(|index| !new_paired.contains(index)).collect();
    pairing
}

/// The best matches first; ties by the order of the old side, then of the new one.
fn by_similarity(
    old: &[Component],
    new: &[Component],
    (rest_old, rest_new): (&[usize], &[usize]),
    matching: Matching,
    pairing: &mut Pairing,
) {
    let old_signals: Vec<Signals<'_>> = rest_old.iter().map(|&index| Signals::of(&old[index])).collect();
    let new_signals: Vec<Signals<'_>> = rest_new.iter().map(|&index| Signals::of(&new[index])).collect();
    let mut candidates: Vec<(u64, usize, usize)> = Vec::new();
    for (one, &old_index) in old_signals.iter().zip(rest_old) {
        for (other, &new_index) in new_signals.iter().zip(rest_new) {
            let score = one.similarity(other);
            if score >= THRESHOLD {
                candidates.push((score, old_index, new_index));
            }
        }
    }
    candidates.sort_by(|one, other| other.0.cmp(&one.0).then_with(|| (one.1, one.2).cmp(&(other.1, other.2))));
    let (mut old_taken, mut new_taken) = (BTreeSet::new(), BTreeSet::new());
    for (billionths, old_index, new_index) in candidates {
        let score = billionths as f64 / 1e9;
        let is_free = !old_taken.contains(&old_index) && !new_taken.contains(&new_index);
        if is_free && (matching == Matching::Published || is_specific(&old[old_index], &new[new_index])) {
            old_taken.insert(old_index);
            new_taken.insert(new_index);
            let (match_type, score) = (MatchType::Fuzzy, Some(score));
            pairing.pairs.push(Pair { old: old_index, new: new_index, match_type, score });
        } else {
            pairing.similar.push(SimilarPair { old: old_index, new: new_index, score });
        }
    }
}

/// The published similarity of two components, from 0 to 1, exact to a billionth.
#[must_use]
pub fn similarity(one: &Component, other: &Component) -> f64 {
    Signals::of(one).similarity(&Signals::of(other)) as f64 / 1e9
}

/// Whether two components share a fact that is unlikely for unrelated ones.
#[must_use]
pub fn is_specific(one: &Component, other: &Component) -> bool {
    one.specific.intersection(&other.specific).next().is_some()
        || jaccard(&tokens(&one.name), &tokens(&other.name)) >= MIN_NAME_SIMILARITY
}

/// The words of a name.
pub(super) fn tokens(name: &str) -> BTreeSet<&str> {
    name.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect()
}

/// The Jaccard index: size of the intersection over size of the union; 0 if both are empty.
pub(super) fn jaccard<T: Ord>(one: &BTreeSet<T>, other: &BTreeSet<T>) -> f64 {
    let common = one.intersection(other).count();
    let all = one.len() + other.len() - common;
    if all == 0 { 0.0 } else { common as f64 / all as f64 }
}

/// The inputs of the formula.
#[derive(Debug)]
struct Signals<'a> {
    kinds: BTreeSet<&'a str>,
    label_keys: BTreeSet<&'a str>,
    controller: &'a str,
    resources: usize,
}

impl<'a> Signals<'a> {
    fn of(component: &'a Component) -> Self {
        let resources = &component.resources;
        Self {
            kinds: resources.iter().map(|resource| resource.object.kind.as_str()).collect(),
            label_keys: resources.iter().flat_map(|resource| resource.labels.keys().map(String::as_str)).collect(),
            controller: &component.controller,
            resources: resources.len(),
        }
    }

    /// Similarity in billionths.
    fn similarity(&self, other: &Self) -> u64 {
        let larger = self.resources.max(other.resources);
        let counts =
            if larger == 0 { 0.0 } else { 1.0 - self.resources.abs_diff(other.resources) as f64 / larger as f64 };
        let controllers = if self.controller == other.controller { 1.0 } else { 0.0 };
        let score = 0.4 * jaccard(&self.kinds, &other.kinds)
            + 0.3 * jaccard(&self.label_keys, &other.label_keys)
            + 0.2 * controllers
            + 0.1 * counts;
        billionths(score)
    }
}

/// A similarity as an integer, so that rounding decides nothing.
pub(super) fn billionths(similarity: f64) -> u64 {
    (similarity * 1e9).round() as u64
}
