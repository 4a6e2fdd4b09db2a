//! Fields that other managers have set in the app's objects, beside or against their manifests: a plan leaves them alone, and
//! tells of them where it is asked to compare with the live objects.

use pushback_preflight::Operation;

use super::{PlanWarning, Planned};
use crate::cluster::FIELD_MANAGER;
use crate::managed_fields::foreign_fields;

/// A warning for each field of others that the plan does not change.
pub(super) fn warnings(objects: &[Planned]) -> Vec<PlanWarning> {
    let mut warnings = Vec::new();
    for (index, planned) in objects.iter().enumerate() {
        let change = &planned.change;
        if !matches!(change.operation, Operation::Noop | Operation::Update) {
            continue;
        }
        let (Some(live), Some(manifest)) = (change.result.as_deref().or(change.live.as_deref()), &change.desired)
        else {
            continue;
        };
        warnings.extend(foreign_fields(live, manifest, FIELD_MANAGER).iter().map(|field| PlanWarning {
            code: "drift",
            message: format!("{}; it stays", field.told()),
            object: Some(index),
            position: change.locate(&[]),
        }));
    }
    warnings
}
