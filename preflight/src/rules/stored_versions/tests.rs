//! Findings of StoredVersions for changes of a small definition, alone and together with CRDUpgradeSafety.

use std::sync::Arc;

use pushback_objects::source::testing::numbered;

use super::*;
use crate::facts::{ClusterFacts, ClusterSide, Verification};
use crate::judge::{RuleOutcome, RunReport};
use crate::policy::select;
use crate::selection::ConfigRule;
use crate::session::Session;
use crate::waiver::Waiver;

/// Name, served, storage.
type Version = (&'static str, bool, bool);

fn definition(versions: &[Version]) -> Value {
    let version = |(name, served, storage): &Version| {
        let schema = json!({"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object"}}}});
        json!({"name": name, "served": served, "storage": storage, "schema": schema})
    };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "foos.ex.com"},
        "spec": {
            "group": "ex.com", "scope": "Namespaced", "names": {"kind": "Foo", "plural": "foos"},
            "versions": versions.iter().map(version).collect::<Vec<_>>(),
        },
    })
}

fn live(versions: &[Version], stored: &[&str]) -> Value {
    let mut live = definition(versions);
    let is_true = |name: &str| json!({"type": name, "status": "True"});
    live["status"] =
        json!({"storedVersions": stored, "conditions": [is_true("Established"), is_true("NamesAccepted")]});
    live
}

fn update(live: Value, new: &[Version]) -> Change {
    let desired = definition(new);
    let operation = if live["spec"] == desired["spec"] { Operation::Noop } else { Operation::Update };
    Change {
        object: ObjectRef::of(&desired),
        resource: "customresourcedefinitions".into(),
        namespaced: false,
        operation,
        positions: Some(Arc::new(numbered(&desired, "crd.yaml"))),
        desired: Some(Arc::new(desired)),
        live: Some(Arc::new(live)),
        result: None,
        verification: Verification::Server,
        orphaned: false,
        taken_from: Vec::new(),
    }
}

/// Judges on a server with these objects.
fn judged(change: Change, objects: &[Value], rules: &[(&str, Value)], waivers: &[Waiver]) -> RunReport {
    let rules: Vec<ConfigRule<'_>> =
        rules.iter().map(|(name, config)| ConfigRule { name, config, positions: None }).collect();
    let selection = select(None, Some(&rules)).expect("a selection");
    let changes = ChangeSet { changes: vec![change], ..ChangeSet::default() };
    let cluster = ClusterFacts { side: ClusterSide::Server, version: Some((1, 36)), ..ClusterFacts::default() };
    let mut session = Session::of(selection, changes, cluster);
    loop {
        let needs = session.needs();
        if needs.is_empty() {
            return session.finish(Judgement::default(), waivers, "2026-01-01").0;
        }
        for need in needs {
            let answer = match &need {
                Need::ObjectCount { .. } => Answer::Count { objects: objects.len() as u64, more: false },
                Need::Objects { .. } => {
                    let mut state = Value::Null;
                    session.fold(&need, &mut state, objects);
                    Answer::Folded { state, examined: objects.len() as u64, cut: false }
                }
                other => unreachable!("{other:?}"),
            };
            session.answer([(need, answer)]);
        }
    }
}

fn foo(name: &str, owners: &[(&str, &str)]) -> Value {
    let entry =
        |(manager, version): &(&str, &str)| json!({"manager": manager, "apiVersion": format!("ex.com/{version}")});
    let entries: Vec<Value> = owners.iter().map(entry).collect();
    json!({"metadata": {"namespace": "team", "name": name, "managedFields": entries}})
}

fn foos(count: usize) -> Vec<Value> {
    (0..count).map(|number| foo(&format!("foo-{number}"), &[])).collect()
}

