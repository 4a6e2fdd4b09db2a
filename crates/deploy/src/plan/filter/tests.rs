//! Filters, held against examples of kapp and against what holds for every object and tree.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn object(kind: &str, namespace: &str, name: &str, tier: &str) -> Value {
    json!({"apiVersion": "v1", "kind": kind, "metadata": {
        "namespace": namespace, "name": name, "labels": {"tier": tier}, "creationTimestamp": "2026-01-31T12:00:00Z",
    }})
}

fn selects(tree: &str, object: &Value) -> bool {
    let tree = ObjectFilter::tree_of(tree).expect("a filter");
    ObjectFilter { tree: Some(tree), ..ObjectFilter::default() }.matches(object)
}

#[test]
fn objects_are_selected_as_kapp_selects_them() {
    let pod = object("Pod", "shop", "web-1", "front");
    for (criteria, expected) in [
        (r#"{"kinds": ["Pod"]}"#, true),
        (r#"{"kinds": ["pod"]}"#, false),
        (r#"{"Kinds": ["Service", "P%"]}"#, true),
        (r#"{"names": ["web"]}"#, false),
        (r#"{"names": ["web*"]}"#, true),
        (r#"{"names": ["*-1"]}"#, true),
        (r#"{"names": ["%eb%"]}"#, true),
        (r#"{"names": ["*"]}"#, true),
        (r#"{"names": ["!web-1"]}"#, false),
        (r#"{"names": ["!web-2"], "kinds": ["Pod"]}"#, true),
        (r#"{"namespaces": ["shop"]}"#, true),
        (r#"{"kindNames": ["Pod/web-1"]}"#, true),
        (r#"{"kindNames": ["Pod/web-2", "Service/web-1"]}"#, false),
        (r#"{"kindNamespaces": ["Pod/"]}"#, false),
        (r#"{"kindNamespaces": ["Pod/shop"]}"#, true),
        (r#"{"kindNsNames": ["Pod/shop/web-1"]}"#, true),
        (r#"{"labels": ["tier=back", "tier in (front)"]}"#, true),
        (r#"{"labels": ["!tier"]}"#, false),
        (r#"{"createdAtBeforeTime": "2026-01-31T12:00:00Z"}"#, true),
        (r#"{"createdAtAfterTime": "2026-02-01T00:00:00Z"}"#, false),
    ] {
        assert_eq!(selects(&format!(r#"{{"resource": {criteria}}}"#), &pod), expected, "{criteria}");
    }
    let namespace = object("Namespace", "", "shop", "front");
    assert!(selects(r#"{"resource": {"kindNamespaces": ["Namespace/"]}}"#, &namespace));
    assert!(!selects(r#"{"resource": {"namespaces": ["*"]}}"#, &namespace), "it is in no namespace");
    assert!(selects(r#"{"not": {"resource": {"namespaces": ["*"]}}}"#, &namespace));
}

#[test]
fn an_object_that_is_not_there_yet_is_younger_than_all_others() {
    let now = "2026-01-31T13:00:00Z".parse().expect("a time");
    let aged = |text: &str| ObjectFilter {
        criteria: Criteria { created: Age::parse(text, now).expect("an age"), ..Criteria::default() },
        tree: None,
    };
    let live = object("Pod", "shop", "web", "front");
    for (age, of_live, of_new) in
        [("2h-", true, true), ("5m-", false, true), ("5m+", true, false), ("2h+", false, false)]
    {
        assert_eq!(aged(age).matches(&live), of_live, "{age}");
        assert_eq!(aged(age).matches_created(&live, ""), of_new, "{age}");
    }
    for wrong in ["", "5", "5m", "-", "5d-"] {
        assert!(Age::parse(wrong, now).is_err(), "{wrong}");
    }
}

#[test]
fn changes_are_selected_by_what_is_done_and_by_both_sides() {
    let (old, new) = (object("ConfigMap", "shop", "a", "front"), object("ConfigMap", "shop", "a", "back"));
    for (filter, expected) in [
        ("", true),
        (r#"{"and": [{"ops": ["update"]}, {"existingResource": {"kinds": ["ConfigMap"]}}]}"#, true),
        (r#"{"ops": ["update"], "existingResource": {"kinds": ["Secret"]}}"#, false),
        (r#"{"ops": ["create", "delete"]}"#, false),
        (r#"{"existingResource": {"labels": ["tier=back"]}}"#, false),
        (r#"{"newResource": {"labels": ["tier=back"]}}"#, true),
        (r#"{"newResource": {"not": {"resource": {"labels": ["tier=back"]}}}}"#, false),
        (r#"{"not": {"ops": ["delete"]}}"#, true),
    ] {
        let filter_of = ChangeFilter::parse(filter).expect(filter);
        assert_eq!(filter_of.matches(Operation::Update, Some(&old), Some(&new)), expected, "{filter}");
    }
    let new_only = ChangeFilter::parse(r#"{"newResource": {"kinds": ["*"]}}"#).expect("a filter");
    assert!(!new_only.matches(Operation::Delete, Some(&old), None), "a deletion has no new side");
    let updates = ChangeFilter::parse(r#"{"ops": ["update"]}"#).expect("a filter");
    assert!(updates.matches(Operation::Replace, Some(&old), Some(&new)), "in kapp a replacement is an update");
}

fn criteria() -> impl Strategy<Value = Value> {
    let pattern = "[!]?[*%]?[ab]{0,2}[*%]?";
    let list = |text| prop::collection::vec(text, 1..3);
    prop_oneof![
        list(pattern).prop_map(|list| json!({"kinds": list})),
        list(pattern).prop_map(|list| json!({"names": list})),
        list(pattern).prop_map(|list| json!({"namespaces": list})),
        list("[ab]/[ab]{0,2}").prop_map(|list| json!({"kindNames": list})),
        list("tier=[ab]|!tier|tier in \\(a,b\\)").prop_map(|list| json!({"labels": list})),
    ]
}

fn trees() -> impl Strategy<Value = Value> {
    criteria().prop_map(|criteria| json!({"resource": criteria})).prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(|list| json!({"and": list})),
            prop::collection::vec(inner.clone(), 0..3).prop_map(|list| json!({"or": list})),
            inner.prop_map(|tree| json!({"not": tree})),
        ]
    })
}

proptest! {
    #[test]
    fn trees_are_boolean_algebra(
        a in trees(), b in trees(),
        kind in "[ab]{1,2}", namespace in "[ab]{0,2}", name in "[ab]{1,2}", tier in "[abc]",
    ) {
        let object = object(&kind, &namespace, &name, &tier);
        let holds = |tree: Value| selects(&tree.to_string(), &object);
        let (is_a, is_b) = (holds(a.clone()), holds(b.clone()));
        prop_assert_eq!(holds(json!({"not": a})), !is_a);
        prop_assert_eq!(holds(json!({"and": [a, b]})), is_a && is_b);
        prop_assert_eq!(holds(json!({"or": [a, b]})), is_a || is_b);
        // Keys beside each other are a conjunction.
        prop_assert_eq!(holds(json!({"and": [a], "or": [b]})), is_a && is_b);
    }

    #[test]
    fn a_pattern_splits_texts_in_two(pattern in "[*%]?[ab]{0,3}[*%]?", text in "[ab]{0,4}") {
        let bare = pattern.trim_matches(['*', '%']);
        let matches = Pattern::new(&pattern).matches(&text);
        prop_assert_eq!(Pattern::new(&format!("!{pattern}")).matches(&text), !matches);
        prop_assert!(!matches || text.contains(bare));
        prop_assert!(matches || text != bare);
    }
}
