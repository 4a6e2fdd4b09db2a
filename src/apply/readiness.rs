//! Whether an object is done: read from its own status and from what it owns, as plain values.
//! No cluster and no clock: what was written when, and what lies below, is handed in.

mod conditions;
mod deletion;
mod kinds;
mod pods;
mod reasons;
mod rules;
mod trouble;
mod workloads;

use std::sync::Arc;
use std::time::Duration;

use pushback_preflight::{ObjectExt, ObjectRef};
use serde_json::Value;

use crate::config::WaitRule;
use conditions::{describe, find};

pub use deletion::{deletion_blockers, finalizer_owner, finalizers};
pub use reasons::reasons;
pub use rules::ConditionAges;
pub use trouble::Troubles;

/// How long a status that nobody has written yet is waited for, where it may never come.
const OBSERVATION_WINDOW: Duration = Duration::from_secs(5);

/// The same for controllers that look at their objects in longer intervals.
const SLOW_OBSERVATION_WINDOW: Duration = Duration::from_secs(30);

/// How long a state that will not heal by itself may last until it counts as failure: others may be about to repair it,
/// this run among them.
const GRACE: Duration = Duration::from_secs(30);

/// How long an object whose containers ended badly during the wait must stay ready.
const STABLE: Duration = Duration::from_secs(10);

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

/// What is known beside the object itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct Context<'a> {
    /// The wait rule that was selected for it.
    pub wait_rule: Option<&'a WaitRule>,
    /// Since when the rule's conditions hold; without it, since the write.
    pub condition_ages: Option<&'a ConditionAges>,
    /// Since when its pods fail; without it, since the write.
    pub troubles: Option<&'a Troubles>,
    /// How long its pods may fail, in a way that may heal, without anything moving; zero: for ever.
    pub failure_timeout: Duration,
    /// The generation that our write returned: what is older is not believed. 0 where nothing was written.
    pub minimum_generation: i64,
    /// Since the write, or since waiting began where nothing was written.
    pub waited: Duration,
    /// It was as it should be before the run: what it has not shown until now, it will not show.
    pub unchanged: bool,
    /// Whether its kind has a status subresource; `None` where unknown.
    pub status_subresource: Option<bool>,
    /// What lies around it.
    pub related: Related<'a>,
}

/// Objects around the one that is judged. More than its own may be in here: owner references decide.
#[derive(Clone, Copy, Debug, Default)]
pub struct Related<'a> {
    /// Pods.
    pub pods: &'a [Arc<Value>],
    /// ReplicaSets.
    pub replica_sets: &'a [Arc<Value>],
    /// Events, of `v1` or `events.k8s.io`.
    pub events: &'a [Arc<Value>],
    /// StorageClasses.
    pub storage_classes: &'a [Arc<Value>],
    /// Services of the app that a webhook configuration calls, with whether an endpoint of theirs is ready.
    pub backends: &'a [(String, bool)],
}

impl Context<'_> {
    /// Whether a status that nobody has written within this time will not come.
    fn is_observed_after(&self, window: Duration) -> bool {
        self.unchanged || self.waited >= window
    }
}

impl Status {
    fn new(state: State, message: impl Into<String>) -> Self {
        Self { state, message: message.into(), reasons: Vec::new() }
    }

    fn ready(message: impl Into<String>) -> Self {
        Self::new(State::Ready, message)
    }

    fn unblocked(message: impl Into<String>) -> Self {
        Self::new(State::Unblocked, message)
    }

    fn in_progress(message: impl Into<String>) -> Self {
        Self::new(State::InProgress, message)
    }

    fn failed(message: impl Into<String>) -> Self {
        Self::new(State::Failed, message)
    }
}

/// Where an object stands. The first that decides: kapp-controller's kinds, deletion, the wait rule, whether our write
/// was observed, `Reconciling` and `Stalled`, the rule of its kind, and else its `Ready` and `Synced` conditions.
#[must_use]
pub fn assess(object: &Value, context: &Context<'_>) -> Status {
    let mut status = trouble::weigh(judge(object, context), object, context);
    if status.state != State::Ready {
        status.reasons = reasons(object, &context.related);
    }
    status
}

/// Whether an object has ended, for good: a finished Job, a Pod that succeeded.
#[must_use]
pub fn is_over(object: &Value) -> bool {
    let reference = ObjectRef::of(object);
    kinds::over(&reference.group, &reference.kind, object).is_some()
}

/// In how long time alone may change what [`assess`] says; `None` where only the cluster can.
#[must_use]
pub fn next_look(context: &Context<'_>) -> Option<Duration> {
    let windows =
        [OBSERVATION_WINDOW, SLOW_OBSERVATION_WINDOW, GRACE].map(|window| window.saturating_sub(context.waited));
    let ages = context.wait_rule.zip(context.condition_ages).and_then(|(rule, ages)| ages.next(rule, context.waited));
    let troubles = context.troubles.and_then(|troubles| troubles.next(context));
    windows.into_iter().chain(ages).chain(troubles).filter(|left| !left.is_zero()).min()
}

