//! The schema of status as its own subresource writes it: the server validates embedded resources when the object is
//! created or updated, and not when its status is.
//!
//! Follows k8s.io/apiextensions-apiserver `pkg/registry/customresource/status_strategy.go` (`ValidateUpdate`).

use std::collections::BTreeMap;

use serde_json::json;

use super::{Additional, Schema};

const STATUS: &str = "status";

/// Returns the schema with embedded resources in status as plain objects that keep the fields of a resource; `None` if
/// status has none.
pub(in crate::schema) fn written_alone(schema: &Schema) -> Option<Schema> {
    let status = schema.properties.get(STATUS).filter(|status| embeds(status))?;
    let mut plain = status.clone();
    unembed(&mut plain);
    Some(with_fields(schema, [(STATUS, plain)]))
}

fn embeds(schema: &Schema) -> bool {
    schema.embedded_resource || schema.children().any(embeds)
}

fn unembed(schema: &mut Schema) {
    schema.properties.values_mut().for_each(unembed);
    if let Some(Additional::Schema(values)) = &mut schema.additional {
        unembed(values);
    }
    if let Some(items) = &mut schema.items {
        unembed(items);
    }
    if !std::mem::take(&mut schema.embedded_resource) {
        return;
    }
    let text = json!({"type": "string"});
    let fields = [
        ("apiVersion", text.clone()),
        ("kind", text),
        ("metadata", json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})),
    ];
    let missing = fields.into_iter().filter(|(name, _)| !schema.properties.contains_key(name));
    let missing: Vec<(&'static str, Schema)> = missing.map(|(name, field)| (name, Schema::of(&field))).collect();
    *schema = with_fields(schema, missing);
}

/// Returns the schema with these fields added or replaced.
fn with_fields(schema: &Schema, fields: impl IntoIterator<Item = (&'static str, Schema)>) -> Schema {
    let mut all: BTreeMap<String, Schema> =
        schema.properties.iter().map(|(name, field)| (name.clone(), field.clone())).collect();
    all.extend(fields.into_iter().map(|(name, field)| (name.to_owned(), field)));
    Schema { properties: all.into_iter().collect(), ..schema.clone() }
}
