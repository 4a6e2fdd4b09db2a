//! What is known beside the object that is judged, and how long a state may last until it means something.
//! Handed in: nothing here asks a cluster or a clock.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::ages::ConditionAges;
use super::troubles::Troubles;
use crate::config::WaitRule;

/// How long a status that nobody has written yet is waited for, where it may never come.
pub(super) const OBSERVATION_WINDOW: Duration = Duration::from_secs(5);

/// The same for controllers that look at their objects in longer intervals.
pub(super) const SLOW_OBSERVATION_WINDOW: Duration = Duration::from_secs(30);

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
    pub(super) fn is_observed_after(&self, window: Duration) -> bool {
        self.unchanged || self.waited >= window
    }
}
