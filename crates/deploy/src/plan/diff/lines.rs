//! Changes as single lines: every value on one line, short, and masked.
//! Long values are truncated in the middle, or around their difference; multi-line strings are counted, not shown.

use pushback_events::FieldLine;
use pushback_objects::PathSegment;
use serde_json::Value;

use super::change::FieldChange;
use super::flow::{HIDDEN, describe_text, is_text, lines_of, shorten, shorten_pair, write_flow};
use super::mask::{Masked, is_masked, mask};
use crate::edits::{Anchors, Edit, edits, ranges};

const CHANGED: &str = "(secret, changed)";

/// The changes as lines.
#[must_use]
pub fn field_lines(changes: &[FieldChange], masked: &Masked<'_>) -> Vec<FieldLine> {
    changes.iter().map(|change| line(change, masked)).collect()
}

fn line(change: &FieldChange, masked: &Masked<'_>) -> FieldLine {
    let path = change.display(masked);
    let hidden = is_masked(&change.path, masked) || is_masked(&change.old_path, masked);
    let (old, new) = match (&change.old, &change.new) {
        (Some(Value::String(old)), Some(Value::String(new))) if !hidden && (is_text(old) || is_text(new)) => {
            let (added, removed) = count_lines(old, new);
            (describe_text(old), format!("({}, +{added} -{removed})", lines_of(new)))
        }
        (Some(old), Some(new)) if hidden && is_scalar(old) && is_scalar(new) => (HIDDEN.to_owned(), CHANGED.to_owned()),
        (old, new) => {
            let one = |value: &Option<Value>, path: &[PathSegment]| {
                value.as_ref().map(|value| {
                    // A value masked on one side is masked on both: an item may have moved out of a rule's scope.
                    let always = |_: &[PathSegment]| true;
                    one_line(value, path, if hidden { &always } else { masked })
                })
            };
            return match (one(old, &change.old_path), one(new, &change.path)) {
                (Some(old), Some(new)) => {
                    let (old, new) = shorten_pair(&old, &new);
                    FieldLine { path, old: Some(old), new: Some(new) }
                }
                (old, new) => FieldLine { path, old: old.as_deref().map(shorten), new: new.as_deref().map(shorten) },
            };
        }
    };
    FieldLine { path, old: Some(old), new: Some(new) }
}

fn is_scalar(value: &Value) -> bool {
    !value.is_object() && !value.is_array()
}

fn count_lines(old: &str, new: &str) -> (usize, usize) {
    let [old, new] = [old, new].map(|text| text.split_inclusive('\n').collect::<Vec<_>>());
    let edits = ranges(&old, &new, Anchors::None).iter().flat_map(edits).collect::<Vec<_>>();
    edits.iter().fold((0, 0), |(added, removed), edit| match edit {
        Edit::Added(_) => (added + 1, removed),
        Edit::Removed(_) => (added, removed + 1),
        Edit::Same(..) => (added, removed),
    })
}

/// A value on one line, in flow style.
fn one_line(value: &Value, path: &[PathSegment], masked: &Masked<'_>) -> String {
    if is_scalar(value) && is_masked(path, masked) {
        return HIDDEN.to_owned();
    }
    // The size of a masked value inside a subtree does not matter to a reader; that it is masked does.
    let value = mask(value, path, masked, &mut |_| Value::String(HIDDEN.to_owned()));
    let mut text = String::new();
    write_flow(&value, true, &mut text);
    text
}
