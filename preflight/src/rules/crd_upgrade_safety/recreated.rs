//! Replacing a CRD deletes the app's own custom resources, which the run creates again: without their status, and
//! without what they own.

use pushback_crd::definition::Crd;
use pushback_objects::finding::{Finding, LiveObjects, Verdict};
use pushback_objects::object::ObjectExt;
use serde_json::json;

use crate::facts::{Change, ChangeSet, Operation};

/// Maximum number of names in a finding.
const SHOWN: usize = 5;

/// Reports, under a rule and its check, the custom resources that the change set creates again after their CRD; `None`
/// if there are none.
pub(super) fn finding(
    (rule, check): (&'static str, &'static str),
    change: &Change,
    crd: &Crd<'_>,
    changes: &ChangeSet,
) -> Option<Finding> {
    if change.operation != Operation::Replace {
        return None;
    }
    let of_kind = || {
        let is_one =
            |other: &&Change| (other.object.group.as_str(), other.object.kind.as_str()) == (crd.group(), crd.kind());
        changes.changes.iter().filter(is_one)
    };
    // Where the scope changes, an object is deleted in its namespace and created outside of it, or the other way round.
    let created = || of_kind().filter(|other| other.operation == Operation::Create);
    let is_moved = |other: &Change| {
        other.operation == Operation::Delete && created().any(|created| created.object.name == other.object.name)
    };
    let mut recreated: Vec<String> = of_kind()
        .filter(|other| other.operation == Operation::Replace || is_moved(other))
        .filter_map(|other| Some(other.live.as_deref()?.full_name()))
        .collect();
    if recreated.is_empty() {
        return None;
    }
    recreated.sort_unstable();
    let count = recreated.len();
    let objects = match count {
        1 => format!("1 {} object of the app is", crd.kind()),
        _ => format!("{count} {} objects of the app are", crd.kind()),
    };
    let message = format!(
        "the CRD is deleted and created anew: {objects} deleted with it and created again, without status and without the \
         objects that a controller made for them"
    );
    let mut finding = Finding::new(rule, check, Verdict::Breaking, change.object.clone(), message)
        .at(change.locate(&[]))
        .bound_to(&json!([crd.value.get("spec"), change.after().and_then(|after| after.get("spec")), "recreated"]))
        .remedy("change the CRD in place; or waive this finding, and the run creates the objects again");
    finding.live_objects =
        Some(LiveObjects::exactly(count as u64, count as u64, recreated.into_iter().take(SHOWN).collect()));
    Some(finding)
}
