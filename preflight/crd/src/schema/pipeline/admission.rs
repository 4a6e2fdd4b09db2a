//! What meets the server, and what comes of it: a resource's version, an object's shape after it, and all that is wrong.
//! Servers differ by their minor version.

use serde_json::Value;

use super::super::model::Schema;
use crate::path::PathSegment;

/// Where in an object something happened.
pub type Path = Vec<PathSegment>;

/// One version of a custom resource definition.
#[derive(Clone, Copy, Debug)]
pub struct Resource<'a> {
    /// The structural schema of the version.
    pub schema: &'a Schema,
    /// `spec.group`
    pub group: &'a str,
    /// The name of the version.
    pub version: &'a str,
    /// `spec.names.kind`
    pub kind: &'a str,
    /// Whether `status` is a subresource: an object is created without it, and gets it by a write of its own.
    pub status: bool,
    /// `spec.preserveUnknownFields`: nothing is pruned. Only definitions from before `apiextensions.k8s.io/v1` have it.
    pub preserve_unknown_fields: bool,
}

/// The API server that decides: which formats it knows and whether it ratchets depends on its version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Server {
    /// The server's version is 1.`minor`.
    pub minor: u32,
}

impl Server {
    /// Whether an update may leave what was invalid before as it is.
    #[must_use]
    pub fn ratchets(self) -> bool {
        self.minor >= 30
    }
}

impl Default for Server {
    fn default() -> Self {
        Self { minor: 36 }
    }
}

/// A reason why the server refuses an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaError {
    /// The value at fault; for `required` the value that is missing.
    pub path: Path,
    /// The keyword of the schema that refuses it.
    pub keyword: &'static str,
    /// What is wrong, in words.
    pub message: String,
}

/// Something that could not be decided; the object may or may not be refused for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unevaluated {
    /// The value in question.
    pub path: Path,
    /// The keyword that was not decided.
    pub keyword: &'static str,
    /// Why.
    pub reason: String,
}

/// What the server makes of an object.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Admission {
    /// The object as it is stored or served.
    pub object: Value,
    /// Fields that the schema does not name and that are gone.
    pub pruned: Vec<Path>,
    /// Nulls that were dropped where the schema neither allows null nor has a default.
    pub dropped_nulls: Vec<Path>,
    /// Values that came from a default.
    pub defaulted: Vec<Path>,
    /// Why the server refuses the object.
    pub errors: Vec<SchemaError>,
    /// What could not be decided.
    pub unevaluated: Vec<Unevaluated>,
}

impl Admission {
    /// Whether the server takes the object; `None` where it cannot be said.
    #[must_use]
    pub fn accepted(&self) -> Option<bool> {
        match (self.errors.is_empty(), self.unevaluated.is_empty()) {
            (false, _) => Some(false),
            (true, true) => Some(true),
            (true, false) => None,
        }
    }

    /// Whether anything that was given is gone or altered; defaults that fill a gap do not count.
    #[must_use]
    pub fn loses(&self) -> bool {
        !self.pruned.is_empty() || !self.dropped_nulls.is_empty()
    }

    pub(super) fn unjudged(object: &Value) -> Self {
        Self {
            object: object.clone(),
            unevaluated: vec![Unevaluated {
                path: Path::new(),
                keyword: "object",
                reason: format!("it is nested more than {MAX_OBJECT_DEPTH} levels deep"),
            }],
            ..Self::default()
        }
    }
}

/// Errors and gaps of one part of the validation.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub(super) errors: Vec<SchemaError>,
    pub(super) unevaluated: Vec<Unevaluated>,
}

impl Findings {
    pub(super) fn error(&mut self, path: &[PathSegment], keyword: &'static str, message: impl Into<String>) {
        self.errors.push(SchemaError { path: path.to_vec(), keyword, message: message.into() });
    }

    pub(super) fn unevaluated(&mut self, path: &[PathSegment], keyword: &'static str, reason: impl Into<String>) {
        self.unevaluated.push(Unevaluated { path: path.to_vec(), keyword, reason: reason.into() });
    }
}

/// Objects nested deeper than this are not judged.
pub(super) const MAX_OBJECT_DEPTH: usize = 256;
