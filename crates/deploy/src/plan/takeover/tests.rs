//! What is removed and what stays when predecessors' entries become ours, judged by the sets alone.

use super::*;

fn entry(manager: &str, operation: &str, api_version: &str, fields: &Value) -> Value {
    json!({"manager": manager, "operation": operation, "apiVersion": api_version,
        "fieldsType": "FieldsV1", "fieldsV1": fields})
}

fn object(entries: &[Value]) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"resourceVersion": "7", "managedFields": entries},
        "data": {"a": "1", "b": "2", "c": "3"}})
}

fn planned(live: &Value, wanted: &Value, keeps_replicas: bool) -> Result<Option<Takeover>, OtherVersion> {
    let wanted = FieldSet::parse(wanted).expect("a set");
    plan(live, fields::managers(live).expect("entries"), &wanted, keeps_replicas, &[], &[])
}

fn takeover(live: &Value, wanted: &Value) -> Takeover {
    planned(live, wanted, false).expect("one API version").expect("a predecessor")
}

fn removed(takeover: &Takeover, live: &Value) -> Vec<String> {
    takeover.removals.iter().map(|path| display_path(&fields::resolve(path, live).expect("it is there"))).collect()
}

fn entries(takeover: &Takeover) -> Value {
    let Patch::Json(mut patch) = takeover.rewrite("7") else { panic!("a JSON patch") };
    assert_eq!(patch[0], json!({"op": "replace", "path": "/metadata/resourceVersion", "value": "7"}));
    patch[1]["value"].take()
}

#[test]
fn what_the_predecessor_set_and_the_manifest_does_not_goes_unless_somebody_else_owns_it() {
    let live = object(&[
        entry("kapp", "Update", "v1", &json!({"f:data": {"f:a": {}, "f:b": {}, "f:c": {}}})),
        entry("controller", "Update", "v1", &json!({"f:data": {"f:c": {}}})),
    ]);
    let takeover = takeover(&live, &json!({"f:data": {"f:a": {}}}));
    assert_eq!(removed(&takeover, &live), ["data.b"]);
    let managers: Vec<String> =
        entries(&takeover).as_array().expect("entries").iter().map(|entry| entry["manager"].to_string()).collect();
    assert_eq!(managers, [format!("{FIELD_MANAGER:?}"), "\"controller\"".to_owned()]);
    assert_eq!(takeover.note(), "continues the work of kapp");
}

#[test]
fn what_others_set_where_ownership_is_exclusive_goes_and_the_rest_stays_theirs() {
    let live = object(&[
        entry(FIELD_MANAGER, "Apply", "v1", &json!({"f:data": {"f:a": {}}})),
        entry("editor", "Update", "v1", &json!({"f:data": {"f:b": {}}, "f:metadata": {"f:labels": {"f:x": {}}}})),
        entry("kube-controller-manager", "Update", "v1", &json!({"f:data": {"f:c": {}}})),
    ]);
    let data: Path = vec![pushback_manifest::config::PathPart::Key("data".to_owned())];
    let known = fields::managers(&live).expect("entries");
    assert!(is_shared(&known, std::slice::from_ref(&data), &live) && !is_shared(&known, &[], &live));
    let wanted = FieldSet::parse(&json!({"f:data": {"f:a": {}}})).expect("a set");
    let takeover =
        plan(&live, known, &wanted, false, &[data], &[]).expect("one API version").expect("something shared");
    assert_eq!(removed(&takeover, &live), ["data.b"]);
    let entries = entries(&takeover);
    assert_eq!(entries[0]["fieldsV1"], json!({"f:data": {"f:a": {}, "f:b": {}}}));
    assert_eq!(entries[1]["fieldsV1"], json!({"f:metadata": {"f:labels": {"f:x": {}}}}));
    assert_eq!(entries[2]["manager"], "kube-controller-manager");
    assert_eq!(takeover.note(), "owns alone what editor has set too");
}

