//! What the objects that are there decide: `liveObjects: auto`, which is in effect where nobody asks for the rule, and the
//! evidence of use of a version that goes.

use serde_json::json;

use super::objects::foo;
use super::*;

fn with_spec(spec: Value) -> Value {
    edited(|crd| crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"] = spec)
}

fn fields(fields: Value) -> Value {
    json!({"type": "object", "properties": fields})
}

fn with_rules(fields: Value, rules: &[&str]) -> Value {
    let rules: Vec<Value> = rules.iter().map(|rule| json!({"rule": rule})).collect();
    json!({"type": "object", "properties": fields, "x-kubernetes-validations": rules})
}

fn holding(spec: Value) -> Value {
    let mut object = foo("a");
    object["spec"] = spec;
    object
}

/// The worst finding of `v1` under `auto`: the severity, the verdict, what it was, and the setting that would let it pass.
fn worst(
    side: ClusterSide,
    mode: &str,
    (old, new): (&Value, &Value),
    check: &str,
    objects: Result<Vec<Value>, &str>,
) -> String {
    let mut old = with_spec(old.clone());
    old["status"] = json!({"storedVersions": ["v1"]});
    let change = update(old, with_spec(new.clone()));
    let report = run_on(side, vec![change], &json!({"liveObjects": mode}), objects);
    let found = report.findings.iter().find(|it| it.version.as_deref() == Some("v1") && it.check == check);
    let Some(found) = found else { panic!("no {check}: {}", lines(&report)) };
    let was = found.decided.as_ref().map(|decided| format!(", was {:?}", decided.was)).unwrap_or_default();
    let way = found.passes_under.map(|way| format!(", passes under {way}")).unwrap_or_default();
    format!("{:?} {:?}{was}{way}", found.severity, found.verdict)
}

#[test]
fn what_only_rejects_writes_is_decided_by_the_objects_and_what_drops_data_is_not() {
    let text = |keyword: &str, value: Value| fields(json!({"f": {"type": "string", keyword: value}}));
    let plain = fields(json!({"f": {"type": "string"}}));
    let number = fields(json!({"f": {"type": "integer"}}));
    let list = |kind: &str| {
        fields(json!({"f": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": kind}}))
    };
    let object = fields(json!({"f": fields(json!({"g": {"type": "string"}}))}));
    let both = json!({"f": {"type": "string"}, "g": {"type": "string"}});
    let (alike, unlike) = (json!({"f": "a"}), json!({"f": "long"}));
    let cases: [(&str, (Value, Value), Value, Value); 12] = [
        ("maxLength", (plain.clone(), text("maxLength", json!(2))), alike.clone(), unlike.clone()),
        ("pattern", (plain.clone(), text("pattern", json!("^a"))), alike.clone(), unlike.clone()),
        ("enum", (plain.clone(), text("enum", json!(["a"]))), alike.clone(), unlike.clone()),
        ("anyOf", (plain.clone(), text("anyOf", json!([{"maxLength": 2}]))), alike.clone(), unlike.clone()),
        (
            "required",
            (plain.clone(), json!({"type": "object", "properties": {"f": {"type": "string"}}, "required": ["f"]})),
            alike.clone(),
            json!({}),
        ),
        ("type", (plain.clone(), number.clone()), json!({}), unlike.clone()),
        ("type", (object, plain.clone()), json!({}), json!({"f": {"g": "a"}})),
        ("x-kubernetes-list-type", (list("atomic"), list("set")), json!({"f": ["a"]}), json!({"f": ["a", "a"]})),
        (
            "x-kubernetes-validations",
            (fields(both.clone()), with_rules(both.clone(), &["!has(self.g) || self.g != 'no'"])),
            alike.clone(),
            json!({"g": "no"}),
        ),
        // Data would be dropped or changed without an error.
        ("existingFieldRemoval", (fields(both), plain.clone()), alike.clone(), json!({"g": "a"})),
        ("default", (plain.clone(), text("default", json!("x"))), alike.clone(), json!({})),
        ("nullable", (fields(json!({"f": {"type": "string", "nullable": true}})), plain), alike, json!({"f": null})),
    ];
    let mut table = String::new();
    for (check, (old, new), unaffected, affected) in &cases {
        for (title, side, mode, objects) in [
            ("none", ClusterSide::Server, "auto", Ok(vec![])),
            ("unaffected", ClusterSide::Server, "auto", Ok(vec![holding(unaffected.clone())])),
            ("affected", ClusterSide::Server, "auto", Ok(vec![holding(unaffected.clone()), holding(affected.clone())])),
            ("forbidden", ClusterSide::Server, "auto", Err("forbidden")),
            ("static", ClusterSide::Server, "report", Ok(vec![holding(unaffected.clone())])),
            ("folder", ClusterSide::Directory, "auto", Ok(vec![holding(unaffected.clone())])),
        ] {
            let found = worst(side, mode, (old, new), check, objects);
            table.push_str(&format!("{check:<25}| {title:<10} | {found}\n"));
        }
    }
    insta::assert_snapshot!(table, @"
    maxLength                | none       | Warning Change, was Breaking
    maxLength                | unaffected | Warning Change, was Breaking
    maxLength                | affected   | Error Breaking
    maxLength                | forbidden  | Error Breaking
    maxLength                | static     | Error Breaking, passes under auto
    maxLength                | folder     | Error Breaking
    pattern                  | none       | Warning Change, was Breaking
    pattern                  | unaffected | Warning Change, was Breaking
    pattern                  | affected   | Error Breaking
    pattern                  | forbidden  | Error Breaking
    pattern                  | static     | Error Breaking, passes under auto
    pattern                  | folder     | Error Breaking
    enum                     | none       | Warning Change, was Breaking
    enum                     | unaffected | Warning Change, was Breaking
    enum                     | affected   | Error Breaking
    enum                     | forbidden  | Error Breaking
    enum                     | static     | Error Breaking, passes under auto
    enum                     | folder     | Error Breaking
    anyOf                    | none       | Warning Change, was Breaking
    anyOf                    | unaffected | Warning Change, was Breaking
    anyOf                    | affected   | Error Breaking
    anyOf                    | forbidden  | Error Breaking
    anyOf                    | static     | Error Breaking, passes under auto
    anyOf                    | folder     | Error Breaking
    required                 | none       | Warning Change, was Breaking
    required                 | unaffected | Warning Change, was Breaking
    required                 | affected   | Error Breaking
    required                 | forbidden  | Error Breaking
    required                 | static     | Error Breaking, passes under auto
    required                 | folder     | Error Breaking
    type                     | none       | Warning Change, was Breaking
    type                     | unaffected | Warning Change, was Breaking
    type                     | affected   | Error Breaking
    type                     | forbidden  | Error Breaking
    type                     | static     | Error Breaking, passes under auto
    type                     | folder     | Error Breaking
    type                     | none       | Error Breaking, passes under decide
    type                     | unaffected | Error Breaking, passes under decide
    type                     | affected   | Error Breaking
    type                     | forbidden  | Error Breaking
    type                     | static     | Error Breaking, passes under decide
    type                     | folder     | Error Breaking
    x-kubernetes-list-type   | none       | Warning Change, was Breaking
    x-kubernetes-list-type   | unaffected | Error Breaking, passes under decide
    x-kubernetes-list-type   | affected   | Error Breaking
    x-kubernetes-list-type   | forbidden  | Error Breaking
    x-kubernetes-list-type   | static     | Error Breaking, passes under decide
    x-kubernetes-list-type   | folder     | Error Breaking
    x-kubernetes-validations | none       | Warning Change, was Breaking
    x-kubernetes-validations | unaffected | Warning Change, was Breaking
    x-kubernetes-validations | affected   | Error Breaking
    x-kubernetes-validations | forbidden  | Error Breaking
    x-kubernetes-validations | static     | Error Breaking, passes under auto
    x-kubernetes-validations | folder     | Error Breaking
    existingFieldRemoval     | none       | Error Breaking, passes under decide
    existingFieldRemoval     | unaffected | Error Breaking, passes under decide
    existingFieldRemoval     | affected   | Error Breaking
    existingFieldRemoval     | forbidden  | Error Breaking
    existingFieldRemoval     | static     | Error Breaking, passes under decide
    existingFieldRemoval     | folder     | Error Breaking
    default                  | none       | Error Breaking, passes under decide
    default                  | unaffected | Error Breaking, passes under decide
    default                  | affected   | Error Breaking
    default                  | forbidden  | Error Breaking
    default                  | static     | Error Breaking, passes under decide
    default                  | folder     | Error Breaking
    nullable                 | none       | Error Breaking, passes under decide
    nullable                 | unaffected | Error Breaking, passes under decide
    nullable                 | affected   | Error Breaking
    nullable                 | forbidden  | Error Breaking
    nullable                 | static     | Error Breaking, passes under decide
    nullable                 | folder     | Error Breaking
    ");
}

#[test]
fn what_is_unknown_is_decided_only_where_all_that_it_can_do_is_to_reject() {
    let given = json!({"a": {"type": "string"}, "b": {"type": "string"}});
    let ruled = |rules: &[&str]| with_rules(given.clone(), rules);
    // Nothing is proved of this one, and it can be evaluated.
    let hard = "!has(self.a) || self.a.split('-').size() != 7";
    let (alike, unlike) = (json!({"a": "1-2"}), json!({"a": "1-2-3-4-5-6-7"}));
    let old = fields(given.clone());
    let rules = "x-kubernetes-validations";
    let server = ClusterSide::Server;
    let judge = |new: &Value, check: &str, mode: &str, spec: &Value| {
        worst(server, mode, (&old, new), check, Ok(vec![holding(spec.clone())]))
    };
    let mut table = String::new();
    for (title, new, check) in [
        ("a rule", ruled(&[hard]), rules),
        ("with one for edits", ruled(&[hard, "self == oldSelf"]), rules),
        ("for edits alone", ruled(&["!has(self.a) || !has(oldSelf.a) || self.a == oldSelf.a"]), rules),
        (
            "atomic",
            json!({"type": "object", "properties": given, "x-kubernetes-map-type": "atomic"}),
            "x-kubernetes-map-type",
        ),
    ] {
        for (mode, spec) in [("auto", &alike), ("auto", &unlike), ("decide", &alike), ("report", &alike)] {
            let found = judge(&new, check, mode, spec);
            table.push_str(&format!("{title:<19}| {mode:<7}{spec} | {found}\n"));
        }
    }
    insta::assert_snapshot!(table, @r#"
    a rule             | auto   {"a":"1-2"} | Warning Change, was Unknown
    a rule             | auto   {"a":"1-2-3-4-5-6-7"} | Error Unknown
    a rule             | decide {"a":"1-2"} | Warning Change, was Unknown
    a rule             | report {"a":"1-2"} | Error Unknown, passes under auto
    with one for edits | auto   {"a":"1-2"} | Error Unknown
    with one for edits | auto   {"a":"1-2-3-4-5-6-7"} | Error Unknown
    with one for edits | decide {"a":"1-2"} | Error Unknown
    with one for edits | report {"a":"1-2"} | Error Unknown
    for edits alone    | auto   {"a":"1-2"} | Error Unknown
    for edits alone    | auto   {"a":"1-2-3-4-5-6-7"} | Error Unknown
    for edits alone    | decide {"a":"1-2"} | Error Unknown
    for edits alone    | report {"a":"1-2"} | Error Unknown
    atomic             | auto   {"a":"1-2"} | Error Unknown
    atomic             | auto   {"a":"1-2-3-4-5-6-7"} | Error Unknown
    atomic             | decide {"a":"1-2"} | Error Unknown
    atomic             | report {"a":"1-2"} | Error Unknown
    "#);
}

#[test]
fn what_is_in_the_status_counts_too_where_it_is_a_subresource() {
    let with_status = |most: Option<u64>| {
        edited(|crd| {
            let mut text = json!({"type": "string"});
            if let Some(most) = most {
                text["maxLength"] = most.into();
            }
            let schema = &mut crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"];
            schema["status"] = fields(json!({"phase": text}));
        })
    };
    let judge = |phase: &str| {
        let mut old = with_status(None);
        old["status"] = json!({"storedVersions": ["v1"]});
        let mut object = foo("a");
        object["status"] = json!({"phase": phase});
        let change = update(old, with_status(Some(3)));
        let report = run_with(vec![change], &json!({"liveObjects": "auto"}), Ok(vec![object]));
        let tightened = report.findings.iter().find(|it| it.check == "maxLength").expect("a finding");
        (tightened.severity, tightened.live_objects.as_ref().map(|live| live.affected))
    };
    assert_eq!(judge("up"), (Severity::Warning, Some(0)));
    assert_eq!(judge("Failed"), (Severity::Error, Some(1)));
}

#[test]
fn an_object_that_cannot_be_judged_decides_nothing_and_that_is_said() {
    let given = json!({"f": {"type": "string"}, "g": {"type": "integer"}});
    let mut old = with_spec(fields(given.clone()));
    old["status"] = json!({"storedVersions": ["v1"]});
    let mut new = with_rules(given, &["!has(self.g) || self.g > 1"]);
    new["properties"]["f"]["maxLength"] = json!(2);
    let objects = Ok(vec![holding(json!({"f": "long", "g": 5})), holding(json!({"f": "a", "g": 5}))]);
    let report = run_with(vec![update(old, with_spec(new))], &json!({"liveObjects": "auto"}), objects);
    let rule = report.findings.iter().find(|it| it.check == "x-kubernetes-validations").expect("a finding");
    assert_eq!((rule.verdict, rule.severity), (Verdict::Breaking, Severity::Error));
    assert!(rule.message.ends_with(" (not decided by live objects: 1 of them cannot be judged)"), "{}", rule.message);
}

#[test]
fn objects_with_ever_other_fields_do_not_make_the_state_grow() {
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"f": {"type": "string"}}});
    let mut old = with_spec(open);
    old["status"] = json!({"storedVersions": ["v1"]});
    let change = update(old, with_spec(fields(json!({"f": {"type": "string"}}))));
    let selection = select(Some(&[NAME.to_owned()]), None).expect("a valid selection");
    let changes = ChangeSet { app: "test".into(), changes: vec![change], ..ChangeSet::default() };
    let mut session = Session::of(selection, changes, ClusterFacts::default());
    let need = session.needs().pop_first().expect("a need");
    let (mut state, mut sizes) = (Value::Null, Vec::new());
    for page in 0..3 {
        let object =
            |number: usize| holding((0..20).map(|key| (format!("k{page}-{number}-{key}"), json!("x"))).collect());
        let page: Vec<Value> = (0..20).map(object).collect();
        session.fold(&need, &mut state, &page);
        sizes.push(state.to_string().len());
    }
    assert!(sizes[2] < sizes[0] + 20, "{sizes:?}: {state}");
}

#[test]
fn a_version_that_goes_shows_who_still_writes_in_it() {
    let without_beta = edited(|crd| {
        crd["spec"]["versions"].as_array_mut().expect("a list").truncate(1);
    });
    let written = |name: &str, manager: &str, version: &str, time: &str| {
        let mut object = foo(name);
        object["metadata"]["managedFields"] =
            json!([{"manager": manager, "apiVersion": format!("ex.com/{version}"), "time": time}]);
        object
    };
    let objects = vec![
        written("a", "helm", "v1beta1", "2026-01-02T00:00:00Z"),
        written("b", "helm", "v1beta1", "2026-03-01T00:00:00Z"),
        written("c", "flux", "v1beta1", "2025-03-01T00:00:00Z"),
        written("d", "flux", "v1", "2026-03-01T00:00:00Z"),
    ];
    for mode in ["auto", "report", "decide"] {
        let change = update(live(&["v1"]), without_beta.clone());
        let report = run_with(vec![change], &json!({"liveObjects": mode}), Ok(objects.clone()));
        let removed = report.findings.iter().find(|it| it.check == "servedVersionRemoval").expect("a finding");
        assert_eq!((removed.verdict, removed.severity), (Verdict::Breaking, Severity::Error), "{mode}");
        assert_eq!(
            serde_json::to_value(&removed.version_use).expect("JSON"),
            json!({"objects": 3, "examined": 4, "storedVersions": ["v1"], "writers": [
                {"manager": "helm", "objects": 2, "lastWrite": "2026-03-01T00:00:00Z"},
                {"manager": "flux", "objects": 1, "lastWrite": "2025-03-01T00:00:00Z"},
            ]})
        );
    }
    // What cannot be listed changes nothing about the verdict.
    let judge = |mode: &str, objects| {
        let report =
            run_with(vec![update(live(&["v1"]), without_beta.clone())], &json!({"liveObjects": mode}), objects);
        let removed = report.findings.into_iter().find(|it| it.check == "servedVersionRemoval").expect("a finding");
        (removed.severity, removed.version_use.is_some())
    };
    assert_eq!(judge("auto", Err("forbidden")), (Severity::Error, false));
    assert_eq!(judge("off", Ok(vec![])), (Severity::Error, false));
}
