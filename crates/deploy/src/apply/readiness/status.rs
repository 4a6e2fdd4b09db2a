//! Readiness states and their messages: the result of every assessment.

use std::time::Duration;

/// Readiness state of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum State {
    /// Ready.
    Ready,
    /// Not ready, but dependents may proceed.
    Unblocked,
    /// Not ready yet.
    InProgress,
    /// Failed for good: waiting cannot fix it.
    Failed,
}

/// The condition by which a wait rule judges an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatchedCondition {
    /// The rule's conclusion.
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

/// Conclusion of a wait rule from a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConditionMeaning {
    /// The object has failed.
    Failure,
    /// The object is ready.
    Success,
    /// The object's dependents may proceed.
    Unblock,
}

/// Readiness of an object, with an explanation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// Readiness state.
    pub state: State,
    /// `2/4 ready`; never empty.
    pub message: String,
    /// Causes found below it; empty if ready.
    pub reasons: Vec<String>,
    /// The condition by which a wait rule judges it.
    pub matched: Option<Box<MatchedCondition>>,
}

impl Status {
    pub(super) fn new(state: State, message: impl Into<String>) -> Self {
        Self { state, message: message.into(), reasons: Vec::new(), matched: None }
    }

    pub(super) fn ready(message: impl Into<String>) -> Self {
        Self::new(State::Ready, message)
    }

    pub(super) fn unblocked(message: impl Into<String>) -> Self {
        Self::new(State::Unblocked, message)
    }

    pub(super) fn in_progress(message: impl Into<String>) -> Self {
        Self::new(State::InProgress, message)
    }

    pub(super) fn failed(message: impl Into<String>) -> Self {
        Self::new(State::Failed, message)
    }
}

/// A duration in words.
pub(super) fn seconds(duration: Duration) -> String {
    format!("{} s", duration.as_secs())
}
