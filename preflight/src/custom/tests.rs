//! Rules of a policy: which of them run, what they judge, and what they say.

use std::sync::Arc;

use pushback_objects::ObjectRef;
use pushback_objects::finding::{Finding, Verdict};
use pushback_objects::reader::Reader;
use pushback_objects::source::Positions;
use serde_json::{Value, json};

use super::*;
use crate::Verification;
use crate::facts::{Change, Operation};
use crate::judge::RunReport;
use crate::policy::{self, Side};
use crate::selection::ConfigRule;
use crate::session::Session;
use crate::waiver::Waiver;

fn define(entry: &Value) -> Result<Definition, Vec<String>> {
    let positions = Positions::of_file("policy.yaml");
    let reader = Reader::new(&positions);
    let definition = Definition::of_entry(&reader.root(entry).any_fields());
    let errors: Vec<String> = reader.into_errors().iter().map(ToString::to_string).collect();
    if errors.is_empty() { Ok(definition.expect("a definition")) } else { Err(errors) }
}

fn defined(entry: &Value) -> Definition {
    define(entry).unwrap_or_else(|errors| panic!("{errors:?}"))
}

fn change(operation: Operation, live: Option<Value>, desired: Option<Value>) -> Change {
    let object = ObjectRef::of(desired.as_ref().or(live.as_ref()).expect("an object"));
    Change {
        object,
        resource: "widgets".to_owned(),
        namespaced: true,
        operation,
        desired: desired.map(Arc::new),
        live: live.map(Arc::new),
        result: None,
        verification: Verification::Server,
        positions: None,
        orphaned: false,
        taken_from: Vec::new(),
    }
}

fn widget(size: u64) -> Value {
    json!({"apiVersion": "ex.com/v1", "kind": "Widget", "metadata": {"name": "w", "namespace": "n"}, "spec": {"size": size}})
}

fn judged_with(definitions: &[Definition], changes: Vec<Change>, waivers: &[Waiver], config: &Value) -> RunReport {
    let entries: Vec<ConfigRule<'_>> =
        definitions.iter().map(|it| ConfigRule { name: &it.name, config, positions: None }).collect();
    let source = Side { rules: Some(&entries), custom: definitions, ..Side::default() };
    let names: Vec<String> = definitions.iter().map(|definition| definition.name.clone()).collect();
    let policy = policy::resolve(Some(&names), Some(source), Side::default(), &[]).expect("a policy");
    let changes = ChangeSet { app: "shop".to_owned(), changes, ..ChangeSet::default() };
    let mut session = Session::new(policy.selection, Facts { changes, ..Facts::default() });
    assert!(session.needs().is_empty());
    session.finish(Judgement::default(), waivers, "2026-01-01").0
}

fn judged(definition: &Definition, changes: Vec<Change>) -> Vec<Finding> {
    judged_with(std::slice::from_ref(definition), changes, &[], &Value::Null).findings
}

fn messages(definition: &Definition, changes: Vec<Change>) -> Vec<String> {
    judged(definition, changes).into_iter().map(|finding| finding.message).collect()
}

#[test]
fn each_operation_is_the_request_that_a_server_would_see() {
    let asks = |operation, live, desired| {
        let rule = json!({"name": "Told", "cel": "false", "operations": ["CREATE", "UPDATE", "DELETE"],
            "messageExpression":
                "[request.operation, change.operation, change.app, string(object == null), string(oldObject == null), \
                  request.kind.group, request.resource.resource, request.namespace, request.name].join(' ')"});
        messages(&defined(&rule), vec![change(operation, live, desired)])
    };
    let (old, new) = (Some(widget(1)), Some(widget(2)));
    let told = |text: &str| format!("{text} ex.com widgets n w");
    assert_eq!(asks(Operation::Create, None, new.clone()), [told("CREATE create shop false true")]);
    assert_eq!(asks(Operation::Update, old.clone(), new.clone()), [told("UPDATE update shop false false")]);
    assert_eq!(asks(Operation::Delete, old.clone(), None), [told("DELETE delete shop true false")]);
    assert_eq!(
        asks(Operation::Replace, old.clone(), new.clone()),
        [told("CREATE replace shop false true"), told("DELETE replace shop true false")]
    );
    assert!(asks(Operation::Noop, old.clone(), new.clone()).is_empty());
    assert!(asks(Operation::Exists, old, new).is_empty());
}

#[test]
fn deletions_are_judged_only_where_the_rule_says_so_and_releases_never() {
    let rule = |operations: Value| defined(&json!({"name": "Never", "cel": "false", "operations": operations}));
    let deleted = || change(Operation::Delete, Some(widget(1)), None);
    let by_default = defined(&json!({"name": "Never", "cel": "false"}));
    assert!(judged(&by_default, vec![deleted()]).is_empty());
    assert_eq!(judged(&rule(json!(["DELETE"])), vec![deleted()]).len(), 1);
    assert!(judged(&rule(json!(["DELETE"])), vec![Change { orphaned: true, ..deleted() }]).is_empty());
    assert!(judged(&rule(json!(["UPDATE"])), vec![change(Operation::Create, None, Some(widget(1)))]).is_empty());
}

