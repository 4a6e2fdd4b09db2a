//! What the API server does to a custom resource under a schema: prune, drop nulls, default, validate.
//! It follows the server step by step and shares only the model with the containment proof, whose witnesses it checks.
//!
//! Order of the steps: k8s.io/apiextensions-apiserver `pkg/apiserver/customresource_handler.go` (decoding: pruning,
//! defaulting) and `pkg/registry/customresource/strategy.go` (validation).

mod admission;
pub(in crate::schema) mod apply;
mod correlation;
pub mod format;
mod lists;
mod metadata;
mod number;
mod rules;
pub(in crate::schema) mod scale;
mod shape;
mod validate;

use serde_json::Value;

use super::model::Schema;
use crate::path::display_path;
pub use admission::{Admission, Path, Resource, SchemaError, Server, Unevaluated};
use admission::{Findings, MAX_OBJECT_DEPTH};
pub use format::{format_is_valid, is_known_format};
pub(super) use number::is_multiple;

/// Creates an object with all its data: a create request and, if `status` is a subresource, the update of the status,
/// which the server drops from the create request after defaulting and before validation. No name is required.
#[must_use]
pub fn create(resource: &Resource<'_>, server: Server, object: &Value) -> Admission {
    if is_too_deep(object) {
        return Admission::unjudged(object);
    }
    let mut admission = shape::shape(resource, object, false);
    if admission.errors.is_empty() {
        validate(resource, server, None, &mut admission);
        without_status(resource, server, &mut admission);
    }
    admission
}

/// Adds the errors of the object without its status, as it is created first.
fn without_status(resource: &Resource<'_>, server: Server, admission: &mut Admission) {
    let schema = resource.schema;
    // Only keywords at the root can notice that it is missing.
    let is_missed = schema.required.contains("status")
        || !schema.rules.is_empty()
        || schema.not.is_some()
        || schema.property_count.least.is_some()
        || [&schema.all_of, &schema.any_of, &schema.one_of].into_iter().any(|branches| !branches.is_empty());
    if !resource.status || !is_missed || admission.object.get("status").is_none() {
        return;
    }
    let mut created = Admission { object: admission.object.clone(), ..Admission::default() };
    if let Value::Object(fields) = &mut created.object {
        fields.shift_remove("status");
    }
    validate(resource, server, None, &mut created);
    let known = admission.errors.clone();
    admission.errors.extend(created.errors.into_iter().filter(|error| !known.contains(error)));
    admission.unevaluated.extend(created.unevaluated);
}

/// Errors in the type and metadata of an object of any kind.
pub(in crate::schema) fn object_metadata_errors(object: &Value) -> Vec<SchemaError> {
    let mut admission = Admission { object: object.clone(), ..Admission::default() };
    metadata::coerce_root(&mut admission, false);
    if admission.errors.is_empty() { metadata::validate_root(object) } else { admission.errors }
}

/// Reads an object from etcd as a client sees it, without validation. Errors mean that it cannot be decoded.
#[must_use]
pub fn read(resource: &Resource<'_>, object: &Value) -> Admission {
    if is_too_deep(object) {
        return Admission::unjudged(object);
    }
    shape::shape(resource, object, true)
}

/// Converts an object to this version as strategy None does: `apiVersion` is rewritten, and what the version does not
/// name is pruned. Its defaults are not filled in: those of the version that the object was read in have been.
#[must_use]
pub fn convert(resource: &Resource<'_>, object: &Value) -> Admission {
    if is_too_deep(object) {
        return Admission::unjudged(object);
    }
    let mut converted = object.clone();
    if let Value::Object(fields) = &mut converted {
        fields.insert("apiVersion".to_owned(), format!("{}/{}", resource.group, resource.version).into());
    }
    shape::shape_converted(resource, &converted)
}

