//! Readiness by an object's own status, without its pods: the first rule that applies decides. Kinds without a rule are
//! assessed by their conditions.

use pushback_objects::object::is_custom_group;
use pushback_objects::{ObjectExt, ObjectRef};
use serde_json::Value;

use super::conditions::{all, describe, find};
use super::context::{Context, OBSERVATION_WINDOW};
use super::deletion::deletion_blockers;
use super::fields::{generation, not_observed, observed_generation};
use super::status::{State, Status};
use super::{kinds, rules};

pub(super) fn own_state(object: &Value, context: &Context<'_>) -> Status {
    let reference = ObjectRef::of(object);
    let (group, kind) = (reference.group.as_str(), reference.kind.as_str());
    if is_older_than_write(object, context) {
        return Status::in_progress("the write has not come back from the cluster yet");
    }
    if kinds::is_kapp_controller(group, kind) {
        return kinds::kapp_controller(object);
    }
    if object.is_terminating() {
        // A finished object stays finished while it is cleaned up, such as a Job with a time to live.
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
    // A custom resource blocks no dependents unless a wait rule says when it is ready.
    let unless_custom = if is_custom_group(group) { State::Unblocked } else { State::InProgress };
    if let Some(observed) = observed_generation(object)
        && generation(object).is_some_and(|generation| generation != observed)
    {
        return Status::new(unless_custom, not_observed(object));
    }
    for condition in all(object) {
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

/// Objects without a known rule: by their `Ready` condition if they have one; otherwise existing means ready.
fn generic(object: &Value, context: &Context<'_>, in_progress: State) -> Status {
    let conditions = [find(object, "Ready"), find(object, "Synced")];
    // Some controllers set the observed generation per condition only; a stale one describes the previous state.
    let is_behind = |observed: i64| generation(object).is_some_and(|generation| observed < generation);
    if let Some(condition) = conditions.iter().flatten().find(|found| found.observed_generation.is_some_and(is_behind))
    {
        return Status::new(in_progress, format!("{}: {}", condition.kind, not_observed(object)));
    }
    if let Some(condition) = conditions.iter().flatten().find(|condition| condition.status != "True") {
        return Status::new(in_progress, describe(condition));
    }
    let is_unobserved = observed_generation(object).is_none() && all(object).next().is_none();
    let has_observer = context.status_subresource == Some(true);
    let window = context.status_window.unwrap_or(OBSERVATION_WINDOW);
    if has_observer && is_unobserved && !context.is_observed_after(window) {
        return Status::new(in_progress, "no status yet");
    }
    Status::ready("ready")
}
