//! Laws of the set model, and the sets of a Deployment with two managers.

use proptest::prelude::*;
use pushback_objects::PathSegment;
use serde_json::json;

use super::*;

fn deployment() -> Value {
    json!({
        "metadata": {
            "labels": {"app": "web", "team": "a"},
            "finalizers": ["ex.com/one", "ex.com/two"],
            "managedFields": [
                {"manager": "pushback", "operation": "Apply", "apiVersion": "apps/v1", "time": "2026-01-01T00:00:00Z",
                 "fieldsType": "FieldsV1", "fieldsV1": {
                    "f:metadata": {"f:labels": {"f:app": {}}, "f:finalizers": {"v:\"ex.com/two\"": {}}},
                    "f:spec": {
                        "f:selector": {},
                        "f:template": {"f:spec": {"f:containers": {"k:{\"name\":\"web\"}": {
                            ".": {}, "f:name": {}, "f:image": {},
                            "f:ports": {"k:{\"protocol\":\"TCP\",\"containerPort\":80}": {".": {}, "f:containerPort": {}}}
                        }}}}
                    }}},
                {"manager": "kubectl", "operation": "Update", "subresource": "scale", "apiVersion": "apps/v1",
                 "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:replicas": {}}}}
            ]
        },
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"spec": {"containers": [
                {"name": "side", "image": "side:1"},
                {"name": "web", "image": "web:1", "ports": [{"containerPort": 80, "protocol": "TCP", "name": "http"}]}
            ]}}
        }
    })
}

fn path(steps: &[&str]) -> Vec<Element> {
    steps.iter().map(|step| Element::parse(step).expect("it is valid")).collect()
}

#[test]
fn the_owned_part_of_an_object_has_its_keys_and_nothing_of_others() {
    let object = deployment();
    let entries = managers(&object).expect("it is valid");
    assert_eq!(
        project(&entries[0].fields, &object),
        json!({
            "metadata": {"finalizers": ["ex.com/two"], "labels": {"app": "web"}},
            "spec": {
                "selector": {"matchLabels": {"app": "web"}},
                "template": {"spec": {"containers": [
                    {"name": "web", "image": "web:1", "ports": [{"containerPort": 80, "protocol": "TCP"}]}
                ]}}
            }
        })
    );
    assert_eq!(project(&entries[1].fields, &object), json!({"spec": {"replicas": 3}}));
    assert_eq!(project(&FieldSet::default(), &object), json!({}));
}

#[test]
fn a_path_leads_to_the_list_item_that_it_names() {
    let object = deployment();
    let image = path(&["f:spec", "f:template", "f:spec", "f:containers", "k:{\"name\":\"web\"}", "f:image"]);
    let place = resolve(&image, &object).expect("it is valid");
    assert_eq!(pushback_objects::source::display_path(&place), "spec.template.spec.containers[1].image");
    assert_eq!(
        resolve(&path(&["f:metadata", "f:finalizers", "v:\"ex.com/two\""]), &object).expect("it is valid")[2],
        1.into()
    );
    assert_eq!(resolve(&path(&["f:metadata", "f:finalizers", "i:1"]), &object).expect("it is valid")[2], 1.into());
    for absent in [
        path(&["f:spec", "f:absent"]),
        path(&["f:metadata", "f:finalizers", "i:2"]),
        path(&["f:metadata", "f:finalizers", "f:name"]),
        path(&["f:spec", "k:{\"name\":\"web\"}"]),
        path(&["f:metadata", "f:finalizers", "k:{\"name\":\"web\"}"]),
    ] {
        assert_eq!(resolve(&absent, &object), None, "{absent:?}");
    }
}

#[test]
fn the_owners_of_a_field_are_those_that_set_it_or_what_contains_it() {
    let object = deployment();
    let owners = |segments: &[PathSegment]| -> Vec<String> {
        owners_of(&object, segments).expect("it is valid").into_iter().map(|owner| owner.manager).collect()
    };
    assert_eq!(owners(&["spec".into(), "replicas".into()]), ["kubectl"]);
    assert_eq!(owners(&["spec".into()]), ["pushback", "kubectl"]);
    assert_eq!(owners(&["spec".into(), "selector".into(), "matchLabels".into(), "app".into()]), ["pushback"]);
    let container = |index: usize, field: &str| {
        owners(&["spec".into(), "template".into(), "spec".into(), "containers".into(), index.into(), field.into()])
    };
    assert_eq!(container(1, "image"), ["pushback"]);
    assert!(container(0, "image").is_empty());
    assert_eq!(owners(&["metadata".into(), "finalizers".into(), 1.into()]), ["pushback"]);
    assert!(owners(&["metadata".into(), "finalizers".into(), 0.into()]).is_empty());
}

