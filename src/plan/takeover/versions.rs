//! Moves the entries of field owners to the API version in which the object is applied. While an entry is in a version that
//! lacks a field of the object, the server cannot apply anything.

use pushback_preflight::ObjectExt;
use pushback_preflight::object::{is_custom_group, split_api_version};
use serde_json::Value;

use crate::managed_fields::{self as fields, FieldSet, ManagerEntry};

/// Whether an entry can be moved: the versions of a custom resource are of one kind, those of others may differ in all fields.
fn is_movable(entry: &ManagerEntry, live: &Value) -> bool {
    let api_version = live.text("/apiVersion");
    let (group, _) = split_api_version(api_version);
    let is_of_group = split_api_version(&entry.owner.api_version).0 == group;
    entry.owner.api_version != api_version && is_of_group && is_custom_group(group)
}

/// Whether there is anything to move.
pub(super) fn differ(known: &[ManagerEntry], live: &Value) -> bool {
    known.iter().any(|entry| is_movable(entry, live))
}

/// Moves all entries. Returns the versions that they had.
pub(super) fn move_entries(known: &mut Vec<ManagerEntry>, live: &Value) -> Vec<String> {
    let mut versions = Vec::new();
    let mut moved: Vec<ManagerEntry> = Vec::with_capacity(known.len());
    for mut entry in known.drain(..) {
        if is_movable(&entry, live) {
            versions.push(std::mem::replace(&mut entry.owner.api_version, live.text("/apiVersion").to_owned()));
            entry.fields = existing(&entry.fields, live);
        }
        let is_same = |other: &&mut ManagerEntry| {
            (&other.owner.manager, &other.owner.operation, &other.owner.subresource, &other.owner.api_version)
                == (&entry.owner.manager, &entry.owner.operation, &entry.owner.subresource, &entry.owner.api_version)
        };
        match moved.iter_mut().find(is_same) {
            Some(other) => {
                other.fields = other.fields.union(&entry.fields);
                other.owner.time = std::mem::take(&mut other.owner.time).max(entry.owner.time);
            }
            None => moved.push(entry),
        }
    }
    *known = moved;
    versions.sort();
    versions.dedup();
    versions
}

/// The paths of a set that the object has in its version.
fn existing(set: &FieldSet, live: &Value) -> FieldSet {
    let mut found = FieldSet::default();
    set.paths().iter().filter(|path| fields::resolve(path, live).is_some()).for_each(|path| found.insert(path));
    found
}
