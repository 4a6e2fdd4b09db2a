//! One reference from an object to another, and a place in a manifest that knows its path.

use pushback_objects::object::ObjectKey;
use pushback_objects::source::PathSegment;
use serde_json::Value;

/// What an object needs.
#[derive(Clone, Debug)]
pub(super) struct Reference {
    /// The object that it needs.
    pub(super) target: ObjectKey,
    /// What it needs of that object.
    pub(super) part: Option<Part>,
    /// Path of the name in the manifest.
    pub(super) path: Vec<PathSegment>,
    /// How much the object needs it.
    pub(super) weight: Weight,
}

/// How much an object needs another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Weight {
    /// It does not work without it.
    Needed,
    /// It works without it, at a loss.
    Tolerated,
    /// Many do without it on purpose: only its loss is worth knowing.
    Customary,
}

/// A part of an object that is named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// A key of a ConfigMap or Secret.
    Key(String),
    /// A port of a Service, by number or name.
    Port(String),
}

impl Part {
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Key(name) | Self::Port(name) => name,
        }
    }
}

impl Reference {
    pub(super) fn to(target: ObjectKey, at: &At<'_>) -> Self {
        Self { target, part: None, path: at.path.clone(), weight: Weight::Needed }
    }

    pub(super) fn weighing(self, weight: Weight) -> Self {
        Self { weight, ..self }
    }

    pub(super) fn part(self, part: Option<Part>) -> Self {
        Self { part, ..self }
    }
}

pub(super) fn key(group: &str, kind: &str, namespace: &str, name: &str) -> ObjectKey {
    ObjectKey { group: group.to_owned(), kind: kind.to_owned(), namespace: namespace.to_owned(), name: name.to_owned() }
}

/// A value of a manifest with its path.
#[derive(Clone, Debug)]
pub(super) struct At<'a> {
    pub(super) value: &'a Value,
    pub(super) path: Vec<PathSegment>,
}

impl<'a> At<'a> {
    pub(super) fn root(value: &'a Value) -> Self {
        Self { value, path: Vec::new() }
    }

    /// The field, if it is there and not null.
    pub(super) fn get(&self, field: &str) -> Option<Self> {
        let value = self.value.get(field).filter(|value| !value.is_null())?;
        Some(Self { value, path: self.path.iter().cloned().chain([field.into()]).collect() })
    }

    /// The field at a path.
    pub(super) fn down(&self, fields: &[&str]) -> Option<Self> {
        fields.iter().try_fold(self.clone(), |at, field| at.get(field))
    }

    /// The entries of a list; empty if there is none.
    pub(super) fn list(&self, field: &str) -> Vec<Self> {
        let Some(list) = self.get(field) else { return Vec::new() };
        let entries = list.value.as_array().map_or(&[][..], Vec::as_slice);
        let entry = |(index, value): (usize, &'a Value)| {
            let path = list.path.iter().cloned().chain([PathSegment::from(index)]).collect();
            Self { value, path }
        };
        entries.iter().enumerate().map(entry).collect()
    }

    /// The text, if it is one and not empty.
    pub(super) fn text(&self) -> Option<&'a str> {
        self.value.as_str().filter(|text| !text.is_empty())
    }

    /// Whether `optional: true` is set.
    pub(super) fn is_optional(&self) -> bool {
        self.value.get("optional").and_then(Value::as_bool).unwrap_or_default()
    }
}
