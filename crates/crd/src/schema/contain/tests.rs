//! Verdicts on pairs of schemas of one field, each with its reason. The pipeline confirms witnesses before they are
//! reported, so every breaking row has one.

mod easy;
mod implied;
mod search;

use serde_json::{Value, json};

use super::{Difference, SchemaProof, compare};
use crate::schema::model::Schema;
use crate::schema::pipeline::{Resource, Server};

fn differences(old: &Value, new: &Value) -> Vec<Difference> {
    differences_on(Server::default(), old, new)
}

fn differences_on(server: Server, old: &Value, new: &Value) -> Vec<Difference> {
    let root = |field: &Value| {
        Schema::of(&json!({
            "type": "object",
            "properties": {"spec": {"type": "object", "properties": {"f": field}}},
        }))
    };
    let (old, new) = (root(old), root(new));
    let resource = |schema| Resource {
        schema,
        group: "ex.com",
        version: "v1",
        kind: "Foo",
        status: false,
        scale: None,
        preserve_unknown_fields: false,
    };
    compare(&resource(&old), &resource(&new), server)
}

/// The worst difference, with its keyword.
fn verdict(old: &Value, new: &Value) -> String {
    let found = differences(old, new);
    let breaking = found.iter().find(|it| matches!(it.proof, SchemaProof::Breaking { .. }));
    let unknown = found.iter().find(|it| matches!(it.proof, SchemaProof::Unknown { .. }));
    match (breaking, unknown) {
        (Some(difference), _) => format!("breaking {}", difference.keyword),
        (None, Some(difference)) => match &difference.proof {
            SchemaProof::Unknown { keyword, reason } => {
                format!("unknown {} {keyword} {}", difference.keyword, reason.clone().unwrap_or_default())
            }
            _ => String::new(),
        },
        (None, None) => "safe".to_owned(),
    }
}

macro_rules! schema {
    ($($tokens:tt)*) => { json!({$($tokens)*}) };
}

#[test]
fn a_format_that_the_server_does_not_know_proves_nothing() {
    let (old, new) = (
        schema!("type": "string", "format": "k8s-short-name"),
        schema!("type": "string", "format": "k8s-short-name", "maxLength": 63),
    );
    let is_safe = |minor| differences_on(Server { minor }, &old, &new).iter().all(|it| it.proof == SchemaProof::Safe);
    assert!(is_safe(36) && !is_safe(33));
}

