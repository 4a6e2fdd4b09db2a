//! Objects of a kind: stored ones that fail, those that are deleted with their definition, and definitions that are
//! removed or that no server accepts.

use serde_json::json;

use super::*;

/// Foos with these sizes, in the form of the live definition.
fn sized(sizes: &[i64]) -> Vec<Value> {
    let object = |size: &i64| {
        let name = format!("n{size}");
        json!({"apiVersion": "ex.com/v1", "kind": "Foo", "metadata": {"namespace": "shop", "name": name}, "spec": {"size": size}})
    };
    sizes.iter().map(object).collect()
}

#[test]
fn the_objects_that_are_there_are_counted_and_named() {
    let bounded = edited(|crd| {
        crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["size"]["maximum"] =
            json!(10);
    });
    let judge = |mode: &str, objects: Result<Vec<Value>, &str>| {
        let change = update(live(&["v1"]), bounded.clone());
        let report = run_with(vec![change], &json!({"liveObjects": mode}), objects);
        let finding = &report.findings[0];
        let counted = finding.live_objects.as_ref().map(|it| (it.affected, it.examined, it.names.join(" ")));
        format!("{:?} {counted:?} {}", report.outcome, finding.message.split(": ").last().unwrap_or_default())
    };
    let objects = || Ok(sized(&[3, 10, 11, 99]));
    insta::assert_snapshot!(judge("report", objects()), @r#"Refused Some((2, 4, "shop/n11 shop/n99")) 10"#);
    insta::assert_snapshot!(judge("decide", objects()), @r#"Refused Some((2, 4, "shop/n11 shop/n99")) 10"#);
    insta::assert_snapshot!(judge("off", objects()), @"Refused None 10");
    // That no object is affected matters only if the setting says so.
    insta::assert_snapshot!(judge("report", Ok(sized(&[3]))), @r#"Refused Some((0, 1, "")) 10"#);
    insta::assert_snapshot!(judge("decide", Ok(sized(&[3]))), @r#"Warned Some((0, 1, "")) 10 (no live object is affected)"#);
    insta::assert_snapshot!(judge("decide", Err("forbidden")), @"Refused None forbidden)");
}

/// The findings about one object on an API server, by check: the verdict and the number of affected objects.
fn decided(old: Value, new: Value, spec: Value) -> String {
    let with = |spec: Value| {
        edited(|crd| crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"] = spec)
    };
    let mut old = with(old);
    old["status"] = json!({"storedVersions": ["v1"]});
    let mut object = foo("a");
    object["spec"] = spec;
    let report = run_with(vec![update(old, with(new))], &json!({"liveObjects": "decide"}), Ok(vec![object]));
    let of_v1 = report.findings.iter().filter(|it| it.version.as_deref() == Some("v1"));
    let line = |finding: &Finding| {
        let affected = finding.live_objects.as_ref().map(|it| it.affected);
        format!("{} {:?} {affected:?}", finding.check, finding.verdict)
    };
    of_v1.map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn an_object_counts_by_where_it_suffers_whatever_keyword_refuses_it() {
    let of = |field: Value| json!({"type": "object", "properties": {"f": field}});
    let text = || of(json!({"type": "string"}));
    let with = |keyword: &str, value: Value| of(json!({"type": "string", keyword: value}));
    let short = || json!({"f": "a"});
    let cases = [
        ("allOf", json!([{"minLength": 2}])),
        ("anyOf", json!([{"minLength": 2}, {"pattern": "^b"}])),
        ("oneOf", json!([{"minLength": 2}, {"pattern": "^b"}])),
        ("not", json!({"maxLength": 1})),
    ];
    for (keyword, value) in cases {
        let found = decided(text(), with(keyword, value.clone()), short());
        assert_eq!(found, format!("{keyword} Breaking Some(1)"));
        let found = decided(text(), with(keyword, value), json!({"f": "aa"}));
        assert_eq!(found, format!("{keyword} Change Some(0)"));
    }
    let nested = json!({"type": "object", "properties": {"f": {"type": "object", "properties": {"g": {"type": "string"}},
        "allOf": [{"properties": {"g": {"minLength": 2}}}]}}});
    let mut open = nested.clone();
    open["properties"]["f"].as_object_mut().expect("a schema").shift_remove("allOf");
    assert_eq!(decided(open, nested, json!({"f": {"g": "a"}})), "allOf Breaking Some(1)");
}

#[test]
fn a_rule_that_the_server_did_not_come_to_decides_nothing() {
    let of = |field: Value, rules: Value| json!({"type": "object", "properties": {"f": field, "g": {"type": "integer"}}, "x-kubernetes-validations": rules});
    let old = of(json!({"type": "string"}), json!([]));
    let new = of(json!({"type": "string", "maxLength": 2}), json!([{"rule": "!has(self.g) || self.g > 1"}]));
    let found = decided(old.clone(), new.clone(), json!({"f": "long", "g": 5}));
    insta::assert_snapshot!(found, @"
    maxLength Breaking Some(1)
    x-kubernetes-validations Breaking Some(0)
    ");
    let found = decided(old, new, json!({"f": "b", "g": 5}));
    insta::assert_snapshot!(found, @"
    maxLength Change Some(0)
    x-kubernetes-validations Change Some(0)
    ");
}

#[test]
fn the_objects_of_a_folder_decide_where_there_are_any() {
    let bounded = edited(|crd| {
        crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["size"]["maximum"] =
            json!(10);
    });
    let judge = |objects: Vec<Value>| {
        let change = update(live(&["v1"]), bounded.clone());
        let config = json!({"liveObjects": "decide"});
        let report = run_on(ClusterSide::Directory, vec![change], &config, Ok(objects));
        format!("{:?} {}", report.outcome, lines(&report))
    };
    insta::assert_snapshot!(judge(sized(&[3])), @r#"Warned maximum Change Warning: version "v1", field "^.spec.size": maximum constraint added when one did not exist previously: 10 (no live object is affected)"#);
    insta::assert_snapshot!(judge(sized(&[3, 11])), @r#"Refused maximum Breaking Error: version "v1", field "^.spec.size": maximum constraint added when one did not exist previously: 10"#);
    insta::assert_snapshot!(judge(vec![]), @r#"Refused maximum Breaking Error: version "v1", field "^.spec.size": maximum constraint added when one did not exist previously: 10 (there are no objects of the kind here to decide)"#);
}

#[test]
fn no_count_of_objects_makes_an_unknown_safe() {
    let size = "/spec/versions/0/schema/openAPIV3Schema/properties/spec";
    let atomic = edited(|crd| {
        crd.pointer_mut(size).expect("a schema")["x-kubernetes-map-type"] = json!("atomic");
    });
    let change = update(live(&["v1"]), atomic);
    let report = run_with(vec![change], &json!({"liveObjects": "decide"}), Ok(sized(&[1])));
    assert_eq!((report.outcome, report.findings[0].verdict), (Outcome::Refused, Verdict::Unknown));
}

pub(super) fn foo(name: &str) -> Value {
    json!({"apiVersion": "ex.com/v1", "kind": "Foo", "metadata": {"namespace": "shop", "name": name}})
}

#[test]
fn replaced_crd_with_objects_of_the_app_and_of_others_has_a_finding_for_each() {
    let replaced = || change(Operation::Replace, Some(live(&["v1"])), Some(foos()));
    let recreated = |name: &str| change(Operation::Replace, Some(foo(name)), Some(foo(name)));
    let judge = |changes: Vec<Change>, objects: Vec<Value>| {
        let report = run_with(changes, &json!({}), Ok(objects));
        let affected = |finding: &pushback_objects::Finding| finding.live_objects.as_ref().map(|live| live.affected);
        let counts: Vec<_> = report.findings.iter().filter_map(affected).collect();
        format!("{:?} {counts:?} {}", report.outcome, lines(&report))
    };
    insta::assert_snapshot!(judge(vec![replaced(), recreated("a")], vec![foo("a")]), @"Refused [1] crdReplacement Breaking Error: the CRD is deleted and created anew: 1 Foo object of the app is deleted with it and created again, without status and without the objects that a controller made for them");
    insta::assert_snapshot!(judge(vec![replaced(), recreated("a"), recreated("b")], vec![foo("a"), foo("b"), foo("c")]), @r#"
    Refused [2, 1] crdReplacement Breaking Error: the CRD is deleted and created anew: 2 Foo objects of the app are deleted with it and created again, without status and without the objects that a controller made for them
    crdReplacementLoss Breaking Error: the definition is deleted and created anew, and 1 Foo object would be deleted with it
    "#);
    // With another scope, the same object has another place.
    let mut moved = foo("a");
    moved["metadata"].as_object_mut().expect("metadata").shift_remove("namespace");
    insta::assert_snapshot!(judge(vec![replaced(), delete(foo("a")), change(Operation::Create, None, Some(moved))], vec![foo("a")]), @"Refused [1] crdReplacement Breaking Error: the CRD is deleted and created anew: 1 Foo object of the app is deleted with it and created again, without status and without the objects that a controller made for them");
    // An update of the CRD in place deletes nothing.
    let updated = change(Operation::Update, Some(live(&["v1"])), Some(foos()));
    insta::assert_snapshot!(judge(vec![updated, recreated("a")], vec![foo("a")]), @"Passed []");
}

#[test]
fn a_definition_is_deleted_only_when_no_object_goes_with_it() {
    let judge = |changes: Vec<Change>, objects: Vec<Value>| {
        let report = run_with(changes, &json!({}), Ok(objects));
        format!("{:?} {}", report.outcome, lines(&report))
    };
    insta::assert_snapshot!(judge(vec![delete(live(&["v1"]))], vec![]), @"Passed crdDeletion Change Info: the definition is deleted; there is no Foo object");
    insta::assert_snapshot!(judge(vec![delete(live(&["v1"]))], vec![foo("a")]), @"Refused crdDeletion Breaking Error: the definition is deleted, and 1 Foo object would be deleted with it");
    insta::assert_snapshot!(
        judge(vec![change(Operation::Replace, Some(live(&["v1"])), Some(foos()))], vec![foo("a"), foo("b")]),
        @"Refused crdReplacementLoss Breaking Error: the definition is deleted and created anew, and 2 Foo objects would be deleted with it"
    );
    insta::assert_snapshot!(judge(vec![delete(live(&["v1"])), delete(foo("a"))], vec![foo("a")]), @"Passed crdDeletion Change Info: the definition is deleted, and so is every Foo object by this change set");
    insta::assert_snapshot!(judge(vec![delete(live(&["v1"])), delete(foo("a"))], vec![foo("a"), foo("b")]), @"Refused crdDeletion Breaking Error: the definition is deleted, and 1 Foo object would be deleted with it");
    let many = (0..600).map(|number| foo(&format!("n{number:03}"))).collect();
    insta::assert_snapshot!(judge(vec![delete(live(&["v1"]))], many), @"Refused crdDeletion Breaking Error: the definition is deleted, and at least 500 Foo objects would be deleted with it");
}

#[test]
fn a_definition_that_the_server_would_refuse_is_told_where_no_server_was_asked() {
    let bad = edited(|crd| {
        crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["size"]["pattern"] =
            json!("(");
    });
    let created_on = |side: ClusterSide, verification: Verification| {
        let change = Change { verification, ..change(Operation::Create, None, Some(bad.clone())) };
        lines(&run_on(side, vec![change], &json!({}), Ok(vec![])))
    };
    let created = |verification: Verification| created_on(ClusterSide::Server, verification);
    insta::assert_snapshot!(created(Verification::NotVerified("a directory".into())), @"invalid Breaking Error: the API server would refuse the definition: cannot be read: missing closing ) (at byte 1)");
    assert_eq!(created(Verification::Server), "");
    // A directory accepts everything, which proves nothing.
    assert_ne!(created_on(ClusterSide::Directory, Verification::Server), "");
    // An unchanged defect is not reported.
    assert_eq!(lines(&run(update(bad.clone(), bad.clone()))), "");
}

#[test]
fn removed_crd_of_a_base_without_app_is_set_by_its_former_name_too() {
    let severity = |app: &str, checks: Value| {
        let config = json!({"checks": checks});
        let report = run_for(app, ClusterSide::Directory, vec![delete(live(&["v1"]))], &config, Ok(vec![]));
        report.findings.iter().map(|finding| format!("{} {:?}", finding.check, finding.severity)).collect::<Vec<_>>()
    };
    assert_eq!(severity("", json!({})), ["crdDeletion Error"]);
    assert_eq!(severity("", json!({"crdMissing": "error"})), ["crdDeletion Error"]);
    assert_eq!(severity("", json!({"crdMissing": "warn"})), ["crdDeletion Warning"]);
    assert_eq!(severity("", json!({"crdMissing": "off"})), Vec::<String>::new());
    assert_eq!(severity("", json!({"crdDeletion": "warn"})), ["crdDeletion Warning"]);
    // A named app had no other name for it.
    assert_eq!(severity("shop", json!({"crdMissing": "off"})), ["crdDeletion Error"]);
}

#[test]
fn a_definition_that_is_let_go_of_takes_nothing_with_it() {
    let orphaned = |object: Value| Change { orphaned: true, ..delete(object) };
    assert_eq!(run_with(vec![orphaned(live(&["v1"]))], &json!({}), Ok(vec![foo("a")])).outcome, Outcome::Passed);
    // An object that is kept is still deleted with its definition.
    let changes = vec![delete(live(&["v1"])), orphaned(foo("a"))];
    assert_eq!(run_with(changes, &json!({}), Ok(vec![foo("a")])).outcome, Outcome::Refused);
}

#[test]
fn a_deletion_counts_and_names_what_is_lost() {
    let objects = (0..7).rev().map(|number| foo(&format!("n{number}"))).collect();
    let report = run_with(vec![delete(live(&["v1"]))], &json!({}), Ok(objects));
    let lost = report.findings[0].live_objects.as_ref().expect("counted");
    assert_eq!((lost.affected, lost.examined), (7, 7));
    assert_eq!(lost.names, ["shop/n0", "shop/n1", "shop/n2", "shop/n3", "shop/n4"]);
}

#[test]
fn a_deletion_without_a_list_of_objects_is_unable() {
    let report = run_with(vec![delete(live(&["v1"]))], &json!({}), Err("forbidden"));
    assert_eq!(report.outcome, Outcome::Unable);
    assert_eq!(
        report.rules[0].unable,
        ["CustomResourceDefinition foos.ex.com: its objects could not be listed: forbidden"]
    );
    let mut unserved = live(&["v1"]);
    for index in 0..2 {
        unserved["spec"]["versions"][index]["served"] = json!(false);
    }
    assert_eq!(run(delete(unserved)).outcome, Outcome::Unable);
}

#[test]
fn that_objects_could_not_be_listed_is_said_once() {
    let narrow = edited(|definition| {
        let spec = json!({"type": "object", "maxProperties": 1, "properties": {
            "a": {"type": "string", "maxLength": 3}, "b": {"type": "string", "maxLength": 3},
        }});
        definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"] = spec;
    });
    let report = run_with(vec![update(live(&["v1"]), narrow)], &json!({}), Err("forbidden"));
    let said: Vec<&Finding> = report.findings.iter().filter(|it| it.message.contains("could not be listed")).collect();
    assert!(report.findings.len() > 1, "{}", lines(&report));
    assert_eq!(said.len(), 1, "{}", lines(&report));
}

#[test]
fn a_keyword_that_stays_and_meets_new_defaults_is_told_as_such() {
    let with = |default: bool, keyword: &str, value: Value| {
        edited(|definition| {
            let mut spec = json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}});
            if default {
                spec["properties"]["a"]["default"] = "x".into();
            }
            spec[keyword] = value;
            definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"] = spec;
        })
    };
    let listed = json!([{}, {"b": "y"}]);
    let either = json!([{"required": ["a"]}, {"required": ["b"]}]);
    for (keyword, value) in [("enum", listed), ("oneOf", either.clone())] {
        let mut old = with(false, keyword, value.clone());
        old["status"] = json!({"storedVersions": ["v1"]});
        for profile in ["data", "published"] {
            let config = json!({"profile": profile});
            let report =
                run_with(vec![update(old.clone(), with(true, keyword, value.clone()))], &config, Ok(Vec::new()));
            let reported = format!("{keyword} is met by fewer objects, as fields get defaults");
            assert!(lines(&report).contains(&reported), "{}", lines(&report));
        }
    }
    let mut old = with(false, "oneOf", either);
    old["status"] = json!({"storedVersions": ["v1"]});
    let other = json!([{"required": ["a"]}, {"required": ["a", "b"]}]);
    let report = run(update(old, with(false, "oneOf", other)));
    let reported = r#"oneOf changed from 2 branches to 2 branches, 1 of them changed (oneOf[1]: required ["a","b"])"#;
    assert!(lines(&report).contains(reported), "{}", lines(&report));
}
