//! A migration whose ground moves: its conversion webhook goes down, its definition gets another storage version or is
//! deleted, an object is replaced by another one, one of four processes is killed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};

use super::crd::{DEADLINE, TestCrd, Version, size};
use super::migrate::flipped;
use super::troubles::{assert_proved, migrate, proxy, rewrite_of, written};
use crate::kill_points::killed;
use crate::support::apply::TestApp;
use crate::support::https::HttpsServer;
use crate::support::proxy::{Verb, matching};
use crate::support::{Ran, TestCase, TestCluster, cases, wait_until};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        ApiServer: a_conversion_webhook_that_goes_down_stops_the_migration_until_it_is_back,
        ApiServer: object_that_the_webhook_cannot_convert_is_named_and_the_others_are_migrated,
        ApiServer: stuck_deletion_of_a_crd_ends_after_its_remedy,
        ApiServer: a_storage_version_that_changes_meanwhile_is_the_target_of_the_next_run,
        ApiServer: a_definition_that_is_deleted_meanwhile_ends_the_migration,
        ApiServer: an_object_that_is_replaced_meanwhile_is_left_as_the_new_one_is,
        ApiServer: four_shards_at_once_prove_nothing_until_the_killed_one_is_done,
    ]
}

/// A webhook that converts as the API server does without one.
struct Converter {
    server: HttpsServer,
    is_up: Arc<AtomicBool>,
}

impl Converter {
    fn start() -> Self {
        let is_up = Arc::new(AtomicBool::new(true));
        let answers = Arc::clone(&is_up);
        let server = HttpsServer::start(&[], move |request| {
            if !answers.load(Ordering::SeqCst) {
                return (503, json!("no endpoints"));
            }
            let asked = &request.body["request"];
            let convert = |object: &Value| {
                let mut converted = object.clone();
                converted["apiVersion"] = asked["desiredAPIVersion"].clone();
                converted
            };
            let is_bad = |object: &Value| object["spec"]["size"] == 666;
            if asked["objects"].as_array().into_iter().flatten().any(is_bad) {
                let result = json!({"status": "Failure", "message": "size 666 has no equivalent"});
                let response = json!({"uid": asked["uid"], "result": result});
                let (version, kind) = (&request.body["apiVersion"], &request.body["kind"]);
                return (200, json!({"apiVersion": version, "kind": kind, "response": response}));
            }
            let converted: Vec<Value> = asked["objects"].as_array().into_iter().flatten().map(convert).collect();
            let response = json!({"uid": asked["uid"], "result": {"status": "Success"}, "convertedObjects": converted});
            let (version, kind) = (&request.body["apiVersion"], &request.body["kind"]);
            (200, json!({"apiVersion": version, "kind": kind, "response": response}))
        });
        Self { server, is_up }
    }

    fn conversion(&self) -> Value {
        json!({"strategy": "Webhook", "webhook": {
            "conversionReviewVersions": ["v1"],
            "clientConfig": {
                "url": format!("https://127.0.0.1:{}/", self.server.port()),
                "caBundle": BASE64.encode(self.server.certificate_authority()),
            },
        }})
    }

    fn convert(&self, crd: &TestCrd, versions: &[Version]) {
        let mut manifest = crd.manifest(versions);
        manifest["spec"]["conversion"] = self.conversion();
        crd.put_manifest(manifest);
        for (version, served, ..) in versions {
            crd.await_version(version, *served);
        }
    }
}

fn a_conversion_webhook_that_goes_down_stops_the_migration_until_it_is_back() {
    let converter = Converter::start();
    let crd = TestCrd::new("webhook-down");
    converter.convert(&crd, &[("v1", true, true, size())]);
    crd.create("v1", 9);
    converter.convert(&crd, &[("v1", true, false, size()), ("v2", true, true, size())]);

    let first = proxy();
    let is_up = Arc::clone(&converter.is_up);
    let (api, path) = (crd.api(), crd.path());
    let list = format!("/apis/{}/v2/namespaces/{}/cogs?timeout=2s", crd.group, crd.namespace);
    first.after(rewrite_of("cog-4").first(1), move |_| {
        is_up.store(false, Ordering::SeqCst);
        // What the server has converted before would carry it to the end: a change makes it read everything again.
        api.merge_patch(&path, &json!({"spec": {"names": {"shortNames": ["co"]}}})).ok();
        wait_until("the server cannot convert any more", DEADLINE, || (api.get(&list).status != 200).then_some(()));
    });
    let ran = migrate(&first, &crd, &["--workers", "1", "--page", "3"]);
    assert_eq!(ran.code, 20, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stderr.contains("repair the conversion webhook, and run the same command again"), "{}", ran.stderr);
    assert!(ran.stdout.contains("6 objects, ") && ran.stdout.contains("not proved"), "{}", ran.stdout);
    assert_eq!((crd.in_etcd().as_str(), crd.stored_versions()), ("v1: 4, v2: 5", json!(["v1", "v2"])));
    // While it is down, nothing is done and nothing is said to be.
    let ran = crd.pushback().run(&["storage", "migrate", &crd.name()]);
    assert_eq!(ran.code, 20, "{}{}", ran.stdout, ran.stderr);
    assert_eq!((crd.in_etcd().as_str(), crd.stored_versions()), ("v1: 4, v2: 5", json!(["v1", "v2"])));

    converter.is_up.store(true, Ordering::SeqCst);
    let second = proxy();
    let ran = migrate(&second, &crd, &["--workers", "1", "--page", "3"]);
    assert_proved(&crd, &ran, 9);
    // The definition has changed since, so that every object is looked at again.
    assert_eq!(written(&second), 9 + 9);
    crd.api().delete(&crd.path()).ok();
}

