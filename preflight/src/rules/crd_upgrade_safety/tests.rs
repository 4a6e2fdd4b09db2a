//! Findings of CRDUpgradeSafety for real definitions of projects, and for single edits of a small one.

mod advice;
mod backend;
mod clients;
mod decided;
mod effects;
mod fingerprints;
mod hostile;
mod met;
mod names;
mod objects;
mod planned;
mod published_lists;
mod remedies;
mod version_clients;
mod whole;

use std::sync::Arc;

use pushback_objects::source::testing::numbered;
use pushback_objects::source::{PathSegment, Position, Positions, PositionsBuilder};
use serde_json::{Map, Value, json};

use super::*;
use crate::facts::{Answer, ClusterFacts, ClusterSide, Verification};
use crate::judge::{Outcome, RuleOutcome, RunReport};
use crate::policy::select;
use crate::registry;
use crate::selection::ConfigRule;
use crate::session::Session;

/// A small definition: `v1` stored and served, `v1beta1` served.
fn foos() -> Value {
    let version = |name: &str, storage: bool| {
        json!({
            "name": name, "served": true, "storage": storage,
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                "spec": {"type": "object", "properties": {"size": {"type": "integer"}}},
            }}},
            "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}},
            "selectableFields": [{"jsonPath": ".spec.size"}],
            "additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}],
        })
    };
    // The server takes selectable fields only where versions have both in common, fields and schemas, or neither.
    let mut beta = version("v1beta1", false);
    beta["schema"]["openAPIV3Schema"]["description"] = "beta".into();
    beta["selectableFields"] = json!([]);
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "foos.ex.com"},
        "spec": {
            "group": "ex.com", "scope": "Namespaced",
            "names": {"kind": "Foo", "plural": "foos", "shortNames": ["fo"]},
            "versions": [version("v1", true), beta],
        },
    })
}

/// The live form of [`foos`].
fn live(stored: &[&str]) -> Value {
    let mut live = foos();
    live["status"] = json!({"storedVersions": stored});
    live
}

fn edited(edit: impl FnOnce(&mut Value)) -> Value {
    let mut value = foos();
    edit(&mut value);
    value
}

fn positions(value: &Value) -> Positions {
    numbered(value, "crd.yaml")
}

fn change(operation: Operation, live: Option<Value>, desired: Option<Value>) -> Change {
    let object = ObjectRef::of(desired.as_ref().or(live.as_ref()).unwrap_or(&Value::Null));
    Change {
        object,
        resource: "customresourcedefinitions".into(),
        namespaced: false,
        operation,
        positions: desired.as_ref().map(|value| Arc::new(positions(value))),
        desired: desired.map(Arc::new),
        live: live.map(Arc::new),
        result: None,
        verification: Verification::NotVerified("test".into()),
        orphaned: false,
        taken_from: Vec::new(),
    }
}

fn update(live: Value, desired: Value) -> Change {
    change(Operation::Update, Some(live), Some(desired))
}

fn delete(object: Value) -> Change {
    change(Operation::Delete, Some(object), None)
}

/// Runs the rule; `objects` is the answer to a listing of the kind.
fn run_with(changes: Vec<Change>, config: &Value, objects: Result<Vec<Value>, &str>) -> RunReport {
    run_on(ClusterSide::Server, changes, config, objects)
}

/// Like [`run_with`], on a given kind of cluster.
fn run_on(side: ClusterSide, changes: Vec<Change>, config: &Value, objects: Result<Vec<Value>, &str>) -> RunReport {
    run_for("test", side, changes, config, objects)
}

/// Like [`run_on`], for an app of this name; empty if none is named.
fn run_for(
    app: &str,
    side: ClusterSide,
    changes: Vec<Change>,
    config: &Value,
    objects: Result<Vec<Value>, &str>,
) -> RunReport {
    run_in(app, ClusterFacts { side, ..ClusterFacts::default() }, changes, config, objects)
}

