//! Differences between two manifests of which nothing else is reported, so that every changed object is named.

use std::collections::{BTreeMap, BTreeSet};

use pushback_objects::bookkeeping;
use serde_json::{Map, Value};

use super::super::model::Resource;
use super::manifest_difference::{ManifestDifference, names};
use super::release_fields::{changed, differing, is_live};

/// Fields that identify an object, that are compared elsewhere, or that a server writes.
const ELSEWHERE: [&str; 5] = ["apiVersion", "kind", "metadata", "status", "webhooks"];

/// The top-level fields that differ, and the annotations. Of a live object, fields may be defaults.
pub(super) fn differences(before: &Resource, after: &Resource) -> Vec<ManifestDifference> {
    let (Some(old), Some(new)) = (before.manifest.as_deref(), after.manifest.as_deref()) else { return Vec::new() };
    if is_live(old) || is_live(new) {
        return Vec::new();
    }
    let empty = Map::new();
    let fields = |object: &Value| object.as_object().unwrap_or(&empty).clone();
    let (was, is) = (fields(old), fields(new));
    let differing: BTreeSet<&str> = differing(&was, &is, false, &[]);
    let of_fields = differing.into_iter().filter(|field| !ELSEWHERE.contains(field)).map(|field| {
        let (old, new) = (was.get(field), is.get(field));
        let of_keys = names(field, "key", "keys", &keys(old), &keys(new));
        of_keys.unwrap_or_else(|| changed(field.to_owned(), old, new))
    });
    let annotations = |object: &Value| {
        let mut keys = keys(object.pointer("/metadata/annotations"));
        keys.retain(|key, _| !bookkeeping::is_written_annotation(key));
        keys
    };
    let of_annotations = names("annotations", "annotation", "annotations", &annotations(old), &annotations(new));
    of_fields.chain(of_annotations).collect()
}

fn keys(value: Option<&Value>) -> BTreeMap<String, Value> {
    let map = value.and_then(Value::as_object).into_iter().flatten();
    map.map(|(key, value)| (key.clone(), value.clone())).collect()
}
