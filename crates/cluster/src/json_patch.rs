//! JSON Patch (RFC 6902) and JSON Merge Patch (RFC 7386) on plain values.
//! Errors name the operation and its path, never a value.

use serde_json::{Map, Value};

use crate::{ClusterError, ErrorKind};

/// Applies a merge patch: null removes, maps are merged, everything else replaces.
pub fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Value::Object(target) = target else { return };
    for (key, value) in patch {
        if value.is_null() {
            target.shift_remove(key);
        } else {
            merge(target.entry(key.clone()).or_insert(Value::Null), value);
        }
    }
}

/// Applies all operations, or none: `target` is unchanged if one fails.
///
/// # Errors
/// `Invalid` for a malformed operation, a path that does not exist or a test that fails.
pub(crate) fn apply(target: &mut Value, patch: &Value) -> Result<(), ClusterError> {
    let operations = patch.as_array().ok_or_else(|| invalid("a JSON patch is a list of operations"))?;
    let mut patched = target.clone();
    for (index, operation) in operations.iter().enumerate() {
        apply_one(&mut patched, operation).map_err(|reason| {
            let text = |key: &str| operation.get(key).and_then(Value::as_str).unwrap_or("?");
            invalid(&format!("JSON patch operation {index} ({} {:?}): {reason}", text("op"), text("path")))
        })?;
    }
    *target = patched;
    Ok(())
}

/// Whether two values are equal in Kubernetes: `1.0` is `1`.
pub(crate) fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => {
            left == right || (left.is_f64() || right.is_f64()) && left.as_f64() == right.as_f64()
        }
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| same(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left.iter().all(|(key, left)| right.get(key).is_some_and(|right| same(left, right)))
        }
        _ => left == right,
    }
}

fn invalid(message: &str) -> ClusterError {
    ClusterError::new(ErrorKind::Invalid, message)
}

fn apply_one(target: &mut Value, operation: &Value) -> Result<(), &'static str> {
    let pointer = |key: &str| -> Result<Vec<String>, &'static str> {
        let text = operation.get(key).and_then(Value::as_str).ok_or("has no path")?;
        parse_pointer(text).ok_or("has a malformed path")
    };
    let value = || operation.get("value").cloned().ok_or("has no value");
    let path = pointer("path")?;
    match operation.get("op").and_then(Value::as_str) {
        Some("add") => add(target, &path, value()?),
        Some("remove") => remove(target, &path).map(drop),
        Some("replace") => {
            *find(target, &path).ok_or("path does not exist")? = value()?;
            Ok(())
        }
        Some("move") => {
            let from = pointer("from")?;
            if path.len() > from.len() && path.starts_with(&from) {
                return Err("cannot move a value into itself");
            }
            let moved = remove(target, &from)?;
            add(target, &path, moved)
        }
        Some("copy") => {
            let copied = find(target, &pointer("from")?).ok_or("path to copy from does not exist")?.clone();
            add(target, &path, copied)
        }
        Some("test") => {
            let expected = value()?;
            let found = find(target, &path).ok_or("path does not exist")?;
            if same(found, &expected) { Ok(()) } else { Err("test failed") }
        }
        _ => Err("is not a known operation"),
    }
}

/// The segments of a JSON pointer, unescaped.
fn parse_pointer(text: &str) -> Option<Vec<String>> {
    if text.is_empty() {
        return Some(Vec::new());
    }
    Some(text.strip_prefix('/')?.split('/').map(|segment| segment.replace("~1", "/").replace("~0", "~")).collect())
}

/// RFC 6901: digits without a leading zero.
fn parse_index(segment: &str) -> Option<usize> {
    let canonical = segment == "0" || !segment.starts_with('0');
    (canonical && segment.bytes().all(|byte| byte.is_ascii_digit())).then(|| segment.parse().ok())?
}

fn find<'a>(target: &'a mut Value, path: &[String]) -> Option<&'a mut Value> {
    path.iter().try_fold(target, |value, segment| match value {
        Value::Object(map) => map.get_mut(segment),
        Value::Array(items) => items.get_mut(parse_index(segment)?),
        _ => None,
    })
}

