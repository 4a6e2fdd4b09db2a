//! The order of the steps and the quirks of each, as observed on a real server.

use serde_json::json;

use super::*;
use crate::path::display_path;
use crate::schema::testing::resource;

/// A resource schema whose `spec` has this schema.
fn of_spec(spec: Value) -> Schema {
    Schema::of(&json!({"type": "object", "properties": {"spec": spec}}))
}

fn object(spec: Value) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Test", "metadata": {"name": "a"}, "spec": spec})
}

fn created(schema: Value, spec: Value) -> Admission {
    create(&resource(&of_spec(schema)), Server::default(), &object(spec))
}

fn paths(paths: &[Path]) -> Vec<String> {
    paths.iter().map(|path| display_path(path)).collect()
}

fn errors(admission: &Admission) -> Vec<String> {
    admission.errors.iter().map(|error| format!("{} {}", display_path(&error.path), error.keyword)).collect()
}

#[test]
fn unknown_fields_go_and_the_type_stays() {
    let admission =
        created(json!({"type": "object", "properties": {"a": {"type": "string"}}}), json!({"a": "x", "b": 1}));
    assert_eq!(admission.object, object(json!({"a": "x"})));
    assert_eq!(paths(&admission.pruned), ["spec.b"]);
    assert_eq!(admission.accepted(), Some(true));
    assert!(admission.loses());
}

#[test]
fn preserving_unknown_fields_ends_inside_named_ones() {
    let schema = json!({
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": true,
        "properties": {"in": {"type": "object", "properties": {"a": {"type": "integer"}}}},
    });
    let admission = created(schema, json!({"u": {"x": 1}, "in": {"a": 1, "b": 2}}));
    assert_eq!(admission.object["spec"], json!({"u": {"x": 1}, "in": {"a": 1}}));
    assert_eq!(paths(&admission.pruned), ["spec.in.b"]);
}

#[test]
fn additional_properties_of_any_kind_lose_what_is_inside() {
    let schema = json!({"type": "object", "additionalProperties": true});
    let admission = created(schema, json!({"x": {"a": 1}, "y": [{"b": 1}], "z": 1}));
    assert_eq!(admission.object["spec"], json!({"x": {}, "y": [{}], "z": 1}));
    assert_eq!(paths(&admission.pruned), ["spec.x.a", "spec.y[0].b"]);
}

#[test]
fn nulls_are_kept_dropped_or_replaced() {
    let schema = json!({"type": "object", "properties": {
        "kept": {"type": "string", "nullable": true, "default": "x"},
        "dropped": {"type": "string"},
        "replaced": {"type": "string", "default": "x"},
        "list": {"type": "array", "items": {"type": "string"}},
    }});
    let admission = created(schema, json!({"kept": null, "dropped": null, "replaced": null, "list": [null]}));
    assert_eq!(admission.object["spec"], json!({"kept": null, "replaced": "x", "list": [null]}));
    assert_eq!(paths(&admission.dropped_nulls), ["spec.dropped"]);
    assert_eq!(paths(&admission.defaulted), ["spec.replaced"]);
    assert_eq!(errors(&admission), ["spec.list[0] type"]);
}

#[test]
fn defaults_need_their_parent() {
    let inner = json!({"type": "object", "properties": {"a": {"type": "integer", "default": 1}}});
    let mut filled = inner.clone();
    filled["default"] = json!({});
    let schema = json!({"type": "object", "properties": {"without": inner, "with": filled}});
    let admission = created(schema, json!({}));
    assert_eq!(admission.object["spec"], json!({"with": {"a": 1}}));
    assert_eq!(paths(&admission.defaulted), ["spec.with", "spec.with.a"]);
}

#[test]
fn reading_neither_validates_nor_needs_a_type() {
    let schema = of_spec(json!({"type": "object", "required": ["b"], "properties": {
        "a": {"type": "integer", "default": 1}, "b": {"type": "string"}}}));
    let admission = read(&resource(&schema), &json!({"spec": {"b": 7, "c": 1}}));
    assert_eq!(admission.object, json!({"spec": {"b": 7, "a": 1}}));
    assert_eq!(admission.errors, []);
}

