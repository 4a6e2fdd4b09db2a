//! What becomes of single objects under single edits of a small definition.

use std::sync::Arc;

use pushback_objects::object::ObjectRef;

use super::*;
use crate::facts::{Answer, ClusterFacts, Verification};
use crate::judge::RunReport;
use crate::policy::select;
use crate::session::Session;

/// Name, whether it is the storage version, the schema of `spec`.
type Version = (&'static str, bool, Value);

fn definition(versions: &[Version]) -> Value {
    let version = |(name, storage, spec): &Version| {
        let schema = json!({"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}});
        json!({"name": name, "served": true, "storage": storage, "schema": schema})
    };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "foos.ex.com"},
        "spec": {
            "group": "ex.com", "scope": "Namespaced", "names": {"kind": "Foo", "plural": "foos"},
            "versions": versions.iter().map(version).collect::<Vec<_>>(),
        },
    })
}

fn spec(properties: Value) -> Value {
    json!({"type": "object", "properties": properties})
}

fn foo(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "ex.com/v1", "kind": "Foo", "metadata": {"namespace": "team", "name": name}, "spec": spec})
}

fn judged(old: Value, new: Value, objects: Result<&[Value], &str>) -> RunReport {
    judged_with(old, new, vec![], objects)
}

/// Like [`judged`], with further changes in the same run.
fn judged_with(old: Value, new: Value, others: Vec<Change>, objects: Result<&[Value], &str>) -> RunReport {
    let change = Change {
        object: ObjectRef::of(&new),
        resource: "customresourcedefinitions".into(),
        namespaced: false,
        operation: Operation::Update,
        positions: None,
        desired: Some(Arc::new(new)),
        live: Some(Arc::new(old)),
        result: None,
        verification: Verification::Server,
        orphaned: false,
        taken_from: Vec::new(),
    };
    let selection = select(Some(&[NAME.to_owned()]), None).expect("a selection");
    let changes = ChangeSet { changes: [vec![change], others].concat(), ..ChangeSet::default() };
    let mut session =
        Session::of(selection, changes, ClusterFacts { version: Some((1, 36)), ..ClusterFacts::default() });
    loop {
        let needs = session.needs();
        if needs.is_empty() {
            return session.finish(Judgement::default(), &[], "2026-01-01").0;
        }
        for need in needs {
            let answer = match objects {
                Ok(objects) => {
                    let mut state = Value::Null;
                    objects.chunks(2).for_each(|page| session.fold(&need, &mut state, page));
                    Answer::Folded { state, examined: objects.len() as u64, cut: false }
                }
                Err(reason) => Answer::Unable { reason: reason.to_owned() },
            };
            session.answer([(need, answer)]);
        }
    }
}

/// Findings after an edit of the schema of the only version.
fn after(old: Value, new: Value, objects: &[Value]) -> String {
    lines(&judged(definition(&[("v1", true, old)]), definition(&[("v1", true, new)]), Ok(objects)))
}

