//! Compares two answers of the server about one object, as far as anything depends on them.

use pushback_cluster::managed_fields as fields;
use pushback_crd::schema::cel::are_equal_quantities;
use pushback_objects::source::display_path;
use pushback_objects::{ObjectRef, PathSegment};
use serde_json::{Value, json};

use super::diff::{self, DiffOptions, DiffSegment};
use super::digest::own_entry;

/// Where an answer differs from an earlier one: anywhere in what a CRD defines, and in the applied fields of any other
/// object. Fields of other managers and per-request server values do not count. Returns only paths: no mask applies.
#[must_use]
pub fn differences(object: &ObjectRef, before: &Value, after: &Value) -> Vec<String> {
    let (before, after) = if object.is_definition() {
        let part = |value: &Value| value.get("spec").cloned().unwrap_or_default();
        if before.get("spec") == after.get("spec") {
            return Vec::new();
        }
        (json!({"spec": part(before)}), json!({"spec": part(after)}))
    } else {
        let Some(own) = own_entry(after) else { return Vec::new() };
        (fields::project(&own.fields, before), fields::project(&own.fields, after))
    };
    let changes = diff::diff(&before, &after, &DiffOptions::default());
    // The order of items among those of other managers is up to the server's merge.
    let changes = changes.iter().filter(|change| change.segments.last() != Some(&DiffSegment::Order));
    let mut places: Vec<String> = changes.map(|change| display_path(&change.path)).collect();
    places.dedup();
    places
}

/// Paths where the server stored something else than the manifest sets, for objects without a dry-run answer, judged by
/// the fields that it counts as applied. `None` if it does not track them. Additions by the server, and its spelling of
/// a value (a quantity, an empty value), do not count.
#[must_use]
pub fn set_otherwise(desired: &Value, written: &Value) -> Option<Vec<String>> {
    let own = own_entry(written)?;
    let set = fields::project(&own.fields, desired);
    let mut places = Vec::new();
    otherwise(&set, Some(written), &mut Vec::new(), &mut places);
    places.dedup();
    Some(places)
}

fn otherwise(set: &Value, written: Option<&Value>, path: &mut Vec<PathSegment>, places: &mut Vec<String>) {
    match (set, written) {
        (Value::Object(set), Some(Value::Object(written))) => {
            for (key, value) in set {
                path.push(PathSegment::Key(key.clone()));
                otherwise(value, written.get(key), path, places);
                path.pop();
            }
        }
        (Value::Array(set), Some(Value::Array(written))) => {
            let mut rest = written.iter();
            for (index, item) in set.iter().enumerate() {
                // Other managers may have inserted items; ours must still be there, in order.
                if !rest.any(|written| is_as_set(item, written)) {
                    path.push(PathSegment::Index(index));
                    match written.iter().find(|written| is_same_item(item, written)) {
                        Some(written) => otherwise(item, Some(written), path, places),
                        None => places.push(display_path(path)),
                    }
                    path.pop();
                    return;
                }
            }
        }
        // No default turns it to true.
        (Value::Bool(false), Some(Value::Bool(true))) => places.push(display_path(path)),
        (set, written) if is_empty(set) || written.is_some_and(|written| is_same_value(set, written)) => {}
        _ => places.push(display_path(path)),
    }
}

fn is_as_set(set: &Value, written: &Value) -> bool {
    let mut places = Vec::new();
    otherwise(set, Some(written), &mut Vec::new(), &mut places);
    places.is_empty()
}

fn is_same_item(one: &Value, other: &Value) -> bool {
    one.get("name").is_some_and(|name| Some(name) == other.get("name"))
}

/// Values that a server may omit, or treat as unset and default.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Bool(true) => false,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.iter().all(is_empty),
        Value::Object(map) => map.values().all(is_empty),
    }
}