fn judge(object: &Value, context: &Context<'_>) -> Status {
    let reference = ObjectRef::of(object);
    let (group, kind) = (reference.group.as_str(), reference.kind.as_str());
    if is_older_than_write(object, context) {
        return Status::in_progress("the write has not come back from the cluster yet");
    }
    if kinds::is_kapp_controller(group, kind) {
        return kinds::kapp_controller(object);
    }
    if object.is_terminating() {
        // What is over stays so while it is cleared away, as a Job is that has a time to live.
        if let Some(status) = kinds::over(group, kind, object) {
            return status;
        }
        let blockers = deletion_blockers(object);
        let because = if blockers.is_empty() { String::new() } else { format!(": {blockers}") };
        return Status::in_progress(format!("being deleted{because}"));
    }
    if let Some(rule) = context.wait_rule {
        return rules::assess(object, rule, context);
    }
    // Nothing that depends on a custom resource is held up unless the user says how to tell that it is ready.
    let unless_custom = if is_builtin_group(group) { State::InProgress } else { State::Unblocked };
    if let Some(observed) = observed_generation(object)
        && generation(object).is_some_and(|generation| generation != observed)
    {
        return Status::new(unless_custom, not_observed(object));
    }
    for condition in conditions::all(object) {
        match (condition.kind, condition.status) {
            ("Reconciling", "True") => return Status::new(unless_custom, describe(&condition)),
            ("Stalled", "True") => return Status::failed(describe(&condition)),
            _ => {}
        }
    }
    kinds::assess(group, kind, object, context).unwrap_or_else(|| generic(object, context, unless_custom))
}

/// A cached object that has not caught up with our write says nothing about it.
fn is_older_than_write(object: &Value, context: &Context<'_>) -> bool {
    generation(object).is_some_and(|generation| generation < context.minimum_generation)
}

/// Objects that no rule is known for: their `Ready` condition where they have one, else what is there is ready.
fn generic(object: &Value, context: &Context<'_>, in_progress: State) -> Status {
    let conditions = [find(object, "Ready"), find(object, "Synced")];
    // Some controllers observe per condition only; one that is behind speaks of what was there before.
    let is_behind = |observed: i64| generation(object).is_some_and(|generation| observed < generation);
    if let Some(condition) = conditions.iter().flatten().find(|found| found.observed_generation.is_some_and(is_behind))
    {
        return Status::new(in_progress, format!("{}: {}", condition.kind, not_observed(object)));
    }
    if let Some(condition) = conditions.iter().flatten().find(|condition| condition.status != "True") {
        return Status::new(in_progress, describe(condition));
    }
    let is_unobserved = observed_generation(object).is_none() && conditions::all(object).next().is_none();
    let has_observer = context.status_subresource == Some(true);
    if has_observer && is_unobserved && !context.is_observed_after(OBSERVATION_WINDOW) {
        return Status::new(in_progress, "no status yet");
    }
    Status::ready("ready")
}

/// Groups whose kinds are Kubernetes' own. Groups below `k8s.io` are reserved for it, but also used by custom
/// resources of its projects, hence the list.
fn is_builtin_group(group: &str) -> bool {
    !group.contains('.')
        || matches!(
            group,
            "admissionregistration.k8s.io"
                | "apiextensions.k8s.io"
                | "apiregistration.k8s.io"
                | "authentication.k8s.io"
                | "authorization.k8s.io"
                | "certificates.k8s.io"
                | "coordination.k8s.io"
                | "discovery.k8s.io"
                | "events.k8s.io"
                | "flowcontrol.apiserver.k8s.io"
                | "internal.apiserver.k8s.io"
                | "networking.k8s.io"
                | "node.k8s.io"
                | "rbac.authorization.k8s.io"
                | "resource.k8s.io"
                | "scheduling.k8s.io"
                | "storage.k8s.io"
                | "storagemigration.k8s.io"
        )
}

fn generation(object: &Value) -> Option<i64> {
    object.pointer("/metadata/generation").and_then(Value::as_i64)
}

fn observed_generation(object: &Value) -> Option<i64> {
    object.pointer("/status/observedGeneration").and_then(Value::as_i64)
}

fn not_observed(object: &Value) -> String {
    let generation = generation(object).unwrap_or_default();
    match observed_generation(object) {
        Some(observed) => format!("waiting for generation {generation} to be observed, last was {observed}"),
        None => format!("waiting for generation {generation} to be observed"),
    }
}

/// A number in the object; a wrong type counts as missing.
fn number(object: &Value, pointer: &str) -> Option<i64> {
    object.pointer(pointer).and_then(Value::as_i64)
}

#[cfg(test)]
mod tests;
