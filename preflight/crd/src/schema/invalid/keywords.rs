//! The keywords that the API server decodes and the JSON types that it expects.
//!
//! The types are those of `JSONSchemaProps` in k8s.io/apiextensions-apiserver
//! `pkg/apis/apiextensions/v1/types_jsonschema.go`.

use serde_json::Value;

/// The JSON types of keywords; a value of another type fails to decode.
pub(super) const KEYWORDS: [(&str, Json); 41] = [
    ("type", Json::Text),
    ("format", Json::Text),
    ("title", Json::Text),
    ("description", Json::Text),
    ("pattern", Json::Text),
    ("id", Json::Text),
    ("$schema", Json::Text),
    ("$ref", Json::Text),
    ("nullable", Json::Boolean),
    ("exclusiveMinimum", Json::Boolean),
    ("exclusiveMaximum", Json::Boolean),
    ("uniqueItems", Json::Boolean),
    ("minimum", Json::Number),
    ("maximum", Json::Number),
    ("multipleOf", Json::Number),
    ("minLength", Json::Integer),
    ("maxLength", Json::Integer),
    ("minItems", Json::Integer),
    ("maxItems", Json::Integer),
    ("minProperties", Json::Integer),
    ("maxProperties", Json::Integer),
    ("enum", Json::List),
    ("required", Json::Texts),
    ("allOf", Json::Objects),
    ("anyOf", Json::Objects),
    ("oneOf", Json::Objects),
    ("not", Json::Object),
    ("properties", Json::ObjectsByName),
    ("patternProperties", Json::ObjectsByName),
    ("definitions", Json::ObjectsByName),
    ("dependencies", Json::Object),
    ("externalDocs", Json::Object),
    ("additionalProperties", Json::ObjectOrBoolean),
    ("additionalItems", Json::ObjectOrBoolean),
    ("x-kubernetes-preserve-unknown-fields", Json::Boolean),
    ("x-kubernetes-embedded-resource", Json::Boolean),
    ("x-kubernetes-int-or-string", Json::Boolean),
    ("x-kubernetes-list-type", Json::Text),
    ("x-kubernetes-list-map-keys", Json::Texts),
    ("x-kubernetes-map-type", Json::Text),
    ("x-kubernetes-validations", Json::Objects),
];

#[derive(Clone, Copy)]
pub(super) enum Json {
    Text,
    Texts,
    Boolean,
    Number,
    Integer,
    List,
    Object,
    Objects,
    ObjectsByName,
    ObjectOrBoolean,
}

impl Json {
    pub(super) fn allows(self, value: &Value) -> bool {
        let all = |is_fine: fn(&Value) -> bool| {
            value.as_array().is_some_and(|items| items.iter().all(|item| item.is_null() || is_fine(item)))
        };
        match self {
            Self::Text => value.is_string(),
            Self::Texts => all(Value::is_string),
            Self::Boolean => value.is_boolean(),
            Self::Number => value.is_number(),
            Self::Integer => value.as_f64().is_some_and(|number| number.fract() == 0.0),
            Self::List => value.is_array(),
            Self::Object => value.is_object(),
            Self::Objects => all(Value::is_object),
            Self::ObjectsByName => value
                .as_object()
                .is_some_and(|values| values.values().all(|value| value.is_null() || value.is_object())),
            Self::ObjectOrBoolean => value.is_object() || value.is_boolean(),
        }
    }

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Text => "a string",
            Self::Texts => "a list of strings",
            Self::Boolean => "a boolean",
            Self::Number => "a number",
            Self::Integer => "an integer",
            Self::List => "a list",
            Self::Object => "an object",
            Self::Objects => "a list of objects",
            Self::ObjectsByName => "a map of objects",
            Self::ObjectOrBoolean => "a schema or a boolean",
        }
    }
}

/// Whether the server knows the keyword; it drops others.
pub(super) fn is_keyword(word: &str) -> bool {
    KEYWORDS.iter().any(|(known, _)| *known == word) || ["default", "items", "example"].contains(&word)
}
