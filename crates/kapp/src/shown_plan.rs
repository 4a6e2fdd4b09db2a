//! A plan as kapp shows it: both sides of each change, and objects that are only waited for.

use std::sync::Arc;

use pushback_deploy::apply::tree;
use pushback_deploy::plan::sides::{self, ChangeSides};
use pushback_deploy::plan::{Plan, Planned, UpdateStrategy};
use pushback_events::Awaited;
use pushback_manifest::config::Config;
use pushback_manifest::config::mask::{MaskNumbers, Masker};
use pushback_objects::{ObjectExt, ObjectRef};
use pushback_preflight::Operation;
use pushback_terminal::raw_objects::placeholder;
use serde_json::Value;

use super::errors::FailedWrite;

/// A change as kapp shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct ShownChange {
    /// The object.
    pub object: ObjectRef,
    /// The operation.
    pub operation: Operation,
    /// Both sides, Secrets masked.
    pub sides: ChangeSides,
    /// Name of the kind in paths, with its group: `deployments.apps`; empty for objects that the run does not write.
    pub resource: String,
}

/// A plan as kapp shows it.
#[derive(Clone, Debug, Default)]
pub struct ShownPlan {
    /// The changes.
    pub changes: Vec<ShownChange>,
    /// Objects that the run does not write: unchanged ones that are not ready, updates that are skipped, and what is
    /// deleted together with another object.
    pub others: Vec<ShownChange>,
    /// Writes that the server refuses, in the order of the plan.
    pub refused: Vec<FailedWrite>,
}

impl ShownPlan {
    /// Reads a plan. `going` are objects that the garbage collector deletes together with those of the plan.
    #[must_use]
    pub fn new(config: &Config, plan: &Plan, going: &[Arc<Value>]) -> Self {
        let is_change = |planned: &Planned| planned.reported_operation() != Operation::Noop;
        let waves = plan.graph.wave_numbers(|node| is_change(&plan.objects[node]));
        let versions = sides::newest_versions(plan);
        let (mut changes, mut others) = (Vec::new(), Vec::new());
        for (planned, &wave) in plan.objects.iter().zip(&waves) {
            if !is_change(planned) {
                others.extend(unwritten(config, planned, wave));
                continue;
            }
            let mut sides = sides::change_sides(planned, wave, plan.deletes_app);
            if let Some(previous) = sides::previous_version(planned, &versions) {
                sides::set_beside(&mut sides, planned, previous);
            }
            changes.push(ShownChange {
                object: planned.object.clone(),
                operation: planned.reported_operation(),
                sides,
                resource: planned.kind.resource(),
            });
        }
        // Numbers of masked values count up in the order in which the changes are shown.
        changes.sort_by_cached_key(ShownChange::order);
        let masker = Masker::new(&config.diff_mask_rules);
        let mut numbers = MaskNumbers::shown_as(placeholder);
        for ShownChange { sides, .. } in changes.iter_mut().chain(&mut others) {
            if sides.live.as_deref().is_some_and(|live| !masker.masked_paths(live).is_empty()) {
                sides.live = None;
            }
            sides.old.iter_mut().chain(&mut sides.new).for_each(|side| masker.mask(side, &mut numbers));
        }
        others.extend(going.iter().map(deleted_with_owner));
        let refused = plan.objects.iter().filter_map(|planned| {
            let error = &planned.refused.as_ref()?.error;
            let (message, reason) = (error.message.clone(), error.reason.clone());
            let (object, operation) = (planned.object.clone(), planned.operation());
            Some(FailedWrite { object, operation, message, reason })
        });
        Self { changes, others, refused: refused.collect() }
    }
}

impl ShownChange {
    /// The place among the changes: those that come first on the way to others first, versioned objects before others.
    #[must_use]
    pub fn order(&self) -> (usize, bool) {
        let is_version = self.sides.new.as_ref().or(self.sides.old.as_ref()).is_some_and(sides::is_version);
        (self.sides.wave, !is_version)
    }
}

/// Returns how an object is shown and counted that the run does not write: an update that is skipped, or an object that
/// is not ready.
#[must_use]
pub fn unwritten(config: &Config, planned: &Planned, wave: usize) -> Option<ShownChange> {
    let sides = || ChangeSides { awaited: Some(Awaited::Ready), ..sides::change_sides(planned, wave, false) };
    let object = planned.object.clone();
    if planned.strategies.update == UpdateStrategy::Skip {
        let sides = sides();
        if sides.old.is_some() && sides.old != sides.new {
            return Some(ShownChange { object, operation: Operation::Update, sides, resource: String::new() });
        }
    }
    // Only the object and the wait rules decide here.
    let is_ready = |live: &Value| tree::state(live, config.wait_rule(live)).0 == "ok";
    if !planned.wait || planned.live.as_deref().is_none_or(is_ready) {
        return None;
    }
    let sides = ChangeSides { old: None, new: None, ..sides() };
    Some(ShownChange { object, operation: Operation::Noop, sides, resource: String::new() })
}

/// An object that the garbage collector deletes together with its owner.
fn deleted_with_owner(object: &Arc<Value>) -> ShownChange {
    ShownChange {
        object: ObjectRef::of(object),
        operation: Operation::Noop,
        sides: ChangeSides {
            created: object.text("/metadata/creationTimestamp").to_owned(),
            awaited: Some(Awaited::Deleted),
            live: Some(Arc::clone(object)),
            ..ChangeSides::default()
        },
        resource: String::new(),
    }
}