/// Like [`run_for`], with these facts of the cluster.
fn run_in(
    app: &str,
    cluster: ClusterFacts,
    changes: Vec<Change>,
    config: &Value,
    objects: Result<Vec<Value>, &str>,
) -> RunReport {
    let flag = [NAME.to_owned()];
    let rules = [ConfigRule { name: NAME, config, positions: None }];
    let selection = select(Some(&flag), Some(&rules)).expect("a valid config");
    let changes = ChangeSet { app: app.into(), changes, ..ChangeSet::default() };
    let mut session = Session::of(selection, changes, cluster);
    loop {
        let needs = session.needs();
        if needs.is_empty() {
            break;
        }
        for need in needs {
            if let Need::Object { object } = &need {
                // A Service that may lead anywhere.
                let service =
                    json!({"kind": "Service", "metadata": {"name": object.name}, "spec": {"type": "ExternalName"}});
                session.answer([(need, Answer::Object { object: Some(Arc::new(service)) })]);
                continue;
            }
            let Need::Objects { limit, .. } = &need else { panic!("{need:?}") };
            let answer = match &objects {
                Ok(objects) => {
                    let limit =
                        if *limit == 0 { objects.len() } else { usize::try_from(*limit).expect("a small limit") };
                    let seen = &objects[..objects.len().min(limit)];
                    let mut state = Value::Null;
                    seen.chunks(2).for_each(|page| session.fold(&need, &mut state, page));
                    Answer::Folded { state, examined: seen.len() as u64, cut: seen.len() < objects.len() }
                }
                Err(reason) => Answer::Unable { reason: (*reason).into() },
            };
            session.answer([(need, answer)]);
        }
    }
    let (report, _) = session.finish(Judgement::default(), &[], "2026-01-01");
    for finding in &report.findings {
        assert!(META.checks.iter().any(|(check, _)| *check == finding.check), "{} is not declared", finding.check);
        // The published sentence about a removed field names the definition.
        let named = finding.message.contains(&finding.object.name) && finding.check != "existingFieldRemoval";
        assert!(!finding.message.ends_with('.') && !named, "{finding:?}");
    }
    report
}

fn run(change: Change) -> RunReport {
    run_with(vec![change], &json!({}), Ok(vec![]))
}