fn object_that_the_webhook_cannot_convert_is_named_and_the_others_are_migrated() {
    let converter = Converter::start();
    let crd = TestCrd::new("unconvertible");
    converter.convert(&crd, &[("v1", true, true, size())]);
    crd.create("v1", 4);
    let path = crd.object_path("v1", "bad");
    let (collection, _) = path.rsplit_once('/').expect("a collection");
    crd.api().post(collection, &crd.object("v1", "bad", &json!({"size": 666}))).ok();
    converter.convert(&crd, &[("v1", true, false, size()), ("v2", true, true, size())]);
    let migrate = || crd.pushback().run(&["storage", "migrate", &crd.name()]);

    let ran = migrate();
    assert_eq!(ran.code, 20, "{}{}", ran.stdout, ran.stderr);
    let object = format!("cogs.v1.{} bad -n {}", crd.group, crd.namespace);
    assert!(ran.stderr.contains(&format!("kubectl get {object}")), "{}", ran.stderr);
    assert!(ran.stdout.contains("size 666 has no equivalent"), "{}", ran.stdout);
    assert_eq!((crd.in_etcd().as_str(), crd.stored_versions()), ("v1: 1, v2: 4", json!(["v1", "v2"])));
    let (bad, moved) = (crd.object_path("v1", "bad"), crd.object_path("v2", "bad"));
    assert_eq!(crd.api().get(&bad).ok()["spec"], json!({"size": 666}));
    assert_eq!(crd.api().delete(&bad).status, 500, "the server does not delete what it cannot convert");
    // As a repaired webhook would.
    let none = json!({"spec": {"conversion": {"strategy": "None", "webhook": null}}});
    crd.api().merge_patch(&crd.path(), &none).ok();
    wait_until("it can be converted", DEADLINE, || (crd.api().get(&moved).status == 200).then_some(()));
    let ran = migrate();
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert_eq!((crd.in_etcd().as_str(), crd.stored_versions()), ("v2: 5", json!(["v2"])));
    crd.api().delete(&crd.path()).ok();
}

fn stuck_deletion_of_a_crd_ends_after_its_remedy() {
    let converter = Converter::start();
    let crd = TestCrd::new("stuck");
    let app = TestApp::new("stuck", &crd.namespace);
    let manifest = crd.manifest(&[("v1", true, true, size()), ("v2", true, false, size())]);
    app.apply(&manifest.to_string(), &[]).expect(0);
    crd.create("v1", 1);
    converter.is_up.store(false, Ordering::SeqCst);
    let versions = crd.manifest(&[("v1", true, false, size()), ("v2", true, true, size())])["spec"]["versions"].clone();
    let conversion = converter.conversion();
    crd.api().merge_patch(&crd.path(), &json!({"spec": {"conversion": conversion, "versions": versions}})).ok();
    let moved = crd.object_path("v2", "cog-0");
    wait_until("the server cannot convert", DEADLINE, || (crd.api().get(&moved).status == 500).then_some(()));

    let ran = app.delete(&["--preflight=none", "--wait-timeout", "20s"]);
    assert_eq!(ran.code, 22, "{}", ran.stderr);
    let message = ran.end()["unfinished"][0]["message"].to_string();
    assert!(message.contains("InstanceDeletionFailed: could not list instances"), "{message}");
    let hints = ran.end()["hints"].to_string();
    assert!(hints.contains(&format!("kubectl patch crd {} --type=merge", crd.name())), "{hints}");
    let none = json!({"spec": {"conversion": {"strategy": "None", "webhook": null}}});
    crd.api().merge_patch(&crd.path(), &none).ok();
    app.delete(&["--preflight=none"]).expect(0);
    assert_eq!(crd.api().get(&crd.path()).status, 404);
}

