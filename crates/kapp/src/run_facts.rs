//! Facts of a run that kapp's output shows besides events.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::shown_plan::ShownPlan;
use super::target::Target;

/// Facts from the run to its renderer. The run adds each of them before the event that it belongs to.
#[derive(Clone, Debug, Default)]
pub struct RunFacts(Arc<Mutex<(Option<Target>, VecDeque<ShownPlan>)>>);

impl RunFacts {
    /// Adds the cluster of the next `run.start`.
    pub fn add_target(&self, target: Target) {
        self.lock().0 = Some(target);
    }

    /// Adds the plan of the next `plan`.
    pub fn add_plan(&self, plan: ShownPlan) {
        self.lock().1.push_back(plan);
    }

    pub(crate) fn take_target(&self) -> Option<Target> {
        self.lock().0.take()
    }

    pub(crate) fn next_plan(&self) -> ShownPlan {
        self.lock().1.pop_front().unwrap_or_default()
    }

    fn lock(&self) -> MutexGuard<'_, (Option<Target>, VecDeque<ShownPlan>)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
