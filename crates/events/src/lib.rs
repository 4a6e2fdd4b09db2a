//! The events that the engine emits: the only contract between it and the renderers.
//! Their JSON form, one object per line, is stable.

pub mod exit;
mod failure;
mod logs;
pub mod stop;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

use pushback_crd::words;
use pushback_manifest::excerpt::Excerpt;
use pushback_objects::{Finding, ObjectRef, Position};
use pushback_preflight::Operation;
use pushback_preflight::default_set::LeftOut;
use pushback_preflight::judge::{Outcome as PreflightOutcome, RuleOutcome, RuleResult};
use pushback_preflight::waiver::BroadWaiver;
use serde::{Deserialize, Serialize};

pub use failure::{AppRef, OwnedObject, RunFailure, UnableRule};
pub use logs::{FailedContainer, LogEvent, LogPart, LogSource};

/// Version of the JSON form.
pub const SCHEMA_VERSION: u32 = 1;

words! {
    /// How a run ended.
    pub enum RunOutcome {
        /// Every change was made, and every awaited object is ready.
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
        /// A saved plan no longer holds, and nothing was written.
        Stale = "stale",
        /// Another run holds the lock.
        Locked = "locked",
        /// A signal ended it.
        Interrupted = "interrupted",
        /// A timeout expired.
        TimedOut = "timed out",
        /// An error ended it, or a change failed.
        Failed = "failed",
    }
}

words! {
    /// How a change ended.
    pub enum ChangeOutcome {
        /// The write succeeded.
        Ok = "ok",
        /// The write failed.
        Failed = "failed",
        /// The write was not attempted.
        Skipped = "skipped",
        /// The deletion is accepted, but the object still exists.
        Requested = "requested",
    }
}

words! {
    /// The state that an object is waited for.
    pub enum Awaited {
        /// The object is ready.
        Ready = "ready",
        /// The object no longer exists.
        Deleted = "deleted",
    }
}

words! {
    /// How waiting for an object ended.
    pub enum WaitOutcome {
        /// The object reached the awaited state.
        Ok = "ok",
        /// The object will never reach it.
        Failed = "failed",
        /// The object did not reach it in time.
        Timeout = "timeout",
        /// The run ended first.
        Interrupted = "interrupted",
    }
}

words! {
    /// How far a run got with an object that it leaves unfinished.
    pub enum Unfinished {
        /// Nothing was written.
        NotApplied = "not applied",
        /// The write was interrupted: it may or may not have taken effect.
        Unknown = "unknown",
        /// The write failed, or the object will not become ready.
        Failed = "failed",
        /// Written, but not ready.
        NotReady = "not ready",
        /// Its deletion was requested, but it still exists.
        NotDeleted = "not deleted",
    }
}

words! {
    /// What a diagnostic is about.
    #[non_exhaustive]
    pub enum DiagnosticCode {
        /// What the run is doing before its plan and its verdict are known.
        Planning = "planning",
        /// A folder or chart was rendered, or the name of an artifact was resolved to a digest.
        Rendered = "rendered",
        /// Another run holds the lock.
        LockWaiting = "lock-waiting",
        /// No app has this name.
        NoApp = "no-app",
        /// A group has no app.
        NoGroup = "no-group",
        /// Only a part of the app is deleted.
        PartlyDeleted = "partly-deleted",
        /// A credential plugin is about to run.
        CredentialPlugin = "credential-plugin",
        /// The cause of an object not being ready cannot be determined.
        ReasonsUnknown = "reasons-unknown",
        /// A plan was written to a file.
        PlanSaved = "plan-saved",
        /// Experiments were written to files.
        ExperimentsWritten = "experiments-written",
        /// What an experiment left behind.
        Left = "left",
        /// The progress of an experiment.
        Experiment = "experiment",
        /// What is done to stored objects when their definition changes.
        Storage = "storage",
    }
}

/// The sending end of the channel from the engine to the renderers. Cheap to clone; sending never blocks and never fails.
#[derive(Clone, Debug)]
pub struct Events {
    sender: Sender<Event>,
    sent: Arc<AtomicU64>,
}

