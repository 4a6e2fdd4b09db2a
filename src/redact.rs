//! Keeps secret values out of text about them: servers and webhooks quote what they refuse.
//! Pure text; which values are secret, the caller says.

use base64::Engine;
use serde_json::Value;

/// Shorter values are masked only where they are a word: replacing every `a` would leave no message.
const SHORTEST_ANYWHERE: usize = 4;

const MASK: &str = "***";

/// The values that a request carried and no message may show. Empty for requests that carry no Secret.
#[derive(Default)]
pub(crate) struct Secrets {
    values: Vec<String>,
    strict: bool,
}

impl Secrets {
    /// The values in the body of a request about a Secret: an object or a patch.
    pub(crate) fn of_body(body: &Value) -> Self {
        let mut values = Vec::new();
        match body {
            // A JSON patch: everything but the operations' own words.
            Value::Array(operations) => {
                for operation in operations {
                    collect(operation.get("value").unwrap_or(&Value::Null), &mut values);
                }
            }
            object => {
                for field in ["data", "stringData"] {
                    collect(object.get(field).unwrap_or(&Value::Null), &mut values);
                }
                // `kubectl apply` keeps the whole manifest in an annotation.
                collect(object.pointer("/metadata/annotations").unwrap_or(&Value::Null), &mut values);
            }
        }
        Self::of(values)
    }

    /// Values that a user has declared secret, wherever they are.
    pub(crate) fn of_values<'a>(found: impl Iterator<Item = &'a Value>) -> Self {
        let mut values = Vec::new();
        found.for_each(|value| collect(value, &mut values));
        Self::of(values)
    }

    fn of(mut values: Vec<String>) -> Self {
        let decoded: Vec<String> = values
            .iter()
            .filter_map(|value| base64::engine::general_purpose::STANDARD.decode(value).ok())
            .filter_map(|bytes| String::from_utf8(bytes).ok())
            .collect();
        values.extend(decoded);
        values.retain(|value| !value.is_empty());
        // The longest first, so that a value that holds another is masked whole.
        values.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        values.dedup();
        Self { values, strict: true }
    }

    /// The text with every value replaced.
    pub(crate) fn mask(&self, text: &str) -> String {
        if !self.strict {
            return text.to_owned();
        }
        let mut masked = text.to_owned();
        for value in &self.values {
            masked = if value.len() >= SHORTEST_ANYWHERE {
                masked.replace(value.as_str(), MASK)
            } else {
                replace_word(&masked, value)
            };
        }
        blank_invalid_values(&cut_excerpt(&masked))
    }
}

fn collect(value: &Value, values: &mut Vec<String>) {
    match value {
        Value::String(text) => values.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| collect(item, values)),
        Value::Object(fields) => fields.values().for_each(|field| collect(field, values)),
        Value::Number(number) => values.push(number.to_string()),
        Value::Null | Value::Bool(_) => {}
    }
}

/// Replaces a text where neither end of it is within a word.
fn replace_word(text: &str, word: &str) -> String {
    let mut replaced = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(word) {
        let (before, found) = rest.split_at(start);
        let after = found.strip_prefix(word).unwrap_or_default();
        let bounded = !before.ends_with(char::is_alphanumeric) && !after.starts_with(char::is_alphanumeric);
        replaced.push_str(before);
        replaced.push_str(if bounded { MASK } else { word });
        rest = after;
    }
    replaced.push_str(rest);
    replaced
}

/// What a decoder shows of the body goes with all that follows: `error found in #10 byte of ...|…|...`,
/// `expected string, got &value.valueUnstructured{…}`.
fn cut_excerpt(text: &str) -> String {
    for mark in ["error found in #", ", got "] {
        if let Some((before, _)) = text.split_once(mark) {
            return format!("{before}{mark}{MASK}");
        }
    }
    text.to_owned()
}

/// `Invalid value: "…": must be` becomes `Invalid value: ***: must be`, whatever the server quoted or escaped.
fn blank_invalid_values(text: &str) -> String {
    const MARKS: [&str; 3] = ["Invalid value: ", "Unsupported value: ", "Duplicate value: "];
    let mut rest = text;
    let mut blanked = String::with_capacity(text.len());
    while let Some((start, mark)) =
        MARKS.iter().filter_map(|mark| rest.find(mark).map(|start| (start, *mark))).min_by_key(|(start, _)| *start)
    {
        let value_start = start + mark.len();
        let (before, value) = rest.split_at(value_start);
        blanked.push_str(before);
        blanked.push_str(MASK);
        rest = value.get(length_of_value(value)..).unwrap_or_default();
    }
    blanked.push_str(rest);
    blanked
}

/// Length of a quoted, bracketed or bare value at the start of a text.
fn length_of_value(text: &str) -> usize {
    if !text.starts_with('"') {
        return text.find(": ").unwrap_or(text.len());
    }
    let mut escaped = false;
    for (index, character) in text.char_indices().skip(1) {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return index + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_masked_plain_and_decoded() {
        let secrets = Secrets::of_body(&json!({"data": {"password": "aHVudGVyMg=="}, "stringData": {"pin": "42"}}));
        assert_eq!(
            secrets.mask("webhook said hunter2 is weak, 42 and \"42\" too, sent aHVudGVyMg==, rule 420"),
            "webhook said *** is weak, *** and \"***\" too, sent ***, rule 420"
        );
    }

    #[test]
    fn quoted_values_are_blanked_even_if_the_server_changed_them() {
        let secrets = Secrets::of_body(&json!({"data": {}}));
        assert_eq!(
            secrets.mask(
                "data[a]: Invalid value: \"so \\\"quoted\\\"\": must be x, data[b]: Invalid value: 12: must be y"
            ),
            "data[a]: Invalid value: ***: must be x, data[b]: Invalid value: ***: must be y"
        );
    }

    #[test]
    fn an_unclosed_quote_masks_to_the_end() {
        assert_eq!(Secrets::of_body(&json!({})).mask("Invalid value: \"abc"), "Invalid value: ***");
    }

    #[test]
    fn values_of_a_json_patch_are_masked_but_not_its_paths() {
        let secrets = Secrets::of_body(&json!([{"op": "replace", "path": "/data/key", "value": "c2VjcmV0"}]));
        assert_eq!(secrets.mask("replace /data/key with c2VjcmV0 (secret)"), "replace /data/key with *** (***)");
    }

    #[test]
    fn what_a_decoder_shows_of_the_body_is_cut() {
        let secrets = Secrets::of_body(&json!({"stringData": {"a": "x"}}));
        assert_eq!(
            secrets.mask("bad input, error found in #10 byte of ...|a\":\"x|..."),
            "bad input, error found in #***"
        );
        assert_eq!(secrets.mask(".data.a: expected string, got &value{Value:77}"), ".data.a: expected string, got ***");
    }

    #[test]
    fn other_objects_are_shown_as_they_are() {
        assert_eq!(
            Secrets::default().mask("spec.replicas: Invalid value: -1: no"),
            "spec.replicas: Invalid value: -1: no"
        );
    }
}
