//! Where a new schema applies to objects: which edits it rejects, and what is only read. Each case was seen on a
//! server.

use super::*;

/// The findings of an upgrade, with what each one blocks.
fn blocked(old: Value, new: Value) -> String {
    let report = run(update(old, new));
    let line = |finding: &Finding| {
        let blocks = finding.blocks.as_deref().unwrap_or("-");
        format!("{} {:?} {}: {blocks}", finding.check, finding.verdict, finding.path.as_deref().unwrap_or_default())
    };
    report.findings.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn gateway_api_1_4_blocks_every_edit_of_a_class_that_lists_features_by_name() {
    let mut old = real("gateway-api-1.1.1-experimental-gatewayclasses");
    old["status"] = json!({"storedVersions": ["v1"]});
    insta::assert_snapshot!(blocked(old, real("gateway-api-1.4.1-experimental-gatewayclasses")), @r#"
    default Breaking status: read
    type Breaking status.supportedFeatures[*]: create, any edit of the object
    x-kubernetes-list-type Unknown status.supportedFeatures: -
    default Breaking status: read
    type Breaking status.supportedFeatures[*]: create, any edit of the object
    x-kubernetes-list-type Unknown status.supportedFeatures: -
    "#);
}

/// A definition with this field in `v1`; the other version keeps its own.
fn with_field(field: &Value, served: bool) -> Value {
    edited(|crd| {
        let versions = crd["spec"]["versions"].as_array_mut().expect("versions");
        versions.swap(0, 1);
        versions[0]["storage"] = json!(true);
        versions[1]["storage"] = json!(false);
        versions[1]["served"] = json!(served);
        versions[1]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"] = json!({"size": field});
        // The fields of the scale subresource would limit the values.
        versions[1]["subresources"] = json!({"status": {}});
    })
}

fn upgrade(old: &Value, new: &Value, served: bool) -> String {
    let mut old = with_field(old, served);
    old["status"] = json!({"storedVersions": ["v1", "v1beta1"]});
    blocked(old, with_field(new, served))
}

#[test]
fn a_version_that_is_not_served_refuses_nothing() {
    let (any, small) = (json!({"type": "integer"}), json!({"type": "integer", "maximum": 3}));
    insta::assert_snapshot!(upgrade(&any, &small, true), @r#"maximum Breaking spec.size: create, edit of the field"#);
    assert_eq!(upgrade(&any, &small, false), "");
    let required = |names: Value| json!({"type": "object", "required": names, "properties": {"a": {"type": "string"}}});
    assert_eq!(upgrade(&required(json!([])), &required(json!(["a"])), false), "");
    let rule = json!({"type": "integer", "x-kubernetes-validations": [{"rule": "self == oldSelf"}]});
    assert_eq!(upgrade(&any, &rule, false), "");
}

#[test]
fn a_version_that_is_not_served_still_drops_fields_and_fills_in_defaults() {
    let with = |properties: Value| json!({"type": "object", "properties": properties});
    let (full, empty) = (with(json!({"a": {"type": "string"}})), with(json!({})));
    insta::assert_snapshot!(upgrade(&full, &empty, false), @r#"existingFieldRemoval Breaking spec.size.a: read"#);
    let default = with(json!({"a": {"type": "string", "default": "x"}}));
    insta::assert_snapshot!(upgrade(&full, &default, false), @r#"default Breaking spec.size.a: read"#);
}

#[test]
fn another_conversion_is_judged_by_the_schemas_that_meet_in_it() {
    let webhook = || json!({"strategy": "Webhook"});
    insta::assert_snapshot!(after(|crd| crd["spec"]["conversion"] = webhook()), @"
    invalid Breaking Error: the API server would refuse the definition: is required where strategy is Webhook
    invalid Breaking Error: the API server would refuse the definition: must hold v1 or v1beta1
    conversion Change Warning: conversion strategy changed from None to Webhook: reading an object that is stored in another version now takes the webhook
    ");
    let dropped = |edit: &dyn Fn(&mut Value)| {
        let (mut old, mut new) = (live(&["v1"]), foos());
        old["spec"]["conversion"] = webhook();
        edit(&mut old);
        edit(&mut new);
        lines(&run(update(old, new)))
    };
    insta::assert_snapshot!(dropped(&|_| {}), @"conversion Change Info: conversion strategy changed from Webhook to None");
    let differ = |crd: &mut Value| {
        crd["spec"]["versions"][1]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"] = json!({});
    };
    insta::assert_snapshot!(dropped(&differ), @r#"
        crossVersionLoss Breaking Error: field "^.spec.size" of version "v1" is lost in version "v1beta1": conversion strategy None only rewrites apiVersion
        conversion Change Info: conversion strategy changed from Webhook to None
        "#);
    // A default that only one version sets causes the loss; it is reported once, where the loss occurs.
    insta::assert_snapshot!(dropped(&|crd| {
        let window = |fields: Value, default: Value| {
            json!({"type": "object", "default": default, "properties": fields})
        };
        let text = json!({"type": "string"});
        let windows = [
            window(json!({"kept": text, "lost": text}), json!({"kept": "a", "lost": "b"})),
            window(json!({"kept": text}), json!({"kept": "a"})),
        ];
        for (index, window) in windows.into_iter().enumerate() {
            let schema = format!("/spec/versions/{index}/schema/openAPIV3Schema/properties/spec/properties");
            crd.pointer_mut(&schema).expect("a schema")["window"] = window;
        }
    }), @r#"
    crossVersionLoss Breaking Error: field "^.spec.window.lost" of version "v1" is lost in version "v1beta1": conversion strategy None only rewrites apiVersion
    conversion Change Info: conversion strategy changed from Webhook to None
    "#);
    // The other version is neither served nor stored, so nothing is ever converted to it.
    insta::assert_snapshot!(dropped(&|crd| {
        differ(crd);
        crd["spec"]["versions"][1]["served"] = json!(false);
    }), @"conversion Change Info: conversion strategy changed from Webhook to None");
}
