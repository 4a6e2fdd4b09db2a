//! The owners of an object's fields, from its `metadata.managedFields`.
//! An invalid entry is an error with its path, never a manager that silently owns nothing.

use pushback_objects::PathSegment;
use serde_json::{Map, Value};

use super::resolve::element_matches;
use super::{Element, FieldSet, FieldsError};

/// A field manager of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Owner {
    /// Name of the field manager.
    pub manager: String,
    /// `Apply` or `Update`.
    pub operation: String,
    /// `status` and similar; empty for the object itself.
    pub subresource: String,
    /// The API version of the paths.
    pub api_version: String,
    /// Time of its last write, as the server wrote it; empty if unknown.
    pub time: String,
}

/// One entry of `metadata.managedFields`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ManagerEntry {
    /// The manager.
    pub owner: Owner,
    /// The fields that it owns.
    pub fields: FieldSet,
}

impl ManagerEntry {
    /// Whether the field at `path` or any part of it is owned. An atomic field (no path of the set continues it) is
    /// owned with everything below it.
    #[must_use]
    pub fn owns(&self, object: &Value, path: &[PathSegment]) -> bool {
        let (mut set, mut value) = (&self.fields, Some(object));
        for segment in path {
            if set.member && set.children.is_empty() {
                return true;
            }
            let (next, below) = match segment {
                PathSegment::Key(key) => {
                    (set.children.get(&Element::Field(key.clone())), value.and_then(|value| value.get(key)))
                }
                PathSegment::Index(index) => {
                    let item = value.and_then(|value| value.get(index));
                    let is_it = |element: &Element| item.is_some_and(|item| element_matches(element, *index, item));
                    (set.children.iter().find(|(element, _)| is_it(element)).map(|(_, child)| child), item)
                }
            };
            let Some(next) = next else { return false };
            (set, value) = (next, below);
        }
        !set.is_empty()
    }

    /// Serialises the entry in the format of `managedFields`.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let Owner { manager, operation, subresource, api_version, time } = &self.owner;
        let mut entry = Map::new();
        let texts = [
            ("manager", manager),
            ("operation", operation),
            ("apiVersion", api_version),
            ("time", time),
            ("subresource", subresource),
        ];
        for (key, text) in texts.into_iter().filter(|(_, text)| !text.is_empty()) {
            entry.insert(key.to_owned(), Value::String(text.clone()));
        }
        entry.insert("fieldsType".to_owned(), Value::String("FieldsV1".to_owned()));
        entry.insert("fieldsV1".to_owned(), self.fields.to_value());
        Value::Object(entry)
    }
}

/// The entries of `metadata.managedFields`, in the object's order; empty if it has none.
///
/// # Errors
/// The first invalid entry.
pub fn managers(object: &Value) -> Result<Vec<ManagerEntry>, FieldsError> {
    let place = "metadata.managedFields";
    let entries = match object.pointer("/metadata/managedFields") {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(entries)) => entries,
        Some(_) => return Err(FieldsError { place: place.to_owned(), message: "expected a list".to_owned() }),
    };
    entries.iter().enumerate().map(|(index, entry)| parse_entry(&format!("{place}[{index}]"), entry)).collect()
}

fn parse_entry(place: &str, entry: &Value) -> Result<ManagerEntry, FieldsError> {
    let error = |message: String| FieldsError { place: place.to_owned(), message };
    let Value::Object(map) = entry else { return Err(error("expected a map".to_owned())) };
    let text = |key: &str| match map.get(key) {
        None | Some(Value::Null) => Ok(String::new()),
        Some(Value::String(text)) => Ok(text.clone()),
        Some(_) => Err(error(format!("{key}: expected a string"))),
    };
    let owner = Owner {
        manager: text("manager")?,
        operation: text("operation")?,
        subresource: text("subresource")?,
        api_version: text("apiVersion")?,
        time: text("time")?,
    };
    let fields_type = text("fieldsType")?;
    if !matches!(fields_type.as_str(), "" | "FieldsV1") {
        return Err(error(format!("unknown fieldsType {fields_type:?}, expected FieldsV1")));
    }
    let fields = match map.get("fieldsV1") {
        None | Some(Value::Null) => FieldSet::default(),
        Some(fields) => FieldSet::parse(fields)
            .map_err(|error| FieldsError { place: format!("{place}.{}", error.place), message: error.message })?,
    };
    Ok(ManagerEntry { owner, fields })
}

/// The managers that own the field at `path` or any part of it, in the object's order. For many paths of one object,
/// call [`managers`] once and then [`ManagerEntry::owns`] for each.
///
/// # Errors
/// The first invalid entry of `managedFields`.
pub fn owners_of(object: &Value, path: &[PathSegment]) -> Result<Vec<Owner>, FieldsError> {
    let entries = managers(object)?.into_iter();
    Ok(entries.filter(|entry| entry.owns(object, path)).map(|entry| entry.owner).collect())
}