#[test]
fn each_keyword_is_enforced() {
    for (schema, good, bad, keyword) in [
        (json!({"type": "integer"}), json!(5.0), json!(5.5), "type"),
        (json!({"type": "integer", "format": "int32"}), json!(2_147_483_647), json!(2_147_483_648_u64), "format"),
        (json!({"type": "number"}), json!(5), json!("5"), "type"),
        (json!({"type": "number", "format": "float"}), json!(3e38), json!(4e38), "format"),
        (json!({"x-kubernetes-int-or-string": true}), json!("a"), json!(true), "type"),
        (json!({"type": "string", "format": "date"}), json!("2024-02-29"), json!("2023-02-29"), "format"),
        (json!({"type": "string", "maxLength": 2}), json!("\u{fc}\u{fc}"), json!("abc"), "maxLength"),
        (json!({"type": "string", "minLength": 2}), json!("ab"), json!("\u{fc}"), "minLength"),
        (json!({"type": "string", "pattern": "^a"}), json!("ab"), json!("ba"), "pattern"),
        (json!({"type": "string", "enum": ["a"]}), json!("a"), json!("b"), "enum"),
        (json!({"type": "integer", "minimum": 2, "exclusiveMinimum": true}), json!(3), json!(2), "minimum"),
        (json!({"type": "integer", "maximum": 2}), json!(2), json!(3), "maximum"),
        (json!({"type": "integer", "multipleOf": 4}), json!(-8), json!(6), "multipleOf"),
        (json!({"type": "array", "items": {"type": "string"}, "minItems": 1}), json!(["a"]), json!([]), "minItems"),
        (
            json!({"type": "array", "items": {"type": "string"}, "maxItems": 1}),
            json!(["a"]),
            json!(["a", "b"]),
            "maxItems",
        ),
        (
            json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}),
            json!(["a", "b"]),
            json!(["a", "b", "a"]),
            "x-kubernetes-list-type",
        ),
        (
            json!({"type": "object", "additionalProperties": {"type": "integer"}, "maxProperties": 1}),
            json!({"a": 1}),
            json!({"a": 1, "b": 2}),
            "maxProperties",
        ),
        (
            json!({"type": "object", "additionalProperties": {"type": "integer"}, "minProperties": 1}),
            json!({"a": 1}),
            json!({}),
            "minProperties",
        ),
        (json!({"type": "integer", "allOf": [{"minimum": 1}, {"maximum": 2}]}), json!(1), json!(3), "maximum"),
        (json!({"type": "integer", "anyOf": [{"minimum": 5}, {"maximum": 2}]}), json!(1), json!(3), "anyOf"),
        (json!({"type": "integer", "oneOf": [{"maximum": 5}, {"minimum": 3}]}), json!(1), json!(4), "oneOf"),
        (json!({"type": "integer", "not": {"minimum": 3}}), json!(1), json!(4), "not"),
    ] {
        assert_eq!(errors(&created(schema.clone(), good)), Vec::<String>::new(), "{schema}");
        let found = errors(&created(schema.clone(), bad));
        assert!(found.first().is_some_and(|first| first.ends_with(&format!(" {keyword}"))), "{schema}: {found:?}");
    }
}

#[test]
fn numbers_are_computed_with_as_the_server_does() {
    for (schema, value, is_accepted) in [
        // An integer and a bound with a fraction: the fraction is cut off.
        (json!({"type": "number", "minimum": 2.5}), json!(2), true),
        (json!({"type": "number", "maximum": 2.5, "exclusiveMaximum": true}), json!(2), false),
        (json!({"type": "number", "multipleOf": 2.5}), json!(4), true),
        (json!({"type": "number", "multipleOf": 0.5}), json!(3), false),
        (json!({"type": "number", "multipleOf": 0.5}), json!(3.5), true),
        // A bound that the type cannot hold rejects everything.
        (json!({"type": "integer", "maximum": 2.5}), json!(1), false),
        (json!({"type": "integer", "format": "int32", "maximum": 3_000_000_000_u64}), json!(1), false),
        // Conversions in enum.
        (json!({"type": "number", "enum": [5]}), json!(5.5), true),
        (json!({"type": "number", "enum": [5.5]}), json!(5), false),
        (json!({"x-kubernetes-int-or-string": true, "enum": ["A"]}), json!(65), true),
        // Nearly whole numbers, if no format is checked.
        (json!({"x-kubernetes-int-or-string": true}), json!(5.000_000_000_1), true),
        (json!({"type": "integer"}), json!(5.000_000_000_1), false),
        (json!({"type": "integer"}), json!(9_223_372_036_854_775_808_u64), false),
        // A string format accepts lists.
        (json!({"type": "string", "format": "date"}), json!([1]), true),
        (json!({"type": "string", "format": "unknown"}), json!([1]), false),
        (json!({"type": "string", "nullable": true, "enum": ["a", null]}), json!(null), false),
    ] {
        assert_eq!(created(schema.clone(), value.clone()).accepted(), Some(is_accepted), "{schema} {value}");
    }
}

