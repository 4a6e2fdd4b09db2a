//! The file of a plan: it comes back as it was, any edit is found, and it grows with the objects and no faster.

use std::collections::BTreeMap;

use proptest::prelude::*;
use pushback_objects::{ObjectRef, Severity};
use pushback_preflight::{Operation, Outcome};
use serde_json::json;

use super::*;

/// A plan with one finding, one waiver and so many unchanged objects beside one that changes.
fn plan(unchanged: usize) -> SavedPlan {
    let object = |name: String| ObjectRef {
        version: "v1".to_owned(),
        kind: "ConfigMap".to_owned(),
        namespace: "team-production".to_owned(),
        name,
        ..ObjectRef::default()
    };
    let digest = || "0123456789abcdef0123456789abcdef".to_owned();
    let noop = |number: usize| SavedObject {
        object: object(format!("settings-of-the-service-{number}")),
        uid: "5b1a0b1e-0000-4000-8000-0123456789ab".to_owned(),
        live: digest(),
        ..SavedObject::default()
    };
    let changed = SavedObject {
        operation: Operation::Update,
        fields: vec![FieldLine { path: "data.key".to_owned(), old: Some("1".to_owned()), new: Some("2".to_owned()) }],
        manifest: digest(),
        change: digest(),
        ..noop(unchanged)
    };
    let file = |name: &str| SavedFile { name: name.to_owned(), digest: digest() };
    let map = |value: Value| value.as_object().cloned().unwrap_or_default();
    let settings = map(json!({"mode": "warn"}));
    let waiver = map(json!({"fingerprint": "9c1185a5", "reason": "known"}));
    SavedPlan {
        schema_version: SCHEMA_VERSION,
        tool: SavedTool { name: "pushback".to_owned(), version: "0.1.0".to_owned() },
        created: "2026-01-01T00:00:00Z".to_owned(),
        expires: "2026-01-02T00:00:00Z".to_owned(),
        app: SavedApp {
            name: "shop".to_owned(),
            namespace: "team".to_owned(),
            default_namespace: "team".to_owned(),
            label: "1".to_owned(),
        },
        cluster: SavedCluster { description: "dir:live".to_owned(), by: "folder".to_owned(), id: digest() },
        nonce: "2".to_owned(),
        options: BTreeMap::from([("--file".to_owned(), vec!["shop".to_owned()]), ("--patch".to_owned(), Vec::new())]),
        secrets: SecretBinding::Keyed,
        inputs: vec![file("shop/a.yaml")],
        policy: SavedPolicy {
            source: Some("policy.yaml".to_owned()),
            files: vec![file("policy.yaml")],
            rules: BTreeMap::from([("CRDUpgradeSafety".to_owned(), settings)]),
            waivers: vec![waiver],
        },
        facts: SavedFacts { answers: 3, digest: digest() },
        verdict: SavedVerdict {
            outcome: Outcome::Warned,
            rules: BTreeMap::from([("CRDUpgradeSafety".to_owned(), RuleOutcome::Warned)]),
            findings: vec![SavedFinding {
                fingerprint: "9c1185a5".to_owned(),
                rule: "CRDUpgradeSafety".to_owned(),
                check: "enum".to_owned(),
                severity: Severity::Warning,
                object: object("x".to_owned()),
                message: "a value is no longer allowed".to_owned(),
                waived: None,
            }],
        },
        objects: (0..unchanged).map(noop).chain([changed]).collect(),
    }
}

#[test]
fn a_plan_comes_back_as_it_was_and_is_written_the_same() {
    let before = plan(3);
    let text = before.render();
    assert_eq!(SavedPlan::parse(&text), Ok(before.clone()));
    assert_eq!(before.render(), text);
    assert!(text.contains(&before.digest()));
    // Any program reads it, and finds an object on a line.
    let value: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(value["objects"].as_array().map(Vec::len), Some(4));
    assert_eq!(text.lines().filter(|line| line.starts_with("{\"object\":")).count(), 4);
}

#[test]
fn an_unchanged_object_takes_less_than_300_bytes_and_each_the_same() {
    let size = |count: usize| plan(count).render().len();
    let (none, thousand, many) = (size(0), size(1_000), size(10_000));
    assert!((thousand - none) / 1_000 < 300, "{}", (thousand - none) / 1_000);
    // Numbers have a digit more.
    assert!(many - none < 10 * (thousand - none) + 2 * 10_000, "{none} {thousand} {many}");
}

