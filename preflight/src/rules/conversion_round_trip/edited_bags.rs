//! Objects whose values of other versions, which an annotation carries, were edited by hand: what the next conversion
//! takes out of it is no longer what a version wrote.

use pushback_conversion::plan::BagPlace;
use pushback_conversion::{GivenPlan, is_bag_edited};
use pushback_objects::finding::{Finding, Severity, Verdict};
use serde_json::Value;

use super::{EDITED, NAME, Pairs, count, counted};

/// Whether objects may carry such an annotation.
pub(super) fn are_possible(plan: Option<&GivenPlan>) -> bool {
    plan.is_some_and(|given| given.plan().bag == BagPlace::Annotation)
}

/// Counts the objects of a page with an edited annotation. No version has such a name.
pub(super) fn fold(state: &mut Value, page: &[Value]) {
    page.iter().filter(|object| is_bag_edited(object)).for_each(|object| count(&mut state[EDITED], object));
}

pub(super) fn check(pairs: &Pairs<'_>, state: &Value, examined: u64) -> Option<Finding> {
    let live = counted(&state[EDITED], examined);
    if live.affected == 0 {
        return None;
    }
    let (objects, change) = (if live.affected == 1 { "object was" } else { "objects were" }, pairs.change);
    let message = format!(
        "the annotation pushback.dev/property-bag of {} {} {objects} edited; the next conversion uses it as it is",
        live.affected,
        pairs.upgrade.new.kind()
    );
    let position = change.locate(&["spec".into(), "conversion".into()]);
    let mut finding = Finding::new(NAME, EDITED, Verdict::Change, change.object.clone(), message).at(position);
    finding.severity = Severity::Warning;
    finding.effect = Some("altered".to_owned());
    finding.live_objects = Some(live);
    let finding = finding.bound_to(&Value::from(EDITED));
    Some(finding.remedy("set the fields at the version that has them, and leave the annotation to conversions"))
}
