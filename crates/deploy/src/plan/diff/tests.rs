//! What changes look like to a reader, and that nothing masked can be read from them.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn nothing(_: &[PathSegment]) -> bool {
    false
}

fn secret_data(path: &[PathSegment]) -> bool {
    path.first() == Some(&"data".into())
}

/// Lines as `path: old → new`.
fn lines(old: &Value, new: &Value, masked: &Masked<'_>) -> Vec<String> {
    let changes = diff(old, new, &DiffOptions::default());
    let show = |value: Option<String>| value.unwrap_or_else(|| "∅".to_owned());
    let lines = field_lines(&changes, masked).into_iter();
    lines.map(|line| format!("{}: {} → {}", line.path, show(line.old), show(line.new))).collect()
}

#[test]
fn an_inserted_list_item_is_one_change() {
    let old = json!({"containers": [{"name": "web", "image": "a:1"}]});
    let new = json!({"containers": [{"name": "proxy", "image": "p"}, {"name": "web", "image": "a:2"}]});
    assert_eq!(
        lines(&old, &new, &nothing),
        ["containers[name=proxy]: ∅ → {name: proxy, image: p}", "containers[name=web].image: a:1 → a:2"]
    );
    let changes = diff(&old, &new, &DiffOptions::default());
    assert_eq!(changes[1].path, vec!["containers".into(), 1.into(), "image".into()]);
    assert_eq!(changes[1].old_path, vec!["containers".into(), 0.into(), "image".into()]);
}

#[test]
fn list_items_are_matched_by_what_names_them() {
    for (old, new, expected) in [
        (
            json!({"ports": [{"containerPort": 80, "name": "http"}, {"containerPort": 53, "protocol": "UDP"}]}),
            json!({"ports": [{"containerPort": 53, "protocol": "UDP"}, {"containerPort": 53, "protocol": "TCP"}]}),
            vec![
                "ports[containerPort=53,protocol=TCP]: ∅ → {containerPort: 53, protocol: TCP}",
                "ports[containerPort=80]: {containerPort: 80, name: http} → ∅",
            ],
        ),
        (
            json!({"volumeMounts": [{"name": "v", "mountPath": "/a"}, {"name": "v", "mountPath": "/b"}]}),
            json!({"volumeMounts": [{"name": "v", "mountPath": "/b", "readOnly": true}]}),
            vec![
                "volumeMounts[mountPath=/b].readOnly: ∅ → true",
                "volumeMounts[mountPath=/a]: {name: v, mountPath: /a} → ∅",
            ],
        ),
        (
            json!({"args": ["--one", "--two", "--four=4"]}),
            json!({"args": ["--zero", "--one", "--two", "--four=5"]}),
            vec!["args[0]: ∅ → --zero", "args[3]: --four=4 → --four=5"],
        ),
        (
            json!({"rules": [{"verbs": ["get"]}, {"verbs": ["list"], "x": 1}]}),
            json!({"rules": [{"verbs": ["get"]}, {"verbs": ["list"], "x": 2}, {"verbs": ["watch"]}]}),
            vec!["rules[1].x: 1 → 2", "rules[2]: ∅ → {verbs: [watch]}"],
        ),
        (
            json!({"env": [{"name": "A"}, {"name": "A"}]}),
            json!({"env": [{"name": "A"}]}),
            vec!["env[1]: {name: A} → ∅"],
        ),
        (
            json!({"initContainers": [{"name": "a"}, {"name": "b"}]}),
            json!({"initContainers": [{"name": "b"}, {"name": "a"}]}),
            vec!["initContainers (order): [{name: a}, {name: b}] → [{name: b}, {name: a}]"],
        ),
    ] {
        assert_eq!(lines(&old, &new, &nothing), expected);
    }
}

#[test]
fn subtrees_come_and_go_as_one_change_and_server_fields_are_left_out() {
    let old = json!({"metadata": {"uid": "1", "resourceVersion": "1", "labels": {"a.b/c": "1"}}, "status": {"a": 1}, "gone": {"a": [1, 2]}});
    let new = json!({"metadata": {"uid": "2", "managedFields": [1], "labels": {"a.b/c": "2"}}, "spec": {"status": {"x": null}}});
    assert_eq!(
        lines(&old, &new, &nothing),
        ["metadata.labels[\"a.b/c\"]: \"1\" → \"2\"", "spec: ∅ → {status: {x: null}}", "gone: {a: [1, 2]} → ∅"]
    );
}

#[test]
fn values_take_one_line_and_strings_are_quoted_where_they_would_read_as_something_else() {
    for (old, new, expected) in [
        (json!("1"), json!(1), "v: \"1\" → 1"),
        (json!("true"), json!(null), "v: \"true\" → null"),
        (json!(""), json!(" x"), "v: \"\" → \" x\""),
        (json!("a\u{1b}[31m"), json!("1.2.3"), "v: \"a\\u001b[31m\" → 1.2.3"),
        (json!("a\nb\nc\n"), json!("a\nc\nd\ne\n"), "v: (3 lines) → (4 lines, +2 -1)"),
        (json!("a"), json!("a\nb"), "v: a → (2 lines, +2 -1)"),
        (json!(["a, b"]), json!([]), "v[0]: a, b → ∅"),
        (json!(1), json!({"k": "a, b", "l": "x\ny"}), "v: 1 → {k: \"a, b\", l: (2 lines)}"),
    ] {
        assert_eq!(lines(&json!({"v": old}), &json!({"v": new}), &nothing), [expected]);
    }
    let long = format!("start{}end", "x".repeat(500));
    let line = &lines(&json!({"v": "a"}), &json!({"v": long}), &nothing)[0];
    assert!(line.contains("start") && line.ends_with("xend (508 bytes)") && line.chars().count() < 140, "{line}");
}