fn alone(change: Change, objects: &[Value]) -> RunReport {
    let report = judged(change, objects, &[(NAME, json!({}))], &[]);
    for finding in &report.findings {
        assert!(META.checks.iter().any(|(check, _)| *check == finding.check), "{finding:?}");
        assert!(!finding.message.ends_with('.') && finding.remedy.is_some(), "{finding:?}");
    }
    report
}

/// Two lines per finding: what is wrong, and what to do.
fn lines(report: &RunReport) -> String {
    let line = |finding: &Finding| {
        let Finding { rule, check, severity, message, .. } = finding;
        let rule = if rule == NAME { String::new() } else { format!("{rule}/") };
        let also = if finding.also.is_empty() { String::new() } else { format!(" (also {})", finding.also.join(", ")) };
        format!("{rule}{check} {severity:?}: {message}{also}\n  => {}", finding.remedy.as_deref().unwrap_or("-"))
    };
    report.findings.iter().map(line).collect::<Vec<_>>().join("\n")
}

const BOTH: [Version; 2] = [("v1", true, false), ("v2", true, true)];
const NEW: [Version; 1] = [("v2", true, true)];

#[test]
fn a_version_that_goes_names_its_objects_and_the_commands() {
    let stranded = |stored: &[&str], objects: usize| lines(&alone(update(live(&BOTH, stored), &NEW), &foos(objects)));
    insta::assert_snapshot!(stranded(&["v1", "v2"], 12), @r#"
    storedVersionRemoval Error: version "v1" is removed, and up to 12 Foo objects stored in it could no longer be read
      => apply with `--storage=migrate`: objects are moved first; clients that still request "v1" get 404 then; or, step by step, run `pushback storage migrate foos.ex.com`, and once no client uses "v1" any more, `pushback storage unserve foos.ex.com v1` and `pushback storage remove foos.ex.com v1`
    "#);
    insta::assert_snapshot!(stranded(&["v1", "v2"], 0), @r#"
    storedVersionRemoval Error: version "v1" is removed, and status.storedVersions still lists it; there is no Foo object
      => apply with `--storage=migrate`: objects are moved first; clients that still request "v1" get 404 then; or, step by step, run `pushback storage migrate foos.ex.com`, and once no client uses "v1" any more, `pushback storage unserve foos.ex.com v1` and `pushback storage remove foos.ex.com v1`
    "#);
    // A version that is no longer served needs no step for that.
    let unserved = live(&[("v1", false, false), ("v2", true, true)], &["v1", "v2"]);
    insta::assert_snapshot!(lines(&alone(update(unserved, &NEW), &foos(1))), @r#"
    storedVersionRemoval Error: version "v1" is removed, and up to 1 Foo object stored in it could no longer be read
      => apply with `--storage=migrate`: objects are moved first; or, step by step, run `pushback storage migrate foos.ex.com`, and then `pushback storage remove foos.ex.com v1`
    "#);
    // Nothing can be rewritten before the storage version is served.
    let stuck = live(&[("v1", true, false), ("v2", false, true)], &["v1", "v2"]);
    insta::assert_snapshot!(lines(&alone(update(stuck, &NEW), &foos(2))), @r#"
    storedVersionRemoval Error: version "v1" is removed, and up to 2 Foo objects stored in it could no longer be read
      => serve "v2": objects can only be rewritten at a served version; then apply with `--storage=migrate`: objects are moved first; clients that still request "v1" get 404 then; or, step by step, run `pushback storage migrate foos.ex.com`, and once no client uses "v1" any more, `pushback storage unserve foos.ex.com v1` and `pushback storage remove foos.ex.com v1`
    "#);
}

#[test]
fn where_the_storage_version_goes_objects_are_carried_over() {
    let old: [Version; 1] = [("v1", true, true)];
    let disjoint = |objects: usize| lines(&alone(update(live(&old, &["v1"]), &NEW), &foos(objects)));
    insta::assert_snapshot!(disjoint(3), @r#"
    storedVersionRemoval Error: version "v1" is removed, and 3 Foo objects stored in it could no longer be read
      => apply with `--storage=bridge`: objects are carried over first, and nothing is written if one would lose a field; clients that still request "v1" get 404 then
    "#);
    insta::assert_snapshot!(disjoint(0), @r#"
    storedVersionRemoval Error: version "v1" is removed, and status.storedVersions still lists it; there is no Foo object
      => apply with `--storage=bridge`: objects are carried over first, and nothing is written if one would lose a field; clients that still request "v1" get 404 then
    "#);
    // The list can be set to anything; what is written is stored in the storage version all the same.
    let forged = live(&[("v1", true, true), ("v2", true, false)], &["v2"]);
    insta::assert_snapshot!(lines(&alone(update(forged, &NEW), &foos(3))), @r#"
    storedVersionRemoval Error: version "v1" is removed, and up to 3 Foo objects stored in it could no longer be read
      => apply with `--storage=bridge`: objects are carried over first, and nothing is written if one would lose a field; clients that still request "v1" get 404 then
    "#);
}

#[test]
fn a_listed_version_that_is_not_defined_blocks_every_update() {
    let change = update(live(&NEW, &["v2", "v9"]), &BOTH);
    insta::assert_snapshot!(lines(&alone(change, &foos(1))), @r#"
    storedVersionRemoval Error: status.storedVersions lists "v9", which the definition does not have: the API server refuses every update of the definition
      => run `pushback storage migrate foos.ex.com`: it proves that no object is stored in "v9", and takes it off the list
    "#);
    let noop = update(live(&NEW, &["v2", "v9"]), &NEW);
    insta::assert_snapshot!(lines(&alone(noop, &foos(1))), @r#"
    debt Info: status.storedVersions lists "v9" besides the storage version "v2"; up to 1 Foo object may be stored there
      => run `pushback storage migrate foos.ex.com`
    "#);
}

#[test]
fn what_is_left_in_old_versions_is_told_and_refuses_nothing() {
    let more: [Version; 3] = [("v1", true, false), ("v2", true, true), ("v3", true, false)];
    insta::assert_snapshot!(lines(&alone(update(live(&BOTH, &["v1", "v2"]), &more), &foos(5))), @r#"
    debt Warning: status.storedVersions lists "v1" besides the storage version "v2"; up to 5 Foo objects may be stored there
      => run `pushback storage migrate foos.ex.com`
    "#);
    // Nothing is written to the definition: an information.
    insta::assert_snapshot!(lines(&alone(update(live(&BOTH, &["v1", "v2"]), &BOTH), &foos(5))), @r#"
    debt Info: status.storedVersions lists "v1" besides the storage version "v2"; up to 5 Foo objects may be stored there
      => run `pushback storage migrate foos.ex.com`
    "#);
    let flipped: [Version; 2] = [("v1", true, true), ("v2", true, false)];
    insta::assert_snapshot!(lines(&alone(update(live(&flipped, &["v1"]), &BOTH), &foos(5))), @r#"
    storageVersionChange Info: storage version moved from "v1" to "v2"; 5 Foo objects stay as stored until rewritten
      => apply with `--storage=migrate`, or run `pushback storage migrate foos.ex.com` afterwards
    "#);
    // Back to the version that is listed still: nothing is left to say about it.
    insta::assert_snapshot!(lines(&alone(update(live(&BOTH, &["v1", "v2"]), &flipped), &foos(5))), @r#"
    storageVersionChange Info: storage version moved from "v2" to "v1"; 5 Foo objects stay as stored until rewritten
      => apply with `--storage=migrate`, or run `pushback storage migrate foos.ex.com` afterwards
    "#);
    let unserved: [Version; 2] = [("v1", true, false), ("v2", false, true)];
    insta::assert_snapshot!(lines(&alone(update(live(&BOTH, &["v2"]), &unserved), &foos(5))), @r#"
    unservedStorageVersion Warning: the storage version "v2" is not served: objects in other versions cannot be moved to it
      => serve "v2", or store objects in a version that is served
    "#);
}

#[test]
fn a_settled_definition_is_not_worth_a_word() {
    let more: [Version; 3] = [("v1", true, false), ("v2", true, true), ("v3", true, false)];
    for change in
        [update(live(&BOTH, &["v2"]), &more), update(live(&BOTH, &["v2"]), &BOTH), update(live(&NEW, &["v2"]), &BOTH)]
    {
        assert_eq!(lines(&alone(change, &foos(3))), "");
    }
    let mut other = update(live(&BOTH, &["v1", "v2"]), &NEW);
    other.object.group = "ex.com".into();
    assert_eq!(lines(&alone(other, &foos(3))), "");
}

#[test]
fn field_owners_at_a_version_that_goes_are_named() {
    let change = || update(live(&BOTH, &["v2"]), &NEW);
    let objects = [
        foo("a", &[("operator", "v1"), ("kubectl", "v1"), ("pushback", "v2")]),
        foo("b", &[("operator", "v1")]),
        foo("c", &[("operator", "v2")]),
    ];
    let report = alone(change(), &objects);
    insta::assert_snapshot!(lines(&report), @r#"
    managedFields Warning: version "v1" is removed, and fields of 2 objects are owned at it by operator, kubectl: these owners are forgotten, or their next apply fails
      => run `pushback storage migrate foos.ex.com`: it moves the entries to the storage version
    "#);
    let live_objects = report.findings[0].live_objects.clone().expect("counted");
    assert_eq!((live_objects.affected, live_objects.examined), (2, 3));
    assert_eq!(live_objects.names, ["team/a", "team/b"]);
    assert_eq!(lines(&alone(change(), &objects[2..])), "");
}

#[test]
fn crd_upgrade_safety_tells_the_removal_with_the_number_and_the_remedy() {
    let change = || update(live(&BOTH, &["v1", "v2"]), &NEW);
    let both = |mode: &str| {
        let rules = [(crd_upgrade_safety::NAME, json!({"mode": mode})), (NAME, json!({}))];
        judged(change(), &foos(12), &rules, &[])
    };
    let report = both("error");
    insta::assert_snapshot!(lines(&report), @r#"
    CRDUpgradeSafety/storedVersionRemoval Error: stored version "v1" removed (also CRDUpgradeSafety/servedVersionRemoval, StoredVersions/storedVersionRemoval)
      => apply with `--storage=migrate`: objects are moved first; clients that still request "v1" get 404 then; or, step by step, run `pushback storage migrate foos.ex.com`, and once no client uses "v1" any more, `pushback storage unserve foos.ex.com v1` and `pushback storage remove foos.ex.com v1`
    "#);
    assert_eq!(report.findings[0].affected(), 12);
    assert_eq!(
        report.rules.iter().map(|rule| rule.outcome).collect::<Vec<_>>(),
        [RuleOutcome::Failed, RuleOutcome::Passed]
    );
    // A rule that only warns hides nothing.
    insta::assert_snapshot!(lines(&both("warn")), @r#"
    storedVersionRemoval Error: version "v1" is removed, and up to 12 Foo objects stored in it could no longer be read
      => apply with `--storage=migrate`: objects are moved first; clients that still request "v1" get 404 then; or, step by step, run `pushback storage migrate foos.ex.com`, and once no client uses "v1" any more, `pushback storage unserve foos.ex.com v1` and `pushback storage remove foos.ex.com v1`
    CRDUpgradeSafety/storedVersionRemoval Warning: stored version "v1" removed (also CRDUpgradeSafety/servedVersionRemoval)
      => apply with `--storage=migrate`: objects are moved first; clients that still request "v1" get 404 then; or, step by step, run `pushback storage migrate foos.ex.com`, and once no client uses "v1" any more, `pushback storage unserve foos.ex.com v1` and `pushback storage remove foos.ex.com v1`
    "#);
    let flip = update(live(&[("v1", true, true), ("v2", true, false)], &["v1"]), &BOTH);
    let rules = [(crd_upgrade_safety::NAME, json!({})), (NAME, json!({}))];
    insta::assert_snapshot!(lines(&judged(flip, &foos(2), &rules, &[])), @r#"
    CRDUpgradeSafety/storageVersionChange Info: storage version moved from "v1" to "v2"; status.storedVersions lists both until all objects are rewritten (also StoredVersions/storageVersionChange)
      => apply with `--storage=migrate`, or run `pushback storage migrate foos.ex.com` afterwards
    "#);
}

#[test]
fn a_waiver_holds_for_the_list_that_it_was_given_for() {
    let change = |stored: &[&str]| update(live(&BOTH, stored), &NEW);
    let fingerprint =
        |stored: &[&str], objects: usize| alone(change(stored), &foos(objects)).findings[0].fingerprint.clone();
    let first = fingerprint(&["v1", "v2"], 2);
    assert_eq!(first, fingerprint(&["v1", "v2"], 3));
    assert_ne!(first, fingerprint(&["v1"], 2));
    let waiver = Waiver { fingerprint: Some(first), reason: "known".into(), ..Waiver::default() };
    let report = judged(change(&["v1", "v2"]), &foos(2), &[(NAME, json!({}))], &[waiver]);
    assert_eq!(report.rules[0].outcome, RuleOutcome::Passed, "{}", lines(&report));
    let warned = judged(change(&["v1", "v2"]), &foos(2), &[(NAME, json!({"mode": "warn"}))], &[]);
    assert_eq!(warned.rules[0].outcome, RuleOutcome::Warned);
}

#[test]
fn what_could_not_be_counted_is_said() {
    let change = update(live(&BOTH, &["v1", "v2"]), &NEW);
    let facts = Facts {
        changes: ChangeSet { changes: vec![change], ..ChangeSet::default() },
        answers: [(
            Need::ObjectCount {
                group: "ex.com".into(),
                version: "v2".into(),
                kind: "Foo".into(),
                resource: "foos".into(),
            },
            Answer::Unable { reason: "foos is forbidden".into() },
        )]
        .into(),
        ..Facts::default()
    };
    let Checked::Done(judgement) = StoredVersions.check(&facts, &Settings::default(), &mut Memory::default()) else {
        panic!("nothing else is needed")
    };
    insta::assert_snapshot!(judgement.findings[0].message, @r#"version "v1" is removed, and objects that are stored in it could no longer be read (their number is not known: foos is forbidden)"#);
}

#[test]
fn without_a_server_the_rule_is_skipped_with_the_reason() {
    let selection = select(Some(&[NAME.to_owned()]), None).expect("a selection");
    let cluster =
        ClusterFacts { side: ClusterSide::Directory, description: "dir:old".into(), ..ClusterFacts::default() };
    let mut session = Session::of(selection, ChangeSet::default(), cluster);
    assert!(session.needs().is_empty());
    let (report, _) = session.finish(Judgement::default(), &[], "2026-01-01");
    assert_eq!(report.rules[0].skipped.as_deref(), Some("needs an API server, and dir:old is none"));
}

#[test]
fn what_a_plan_of_the_manifests_loses_is_found_until_a_policy_accepts_it() {
    use pushback_conversion::{GivenPlan, PlanSource};
    use pushback_objects::source::Document;

    let fields = |version: &mut Value, names: &[&str]| {
        let named = names.iter().map(|name| ((*name).to_owned(), json!({"type": "string"})));
        version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"] = named.collect();
    };
    let judged_with = |source: Option<PlanSource>, stored: &[&str]| {
        let mut change = update(live(&[("v1", true, true)], stored), &[("v1", true, false), ("v2", true, true)]);
        for definition in [&mut change.live, &mut change.desired].into_iter().flatten() {
            let definition = Arc::make_mut(definition);
            fields(&mut definition["spec"]["versions"][0], &["size", "old"]);
            if !definition["spec"]["versions"][1].is_null() {
                fields(&mut definition["spec"]["versions"][1], &["size"]);
            }
        }
        let plan = json!({
            "apiVersion": "pushback.dev/v1alpha1", "kind": "ConversionPlan", "metadata": {"name": "foos.ex.com"},
            "steps": [{"from": "v1", "to": "v2", "removed": {"spec.old": {"reason": "nobody reads it", "drop": true}},
                "acknowledge": {"spec.old": "nobody reads it"}}],
        });
        let document = Document { positions: Arc::new(numbered(&plan, "plan.yaml")), value: plan };
        let plans = source.into_iter().map(|source| GivenPlan::of_document(document.clone(), source).expect("a plan"));
        let plans = Answer::ConversionPlans { plans: plans.collect() };
        let facts = Facts {
            changes: ChangeSet { changes: vec![change], ..ChangeSet::default() },
            answers: [(Need::ConversionPlans, plans)].into(),
            ..Facts::default()
        };
        let subject = Subject::of(&facts.changes.changes[0]).expect("a definition");
        planned::check(&subject, &facts)
    };
    let found = judged_with(Some(PlanSource::Manifests), &["v1"]);
    let told: Vec<String> = found.iter().map(|finding| format!("{} {}", finding.check, finding.message)).collect();
    assert_eq!(
        told,
        ["plannedLoss objects stored in \"v1\" lose spec.old when they are converted to \"v2\": nobody reads it"]
    );
    assert_eq!(found[0].position.as_ref().map(|position| position.file.as_str()), Some("plan.yaml"));
    assert_eq!(judged_with(Some(PlanSource::Policy), &["v1"]), []);
    assert_eq!(judged_with(None, &["v1"]), []);
}

/// Consecutive releases of published definitions, whose objects are all stored in the storage version: only a removal of
/// that very version is told.
#[test]
fn real_releases_are_told_of_only_where_their_stored_version_goes() {
    let read = |name: &str| -> Value {
        let path = format!("{}/../tests/data/crds/{name}.json", env!("CARGO_MANIFEST_DIR"));
        serde_json::from_str(&std::fs::read_to_string(path).expect("test data")).expect("JSON")
    };
    for (old, new, expected) in [
        ("gateway-api-1.1.1-experimental-gatewayclasses", "gateway-api-1.4.1-experimental-gatewayclasses", ""),
        ("karpenter-0.37.7-nodeclaims", "karpenter-1.0.9-nodeclaims", "storageVersionChange info"),
        ("karpenter-1.0.9-nodeclaims", "karpenter-1.10.1-nodeclaims", ""),
        ("strimzi-0.48.0-kafkatopics", "strimzi-1.0.0-kafkatopics", "storedVersionRemoval error"),
    ] {
        let (old_value, new_value) = (read(old), read(new));
        let mut live = old_value.clone();
        let storage = StoredState::of(&live).storage.expect("a storage version");
        let is_true = |name: &str| json!({"type": name, "status": "True"});
        live["status"] =
            json!({"storedVersions": [storage], "conditions": [is_true("Established"), is_true("NamesAccepted")]});
        let mut change = update(definition(&[]), &[]);
        (change.object, change.operation) = (ObjectRef::of(&new_value), Operation::Update);
        (change.live, change.desired) = (Some(Arc::new(live.clone())), Some(Arc::new(new_value)));
        let object = json!({"metadata": {"name": "a", "managedFields": [
            {"manager": "op", "apiVersion": format!("{}/{storage}", StoredState::of(&live).group)},
        ]}});
        let report = judged(change, &[object], &[(NAME, json!({}))], &[]);
        let told: Vec<String> =
            report.findings.iter().map(|it| format!("{} {:?}", it.check, it.severity).to_lowercase()).collect();
        assert_eq!(told.join(", "), expected.to_lowercase(), "{old} to {new}");
    }
}
