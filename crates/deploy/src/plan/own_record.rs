//! The app's own record among the planned objects: nothing may take its place, or delete the namespace that holds it.

use pushback_app::record::{Observed, QUALIFIED_SUFFIX};
use pushback_manifest::InputError;
use pushback_objects::ObjectRef;

use super::desired::Desired;
use super::{Action, PlanError, Planned};

/// Refuses to prune the record's namespace, which would delete record and lock too; only deleting the app may.
pub(super) fn check_deleted_namespace(observed: &Observed, prunes: &[Planned]) -> Result<(), PlanError> {
    let home = &observed.app.namespace;
    let is_home = |planned: &&Planned| holds_record(observed, &planned.object) && !planned.is_orphaned();
    match prunes.iter().find(is_home) {
        None => Ok(()),
        Some(_) => Err(PlanError::Input(vec![InputError {
            message: format!("Namespace {home} is gone from the input, and it holds the app's own record"),
            position: Default::default(),
            hints: vec![
                "keep it in the input, or delete the whole app with `pushback delete`".to_owned(),
                "to leave the namespace where it is, annotate it with kapp.k14s.io/delete-strategy: orphan".to_owned(),
            ],
        }])),
    }
}

/// Refuses to replace the record's namespace: record and lock would be deleted in the middle of the run.
pub(super) fn check_replaced_namespace(observed: &Observed, pairs: &[(Desired, Planned)]) -> Result<(), PlanError> {
    let is_replaced = |(wanted, planned): &&(Desired, Planned)| {
        matches!(planned.action, Action::Replace(_)) && holds_record(observed, &wanted.object)
    };
    match pairs.iter().find(is_replaced) {
        None => Ok(()),
        Some((wanted, _)) => Err(PlanError::Input(vec![InputError {
            message: format!(
                "Namespace {} would be deleted and created anew, and it holds the app's own record",
                wanted.object.name
            ),
            position: wanted.positions.start(),
            hints: vec![
                "change the namespace in place: remove the annotation kapp.k14s.io/update-strategy".to_owned(),
                "to replace it all the same, delete the whole app with `pushback delete`, then apply it again"
                    .to_owned(),
            ],
        }])),
    }
}

/// Returns whether an object is the namespace of the app's own record.
fn holds_record(observed: &Observed, object: &ObjectRef) -> bool {
    let is_namespace = object.group.is_empty() && object.kind == "Namespace";
    is_namespace && object.name == observed.app.namespace && observed.app.defining_label().is_none()
}

/// Refuses an input object at the address of the app's own record: it would erase what the app owns.
pub(super) fn check_manifests(observed: &Observed, desired: &[Desired]) -> Result<(), PlanError> {
    let app = &observed.app;
    let takes_its_place = |wanted: &&Desired| {
        let object = &wanted.object;
        (object.group.as_str(), object.kind.as_str(), object.namespace.as_str()) == ("", "ConfigMap", &app.namespace)
            && object.name.strip_suffix(QUALIFIED_SUFFIX).unwrap_or(&object.name) == app.name
    };
    let errors: Vec<InputError> = desired
        .iter()
        .filter(takes_its_place)
        .map(|wanted| InputError {
            message: format!("{} has the name of the app's own record", wanted.object),
            position: wanted.positions.start(),
            hints: vec!["choose another app name, or another namespace for the record (--app-namespace)".to_owned()],
        })
        .collect();
    if errors.is_empty() { Ok(()) } else { Err(PlanError::Ownership(errors, Vec::new())) }
}
