//! Objects that a change of the whole CRD affects.

use super::*;

/// A Foo with this spec, in the form of the live CRD.
fn foo(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "ex.com/v1", "kind": "Foo", "metadata": {"namespace": "shop", "name": name}, "spec": spec})
}

fn lossless_and_lossy() -> Vec<Value> {
    vec![foo("a", json!({"size": 1})), foo("b", json!({"template": {"extra": "kept"}})), foo("c", json!({"other": 1}))]
}

/// The count of a check: affected of examined objects, `up to` before it, names after it.
fn count(report: &RunReport, check: &str) -> String {
    let found = report.findings.iter().find(|it| it.check == check).unwrap_or_else(|| panic!("{report:?}"));
    found.live_objects.as_ref().map_or("not counted".to_owned(), |live| {
        let up_to = if live.up_to { "up to " } else { "" };
        format!("{up_to}{} of {}: {}", live.affected, live.examined, live.names.join(" "))
    })
}

#[test]
fn unknown_field_that_is_no_longer_kept_counts_its_object() {
    let mut old = live(&["v1"]);
    old["spec"]["preserveUnknownFields"] = json!(true);
    let judge = |changes: Vec<Change>, mode: &str, objects: Vec<Value>| {
        let changes = [vec![update(old.clone(), foos())], changes].concat();
        run_with(changes, &json!({"liveObjects": mode}), Ok(objects))
    };
    let check = "preserveUnknownFields";
    assert_eq!(count(&judge(vec![], "report", lossless_and_lossy()), check), "2 of 3: shop/b shop/c");
    assert_eq!(judge(vec![], "decide", lossless_and_lossy()).outcome, Outcome::Refused);
    let harmless = judge(vec![], "decide", vec![foo("a", json!({"size": 1}))]);
    assert_eq!((harmless.outcome, count(&harmless, check).as_str()), (Outcome::Warned, "0 of 1: "));
    // The run moves what is in one object, and deletes the other.
    let corrected =
        change(Operation::Update, Some(lossless_and_lossy()[1].clone()), Some(foo("b", json!({"size": 2}))));
    let corrected = Change { result: Some(Arc::new(foo("b", json!({"size": 2})))), ..corrected };
    let deleted = delete(lossless_and_lossy()[2].clone());
    let report = judge(vec![corrected, deleted], "report", lossless_and_lossy());
    assert_eq!(count(&report, check), "0 of 3: ");
}

#[test]
fn default_that_a_read_may_have_filled_in_is_lost_only_perhaps() {
    let mut old = live(&["v1"]);
    old["spec"]["preserveUnknownFields"] = json!(true);
    old["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["mode"] =
        json!({"type": "string", "default": "x"});
    let report = run_with(vec![update(old, foos())], &json!({}), Ok(vec![foo("a", json!({"mode": "x"}))]));
    assert_eq!(count(&report, "preserveUnknownFields"), "up to 1 of 1: shop/a");
}

#[test]
fn another_scope_affects_every_object_that_is_not_deleted_and_no_correction_helps() {
    let clustered = || update(live(&["v1"]), edited(|crd| crd["spec"]["scope"] = json!("Cluster")));
    let deleted = || delete(lossless_and_lossy()[2].clone());
    let report = run_with(vec![clustered(), deleted()], &json!({"liveObjects": "decide"}), Ok(lossless_and_lossy()));
    assert_eq!(count(&report, "scope"), "2 of 3: shop/a shop/b");
    let scope = &report.findings[0];
    let steps: Vec<&str> = scope.remedies.iter().flat_map(|it| &it.steps).map(String::as_str).collect();
    assert!(steps.iter().all(|step| !step.contains("affected object")), "{steps:?}");
    // The server never takes it, whatever objects there are.
    let report = run_with(vec![clustered()], &json!({"liveObjects": "decide"}), Ok(vec![]));
    assert_eq!((report.outcome, count(&report, "scope").as_str()), (Outcome::Refused, "0 of 0: "));
}

#[test]
fn another_conversion_may_affect_every_object_that_has_more_than_one_version() {
    let webhook = json!({"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"],
        "clientConfig": {"service": {"namespace": "shop", "name": "convert"}}}});
    let converted = |crd: &mut Value| crd["spec"]["conversion"] = webhook.clone();
    let report = run_with(vec![update(live(&["v1"]), edited(converted))], &json!({}), Ok(lossless_and_lossy()));
    assert_eq!(count(&report, "conversion"), "up to 3 of 3: shop/a shop/b shop/c");
    let single = |mut crd: Value| {
        crd["spec"]["versions"].as_array_mut().expect("versions").truncate(1);
        crd
    };
    let change = update(single(live(&["v1"])), single(edited(converted)));
    let report = run_with(vec![change], &json!({}), Ok(lossless_and_lossy()));
    assert_eq!(count(&report, "conversion"), "not counted");
}

#[test]
fn manifest_without_preserve_unknown_fields_is_told_to_set_it() {
    let remedy = |set: Option<bool>| {
        let mut old = live(&["v1"]);
        old["spec"]["preserveUnknownFields"] = json!(true);
        let new = edited(|crd| {
            if let Some(set) = set {
                crd["spec"]["preserveUnknownFields"] = json!(set);
            }
        });
        run(update(old, new)).findings[0].remedy.clone().unwrap_or_default()
    };
    assert!(remedy(None).contains("`preserveUnknownFields: false`"), "{}", remedy(None));
    assert!(!remedy(Some(false)).contains("preserveUnknownFields: false"));
}
