//! Whether an object is ready: read from its own status and from what it owns, as plain values. No cluster and no
//! clock: times and related objects are passed in.

mod ages;
mod conditions;
mod context;
mod deletion;
mod failing;
mod fields;
mod kinds;
mod own_state;
mod pods;
mod reasons;
mod rules;
mod status;
mod troubles;
mod weigh;
mod workloads;

use std::time::Duration;

use pushback_objects::ObjectRef;
use serde_json::Value;

pub use self::ages::ConditionAges;
use self::context::OBSERVATION_WINDOW;
pub use self::context::{Context, Related, SLOW_OBSERVATION_WINDOW};
pub use self::deletion::{crd_remedy, deletion_blockers, finalizer_owner, finalizers};
pub use self::failing::{FailingContainer, failing_containers};
use self::own_state::own_state;
pub use self::reasons::reasons;
pub use self::status::{ConditionMeaning, MatchedCondition, State, Status};
use self::troubles::GRACE;
pub use self::troubles::Troubles;

/// Readiness of an object. The first of these that applies decides: kapp-controller's kinds, deletion, the wait rule,
/// whether our write was observed, `Reconciling` and `Stalled`, the rule of its kind, and finally its `Ready` and
/// `Synced` conditions.
#[must_use]
pub fn assess(object: &Value, context: &Context<'_>) -> Status {
    let mut status = weigh::weigh(own_state(object, context), object, context);
    if status.state != State::Ready {
        status.reasons = reasons(object, &context.related);
    }
    status
}

/// Whether an object has ended for good: a finished Job, a Pod that succeeded.
#[must_use]
pub fn is_over(object: &Value) -> bool {
    let reference = ObjectRef::of(object);
    kinds::over(&reference.group, &reference.kind, object).is_some()
}

/// After what time [`assess`] may decide differently without any change; `None` if only a change can matter.
#[must_use]
pub fn next_look(context: &Context<'_>) -> Option<Duration> {
    let windows =
        [OBSERVATION_WINDOW, SLOW_OBSERVATION_WINDOW, GRACE].map(|window| window.saturating_sub(context.waited));
    let ages = context.wait_rule.zip(context.condition_ages).and_then(|(rule, ages)| ages.next(rule, context.waited));
    let troubles = context.troubles.and_then(|troubles| troubles.next(context.waited, context.failure_timeout));
    let status = context.status_window.filter(|window| *window < Duration::MAX);
    let status = status.map(|window| window.saturating_sub(context.waited));
    windows.into_iter().chain(status).chain(ages).chain(troubles).filter(|left| !left.is_zero()).min()
}

#[cfg(test)]
mod tests;
