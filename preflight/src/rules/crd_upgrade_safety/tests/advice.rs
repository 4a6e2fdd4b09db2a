//! What a finding says in addition to its verdict: the effect on objects, what is blocked, and advice that works.

use serde_json::json;

use super::*;

/// Judges a change between these two schemas of `spec`.
fn of_spec(old: Value, new: Value) -> RunReport {
    let with = |spec: Value| {
        edited(|crd| crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"] = spec)
    };
    let mut old = with(old);
    old["status"] = json!({"storedVersions": ["v1"]});
    run(update(old, with(new)))
}

#[test]
fn an_embedded_resource_with_other_metadata_makes_its_kind_unreadable() {
    let field = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "required": ["apiVersion", "kind"],
        "properties": {"apiVersion": {"type": "string", "enum": ["v1"]}, "kind": {"type": "string", "enum": ["Pod"]}}});
    let of = |field: &Value| json!({"type": "object", "properties": {"f": field}});
    let mut embedded = field.clone();
    embedded["x-kubernetes-embedded-resource"] = json!(true);
    let report = of_spec(of(&field), of(&embedded));
    let found = report.findings.iter().find(|it| it.check == "x-kubernetes-embedded-resource").expect("a finding");
    let witness = found.witness.as_ref().expect("a witness");
    assert_eq!((found.effect.as_deref(), found.blocks.as_deref()), (Some("unreadable"), Some("read")));
    assert_eq!(witness["spec"]["f"]["metadata"], json!(5));
    // Metadata that was an object before still is one.
    let mut typed = field;
    typed["properties"]["metadata"] = json!({"type": "object"});
    let mut embedded = typed.clone();
    embedded["x-kubernetes-embedded-resource"] = json!(true);
    let report = of_spec(of(&typed), of(&embedded));
    assert!(report.findings.iter().all(|it| it.effect.as_deref() != Some("unreadable")), "{}", lines(&report));
}

#[test]
fn a_change_tells_what_it_blocks_whatever_else_changes() {
    let of = |maximum: Value, required: Value| {
        json!({"type": "object", "required": required, "properties": {
            "a": {"type": "integer", "maximum": maximum}, "b": {"type": "string"}}})
    };
    let alone = of_spec(of(json!(9), json!([])), of(json!(5), json!([])));
    let both = of_spec(of(json!(9), json!([])), of(json!(5), json!(["b"])));
    let blocks = |report: &RunReport, check: &str| {
        let found = report.findings.iter().find(|it| it.check == check).expect("a finding").clone();
        found.blocks.unwrap_or_default()
    };
    assert_eq!(blocks(&alone, "maximum"), "create, edit of the field");
    assert_eq!(blocks(&both, "maximum"), "create, edit of the field");
    assert_eq!(blocks(&both, "required"), "create, any edit of the parent");
}

#[test]
fn invalid_item_blocks_every_edit_of_its_list_unless_items_are_found_by_key() {
    let of = |kind: &str, maximum: Value| {
        let item = json!({"type": "object", "required": ["k"], "properties": {
            "k": {"type": "string"}, "n": {"type": "integer", "maximum": maximum}}});
        let mut list = json!({"type": "array", "items": item});
        if !kind.is_empty() {
            list["x-kubernetes-list-type"] = json!(kind);
        }
        if kind == "map" {
            list["x-kubernetes-list-map-keys"] = json!(["k"]);
        }
        json!({"type": "object", "properties": {"f": list}})
    };
    let blocks = |kind: &str| {
        let report = of_spec(of(kind, json!(9)), of(kind, json!(5)));
        report.findings.first().expect("a finding").blocks.clone().unwrap_or_default()
    };
    assert_eq!(blocks(""), "create, any edit of the list");
    assert_eq!(blocks("atomic"), "create, any edit of the list");
    assert_eq!(blocks("map"), "create, edit of the field");
}

#[test]
fn a_rule_for_new_objects_alone_blocks_no_edit() {
    let of = |rules: Value| json!({"type": "object", "properties": {"a": {"type": "string", "x-kubernetes-validations": rules}}});
    let blocks = |rule: Value| {
        let report = of_spec(of(json!([])), of(json!([rule])));
        report.findings.first().expect("a finding").blocks.clone().unwrap_or_default()
    };
    assert_eq!(blocks(json!({"rule": "oldSelf.hasValue() || self == 'x'", "optionalOldSelf": true})), "create");
    assert_eq!(blocks(json!({"rule": "self == 'x'"})), "create, any edit of the parent");
}

fn remedy(report: &RunReport, check: &str) -> String {
    let found = report.findings.iter().find(|it| it.check == check).expect("a finding");
    found.remedy.clone().unwrap_or_default()
}

#[test]
fn advice_is_never_what_is_so_already_nor_what_another_check_refuses() {
    let without = |versions: &[&str]| {
        edited(|crd| {
            let kept = crd["spec"]["versions"].as_array().expect("versions").iter();
            let kept = kept.filter(|version| versions.contains(&version["name"].as_str().expect("a name"))).cloned();
            let mut kept: Vec<Value> = kept.collect();
            kept[0]["storage"] = json!(true);
            crd["spec"]["versions"] = kept.into();
        })
    };
    let stored = remedy(&run(update(live(&["v1"]), without(&["v1beta1"]))), "storedVersionRemoval");
    assert!(stored.starts_with("apply with `--storage=bridge`"), "{stored}");
    let mut deprecated = live(&["v1", "v1beta1"]);
    deprecated["spec"]["versions"][1]["deprecated"] = json!(true);
    let mut unserved = deprecated.clone();
    unserved["spec"]["versions"][1]["served"] = json!(false);
    let given_up = remedy(&run(update(deprecated.clone(), unserved)), "servedVersionUnserved");
    assert!(!given_up.contains("deprecated: true"), "{given_up}");
    let removed = remedy(&run(update(deprecated, without(&["v1"]))), "storedVersionRemoval");
    assert!(!removed.contains("deprecated: true") && !removed.contains("served: false"), "{removed}");
    // A file does not show what is stored.
    let mut file = foos();
    file["spec"]["versions"][1]["deprecated"] = json!(true);
    let gone = remedy(&run(update(file, without(&["v1"]))), "servedVersionRemoval");
    assert!(!gone.contains("mark it"), "{gone}");
}

#[test]
fn a_bound_that_is_new_was_never_wider() {
    let of = |field: Value| json!({"type": "object", "properties": {"f": field}});
    let added = of_spec(of(json!({"type": "integer"})), of(json!({"type": "integer", "maximum": 5})));
    assert!(remedy(&added, "maximum").starts_with("leave maximum out,"), "{}", remedy(&added, "maximum"));
    let narrowed = of_spec(of(json!({"type": "integer", "maximum": 9})), of(json!({"type": "integer", "maximum": 5})));
    assert!(remedy(&narrowed, "maximum").contains("as wide as it was"));
}
