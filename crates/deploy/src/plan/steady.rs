//! Whether two reads of an object show the same state. Controllers write its status all the time, which concerns neither
//! a comparison nor a write.

use pushback_cluster::managed_fields::STATUS;
use pushback_objects::ObjectExt;
use serde_json::{Map, Value};

/// Whether nothing but the status differs, and who wrote it.
#[must_use]
pub fn is_same(before: &Value, after: &Value) -> bool {
    if before.resource_version() == after.resource_version() {
        return before.uid() == after.uid();
    }
    let (Some(before), Some(after)) = (before.as_object(), after.as_object()) else { return before == after };
    rest(before, &["status", "metadata"]).eq(rest(after, &["status", "metadata"]))
        && is_same_metadata(metadata(before), metadata(after))
}

fn is_same_metadata(before: Option<&Map<String, Value>>, after: Option<&Map<String, Value>>) -> bool {
    let (Some(before), Some(after)) = (before, after) else { return before == after };
    rest(before, &["resourceVersion", "managedFields"]).eq(rest(after, &["resourceVersion", "managedFields"]))
        && entries(before).eq(entries(after))
}

fn metadata(object: &Map<String, Value>) -> Option<&Map<String, Value>> {
    object.get("metadata").and_then(Value::as_object)
}

/// The fields of a map but for some. Both sides come from one server, in one order.
fn rest<'a>(map: &'a Map<String, Value>, without: &'a [&str]) -> impl Iterator<Item = (&'a String, &'a Value)> {
    map.iter().filter(|(field, _)| !without.contains(&field.as_str()))
}

/// The entries of `managedFields` but for those of the status.
fn entries(metadata: &Map<String, Value>) -> impl Iterator<Item = &Value> {
    let entries = metadata.get("managedFields").and_then(Value::as_array).into_iter().flatten();
    entries.filter(|entry| entry.text("/subresource") != STATUS)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object() -> Value {
        json!({"apiVersion": "v1", "kind": "Service", "spec": {"type": "ClusterIP"}, "status": {"phase": "old"},
        "metadata": {"name": "web", "uid": "1", "resourceVersion": "7", "labels": {"app": "web"}, "managedFields": [
            {"manager": "kapp", "operation": "Update"},
            {"manager": "controller", "operation": "Update", "subresource": "status", "time": "1"},
        ]}})
    }

    fn with(pointer: &str, value: Value) -> Value {
        let mut object = object();
        object["metadata"]["resourceVersion"] = json!("8");
        *object.pointer_mut(pointer).expect("a field") = value;
        object
    }

    #[test]
    fn a_status_and_who_wrote_it_make_no_other_state() {
        assert!(is_same(&object(), &with("/status", json!({"phase": "new"}))));
        assert!(is_same(&object(), &with("/metadata/managedFields/1/time", json!("2"))));
    }

    #[test]
    fn anything_else_does() {
        for pointer in ["/spec/type", "/metadata/uid", "/metadata/labels/app", "/metadata/managedFields/0/manager"] {
            assert!(!is_same(&object(), &with(pointer, json!("other"))), "{pointer}");
        }
        let mut deleted = with("/status", json!({}));
        deleted["metadata"]["deletionTimestamp"] = json!("now");
        assert!(!is_same(&object(), &deleted));
    }
}
