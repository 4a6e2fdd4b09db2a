//! Objects that a change of the whole CRD affects: unknown fields that are no longer kept, another conversion, another
//! scope, group or name.

use pushback_crd::definition::{StoredState, Upgrade};
use pushback_crd::schema::contain::{FieldLoss, field_loss};
use serde_json::Value;

use super::Found;
use super::live::{bump, counted as read_counter, entry};
use super::subject::Subject;
use crate::facts::Need;
use crate::finding::{Finding, LiveObjects, Verdict};
use crate::rules::planned_objects::{PlannedObject, PlannedObjects};

/// Unknown fields are no longer kept.
const UNKNOWN_FIELDS: &str = "preserveUnknownFields";
/// Objects are converted in another way.
const CONVERSION: &str = "conversion";
/// No object can be read under its new address.
const ADDRESS: [&str; 3] = ["scope", "group", "names"];
/// Part of the state: objects by check.
const WHOLE: &str = "whole";

/// Whether objects are counted for a finding of the whole CRD.
pub(super) fn concerns(finding: &Finding) -> bool {
    finding.check == UNKNOWN_FIELDS || is_only_counted(finding)
}

/// Whether the objects do not decide about a finding: no correction of them helps.
pub(super) fn is_only_counted(finding: &Finding) -> bool {
    finding.check == CONVERSION || ADDRESS.contains(&finding.check.as_str())
}

/// The objects that a finding of the whole CRD affects; `None` if it affects none.
pub(super) fn need(subject: &Subject<'_>, finding: &Finding) -> Option<Need> {
    let is_counted = match finding.check.as_str() {
        CONVERSION => is_conversion_needed(&subject.upgrade),
        _ => concerns(finding) && finding.verdict == Verdict::Breaking,
    };
    let live = subject.change.live.as_deref().filter(|_| is_counted)?;
    Need::objects_of(&StoredState::of(live))
}

/// Whether objects are read in another version than the one that they are stored in.
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
    page: &[Value],
) {
    let mut checks: Vec<&str> =
        asked.iter().map(|found| &found.finding).filter(|it| concerns(it)).map(|it| it.check.as_str()).collect();
    checks.sort_unstable();
    checks.dedup();
    for check in checks {
        for object in page {
            let loss = match (check, planned.after(object)) {
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
            if loss != FieldLoss::None {
                bump(entry(entry(state, WHOLE), check), object, loss == FieldLoss::Possible);
            }
        }
    }
}

/// Whether an object loses a field in a version that is served or stored.
fn pruned(upgrade: &Upgrade<'_>, version: &str, object: &Value) -> FieldLoss {
    let Some(old) = upgrade.old_resource(version) else { return FieldLoss::Possible };
    let is_used = |name: &str| upgrade.new.version(name).is_some_and(|it| it.served || it.storage);
    let targets = upgrade.targets(version);
    let used = targets.iter().filter(|(name, _)| is_used(name)).map(|(_, new)| field_loss(&old, new, object));
    used.max().unwrap_or(FieldLoss::Possible)
}

/// The number of objects that a finding of the whole CRD affects; `None` for other findings.
pub(super) fn counted(finding: &Finding, state: &Value, examined: u64) -> Option<LiveObjects> {
    concerns(finding).then(|| read_counter(&state[WHOLE][finding.check.as_str()], examined))
}