/// One line per finding: `check verdict severity: message`.
fn lines(report: &RunReport) -> String {
    let line = |finding: &Finding| {
        let Finding { check, verdict, severity, message, .. } = finding;
        format!("{check} {verdict:?} {severity:?}: {message}")
    };
    report.findings.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// The findings for one edit of [`foos`].
fn after(edit: impl FnOnce(&mut Value)) -> String {
    lines(&run(update(live(&["v1"]), edited(edit))))
}

fn real(name: &str) -> Value {
    let path = format!("{}/../tests/data/crds/{name}.json", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).expect("test data");
    serde_json::from_str(&text).expect("JSON")
}

fn real_upgrade(old: &str, new: &str, stored: &[&str]) -> RunReport {
    let mut old = real(old);
    old["status"] = json!({"storedVersions": stored});
    run(update(old, real(new)))
}

#[test]
fn strimzi_1_0_removes_the_version_that_topics_are_stored_in() {
    let report = real_upgrade("strimzi-0.48.0-kafkatopics", "strimzi-1.0.0-kafkatopics", &["v1beta2"]);
    insta::assert_snapshot!(lines(&report), @r#"
    servedVersionRemoval Breaking Error: served version "v1alpha1" removed
    servedVersionRemoval Breaking Error: served version "v1beta1" removed
    storedVersionRemoval Breaking Error: stored version "v1beta2" removed
    "#);
    let stored = report.findings.iter().find(|finding| finding.check == "storedVersionRemoval").expect("found");
    assert_eq!(
        registry::published_line(stored).as_deref(),
        Some(
            "CustomResourceDefinition kafkatopics.kafka.strimzi.io failed upgrade safety validation. \
             \"NoStoredVersionRemoved\" validation failed: stored version \"v1beta2\" removed"
        )
    );
    assert_eq!(report.outcome, Outcome::Refused);
}

#[test]
fn gateway_api_unserves_a_version_that_it_had_deprecated() {
    let (old, new) = ("gateway-api-1.1.1-experimental-referencegrants", "gateway-api-1.1.1-standard-referencegrants");
    let report = real_upgrade(old, new, &["v1beta1"]);
    insta::assert_snapshot!(lines(&report), @r#"servedVersionUnserved Change Warning: version "v1alpha2" is no longer served"#);
    assert_eq!(report.outcome, Outcome::Warned);
    // Objects may still be stored in the version, so a deprecation is not enough.
    assert_eq!(real_upgrade(old, new, &["v1alpha2", "v1beta1"]).outcome, Outcome::Refused);
}

#[test]
fn karpenter_moves_its_storage_version_and_drops_its_webhook() {
    let report = real_upgrade("karpenter-0.37.7-nodeclaims", "karpenter-1.0.9-nodeclaims", &["v1beta1"]);
    insta::assert_snapshot!(lines(&report), @r#"
    crossVersionLoss Breaking Error: field "^.spec.kubelet" of version "v1beta1" is lost in version "v1": conversion strategy None only rewrites apiVersion
    crossVersionLoss Breaking Error: field "^.spec.nodeClassRef.apiVersion" of version "v1beta1" is lost in version "v1": conversion strategy None only rewrites apiVersion
    crossVersionRejection Breaking Error: objects of version "v1beta1" are refused in version "v1", as conversion strategy None only rewrites apiVersion: ^.spec.nodeClassRef (required) and 1 more
    pattern Breaking Error: version "v1", field "^.spec.nodeClassRef.group": pattern added: "^[^/]*$"
    crossVersionLoss Breaking Error: field "^.spec.expireAfter" of version "v1" is lost in version "v1beta1": conversion strategy None only rewrites apiVersion
    crossVersionLoss Breaking Error: field "^.spec.nodeClassRef.group" of version "v1" is lost in version "v1beta1": conversion strategy None only rewrites apiVersion
    crossVersionLoss Breaking Error: field "^.spec.terminationGracePeriod" of version "v1" is lost in version "v1beta1": conversion strategy None only rewrites apiVersion
    crossVersionLoss Breaking Error: field "^.status.lastPodEventTime" of version "v1" is lost in version "v1beta1": conversion strategy None only rewrites apiVersion
    conversion Change Info: conversion strategy changed from Webhook to None
    storageVersionChange Change Info: storage version moved from "v1beta1" to "v1"; status.storedVersions lists both until all objects are rewritten
    "#);
    let report = real_upgrade("karpenter-1.0.9-nodeclaims", "karpenter-1.10.1-nodeclaims", &["v1beta1", "v1"]);
    insta::assert_snapshot!(lines(&report), @r#"
    storedVersionRemoval Breaking Error: stored version "v1beta1" removed
    pattern Breaking Error: version "v1", field "^.spec.expireAfter": pattern changed from "^(([0-9]+(s|m|h))+)|(Never)$" to "^(([0-9]+(s|m|h))+|Never)$"
    x-kubernetes-validations Breaking Error: version "v1", field "^.spec.nodeClassRef.group": CEL rules added or changed: ["self != ''"]
    x-kubernetes-validations Breaking Error: version "v1", field "^.spec.nodeClassRef.kind": CEL rules added or changed: ["self != ''"]
    x-kubernetes-validations Breaking Error: version "v1", field "^.spec.nodeClassRef.name": CEL rules added or changed: ["self != ''"]
    "#);
}

#[test]
fn a_definition_compared_with_itself_has_no_findings() {
    for entry in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/data/crds")).expect("test data") {
        let name = entry.expect("an entry").file_name().into_string().expect("UTF-8");
        let Some(name) = name.strip_suffix(".json") else { continue };
        let report = run(update(real(name), real(name)));
        assert_eq!((report.outcome, lines(&report).as_str()), (Outcome::Passed, ""), "{name}");
    }
}

#[test]
fn a_new_definition_passes() {
    let report = run(change(Operation::Create, None, Some(foos())));
    assert_eq!((report.outcome, report.rules[0].outcome), (Outcome::Passed, RuleOutcome::Passed));
    assert!(report.findings.is_empty());
}

#[test]
fn what_a_kind_is_called_and_where_it_lives_stays() {
    let spec = |key: &'static str, value: &'static str| after(move |crd| crd["spec"][key] = value.into());
    let names = |key: &'static str, value: Value| after(move |crd| crd["spec"]["names"][key] = value);
    insta::assert_snapshot!(spec("scope", "Cluster"), @r#"scope Breaking Error: scope changed from "Namespaced" to "Cluster""#);
    insta::assert_snapshot!(spec("group", "ex.org"), @r#"
    invalid Breaking Error: the API server would refuse the definition: must be foos.ex.org, of spec.names.plural and spec.group
    group Breaking Error: group changed from "ex.com" to "ex.org"
    "#);
    insta::assert_snapshot!(names("plural", json!("fooz")), @r#"
    invalid Breaking Error: the API server would refuse the definition: must be fooz.ex.com, of spec.names.plural and spec.group
    names Breaking Error: plural name changed from "foos" to "fooz"
    "#);
    insta::assert_snapshot!(names("kind", json!("Fu")), @r#"names Breaking Error: kind changed from "Foo" to "Fu""#);
    insta::assert_snapshot!(names("listKind", json!("Foos")), @r#"names Unknown Error: list kind changed from "FooList" to "Foos""#);
    insta::assert_snapshot!(names("singular", json!("fu")), @r#"names Change Info: singular name changed from "foo" to "fu""#);
    insta::assert_snapshot!(names("shortNames", json!(["f"])), @r#"names Change Info: short name "fo" removed"#);
}

#[test]
fn names_that_the_server_fills_in_are_no_change() {
    let mut old = live(&["v1"]);
    old["spec"]["names"]["listKind"] = json!("FooList");
    old["spec"]["names"]["singular"] = json!("foo");
    old["spec"]["conversion"] = json!({"strategy": "None"});
    assert_eq!(lines(&run(update(old, foos()))), "");
}

#[test]
fn a_version_that_clients_use_is_not_given_up_unasked() {
    let remove = |crd: &mut Value| crd["spec"]["versions"] = json!([crd["spec"]["versions"][0]]);
    let unserve = |crd: &mut Value| crd["spec"]["versions"][1]["served"] = json!(false);
    let judge = |deprecated: bool, stored: &[&str], config: Value, edit: &dyn Fn(&mut Value)| {
        let mut old = live(stored);
        old["spec"]["versions"][1]["deprecated"] = json!(deprecated);
        let report = run_with(vec![update(old, edited(edit))], &config, Ok(vec![]));
        format!("{:?} {}", report.outcome, lines(&report))
    };
    let warn = || json!({"versions": {"removed": "warn", "unserved": "warn"}});
    insta::assert_snapshot!(judge(false, &["v1"], json!({}), &remove), @r#"Refused servedVersionRemoval Breaking Error: served version "v1beta1" removed"#);
    insta::assert_snapshot!(judge(false, &["v1"], json!({}), &unserve), @r#"Refused servedVersionUnserved Breaking Error: version "v1beta1" is no longer served"#);
    insta::assert_snapshot!(judge(true, &["v1"], json!({}), &remove), @r#"Warned servedVersionRemoval Change Warning: served version "v1beta1" removed"#);
    insta::assert_snapshot!(judge(true, &["v1"], json!({}), &unserve), @r#"Warned servedVersionUnserved Change Warning: version "v1beta1" is no longer served"#);
    insta::assert_snapshot!(judge(false, &["v1"], warn(), &remove), @r#"Warned servedVersionRemoval Change Warning: served version "v1beta1" removed"#);
    insta::assert_snapshot!(judge(false, &["v1"], warn(), &unserve), @r#"Warned servedVersionUnserved Change Warning: version "v1beta1" is no longer served"#);
    insta::assert_snapshot!(judge(true, &["v1beta1", "v1"], json!({}), &unserve), @r#"Refused servedVersionUnserved Breaking Error: version "v1beta1" is no longer served"#);
    insta::assert_snapshot!(judge(true, &["v1beta1", "v1"], warn(), &remove), @r#"Refused storedVersionRemoval Breaking Error: stored version "v1beta1" removed"#);
}

#[test]
fn without_a_status_only_the_storage_version_is_known_to_be_stored() {
    let mut old = foos();
    old["spec"]["versions"][1]["deprecated"] = json!(true);
    let keep = |index: usize| edited(move |crd| crd["spec"]["versions"] = json!([crd["spec"]["versions"][index]]));
    // Deprecated, but it is unknown whether objects are stored in it.
    insta::assert_snapshot!(lines(&run(update(old.clone(), keep(0)))), @r#"servedVersionRemoval Breaking Error: served version "v1beta1" removed"#);
    old["spec"]["versions"][1]["served"] = json!(false);
    insta::assert_snapshot!(lines(&run(update(old, keep(0)))), @r#"unservedVersionRemoval Unknown Error: unable to determine if objects are stored in version "v1beta1", which is removed: the old definition has no status"#);
    let report = run(update(
        foos(),
        edited(|crd| {
            crd["spec"]["versions"] = json!([crd["spec"]["versions"][1]]);
            crd["spec"]["versions"][0]["storage"] = json!(true);
        }),
    ));
    insta::assert_snapshot!(lines(&report), @r#"storedVersionRemoval Breaking Error: stored version "v1" removed"#);
}

#[test]
fn a_version_that_becomes_deprecated_is_worth_knowing() {
    insta::assert_snapshot!(after(|crd| crd["spec"]["versions"][1]["deprecated"] = json!(true)), @r#"versionDeprecated Change Info: version "v1beta1" becomes deprecated"#);
}

#[test]
fn the_storage_version_moves_freely_only_between_equal_schemas() {
    let flip = |crd: &mut Value| {
        crd["spec"]["versions"][0]["storage"] = json!(false);
        crd["spec"]["versions"][1]["storage"] = json!(true);
    };
    insta::assert_snapshot!(after(flip), @r#"storageVersionChange Change Info: storage version moved from "v1" to "v1beta1"; status.storedVersions lists both until all objects are rewritten"#);
    // v1beta1 always lacked a field of v1; now objects stored in v1 lose it.
    let schema = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties";
    let mut old = live(&["v1"]);
    let mut new = edited(flip);
    for crd in [&mut old, &mut new] {
        crd.pointer_mut(schema).expect("a schema")["color"] = json!({"type": "string"});
    }
    insta::assert_snapshot!(lines(&run(update(old.clone(), new.clone()))), @r#"
    crossVersionLoss Breaking Error: field "^.spec.color" of version "v1" is lost in version "v1beta1": conversion strategy None only rewrites apiVersion
    storageVersionChange Change Info: storage version moved from "v1" to "v1beta1"; status.storedVersions lists both until all objects are rewritten
    "#);
    let webhook = json!({"strategy": "Webhook", "webhook": {"clientConfig": {"url": "https://x"}}});
    old["spec"]["conversion"] = webhook.clone();
    new["spec"]["conversion"] = webhook;
    insta::assert_snapshot!(lines(&run(update(old, new))), @r#"storageVersionChange Change Info: storage version moved from "v1" to "v1beta1"; status.storedVersions lists both until all objects are rewritten"#);
}

#[test]
fn what_a_version_offers_stays() {
    let version = |edit: fn(&mut Value)| after(move |crd| edit(&mut crd["spec"]["versions"][0]));
    insta::assert_snapshot!(version(|v1| v1["subresources"] = json!({"status": {}})), @"scaleSubresource Breaking Error: scale subresource removed");
    insta::assert_snapshot!(version(|v1| v1["subresources"]["status"] = Value::Null), @"statusSubresource Breaking Error: status subresource removed");
    insta::assert_snapshot!(version(|v1| v1["subresources"]["scale"]["specReplicasPath"] = json!(".spec.n")), @r#"scaleSubresource Breaking Error: specReplicasPath of the scale subresource moved from ".spec.size" to ".spec.n": autoscalers and kubectl scale no longer see the old field"#);
    insta::assert_snapshot!(version(|v1| v1["subresources"]["scale"]["labelSelectorPath"] = json!(".status.s")), @"");
    insta::assert_snapshot!(version(|v1| v1["selectableFields"] = json!([])), @r#"selectableFields Breaking Error: field ".spec.size" can no longer be used in field selectors"#);
    insta::assert_snapshot!(version(|v1| v1["additionalPrinterColumns"] = json!([])), @r#"additionalPrinterColumns Change Info: printer columns removed: "Size""#);
    let mut old = live(&["v1"]);
    old["spec"]["versions"][0]["subresources"] = json!({});
    insta::assert_snapshot!(lines(&run(update(old, foos()))), @"
    scaleSubresource Breaking Error: scale subresource added: the server then requires integers from 0 to 2147483647 for replicas, and a string for the label selector on every write
    statusSubresource Change Warning: status subresource added: status in ordinary writes is ignored from now on
    ");
}

#[test]
fn fields_that_were_kept_without_a_schema_are_not_dropped_silently() {
    let mut old = live(&["v1"]);
    old["spec"]["preserveUnknownFields"] = json!(true);
    let report = run(update(old.clone(), foos()));
    insta::assert_snapshot!(lines(&report), @"preserveUnknownFields Breaking Error: fields that no schema names are no longer kept");
    assert_eq!(
        report.findings[0].witness.as_deref(),
        Some(&json!({"apiVersion": "ex.com/v1", "kind": "Foo", "metadata": {"name": "witness"}, "key": "a"}))
    );
    // The witness is valid before, so it has every required field.
    let mut demanding = foos();
    old["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["required"] = json!(["spec"]);
    demanding["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["required"] = json!(["spec"]);
    let report = run(update(old.clone(), demanding));
    assert_eq!(
        report.findings[0].witness.as_deref(),
        Some(
            &json!({"apiVersion": "ex.com/v1", "kind": "Foo", "metadata": {"name": "witness"}, "key": "a", "spec": {}})
        )
    );
    let open = |below: &str| {
        edited(|crd| {
            for index in 0..2 {
                let root = format!("/spec/versions/{index}/schema/openAPIV3Schema");
                for node in [root.clone(), format!("{root}{below}")] {
                    crd.pointer_mut(&node).expect("a node")["x-kubernetes-preserve-unknown-fields"] = json!(true);
                }
            }
        })
    };
    let reported = |new: Value| lines(&run(update(old.clone(), new))).contains("preserveUnknownFields Breaking");
    assert!(reported(open("")), "the root keeps what it does not name, and spec drops it");
    assert!(!reported(open("/properties/spec")));
}

#[test]
fn a_schema_change_is_judged_field_by_field_with_a_witness() {
    let size = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/size";
    let enumerate = |word: &'static str| {
        edited(move |crd| *crd.pointer_mut(size).expect("a schema") = json!({"type": "integer", "maximum": word.len()}))
    };
    let report = run(update(live(&["v1"]), enumerate("a")));
    let finding = &report.findings[0];
    insta::assert_snapshot!(lines(&report), @r#"maximum Breaking Error: version "v1", field "^.spec.size": maximum constraint added when one did not exist previously: 1"#);
    assert_eq!((finding.version.as_deref(), finding.path.as_deref()), (Some("v1"), Some("spec.size")));
    assert_eq!(
        (finding.effect.as_deref(), finding.blocks.as_deref()),
        (Some("rejected"), Some("create, edit of the field"))
    );
    assert_eq!(finding.witness.as_ref().and_then(|witness| witness.pointer("/spec/size")), Some(&json!(2)));
    // A waiver for this change must not cover the next one.
    let other = run(update(live(&["v1"]), enumerate("ab")));
    assert_ne!(finding.fingerprint, other.findings[0].fingerprint);
}

#[test]
fn what_cannot_be_judged_is_unknown_and_fail_mode_decides() {
    let size = "/spec/versions/0/schema/openAPIV3Schema/properties/spec";
    let atomic = edited(|crd| {
        crd.pointer_mut(size).expect("a schema")["x-kubernetes-map-type"] = json!("atomic");
    });
    insta::assert_snapshot!(lines(&run(update(live(&["v1"]), atomic.clone()))), @"x-kubernetes-map-type Unknown Error: unable to determine if change to existing field is safe: v1 ^.spec (x-kubernetes-map-type)");
    let warned = run_with(vec![update(live(&["v1"]), atomic)], &json!({"failMode": "open"}), Ok(vec![]));
    assert_eq!((warned.outcome, warned.findings[0].severity), (Outcome::Warned, Severity::Warning));
}

#[test]
fn the_schema_of_a_version_that_nobody_sees_may_change() {
    let mut old = live(&["v1"]);
    old["spec"]["versions"][1]["served"] = json!(false);
    let new = edited(|crd| {
        crd["spec"]["versions"][1]["served"] = json!(false);
        crd["spec"]["versions"][1]["schema"]["openAPIV3Schema"]["properties"] = json!({});
        crd["spec"]["versions"][1]["selectableFields"] = json!([]);
    });
    assert_eq!(lines(&run(update(old.clone(), new.clone()))), "");
    old["status"]["storedVersions"] = json!(["v1beta1", "v1"]);
    assert!(lines(&run(update(old, new))).starts_with("existingFieldRemoval Breaking"));
}

#[test]
fn findings_point_at_the_exact_node_of_the_manifest() {
    let place = |edit: &dyn Fn(&mut Value), path: &[PathSegment]| {
        let new = edited(edit);
        let expected = positions(&new).locate(path);
        let report = run(update(live(&["v1"]), new));
        assert_eq!(report.findings[0].position, Some(expected), "{}", lines(&report));
    };
    place(&|crd| crd["spec"]["scope"] = json!("Cluster"), &["spec".into(), "scope".into()]);
    let version = |rest: &[&str]| -> Vec<PathSegment> {
        let start: [PathSegment; 3] = ["spec".into(), "versions".into(), 1.into()];
        start.into_iter().chain(rest.iter().map(|key| PathSegment::from(*key))).collect()
    };
    place(&|crd| crd["spec"]["versions"][1]["served"] = json!(false), &version(&["served"]));
    place(
        &|crd| crd["spec"]["versions"][1]["schema"]["openAPIV3Schema"]["type"] = json!("string"),
        &version(&["schema", "openAPIV3Schema", "type"]),
    );
    // A removed element has no position; its list does.
    place(&|crd| crd["spec"]["versions"] = json!([crd["spec"]["versions"][0]]), &["spec".into(), "versions".into()]);
}

#[test]
fn places_follow_the_manifest_where_the_server_orders_versions_differently() {
    let manifest = edited(|crd| crd["spec"]["versions"][1]["served"] = json!(false));
    let mut answered = manifest.clone();
    answered["spec"]["versions"].as_array_mut().expect("a list").reverse();
    let mut change = update(live(&["v1"]), manifest.clone());
    change.result = Some(Arc::new(answered));
    let served = positions(&manifest).locate(&["spec".into(), "versions".into(), 1.into(), "served".into()]);
    assert_eq!(run(change).findings[0].position, Some(served));
}

#[test]
fn v1beta1_definitions_are_read_with_their_fields_for_all_versions() {
    let old = json!({
        "apiVersion": "apiextensions.k8s.io/v1beta1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "foos.ex.com"},
        "spec": {
            "group": "ex.com", "scope": "Namespaced", "names": {"kind": "Foo", "plural": "foos"}, "version": "v1",
            "preserveUnknownFields": false,
            "validation": {"openAPIV3Schema": {"type": "object"}}, "subresources": {"status": {}},
        },
        "status": {"storedVersions": ["v1"]},
    });
    let mut new = old.clone();
    new["spec"]["versions"] = json!([{"name": "v1", "served": true, "storage": true}]);
    assert_eq!(lines(&run(update(old.clone(), new.clone()))), "");
    new["spec"]["versions"][0]["name"] = json!("v2");
    insta::assert_snapshot!(lines(&run(update(old.clone(), new.clone()))), @r#"storedVersionRemoval Breaking Error: stored version "v1" removed"#);
    new["spec"]["versions"][0]["name"] = json!("v1");
    new["spec"]["subresources"] = json!({});
    insta::assert_snapshot!(lines(&run(update(old, new))), @"statusSubresource Breaking Error: status subresource removed");
}

#[test]
fn hostile_definitions_are_judged_without_a_panic() {
    let values = [json!(null), json!([]), json!("x"), json!(-1), json!({}), json!([null, {"name": 7}, {"name": ""}])];
    for pointer in [
        "/spec",
        "/spec/versions",
        "/spec/names",
        "/status",
        "/spec/versions/0",
        "/spec/conversion",
        "/spec/versions/0/schema",
        "/spec/versions/0/schema/openAPIV3Schema",
        "/spec/versions/0/subresources",
    ] {
        for value in &values {
            let mut broken = live(&["v1"]);
            *broken.pointer_mut(pointer).unwrap_or(&mut Value::Null) = value.clone();
            for change in [
                update(live(&["v1"]), broken.clone()),
                update(broken.clone(), foos()),
                delete(broken.clone()),
                change(Operation::Replace, Some(broken), Some(foos())),
            ] {
                run(change);
            }
        }
    }
}

#[test]
fn only_findings_with_a_published_validator_have_a_published_line() {
    let report = run(update(live(&["v1"]), edited(|crd| crd["spec"]["scope"] = json!("Cluster"))));
    assert_eq!(
        registry::published_line(&report.findings[0]).as_deref(),
        Some(
            "CustomResourceDefinition foos.ex.com failed upgrade safety validation. \"NoScopeChange\" validation \
             failed: scope changed from \"Namespaced\" to \"Cluster\""
        )
    );
    let report = run(update(live(&["v1"]), edited(|crd| crd["spec"]["group"] = json!("ex.org"))));
    assert_eq!(registry::published_line(&report.findings[0]), None);
}

#[test]
fn a_fingerprint_stays_when_the_place_moves() {
    let judge = |line: u32| {
        let mut change = update(live(&["v1"]), edited(|crd| crd["spec"]["scope"] = json!("Cluster")));
        let mut builder = PositionsBuilder::new("other.yaml".into());
        builder.open(&"".into(), line, 1);
        change.positions = Some(Arc::new(builder.finish()));
        let finding = run(change).findings.remove(0);
        (finding.fingerprint, finding.position)
    };
    let (first, second) = (judge(1), judge(50));
    assert_eq!(first.0, second.0);
    assert_eq!(second.1, Some(Position { file: "other.yaml".into(), line: 50, column: 1 }));
}

#[test]
fn unknown_field_of_a_crd_warns_where_no_server_answers() {
    let directory = || ClusterFacts { side: ClusterSide::Directory, ..ClusterFacts::default() };
    let misspelled = || edited(|crd| crd["spec"]["versions"][0]["additionalprinterColumns"] = json!([]));
    let found = |old: Value| {
        let report = run_in("", directory(), vec![update(old, misspelled())], &json!({}), Ok(Vec::new()));
        let found = report.findings.into_iter().filter(|finding| finding.check == "invalid");
        (report.outcome, found.map(|it| (it.severity, it.path.unwrap_or_default())).collect::<Vec<_>>())
    };
    let place = "spec.versions[0].additionalprinterColumns".to_owned();
    assert_eq!(found(foos()), (Outcome::Warned, vec![(Severity::Warning, place)]));
    assert_eq!(found(misspelled()), (Outcome::Passed, Vec::new()));
}

#[test]
fn crd_is_judged_by_the_version_that_is_asked_about() {
    let mut crd = foos();
    let rule = json!([{"rule": "!has(self.size) || isQuantity('1')"}]);
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["x-kubernetes-validations"] = rule;
    let found = |cluster: ClusterFacts, changes: Vec<Change>| -> Vec<String> {
        let report = run_in("", cluster, changes, &json!({}), Ok(Vec::new()));
        let invalid = report.findings.into_iter().filter(|finding| finding.check == "invalid");
        let mut said: Vec<String> =
            invalid.map(|finding| finding.message.rsplit(": ").next().unwrap_or_default().to_owned()).collect();
        said.sort();
        said
    };
    let asked = |minor: u32| ClusterFacts {
        side: ClusterSide::Directory,
        asked_version: Some((1, minor)),
        ..ClusterFacts::default()
    };
    let create = || vec![change(Operation::Create, None, Some(crd.clone()))];
    let fields = "needs Kubernetes 1.31; 1.28 rejects the field, or removes it without an error";
    assert_eq!(found(asked(28), create()), ["isQuantity needs Kubernetes 1.29, not 1.28", fields]);
    assert_eq!(found(asked(30), create()).len(), 1);
    assert_eq!(found(asked(31), create()), [""; 0]);
    assert_eq!(found(ClusterFacts { side: ClusterSide::Directory, ..ClusterFacts::default() }, create()), [""; 0]);
    // What the live CRD has counts too: the other server has not accepted it.
    let mut described = crd.clone();
    described["spec"]["names"]["shortNames"] = json!(["wd"]);
    assert_eq!(found(asked(30), vec![update(crd.clone(), described.clone())]).len(), 1);
    // A server has accepted the CRD, and is asked about as another version.
    let mut accepted = update(crd.clone(), described);
    accepted.verification = Verification::Server;
    let server = |asked: Option<(u32, u32)>| ClusterFacts {
        version: Some((1, 36)),
        asked_version: asked,
        ..ClusterFacts::default()
    };
    assert_eq!(found(server(None), vec![accepted.clone()]), [""; 0]);
    assert_eq!(found(server(Some((1, 36))), vec![accepted.clone()]), [""; 0]);
    assert_eq!(found(server(Some((1, 30))), vec![accepted]).len(), 1);
}
