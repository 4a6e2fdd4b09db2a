//! The keywords that the API server decodes: the JSON types that it expects, and how each may be used.
//!
//! The types are those of `JSONSchemaProps` in k8s.io/apiextensions-apiserver
//! `pkg/apis/apiextensions/v1/types_jsonschema.go`.

use serde_json::Value;

/// A keyword, with all that is known of it apart from its meaning.
#[derive(Clone, Copy)]
pub(crate) struct Keyword {
    pub(crate) name: &'static str,
    /// The JSON type that it is decoded as; a value of another type fails to decode.
    pub(crate) json: Json,
    /// Whether it can only reject an object when it is written, and never changes how a stored one is decoded.
    pub(crate) only_refuses: bool,
    /// Whether its errors are at the parent object, so that every edit of that object is rejected.
    pub(crate) is_of_the_parent: bool,
    /// Whether a comparison names it as what changed.
    pub(crate) is_compared: bool,
    /// Whether the root may have it if the version has a status subresource.
    pub(crate) may_be_beside_status: bool,
}

/// The keywords that the API server knows; it drops others.
pub(crate) static KEYWORDS: [Keyword; 44] = [
    row("type", Json::Text).beside_status(),
    row("format", Json::Text).only_refuses().beside_status(),
    row("title", Json::Text).uncompared().beside_status(),
    row("description", Json::Text).uncompared().beside_status(),
    row("pattern", Json::Text).only_refuses().beside_status(),
    row("id", Json::Text).uncompared(),
    row("$schema", Json::Text).uncompared().beside_status(),
    row("$ref", Json::Text).uncompared(),
    row("nullable", Json::Boolean),
    row("exclusiveMinimum", Json::Boolean).only_refuses().beside_status(),
    row("exclusiveMaximum", Json::Boolean).only_refuses().beside_status(),
    row("uniqueItems", Json::Boolean).only_refuses().beside_status(),
    row("minimum", Json::Number).only_refuses().beside_status(),
    row("maximum", Json::Number).only_refuses().beside_status(),
    row("multipleOf", Json::Number).only_refuses().beside_status(),
    row("minLength", Json::Integer).only_refuses().beside_status(),
    row("maxLength", Json::Integer).only_refuses().beside_status(),
    row("minItems", Json::Integer).only_refuses().beside_status(),
    row("maxItems", Json::Integer).only_refuses().beside_status(),
    row("minProperties", Json::Integer).only_refuses().of_the_parent(),
    row("maxProperties", Json::Integer).only_refuses().of_the_parent(),
    row("enum", Json::List).only_refuses(),
    row("required", Json::Texts).only_refuses().of_the_parent().beside_status(),
    row("allOf", Json::Objects).only_refuses().of_the_parent(),
    row("anyOf", Json::Objects).only_refuses().of_the_parent(),
    row("oneOf", Json::Objects).only_refuses().of_the_parent(),
    row("not", Json::Object).only_refuses().of_the_parent(),
    row("properties", Json::ObjectsByName).uncompared().beside_status(),
    row("patternProperties", Json::ObjectsByName).uncompared(),
    row("definitions", Json::ObjectsByName).uncompared(),
    row("dependencies", Json::Object).uncompared(),
    row("externalDocs", Json::Object).uncompared().beside_status(),
    row("additionalProperties", Json::ObjectOrBoolean),
    row("additionalItems", Json::ObjectOrBoolean).uncompared(),
    row("x-kubernetes-preserve-unknown-fields", Json::Boolean).beside_status(),
    row("x-kubernetes-embedded-resource", Json::Boolean).of_the_parent(),
    row("x-kubernetes-int-or-string", Json::Boolean),
    row("x-kubernetes-list-type", Json::Text).only_refuses(),
    row("x-kubernetes-list-map-keys", Json::Texts).only_refuses(),
    row("x-kubernetes-map-type", Json::Text).only_refuses(),
    row("x-kubernetes-validations", Json::Objects).only_refuses().of_the_parent().beside_status(),
    row("default", Json::Any),
    row("items", Json::Any).beside_status(),
    row("example", Json::Any).uncompared().beside_status(),
];

const fn row(name: &'static str, json: Json) -> Keyword {
    Keyword { name, json, only_refuses: false, is_of_the_parent: false, is_compared: true, may_be_beside_status: false }
}

impl Keyword {
    const fn only_refuses(self) -> Self {
        Self { only_refuses: true, ..self }
    }

    const fn of_the_parent(self) -> Self {
        Self { is_of_the_parent: true, ..self }
    }

    const fn uncompared(self) -> Self {
        Self { is_compared: false, ..self }
    }

    const fn beside_status(self) -> Self {
        Self { may_be_beside_status: true, ..self }
    }
}

/// The keyword with this name.
pub(crate) fn find(name: &str) -> Option<&'static Keyword> {
    KEYWORDS.iter().find(|keyword| keyword.name == name)
}

#[derive(Clone, Copy)]
pub(crate) enum Json {
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
    Any,
}

impl Json {
    pub(crate) fn allows(self, value: &Value) -> bool {
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
            Self::Any => true,
        }
    }

    pub(crate) fn as_str(self) -> &'static str {
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
            Self::Any => "anything",
        }
    }
}
