//! Input and result of a request: the version of a resource, the object after it, and all errors. Servers are told
//! apart by their minor version.

use serde_json::Value;

use super::super::model::{CelRule, Schema};
use super::super::releases;
use crate::path::PathSegment;

/// Path of a value in an object.
pub type Path = Vec<PathSegment>;

/// One version of a custom resource definition.
#[derive(Clone, Copy, Debug)]
pub struct Resource<'a> {
    /// The version's structural schema.
    pub schema: &'a Schema,
    /// `spec.group` of the definition.
    pub group: &'a str,
    /// Name of the version, such as `v1`.
    pub version: &'a str,
    /// `spec.names.kind` of the definition.
    pub kind: &'a str,
    /// Whether `status` is a subresource: an object is created without it, and a separate write sets it.
    pub status: bool,
    /// The scale subresource, whose fields the server validates on every write.
    pub scale: Option<&'a Value>,
    /// `spec.preserveUnknownFields`: nothing is pruned. Only definitions older than `apiextensions.k8s.io/v1` have it.
    pub preserve_unknown_fields: bool,
}

/// The API server that admits the object. Its version decides which formats it knows and whether it ratchets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Server {
    /// The server's minor version: 36 for 1.36.
    pub minor: u32,
}

impl Server {
    /// Whether an update may leave values that were invalid before as they are (validation ratcheting).
    #[must_use]
    pub fn ratchets(self) -> bool {
        self.minor >= releases::RATCHETING
    }
}

impl Default for Server {
    fn default() -> Self {
        Self { minor: 36 }
    }
}

/// A reason why the server rejects an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaError {
    /// Path of the invalid value; for `required`, of the missing value.
    pub path: Path,
    /// The violated keyword of the schema.
    pub keyword: &'static str,
    /// Description of the error.
    pub message: String,
    /// The CEL rule that the object breaks, if it is that.
    pub rule: Option<String>,
}

/// A check that could not be decided: the server may or may not reject the object for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unevaluated {
    /// Path of the value in question.
    pub path: Path,
    /// The keyword that could not be evaluated.
    pub keyword: &'static str,
    /// Why it could not be evaluated.
    pub reason: String,
}

/// The server's treatment of an object.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Admission {
    /// The object as stored or served.
    pub object: Value,
    /// Fields that were pruned because the schema does not name them.
    pub pruned: Vec<Path>,
    /// Nulls that were dropped because the schema neither allows null nor has a default.
    pub dropped_nulls: Vec<Path>,
    /// Values that were filled in from a default.
    pub defaulted: Vec<Path>,
    /// Why the server rejects the object; empty if it is valid.
    pub errors: Vec<SchemaError>,
    /// Errors of embedded resources in status, which a write of the status alone does not meet and every other one does.
    pub status_errors: Vec<SchemaError>,
    /// Checks that could not be decided.
    pub unevaluated: Vec<Unevaluated>,
}

impl Admission {
    /// Returns the errors of a write of the object or of its status.
    pub fn write_errors(&self) -> impl Iterator<Item = &SchemaError> {
        self.errors.iter().chain(&self.status_errors)
    }

    /// Whether the server accepts the object; `None` if that cannot be decided.
    #[must_use]
    pub fn accepted(&self) -> Option<bool> {
        match (self.errors.is_empty(), self.unevaluated.is_empty()) {
            (false, _) => Some(false),
            (true, true) => Some(true),
            (true, false) => None,
        }
    }

    /// Whether any given data was lost or altered; defaults for absent fields do not count.
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

/// Errors and undecided checks of one part of the validation.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub(super) errors: Vec<SchemaError>,
    pub(super) unevaluated: Vec<Unevaluated>,
}

impl Findings {
    pub(super) fn error(&mut self, path: &[PathSegment], keyword: &'static str, message: impl Into<String>) {
        self.errors.push(SchemaError { path: path.to_vec(), keyword, message: message.into(), rule: None });
    }

    /// The error of a CEL rule.
    pub(super) fn broken_rule(&mut self, path: &[PathSegment], rule: &CelRule, message: String) {
        let keyword = "x-kubernetes-validations";
        self.errors.push(SchemaError { path: path.to_vec(), keyword, message, rule: Some(rule.rule.clone()) });
    }

    pub(super) fn unevaluated(&mut self, path: &[PathSegment], keyword: &'static str, reason: impl Into<String>) {
        self.unevaluated.push(Unevaluated { path: path.to_vec(), keyword, reason: reason.into() });
    }
}

/// Maximum nesting of objects that are judged.
pub(super) const MAX_OBJECT_DEPTH: usize = 256;
