//! Content that no API server accepts: Secrets that are not base64, and values that must be strings. A folder has no server
//! that would find it, nor fields that a server drops unless it is strict: misspelt ones of Secrets and ConfigMaps, and
//! directives of patches.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use pushback_objects::object::describe;
use pushback_objects::source::display_path;
use pushback_objects::suggest::nearest;
use pushback_objects::{ObjectExt, PathSegment, Positions};
use serde_json::{Map, Value};

use super::path::path;
use crate::input::InputError;

/// Base64 as Go reads it: bits after the last byte do not count.
const GO: GeneralPurpose =
    GeneralPurpose::new(&alphabet::STANDARD, GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true));

/// Fields of a Secret and of a ConfigMap that hold their content.
const SECRET_FIELDS: [&str; 4] = ["data", "stringData", "type", "immutable"];
const CONFIG_MAP_FIELDS: [&str; 3] = ["data", "binaryData", "immutable"];

/// Directives of a strategic merge patch.
const DIRECTIVES: [&str; 4] = ["$patch", "$retainKeys", "$setElementOrder/", "$deleteFromPrimitiveList/"];

/// Types of Secrets that hold JSON, with the key.
const JSON_TYPES: [(&str, &str); 2] =
    [("kubernetes.io/dockerconfigjson", ".dockerconfigjson"), ("kubernetes.io/dockercfg", ".dockercfg")];

/// Finds what no API server accepts. Values are never quoted: they may be secret.
#[must_use]
pub fn check(object: &Value, positions: &Positions) -> Vec<InputError> {
    let mut checker = Checker { positions, errors: Vec::new() };
    match (object.text("/apiVersion"), object.text("/kind"), object.as_object()) {
        ("v1", "Secret", Some(fields)) => checker.secret(fields),
        ("v1", "ConfigMap", Some(fields)) => {
            checker.strings(fields, "data");
            checker.base64(fields, "binaryData");
        }
        _ => {}
    }
    checker.errors
}

/// Finds fields that an API server refuses if it is strict, and drops otherwise.
#[must_use]
pub fn unknown_fields(object: &Value, positions: &Positions) -> Vec<InputError> {
    let mut checker = Checker { positions, errors: Vec::new() };
    if is_builtin(object) {
        checker.directives(object, &mut Vec::new());
    }
    match (object.text("/apiVersion"), object.text("/kind"), object.as_object()) {
        ("v1", "Secret", Some(fields)) => checker.misspelt(fields, "Secret", &SECRET_FIELDS),
        ("v1", "ConfigMap", Some(fields)) => checker.misspelt(fields, "ConfigMap", &CONFIG_MAP_FIELDS),
        _ => {}
    }
    checker.errors
}

/// Returns whether Kubernetes itself defines the object's fields; those of a CRD may have any name.
fn is_builtin(object: &Value) -> bool {
    let group = object.text("/apiVersion").split_once('/').map_or("", |(group, _)| group);
    object.text("/kind") != "CustomResourceDefinition" && (!group.contains('.') || group.ends_with(".k8s.io"))
}

struct Checker<'a> {
    positions: &'a Positions,
    errors: Vec<InputError>,
}

impl Checker<'_> {
    fn fail(&mut self, at: &[PathSegment], message: String, hint: &str) {
        let position = self.positions.locate(at);
        self.errors.push(InputError { message, position, hints: vec![hint.to_owned()] });
    }

    fn directives(&mut self, value: &Value, at: &mut Vec<PathSegment>) {
        let children: Vec<(PathSegment, &Value)> = match value {
            Value::Object(fields) => fields.iter().map(|(key, child)| (key.as_str().into(), child)).collect(),
            Value::Array(items) => items.iter().enumerate().map(|(index, child)| (index.into(), child)).collect(),
            _ => return,
        };
        for (segment, child) in children {
            at.push(segment);
            let directive = match at.last() {
                Some(PathSegment::Key(key)) => {
                    DIRECTIVES.iter().any(|it| key == it || (it.ends_with('/') && key.starts_with(it)))
                }
                _ => false,
            };
            if directive {
                let message = format!("{} belongs to a patch, and this is a whole object", display_path(at));
                self.fail(at, message, "Render it with `kustomize build`, or remove the directive.");
            } else {
                self.directives(child, at);
            }
            at.pop();
        }
    }

    /// Fields that differ from a known one by their letter case or by a slip.
    fn misspelt(&mut self, fields: &Map<String, Value>, kind: &str, known: &[&str]) {
        let common = ["apiVersion", "kind", "metadata"];
        let unknown = |key: &&String| !common.contains(&key.as_str()) && !known.contains(&key.as_str());
        for key in fields.keys().filter(unknown) {
            if let Some(meant) = nearest(key, known.iter().copied()) {
                let message = format!("a {kind} has no field {key}; did you mean {meant}?");
                self.fail(&path(&[key]), message, &format!("Write `{meant}:`."));
            }
        }
    }

    fn secret(&mut self, fields: &Map<String, Value>) {
        self.base64(fields, "data");
        let wanted = fields.get("type").and_then(Value::as_str).unwrap_or_default();
        for (_, key) in JSON_TYPES.iter().filter(|(name, _)| *name == wanted) {
            let content = |field: &str| fields.get(field).and_then(|data| data.get(key)).and_then(Value::as_str);
            let encoded = content("data").and_then(decoded);
            let plain = content("stringData").map(|text| text.as_bytes().to_vec());
            let is_map = |bytes: &Vec<u8>| serde_json::from_slice::<Map<String, Value>>(bytes).is_ok();
            let field = if plain.is_some() { "stringData" } else { "data" };
            if plain.or(encoded).is_some_and(|bytes| !is_map(&bytes)) {
                let at = path(&[field, key]);
                let message = format!("{} is not a JSON object, which type {wanted} requires", display_path(&at));
                self.fail(
                    &at,
                    message,
                    "`kubectl create secret docker-registry NAME --dry-run=client -o yaml` prints one.",
                );
            }
        }
    }

    fn strings(&mut self, fields: &Map<String, Value>, field: &str) {
        for (key, value) in fields.get(field).and_then(Value::as_object).into_iter().flatten() {
            if !value.is_string() && !value.is_null() {
                let at = path(&[field, key]);
                let message = format!("{} must be a string, found {}", display_path(&at), describe(value));
                self.fail(&at, message, "Quote it.");
            }
        }
    }

    fn base64(&mut self, fields: &Map<String, Value>, field: &str) {
        for (key, value) in fields.get(field).and_then(Value::as_object).into_iter().flatten() {
            let at = path(&[field, key]);
            match value {
                Value::Null => {}
                Value::String(text) if decoded(text).is_some() => {}
                Value::String(_) => {
                    let message = format!("{} is not base64", display_path(&at));
                    let way = if field == "data" {
                        "Write the plain value under `stringData:`, or encode it."
                    } else {
                        "Encode it."
                    };
                    self.fail(&at, message, way);
                }
                other => {
                    let message =
                        format!("{} must be a string in base64, found {}", display_path(&at), describe(other));
                    self.fail(&at, message, "Encode it as base64.");
                }
            }
        }
    }
}

