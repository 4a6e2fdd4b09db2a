//! Typed reads of a source object. Every error has the path of the field and says what was expected there.

use pushback_objects::object::describe;
use pushback_objects::source::{PathSegment, display_path};
use serde_json::{Map, Value};

use super::SourceError;

/// A field of a source object, with its path. An absent field is null.
#[derive(Clone, Debug)]
pub(super) struct Field<'a> {
    pub(super) value: &'a Value,
    pub(super) path: Vec<PathSegment>,
}

impl<'a> Field<'a> {
    /// The source object itself.
    pub(super) fn root(value: &'a Value) -> Self {
        Self { value, path: Vec::new() }
    }

    fn child(&self, value: &'a Value, segment: PathSegment) -> Self {
        let mut path = self.path.clone();
        path.push(segment);
        Self { value, path }
    }

    /// A field of a map.
    pub(super) fn get(&self, key: &str) -> Result<Self, SourceError> {
        let value = self.map()?.and_then(|map| map.get(key)).unwrap_or(&Value::Null);
        Ok(self.child(value, key.into()))
    }

    /// The field at the end of these keys.
    pub(super) fn at(&self, keys: &[&str]) -> Result<Self, SourceError> {
        keys.iter().try_fold(self.clone(), |field, key| field.get(key))
    }

    /// The map; `None` if it is absent.
    pub(super) fn map(&self) -> Result<Option<&'a Map<String, Value>>, SourceError> {
        match self.value {
            Value::Null => Ok(None),
            Value::Object(map) => Ok(Some(map)),
            _ => Err(self.expected("a map")),
        }
    }

    /// The entries of a map, by key; none if it is absent.
    pub(super) fn entries(&self) -> Result<Vec<(&'a str, Self)>, SourceError> {
        let entries = self.map()?.into_iter().flatten();
        Ok(entries.map(|(key, value)| (key.as_str(), self.child(value, key.as_str().into()))).collect())
    }

    /// The items of a list; none if it is absent.
    pub(super) fn items(&self) -> Result<Vec<Self>, SourceError> {
        match self.value {
            Value::Null => Ok(Vec::new()),
            Value::Array(list) => {
                Ok(list.iter().enumerate().map(|(index, value)| self.child(value, index.into())).collect())
            }
            _ => Err(self.expected("a list")),
        }
    }

    /// The text; an error if it is absent or empty.
    pub(super) fn text(&self) -> Result<&'a str, SourceError> {
        self.text_or("").and_then(|text| if text.is_empty() { Err(self.expected("a text")) } else { Ok(text) })
    }

    /// The text, or another one if it is absent.
    pub(super) fn text_or(&self, otherwise: &'a str) -> Result<&'a str, SourceError> {
        match self.value {
            Value::Null => Ok(otherwise),
            Value::String(text) => Ok(text),
            _ => Err(self.expected("a text")),
        }
    }

    /// The truth value, or another one if it is absent.
    pub(super) fn flag_or(&self, otherwise: bool) -> Result<bool, SourceError> {
        match self.value {
            Value::Null => Ok(otherwise),
            Value::Bool(flag) => Ok(*flag),
            _ => Err(self.expected("true or false")),
        }
    }

    /// The value; `None` if it is absent.
    pub(super) fn present(&self) -> Option<&'a Value> {
        Some(self.value).filter(|value| !value.is_null())
    }

    /// An error about the field.
    pub(super) fn error(&self, message: impl std::fmt::Display) -> SourceError {
        SourceError { path: self.path.clone(), message: format!("{}: {message}", display_path(&self.path)) }
    }

    /// The error that the field is something else.
    pub(super) fn expected(&self, expected: &str) -> SourceError {
        let found = if self.value == "" { "an empty text" } else { describe(self.value) };
        self.error(format!("expected {expected}, found {found}"))
    }
}
