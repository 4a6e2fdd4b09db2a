//! Each check with a definition that fails it, and real definitions that fail none.

use serde_json::json;

use super::*;
use crate::path::display_path;

fn definition(schema: Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "tests.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "tests", "kind": "Test"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
        },
    })
}

fn of_spec(schema: Value) -> Value {
    definition(json!({"type": "object", "properties": {"spec": schema}}))
}

fn places(definition: &Value) -> Vec<String> {
    problems(definition).iter().map(|problem| display_path(&problem.path)).collect()
}

#[test]
fn unknown_field_outside_schemas_is_found_and_is_no_problem() {
    let mut crd = of_spec(json!({"type": "object", "properties": {"anything": {"type": "string"}}}));
    assert!(unknown_fields(&crd).is_empty());
    crd["spec"]["version"] = json!("v1");
    crd["spec"]["names"]["shortnames"] = json!(["t"]);
    crd["spec"]["versions"][0]["subresource"] = json!({"status": {}});
    crd["spec"]["versions"][0]["additionalPrinterColumns"] =
        json!([{"name": "A", "type": "string", "jsonPath": ".a", "JSONPath": ".a"}]);
    let found: Vec<String> = unknown_fields(&crd).iter().map(|path| display_path(path)).collect();
    let expected = [
        "spec.names.shortnames",
        "spec.versions[0].subresource",
        "spec.versions[0].additionalPrinterColumns[0].JSONPath",
        "spec.version",
    ];
    assert_eq!(found, expected);
    assert!(problems(&crd).is_empty());
}

