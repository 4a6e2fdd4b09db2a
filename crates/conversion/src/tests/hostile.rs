//! Plans, definitions and objects that nobody would write: nothing panics, and nothing takes long.

use serde_json::{Map, Value, json};

use super::{converter, definition, load, object, plan};
use crate::{NoPrograms, path::FieldPath};

fn nested(depth: usize, leaf: Value, wrap: impl Fn(Value) -> Value) -> Value {
    (0..depth).fold(leaf, |inner, _| wrap(inner))
}

fn named(key: &str, value: Value) -> Value {
    Value::Object(Map::from_iter([(key.to_owned(), value)]))
}

#[test]
fn deep_schemas_and_deep_objects_are_converted() {
    let schema = |leaf: &str| {
        nested(
            90,
            json!({"type": leaf}),
            |inner| json!({"type": "object", "properties": {"in": inner, "x": {"type": "string"}}}),
        )
    };
    let converter = converter(
        &[("v1", json!({"in": schema("string")})), ("v2", json!({"in": schema("integer")}))],
        json!({"policy": {"unassessed": "stash"}}),
    );
    let value = nested(90, json!("leaf"), |inner| json!({"in": inner, "x": "1"}));
    let old = object("v1", json!({"in": value}));
    let stored = converter.to_storage(old.clone(), &NoPrograms).expect("a conversion").object;
    assert_eq!(converter.from_storage(stored, "v1", &NoPrograms).expect("a conversion").object, old);
    // Deeper than any schema: what has no schema is not looked into.
    let open =
        json!({"open": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}, "a": {"type": "string"}});
    let mut renamed = open.clone();
    renamed["b"] = renamed["a"].take();
    renamed.as_object_mut().expect("a map").shift_remove("a");
    let converter = super::converter(
        &[("v1", open), ("v2", renamed)],
        json!({
            "steps": [{"from": "v1", "to": "v2", "renames": {"spec.a": "spec.b"}}],
        }),
    );
    let deep = nested(500, json!(1), |inner| named("x", inner));
    let converted = converter.convert(object("v1", json!({"open": deep, "a": "1"})), "v2", &NoPrograms);
    assert_eq!(converted.expect("a conversion").object["spec"]["b"], "1");
}

#[test]
fn paths_of_any_length_are_read() {
    let long = vec!["a"; 20_000].join(".");
    assert_eq!(FieldPath::parse(&long).map(|path| path.steps().len()), Some(20_000));
    assert!(FieldPath::parse(&"[*]".repeat(10_000)).is_some());
    for text in ["[\"", "[\"\\ud800\"]", "\u{0}", "a[\"b\"]]", "😀.é"] {
        let _ = FieldPath::parse(text);
    }
}

#[test]
fn renames_in_a_circle_are_a_permutation() {
    let count = 500;
    let fields: Map<String, Value> =
        (0..count).map(|index| (format!("f{index}"), json!({"type": "integer"}))).collect();
    let renames: Map<String, Value> =
        (0..count).map(|index| (format!("spec.f{index}"), format!("spec.f{}", (index + 1) % count).into())).collect();
    let fields = Value::Object(fields);
    let converter = converter(
        &[("v1", fields.clone()), ("v2", fields)],
        json!({"steps": [{"from": "v1", "to": "v2", "renames": renames}]}),
    );
    let spec: Map<String, Value> = (0..count).map(|index| (format!("f{index}"), index.into())).collect();
    let old = object("v1", spec.into());
    let new = converter.convert(old.clone(), "v2", &NoPrograms).expect("a conversion").object;
    assert_eq!(new["spec"]["f0"], count - 1);
    assert_eq!(converter.convert(new, "v1", &NoPrograms).expect("a conversion").object, old);
}

#[test]
fn many_versions_of_a_wide_kind_are_compiled_once_and_quickly() {
    let fields = |version: usize| -> Value {
        let named = (0..300).map(|index| {
            let inner = json!({"type": "object", "properties": {format!("x{version}"): {"type": "string"}, "y": {"type": "string"}}});
            (format!("f{index}"), inner)
        });
        Value::Object(named.collect())
    };
    let versions: Vec<(String, Value)> = (1..=20).map(|version| (format!("v{version}"), fields(version))).collect();
    let versions: Vec<(&str, Value)> = versions.iter().map(|(name, fields)| (name.as_str(), fields.clone())).collect();
    let converter = converter(&versions, json!({"policy": {"unassessed": "stash"}}));
    let old = object("v1", json!({"f7": {"x1": "1", "y": "2"}}));
    let stored = converter.to_storage(old.clone(), &NoPrograms).expect("a conversion").object;
    assert_eq!(stored["spec"]["f7"], json!({"y": "2", "$propertyBag": {"x1": "1"}}));
    assert_eq!(converter.from_storage(stored, "v1", &NoPrograms).expect("a conversion").object, old);
}