/// The bytes of base64 as Kubernetes decodes it: line breaks are ignored.
fn decoded(text: &str) -> Option<Vec<u8>> {
    let text: String = text.chars().filter(|c| !matches!(c, '\r' | '\n')).collect();
    GO.decode(text).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn messages(fields: &Value) -> Vec<String> {
        let mut object = json!({"apiVersion": "v1", "metadata": {"name": "a"}});
        for (key, value) in fields.as_object().expect("fields") {
            object[key] = value.clone();
        }
        let positions = Positions::of_file("a.yaml");
        let errors = check(&object, &positions).into_iter().chain(unknown_fields(&object, &positions));
        errors.map(|error| error.message).collect()
    }

    #[test]
    fn secret_that_no_server_accepts_is_reported_without_its_value() {
        for (fields, expected) in [
            (json!({"data": {"a": "not base64!"}}), vec!["data.a is not base64"]),
            (json!({"data": {"a": true}}), vec!["data.a must be a string in base64, found a boolean"]),
            (json!({"data": {"a": "YQ==\n", "b": null, "c": ""}}), vec![]),
            (json!({"data": {"a": "YWJj\r\nZGVm"}}), vec![]),
            (json!({"data": {"a": "YR=="}}), vec![]),
            (json!({"stringdata": {"a": "x"}}), vec!["a Secret has no field stringdata; did you mean stringData?"]),
            (json!({"Data": {}}), vec!["a Secret has no field Data; did you mean data?"]),
            (
                json!({"type": "kubernetes.io/dockerconfigjson", "data": {".dockerconfigjson": "bm90IGpzb24="}}),
                vec![
                    "data[\".dockerconfigjson\"] is not a JSON object, which type kubernetes.io/dockerconfigjson requires",
                ],
            ),
            (json!({"type": "kubernetes.io/dockerconfigjson", "data": {".dockerconfigjson": "e30="}}), vec![]),
            (
                json!({"type": "kubernetes.io/dockercfg", "stringData": {".dockercfg": "[]"}}),
                vec!["stringData[\".dockercfg\"] is not a JSON object, which type kubernetes.io/dockercfg requires"],
            ),
        ] {
            let mut secret = json!({"kind": "Secret"});
            secret.as_object_mut().expect("a map").extend(fields.as_object().expect("a map").clone());
            assert_eq!(messages(&secret), expected, "{fields}");
        }
    }

    #[test]
    fn config_map_values_must_be_strings() {
        assert_eq!(
            messages(&json!({"kind": "ConfigMap", "data": {"a": true, "b": "x", "c": null}})),
            ["data.a must be a string, found a boolean"]
        );
        assert_eq!(messages(&json!({"kind": "ConfigMap", "binaryData": {"a": "%"}})), ["binaryData.a is not base64"]);
    }

    #[test]
    fn directives_of_patches_are_reported_in_kinds_of_kubernetes() {
        let patch = json!({"containers": [{"$patch": "delete", "name": "a"}]});
        assert_eq!(
            messages(&json!({"kind": "Pod", "spec": patch})),
            ["spec.containers[0].$patch belongs to a patch, and this is a whole object"]
        );
        assert_eq!(messages(&json!({"kind": "Foo", "apiVersion": "ex.com/v1", "spec": patch})), Vec::<String>::new());
    }
}
