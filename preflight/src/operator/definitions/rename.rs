//! Which field that is gone may live on under another name, beside it: the two have equal schemas. A guess, told as one.

use std::collections::BTreeMap;

use pushback_crd::definition::{Kind, Node, StructuralChange, What};
use pushback_crd::schema::Schema;
use pushback_crd::schema::contain::SchemaStep;

/// How alike names must be (Levenshtein, 0 to 1) where more than one field could be meant.
const ALIKE: f64 = 0.5;

/// Pairs of equal schemas that are compared by name; beyond, there is nothing to choose by.
const MOST: usize = 256;

/// Names longer than a field's ever is are not compared.
const LONGEST: usize = 128;

/// Fields of one schema beside each other: those that are gone and those that are new.
type Group<'a> = (Vec<&'a str>, Vec<&'a str>);

/// A change with the field that the removed one may be now.
type Pair<'a, 'u> = (&'a StructuralChange<'u>, (&'a str, Node<'u>));

/// Removed fields with the added ones that they may be, each in one pair at most.
pub(super) fn suggested<'a, 'u>(changes: &'a [StructuralChange<'u>]) -> Vec<Pair<'a, 'u>> {
    let mut groups: BTreeMap<_, Group<'a>> = BTreeMap::new();
    let mut fields = BTreeMap::new();
    for change in changes {
        let What::Node(node) = &change.what else { continue };
        let Some((SchemaStep::Property(name), around)) = node.path.split_last() else { continue };
        let group = |schema: &Schema| (node.version, around, schema.digest);
        match (node.kind, node.nodes) {
            (Kind::Field, [Some(old), None]) => groups.entry(group(old.schema)).or_default().0.push(name),
            // A new field that is required is told as that.
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
