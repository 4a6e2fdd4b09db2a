//! What is known besides the assessed object, and how long a state may last before it counts. All of it is passed in:
//! nothing here reads a cluster or a clock.

use std::sync::Arc;
use std::time::Duration;

use pushback_manifest::config::WaitRule;
use pushback_manifest::config::mask::Masker;
use serde_json::Value;

use super::ages::ConditionAges;
use super::troubles::Troubles;

/// How long to wait for a status that nobody has written yet and that may never come.
pub(super) const OBSERVATION_WINDOW: Duration = Duration::from_secs(5);

/// The same for controllers that reconcile at longer intervals.
pub const SLOW_OBSERVATION_WINDOW: Duration = Duration::from_secs(30);

/// Everything besides the object itself that an assessment uses.
#[derive(Clone, Copy, Debug, Default)]
pub struct Context<'a> {
    /// The wait rule selected for the object.
    pub wait_rule: Option<&'a WaitRule>,
    /// Finds what a message of the rule must not say.
    pub masker: Option<&'a Masker>,
    /// Since when the rule's conditions have held; absent: since the write.
    pub condition_ages: Option<&'a ConditionAges>,
    /// Since when its pods have been failing; absent: since the write.
    pub troubles: Option<&'a Troubles>,
    /// How long its pods may fail recoverably without progress; zero: no limit.
    pub failure_timeout: Duration,
    /// The generation that our write returned; an older observation is ignored. 0 if nothing was written.
    pub minimum_generation: i64,
    /// Time since the write, or since the wait began if nothing was written.
    pub waited: Duration,
    /// Whether the run left it unchanged: then a status that is missing now will not appear.
    pub unchanged: bool,
    /// Whether its kind has a status subresource; `None` if unknown.
    pub status_subresource: Option<bool>,
    /// Maximum time from the write to the first status; `None`: a few seconds.
    pub status_window: Option<Duration>,
    /// Related objects.
    pub related: Related<'a>,
}

/// Objects related to the assessed one. May contain others: owner references decide.
#[derive(Clone, Copy, Debug, Default)]
pub struct Related<'a> {
    /// Pods.
    pub pods: &'a [Arc<Value>],
    /// ReplicaSets.
    pub replica_sets: &'a [Arc<Value>],
    /// Events of `v1` or `events.k8s.io`.
    pub events: &'a [Arc<Value>],
    /// StorageClasses.
    pub storage_classes: &'a [Arc<Value>],
    /// Services of the app that a webhook configuration calls, each with whether an endpoint is ready.
    pub backends: &'a [(String, bool)],
    /// True while the run deletes a CRD, which may free the names that another one asks for.
    pub frees_names: bool,
}

impl Context<'_> {
    /// Whether the window is over in which a status that nobody has written may still appear.
    pub(super) fn is_observed_after(&self, window: Duration) -> bool {
        self.unchanged || self.waited >= window
    }
}
