//! Who writes the objects of a kind, and in which version: the entries of `managedFields`, counted page by page. The
//! state stays small, whatever the objects say.

use std::collections::BTreeMap;

use pushback_objects::object::ObjectExt;
use serde_json::{Map, Value, json};

/// Maximum number of objects kept by name.
const SHOWN: usize = 5;
/// Maximum number of managers counted for each version.
const MANAGERS: usize = 32;
/// Maximum number of versions counted: an entry may name any.
const VERSIONS: usize = 32;

/// Counts for each version of the group the objects with an entry at it: `objects`, some of their `names`, and by manager
/// the number of `objects` and the time of the `last` write; `more` if not all managers are counted.
pub(super) fn fold(group: &str, state: &mut Value, page: &[&Value]) {
    if !state.is_object() {
        *state = Value::Object(Map::new());
    }
    let Some(versions) = state.as_object_mut() else { return };
    for object in page {
        for (version, managers) in of_object(group, object) {
            if !versions.contains_key(version) && versions.len() >= VERSIONS {
                continue;
            }
            let counts = versions
                .entry(version)
                .or_insert_with(|| json!({"objects": 0, "names": [], "managers": {}, "more": false}));
            add_one(&mut counts["objects"]);
            if let Some(names) = counts["names"].as_array_mut().filter(|names| names.len() < SHOWN) {
                names.push(object.full_name().into());
            }
            for (manager, time) in managers {
                add(counts, manager, time);
            }
        }
    }
}

/// The managers of an object by version, each with the time of its last write in it, in the order of the entries.
fn of_object<'o>(group: &str, object: &'o Value) -> BTreeMap<&'o str, Vec<(&'o str, &'o str)>> {
    let entries = object.pointer("/metadata/managedFields").and_then(Value::as_array).into_iter().flatten();
    let mut found: BTreeMap<&str, Vec<(&str, &str)>> = BTreeMap::new();
    for entry in entries {
        let text = |key: &str| entry.get(key).and_then(Value::as_str).unwrap_or_default();
        let Some((_, version)) = text("apiVersion").split_once('/').filter(|(of, _)| *of == group) else { continue };
        let managers = found.entry(version).or_default();
        let (manager, time) = (text("manager"), text("time"));
        match managers.iter_mut().find(|(known, _)| *known == manager) {
            // A manager may have an entry for each subresource.
            Some((_, last)) => *last = time.max(last),
            None => managers.push((manager, time)),
        }
    }
    found
}

fn add(counts: &mut Value, manager: &str, time: &str) {
    let Some(managers) = counts["managers"].as_object_mut() else { return };
    if !managers.contains_key(manager) && managers.len() >= MANAGERS {
        counts["more"] = true.into();
        return;
    }
    let counted = managers.entry(manager).or_insert_with(|| json!({"objects": 0, "last": ""}));
    add_one(&mut counted["objects"]);
    if counted["last"].as_str().is_some_and(|last| last < time) {
        counted["last"] = time.into();
    }
}

fn add_one(counter: &mut Value) {
    *counter = json!(counter.as_u64().unwrap_or_default() + 1);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(name: &str, entries: &[(&str, &str, &str)]) -> Value {
        let entry = |(manager, version, time): &(&str, &str, &str)| json!({"manager": manager, "apiVersion": version, "time": time});
        let entries: Vec<Value> = entries.iter().map(entry).collect();
        json!({"metadata": {"namespace": "shop", "name": name, "managedFields": entries}})
    }

    #[test]
    fn each_manager_counts_once_an_object_with_its_last_write() {
        let mut state = Value::Null;
        let page = [
            written(
                "a",
                &[("helm", "ex.com/v1", "2026-01-02T00:00:00Z"), ("helm", "ex.com/v1", "2026-01-01T00:00:00Z")],
            ),
            written(
                "b",
                &[("helm", "ex.com/v1", "2025-01-01T00:00:00Z"), ("flux", "ex.com/v2", "2026-03-01T00:00:00Z")],
            ),
            written("c", &[("helm", "other.com/v1", "2026-01-01T00:00:00Z")]),
        ];
        page.chunks(2).for_each(|page| fold("ex.com", &mut state, &page.iter().collect::<Vec<_>>()));
        assert_eq!(state["v1"]["objects"], 2);
        assert_eq!(state["v1"]["names"], json!(["shop/a", "shop/b"]));
        assert_eq!(state["v1"]["managers"], json!({"helm": {"objects": 2, "last": "2026-01-02T00:00:00Z"}}));
        assert_eq!(state["v2"]["managers"]["flux"]["objects"], 1);
        assert_eq!(state.as_object().map(Map::len), Some(2));
    }

    #[test]
    fn the_state_stays_small_whatever_the_objects_say() {
        let mut state = Value::Null;
        for number in 0..500 {
            let (manager, version) = (format!("m{number}"), format!("ex.com/v{number}"));
            let entries = [(manager.as_str(), "ex.com/v1", ""), ("m", version.as_str(), "")];
            fold("ex.com", &mut state, &[&written(&format!("o{number}"), &entries)]);
        }
        let of_v1 = &state["v1"];
        assert_eq!(state.as_object().map(Map::len), Some(VERSIONS));
        assert_eq!((of_v1["objects"].as_u64(), &of_v1["more"]), (Some(500), &json!(true)));
        assert_eq!(of_v1["managers"].as_object().map(Map::len), Some(MANAGERS));
        assert_eq!(of_v1["names"].as_array().map(Vec::len), Some(SHOWN));
    }
}
