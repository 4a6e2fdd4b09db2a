//! What every object must have: a version, a kind, a name, and strings where the API accepts only strings.

use pushback_objects::Positions;
use pushback_objects::object::describe;
use pushback_objects::source::display_path;
use serde_json::{Map, Value};

use super::path::path;
use crate::input::InputError;

/// Every problem with an object's identity. Values are never quoted: they may be secret.
pub(super) fn validate(value: &Value, positions: &Positions) -> Vec<InputError> {
    let mut checker = Checker { positions, errors: Vec::new() };
    let Some(object) = value.as_object() else {
        checker.fail(
            &[],
            format!("expected a Kubernetes object (a map), found {}", describe(value)),
            &["Every document starts with `apiVersion:` and `kind:`."],
        );
        return checker.errors;
    };
    checker.api_version(object);
    checker.kind(object);
    if object.get("apiVersion").and_then(Value::as_str).is_some_and(|text| text.starts_with("kustomize.config.k8s.io/"))
    {
        let message = "a kustomization cannot be applied".to_owned();
        checker.fail(&[], message, &["Render it, as in `kustomize build DIRECTORY | pushback apply -f - …`."]);
        return checker.errors;
    }
    match object.get("metadata") {
        Some(Value::Object(metadata)) => checker.metadata(metadata),
        None | Some(Value::Null) => {
            checker.fail(&[], "metadata.name is missing".to_owned(), &["Add `metadata:` with `name:`."]);
        }
        Some(other) => {
            checker.fail(&["metadata"], format!("metadata must be a map, found {}", describe(other)), &[]);
        }
    }
    checker.errors
}

struct Checker<'a> {
    positions: &'a Positions,
    errors: Vec<InputError>,
}

impl Checker<'_> {
    fn api_version(&mut self, object: &Map<String, Value>) {
        let Some(text) = self.text(object, &["apiVersion"], "Add it, such as `apiVersion: apps/v1`.") else { return };
        let (group, version) = text.split_once('/').unwrap_or(("-", text));
        let plain = |part: &str| {
            !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-'))
        };
        if !plain(group) || !plain(version) {
            self.fail(&["apiVersion"], "apiVersion is malformed".to_owned(), &["Write `v1`, or `group/version`."]);
        }
    }

    fn kind(&mut self, object: &Map<String, Value>) {
        let Some(text) = self.text(object, &["kind"], "Add it, such as `kind: Deployment`.") else { return };
        if !text.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            self.fail(
                &["kind"],
                "kind is malformed".to_owned(),
                &["A kind has only letters and digits, as in `ConfigMap`."],
            );
        }
    }

    fn metadata(&mut self, metadata: &Map<String, Value>) {
        let has_name = metadata.get("name").is_some_and(|name| !name.is_null());
        if !has_name && metadata.contains_key("generateName") {
            self.fail(
                &["metadata", "generateName"],
                "metadata.generateName is not supported".to_owned(),
                &["Give it a fixed `metadata.name`: an object that gets a new name each time can never be updated."],
            );
        } else if let Some(name) = self.text(metadata, &["metadata", "name"], "Add `name:` under `metadata:`.") {
            self.name(&["metadata", "name"], name);
        }
        if metadata.get("namespace").is_some_and(|namespace| !namespace.is_null() && namespace != "")
            && let Some(namespace) = self.text(metadata, &["metadata", "namespace"], "")
        {
            self.name(&["metadata", "namespace"], namespace);
        }
        for field in ["labels", "annotations"] {
            self.text_map(metadata, field);
        }
    }

    /// Checks the rules that hold for names of every kind; the server checks those of each kind.
    fn name(&mut self, at: &[&str], name: &str) {
        const MAX_LENGTH: usize = 253;
        let field = at.join(".");
        if let Some(c) = name.chars().find(|c| c.is_control()) {
            let message = format!("{field} holds the control character U+{:04X}", u32::from(c));
            self.fail(at, message, &["Remove it."]);
        } else if let Some(c) = name.chars().find(|c| matches!(c, '/' | '%') || c.is_whitespace()) {
            let shown = if c.is_whitespace() { "white space".to_owned() } else { format!("`{c}`") };
            self.fail(at, format!("{field} must not hold {shown}"), &["Use lower-case letters, digits, `-` and `.`."]);
        } else if matches!(name, "." | "..") {
            self.fail(at, format!("{field} must not be `{name}`"), &[]);
        } else if name.len() > MAX_LENGTH {
            let message = format!("{field} has {} bytes; at most {MAX_LENGTH} are allowed", name.len());
            self.fail(at, message, &["Shorten it."]);
        }
    }

    /// A non-empty string; anything else is noted as an error.
    fn text<'v>(&mut self, object: &'v Map<String, Value>, at: &[&str], hint: &str) -> Option<&'v str> {
        let field = at.join(".");
        match object.get(*at.last()?) {
            Some(Value::String(text)) if !text.is_empty() => return Some(text),
            None => self.fail(&at[..at.len() - 1], format!("{field} is missing"), &[hint]),
            Some(Value::Null) => self.fail(at, format!("{field} is missing"), &[hint]),
            Some(Value::String(_)) => self.fail(at, format!("{field} is empty"), &["Is a variable unset?"]),
            Some(other) => self.not_text(at, other),
        }
        None
    }

    fn text_map(&mut self, metadata: &Map<String, Value>, field: &str) {
        match metadata.get(field) {
            None | Some(Value::Null) => {}
            Some(Value::Object(entries)) => {
                for (key, value) in entries.iter().filter(|(_, value)| !value.is_string()) {
                    self.not_text(&["metadata", field, key], value);
                }
            }
            Some(other) => {
                let message = format!("metadata.{field} must be a map, found {}", describe(other));
                self.fail(&["metadata", field], message, &["Write `key: \"value\"` lines under it."]);
            }
        }
    }

    fn not_text(&mut self, at: &[&str], found: &Value) {
        let message = format!("{} must be a string, found {}", display_path(&path(at)), describe(found));
        let hint = match found {
            Value::Number(_) | Value::Bool(_) => "Quote it.",
            Value::Null => "Write `\"\"` for empty text, or remove the line.",
            _ => "Write text; structured values can be given as a block (`|`).",
        };
        self.fail(at, message, &[hint]);
    }

    fn fail(&mut self, at: &[&str], message: String, hints: &[&str]) {
        let position = self.positions.locate(&path(at));
        let hints = hints.iter().filter(|hint| !hint.is_empty()).map(|&hint| hint.to_owned()).collect();
        self.errors.push(InputError { message, position, hints });
    }
}
