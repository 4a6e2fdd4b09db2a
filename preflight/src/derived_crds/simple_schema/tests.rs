//! Schemas of SimpleSchema, and hostile input.

use proptest::prelude::*;

use super::*;

fn expanded(spec: &Value, types: &Value) -> Result<Value, String> {
    let (spec, types) = (Field::root(spec), Field::root(types));
    expand(&spec, &types).map(|expanded| expanded.schema).map_err(|error| error.message)
}

/// The schema of one field with this text.
fn field(text: &str) -> Result<Value, String> {
    expanded(&json!({"f": text}), &Value::Null).map(|schema| schema["properties"]["f"].clone())
}

#[test]
fn type_and_markers_become_a_schema() {
    for (text, schema) in [
        ("string", json!({"type": "string"})),
        ("float", json!({"type": "number"})),
        ("object", json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})),
        ("[]string", json!({"type": "array", "items": {"type": "string"}})),
        ("map[string]integer", json!({"type": "object", "additionalProperties": {"type": "integer"}})),
        (
            "map[string][]boolean",
            json!({"type": "object", "additionalProperties": {"type": "array", "items": {"type": "boolean"}}}),
        ),
        ("string|default=x", json!({"type": "string", "default": "x"})),
        (r#"string | default="a \"b\"""#, json!("error")),
        (r#"string | default="""#, json!({"type": "string", "default": ""})),
        (
            "integer | default=3 minimum=1 maximum=1.5",
            json!({"type": "integer", "default": 3, "minimum": 1, "maximum": 1.5}),
        ),
        ("integer | minimum=1e2", json!({"type": "integer", "minimum": 100})),
        ("boolean | default=true", json!({"type": "boolean", "default": true})),
        (
            r#"[]string | default=["a", "b"]"#,
            json!({"type": "array", "items": {"type": "string"}, "default": ["a", "b"]}),
        ),
        (r#"string | enum="a, b""#, json!({"type": "string", "enum": ["a", "b"]})),
        ("integer | enum=1,2", json!({"type": "integer", "enum": [1, 2]})),
        (r#"string | pattern="^a|b$" minLength=1"#, json!({"type": "string", "pattern": "^a|b$", "minLength": 1})),
        (r#"string | pattern="^\\d+$""#, json!({"type": "string", "pattern": "^\\d+$"})),
        (
            "[]string | uniqueItems=true maxItems=3",
            json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set", "maxItems": 3}),
        ),
        (
            r#"integer | validation="self > 1" immutable=true"#,
            json!({"type": "integer", "x-kubernetes-validations": [
                {"rule": "self > 1", "message": "validation failed"},
                {"rule": "self == oldSelf", "message": "field is immutable"},
            ]}),
        ),
        (r#"string | description="it = that""#, json!({"type": "string", "description": "it = that"})),
    ] {
        match field(text) {
            Ok(found) => assert_eq!(found, schema, "{text}"),
            Err(error) => assert_eq!(schema, "error", "{text}: {error}"),
        }
    }
}

#[test]
fn object_requires_its_required_fields_and_has_a_default_if_a_field_has_one() {
    let schema = expanded(&json!({"a": {"b": "string | default=x"}, "c": "string"}), &Value::Null).expect("a schema");
    assert_eq!((&schema["default"], &schema["properties"]["a"]["default"]), (&json!({}), &json!({})));
    let schema = expanded(
        &json!({"b": "string | default=x", "a": "string | required=true", "c": "Named"}),
        &json!({"Named": "string | required=true"}),
    )
    .expect("a schema");
    assert_eq!((schema.get("default"), &schema["required"]), (None, &json!(["a", "c"])));
}

#[test]
fn custom_types_are_expanded_where_they_are_named() {
    let types = json!({"A": {"b": "[]B"}, "B": {"c": "integer"}});
    let schema = expanded(&json!({"a": "map[string]A"}), &types).expect("a schema");
    let items = &schema["properties"]["a"]["additionalProperties"]["properties"]["b"]["items"];
    assert_eq!(items, &json!({"type": "object", "properties": {"c": {"type": "integer"}}}));
}

#[test]
fn wrong_text_is_an_error() {
    for text in [
        "",
        "|",
        "[]",
        "[]|default=1",
        "map[string]",
        "map[integer]string",
        "map[",
        "strnig",
        "string | ",
        "string | required",
        "string | required=maybe",
        "string | =1",
        "string | pattern=",
        "integer | pattern=a",
        "string | minItems=1",
        "string | enum=a,,b",
        "boolean | enum=true",
        "integer | enum=a",
        "string | default=\"a",
        "string | default=[",
        "string | default=]",
        "integer | minimum=nan",
        "integer | minimum=inf",
        "integer | default=1.5",
        "[]string | listType=bag",
        "[]string | listMapKey=a",
        "[]string | listType=map listMapKey=a listMapKey=a",
        "object | default={",
        "[]string | listType=atomic uniqueItems=true",
        "integer | validation=\"\"",
    ] {
        assert!(field(text).is_err(), "{text}: {:?}", field(text));
    }
}

#[test]
fn cyclic_deep_and_huge_types_are_errors() {
    for types in [json!({"A": "A"}), json!({"A": {"a": "B"}, "B": {"b": "map[string]A"}}), json!({"A": "[]A"})] {
        let error = expanded(&json!({"a": "A"}), &types).expect_err("a cycle");
        assert!(error.contains("contains itself"), "{error}");
    }
    let nested = "[]".repeat(100_000) + "string";
    assert!(field(&nested).is_err());
    let mut deep = json!("string");
    for _ in 0..100 {
        deep = json!({"a": deep});
    }
    assert!(expanded(&deep, &Value::Null).is_err());
    let chain: Map<String, Value> =
        (0..5_000).map(|n| (format!("T{n}"), json!({"a": format!("T{}", n + 1)}))).collect();
    assert!(expanded(&json!({"a": "T0"}), &Value::Object(chain)).is_err());
    let mut doubled: Map<String, Value> = (0..20)
        .map(|n| (format!("T{n:02}"), json!({"a": format!("T{:02}", n + 1), "b": format!("T{:02}", n + 1)})))
        .collect();
    doubled.insert("T20".to_owned(), "string".into());
    let error = expanded(&json!({"a": "T00"}), &Value::Object(doubled)).expect_err("too large");
    assert!(error.contains("more than"), "{error}");
}

proptest! {
    #[test]
    fn any_text_is_read_without_a_panic(text in any::<String>()) {
        _ = field(&text);
    }

    #[test]
    fn any_text_of_the_language_is_read_without_a_panic(
        text in r#"(\[\]|map\[string\]|map\[|string|integer|A|\||[ =,"\\\[\]{}]|default=|enum=|required=true|[a-z0-9])*"#,
    ) {
        let types = json!({"A": text.as_str(), "B": {"a": "A"}});
        if let Ok(schema) = expanded(&json!({"f": text.as_str(), "g": "B"}), &types) {
            prop_assert!(schema["properties"]["f"].is_object());
        }
    }

    #[test]
    fn marker_with_a_quoted_value_keeps_the_value(value in r#"[a-z =|\[{},]*"#) {
        let schema = field(&format!("string | description=\"{value}\"")).expect("a schema");
        prop_assert_eq!(schema["description"].as_str(), Some(value.as_str()));
    }
}
