//! Resolves the paths of a set in an object: the location of a path, and the owned part of an object.
//! List items are found through one index per list, so that the cost is linear in its length.

use std::collections::{BTreeMap, HashMap};

use pushback_objects::PathSegment;
use serde_json::{Map, Value};

use super::{Element, FieldSet, canonical};

/// The location of a set's path in an object; `None` if the object lacks it.
#[must_use]
pub fn resolve(path: &[Element], object: &Value) -> Option<Vec<PathSegment>> {
    let mut segments = Vec::with_capacity(path.len());
    let mut node = object;
    for element in path {
        match (element, node) {
            (Element::Field(name), Value::Object(map)) => {
                node = map.get(name)?;
                segments.push(PathSegment::Key(name.clone()));
            }
            (Element::Key(_) | Element::Value(_) | Element::Index(_), Value::Array(items)) => {
                let index = items.iter().enumerate().position(|(index, item)| element_matches(element, index, item))?;
                node = &items[index];
                segments.push(PathSegment::Index(index));
            }
            _ => return None,
        }
    }
    Some(segments)
}

/// Whether an element of a list's set selects the item at `index`.
pub fn element_matches(element: &Element, index: usize, item: &Value) -> bool {
    match element {
        Element::Field(_) => false,
        // A field that the item lacks counts as null.
        Element::Key(fields) => item.as_object().is_some_and(|item| {
            fields.iter().all(|(name, value)| item.get(name).map_or("null" == value, |own| canonical(own) == *value))
        }),
        Element::Value(value) => canonical(item) == *value,
        Element::Index(wanted) => *wanted == index,
    }
}

/// The part of an object that a set selects. A leaf path takes its whole value, which is correct for atomic fields
/// (selectors); list items keep their key fields, so that they remain distinguishable.
/// Paths that the object lacks are left out. The result's keys are sorted, its lists keep the object's order.
#[must_use]
pub fn project(set: &FieldSet, object: &Value) -> Value {
    projection(set, object, true)
}

/// The same without key fields that the set does not select: the server has set them by default.
#[must_use]
pub fn project_without_keys(set: &FieldSet, object: &Value) -> Value {
    projection(set, object, false)
}

/// Whether a set selects a field of the object, or something above or below it.
#[must_use]
pub fn selects(set: &FieldSet, object: &Value, path: &[PathSegment]) -> bool {
    let (mut set, mut value) = (set, object);
    for segment in path {
        if set.children.is_empty() {
            return set.member;
        }
        let next = match segment {
            PathSegment::Key(key) => set.children.get(&Element::Field(key.clone())).zip(value.get(key)),
            PathSegment::Index(index) => value.get(*index).and_then(|item| {
                let child = set.children.iter().find(|(element, _)| element_matches(element, *index, item));
                child.map(|(_, child)| (child, item))
            }),
        };
        let Some(next) = next else { return false };
        (set, value) = next;
    }
    true
}

fn projection(set: &FieldSet, object: &Value, with_keys: bool) -> Value {
    if set.children.is_empty() {
        return if set.member { object.clone() } else { Value::Object(Map::new()) };
    }
    match object {
        Value::Object(map) => {
            let fields = set.children.iter().filter_map(|(element, child)| {
                let Element::Field(name) = element else { return None };
                Some((name.clone(), projection(child, map.get(name)?, with_keys)))
            });
            Value::Object(fields.collect())
        }
        Value::Array(items) => {
            let mut lookup = Lookup::new(items);
            let mut owned = BTreeMap::new();
            for (element, child) in &set.children {
                if let Some(index) = lookup.find(element) {
                    owned.insert(index, project_item(element, child, &items[index], with_keys));
                }
            }
            Value::Array(owned.into_values().collect())
        }
        scalar => scalar.clone(),
    }
}

fn project_item(element: &Element, set: &FieldSet, item: &Value, with_keys: bool) -> Value {
    let Element::Key(fields) = element else { return projection(set, item, with_keys) };
    // If only the presence of an item is owned, just its key fields are included.
    let is_presence_only = set.children.is_empty();
    let owned = if is_presence_only { Value::Object(Map::new()) } else { projection(set, item, with_keys) };
    let Value::Object(owned) = owned else { return owned };
    if !with_keys && !owned.is_empty() {
        return Value::Object(owned);
    }
    let key = fields.iter().map(|(name, value)| (name.clone(), serde_json::from_str(value).unwrap_or(Value::Null)));
    let mut result: Map<String, Value> = key.collect();
    result.extend(owned);
    Value::Object(result)
}

fn key_by_names<'a>(names: impl Iterator<Item = &'a String>, item: &Value) -> Option<Element> {
    let item = item.as_object()?;
    let fields: Map<String, Value> =
        names.map(|name| (name.clone(), item.get(name).cloned().unwrap_or(Value::Null))).collect();
    Some(Element::key(&fields))
}

/// Finds items of a list by element; an index per combination of key fields is built on first use.
struct Lookup<'a> {
    items: &'a [Value],
    by_key: BTreeMap<Vec<String>, HashMap<Element, usize>>,
    by_value: Option<HashMap<String, usize>>,
}

impl<'a> Lookup<'a> {
    fn new(items: &'a [Value]) -> Self {
        Self { items, by_key: BTreeMap::new(), by_value: None }
    }

    fn find(&mut self, element: &Element) -> Option<usize> {
        let items = self.items;
        match element {
            Element::Field(_) => None,
            Element::Index(index) => (*index < items.len()).then_some(*index),
            Element::Value(value) => {
                let by_value = self.by_value.get_or_insert_with(|| {
                    // In reverse, so that the first of several equal items is kept.
                    items.iter().enumerate().rev().map(|(index, item)| (canonical(item), index)).collect()
                });
                by_value.get(value).copied()
            }
            Element::Key(fields) => {
                let names: Vec<String> = fields.iter().map(|(name, _)| name.clone()).collect();
                let by_key = self.by_key.entry(names).or_insert_with_key(|names| {
                    let keyed = items.iter().enumerate().rev();
                    keyed.filter_map(|(index, item)| Some((key_by_names(names.iter(), item)?, index))).collect()
                });
                by_key.get(element).copied()
            }
        }
    }
}