fn lines(report: &RunReport) -> String {
    let line = |finding: &Finding| {
        assert!(META.checks.iter().any(|(check, _)| *check == finding.check), "{finding:?}");
        format!("{} {:?}: {}", finding.check, finding.severity, finding.message)
    };
    report.findings.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn fields_that_go_are_named_with_the_objects_that_have_them() {
    let items =
        |field: &str| json!({"type": "array", "items": {"type": "object", "properties": {field: {"type": "string"}}}});
    let old = spec(json!({"a": {"type": "string"}, "b": {"type": "string"}, "l": items("x")}));
    let new = spec(json!({"a": {"type": "string"}, "l": items("y")}));
    let objects = [
        foo("one", json!({"a": "1", "b": "2", "l": [{"x": "1"}, {"x": "2"}]})),
        foo("two", json!({"b": "2"})),
        foo("three", json!({"a": "1"})),
    ];
    insta::assert_snapshot!(after(old.clone(), new.clone(), &objects), @r#"lossy Error: 2 Foo objects lose fields at their next write at "v1": spec.b (2, such as team/one), spec.l[*].x (1, such as team/one)"#);
    assert_eq!(after(old, new, &objects[2..]), "");
}

#[test]
fn a_value_that_became_invalid_is_tolerated_until_a_default_makes_the_write_a_change() {
    let old = spec(json!({"size": {"type": "integer"}}));
    let narrow = spec(json!({"size": {"type": "integer", "maximum": 5}}));
    let objects = [foo("big", json!({"size": 9})), foo("small", json!({"size": 1}))];
    insta::assert_snapshot!(after(old.clone(), narrow.clone(), &objects), @r#"ratcheted Warning: 1 Foo object is invalid, and tolerated as long as that part does not change at "v1": spec.size (1, such as team/big)"#);
    // Stored in v1; v2 requires what v1 does not have, and a default of v2 makes every write a change.
    let required = |default: bool| {
        let mut new = spec(json!({"size": {"type": "integer"}, "mode": {"type": "string"}}));
        new["required"] = json!(["colour"]);
        if default {
            new["properties"]["mode"]["default"] = json!("slow");
        }
        let live = definition(&[("v1", true, old.clone())]);
        let next = definition(&[("v1", false, old.clone()), ("v2", true, new)]);
        lines(&judged(live, next, Ok(&objects)))
    };
    insta::assert_snapshot!(required(false), @r#"ratcheted Warning: 2 Foo objects are invalid, and tolerated as long as that part does not change at "v2": spec.colour (2, such as team/big)"#);
    insta::assert_snapshot!(required(true), @r#"migrationBlocked Error: 2 Foo objects cannot be written back unchanged at "v2": spec.colour (2, such as team/big)"#);
}

#[test]
fn another_type_breaks_every_apply() {
    let of = |kind: &str| spec(json!({"size": {"type": kind}}));
    insta::assert_snapshot!(after(of("integer"), of("string"), &[foo("one", json!({"size": 1}))]), @r#"applyBroken Error: 1 Foo object has a value of another type, and cannot be applied at "v1": spec.size (1, such as team/one)"#);
}

#[test]
fn a_default_of_another_version_makes_a_new_generation() {
    let old = spec(json!({"a": {"type": "string"}}));
    let new = spec(json!({"a": {"type": "string"}, "y": {"type": "string", "default": "added"}}));
    let live = definition(&[("v1", true, old.clone())]);
    let next = definition(&[("v1", false, old), ("v2", true, new)]);
    insta::assert_snapshot!(lines(&judged(live, next, Ok(&[foo("one", json!({"a": "1"}))]))), @r#"generation Info: 1 Foo object gets another generation at its next write, and is reconciled at "v2": spec.y (1, such as team/one)"#);
}

#[test]
fn what_was_so_before_is_no_news() {
    let narrow =
        |maximum: u64| spec(json!({"size": {"type": "integer", "maximum": maximum}, "new": {"type": "string"}}));
    let mut wider = narrow(5);
    wider["properties"]["more"] = json!({"type": "string"});
    assert_eq!(after(narrow(5), wider, &[foo("big", json!({"size": 9}))]), "");
}

#[test]
fn objects_that_cannot_be_listed_leave_the_rule_unable() {
    let (old, new) =
        (definition(&[("v1", true, spec(json!({})))]), definition(&[("v1", true, json!({"type": "object"}))]));
    let report = judged(old, new, Err("foos is forbidden"));
    assert_eq!(
        report.rules[0].unable,
        ["CustomResourceDefinition foos.ex.com: its objects could not be listed: foos is forbidden"]
    );
}

#[test]
fn the_state_stays_small_whatever_the_objects_hold() {
    let open = spec(json!({"m": {"type": "object", "additionalProperties": {"type": "string"}}}));
    let objects: Vec<Value> =
        (0..300).map(|number| foo(&format!("foo-{number}"), json!({"m": {format!("key-{number}"): "x"}}))).collect();
    let closed = spec(json!({"m": {"type": "object"}}));
    let report = judged(definition(&[("v1", true, open)]), definition(&[("v1", true, closed)]), Ok(&objects));
    assert_eq!(report.findings[0].affected(), 300);
    assert!(report.findings[0].message.contains("other fields (250"), "{}", report.findings[0].message);
}

/// A change of an object in the same run.
fn planned(operation: Operation, live: Value, result: Option<Value>) -> Change {
    Change {
        object: ObjectRef::of(&live),
        resource: "foos".into(),
        namespaced: true,
        operation,
        positions: None,
        desired: result.clone().map(Arc::new),
        live: Some(Arc::new(live)),
        result: result.map(Arc::new),
        verification: Verification::Server,
        orphaned: false,
        taken_from: Vec::new(),
    }
}

#[test]
fn object_that_the_run_corrects_or_deletes_does_not_count() {
    let old = definition(&[("v1", true, spec(json!({"a": {"type": "string"}, "b": {"type": "string"}})))]);
    let new = definition(&[("v1", true, spec(json!({"a": {"type": "string"}})))]);
    let objects = [foo("one", json!({"b": "2"})), foo("two", json!({"b": "2"})), foo("three", json!({"b": "2"}))];
    let corrected = planned(Operation::Update, objects[0].clone(), Some(foo("one", json!({"a": "2"}))));
    let deleted = planned(Operation::Delete, objects[1].clone(), None);
    let report = judged_with(old.clone(), new.clone(), vec![corrected.clone(), deleted.clone()], Ok(&objects));
    assert_eq!(report.findings[0].affected(), 1, "{}", lines(&report));
    assert_eq!(lines(&judged_with(old, new, vec![corrected, deleted], Ok(&objects[..2]))), "");
}

#[test]
fn default_that_a_read_may_have_filled_in_counts_as_possible() {
    let of = |group: Value| spec(json!({"name": {"type": "string"}, "group": group}));
    let plain = || of(json!({"type": "string"}));
    let filled = |default: &str| of(json!({"type": "string", "default": default}));
    let owned = |mut object: Value| {
        object["metadata"]["managedFields"] = json!([{"manager": "kubectl", "operation": "Apply", "fieldsType": "FieldsV1",
            "apiVersion": "ex.com/v1", "fieldsV1": {"f:spec": {"f:group": {}}}}]);
        object
    };
    let objects = [
        foo("one", json!({"group": "g"})),
        owned(foo("two", json!({"group": "g"}))),
        foo("three", json!({"group": "h"})),
    ];
    let removed = after(filled("g"), plain(), &objects);
    insta::assert_snapshot!(removed, @r#"altered Error: up to 1 Foo object loses or changes values that come from defaults at "v1": spec.group (up to 1, such as team/one)"#);
    let changed = after(filled("g"), filled("h"), &objects);
    insta::assert_snapshot!(changed, @r#"altered Error: up to 1 Foo object loses or changes values that come from defaults at "v1": spec.group (up to 1, such as team/one)"#);
    assert_eq!(after(filled("g"), filled("g"), &objects), "");
    assert_eq!(after(plain(), filled("g"), &objects), "");
    // Without the default, the field that the new CRD requires may be missing.
    let mut required = plain();
    required["required"] = json!(["group"]);
    insta::assert_snapshot!(after(filled("g"), required, &objects), @r#"
    altered Error: up to 1 Foo object loses or changes values that come from defaults at "v1": spec.group (up to 1, such as team/one)
    ratcheted Warning: up to 1 Foo object is invalid, and tolerated as long as that part does not change at "v1": spec.group (up to 1, such as team/one)
    "#);
}

#[test]
fn item_that_becomes_invalid_counts_beside_one_that_was_invalid_before() {
    let of = |maximum: u64| spec(json!({"l": {"type": "array", "items": {"type": "integer", "maximum": maximum}}}));
    let found = after(of(5), of(3), &[foo("one", json!({"l": [9, 4]})), foo("two", json!({"l": [9, 1]}))]);
    insta::assert_snapshot!(found, @r#"ratcheted Warning: 1 Foo object is invalid, and tolerated as long as that part does not change at "v1": spec.l[*] (1, such as team/one)"#);
    let ruled = |rules: Value| {
        let mut schema = spec(json!({"size": {"type": "integer"}}));
        schema["x-kubernetes-validations"] = rules;
        schema
    };
    let small = json!({"rule": "self.size < 5"});
    let even = json!({"rule": "self.size % 2 == 0"});
    let found = after(ruled(json!([small])), ruled(json!([small, even])), &[foo("one", json!({"size": 9}))]);
    insta::assert_snapshot!(found, @r#"ratcheted Warning: 1 Foo object is invalid, and tolerated as long as that part does not change at "v1": spec (1, such as team/one)"#);
}

#[test]
fn object_whose_correction_is_rejected_counts_as_it_is() {
    let size = || json!({"type": "integer", "x-kubernetes-validations": [{"rule": "self >= oldSelf"}]});
    let old = definition(&[("v1", true, spec(json!({"size": size(), "b": {"type": "string"}})))]);
    let new = definition(&[("v1", true, spec(json!({"size": size()})))]);
    let objects = [foo("one", json!({"size": 5, "b": "2"}))];
    let found = |size: i64| {
        let corrected = planned(Operation::Update, objects[0].clone(), Some(foo("one", json!({"size": size}))));
        lines(&judged_with(old.clone(), new.clone(), vec![corrected], Ok(&objects)))
    };
    assert_eq!(found(6), "");
    insta::assert_snapshot!(found(4), @r#"lossy Error: 1 Foo object loses fields at its next write at "v1": spec.b (1, such as team/one)"#);
}

#[test]
fn embedded_resource_in_status_that_was_invalid_before_is_not_reported() {
    let of = |crd: Value| {
        let mut crd = definition(&[("v1", true, crd)]);
        let version = &mut crd["spec"]["versions"][0];
        version["subresources"] = json!({"status": {}});
        let template = json!({"type": "object", "x-kubernetes-embedded-resource": true,
            "x-kubernetes-preserve-unknown-fields": true});
        version["schema"]["openAPIV3Schema"]["properties"]["status"] = spec(json!({"template": template}));
        crd
    };
    let mut object = foo("one", json!({}));
    object["status"] = json!({"template": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "not a name"}}});
    let more = spec(json!({"a": {"type": "string"}}));
    assert_eq!(lines(&judged(of(spec(json!({}))), of(more), Ok(&[object]))), "");
}
