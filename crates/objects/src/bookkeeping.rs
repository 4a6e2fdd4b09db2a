//! Objects that a deploy tool keeps next to an app's own: records, history entries, parts of the inventory.
//! A label alone proves nothing: anyone can set one on any object.

use serde_json::Value;

use crate::object::ObjectExt;

const APP: &str = "kapp.k14s.io/app";
const ASSOCIATION: &str = "kapp.k14s.io/association";
const IDENTITY: &str = "kapp.k14s.io/identity";
const RECORD: &str = "kapp.k14s.io/is-app";
const HISTORY: &str = "kapp.k14s.io/is-app-change";
const INVENTORY: &str = "pushback.dev/inventory";

/// Suffix that a record's name may have: `APP.apps.k14s.io`.
const RECORD_SUFFIX: &str = ".apps.k14s.io";

/// A server keeps so much of the prefix of a name that it makes.
const CUT: usize = 50;

/// Labels that identify an app's objects and its bookkeeping. kapp's own; those with [`OWN_PREFIX`] are ours.
const RESERVED: [&str; 7] = [
    APP,
    ASSOCIATION,
    "kapp.k14s.io/orphaned",
    RECORD,
    HISTORY,
    "kapp.k14s.io/app-change-app",
    "kapp.k14s.io/app-change-app-label",
];
const OWN_PREFIX: &str = "pushback.dev/";

/// Whether an input may not set this label: it would assign the object to another app, or hide it as bookkeeping.
#[must_use]
pub fn is_reserved_label(key: &str) -> bool {
    RESERVED.contains(&key) || key.starts_with(OWN_PREFIX)
}

/// Whether every object of an app has this label. Dumps from a cluster contain it; apply sets it again.
#[must_use]
pub fn is_membership_label(key: &str) -> bool {
    matches!(key, APP | ASSOCIATION)
}

/// Whether a deploy tool writes this annotation: in a manifest, it comes from a dump.
#[must_use]
pub fn is_written_annotation(key: &str) -> bool {
    key == IDENTITY || key == "kapp.k14s.io/original" || key.starts_with("kapp.k14s.io/original-diff")
}

/// Name of the app if the object looks like its record.
#[must_use]
pub fn record_of(object: &Value) -> Option<&str> {
    let name = object.name();
    (is_unowned_config_map(object) && object.label(RECORD).is_some())
        .then(|| name.strip_suffix(RECORD_SUFFIX).unwrap_or(name))
}

/// Name of the app, from the object's name, if the object is a history entry or a part of its inventory.
/// Decided by kind, label, name and content.
#[must_use]
pub fn entry_of(object: &Value) -> Option<&str> {
    if !is_unowned_config_map(object) {
        return None;
    }
    let data = object.get("data").and_then(Value::as_object)?;
    let text = |key: &str| data.get(key).and_then(Value::as_str);
    if object.label(HISTORY).is_some() {
        let change: Value = serde_json::from_str(text("spec")?).ok()?;
        // A server cuts the names that it makes: of a long app's entry only the prefix is whole.
        let prefix = object.text("/metadata/generateName").strip_suffix("-change-");
        let prefix = prefix.filter(|app| object.name().starts_with(app.get(..CUT).unwrap_or(app)));
        let app = prefix.or_else(|| object.name().rsplit_once("-change-").map(|(app, _)| app))?;
        return change.get("description").map(|_| app);
    }
    object.label(INVENTORY)?;
    let (app, _) = object.name().rsplit_once("-inventory-")?;
    let entries: Value = serde_json::from_str(text("entries")?).ok()?;
    (data.len() == 1 && entries.is_array()).then_some(app)
}

/// Value of the label that an app's record gives to the app's objects.
#[must_use]
pub fn recorded_label(record: &Value) -> Option<String> {
    let spec: Value = serde_json::from_str(record.text("/data/spec")).ok()?;
    Some(spec.get("labelValue")?.as_str()?.to_owned())
}

/// Value of the label that every object of an app has.
#[must_use]
pub fn app_label_of(object: &Value) -> Option<&str> {
    object.label(APP)
}

/// Bookkeeping is never owned by another object.
fn is_unowned_config_map(object: &Value) -> bool {
    (object.text("/apiVersion"), object.text("/kind")) == ("v1", "ConfigMap")
        && object.label(APP).is_none()
        && object.annotation(IDENTITY).is_none()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entry(name: &str, label: &str, data: &Value) -> Value {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": {label: ""}}, "data": data})
    }

    #[test]
    fn bookkeeping_is_known_by_what_it_is_and_not_by_its_label() {
        let change = json!({"spec": "{\"description\": \"update\"}"});
        let part = json!({"entries": "[]"});
        assert_eq!(entry_of(&entry("shop-change-x7f2k", HISTORY, &change)), Some("shop"));
        let long = "a".repeat(70);
        let mut cut = entry(&format!("{}x7f2k", &long[..58]), HISTORY, &change);
        cut["metadata"]["generateName"] = json!(format!("{long}-change-"));
        assert_eq!(entry_of(&cut), Some(long.as_str()));
        cut["metadata"]["name"] = json!("settings");
        assert_eq!(entry_of(&cut), None, "renamed by somebody");
        assert_eq!(entry_of(&entry("shop-inventory-run-0", INVENTORY, &part)), Some("shop"));
        assert_eq!(record_of(&entry("shop.apps.k14s.io", RECORD, &json!({}))), Some("shop"));
        let mut others = vec![
            entry("settings", HISTORY, &change),
            entry("shop-change-x7f2k", HISTORY, &json!({"key": "value"})),
            entry("shop-change-x7f2k", "app", &change),
            entry("shop-inventory-run-0", INVENTORY, &json!({"entries": "[]", "key": "value"})),
            entry("shop-inventory-run-0", INVENTORY, &json!({"entries": "text"})),
        ];
        for (at, value) in [("/kind", json!("Secret")), ("/metadata/labels", json!({HISTORY: "", APP: "1"}))] {
            let mut other = entry("shop-change-x7f2k", HISTORY, &change);
            *other.pointer_mut(at).expect("it is there") = value;
            others.push(other);
        }
        for other in others {
            assert_eq!((entry_of(&other), record_of(&other)), (None, None), "{other}");
        }
    }

    #[test]
    fn labels_that_say_whose_an_object_is_are_reserved() {
        for key in ["kapp.k14s.io/is-app", "kapp.k14s.io/is-app-change", "kapp.k14s.io/app", "pushback.dev/inventory"] {
            assert!(is_reserved_label(key), "{key}");
        }
        for key in ["app", "app.kubernetes.io/name", "kapp.k14s.io/config"] {
            assert!(!is_reserved_label(key), "{key}");
        }
    }
}
