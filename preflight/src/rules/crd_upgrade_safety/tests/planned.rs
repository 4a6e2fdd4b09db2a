//! Objects that the same run corrects or deletes.

use super::*;

fn sized(name: &str, size: i64) -> Value {
    json!({"apiVersion": "ex.com/v1", "kind": "Foo", "metadata": {"namespace": "shop", "name": name, "uid": name},
        "spec": {"size": size}})
}

fn bounded(crd: &mut Value) {
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["size"]["maximum"] =
        json!(10);
}

/// The affected objects under a new maximum of 10, with changes of objects in the same run.
fn affected(changes: Vec<Change>, objects: Vec<Value>) -> String {
    let changes = [vec![update(live(&["v1"]), edited(bounded))], changes].concat();
    let report = run_with(changes, &json!({"liveObjects": "decide"}), Ok(objects));
    let found = report.findings.iter().find(|it| it.check == "maximum").expect("a finding");
    let names = found.live_objects.as_ref().map_or_else(String::new, |it| it.names.join(" "));
    format!("{:?} {names}", report.outcome).trim().to_owned()
}

fn written(size: i64) -> Change {
    let result = Some(Arc::new(sized("a", size)));
    Change { result, ..update(sized("a", 11), sized("a", size)) }
}

#[test]
fn object_that_the_run_corrects_or_deletes_is_not_affected() {
    let objects = || vec![sized("a", 11)];
    assert_eq!(affected(vec![], objects()), "Refused shop/a");
    assert_eq!(affected(vec![written(3)], objects()), "Warned");
    assert_eq!(affected(vec![written(12)], objects()), "Refused shop/a");
    assert_eq!(affected(vec![delete(sized("a", 11))], objects()), "Warned");
    assert_eq!(affected(vec![Change { orphaned: true, ..delete(sized("a", 11)) }], objects()), "Refused shop/a");
    // Another object has the name by now.
    let mut recreated = sized("a", 11);
    recreated["metadata"]["uid"] = json!("other");
    assert_eq!(affected(vec![delete(sized("a", 11))], vec![recreated]), "Refused shop/a");
    assert_eq!(affected(vec![written(3)], vec![sized("a", 11), sized("b", 12)]), "Refused shop/b");
}

#[test]
fn deleted_object_with_finalizers_may_be_affected() {
    let mut object = sized("a", 11);
    object["metadata"]["finalizers"] = json!(["ex.com/cleanup"]);
    assert_eq!(affected(vec![delete(object.clone())], vec![object]), "Refused shop/a");
}

#[test]
fn object_that_the_run_breaks_is_affected_although_it_is_valid_now() {
    assert_eq!(affected(vec![written(12)], vec![sized("a", 3)]), "Refused shop/a");
}

#[test]
fn manifest_without_an_answer_corrects_only_the_fields_that_it_has() {
    let unanswered = |spec: Value| {
        let mut manifest = sized("a", 0);
        manifest["spec"] = spec;
        update(sized("a", 11), manifest)
    };
    assert_eq!(affected(vec![unanswered(json!({"size": 3}))], vec![sized("a", 11)]), "Warned");
    assert_eq!(affected(vec![unanswered(json!({}))], vec![sized("a", 11)]), "Refused shop/a");
}

#[test]
fn correction_that_a_rule_on_the_old_object_rejects_does_not_count() {
    let ruled = |crd: &mut Value| {
        bounded(crd);
        let size =
            &mut crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["size"];
        size["x-kubernetes-validations"] = json!([{"rule": "self >= oldSelf"}]);
    };
    let mut old = edited(ruled);
    old["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["size"]
        .as_object_mut()
        .expect("a schema")
        .shift_remove("maximum");
    old["status"] = json!({"storedVersions": ["v1"]});
    let changes = vec![update(old, edited(ruled)), written(3)];
    let report = run_with(changes, &json!({"liveObjects": "decide"}), Ok(vec![sized("a", 11)]));
    assert_eq!(report.findings[0].affected(), 1, "{report:?}");
}

#[test]
fn correction_that_may_be_rejected_leaves_the_object_undecided() {
    let schema = |crd: &mut Value| {
        let spec = &mut crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
        spec["properties"]["size"]["x-kubernetes-validations"] = json!([{"rule": "cannot be read"}]);
    };
    let mut old = edited(schema);
    old["status"] = json!({"storedVersions": ["v1"]});
    let new = edited(|crd| {
        schema(crd);
        bounded(crd);
    });
    let report =
        run_with(vec![update(old, new), written(3)], &json!({"liveObjects": "decide"}), Ok(vec![sized("a", 11)]));
    let found = report.findings.iter().find(|it| it.check == "maximum").and_then(|it| it.live_objects.as_ref());
    assert_eq!(found.map(|live| (live.affected, live.up_to)), Some((1, true)), "{report:?}");
}

#[test]
fn object_whose_correction_is_rejected_stays_undecided() {
    let object = |note: &str, size: i64| {
        let mut object = sized("a", size);
        object["spec"]["note"] = json!(note);
        object
    };
    let with = |note: Value, rules: Value| {
        edited(|crd| {
            let spec = &mut crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
            let size = json!({"type": "integer", "x-kubernetes-validations": [{"rule": "self >= oldSelf"}]});
            *spec = json!({"type": "object", "properties": {"size": size, "note": note}});
            spec["x-kubernetes-validations"] = rules;
        })
    };
    let mut old = with(json!({"type": "string"}), json!([]));
    old["status"] = json!({"storedVersions": ["v1"]});
    let new = with(json!({"type": "string", "maxLength": 2}), json!([{"rule": "!has(self.size) || self.size > 1"}]));
    let correction = |size: i64| {
        let result = Some(Arc::new(object("a", size)));
        Change { result, ..update(object("long", 5), object("a", size)) }
    };
    let message = |size: i64| {
        let changes = vec![update(old.clone(), new.clone()), correction(size)];
        let report = run_with(changes, &json!({"liveObjects": "decide"}), Ok(vec![object("long", 5)]));
        let found = report.findings.into_iter().find(|it| it.check == "x-kubernetes-validations");
        found.expect("a finding").message
    };
    assert!(message(6).ends_with(" (no live object is affected)"), "{}", message(6));
    assert!(message(4).ends_with(" (not decided by live objects: 1 of them cannot be judged)"), "{}", message(4));
}

#[test]
fn object_that_becomes_unreadable_can_be_neither_corrected_nor_deleted() {
    let typed = |embedded: bool| {
        edited(|crd| {
            let spec = &mut crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
            let mut template = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
            if embedded {
                template["x-kubernetes-embedded-resource"] = json!(true);
            }
            *spec = json!({"type": "object", "properties": {"template": template}});
        })
    };
    let mut old = typed(false);
    old["status"] = json!({"storedVersions": ["v1"]});
    let mut object = sized("a", 1);
    object["spec"] = json!({"template": {"apiVersion": "v1", "kind": "Pod", "metadata": 5}});
    let changes = vec![update(old, typed(true)), delete(object.clone())];
    let report = run_with(changes, &json!({}), Ok(vec![object]));
    let found = report.findings.iter().find(|it| it.effect.as_deref() == Some("unreadable")).expect("a finding");
    assert_eq!(found.affected(), 1, "{found:?}");
}