#[test]
fn what_is_no_plan_or_of_a_later_format_is_told_as_such() {
    for text in ["", "{}", "{\"kind\":\"Report\",\n", "apiVersion: v1\n"] {
        assert_eq!(SavedPlan::parse(text), Err(SavedPlanError::NotAPlan), "{text:?}");
    }
    let later = SavedPlan { schema_version: SCHEMA_VERSION + 1, ..plan(1) };
    assert_eq!(SavedPlan::parse(&later.render()), Err(SavedPlanError::Newer(u64::from(SCHEMA_VERSION) + 1)));
    let cut = plan(1).render();
    assert_eq!(SavedPlan::parse(&cut[..cut.len() / 2]), Err(SavedPlanError::Edited));
    // The digest is right, and a field is not known: nothing is left out in silence.
    let text = plan(1).render();
    let (content, _) = text.rsplit_once(DIGEST).expect("a digest");
    let more = seal(content.replacen("\"nonce\"", "\"more\":1,\n\"nonce\"", 1));
    assert!(matches!(SavedPlan::parse(&more), Err(SavedPlanError::Unreadable(_))));
}

#[test]
fn every_edit_of_a_line_is_found() {
    let text = plan(2).render();
    let lines: Vec<&str> = text.lines().collect();
    for index in 0..lines.len() {
        let without: Vec<&str> =
            lines.iter().enumerate().filter(|(at, _)| *at != index).map(|(_, line)| *line).collect();
        let read = SavedPlan::parse(&(without.join("\n") + "\n"));
        assert!(matches!(read, Err(SavedPlanError::Edited | SavedPlanError::NotAPlan)), "without {}", lines[index]);
    }
}

proptest! {
    #[test]
    fn every_edit_of_a_character_is_found(at in any::<prop::sample::Index>(), other in "[ -~\n]") {
        let text = plan(1).render();
        let at = at.index(text.len());
        prop_assume!(text[at..=at] != other);
        let edited = format!("{}{other}{}", &text[..at], &text[at + 1..]);
        prop_assert!(matches!(SavedPlan::parse(&edited), Err(SavedPlanError::Edited | SavedPlanError::NotAPlan)));
    }

    #[test]
    fn what_moved_is_named_once_for_each_object(moved in prop::collection::btree_set(0usize..20, 0..6)) {
        let then = plan(20);
        let mut now = then.clone();
        for index in &moved {
            now.objects[*index].uid = "another".to_owned();
        }
        let told = compare::objects(&then.objects, &now.objects, &BTreeMap::new());
        prop_assert_eq!(told.len(), moved.len());
        for index in moved {
            let name = format!("settings-of-the-service-{index}: ");
            prop_assert!(told.iter().any(|text| text.contains(&name)), "{:?}", told);
        }
    }
}

#[test]
fn each_difference_of_an_object_is_worded() {
    let then = &plan(1).objects[1];
    let field = |old: &str, new: &str| {
        vec![FieldLine { path: "data.key".to_owned(), old: Some(old.to_owned()), new: Some(new.to_owned()) }]
    };
    let parts = |value: &str| BTreeMap::from([("data.key".to_owned(), value.to_owned())]);
    let told = |now: SavedObject| compare::objects(std::slice::from_ref(then), &[now], &BTreeMap::new()).join("; ");
    let change = |other: &str, fields| SavedObject { change: other.to_owned(), fields, ..then.clone() };
    assert_eq!(told(then.clone()), "");
    let noop = SavedObject { operation: Operation::Noop, fields: Vec::new(), ..then.clone() };
    let text = [
        told(change("1", field("5", "2"))),
        told(noop),
        told(SavedObject { parts: parts("x"), ..then.clone() }),
        told(SavedObject { manifest: "x".to_owned(), ..then.clone() }),
        told(SavedObject { uid: "x".to_owned(), ..then.clone() }),
        told(SavedObject { object: ObjectRef { version: "v2".to_owned(), ..then.object.clone() }, ..then.clone() }),
        told(SavedObject { operation: Operation::Create, uid: String::new(), ..then.clone() }),
        compare::objects(std::slice::from_ref(then), &[], &BTreeMap::new()).join("; "),
        compare::objects(&[], std::slice::from_ref(then), &BTreeMap::new()).join("; "),
    ];
    let text = text.join("\n").replace("ConfigMap team-production/settings-of-the-service-1", "X");
    insta::assert_snapshot!(text, @"
    X: its change is another now: data.key 5 → 2
    X: the plan has it updated, and now it would be left as it is: data.key 1 → 2
    X: data.key changed since the plan was made
    X: something else would be written
    X: it was deleted and created again
    X: its API version is v2 now, and was v1
    X: the plan has it updated, and it was deleted
    X: it is no longer among the app's objects
    X: the plan does not have it, and now it would be updated
    ");
}
