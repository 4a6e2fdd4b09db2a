//! Finds where two schemas of a version differ in a way that matters, without judging the difference.
//! Texts and spelled-out defaults do not count, nor does a new optional field that no old object can carry.

use std::collections::BTreeSet;

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

/// Keywords that no object is ever checked against.
const TEXTS: [&str; 5] = ["description", "title", "example", "externalDocs", "$schema"];
/// Keywords for which absent means `false`.
const FLAGS: [&str; 7] = [
    "nullable",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "uniqueItems",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-int-or-string",
    "x-kubernetes-embedded-resource",
];
/// Keywords that hold one schema, a list of them, and a map of them.
const ONE: [&str; 3] = ["items", "additionalProperties", "not"];
const MANY: [&str; 3] = ["allOf", "anyOf", "oneOf"];
const NAMED: &str = "properties";
/// Deeper schemas are not followed; the API server refuses such definitions long before.
const DEPTH: usize = 200;

/// One difference: where, and which keyword.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Difference {
    /// `^.spec.size`, the way CRD checkers write it.
    pub(super) path: String,
    /// `enum`, `type`…, `removed` or `added` for whole fields.
    pub(super) what: String,
    /// What stood there before.
    old: Option<Value>,
    /// What stands there now.
    new: Option<Value>,
}

/// A short name for a list of differences: the same differences have the same digest, other ones another.
pub(super) fn digest(differences: &[Difference]) -> String {
    let mut hasher = Sha256::new();
    for Difference { path, what, old, new } in differences {
        let sides = [old, new].map(|side| side.as_ref().map(Value::to_string).unwrap_or_default());
        for part in [path, what, &sides[0], &sides[1]] {
            hasher.update((part.len() as u64).to_be_bytes());
            hasher.update(part.as_bytes());
        }
    }
    hasher.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// What the definition as a whole says about fields that no schema names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unknown {
    /// They are dropped.
    Pruned,
    /// They are kept.
    Kept,
}

/// All differences, in the order of the old schema, then the new one. `before` is what the old definition did with
/// unknown fields: where it kept them, an old object may hold anything under a new field's name.
pub(super) fn differences(old: Option<&Value>, new: Option<&Value>, before: Unknown) -> Vec<Difference> {
    let mut walk = Walk { differences: Vec::new(), before };
    match (old, new) {
        (Some(old), Some(new)) => walk.schema(old, new, "^", 0),
        (None, None) => {}
        (Some(old), None) => walk.note("^", "removed", Some(old), None),
        (None, Some(new)) => walk.note("^", "added", None, Some(new)),
    }
    walk.differences
}

struct Walk {
    differences: Vec<Difference>,
    before: Unknown,
}

impl Walk {
    fn note(&mut self, path: &str, what: &str, old: Option<&Value>, new: Option<&Value>) {
        self.differences.push(Difference {
            path: path.to_owned(),
            what: what.to_owned(),
            old: old.cloned(),
            new: new.cloned(),
        });
    }

    fn schema(&mut self, old: &Value, new: &Value, path: &str, depth: usize) {
        if depth >= DEPTH {
            // Too deep to compare, so it counts as a difference.
            return self.note(path, "nested too deeply", None, None);
        }
        let (Value::Object(old), Value::Object(new)) = (old, new) else {
            if old != new {
                self.note(path, "schema", Some(old), Some(new));
            }
            return;
        };
        let keywords = old.keys().chain(new.keys().filter(|keyword| !old.contains_key(*keyword)));
        for keyword in keywords.filter(|keyword| !TEXTS.contains(&keyword.as_str())) {
            let keyword = keyword.as_str();
            match (old.get(keyword), new.get(keyword)) {
                (before, after) if keyword == NAMED => self.fields(old, new, before, after, path, depth),
                (Some(before @ Value::Object(_)), Some(after @ Value::Object(_))) if ONE.contains(&keyword) => {
                    self.schema(before, after, &format!("{path}.{keyword}"), depth + 1);
                }
                (Some(Value::Array(before)), Some(Value::Array(after)))
                    if MANY.contains(&keyword) && before.len() == after.len() =>
                {
                    for (index, (before, after)) in before.iter().zip(after).enumerate() {
                        self.schema(before, after, &format!("{path}.{keyword}[{index}]"), depth + 1);
                    }
                }
                (before, after) => {
                    if !same(keyword, before, after) {
                        self.note(path, keyword, before, after);
                    }
                }
            }
        }
    }

