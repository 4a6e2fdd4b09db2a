//! Decoding of an object, before validation: unknown fields and stray nulls are dropped, metadata is coerced, defaults
//! are filled in.
//!
//! Follows k8s.io/apiextensions-apiserver `pkg/apiserver/schema/pruning/algorithm.go` and
//! `schema/defaulting/algorithm.go`.

use serde_json::{Map, Value};

use super::{Admission, Path, Resource, SchemaError, metadata};
use crate::path::PathSegment;
use crate::schema::model::{Additional, Schema};

/// The fields of a resource that a schema does not need to name.
const TYPE_AND_METADATA: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Decodes `object`. Metadata that cannot be decoded is dropped from an object in etcd and is an error in a request.
pub(super) fn shape(resource: &Resource<'_>, object: &Value, from_etcd: bool) -> Admission {
    shape_with(resource, object, from_etcd, true)
}

/// Decodes an object that was converted to this version: defaults are those of the version that it was read in.
pub(super) fn shape_converted(resource: &Resource<'_>, object: &Value) -> Admission {
    shape_with(resource, object, true, false)
}

fn shape_with(resource: &Resource<'_>, object: &Value, from_etcd: bool, defaults: bool) -> Admission {
    let mut admission = Admission { object: object.clone(), ..Admission::default() };
    let Value::Object(_) = object else {
        let message = "a resource is an object".to_owned();
        admission.errors.push(SchemaError { path: Path::new(), keyword: "type", message, rule: None });
        return admission;
    };
    let metadata = metadata::coerce_root(&mut admission, from_etcd);
    let mut shaper = Shaper { admission, path: Path::new(), from_etcd };
    let mut object = shaper.admission.object.take();
    if !resource.preserve_unknown_fields {
        shaper.prune(&mut object, Some(resource.schema), true);
        shaper.drop_nulls(&mut object, resource.schema);
    }
    shaper.coerce_embedded(&mut object, resource.schema);
    if let (Some(metadata), Value::Object(map)) = (metadata, &mut object) {
        map.insert("metadata".to_owned(), metadata);
    }
    if defaults {
        shaper.default(&mut object, resource.schema);
    }
    shaper.admission.object = object;
    shaper.admission
}

/// The schema of the value under `key`: `None` if the field is unknown, `Some(None)` if it is known but free.
fn child<'a>(schema: &'a Schema, key: &str) -> Option<Option<&'a Schema>> {
    if let Some(property) = schema.properties.get(key) {
        return Some(Some(property));
    }
    match &schema.additional {
        Some(Additional::Schema(schema)) => Some(Some(schema)),
        Some(Additional::Anything | Additional::Nothing) => Some(None),
        None => None,
    }
}

struct Shaper {
    admission: Admission,
    path: Path,
    from_etcd: bool,
}

impl Shaper {
    fn at(&self, segment: PathSegment) -> Path {
        self.path.iter().cloned().chain([segment]).collect()
    }

    fn below(&mut self, segment: PathSegment, look: impl FnOnce(&mut Self)) {
        self.path.push(segment);
        look(self);
        self.path.pop();
    }

    fn each(&mut self, items: &mut [Value], mut look: impl FnMut(&mut Self, &mut Value)) {
        for (index, item) in items.iter_mut().enumerate() {
            self.below(index.into(), |shaper| look(shaper, item));
        }
    }

    fn prune(&mut self, value: &mut Value, schema: Option<&Schema>, is_root: bool) {
        if let Some(schema) = schema.filter(|schema| schema.preserve_unknown) {
            return self.prune_below(value, schema, is_root);
        }
        match value {
            Value::Object(map) => {
                let is_resource = is_root || schema.is_some_and(|schema| schema.embedded_resource);
                self.retain(map, |shaper, key, value| {
                    if is_resource && TYPE_AND_METADATA.contains(&key) {
                        return true;
                    }
                    let Some(child) = schema.and_then(|schema| child(schema, key)) else { return false };
                    shaper.below(key.into(), |shaper| shaper.prune(value, child, false));
                    true
                });
            }
            Value::Array(items) => {
                let schema = schema.and_then(|schema| schema.items.as_deref());
                self.each(items, |shaper, item| shaper.prune(item, schema, false));
            }
            _ => {}
        }
    }

