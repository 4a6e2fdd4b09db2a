//! Which values are secret, and what is shown in their place.
//! Equal values get equal numbers, so that a reader can still see what changed.

use std::collections::{BTreeMap, BTreeSet};

use pushback_objects::PathSegment;
use pushback_objects::object::ObjectExt;
use pushback_objects::source::value_at;
use pushback_system::redact::Secrets;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::matcher::matches_any;
use super::path::{leaves, resolve, set_at};
use super::{PathPart, PathRule};

/// Annotations in which tools keep a copy of the whole object, including its secret values.
const COPIES: [&str; 4] = [
    "kapp.k14s.io/original",
    "kapp.k14s.io/original-diff",
    "kapp.k14s.io/original-diff-full",
    "kubectl.kubernetes.io/last-applied-configuration",
];

/// Fields of a Secret that may be shown in addition to the masked ones.
const SECRET_FIELDS: [&str; 5] = ["apiVersion", "kind", "metadata", "type", "immutable"];

/// Finds and replaces secret values by the `diffMaskRules`.
#[derive(Clone, Debug, Default)]
pub struct Masker {
    rules: Vec<PathRule>,
}

/// The numbers assigned to values; keep one for the whole run, so that a value has the same number everywhere.
/// It holds digests, never values.
#[derive(Clone, Debug)]
pub struct MaskNumbers {
    numbers: BTreeMap<[u8; 32], usize>,
    text: fn(usize) -> String,
}

impl Default for MaskNumbers {
    fn default() -> Self {
        Self::shown_as(|number| format!("(secret #{number})"))
    }
}

impl Masker {
    /// Builds a masker from `diffMaskRules`.
    #[must_use]
    pub fn new(rules: &[PathRule]) -> Self {
        Self { rules: rules.to_vec() }
    }

    /// Every leaf of the object that must be masked, once: those that the rules name and, if any rule applies to the
    /// object, the copies of it in other tools' annotations.
    #[must_use]
    pub fn masked_paths(&self, object: &Value) -> Vec<Vec<PathSegment>> {
        let mut paths = Vec::new();
        let mut seen = BTreeSet::new();
        let mut add = |path: Vec<PathSegment>| {
            if seen.insert(path.clone()) {
                paths.push(path);
            }
        };
        let mut concerned = false;
        for rule in self.rules.iter().filter(|rule| matches_any(&rule.matchers, object)) {
            concerned = true;
            resolve(&rule.path, object).iter().flat_map(|place| leaves(object, place)).for_each(&mut add);
            // If the object does not have the expected shape, the value in the way may be the secret.
            for (length, part) in rule.path.iter().enumerate().skip(1) {
                let places = resolve(&rule.path[..length], object);
                let odd =
                    places.iter().filter(|place| value_at(object, place).is_some_and(|value| !leads_on(part, value)));
                odd.flat_map(|place| leaves(object, place)).for_each(&mut add);
            }
        }
        if concerned {
            // A misspelt `stringData` holds the same values, and is shown before the server refuses it.
            if object.text("/apiVersion") == "v1" && object.text("/kind") == "Secret" {
                let fields = object.as_object().into_iter().flatten().map(|(key, _)| key.as_str());
                for field in fields.filter(|field| !SECRET_FIELDS.contains(field)) {
                    leaves(object, &[field.into()]).into_iter().for_each(&mut add);
                }
            }
            for annotation in COPIES {
                leaves(object, &["metadata".into(), "annotations".into(), annotation.into()])
                    .into_iter()
                    .for_each(&mut add);
            }
        }
        paths
    }

