//! Writes of users who may create and update, but not patch: what a patch would make of the object is worked out here, and
//! sent as a whole under its resourceVersion.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use serde_json::{Map, Value};

use crate::cluster::{Address, ClusterError, ErrorKind, FIELD_MANAGER};
use crate::managed_fields::{Element, FieldSet, element_matches, managers};

/// The resources, by namespace, that the user may write but not patch.
#[derive(Debug, Default)]
pub(super) struct PlainWrites(Mutex<BTreeSet<String>>);

impl PlainWrites {
    /// Whether a patch of the object was forbidden before, and a plain write was not.
    pub(super) fn serve(&self, address: &Address) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(&place(address))
    }

    /// Remembers that plain writes work; returns a sentence the first time.
    pub(super) fn remember(&self, address: &Address) -> Option<String> {
        let is_new = self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(place(address));
        is_new.then(|| {
            format!(
                "this user may not patch {}: objects are read, merged here and written whole, and who owns which field is \
                 recorded less exactly",
                place(address)
            )
        })
    }
}

/// `deployments.apps in shop`.
fn place(address: &Address) -> String {
    let kind = &address.kind;
    let subresource = if address.subresource.is_empty() { "" } else { "/" };
    let group = if kind.group.is_empty() { String::new() } else { format!(".{}", kind.group) };
    let namespace =
        if address.namespace.is_empty() { String::new() } else { format!(" in namespace {}", address.namespace) };
    format!("{}{subresource}{}{group}{namespace}", kind.plural, address.subresource)
}

/// Whether a plain write may be allowed where this was not: the user lacks the verb, and nothing else is wrong.
pub(super) fn may_serve(error: &ClusterError) -> bool {
    error.kind == ErrorKind::Forbidden && error.message.contains("cannot patch resource")
}

/// The object after an apply: what the body says, without what this tool has set and the body no longer has.
pub(super) fn applied(live: &Value, body: &Value) -> Value {
    let mut object = live.clone();
    for entry in managers(live).unwrap_or_default() {
        if entry.owner.manager == FIELD_MANAGER && entry.owner.subresource.is_empty() {
            release(&entry.fields, &mut object, Some(body));
        }
    }
    overlay(&mut object, body);
    object
}

/// As [`applied`], but nothing goes: the server itself may have set what counts as set by this tool.
pub(super) fn merged(live: &Value, body: &Value) -> Value {
    let mut object = live.clone();
    overlay(&mut object, body);
    object
}

