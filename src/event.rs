//! The events that the engine emits while it works; the one contract between it and every renderer.
//! Their JSON form, one object a line, is stable.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use pushback_preflight::judge::{Outcome as PreflightOutcome, RuleOutcome};
use pushback_preflight::{Finding, ObjectRef, Operation, Position, words};
use serde::Serialize;

use crate::manifest::excerpt::Excerpt;

/// Version of the lines.
pub const SCHEMA_VERSION: u32 = 1;

words! {
    /// How a run ended.
    pub enum RunOutcome {
        /// Everything is done.
        Succeeded = "succeeded",
        /// There was nothing to do.
        Unchanged = "unchanged",
        /// `diff`: there is something to do.
        Changes = "changes",
        /// `check`: no rule refuses.
        Passed = "passed",
        /// `check`: no rule ran.
        Unchecked = "unchecked",
        /// Preflight refused, and nothing was written.
        Refused = "refused",
        /// Another run holds the lock.
        Locked = "locked",
        /// A signal ended it.
        Interrupted = "interrupted",
        /// Time was up.
        TimedOut = "timed out",
        /// An error ended it, or something failed.
        Failed = "failed",
    }
}

words! {
    /// How a change ended.
    pub enum ChangeOutcome {
        /// It is written.
        Ok = "ok",
        /// It could not be written.
        Failed = "failed",
        /// It was not tried.
        Skipped = "skipped",
        /// The deletion is accepted, and the object is still there.
        Requested = "requested",
    }
}

words! {
    /// What an object is waited for.
    pub enum Awaited {
        /// That it works.
        Ready = "ready",
        /// That it is gone.
        Deleted = "deleted",
    }
}

words! {
    /// How waiting for an object ended.
    pub enum WaitOutcome {
        /// It is as it was waited for.
        Ok = "ok",
        /// It never will be.
        Failed = "failed",
        /// It was not in time.
        Timeout = "timeout",
        /// The run ended before.
        Interrupted = "interrupted",
    }
}

words! {
    /// How far a run came with an object that it leaves unfinished.
    pub enum Unfinished {
        /// Nothing was written.
        NotApplied = "not applied",
        /// The write was cut off.
        Unknown = "unknown",
        /// It could not be written, or will not become ready.
        Failed = "failed",
        /// It is written.
        NotReady = "not ready",
        /// Its deletion was requested.
        NotDeleted = "not deleted",
    }
}

words! {
    /// What a diagnostic is about.
    pub enum DiagnosticCode {
        /// What the run is doing before its plan and its verdict are known.
        Planning = "planning",
        /// Somebody else holds the lock.
        LockWaiting = "lock-waiting",
        /// There is no app of this name.
        NoApp = "no-app",
        /// A program is about to be asked for credentials.
        CredentialPlugin = "credential-plugin",
        /// Why something is not ready cannot be said.
        ReasonsUnknown = "reasons-unknown",
        /// Experiments were written to files.
        ExperimentsWritten = "experiments-written",
        /// What experiments have left.
        Left = "left",
        /// How an experiment goes.
        Experiment = "experiment",
    }
}

/// One thing that happened. `seq` and `time` are added when it is written.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all_fields = "camelCase")]
pub enum Event {
    /// The run starts: the cluster answers. Only `retry`, `warning` and `diagnostic` can come before.
    #[serde(rename = "run.start")]
    RunStart {
        /// `apply`, `delete`, `diff`, `check`.
        command: String,
        /// Version of the tool.
        version: String,
        /// App name.
        app: String,
        /// Namespace of the app's record.
        namespace: String,
        /// The cluster, as people know it.
        cluster: String,
        /// Id of the run.
        run: String,
    },
    /// The change set is known.
    #[serde(rename = "plan")]
    Plan {
        /// Numbers of changes.
        counts: Counts,
        /// Every change, noops left out.
        changes: Vec<PlannedLine>,
        /// Time since the start.
        elapsed: Millis,
    },
    /// A finding.
    #[serde(rename = "finding")]
    Finding {
        /// The finding.
        finding: Box<Finding>,
        /// The lines of the input that it is about, for people.
        #[serde(skip)]
        excerpt: Option<Box<Excerpt>>,
    },
    /// Preflight is done.
    #[serde(rename = "preflight")]
    Preflight {
        /// What all rules came to.
        outcome: PreflightOutcome,
        /// Each rule, in registry order.
        rules: Vec<RuleLine>,
        /// Time that it took.
        elapsed: Millis,
    },
    /// A write starts.
    #[serde(rename = "change.start")]
    ChangeStart {
        /// Object.
        object: ObjectRef,
        /// What is done.
        operation: Operation,
    },
    /// A write ended.
    #[serde(rename = "change.done")]
    ChangeDone {
        /// Object.
        object: ObjectRef,
        /// What was done.
        operation: Operation,
        /// How it ended.
        outcome: ChangeOutcome,
        /// Why it failed or was skipped; how it was done where that is not the usual way.
        #[serde(skip_serializing_if = "String::is_empty")]
        message: String,
        /// Time that it took.
        elapsed: Millis,
    },
    /// What an object that is waited for looks like; sent when it changes.
    #[serde(rename = "wait.progress")]
    WaitProgress {
        /// Object.
        object: ObjectRef,
        /// What is waited for.
        wanted: Awaited,
        /// Where it stands: `2/4 ready`.
        message: String,
        /// Causes found below it: `pod web-6c9f: CrashLoopBackOff (exit 1)`.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        reasons: Vec<String>,
        /// Since its write.
        elapsed: Millis,
    },
    /// Waiting for an object ended.
    #[serde(rename = "wait.done")]
    WaitDone {
        /// Object.
        object: ObjectRef,
        /// What was waited for.
        wanted: Awaited,
        /// How it ended.
        outcome: WaitOutcome,
        /// The last word on it.
        #[serde(skip_serializing_if = "String::is_empty")]
        message: String,
        /// Causes found below it.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        reasons: Vec<String>,
        /// Since its write.
        elapsed: Millis,
    },
    /// A request is sent again.
    #[serde(rename = "retry")]
    Retry {
        /// What was tried.
        request: String,
        /// Why it is tried again.
        reason: String,
        /// The attempt that failed, from 1.
        attempt: u32,
        /// How long it waits.
        delay: Millis,
    },
    /// Something that the user should know: of the input, of the server.
    #[serde(rename = "warning")]
    Warning {
        /// Stable word: `yaml-octal`, `server`, `lock-waiting`, `stripped-field`…
        code: String,
        /// One sentence.
        message: String,
        /// Object that it is about.
        #[serde(skip_serializing_if = "Option::is_none")]
        object: Option<ObjectRef>,
        /// Place that it is about.
        #[serde(skip_serializing_if = "Option::is_none")]
        position: Option<Position>,
    },
    /// A fact about how the run goes that needs no action.
    #[serde(rename = "diagnostic")]
    Diagnostic {
        /// What it is about.
        code: DiagnosticCode,
        /// One sentence.
        message: String,
    },
    /// The run is over. Always the last event.
    #[serde(rename = "run.end")]
    RunEnd {
        /// How it ended.
        outcome: RunOutcome,
        /// The process' exit code.
        exit_code: u8,
        /// What was really done.
        done: Counts,
        /// The error that ended it; empty where none did.
        #[serde(skip_serializing_if = "String::is_empty")]
        error: String,
        /// What the user can do next.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        hints: Vec<String>,
        /// Objects that are not done or not ready, with the reason.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        unfinished: Vec<UnfinishedLine>,
        /// Requests sent to the cluster; 0 where it does not count.
        requests: u64,
        /// Time since the start.
        elapsed: Millis,
    },
}

