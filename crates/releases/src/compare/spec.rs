//! Differences between two expected specs, field by field; named list elements are matched by name.

use std::collections::BTreeSet;

use pushback_objects::source::{PathSegment, display_path};
use serde_json::{Map, Value};

use super::super::difference::{ChangeType, Severity};
use super::manifest_difference::shown;

/// Maximum depth; below it, values are compared as a whole.
const MAX_DEPTH: usize = 32;

/// A field that differs.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Difference {
    /// Path of the field, `spec.template.spec.containers["web"].image`.
    pub(super) path: String,
    pub(super) old: Option<Value>,
    pub(super) new: Option<Value>,
    /// Last key of the path.
    key: String,
}

impl Difference {
    /// Type and severity of the change; a new image is expected in a release.
    pub(super) fn weight(&self) -> (ChangeType, Severity) {
        let is_zero = |value: &Option<Value>| value.as_ref().and_then(Value::as_i64) == Some(0);
        match self.key.as_str() {
            "image" if self.moves_registry() => (ChangeType::ImageChanged, Severity::Warning),
            "image" if self.old.is_some() && self.new.is_some() => (ChangeType::ImageChanged, Severity::Info),
            "replicas" if !is_zero(&self.new) => (ChangeType::SpecChanged, Severity::Info),
            _ => (ChangeType::SpecChanged, Severity::Warning),
        }
    }

    /// Whether an image comes from another registry.
    fn moves_registry(&self) -> bool {
        let of = |value: &Option<Value>| value.as_ref().and_then(Value::as_str).map(registry).map(str::to_owned);
        self.key == "image" && of(&self.old).zip(of(&self.new)).is_some_and(|(old, new)| old != new)
    }

    pub(super) fn message(&self) -> String {
        match (&self.old, &self.new) {
            (Some(old), Some(new)) if self.moves_registry() => {
                format!("changed from {} to {}: nodes must be able to pull from there", shown(old), shown(new))
            }
            // `1` and `"1"` look equal without quotes.
            (Some(old), Some(new)) if shown(old) == shown(new) => format!("changed from {old} to {new}"),
            (Some(old), Some(new)) => format!("changed from {} to {}", shown(old), shown(new)),
            (Some(old), None) => format!("no longer expected, was {}", shown(old)),
            (None, Some(new)) => format!("now expected to be {}", shown(new)),
            (None, None) => "unchanged".to_owned(),
        }
    }
}

/// The registry of an image: its first part, if that is a host, else that of Docker.
fn registry(image: &str) -> &str {
    let host = image.split_once('/').map(|(host, _)| host);
    host.filter(|host| host.contains(['.', ':']) || *host == "localhost").unwrap_or("docker.io")
}

/// All differences, in the order of the paths.
pub(super) fn differences(old: &Map<String, Value>, new: &Map<String, Value>) -> Vec<Difference> {
    let mut found = Vec::new();
    maps(old, new, &mut vec!["spec".into()], &mut found);
    found
}

fn maps(old: &Map<String, Value>, new: &Map<String, Value>, path: &mut Vec<PathSegment>, found: &mut Vec<Difference>) {
    let keys: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    for key in keys {
        path.push(key.as_str().into());
        values(old.get(key), new.get(key), path, found);
        path.pop();
    }
}

fn values(old: Option<&Value>, new: Option<&Value>, path: &mut Vec<PathSegment>, found: &mut Vec<Difference>) {
    if old == new {
        return;
    }
    if path.len() < MAX_DEPTH
        && let (Some(old), Some(new)) = (old, new)
    {
        if let (Value::Object(old), Value::Object(new)) = (old, new) {
            return maps(old, new, path, found);
        }
        if let (Some(old), Some(new)) = (by_name(old), by_name(new)) {
            return maps(&old, &new, path, found);
        }
    }
    let key = path.iter().rev().find_map(|segment| match segment {
        PathSegment::Key(key) => Some(key.clone()),
        PathSegment::Index(_) => None,
    });
    found.push(Difference {
        path: display_path(path),
        old: old.cloned(),
        new: new.cloned(),
        key: key.unwrap_or_default(),
    });
}

/// The elements of a list by name, if each has a unique one.
fn by_name(value: &Value) -> Option<Map<String, Value>> {
    let items = value.as_array()?;
    let mut named = Map::new();
    for item in items {
        let name = item.get("name")?.as_str()?;
        if named.insert(name.to_owned(), item.clone()).is_some() {
            return None;
        }
    }
    Some(named)
}
