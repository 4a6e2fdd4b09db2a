//! What events carry for renderers that show a run in another tool's words. Not part of the JSON form.

use std::sync::Arc;

use pushback_objects::ObjectRef;
use pushback_preflight::Operation;
use serde_json::Value;

use super::Awaited;

/// The server that a run works on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Its address, without credentials.
    pub server: String,
    /// Names of its nodes, the oldest first; empty if they may not be listed.
    pub nodes: Vec<String>,
}

/// An object that is waited for, as it was seen last.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SeenObject {
    /// The object.
    pub live: Option<Arc<Value>>,
    /// The condition by which a wait rule judges it.
    pub matched: Option<Box<MatchedCondition>>,
    /// ReplicaSets and Pods below it, while it is waited for.
    pub below: Vec<Arc<Value>>,
}

/// The condition of an object by which a wait rule judges it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatchedCondition {
    /// What the rule takes it for.
    pub meaning: ConditionMeaning,
    /// `type`.
    pub name: String,
    /// `status`.
    pub status: String,
    /// `reason`; can be empty.
    pub reason: String,
    /// `message`, shortened; can be empty.
    pub message: String,
}

/// What a condition says of its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConditionMeaning {
    /// It has failed.
    Failure,
    /// It is ready.
    Success,
    /// Its dependents may proceed.
    Unblock,
}

/// What the server said of a write that it refuses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// The object.
    pub object: ObjectRef,
    /// The write.
    pub operation: Operation,
    /// The server's words, without the object's name before them.
    pub message: String,
    /// The server's reason, such as `Invalid`.
    pub reason: String,
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
    /// The live object, unless it has values that are masked.
    pub live: Option<Arc<Value>>,
    /// Whether the live object is ready as far as the run can tell.
    pub is_ready: bool,
}