/// Writes an object back as it was read in this version: what an empty patch or a migration does. A default that is
/// filled in makes it a change, so that errors which were there before may be refused.
#[must_use]
pub fn write_back(resource: &Resource<'_>, server: Server, read: &Value) -> Admission {
    if is_too_deep(read) {
        return Admission::unjudged(read);
    }
    let mut admission = shape::shape(resource, read, false);
    if admission.errors.is_empty() {
        validate(resource, server, Some(read), &mut admission);
    }
    admission
}

/// Updates `old`, as stored in etcd, to `new`. Errors of the old object are ratcheted if the server ratchets them.
#[must_use]
pub fn update(resource: &Resource<'_>, server: Server, old: &Value, new: &Value) -> Admission {
    if is_too_deep(old) || is_too_deep(new) {
        return Admission::unjudged(new);
    }
    let old = shape::shape(resource, old, true).object;
    let mut admission = shape::shape(resource, new, false);
    if admission.errors.is_empty() {
        validate(resource, server, Some(&old), &mut admission);
    }
    admission
}

/// Everything after decoding and defaulting. Rules are evaluated only if there are no other errors.
fn validate(resource: &Resource<'_>, server: Server, old: Option<&Value>, admission: &mut Admission) {
    let Resource { schema, .. } = *resource;
    let object = &admission.object;
    let mut errors = metadata::validate_type(resource, object);
    if errors.is_empty() {
        errors.extend(metadata::validate_root(object));
        let ratcheted = old.filter(|_| server.ratchets());
        let found = validate::validate(schema, server, object, ratcheted);
        errors.extend(found.errors);
        admission.unevaluated.extend(found.unevaluated);
        errors.extend(resource.scale.into_iter().flat_map(|scale| scale::validate(scale, object)));
        let embedded = metadata::validate_embedded(schema, object);
        let is_of_status = |error: &SchemaError| error.path.first() == Some(&"status".into());
        // Without an old object, the status is written alone.
        if resource.status && old.is_none() {
            let (of_status, others): (Vec<_>, Vec<_>) = embedded.into_iter().partition(is_of_status);
            admission.status_errors = of_status;
            errors.extend(others);
        } else {
            errors.extend(embedded);
        }
        if old.is_none_or(|old| lists::validate(schema, old).is_empty()) {
            errors.extend(lists::validate(schema, object));
        }
        if errors.is_empty() {
            let found = rules::validate(schema, server, object, old);
            errors.extend(found.errors);
            admission.unevaluated.extend(found.unevaluated);
        }
    }
    admission.errors = errors;
}

/// The value that the default of a node becomes, with the defaults below it filled in.
pub(in crate::schema) fn filled_default(schema: &Schema, default: &Value) -> Value {
    shape::shape_default(schema, default).object
}

/// Why the server rejects a definition with this default; `None` if it accepts it.
pub(in crate::schema) fn default_problem(schema: &Schema, default: &Value) -> Option<String> {
    let shaped = shape::shape_default(schema, default);
    if !shaped.pruned.is_empty() {
        return Some("holds fields that the schema does not name".to_owned());
    }
    let server = Server::default();
    let mut errors = shaped.errors;
    let default = &shaped.object;
    errors.extend(metadata::validate_embedded(schema, default));
    errors.extend(validate::validate_default(schema, server, default).errors);
    if errors.is_empty() {
        errors.extend(rules::validate(schema, server, default, None).errors);
    }
    let error = errors.first()?;
    let place = match error.path.as_slice() {
        [] => "it".to_owned(),
        path => display_path(path),
    };
    Some(format!("is refused by its own schema: {place}: {}", error.message))
}

fn is_too_deep(value: &Value) -> bool {
    let mut pending = vec![(value, 0)];
    while let Some((value, depth)) = pending.pop() {
        if depth > MAX_OBJECT_DEPTH {
            return true;
        }
        match value {
            Value::Object(map) => pending.extend(map.values().map(|value| (value, depth + 1))),
            Value::Array(items) => pending.extend(items.iter().map(|value| (value, depth + 1))),
            _ => {}
        }
    }
    false
}

#[cfg(test)]
pub(in crate::schema) mod agreement;
#[cfg(test)]
mod tests;
