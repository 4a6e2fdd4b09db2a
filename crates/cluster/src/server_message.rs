//! Parses the server's message if the answer lists no causes: unknown or unreadable fields, all in one message. Also
//! converts the field paths in its answers to those of the manifest.

use std::collections::BTreeSet;

use pushback_objects::PathSegment;
use serde_json::Value;

use super::Cause;
use pushback_manifest::config::path::remove_at;

/// The reason of a cause about a field that the kind lacks, or that occurs twice.
pub const UNKNOWN_FIELD: &str = "StrictDecoding";

/// The causes in the message of strict decoding or of a patch that does not fit its schema; empty for other messages.
pub fn causes(message: &str) -> Vec<Cause> {
    if let Some((_, list)) = message.split_once("strict decoding error: ") {
        return list.split(", ").filter_map(|part| Some(unknown(part.split('"').nth(1)?, part.to_owned()))).collect();
    }
    let Some((_, list)) = message.split_once("failed to create typed patch object ") else { return Vec::new() };
    // `(shop/web; apps/v1, Kind=Deployment): .spec.x: field not declared in schema`, or `…): errors:` and a line each.
    let mut causes: Vec<Cause> = list.lines().filter_map(typed).collect();
    // The server says the same of the object that is given and of what it makes of it.
    let mut seen = BTreeSet::new();
    causes.retain(|cause| seen.insert((cause.field.clone(), cause.message.clone())));
    causes
}

fn typed(line: &str) -> Option<Cause> {
    let line =
        line.split_once("): ").filter(|(before, _)| before.starts_with('(')).map_or(line, |(_, rest)| rest).trim();
    let line = line.strip_prefix('.')?;
    let end = field_end(line);
    let (field, message) = (&line[..end], line[end..].strip_prefix(": ")?);
    if message.starts_with("field not declared in schema") {
        return Some(unknown(field, format!("unknown field {field:?}")));
    }
    Some(Cause { reason: "FieldValueInvalid".to_owned(), field: field.to_owned(), message: message.to_owned() })
}

/// End of the path, where `: ` begins; quoted keys may contain anything.
fn field_end(text: &str) -> usize {
    let mut quoted = false;
    let mut escaped = false;
    for (index, character) in text.char_indices() {
        match character {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            ':' if !quoted && text[index..].starts_with(": ") => return index,
            _ => {}
        }
    }
    text.len()
}

fn unknown(field: &str, message: String) -> Cause {
    Cause { reason: UNKNOWN_FIELD.to_owned(), field: field.to_owned(), message }
}

/// Whether a cause is that two items of a list have the same key. The field is the list.
pub fn is_duplicate(cause: &Cause) -> bool {
    cause.message.starts_with("duplicate entries for key ")
}

/// The field that a warning of the server is about: `unknown field "spec.x"`, `spec.ports[1]: duplicate port definition`.
pub fn field_of_warning(message: &str) -> Option<&str> {
    if let Some(rest) = message.strip_prefix("unknown field \"").or_else(|| message.strip_prefix("duplicate field \""))
    {
        return rest.strip_suffix('"');
    }
    let field = &message[..field_end(message)];
    let is_whole = field.matches('[').count() == field.matches(']').count();
    let is_path =
        field.len() < message.len() && is_whole && !field.contains(char::is_whitespace) && field.contains(['.', '[']);
    is_path.then_some(field)
}

/// Returns whether a message is about a failed conversion: the server names that webhook in the text alone.
#[must_use]
pub fn is_of_conversion(message: &str) -> bool {
    message.contains("conversion webhook for")
}

/// Texts of a failed conversion for which the webhook gave no answer.
const UNANSWERED: [&str; 4] =
    [" failed: Post \"", " failed: service \"", "the server is currently unable", "an error on the server"];

/// Returns whether a conversion webhook has answered, and refuses this object.
#[must_use]
pub fn refuses_conversion(message: &str) -> bool {
    is_of_conversion(message) && !UNANSWERED.iter().any(|text| message.contains(text))
}

/// Returns an object without the fields that the server has left out, as its warnings name them.
pub fn without_unknown_fields(object: &Value, warnings: &[String]) -> Value {
    let mut object = object.clone();
    for warning in warnings {
        let unknown = warning.strip_prefix("unknown field ").and_then(|_| field_of_warning(warning));
        if let Some(field) = unknown {
            let path = path(field, &object);
            remove_at(&mut object, &path);
        }
    }
    object
}

/// Parses the server's spellings: `spec.containers[0].name`, `metadata.annotations[a.b/c]`, `.spec.x`, and in patches
/// `.spec.containers[name="a"].image` and `.metadata.finalizers[="a"]`.
pub fn path(field: &str, manifest: &Value) -> Vec<PathSegment> {
    let mut path = Vec::new();
    let mut here = Some(manifest);
    let mut rest = field.trim_start_matches('.');
    while !rest.is_empty() {
        let segment = if let Some(inside) = rest.strip_prefix('[') {
            let Some(end) = bracket_end(inside) else { break };
            rest = inside[end + 1..].trim_start_matches('.');
            bracketed(&inside[..end], here)
        } else {
            let end = rest.find(['.', '[']).unwrap_or(rest.len());
            let segment = PathSegment::from(&rest[..end]);
            rest = rest[end..].trim_start_matches('.');
            segment
        };
        here = here.and_then(|value| match &segment {
            PathSegment::Key(key) => value.get(key.as_str()),
            PathSegment::Index(index) => value.get(*index),
        });
        path.push(segment);
    }
    path
}