#[test]
fn long_values_that_differ_in_the_middle_show_their_difference() {
    let image = |tag: &str| format!("registry.example.com/{}/web:{tag}@sha256:{}", "p".repeat(60), "0".repeat(64));
    let line = &lines(&json!({"image": image("1.8.2")}), &json!({"image": image("1.9.0")}), &nothing)[0];
    assert!(line.contains("web:1.8.2@") && line.contains("web:1.9.0@"), "{line}");
}

#[test]
fn of_a_masked_value_nothing_but_a_change_is_shown() {
    let old = json!({"kind": "Secret", "data": {"password": "aHVudGVyMg==", "same": "YQ==", "old": "eA=="}});
    let new = json!({"kind": "Secret", "data": {"password": "aHVudGVyMzQ=", "same": "YQ==", "new": "eHl6"}});
    assert_eq!(
        lines(&old, &new, &secret_data),
        ["data.password: (secret) → (secret, changed)", "data.new: ∅ → (secret)", "data.old: (secret) → ∅",]
    );
    assert_eq!(
        lines(&json!({}), &json!({"data": {"a": "eA==", "b": "x\ny"}}), &secret_data),
        ["data: ∅ → {a: (secret), b: (secret)}"]
    );
}

#[test]
fn a_masked_field_never_names_an_item() {
    let masked = |path: &[PathSegment]| path.last() == Some(&"key".into());
    let old = json!({"list": [{"key": "hunter2", "n": 1}, {"key": "other", "n": 1}]});
    let new = json!({"list": [{"key": "other", "n": 1}, {"key": "hunter2", "n": 2}]});
    assert_eq!(
        lines(&old, &new, &masked),
        ["list[1].n: 1 → 2", "list (order): [{key: (secret)}, {key: (secret)}] → [{key: (secret)}, {key: (secret)}]"]
    );
}

#[test]
fn the_text_is_a_unified_diff_with_placeholders_for_secrets() {
    let old = json!({"kind": "Secret", "apiVersion": "v1", "metadata": {"name": "s", "uid": "1"}, "data": {"a": "b25l", "b": "b25l"}});
    let new =
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"b": "dHdv", "a": "b25l"}});
    let expected = "@@ -1,7 +1,7 @@\n apiVersion: v1\n data:\n   a: (secret 1)\n-  b: (secret 1)\n+  b: (secret 2)\n kind: Secret\n metadata:\n   name: s\n";
    assert_eq!(text(Some(&old), Some(&new), &secret_data), expected);
    assert_eq!(text(Some(&old), Some(&old), &secret_data), "");
    assert_eq!(text(None, Some(&json!({"a": 1})), &nothing), "@@ -0,0 +1 @@\n+a: 1\n");
    assert_eq!(text(Some(&json!({"a": 1})), None, &nothing), "@@ -1 +0,0 @@\n-a: 1\n");
}

#[test]
fn long_lines_stay_whole_and_texts_keep_their_lines() {
    let words = "word ".repeat(40);
    let value = json!({"a": "on", "b": "x\ny\n", "c": format!("{words}end")});
    let expected = format!("@@ -0,0 +1,5 @@\n+a: \"on\"\n+b: |\n+  x\n+  y\n+c: {words}end\n");
    assert_eq!(text(None, Some(&value), &nothing), expected);
}

#[test]
fn a_long_text_without_a_common_line_is_compared_all_the_same() {
    let config = |salt: usize| {
        let lines: Vec<String> =
            (0..8000).map(|line| format!("line {}", if line % 2 == 0 { 0 } else { line + salt })).collect();
        json!({"data": {"file": lines.join("\n")}})
    };
    let text = text(Some(&config(0)), Some(&config(1_000_000)), &nothing);
    assert_eq!(text.lines().filter(|line| line.starts_with('-')).count(), 4000);
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0..3).prop_map(Value::from),
        "[ab\n]{0,3}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::vec(("[a-c]", inner.clone()), 0..4).prop_map(|items| {
                Value::Array(items.into_iter().map(|(name, value)| json!({"name": name, "v": value})).collect())
            }),
            proptest::collection::btree_map("(a|b|name|ports)", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn hide(value: &mut Value) {
    match value {
        Value::Object(map) => map.values_mut().for_each(hide),
        Value::Array(items) => items.iter_mut().for_each(hide),
        Value::String(text) => *text = format!("hunter2{text}"),
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn there_are_changes_exactly_where_values_differ(old in values(), new in values()) {
        let options = DiffOptions::default();
        prop_assert!(diff(&old, &old, &options).is_empty());
        prop_assert_eq!(diff(&old, &new, &options).is_empty(), old == new);
        for change in diff(&old, &new, &options) {
            let at = |root: &Value, path: &[PathSegment]| path.iter().try_fold(root.clone(), |value, segment| match segment {
                PathSegment::Key(key) => value.get(key).cloned(),
                PathSegment::Index(index) => value.get(index).cloned(),
            });
            if change.segments.last() != Some(&DiffSegment::Order) {
                if change.old.is_some() {
                    prop_assert_eq!(at(&old, &change.old_path), change.old);
                }
                if change.new.is_some() {
                    prop_assert_eq!(at(&new, &change.path), change.new);
                }
            }
        }
    }

    #[test]
    fn masked_values_are_nowhere_in_what_is_shown(mut old in values(), mut new in values()) {
        hide(&mut old);
        hide(&mut new);
        let (old, new) = (json!({"data": old}), json!({"data": new}));
        let shown = lines(&old, &new, &secret_data).join("\n") + &text(Some(&old), Some(&new), &secret_data);
        prop_assert!(!shown.contains("hunter2"), "{}", shown);
    }
}
