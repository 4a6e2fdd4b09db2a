//! Server-side apply: before validation it parses an object by the merge strategies of the schema, and fails for some
//! objects that every other write accepts.
//!
//! Follows sigs.k8s.io/structured-merge-diff `typed/validate.go` and `typed/helpers.go`.

use serde_json::Value;

use super::{Path, SchemaError};
use crate::path::PathSegment;
use crate::schema::model::{ListType, Schema, Type};

/// Why a valid object cannot be applied: the request ends with an internal error.
pub(in crate::schema) fn problem(schema: &Schema, object: &Value) -> Option<SchemaError> {
    let fields = object.as_object()?.iter().filter(|(name, _)| !is_built_in(name));
    let mut path = Path::new();
    fields.into_iter().find_map(|(name, value)| field(schema, name, value, &mut path))
}

fn is_built_in(name: &str) -> bool {
    ["apiVersion", "kind", "metadata"].contains(&name)
}

fn node(schema: &Schema, value: &Value, path: &mut Path) -> Option<SchemaError> {
    match value {
        // Validation accepts a list where a string format is set, but the merge requires a string.
        Value::Array(_) if schema.kind == Some(Type::String) => Some(error(path, "type", "a list is no text")),
        Value::Array(items) => {
            let of_scalars = schema.list_type == Some(ListType::Set);
            items.iter().enumerate().find_map(|(index, item)| {
                path.push(index.into());
                let wrong = if of_scalars && (item.is_object() || item.is_array()) {
                    Some(error(path, "x-kubernetes-list-type", "only scalars can be items of a set"))
                } else {
                    schema.items.as_deref().and_then(|items| node(items, item, path))
                };
                path.pop();
                wrong
            })
        }
        Value::Object(fields) => fields
            .iter()
            .filter(|(name, _)| !schema.embedded_resource || !is_built_in(name))
            .find_map(|(name, value)| field(schema, name, value, path)),
        _ => None,
    }
}

fn field(schema: &Schema, name: &str, value: &Value, path: &mut Path) -> Option<SchemaError> {
    let inner = schema.properties.get(name).or_else(|| schema.additional_schema())?;
    path.push(name.into());
    let wrong = node(inner, value, path);
    path.pop();
    wrong
}

fn error(path: &[PathSegment], keyword: &'static str, message: &str) -> SchemaError {
    SchemaError { path: path.to_vec(), keyword, message: message.to_owned(), rule: None }
}

/// The items that stay when `second` is applied over `first` and no field manager removes them.
pub(in crate::schema) fn left_behind(first: &Value, second: &Value) -> Value {
    let kept = |item: &&Value| !second.as_array().is_some_and(|items| items.contains(item));
    first.as_array().into_iter().flatten().filter(kept).cloned().collect()
}
