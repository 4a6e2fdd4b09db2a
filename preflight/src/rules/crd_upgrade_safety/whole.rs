//! Objects that a change of the whole CRD affects: unknown fields that are no longer kept, another conversion, another
//! scope, group or name.

use pushback_crd::definition::{StoredState, Upgrade};
use pushback_crd::schema::contain::{FieldLoss, field_loss};
use pushback_objects::finding::{Finding, LiveObjects, Verdict};
use serde_json::Value;

use super::Found;
use super::subject::Subject;
use crate::facts::Need;
use crate::rules::counters::{count_object, entry, read_counter};
use crate::rules::planned_objects::{PlannedObject, PlannedObjects};

/// Unknown fields are no longer kept.
const UNKNOWN_FIELDS: &str = "preserveUnknownFields";
/// Objects are converted in another way.
const CONVERSION: &str = "conversion";
/// No object can be read under its new address.
const ADDRESS: [&str; 3] = ["scope", "group", "names"];
/// Part of the state: objects by check.
const WHOLE: &str = "whole";

/// Returns whether objects are counted for a finding of the whole CRD.
pub(super) fn concerns(finding: &Finding) -> bool {
    finding.check == UNKNOWN_FIELDS || is_only_counted(finding)
}

/// Returns whether a finding stays whatever the objects are: no correction of them helps.
pub(super) fn is_only_counted(finding: &Finding) -> bool {
    finding.check == CONVERSION || ADDRESS.contains(&finding.check.as_str())
}

/// Returns the stream of the objects that a finding of the whole CRD affects; `None` if it affects none.
pub(super) fn need(subject: &Subject<'_>, finding: &Finding) -> Option<Need> {
    let is_counted = match finding.check.as_str() {
        CONVERSION => is_conversion_needed(&subject.upgrade),
        _ => concerns(finding) && finding.verdict == Verdict::Breaking,
    };
    let live = subject.change.live.as_deref().filter(|_| is_counted)?;
    Need::objects_of(&StoredState::of(live))
}

/// Returns whether objects may be read in another version than their stored version.
fn is_conversion_needed(upgrade: &Upgrade<'_>) -> bool {
    let stored = upgrade.old.stored_versions();
    let versions = &upgrade.new.versions;
    versions.iter().filter(|it| it.served || it.storage || stored.contains(&it.name)).count() > 1
}

/// Counts the objects of a page.
pub(super) fn fold(
    upgrade: &Upgrade<'_>,
    version: &str,
    asked: &[&Found],
    planned: &PlannedObjects<'_>,
    state: &mut Value,
    page: &[&Value],
) {
    let mut checks: Vec<&str> =
        asked.iter().map(|found| &found.finding).filter(|it| concerns(it)).map(|it| it.check.as_str()).collect();
    checks.sort_unstable();
    checks.dedup();
    for check in checks {
        for object in page {
            let planned = planned.after(object);
            let loss = match (check, &planned) {
                (_, PlannedObject::Deleted) => FieldLoss::None,
                // Nothing shows in which version an object is stored, or what a webhook makes of it.
                (CONVERSION, _) => FieldLoss::Possible,
                (UNKNOWN_FIELDS, PlannedObject::Written(after)) if !after.is_empty() => {
                    let losses = after.iter().map(|after| pruned(upgrade, version, after));
                    losses.max().unwrap_or(FieldLoss::None)
                }
                (UNKNOWN_FIELDS, _) => pruned(upgrade, version, object),
                _ => FieldLoss::Certain,
            };
            let loss = if planned == PlannedObject::Terminating { loss.min(FieldLoss::Possible) } else { loss };
            if loss != FieldLoss::None {
                count_object(entry(entry(state, WHOLE), check), object, loss == FieldLoss::Possible);
            }
        }
    }
}

/// Returns the loss of fields of an object in the versions that are served or stored.
fn pruned(upgrade: &Upgrade<'_>, version: &str, object: &Value) -> FieldLoss {
    let Some(old) = upgrade.old_resource(version) else { return FieldLoss::Possible };
    let is_used = |name: &str| upgrade.new.version(name).is_some_and(|it| it.served || it.storage);
    let targets = upgrade.targets(version);
    let used = targets.iter().filter(|(name, _)| is_used(name)).map(|(_, new)| field_loss(&old, new, object));
    used.max().unwrap_or(FieldLoss::Possible)
}

/// Returns the number of objects that a finding of the whole CRD affects; `None` for other findings.
pub(super) fn counted(finding: &Finding, state: &Value, examined: u64) -> Option<LiveObjects> {
    concerns(finding).then(|| read_counter(&state[WHOLE][finding.check.as_str()], examined))
}
