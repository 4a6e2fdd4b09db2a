//! Names the fields that other managers have set in the app's objects, beside or against their manifests. The plan leaves them
//! alone.

use pushback_cluster::FIELD_MANAGER;
use pushback_cluster::managed_fields::foreign_fields;
use pushback_preflight::Operation;

use super::{PlanWarning, Planned};

/// The fields of other managers that a plan names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NamedDrift {
    /// None.
    None,
    /// Those that people have set by hand.
    #[default]
    ByHand,
    /// All, those of controllers too.
    All,
}

/// Returns a warning for each named field that the plan does not change.
pub(super) fn warnings(objects: &[Planned], named: NamedDrift) -> Vec<PlanWarning> {
    let mut warnings = Vec::new();
    if named == NamedDrift::None {
        return warnings;
    }
    for (index, planned) in objects.iter().enumerate() {
        if !matches!(planned.operation(), Operation::Noop | Operation::Update) {
            continue;
        }
        let (Some(live), Some(manifest)) = (planned.result.as_deref().or(planned.live.as_deref()), &planned.desired)
        else {
            continue;
        };
        let fields = foreign_fields(live, manifest, FIELD_MANAGER);
        let fields = fields.iter().filter(|field| named == NamedDrift::All || field.is_by_hand());
        warnings.extend(fields.map(|field| PlanWarning {
            code: "drift",
            message: format!("{}; it stays", field.describe()),
            object: Some(index),
            position: planned.locate(&[]),
        }));
    }
    warnings
}