    /// The paths of these objects that must be masked.
    #[must_use]
    pub fn cover<'a>(&self, objects: impl IntoIterator<Item = &'a Value>) -> Cover {
        Cover { hidden: objects.into_iter().flat_map(|object| self.masked_paths(object)).collect() }
    }

    /// The value at a path of the object, with every secret leaf replaced.
    #[must_use]
    pub fn shown(&self, object: &Value, path: &[PathSegment], numbers: &mut MaskNumbers) -> Option<Value> {
        let mut value = value_at(object, path)?.clone();
        for hidden in self.masked_paths(object) {
            let Some(below) = hidden.strip_prefix(path) else { continue };
            if let Some(secret) = value_at(object, &hidden) {
                let placeholder = Value::String(numbers.placeholder(secret));
                set_at(&mut value, below, placeholder);
            }
        }
        Some(value)
    }

    /// A text about these objects without their masked values: servers and webhooks quote what they refuse.
    #[must_use]
    pub fn hide(&self, objects: &[&Value], text: &str) -> String {
        let places = objects.iter().map(|object| (object, self.masked_paths(object)));
        let values: Vec<&Value> = places
            .flat_map(|(object, paths)| paths.into_iter().filter_map(move |path| value_at(object, &path)))
            .collect();
        if values.is_empty() { text.to_owned() } else { Secrets::of_values(values.into_iter()).mask(text) }
    }

    /// Whether a masked leaf of one of the objects has this value.
    #[must_use]
    pub fn masks_value(&self, objects: &[&Value], value: &Value) -> bool {
        let is_same = |object: &&Value, path: &Vec<PathSegment>| value_at(object, path) == Some(value);
        objects.iter().any(|object| self.masked_paths(object).iter().any(|path| is_same(object, path)))
    }

    /// Replaces every such leaf by `(secret #1)`.
    pub fn mask(&self, object: &mut Value, numbers: &mut MaskNumbers) {
        for path in self.masked_paths(object) {
            if let Some(value) = value_at(object, &path) {
                let placeholder = numbers.placeholder(value);
                set_at(object, &path, Value::String(placeholder));
            }
        }
    }
}

/// Paths that must be masked.
#[derive(Clone, Debug, Default)]
pub struct Cover {
    hidden: BTreeSet<Vec<PathSegment>>,
}

impl Cover {
    /// Whether a path is masked, itself or as a part of a masked value.
    #[must_use]
    pub fn hides(&self, path: &[PathSegment]) -> bool {
        self.hidden.iter().any(|hidden| path.starts_with(hidden))
    }
}

impl MaskNumbers {
    /// With another text around the number.
    #[must_use]
    pub fn shown_as(text: fn(usize) -> String) -> Self {
        Self { numbers: BTreeMap::new(), text }
    }

    /// The text shown in place of a value. It omits the length, which reveals much about a PIN or a key.
    pub fn placeholder(&mut self, value: &Value) -> String {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let next = self.numbers.len() + 1;
        // The type is included: the string "1" and the number 1 are different values.
        let digest = Sha256::new().chain_update([u8::from(value.is_string())]).chain_update(&text).finalize();
        let number = *self.numbers.entry(digest.into()).or_insert(next);
        (self.text)(number)
    }
}