/// Removes the fields of a set that the body does not have.
fn release(set: &FieldSet, node: &mut Value, body: Option<&Value>) {
    for (element, child) in set.children() {
        match (element, &mut *node) {
            (Element::Field(name), Value::Object(map)) => {
                let wanted = body.and_then(|body| body.get(name));
                let Some(value) = map.get_mut(name) else { continue };
                if wanted.is_none() && child.is_leaf() {
                    map.shift_remove(name);
                    continue;
                }
                release(child, value, wanted);
                if wanted.is_none() && child.is_member() && is_empty(value) {
                    map.shift_remove(name);
                }
            }
            (Element::Key(_) | Element::Value(_) | Element::Index(_), Value::Array(items)) => {
                let matches = |(index, item): &(usize, &Value)| element_matches(element, *index, item);
                let Some(index) = items.iter().enumerate().find(matches).map(|(index, _)| index) else { continue };
                let wanted = body.and_then(Value::as_array);
                let wanted = wanted.and_then(|list| list.iter().enumerate().find(matches).map(|(_, item)| item));
                if wanted.is_none() && child.is_member() {
                    items.remove(index);
                } else {
                    release(child, &mut items[index], wanted);
                }
            }
            _ => {}
        }
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(map) => map.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

/// Puts the body over an object: maps are merged, and so are list items of one name; other lists become the body's.
fn overlay(target: &mut Value, body: &Value) {
    match (target, body) {
        (Value::Object(map), Value::Object(body)) => overlay_map(map, body),
        (Value::Array(items), Value::Array(body)) => {
            *items = body
                .iter()
                .map(|wanted| {
                    let named = items.iter().find(|item| name(item).is_some() && name(item) == name(wanted));
                    let mut item = named.cloned().unwrap_or(Value::Null);
                    overlay(&mut item, wanted);
                    item
                })
                .collect();
        }
        (target, body) => *target = body.clone(),
    }
}

fn overlay_map(map: &mut Map<String, Value>, body: &Map<String, Value>) {
    for (key, value) in body {
        match map.get_mut(key) {
            _ if value.is_null() => {
                map.shift_remove(key);
            }
            Some(known) => overlay(known, value),
            None => {
                map.insert(key.clone(), value.clone());
            }
        }
    }
}

fn name(item: &Value) -> Option<&str> {
    item.get("name").and_then(Value::as_str)
}

/// Takes a precondition out of a body.
pub(super) fn take_metadata(body: &mut Value, key: &str) -> String {
    let metadata = body.get_mut("metadata").and_then(Value::as_object_mut);
    let value = metadata.and_then(|metadata| metadata.shift_remove(key));
    value.and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

/// Makes the object's version the condition of its write.
pub(super) fn set_version(object: &mut Value, version: &str) {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.insert("resourceVersion".to_owned(), version.into());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_the_manifest_drops_goes_and_what_others_set_stays() {
        let live = json!({
            "metadata": {"name": "web", "labels": {"ours": "1", "dropped": "1", "theirs": "1"}, "resourceVersion": "7",
                "managedFields": [
                    {"manager": "pushback", "operation": "Update", "apiVersion": "apps/v1", "fieldsType": "FieldsV1",
                     "fieldsV1": {"f:metadata": {"f:labels": {".": {}, "f:ours": {}, "f:dropped": {}}},
                        "f:spec": {"f:paused": {}, "f:template": {"f:containers": {
                            "k:{\"name\":\"a\"}": {".": {}, "f:name": {}, "f:image": {}, "f:command": {}},
                            "k:{\"name\":\"gone\"}": {".": {}, "f:name": {}}}}}}},
                    {"manager": "other", "operation": "Update", "apiVersion": "apps/v1", "fieldsType": "FieldsV1",
                     "fieldsV1": {"f:spec": {"f:replicas": {}}}}]},
            "spec": {"paused": true, "replicas": 3, "template": {"containers": [
                {"name": "a", "image": "a:1", "command": ["x"], "imagePullPolicy": "Always"}, {"name": "gone"}]}}});
        let body = json!({"metadata": {"name": "web", "labels": {"ours": "2"}},
            "spec": {"template": {"containers": [{"name": "a", "image": "a:2"}]}}});
        let after = applied(&live, &body);
        assert_eq!(after["metadata"]["labels"], json!({"ours": "2", "theirs": "1"}));
        assert_eq!(
            after["spec"],
            json!({"replicas": 3, "template": {"containers": [
                {"name": "a", "image": "a:2", "imagePullPolicy": "Always"}]}})
        );
        let kept = merged(&live, &body);
        assert_eq!(kept["metadata"]["labels"]["dropped"], "1");
        assert_eq!(kept["spec"]["template"]["containers"].as_array().map(Vec::len), Some(1));
    }

    #[test]
    fn only_a_missing_right_to_patch_is_replaced() {
        let error = |kind, message: &str| ClusterError::new(kind, message);
        let forbidden =
            "configmaps \"a\" is forbidden: User \"u\" cannot patch resource \"configmaps\" in API group \"\"";
        assert!(may_serve(&error(ErrorKind::Forbidden, forbidden)));
        assert!(!may_serve(&error(ErrorKind::Forbidden, "User \"u\" cannot create resource \"configmaps\"")));
        assert!(!may_serve(&error(ErrorKind::Denied, forbidden)));
    }
}
