//! The examples of the published description, completed to definitions, and their JSON.

use super::*;

/// The published fragments start at `spec` with `properties` and `required`; `type: object` and the surrounding
/// definition are added here.
#[test]
fn the_breaking_example() {
    let old = with_spec(&json!({
        "type": "object",
        "properties": {"replicas": {"type": "integer"}, "storage": {"type": "object"}},
    }));
    let new = with_spec(&json!({
        "type": "object", "properties": {"replicas": {"type": "string"}}, "required": ["replicas"],
    }));
    assert_eq!(
        lines(&old, &new),
        [
            "breaking TypeChanged spec.replicas breaking",
            "breaking RequiredAdded spec.replicas breaking",
            "breaking FieldRemoved spec.storage breaking",
        ]
    );
}

#[test]
fn the_example_of_a_default() {
    let spec = |default: i64| {
        with_spec(&json!({"type": "object", "properties": {"replicas": {"type": "integer", "default": default}}}))
    };
    assert_eq!(lines(&spec(1), &spec(3)), ["warning DefaultChanged spec.replicas breaking"]);
}

#[test]
fn the_example_of_what_is_added() {
    let old = with_spec(&json!({
        "type": "object", "properties": {"region": {"type": "string", "enum": ["us-east", "us-west"]}},
    }));
    let new = with_spec(&json!({
        "type": "object",
        "properties": {
            "region": {"type": "string", "enum": ["us-east", "us-west", "eu-central"]}, "timeout": {"type": "integer"},
        },
    }));
    assert_eq!(lines(&old, &new), ["info EnumValueAdded spec.region safe", "info FieldAdded spec.timeout safe"]);
}

#[test]
fn the_json_of_the_removed_field() {
    let old = with_spec(&json!({"type": "object", "properties": {"storage": {"type": "object"}}}));
    let reported = changes(&old, &with_spec(&json!({"type": "object", "properties": {}})));
    let json = serde_json::to_value(&reported[0]).expect("JSON");
    for (key, value) in [
        ("path", json!("spec.storage")),
        ("type", json!("FieldRemoved")),
        ("severity", json!("breaking")),
        ("oldSchema", json!({"type": "object"})),
        ("newSchema", Value::Null),
        ("verdict", json!("breaking")),
        ("crdName", json!("foos.ex.com")),
        ("version", json!("v1")),
    ] {
        assert_eq!(json.get(key), Some(&value), "{key}");
    }
    let read: DefinitionChange = serde_json::from_value(json.clone()).expect("reads");
    assert_eq!(serde_json::to_value(&read).expect("JSON"), json);
}
