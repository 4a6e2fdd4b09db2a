//! Reasons why a definition is rejected, and access to its parts, which may be of any type.

use std::fmt;

use serde_json::Value;

use super::super::pipeline::{Path, Server};
use super::super::releases;
use crate::path::PathSegment;

/// A reason why the API server rejects a definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Path in the document.
    pub path: Path,
    /// Description of the problem.
    pub message: String,
    /// Whether the server certainly rejects it; otherwise that is unknown.
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

/// Collects problems, with the current path.
#[derive(Debug)]
pub(super) struct Collector {
    pub(super) path: Path,
    pub(super) problems: Vec<Problem>,
    pub(super) server: Server,
}

impl Collector {
    /// Adds a problem if the server is older than a field that is set.
    pub(super) fn known_field(&mut self, key: &str) {
        let minor = self.server.minor;
        if let Some(since) = releases::of_field(key).filter(|since| *since > minor) {
            self.at(
                key,
                format!("needs Kubernetes 1.{since}; 1.{minor} rejects the field, or removes it without an error"),
            );
        }
    }

    pub(super) fn below(&mut self, segment: impl Into<PathSegment>, look: impl FnOnce(&mut Self)) {
        self.path.push(segment.into());
        look(self);
        self.path.pop();
    }

    pub(super) fn here(&mut self, message: impl Into<String>) {
        self.problems.push(Problem { path: self.path.clone(), message: message.into(), is_certain: true });
    }

    /// Adds a problem for which the server may reject the definition.
    pub(super) fn perhaps(&mut self, message: String) {
        self.problems.push(Problem { path: self.path.clone(), message, is_certain: false });
    }

    pub(super) fn at(&mut self, key: &str, message: impl Into<String>) {
        self.below(key, |found| found.here(message));
    }
}

/// Maps with at most this many keys are scanned; most schemas are that small.
pub(super) const FEW: usize = 8;

/// A field; null counts as absent.
pub(super) fn field<'a>(value: &'a Value, key: &str) -> Option<&'a Value> {
    Some(at(value, key)).filter(|value| !value.is_null())
}

/// The value at a key; null if it is absent.
pub(super) fn at<'a>(value: &'a Value, key: &str) -> &'a Value {
    let Value::Object(map) = value else { return &Value::Null };
    let found =
        if map.len() <= FEW { map.iter().find(|(name, _)| *name == key).map(|(_, value)| value) } else { map.get(key) };
    found.unwrap_or(&Value::Null)
}

/// A string field; empty if it is absent or of another type.
pub(super) fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    at(value, key).as_str().unwrap_or_default()
}

pub(super) fn items<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = (usize, &'a Value)> {
    at(value, key).as_array().into_iter().flatten().enumerate()
}
