//! Moves the entries of field owners to the API version in which the object is applied. While an entry is in a version that
//! lacks a field of the object, the server cannot apply anything.

use pushback_cluster::managed_fields::{self as fields, Element, FieldSet, ManagerEntry};
use pushback_objects::object::{is_custom_group, split_api_version};
use pushback_objects::source::display_path;
use pushback_objects::{ObjectExt, PathSegment};
use serde_json::Value;

use super::{is_ours, is_predecessor};

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

/// Entries that were moved to another API version.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Moved {
    /// The versions that they had.
    pub(super) versions: Vec<String>,
    /// Fields of predecessors that their new version does not show: nothing removes those.
    pub(super) lost: Vec<String>,
}

/// Moves all entries to the version of the object.
pub(super) fn move_entries(known: &mut Vec<ManagerEntry>, live: &Value) -> Moved {
    let mut changes = Moved::default();
    let mut moved: Vec<ManagerEntry> = Vec::with_capacity(known.len());
    for mut entry in known.drain(..) {
        if is_movable(&entry, live) {
            let version = std::mem::replace(&mut entry.owner.api_version, live.text("/apiVersion").to_owned());
            changes.versions.push(version);
            let existing = existing(&entry.fields, live);
            if is_ours(&entry.owner) || is_predecessor(&entry.owner) {
                changes.lost.extend(entry.fields.lost(&existing).iter().map(|path| display(path)));
            }
            entry.fields = existing;
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
    for texts in [&mut changes.versions, &mut changes.lost] {
        texts.sort();
        texts.dedup();
    }
    changes
}

/// The paths of a set that the object has in its version.
fn existing(set: &FieldSet, live: &Value) -> FieldSet {
    let mut found = FieldSet::default();
    set.paths().iter().filter(|path| fields::resolve(path, live).is_some()).for_each(|path| found.insert(path));
    found
}

/// Displays a path up to its first list item. Items of a path that the object lacks have no index.
fn display(path: &[Element]) -> String {
    let names: Vec<PathSegment> = path.iter().map_while(Element::name).cloned().map(PathSegment::Key).collect();
    display_path(&names)
}
