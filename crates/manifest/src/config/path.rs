//! Paths of Config in plain values: finding, reading, setting and removing fields.
//! Never panics, whatever the path and value; what a path does not fit is left unchanged.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use pushback_objects::source::{PathSegment, value_at};
use regex::Regex;
use serde_json::{Map, Value};

use super::PathPart;

/// Every concrete path in the value that matches, in the value's own order.
#[must_use]
pub fn resolve(path: &[PathPart], value: &Value) -> Vec<Vec<PathSegment>> {
    let mut found: Vec<(Vec<PathSegment>, &Value)> = vec![(Vec::new(), value)];
    for part in path {
        let mut next = Vec::new();
        // Compiled once for all paths; patterns are few and short.
        let regex = if let PathPart::Regex(pattern) = part { regex_of(pattern) } else { None };
        for (place, value) in found {
            let mut step = |segment: PathSegment, value| {
                let mut place = place.clone();
                place.push(segment);
                next.push((place, value));
            };
            match (part, value) {
                (PathPart::Key(key), Value::Object(map)) => {
                    if let Some(value) = map.get(key) {
                        step(PathSegment::Key(key.clone()), value);
                    }
                }
                (PathPart::Index(index), Value::Array(items)) => {
                    if let Some(value) = items.get(*index) {
                        step(PathSegment::Index(*index), value);
                    }
                }
                (PathPart::AllIndexes, Value::Array(items)) => {
                    for (index, value) in items.iter().enumerate() {
                        step(PathSegment::Index(index), value);
                    }
                }
                (PathPart::Regex(_), Value::Object(map)) => {
                    for (key, value) in map.iter().filter(|(key, _)| key_matches(regex.as_ref(), key)) {
                        step(PathSegment::Key(key.clone()), value);
                    }
                }
                _ => {}
            }
        }
        found = next;
    }
    found.into_iter().map(|(place, _)| place).collect()
}

/// Sets the value at a path; missing (or null) maps on the way are created, array elements never.
/// Returns whether the value was set; if not, nothing has changed.
pub fn set_at(value: &mut Value, path: &[PathSegment], new: Value) -> bool {
    if !can_set(value, path) {
        return false;
    }
    let mut current = value;
    for segment in path {
        if current.is_null() {
            *current = Value::Object(Map::new());
        }
        let next = match (segment, current) {
            (PathSegment::Key(key), Value::Object(map)) => Some(map.entry(key.as_str()).or_insert(Value::Null)),
            (PathSegment::Index(index), Value::Array(items)) => items.get_mut(*index),
            _ => None,
        };
        let Some(next) = next else { return false };
        current = next;
    }
    *current = new;
    true
}

fn can_set(value: &Value, path: &[PathSegment]) -> bool {
    let mut current = Some(value);
    for segment in path {
        current = match (segment, current) {
            (PathSegment::Key(_), None | Some(Value::Null)) => None,
            (PathSegment::Key(key), Some(Value::Object(map))) => map.get(key),
            (PathSegment::Index(index), Some(Value::Array(items))) if *index < items.len() => items.get(*index),
            _ => return false,
        };
    }
    true
}

/// Removes the value at a path; the order of the rest is kept. The root cannot be removed.
pub fn remove_at(value: &mut Value, path: &[PathSegment]) -> Option<Value> {
    let (last, way) = path.split_last()?;
    let parent = way.iter().try_fold(value, |value, segment| match (segment, value) {
        (PathSegment::Key(key), Value::Object(map)) => map.get_mut(key),
        (PathSegment::Index(index), Value::Array(items)) => items.get_mut(*index),
        _ => None,
    })?;
    match (last, parent) {
        (PathSegment::Key(key), Value::Object(map)) => map.shift_remove(key),
        (PathSegment::Index(index), Value::Array(items)) if *index < items.len() => Some(items.remove(*index)),
        _ => None,
    }
}

/// Every leaf at and below a path: strings, numbers, booleans and null.
#[must_use]
pub fn leaves(value: &Value, below: &[PathSegment]) -> Vec<Vec<PathSegment>> {
    let mut found = Vec::new();
    let mut open = value_at(value, below).map(|value| (below.to_vec(), value)).into_iter().collect::<Vec<_>>();
    while let Some((place, value)) = open.pop() {
        let mut push = |segment: PathSegment, value| {
            let mut place = place.clone();
            place.push(segment);
            open.push((place, value));
        };
        match value {
            // In reverse, because the stack returns them in reverse.
            Value::Object(map) => map.iter().rev().for_each(|(key, value)| push(PathSegment::Key(key.clone()), value)),
            Value::Array(items) => {
                items.iter().enumerate().rev().for_each(|(index, value)| push(PathSegment::Index(index), value));
            }
            _ => found.push(place),
        }
    }
    found
}

/// The pattern as Go's `regexp.MatchString` reads it: anywhere in the key. It was checked when parsed; one that does
/// not compile matches nothing.
pub(super) fn regex_of(pattern: &str) -> Option<Regex> {
    // A Config has a handful of patterns, and each is evaluated for every object: compiling one takes far longer than
    // using it.
    static COMPILED: Mutex<BTreeMap<String, Option<Regex>>> = Mutex::new(BTreeMap::new());
    let mut compiled = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = compiled.get(pattern) {
        return known.clone();
    }
    let regex = Regex::new(pattern).ok();
    compiled.insert(pattern.to_owned(), regex.clone());
    regex
}