    /// Below a node that preserves unknown fields, fields that the schema names are still pruned inside.
    fn prune_below(&mut self, value: &mut Value, schema: &Schema, is_root: bool) {
        match value {
            Value::Object(map) => {
                let is_resource = is_root || schema.embedded_resource;
                for (key, value) in map.iter_mut() {
                    if is_resource && TYPE_AND_METADATA.contains(&key.as_str()) {
                        continue;
                    }
                    if let Some(child) = child(schema, key) {
                        self.below(key.as_str().into(), |shaper| shaper.prune(value, child, false));
                    }
                }
            }
            Value::Array(items) => {
                let Some(schema) = &schema.items else { return };
                self.each(items, |shaper, item| shaper.prune_below(item, schema, false));
            }
            _ => {}
        }
    }

    /// Keeps the entries that `keep` accepts and records the others as pruned.
    fn retain(&mut self, map: &mut Map<String, Value>, mut keep: impl FnMut(&mut Self, &str, &mut Value) -> bool) {
        map.retain(|key, value| {
            let kept = keep(self, key, value);
            if !kept {
                let path = self.at(key.as_str().into());
                self.admission.pruned.push(path);
            }
            kept
        });
    }

    fn drop_nulls(&mut self, value: &mut Value, schema: &Schema) {
        match value {
            Value::Object(map) => map.retain(|key, value| {
                let Some(Some(schema)) = child(schema, key) else { return true };
                if value.is_null() && !schema.nullable && schema.default.is_none() {
                    let path = self.at(key.as_str().into());
                    self.admission.dropped_nulls.push(path);
                    return false;
                }
                self.below(key.as_str().into(), |shaper| shaper.drop_nulls(value, schema));
                true
            }),
            Value::Array(items) => {
                let Some(schema) = &schema.items else { return };
                self.each(items, |shaper, item| shaper.drop_nulls(item, schema));
            }
            _ => {}
        }
    }

    /// Coerces type and metadata of embedded resources.
    fn coerce_embedded(&mut self, value: &mut Value, schema: &Schema) {
        match value {
            Value::Object(map) => {
                if schema.embedded_resource {
                    metadata::coerce_embedded(&mut self.admission, &self.path, map, self.from_etcd);
                }
                for (key, value) in map.iter_mut() {
                    if let Some(Some(schema)) = child(schema, key) {
                        self.below(key.as_str().into(), |shaper| shaper.coerce_embedded(value, schema));
                    }
                }
            }
            Value::Array(items) => {
                let Some(schema) = &schema.items else { return };
                self.each(items, |shaper, item| shaper.coerce_embedded(item, schema));
            }
            _ => {}
        }
    }

    fn default(&mut self, value: &mut Value, schema: &Schema) {
        match value {
            Value::Object(map) => {
                for (name, property) in schema.defaulted_properties() {
                    let is_wanted = map.get(name).is_none_or(|value| value.is_null() && !property.nullable);
                    if let Some(default) = property.default.as_ref().filter(|_| is_wanted) {
                        let path = self.at(name.into());
                        self.admission.defaulted.push(path);
                        map.insert(name.to_owned(), decoded_default(default, property));
                    }
                }
                for (key, value) in map.iter_mut() {
                    let Some(Some(schema)) = child(schema, key) else { continue };
                    self.below(key.as_str().into(), |shaper| shaper.default_node(value, schema));
                }
            }
            Value::Array(items) => {
                let Some(schema) = &schema.items else { return };
                self.each(items, |shaper, item| shaper.default_node(item, schema));
            }
            _ => {}
        }
    }

    /// Fills in a node that is null, and what is below it.
    fn default_node(&mut self, value: &mut Value, schema: &Schema) {
        if let Some(default) = schema.default.as_ref().filter(|_| value.is_null() && !schema.nullable) {
            self.admission.defaulted.push(self.path.clone());
            *value = decoded_default(default, schema);
        }
        self.default(value, schema);
    }
}

/// Prunes a default of a definition and validates the metadata in it.
pub(super) fn shape_default(schema: &Schema, default: &Value) -> Admission {
    let mut shaper = Shaper { admission: Admission::default(), path: Path::new(), from_etcd: false };
    let mut object = default.clone();
    shaper.prune(&mut object, Some(schema), false);
    let pruned = std::mem::take(&mut shaper.admission.pruned);
    shaper.coerce_embedded(&mut object, schema);
    // Unknown metadata fields are dropped silently.
    shaper.admission.pruned = pruned;
    shaper.admission.object = object;
    shaper.admission
}

/// When the server serves a definition, it decodes defaults like objects from etcd.
fn decoded_default(default: &Value, schema: &Schema) -> Value {
    let mut default = default.clone();
    let mut shaper = Shaper { admission: Admission::default(), path: Path::new(), from_etcd: true };
    shaper.coerce_embedded(&mut default, schema);
    shaper.prune(&mut default, Some(schema), false);
    default
}
