//! Compares what the server announced of a write with what it stored, in every field that the manifest sets. Admission
//! can tell a dry run from a write.

use pushback_cluster::managed_fields::{FieldSet, selects};
use pushback_manifest::config::mask::{MaskNumbers, Masker};
use pushback_objects::source::{display_path, value_at};
use pushback_objects::{ObjectRef, PathSegment};
use serde_json::Value;

use super::diff::{self, DiffOptions, DiffSegment, FieldChange};
use super::digest::own_entry;

/// Prefix of the volume that the server adds to each Pod, under a new name each time.
const TOKEN_VOLUME: &str = "kube-api-access-";

/// A field whose stored value differs from the announced one. Secret values are masked.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredDifference {
    /// Path for display; list items are shown by index, because their keys may be secret.
    pub path: String,
    /// The announced value; `None` if the field was not announced.
    pub announced: Option<Value>,
    /// The stored value; `None` if the field is not stored.
    pub stored: Option<Value>,
}

/// Comparison of an announced object with the stored one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StoredDifferences {
    /// Differences in fields that the manifest sets, and anywhere in the spec of a CRD.
    pub of_manifest: Vec<StoredDifference>,
    /// Whether other fields differ, besides those that the server allocates for each request.
    pub elsewhere: bool,
}

/// Compares the two. `desired` is the manifest as sent.
#[must_use]
pub fn compare(
    object: &ObjectRef,
    desired: &Value,
    announced: &Value,
    stored: &Value,
    masker: &Masker,
) -> StoredDifferences {
    let changes = diff::diff(announced, stored, &DiffOptions::default());
    let mut found = StoredDifferences::default();
    if changes.is_empty() {
        return found;
    }
    let own = own_entry(stored).or_else(|| own_entry(announced));
    let sides = Sides { object, desired, announced, stored, own: own.as_ref().map(|own| &own.fields) };
    let mut numbers = MaskNumbers::default();
    for change in &changes {
        let is_defined = object.is_definition() && change.path.first() == Some(&PathSegment::from("spec"));
        // The order of items among those of other managers is not the manifest's.
        let is_order = change.segments.last() == Some(&DiffSegment::Order);
        if !is_order && (is_defined || sides.is_set(change)) {
            found.of_manifest.push(StoredDifference {
                path: display_path(&change.path),
                announced: masker.shown(announced, &change.old_path, &mut numbers).filter(|_| change.old.is_some()),
                stored: masker.shown(stored, &change.path, &mut numbers).filter(|_| change.new.is_some()),
            });
        } else if !is_allocated(object, change) {
            found.elsewhere = true;
        }
    }
    found
}

struct Sides<'a> {
    object: &'a ObjectRef,
    desired: &'a Value,
    announced: &'a Value,
    stored: &'a Value,
    own: Option<&'a FieldSet>,
}

impl Sides<'_> {
    /// Whether the manifest sets the field: by the fields that the server counts as applied, or, as a webhook may have
    /// changed those too, by the manifest itself.
    fn is_set(&self, change: &FieldChange) -> bool {
        let is_owned = |object: &Value, path: &[PathSegment]| self.own.is_some_and(|own| selects(own, object, path));
        let is_owned = match change.new {
            Some(_) => is_owned(self.stored, &change.path),
            None => is_owned(self.announced, &change.old_path),
        };
        let (deepest, depth, is_whole) = self.in_manifest(change);
        if !is_owned && !is_whole {
            return false;
        }
        // The server fills in an empty value, such as `clusterIP: ""`, and not always in the same way. It leaves out others,
        // such as `hostNetwork: false`.
        match value_at(self.announced, &change.old_path[..depth]) {
            _ if !is_empty(deepest) => true,
            Some(announced) => announced == deepest,
            None => !deepest.is_null() && !is_allocated(self.object, change),
        }
    }

    /// The manifest's deepest value on the way to the field, its depth, and whether that is the field itself.
    fn in_manifest(&self, change: &FieldChange) -> (&Value, usize, bool) {
        let mut value = self.desired;
        for (depth, segment) in change.segments.iter().enumerate() {
            let next = match segment {
                DiffSegment::Key(key) => value.get(key),
                DiffSegment::Item { names, .. } => {
                    let item = self.item(change, depth);
                    let is_same = |one: &&Value| {
                        let is_same_key = |(field, _): &(&str, String)| match one.get(*field) {
                            // The server's default.
                            None => true,
                            key => key == item.and_then(|item| item.get(*field)),
                        };
                        names.iter().all(is_same_key) && names.iter().any(|(field, _)| one.get(*field).is_some())
                    };
                    value.as_array().and_then(|items| items.iter().find(is_same))
                }
                DiffSegment::Index(_) => {
                    let item = value_at(self.announced, &change.old_path[..=depth]);
                    let item = item.filter(|_| change.old.is_some() || depth + 1 < change.segments.len());
                    return match (value.as_array(), item) {
                        (Some(items), Some(item)) => (value, depth, items.contains(item)),
                        _ => (value, depth, false),
                    };
                }
                DiffSegment::Order => None,
            };
            let Some(next) = next else { return (value, depth, false) };
            value = next;
        }
        (value, change.segments.len(), true)
    }

    /// The list item on the way to the field.
    fn item(&self, change: &FieldChange, depth: usize) -> Option<&Value> {
        let stored = || value_at(self.stored, &change.path[..=depth]);
        value_at(self.announced, &change.old_path[..=depth]).filter(|_| change.old.is_some()).or_else(stored)
    }
}

/// Whether the value is one that the server treats as unset.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
    }
}

/// Whether the server allocates the field anew for each request: addresses and ports of a Service, the selector of a
/// Job, the token volume of a Pod.
fn is_allocated(object: &ObjectRef, change: &FieldChange) -> bool {
    let has_key = |name: &str| change.path.iter().any(|segment| *segment == PathSegment::from(name));
    let is_uid = || matches!(change.path.last(), Some(PathSegment::Key(key)) if key.ends_with("controller-uid"));
    let is_token_volume = || {
        let is_of_volumes = has_key("volumes") || has_key("volumeMounts");
        let texts = change.old.iter().chain(&change.new).map(Value::to_string);
        is_of_volumes && texts.chain([format!("{:?}", change.segments)]).any(|text| text.contains(TOKEN_VOLUME))
    };
    match (object.group.as_str(), object.kind.as_str()) {
        ("", "Service") => ["clusterIP", "clusterIPs", "nodePort", "healthCheckNodePort"].into_iter().any(has_key),
        ("batch", "Job") => is_uid(),
        ("", "Pod") => is_token_volume(),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
