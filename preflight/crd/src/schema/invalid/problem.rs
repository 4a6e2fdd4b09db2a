//! What a definition is refused for, and its parts, which may be anything before they are looked at.

use std::fmt;

use serde_json::Value;

use super::super::pipeline::Path;
use crate::path::PathSegment;

/// A reason why the API server refuses a definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where in the document.
    pub path: Path,
    /// What is wrong there.
    pub message: String,
    /// Whether the server certainly refuses it; otherwise it is not known.
    pub is_certain: bool,
}

impl fmt::Display for Problem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.is_certain {
            true => "the API server would refuse the definition",
            false => "unable to determine if the API server takes the definition",
        };
        write!(out, "{what}: {}", self.message)
    }
}

/// Problems with the place that is being looked at.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) path: Path,
    pub(super) problems: Vec<Problem>,
}

impl Found {
    pub(super) fn below(&mut self, segment: impl Into<PathSegment>, look: impl FnOnce(&mut Self)) {
        self.path.push(segment.into());
        look(self);
        self.path.pop();
    }

    pub(super) fn here(&mut self, message: impl Into<String>) {
        self.problems.push(Problem { path: self.path.clone(), message: message.into(), is_certain: true });
    }

    /// Something that the server may refuse.
    pub(super) fn perhaps(&mut self, message: String) {
        self.problems.push(Problem { path: self.path.clone(), message, is_certain: false });
    }

    pub(super) fn at(&mut self, key: &str, message: impl Into<String>) {
        self.below(key, |found| found.here(message));
    }
}

/// Maps with so few keys are looked through; most schemas are.
pub(super) const FEW: usize = 8;

/// A field; null is none.
pub(super) fn field<'a>(value: &'a Value, key: &str) -> Option<&'a Value> {
    Some(at(value, key)).filter(|value| !value.is_null())
}

/// What is at a key; null where nothing is.
pub(super) fn at<'a>(value: &'a Value, key: &str) -> &'a Value {
    let Value::Object(map) = value else { return &Value::Null };
    let found =
        if map.len() <= FEW { map.iter().find(|(name, _)| *name == key).map(|(_, value)| value) } else { map.get(key) };
    found.unwrap_or(&Value::Null)
}

/// A field that is a text, or empty.
pub(super) fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    at(value, key).as_str().unwrap_or_default()
}

pub(super) fn items<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = (usize, &'a Value)> {
    at(value, key).as_array().into_iter().flatten().enumerate()
}
