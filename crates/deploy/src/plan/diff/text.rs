//! The difference of two objects as a unified diff of their YAML, three lines of context.
//! Masked values become numbered placeholders, the same number for the same value, before anything is compared.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::ops::Range;

use pushback_cluster::managed_fields::canonical;
use pushback_objects::PathSegment;
use serde_json::{Map, Value};
use similar::{DiffOp, group_diff_ops};

use super::mask::mask;
use super::{DiffOptions, Masked};
use crate::edits::{Anchors, Edit, edits, ranges};

/// Up to this many lines the diff anchors at unique lines, which reads best; above it the cheapest algorithm runs.
const FINE_LINES: usize = 50_000;

/// Unchanged lines around a change.
const CONTEXT: usize = 3;

/// Unified diff of the YAML of two objects, `None` for one that does not exist; empty if they are equal.
/// Fields that only the server sets are left out; keys are sorted.
#[must_use]
pub fn text(old: Option<&Value>, new: Option<&Value>, masked: &Masked<'_>) -> String {
    let mut numbers: HashMap<String, usize> = HashMap::new();
    let mut render = |object: Option<&Value>| {
        let Some(object) = object else { return String::new() };
        let mut placeholder = |value: &Value| {
            let next = numbers.len() + 1;
            let number = numbers.entry(canonical(value)).or_insert(next);
            Value::String(format!("(secret {number})"))
        };
        to_yaml(&sorted(&mask(&without_ignored(object), &[], masked, &mut placeholder)))
    };
    let (old, new) = (render(old), render(new));
    unified(&old, &new)
}

fn unified(old: &str, new: &str) -> String {
    let [old, new] = [old, new].map(|text| text.split_terminator('\n').collect::<Vec<_>>());
    let anchors = if old.len().max(new.len()) > FINE_LINES { Anchors::None } else { Anchors::Unique };
    let mut text = String::new();
    for hunk in group_diff_ops(ranges(&old, &new, anchors), CONTEXT) {
        if hunk.is_empty() {
            continue;
        }
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}", header(&hunk));
        for edit in hunk.iter().flat_map(edits) {
            let (sign, line) = match edit {
                Edit::Same(index, _) => (' ', old[index]),
                Edit::Removed(index) => ('-', old[index]),
                Edit::Added(index) => ('+', new[index]),
            };
            let _ = writeln!(text, "{sign}{line}");
        }
    }
    text
}

/// `@@ -1,7 +1,8 @@`: where the lines of a hunk are on each side.
fn header(hunk: &[DiffOp]) -> String {
    let place = |lines: &dyn Fn(&DiffOp) -> Range<usize>| {
        let start = hunk.first().map_or(0, |first| lines(first).start);
        let count = hunk.last().map_or(0, |last| lines(last).end) - start;
        match count {
            // Nothing is there: the line before it.
            0 => format!("{start},0"),
            1 => format!("{}", start + 1),
            _ => format!("{},{count}", start + 1),
        }
    };
    format!("@@ -{} +{} @@", place(&DiffOp::old_range), place(&DiffOp::new_range))
}

fn without_ignored(object: &Value) -> Value {
    let mut object = object.clone();
    for path in DiffOptions::default().ignored {
        let pointer: String = path.iter().take(path.len() - 1).map(|segment| format!("/{}", key(segment))).collect();
        // No key on the way to an ignored field has a slash.
        let parent = object.pointer_mut(&pointer).and_then(Value::as_object_mut);
        if let (Some(parent), Some(last)) = (parent, path.last()) {
            parent.shift_remove(&key(last));
        }
    }
    object
}

fn key(segment: &PathSegment) -> String {
    match segment {
        PathSegment::Key(key) => key.clone(),
        PathSegment::Index(index) => index.to_string(),
    }
}

fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_unstable_by_key(|(key, _)| *key);
            Value::Object(entries.into_iter().map(|(key, value)| (key.clone(), sorted(value))).collect::<Map<_, _>>())
        }
        Value::Array(items) => Value::Array(items.iter().map(sorted).collect()),
        scalar => scalar.clone(),
    }
}

fn to_yaml(value: &Value) -> String {
    let mut options = serde_yaml::SerializerOptions::default();
    // A folded line changes as a whole when one word does; so long lines are not folded.
    options.folded_wrap_chars = usize::MAX;
    // What YAML cannot represent is written as JSON, which is also YAML.
    serde_yaml::to_string_with_options(value, options).unwrap_or_else(|_| format!("{value:#}\n"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use similar::{Algorithm, TextDiff};

    use super::*;

    fn lines() -> impl Strategy<Value = String> {
        let line = proptest::sample::select(vec!["a\n", "b\n", "c\r\n", "\n", "  - d\n"]);
        proptest::collection::vec(line, 0..40).prop_map(|lines| lines.concat())
    }

    proptest! {
        #[test]
        fn a_hunk_is_the_one_that_every_reader_of_unified_diffs_knows(old in lines(), new in lines()) {
            let known = TextDiff::configure().algorithm(Algorithm::Patience).diff_lines(&old, &new);
            prop_assert_eq!(unified(&old, &new), known.unified_diff().context_radius(3).to_string());
        }
    }
}
