//! Where an object stands, and how that is said.
//! What every judgement of this room comes to.

use std::time::Duration;

/// Where an object stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum State {
    /// Done.
    Ready,
    /// Not done, but what depends on it may go on.
    Unblocked,
    /// Not done.
    InProgress,
    /// It will not be done, however long one waits.
    Failed,
}

/// Where an object stands, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// State.
    pub state: State,
    /// `2/4 ready`; never empty.
    pub message: String,
    /// Causes found below it; none where it is ready.
    pub reasons: Vec<String>,
}

impl Status {
    pub(super) fn new(state: State, message: impl Into<String>) -> Self {
        Self { state, message: message.into(), reasons: Vec::new() }
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

/// A time in words.
pub(super) fn seconds(duration: Duration) -> String {
    format!("{} s", duration.as_secs())
}
