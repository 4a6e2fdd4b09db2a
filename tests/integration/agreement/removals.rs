//! Random removals from a real release: whole objects, and parts of objects.

use serde_json::{Value, json};

use super::pairs::{self, Pair, Side};
use crate::support::dice::Dice;

/// Most objects of a release that are left out or edited.
const MOST: u64 = 6;
/// Deepest field that is removed.
const DEPTH: usize = 8;

/// A release, and what a number of removals leave of it.
pub(super) fn pair(seed: u64) -> Pair {
    let mut dice = Dice(seed);
    let mut releases = pairs::pairs();
    releases.retain(|pair| !pair.is_small() && pair.old.len() == 1);
    let release = releases.swap_remove(dice.place(releases.len()));
    let mut objects: Vec<Value> = release.new.values().flat_map(|text| pairs::documents(text)).collect();
    objects.extend(data());
    let old = side(&objects);
    for _ in 0..=dice.throw(MOST) {
        if objects.len() < 2 {
            break;
        }
        let index = dice.place(objects.len());
        if dice.throw(3) < 2 {
            objects.remove(index);
        } else {
            remove_part(&mut objects[index], &mut dice);
        }
    }
    Pair { name: format!("removals {seed} from {}", release.name), old, new: side(&objects) }
}

/// Objects with data, which few releases have.
fn data() -> Vec<Value> {
    vec![
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "vault"}}),
        json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data", "namespace": "vault"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}),
        json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "disk"},
            "spec": {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/tmp"}}}),
    ]
}

fn side(objects: &[Value]) -> Side {
    let text: String = objects.iter().map(|object| format!("---\n{object}\n")).collect();
    Side::from([("all.yaml".to_owned(), text)])
}

/// Removes a field or an item somewhere below the object, but nothing that identifies it.
fn remove_part(object: &mut Value, dice: &mut Dice) {
    let Some(fields) = object.as_object() else { return };
    let known = ["apiVersion", "kind", "metadata", "status"];
    let keys: Vec<String> = fields.keys().filter(|key| !known.contains(&key.as_str())).cloned().collect();
    if keys.is_empty() {
        return;
    }
    let mut node = &mut object[&keys[dice.place(keys.len())]];
    for _ in 0..DEPTH {
        let goes_deeper = dice.throw(5) < 4;
        match node {
            Value::Object(map) if !map.is_empty() => {
                let keys: Vec<String> = map.keys().cloned().collect();
                let key = &keys[dice.place(keys.len())];
                if !goes_deeper || !(map[key].is_object() || map[key].is_array()) {
                    map.shift_remove(key);
                    return;
                }
                node = &mut node[key.as_str()];
            }
            Value::Array(items) if !items.is_empty() => {
                let index = dice.place(items.len());
                if !goes_deeper || !(items[index].is_object() || items[index].is_array()) {
                    items.remove(index);
                    return;
                }
                node = &mut node[index];
            }
            _ => return,
        }
    }
}
