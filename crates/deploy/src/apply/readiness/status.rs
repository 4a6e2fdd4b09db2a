//! Readiness states and their messages: the result of every assessment.

use std::time::Duration;

use pushback_events::MatchedCondition;

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
