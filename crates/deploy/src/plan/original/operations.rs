//! The difference of two objects as kapp digests it: a list of operations, each tested before it is made, as YAML.
//! Items of lists are compared by index, and values are spelt out.

use pushback_manifest::yaml::go;
use serde_json::{Map, Value, json};

/// The operations that make `new` of `old`, as a YAML document.
pub(super) fn as_yaml(old: &Value, new: &Value) -> String {
    let mut operations = Vec::new();
    compare(old, new, "", &mut operations);
    go::list(&operations)
}

type Operation = Map<String, Value>;

fn compare(old: &Value, new: &Value, path: &str, operations: &mut Vec<Operation>) {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            let mut keys: Vec<&String> = old.keys().chain(new.keys().filter(|key| !old.contains_key(*key))).collect();
            keys.sort_by_cached_key(|key| go::scalar(key));
            for key in keys {
                let place = format!("{path}/{}", escaped(key));
                match (old.get(key), new.get(key)) {
                    (Some(old), Some(new)) => compare(old, new, &place, operations),
                    (Some(old), None) => remove(&place, old, operations),
                    (None, Some(new)) => add(&place, &format!("{place}?"), new, operations),
                    (None, None) => {}
                }
            }
        }
        (Value::Array(old), Value::Array(new)) => {
            for index in 0..old.len().max(new.len()) {
                let place = format!("{path}/{index}");
                match (old.get(index), new.get(index)) {
                    (Some(old), Some(new)) => compare(old, new, &place, operations),
                    // Those after a removed item move up.
                    (Some(old), None) => remove(&format!("{path}/{}", new.len()), old, operations),
                    (None, Some(new)) => add(&place, &format!("{path}/-"), new, operations),
                    (None, None) => {}
                }
            }
        }
        (old, new) if old == new => {}
        (old, new) => {
            operations.push(operation("test", path, Some(old)));
            operations.push(operation("replace", path, Some(new)));
        }
    }
}

fn remove(place: &str, old: &Value, operations: &mut Vec<Operation>) {
    operations.push(operation("test", place, Some(old)));
    operations.push(operation("remove", place, None));
}

fn add(place: &str, target: &str, new: &Value, operations: &mut Vec<Operation>) {
    let mut test = operation("test", place, None);
    test.insert("absent".to_owned(), json!(true));
    operations.push(test);
    operations.push(operation("replace", target, Some(new)));
}

fn operation(name: &str, path: &str, value: Option<&Value>) -> Operation {
    let path = if path.is_empty() { "/" } else { path };
    let mut operation = Map::new();
    operation.insert("type".to_owned(), name.into());
    operation.insert("path".to_owned(), path.into());
    operation.extend(value.map(|value| ("value".to_owned(), value.clone())));
    operation
}

fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}
