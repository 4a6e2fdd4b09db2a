//! Estimates the server's merge when the server does not merge: it refuses, or must not be asked, or whole objects are
//! written. The merge keys of lists are inferred from the managed fields of the object.

use pushback_manifest::config::path;
use pushback_objects::PathSegment;
use serde_json::{Map, Value};

use super::FIELD_MANAGER;
use crate::managed_fields::{self as fields, Element, FieldSet, ManagerEntry, canonical, element_matches};

/// The estimated result of applying the manifest: the manifest over the live object, without fields that only we own
/// and the manifest no longer sets. Server defaults stay.
#[must_use]
pub fn applied(live: &Value, manifest: &Value) -> Value {
    let managers = fields::managers(live).unwrap_or_default();
    let is_ours = |entry: &&ManagerEntry| entry.owner.manager == FIELD_MANAGER && entry.owner.operation == "Apply";
    let (ours, others): (Vec<&ManagerEntry>, Vec<&ManagerEntry>) = managers.iter().partition(is_ours);
    over(live, manifest, &union(ours), &union(others), Going::All)
}

/// As [`applied`], for objects that this tool writes whole: whatever it has set is its own, however it was written.
#[must_use]
pub fn written(live: &Value, manifest: &Value, what: Going) -> Value {
    let managers = fields::managers(live).unwrap_or_default();
    let is_ours = |entry: &&ManagerEntry| entry.owner.manager == FIELD_MANAGER && entry.owner.subresource.is_empty();
    let (ours, others): (Vec<&ManagerEntry>, Vec<&ManagerEntry>) = managers.iter().partition(is_ours);
    over(live, manifest, &union(ours), &union(others), what)
}

/// What goes of that which the manifest no longer sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Going {
    /// Fields and list items.
    All,
    /// List items only: a field may have been filled in by the server, which does not take it back.
    Items,
}

/// The estimated result of deleting and recreating the object: fields that any manager owns are removed unless the
/// manifest sets them; fields without an owner are defaulted again by the server.
#[must_use]
pub fn replaced(live: &Value, manifest: &Value) -> Value {
    let managers = fields::managers(live).unwrap_or_default();
    over(live, manifest, &union(&managers), &FieldSet::default(), Going::All)
}

fn union<'a>(entries: impl IntoIterator<Item = &'a ManagerEntry>) -> FieldSet {
    entries.into_iter().fold(FieldSet::default(), |union, entry| union.union(&entry.fields))
}

/// The manifest over the live object, without fields that only `going` owns and the manifest no longer sets.
fn over(live: &Value, manifest: &Value, going: &FieldSet, staying: &FieldSet, what: Going) -> Value {
    let all = going.union(staying);
    let mut result = live.clone();
    overlay(&mut result, manifest, Some(&all));
    let lost = going.lost(&present(&all, manifest));
    let lost = lost.iter().filter(|path| staying.below(path).is_none_or(FieldSet::is_empty));
    let lost = lost.filter(|path| what == Going::All || !matches!(path.last(), Some(Element::Field(_))));
    let mut places: Vec<Vec<PathSegment>> = lost.filter_map(|path| fields::resolve(path, &result)).collect();
    // Later list items are removed first.
    places.sort_by(|left, right| right.cmp(left));
    for place in &places {
        path::remove_at(&mut result, place);
    }
    result
}

/// The part of a set that is also in a manifest.
#[must_use]
pub fn present(set: &FieldSet, manifest: &Value) -> FieldSet {
    let mut found = FieldSet::default();
    walk(set, manifest, &mut Vec::new(), &mut found);
    found
}

fn walk(set: &FieldSet, manifest: &Value, path: &mut Vec<Element>, found: &mut FieldSet) {
    for (element, child) in set.children() {
        let Some(value) = child_of(manifest, element) else { continue };
        path.push(element.clone());
        if child.is_member() {
            found.insert(path);
        }
        walk(child, value, path, found);
        // The manifest has the list, although only other items of it.
        if matches!(element, Element::Field(_)) && found.below(path).is_none() {
            found.insert(path);
        }
        path.pop();
    }
}

/// Returns the value that an element selects in a manifest.
pub fn child_of<'a>(value: &'a Value, element: &Element) -> Option<&'a Value> {
    match (element, value) {
        (Element::Field(name), Value::Object(map)) => map.get(name).filter(|value| !value.is_null()),
        (_, Value::Array(items)) => position(items, element).map(|index| &items[index]),
        _ => None,
    }
}