#[test]
fn two_predecessors_and_our_own_earlier_entry_become_one_with_the_latest_time() {
    let timed = |mut entry: Value, time: &str| {
        entry["time"] = json!(time);
        entry
    };
    let live = object(&[
        timed(entry("kapp", "Update", "v1", &json!({"f:data": {"f:a": {}}})), "2026-01-03T00:00:00Z"),
        timed(entry("kubectl", "Apply", "v1", &json!({"f:data": {"f:b": {}}})), "2026-01-02T00:00:00Z"),
        timed(entry(FIELD_MANAGER, "Apply", "v1", &json!({"f:data": {"f:c": {}}})), "2026-01-01T00:00:00Z"),
    ]);
    let takeover = takeover(&live, &json!({"f:data": {"f:c": {}}}));
    assert_eq!(takeover.note(), "continues the work of kapp, kubectl");
    assert_eq!(removed(&takeover, &live), ["data.a", "data.b"]);
    let mut all = entry(FIELD_MANAGER, "Apply", "v1", &json!({"f:data": {"f:a": {}, "f:b": {}, "f:c": {}}}));
    all["time"] = json!("2026-01-03T00:00:00Z");
    assert_eq!(entries(&takeover), json!([all]));
}

#[test]
fn copies_of_the_manifest_go_and_are_no_change_of_a_setting() {
    let fields = json!({"f:metadata": {"f:annotations": {
        ".": {}, "f:kapp.k14s.io/original": {}, "f:kapp.k14s.io/identity": {}, "f:mine": {}}}});
    let mut live = object(&[entry("kapp", "Update", "v1", &fields)]);
    live["metadata"]["annotations"] = json!({"kapp.k14s.io/original": "{}", "kapp.k14s.io/identity": "i", "mine": "1"});
    let takeover = takeover(&live, &json!({"f:metadata": {"f:annotations": {"f:kapp.k14s.io/identity": {}}}}));
    assert_eq!(removed(&takeover, &live), ["metadata.annotations.mine"]);
    assert_eq!(takeover.copies.len(), 1);
    assert_eq!(takeover.note(), "continues the work of kapp, without the copies of the manifest in annotations");
    let mut after = live.clone();
    after["metadata"]["annotations"] = json!({"kapp.k14s.io/identity": "i"});
    let changes = super::super::diff::diff(&live, &after, &super::super::diff::DiffOptions::default());
    let changes: Vec<String> = without_copies(changes).iter().map(|change| display_path(&change.path)).collect();
    assert_eq!(changes, ["metadata.annotations.mine"]);
}

#[test]
fn what_the_server_refuses_to_let_go_belongs_to_nobody() {
    let live = object(&[entry("kapp", "Update", "v1", &json!({"f:data": {"f:a": {}, "f:b": {}, "f:c": {}}}))]);
    let mut takeover = takeover(&live, &json!({"f:data": {"f:a": {}}}));
    let refused = vec![vec![Element::field("data"), Element::field("b")]];
    takeover.keep(&refused, &live);
    assert_eq!(removed(&takeover, &live), ["data.c"]);
    assert_eq!(entries(&takeover)[0]["fieldsV1"], json!({"f:data": {"f:a": {}, "f:c": {}}}));
    assert_eq!(takeover.note(), "continues the work of kapp; the server does not let go of data.b");
}

#[test]
fn replicas_go_as_any_field_unless_an_autoscaler_looks_after_them() {
    let mut live = object(&[entry("kapp", "Update", "v1", &json!({"f:spec": {"f:replicas": {}, "f:paused": {}}}))]);
    live["spec"] = json!({"replicas": 5, "paused": true});
    let wanted = json!({"f:data": {"f:a": {}}});
    let resets = planned(&live, &wanted, false).expect("one version").expect("kapp");
    assert_eq!(removed(&resets, &live), ["spec"]);
    let keeps = planned(&live, &wanted, true).expect("one version").expect("kapp");
    assert_eq!(entries(&keeps)[0]["fieldsV1"], json!({"f:spec": {"f:paused": {}}}));
    assert!(keeps.note().ends_with("; spec.replicas stays, because it is autoscaled"), "{}", keeps.note());
}