/// Whether the server's value means the same in another spelling: `1000m` and `1`, Base64 with and without line breaks,
/// a time truncated to seconds.
fn is_same_value(set: &Value, written: &Value) -> bool {
    let text = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    };
    let (Some(one), Some(other)) = (text(set), text(written)) else { return set == written };
    let time = |text: &str| text.parse::<jiff::Timestamp>().ok().map(jiff::Timestamp::as_second);
    let unbroken = |text: &str| text.replace(['\n', '\r'], "");
    one == other
        || set.as_f64().is_some_and(|number| written.as_f64().is_some_and(|it| it.total_cmp(&number).is_eq()))
        || are_equal_quantities(&one, &other)
        || time(&one).is_some_and(|time_set| time(&other) == Some(time_set))
        || unbroken(&one) == unbroken(&other)
}

#[cfg(test)]
mod tests {
    use pushback_cluster::FIELD_MANAGER;

    use super::*;

    fn config_map(data: &Value, own: &Value) -> Value {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "managedFields": [{
            "manager": FIELD_MANAGER, "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1",
            "fieldsV1": {"f:data": own},
        }]}, "data": data})
    }

    #[test]
    fn what_was_applied_counts_and_what_others_add_does_not() {
        let own = json!({"f:a": {}});
        let before = config_map(&json!({"a": "1"}), &own);
        let object = ObjectRef::of(&before);
        assert_eq!(differences(&object, &before, &config_map(&json!({"a": "1", "b": "2"}), &own)), [""; 0]);
        assert_eq!(differences(&object, &before, &config_map(&json!({"a": "2"}), &own)), ["data.a"]);
    }

    #[test]
    fn a_value_that_was_set_and_is_another_one_is_named_and_another_form_or_addition_is_not() {
        let object = |spec: &Value| {
            json!({"apiVersion": "v1", "kind": "Foo", "metadata": {"name": "a", "managedFields": [{
                "manager": FIELD_MANAGER, "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1",
                "fieldsV1": {"f:spec": {}},
            }]}, "spec": spec})
        };
        let cases = [
            (json!({"a": "x"}), json!({"a": "y"}), vec!["spec.a"]),
            (json!({"a": "x"}), json!({"b": "y"}), vec!["spec.a"]),
            (json!({"a": true}), json!({"a": false}), vec!["spec.a"]),
            (json!({"a": false}), json!({"a": true}), vec!["spec.a"]),
            (json!({"a": [1, 2]}), json!({"a": [1, 3, 2]}), vec![]),
            (json!({"a": [1, 2]}), json!({"a": [2, 1]}), vec!["spec.a[1]"]),
            (json!({"a": [1, 2]}), json!({"a": [1]}), vec!["spec.a[1]"]),
            (
                json!({"a": [{"name": "m", "v": 1}]}),
                json!({"a": [{"name": "s"}, {"name": "m", "v": 2}]}),
                vec!["spec.a[0].v"],
            ),
            (json!({"cpu": 0.5, "memory": "1024Mi"}), json!({"cpu": "500m", "memory": "1Gi"}), vec![]),
            (json!({"cpu": "1"}), json!({"cpu": "1100m"}), vec!["spec.cpu"]),
            (json!({"at": "2026-01-01T00:00:00.000Z"}), json!({"at": "2026-01-01T00:00:00Z"}), vec![]),
            (json!({"data": "YWJj\nZGVm"}), json!({"data": "YWJjZGVm"}), vec![]),
            (json!({"a": null, "b": "", "c": {}, "d": [], "e": 0}), json!({"e": 30000}), vec![]),
            (json!({"a": {"b": "x"}}), json!({}), vec!["spec.a"]),
        ];
        for (set, written, places) in cases {
            assert_eq!(
                set_otherwise(&object(&set), &object(&written)),
                Some(places.into_iter().map(str::to_owned).collect()),
                "{set} {written}"
            );
        }
        assert_eq!(set_otherwise(&json!({"spec": 1}), &json!({"spec": 2})), None);
    }

    #[test]
    fn of_a_definition_all_that_it_defines_counts_and_nothing_else() {
        let definition = |scope: &str, label: &str| {
            json!({
                "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                "metadata": {"name": "a", "labels": {"l": label}}, "spec": {"scope": scope},
            })
        };
        let before = definition("Namespaced", "1");
        let object = ObjectRef::of(&before);
        assert_eq!(differences(&object, &before, &definition("Namespaced", "2")), [""; 0]);
        assert_eq!(differences(&object, &before, &definition("Cluster", "1")), ["spec.scope"]);
    }
}
