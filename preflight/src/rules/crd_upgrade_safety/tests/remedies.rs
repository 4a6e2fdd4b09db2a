//! Remedies chosen by facts: fields, other versions, statuses, manifests, and CRDs that take the place of others.

use pushback_objects::remedy::{Audience, Remedy, RemedyKind};
use serde_json::json;

use super::*;

const V1: usize = 0;
const BETA: usize = 1;

/// [`foos`] with these fields of `spec` in v1 and v1beta1.
fn with_fields(v1: &Value, beta: &Value) -> Value {
    edited(|crd| {
        for (version, fields) in [(V1, v1), (BETA, beta)] {
            let spec = json!({"type": "object", "properties": fields});
            crd["spec"]["versions"][version]["schema"]["openAPIV3Schema"]["properties"]["spec"] = spec;
            crd["spec"]["versions"][version]["subresources"] = json!({"status": {}});
            crd["spec"]["versions"][version]["selectableFields"] = json!([]);
            crd["spec"]["versions"][version]["additionalPrinterColumns"] = json!([]);
        }
    })
}

fn stored(mut crd: Value) -> Value {
    crd["status"] = json!({"storedVersions": ["v1"]});
    crd
}

/// The fix for the author, by check.
fn fix(old: Value, new: Value, check: &str) -> String {
    let report = run(update(stored(old), new));
    let found = report.findings.iter().find(|it| it.check == check).unwrap_or_else(|| panic!("{:#?}", report.findings));
    found.remedy.clone().unwrap_or_default()
}

fn text() -> Value {
    json!({"type": "string"})
}

#[test]
fn removed_field_is_kept_in_every_version_that_objects_pass_through() {
    let (both, gone) = (json!({"a": text(), "b": {"type": "integer"}}), json!({"b": {"type": "integer"}}));
    let in_both = fix(with_fields(&both, &both), with_fields(&gone, &gone), "existingFieldRemoval");
    assert!(in_both.starts_with("keep the field in \"v1\" and \"v1beta1\","), "{in_both}");
    // The other version never had it.
    let in_one = fix(with_fields(&both, &gone), with_fields(&gone, &gone), "existingFieldRemoval");
    assert!(in_one.starts_with("keep the field, "), "{in_one}");
    let webhook = |mut crd: Value| {
        crd["spec"]["conversion"] = json!({"strategy": "Webhook", "webhook": {"clientConfig": {"url": "https://a.example"}, "conversionReviewVersions": ["v1"]}});
        crd
    };
    let converted = fix(webhook(with_fields(&both, &both)), webhook(with_fields(&gone, &gone)), "existingFieldRemoval");
    assert!(converted.starts_with("keep the field, "), "{converted}");
}

#[test]
fn removed_field_with_a_successor_names_it() {
    let fields = |name: &str| json!({name: text(), "size": {"type": "integer"}});
    let renamed = fix(
        with_fields(&fields("colour"), &fields("colour")),
        with_fields(&fields("color"), &fields("color")),
        "existingFieldRemoval",
    );
    assert!(renamed.contains("`color`") && renamed.contains("conversion plan"), "{renamed}");
    // A new field of another type is not what became of it.
    let mut other = fields("x");
    other["x"] = json!({"type": "boolean"});
    let plain =
        fix(with_fields(&fields("colour"), &fields("colour")), with_fields(&other, &other), "existingFieldRemoval");
    assert!(!plain.contains("`x`"), "{plain}");
}

#[test]
fn version_that_is_kept_names_the_fields_that_others_need() {
    let (rich, poor) = (json!({"a": text(), "b": text()}), json!({"b": text()}));
    let mut old = with_fields(&poor, &rich);
    // Nothing was lost before: objects were stored in the richer version.
    old["spec"]["versions"][V1]["storage"] = json!(false);
    old["spec"]["versions"][BETA]["storage"] = json!(true);
    let mut new = with_fields(&poor, &rich);
    new["spec"]["versions"].as_array_mut().expect("versions").truncate(1);
    old["status"] = json!({"storedVersions": ["v1beta1"]});
    let report = run(update(old, new));
    let found = report.findings.iter().find(|it| it.check == "servedVersionRemoval").cloned();
    // It is hidden while objects are stored in it; the file of a git ref does not show that.
    let remedy = found.and_then(|it| it.remedy).unwrap_or_default();
    assert!(remedy.is_empty() || remedy.contains("and keep `spec.a` in \"v1\" too"), "{remedy}");
    let mut file = with_fields(&poor, &rich);
    let removed = {
        let mut new = file.clone();
        new["spec"]["versions"].as_array_mut().expect("versions").truncate(1);
        new
    };
    file["spec"]["versions"][V1]["storage"] = json!(false);
    file["spec"]["versions"][BETA]["storage"] = json!(true);
    let report = run_on(ClusterSide::Directory, vec![update(file, removed)], &json!({}), Ok(Vec::new()));
    let found = report.findings.iter().find(|it| it.check == "storedVersionRemoval").expect("a finding");
    let remedy = found.remedy.clone().unwrap_or_default();
    assert!(remedy.contains("and keep `spec.a` in \"v1\" too"), "{remedy}");
}