#[test]
fn what_is_no_object_of_the_kind_is_refused() {
    let converter = converter(&[("v1", json!({})), ("v2", json!({}))], json!({}));
    for value in [
        json!(null),
        json!([]),
        json!("x"),
        json!({}),
        json!({"kind": "Test", "apiVersion": "v1"}),
        json!({"kind": "Test", "apiVersion": "example.com/v9"}),
        json!({"kind": "Other", "apiVersion": "example.com/v1"}),
        json!({"kind": ["Test"], "apiVersion": {"a": 1}}),
    ] {
        assert!(converter.convert(value.clone(), "v2", &NoPrograms).is_err(), "{value}");
    }
    assert!(converter.convert(object("v1", json!({})), "v9", &NoPrograms).is_err());
}

#[test]
fn values_of_the_wrong_type_go_through_every_operation() {
    let string = || json!({"type": "string"});
    let list = |items: Value| json!({"type": "array", "items": items});
    let entry = || json!({"type": "object", "properties": {"name": string(), "value": string()}});
    let converter = converter(
        &[
            (
                "v1",
                json!({"a": string(), "b": list(string()), "c": list(entry()), "d": entry(), "e": string(), "f": string()}),
            ),
            (
                "v2",
                json!({"a": {"type": "integer"}, "b": string(), "c": {"type": "object", "additionalProperties": string()},
                          "d": {"type": "object", "properties": {"name": string()}}, "e": string(), "g": {"type": "object", "properties": {"f": string()}}}),
            ),
        ],
        json!({"steps": [{"from": "v1", "to": "v2", "coerce": {"spec.a": "text"},
            "lists": {"spec.b": "unwrapList", "spec.c": {"listToMap": {"key": "name", "value": "value"}}},
            "removed": {"spec.d.value": {"reason": "x"}}, "moves": {"spec.f": "spec.g.f"}, "enums": {"spec.e": {"A": "B"}}}]}),
    );
    let values = [
        json!(1),
        json!(1.5),
        json!("x"),
        json!([]),
        json!([1]),
        json!([[]]),
        json!({}),
        json!({"name": 1}),
        json!([{"name": []}]),
        json!(true),
    ];
    for field in ["a", "b", "c", "d", "e", "f"] {
        for value in &values {
            let old = object("v1", json!({field: value}));
            let stored = converter.to_storage(old.clone(), &NoPrograms).expect("a conversion").object;
            converter.from_storage(stored, "v1", &NoPrograms).expect("a conversion");
        }
    }
    for spec in values {
        converter.convert(object("v1", spec), "v2", &NoPrograms).expect("a conversion");
    }
}

#[test]
fn a_bag_with_anything_in_it_does_no_harm() {
    let converter = converter(
        &[("v1", json!({"a": {"type": "integer"}, "b": {"type": "string"}})), ("v2", json!({"b": {"type": "string"}}))],
        json!({"policy": {"unassessed": "stash"}}),
    );
    for (bag, expected) in [
        (json!({"a": "{"}), json!({})),
        (json!({"a": "[]"}), json!({})),
        (json!({"a": 7}), json!({})),
        (json!({"a": "7", "b": "x", "@v1": "", "*@v1": "{}"}), json!({"a": 7})),
    ] {
        let stored = object("v2", json!({"$propertyBag": bag}));
        let back = converter.from_storage(stored, "v1", &NoPrograms).expect("a conversion").object;
        assert_eq!(back["spec"], expected, "{bag}");
    }
    let stored = object("v2", json!({"$propertyBag": 1}));
    let error = converter.from_storage(stored, "v1", &NoPrograms).expect_err("an error");
    assert_eq!(error.path, "spec.$propertyBag");
}

#[test]
fn definitions_without_sense_are_refused_or_taken_as_they_are() {
    let broken = [
        json!(null),
        json!({"metadata": {"name": "tests.example.com"}}),
        json!({"metadata": {"name": "tests.example.com"}, "spec": {"versions": [{"name": 1}, {}]}}),
    ];
    for value in broken {
        assert!(load(&plan(json!({})), &value).is_err(), "{value}");
    }
    let mut odd = definition(&[("v1", json!({})), ("v2", json!({}))]);
    for schema in [
        json!(1),
        json!({"properties": 1}),
        json!({"items": []}),
        json!({"type": "object", "properties": {"spec": 7}}),
        json!({}),
    ] {
        odd["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = schema;
        let _ = load(&plan(json!({})), &odd);
    }
}
