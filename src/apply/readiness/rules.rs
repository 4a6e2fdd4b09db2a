//! Wait rules of Config: conditions that mean failure, success, or that dependents may go on.
//! Failures are looked at before successes; a condition about an older generation is not looked at.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use super::conditions::{Condition, all, describe};
use super::{Context, Status, generation, not_observed, observed_generation};
use crate::config::{ConditionMatcher, WaitRule};

/// Since when conditions of one object hold without a break, on the clock that counts from when waiting began.
/// Kept by whoever watches the object: call [`observe`](Self::observe) with each state of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConditionAges(BTreeMap<(String, String), Duration>);

impl ConditionAges {
    /// Notes which conditions of the rule hold now.
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

    /// In how long the first of the rule's time limits is reached.
    pub(super) fn next(&self, rule: &WaitRule, waited: Duration) -> Option<Duration> {
        let limits = rule.condition_matchers.iter().filter_map(|matcher| {
            let held = self.0.contains_key(&(matcher.type_.clone(), matcher.status.clone()));
            held.then(|| matcher.timeout.map(|timeout| timeout.saturating_sub(self.age(matcher, waited))))?
        });
        limits.min()
    }

    fn age(&self, matcher: &ConditionMatcher, waited: Duration) -> Duration {
        let first_seen = self.0.get(&(matcher.type_.clone(), matcher.status.clone()));
        waited.saturating_sub(first_seen.copied().unwrap_or(waited))
    }
}

fn matching<'a>(object: &'a Value, matcher: &ConditionMatcher) -> Option<Condition<'a>> {
    all(object).find(|condition| {
        let is_current = !matcher.supports_observed_generation || condition.observed_generation == generation(object);
        condition.kind == matcher.type_ && condition.status == matcher.status && is_current
    })
}

pub(super) fn assess(object: &Value, rule: &WaitRule, context: &Context<'_>) -> Status {
    if rule.supports_observed_generation && observed_generation(object) != generation(object) {
        return Status::in_progress(not_observed(object));
    }
    let mut progress = None;
    let matched = |wanted: fn(&ConditionMatcher) -> bool| {
        rule.condition_matchers
            .iter()
            .filter(move |matcher| wanted(matcher))
            .filter_map(|matcher| Some((matcher, matching(object, matcher)?)))
    };
    // A time limit is one on any condition, whatever else the condition means.
    for (matcher, condition) in matched(|matcher| matcher.failure || matcher.timeout.is_some()) {
        let age = context.condition_ages.map_or(context.waited, |ages| ages.age(matcher, context.waited));
        match matcher.timeout {
            Some(timeout) if age < timeout => progress = Some(describe(&condition)),
            Some(timeout) => return Status::failed(format!("{} for {}", describe(&condition), seconds(timeout))),
            None => return Status::failed(describe(&condition)),
        }
    }
    if let Some((_, condition)) = matched(|matcher| matcher.success).next() {
        return Status::ready(describe(&condition));
    }
    if let Some((_, condition)) = matched(|matcher| matcher.unblock_changes).next() {
        return Status::unblocked(describe(&condition));
    }
    // A condition that is only a failure after a while does not end the wait, but says where it stands.
    Status::in_progress(progress.unwrap_or_else(|| "no failing or successful conditions found".to_owned()))
}

pub(super) fn seconds(duration: Duration) -> String {
    format!("{} s", duration.as_secs())
}
