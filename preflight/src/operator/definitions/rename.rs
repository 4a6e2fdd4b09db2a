//! Which field that is gone may live on under another name, beside it: the two have equal schemas. A guess, told as one.

use std::collections::BTreeMap;

/// How alike names must be (Levenshtein, 0 to 1) where more than one field could be meant.
const ALIKE: f64 = 0.5;

/// Pairs of equal schemas that are compared by name; beyond, there is nothing to choose by.
const MOST: usize = 256;

/// Names longer than a field's ever is are not compared.
const LONGEST: usize = 128;

/// Fields of one schema: those that are gone and those that are new.
type Group<'a> = (Vec<&'a str>, Vec<&'a str>);

/// Pairs of a removed and an added field, by names and digests; each field in one pair at most, sorted.
pub(super) fn suggest<'a>(removed: &[(&'a str, u128)], added: &[(&'a str, u128)]) -> Vec<(&'a str, &'a str)> {
    let mut groups: BTreeMap<u128, Group<'a>> = BTreeMap::new();
    for (name, digest) in removed {
        groups.entry(*digest).or_default().0.push(name);
    }
    for (name, digest) in added {
        groups.entry(*digest).or_default().1.push(name);
    }
    let mut pairs: Vec<_> = groups.into_values().flat_map(|(gone, fresh)| within(gone, fresh)).collect();
    pairs.sort_unstable();
    pairs
}

fn within<'a>(mut gone: Vec<&'a str>, mut fresh: Vec<&'a str>) -> Vec<(&'a str, &'a str)> {
    if gone.len().saturating_mul(fresh.len()) > MOST {
        return Vec::new();
    }
    let mut alike = Vec::new();
    for &one in gone.iter().filter(|name| name.len() <= LONGEST) {
        for &other in fresh.iter().filter(|name| name.len() <= LONGEST) {
            let likeness = strsim::normalized_levenshtein(&one.to_lowercase(), &other.to_lowercase());
            if likeness >= ALIKE {
                alike.push((likeness, one.min(other), one.max(other), one, other));
            }
        }
    }
    // The most alike first; ties by the names, in whatever direction they are compared.
    alike.sort_by(|(one, first, second, ..), (other, third, fourth, ..)| {
        other.total_cmp(one).then_with(|| (first, second).cmp(&(third, fourth)))
    });
    let mut pairs = Vec::new();
    for (.., one, other) in alike {
        if gone.contains(&one) && fresh.contains(&other) {
            gone.retain(|name| *name != one);
            fresh.retain(|name| *name != other);
            pairs.push((one, other));
        }
    }
    // The only two that are left need no likeness.
    if let ([one], [other]) = (gone.as_slice(), fresh.as_slice()) {
        pairs.push((one, other));
    }
    pairs
}
