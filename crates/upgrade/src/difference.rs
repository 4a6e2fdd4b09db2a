//! Value-by-value difference of two states of one object: what an injection really changed, and whether a revert
//! restored all of it.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::place::{Place, Segment};

/// Metadata that clients write; the rest is set by the server.
const WRITTEN: [&str; 4] = ["labels", "annotations", "finalizers", "ownerReferences"];

/// One field, before and after.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FieldChange {
    /// Location of the field.
    pub place: Place,
    /// Old value; `None` if it was absent.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub before: Option<Value>,
    /// New value; `None` if it is removed.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub after: Option<Value>,
    /// Number of enclosing maps that were absent too.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub made_parents: usize,
}

/// Reads a null as a present value rather than an absent one.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

// Values may be secret: no debug output shows them.
impl fmt::Debug for FieldChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FieldChange").field("place", &self.place.to_string()).finish_non_exhaustive()
    }
}

/// Differences of two states, without server-set counters and status.
#[must_use]
pub fn between(before: &Value, after: &Value) -> Vec<FieldChange> {
    let (before, after) = (content(before), content(after));
    let whole =
        FieldChange { place: Place::new(Vec::new()), before: Some(before), after: Some(after), made_parents: 0 };
    leaves(&whole)
}

/// The same without maps and lists that are merely empty on one side: the server decides which of them to keep.
#[must_use]
pub fn between_contents(before: &Value, after: &Value) -> Vec<FieldChange> {
    let is_empty = |value: &Option<Value>| value.as_ref().is_none_or(is_empty_collection);
    between(before, after).into_iter().filter(|field| !(is_empty(&field.before) && is_empty(&field.after))).collect()
}

/// The leaf values of a change. A map on both sides is compared key by key, and a removed one is a single value; so is
/// a list, unless its items have names and those stay the same.
#[must_use]
pub fn leaves(field: &FieldChange) -> Vec<FieldChange> {
    let mut found = Vec::new();
    collect(field, &mut found);
    found
}

fn collect(field: &FieldChange, found: &mut Vec<FieldChange>) {
    if field.before == field.after {
        return;
    }
    let nothing = Map::new();
    match (&field.before, &field.after) {
        (Some(Value::Object(before)), Some(Value::Object(after))) => children(field, before, after, 0, found),
        // Enclosing maps are removed with a value if nobody else has put anything into them.
        (None, Some(Value::Object(after))) if !after.is_empty() => {
            children(field, &nothing, after, field.made_parents + 1, found);
        }
        (Some(Value::Array(before)), Some(Value::Array(after))) if same_names(before, after) => {
            for (before, after) in before.iter().zip(after) {
                let name = before.get("name").and_then(Value::as_str).unwrap_or_default();
                let part = Segment::Named(name.to_owned());
                collect(&child(field, part, Some(before), Some(after), 0), found);
            }
        }
        _ => found.push(field.clone()),
    }
}

fn children(
    field: &FieldChange,
    before: &Map<String, Value>,
    after: &Map<String, Value>,
    made_parents: usize,
    found: &mut Vec<FieldChange>,
) {
    let keys: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    for key in keys {
        collect(&child(field, Segment::Key(key.clone()), before.get(key), after.get(key), made_parents), found);
    }
}

fn child(
    field: &FieldChange,
    part: Segment,
    before: Option<&Value>,
    after: Option<&Value>,
    made_parents: usize,
) -> FieldChange {
    FieldChange { place: field.place.child(part), before: before.cloned(), after: after.cloned(), made_parents }
}

/// Whether both lists have the same named items, in the same order.
fn same_names(before: &[Value], after: &[Value]) -> bool {
    let names = |list: &[Value]| -> Option<Vec<String>> {
        list.iter().map(|item| Some(item.get("name")?.as_str()?.to_owned())).collect()
    };
    match (names(before), names(after)) {
        (Some(before), Some(after)) => {
            before == after && before.iter().collect::<BTreeSet<_>>().len() == before.len() && !before.is_empty()
        }
        _ => false,
    }
}

fn is_empty_collection(value: &Value) -> bool {
    match value {
        Value::Object(map) => map.is_empty(),
        Value::Array(list) => list.is_empty(),
        _ => false,
    }
}

/// An object without fields that no client sets.
fn content(object: &Value) -> Value {
    let mut content = object.clone();
    let Some(fields) = content.as_object_mut() else { return content };
    for server in ["apiVersion", "kind", "status"] {
        fields.shift_remove(server);
    }
    if let Some(metadata) = fields.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|key, _| WRITTEN.contains(&key.as_str()));
    }
    content
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shown(before: &Value, after: &Value) -> Vec<(String, Option<Value>, Option<Value>, usize)> {
        let fields = between(before, after).into_iter();
        fields.map(|field| (field.place.to_string(), field.before, field.after, field.made_parents)).collect()
    }

    #[test]
    fn a_map_differs_key_by_key_and_a_list_as_one() {
        let before = json!({"spec": {"storage": {"type": "s3", "bucket": "models"}, "list": [1, 2], "same": 1}});
        let after = json!({"spec": {"storage": {"bucket": "a"}, "list": [1], "same": 1}});
        assert_eq!(
            shown(&before, &after),
            [
                ("spec.list".to_owned(), Some(json!([1, 2])), Some(json!([1])), 0),
                ("spec.storage.bucket".to_owned(), Some(json!("models")), Some(json!("a")), 0),
                ("spec.storage.type".to_owned(), Some(json!("s3")), None, 0),
            ]
        );
    }

    #[test]
    fn a_map_that_comes_is_its_values_and_one_that_goes_is_one() {
        let (without, with) = (json!({}), json!({"data": {"a": {"b": 1}, "c": {}}}));
        assert_eq!(
            shown(&without, &with),
            [("data.a.b".to_owned(), None, Some(json!(1)), 2), ("data.c".to_owned(), None, Some(json!({})), 1)]
        );
        assert_eq!(shown(&with, &without), [("data".to_owned(), Some(with["data"].clone()), None, 0)]);
    }

    #[test]
    fn items_with_names_differ_one_by_one_as_long_as_they_are_the_same() {
        let list = |first: &str, policy: &str| json!({"webhooks": [{"name": first}, {"name": "b", "policy": policy}]});
        assert_eq!(
            shown(&list("a", "Fail"), &list("a", "Ignore")),
            [("webhooks[b].policy".to_owned(), Some(json!("Fail")), Some(json!("Ignore")), 0)]
        );
        assert_eq!(shown(&list("a", "Fail"), &list("c", "Fail")).len(), 1);
    }

    #[test]
    fn what_the_server_counts_is_no_difference() {
        let object = |version: &str, label: &str| {
            json!({"apiVersion": version, "kind": "A", "status": {"seen": version}, "metadata": {
                "resourceVersion": version, "managedFields": [version], "labels": {"team": label}}})
        };
        assert_eq!(shown(&object("1", "a"), &object("2", "a")), []);
        assert_eq!(shown(&object("1", "a"), &object("1", "b"))[0].0, "metadata.labels.team");
        assert!(between_contents(&json!({"data": {}}), &json!({})).is_empty());
        assert_eq!(between(&json!({"data": {}}), &json!({})).len(), 1);
    }
}
