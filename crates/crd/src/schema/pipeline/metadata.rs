//! `apiVersion`, `kind` and `metadata`, at the root and in embedded resources: how the server coerces and validates
//! them.
//!
//! Follows k8s.io/apiextensions-apiserver `pkg/apiserver/schema/objectmeta` (coercing and validation).

use serde_json::{Map, Value};

use super::number::{Numeric, to_integer};
use super::{Admission, Findings, Path, Resource, SchemaError};
use crate::names::{
    is_dns_1035_label, is_dns_label, is_dns_subdomain, is_label_value, is_qualified_name, is_start_of_a_subdomain,
};
use crate::path::PathSegment;
use crate::schema::model::Schema;

/// The JSON types of the fields of ObjectMeta.
#[derive(Clone, Copy)]
enum Kind {
    Text,
    Integer,
    Boolean,
    Time,
    TextMap,
    TextList,
    /// A list of objects with these fields; the marked ones are serialised even if empty.
    Objects(&'static [(&'static str, Kind, bool)]),
    Anything,
}

const FIELDS: &[(&str, Kind, bool)] = &[
    ("name", Kind::Text, false),
    ("generateName", Kind::Text, false),
    ("namespace", Kind::Text, false),
    ("selfLink", Kind::Text, false),
    ("uid", Kind::Text, false),
    ("resourceVersion", Kind::Text, false),
    ("generation", Kind::Integer, false),
    ("creationTimestamp", Kind::Time, false),
    ("deletionTimestamp", Kind::Time, false),
    ("deletionGracePeriodSeconds", Kind::Integer, true),
    ("labels", Kind::TextMap, false),
    ("annotations", Kind::TextMap, false),
    ("ownerReferences", Kind::Objects(OWNER), false),
    ("finalizers", Kind::TextList, false),
    ("managedFields", Kind::Objects(MANAGED), false),
];

const OWNER: &[(&str, Kind, bool)] = &[
    ("apiVersion", Kind::Text, true),
    ("kind", Kind::Text, true),
    ("name", Kind::Text, true),
    ("uid", Kind::Text, true),
    ("controller", Kind::Boolean, false),
    ("blockOwnerDeletion", Kind::Boolean, false),
];

const MANAGED: &[(&str, Kind, bool)] = &[
    ("manager", Kind::Text, false),
    ("operation", Kind::Text, false),
    ("apiVersion", Kind::Text, false),
    ("time", Kind::Time, false),
    ("fieldsType", Kind::Text, false),
    ("fieldsV1", Kind::Anything, false),
    ("subresource", Kind::Text, false),
];

/// The coerced metadata of the object, if there is any. The object itself is not changed.
pub(super) fn coerce_root(admission: &mut Admission, from_etcd: bool) -> Option<Value> {
    let Value::Object(map) = &admission.object else { return None };
    let mut problems = Vec::new();
    for key in ["apiVersion", "kind"] {
        if map.get(key).is_some_and(|value| !value.is_string()) {
            problems.push(problem(vec![key.into()], "must be a string"));
        }
    }
    let metadata = map.get("metadata").cloned();
    let metadata = metadata.and_then(|metadata| coerce(admission, &[], &metadata, from_etcd));
    admission.errors.extend(problems);
    metadata
}

/// Coerces the metadata of an embedded resource at `path`, in place.
pub(super) fn coerce_embedded(
    admission: &mut Admission,
    path: &[PathSegment],
    map: &mut Map<String, Value>,
    from_etcd: bool,
) {
    for key in ["apiVersion", "kind"] {
        if map.get(key).is_some_and(|value| !value.is_string()) {
            let at = path.iter().cloned().chain([key.into()]).collect();
            if from_etcd {
                map.shift_remove(key);
                admission.pruned.push(at);
            } else {
                admission.errors.push(problem(at, "must be a string"));
            }
        }
    }
    if let Some(metadata) = map.get_mut("metadata")
        && let Some(coerced) = coerce(admission, path, metadata, from_etcd)
    {
        *metadata = coerced;
    }
}