fn add(target: &mut Value, path: &[String], value: Value) -> Result<(), &'static str> {
    let Some((last, parent)) = path.split_last() else {
        *target = value;
        return Ok(());
    };
    match find(target, parent).ok_or("parent does not exist")? {
        Value::Object(map) => {
            map.insert(last.clone(), value);
            Ok(())
        }
        Value::Array(items) => {
            let index = if last == "-" { items.len() } else { parse_index(last).ok_or("is not an index")? };
            if index > items.len() {
                return Err("index is out of bounds");
            }
            items.insert(index, value);
            Ok(())
        }
        _ => Err("parent is neither a map nor a list"),
    }
}

fn remove(target: &mut Value, path: &[String]) -> Result<Value, &'static str> {
    let Some((last, parent)) = path.split_last() else { return Ok(target.take()) };
    match find(target, parent).ok_or("path does not exist")? {
        Value::Object(map) => map.shift_remove(last).ok_or("path does not exist"),
        Value::Array(items) => {
            let index = parse_index(last).filter(|index| *index < items.len()).ok_or("path does not exist")?;
            Ok(items.remove(index))
        }
        _ => Err("path does not exist"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_merge_patch_merges_maps_and_removes_nulls() {
        // Appendix A of RFC 7386.
        let table = [
            (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "b"}), json!({"b": "c"}), json!({"a": "b", "b": "c"})),
            (json!({"a": "b"}), json!({"a": null}), json!({})),
            (json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": {"b": "c"}}), json!({"a": {"b": "d", "c": null}}), json!({"a": {"b": "d"}})),
            (json!({"a": [{"b": "c"}]}), json!({"a": [1]}), json!({"a": [1]})),
            (json!(["a", "b"]), json!(["c", "d"]), json!(["c", "d"])),
            (json!({"e": null}), json!({"a": 1}), json!({"e": null, "a": 1})),
            (json!([1, 2]), json!({"a": "b", "c": null}), json!({"a": "b"})),
            (json!({}), json!({"a": {"bb": {"ccc": null}}}), json!({"a": {"bb": {}}})),
        ];
        for (mut target, patch, expected) in table {
            merge(&mut target, &patch);
            assert_eq!(target, expected, "{patch}");
        }
    }

    #[test]
    fn operations_work_in_order() {
        let mut value = json!({"a": [1, 2], "b/c": {"~": 1}});
        let patch = json!([
            {"op": "test", "path": "/a/0", "value": 1.0},
            {"op": "add", "path": "/a/1", "value": 9},
            {"op": "add", "path": "/a/-", "value": 3},
            {"op": "remove", "path": "/a/0"},
            {"op": "replace", "path": "/b~1c/~0", "value": 2},
            {"op": "copy", "from": "/a", "path": "/d"},
            {"op": "move", "from": "/d/0", "path": "/e"},
        ]);
        apply(&mut value, &patch).unwrap();
        assert_eq!(value, json!({"a": [9, 2, 3], "b/c": {"~": 2}, "d": [2, 3], "e": 9}));
    }

    #[test]
    fn a_patch_that_fails_changes_nothing_and_shows_no_value() {
        let before = json!({"a": [1], "secret": "hunter2"});
        for operation in [
            json!({"op": "test", "path": "/secret", "value": "hunter3"}),
            json!({"op": "remove", "path": "/absent"}),
            json!({"op": "remove", "path": "/a/1"}),
            json!({"op": "replace", "path": "/a/01", "value": 1}),
            json!({"op": "add", "path": "/a/3", "value": 1}),
            json!({"op": "add", "path": "/absent/x", "value": 1}),
            json!({"op": "add", "path": "a", "value": 1}),
            json!({"op": "add", "path": "/a"}),
            json!({"op": "move", "from": "/a", "path": "/a/0"}),
            json!({"op": "merge", "path": "/a"}),
            json!("nonsense"),
        ] {
            let mut value = before.clone();
            let patch = json!([{"op": "add", "path": "/new", "value": 1}, operation]);
            let error = apply(&mut value, &patch).unwrap_err();
            assert_eq!((error.kind, &value), (ErrorKind::Invalid, &before), "{operation}");
            assert!(!error.message.contains("hunter"), "{error}");
        }
    }
}
