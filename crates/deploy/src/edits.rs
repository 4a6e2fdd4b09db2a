//! What leads from one list of texts to another. The texts become numbers first, so that the algorithms are compiled once
//! and not again for every kind of list.

use std::collections::HashMap;

use similar::algorithms::{Capture, Compact, Replace, myers, patience};
use similar::{DiffOp, DiffTag};

/// Where the lists are compared first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchors {
    /// At texts that each list has once, which reads best.
    Unique,
    /// Nowhere, which is the cheapest.
    None,
}

/// A text of the lists: in both, only in the old one, or only in the new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edit {
    /// Index in the old list, and in the new one.
    Same(usize, usize),
    /// Index in the old list.
    Removed(usize),
    /// Index in the new list.
    Added(usize),
}

/// The ranges that lead from the old list to the new one.
///
/// There is no deadline: the same input gives the same ranges on every machine.
pub fn ranges(old: &[&str], new: &[&str], anchors: Anchors) -> Vec<DiffOp> {
    let mut numbers = HashMap::new();
    let old = numbered(old, &mut numbers);
    let new = numbered(new, &mut numbers);
    let (old_range, new_range) = (0..old.len(), 0..new.len());
    let mut steps = Compact::new(Replace::new(Capture::new()), &old, &new);
    let Ok(()) = match anchors {
        Anchors::Unique => patience::diff(&mut steps, &old, old_range, &new, new_range),
        Anchors::None => myers::diff(&mut steps, &old, old_range, &new, new_range),
    };
    steps.into_inner().into_inner().into_ops()
}

/// A number for each text, the same for the same text.
fn numbered<'t>(texts: &[&'t str], numbers: &mut HashMap<&'t str, usize>) -> Vec<usize> {
    let number = |text: &&'t str| {
        let next = numbers.len();
        *numbers.entry(*text).or_insert(next)
    };
    texts.iter().map(number).collect()
}

/// Every text of a range: what is removed before what is added.
pub fn edits(range: &DiffOp) -> Vec<Edit> {
    let (tag, old, new) = range.as_tag_tuple();
    match tag {
        DiffTag::Equal => old.zip(new).map(|(old, new)| Edit::Same(old, new)).collect(),
        DiffTag::Delete | DiffTag::Insert | DiffTag::Replace => {
            old.map(Edit::Removed).chain(new.map(Edit::Added)).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use similar::{Algorithm, capture_diff_slices};

    use super::*;

    fn texts() -> impl Strategy<Value = Vec<&'static str>> {
        proptest::collection::vec(proptest::sample::select(vec!["a", "b", "c", "", "a "]), 0..40)
    }

    proptest! {
        #[test]
        fn the_edits_turn_the_old_list_into_the_new_one(old in texts(), new in texts()) {
            for anchors in [Anchors::Unique, Anchors::None] {
                let ranges = ranges(&old, &new, anchors);
                let edits: Vec<Edit> = ranges.iter().flat_map(edits).collect();
                let side = |of: fn(&Edit) -> Option<(bool, usize)>| -> Vec<&str> {
                    edits.iter().filter_map(of).map(|(is_old, index)| if is_old { old[index] } else { new[index] }).collect()
                };
                let before = side(|edit| match edit {
                    Edit::Same(index, _) | Edit::Removed(index) => Some((true, *index)),
                    Edit::Added(_) => None,
                });
                let after = side(|edit| match edit {
                    Edit::Same(_, index) | Edit::Added(index) => Some((false, *index)),
                    Edit::Removed(_) => None,
                });
                prop_assert_eq!(&before, &old);
                prop_assert_eq!(&after, &new);
            }
        }

        #[test]
        fn numbers_stand_for_the_texts(old in texts(), new in texts()) {
            prop_assert_eq!(ranges(&old, &new, Anchors::None), capture_diff_slices(Algorithm::Myers, &old, &new));
            prop_assert_eq!(ranges(&old, &new, Anchors::Unique), capture_diff_slices(Algorithm::Patience, &old, &new));
        }
    }
}
