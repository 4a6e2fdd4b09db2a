//! Location of a field: keys of maps, and elements of lists by their `name`, so that it stays valid when others change
//! the list. Can be read, and turned into JSON patch operations.

use std::fmt;

use pushback_crd::path::pointer_key;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// Location of a field in an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Place(Vec<Segment>);

/// One segment of a place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum Segment {
    /// A key of a map.
    Key(String),
    /// The list element with this `name`.
    Named(String),
}

impl Place {
    /// A place reached through maps only.
    #[must_use]
    pub fn keys<const N: usize>(keys: [&str; N]) -> Self {
        Self(keys.into_iter().map(|key| Segment::Key(key.to_owned())).collect())
    }

    /// A place with these segments.
    #[must_use]
    pub fn new(parts: Vec<Segment>) -> Self {
        Self(parts)
    }

    /// Parses `spec.storage.type`; `None` if a segment is empty.
    #[must_use]
    pub fn parse(dotted: &str) -> Option<Self> {
        let parts: Vec<Segment> =
            dotted.trim_start_matches('.').split('.').map(|key| Segment::Key(key.to_owned())).collect();
        parts.iter().all(|part| *part != Segment::Key(String::new())).then_some(Self(parts))
    }

    /// Its segments.
    #[must_use]
    pub fn parts(&self) -> &[Segment] {
        &self.0
    }

    /// The place one segment below.
    #[must_use]
    pub fn child(&self, part: Segment) -> Self {
        Self(self.0.iter().cloned().chain([part]).collect())
    }

    /// Whether a place is this one or below it.
    #[must_use]
    pub fn holds(&self, other: &Self) -> bool {
        other.0.starts_with(&self.0)
    }

    /// The first key; empty for the object itself.
    #[must_use]
    pub fn root(&self) -> &str {
        match self.0.first() {
            Some(Segment::Key(key)) => key,
            _ => "",
        }
    }

    /// The value at this place.
    #[must_use]
    pub fn get<'a>(&self, object: &'a Value) -> Option<&'a Value> {
        self.0.iter().try_fold(object, |value, part| step(value, part).map(|(_, found)| found))
    }

    /// Number of enclosing maps that are missing.
    #[must_use]
    pub fn missing_parents(&self, object: &Value) -> usize {
        let present = self.known(object);
        self.0.len().saturating_sub(1).saturating_sub(present)
    }

    /// Number of leading segments that exist.
    fn known(&self, object: &Value) -> usize {
        let mut value = object;
        for (index, part) in self.0.iter().enumerate() {
            match step(value, part) {
                Some((_, found)) => value = found,
                None => return index,
            }
        }
        self.0.len()
    }

    /// The operation that sets the value, with the enclosing maps that are missing; `None` if a value of another type
    /// is in the way.
    #[must_use]
    pub fn set(&self, object: &Value, value: &Value) -> Option<Value> {
        let known = self.known(object).min(self.0.len().checked_sub(1)?);
        let around = Self(self.0[..known].to_vec());
        if !around.get(object)?.is_object() {
            return None;
        }
        let mut whole = value.clone();
        for part in self.0[known + 1..].iter().rev() {
            let Segment::Key(key) = part else { return None };
            whole = Value::Object(Map::from_iter([(key.clone(), whole)]));
        }
        let pointer = Self(self.0[..=known].to_vec()).pointer(object)?;
        // `add` replaces an existing value.
        Some(json!({"op": "add", "path": pointer, "value": whole}))
    }

    /// The operation that removes the value, and up to `made_parents` enclosing maps that it leaves empty.
    #[must_use]
    pub fn remove(&self, object: &Value, made_parents: usize) -> Option<Value> {
        self.get(object)?;
        let mut length = self.0.len();
        for _ in 0..made_parents {
            let around = Self(self.0[..length.checked_sub(1)?].to_vec());
            match around.get(object) {
                Some(Value::Object(map)) if map.len() == 1 && length > 1 => length -= 1,
                _ => break,
            }
        }
        Some(json!({"op": "remove", "path": Self(self.0[..length].to_vec()).pointer(object)?}))
    }

    /// Applies an operation of [`Self::set`] or [`Self::remove`] to an object.
    pub fn perform(object: &mut Value, operation: &Value) {
        let path = operation.get("path").and_then(Value::as_str).unwrap_or_default();
        let Some((around, key)) = path.rsplit_once('/') else { return };
        let Some(map) = object.pointer_mut(around).and_then(Value::as_object_mut) else { return };
        let key = key.replace("~1", "/").replace("~0", "~");
        match operation.get("value") {
            Some(value) => drop(map.insert(key, value.clone())),
            None => drop(map.shift_remove(&key)),
        }
    }

    /// JSON pointer to this place in the object; the last segment need not exist.
    fn pointer(&self, object: &Value) -> Option<String> {
        let mut pointer = String::new();
        let mut value = Some(object);
        for part in &self.0 {
            match (part, value.and_then(|value| step(value, part))) {
                (_, Some((name, found))) => {
                    pointer.push('/');
                    pointer.push_str(&name);
                    value = Some(found);
                }
                (Segment::Key(key), None) => {
                    pointer.push('/');
                    pointer.push_str(&pointer_key(key));
                    value = None;
                }
                (Segment::Named(_), None) => return None,
            }
        }
        Some(pointer)
    }
}

