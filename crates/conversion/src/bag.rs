//! Where bags are in an object of a version, and how they are carried in an annotation of one that has no fields for
//! them. Every object has its own bag; in a list an item is found again by its content.

use std::collections::BTreeSet;

use pushback_objects::hex;
use pushback_objects::source::PathSegment;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::path::{FieldPath, FieldStep};

/// The annotation that carries bags.
pub(super) const ANNOTATION: &str = "pushback.dev/property-bag";

/// The API server accepts this many bytes of annotations for an object.
const LONGEST_ANNOTATION: usize = 256 * 1024;

/// The objects of a version that may have a bag.
#[derive(Clone, Debug, Default)]
pub(super) struct Levels {
    /// Whether the object here may have one.
    here: bool,
    /// Whether the version has a field for it.
    declared: bool,
    fields: Vec<(String, Levels)>,
    each: Option<Box<Levels>>,
}

impl Levels {
    pub(super) fn of(places: &BTreeSet<FieldPath>, declared: &BTreeSet<FieldPath>) -> Self {
        let mut levels = Self::default();
        for place in places.union(declared) {
            let node = levels.node(place.steps());
            node.here = true;
            node.declared = declared.contains(place);
        }
        levels
    }

    fn node(&mut self, steps: &[FieldStep]) -> &mut Self {
        let Some((step, rest)) = steps.split_first() else { return self };
        let inner = match step {
            FieldStep::Each => self.each.get_or_insert_default().as_mut(),
            FieldStep::Field(name) => {
                let known = self.fields.iter().position(|(other, _)| other == name);
                let index = known.unwrap_or_else(|| {
                    self.fields.push((name.clone(), Self::default()));
                    self.fields.len() - 1
                });
                &mut self.fields[index].1
            }
        };
        inner.node(rest)
    }
}

/// A step to an object with a bag.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    Field(String),
    Item(Item),
}

/// An item of a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Item {
    index: usize,
    of: usize,
    digest: String,
}

impl Serialize for Place {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Field(name) => name.serialize(serializer),
            Self::Item(item) => item.serialize(serializer),
        }
    }
}

/// A bag that was taken out of an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Taken {
    #[serde(rename = "at")]
    path: Vec<Place>,
    entries: Map<String, Value>,
}

impl Taken {
    /// The paths of its entries.
    pub(super) fn paths(&self) -> impl Iterator<Item = Vec<PathSegment>> + '_ {
        let segment = |place: &Place| match place {
            Place::Field(name) => PathSegment::from(name.as_str()),
            Place::Item(item) => PathSegment::from(item.index),
        };
        let start: Vec<PathSegment> = self.path.iter().map(segment).collect();
        self.entries.keys().map(move |key| {
            let name = key.split_once('@').map_or(key.as_str(), |(name, _)| name);
            start.iter().cloned().chain([name.into()]).collect()
        })
    }
}

/// Takes all bags out of an object that its version has no fields for.
pub(super) fn take(value: &mut Value, levels: &Levels, name: &str) -> Vec<Taken> {
    let mut taken = Vec::new();
    take_below(value, levels, name, &mut taken);
    for bag in &mut taken {
        bag.path.reverse();
    }
    taken
}

/// Paths are made where there is a bag only, innermost step first.
fn take_below(value: &mut Value, levels: &Levels, name: &str, taken: &mut Vec<Taken>) {
    match value {
        Value::Object(map) => {
            let is_kept = !levels.here || levels.declared;
            if !is_kept && let Some(Value::Object(entries)) = map.shift_remove(name) {
                taken.push(Taken { path: Vec::new(), entries });
            }
            for (field, inner) in &levels.fields {
                if let Some(value) = map.get_mut(field) {
                    let before = taken.len();
                    take_below(value, inner, name, taken);
                    within(&mut taken[before..], || Place::Field(field.clone()));
                }
            }
            if let Some(inner) = &levels.each {
                for (key, value) in map.iter_mut() {
                    let before = taken.len();
                    take_below(value, inner, name, taken);
                    within(&mut taken[before..], || Place::Field(key.clone()));
                }
            }
        }
        Value::Array(items) => {
            let Some(inner) = &levels.each else { return };
            let of = items.len();
            for (index, item) in items.iter_mut().enumerate() {
                let before = taken.len();
                take_below(item, inner, name, taken);
                within(&mut taken[before..], || Place::Item(Item { index, of, digest: digest_of(item) }));
            }
        }
        _ => {}
    }
}

fn within(taken: &mut [Taken], place: impl FnOnce() -> Place) {
    if taken.is_empty() {
        return;
    }
    let place = place();
    for bag in taken {
        bag.path.push(place.clone());
    }
}

fn digest_of(value: &Value) -> String {
    digest(&value.to_string())
}

fn digest(text: &str) -> String {
    hex::encode(&Sha256::digest(text.as_bytes())[..8])
}

/// What an annotation says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Carried {
    /// There is none.
    Nothing,
    /// These bags; whether somebody edited them.
    Bags(Vec<Taken>, bool),
    /// It cannot be read.
    Unreadable,
}

/// Whether somebody edited the annotation in which an object carries values of other versions, or made it unreadable.
#[must_use]
pub fn is_bag_edited(object: &Value) -> bool {
    let annotations = object.get("metadata").and_then(|metadata| metadata.get("annotations"));
    let Some(text) = annotations.and_then(|annotations| annotations.get(ANNOTATION)) else { return false };
    !matches!(read(text), Some(Carried::Bags(_, false)))
}