    fn fields(
        &mut self,
        old_parent: &Map<String, Value>,
        new_parent: &Map<String, Value>,
        old: Option<&Value>,
        new: Option<&Value>,
        path: &str,
        depth: usize,
    ) {
        let empty = Map::new();
        let old = old.and_then(Value::as_object).unwrap_or(&empty);
        let new = new.and_then(Value::as_object).unwrap_or(&empty);
        for (name, before) in old {
            let path = format!("{path}.{name}");
            match new.get(name) {
                Some(after) => self.schema(before, after, &path, depth + 1),
                None => self.note(&path, "removed", Some(before), None),
            }
        }
        for (name, after) in new.iter().filter(|(name, _)| !old.contains_key(*name)) {
            // Every object has these three, whatever the schema said of them; and metadata is never pruned.
            let built_in = path == "^" && ["apiVersion", "kind", "metadata"].contains(&name.as_str());
            let in_metadata = path.ends_with(".metadata");
            if built_in || in_metadata || !self.is_harmless(old_parent, new_parent, after) {
                self.note(&format!("{path}.{name}"), "added", None, Some(after));
            }
        }
    }

    /// Whether no object that the old schema allows can have the new field, or gets it by a default.
    /// That the field is not required shows in `required`, which is compared by itself.
    fn is_harmless(&self, old_parent: &Map<String, Value>, new_parent: &Map<String, Value>, field: &Value) -> bool {
        let is_object = |parent: &Map<String, Value>| parent.get("type").and_then(Value::as_str) == Some("object");
        let open = ["x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"];
        self.before == Unknown::Pruned
            && is_object(old_parent)
            && is_object(new_parent)
            && !old_parent.contains_key("additionalProperties")
            && open.iter().all(|keyword| same(keyword, old_parent.get(*keyword), None))
            && field.get("default").is_none()
    }
}

/// Whether a keyword means the same with both values.
fn same(keyword: &str, old: Option<&Value>, new: Option<&Value>) -> bool {
    if old == new {
        return true;
    }
    let means = |value: Option<&Value>, absent: &str| value.is_none_or(|value| value.as_str() == Some(absent));
    match keyword {
        _ if FLAGS.contains(&keyword) => {
            let set = |value: Option<&Value>| value.is_some_and(|value| value != &Value::Bool(false));
            !set(old) && !set(new)
        }
        // The API server treats a list without a type as atomic, and a map without one as granular.
        "x-kubernetes-list-type" => means(old, "atomic") && means(new, "atomic"),
        "x-kubernetes-map-type" => means(old, "granular") && means(new, "granular"),
        "required" => names(old) == names(new),
        "minimum" | "maximum" | "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties"
        | "maxProperties" | "multipleOf" => match (old, new) {
            (Some(Value::Number(old)), Some(Value::Number(new))) => old.as_f64() == new.as_f64(),
            _ => false,
        },
        _ => false,
    }
}