fn bracket_end(text: &str) -> Option<usize> {
    let mut quoted = false;
    text.char_indices().find_map(|(index, character)| {
        quoted ^= character == '"';
        (character == ']' && !quoted).then_some(index)
    })
}

/// Parses an index, a selector of an item of `list` such as `name="a",port=80`, or a key.
fn bracketed(inside: &str, list: Option<&Value>) -> PathSegment {
    if let Ok(index) = inside.parse::<usize>() {
        return index.into();
    }
    let items = list.and_then(Value::as_array);
    let index = items.and_then(|items| items.iter().position(|item| picks(inside, item)));
    index.map_or_else(|| PathSegment::from(inside.trim_matches('"')), PathSegment::from)
}

/// A key field that the item lacks may have a default.
fn picks(selector: &str, item: &Value) -> bool {
    let mut matched = false;
    selector.split(',').all(|part| {
        let Some((key, wanted)) = part.split_once('=') else { return false };
        let Ok(wanted) = serde_json::from_str::<Value>(wanted) else { return false };
        match if key.is_empty() { Some(item) } else { item.get(key) } {
            Some(found) => {
                matched = true;
                *found == wanted
            }
            None => true,
        }
    }) && matched
}

#[cfg(test)]
mod tests {
    use pushback_objects::source::display_path;
    use serde_json::json;

    use super::*;

    #[test]
    fn refusal_of_a_conversion_differs_from_an_unavailable_webhook() {
        let failed = |reason: &str| format!("conversion webhook for ex.com/v1, Kind=Cog failed: {reason}");
        assert!(refuses_conversion(&failed("size 666 has no equivalent")));
        for reason in ["Post \"https://127.0.0.1:1/\": connection refused", "service \"hook\" not found"] {
            assert!(!refuses_conversion(&failed(reason)), "{reason}");
        }
        assert!(!refuses_conversion("failed calling webhook \"a\": failed to call webhook: Post \"https://a\""));
    }

    #[test]
    fn the_servers_paths_are_read_back() {
        let read = |field: &str| path(field, &Value::Null);
        assert_eq!(display_path(&read("spec.containers[0].env[1].name")), "spec.containers[0].env[1].name");
        assert_eq!(display_path(&read(".spec.x")), "spec.x");
        assert_eq!(read("metadata.labels[a.b/c]").last(), Some(&PathSegment::from("a.b/c")));
        assert_eq!(read(""), Vec::new());
        assert_eq!(read("[").len(), 0);
        assert_eq!(read("a[\"]").len(), 1);
    }

    #[test]
    fn items_that_are_named_by_their_keys_are_found_in_the_manifest() {
        let manifest = json!({
            "containers": [{"name": "a"}, {"name": "b", "ports": [{"port": 1}, {"port": 80}, {"port": 80, "protocol": "UDP"}]}],
            "finalizers": ["x", "y"],
        });
        let read = |field: &str| display_path(&path(field, &manifest));
        assert_eq!(read(".containers[name=\"b\"].image"), "containers[1].image");
        assert_eq!(read(".containers[name=\"b\"].ports[port=80,protocol=\"TCP\"].x"), "containers[1].ports[1].x");
        assert_eq!(read(".containers[name=\"b\"].ports[port=80,protocol=\"UDP\"].x"), "containers[1].ports[1].x");
        assert_eq!(read(".finalizers[=\"y\"]"), "finalizers[1]");
    }

    #[test]
    fn every_field_of_a_strict_answer_is_a_cause() {
        let causes =
            causes("failed to create: strict decoding error: unknown field \"spec.a\", unknown field \"spec.b[0].c\"");
        assert_eq!(causes.iter().map(|cause| cause.field.as_str()).collect::<Vec<_>>(), ["spec.a", "spec.b[0].c"]);
    }

    #[test]
    fn every_field_of_a_patch_that_does_not_fit_is_a_cause() {
        let one = causes(
            "failed to create typed patch object (x/y; example.com/v1, Kind=W): .spec.new: field not declared in schema",
        );
        assert_eq!((one.len(), one[0].field.as_str(), one[0].reason.as_str()), (1, "spec.new", UNKNOWN_FIELD));
        let all = causes(
            "failed to create typed patch object (x/y; apps/v1, Kind=Deployment): errors:\n  \
             .spec.replica: field not declared in schema\n  \
             .spec.containers[name=\"a: b\"].x: field not declared in schema\n  \
             .spec.replicas: expected numeric (int or float), got string\n  \
             .spec.replicas: expected numeric (int or float), got string",
        );
        let told: Vec<_> = all.iter().map(|cause| (cause.field.as_str(), cause.reason == UNKNOWN_FIELD)).collect();
        assert_eq!(
            told,
            [("spec.replica", true), ("spec.containers[name=\"a: b\"].x", true), ("spec.replicas", false)]
        );
        assert_eq!(all[2].message, "expected numeric (int or float), got string");
    }

    #[test]
    fn a_warning_is_about_a_field() {
        assert_eq!(field_of_warning("unknown field \"spec.a[0].b\""), Some("spec.a[0].b"));
        assert_eq!(field_of_warning("spec.env[2]: hides previous definition of \"A\": x"), Some("spec.env[2]"));
        assert_eq!(field_of_warning("metadata.labels[a: b]: deprecated"), None);
        for other in ["v1 Endpoints is deprecated in v1.33+", "unable to say: why", "", ": ", "a: b"] {
            assert_eq!(field_of_warning(other), None, "{other}");
        }
    }

    #[test]
    fn other_messages_have_no_fields() {
        assert!(causes("spec.x: Required value").is_empty());
        assert!(causes("failed to create typed patch object ").is_empty());
    }
}
