//! Counters in the state of a stream: the number of affected objects, with some of their names.

use pushback_objects::finding::LiveObjects;
use pushback_objects::object::ObjectExt;
use serde_json::{Map, Value, json};

/// Part of a count: it has objects of which a read does not show whether they are affected.
pub(super) const UP_TO: &str = "upTo";
/// Maximum number of names kept for each counter.
pub(super) const NAMES: usize = 5;

/// Returns a part of the state, which becomes a map if it is none.
pub(super) fn entry<'s>(state: &'s mut Value, key: &str) -> &'s mut Value {
    if !state.is_object() {
        *state = Value::Object(Map::new());
    }
    &mut state[key]
}

/// Counts an object that is affected, or only possibly.
pub(super) fn count_object(counter: &mut Value, object: &Value, is_possible: bool) {
    if !counter.is_object() {
        *counter = json!({"count": 0, "names": []});
    }
    counter["count"] = json!(counter["count"].as_u64().unwrap_or(0) + 1);
    if let Some(names) = counter["names"].as_array_mut().filter(|names| names.len() < NAMES) {
        names.push(object.full_name().into());
    }
    if is_possible {
        counter[UP_TO] = true.into();
    }
}

/// Reads a counter.
pub(super) fn read_counter(counter: &Value, examined: u64) -> LiveObjects {
    let names = counter["names"].as_array().into_iter().flatten().filter_map(Value::as_str).map(ToOwned::to_owned);
    LiveObjects {
        affected: counter["count"].as_u64().unwrap_or_default(),
        examined,
        up_to: counter[UP_TO].as_bool().unwrap_or_default(),
        names: names.collect(),
    }
}
