//! Values that a conversion plan loses. One that comes with the judged manifests cannot accept its own losses: a policy
//! source does.

use std::collections::BTreeMap;

use pushback_conversion::plan::ConversionPlan;
use pushback_conversion::{Operation, PlanSource};
use pushback_objects::finding::{Finding, Verdict};
use pushback_objects::source::Position;
use serde_json::json;

use super::{PLANNED, Subject};
use crate::facts::Facts;

const REMEDY: &str = "keep the values in a property bag; or accept the loss in a source of policy, with a waiver or with \
                      the plan in a file given with --config";

/// A finding for each field that objects lose on their way from the versions that they are stored in.
pub(super) fn check(subject: &Subject<'_>, facts: &Facts) -> Vec<Finding> {
    let given = facts.conversion_plan(&subject.live.definition).filter(|plan| plan.source == PlanSource::Manifests);
    let (Some(given), Some(storage)) = (given, subject.storage.as_deref()) else { return Vec::new() };
    // What does not fit has been refused as an error of the input.
    let Ok(converter) = given.converter(Some(subject.old.value), subject.new.value) else { return Vec::new() };
    let mut lost: BTreeMap<String, (Vec<&str>, &Operation)> = BTreeMap::new();
    for version in subject.old.stored_versions().into_iter().filter(|version| *version != storage) {
        for loss in converter.planned_losses(version, storage) {
            lost.entry(loss.path()).or_insert_with(|| (Vec::new(), loss.operation)).0.push(version);
        }
    }
    let plan = given.plan();
    let finding = |(path, (versions, operation)): (String, (Vec<&str>, &Operation))| {
        let (position, reason) = said(&plan, operation);
        let stored: Vec<String> = versions.iter().map(|version| format!("\"{version}\"")).collect();
        let stored = stored.join(", ");
        let message =
            format!("objects stored in {stored} lose {path} when they are converted to \"{storage}\": {reason}");
        let mut finding =
            subject.finding(PLANNED, Verdict::Breaking, storage, message).bound_to(&json!([versions, storage, path]));
        finding.position = Some(position);
        finding.path = Some(path);
        finding.effect = Some("pruned".to_owned());
        finding.remedy(REMEDY)
    };
    lost.into_iter().map(finding).collect()
}

/// Where the plan says so, and why.
fn said(plan: &ConversionPlan, operation: &Operation) -> (Position, String) {
    let step = plan.steps.iter().find(|step| step.from == operation.from && step.to == operation.to);
    let removed = step.and_then(|step| step.removed.iter().find(|entry| entry.path == operation.older));
    match (removed, step) {
        (Some(entry), _) if entry.value.drop => (entry.position.clone(), entry.value.reason.clone()),
        (_, step) => {
            let position = step.map_or(&plan.position, |step| &step.position);
            (position.clone(), "there is no place for a property bag".to_owned())
        }
    }
}
