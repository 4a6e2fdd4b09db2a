//! How far one object has come. Each state carries only the data that exists in it: an awaited object has been written,
//! and a pending one has no history.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use crate::apply::readiness::{ConditionAges, MatchedCondition, Troubles};

/// Interval between reads of an object that no watch covers.
const LOOK: Duration = Duration::from_secs(2);

/// Time limit for such a read; the request has a limit of its own.
const ANSWER: Duration = Duration::from_secs(600);

/// State of one object in a run.
#[derive(Clone, Debug, PartialEq)]
pub enum Progress {
    /// Not started.
    Pending,
    /// A write is in flight.
    Writing(Writing),
    /// Written, and not ready or not gone yet.
    Waiting(Box<Waiting>),
    /// Its deletion was requested and is not waited for.
    Going,
    /// Ready, gone, or written without a wait.
    Done,
    /// The write failed, with this message.
    WriteFailed(String),
    /// Written, then reached a terminal failure.
    NeverReady(FailedWait),
    /// Not started because of a failed dependency, named in the message.
    Skipped(String),
    /// Its write was being retried when the run stopped.
    Stopped(String),
    /// Not ready or gone within its time limit.
    TimedOut(FailedWait),
}

/// A write under way.
#[derive(Clone, Debug, PartialEq)]
pub struct Writing {
    pub(super) started: Instant,
    pub(super) heard: PendingUpdates,
}

/// What the watch reported while the write's response was pending.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct PendingUpdates {
    /// Latest state of the object.
    pub(super) object: Option<Arc<Value>>,
    /// Uid of a deleted object.
    pub(super) gone: Option<String>,
}

/// A wait under way.
#[derive(Clone, Debug, PartialEq)]
pub struct Waiting {
    /// When the write was answered.
    pub(super) since: Instant,
    /// The generation that the write returned; 0 if nothing was written.
    pub(super) generation: i64,
    /// Latest assessment.
    pub(super) stage: Stage,
    /// When to assess it again if nothing is reported before.
    pub(super) due: Option<Instant>,
    pub(super) coverage: Coverage,
    /// Since when the conditions of its wait rule have held.
    pub(super) ages: ConditionAges,
    /// Since when its Pods have been failing.
    pub(super) troubles: Troubles,
    /// Whether events about it are being watched.
    pub(super) explained: bool,
    /// Reads of a CRD's objects through each served version.
    pub(super) reads: VersionReads,
}

/// Reads of the objects of a CRD that a webhook converts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum VersionReads {
    /// The CRD is not established yet.
    NotStarted,
    /// Its backend is not ready yet.
    Following,
    /// Under way; with the message of the last ones.
    InFlight(String),
    /// A version could not be read.
    Failed {
        /// The version, and the reason that the server gave.
        message: String,
        /// When the answer came.
        at: Instant,
    },
    /// All versions can be read.
    Done,
}

/// Latest assessment of an awaited object.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Stage {
    /// Not assessed yet.
    Unjudged,
    /// Not ready, and waited for.
    InProgress(Explanation),
    /// A claim without a consumer: waited for as long as one may still appear.
    Idle(Explanation),
}

/// How changes of an object are noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coverage {
    /// A watch covers it.
    Watched,
    /// No watch covers it: it is read by itself, not before this time.
    Polled(Instant),
}

/// Message and causes last reported for an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Explanation {
    pub(super) message: String,
    pub(super) reasons: Vec<String>,
    pub(super) matched: Option<Box<MatchedCondition>>,
}

/// A wait that ended in failure or timeout.
#[derive(Clone, Debug, PartialEq)]
pub struct FailedWait {
    pub(super) explanation: Explanation,
    pub(super) since: Instant,
}

impl Stage {
    pub(super) fn explanation(&self) -> Option<&Explanation> {
        match self {
            Self::Unjudged => None,
            Self::InProgress(explanation) | Self::Idle(explanation) => Some(explanation),
        }
    }
}

impl Waiting {
    /// Starts a wait now.
    pub(super) fn new(generation: i64, coverage: Coverage) -> Self {
        Self {
            since: Instant::now(),
            generation,
            stage: Stage::Unjudged,
            due: None,
            coverage,
            ages: ConditionAges::default(),
            troubles: Troubles::default(),
            explained: false,
            reads: VersionReads::NotStarted,
        }
    }

    /// The explanation last reported.
    pub(super) fn explanation(&self) -> Option<&Explanation> {
        self.stage.explanation()
    }

    pub(super) fn is_idle(&self) -> bool {
        matches!(self.stage, Stage::Idle(_))
    }

    /// Makes the object due for assessment because something about it may have changed.
    pub(super) fn hear(&mut self) {
        self.due = Some(Instant::now());
    }

    /// Switches to reading the object by itself, since no watch covers it.
    pub(super) fn start_polling(&mut self) {
        if self.coverage == Coverage::Watched {
            self.coverage = Coverage::Polled(Instant::now());
        }
    }

    /// Whether the object is due to be read now; if so, blocks further reads until the response.
    pub(super) fn asks(&mut self, now: Instant) -> bool {
        let is_due = matches!(self.coverage, Coverage::Polled(not_before) if now >= not_before);
        if is_due {
            self.coverage = Coverage::Polled(now + ANSWER);
        }
        is_due
    }

    /// Records that a read was answered.
    pub(super) fn answered(&mut self) {
        if self.coverage != Coverage::Watched {
            self.coverage = Coverage::Polled(Instant::now() + LOOK);
        }
    }
}
