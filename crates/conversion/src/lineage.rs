//! The order of versions and how conversions lead from one to the next: every release to the next release, every preview
//! to the version right before it. All ways meet in the hub.
//!
//! Follows Azure Service Operator's conversion graph, except that previews before the first release form a chain with it;
//! there they would lead nowhere.

use std::cmp::Ordering;
use std::collections::{BTreeMap, VecDeque};

/// What a name of a version says: numbers and words in turn, and the label of a preview.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Name {
    words: Vec<String>,
    numbers: Vec<u64>,
    /// `alpha`, `beta`, …, with its number; `None` for a release.
    label: Option<(usize, u64)>,
}

/// Labels of previews, the earliest first.
const LABELS: [&str; 6] = ["dev", "alpha", "beta", "preview", "pre", "rc"];

impl Name {
    fn of(text: &str) -> Option<Self> {
        let (mut words, mut numbers, mut label) = (Vec::new(), Vec::new(), None);
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            let digits = first.is_ascii_digit();
            let end = rest.find(|c: char| c.is_ascii_digit() != digits).unwrap_or(rest.len());
            let (part, after) = rest.split_at(end);
            rest = after;
            match (&mut label, digits) {
                (Some((_, number)), true) if *number == 0 => *number = part.parse().ok()?,
                (Some(_), _) => return None,
                (None, true) => numbers.push(part.parse().ok()?),
                (None, false) => {
                    let word = part.trim_matches(['-', '.']).to_ascii_lowercase();
                    match LABELS.iter().position(|label| *label == word) {
                        Some(rank) if !numbers.is_empty() => label = Some((rank, 0)),
                        _ => words.push(word),
                    }
                }
            }
        }
        (!numbers.is_empty()).then_some(Self { words, numbers, label })
    }

    /// `None` if nothing says which one is older.
    fn compare(&self, other: &Self) -> Option<Ordering> {
        if self.words != other.words {
            return None;
        }
        let labels = match (self.label, other.label) {
            (None, None) => Ordering::Equal,
            (None, Some(_)) => Ordering::Greater,
            (Some(_), None) => Ordering::Less,
            (Some(own), Some(other)) => own.cmp(&other),
        };
        Some(self.numbers.cmp(&other.numbers).then(labels))
    }
}

/// Whether the name of a version says that it is a preview: `v1beta2`, `v20140404preview`.
pub(super) fn is_preview(name: &str) -> bool {
    Name::of(name).is_some_and(|name| name.label.is_some())
}

/// Sorts names of versions, the oldest first.
///
/// # Errors
/// Two names of which nothing says which one is older.
pub(super) fn sort(names: &[String]) -> Result<Vec<String>, (String, String)> {
    let parsed: Vec<(Option<Name>, &String)> = names.iter().map(|name| (Name::of(name), name)).collect();
    for (index, (one, name)) in parsed.iter().enumerate() {
        for (other, other_name) in &parsed[..index] {
            let order = one.as_ref().zip(other.as_ref()).and_then(|(one, other)| one.compare(other));
            if order.is_none_or(Ordering::is_eq) {
                return Err(((*other_name).clone(), (*name).clone()));
            }
        }
    }
    let mut sorted = parsed;
    sorted.sort_by(|(one, _), (other, _)| {
        one.as_ref().zip(other.as_ref()).and_then(|(one, other)| one.compare(other)).unwrap_or(Ordering::Equal)
    });
    Ok(sorted.into_iter().map(|(_, name)| name.clone()).collect())
}

/// The versions of a kind, in order, with the steps between them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lineage {
    /// Names, the oldest first.
    pub versions: Vec<String>,
    /// The version in which all conversions meet.
    pub hub: usize,
    /// Steps from an older version to a newer one.
    pub steps: Vec<(usize, usize)>,
}

impl Lineage {
    /// Draws the steps between versions in their order.
    pub(super) fn new(versions: Vec<String>, previews: &[bool], hub: Option<usize>) -> Self {
        let newest = versions.len().saturating_sub(1);
        let hub = hub.or_else(|| previews.iter().rposition(|preview| !preview)).unwrap_or(newest);
        let mut steps = Vec::new();
        let mut release: Option<usize> = None;
        for newer in 0..versions.len() {
            let is_preview = previews.get(newer).copied().unwrap_or_default();
            match (is_preview, release) {
                // A preview, and a release with nothing but previews before it, follow what is right before them.
                (true, _) | (false, None) if newer > 0 => steps.push((newer - 1, newer)),
                (false, Some(before)) => steps.push((before, newer)),
                _ => {}
            }
            if !is_preview {
                release = Some(newer);
            }
        }
        Self { versions, hub, steps }
    }