pub(super) fn key_matches(regex: Option<&Regex>, key: &str) -> bool {
    regex.is_some_and(|regex| regex.is_match(key))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn key(name: &str) -> PathPart {
        PathPart::Key(name.to_owned())
    }

    #[test]
    fn a_path_is_resolved_to_every_place_that_it_leads_to() {
        let value = json!({"a": [{"b": 1}, {"c": 2}, {"b": 3}], "x-1": {"b": 4}, "y": {"b": 5}, "x-2": 6});
        let places = |path: &[PathPart]| {
            resolve(path, &value).iter().map(|place| pushback_objects::source::display_path(place)).collect::<Vec<_>>()
        };
        assert_eq!(places(&[key("a"), PathPart::AllIndexes, key("b")]), ["a[0].b", "a[2].b"]);
        assert_eq!(places(&[key("a"), PathPart::Index(1)]), ["a[1]"]);
        assert_eq!(places(&[key("a"), PathPart::Index(7)]), Vec::<String>::new());
        assert_eq!(places(&[PathPart::Regex("^x-".to_owned())]), ["x-1", "x-2"]);
        assert_eq!(places(&[PathPart::Regex("^x-".to_owned()), key("b")]), ["x-1.b"]);
        assert_eq!(places(&[PathPart::AllIndexes]), Vec::<String>::new());
        assert_eq!(places(&[PathPart::Regex("(".to_owned())]), Vec::<String>::new());
        assert_eq!(places(&[]), [""]);
    }

    #[test]
    fn setting_makes_maps_and_never_array_elements() {
        let mut value = json!({"list": [1], "none": null});
        assert!(set_at(&mut value, &["a".into(), "b".into()], json!(1)));
        assert!(set_at(&mut value, &["none".into(), "b".into()], json!(2)));
        assert!(set_at(&mut value, &["list".into(), 0.into()], json!(3)));
        let before = value.clone();
        assert!(!set_at(&mut value, &["list".into(), 1.into()], json!(4)));
        assert!(!set_at(&mut value, &["new".into(), "way".into(), 0.into()], json!(4)));
        assert!(!set_at(&mut value, &["list".into(), "key".into()], json!(4)));
        assert_eq!(value, before);
        assert_eq!(value, json!({"list": [3], "none": {"b": 2}, "a": {"b": 1}}));
    }

    #[test]
    fn removing_keeps_the_order_of_the_rest() {
        let mut value = json!({"a": 1, "b": 2, "c": 3, "list": [1, 2]});
        assert_eq!(remove_at(&mut value, &["a".into()]), Some(json!(1)));
        assert_eq!(remove_at(&mut value, &["list".into(), 0.into()]), Some(json!(1)));
        assert_eq!(remove_at(&mut value, &["list".into(), 5.into()]), None);
        assert_eq!(remove_at(&mut value, &["absent".into(), "deep".into()]), None);
        assert_eq!(remove_at(&mut value, &[]), None);
        assert_eq!(value.to_string(), r#"{"b":2,"c":3,"list":[2]}"#);
    }

    #[test]
    fn leaves_come_in_document_order() {
        let value = json!({"data": {"b": "1", "a": {"x": [1, null]}, "empty": {}}});
        let shown: Vec<String> = leaves(&value, &["data".into()])
            .iter()
            .map(|place| pushback_objects::source::display_path(place))
            .collect();
        assert_eq!(shown, ["data.b", "data.a.x[0]", "data.a.x[1]"]);
        assert!(leaves(&value, &["absent".into()]).is_empty());
    }

    fn any_value() -> impl Strategy<Value = Value> {
        let leaf =
            prop_oneof![Just(Value::Null), any::<bool>().prop_map(Value::from), "[ab]{0,2}".prop_map(Value::from)];
        leaf.prop_recursive(3, 24, 3, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                prop::collection::vec(("[abc]", inner), 0..3)
                    .prop_map(|entries| Value::Object(entries.into_iter().collect())),
            ]
        })
    }

    fn any_segments() -> impl Strategy<Value = Vec<PathSegment>> {
        let segment = prop_oneof![
            "[abc]".prop_map(PathSegment::Key),
            prop_oneof![0..3usize, Just(usize::MAX)].prop_map(PathSegment::Index)
        ];
        prop::collection::vec(segment, 0..4)
    }

    fn any_path() -> impl Strategy<Value = Vec<PathPart>> {
        let part = prop_oneof![
            "[abc]".prop_map(PathPart::Key),
            prop_oneof![0..3usize, Just(usize::MAX)].prop_map(PathPart::Index),
            Just(PathPart::AllIndexes),
            prop_oneof![Just("^[ab]$"), Just(""), Just("(")].prop_map(|pattern| PathPart::Regex(pattern.to_owned())),
        ];
        prop::collection::vec(part, 0..4)
    }

    proptest! {
        #[test]
        fn what_was_set_is_read_back_and_a_refusal_changes_nothing(
            before in any_value(), path in any_segments(), new in any_value(),
        ) {
            let mut value = before.clone();
            if set_at(&mut value, &path, new.clone()) {
                prop_assert_eq!(value_at(&value, &path), Some(&new));
            } else {
                prop_assert_eq!(value, before);
            }
        }

        #[test]
        fn what_is_there_can_be_taken_out(before in any_value(), path in any_segments()) {
            let mut value = before.clone();
            let there = value_at(&before, &path).cloned();
            let removed = remove_at(&mut value, &path);
            if path.is_empty() {
                prop_assert_eq!(removed, None);
            } else {
                prop_assert_eq!(removed, there);
            }
        }

        #[test]
        fn every_resolved_place_is_there(value in any_value(), path in any_path()) {
            for place in resolve(&path, &value) {
                prop_assert_eq!(place.len(), path.len());
                prop_assert!(value_at(&value, &place).is_some());
            }
        }
    }
}