fn a_storage_version_that_changes_meanwhile_is_the_target_of_the_next_run() {
    let crd = flipped("storage-moves", 5);
    let proxy = proxy();
    let manifest =
        crd.manifest(&[("v1", true, false, size()), ("v2", true, false, size()), ("v3", true, true, size())]);
    let (api, path) = (crd.api(), crd.path());
    proxy.after(rewrite_of("cog-1").first(1), move |_| {
        api.merge_patch(&path, &json!({"spec": {"versions": manifest["spec"]["versions"]}})).ok();
    });
    let ran = migrate(&proxy, &crd, &["--workers", "1"]);
    assert_eq!(ran.code, 20, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stderr.contains("was changed during the migration"), "{}", ran.stderr);
    assert_eq!(crd.stored_versions(), json!(["v1", "v2", "v3"]), "nothing is taken off the list");
    crd.await_version("v3", true);
    let ran = crd.pushback().run(&["storage", "migrate", &crd.name()]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert_eq!((crd.in_etcd().as_str(), crd.stored_versions()), ("v3: 5", json!(["v3"])));
}

fn a_definition_that_is_deleted_meanwhile_ends_the_migration() {
    let crd = flipped("storage-gone", 6);
    let proxy = proxy();
    let (api, path) = (crd.api(), crd.path());
    let last = crd.object_path("v2", "cog-5");
    proxy.after(rewrite_of("cog-2").first(1), move |_| {
        api.delete(&path).ok();
        wait_until("the objects are gone", DEADLINE, || (api.get(&last).status != 200).then_some(()));
    });
    let ran = migrate(&proxy, &crd, &["--workers", "1"]);
    assert_eq!(ran.code, 20, "{}{}", ran.stdout, ran.stderr);
    let told = format!("{} was deleted during the migration, and its objects with it", crd.name());
    assert!(ran.stderr.contains(&told), "{}", ran.stderr);
    assert!(!ran.stdout.contains("proved: "), "{}", ran.stdout);
    assert!(written(&proxy) <= 6, "{} writes", written(&proxy));
}

fn an_object_that_is_replaced_meanwhile_is_left_as_the_new_one_is() {
    let crd = flipped("storage-replaced", 3);
    let proxy = proxy();
    let (api, path) = (crd.api(), crd.object_path("v2", "cog-1"));
    let (created, replacement) = (
        format!("/apis/{}/v2/namespaces/{}/cogs", crd.group, crd.namespace),
        crd.object("v2", "cog-1", &json!({"size": 77})),
    );
    proxy.before(rewrite_of("cog-1").first(1), move |_| {
        api.delete(&path).ok();
        api.post(&created, &replacement).ok();
    });
    let ran = migrate(&proxy, &crd, &[]);
    assert_proved(&crd, &ran, 3);
    assert_eq!(crd.api().get(&crd.object_path("v2", "cog-1")).ok()["spec"], json!({"size": 77}));
    assert!(written(&proxy) <= 3 + 3 + 1, "{} writes", written(&proxy));
}

fn four_shards_at_once_prove_nothing_until_the_killed_one_is_done() {
    const OBJECTS: usize = 60;
    const PAGE: &str = "5";
    let crd = flipped("storage-four", OBJECTS);
    let (name, others) = (crd.name(), proxy());
    let shard = |number: usize| format!("{number}/4");
    let (ended, at_death) = std::thread::scope(|scope| {
        let shards = [1, 3, 4].map(|number| {
            let (others, crd, shard) = (&others, &crd, shard(number));
            scope.spawn(move || migrate(others, crd, &["--shard", &shard, "--page", PAGE]))
        });
        let arguments = ["storage", "migrate", &name, "--shard", &shard(2), "--page", PAGE].map(str::to_owned);
        let place = crd.pushback();
        let at = matching(Verb::Patch, "cogs").nth(7);
        let at_death = killed(TestCluster::shared(), &place, &arguments, at, true).expect("it is killed");
        (shards.map(|shard| shard.join().expect("a run")), at_death)
    });
    for ran in &ended {
        assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
        assert!(!ran.stdout.contains("proved: "), "{}", ran.stdout);
    }
    assert!(ended.iter().any(|ran: &Ran| ran.stdout.contains("shards 2 are not")), "{:?}", ended.map(|ran| ran.stdout));
    assert_eq!(crd.stored_versions(), json!(["v1", "v2"]));
    let last = proxy();
    let ran = migrate(&last, &crd, &["--shard", &shard(2), "--page", PAGE]);
    assert_proved(&crd, &ran, OBJECTS);
    // Each object once and once more for the proof; what was under way at the kill again, as conflicts.
    let all = written(&others) + written(&at_death) + written(&last);
    assert!(all <= 2 * OBJECTS + 2 * 8, "{all} writes");
    let records = crd.api().list(&format!("/api/v1/namespaces/{}/configmaps", crd.namespace));
    assert!(records.iter().all(|record| !record["metadata"]["name"].to_string().contains("storage-migration")));
}