/// The names in a `required` list; order and repetition do not matter. `None` for anything that is no such list.
fn names(value: Option<&Value>) -> Option<BTreeSet<&str>> {
    match value {
        None => Some(BTreeSet::new()),
        Some(value) => value.as_array()?.iter().map(Value::as_str).collect(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn compare(old: &Value, new: &Value) -> Vec<String> {
        let root = |schema: &Value| json!({"type": "object", "properties": {"f": schema}});
        differences(Some(&root(old)), Some(&root(new)), Unknown::Pruned)
            .iter()
            .map(|difference| format!("{} {}", difference.path, difference.what))
            .collect()
    }

    #[test]
    fn what_no_object_is_checked_against_is_no_difference() {
        for (old, new) in [
            (json!({"type": "string", "description": "a"}), json!({"type": "string", "title": "b"})),
            (json!({"type": "array"}), json!({"type": "array", "x-kubernetes-list-type": "atomic"})),
            (json!({"type": "object", "x-kubernetes-map-type": "granular"}), json!({"type": "object"})),
            (json!({"type": "string", "nullable": false}), json!({"type": "string"})),
            (json!({"required": ["a", "b"]}), json!({"required": ["b", "a"]})),
            (json!({"required": []}), json!({})),
            (json!({"minimum": 1}), json!({"minimum": 1.0})),
            (json!({"properties": {}}), json!({})),
        ] {
            assert_eq!(compare(&old, &new), [""; 0], "{old} => {new}");
        }
    }

    #[test]
    fn every_other_difference_is_named_with_its_place() {
        for (old, new, expected) in [
            (json!({"type": "string"}), json!({"type": "integer"}), "^.f type"),
            (json!({"enum": ["a", "b"]}), json!({"enum": ["a"]}), "^.f enum"),
            (json!({"default": false}), json!({}), "^.f default"),
            (json!({"nullable": true}), json!({}), "^.f nullable"),
            (json!({}), json!({"required": ["a"]}), "^.f required"),
            (json!({"minimum": 1}), json!({"minimum": 1.5}), "^.f minimum"),
            (json!({"x-kubernetes-list-type": "set"}), json!({}), "^.f x-kubernetes-list-type"),
            (json!({"properties": {"a": {}}}), json!({}), "^.f.a removed"),
            // A field called like a text keyword is a field.
            (
                json!({"properties": {"title": {"type": "string"}}}),
                json!({"properties": {"title": {}}}),
                "^.f.title type",
            ),
            (
                json!({"items": {"type": "string"}}),
                json!({"items": {"format": "date", "type": "string"}}),
                "^.f.items format",
            ),
            (
                json!({"additionalProperties": {"type": "string"}}),
                json!({"additionalProperties": true}),
                "^.f additionalProperties",
            ),
            (json!({"oneOf": [{"maximum": 5}]}), json!({"oneOf": [{"maximum": 6}]}), "^.f.oneOf[0] maximum"),
            (json!({"oneOf": [{"maximum": 5}]}), json!({"oneOf": [{"maximum": 5}, {}]}), "^.f oneOf"),
            (json!({"x-kubernetes-validations": [{"rule": "a"}]}), json!({}), "^.f x-kubernetes-validations"),
            (json!({"something-new": 1}), json!({}), "^.f something-new"),
            (json!("text"), json!(7), "^.f schema"),
        ] {
            assert_eq!(compare(&old, &new), [expected], "{old} => {new}");
        }
    }

    #[test]
    fn a_new_field_is_harmless_only_where_no_old_object_can_have_it() {
        let closed = json!({"type": "object", "properties": {"a": {"type": "string"}}});
        let with = |mut schema: Value, field: Value| {
            schema["properties"]["new"] = field;
            schema
        };
        let plain = json!({"type": "object", "properties": {"inner": {"type": "string", "default": "x"}}});
        assert_eq!(compare(&closed, &with(closed.clone(), plain.clone())), [""; 0]);
        let defaulted = json!({"type": "string", "default": "x"});
        assert_eq!(compare(&closed, &with(closed.clone(), defaulted)), ["^.f.new added"]);
        for (keyword, value) in [
            ("x-kubernetes-preserve-unknown-fields", json!(true)),
            ("x-kubernetes-embedded-resource", json!(true)),
            ("type", json!("string")),
        ] {
            let mut open = closed.clone();
            open[keyword] = value;
            assert_eq!(compare(&open, &with(open.clone(), plain.clone())), ["^.f.new added"], "{keyword}");
        }
        let mut required = with(closed.clone(), plain.clone());
        required["required"] = json!(["new"]);
        assert_eq!(compare(&closed, &required), ["^.f required"]);
        let map = json!({"type": "object", "additionalProperties": {"type": "string"}});
        let turned = json!({"type": "object", "properties": {"new": {"type": "string"}}});
        assert_eq!(compare(&map, &turned), ["^.f additionalProperties", "^.f.new added"]);
        let kept = differences(Some(&closed), Some(&with(closed.clone(), plain)), Unknown::Kept);
        assert_eq!(kept.len(), 1);
    }

    /// Schemas and things that are none, with keywords that interact.
    fn schemas() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(json!(null)),
            Just(json!(true)),
            Just(json!({"type": "string"})),
            Just(json!({"type": "object", "description": "x"})),
            Just(json!({"enum": ["a"], "nullable": false})),
        ];
        let keyword = prop_oneof![
            Just("items"),
            Just("additionalProperties"),
            Just("not"),
            Just("default"),
            Just("required"),
            Just("title"),
        ];
        leaf.prop_recursive(4, 24, 3, move |inner| {
            let fields = prop::collection::btree_map("(a|b|metadata|title)", inner.clone(), 0..3);
            prop_oneof![
                (keyword.clone(), inner.clone()).prop_map(|(keyword, schema)| json!({keyword: schema})),
                fields.prop_map(|fields| json!({"type": "object", "properties": fields})),
                prop::collection::vec(inner, 0..3).prop_map(|branches| json!({"anyOf": branches})),
            ]
        })
    }

    proptest! {
        #[test]
        fn any_two_schemas_compare_and_each_equals_itself(old in schemas(), new in schemas()) {
            for before in [Unknown::Kept, Unknown::Pruned] {
                assert_eq!(differences(Some(&old), Some(&old), before), []);
                // Where nothing may be assumed of old objects, a difference is one from either side.
                let there = differences(Some(&old), Some(&new), Unknown::Kept).is_empty();
                let back = differences(Some(&new), Some(&old), Unknown::Kept).is_empty();
                assert_eq!(there, back);
            }
        }

        #[test]
        fn texts_never_matter(schema in schemas(), text in ".{0,5}") {
            let Value::Object(mut described) = schema.clone() else { return Ok(()) };
            described.insert("description".to_owned(), text.into());
            assert_eq!(differences(Some(&schema), Some(&Value::Object(described)), Unknown::Kept), []);
        }
    }

    #[test]
    fn metadata_is_there_before_a_schema_names_its_fields() {
        let old = json!({"type": "object", "properties": {"metadata": {"type": "object"}}});
        let new = json!({"type": "object", "properties": {
            "metadata": {"type": "object", "properties": {"name": {"type": "string", "maxLength": 3}}},
            "kind": {"type": "string", "enum": ["Foo"]},
        }});
        let found: Vec<String> =
            differences(Some(&old), Some(&new), Unknown::Pruned).into_iter().map(|found| found.path).collect();
        assert_eq!(found, ["^.metadata.name", "^.kind"]);
    }

    #[test]
    fn a_schema_that_comes_or_goes_is_a_difference() {
        let schema = json!({"type": "object"});
        assert_eq!(differences(None, None, Unknown::Pruned), []);
        assert_eq!(differences(None, Some(&schema), Unknown::Pruned)[0].what, "added");
        assert_eq!(differences(Some(&schema), None, Unknown::Pruned)[0].what, "removed");
    }

    #[test]
    fn other_differences_have_another_digest() {
        let of = |old: &str, new: &str| {
            let schema = |word: &str| json!({"enum": [word]});
            digest(&differences(Some(&schema(old)), Some(&schema(new)), Unknown::Pruned))
        };
        assert_eq!(of("a", "b"), of("a", "b"));
        assert_ne!(of("a", "b"), of("a", "c"));
        assert_ne!(of("a", "b"), of("b", "a"));
    }

    #[test]
    fn a_schema_of_any_depth_ends() {
        let nest = |leaf: &str| (0..300).fold(json!({"type": leaf}), |inner, _| json!({"items": inner}));
        let found = differences(Some(&nest("string")), Some(&nest("integer")), Unknown::Pruned);
        assert_eq!(found.len(), 1);
    }
}
