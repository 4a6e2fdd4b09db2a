//! The CRD that a controller will write, from the one that it has written before.

use serde_json::{Map, Value};

/// Applies the changes between two derived CRDs to the CRD that the API server has. What the run leaves as it is in the
/// source object stays as the controller has written it: another release of the controller adds other fields.
pub(super) fn changed(old: &Value, new: &Value, live: &Value) -> Value {
    let spec = |crd: &Value| crd.get("spec").cloned().unwrap_or_default();
    let mut written = live.clone();
    written["spec"] = merged(Some(&spec(old)), Some(&spec(new)), Some(&spec(live))).unwrap_or_default();
    if let Some(map) = written.as_object_mut() {
        map.remove("status");
    }
    written
}

/// Merges `None` as an absent value.
fn merged(old: Option<&Value>, new: Option<&Value>, live: Option<&Value>) -> Option<Value> {
    match (old, new, live) {
        (old, new, live) if old == new => live.cloned(),
        (Some(Value::Object(old)), Some(Value::Object(new)), Some(Value::Object(live))) => {
            Some(Value::Object(merged_maps(old, new, live)))
        }
        (Some(Value::Array(old)), Some(Value::Array(new)), Some(Value::Array(live)))
            if [old, new, live].iter().all(|list| are_named(list)) =>
        {
            // Versions: in the order of the new list, which does not matter.
            let find = |list: &[Value], name: &Value| list.iter().find(|item| item["name"] == *name).cloned();
            let merged = |item: &Value| {
                let (old, live) = (find(old, &item["name"]), find(live, &item["name"]));
                match (old, live) {
                    (Some(old), Some(live)) => merged(Some(&old), Some(item), Some(&live)),
                    _ => Some(item.clone()),
                }
            };
            Some(Value::Array(new.iter().filter_map(merged).collect()))
        }
        (_, new, _) => new.cloned(),
    }
}

fn merged_maps(old: &Map<String, Value>, new: &Map<String, Value>, live: &Map<String, Value>) -> Map<String, Value> {
    let mut keys: Vec<&String> = new.keys().chain(live.keys().filter(|key| !new.contains_key(*key))).collect();
    keys.dedup();
    keys.into_iter().filter_map(|key| Some((key.clone(), merged(old.get(key), new.get(key), live.get(key))?))).collect()
}

fn are_named(list: &[Value]) -> bool {
    list.iter().all(|item| item.get("name").is_some_and(Value::is_string) && item.get("schema").is_some())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn crd(fields: Value) -> Value {
        json!({"spec": {"group": "ex.com", "versions": [
            {"name": "v1", "served": true, "schema": {"openAPIV3Schema": {"properties": fields}}},
        ]}})
    }

    fn fields(crd: &Value) -> &Value {
        &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    }

    #[test]
    fn field_of_the_controller_stays_as_the_server_has_it() {
        let old = crd(json!({"a": {"type": "string"}, "own": {"type": "string"}}));
        let new = crd(json!({"a": {"type": "integer"}, "own": {"type": "string"}}));
        let live = crd(json!({"a": {"type": "string"}, "own": {"type": "object"}, "former": {"type": "object"}}));
        let expected = json!({"a": {"type": "integer"}, "own": {"type": "object"}, "former": {"type": "object"}});
        assert_eq!(fields(&changed(&old, &new, &live)), &expected);
    }

    #[test]
    fn field_that_the_source_loses_is_removed_and_a_new_one_is_added() {
        let old = crd(json!({"a": {"type": "string"}, "b": {"type": "string"}}));
        let new = crd(json!({"b": {"type": "string"}, "c": {"type": "string"}}));
        let written = changed(&old, &new, &old);
        assert_eq!(fields(&written), &json!({"b": {"type": "string"}, "c": {"type": "string"}}));
        assert_eq!(changed(&old, &old, &new)["spec"], new["spec"]);
    }
}