    /// The index of a version.
    #[must_use]
    pub fn index(&self, name: &str) -> Option<usize> {
        self.versions.iter().position(|version| version == name)
    }

    /// For every version, the next one on its way to the hub. The hub has none.
    pub(super) fn towards_hub(&self) -> BTreeMap<usize, usize> {
        let mut next = BTreeMap::new();
        let mut queue = VecDeque::from([self.hub]);
        while let Some(here) = queue.pop_front() {
            for &(older, newer) in &self.steps {
                let neighbour = match here {
                    _ if here == older => newer,
                    _ if here == newer => older,
                    _ => continue,
                };
                if neighbour != self.hub && !next.contains_key(&neighbour) {
                    next.insert(neighbour, here);
                    queue.push_back(neighbour);
                }
            }
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    fn sorted(list: &[&str]) -> Vec<String> {
        sort(&names(list)).expect("an order")
    }

    fn lineage(list: &[&str]) -> Lineage {
        let versions = sorted(list);
        let previews: Vec<bool> = versions.iter().map(|name| is_preview(name)).collect();
        Lineage::new(versions, &previews, None)
    }

    #[test]
    fn versions_are_ordered_by_number_with_previews_before_their_release() {
        assert_eq!(
            sorted(&["v2", "v1beta10", "v10alpha1", "v1", "v1alpha1", "v1beta2"]),
            ["v1alpha1", "v1beta2", "v1beta10", "v1", "v2", "v10alpha1"]
        );
        assert_eq!(
            sorted(&["v20140404", "v20130303", "v20140404preview"]),
            ["v20130303", "v20140404preview", "v20140404"]
        );
        assert_eq!(
            sorted(&["v1api20210101", "v1api20200101preview", "v1api20200101"]),
            ["v1api20200101preview", "v1api20200101", "v1api20210101"]
        );
        assert_eq!(sorted(&["v2021-10-01", "v2021-09-30-preview"]), ["v2021-09-30-preview", "v2021-10-01"]);
    }

    #[test]
    fn what_no_rule_orders_is_named() {
        assert_eq!(sort(&names(&["v1", "v1api20210101"])), Err(("v1".to_owned(), "v1api20210101".to_owned())));
        assert!(sort(&names(&["stable", "v1"])).is_err());
        assert!(sort(&names(&["v1", "v01"])).is_err());
        assert!(sort(&names(&["v1", "v99999999999999999999999"])).is_err());
    }

    #[test]
    fn a_preview_leads_to_the_version_before_it_and_a_release_to_the_next_release() {
        let lineage = lineage(&["v20130303", "v20140404preview", "v20140404", "v20150505"]);
        assert_eq!(lineage.versions[lineage.hub], "v20150505");
        assert_eq!(lineage.steps, [(0, 1), (0, 2), (2, 3)]);
        assert_eq!(lineage.towards_hub(), BTreeMap::from([(0, 2), (1, 0), (2, 3)]));
    }

    #[test]
    fn previews_before_the_first_release_form_a_chain() {
        let with_release = lineage(&["v1alpha1", "v1beta1", "v1", "v2alpha1"]);
        assert_eq!((with_release.hub, with_release.steps.as_slice()), (2, [(0, 1), (1, 2), (2, 3)].as_slice()));
        let previews = lineage(&["v1alpha1", "v1beta1"]);
        assert_eq!((previews.hub, previews.steps.as_slice()), (1, [(0, 1)].as_slice()));
        assert_eq!(lineage(&["v1"]).steps, []);
    }

    #[test]
    fn every_version_has_a_way_to_any_hub() {
        let versions = sorted(&["v1", "v2alpha1", "v2beta1", "v2", "v3"]);
        let previews: Vec<bool> = versions.iter().map(|name| is_preview(name)).collect();
        for hub in 0..versions.len() {
            let lineage = Lineage::new(versions.clone(), &previews, Some(hub));
            assert_eq!(lineage.towards_hub().len(), versions.len() - 1, "{hub}");
        }
    }
}
