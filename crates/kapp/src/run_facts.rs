//! Facts of a run that kapp's output shows besides events.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::shown_plan::ShownPlan;
use super::target::Target;

/// Facts from the run to its renderer. The run adds each of them before the event that it belongs to.
#[derive(Clone, Debug, Default)]
pub struct RunFacts(Arc<Mutex<Waiting>>);

/// Facts whose event has not reached the renderer.
#[derive(Debug, Default)]
struct Waiting {
    target: Option<Target>,
    plans: VecDeque<ShownPlan>,
}

impl RunFacts {
    /// Adds the cluster of the next `run.start`.
    pub fn add_target(&self, target: Target) {
        self.waiting().target = Some(target);
    }

    /// Adds the plan of the next `plan`.
    pub fn add_plan(&self, plan: ShownPlan) {
        self.waiting().plans.push_back(plan);
    }

    pub(crate) fn take_target(&self) -> Option<Target> {
        self.waiting().target.take()
    }

    pub(crate) fn next_plan(&self) -> ShownPlan {
        self.waiting().plans.pop_front().unwrap_or_default()
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