/// Whole milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct Millis(pub u64);

impl From<Duration> for Millis {
    fn from(duration: Duration) -> Self {
        Self(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
    }
}

/// Numbers of changes by operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Counts {
    /// Creates.
    pub create: usize,
    /// Updates.
    pub update: usize,
    /// Replaces.
    pub replace: usize,
    /// Deletes.
    pub delete: usize,
    /// Unchanged.
    pub noop: usize,
    /// Must exist already.
    pub exists: usize,
    /// Deletions that were requested, of objects that are still there.
    #[serde(skip_serializing_if = "is_zero")]
    pub deleting: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks with a reference")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

impl Counts {
    /// Counts one.
    pub fn add(&mut self, operation: Operation) {
        *match operation {
            Operation::Create => &mut self.create,
            Operation::Update => &mut self.update,
            Operation::Replace => &mut self.replace,
            Operation::Delete => &mut self.delete,
            Operation::Noop => &mut self.noop,
            Operation::Exists => &mut self.exists,
        } += 1;
    }

    /// Changes that write.
    #[must_use]
    pub fn writes(&self) -> usize {
        self.create + self.update + self.replace + self.delete + self.deleting
    }

    /// An object whose deletion was requested is gone.
    pub fn gone(&mut self) {
        self.deleting = self.deleting.saturating_sub(1);
        self.delete += 1;
    }
}

/// One change as plans show it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlannedLine {
    /// Object.
    pub object: ObjectRef,
    /// What will be done.
    pub operation: Operation,
    /// Where it stands in the input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<Position>,
    /// Field changes, Secrets masked.
    pub fields: Vec<FieldLine>,
    /// The same as unified text, Secrets masked; only where asked for.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// Remarks: `not verified by the server: …`, `takes over spec.replicas from kubectl-scale`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// One field's change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FieldLine {
    /// Path.
    pub path: String,
    /// Before, masked, one line; `None` where the field is new.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub old: Option<String>,
    /// After; `None` where the field goes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new: Option<String>,
}

/// One rule's result.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RuleLine {
    /// Rule.
    pub name: String,
    /// What it came to.
    pub outcome: RuleOutcome,
    /// Breaking findings.
    pub breaking: usize,
    /// Unknown findings.
    pub unknown: usize,
    /// Changes worth knowing.
    pub changes: usize,
    /// Waived findings.
    pub waived: usize,
    /// Why it was skipped, or which facts it could not get.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
}

/// One object that a run leaves unfinished.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UnfinishedLine {
    /// Object.
    pub object: ObjectRef,
    /// How far the run came with it.
    pub state: Unfinished,
    /// Why.
    pub message: String,
    /// Causes found below it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
    /// Since its write, or since it was waited for where nothing was written; left out where it did not come so far.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elapsed: Option<Millis>,
}

/// Where the engine sends its events. Cheap to clone; sending never blocks and never fails.
#[derive(Clone, Debug)]
pub struct Events {
    sender: std::sync::mpsc::Sender<Event>,
    sent: Arc<AtomicU64>,
}

impl Events {
    /// A pair of sender and receiver.
    #[must_use]
    pub fn channel() -> (Self, std::sync::mpsc::Receiver<Event>) {
        let (sender, receiver) = std::sync::mpsc::channel();
        (Self { sender, sent: Arc::default() }, receiver)
    }

    /// Sends an event; without a receiver it is dropped.
    pub fn send(&self, event: Event) {
        if self.sender.send(event).is_ok() {
            self.sent.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// How many events were sent, by all clones together.
    #[must_use]
    pub fn sent(&self) -> u64 {
        self.sent.load(Ordering::SeqCst)
    }
}
