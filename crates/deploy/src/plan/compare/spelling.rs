//! Differences of spelling between two documents of a folder. To an API server, both mean the same.

use pushback_crd::order::canonical;
use pushback_objects::object::is_custom_group;
use pushback_objects::{ObjectRef, PathSegment};
use serde_json::Value;

use crate::plan::diff::FieldChange;

/// Metadata that an API server drops where it is empty.
const DROPPED_IF_EMPTY: [&str; 4] = ["labels", "annotations", "finalizers", "ownerReferences"];

/// Whether a difference is only one of spelling: a number in another form, empty metadata, and in kinds of Kubernetes a null.
/// In custom resources and in the schemas of CRDs a null is a value.
pub(super) fn is_spelling(object: &ObjectRef, field: &FieldChange) -> bool {
    let is_null = |value: &Option<Value>| value.as_ref().is_none_or(Value::is_null);
    let has_typed_fields = !is_custom_group(&object.group) && !object.is_definition();
    match (&field.old, &field.new) {
        (Some(old), Some(new)) if canonical(old) == canonical(new) => true,
        (old, new) if has_typed_fields && is_null(old) && is_null(new) => true,
        (old, new) => is_metadata(&field.path) && is_empty(old.as_ref()) && is_empty(new.as_ref()),
    }
}

fn is_metadata(path: &[PathSegment]) -> bool {
    let [PathSegment::Key(parent), PathSegment::Key(field)] = path else { return false };
    parent == "metadata" && DROPPED_IF_EMPTY.contains(&field.as_str())
}

fn is_empty(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null) => true,
        Some(Value::Object(map)) => map.is_empty(),
        Some(Value::Array(items)) => items.is_empty(),
        Some(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::plan::diff::{DiffOptions, diff};

    fn differs(group: &str, kind: &str, old: &Value, new: &Value) -> bool {
        let object = ObjectRef { group: group.to_owned(), kind: kind.to_owned(), ..ObjectRef::default() };
        diff(old, new, &DiffOptions::default()).iter().any(|field| !is_spelling(&object, field))
    }

    #[test]
    fn numbers_empty_metadata_and_typed_nulls_do_not_differ() {
        for (old, new) in [
            (json!({"spec": {"replicas": 1.0}}), json!({"spec": {"replicas": 1}})),
            (json!({"spec": {"l": [[1.0, 2]]}}), json!({"spec": {"l": [[1, 2.0]]}})),
            (json!({"metadata": {"labels": {}}}), json!({"metadata": {"annotations": null}})),
            (json!({"spec": {"env": null}}), json!({"spec": {}})),
        ] {
            assert!(!differs("apps", "Deployment", &old, &new), "{old} {new}");
        }
    }

    #[test]
    fn values_differ_and_so_do_nulls_where_they_are_values() {
        for (old, new) in [
            (json!({"spec": {"replicas": 1.5}}), json!({"spec": {"replicas": 1}})),
            (json!({"spec": {"n": "1"}}), json!({"spec": {"n": 1}})),
            (json!({"spec": {"emptyDir": {}}}), json!({"spec": {}})),
            (json!({"spec": {"labels": {}}}), json!({"spec": {}})),
            (json!({"spec": {"n": 9007199254740993u64}}), json!({"spec": {"n": 9007199254740992u64}})),
        ] {
            assert!(differs("apps", "Deployment", &old, &new), "{old} {new}");
        }
        let (old, new) = (json!({"spec": {"default": null}}), json!({"spec": {}}));
        assert!(differs("example.com", "Box", &old, &new));
        assert!(differs("apiextensions.k8s.io", "CustomResourceDefinition", &old, &new));
    }
}
