//! `apply --storage`: a definition that drops a version, or changes its storage version, with objects that are there.

use serde_json::{Value, json};

use super::crd::{TestCrd, Version, size, without_clients};
use crate::support::apply::TestApp;
use crate::support::proxy::{FaultProxy, Request, dry_runs};
use crate::support::{Pushback, Ran, TestCase, cases};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        ApiServer: an_update_that_would_strand_objects_is_refused_without_a_policy,
        ApiServer: a_bridge_carries_objects_over_when_the_storage_version_goes,
        ApiServer: bridge_is_accepted_although_the_crd_changes_before_the_dry_run,
        ApiServer: bridge_does_not_accept_that_clients_lose_a_version,
        ApiServer: a_bridge_is_refused_before_anything_is_written_if_an_object_would_lose_a_field,
        ApiServer: objects_follow_the_storage_version_in_the_same_run,
        ApiServer: what_an_earlier_change_left_is_moved_before_the_version_goes,
        ApiServer: a_manifest_can_only_be_stricter_than_the_flag,
        ApiServer: a_killed_bridge_goes_on_where_it_was,
    ]
}

pub(crate) const V1_AND_V2: fn() -> Vec<Version> = || vec![("v1", true, true, size()), ("v2", true, false, size())];

pub(crate) fn apply(crd: &TestCrd, versions: &[Version], arguments: &[&str]) -> Ran {
    apply_manifest(crd, &crd.manifest(versions), arguments)
}

fn apply_manifest(crd: &TestCrd, manifest: &Value, arguments: &[&str]) -> Ran {
    let app = TestApp::new("cogs", &crd.namespace);
    let accepted = arguments.contains(&"--storage").then(|| format!("\n---\n{}", without_clients()));
    app.apply(&[manifest.to_string(), accepted.unwrap_or_default()].concat(), arguments)
}

