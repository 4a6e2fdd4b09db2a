//! Fields of a CRD outside its schemas: those of another JSON type, which cannot be decoded, and unknown ones.
//!
//! Follows the structs in k8s.io/apiextensions-apiserver `pkg/apis/apiextensions/v1/types.go`.

use serde_json::Value;

use super::Collector;
use crate::path::PathSegment;
use crate::schema::pipeline::{Path, Server, format_is_valid};

/// The JSON type of a field. Null counts as absent in each.
#[derive(Clone, Copy)]
enum Kind {
    Text,
    Flag,
    /// An integer of 32 bits.
    Integer,
    /// A base64 text.
    Bytes,
    List(&'static Kind),
    /// A schema, whose fields are checked elsewhere.
    Schema,
    Object(&'static [(&'static str, Kind)]),
}

use Kind::{Bytes, Flag, Integer, List, Object, Schema, Text};

const CRD: Kind = Object(&[("spec", SPEC)]);
const SPEC: Kind = Object(&[
    ("group", Text),
    ("scope", Text),
    ("names", NAMES),
    ("versions", List(&VERSION)),
    ("conversion", CONVERSION),
    ("preserveUnknownFields", Flag),
]);
const NAMES: Kind = Object(&[
    ("plural", Text),
    ("singular", Text),
    ("shortNames", List(&Text)),
    ("kind", Text),
    ("listKind", Text),
    ("categories", List(&Text)),
]);
const VERSION: Kind = Object(&[
    ("name", Text),
    ("served", Flag),
    ("storage", Flag),
    ("deprecated", Flag),
    ("deprecationWarning", Text),
    ("schema", Object(&[("openAPIV3Schema", Schema)])),
    ("subresources", SUBRESOURCES),
    ("additionalPrinterColumns", List(&COLUMN)),
    ("selectableFields", List(&Object(&[("jsonPath", Text)]))),
]);
const SUBRESOURCES: Kind = Object(&[
    ("status", Object(&[])),
    ("scale", Object(&[("specReplicasPath", Text), ("statusReplicasPath", Text), ("labelSelectorPath", Text)])),
]);
const COLUMN: Kind = Object(&[
    ("name", Text),
    ("type", Text),
    ("format", Text),
    ("description", Text),
    ("priority", Integer),
    ("jsonPath", Text),
]);
const CONVERSION: Kind = Object(&[
    ("strategy", Text),
    (
        "webhook",
        Object(&[
            ("conversionReviewVersions", List(&Text)),
            (
                "clientConfig",
                Object(&[
                    ("url", Text),
                    ("caBundle", Bytes),
                    ("service", Object(&[("name", Text), ("namespace", Text), ("path", Text), ("port", Integer)])),
                ]),
            ),
        ]),
    ),
]);

/// Finds values of another type than the server decodes.
pub(super) fn check(found: &mut Collector, definition: &Value) {
    value(found, CRD, definition);
}

fn value(found: &mut Collector, kind: Kind, value: &Value) {
    match (kind, value) {
        (_, Value::Null) | (Text, Value::String(_)) | (Flag, Value::Bool(_)) => {}
        (Bytes, Value::String(text)) => {
            // Go's decoder skips line ends.
            let text: String = text.chars().filter(|character| !matches!(character, '\r' | '\n')).collect();
            if !text.is_empty() && format_is_valid("byte", &text, Server::default()) == Some(false) {
                found.here("must be base64");
            }
        }
        (Integer, Value::Number(number)) if number.as_i64().is_some_and(|number| i32::try_from(number).is_ok()) => {}
        (List(inner), Value::Array(items)) => {
            for (index, item) in items.iter().enumerate() {
                found.below(index, |found| self::value(found, *inner, item));
            }
        }
        (Object(fields), Value::Object(map)) => {
            for (name, kind) in fields {
                if let Some(inner) = map.get(*name) {
                    found.below(*name, |found| self::value(found, *kind, inner));
                }
            }
        }
        (Schema, Value::Object(_)) => {}
        (kind, _) => found.here(format!("must be {}", shown(kind))),
    }
}

/// Returns the paths of fields in `spec` that a CRD does not have, outside its schemas. The server refuses them, unless it
/// is asked to drop them.
#[must_use]
pub fn unknown_fields(definition: &Value) -> Vec<Path> {
    let mut found = Vec::new();
    if let Some(spec) = definition.get("spec") {
        add_unknown(SPEC, spec, &mut vec!["spec".into()], &mut found);
    }
    found
}

fn add_unknown(kind: Kind, value: &Value, path: &mut Path, found: &mut Vec<Path>) {
    let mut below = |segment: PathSegment, kind: Option<Kind>, inner: &Value| {
        path.push(segment);
        match kind {
            Some(kind) => add_unknown(kind, inner, path, found),
            None => found.push(path.clone()),
        }
        path.pop();
    };
    match (kind, value) {
        (List(inner), Value::Array(items)) => {
            items.iter().enumerate().for_each(|(index, item)| below(index.into(), Some(*inner), item));
        }
        (Object(fields), Value::Object(map)) => {
            for (name, inner) in map {
                let kind = fields.iter().find(|(known, _)| known == name).map(|(_, kind)| *kind);
                below(name.as_str().into(), kind, inner);
            }
        }
        _ => {}
    }
}

fn shown(kind: Kind) -> &'static str {
    match kind {
        Text => "a string",
        Flag => "true or false",
        Integer => "an integer of 32 bits",
        Bytes => "a base64 string",
        List(_) => "a list",
        Schema | Object(_) => "an object",
    }
}
