//! What events carry for renderers that show a run in another tool's words. Not part of the JSON form.

use std::sync::Arc;

use serde_json::Value;

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