/// Whether a value could contain what a part of a path refers to.
fn leads_on(part: &PathPart, value: &Value) -> bool {
    match part {
        PathPart::Key(_) | PathPart::Regex(_) => value.is_object() || value.is_null(),
        PathPart::Index(_) | PathPart::AllIndexes => value.is_array() || value.is_null(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::config::defaults::defaults;
    use crate::config::{Matcher, PathPart};

    #[test]
    fn secrets_are_masked_with_equal_numbers_for_equal_values() {
        let masker = Masker::new(&defaults().diff_mask_rules);
        let mut numbers = MaskNumbers::default();
        let mut secret = json!({
            "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
            "metadata": {"name": "login", "annotations": {
                "kapp.k14s.io/original": "{\"data\":{\"password\":\"aHVudGVyMg==\"}}", "note": "shown",
            }},
            "data": {"password": "aHVudGVyMg==", "again": "aHVudGVyMg==", "pin": "MQ==", "number": 1},
            "stringData": {"token": "1"},
        });
        masker.mask(&mut secret, &mut numbers);
        assert_eq!(
            secret["data"],
            json!({
                "password": "(secret #1)", "again": "(secret #1)", "pin": "(secret #2)",
                "number": "(secret #3)",
            })
        );
        assert_eq!(secret["stringData"], json!({"token": "(secret #4)"}));
        assert_eq!(secret["metadata"]["annotations"]["kapp.k14s.io/original"], "(secret #5)");
        assert_eq!(secret["metadata"]["annotations"]["note"], "shown");
        let mut other = json!({"apiVersion": "v1", "kind": "Secret", "data": {"pin": "MQ=="}});
        masker.mask(&mut other, &mut numbers);
        assert_eq!(other["data"]["pin"], "(secret #2)");
    }

    #[test]
    fn a_text_that_quotes_a_masked_value_loses_it() {
        let masker = Masker::new(&defaults().diff_mask_rules);
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "data": {"key": "aHVudGVyMg=="}});
        let quoted = "data[key]: Invalid value: \"hunter2\": too short, or aHVudGVyMg==";
        assert_eq!(masker.hide(&[&secret], quoted), "data[key]: Invalid value: ***: too short, or ***");
        let other = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"key": "hunter2"}});
        assert_eq!(masker.hide(&[&other], quoted), quoted);
    }

    #[test]
    fn a_misspelt_field_of_a_secret_is_masked_too() {
        let masker = Masker::new(&defaults().diff_mask_rules);
        let mut secret =
            json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "stringDta": {"key": "hunter2"}});
        masker.mask(&mut secret, &mut MaskNumbers::default());
        assert_eq!((&secret["stringDta"]["key"], &secret["type"]), (&json!("(secret #1)"), &json!("Opaque")));
    }

    #[test]
    fn data_that_is_not_a_map_is_masked_whole() {
        let masker = Masker::new(&defaults().diff_mask_rules);
        let mut secret = json!({"apiVersion": "v1", "kind": "Secret", "data": "oops"});
        masker.mask(&mut secret, &mut MaskNumbers::default());
        assert_eq!(secret["data"], "(secret #1)");
    }

    #[test]
    fn other_objects_are_left_alone() {
        let masker = Masker::new(&defaults().diff_mask_rules);
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"},
            "metadata": {"annotations": {"kapp.k14s.io/original": "{}"}}});
        assert!(masker.masked_paths(&object).is_empty());
    }

    #[test]
    fn a_value_that_stands_where_the_path_goes_on_is_masked() {
        let path = vec![PathPart::Key("spec".into()), PathPart::Key("list".into()), PathPart::AllIndexes];
        let masker = Masker::new(&[PathRule { path, matchers: defaults().diff_mask_rules[0].matchers.clone() }]);
        let masked = |spec: Value| {
            let mut object = json!({"apiVersion": "v1", "kind": "Secret", "spec": spec});
            // Tests the rule alone: a Secret has more masked fields.
            object["kind"] = json!("Secret");
            masker.masked_paths(&object).len()
        };
        assert_eq!([masked(json!("hunter2")), masked(json!({"list": {"a": "b", "c": "d"}}))], [1, 2]);
    }

    #[test]
    fn every_leaf_below_the_path_is_masked_once() {
        let rule = |parts: &[PathPart]| PathRule { path: parts.to_vec(), matchers: vec![Matcher::All] };
        let (spec, list) = (PathPart::Key("spec".into()), PathPart::Key("list".into()));
        let masker = Masker::new(&[rule(std::slice::from_ref(&spec)), rule(&[spec, list, PathPart::AllIndexes])]);
        let mut object = json!({"spec": {"a": true, "list": [{"b": "x"}, "y"], "empty": {}}});
        masker.mask(&mut object, &mut MaskNumbers::default());
        assert_eq!(
            object,
            json!({"spec": {"a": "(secret #1)",
            "list": [{"b": "(secret #2)"}, "(secret #3)"], "empty": {}}})
        );
    }
}