/// The index of the item that an element selects. A key field that the manifest leaves to the server's default matches
/// any value if no item has the exact key.
fn position(items: &[Value], element: &Element) -> Option<usize> {
    let Element::Key(fields) = element else {
        return items.iter().enumerate().position(|(index, item)| element_matches(element, index, item));
    };
    let exact = items.iter().position(|item| fits(item, fields, true));
    exact.or_else(|| items.iter().position(|item| fits(item, fields, false)))
}

/// Whether an item has these key fields; if not exactly, some of them.
fn fits(item: &Value, fields: &[(String, String)], exactly: bool) -> bool {
    let fits = |(name, value): &(String, String)| item.get(name).map_or(!exactly, |own| canonical(own) == *value);
    fields.iter().all(fits) && fields.iter().any(|(name, _)| item.get(name).is_some())
}

/// Writes the manifest's fields over an object. `set` tells which maps and lists are atomic, and list keys.
pub fn overlay(object: &mut Value, manifest: &Value, set: Option<&FieldSet>) {
    let one_piece = set.is_some_and(|set| set.is_member() && set.children().next().is_none());
    match (object, manifest) {
        (Value::Object(object), Value::Object(manifest)) if !one_piece => overlay_map(object, manifest, set),
        (Value::Array(items), Value::Array(wanted)) => match set {
            Some(set) if !one_piece && !has_duplicates(wanted, set) => {
                wanted.iter().for_each(|item| overlay_item(items, item, set));
            }
            _ => items.clone_from(wanted),
        },
        (object, manifest) => *object = manifest.clone(),
    }
}

/// Whether one element selects several items: such a list can only be written as it is given.
fn has_duplicates(wanted: &[Value], set: &FieldSet) -> bool {
    set.children().any(|(element, _)| {
        let Element::Key(fields) = element else { return false };
        let selected = |exactly: bool| wanted.iter().filter(|item| fits(item, fields, exactly)).count();
        match selected(true) {
            0 => selected(false) > 1,
            selected => selected > 1,
        }
    })
}

fn overlay_item(items: &mut Vec<Value>, wanted: &Value, set: &FieldSet) {
    let known = set.children().find(|(element, _)| position(std::slice::from_ref(wanted), element).is_some());
    match known.and_then(|(element, child)| Some((position(items, element)?, child))) {
        Some((index, child)) => overlay(&mut items[index], wanted, Some(child)),
        None => items.push(wanted.clone()),
    }
}