#[test]
fn required_is_satisfied_by_a_default() {
    let schema = json!({"type": "object", "required": ["a", "b"], "properties": {
        "a": {"type": "string", "default": "x"}, "b": {"type": "string"}}});
    assert_eq!(errors(&created(schema, json!({}))), ["spec.b required"]);
}

#[test]
fn list_maps_compare_keys_after_defaulting() {
    let schema = json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k", "p"],
        "items": {"type": "object", "required": ["k"], "properties": {
            "k": {"type": "integer"}, "p": {"type": "string", "default": "TCP"}}}});
    assert_eq!(created(schema.clone(), json!([{"k": 1}, {"k": 1, "p": "UDP"}])).accepted(), Some(true));
    let admission = created(schema, json!([{"k": 1}, {"k": 1, "p": "TCP"}]));
    assert_eq!(errors(&admission), ["spec[1] x-kubernetes-list-type"]);
}

#[test]
fn embedded_resources_need_a_type_and_sound_metadata() {
    let schema =
        json!({"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true});
    let admission = created(
        schema.clone(),
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "unknown": 1, "labels": {"a": null}}, "x": 1}),
    );
    assert_eq!(admission.accepted(), Some(true));
    assert_eq!(
        admission.object["spec"],
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "labels": {"a": ""}}, "x": 1})
    );
    assert_eq!(paths(&admission.pruned), ["spec.metadata.unknown"]);
    assert_eq!(
        errors(&created(schema.clone(), json!({"kind": "Pod"}))),
        ["spec.apiVersion x-kubernetes-embedded-resource"]
    );
    let wrong = created(schema, json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {"a": 1}}}));
    assert_eq!(errors(&wrong), ["spec.metadata.labels metadata"]);
}

#[test]
fn updates_forgive_what_did_not_change() {
    let schema = of_spec(json!({"type": "object", "required": ["r"], "properties": {
        "a": {"type": "string", "maxLength": 1}, "b": {"type": "string"}, "r": {"type": "string"},
        "list": {"type": "array", "items": {"type": "string", "maxLength": 1}},
    }}));
    let updated = |minor: u32, old: Value, new: Value| {
        let admission = update(&resource(&schema), Server { minor }, &object(old), &object(new));
        errors(&admission)
    };
    let old = json!({"a": "long", "b": "x", "r": "y"});
    assert_eq!(updated(36, old.clone(), json!({"a": "long", "b": "z", "r": "y"})), Vec::<String>::new());
    assert_eq!(updated(29, old.clone(), json!({"a": "long", "b": "z", "r": "y"})), ["spec.a maxLength"]);
    assert_eq!(updated(36, old, json!({"a": "other", "b": "x", "r": "y"})), ["spec.a maxLength"]);
    // Errors of an object are ratcheted only if all of it is unchanged.
    assert_eq!(updated(36, json!({"b": "x"}), json!({"b": "x"})), Vec::<String>::new());
    assert_eq!(updated(36, json!({"b": "x"}), json!({"b": "z"})), ["spec.r required"]);
    // Items of an atomic list cannot be correlated.
    assert_eq!(
        updated(36, json!({"r": "", "list": ["long"]}), json!({"r": "", "list": ["long", "a"]})),
        ["spec.list[0] maxLength"]
    );
    assert_eq!(
        updated(36, json!({"r": "", "list": ["long"]}), json!({"r": "a", "list": ["long"]})),
        Vec::<String>::new()
    );
}

#[test]
fn deep_objects_are_left_undecided() {
    let deep = (0..1000).fold(json!(1), |inner, _| json!([inner]));
    let admission = created(json!({"x-kubernetes-preserve-unknown-fields": true}), deep);
    assert_eq!(admission.accepted(), None);
}

#[test]
fn undecided_parts_do_not_decide_the_whole() {
    let admission = created(json!({"x-kubernetes-validations": [{"rule": "no(("}], "type": "string"}), json!("a"));
    assert_ne!(admission.accepted(), Some(true));
}