/// Takes the annotation off an object.
pub(super) fn take_annotation(object: &mut Value) -> Carried {
    let Some(Value::Object(metadata)) = object.get_mut("metadata") else { return Carried::Nothing };
    let Some(Value::Object(annotations)) = metadata.get_mut("annotations") else { return Carried::Nothing };
    let Some(text) = annotations.shift_remove(ANNOTATION) else { return Carried::Nothing };
    if annotations.is_empty() {
        metadata.shift_remove("annotations");
    }
    read(&text).unwrap_or(Carried::Unreadable)
}

fn read(annotation: &Value) -> Option<Carried> {
    let mut parsed: Value = serde_json::from_str(annotation.as_str()?).ok()?;
    let bags = parsed.get_mut("bags")?.take();
    let is_edited = parsed.get("digest")?.as_str()? != digest_of(&bags);
    let Value::Array(bags) = bags else { return None };
    let taken = bags.into_iter().map(|mut bag| {
        let place = |step: &mut Value| match step {
            Value::String(name) => Some(Place::Field(std::mem::take(name))),
            item => Some(Place::Item(Item {
                index: usize::try_from(item.get("index")?.as_u64()?).ok()?,
                of: usize::try_from(item.get("of")?.as_u64()?).ok()?,
                digest: item.get("digest")?.as_str()?.to_owned(),
            })),
        };
        let path = bag.get_mut("at")?.as_array_mut()?.iter_mut().map(place).collect::<Option<Vec<_>>>()?;
        let Value::Object(entries) = bag.get_mut("entries")?.take() else { return None };
        Some(Taken { path, entries })
    });
    Some(Carried::Bags(taken.collect::<Option<Vec<_>>>()?, is_edited))
}

/// Puts bags into the annotation of an object.
///
/// # Errors
/// If they are too long for one.
pub(super) fn put_annotation(object: &mut Value, taken: &[Taken]) -> Result<(), String> {
    let bags = serde_json::to_string(taken).map_err(|error| error.to_string())?;
    let text = format!("{{\"digest\":\"{}\",\"bags\":{bags}}}", digest(&bags));
    if text.len() > LONGEST_ANNOTATION {
        return Err(format!(
            "what this version has no fields for takes {} bytes, and an annotation holds {LONGEST_ANNOTATION}",
            text.len()
        ));
    }
    let annotations = map_in(object, "metadata").and_then(|metadata| map_in(metadata, "annotations"));
    let Some(Value::Object(annotations)) = annotations else {
        return Err(
            "metadata.annotations is not a map, and has to carry what this version has no fields for".to_owned()
        );
    };
    annotations.insert(ANNOTATION.to_owned(), Value::String(text));
    Ok(())
}

/// A map in a map, which is made where it is missing or null.
fn map_in<'v>(value: &'v mut Value, key: &str) -> Option<&'v mut Value> {
    let found = value.as_object_mut()?.entry(key).or_insert(Value::Null);
    if found.is_null() {
        *found = json!({});
    }
    Some(found)
}

/// Puts bags back where they were; returns those for which there is no place any more.
pub(super) fn put_back(object: &mut Value, taken: Vec<Taken>, name: &str) -> Vec<Taken> {
    // Items are found by their content, so nothing is put into any before all are found.
    let found: Vec<(Option<Vec<PathSegment>>, Taken)> =
        taken.into_iter().map(|bag| (place_of(object, &bag.path), bag)).collect();
    let mut lost = Vec::new();
    for (place, bag) in found {
        match place.and_then(|place| node_mut(object, &place)) {
            Some(map) if !map.contains_key(name) => {
                map.insert(name.to_owned(), Value::Object(bag.entries));
            }
            _ => lost.push(bag),
        }
    }
    lost
}

fn place_of(object: &Value, path: &[Place]) -> Option<Vec<PathSegment>> {
    let mut node = object;
    let mut place = Vec::new();
    for step in path {
        let segment: PathSegment = match step {
            Place::Field(name) => {
                node = node.get(name)?;
                name.as_str().into()
            }
            Place::Item(Item { index, of, digest: wanted }) => {
                let items = node.as_array()?;
                let is_it = |item: &Value| digest_of(item) == *wanted;
                let found = if items.get(*index).is_some_and(is_it) {
                    *index
                } else {
                    let mut same = items.iter().enumerate().filter(|(_, item)| is_it(item)).map(|(index, _)| index);
                    match (same.next(), same.next()) {
                        (Some(found), None) => found,
                        // An item that was edited in its place.
                        (None, _) if items.len() == *of => *index,
                        _ => return None,
                    }
                };
                node = items.get(found)?;
                found.into()
            }
        };
        place.push(segment);
    }
    node.is_object().then_some(place)
}

fn node_mut<'v>(object: &'v mut Value, place: &[PathSegment]) -> Option<&'v mut Map<String, Value>> {
    let mut node = object;
    for segment in place {
        node = match segment {
            PathSegment::Key(name) => node.get_mut(name)?,
            PathSegment::Index(index) => node.get_mut(*index)?,
        };
    }
    node.as_object_mut()
}
