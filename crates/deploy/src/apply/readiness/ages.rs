//! Since when the conditions that an object's wait rule names have held. A condition of an older generation does not
//! hold if the rule requires the observed generation.

use std::collections::BTreeMap;
use std::time::Duration;

use pushback_manifest::config::{ConditionMatcher, WaitRule};
use serde_json::Value;

use super::conditions::{Condition, all};
use super::fields::generation;

/// Since when conditions of one object have held without a break, as time since the wait began. Whoever watches the
/// object calls [`observe`](Self::observe) with each state of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConditionAges(BTreeMap<(String, String), Duration>);

impl ConditionAges {
    /// Records which conditions of the rule hold now.
    pub fn observe(&mut self, object: &Value, rule: &WaitRule, waited: Duration) {
        let held: Vec<(String, String)> = rule
            .condition_matchers
            .iter()
            .filter(|matcher| matching(object, matcher).is_some())
            .map(|matcher| (matcher.type_.clone(), matcher.status.clone()))
            .collect();
        self.0.retain(|key, _| held.contains(key));
        for key in held {
            self.0.entry(key).or_insert(waited);
        }
    }

    /// Time until the first of the rule's limits is reached.
    pub(super) fn next(&self, rule: &WaitRule, waited: Duration) -> Option<Duration> {
        let limits = rule.condition_matchers.iter().filter_map(|matcher| {
            let held = self.0.contains_key(&(matcher.type_.clone(), matcher.status.clone()));
            held.then(|| matcher.timeout.map(|timeout| timeout.saturating_sub(self.age(matcher, waited))))?
        });
        limits.min()
    }

    pub(super) fn age(&self, matcher: &ConditionMatcher, waited: Duration) -> Duration {
        let first_seen = self.0.get(&(matcher.type_.clone(), matcher.status.clone()));
        waited.saturating_sub(first_seen.copied().unwrap_or(waited))
    }
}

/// The condition of the object that a matcher selects.
pub(super) fn matching<'a>(object: &'a Value, matcher: &ConditionMatcher) -> Option<Condition<'a>> {
    all(object).find(|condition| {
        let is_current = !matcher.supports_observed_generation || condition.observed_generation == generation(object);
        condition.kind == matcher.type_ && condition.status == matcher.status && is_current
    })
}
