//! Live objects as `inspect --raw` prints them.

use std::sync::Arc;

use pushback_deploy::plan::sides;
use pushback_manifest::config::defaults::defaults;
use pushback_manifest::config::mask::{MaskNumbers, Masker};
use pushback_manifest::yaml::go;
use pushback_objects::ObjectRef;
use serde_json::Value;

/// Text in place of a masked value, by its number.
#[must_use]
pub fn placeholder(number: usize) -> String {
    format!("<-- value not shown (#{number})")
}

/// Objects without what deploy tools keep in them for themselves, Secrets masked.
#[must_use]
pub fn raw_objects<'o>(objects: impl Iterator<Item = &'o Arc<Value>>, with_managed_fields: bool) -> Vec<Value> {
    let masker = Masker::new(&defaults().diff_mask_rules);
    let mut numbers = MaskNumbers::shown_as(placeholder);
    let shown = |object: &Arc<Value>| {
        let mut object = sides::raw(object, with_managed_fields);
        masker.mask(&mut object, &mut numbers);
        object
    };
    objects.map(shown).collect()
}

/// Each object as a YAML document, by namespace, name and kind.
#[must_use]
pub fn sorted_documents<'o>(objects: impl Iterator<Item = &'o Arc<Value>>, with_managed_fields: bool) -> Vec<String> {
    let mut objects: Vec<&Arc<Value>> = objects.collect();
    objects.sort_by_cached_key(|object| place(object));
    documents(objects.into_iter(), with_managed_fields)
}

/// Each object as a YAML document.
#[must_use]
pub fn documents<'o>(objects: impl Iterator<Item = &'o Arc<Value>>, with_managed_fields: bool) -> Vec<String> {
    raw_objects(objects, with_managed_fields).iter().map(|object| format!("---\n{}", go::document(object))).collect()
}

/// The key by which tables of objects are sorted.
#[must_use]
pub fn place(object: &Value) -> (String, String, String) {
    let object = ObjectRef::of(object);
    (object.namespace, object.name, object.kind)
}
