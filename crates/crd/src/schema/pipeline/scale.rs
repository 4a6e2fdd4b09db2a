//! Fields of the scale subresource: on every write the server requires replicas to be integers from 0 to 2³¹−1 and the
//! label selector to be a string. Null is neither. Unchanged values are not ratcheted.
//!
//! Follows k8s.io/apiextensions-apiserver `pkg/registry/customresource/validator.go` (`ValidateScaleSpec`,
//! `ValidateScaleStatus`).

use serde_json::{Map, Value, json};

use super::{Path, SchemaError};

/// Keys of the subresource that lead to replicas.
const REPLICAS: [&str; 2] = ["specReplicasPath", "statusReplicasPath"];
const SELECTOR: &str = "labelSelectorPath";

/// Keyword of errors in these fields.
pub(in crate::schema) const KEYWORD: &str = "scaleSubresource";

/// A field of the scale subresource.
struct ScaleField<'a> {
    names: Vec<&'a str>,
    is_replicas: bool,
}

/// Returns the fields that the server validates. It takes names and dots only, and ignores a leading dot.
fn fields(scale: &Value) -> impl Iterator<Item = ScaleField<'_>> {
    REPLICAS.into_iter().chain([SELECTOR]).filter_map(|key| {
        let path = scale.get(key)?.as_str().filter(|path| !path.is_empty())?;
        let names = path.strip_prefix('.').unwrap_or(path).split('.').collect();
        Some(ScaleField { names, is_replicas: key != SELECTOR })
    })
}

/// Returns the errors of an object in these fields.
pub(super) fn validate(scale: &Value, object: &Value) -> Vec<SchemaError> {
    fields(scale).filter_map(|field| error(&field, object)).collect()
}

fn error(field: &ScaleField<'_>, object: &Value) -> Option<SchemaError> {
    let mut path = Path::new();
    let mut value = object;
    for name in &field.names {
        let map = match value {
            Value::Null => return None,
            Value::Object(map) => map,
            _ => return Some(invalid(path, "must be an object, as the scale subresource reads a field in it")),
        };
        path.push((*name).into());
        value = map.get(*name)?;
    }
    let message = match (field.is_replicas, value) {
        (false, Value::String(_)) => return None,
        (false, _) => "the scale subresource requires a string",
        (true, Value::Number(number)) => match number.as_i64() {
            Some(0..=MOST_REPLICAS) => return None,
            Some(_) => "the scale subresource requires an integer from 0 to 2147483647",
            None => "the scale subresource requires an integer, written without a fraction",
        },
        (true, _) => "the scale subresource requires an integer",
    };
    Some(invalid(path, message))
}

const MOST_REPLICAS: i64 = 2_147_483_647;

fn invalid(path: Path, message: &str) -> SchemaError {
    SchemaError { path, keyword: KEYWORD, message: message.to_owned(), rule: None }
}

/// Returns the schema, as written, that every object with the subresource satisfies.
pub(in crate::schema) fn schema(scale: &Value) -> Value {
    let mut root = json!({});
    for field in fields(scale) {
        let end = match field.is_replicas {
            true => json!({"type": "integer", "minimum": 0, "maximum": MOST_REPLICAS}),
            false => json!({"type": "string"}),
        };
        merge(&mut root, &field.names, end);
    }
    root
}

/// Adds a schema below the names.
fn merge(node: &mut Value, names: &[&str], end: Value) {
    let Value::Object(keywords) = node else { return };
    let Some((name, rest)) = names.split_first() else {
        if let Value::Object(end) = end {
            keywords.extend(end);
        }
        return;
    };
    // The server reads on in an object and in null only.
    keywords.entry("type").or_insert_with(|| "object".into());
    keywords.entry("nullable").or_insert(Value::Bool(true));
    let fields = keywords.entry("properties").or_insert_with(|| Value::Object(Map::new()));
    if let Value::Object(fields) = fields {
        merge(fields.entry((*name).to_owned()).or_insert_with(|| json!({})), rest, end);
    }
}