fn problem(path: Path, message: &str) -> SchemaError {
    SchemaError { path, keyword: "metadata", message: message.to_owned(), rule: None }
}

/// The coerced metadata; `None` if it cannot be decoded and stays as it is.
fn coerce(admission: &mut Admission, owner: &[PathSegment], metadata: &Value, from_etcd: bool) -> Option<Value> {
    let mut path: Path = owner.iter().cloned().chain(["metadata".into()]).collect();
    let map = match metadata {
        Value::Object(map) => map.clone(),
        Value::Null => Map::new(),
        _ => {
            if !from_etcd || owner.is_empty() {
                admission.errors.push(problem(path, "must be an object"));
            }
            return None;
        }
    };
    let mut coerced = Map::new();
    for (key, value) in map {
        path.push(key.as_str().into());
        match FIELDS.iter().find(|(name, ..)| *name == key) {
            None => admission.pruned.push(path.clone()),
            Some((_, kind, keeps_zero)) => match coerce_field(*kind, &value, &path, &mut admission.pruned) {
                Ok(value) if !value.is_null() && (*keeps_zero || !is_zero(&value)) => {
                    coerced.insert(key, value);
                }
                Ok(_) => {}
                Err(_) if from_etcd => admission.pruned.push(path.clone()),
                Err(message) => admission.errors.push(problem(path.clone(), message)),
            },
        }
        path.pop();
    }
    Some(Value::Object(coerced))
}

