//! Why a write did not come about: what the engine tells of it, and what it does with those that depend on it, follows
//! from this.

use pushback_preflight::judge::Refused;

use crate::app::lease::LockLost;
use crate::cluster::ClusterError;

/// Why a write failed.
#[derive(Debug)]
pub(in crate::apply) enum Failure {
    /// The server refused, or nothing helped in time.
    Cluster(ClusterError),
    /// The object is no longer what was planned for.
    Changed(String),
    /// A second look refuses it.
    Refused { message: String, refused: Box<Refused> },
    /// It was done, and came to something else than was judged.
    Differs(String),
    /// The old object does not go.
    Stuck(String),
    /// The run was stopped before the next attempt.
    Stopped(String),
    /// The run was stopped before the first.
    NotSent,
    /// The lock is lost, or cannot be told to be held.
    LockLost,
}

impl Failure {
    pub(in crate::apply) fn message(&self) -> String {
        match self {
            Self::Cluster(error) => error.message.clone(),
            Self::Changed(message)
            | Self::Refused { message, .. }
            | Self::Differs(message)
            | Self::Stuck(message)
            | Self::Stopped(message) => message.clone(),
            Self::NotSent => String::new(),
            Self::LockLost => LockLost.to_string(),
        }
    }
}
