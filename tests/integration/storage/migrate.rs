//! `storage status`, `migrate`, `verify`, `unserve`, `remove`.

use serde_json::{Value, json};

use super::crd::{TestCrd, size};
use crate::support::{TestCase, cases};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        ApiServer: status_names_the_definitions_with_objects_in_old_versions,
        ApiServer: migrate_moves_every_object_proves_it_and_takes_the_old_version_off_the_list,
        ApiServer: a_dry_run_writes_nothing,
        ApiServer: an_old_version_goes_in_two_steps_each_refused_until_the_one_before_is_done,
        ApiServer: objects_cannot_be_written_at_a_version_that_is_not_served,
        ApiServer: shards_share_the_work_and_the_last_one_proves_it_all,
        ApiServer: an_object_that_its_schema_refuses_is_moved_all_the_same,
        ApiServer: a_list_that_says_what_is_not_true_is_healed_with_proof,
        ApiServer: an_object_that_cannot_be_read_keeps_the_list_as_it_is,
    ]
}

/// Objects stored in v1, and v2 the storage version since.
pub(crate) fn flipped(prefix: &str, objects: usize) -> TestCrd {
    let crd = TestCrd::new(prefix);
    flip(&crd, objects);
    crd
}

pub(crate) fn flip(crd: &TestCrd, objects: usize) {
    crd.put(&[("v1", true, true, size())]);
    crd.create("v1", objects);
    crd.put(&[("v1", true, false, size()), ("v2", true, true, size())]);
}

fn status_names_the_definitions_with_objects_in_old_versions() {
    let crd = flipped("storage-status", 3);
    let ran = crd.pushback().run(&["storage", "status", "--exit-status"]);
    assert_eq!(ran.code, 3, "{}{}", ran.stdout, ran.stderr);
    let line = ran.stdout.lines().find(|line| line.starts_with(&crd.name())).expect("a line of the definition");
    let cells: Vec<&str> = line.split_whitespace().skip(1).collect();
    assert_eq!(cells, ["v2", "v1,v2", "v1,v2", "3", "migrate"]);

    let ran = crd.pushback().run(&["storage", "status", &crd.name(), "-o", "json"]);
    let report = ran.json();
    assert_eq!(report["definitions"][0]["debt"], json!(["v1"]), "{report}");
    assert_eq!(report["definitions"][0]["objects"], 3);
    assert_eq!(ran.code, 0);

    let ran = crd.pushback().run(&["storage", "status", "cogs.nowhere.example.com"]);
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("there is no CustomResourceDefinition cogs.nowhere.example.com"), "{}", ran.stderr);
}

fn migrate_moves_every_object_proves_it_and_takes_the_old_version_off_the_list() {
    let crd = flipped("storage-migrate", 12);
    assert_eq!(crd.in_etcd(), "v1: 12");
    let ran = crd.pushback().run(&["storage", "migrate", &crd.name(), "--page", "5"]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert_eq!(crd.in_etcd(), "v2: 12");
    assert_eq!(crd.stored_versions(), json!(["v2"]));
    assert_eq!(
        ran.stdout,
        format!(
            "{}: 12 objects, 12 rewritten at v2\n  12 had field owners moved to the version\n  \
             proved: another write of every object changed nothing in etcd\n  stored versions: v1, v2 -> v2\n",
            crd.name()
        )
    );
    // Nothing is left behind, and a second run has nothing to do.
    let records = crd.api().list(&format!("/api/v1/namespaces/{}/configmaps", crd.namespace));
    assert!(records.iter().all(|record| !record["metadata"]["name"].to_string().contains("storage-migration")));
    let ran = crd.pushback().run(&["storage", "migrate", &crd.name(), "-o", "json"]);
    let migration = &ran.json()["migrations"][0];
    assert_eq!((&migration["proved"], &migration["passes"][0]["rewritten"]), (&json!(true), &json!(0)), "{migration}");
    let ran = crd.pushback().run(&["storage", "status", &crd.name(), "--exit-status"]);
    assert_eq!(ran.code, 2, "{}", ran.stdout);
}

fn a_dry_run_writes_nothing() {
    let crd = flipped("storage-dry-run", 4);
    let before = crd.live();
    let ran = crd.pushback().run(&["storage", "migrate", &crd.name(), "--dry-run"]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("4 objects would be rewritten at v2"), "{}", ran.stdout);
    assert_eq!(crd.in_etcd(), "v1: 4");
    assert_eq!(crd.live(), before);
}

fn an_old_version_goes_in_two_steps_each_refused_until_the_one_before_is_done() {
    let crd = flipped("storage-steps", 2);
    let pushback = crd.pushback();
    let run = |command: &str, version: &str| pushback.run(&["storage", command, &crd.name(), version, "--yes"]);
    let refused = |command: &str, version: &str, why: &str| {
        let ran = run(command, version);
        assert_eq!(ran.code, 10, "{}{}", ran.stdout, ran.stderr);
        assert!(ran.stderr.contains(why), "{why}: {}", ran.stderr);
    };
    refused("unserve", "v1", "may be stored in v1: it is in status.storedVersions");
    refused("unserve", "v2", "v2 is the storage version");
    assert_eq!(pushback.run(&["storage", "migrate", &crd.name()]).code, 0);
    refused("remove", "v1", "v1 of");
    let without_consent = pushback.run(&["storage", "unserve", &crd.name(), "v1"]);
    assert_eq!(without_consent.code, 1, "{}", without_consent.stderr);
    let ran = run("unserve", "v1");
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert_eq!(crd.live()["spec"]["versions"][0]["served"], json!(false));
    let ran = run("remove", "v1");
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let versions: Vec<Value> = crd.live()["spec"]["versions"].as_array().expect("versions").clone();
    assert_eq!(versions.len(), 1);
    assert_eq!(versions[0]["name"], "v2");
    let ran = run("remove", "v1");
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("its versions: v2"), "{}", ran.stderr);
}