/// The coerced field; null if the server omits it.
fn coerce_field(kind: Kind, value: &Value, path: &Path, unknown: &mut Vec<Path>) -> Result<Value, &'static str> {
    let text = |value: &Value| match value {
        Value::Null => Ok(Value::from("")),
        Value::String(_) => Ok(value.clone()),
        _ => Err("must be a string"),
    };
    Ok(match (kind, value) {
        (Kind::Anything, value) => value.clone(),
        (_, Value::Null) => Value::Null,
        (Kind::Text, value) => text(value)?,
        (Kind::Boolean, Value::Bool(_)) => value.clone(),
        (Kind::Integer, Value::Number(number)) => match Numeric::of(number) {
            Numeric::Integer(value) => value.into(),
            Numeric::Float(value) if value.fract() == 0.0 => {
                to_integer(value).ok_or("must be a 64-bit integer")?.into()
            }
            Numeric::Float(_) => return Err("must be an integer"),
        },
        (Kind::Time, Value::String(time)) if is_time(time) => value.clone(),
        (Kind::TextMap, Value::Object(map)) => Value::Object(
            map.iter().map(|(key, value)| Ok((key.clone(), text(value)?))).collect::<Result<_, &'static str>>()?,
        ),
        (Kind::TextList, Value::Array(items)) => {
            Value::Array(items.iter().map(text).collect::<Result<_, &'static str>>()?)
        }
        (Kind::Objects(fields), Value::Array(items)) => {
            let mut objects = Vec::new();
            for (index, item) in items.iter().enumerate() {
                let nothing = Map::new();
                let map = match item {
                    Value::Object(map) => map,
                    Value::Null => &nothing,
                    _ => return Err("must be a list of objects"),
                };
                let mut object = Map::new();
                for (name, kind, keeps_zero) in fields {
                    let value = coerce_field(*kind, map.get(*name).unwrap_or(&Value::Null), path, unknown)?;
                    if *keeps_zero {
                        object.insert((*name).to_owned(), if value.is_null() { "".into() } else { value });
                    } else if !value.is_null() && value != "" {
                        object.insert((*name).to_owned(), value);
                    }
                }
                for key in map.keys().filter(|key| !fields.iter().any(|(name, ..)| name == key)) {
                    unknown.push(path.iter().cloned().chain([index.into(), key.as_str().into()]).collect());
                }
                objects.push(Value::Object(object));
            }
            Value::Array(objects)
        }
        (Kind::Boolean, _) => return Err("must be a boolean"),
        (Kind::Integer, _) => return Err("must be an integer"),
        (Kind::Time, _) => return Err("must be a time of RFC 3339"),
        (Kind::TextMap, _) => return Err("must be a map of strings"),
        (Kind::TextList, _) => return Err("must be a list of strings"),
        (Kind::Objects(_), _) => return Err("must be a list of objects"),
    })
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::String(text) => text.is_empty(),
        Value::Number(number) => number.as_i64() == Some(0),
        Value::Object(map) => map.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

/// An RFC 3339 time with upper-case letters.
fn is_time(text: &str) -> bool {
    text.as_bytes().get(10) == Some(&b'T')
        && !text.bytes().any(|byte| matches!(byte, b't' | b'z'))
        && super::format::is_date_time(text)
}

/// The object must be of the kind and version of the request.
pub(super) fn validate_type(resource: &Resource<'_>, object: &Value) -> Vec<SchemaError> {
    let api_version = format!("{}/{}", resource.group, resource.version);
    [("kind", resource.kind), ("apiVersion", api_version.as_str())]
        .into_iter()
        .filter(|(key, expected)| object.get(*key).and_then(Value::as_str) != Some(expected))
        .map(|(key, expected)| problem(vec![key.into()], &format!("must be {expected}")))
        .collect()
}

/// The metadata of the resource itself. Whether it needs a namespace is unknown here, and no name is required.
pub(super) fn validate_root(object: &Value) -> Vec<SchemaError> {
    let mut findings = Findings::default();
    if let Some(metadata) = object.get("metadata") {
        let path = vec!["metadata".into()];
        if let Some(name) = metadata.get("name").and_then(Value::as_str)
            && !is_dns_subdomain(name)
        {
            findings.error(&[path.as_slice(), &["name".into()]].concat(), "metadata", "must be a DNS subdomain");
        }
        if let Some(prefix) = metadata.get("generateName").and_then(Value::as_str)
            && !prefix.is_empty()
            && !is_start_of_a_subdomain(prefix)
        {
            let at = [path.as_slice(), &["generateName".into()]].concat();
            findings.error(&at, "metadata", "must be the start of a DNS subdomain");
        }
        validate_metadata(&mut findings, &path, metadata);
    }
    findings.errors
}

/// The type and metadata of all embedded resources.
pub(super) fn validate_embedded(schema: &Schema, object: &Value) -> Vec<SchemaError> {
    let mut findings = Findings::default();
    let mut path = Path::new();
    embedded(&mut findings, &mut path, schema, object);
    findings.errors
}

fn embedded(findings: &mut Findings, path: &mut Path, schema: &Schema, value: &Value) {
    match value {
        Value::Object(map) => {
            if schema.embedded_resource {
                validate_resource(findings, path, map);
            }
            for (key, value) in map {
                if let Some(schema) = schema.properties.get(key).or_else(|| schema.additional_schema()) {
                    path.push(key.as_str().into());
                    embedded(findings, path, schema, value);
                    path.pop();
                }
            }
        }
        Value::Array(items) => {
            let Some(schema) = &schema.items else { return };
            for (index, item) in items.iter().enumerate() {
                path.push(index.into());
                embedded(findings, path, schema, item);
                path.pop();
            }
        }
        _ => {}
    }
}

fn validate_resource(findings: &mut Findings, path: &Path, map: &Map<String, Value>) {
    const KEYWORD: &str = "x-kubernetes-embedded-resource";
    let at = |key: &str| -> Path { path.iter().cloned().chain([key.into()]).collect() };
    for key in ["apiVersion", "kind"] {
        match map.get(key) {
            None => findings.error(&at(key), KEYWORD, "an embedded resource needs it"),
            Some(Value::String(text)) if text.is_empty() => findings.error(&at(key), KEYWORD, "must not be empty"),
            Some(Value::String(text)) if key == "kind" => {
                if !is_dns_1035_label(&text.to_lowercase()) {
                    findings.error(&at(key), KEYWORD, "must be a DNS label, in any case");
                }
            }
            Some(Value::String(text)) => {
                if text != "/" && text.matches('/').count() > 1 {
                    findings.error(&at(key), KEYWORD, "must be a group and a version");
                }
            }
            Some(_) => findings.error(&at(key), KEYWORD, "must be a string"),
        }
    }
    let Some(metadata) = map.get("metadata") else { return };
    let path = at("metadata");
    if !metadata.is_object() {
        return findings.error(&path, KEYWORD, "must be an object");
    }
    let text = |key: &str| metadata.get(key).and_then(Value::as_str).unwrap_or_default();
    for key in ["name", "generateName"] {
        let name = text(key);
        if name.contains(['/', '%']) || key == "name" && matches!(name, "." | "..") {
            findings.error(&[path.as_slice(), &[key.into()]].concat(), "metadata", "must fit into a path");
        }
    }
    let namespace = text("namespace");
    if !namespace.is_empty() && !is_dns_label(namespace) {
        findings.error(&[path.as_slice(), &["namespace".into()]].concat(), "metadata", "must be a DNS label");
    }
    validate_metadata(findings, &path, metadata);
}

/// The rules for all metadata, except names.
fn validate_metadata(findings: &mut Findings, path: &[PathSegment], metadata: &Value) {
    let mut error = |keys: &str, message: String| {
        let below: Path = keys.split('.').map(PathSegment::from).collect();
        findings.error(&[path, &below].concat(), "metadata", message);
    };
    if metadata.get("generation").and_then(Value::as_i64).is_some_and(|generation| generation < 0) {
        error("generation", "must not be negative".to_owned());
    }
    let entries = |key: &str| metadata.get(key).and_then(Value::as_object).into_iter().flatten();
    for (key, value) in entries("labels") {
        if !is_qualified_name(key) {
            error("labels", format!("{key:?} is not a valid label key"));
        }
        if !value.as_str().is_some_and(is_label_value) {
            error("labels", format!("{value} is not a valid label value"));
        }
    }
    let mut size = 0;
    for (key, value) in entries("annotations") {
        size += key.len() + value.as_str().unwrap_or_default().len();
        if !is_qualified_name(&key.to_lowercase()) {
            error("annotations", format!("{key:?} is no key of an annotation"));
        }
    }
    if size > 256 * 1024 {
        error("annotations", "must not be larger than 256 KiB".to_owned());
    }
    let items = |key: &str| metadata.get(key).and_then(Value::as_array).into_iter().flatten();
    let mut controllers = 0;
    for owner in items("ownerReferences") {
        let text = |key: &str| owner.get(key).and_then(Value::as_str).unwrap_or_default();
        let (group, version) = text("apiVersion").split_once('/').unwrap_or(("", text("apiVersion")));
        if version.is_empty() || version.contains('/') {
            error("ownerReferences.apiVersion", "an owner needs a version".to_owned());
        }
        for (key, at) in
            [("kind", "ownerReferences.kind"), ("name", "ownerReferences.name"), ("uid", "ownerReferences.uid")]
        {
            if text(key).is_empty() {
                error(at, "must not be empty".to_owned());
            }
        }
        if (group, version, text("kind")) == ("", "v1", "Event") {
            error("ownerReferences", "an event owns nothing".to_owned());
        }
        controllers += usize::from(owner.get("controller") == Some(&Value::Bool(true)));
    }
    if controllers > 1 {
        error("ownerReferences", "only one owner can be the controller".to_owned());
    }
    let finalizers: Vec<&str> = items("finalizers").filter_map(Value::as_str).collect();
    for finalizer in finalizers.iter().filter(|finalizer| !is_qualified_name(finalizer)) {
        error("finalizers", format!("{finalizer:?} is no name of a finalizer"));
    }
    if finalizers.contains(&"orphan") && finalizers.contains(&"foregroundDeletion") {
        error("finalizers", "orphan and foregroundDeletion exclude each other".to_owned());
    }
}
