//! kapp's line diff of two objects: old and new line numbers, removed lines before added ones, gaps as `...`.

use std::fmt::Write as _;

use serde_json::Value;
use similar::{Algorithm, ChangeTag, TextDiff};

use super::style::DiffLook;
use super::yaml;

/// The diff of two objects; `None` is one that does not exist.
#[must_use]
pub fn text(old: Option<&Value>, new: Option<&Value>, look: &DiffLook) -> String {
    let (old, new) = (yaml::text(old), yaml::text(new));
    // The text ends with a line break, and what follows it counts as a line.
    let lines = |text: &str| -> Vec<String> {
        if text.is_empty() { Vec::new() } else { text.split('\n').map(str::to_owned).collect() }
    };
    let (old, new) = (lines(&old), lines(&new));
    let (old, new): (Vec<&str>, Vec<&str>) =
        (old.iter().map(String::as_str).collect(), new.iter().map(String::as_str).collect());
    // No deadline: the same input must give the same bytes on every machine.
    let diff = TextDiff::configure().algorithm(Algorithm::Myers).diff_slices(&old, &new);
    let changes: Vec<(ChangeTag, Option<usize>, Option<usize>, &str)> = diff
        .iter_all_changes()
        .map(|change| (change.tag(), change.old_index(), change.new_index(), change.value()))
        .collect();
    let is_near = |index: usize| match look.context {
        None => true,
        Some(context) => {
            // kapp shows one line less before a change than after it.
            let from = index.saturating_sub(context);
            let to = (index + context).min(changes.len());
            changes[from..to.max(from)].iter().any(|(tag, ..)| *tag != ChangeTag::Equal)
        }
    };
    let mut text = String::new();
    let mut skipped = false;
    for (index, (tag, old, new, line)) in changes.iter().enumerate() {
        if *tag == ChangeTag::Equal && !is_near(index) {
            skipped = true;
            continue;
        }
        // kapp marks a gap where unchanged lines go on, not before a changed one.
        if *tag == ChangeTag::Equal && std::mem::take(&mut skipped) {
            text += "  ...\n";
        }
        let (old, new) = (old.unwrap_or_default(), new.unwrap_or_default());
        // Writing to a string cannot fail.
        let _ = match (tag, look.line_numbers) {
            (ChangeTag::Equal, true) => writeln!(text, "{old:3},{new:3}   {line}"),
            (ChangeTag::Delete, true) => writeln!(text, "{old:3}     - {line}"),
            (ChangeTag::Insert, true) => writeln!(text, "    {new:3} + {line}"),
            (ChangeTag::Equal, false) => writeln!(text, "  {line}"),
            (ChangeTag::Delete, false) => writeln!(text, "- {line}"),
            (ChangeTag::Insert, false) => writeln!(text, "+ {line}"),
        };
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
    }
}
