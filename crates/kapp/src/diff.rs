//! kapp's line diff of two objects: old and new line numbers, removed lines before added ones, gaps as `...`.

use std::fmt::Write as _;

use pushback_deploy::edits::{Anchors, Edit, edits, ranges};
use serde_json::Value;

use super::style::DiffLook;
use super::words;

/// The diff of two objects; `None` is one that does not exist.
#[must_use]
pub fn text(old: Option<&Value>, new: Option<&Value>, look: &DiffLook) -> String {
    let (old, new) = (words::yaml(old), words::yaml(new));
    let (old, new) = (lines(&old), lines(&new));
    let edits: Vec<Edit> = ranges(&old, &new, Anchors::None).iter().flat_map(edits).collect();
    let is_same = |edit: &Edit| matches!(edit, Edit::Same(..));
    let is_near = |index: usize| match look.context {
        None => true,
        Some(context) => {
            // kapp shows one line less before a change than after it.
            let from = index.saturating_sub(context);
            let to = (index + context).min(edits.len());
            !edits[from..to.max(from)].iter().all(is_same)
        }
    };
    let mut text = String::new();
    let mut skipped = false;
    for (index, edit) in edits.iter().enumerate() {
        if is_same(edit) && !is_near(index) {
            skipped = true;
            continue;
        }
        // kapp marks a gap where unchanged lines go on, not before a changed one.
        if is_same(edit) && std::mem::take(&mut skipped) {
            text += "  ...\n";
        }
        let (numbers, sign, line) = match *edit {
            Edit::Same(old_index, new_index) => (format!("{old_index:3},{new_index:3} "), ' ', old[old_index]),
            Edit::Removed(index) => (format!("{index:3}     "), '-', old[index]),
            Edit::Added(index) => (format!("    {index:3} "), '+', new[index]),
        };
        let numbers = if look.line_numbers { numbers.as_str() } else { "" };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{numbers}{sign} {line}");
    }
    text
}

/// Splits a text into lines: it ends with a line break, and what follows that counts as a line.
fn lines(text: &str) -> Vec<&str> {
    if text.is_empty() { Vec::new() } else { text.split('\n').collect() }
}

/// The changed lines of a diff alone, each with its numbers on both sides, as kapp's errors contain them.
#[must_use]
pub fn changed_lines(old: Option<&Value>, new: Option<&Value>) -> String {
    let (old, new) = (words::yaml(old), words::yaml(new));
    let (old, new) = (lines(&old), lines(&new));
    let mut text = String::new();
    let (mut before, mut after) = (0, 0);
    for edit in ranges(&old, &new, Anchors::None).iter().flat_map(edits) {
        // Writing to a string cannot fail.
        match edit {
            Edit::Same(..) => (before, after) = (before + 1, after + 1),
            Edit::Removed(index) => {
                let _ = writeln!(text, "{before:3},{after:3} - {}", old[index]);
                before += 1;
            }
            Edit::Added(index) => {
                let _ = writeln!(text, "{before:3},{after:3} + {}", new[index]);
                after += 1;
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_changed_line_is_shown_with_its_neighbours_and_their_numbers() {
        let old = json!({"apiVersion": "v1", "data": {"a": "1"}, "kind": "ConfigMap", "metadata": {"name": "cfg"}});
        let mut new = old.clone();
        new["data"] = json!({"a": "2", "b": "3"});
        assert_snapshot!(text(Some(&old), Some(&new), &DiffLook::default()), @r#"
          ...
          1,  1   data:
          2     -   a: "1"
              2 +   a: "2"
              3 +   b: "3"
          3,  4   kind: ConfigMap
          4,  5   metadata:
        "#);
        assert_eq!(
            changed_lines(Some(&old), Some(&new)),
            "  2,  2 -   a: \"1\"\n  3,  2 +   a: \"2\"\n  3,  3 +   b: \"3\"\n"
        );
    }
}
