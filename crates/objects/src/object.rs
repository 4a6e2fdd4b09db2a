//! Names and common fields of Kubernetes objects.
//! Group, kind, namespace and name are the identity; the API version is an attribute.

use std::fmt;

use pushback_crd::definition::crd;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Groups that Kubernetes itself serves or has served. Groups without a dot are built in as well: the group of a
/// CustomResourceDefinition must have one. Any other group is custom, including `*.k8s.io` ones such as
/// `gateway.networking.k8s.io`, `snapshot.storage.k8s.io` and `metrics.k8s.io`.
const BUILT_IN_GROUPS: &[&str] = &[
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "auditregistration.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "certificates.k8s.io",
    "coordination.k8s.io",
    "discovery.k8s.io",
    "events.k8s.io",
    "flowcontrol.apiserver.k8s.io",
    "imagepolicy.k8s.io",
    "internal.apiserver.k8s.io",
    "lifecycle.k8s.io",
    "networking.k8s.io",
    "node.k8s.io",
    "rbac.authorization.k8s.io",
    "resource.k8s.io",
    "scheduling.k8s.io",
    "settings.k8s.io",
    "storage.k8s.io",
    "storagemigration.k8s.io",
];

/// A reference to an object in one API version.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ObjectRef {
    /// API group; empty for the core group.
    pub group: String,
    /// API version, such as `v1`.
    pub version: String,
    /// Kind, such as `Deployment`.
    pub kind: String,
    /// Namespace; empty for cluster-scoped objects.
    pub namespace: String,
    /// Name.
    pub name: String,
}

/// The identity of an object, the same in every API version.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ObjectKey {
    /// API group; empty for the core group.
    pub group: String,
    /// Kind.
    pub kind: String,
    /// Namespace; empty for cluster-scoped objects.
    pub namespace: String,
    /// Name.
    pub name: String,
}

impl ObjectRef {
    /// Reads the reference from an object's own fields; a missing field becomes empty.
    #[must_use]
    pub fn of(object: &Value) -> Self {
        let (group, version) = split_api_version(object.text("/apiVersion"));
        Self {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: object.text("/kind").to_owned(),
            namespace: object.namespace().to_owned(),
            name: object.name().to_owned(),
        }
    }

    /// The `apiVersion` field: `apps/v1`, or `v1` for the core group.
    #[must_use]
    pub fn api_version(&self) -> String {
        join_api_version(&self.group, &self.version)
    }

    /// Whether it is a CustomResourceDefinition.
    #[must_use]
    pub fn is_definition(&self) -> bool {
        self.group == crd::GROUP && self.kind == crd::KIND
    }

    /// The identity, without the API version.
    #[must_use]
    pub fn key(&self) -> ObjectKey {
        ObjectKey {
            group: self.group.clone(),
            kind: self.kind.clone(),
            namespace: self.namespace.clone(),
            name: self.name.clone(),
        }
    }
}

/// Whether a group is that of custom resources or of an aggregated API.
#[must_use]
pub fn is_custom_group(group: &str) -> bool {
    group.contains('.') && !BUILT_IN_GROUPS.contains(&group)
}

/// Shows `Deployment shop/web` or `Namespace shop`. The group is added if the kind alone is ambiguous: for any group
/// with a dot that Kubernetes does not serve itself.
impl fmt::Display for ObjectRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_object(f, &self.group, &self.kind, &self.namespace, &self.name)
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_object(f, &self.group, &self.kind, &self.namespace, &self.name)
    }
}

fn write_object(f: &mut fmt::Formatter<'_>, group: &str, kind: &str, namespace: &str, name: &str) -> fmt::Result {
    f.write_str(kind)?;
    if group.contains('.') && !group.ends_with(".k8s.io") {
        write!(f, ".{group}")?;
    }
    f.write_str(" ")?;
    if !namespace.is_empty() {
        write!(f, "{namespace}/")?;
    }
    f.write_str(name)
}

/// Splits `apps/v1` into group and version; the group of `v1` is empty.
#[must_use]
pub fn split_api_version(api_version: &str) -> (&str, &str) {
    api_version.split_once('/').unwrap_or(("", api_version))
}

/// Joins group and version into an `apiVersion`.
#[must_use]
pub fn join_api_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

/// The type of a value, for messages that must not show it.
#[must_use]
pub fn describe(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "a map",
    }
}

