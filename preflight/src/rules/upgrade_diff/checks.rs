//! The checks of UpgradeDiff, one per change type, under its published name, with the remedies.

use pushback_releases::difference::ChangeType;

/// Name and one-line description of each check.
pub(super) const CHECKS: &[(&str, &str)] = &[
    ("ComponentAdded", "a component is new"),
    ("ComponentRemoved", "a component is gone"),
    ("ComponentRenamed", "a component has another name, and is recognised by its similarity"),
    ("PossibleRename", "a component may be another one under a new name"),
    ("PossibleSplit", "a component may have become several"),
    ("PossibleMerge", "several components may have become one"),
    ("NamespaceChanged", "an operator moves to another namespace"),
    ("ResourceAdded", "a component gets a resource"),
    ("ResourceRemoved", "a component loses a resource"),
    ("ResourceRenamed", "a resource has another name"),
    ("ResourceMoved", "a resource moves to another namespace"),
    ("ApiVersionChanged", "a resource is written in another API version"),
    ("LabelChanged", "a label of a resource is added, removed or changed"),
    ("SelectorChanged", "the Pod selector of a workload changes, which no API server allows"),
    (
        "SpecChanged",
        "a field that matters for running changes: replicas, ports, strategy, arguments, volumes, limits, probes, rights of containers, scheduling; other fields of `spec` by name",
    ),
    ("ImageChanged", "a container has another image"),
    ("PermissionsNarrowed", "a role loses a permission, or an account its role"),
    ("PermissionsWidened", "a role gets a permission, or an account a role"),
    ("WebhookAdded", "an admission or conversion webhook is new"),
    ("WebhookRemoved", "a webhook is removed: nobody checks, sets or converts what it did"),
    ("WebhookModified", "a webhook changes its type, path, failure policy, timeout, rules or selectors"),
    ("WebhookDeadlock", "a webhook that fails closed is served from a namespace that is being removed"),
    ("FinalizerAdded", "an operator puts a new finalizer on objects"),
    ("FinalizerRemoved", "nobody removes a finalizer that objects still have"),
    ("DependencyAdded", "a component needs another one that it did not need"),
    ("DependencyRemoved", "a component no longer needs another one"),
    ("RecoveryChanged", "the time to recover changes"),
    ("CRDAdded", "a definition is new"),
    ("CRDRemoved", "a definition is gone"),
    ("CRDScopeChanged", "objects of a kind move between namespaced and cluster-wide"),
    ("APIVersionAdded", "a kind is served in one more version"),
    ("APIVersionRemoved", "a kind is no longer served in a version"),
    ("APIVersionDeprecated", "a version of a kind is marked as deprecated"),
    ("StorageVersionChanged", "objects of a kind are stored in another version"),
    ("CRDNamesChanged", "a definition has other names"),
    ("ConversionChanged", "objects of a kind are converted between versions in another way"),
    ("SubresourceAdded", "a kind gets a status or scale subresource"),
    ("SubresourceRemoved", "a kind loses its status or scale subresource"),
    ("SubresourceChanged", "the scale subresource reads or writes other fields"),
    ("SelectableFieldsChanged", "objects can be selected by other fields"),
    ("PrinterColumnsChanged", "a listing shows other columns"),
    ("FieldRemoved", "a field is gone"),
    ("FieldAdded", "a field is new"),
    ("FieldRenamed", "a field may be another one under a new name"),
    ("TypeChanged", "a field has another type"),
    ("RequiredAdded", "a field is now required"),
    ("RequiredRemoved", "a field is now optional"),
    ("EnumRestrictionAdded", "a field now accepts only listed values"),
    ("EnumRestrictionRemoved", "a field now accepts any value"),
    ("EnumValueRemoved", "a value is no longer allowed"),
    ("EnumValueAdded", "a value is allowed now"),
    ("DefaultChanged", "a default is added, removed or changed"),
    ("ConstraintChanged", "any other keyword of a schema changes"),
    ("NotObservable", "one side does not show a fact, so it is not known whether it changed"),
];

/// What to do about a change; empty if nothing has to be done.
pub(super) fn remedy(change_type: ChangeType) -> &'static str {
    match change_type {
        ChangeType::ComponentRenamed | ChangeType::ResourceRenamed => {
            "make sure that the old one is gone before the new one starts to act, or keep the name"
        }
        ChangeType::NamespaceChanged | ChangeType::ResourceMoved => {
            "move data and permissions along, and keep the old namespace until nothing is served from it"
        }
        ChangeType::SelectorChanged => {
            "keep the selector, or give the workload a new name and remove the old one afterwards"
        }
        ChangeType::PermissionsNarrowed => "make sure that no running version needs the permission during the rollout",
        ChangeType::WebhookRemoved => "keep it until no object and no client depends on it",
        ChangeType::WebhookModified => "roll out the backend first, and the configuration once it answers",
        ChangeType::WebhookDeadlock => "remove the webhook configuration first, in a release of its own",
        ChangeType::FinalizerRemoved => "remove the finalizer from all objects before its operator is removed",
        ChangeType::DependencyAdded => "order them with change groups, and test each without the other",
        ChangeType::DependencyRemoved => "make sure that nothing else depends on their order",
        ChangeType::CrdRemoved | ChangeType::CrdScopeChanged => {
            "serve a new kind beside the old one and move the objects first"
        }
        ChangeType::ApiVersionRemoved => "serve the version until no client and no stored object needs it",
        ChangeType::FieldRemoved | ChangeType::TypeChanged => {
            "keep the field, or serve a new version with a conversion webhook"
        }
        ChangeType::RequiredAdded => "give the field a default, or leave it optional",
        ChangeType::EnumRestrictionAdded | ChangeType::EnumValueRemoved => "keep the values that objects may hold",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_check_is_a_type_of_change_and_the_other_way_round() {
        let mut known = BTreeSet::new();
        for (name, _) in CHECKS {
            let read: ChangeType = serde_json::from_value((*name).into()).expect("a type of change");
            assert_eq!(read.name(), *name);
            known.insert(*name);
        }
        let error = serde_json::from_value::<ChangeType>("Nothing".into()).expect_err("no such type").to_string();
        // A component's summary of its definition's changes never becomes a finding of its own.
        for name in error.split('`').skip(3).step_by(2).filter(|name| *name != "CRDSchemaChange") {
            assert!(known.contains(name), "{name} has no line");
        }
    }
}