#[test]
fn field_that_is_there_and_only_loses_null_is_not_to_be_named() {
    let old = json!({"a": {"type": "string", "nullable": true}});
    let mut new = with_fields(&old, &json!({"a": text()}));
    new["spec"]["versions"][BETA]["name"] = json!("v2");
    let mut before = with_fields(&old, &old);
    before["spec"]["versions"].as_array_mut().expect("versions").truncate(1);
    let remedy = fix(before, new, "crossVersionLoss");
    assert!(remedy.starts_with("set `nullable: true` in the schema of \"v2\" too"), "{remedy}");
}

#[test]
fn default_that_is_added_is_not_to_be_kept() {
    let of = |default: Option<&str>| {
        let mut field = text();
        if let Some(default) = default {
            field["default"] = json!(default);
        }
        with_fields(&json!({"a": field}), &json!({"a": field}))
    };
    let remedy = |old: Option<&str>, new: Option<&str>| fix(of(old), of(new), "default");
    assert!(remedy(None, Some("x")).starts_with("leave the field without a default"));
    assert!(remedy(Some("x"), None).starts_with("keep the default: "));
    assert!(remedy(Some("x"), Some("y")).starts_with("keep the default, "));
}

/// The remedies for the deployer of the first finding of a check, for these objects.
fn ways(changes: Vec<Change>, check: &str, objects: Vec<Value>) -> Vec<Remedy> {
    let report = run_with(changes, &json!({}), Ok(objects));
    let found = report.findings.into_iter().find(|it| it.check == check).expect("a finding");
    found.remedies.into_iter().filter(|it| it.audience == Audience::Deployer).collect()
}

fn foo(spec: &Value, status: &Value) -> Value {
    json!({"apiVersion": "ex.com/v1", "kind": "Foo", "metadata": {"name": "a", "namespace": "shop", "uid": "1"},
        "spec": spec, "status": status})
}

#[test]
fn status_is_edited_through_its_subresource() {
    let of = |phase: &Value| {
        let mut crd = with_fields(&json!({"a": text()}), &json!({"a": text()}));
        for version in [V1, BETA] {
            crd["spec"]["versions"][version]["schema"]["openAPIV3Schema"]["properties"]["status"] =
                json!({"type": "object", "properties": {"phase": phase}});
        }
        crd
    };
    let change = || update(stored(of(&text())), of(&json!({"type": "string", "enum": ["Up"]})));
    let found = ways(vec![change()], "enum", vec![foo(&json!({}), &json!({"phase": "Down"}))]);
    assert_eq!(found[0].commands, ["kubectl edit foos.ex.com a --subresource=status -n shop"]);
}

#[test]
fn object_that_the_run_writes_is_corrected_in_its_manifest() {
    let of = |field: &Value| with_fields(&json!({"a": field}), &json!({"a": field}));
    let manifest = foo(&json!({"a": "x"}), &json!({}));
    let crd = update(stored(of(&text())), of(&json!({"type": "string", "enum": ["y"]})));
    let object = change(Operation::Update, Some(manifest.clone()), Some(manifest.clone()));
    let found = ways(vec![crd, object], "enum", vec![manifest]);
    assert_eq!(found[0].kind, RemedyKind::CorrectObjects);
    assert!(found[0].steps[0].contains("crd.yaml:"), "{found:?}");
    assert_eq!(found[0].commands, ["pushback apply"], "kubectl would be overwritten");
}

#[test]
fn crd_with_another_group_leads_to_its_successor() {
    let mut new = foos();
    new["metadata"]["name"] = json!("foos.new.ex.com");
    new["spec"]["group"] = json!("new.ex.com");
    let gone = || delete(stored(foos()));
    let object = || vec![foo(&json!({"size": 1}), &json!({}))];
    let created = change(Operation::Create, None, Some(new.clone()));
    let found = ways(vec![gone(), created], "crdDeletion", object());
    assert_eq!(found[0].kind, RemedyKind::MoveObjects, "{found:?}");
    assert!(found[0].commands.iter().any(|command| command.contains("apiVersion: new.ex.com/v1")), "{found:?}");
    // Another schema is another kind.
    new["spec"]["versions"][V1]["schema"]["openAPIV3Schema"]["properties"]["spec"] = json!({"type": "object"});
    new["spec"]["versions"].as_array_mut().expect("versions").truncate(1);
    let created = change(Operation::Create, None, Some(new));
    assert_eq!(ways(vec![gone(), created], "crdDeletion", object())[0].kind, RemedyKind::Keep);
}
