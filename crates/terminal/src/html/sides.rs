//! Two values side by side, line by line.

use pushback_deploy::edits::{Anchors, ranges};
use pushback_objects::text::counted;
use serde_json::Value;
use similar::DiffOp;

use crate::finding_card::witness_yaml;

/// Most lines of a value.
const LINES: usize = 200;

/// Stands for a value that is not there; no YAML looks like it.
const NOTHING: &str = "(nothing)";

/// A line of each side; a side that has none is empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Line of the old side.
    pub old: Option<String>,
    /// Line of the new side.
    pub new: Option<String>,
    /// Set if the sides differ.
    pub is_changed: bool,
}

impl Row {
    /// CSS class of the old side.
    pub fn old_class(&self) -> &'static str {
        self.class(self.old.as_deref(), "old")
    }

    /// CSS class of the new side.
    pub fn new_class(&self) -> &'static str {
        self.class(self.new.as_deref(), "new")
    }

    fn class(&self, line: Option<&str>, changed: &'static str) -> &'static str {
        match line {
            Some(NOTHING) => "quiet",
            Some(_) if self.is_changed => changed,
            _ => "same",
        }
    }
}

/// The rows of two values as YAML; none if there is neither.
pub fn sides(old: Option<&Value>, new: Option<&Value>) -> Vec<Row> {
    if old.is_none() && new.is_none() {
        return Vec::new();
    }
    let [old, new] = [old, new].map(lines);
    let [old, new] = [&old, &new].map(|lines| lines.iter().map(String::as_str).collect::<Vec<_>>());
    let mut rows = Vec::new();
    for operation in ranges(&old, &new, Anchors::None) {
        let is_changed = !matches!(operation, DiffOp::Equal { .. });
        let (old_lines, new_lines) = (&old[operation.old_range()], &new[operation.new_range()]);
        for index in 0..old_lines.len().max(new_lines.len()) {
            let line = |lines: &[&str]| lines.get(index).map(|line| (*line).to_owned());
            rows.push(Row { old: line(old_lines), new: line(new_lines), is_changed });
        }
    }
    rows
}

fn lines(value: Option<&Value>) -> Vec<String> {
    let Some(value) = value else { return vec![NOTHING.to_owned()] };
    let text = match value {
        Value::Array(_) | Value::Object(_) => witness_yaml(value),
        scalar => scalar.to_string(),
    };
    let mut lines: Vec<String> = text.lines().take(LINES).map(ToOwned::to_owned).collect();
    let left = text.lines().count().saturating_sub(LINES);
    if left > 0 {
        lines.push(format!("… and {}", counted(left, "more line")));
    }
    lines
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shown(old: Option<&Value>, new: Option<&Value>) -> Vec<String> {
        let shown = |row: &Row| {
            let side = |side: &Option<String>| side.clone().unwrap_or_default();
            format!("{}|{}{}", side(&row.old), side(&row.new), if row.is_changed { " !" } else { "" })
        };
        sides(old, new).iter().map(shown).collect()
    }

    #[test]
    fn equal_lines_stand_beside_each_other() {
        assert_eq!(shown(Some(&json!(["a", "b"])), Some(&json!(["a", "c", "d"]))), ["- a|- a", "- b|- c !", "|- d !"]);
        assert_eq!(shown(None, Some(&json!("x"))), [r#"(nothing)|"x" !"#]);
        assert_eq!(shown(None, None), Vec::<String>::new());
    }

    #[test]
    fn a_long_value_is_cut_and_says_so() {
        let rows = shown(Some(&json!([])), Some(&json!(vec!["a"; 500])));
        assert_eq!((rows.len(), rows[200].as_str()), (201, "|… and 300 more lines !"));
    }
}