#[test]
fn a_false_expression_is_breaking_and_one_that_fails_is_unknown() {
    let changes = || vec![change(Operation::Create, None, Some(widget(9)))];
    let small = defined(&json!({"name": "Small", "cel": "object.spec.size <= params.most", "params": {"most": 5},
        "message": "too large", "messageExpression": "'at most ' + string(params.most)"}));
    let found = judged(&small, changes());
    assert_eq!((found[0].verdict, found[0].message.as_str()), (Verdict::Breaking, "at most 5"));
    assert_eq!((found[0].path.as_deref(), &found[0].new), (Some("spec.size"), &Some(json!(9))));
    let failing = defined(&json!({"name": "Failing", "cel": "object.spec.colour == 'red'", "message": "not red"}));
    let found = judged(&failing, changes());
    assert_eq!(found[0].verdict, Verdict::Unknown);
    assert_eq!(found[0].message, "the expression cannot be evaluated: no such key: colour");
    let report = |config: Value| judged_with(std::slice::from_ref(&failing), changes(), &[], &config).outcome.as_str();
    assert_eq!(report(json!({})), "refused");
    assert_eq!(report(json!({"failMode": "open"})), "warned");
    assert_eq!(report(json!({"mode": "warn"})), "warned");
}

#[test]
fn the_message_is_chosen_as_the_api_server_does() {
    let said = |more: Value| {
        let mut entry = json!({"name": "Said", "cel": "object.spec.size\n  > 5"});
        entry.as_object_mut().expect("a map").extend(more.as_object().expect("a map").clone());
        messages(&defined(&entry), vec![change(Operation::Create, None, Some(widget(1)))]).remove(0)
    };
    assert_eq!(said(json!({})), "failed expression: object.spec.size > 5");
    assert_eq!(said(json!({"message": "a\n b"})), "a b");
    for fails in ["object.spec.none + ''", "''", "'a\\nb'", "' '"] {
        assert_eq!(said(json!({"message": "fixed", "messageExpression": fails})), "fixed", "{fails}");
    }
    assert_eq!(said(json!({"messageExpression": "'size ' + string(object.spec.size)"})), "size 1");
}

#[derive(Debug)]
struct HidesSize;

impl Scope for HidesSize {
    fn covers(&self, object: &Value) -> bool {
        object["metadata"]["name"] == "w"
    }
    fn masked(&self, object: &Value) -> Option<Value> {
        let mut masked = object.clone();
        masked["spec"]["size"] = json!("(secret)");
        Some(masked)
    }
}

#[test]
fn secret_values_are_judged_and_never_shown() {
    let judge = |entry: Value| {
        let definition = defined(&entry).within(Arc::new(HidesSize));
        judged(&definition, vec![change(Operation::Create, None, Some(widget(424_242)))])
    };
    assert!(judge(json!({"name": "R", "cel": "object.spec.size == 424242"})).is_empty());
    let found = [
        judge(
            json!({"name": "R", "cel": "object.spec.size < 5", "messageExpression": "'it is ' + string(object.spec.size)"}),
        ),
        judge(json!({"name": "R", "cel": "object.spec[string(object.spec.size)] == 1"})),
        judge(json!({"name": "R", "cel": "{'a': 1}[string(object.spec.size)] == 1"})),
        judge(json!({"name": "R", "cel": "object == oldObject"})),
    ];
    for finding in found.iter().flatten() {
        let shown = serde_json::to_string(finding).expect("plain data");
        assert!(!shown.contains("424242"), "{shown}");
    }
    assert!(found.iter().all(|found| found.len() == 1));
    assert_eq!(found[0][0].message, "it is (secret)");
    let other = defined(&json!({"name": "R", "cel": "false"})).within(Arc::new(HidesSize));
    let mut object = widget(1);
    object["metadata"]["name"] = json!("other");
    assert!(judged(&other, vec![change(Operation::Create, None, Some(object))]).is_empty());
}

#[test]
fn a_waiver_covers_what_was_seen_and_nothing_that_comes_after() {
    let small = defined(&json!({"name": "Small", "cel": "object.spec.size <= 5", "message": "too large"}));
    let judge = |size, waivers: &[Waiver]| {
        let changes = vec![change(Operation::Create, None, Some(widget(size)))];
        judged_with(std::slice::from_ref(&small), changes, waivers, &Value::Null)
    };
    let fingerprint = judge(7, &[]).findings[0].fingerprint.clone();
    let waiver = Waiver {
        rule: Some("Small".to_owned()),
        fingerprint: Some(fingerprint),
        reason: "reviewed".to_owned(),
        ..Waiver::default()
    };
    assert_eq!(judge(7, std::slice::from_ref(&waiver)).outcome.as_str(), "passed");
    assert_eq!(judge(8, std::slice::from_ref(&waiver)).outcome.as_str(), "refused");
    let remarks = judge(5, &[waiver]).findings;
    assert_eq!(remarks[0].check, "unused", "the rule is known: {remarks:?}");
}

