//! A value on one line, in flow style: ambiguous scalars are quoted.
//! Multi-line strings are counted, long values are truncated in the middle.

use pushback_objects::text::shorten_around_difference;
use serde_json::Value;

/// Characters of a value that are shown.
const MAX_VALUE: usize = 120;

/// Placeholder for a masked scalar inside a subtree. A value of the object that looks like this is quoted.
pub(super) const HIDDEN: &str = "(secret)";

pub(super) fn is_text(text: &str) -> bool {
    text.trim_end_matches('\n').contains('\n')
}

pub(super) fn lines_of(text: &str) -> String {
    match text.lines().count() {
        1 => "1 line".to_owned(),
        count => format!("{count} lines"),
    }
}

pub(super) fn describe_text(text: &str) -> String {
    if is_text(text) { format!("({})", lines_of(text)) } else { shorten(&plain_or_quoted(text)) }
}

pub(super) fn write_flow(value: &Value, is_top: bool, text: &mut String) {
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

/// Quotes a string that would otherwise read as something else: numbers, booleans, null, outer spaces, arrows.
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
        // An arrow separates old and new value.
        || ["→", "->"].iter().any(|arrow| text.contains(arrow))
        || text.chars().any(char::is_control);
    if looks_like_other || is_number || is_odd { Value::String(text.to_owned()).to_string() } else { text.to_owned() }
}

/// Truncates a long value in the middle and adds its length.
pub(super) fn shorten(text: &str) -> String {
    let count = text.chars().count();
    if count <= MAX_VALUE {
        return text.to_owned();
    }
    let half = MAX_VALUE / 2 - 10;
    let head: String = text.chars().take(half).collect();
    let tail: String = text.chars().skip(count - half).collect();
    format!("{head}…{tail} ({} bytes)", text.len())
}

/// Truncates two long values around their difference; a long one beside a short one in the middle.
pub(super) fn shorten_pair(old: &str, new: &str) -> (String, String) {
    let (old_count, new_count) = (old.chars().count(), new.chars().count());
    if old_count.min(new_count) <= MAX_VALUE / 2 || old_count.max(new_count) <= MAX_VALUE {
        return (shorten(old), shorten(new));
    }
    shorten_around_difference(old, new, MAX_VALUE, "…")
}
