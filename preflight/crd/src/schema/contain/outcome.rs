//! What a search for a value comes to: a value, the proof that there is none, or what stood in the way of either.

use serde_json::Value;

/// What a search came to.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Outcome {
    /// A value that meets all constraints.
    Found(Value),
    /// Proved: there is none.
    Empty,
    /// Neither; the keyword that stood in the way.
    Unknown(String),
}
