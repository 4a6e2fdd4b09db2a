//! Two answers of the server about one object, compared as far as somebody relies on them.

use pushback_preflight::ObjectRef;
use pushback_preflight::source::display_path;
use serde_json::{Value, json};

use super::compare::own_entry;
use super::diff::{self, DiffOptions, DiffSegment};
use super::fields;

/// Whether an object is a CustomResourceDefinition.
#[must_use]
pub fn is_definition(object: &ObjectRef) -> bool {
    object.group == "apiextensions.k8s.io" && object.kind == "CustomResourceDefinition"
}

/// Where an answer differs from an earlier one: anywhere in what a definition defines, and in what was applied of any
/// other object. What others set, and what the server gives out anew each time, is no difference. Places only: this
/// text knows no mask.
#[must_use]
pub fn differences(object: &ObjectRef, before: &Value, after: &Value) -> Vec<String> {
    let (before, after) = if is_definition(object) {
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
    // How items are ordered among those of others is the server's merge to say.
    let changes = changes.iter().filter(|change| change.segments.last() != Some(&DiffSegment::Order));
    let mut places: Vec<String> = changes.map(|change| display_path(&change.path)).collect();
    places.dedup();
    places
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::FIELD_MANAGER;

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