fn overlay_map(object: &mut Map<String, Value>, manifest: &Map<String, Value>, set: Option<&FieldSet>) {
    for (name, wanted) in manifest.iter().filter(|(_, wanted)| !wanted.is_null()) {
        let below = set.and_then(|set| set.below(&[Element::field(name)]));
        match object.get_mut(name) {
            Some(value) => overlay(value, wanted, below),
            None => {
                object.insert(name.clone(), wanted.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn set(value: &Value) -> FieldSet {
        FieldSet::parse(value).expect("a set")
    }

    #[test]
    fn what_the_server_filled_in_stays_and_only_what_was_ours_alone_goes() {
        let item = |name: &str, fields: &[&str]| {
            let owned = fields.iter().map(|field| (format!("f:{field}"), json!({})));
            let owned: Map<String, Value> = owned.chain([(".".to_owned(), json!({}))]).collect();
            json!({format!("k:{{\"name\":\"{name}\"}}"): owned})
        };
        let entry = |manager: &str, operation: &str, fields: Value| {
            json!({"manager": manager, "operation": operation, "apiVersion": "apps/v1", "fieldsType": "FieldsV1",
                "fieldsV1": {"f:spec": fields}})
        };
        let mut containers = item("web", &["name", "image", "command"]);
        containers.as_object_mut().expect("a map").extend(item("old", &["name"]).as_object().expect("a map").clone());
        let live = json!({
            "metadata": {"managedFields": [
                entry(FIELD_MANAGER, "Apply", json!({"f:containers": containers, "f:paused": {}, "f:replicas": {}, "f:selector": {}})),
                entry("kubectl", "Update", json!({"f:replicas": {}})),
            ]},
            "spec": {
                "selector": {"app": "a"}, "paused": true, "replicas": 2, "strategy": {"type": "RollingUpdate"},
                "containers": [
                    {"name": "web", "image": "web:1", "command": ["x"], "imagePullPolicy": "IfNotPresent"},
                    {"name": "old", "imagePullPolicy": "Always"},
                ],
            },
        });
        let manifest = json!({"spec": {"selector": {"app": "b"}, "containers": [{"name": "web", "image": "web:2"}]}});
        assert_eq!(
            applied(&live, &manifest)["spec"],
            json!({
                "selector": {"app": "b"}, "replicas": 2, "strategy": {"type": "RollingUpdate"},
                "containers": [{"name": "web", "image": "web:2", "imagePullPolicy": "IfNotPresent"}],
            })
        );
        // A recreated object loses the fields of other managers too.
        assert_eq!(
            replaced(&live, &manifest)["spec"],
            json!({
                "selector": {"app": "b"}, "strategy": {"type": "RollingUpdate"},
                "containers": [{"name": "web", "image": "web:2", "imagePullPolicy": "IfNotPresent"}],
            })
        );
        // Without ownership information, nothing is removed.
        let live = json!({"spec": {"a": {"b": 1}, "args": ["x"]}});
        let manifest = json!({"spec": {"a": {"c": 2}, "args": ["y"]}});
        assert_eq!(applied(&live, &manifest), json!({"spec": {"a": {"b": 1, "c": 2}, "args": ["y"]}}));
    }

    #[test]
    fn of_a_whole_write_what_the_manifest_drops_goes_and_what_others_set_stays() {
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
        let after = written(&live, &body, Going::All);
        assert_eq!(after["metadata"]["labels"], json!({"ours": "2", "theirs": "1"}));
        assert_eq!(
            after["spec"],
            json!({"replicas": 3, "template": {"containers": [
                {"name": "a", "image": "a:2", "imagePullPolicy": "Always"}]}})
        );
        let kept = written(&live, &body, Going::Items);
        assert_eq!(kept["metadata"]["labels"]["dropped"], "1");
        assert_eq!(kept["spec"]["template"]["containers"].as_array().map(Vec::len), Some(1));
    }

    #[test]
    fn a_list_with_items_of_the_same_key_is_taken_as_it_is_given() {
        let known = set(&json!({"f:env": {"k:{\"name\":\"A\"}": {".": {}, "f:name": {}, "f:value": {}}}}));
        let mut object = json!({"env": [{"name": "A", "value": "0"}]});
        let manifest = json!({"env": [{"name": "A", "value": "1"}, {"name": "B"}, {"name": "A", "value": "2"}]});
        overlay(&mut object, &manifest, Some(&known));
        assert_eq!(object, manifest);
        overlay(&mut object, &manifest, Some(&known));
        assert_eq!(object, manifest);
    }

    #[test]
    fn what_a_manifest_has_of_a_set_is_found_by_the_keys_of_items_and_their_defaults() {
        let known = set(&json!({"f:spec": {
            "f:selector": {},
            "f:ports": {
                "k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}, "f:name": {}},
                "k:{\"port\":81,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}},
            },
            "f:finalizers": {"v:\"a\"": {}, "v:\"b\"": {}},
            "f:paused": {},
        }}));
        let manifest = json!({"spec": {"selector": {"app": "web"}, "ports": [{"port": 80}], "finalizers": ["b"],
            "paused": null}});
        assert_eq!(
            present(&known, &manifest),
            set(&json!({"f:spec": {
                "f:selector": {},
                "f:ports": {"k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}}},
                "f:finalizers": {"v:\"b\"": {}},
            }}))
        );
    }

    #[test]
    fn list_of_which_only_other_items_are_known_is_set_by_the_manifest() {
        let known = set(&json!({"f:ports": {"k:{\"port\":81}": {".": {}, "f:port": {}}}}));
        assert_eq!(present(&known, &json!({"ports": [{"port": 80}]})), set(&json!({"f:ports": {}})));
        assert_eq!(present(&known, &json!({})), FieldSet::default());
    }

    #[test]
    fn a_manifest_is_put_over_an_object_item_by_item() {
        let known = set(&json!({"f:volumes": {"k:{\"name\":\"v\"}": {".": {}, "f:name": {}}}, "f:selector": {}}));
        let mut object = json!({"selector": {"app": "a", "old": "x"}, "volumes": [{"name": "u"}, {"name": "v", "x": 1}],
            "args": ["a", "b"], "kept": true});
        let manifest = json!({"selector": {"app": "b"}, "volumes": [{"name": "v", "y": 2}, {"name": "w"}], "args": ["c"],
            "new": {"deep": 1}, "kept": null});
        overlay(&mut object, &manifest, Some(&known));
        assert_eq!(
            object,
            json!({"selector": {"app": "b"}, "volumes": [{"name": "u"}, {"name": "v", "x": 1, "y": 2}, {"name": "w"}],
                "args": ["c"], "kept": true, "new": {"deep": 1}})
        );
    }
}
