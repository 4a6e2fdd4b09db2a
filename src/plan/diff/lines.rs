//! Changes as single lines: every value on one line, short, and without what is masked.
//! Long values keep their beginning and end; texts of several lines are counted, not shown.

use pushback_preflight::PathSegment;
use serde_json::Value;
use similar::{Algorithm, ChangeTag, TextDiff};

use super::mask::{is_masked, mask};
use super::{FieldChange, Masked};
use crate::event::FieldLine;

/// Characters of a value that are shown.
const MAX_VALUE: usize = 120;

/// Stands for a masked scalar inside a subtree. A value of the object that reads like this is quoted.
const HIDDEN: &str = "(secret)";
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
                    // What is hidden on one side is hidden on both: an item may have moved out of a rule's reach.
                    let always = |_: &[PathSegment]| true;
                    one_line(value, path, if hidden { &always } else { masked })
                })
            };
            return FieldLine { path, old: one(old, &change.old_path), new: one(new, &change.path) };
        }
    };
    FieldLine { path, old: Some(old), new: Some(new) }
}

fn is_scalar(value: &Value) -> bool {
    !value.is_object() && !value.is_array()
}

fn is_text(text: &str) -> bool {
    text.trim_end_matches('\n').contains('\n')
}

fn lines_of(text: &str) -> String {
    match text.lines().count() {
        1 => "1 line".to_owned(),
        count => format!("{count} lines"),
    }
}

fn describe_text(text: &str) -> String {
    if is_text(text) { format!("({})", lines_of(text)) } else { shorten(&plain_or_quoted(text)) }
}

fn count_lines(old: &str, new: &str) -> (usize, usize) {
    let diff = TextDiff::configure().algorithm(Algorithm::Myers).diff_lines(old, new);
    diff.iter_all_changes().fold((0, 0), |(added, removed), change| match change.tag() {
        ChangeTag::Insert => (added + 1, removed),
        ChangeTag::Delete => (added, removed + 1),
        ChangeTag::Equal => (added, removed),
    })
}

/// A value on one line, in flow style.
fn one_line(value: &Value, path: &[PathSegment], masked: &Masked<'_>) -> String {
    if is_scalar(value) && is_masked(path, masked) {
        return HIDDEN.to_owned();
    }
    // Sizes of what is hidden inside a subtree do not matter to a reader; that it is hidden does.
    let value = mask(value, path, masked, &mut |_| Value::String(HIDDEN.to_owned()));
    let mut text = String::new();
    write_flow(&value, true, &mut text);
    shorten(&text)
}

fn write_flow(value: &Value, is_top: bool, text: &mut String) {
    match value {
        Value::Object(map) => {
            text.push('{');
            for (position, (key, child)) in map.iter().enumerate() {
                if position > 0 {
                    text.push_str(", ");
                }
                text.push_str(&plain_or_quoted(key));
                text.push_str(": ");
                write_flow(child, false, text);
            }
            text.push('}');
        }
        Value::Array(items) => {
            text.push('[');
            for (position, child) in items.iter().enumerate() {
                if position > 0 {
                    text.push_str(", ");
                }
                write_flow(child, false, text);
            }
            text.push(']');
        }
        Value::String(string) if !is_top && string == HIDDEN => text.push_str(HIDDEN),
        Value::String(string) if is_text(string) => text.push_str(&describe_text(string)),
        Value::String(string) if !is_top && string.contains([',', '{', '}', '[', ']']) => {
            text.push_str(&Value::String(string.clone()).to_string());
        }
        Value::String(string) => text.push_str(&plain_or_quoted(string)),
        scalar => text.push_str(&scalar.to_string()),
    }
}

/// Quotes what would read as something else than this string: numbers, booleans, null, edges of white space, arrows.
pub(super) fn plain_or_quoted(text: &str) -> String {
    let looks_like_other = matches!(
        text.to_ascii_lowercase().as_str(),
        "" | "~" | "null" | "true" | "false" | "yes" | "no" | "on" | "off" | "y" | "n"
    );
    let is_number = text.starts_with(|first: char| first.is_ascii_digit() || matches!(first, '-' | '+' | '.'))
        && text.parse::<f64>().is_ok();
    let is_odd = text.starts_with(|first: char| first.is_whitespace() || "\"'{[(&*!|>%@`#".contains(first))
        || text.ends_with(char::is_whitespace)
        || text.contains(": ")
        || text.contains(" #")
        // Old and new value stand on both sides of an arrow.
        || ["→", "->"].iter().any(|arrow| text.contains(arrow))
        || text.chars().any(char::is_control);
    if looks_like_other || is_number || is_odd { Value::String(text.to_owned()).to_string() } else { text.to_owned() }
}

/// Cuts a long value in the middle and says how long it was.
fn shorten(text: &str) -> String {
    let count = text.chars().count();
    if count <= MAX_VALUE {
        return text.to_owned();
    }
    let half = MAX_VALUE / 2 - 10;
    let head: String = text.chars().take(half).collect();
    let tail: String = text.chars().skip(count - half).collect();
    format!("{head}…{tail} ({} bytes)", text.len())
}
