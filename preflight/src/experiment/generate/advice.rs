//! What people are asked to look at where no experiment tests a change.

use pushback_releases::difference::{ChangeType, DefinitionChange};

/// For a change of a definition.
pub(super) fn for_definition(change: &DefinitionChange) -> &'static str {
    match change.change_type {
        ChangeType::DefaultChanged => {
            "objects that leave the field out get another value from the upgrade on: check that it suits them"
        }
        ChangeType::ConstraintChanged => {
            "whether stored objects still fit is not proved: `pushback check` on the cluster tells"
        }
        ChangeType::ConversionChanged => {
            "check that objects of every version are served before, during and after the upgrade"
        }
        ChangeType::StorageVersionChanged => {
            "check with `pushback storage status` in which versions objects are stored"
        }
        ChangeType::SubresourceAdded | ChangeType::SubresourceChanged | ChangeType::SubresourceRemoved => {
            "check that clients write to the path that is served then"
        }
        _ => "check before the upgrade which objects and clients are affected",
    }
}

/// For a change of a component.
pub(super) fn for_component(change_type: ChangeType) -> &'static str {
    match change_type {
        ChangeType::PermissionsNarrowed => "check that the operator needs none of the rights that go",
        ChangeType::PermissionsWidened => "check that the operator may have these rights",
        ChangeType::SelectorChanged => "selectors cannot be changed in place: check how its Pods are replaced",
        ChangeType::WebhookModified => "check what it admits now, and that its backend is ready before it is asked",
        ChangeType::WebhookDeadlock => "check that its backend can start while the webhook cannot answer",
        ChangeType::FinalizerRemoved => "check that objects which carry it are released: nobody removes it any more",
        ChangeType::DependencyRemoved => "check that nothing waits for it any more",
        ChangeType::PossibleRename | ChangeType::PossibleSplit | ChangeType::PossibleMerge => {
            "check what became of the component"
        }
        _ => "no injection shows it: check it after the upgrade",
    }
}