/// One segment down: its name in a JSON pointer, and the value there.
fn step<'a>(value: &'a Value, part: &Segment) -> Option<(String, &'a Value)> {
    match part {
        Segment::Key(key) => Some((pointer_key(key), value.as_object()?.get(key)?)),
        Segment::Named(name) => {
            let named = |element: &Value| element.get("name").and_then(Value::as_str) == Some(name);
            let (index, found) = value.as_array()?.iter().enumerate().find(|(_, element)| named(element))?;
            Some((index.to_string(), found))
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, part) in self.0.iter().enumerate() {
            match part {
                Segment::Key(key) if key.contains('.') => write!(f, "[{key}]")?,
                Segment::Key(key) => write!(f, "{}{key}", if index == 0 { "" } else { "." })?,
                Segment::Named(name) => write!(f, "[{name}]")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object() -> Value {
        json!({
            "metadata": {"labels": {"a/b": "1"}},
            "spec": {"storage": {"type": "s3"}},
            "webhooks": [{"name": "one"}, {"name": "two", "failurePolicy": "Fail"}],
        })
    }

    #[test]
    fn elements_of_lists_are_found_by_their_name() {
        let place = Place::new(vec![
            Segment::Key("webhooks".to_owned()),
            Segment::Named("two".to_owned()),
            Segment::Key("failurePolicy".to_owned()),
        ]);
        assert_eq!(place.get(&object()), Some(&json!("Fail")));
        let set = place.set(&object(), &json!("Ignore"));
        assert_eq!(set, Some(json!({"op": "add", "path": "/webhooks/1/failurePolicy", "value": "Ignore"})));
        assert_eq!(place.to_string(), "webhooks[two].failurePolicy");
        let gone = Place::new(vec![Segment::Key("webhooks".to_owned()), Segment::Named("three".to_owned())]);
        assert_eq!(gone.set(&object(), &json!(1)), None);
    }

    #[test]
    fn a_value_comes_with_the_maps_around_it_and_goes_with_those_alone() {
        let place = Place::parse("data.inner.key").expect("a place");
        assert_eq!(place.missing_parents(&object()), 2);
        let set = place.set(&object(), &json!(1));
        assert_eq!(set, Some(json!({"op": "add", "path": "/data", "value": {"inner": {"key": 1}}})));
        let alone = json!({"data": {"inner": {"key": 1}}});
        assert_eq!(place.remove(&alone, 2), Some(json!({"op": "remove", "path": "/data"})));
        assert_eq!(place.remove(&alone, 0), Some(json!({"op": "remove", "path": "/data/inner/key"})));
        let with_another = json!({"data": {"inner": {"key": 1}, "other": 2}});
        assert_eq!(place.remove(&with_another, 2), Some(json!({"op": "remove", "path": "/data/inner"})));
    }

    #[test]
    fn operations_do_here_what_they_do_in_a_patch() {
        let mut object = object();
        for (place, value) in [("data.a.b", 1), ("data.a.c", 2)] {
            let place = Place::parse(place).expect("a place");
            let operation = place.set(&object, &json!(value)).expect("a map around it");
            Place::perform(&mut object, &operation);
        }
        assert_eq!(object["data"], json!({"a": {"b": 1, "c": 2}}));
        for place in ["data.a.b", "data.a.c"] {
            let operation = Place::parse(place).and_then(|place| place.remove(&object, 2)).expect("a value");
            Place::perform(&mut object, &operation);
        }
        let label = Place::keys(["metadata", "labels", "a/b"]).remove(&object, 0).expect("a label");
        Place::perform(&mut object, &label);
        assert_eq!((object.get("data"), &object["metadata"]["labels"]), (None, &json!({})));
    }

    #[test]
    fn keys_with_slashes_are_escaped() {
        let place = Place::keys(["metadata", "labels", "a/b"]);
        assert_eq!(place.remove(&object(), 0), Some(json!({"op": "remove", "path": "/metadata/labels/a~1b"})));
    }

    #[test]
    fn what_is_no_map_is_not_written_over() {
        let place = Place::parse("spec.storage.type.inner").expect("a place");
        assert_eq!(place.set(&object(), &json!(1)), None);
        assert!(Place::parse("spec..x").is_none() && Place::parse("").is_none());
    }
}
