//! Fields whose ownership a Config makes exclusive: what other managers have set there becomes ours, so that it goes where the
//! manifest does not set it.

use pushback_cluster::managed_fields::{Element, FieldSet, ManagerEntry, element_matches, is_of_control_plane};
use pushback_manifest::config::{Config, Path, PathPart, matcher};
use pushback_objects::PathSegment;
use pushback_objects::source::value_at;
use serde_json::Value;

use super::{is_ours, is_predecessor};

/// The paths that are exclusive in an object.
#[must_use]
pub fn exclusive_paths(config: &Config, object: &Value) -> Vec<Path> {
    let rules = config.exclusive_fields.iter().filter(|rule| matcher::matches_any(&rule.matchers, object));
    rules.map(|rule| rule.path.clone()).collect()
}

/// Takes what others have set at these paths out of their entries; returns it as entries of its own. What the control
/// plane sets stays its own.
pub(super) fn claim(entries: &mut Vec<ManagerEntry>, paths: &[Path], live: &Value) -> Vec<ManagerEntry> {
    let mut claimed = Vec::new();
    for entry in entries.iter_mut() {
        let owner = &entry.owner;
        if is_ours(owner)
            || is_predecessor(owner)
            || !owner.subresource.is_empty()
            || is_of_control_plane(&owner.manager)
        {
            continue;
        }
        let mut found = Vec::new();
        paths.iter().for_each(|path| find(&entry.fields, path, live, &mut Vec::new(), &mut Vec::new(), &mut found));
        let mut fields = FieldSet::default();
        for place in &found {
            fields = fields.union(&entry.fields.only(place));
            entry.fields = entry.fields.without(place);
        }
        if !fields.is_empty() {
            claimed.push(ManagerEntry { owner: owner.clone(), fields });
        }
    }
    entries.retain(|entry| !entry.fields.is_empty());
    claimed
}

/// Whether others have set anything at these paths.
#[must_use]
pub fn is_shared(entries: &[ManagerEntry], paths: &[Path], live: &Value) -> bool {
    !paths.is_empty() && !claim(&mut entries.to_vec(), paths, live).is_empty()
}

/// The places of a set that a path leads to.
fn find(
    set: &FieldSet,
    path: &[PathPart],
    live: &Value,
    place: &mut Vec<Element>,
    segments: &mut Vec<PathSegment>,
    found: &mut Vec<Vec<Element>>,
) {
    let Some((part, rest)) = path.split_first() else {
        found.push(place.clone());
        return;
    };
    let here = value_at(live, segments);
    for (element, below) in set.children() {
        let segment = match (part, element) {
            (PathPart::Key(key), Element::Field(name)) if key == name => PathSegment::Key(name.clone()),
            (PathPart::AllIndexes | PathPart::Index(_), Element::Key(_) | Element::Value(_) | Element::Index(_)) => {
                let items = here.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
                let index = items.iter().enumerate().position(|(index, item)| element_matches(element, index, item));
                let Some(index) = index else { continue };
                if matches!(part, PathPart::Index(wanted) if *wanted != index) {
                    continue;
                }
                PathSegment::Index(index)
            }
            _ => continue,
        };
        place.push(element.clone());
        segments.push(segment);
        find(below, rest, live, place, segments, found);
        segments.pop();
        place.pop();
    }
}