/// Common fields of a Kubernetes object, read from a plain value.
pub trait ObjectExt {
    /// Text at a JSON pointer, or the empty string.
    fn text(&self, pointer: &str) -> &str;
    /// `metadata.name`, or the empty string.
    fn name(&self) -> &str;
    /// `metadata.namespace`, or the empty string.
    fn namespace(&self) -> &str;
    /// `namespace/name`, or the name alone.
    fn full_name(&self) -> String;
    /// `metadata.uid`, or the empty string.
    fn uid(&self) -> &str;
    /// `metadata.resourceVersion`, or the empty string.
    fn resource_version(&self) -> &str;
    /// The value of a label.
    fn label(&self, key: &str) -> Option<&str>;
    /// The value of an annotation.
    fn annotation(&self, key: &str) -> Option<&str>;
    /// Whether `metadata.deletionTimestamp` is set.
    fn is_terminating(&self) -> bool;
    /// The map at `metadata.<field>` (`labels`, `annotations`), created if absent or null.
    /// `None` if the object, its metadata or the field is not a map.
    fn metadata_map_mut(&mut self, field: &str) -> Option<&mut Map<String, Value>>;
}

/// The value at a JSON pointer. [`Value::pointer`] copies every segment to unescape it, which is too slow for many
/// calls on each of thousands of objects.
fn at<'a>(value: &'a Value, pointer: &str) -> Option<&'a Value> {
    if pointer.contains('~') {
        return value.pointer(pointer);
    }
    let mut found = value;
    let mut rest = pointer;
    while !rest.is_empty() {
        let Value::Object(map) = found else { return found.pointer(rest) };
        let segments = rest.strip_prefix('/')?;
        let (segment, after) = segments.split_at(segments.find('/').unwrap_or(segments.len()));
        found = field(map, segment)?;
        rest = after;
    }
    Some(found)
}

fn in_metadata<'a>(object: &'a Value, map: &str, key: &str) -> Option<&'a str> {
    let metadata = field(object.as_object()?, "metadata")?.as_object()?;
    field(field(metadata, map)?.as_object()?, key)?.as_str()
}

/// A field of a map. Most maps of an object are so small that looking through them costs less than a hash.
fn field<'a>(map: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    const FEW: usize = 8;
    if map.len() > FEW {
        return map.get(name);
    }
    map.iter().find(|(key, _)| *key == name).map(|(_, value)| value)
}

impl ObjectExt for Value {
    fn text(&self, pointer: &str) -> &str {
        at(self, pointer).and_then(Value::as_str).unwrap_or_default()
    }

    fn name(&self) -> &str {
        self.text("/metadata/name")
    }

    fn namespace(&self) -> &str {
        self.text("/metadata/namespace")
    }

    fn full_name(&self) -> String {
        match (self.namespace(), self.name()) {
            ("", name) => name.to_owned(),
            (namespace, name) => format!("{namespace}/{name}"),
        }
    }

    fn uid(&self) -> &str {
        self.text("/metadata/uid")
    }

    fn resource_version(&self) -> &str {
        self.text("/metadata/resourceVersion")
    }

    fn label(&self, key: &str) -> Option<&str> {
        in_metadata(self, "labels", key)
    }

    fn annotation(&self, key: &str) -> Option<&str> {
        in_metadata(self, "annotations", key)
    }

    fn is_terminating(&self) -> bool {
        !self.text("/metadata/deletionTimestamp").is_empty()
    }

    fn metadata_map_mut(&mut self, field: &str) -> Option<&mut Map<String, Value>> {
        let metadata = self.as_object_mut()?.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
        let entry = metadata.as_object_mut()?.entry(field).or_insert(Value::Null);
        if entry.is_null() {
            *entry = Value::Object(Map::new());
        }
        entry.as_object_mut()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn text_is_found_where_a_json_pointer_leads() {
        let value = json!({"a": {"b/c": "1", "": "2", "list": ["3", {"d": "4"}]}, "e": "5"});
        for pointer in ["/a/b~1c", "/a/", "/a/list/0", "/a/list/1/d", "/a/list/01", "/e", "/e/f", "e", "", "/x/y", "/a"]
        {
            let expected = value.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
            assert_eq!(value.text(pointer), expected, "{pointer:?}");
        }
        assert_eq!((value.text("/a/list/1/d"), value.text("/a/b~1c")), ("4", "1"));
        assert_eq!(json!("whole").text(""), "whole");
    }
}