#[test]
fn sound_definitions_have_no_problems() {
    for schema in [
        json!({"type": "object"}),
        json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
        json!({"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]}),
        json!({"x-kubernetes-int-or-string": true, "allOf": [{"anyOf": [{"type": "integer"}, {"type": "string"}]}, {"maxLength": 3}]}),
        json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set", "default": ["a"]}),
        json!({"type": "object", "properties": {"a": {"type": "string"}}, "anyOf": [{"required": ["a"]}]}),
        json!({"type": "string", "enum": ["a", null], "nullable": true, "default": null}),
        json!({"type": "object", "additionalProperties": true, "properties": {"a": {"type": "string"}}}),
    ] {
        assert_eq!(problems(&of_spec(schema.clone())), [], "{schema}");
    }
}

#[test]
fn each_rule_of_schemas_is_checked() {
    for (schema, place) in [
        (json!({}), "type"),
        (json!({"type": "text"}), "type"),
        (json!({"type": "string", "minLength": "1"}), "minLength"),
        (json!({"type": "string", "pattern": "a("}), "pattern"),
        (json!({"type": "array"}), "items"),
        (json!({"type": "array", "items": [{"type": "string"}]}), "items"),
        (json!({"type": "array", "items": {"type": "string"}, "uniqueItems": true}), "uniqueItems"),
        (json!({"type": "object", "$ref": "#/x"}), "$ref"),
        (
            json!({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": false}),
            "additionalProperties",
        ),
        (
            json!({"type": "object", "x-kubernetes-preserve-unknown-fields": false}),
            "x-kubernetes-preserve-unknown-fields",
        ),
        (json!({"type": "object", "x-kubernetes-list-type": "atomic"}), "type"),
        (json!({"type": "array", "items": {"type": "object"}, "x-kubernetes-list-type": "set"}), "items"),
        (
            json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "bag"}),
            "x-kubernetes-list-type",
        ),
        (
            json!({"type": "array", "items": {"type": "object", "properties": {"k": {"type": "string"}}},
            "x-kubernetes-list-type": "map"}),
            "x-kubernetes-list-map-keys",
        ),
        (
            json!({"type": "array", "items": {"type": "object", "properties": {"k": {"type": "string"}}},
            "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}),
            "items.properties.k",
        ),
        (
            json!({"type": "array", "items": {"type": "object", "properties": {"k": {"type": "string"}}, "required": ["k"]},
            "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["j"]}),
            "x-kubernetes-list-map-keys",
        ),
        (
            json!({"type": "string", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true}),
            "type",
        ),
        (json!({"type": "object", "x-kubernetes-embedded-resource": true}), "properties"),
        (json!({"type": "string", "anyOf": [{"type": "string"}]}), "anyOf[0].type"),
        (json!({"type": "string", "not": {"nullable": true}}), "not.nullable"),
        (json!({"type": "string", "maxLength": 1, "default": "ab"}), "default"),
        (json!({"type": "object", "properties": {"a": {"type": "string"}}, "default": {"b": 1}}), "default"),
        (json!({"type": "string", "x-kubernetes-validations": [{"message": "x"}]}), "x-kubernetes-validations[0].rule"),
        (
            json!({"type": "string", "x-kubernetes-validations": [{"rule": "true", "reason": "Bad"}]}),
            "x-kubernetes-validations[0].reason",
        ),
        (
            json!({"type": "array", "items": {"type": "string", "x-kubernetes-validations": [{"rule": "self == oldSelf"}]}}),
            "items.x-kubernetes-validations[0].rule",
        ),
        (
            json!({"type": "string", "x-kubernetes-validations": [{"rule": "self == 'oldSelf'", "optionalOldSelf": true}]}),
            "x-kubernetes-validations[0].optionalOldSelf",
        ),
    ] {
        let expected = format!("spec.versions[0].schema.openAPIV3Schema.properties.spec.{place}");
        assert_eq!(places(&of_spec(schema.clone())), [expected], "{schema}");
    }
}

#[test]
fn the_root_has_rules_of_its_own() {
    for (schema, place) in [
        (json!({"type": "string"}), "type"),
        (json!({"type": "object", "nullable": true}), "nullable"),
        (json!({"type": "object", "additionalProperties": {"type": "string"}}), "additionalProperties"),
        (json!({"type": "object", "anyOf": [{"properties": {"x": {"minLength": 1}}}]}), "anyOf[0].properties.x"),
        (
            json!({"type": "object", "properties": {"metadata": {"type": "object", "required": ["name"]}}}),
            "properties.metadata",
        ),
        (json!({"type": "object", "properties": {"kind": {"type": "integer"}}}), "properties.kind.type"),
    ] {
        let expected = format!("spec.versions[0].schema.openAPIV3Schema.{place}");
        assert_eq!(places(&definition(schema.clone())), [expected], "{schema}");
    }
}

#[test]
fn versions_names_and_conversion_are_checked() {
    let sound = of_spec(json!({"type": "object"}));
    let check = |change: &dyn Fn(&mut Value), expected: &[&str]| {
        let mut definition = sound.clone();
        change(&mut definition);
        assert_eq!(places(&definition), expected, "{definition}");
    };
    check(&|crd| crd["metadata"]["name"] = "x".into(), &["metadata.name"]);
    check(&|crd| crd["spec"]["scope"] = "Everywhere".into(), &["spec.scope"]);
    check(&|crd| crd["spec"]["names"]["kind"] = "".into(), &["spec.names.kind"]);
    check(&|crd| crd["spec"]["names"]["listKind"] = "Test".into(), &["spec.names.listKind"]);
    check(&|crd| crd["spec"]["versions"][0]["storage"] = false.into(), &["spec.versions"]);
    check(&|crd| crd["spec"]["versions"][0]["name"] = "1".into(), &["spec.versions[0].name"]);
    check(&|crd| crd["spec"]["versions"][0]["schema"] = Value::Null, &["spec.versions[0].schema"]);
    check(
        &|crd| {
            let mut again = crd["spec"]["versions"][0].clone();
            again["storage"] = false.into();
            crd["spec"]["versions"] = vec![crd["spec"]["versions"][0].clone(), again].into();
        },
        &["spec.versions[1].name"],
    );
    check(&|crd| crd["spec"]["preserveUnknownFields"] = true.into(), &["spec.preserveUnknownFields"]);
    check(
        &|crd| {
            crd["spec"]["conversion"] = json!({"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"]}})
        },
        &["spec.conversion.webhook.clientConfig"],
    );
    check(
        &|crd| {
            crd["spec"]["versions"][0]["subresources"] = json!({"status": {}});
            crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["anyOf"] = json!([{"minProperties": 1}]);
        },
        &["spec.versions[0].schema.openAPIV3Schema.anyOf"],
    );
}

#[test]
fn hostile_documents_are_survived() {
    let deep = (0..500).fold(json!({"type": "string"}), |inner, _| json!({"type": "array", "items": inner}));
    assert_eq!(problems(&of_spec(deep)), []);
    for spec in [json!(null), json!(1), json!({"versions": [1, {"schema": 2}], "names": [], "conversion": "x"})] {
        assert!(!problems(&json!({"apiVersion": "apiextensions.k8s.io/v1", "spec": spec})).is_empty());
    }
    assert_eq!(problems(&json!([])), []);
}

#[test]
fn real_definitions_have_no_problems() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/crds");
    let mut count = 0;
    for entry in std::fs::read_dir(directory).expect("the directory of definitions") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|extension| extension == "json") {
            let text = std::fs::read_to_string(&path).expect("a definition");
            let definition: Value = serde_json::from_str(&text).expect("JSON");
            assert_eq!(problems(&definition), [], "{}", path.display());
            count += 1;
        }
    }
    assert!(count >= 7, "{count} definitions");
}