impl Events {
    /// A connected sender and receiver.
    #[must_use]
    pub fn channel() -> (Self, Receiver<Event>) {
        let (sender, receiver) = mpsc::channel();
        (Self { sender, sent: Arc::default() }, receiver)
    }

    /// Sends an event. Without a receiver it is dropped.
    pub fn send(&self, event: Event) {
        if self.sender.send(event).is_ok() {
            self.sent.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Number of events sent by all clones together.
    #[must_use]
    pub fn sent(&self) -> u64 {
        self.sent.load(Ordering::SeqCst)
    }
}

/// One thing that happened. `seq` and `time` are added when the event is written.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all_fields = "camelCase")]
pub enum Event {
    /// The run starts: the cluster has answered. Only `retry`, `warning` and `diagnostic` can precede it.
    #[serde(rename = "run.start")]
    RunStart {
        /// The command: `apply`, `delete`, `diff` or `check`.
        command: String,
        /// Version of pushback.
        version: String,
        /// App name.
        app: String,
        /// Namespace of the app's record.
        namespace: String,
        /// The cluster's description, for people.
        cluster: String,
        /// Id of the run.
        run: String,
    },
    /// A group of apps: what the run is to do with each. What follows is about the app of the last `run.start`.
    #[serde(rename = "group")]
    Group {
        /// The command: `apply`, `delete` or `diff`.
        command: String,
        /// Name of the group.
        group: String,
        /// Namespace of the apps' records.
        namespace: String,
        /// The apps, in the order of the run.
        apps: Vec<GroupApp>,
    },
    /// The oldest changes in the app's history were deleted.
    #[serde(rename = "history.trimmed")]
    HistoryTrimmed {
        /// Number of deleted changes.
        deleted: usize,
    },
    /// An app of a group is done.
    #[serde(rename = "app.end")]
    AppEnd {
        /// App name.
        app: String,
        /// Namespace of its record.
        namespace: String,
        /// How it ended.
        outcome: RunOutcome,
        /// Exit code of a run of this app alone.
        exit_code: u8,
        /// Changes actually made, by operation.
        done: Counts,
        /// Duration of its turn.
        elapsed: Millis,
    },
    /// The change set is known.
    #[serde(rename = "plan")]
    Plan {
        /// Number of changes by operation.
        counts: Counts,
        /// Every change except noops.
        changes: Vec<PlannedLine>,
        /// Whether the same plan was shown and agreed to before.
        #[serde(skip)]
        is_known: bool,
        /// Time since the start.
        elapsed: Millis,
    },
    /// Preflight found something.
    #[serde(rename = "finding")]
    Finding {
        /// The finding.
        finding: Box<Finding>,
        /// The lines of the input that the finding is about, for people.
        #[serde(skip)]
        excerpt: Option<Box<Excerpt>>,
    },
    /// Preflight is done.
    #[serde(rename = "preflight")]
    Preflight {
        /// The combined outcome of all rules.
        outcome: PreflightOutcome,
        /// Each rule, in registry order.
        rules: Vec<RuleLine>,
        /// Rules of the default set that a list of rules leaves out.
        #[serde(skip_serializing_if = "Option::is_none")]
        left_out: Option<LeftOut>,
        /// Waivers that accept every finding of their rule, with the number of findings.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        broad_waivers: Vec<BroadWaiver>,
        /// Duration of preflight.
        elapsed: Millis,
    },
    /// A write starts.
    #[serde(rename = "change.start")]
    ChangeStart {
        /// Object.
        object: ObjectRef,
        /// The operation.
        operation: Operation,
    },
    /// A write ended.
    #[serde(rename = "change.done")]
    ChangeDone {
        /// Object.
        object: ObjectRef,
        /// The operation.
        operation: Operation,
        /// How it ended.
        outcome: ChangeOutcome,
        /// Why the write failed or was skipped, or how it was done if not in the usual way.
        #[serde(skip_serializing_if = "String::is_empty")]
        message: String,
        /// The server's reason for a failure, such as `Invalid`.
        #[serde(skip_serializing_if = "String::is_empty")]
        reason: String,
        /// Duration of the write.
        elapsed: Millis,
    },
    /// The run is done with an object: it is written, and ready or gone if the run waits for that. Not sent for an
    /// object that is unchanged and was ready before.
    #[serde(rename = "object.done")]
    Completed {
        /// Object.
        object: ObjectRef,
        /// The operation.
        operation: Operation,
    },
    /// The state of an awaited object; sent when it changes.
    #[serde(rename = "wait.progress")]
    WaitProgress {
        /// Object.
        object: ObjectRef,
        /// The awaited state.
        wanted: Awaited,
        /// Progress so far: `2/4 ready`.
        message: String,
        /// Causes found below it: `pod web-6c9f: CrashLoopBackOff (exit 1)`.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        reasons: Vec<String>,
        /// Time since the object was written.
        elapsed: Millis,
    },
    /// Waiting for an object ended.
    #[serde(rename = "wait.done")]
    WaitDone {
        /// Object.
        object: ObjectRef,
        /// The awaited state.
        wanted: Awaited,
        /// How it ended.
        outcome: WaitOutcome,
        /// The last message about the object.
        #[serde(skip_serializing_if = "String::is_empty")]
        message: String,
        /// Causes found below it.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        reasons: Vec<String>,
        /// Time since the object was written.
        elapsed: Millis,
    },
    /// A Pod of the app has written a line, or its log begins, ends or cannot be read.
    #[serde(rename = "log")]
    Log {
        /// What is told.
        #[serde(flatten)]
        log: LogEvent,
    },
    /// A request is sent again.
    #[serde(rename = "retry")]
    Retry {
        /// The request that failed.
        request: String,
        /// Why it is retried.
        reason: String,
        /// The attempt that failed, from 1.
        attempt: u32,
        /// Delay before the next attempt.
        delay: Millis,
    },
    /// A problem of the input or the server that the user should know about.
    #[serde(rename = "warning")]
    Warning {
        /// Stable identifier: `yaml-octal`, `server`, `lock-waiting`, `stripped-field`…
        code: String,
        /// The text, one sentence.
        message: String,
        /// The object concerned.
        #[serde(skip_serializing_if = "Option::is_none")]
        object: Option<ObjectRef>,
        /// The place concerned.
        #[serde(skip_serializing_if = "Option::is_none")]
        position: Option<Position>,
    },
    /// A fact about the run's progress that needs no action.
    #[serde(rename = "diagnostic")]
    Diagnostic {
        /// The subject.
        code: DiagnosticCode,
        /// The text, one sentence.
        message: String,
        /// Other namespaces with an app of this name, if the app does not exist.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        elsewhere: Vec<String>,
    },
    /// The run is over. Always the last event.
    #[serde(rename = "run.end")]
    RunEnd {
        /// How it ended.
        outcome: RunOutcome,
        /// Exit code of the process.
        exit_code: u8,
        /// Changes actually made, by operation.
        done: Counts,
        /// The error that ended the run; empty if none did.
        #[serde(skip_serializing_if = "String::is_empty")]
        error: String,
        /// What the user can do next.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        hints: Vec<String>,
        /// Objects that are not written or not ready, with the reason.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        unfinished: Vec<UnfinishedLine>,
        /// The reason of the error, if it has one that programs can use.
        #[serde(skip_serializing_if = "Option::is_none")]
        failure: Option<Box<RunFailure>>,
        /// Requests sent to the cluster; 0 if it does not count them.
        requests: u64,
        /// Time since the start.
        elapsed: Millis,
    },
}

impl Event {
    /// Creates a diagnostic that is only a text.
    pub fn diagnostic(code: DiagnosticCode, message: impl Into<String>) -> Self {
        Self::Diagnostic { code, message: message.into(), elsewhere: Vec::new() }
    }

    /// Whether the event is part of the JSON form.
    #[must_use]
    pub fn is_public(&self) -> bool {
        !matches!(self, Self::Log { log } if !log.is_public())
    }
}

/// A duration in whole milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct Millis(pub u64);

impl From<Duration> for Millis {
    fn from(duration: Duration) -> Self {
        Self(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
    }
}

/// Number of changes by operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Counts {
    /// Objects created.
    pub create: usize,
    /// Objects updated.
    pub update: usize,
    /// Objects replaced.
    pub replace: usize,
    /// Objects deleted.
    pub delete: usize,
    /// Objects released from the app that stay.
    #[serde(skip_serializing_if = "is_zero")]
    pub orphaned: usize,
    /// Objects left unchanged.
    pub noop: usize,
    /// Objects that must already exist.
    pub exists: usize,
    /// Objects whose deletion was requested, but which still exist.
    #[serde(skip_serializing_if = "is_zero")]
    pub deleting: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks with a reference")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

impl Counts {
    /// Counts one operation.
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

    /// Counts one change; a deletion can leave the object where it is.
    pub fn add_change(&mut self, operation: Operation, is_orphaned: bool) {
        match operation {
            Operation::Delete if is_orphaned => self.orphaned += 1,
            _ => self.add(operation),
        }
    }

    /// Number of changes that write.
    #[must_use]
    pub fn writes(&self) -> usize {
        self.create + self.update + self.replace + self.delete + self.orphaned + self.deleting
    }

    /// The changes of two rounds of a run. What the first one left unchanged stays that.
    #[must_use]
    pub fn and_then(self, next: Self) -> Self {
        Self {
            create: self.create + next.create,
            update: self.update + next.update,
            replace: self.replace + next.replace,
            delete: self.delete + next.delete,
            orphaned: self.orphaned + next.orphaned,
            deleting: self.deleting + next.deleting,
            noop: self.noop,
            exists: self.exists,
        }
    }

    /// Counts an object as deleted whose deletion had been requested.
    pub fn gone(&mut self) {
        self.deleting = self.deleting.saturating_sub(1);
        self.delete += 1;
    }
}

/// An app of a group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GroupApp {
    /// App name.
    pub app: String,
    /// The directory that it is applied from; absent if it is deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// Reason for planning it only when its turn has come; absent if it is planned before anything is written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub later: Option<String>,
}

/// One change as plans show it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlannedLine {
    /// Object.
    pub object: ObjectRef,
    /// The operation.
    pub operation: Operation,
    /// Its position in the input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<Position>,
    /// Field changes, Secrets masked.
    pub fields: Vec<FieldLine>,
    /// The same as a unified diff, Secrets masked; only on request.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// Remarks: `not verified by the server: …`, `takes over spec.replicas from kubectl-scale`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// One field's change.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FieldLine {
    /// Path of the field.
    pub path: String,
    /// Old value on one line, masked; `None` if the field is new.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old: Option<String>,
    /// New value; `None` if the field is removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new: Option<String>,
}

/// One rule's result.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RuleLine {
    /// Name of the rule.
    pub name: String,
    /// Its outcome.
    pub outcome: RuleOutcome,
    /// Number of breaking findings.
    pub breaking: usize,
    /// Number of unknown findings.
    pub unknown: usize,
    /// Number of findings that are only worth knowing.
    pub changes: usize,
    /// Number of waived findings.
    pub waived: usize,
    /// What a rule of the policy says of itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// Why the rule was skipped, or which facts it could not obtain.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
}

impl From<&RuleResult> for RuleLine {
    fn from(rule: &RuleResult) -> Self {
        Self {
            name: rule.name.clone(),
            outcome: rule.outcome,
            breaking: rule.breaking,
            unknown: rule.unknown,
            changes: rule.changes,
            waived: rule.waived,
            summary: rule.summary.clone(),
            reasons: rule.unable.iter().chain(&rule.skipped).cloned().collect(),
        }
    }
}

/// One object that a run leaves unfinished.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UnfinishedLine {
    /// Object.
    pub object: ObjectRef,
    /// How far the run got with it.
    pub state: Unfinished,
    /// The reason.
    pub message: String,
    /// Causes found below it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
    /// Containers below it that fail, with the ends of their logs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub containers: Vec<FailedContainer>,
    /// Time since the write, or since the wait began if nothing was written; absent if neither happened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elapsed: Option<Millis>,
}
