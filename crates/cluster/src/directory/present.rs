//! Converts between stored documents and live objects, and decides when two documents are equal.
//! A folder stores no server fields: uid and resourceVersion are derived when an object is read.

use pushback_objects::object::ObjectExt;
use pushback_objects::{ObjectKey, hex};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

/// Labels of the app records, which are stored apart from the objects.
pub(super) const RECORD_LABELS: [&str; 3] =
    ["kapp.k14s.io/is-app", "kapp.k14s.io/is-app-change", "pushback.dev/inventory"];

/// Metadata that a server sets; not part of a document's content.
const STAMPS: [&str; 6] = ["uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink"];

/// Whether an object is an app record.
pub(super) fn is_record(object: &Value) -> bool {
    object.text("/kind") == "ConfigMap"
        && object.text("/apiVersion") == "v1"
        && RECORD_LABELS.iter().any(|label| object.label(label).is_some())
}

/// Whether a document is a Kubernetes object. Input of client-side tools also has kinds, but is not an object.
pub(super) fn is_object(document: &Value) -> bool {
    !document.text("/apiVersion").is_empty()
        && !document.text("/kind").is_empty()
        && !document.name().is_empty()
        && !document.text("/apiVersion").starts_with("kustomize.config.k8s.io/")
}

/// The document as a live object: with its effective namespace, uid and resourceVersion.
pub(super) fn live(document: Value, key: &ObjectKey) -> Value {
    let version = content_digest(&document, key);
    live_of_version(document, key, version)
}

/// As [`live`], for a document whose [`content_digest`] is known.
pub(super) fn live_of_version(mut document: Value, key: &ObjectKey, version: String) -> Value {
    if let Some(metadata) = document.get_mut("metadata").and_then(Value::as_object_mut) {
        if key.namespace.is_empty() {
            metadata.shift_remove("namespace");
        } else {
            metadata.insert("namespace".to_owned(), key.namespace.clone().into());
        }
        metadata.insert("uid".to_owned(), uid(key).into());
        metadata.insert("resourceVersion".to_owned(), version.into());
    }
    document
}

/// The stored form of a body. Identity is included, because file paths carry no meaning; server fields are not.
pub(super) fn stored(body: &Value, key: &ObjectKey) -> Value {
    let mut document = body.clone();
    if let Some(metadata) = document.get_mut("metadata").and_then(Value::as_object_mut) {
        for stamp in ["uid", "resourceVersion", "managedFields"] {
            metadata.shift_remove(stamp);
        }
        if key.namespace.is_empty() {
            metadata.shift_remove("namespace");
        } else {
            metadata.entry("namespace").or_insert_with(|| key.namespace.clone().into());
        }
    }
    document
}

/// A uid that is the same on every machine and in every run: it is derived from the identity.
fn uid(key: &ObjectKey) -> String {
    let mut digest = Sha256::new();
    for part in [&key.group, &key.kind, &key.namespace, &key.name] {
        digest.update(part);
        digest.update([0]);
    }
    let text = hex::encode(&digest.finalize()[..16]);
    [&text[..8], &text[8..12], &text[12..16], &text[16..20], &text[20..]].join("-")
}

/// Digest of a document's content: key order, server fields and the spelling of numbers do not matter.
pub(super) fn content_digest(document: &Value, key: &ObjectKey) -> String {
    let mut text = String::new();
    let empty = Map::new();
    let map = document.as_object().unwrap_or(&empty);
    canonical_map(map.iter().filter(|(name, _)| *name != "metadata"), &mut text);
    let metadata = map.get("metadata").and_then(Value::as_object).unwrap_or(&empty);
    let meant = metadata.iter().filter(|(name, _)| *name != "namespace" && !STAMPS.contains(&name.as_str()));
    canonical_map(meant, &mut text);
    text.push_str(&key.namespace);
    hex::encode(&Sha256::digest(text)[..10])
}

fn canonical(value: &Value, text: &mut String) {
    match value {
        Value::Object(map) => canonical_map(map.iter(), text),
        Value::Array(items) => {
            text.push('[');
            for item in items {
                canonical(item, text);
                text.push(',');
            }
            text.push(']');
        }
        Value::Number(number) => {
            let whole = number.as_f64().filter(|float| number.is_f64() && float.fract() == 0.0 && float.abs() < 1e15);
            text.push_str(&whole.map_or_else(|| number.to_string(), |float| format!("{float:.0}")));
        }
        Value::String(inner) => canonical_text(inner, text),
        Value::Null | Value::Bool(_) => text.push_str(&value.to_string()),
    }
}

fn canonical_map<'a>(entries: impl Iterator<Item = (&'a String, &'a Value)>, text: &mut String) {
    let mut entries: Vec<_> = entries.collect();
    entries.sort_unstable_by_key(|(key, _)| *key);
    text.push('{');
    for (key, value) in entries {
        canonical_text(key, text);
        text.push(':');
        canonical(value, text);
        text.push(',');
    }
    text.push('}');
}

fn canonical_text(inner: &str, text: &mut String) {
    // No early exit, so that one CPU instruction covers many bytes.
    let is_escaped = |byte: u8| (byte < b' ') | (byte == b'"') | (byte == b'\\');
    if inner.bytes().fold(false, |escaped, byte| escaped | is_escaped(byte)) {
        return text.push_str(&Value::from(inner).to_string());
    }
    // Nothing to escape, as in most cases.
    text.push('"');
    text.push_str(inner);
    text.push('"');
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn version(document: Value) -> String {
        let key = ObjectKey { namespace: "default".into(), ..ObjectKey::default() };
        live(document, &key).resource_version().to_owned()
    }

    #[test]
    fn the_resource_version_follows_from_the_content_alone() {
        let one = json!({"kind": "K", "metadata": {"name": "a", "labels": {"x": "1", "y": "2"}}, "spec": {"n": 1}});
        let same = json!({"spec": {"n": 1.0}, "metadata": {"labels": {"y": "2", "x": "1"}, "namespace": "default",
            "creationTimestamp": null, "uid": "u", "name": "a"}, "kind": "K"});
        assert_eq!(version(one.clone()), version(same));
        for other in [json!({"n": "1"}), json!({"n": 2}), json!({"n": 1, "m": null}), json!({"n": [1]})] {
            let mut changed = one.clone();
            changed["spec"] = other;
            assert_ne!(version(one.clone()), version(changed));
        }
    }

    #[test]
    fn uids_differ_by_identity_and_look_like_uids() {
        let key = |namespace: &str, name: &str| ObjectKey {
            namespace: namespace.into(),
            name: name.into(),
            ..ObjectKey::default()
        };
        assert_ne!(uid(&key("a", "bc")), uid(&key("ab", "c")));
        assert_eq!(uid(&key("a", "b")), uid(&key("a", "b")));
        assert_eq!(uid(&key("a", "b")).split('-').map(str::len).collect::<Vec<_>>(), [8, 4, 4, 4, 12]);
    }
}
