//! Injected values that an object no longer holds.

use serde_json::Value;

use super::change::{Change, Step};
use super::difference::{self, FieldChange};
use super::owners;
use super::place::Place;

/// Returns the places at which an object has lost what an experiment set: the field is absent, has lost a part of its
/// value, or has its old value again. A value that the app's manifest sets is not lost.
#[must_use]
pub fn lost(step: &Step, live: &Value) -> Vec<Place> {
    let Change::Fields(fields) = &step.change else { return Vec::new() };
    let held = step.held.as_ref().unwrap_or(&step.owners);
    let leaves = fields.iter().flat_map(difference::leaves);
    let is_lost = |field: &FieldChange| {
        let Some(after) = field.after.as_ref().filter(|after| !after.is_null()) else { return false };
        match field.place.get(live) {
            None => true,
            Some(current) if lacks(current, after) => true,
            Some(current) => {
                current != after
                    && field.before.as_ref() == Some(current)
                    && !owners::is_taken_by_app(live, &field.place, held)
            }
        }
    };
    leaves.filter(is_lost).map(|field| field.place).collect()
}

/// Whether something of a value is missing in another one.
fn lacks(current: &Value, value: &Value) -> bool {
    match (current, value) {
        (Value::Object(current), Value::Object(value)) => {
            value.iter().any(|(key, value)| current.get(key).is_none_or(|current| lacks(current, value)))
        }
        (Value::Array(current), Value::Array(value)) if current.len() == value.len() => {
            current.iter().zip(value).any(|(current, value)| lacks(current, value))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(spec: &Value) -> Value {
        json!({"apiVersion": "example.com/v1", "kind": "Backup", "metadata": {"name": "a", "uid": "u"}, "spec": spec})
    }

    fn lost_of(before: &Value, value: &Value, after: &Value) -> Vec<String> {
        let place = Place::keys(["spec", "storage"]);
        let step = Step::fields(&object(before), vec![(place, Some(value.clone()))]).expect("a change");
        lost(&step, &object(after)).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn value_of_a_field_that_is_absent_again_is_lost() {
        let storage = json!({"type": "s3", "bucket": "models"});
        let nothing: [&str; 0] = [];
        assert_eq!(lost_of(&json!({}), &storage, &json!({})), ["spec.storage.bucket", "spec.storage.type"]);
        assert_eq!(lost_of(&json!({}), &storage, &json!({"storage": {"type": "s3"}})), ["spec.storage.bucket"]);
        assert_eq!(lost_of(&json!({}), &storage, &json!({"storage": &storage})), nothing);
        assert_eq!(lost_of(&json!({"storage": 7}), &json!(3), &json!({})), ["spec.storage"]);
        assert_eq!(lost_of(&json!({"storage": 7}), &json!(3), &json!({"storage": 7})), ["spec.storage"]);
        assert_eq!(lost_of(&json!({"storage": 7}), &json!(3), &json!({"storage": 4})), nothing, "somebody has set it");
        let list = |item: Value| json!([item]);
        assert_eq!(
            lost_of(&json!({}), &list(json!({"a": 1, "b": 2})), &json!({"storage": [{"a": 1}]})),
            ["spec.storage"]
        );
    }

    #[test]
    fn value_that_the_app_sets_is_not_lost() {
        let place = Place::keys(["spec", "keep"]);
        let before = object(&json!({"keep": 7}));
        let step = Step::fields(&before, vec![(place, Some(json!(3)))]).expect("a change");
        let mut live = before;
        live["metadata"]["managedFields"] = json!([{"manager": "pushback", "operation": "Apply",
            "apiVersion": "example.com/v1", "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:keep": {}}}}]);
        assert_eq!(lost(&step, &live), []);
    }
}