/// An app with a definition in these versions, and objects stored in v1.
pub(crate) fn deployed(prefix: &str, versions: &[Version], objects: usize) -> TestCrd {
    let crd = TestCrd::new(prefix);
    let ran = apply(&crd, versions, &[]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    crd.await_version("v1", true);
    crd.create("v1", objects);
    crd
}

fn an_update_that_would_strand_objects_is_refused_without_a_policy() {
    let crd = deployed("carry-refused", &V1_AND_V2(), 2);
    let before = crd.live();
    let ran = apply(&crd, &[("v2", true, true, size())], &[]);
    assert_eq!(ran.code, 10, "{}{}", ran.stdout, ran.stderr);
    assert_eq!(crd.live(), before);
}

fn a_bridge_carries_objects_over_when_the_storage_version_goes() {
    let crd = deployed("carry-bridge", &V1_AND_V2(), 7);
    let before = crd.api().get(&crd.object_path("v2", "cog-3")).ok();
    let ran = apply(&crd, &[("v2", true, true, size())], &["--storage", "bridge"]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert_eq!((crd.in_etcd().as_str(), crd.stored_versions()), ("v2: 7", json!(["v2"])));
    assert_eq!(crd.live()["spec"]["versions"].as_array().map(Vec::len), Some(1));
    let after = crd.api().get(&crd.object_path("v2", "cog-3")).ok();
    assert_eq!(after["metadata"]["uid"], before["metadata"]["uid"]);
    assert_eq!(after["spec"], before["spec"]);
    assert!(ran.stdout.contains("7 objects moved to v2, and proved"), "{}{}", ran.stdout, ran.stderr);
    // Nothing is left to do.
    let ran = apply(&crd, &[("v2", true, true, size())], &["--storage", "bridge", "--apply-exit-status"]);
    assert_eq!(ran.code, 2, "{}{}", ran.stdout, ran.stderr);
}

/// As the API server does with the status of a CRD after a write.
fn bridge_is_accepted_although_the_crd_changes_before_the_dry_run() {
    let crd = deployed("carry-changing", &V1_AND_V2(), 2);
    let proxy = FaultProxy::start(crd.cluster().kubeconfig_path());
    let (api, path) = (crd.api(), crd.path());
    let has_both =
        |request: &Request| request.json()["spec"]["versions"].as_array().is_some_and(|versions| versions.len() == 2);
    proxy.before(dry_runs("customresourcedefinitions").named(&crd.name()).that(has_both), move |request| {
        let seen = request.number.to_string();
        api.merge_patch(&path, &json!({"metadata": {"annotations": {"seen": seen}}})).ok();
    });
    let app = TestApp::of(Pushback::with_kubeconfig(&proxy.kubeconfig()), "cogs", &crd.namespace);
    let input = format!("{}\n---\n{}", crd.manifest(&[("v2", true, true, size())]), without_clients());
    let ran = app.apply(&input, &["--storage", "bridge"]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert_eq!(crd.in_etcd(), "v2: 2");
}

fn bridge_does_not_accept_that_clients_lose_a_version() {
    for (prefix, storage, live) in [
        ("carry-clients", "bridge", V1_AND_V2()),
        ("carry-clients", "migrate", vec![("v1", true, false, size()), ("v2", true, true, size())]),
    ] {
        let crd = deployed(prefix, &V1_AND_V2(), 2);
        if storage == "migrate" {
            apply(&crd, &live, &["--storage", "defer"]).expect(0);
        }
        let before = crd.live();
        let app = TestApp::new("cogs", &crd.namespace);
        let wanted = crd.manifest(&[("v2", true, true, size())]).to_string();
        let report = ["--storage", storage, "--report", "json=report.json"];
        app.apply(&wanted, &report).expect(10);
        let findings = app.pushback.read_json("report.json")["findings"].take();
        let of_check = |check: &str| {
            let found = findings.as_array().into_iter().flatten().find(|finding| finding["check"] == check);
            found.unwrap_or_else(|| panic!("no {check} in {findings:#}")).clone()
        };
        let stored = of_check("storedVersionRemoval");
        assert!(stored["waived"].is_string(), "{stored:#}");
        let served = of_check("servedVersionRemoval");
        assert_eq!((&served["severity"], &served["version"]), (&json!("error"), &json!("v1")));
        assert_eq!(crd.live(), before);
        // Accepted by its fingerprint.
        let waiver = format!("{}=no client is left", served["fingerprint"].as_str().unwrap_or_default());
        app.apply(&wanted, &["--storage", storage, "--waive", &waiver]).expect(0);
        assert_eq!(crd.in_etcd(), "v2: 2");
    }
    // A version that is marked as deprecated was announced to its clients.
    let crd = TestCrd::new("carry-announced");
    let app = TestApp::new("cogs", &crd.namespace);
    let mut old = crd.manifest(&V1_AND_V2());
    old["spec"]["versions"][0]["deprecated"] = json!(true);
    app.apply(&old.to_string(), &[]).expect(0);
    crd.await_version("v1", true);
    crd.create("v1", 2);
    app.apply(&crd.manifest(&[("v2", true, true, size())]).to_string(), &["--storage", "bridge"]).expect(0);
    assert_eq!(crd.in_etcd(), "v2: 2");
}

fn a_bridge_is_refused_before_anything_is_written_if_an_object_would_lose_a_field() {
    let old = json!({"size": {"type": "integer"}, "colour": {"type": "string"}});
    let crd = deployed("carry-lossy", &[("v1", true, true, old)], 2);
    let path = crd.object_path("v1", "cog-1");
    crd.api().merge_patch(&path, &json!({"spec": {"colour": "red"}})).ok();
    let before = crd.live();
    let ran = apply(&crd, &[("v2", true, true, size())], &["--storage", "bridge"]);
    assert_eq!(ran.code, 10, "{}{}", ran.stdout, ran.stderr);
    assert!(
        ran.stdout.contains("1 of 2 objects would lose fields: spec.colour (1, such as "),
        "{}{}",
        ran.stdout,
        ran.stderr
    );
    assert_eq!((crd.live(), crd.in_etcd().as_str()), (before, "v1: 2"));
    // Without that value nothing is lost.
    crd.api().merge_patch(&path, &json!({"spec": {"colour": null}})).ok();
    let ran = apply(&crd, &[("v2", true, true, size())], &["--storage", "bridge"]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert_eq!(crd.in_etcd(), "v2: 2");
}

fn objects_follow_the_storage_version_in_the_same_run() {
    let crd = deployed("carry-migrate", &V1_AND_V2(), 3);
    let flipped: &[Version] = &[("v1", true, false, size()), ("v2", true, true, size())];
    // A version is never removed by the run that changes the storage version.
    let ran = apply(&crd, &[("v2", true, true, size())], &["--storage", "migrate"]);
    assert_eq!(ran.code, 10, "{}{}", ran.stdout, ran.stderr);
    let ran = apply(&crd, flipped, &["--storage", "migrate"]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert_eq!((crd.in_etcd().as_str(), crd.stored_versions()), ("v2: 3", json!(["v2"])));
    let ran = apply(&crd, &[("v2", true, true, size())], &["--storage", "migrate", "--preflight=none"]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
}

fn what_an_earlier_change_left_is_moved_before_the_version_goes() {
    let crd = deployed("carry-debt", &V1_AND_V2(), 3);
    let flipped: &[Version] = &[("v1", true, false, size()), ("v2", true, true, size())];
    let ran = apply(&crd, flipped, &["--storage", "defer"]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert_eq!((crd.in_etcd().as_str(), crd.stored_versions()), ("v1: 3", json!(["v1", "v2"])));
    let ran = apply(&crd, &[("v2", true, true, size())], &["--storage", "migrate"]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert_eq!((crd.in_etcd().as_str(), crd.stored_versions()), ("v2: 3", json!(["v2"])));
}

fn a_manifest_can_only_be_stricter_than_the_flag() {
    let crd = deployed("carry-annotation", &V1_AND_V2(), 1);
    let annotated = |policy: &str| {
        let mut manifest = crd.manifest(&[("v2", true, true, size())]);
        manifest["metadata"]["annotations"] = json!({"pushback.dev/storage": policy});
        manifest
    };
    let ran = apply_manifest(&crd, &annotated("refuse"), &["--storage", "bridge"]);
    assert_eq!(ran.code, 10, "{}{}", ran.stdout, ran.stderr);
    let ran = apply_manifest(&crd, &annotated("bridge"), &[]);
    assert_eq!(ran.code, 10, "{}{}", ran.stdout, ran.stderr);
    let ran = apply_manifest(&crd, &annotated("bridge"), &["--storage", "bridge"]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
}

/// The states in which a bridge can be left: the definition with both versions is written; some objects are moved; all
/// are, and the list is pruned.
fn a_killed_bridge_goes_on_where_it_was() {
    for state in 0..3 {
        let crd = deployed("carry-killed", &V1_AND_V2(), 4);
        // The bridge, as a killed run leaves it.
        let bridge: &[Version] = &[("v2", true, true, size()), ("v1", true, false, size())];
        crd.put(bridge);
        if state >= 1 {
            for name in ["cog-0", "cog-2"] {
                crd.api().merge_patch(&crd.object_path("v2", name), &json!({})).ok();
            }
        }
        if state >= 2 {
            assert_eq!(crd.pushback().run(&["storage", "migrate", &crd.name()]).code, 0);
        }
        let ran = apply(
            &crd,
            &[("v2", true, true, size())],
            &["--storage", "bridge", "--dangerous-override-ownership-of-existing-resources"],
        );
        assert_eq!(ran.code, 0, "state {state}: {}{}", ran.stdout, ran.stderr);
        assert_eq!((crd.in_etcd().as_str(), crd.stored_versions()), ("v2: 4", json!(["v2"])), "state {state}");
    }
}
