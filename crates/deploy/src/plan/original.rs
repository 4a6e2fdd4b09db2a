//! kapp's copy of the manifest on every object, and its digest of what the server made of it. They are kept up to date
//! where kapp has left them, so that an app can be given back: kapp compares with the copy only if the digest holds.

mod operations;
mod rebase;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use md5::{Digest, Md5};
use pushback_app::identity::{
    IDENTITY_ANNOTATION, ORIGINAL_ANNOTATION, ORIGINAL_ANNOTATIONS, ORIGINAL_DIGEST_ANNOTATION, without_copy,
};
use pushback_manifest::config::{Config, PathRule, RebaseRule, matcher, path};
use pushback_objects::{ObjectExt, PathSegment, Positions, hex};
use serde_json::{Map, Value};

use super::diff::FieldChange;
use super::sides;

/// The API server's limit for all annotations of an object, in bytes; kapp leaves the copy out above it.
const MOST_BYTES: usize = 262_144;

/// How kapp compares an object with the copy.
#[derive(Clone, Debug)]
pub struct Rules {
    /// kapp's own rebase rules, then those of the Config.
    rebase: Vec<RebaseRule>,
    /// Fields of the live object that do not count.
    excluded: Vec<PathRule>,
}

impl Rules {
    /// The rules of a Config.
    #[must_use]
    pub fn of(config: &Config) -> Self {
        let mut rules = rebase::built_in();
        rules.extend(config.rebase_rules.iter().cloned());
        let mut excluded = rebase::excluded();
        excluded.extend(config.last_applied_exclusions.iter().cloned());
        Self { rebase: rules, excluded }
    }

    /// The digest of how an object differs from a manifest, as kapp computes it.
    fn digest(&self, object: &Value, manifest: &Value) -> String {
        let mut object = without_history(object);
        if let Some(fields) = object.as_object_mut() {
            fields.shift_remove("status");
        }
        for rule in self.excluded.iter().filter(|rule| matcher::matches_any(&rule.matchers, manifest)) {
            for place in path::resolve(&rule.path, &object).into_iter().rev() {
                path::remove_at(&mut object, &place);
            }
        }
        let manifest = rebase::onto(&self.rebase, manifest, &object);
        hex::encode(&Md5::digest(operations::as_yaml(&object, &manifest)))
    }

    /// The digest that an object with a copy should have, if it has another one.
    #[must_use]
    pub fn outdated(&self, object: &Value) -> Option<String> {
        let manifest: Value = serde_json::from_str(object.annotation(ORIGINAL_ANNOTATION)?).ok()?;
        let digest = self.digest(object, &manifest);
        (object.annotation(ORIGINAL_DIGEST_ANNOTATION) != Some(&digest)).then_some(digest)
    }

    /// Brings the digest of a body up to date with what the server makes of it; without an answer, with the body itself.
    pub(super) fn note(&self, body: &mut Arc<Value>, answer: Option<&mut Arc<Value>>) {
        let Some(digest) = self.outdated(answer.as_deref().map_or(&**body, |answer| &**answer)) else { return };
        set_digest(Arc::make_mut(body), &digest);
        if let Some(answer) = answer {
            set_digest(Arc::make_mut(answer), &digest);
        }
    }
}

/// Puts a digest on an object.
pub fn set_digest(object: &mut Value, digest: &str) {
    if let Some(annotations) = object.metadata_map_mut("annotations") {
        annotations.insert(ORIGINAL_DIGEST_ANNOTATION.to_owned(), digest.into());
    }
}

/// Puts the copy on a body: the stamped manifest as it was given, before anything live went into it. The digest is the
/// live object's until the server has answered.
pub(super) fn keep(body: &mut Arc<Value>, manifest: &Value, positions: &Positions, live: Option<&Value>) {
    let had_annotations = manifest.pointer("/metadata/annotations").is_some();
    let mut copy = (**body).clone();
    if let Some(annotations) = copy.metadata_map_mut("annotations") {
        annotations.shift_remove(IDENTITY_ANNOTATION);
        if annotations.is_empty()
            && !had_annotations
            && let Some(metadata) = copy.get_mut("metadata").and_then(Value::as_object_mut)
        {
            metadata.shift_remove("annotations");
        }
    }
    sides::as_string_data(&mut copy, &sides::plain_keys(manifest, positions));
    let noted = live.and_then(|live| live.annotation(ORIGINAL_ANNOTATION));
    let is_same = noted.is_some_and(|noted| serde_json::from_str::<Value>(noted).is_ok_and(|noted| noted == copy));
    copy.sort_all_objects();
    let text = noted.filter(|_| is_same).map_or_else(|| copy.to_string(), str::to_owned);
    let digest = live.and_then(|live| live.annotation(ORIGINAL_DIGEST_ANNOTATION)).unwrap_or("unknown");
    let others = body.pointer("/metadata/annotations").and_then(Value::as_object);
    let bytes = |map: &Map<String, Value>| -> usize {
        map.iter().map(|(key, value)| key.len() + value.as_str().map_or(0, str::len)).sum()
    };
    if text.len() + others.map_or(0, bytes) + 2 * ORIGINAL_DIGEST_ANNOTATION.len() + 32 > MOST_BYTES {
        return;
    }
    if let Some(annotations) = Arc::make_mut(body).metadata_map_mut("annotations") {
        annotations.insert(ORIGINAL_ANNOTATION.to_owned(), text.into());
        annotations.insert(ORIGINAL_DIGEST_ANNOTATION.to_owned(), digest.into());
    }
}

/// The object without the annotations that kapp writes for itself; an empty map stays, as in kapp.
fn without_history(object: &Value) -> Value {
    let mut object = without_copy(object);
    if let Some(annotations) = object.metadata_map_mut("annotations") {
        annotations.shift_remove(IDENTITY_ANNOTATION);
    }
    object
}

/// The changes without those of the copy, which is mere bookkeeping.
pub(super) fn hide(changes: &mut [FieldChange]) {
    let annotations = [PathSegment::from("metadata"), PathSegment::from("annotations")];
    for change in changes.iter_mut().filter(|change| change.path == annotations) {
        for value in [&mut change.old, &mut change.new].into_iter().flatten() {
            if let Some(map) = value.as_object_mut() {
                map.retain(|key, _| !ORIGINAL_ANNOTATIONS.contains(&key.as_str()));
            }
        }
    }
}
