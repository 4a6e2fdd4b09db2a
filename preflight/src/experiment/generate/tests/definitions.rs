//! Changes of definitions: values set before the upgrade, manual reviews, and their form in the manifest.

use pushback_releases::difference::{ChangeType, DefinitionChange, ReleaseDiff, Severity};
use serde_json::{Value, json};

use super::{component, definition, release, resource, shown, with_manifest};
use crate::experiment::generate::{Options, generate};
use crate::experiment::suite::{Phase, Suite};

fn definition_change(change_type: ChangeType, path: &str, version: &str) -> DefinitionChange {
    serde_json::from_value(json!({
        "path": path, "type": change_type, "severity": "breaking", "oldSchema": null, "newSchema": null,
        "detail": "it changed", "verdict": "breaking", "crdName": "baskets.shop.io", "version": version,
        "id": format!("{change_type:?}{path}"),
    }))
    .unwrap()
}

/// The suite for a change between these fields of `spec` in a definition.
fn redefined(old: Value, new: Value, change: DefinitionChange, instance: Option<Value>) -> Suite {
    let mut web = component("web");
    web.finalizers = vec!["basket.finalizers".to_owned()];
    let mut before = release("2.20", vec![web.clone(), component("db")]);
    if let Some(manifest) = instance {
        let basket = with_manifest(resource("shop.io/v1", "Basket", "mine", &[]), manifest);
        before.operators[0].components[0].resources.push(basket);
    }
    before.definitions = vec![definition(old)];
    let mut after = release("2.21", vec![web, component("db")]);
    after.definitions = vec![definition(new)];
    let diff = ReleaseDiff { crd_changes: vec![change], ..ReleaseDiff::default() };
    generate(&before, &after, &diff, &Options::default())
}

#[test]
fn breaking_changes_of_definitions_are_seeded_before_the_upgrade() {
    let text = json!({"type": "string"});
    let number = json!({"type": "integer"});
    let disks = |item: Value| json!({"disks": {"type": "array", "items": {"type": "object", "properties": item}}});
    let table: [(ChangeType, &str, Value, Value, &str); 9] = [
        (
            ChangeType::FieldRemoved,
            "spec.storage",
            json!({"storage": {"type": "boolean"}}),
            json!({}),
            "crd-breaking-storage-removed.yaml upgrade-test-storage-field-removed pre-upgrade CRDMutation medium web [\"shop\"] apiVersion=shop.io/v1 field=storage kind=Basket name=mine value=true",
        ),
        (
            ChangeType::FieldRemoved,
            "spec.storage",
            json!({"storage": {"type": "object", "properties": {"kind": {"type": "boolean"}}}}),
            json!({}),
            "crd-breaking-storage-removed.yaml upgrade-test-storage-field-removed pre-upgrade CRDMutation high web [\"shop\"] apiVersion=shop.io/v1 field=storage kind=Basket name=mine value={\"kind\":true}",
        ),
        (
            ChangeType::TypeChanged,
            "spec.size",
            json!({"size": number}),
            json!({"size": text}),
            "crd-breaking-size-type-changed.yaml upgrade-test-size-type-changed pre-upgrade CRDMutation medium web [\"shop\"] apiVersion=shop.io/v1 field=size kind=Basket name=mine value=0",
        ),
        (
            ChangeType::EnumValueRemoved,
            "spec.color",
            json!({"color": {"type": "string", "enum": ["red", "blue"]}}),
            json!({"color": {"type": "string", "enum": ["red"]}}),
            "crd-breaking-color-enum-value-removed.yaml upgrade-test-color-enum-value-removed pre-upgrade CRDMutation medium web [\"shop\"] apiVersion=shop.io/v1 field=color kind=Basket name=mine value=blue",
        ),
        (
            ChangeType::EnumRestrictionAdded,
            "spec.color",
            json!({"color": text}),
            json!({"color": {"type": "string", "enum": [""]}}),
            "crd-breaking-color-enum-restriction-added.yaml upgrade-test-color-enum-restriction-added pre-upgrade CRDMutation medium web [\"shop\"] apiVersion=shop.io/v1 field=color kind=Basket name=mine value=a",
        ),
        (
            ChangeType::RequiredAdded,
            "spec.size",
            json!({"size": number}),
            json!({"size": number}),
            "crd-breaking-size-required-added.yaml upgrade-test-size-required-added pre-upgrade CRDMutation high web [\"shop\"] apiVersion=shop.io/v1 field=size kind=Basket name=mine value=null",
        ),
        (
            ChangeType::FieldRemoved,
            "spec.disks[*].size",
            disks(json!({"size": {"type": "boolean"}})),
            disks(json!({})),
            "crd-breaking-size-removed.yaml upgrade-test-size-field-removed pre-upgrade CRDMutation high web [\"shop\"] apiVersion=shop.io/v1 field=disks kind=Basket name=mine value=[{\"size\":true}]",
        ),
        (
            ChangeType::FieldRemoved,
            "spec.pod.replicas",
            json!({"pod": {"type": "object", "properties": {"replicas": {"type": "boolean"}}}}),
            json!({"pod": {"type": "object"}}),
            "crd-breaking-replicas-removed.yaml upgrade-test-replicas-field-removed pre-upgrade CRDMutation high web [\"shop\"] apiVersion=shop.io/v1 kind=Basket name=mine path=spec.pod.replicas value=true",
        ),
        (
            ChangeType::FieldRemoved,
            "spec.never",
            json!({"never": {"type": "string", "minLength": 3, "maxLength": 2}}),
            json!({}),
            "review baskets.shop.io spec.never: it changed: no value was found that only the old definition takes: look for objects that the new one rejects, with `pushback check`",
        ),
    ];
    for (change_type, path, old, new, expected) in table {
        let suite = redefined(old, new, definition_change(change_type, path, "v1"), Some(json!({})));
        assert_eq!(shown(&suite), [expected], "{change_type:?} {path}");
        assert!(suite.experiments.iter().all(|entry| entry.phase == Phase::PreUpgrade));
    }
}