#[test]
fn key_of_string_data_that_the_manifest_drops_is_removed_from_data() {
    let written = json!({"f:stringData": {".": {}, "f:kept": {}, "f:dropped": {}}});
    let mut live = object(&[entry("kubectl", "Apply", "v1", &written)]);
    live["data"] = json!({"kept": "YQ==", "dropped": "Yg=="});
    let takeover = takeover(&live, &json!({"f:data": {"f:kept": {}}}));
    assert_eq!(removed(&takeover, &live), ["data.dropped"]);
    assert_eq!(entries(&takeover)[0]["fieldsV1"], json!({"f:data": {"f:kept": {}, "f:dropped": {}}}));
}

#[test]
fn status_and_what_controllers_hold_an_object_with_stay() {
    let fields = json!({"f:metadata": {"f:finalizers": {"v:\"x\"": {}}, "f:ownerReferences": {}, "f:generateName": {}},
        "f:status": {"f:phase": {}}, "f:data": {"f:a": {}}});
    let with = |manager: &str| {
        let mut live = object(&[
            entry(manager, "Update", "v1", &fields),
            json!({"manager": manager, "operation": "Update", "apiVersion": "v1", "subresource": "status",
                "fieldsType": "FieldsV1", "fieldsV1": {"f:status": {"f:ready": {}}}}),
        ]);
        live["metadata"]["finalizers"] = json!(["x"]);
        live["status"] = json!({"phase": "Bound", "ready": true});
        live
    };
    let wanted = json!({"f:metadata": {"f:labels": {"f:app": {}}}, "f:data": {"f:a": {}}});
    let live = with("before-first-apply");
    let unknown = takeover(&live, &wanted);
    assert_eq!(removed(&unknown, &live), Vec::<String>::new());
    assert_eq!(entries(&unknown)[1], live["metadata"]["managedFields"][1], "the status entry stays as it is");
    // The tool that deployed a finalizer may remove it.
    let live = with("kapp");
    assert_eq!(removed(&takeover(&live, &wanted), &live), ["metadata.finalizers"]);
}

#[test]
fn hands_are_not_predecessors_and_entries_in_other_versions_are_left_alone() {
    for hand in ["kubectl-edit", "kubectl-create", "kubectl-run", "kubectl-replace", "helm"] {
        let live = object(&[entry(hand, "Update", "v1", &json!({"f:data": {"f:a": {}}}))]);
        assert_eq!(planned(&live, &json!({}), false), Ok(None), "{hand}");
    }
    let live = object(&[entry("kapp", "Update", "v1beta1", &json!({"f:data": {"f:a": {}, "f:b": {}}}))]);
    let other = planned(&live, &json!({"f:data": {"f:a": {}}}), false).expect_err("another version");
    let (manager, api_version) = ("kapp".to_owned(), "v1beta1".to_owned());
    assert_eq!(other, OtherVersion { manager, api_version, stays: vec!["data.b".to_owned()] });
}

#[test]
fn what_names_an_item_stays_as_long_as_the_item() {
    let item = r#"k:{"port":80,"protocol":"TCP"}"#;
    let fields = json!({"f:ports": {item: {".": {}, "f:port": {}, "f:protocol": {}, "f:name": {}}}});
    let mut live = object(&[entry("kapp", "Update", "v1", &fields)]);
    live["ports"] = json!([{"name": "http", "port": 80, "protocol": "TCP"}]);
    let takeover = takeover(&live, &json!({"f:ports": {item: {".": {}, "f:port": {}}}}));
    assert_eq!(removed(&takeover, &live), ["ports[0].name"]);
}
