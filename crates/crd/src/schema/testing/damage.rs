//! Schemas that may be invalid.

use serde_json::{Map, Value, json};

use super::Generator;

impl Generator {
    /// The schema with one keyword added, removed or changed, anywhere in it.
    pub fn damaged(&mut self, schema: &Value) -> Value {
        let mut damaged = schema.clone();
        let mut pointer = String::new();
        while let Some(node) = damaged.pointer(&pointer) {
            let properties = node["properties"].as_object().into_iter().flat_map(Map::keys);
            let children: Vec<String> =
                ["items", "additionalProperties", "not", "allOf/0", "anyOf/0", "oneOf/0", "anyOf/1"]
                    .iter()
                    .map(ToString::to_string)
                    .chain(properties.map(|name| format!("properties/{name}")))
                    .map(|step| format!("{pointer}/{step}"))
                    .filter(|pointer| damaged.pointer(pointer).is_some_and(Value::is_object))
                    .collect();
            if children.is_empty() || self.chance(30) {
                break;
            }
            pointer.clone_from(self.pick(&children));
        }
        let Some(Value::Object(map)) = damaged.pointer_mut(&pointer) else { return damaged };
        map.retain(|_, value| !value.is_null());
        if self.chance(25) && !map.is_empty() {
            let keys: Vec<String> = map.keys().cloned().collect();
            map.shift_remove(self.pick(&keys));
            return damaged;
        }
        let extras = [
            ("type", json!("string")),
            ("type", json!("object")),
            ("type", json!("array")),
            ("type", json!("null")),
            ("nullable", json!(true)),
            ("format", json!("date")),
            ("pattern", json!("a(")),
            ("pattern", json!("\\d")),
            ("minLength", json!("1")),
            ("minLength", json!(1.5)),
            ("maximum", json!("1")),
            ("required", json!(["a"])),
            ("required", json!("a")),
            ("enum", json!([])),
            ("enum", json!("a")),
            ("uniqueItems", json!(true)),
            ("uniqueItems", json!(false)),
            ("items", json!({"type": "string"})),
            ("items", json!([{"type": "string"}])),
            ("items", json!(true)),
            ("items", json!({})),
            ("properties", json!({"a": {"type": "string"}})),
            ("properties", json!({"metadata": {"type": "object"}})),
            ("properties", json!({"metadata": {"type": "string"}})),
            (
                "properties",
                json!({"metadata": {"type": "object", "properties": {"name": {"type": "string", "default": "a"}}}}),
            ),
            ("properties", json!({"kind": {"type": "integer"}})),
            ("properties", json!({"a": true})),
            ("properties", json!({})),
            ("additionalProperties", json!(true)),
            ("additionalProperties", json!(false)),
            ("additionalProperties", json!({"type": "string"})),
            ("allOf", json!([{"minLength": 1}])),
            ("anyOf", json!([{"type": "integer"}, {"type": "string"}])),
            ("anyOf", json!([{"type": "string"}])),
            ("oneOf", json!([{"properties": {"zz": {"minLength": 1}}}])),
            ("not", json!({"nullable": true})),
            ("not", json!({"required": ["a"]})),
            ("not", json!({"items": {"minLength": 1}})),
            ("title", json!("x")),
            ("description", json!("x")),
            ("$ref", json!("#/a")),
            ("id", json!("a")),
            ("definitions", json!({})),
            ("definitions", json!({"a": {}})),
            ("patternProperties", json!({"a": {"type": "string"}})),
            ("dependencies", json!({})),
            ("additionalItems", json!(false)),
            ("externalDocs", json!({"url": "x"})),
            ("example", json!(1)),
            ("default", json!(null)),
            ("default", json!("a")),
            ("default", json!({})),
            ("default", json!({"zz": 1})),
            ("default", json!([])),
            ("default", json!(1)),
            ("unknown", json!(1)),
            ("x-kubernetes-preserve-unknown-fields", json!(true)),
            ("x-kubernetes-preserve-unknown-fields", json!(false)),
            ("x-kubernetes-int-or-string", json!(true)),
            ("x-kubernetes-embedded-resource", json!(true)),
            ("x-kubernetes-list-type", json!("set")),
            ("x-kubernetes-list-type", json!("map")),
            ("x-kubernetes-list-type", json!("atomic")),
            ("x-kubernetes-list-type", json!("bag")),
            ("x-kubernetes-list-map-keys", json!(["a"])),
            ("x-kubernetes-list-map-keys", json!(["k", "k"])),
            ("x-kubernetes-map-type", json!("atomic")),
            ("x-kubernetes-map-type", json!("x")),
            ("x-kubernetes-validations", json!([{"rule": "true"}])),
            ("x-kubernetes-validations", json!([{"rule": " "}])),
            ("x-kubernetes-validations", json!([{"rule": "self == oldSelf"}])),
            ("x-kubernetes-validations", json!([{"rule": "true", "optionalOldSelf": true}])),
            ("x-kubernetes-validations", json!([{"rule": "true", "message": "a\nb"}])),
            ("x-kubernetes-validations", json!([{"rule": "true", "reason": "Bad"}])),
            ("x-kubernetes-validations", json!([{"rule": "true", "fieldPath": " "}])),
        ];
        let (keyword, value) = self.pick(&extras);
        map.insert((*keyword).to_owned(), value.clone());
        damaged
    }
}