#[test]
fn a_definition_is_read_strictly() {
    let wrong = |entry: Value| define(&entry).expect_err("wrong").join(" | ");
    assert_eq!(
        wrong(json!({"name": "R", "cel": "object.x == objct"})),
        "policy.yaml: cel: undeclared reference to `objct`"
    );
    assert_eq!(wrong(json!({"name": "R", "cel": "1 + 1"})), "policy.yaml: cel: it must give a bool, and gives int");
    assert_eq!(
        wrong(json!({"name": "R", "cel": "true", "messageExpression": "1"})),
        "policy.yaml: messageExpression: it must give a string, and gives int"
    );
    assert_eq!(
        wrong(json!({"name": "CRDUpgradeSafety", "cel": "true"})),
        "policy.yaml: name: \"CRDUpgradeSafety\" is taken; a rule of your own needs another name"
    );
    for name in ["server", "Policy", "none", "a,b", "1a", "", "x\u{1b}"] {
        assert!(define(&json!({"name": name, "cel": "true"})).is_err(), "{name:?}");
    }
    assert_eq!(
        wrong(json!({"name": "R", "message": "m"})),
        "policy.yaml: `message` belongs to a rule with `cel` or `exec`, which is missing"
    );
    assert!(wrong(json!({"name": "R", "cel": "true", "operations": ["create"]})).contains("`CREATE`"));
    assert!(define(&json!({"name": "R", "cel": "true", "operations": []})).is_err());
}

#[test]
fn definitions_count_in_a_source_and_are_told_of_in_the_manifests() {
    let definition = defined(&json!({"name": "Mine", "cel": "true"}));
    let other = defined(&json!({"name": "Mine", "cel": "false"}));
    let null = Value::Null;
    let warn = json!({"mode": "warn"});
    let entry = |config| [ConfigRule { name: "Mine", config, positions: None }];
    let (plain, loose) = (entry(&null), entry(&warn));
    fn side<'a>(rules: &'a [ConfigRule<'a>], custom: &'a [Definition]) -> Side<'a> {
        Side { rules: Some(rules), custom, ..Side::default() }
    }
    let show = |source: Option<Side<'_>>, manifests: Side<'_>| {
        let policy = policy::resolve(None, source, manifests, &[]).expect("a policy");
        let names: Vec<_> = policy.selection.rules.iter().map(|it| it.rule.meta().name).collect();
        let told = policy.selection.loosened.iter().map(|it| format!("{:?} {} {}", it.kind, it.what, it.followed));
        let mine = policy.selection.rules.iter().find(|it| it.rule.meta().is_custom).map(|it| it.settings.mode);
        (names.len(), mine, told.collect::<Vec<_>>().join(", "))
    };
    let defaults = policy::select(None, None).expect("defaults").rules.len();
    let one = std::slice::from_ref(&definition);
    let strict = Some(crate::rule::Mode::Error);
    // It adds to the default set, and does not take its place.
    assert_eq!(show(Some(side(&plain, one)), Side::default()), (defaults + 1, strict, String::new()));
    // The same on both sides, and settings that are no stricter.
    assert_eq!(show(Some(side(&plain, one)), side(&plain, one)), (defaults + 1, strict, String::new()));
    let looser = "LooserSetting Mine mode false".to_owned();
    assert_eq!(show(Some(side(&plain, one)), side(&loose, one)), (defaults + 1, strict, looser.clone()));
    assert_eq!(show(Some(side(&plain, one)), side(&loose, &[])).2.split(", ").last(), Some(looser.as_str()));
    // Another definition under the same name.
    let told = "CustomRule Mine false".to_owned();
    let another = std::slice::from_ref(&other);
    assert_eq!(show(Some(side(&plain, one)), side(&plain, another)), (defaults + 1, strict, told.clone()));
    // In the manifests alone it counts for nothing, with and without a source.
    assert_eq!(show(Some(Side::default()), side(&plain, one)), (defaults, None, told.clone()));
    assert_eq!(show(None, side(&plain, one)), (defaults, None, told));
}

#[test]
fn all_definitions_of_a_name_hold() {
    let rules = [
        defined(&json!({"name": "Twice", "cel": "object.spec.size > 1", "message": "small"})),
        defined(&json!({"name": "Twice", "cel": "object.spec.size < 9", "message": "large"})),
        defined(&json!({"name": "Twice", "cel": "object.spec.size < 9", "message": "large"})),
    ];
    let known = super::rules(&rules);
    assert_eq!(known.len(), 1);
    let facts = |size| Facts {
        changes: ChangeSet {
            changes: vec![change(Operation::Create, None, Some(widget(size)))],
            ..ChangeSet::default()
        },
        ..Facts::default()
    };
    let said = |size| match known[0].check(&facts(size), &Settings::default(), &mut Memory::default()) {
        Checked::Done(judgement) => judgement.findings.into_iter().map(|it| it.message).collect::<Vec<_>>(),
        other => panic!("{other:?}"),
    };
    assert_eq!((said(1), said(5), said(9)), (vec!["small".to_owned()], vec![], vec!["large".to_owned()]));
    assert!(std::ptr::eq(known[0].meta(), super::rules(&rules)[0].meta()), "the same rule, read again");
}
