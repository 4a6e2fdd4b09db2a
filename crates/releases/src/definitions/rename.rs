//! Finds removed fields that may have been renamed to a sibling with an equal schema. Reported as a guess.

use std::collections::BTreeMap;

use pushback_crd::definition::{Kind, Node, StructuralChange, What};
use pushback_crd::schema::Schema;
use pushback_crd::schema::contain::SchemaStep;

/// Minimum similarity of names (Levenshtein, 0 to 1) if there are several candidates.
const MIN_SIMILARITY: f64 = 0.5;

/// Maximum number of pairs with equal schemas to compare by name.
const MOST: usize = 256;

/// Longer names are not compared; no real field has one.
const LONGEST: usize = 128;

/// Removed and added fields of the same parent.
type Group<'a> = (Vec<&'a str>, Vec<&'a str>);

/// A removal with the field that it may have been renamed to.
type Pair<'a, 'u> = (&'a StructuralChange<'u>, (&'a str, Node<'u>));

/// Removed fields with the added fields that may replace them; each field is in at most one pair.
pub(super) fn suggested<'a, 'u>(changes: &'a [StructuralChange<'u>]) -> Vec<Pair<'a, 'u>> {
    let mut groups: BTreeMap<_, Group<'a>> = BTreeMap::new();
    let mut fields = BTreeMap::new();
    for change in changes {
        let What::Node(node) = &change.what else { continue };
        let Some((SchemaStep::Property(name), around)) = node.path.split_last() else { continue };
        let group = |schema: &Schema| (node.version, around, schema.digest);
        match (node.kind, node.nodes) {
            (Kind::Field, [Some(old), None]) => groups.entry(group(old.schema)).or_default().0.push(name),
            // A new required field is reported as such.
            (Kind::Field | Kind::Required, [None, Some(new)]) if node.new.is_some() => {
                groups.entry(group(new.schema)).or_default().1.push(name);
            }
            _ => continue,
        }
        fields.insert((node.version, around, name.as_str()), (change, node.nodes));
    }
    let mut pairs = Vec::new();
    for ((version, around, _), (gone, fresh)) in groups {
        for (gone, fresh) in within(gone, fresh) {
            let (old, new) = (fields.get(&(version, around, gone)), fields.get(&(version, around, fresh)));
            if let (Some((change, _)), Some((_, [_, Some(node)]))) = (old, new) {
                pairs.push((*change, (fresh, *node)));
            }
        }
    }
    pairs
}

fn within<'a>(mut gone: Vec<&'a str>, mut fresh: Vec<&'a str>) -> Vec<(&'a str, &'a str)> {
    if gone.len().saturating_mul(fresh.len()) > MOST {
        return Vec::new();
    }
    let mut similar = Vec::new();
    for &one in gone.iter().filter(|name| name.len() <= LONGEST) {
        for &other in fresh.iter().filter(|name| name.len() <= LONGEST) {
            let similarity = strsim::normalized_levenshtein(&one.to_lowercase(), &other.to_lowercase());
            if similarity >= MIN_SIMILARITY {
                similar.push((similarity, one.min(other), one.max(other), one, other));
            }
        }
    }
    // The most similar first; ties by name, independent of direction.
    similar.sort_by(|(one, first, second, ..), (other, third, fourth, ..)| {
        other.total_cmp(one).then_with(|| (first, second).cmp(&(third, fourth)))
    });
    let mut pairs = Vec::new();
    for (.., one, other) in similar {
        if gone.contains(&one) && fresh.contains(&other) {
            gone.retain(|name| *name != one);
            fresh.retain(|name| *name != other);
            pairs.push((one, other));
        }
    }
    // The last remaining pair needs no similarity.
    if let ([one], [other]) = (gone.as_slice(), fresh.as_slice()) {
        pairs.push((one, other));
    }
    pairs
}