fn objects_cannot_be_written_at_a_version_that_is_not_served() {
    let crd = TestCrd::new("storage-unserved");
    crd.put(&[("v1", true, true, size())]);
    crd.create("v1", 1);
    crd.put(&[("v1", true, false, size()), ("v2", false, true, size())]);
    let ran = crd.pushback().run(&["storage", "migrate", &crd.name()]);
    assert_eq!(ran.code, 10, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stderr.contains("the storage version v2 is not served"), "{}", ran.stderr);
    assert!(ran.stderr.contains("serve v2"), "{}", ran.stderr);
    assert_eq!(crd.stored_versions(), json!(["v1", "v2"]));
}

fn shards_share_the_work_and_the_last_one_proves_it_all() {
    let crd = flipped("storage-shards", 20);
    let pushback = crd.pushback();
    let run = |shard: &str| pushback.run(&["storage", "migrate", &crd.name(), "--shard", shard]);
    for (shard, left) in [("1/3", "2, 3"), ("3/3", "2")] {
        let ran = run(shard);
        assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
        assert!(ran.stdout.contains(&format!("shards {left} are not")), "{}", ran.stdout);
        assert_eq!(crd.stored_versions(), json!(["v1", "v2"]));
    }
    let ran = run("2/3");
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("proved"), "{}", ran.stdout);
    assert_eq!(crd.in_etcd(), "v2: 20");
    assert_eq!(crd.stored_versions(), json!(["v2"]));
}

fn an_object_that_its_schema_refuses_is_moved_all_the_same() {
    let crd = TestCrd::new("storage-invalid");
    crd.put(&[("v1", true, true, size())]);
    crd.create("v1", 3);
    // A field that the new version requires and fills in by a default elsewhere: the patch is refused.
    let mut strict = crd.manifest(&[
        ("v1", true, false, size()),
        ("v2", true, true, json!({"size": {"type": "integer"}, "mode": {"type": "string", "default": "slow"}})),
    ]);
    strict["spec"]["versions"][1]["schema"]["openAPIV3Schema"]["properties"]["spec"]["required"] = json!(["colour"]);
    crd.put_manifest(strict);
    crd.await_version("v2", true);
    let ran = crd.pushback().run(&["storage", "migrate", &crd.name()]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert_eq!(crd.in_etcd(), "v2: 3");
    assert!(ran.stdout.contains("kept field owners at an old version"), "{}", ran.stdout);
}

fn a_list_that_says_what_is_not_true_is_healed_with_proof() {
    let crd = flipped("storage-forged", 2);
    // Somebody has cleaned up by hand, and named a version that never was.
    crd.force_stored_versions(&["v2", "v9"]);
    let ran = crd.pushback().run(&["storage", "status", &crd.name()]);
    assert!(ran.stdout.contains("stored v9 is not defined"), "{}", ran.stdout);
    let ran = crd.pushback().run(&["storage", "migrate", &crd.name()]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert_eq!((crd.in_etcd().as_str(), crd.stored_versions()), ("v2: 2", json!(["v2"])));
}

fn an_object_that_cannot_be_read_keeps_the_list_as_it_is() {
    let crd = flipped("storage-unreadable", 2);
    crd.force_stored_versions(&["v2"]);
    crd.put(&[("v2", true, true, size()), ("v3", true, false, size())]);
    crd.force_stored_versions(&["v2", "v3"]);
    // Both objects are stored in v1, which is gone: nobody can read them.
    let ran = crd.pushback().run(&["storage", "migrate", &crd.name()]);
    assert_eq!(ran.code, 20, "{}{}", ran.stdout, ran.stderr);
    assert_eq!(crd.stored_versions(), json!(["v2", "v3"]));
    // With the version back, everything is there again.
    crd.put(&[("v1", false, false, size()), ("v2", true, true, size()), ("v3", true, false, size())]);
    let ran = crd.pushback().run(&["storage", "migrate", &crd.name()]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert_eq!((crd.in_etcd().as_str(), crd.stored_versions()), ("v2: 2", json!(["v2"])));
}
