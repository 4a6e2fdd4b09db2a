//! What events carry for renderers that show a run in another tool's words. Not part of the JSON form.

use pushback_preflight::{Finding, ObjectRef};
use serde_json::Value;

use super::{Awaited, Millis};

/// The server that a run works on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Its address, without credentials.
    pub server: String,
    /// Names of its nodes, the oldest first; empty if they may not be listed.
    pub nodes: Vec<String>,
}

/// Why a run ended without success.
#[derive(Clone, Debug, PartialEq)]
pub enum EndCause {
    /// The user declined.
    Declined,
    /// The input ended before an answer.
    NoAnswer,
    /// Objects belong to other apps.
    Ownership(Vec<Owned>),
    /// Waiting took too long.
    TimedOut {
        /// The limit.
        after: Millis,
    },
    /// The server or a rule refuses.
    Refused(Vec<Finding>),
}

/// An object of another app.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owned {
    /// The object.
    pub object: ObjectRef,
    /// The app, and the namespace of its record; `None` if only its label is known.
    pub app: Option<(String, String)>,
    /// The label that says so, `key=value`; empty if a record does.
    pub label: String,
}

/// Both sides of a change as a tool sees them that applies whole objects: what it applied last, and what it applies
/// now, each with the metadata of the live object.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Whole {
    /// The old side; `None` for an object that does not exist.
    pub old: Option<Value>,
    /// The new side; `None` for an object that is deleted.
    pub new: Option<Value>,
    /// How many changes come before it on the longest way to it.
    pub wave: usize,
    /// Creation time of the live object, RFC 3339; empty if there is none.
    pub created: String,
    /// What is done differently: `fallback on replace`, `orphan`.
    pub strategy: String,
    /// What is waited for, if anything.
    pub awaited: Option<Awaited>,
    /// Readiness of the live object, `ok`, `ongoing` or `fail`; empty if there is none.
    pub state: String,
    /// What it waits for.
    pub state_message: String,
}
