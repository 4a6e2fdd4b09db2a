//! Objects as they are kept: with the memory that they need. A map that is read grows in steps, and most maps of an object,
//! above all those of `managedFields`, have one entry or two.

use std::sync::Arc;

use serde_json::{Map, Value};

/// The object, with maps and lists no larger than their content.
pub(crate) fn kept(object: Value) -> Arc<Value> {
    Arc::new(compact(object))
}

/// The same of a value.
pub(crate) fn compact(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut compacted = Map::with_capacity(map.len());
            compacted.extend(map.into_iter().map(|(field, value)| (field, compact(value))));
            Value::Object(compacted)
        }
        Value::Array(items) => Value::Array(items.into_iter().map(compact).collect::<Box<[Value]>>().into_vec()),
        scalar => scalar,
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
    }
}
