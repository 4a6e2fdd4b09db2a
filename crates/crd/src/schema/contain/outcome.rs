//! The result of a search for a value: a value, the proof that there is none, or what prevented either.

use serde_json::Value;

/// The result of a search.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Outcome {
    /// A value that meets all constraints.
    Found(Value),
    /// Proved: there is no such value.
    Empty,
    /// Neither; the keyword that prevented an answer.
    Unknown(String),
}