#[test]
fn an_entry_is_written_back_as_it_was() {
    let object = deployment();
    let written: Vec<Value> = managers(&object).expect("it is valid").iter().map(ManagerEntry::to_value).collect();
    // Only the order of the fields in a key may differ from the original.
    let expected = object["metadata"]["managedFields"].to_string().replace(
        r#"k:{\"protocol\":\"TCP\",\"containerPort\":80}"#,
        r#"k:{\"containerPort\":80,\"protocol\":\"TCP\"}"#,
    );
    assert_eq!(canonical(&Value::Array(written)), canonical(&serde_json::from_str(&expected).expect("it is valid")));
}

#[test]
fn malformed_sets_are_errors_with_their_place() {
    let error = |fields: Value| {
        let object = json!({"metadata": {"managedFields": [{"manager": "m"}, {"fieldsV1": fields}]}});
        managers(&object).expect_err("it is refused").to_string()
    };
    assert!(error(json!([])).starts_with("metadata.managedFields[1].fieldsV1: expected a map"));
    assert!(error(json!({"f:spec": {"x:y": {}}})).starts_with("metadata.managedFields[1].fieldsV1 at f:spec: step"));
    for fields in [
        json!({"spec": {}}),
        json!({"f:a": 1}),
        json!({"k:[1]": {}}),
        json!({"k:{": {}}),
        json!({"v:": {}}),
        json!({"i:-1": {}}),
        json!({"i:99999999999999999999999": {}}),
    ] {
        assert!(!error(fields).is_empty());
    }
    assert!(managers(&json!({"metadata": {"managedFields": {}}})).is_err());
    assert!(managers(&json!({"metadata": {"managedFields": [{"manager": 1}]}})).is_err());
    assert!(managers(&json!({"metadata": {"managedFields": [{"fieldsType": "FieldsV2"}]}})).is_err());
    assert_eq!(managers(&json!(null)).expect("it is valid"), vec![]);
}

#[test]
fn a_set_that_nests_without_end_is_refused() {
    let mut value = json!({});
    for _ in 0..=MAX_DEPTH + 1 {
        value = json!({"f:a": value});
    }
    assert!(FieldSet::parse(&value).expect_err("it is refused").message.contains("nested deeper"));
}

