//! What happens without the tool when a version that objects are stored in goes, and what the tool makes of it; and which
//! rights it needs for that.

use serde_json::{Value, json};

use super::carried::{V1_AND_V2, apply, deployed};
use super::crd::{DEADLINE, TestCrd, size};
use super::migrate::flipped;
use crate::support::{Pushback, TestCase, TestCluster, cases, wait_until};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        ApiServer: a_version_that_is_removed_by_hand_strands_its_objects_until_it_is_back,
        ApiServer: a_no_op_update_through_an_old_version_keeps_what_the_new_one_holds,
        ApiServer: rights_are_checked_before_the_first_write_and_the_role_is_printed,
    ]
}

fn a_version_that_is_removed_by_hand_strands_its_objects_until_it_is_back() {
    let crd = deployed("disaster", &V1_AND_V2(), 2);
    // With the tool: refused.
    let ran = apply(&crd, &[("v2", true, true, size())], &[]);
    assert_eq!(ran.code, 10, "{}{}", ran.stdout, ran.stderr);
    // Without it: the list is set by hand, and the server takes the definition.
    crd.put(&[("v1", true, false, size()), ("v2", true, true, size())]);
    crd.force_stored_versions(&["v2"]);
    crd.put(&[("v2", true, true, size())]);
    let object = crd.object_path("v2", "cog-0");
    let get = wait_until("the version is gone for the server too", DEADLINE, || {
        Some(crd.api().get(&object)).filter(|answer| answer.status != 200)
    });
    assert_eq!(get.status, 500, "{}", get.body);
    assert!(get.message().contains("request to convert CR from an invalid group/version"), "{}", get.body);
    for answer in [crd.api().merge_patch(&object, &json!({})), crd.api().delete(&object)] {
        assert_eq!(answer.status, 500, "{}", answer.body);
    }
    let path = format!("/apis/{}/v2/namespaces/{}/cogs", crd.group, crd.namespace);
    assert_eq!(crd.api().post(&path, &crd.object("v2", "cog-0", &json!({}))).status, 409);
    // The list says that all is well, and the status says what it sees.
    let ran = crd.pushback().run(&["storage", "verify", &crd.name()]);
    assert_eq!(ran.code, 20, "{}{}", ran.stdout, ran.stderr);
    // The way back: the version again, then the objects moved.
    crd.put(&[("v1", false, false, size()), ("v2", true, true, size())]);
    let ran = crd.pushback().run(&["storage", "migrate", &crd.name()]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let ran = apply(&crd, &[("v2", true, true, size())], &["--storage", "bridge"]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert_eq!(crd.in_etcd(), "v2: 2");
    assert_eq!(crd.api().get(&object).ok()["spec"], json!({"size": 0}));
}

/// The three steps that a definition with two versions must pass: create in v2, update through v1 without a change, read in
/// v2. Where v1 lacks a field, the API server drops it.
fn a_no_op_update_through_an_old_version_keeps_what_the_new_one_holds() {
    let wide = || json!({"size": {"type": "integer"}, "colour": {"type": "string"}});
    let written = json!({"size": 1, "colour": "red"});
    let passes = |crd: &TestCrd| {
        crd.api()
            .post(
                &format!("/apis/{}/v2/namespaces/{}/cogs", crd.group, crd.namespace),
                &crd.object("v2", "three-steps", &written),
            )
            .ok();
        let v1 = crd.api().get(&crd.object_path("v1", "three-steps")).ok();
        crd.api().put(&crd.object_path("v1", "three-steps"), &v1).ok();
        crd.api().get(&crd.object_path("v2", "three-steps")).ok()["spec"] == written
    };
    let alike = TestCrd::new("three-steps");
    alike.put(&[("v1", true, false, wide()), ("v2", true, true, wide())]);
    assert!(passes(&alike));

    let lossy = TestCrd::new("three-steps");
    lossy.put(&[("v1", true, false, size()), ("v2", true, true, wide())]);
    assert!(!passes(&lossy), "the server drops what v1 lacks");
}

fn rights_are_checked_before_the_first_write_and_the_role_is_printed() {
    let crd = flipped("storage-rights", 2);
    let cluster = TestCluster::shared();
    let admin = crd.pushback();
    let ran = admin.run(&["storage", "role", &crd.name()]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let user = format!("{}-user", crd.namespace);
    let as_user =
        || Pushback::with_kubeconfig(&cluster.kubeconfig_for(&user, &[])).with("PUSHBACK_NAMESPACE", &crd.namespace);
    // May look, and not write.
    let bind = |kind: &str, role: &Value| {
        let mut role = role.clone();
        role["metadata"]["name"] = json!(user);
        crd.api().apply(&role).ok();
        let mut binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": format!("{kind}Binding"), "metadata": {"name": user},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": user},
            "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": user}],
        });
        if kind == "Role" {
            binding["metadata"]["namespace"] = json!(crd.namespace);
        }
        crd.api().apply(&binding).ok();
    };
    let roles: Vec<Value> =
        serde_json::from_str(&admin.run(&["storage", "role", &crd.name(), "-o", "json"]).stdout).expect("JSON");
    let mut looks = roles[0].clone();
    for rule in looks["rules"].as_array_mut().expect("rules") {
        rule["verbs"] = json!(["get", "list"]);
    }
    bind("ClusterRole", &looks);
    bind("Role", &roles[1]);
    let ran = wait_until("the role counts", DEADLINE, || {
        let ran = as_user().run(&["storage", "migrate", &crd.name()]);
        ran.stderr.contains("may not patch").then_some(ran)
    });
    assert_eq!(ran.code, 13, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stderr.contains("pushback storage role"), "{}", ran.stderr);
    assert_eq!(crd.in_etcd(), "v1: 2");
    // With what is printed, everything passes.
    bind("ClusterRole", &roles[0]);
    let ran = wait_until("the role counts", DEADLINE, || {
        let ran = as_user().run(&["storage", "migrate", &crd.name()]);
        (ran.code != 13).then_some(ran)
    });
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert_eq!((crd.in_etcd().as_str(), crd.stored_versions()), ("v2: 2", json!(["v2"])));
}
