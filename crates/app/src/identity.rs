//! kapp's labels and annotations: they identify an app's objects and their owner.

use md5::{Digest, Md5};
use pushback_objects::hex;
use pushback_objects::{ObjectExt, ObjectKey, ObjectRef};
use serde_json::Value;

/// What kapp appends to the record's name if fully qualified names are requested.
pub const QUALIFIED_SUFFIX: &str = ".apps.k14s.io";
/// The layout of our part of the record that this version writes, and the newest that it reads.
pub(super) const SCHEMA: u32 = 1;

/// Identifies an app.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppName {
    /// Name of the app.
    pub name: String,
    /// Namespace of its record.
    pub namespace: String,
}

/// Start of the name of an app that is no record's but all objects with a label, as kapp has it: `label:KEY=VALUE`.
pub const BY_LABEL: &str = "label:";

impl AppName {
    /// Key and value of the label that defines the app, if one does.
    #[must_use]
    pub fn defining_label(&self) -> Option<(&str, &str)> {
        self.name.strip_prefix(BY_LABEL)?.split_once('=')
    }

    /// Key of the label that the app's objects have.
    #[must_use]
    pub fn label_key(&self) -> &str {
        self.defining_label().map_or(APP_LABEL, |(key, _)| key)
    }
}

/// Label of every object of an app.
pub const APP_LABEL: &str = "kapp.k14s.io/app";
/// Label that links a child to an object of the app.
pub const ASSOCIATION_LABEL: &str = "kapp.k14s.io/association";
/// Annotation that says who created the object.
pub const IDENTITY_ANNOTATION: &str = "kapp.k14s.io/identity";
/// Label of an object that was deliberately left behind.
pub const ORPHANED_LABEL: &str = "kapp.k14s.io/orphaned";
/// Label of app records.
pub const RECORD_LABEL: &str = "kapp.k14s.io/is-app";
/// Label of history entries.
pub const HISTORY_LABEL: &str = "kapp.k14s.io/is-app-change";
/// Label of inventory shards.
pub const INVENTORY_LABEL: &str = "pushback.dev/inventory";

/// kapp's copy of the manifest that it applied last. It may hold Secret values in clear text.
pub const ORIGINAL_ANNOTATION: &str = "kapp.k14s.io/original";
/// kapp's digest of how the live object differed from that copy.
pub const ORIGINAL_DIGEST_ANNOTATION: &str = "kapp.k14s.io/original-diff-md5";
/// All that kapp notes about the manifest that it applied last.
pub const ORIGINAL_ANNOTATIONS: [&str; 4] =
    [ORIGINAL_ANNOTATION, "kapp.k14s.io/original-diff", "kapp.k14s.io/original-diff-full", ORIGINAL_DIGEST_ANNOTATION];

/// Value of [`ASSOCIATION_LABEL`].
#[must_use]
pub fn association(key: &ObjectKey) -> String {
    let digest = Md5::digest(format!("{}/{}/{}/{}", key.namespace, key.group, key.kind, key.name));
    format!("v1.{}", hex::encode(&digest))
}

/// Value of [`INVENTORY_LABEL`]: derived from the app's name, which may be too long for a label. Unlike the app's own
/// label it is known without the record, so that shards are found even if their record was never written.
#[must_use]
pub fn inventory_label(app: &str) -> String {
    hex::encode(&Md5::digest(app))
}

/// Value of [`IDENTITY_ANNOTATION`].
#[must_use]
pub fn identity(object: &ObjectRef) -> String {
    format!("v1;{}/{}/{}/{};{}", object.namespace, object.group, object.kind, object.name, object.api_version())
}

/// Whether kapp or pushback created a live object itself, and it was not copied or generated from one:
/// a controller's child has the labels of its parent's template, but not its own identity.
#[must_use]
pub fn has_own_identity(live: &Value) -> bool {
    let object = ObjectRef::of(live);
    let Some((head, _)) = live.annotation(IDENTITY_ANNOTATION).and_then(|value| value.rsplit_once(';')) else {
        return false;
    };
    head == format!("v1;{}/{}/{}/{}", object.namespace, object.group, object.kind, object.name)
}

/// Whether an object has kapp's copy of its manifest.
#[must_use]
pub fn has_copy(object: &Value) -> bool {
    object.annotation(ORIGINAL_ANNOTATION).is_some()
}

/// The object without what kapp notes about its manifest.
#[must_use]
pub fn without_copy(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(annotations) = object.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
        annotations.retain(|key, _| !ORIGINAL_ANNOTATIONS.contains(&key.as_str()));
    }
    object
}

/// Removes what marks an object as an app's: labels, also those in selectors and templates, and the identity.
pub fn remove_marks(object: &mut Value) {
    match object {
        Value::Object(fields) => {
            for mark in [APP_LABEL, ASSOCIATION_LABEL, IDENTITY_ANNOTATION] {
                fields.shift_remove(mark);
            }
            fields.values_mut().for_each(remove_marks);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_marks),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn deployment() -> ObjectRef {
        ObjectRef {
            group: "apps".to_owned(),
            version: "v1".to_owned(),
            kind: "Deployment".to_owned(),
            namespace: "kd-a".to_owned(),
            name: "web".to_owned(),
        }
    }

    #[test]
    fn labels_and_annotations_have_the_values_that_kapp_gives_them() {
        assert_eq!(association(&deployment().key()), "v1.80eded8d5897781ff498ac91dda46ebf");
        assert_eq!(identity(&deployment()), "v1;kd-a/apps/Deployment/web;apps/v1");
    }

    #[test]
    fn a_copied_identity_is_not_an_objects_own() {
        let mut object = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"namespace": "kd-a",
            "name": "web", "annotations": {IDENTITY_ANNOTATION: "v1;kd-a/apps/Deployment/web;apps/v1beta1"}}});
        assert!(has_own_identity(&object));
        object["metadata"]["name"] = json!("copy");
        assert!(!has_own_identity(&object));
    }
}
