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