#[test]
fn verdicts() {
    let string = || schema!("type": "string");
    let rows: Vec<(Value, Value, &str)> = vec![
        (string(), string(), "safe"),
        (
            schema!("type": "array", "items": string()),
            schema!("type": "array", "items": string(), "x-kubernetes-list-type": "atomic"),
            "safe",
        ),
        (string(), schema!("type": "integer"), "breaking type"),
        (schema!("type": "integer"), schema!("type": "number"), "safe"),
        (schema!("type": "number"), schema!("type": "integer"), "breaking type"),
        (schema!("type": "number", "enum": [1, 2]), schema!("type": "integer", "enum": [1, 2]), "breaking type"),
        (string(), schema!("x-kubernetes-int-or-string": true), "safe"),
        (schema!("x-kubernetes-int-or-string": true), string(), "breaking type"),
        (
            schema!("type": "string", "pattern": "^http(s)?://.+$"),
            schema!("type": "string", "pattern": "^https?://.+$"),
            "safe",
        ),
        (
            schema!("type": "string", "pattern": "^a+$"),
            schema!("type": "string", "pattern": "^a{1,3}$"),
            "breaking pattern",
        ),
        (
            schema!("type": "string", "pattern": "^a{1,3}$"),
            schema!("type": "string", "maxLength": 3, "pattern": "^a+$"),
            "safe",
        ),
        (
            schema!("type": "string", "enum": ["Always", "Never"]),
            schema!("type": "string", "enum": ["Always", "Never"], "maxLength": 6),
            "safe",
        ),
        (
            schema!("type": "string", "enum": ["Always", "Never"]),
            schema!("type": "string", "enum": ["Always", "Never"], "maxLength": 5),
            "breaking maxLength",
        ),
        (schema!("type": "string", "enum": ["A", "B"]), schema!("type": "string", "enum": ["A"]), "breaking enum"),
        (
            schema!("type": "string", "enum": ["A", "B"], "pattern": "^A$"),
            schema!("type": "string", "enum": ["A"]),
            "safe",
        ),
        (schema!("type": "boolean"), schema!("type": "boolean", "enum": [true, false]), "safe"),
        (schema!("type": "boolean"), schema!("type": "boolean", "enum": [true]), "breaking enum"),
        (
            schema!("type": "integer", "minimum": 0, "exclusiveMinimum": true),
            schema!("type": "integer", "minimum": 1),
            "safe",
        ),
        (
            schema!("type": "number", "minimum": 0, "exclusiveMinimum": true),
            schema!("type": "number", "minimum": 1),
            "breaking minimum",
        ),
        (schema!("type": "integer", "multipleOf": 4), schema!("type": "integer", "multipleOf": 2), "safe"),
        (
            schema!("type": "integer", "multipleOf": 2),
            schema!("type": "integer", "multipleOf": 4),
            "breaking multipleOf",
        ),
        (schema!("type": "integer", "format": "int32"), schema!("type": "integer", "format": "int64"), "safe"),
        (
            schema!("type": "integer", "format": "int64"),
            schema!("type": "integer", "format": "int32"),
            "breaking format",
        ),
        (schema!("type": "integer"), schema!("type": "integer", "maximum": 10), "breaking maximum"),
        (schema!("type": "integer", "enum": [1, 5]), schema!("type": "integer", "maximum": 10), "safe"),
        // Objects.
        (
            schema!("type": "object", "properties": {"a": string()}),
            schema!("type": "object", "properties": {"a": string(), "n": {"type": "string", "default": "x"}}, "required": ["n"]),
            "safe",
        ),
        (
            schema!("type": "object", "properties": {"a": string()}),
            schema!("type": "object", "properties": {"a": string(), "n": string()}, "required": ["n"]),
            "breaking required",
        ),
        (
            schema!("type": "object", "properties": {"a": string()}),
            schema!("type": "object", "properties": {"a": string(), "n": string()}),
            "safe",
        ),
        (
            schema!("type": "object", "properties": {"a": string(), "b": string()}),
            schema!("type": "object", "properties": {"a": string()}),
            "breaking existingFieldRemoval",
        ),
        (
            schema!("type": "object", "properties": {"a": string(), "b": {"type": "string", "enum": ["A"], "minLength": 2}}),
            schema!("type": "object", "properties": {"a": string()}),
            "safe",
        ),
        (
            schema!("type": "object", "properties": {"a": string(), "b": string()}),
            schema!("type": "object", "properties": {"a": string(), "b": string()}, "maxProperties": 2),
            "safe",
        ),
        (
            schema!("type": "object", "properties": {"a": string(), "b": string()}),
            schema!("type": "object", "properties": {"a": string(), "b": string()}, "maxProperties": 1),
            "breaking maxProperties",
        ),
        (
            schema!("type": "object", "properties": {"a": string()}, "required": ["a"]),
            schema!("type": "object", "properties": {"a": string()}, "required": ["a"], "minProperties": 1),
            "safe",
        ),
        (
            schema!("type": "object", "properties": {"a": string()}),
            schema!("type": "object", "properties": {"a": string()}, "minProperties": 1),
            "breaking minProperties",
        ),
        (
            schema!("type": "object", "properties": {"a": string()}),
            schema!("type": "object", "additionalProperties": string()),
            "safe",
        ),
        (
            schema!("type": "object", "additionalProperties": string()),
            schema!("type": "object", "properties": {"a": string()}),
            "breaking additionalProperties",
        ),
        (
            schema!("type": "object", "additionalProperties": {"type": "object", "properties": {"a": string()}}),
            schema!("type": "object", "additionalProperties": {"type": "object", "properties": {"a": string(), "b": string()}}),
            "safe",
        ),
        (
            schema!("type": "object", "x-kubernetes-preserve-unknown-fields": true),
            schema!("type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"a": {"type": "integer"}}),
            "breaking fieldDeclared",
        ),
        (
            schema!("type": "object", "x-kubernetes-preserve-unknown-fields": true),
            schema!("type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"a": {"x-kubernetes-preserve-unknown-fields": true, "nullable": true}}),
            "safe",
        ),
        (
            schema!("type": "object", "x-kubernetes-preserve-unknown-fields": true),
            schema!("type": "object"),
            "breaking x-kubernetes-preserve-unknown-fields",
        ),
        (
            schema!("type": "object", "properties": {"a": string()}),
            schema!("x-kubernetes-preserve-unknown-fields": true),
            "safe",
        ),
        // Defaults.
        (string(), schema!("type": "string", "default": "x"), "breaking default"),
        (schema!("type": "string", "default": "x"), schema!("type": "string", "default": "y"), "breaking default"),
        (schema!("type": "string", "default": "x"), string(), "breaking default"),
        (
            schema!("type": "object", "properties": {"a": {"type": "string", "default": "x"}}),
            schema!("type": "object", "properties": {"a": {"type": "string", "default": "x"}}, "required": ["a"]),
            "safe",
        ),
        (
            schema!("type": "object", "properties": {"a": string()}, "required": ["a"]),
            schema!("type": "object", "properties": {"a": {"type": "string", "default": "x"}}, "required": ["a"]),
            "safe",
        ),
        (
            schema!("type": "object", "maxProperties": 1, "properties": {"a": string()}),
            schema!("type": "object", "maxProperties": 1, "properties": {"a": string(), "n": {"type": "string", "default": "x"}}),
            "breaking maxProperties",
        ),
        // Null.
        (schema!("type": "string", "nullable": true), string(), "breaking nullable"),
        (string(), schema!("type": "string", "nullable": true), "safe"),
        (schema!("type": "string", "nullable": true, "enum": ["a"]), schema!("type": "string", "enum": ["a"]), "safe"),
        // Lists.
        (
            schema!("type": "array", "items": string()),
            schema!("type": "array", "items": string(), "x-kubernetes-list-type": "set"),
            "breaking x-kubernetes-list-type",
        ),
        (
            schema!("type": "array", "items": string(), "maxItems": 1),
            schema!("type": "array", "items": string(), "maxItems": 1, "x-kubernetes-list-type": "set"),
            "breaking x-kubernetes-list-type",
        ),
        (
            schema!("type": "array", "items": string(), "maxItems": 3),
            schema!("type": "array", "items": string(), "maxItems": 2),
            "breaking maxItems",
        ),
        (
            schema!("type": "array", "items": {"type": "string", "enum": ["a", "b"]}, "x-kubernetes-list-type": "set"),
            schema!("type": "array", "items": {"type": "string", "enum": ["a", "b"]}, "x-kubernetes-list-type": "set", "maxItems": 2),
            "safe",
        ),
        (
            schema!("type": "array", "items": {"type": "string", "enum": ["a", "b"]}),
            schema!("type": "array", "items": {"type": "string", "enum": ["a"]}),
            "breaking enum",
        ),
        (
            schema!("type": "array", "items": {"type": "string", "enum": ["a", "b"]}, "maxItems": 0),
            schema!("type": "array", "items": {"type": "string", "enum": ["a"]}, "maxItems": 0),
            "safe",
        ),
        // Combinators.
        (
            schema!("type": "integer", "anyOf": [{"maximum": 10}, {"minimum": 5}]),
            schema!("type": "integer", "oneOf": [{"maximum": 10}, {"minimum": 5}]),
            "breaking oneOf",
        ),
        (
            schema!("type": "integer", "anyOf": [{"maximum": 4}, {"minimum": 5}]),
            schema!("type": "integer", "oneOf": [{"maximum": 4}, {"minimum": 5}]),
            "safe",
        ),
        (
            schema!("type": "integer", "oneOf": [{"maximum": 5}]),
            schema!("type": "integer", "oneOf": [{"maximum": 5}, {"minimum": 3}]),
            "breaking oneOf",
        ),
        (schema!("type": "integer", "maximum": 5), schema!("type": "integer", "allOf": [{"maximum": 5}]), "safe"),
        (schema!("type": "integer", "maximum": 5), schema!("type": "integer", "not": {"minimum": 6}), "safe"),
        (schema!("type": "integer", "maximum": 6), schema!("type": "integer", "not": {"minimum": 6}), "breaking not"),
        (
            schema!("type": "object", "properties": {"a": string(), "b": string()}),
            schema!("type": "object", "properties": {"a": string(), "b": string()}, "oneOf": [{"required": ["a"]}, {"required": ["b"]}]),
            "breaking oneOf",
        ),
        (
            schema!("type": "object", "properties": {"a": string(), "b": string()}, "oneOf": [{"required": ["a"]}, {"required": ["b"]}]),
            schema!("type": "object", "properties": {"a": string(), "b": string()}, "anyOf": [{"required": ["b"]}, {"required": ["a"]}]),
            "safe",
        ),
        (
            schema!("type": "object", "properties": {"a": string(), "b": string()}, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]),
            schema!("type": "object", "properties": {"a": string(), "b": string()}, "minProperties": 1),
            "safe",
        ),
        (
            schema!("anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": true),
            schema!("anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": true, "maxLength": 3),
            "breaking maxLength",
        ),
        (
            schema!("anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": true),
            schema!("x-kubernetes-int-or-string": true),
            "safe",
        ),
        // Formats.
        (schema!("type": "string"), schema!("type": "string", "format": "date"), "breaking format"),
        (
            schema!("type": "string", "format": "uuid"),
            schema!("type": "string", "format": "uuid", "maxLength": 36),
            "safe",
        ),
        (schema!("type": "string", "format": "email"), schema!("type": "string"), "breaking format"),
        (
            schema!("type": "string", "enum": ["Bob <a@b>"]),
            schema!("type": "string", "enum": ["Bob <a@b>"], "format": "email"),
            "unknown format enum ",
        ),
        (schema!("type": "string"), schema!("type": "string", "format": "something-unknown"), "safe"),
        (schema!("type": "string", "format": "ipv4"), schema!("type": "string", "format": "ipv6"), "breaking format"),
        // Ownership.
        (
            schema!("type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": string()),
            schema!("type": "object", "additionalProperties": string()),
            "unknown x-kubernetes-map-type x-kubernetes-map-type ",
        ),
    ];
    let mut wrong = Vec::new();
    for (old, new, expected) in rows {
        let found = verdict(&old, &new);
        if found != expected {
            wrong.push(format!("{old}\n  => {new}\n  expected {expected}, found {found}"));
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn rules_are_settled_by_proof_or_by_an_object_that_breaks_them() {
    let object = |rules: Value| {
        schema!("type": "object", "properties": {
            "a": {"type": "integer"}, "b": {"type": "integer"}, "mode": {"type": "string", "enum": ["x", "y"]},
            "list": {"type": "array", "items": {"type": "string"}},
        }, "x-kubernetes-validations": rules)
    };
    let with_new = |rules: Value, new: Value| {
        let mut schema = object(rules);
        schema["properties"]["n"] = new;
        schema
    };
    let rule = |text: &str| json!([{"rule": text}]);
    let string = schema!("type": "string");
    let rows: Vec<(Value, Value, &str)> = vec![
        (object(json!([])), object(rule("self.a <= self.b")), "breaking x-kubernetes-validations"),
        (object(rule("self.a <= self.b")), object(rule("self.a<=(self.b)")), "safe"),
        (object(rule("self.a <= self.b")), object(json!([])), "safe"),
        (
            object(json!([])),
            object(rule("!has(self.mode) || self.mode != 'y' || has(self.a)")),
            "breaking x-kubernetes-validations",
        ),
        (
            object(json!([])),
            object(rule("!has(self.list) || self.list.size() < 4")),
            "breaking x-kubernetes-validations",
        ),
        (
            object(json!([])),
            object(rule("!has(self.list) || self.list.all(x, x.startsWith('a'))")),
            "breaking x-kubernetes-validations",
        ),
        (object(json!([])), with_new(rule("!has(self.n) || self.n != 'bad'"), string.clone()), "safe"),
        (object(json!([])), with_new(rule("has(self.n)"), string.clone()), "breaking x-kubernetes-validations"),
        (
            object(json!([])),
            with_new(rule("self.n == 'x' || self.a > 3"), schema!("type": "string", "default": "x")),
            "safe",
        ),
        // Old rules bind the witness.
        (
            object(rule("has(self.a) && self.a > 5")),
            {
                let mut schema = object(rule("has(self.a) && self.a > 5"));
                schema["properties"]["a"]["maximum"] = json!(3);
                schema
            },
            "breaking maximum",
        ),
        (
            object(rule("has(self.a) && self.a > 5")),
            {
                let mut schema = object(rule("has(self.a) && self.a > 5"));
                schema["properties"]["b"]["maximum"] = json!(3);
                schema
            },
            "breaking maximum",
        ),
    ];
    let mut wrong = Vec::new();
    for (old, new, expected) in rows {
        let found = verdict(&old, &new);
        if found != expected {
            wrong.push(format!("{old}\n  => {new}\n  expected {expected}, found {found}"));
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn what_else_an_object_loses_does_not_hide_a_changed_default() {
    let filled = |value: &str| json!({"type": "string", "default": value});
    let object = |properties: Value| schema!("type": "object", "properties": properties);
    let found = differences(&object(json!({"a": filled("x"), "b": filled("1")})), &object(json!({"b": filled("2")})));
    let breaking = |it: &&Difference| matches!(it.proof, SchemaProof::Breaking { .. });
    let keywords: Vec<&str> = found.iter().filter(breaking).map(|it| it.keyword).collect();
    assert_eq!(keywords, ["existingFieldRemoval", "default"], "{found:?}");
}

#[test]
fn a_witness_is_small_where_the_search_fills_in_a_thousand_fields() {
    let object = |value: &str| {
        let field = |number| json!({"type": "string", "default": if number == 500 { value } else { "a" }});
        let fields: serde_json::Map<_, _> = (0..1_000).map(|number| (format!("f{number:04}"), field(number))).collect();
        schema!("type": "object", "properties": fields)
    };
    let found = differences(&object("a"), &object("b"));
    let [Difference { proof: SchemaProof::Breaking { witness, .. }, .. }] = &found[..] else { panic!("{found:?}") };
    assert_eq!(witness["spec"], json!({"f": {}}));
}
