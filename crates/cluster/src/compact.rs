//! Objects as they are kept: with the memory that they need. A map that is read grows in steps, and most maps of an object,
//! above all those of `managedFields`, have one entry or two.

use std::fmt;
use std::sync::Arc;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// The object, with maps and lists no larger than their content.
pub fn kept(object: Value) -> Arc<Value> {
    Arc::new(compact(object))
}

/// The same of a value.
fn compact(value: Value) -> Value {
    match value {
        Value::Object(map) => Value::Object(exact(map.into_iter().map(|(field, value)| (field, compact(value))))),
        Value::Array(items) => Value::Array(items.into_iter().map(compact).collect::<Box<[Value]>>().into_vec()),
        scalar => scalar,
    }
}

/// A map with room for these entries and no more.
fn exact(entries: impl ExactSizeIterator<Item = (String, Value)>) -> Map<String, Value> {
    let mut map = Map::with_capacity(entries.len());
    map.extend(entries);
    map
}

/// A value that is read from JSON and kept: no map or list is copied because it grows.
#[derive(Debug, Default)]
pub(crate) struct Compact(pub(crate) Value);

/// The same of a map.
#[derive(Debug)]
pub(crate) struct CompactMap(pub(crate) Map<String, Value>);

impl Compact {
    pub(crate) fn kept(self) -> Arc<Value> {
        Arc::new(self.0)
    }
}

impl<'de> Deserialize<'de> for Compact {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(CompactVisitor).map(Self)
    }
}

impl<'de> Deserialize<'de> for CompactMap {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match deserializer.deserialize_map(CompactVisitor)? {
            Value::Object(map) => Ok(Self(map)),
            _ => Err(serde::de::Error::custom("expected a map")),
        }
    }
}

struct CompactVisitor;

impl<'de> Visitor<'de> for CompactVisitor {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut read = Vec::new();
        while let Some(Compact(item)) = items.next_element()? {
            read.push(item);
        }
        read.shrink_to_fit();
        Ok(Value::Array(read))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut read = Vec::new();
        while let Some((field, Compact(value))) = entries.next_entry::<String, Compact>()? {
            read.push((field, value));
        }
        Ok(Value::Object(exact(read.into_iter())))
    }
}

#[cfg(test)]
mod tests {
    use allocation_counter::measure;
    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_is_the_same_and_takes_less_memory() {
        let fields = json!({"f:metadata": {"f:labels": {"f:app": {}}}, "f:data": {".": {}, "f:key": {}}});
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web", "labels": {"app": "web"},
            "managedFields": [{"manager": "pushback", "fieldsV1": fields}]}, "data": {"key": "value"}, "items": [1, [2]]});
        let text = object.to_string();
        let mut read = Value::Null;
        let before = measure(|| read = serde_json::from_str(&text).unwrap()).bytes_current;
        let mut kept = Arc::new(Value::Null);
        let saved = measure(|| kept = super::kept(read)).bytes_current;
        assert_eq!(kept.to_string(), text);
        assert!(-saved > before / 4, "{before} bytes, and then {saved}");
        let mut at_once = Compact::default();
        let taken = measure(|| at_once = serde_json::from_str(&text).unwrap()).bytes_current;
        assert_eq!(at_once.0, *kept);
        assert!(taken <= before + saved, "{taken} bytes instead of {}", before + saved);
    }

    #[test]
    fn a_value_is_read_as_it_is_without_it() {
        for text in [
            r#"{"a": [1, -1, 1.5, 1e300, 18446744073709551615, true, null, "\u00e9\n"], "b": {"c": {}, "d": []}}"#,
            r#"{"twice": 1, "between": 2, "twice": 3}"#,
            "18446744073709551616",
        ] {
            let Compact(read) = serde_json::from_str(text).unwrap();
            assert_eq!(read.to_string(), serde_json::from_str::<Value>(text).unwrap().to_string());
        }
        let deep = "[".repeat(200);
        assert!(serde_json::from_str::<Compact>(&deep).is_err());
    }
}