#[test]
fn keys_that_the_server_has_set_by_default_can_be_left_out() {
    let fields = json!({"f:ports": {"k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}}}});
    let set = FieldSet::parse(&fields).expect("a set");
    let object = json!({"ports": [{"name": "web", "port": 80, "protocol": "TCP"}]});
    assert_eq!(project(&set, &object), json!({"ports": [{"port": 80, "protocol": "TCP"}]}));
    assert_eq!(project_without_keys(&set, &object), json!({"ports": [{"port": 80}]}));
}

#[test]
fn values_are_found_whatever_the_order_of_their_keys() {
    let set = FieldSet::parse(&json!({"f:l": {"v:{\"b\":1,\"a\":2}": {}}})).expect("it is valid");
    assert_eq!(project(&set, &json!({"l": [{"a": 2, "b": 1}]})), json!({"l": [{"a": 2, "b": 1}]}));
}

fn elements() -> impl Strategy<Value = Element> {
    prop_oneof![
        4 => "[a-c]".prop_map(|name| Element::field(&name)),
        2 => "[a-b]".prop_map(|name| Element::key(json!({"name": name, "p": 1}).as_object().expect("it is valid"))),
        1 => "[a-b\"]".prop_map(|text| Element::value(&json!(text))),
        1 => (0..3_usize).prop_map(Element::Index),
    ]
}

fn sets() -> impl Strategy<Value = FieldSet> {
    let paths = proptest::collection::vec(proptest::collection::vec(elements(), 1..4), 0..8);
    paths.prop_map(|paths| {
        let mut set = FieldSet::default();
        paths.iter().for_each(|path| set.insert(path));
        set
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_set_survives_being_written_and_read(set in sets()) {
        prop_assert_eq!(FieldSet::parse(&set.to_value()).expect("it is valid"), set.clone());
        let text = set.to_value().to_string();
        prop_assert_eq!(FieldSet::parse(&serde_json::from_str(&text).expect("it is valid")).expect("it is valid"), set);
    }

    #[test]
    fn the_operations_are_those_of_sets(a in sets(), b in sets()) {
        use std::collections::BTreeSet;
        let paths = |set: &FieldSet| set.paths().into_iter().collect::<BTreeSet<_>>();
        let (in_a, in_b) = (paths(&a), paths(&b));
        prop_assert_eq!(paths(&a.union(&b)), &in_a | &in_b);
        prop_assert_eq!(paths(&a.difference(&b)), &in_a - &in_b);
        prop_assert_eq!(paths(&a.intersection(&b)), &in_a & &in_b);
        prop_assert_eq!(a.union(&b), b.union(&a));
        prop_assert_eq!(a.difference(&b).union(&a.intersection(&b)), a.clone());
        prop_assert!(a.difference(&a).is_empty());
        prop_assert_eq!(a.is_empty(), in_a.is_empty());
        for path in &in_a {
            prop_assert!(a.contains(path));
            prop_assert_eq!(b.contains(path), in_b.contains(path));
        }
        let leaves = paths(&a).into_iter().filter(|path| {
            !in_a.iter().any(|other| other.len() > path.len() && other.starts_with(path))
        });
        prop_assert_eq!(a.leaves(), leaves.collect::<Vec<_>>());
    }

    #[test]
    fn any_value_is_parsed_or_refused_without_a_panic(text in "[fkvi.:{}\"a-c0-9,\\[\\]]{0,24}") {
        let _ = FieldSet::parse(&json!({text.clone(): {}}));
        if let Ok(value) = serde_json::from_str::<Value>(&text) {
            let _ = FieldSet::parse(&value).map(|set| project(&set, &value));
        }
    }
}

#[test]
fn an_item_goes_with_what_others_have_in_it_and_a_map_stays_for_them() {
    let set = |value: Value| FieldSet::parse(&value).expect("a set");
    let lost = |own: Value, kept: Value| -> Vec<String> {
        let paths = set(own).lost(&set(kept));
        paths.iter().map(|path| path.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")).collect()
    };
    let item = r#"k:{"name":"web"}"#;
    let own = json!({"f:l": {item: {".": {}, "f:name": {}, "f:image": {}}}, "f:m": {".": {}, "f:a": {}, "f:b": {}}});
    // A manager set an image in another's item: the server still removes the item.
    assert_eq!(
        lost(own.clone(), json!({"f:l": {item: {"f:image": {}}}, "f:m": {"f:b": {}}})),
        [format!("f:l {item}"), "f:m f:a".to_owned()]
    );
    assert_eq!(
        lost(own, json!({"f:l": {item: {".": {}}}})),
        [format!("f:l {item} f:image"), format!("f:l {item} f:name"), "f:m".to_owned()]
    );
    // Part of another manager's item is released without removing the item.
    assert_eq!(lost(json!({"f:l": {item: {"f:image": {}}}}), json!({})), ["f:l"]);
    assert_eq!(
        lost(json!({"f:l": {item: {"f:image": {}}}}), json!({"f:l": {"k:{\"name\":\"x\"}": {}}})),
        [format!("f:l {item} f:image")]
    );
}

#[test]
fn fields_of_others_are_named_where_they_are_not_what_the_manifest_says() {
    let manifest = json!({"spec": {"selector": {"matchLabels": {"app": "web"}}, "template": {"spec": {"containers": [
        {"name": "side", "image": "side:1"}, {"name": "web", "image": "web:1", "ports": [{"containerPort": 80}]},
    ]}}}});
    assert_eq!(foreign_fields(&deployment(), &manifest, "pushback"), [], "scale has a writer of its own");
    let mut object = deployment();
    object["spec"]["template"]["spec"]["nodeSelector"] = json!({"disk": "ssd"});
    object["spec"]["template"]["spec"]["containers"][0]["image"] = "side:2".into();
    object["spec"]["paused"] = true.into();
    let entry = |manager: &str, spec: Value| {
        json!({"manager": manager, "operation": "Update", "apiVersion": "apps/v1", "fieldsType": "FieldsV1",
            "fieldsV1": {"f:metadata": {"f:annotations": {"f:x": {}}}, "f:spec": spec}})
    };
    let entries = object["metadata"]["managedFields"].as_array_mut().expect("entries");
    entries.push(entry("kube-controller-manager", json!({"f:paused": {}})));
    entries.push(entry(
        "kubectl-edit",
        json!({"f:template": {"f:spec": {
            "f:nodeSelector": {"f:disk": {}},
            "f:containers": {"k:{\"name\":\"side\"}": {".": {}, "f:image": {}},
                             "k:{\"name\":\"web\"}": {"f:image": {}, "f:gone": {}}},
        }}}),
    ));
    let described: Vec<String> =
        foreign_fields(&object, &manifest, "pushback").iter().map(ForeignField::describe).collect();
    assert_eq!(
        described,
        [
            "spec.template.spec.containers[0].image is not what the manifest says: kubectl-edit set it",
            "spec.template.spec.nodeSelector.disk is not in the manifest: kubectl-edit set it",
        ]
    );
}