#[test]
fn changes_of_one_list_are_each_shown_by_a_value_of_their_own() {
    let disks = |item: Value| json!({"disks": {"type": "array", "items": {"type": "object", "properties": item}}});
    let color = |values: &[&str]| json!({"type": "string", "enum": values});
    let old =
        disks(json!({"size": {"type": "boolean"}, "name": {"type": "boolean"}, "color": color(&["red", "blue"])}));
    let new = disks(json!({"name": {"type": "integer"}, "color": color(&["red"])}));
    let value = |change_type, path| {
        let suite = redefined(old.clone(), new.clone(), definition_change(change_type, path, "v1"), Some(json!({})));
        suite.experiments[0].experiment.injection.parameters["value"].clone()
    };
    assert_eq!(value(ChangeType::FieldRemoved, "spec.disks[*].size"), r#"[{"size":true}]"#);
    assert_eq!(value(ChangeType::TypeChanged, "spec.disks[*].name"), r#"[{"name":true}]"#);
    assert_eq!(value(ChangeType::EnumValueRemoved, "spec.disks[*].color"), r#"[{"color":"blue"}]"#);
}

#[test]
fn an_instance_that_is_not_known_has_to_be_named() {
    let change = || definition_change(ChangeType::FieldRemoved, "spec.storage", "v1");
    let old = json!({"storage": {"type": "boolean"}});
    let suite = redefined(old.clone(), json!({}), change(), None);
    assert_eq!(
        suite.experiments[0].needs.iter().map(|need| need.as_str()).collect::<Vec<_>>(),
        ["upgrade", "instance"]
    );
    assert_eq!(suite.experiments[0].experiment.injection.parameters["name"], "name-of-the-basket");
    let mut low = change();
    low.severity = Severity::Warning;
    assert_eq!(
        shown(&redefined(old, json!({}), low, None)),
        [
            "review baskets.shop.io spec.storage: it changed: check before the upgrade which objects and clients are affected"
        ],
        "only breaking changes are seeded"
    );
}

#[test]
fn what_no_field_of_an_object_can_show_is_for_people() {
    let old = json!({"storage": {"type": "boolean"}});
    for (change, reason) in [
        (definition_change(ChangeType::CrdRemoved, "", ""), "it changed: check before the upgrade which objects"),
        (definition_change(ChangeType::FieldRemoved, "status.x", "v1"), "it changed: the operator writes status"),
        (
            definition_change(ChangeType::FieldRemoved, "spec.storage", "v0"),
            "it changed: the old release does not serve version v0",
        ),
        (definition_change(ChangeType::FieldRemoved, "spec[\"a.b\"]", "v1"), "it changed: no value was found"),
    ] {
        let suite = redefined(old.clone(), json!({}), change, None);
        let reviews: Vec<&str> = suite.manual.iter().map(|review| review.reason.as_str()).collect();
        assert!(reviews.len() == 1 && reviews[0].starts_with(reason) || !suite.experiments.is_empty(), "{reviews:?}");
    }
}

#[test]
fn the_manifest_lists_everything_in_order() {
    let suite = redefined(
        json!({"storage": {"type": "boolean"}}),
        json!({}),
        definition_change(ChangeType::FieldRemoved, "spec.storage", "v1"),
        None,
    );
    insta::assert_snapshot!(serde_json::to_string_pretty(&suite.manifest()).unwrap(), @r#"
    {
      "apiVersion": "pushback.dev/v1alpha1",
      "kind": "UpgradeSuite",
      "metadata": {
        "name": "upgrade-v2-20-to-v2-21"
      },
      "source": {
        "version": "2.20",
        "platform": "odh"
      },
      "target": {
        "version": "2.21",
        "platform": "odh"
      },
      "experiments": [
        {
          "order": 1,
          "file": "crd-breaking-storage-removed.yaml",
          "digest": "9500765e8913f73f",
          "name": "upgrade-test-storage-field-removed",
          "changeId": "FieldRemovedspec.storage",
          "changeType": "FieldRemoved",
          "operator": "shop-operator",
          "component": "web",
          "injection": "CRDMutation",
          "tier": 3,
          "dangerLevel": "medium",
          "phase": "pre-upgrade",
          "enabled": false,
          "needs": [
            "upgrade",
            "instance"
          ],
          "note": "put the name of a Basket into the parameter name; where it is in another namespace than shop, put that into allowedNamespaces and metadata.namespace"
        }
      ],
      "manual": []
    }
    "#);
    let files: Vec<String> = suite.files().into_iter().map(|(file, _)| file).collect();
    assert_eq!(files, ["crd-breaking-storage-removed.yaml", "suite-manifest.yaml"]);
}
