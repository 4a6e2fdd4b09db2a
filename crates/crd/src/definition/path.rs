//! Text forms of schema nodes: `spec.items[*].name` in reports; `properties`, `spec`, … in the document.

use serde_json::Value;

use crate::path::{PathSegment, display_path};
use crate::schema::contain::SchemaStep;

/// The node as reports write it: `spec.items[*].name`; empty for the root.
#[must_use]
pub fn field_path(path: &[SchemaStep]) -> String {
    written(path, "[*]")
}

/// Like [`field_path`], but with map keys distinguished from items: `spec.disks[*].size`, `spec.labels{*}`,
/// `data["tls.key"]`.
#[must_use]
pub fn field_path_with_keys(path: &[SchemaStep]) -> String {
    written(path, "{*}")
}

fn written(path: &[SchemaStep], free_key: &str) -> String {
    let mut text = String::new();
    for step in path {
        match step {
            SchemaStep::Property(name) => {
                let key = display_path(&[PathSegment::Key(name.clone())]);
                if !text.is_empty() && !key.starts_with('[') {
                    text.push('.');
                }
                text.push_str(&key);
            }
            SchemaStep::Items => text.push_str("[*]"),
            SchemaStep::Additional => text.push_str(free_key),
        }
    }
    text
}

/// The node as kapp and OLM write it: `^.spec.items[*].name`, `^` for the root.
#[must_use]
pub fn rooted(path: &[SchemaStep]) -> String {
    match field_path(path) {
        empty if empty.is_empty() => "^".to_owned(),
        keyed if keyed.starts_with('[') => format!("^{keyed}"),
        plain => format!("^.{plain}"),
    }
}

/// Path of the node in the definition.
#[must_use]
pub fn schema_path(path: &[SchemaStep]) -> Vec<PathSegment> {
    let mut segments = Vec::new();
    for step in path {
        match step {
            SchemaStep::Property(name) => segments.extend(["properties".into(), name.as_str().into()]),
            SchemaStep::Additional => segments.push("additionalProperties".into()),
            SchemaStep::Items => segments.push("items".into()),
        }
    }
    segments
}

/// The version and the schema node that a path of a definition points to.
#[must_use]
pub fn node_at(definition: &Value, path: &[PathSegment]) -> Option<(String, Vec<SchemaStep>)> {
    let key = |index: usize| match path.get(index) {
        Some(PathSegment::Key(key)) => Some(key.as_str()),
        _ => None,
    };
    let (Some("spec"), Some("versions"), Some(PathSegment::Index(index))) = (key(0), key(1), path.get(2)) else {
        return None;
    };
    let name = definition["spec"]["versions"][*index]["name"].as_str()?.to_owned();
    let mut steps = Vec::new();
    if (key(3), key(4)) == (Some("schema"), Some("openAPIV3Schema")) {
        let mut at = 5;
        loop {
            match (key(at), key(at + 1)) {
                (Some("properties"), Some(field)) => {
                    steps.push(SchemaStep::Property(field.to_owned()));
                    at += 2;
                }
                (Some("items"), _) => {
                    steps.push(SchemaStep::Items);
                    at += 1;
                }
                (Some("additionalProperties"), Some(_)) => {
                    steps.push(SchemaStep::Additional);
                    at += 1;
                }
                _ => break,
            }
        }
    }
    Some((name, steps))
}
