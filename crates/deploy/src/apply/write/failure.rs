//! Why a write failed. It determines what the engine reports, and what it does with the dependents.

use pushback_app::lease::LockLost;
use pushback_cluster::{ALREADY_EXISTS, ClusterError, ErrorKind};
use pushback_preflight::judge::Refused;

use crate::plan::stored::StoredDifference;

/// Why a write failed.
#[derive(Debug)]
pub(in crate::apply) enum Failure {
    /// The cluster refused, or the error lasted to the time limit.
    Cluster(ClusterError),
    /// The server has refused it in a dry run: its words, and its reason.
    RefusedBefore(String, String),
    /// The object has changed since planning.
    Changed(String),
    /// Somebody else has created it since planning: what the server calls it.
    Taken(String),
    /// A second look refused the change.
    Refused { message: String, refused: Box<Refused> },
    /// The write succeeded, and the object is not what was judged.
    Differs { message: String, differences: Vec<StoredDifference> },
    /// The old object is not going away.
    Stuck(String),
    /// The run was stopped before another attempt.
    Stopped(String),
    /// The run was stopped before the first attempt.
    NotSent,
    /// The lock is lost, or cannot be confirmed.
    LockLost,
}

impl Failure {
    /// A difference without the fields that differ.
    pub(in crate::apply) fn differs(message: String) -> Self {
        Self::Differs { message, differences: Vec::new() }
    }

    pub(in crate::apply) fn message(&self) -> String {
        match self {
            Self::Cluster(error) => error.message.clone(),
            Self::RefusedBefore(message, _)
            | Self::Changed(message)
            | Self::Refused { message, .. }
            | Self::Differs { message, .. }
            | Self::Stuck(message)
            | Self::Stopped(message) => message.clone(),
            Self::Taken(name) => {
                format!("somebody else has created it since the plan was made: {name} already exists")
            }
            Self::NotSent => String::new(),
            Self::LockLost => LockLost.to_string(),
        }
    }

    /// Whether only a change of the input can help.
    pub(in crate::apply) fn is_permanent(&self) -> bool {
        match self {
            Self::Cluster(error) => matches!(error.kind, ErrorKind::Invalid | ErrorKind::TooLarge),
            Self::RefusedBefore(_, reason) => reason == "Invalid",
            _ => false,
        }
    }

    /// The server's reason; empty if it is not the server's failure.
    pub(in crate::apply) fn reason(&self) -> &str {
        match self {
            Self::Cluster(error) => &error.reason,
            Self::RefusedBefore(_, reason) => reason,
            Self::Taken(_) => ALREADY_EXISTS,
            _ => "",
        }
    }
}
