//! One kind of review that the server answers: its names, its replies, and how they are made. Everything else about the
//! server is common to all kinds.

use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::StatusCode;

use super::notice::Notice;

/// Names and texts of one kind of review.
#[derive(Debug)]
pub(super) struct ReviewKind {
    /// `kind` of requests.
    pub(super) name: &'static str,
    /// Start of the log line about the port: `conversions are answered on …`.
    pub(super) title: &'static str,
    /// Past participle of the log line about a request without an answer: `converted`.
    pub(super) done: &'static str,
    /// Start of the names of all metrics.
    pub(super) prefix: &'static str,
    /// Help of the metric that counts requests.
    pub(super) requests: &'static str,
    /// Labels of the requests that got an answer of their kind.
    pub(super) results: &'static [&'static str],
    /// Counters of this kind alone.
    pub(super) counters: &'static [Counter],
    /// Name and help of the metric that counts how often files were put to use.
    pub(super) generation: (&'static str, &'static str),
    /// Name of the files in metrics: `plans`.
    pub(super) files: &'static str,
}

/// A counter of one kind of review.
#[derive(Debug)]
pub(super) struct Counter {
    pub(super) name: &'static str,
    pub(super) help: &'static str,
    /// Labels of its samples; a single empty text for a counter without labels.
    pub(super) labels: &'static [&'static str],
}

/// An increment of a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Count {
    /// Index of the counter.
    pub(super) counter: usize,
    /// Index of its label.
    pub(super) label: usize,
    pub(super) by: u64,
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It got an answer of its kind: the index of a result.
    Answered(usize),
    /// It was not a review.
    Malformed,
    TooLarge,
    TimedOut,
    /// The client closed the connection, or sent no body.
    Broken,
    Panicked,
}

/// The answer to a request, and what is counted and logged about it.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) outcome: Outcome,
    pub(super) status: StatusCode,
    pub(super) body: Vec<u8>,
    pub(super) counts: Vec<Count>,
    /// Reason of a failed request, for the log.
    pub(super) failure: Option<String>,
    /// An event of its own.
    pub(super) notice: Option<Notice>,
}

impl Reply {
    /// Text instead of a review, for a client that does not send one.
    pub(super) fn text(outcome: Outcome, status: StatusCode, reason: String) -> Self {
        let body = format!("{reason}\n").into_bytes();
        Self { outcome, status, body, counts: Vec::new(), failure: Some(reason), notice: None }
    }

    /// A review.
    pub(super) fn review(outcome: Outcome, body: Vec<u8>) -> Self {
        Self { outcome, status: StatusCode::OK, body, counts: Vec::new(), failure: None, notice: None }
    }
}

/// The reply that is sent if the deadline passes before the work ends.
#[derive(Clone, Debug, Default)]
pub(super) struct OverdueReply(Arc<Mutex<Option<Reply>>>);

impl OverdueReply {
    pub(super) fn set(&self, reply: Reply) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(reply);
    }

    pub(super) fn take(&self) -> Option<Reply> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Answers reviews of one kind, by the files that it was made of.
pub(super) trait Reviews: Debug + Send + Sync {
    /// Names and texts.
    fn kind(&self) -> &'static ReviewKind;

    /// Time for a request with this query, from its head until the answer is ready.
    fn deadline(&self, query: &str) -> Duration;

    /// Most requests that are worked on at once, if fewer than processors.
    fn most_at_once(&self) -> usize {
        usize::MAX
    }

    /// Answers the body of a request. May take long: it never runs on a thread that serves connections.
    fn reply(&self, body: Vec<u8>, overdue: &OverdueReply) -> Reply;

    /// The event of being put to use.
    fn in_use(&self, generation: u64) -> Notice;
}
