//! Digests of manifests and live values: with them an unchanged object is recognised without a request.
//! Secrets have none.

use std::fmt::Write as _;
use std::sync::OnceLock;

use pushback_app::identity::{has_copy, without_copy};
use pushback_cluster::FIELD_MANAGER;
use pushback_cluster::managed_fields::{self as fields, ManagerEntry};
use pushback_objects::{ObjectExt, hex};
use serde_json::Value;
use sha2::{Digest, Sha256};

/// Whether this is a core Secret.
#[must_use]
pub fn is_secret(object: &Value) -> bool {
    object.text("/kind") == "Secret" && object.text("/apiVersion") == "v1"
}

/// The [`digest`] of a body, computed on first use: objects that are only checked are not recorded.
#[derive(Clone, Debug, Default)]
pub struct BodyDigest(OnceLock<String>);

impl BodyDigest {
    /// The digest; `body` must be the same on each call.
    pub fn of(&self, body: &Value) -> &str {
        self.0.get_or_init(|| digest(body))
    }
}

/// The [`live_digest`] of an object, computed on first use: a run that looks for changes has it already.
#[derive(Clone, Debug, Default)]
pub struct LiveDigest(OnceLock<String>);

impl LiveDigest {
    /// The digest; `live` must be the same on each call.
    pub fn of(&self, live: &Value) -> &str {
        self.0.get_or_init(|| live_digest(live))
    }

    /// The same where our entry in `managedFields` is at hand; not for a Secret.
    pub fn of_owned(&self, own: &ManagerEntry, live: &Value) -> &str {
        self.0.get_or_init(|| digest(&fields::project(&own.fields, live)))
    }
}

/// Digest of a value, independent of key order: 32 hexadecimal digits. Empty for Secrets. kapp's copy of a manifest does
/// not count, since it says the same again.
#[must_use]
pub fn digest(value: &Value) -> String {
    if has_copy(value) {
        return digest(&without_copy(value));
    }
    let mut text = String::new();
    if is_secret(value) {
        // Only the structure: which keys there are, not their values.
        let mut shape = value.clone();
        if let Some(data) = shape.get_mut("data").and_then(Value::as_object_mut) {
            data.values_mut().for_each(|value| *value = Value::Null);
        }
        state(&shape, &mut text);
    } else {
        state(value, &mut text);
    }
    hex::encode(&Sha256::digest(text)[..16])
}

/// A value as text, whatever the order of its keys: no two values give the same.
#[must_use]
pub(super) fn canonical(value: &Value) -> String {
    let mut text = String::new();
    state(value, &mut text);
    text
}

/// Serialises a value unambiguously: no two values give the same text.
fn state(value: &Value, text: &mut String) {
    // Writing to a string cannot fail.
    match value {
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_unstable_by(|left, right| left.0.cmp(right.0));
            let _ = write!(text, "{{{}", entries.len());
            for (key, value) in entries {
                let _ = write!(text, "{}:", key.len());
                text.push_str(key);
                state(value, text);
            }
        }
        Value::Array(items) => {
            let _ = write!(text, "[{}", items.len());
            items.iter().for_each(|item| state(item, text));
        }
        Value::String(inner) => {
            let _ = write!(text, "\"{}:", inner.len());
            text.push_str(inner);
        }
        other => {
            let _ = write!(text, "{other};");
        }
    }
}

/// Digest of the live values that we own, for the inventory; empty for Secrets and if ownership is unknown.
#[must_use]
pub fn live_digest(live: &Value) -> String {
    if is_secret(live) {
        return String::new();
    }
    own_entry(live).map(|own| digest(&fields::project(&own.fields, live))).unwrap_or_default()
}

/// Our own entry in `managedFields`.
pub(super) fn own_entry(object: &Value) -> Option<ManagerEntry> {
    let managers = fields::managers(object).ok()?;
    managers.into_iter().find(|entry| entry.owner.manager == FIELD_MANAGER && entry.owner.operation == "Apply")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_digest_does_not_depend_on_key_order_and_tells_values_apart() {
        assert_eq!(digest(&json!({"a": 1, "b": [1, "x"]})), digest(&json!({"b": [1, "x"], "a": 1})));
        assert_ne!(digest(&json!({"a": "1"})), digest(&json!({"a": 1})));
        assert_ne!(digest(&json!(["ab", "c"])), digest(&json!(["a", "bc"])));
    }

    #[test]
    fn the_digest_of_a_secret_says_nothing_of_its_values() {
        let secret = |value: &str| json!({"apiVersion": "v1", "kind": "Secret", "data": {"key": value}});
        assert_eq!(digest(&secret("YQ==")), digest(&secret("Yg==")));
        assert_eq!(live_digest(&secret("YQ==")), "");
    }
}
