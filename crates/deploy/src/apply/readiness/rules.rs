//! Wait rules of Config: conditions that mean failure, success, or that dependents may proceed. Failures are checked
//! before successes; conditions of an older generation are ignored.

use pushback_manifest::config::cel::{Outcome, Outcomes};
use pushback_manifest::config::mask::MaskNumbers;
use pushback_manifest::config::{ConditionMatcher, WaitRule};
use serde_json::Value;

use super::ages::matching;
use super::conditions::{Condition, describe, one_line};
use super::context::Context;
use super::fields::{generation, not_observed, observed_generation};
use super::status::{ConditionMeaning, MatchedCondition, Status, seconds};

pub(super) fn assess(object: &Value, rule: &WaitRule, context: &Context<'_>) -> Status {
    if rule.supports_observed_generation && observed_generation(object) != generation(object) {
        return Status::in_progress(not_observed(object));
    }
    if let Some(outcomes) = &rule.cel {
        return by_outcomes(object, outcomes, context);
    }
    let mut progress = None;
    let matched = |wanted: fn(&ConditionMatcher) -> bool| {
        rule.condition_matchers
            .iter()
            .filter(move |matcher| wanted(matcher))
            .filter_map(|matcher| Some((matcher, matching(object, matcher)?)))
    };
    // A time limit applies to the condition whatever else the condition means.
    for (matcher, condition) in matched(|matcher| matcher.failure || matcher.timeout.is_some()) {
        let age = context.condition_ages.map_or(context.waited, |ages| ages.age(matcher, context.waited));
        match matcher.timeout {
            Some(timeout) if age < timeout => progress = Some(describe(&condition)),
            Some(timeout) => return Status::failed(format!("{} for {}", describe(&condition), seconds(timeout))),
            None => return by(Status::failed(describe(&condition)), ConditionMeaning::Failure, &condition),
        }
    }
    if let Some((_, condition)) = matched(|matcher| matcher.success).next() {
        return by(Status::ready(describe(&condition)), ConditionMeaning::Success, &condition);
    }
    if let Some((_, condition)) = matched(|matcher| matcher.unblock_changes).next() {
        return by(Status::unblocked(describe(&condition)), ConditionMeaning::Unblock, &condition);
    }
    // A condition that means failure only after a while does not end the wait, but describes the progress.
    Status::in_progress(progress.unwrap_or_else(|| "no failing or successful conditions found".to_owned()))
}

fn by(status: Status, meaning: ConditionMeaning, condition: &Condition<'_>) -> Status {
    let matched = MatchedCondition {
        meaning,
        name: condition.kind.to_owned(),
        status: condition.status.to_owned(),
        reason: condition.reason.to_owned(),
        message: one_line(condition.message),
    };
    Status { matched: Some(Box::new(matched)), ..status }
}

fn by_outcomes(object: &Value, outcomes: &Outcomes, context: &Context<'_>) -> Status {
    let masked = context.masker.filter(|masker| !masker.masked_paths(object).is_empty()).map(|masker| {
        let mut masked = object.clone();
        masker.mask(&mut masked, &mut MaskNumbers::default());
        masked
    });
    let (outcome, message) = outcomes.of(object, masked.as_ref().unwrap_or(object));
    match outcome {
        Outcome::Failed => Status::failed(message),
        Outcome::InProgress => Status::in_progress(message),
        Outcome::Current => Status::ready(message),
        Outcome::Unblock => Status::unblocked(message),
    }
}
