//! A migration among others: writers, deletions, busy servers, expired lists, a definition that changes, and a kill at any
//! write. Nothing is lost, and nothing is said to be proved that is not.

use std::io::Write as _;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use serde_json::{Value, json};

use super::carried::{V1_AND_V2, deployed};
use super::crd::TestCrd;
use super::crd::{Version, size, without_clients};
use super::migrate::flipped;
use crate::kill_points::killed;
use crate::support::proxy::{Fault, FaultProxy, Matching, Request, Verb, any, later_pages, matching, writes};
use crate::support::{Pushback, Ran, TestCase, TestCluster, cases, rounds};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        ApiServer: an_object_that_somebody_else_writes_meanwhile_is_moved_with_what_was_written,
        ApiServer: objects_that_a_client_of_the_old_version_writes_before_each_pass_are_proved,
        ApiServer: object_that_a_client_of_the_old_version_writes_before_each_write_is_moved_with_its_owners,
        ApiServer: conflict_of_every_guarded_write_does_not_count_as_deleted,
        ApiServer: migrate_beside_a_client_of_the_old_version_in_a_tight_loop_ends_with_0,
        ApiServer: an_object_that_is_deleted_meanwhile_stays_deleted,
        ApiServer: a_busy_server_and_an_expired_list_cost_a_retry_each,
        ApiServer: a_definition_that_changes_meanwhile_keeps_its_list,
        ApiServer: an_object_that_the_server_cannot_write_is_named_and_the_list_stays,
        ApiServer: a_killed_migration_goes_on_behind_its_last_page,
        ApiServer: a_bridge_killed_at_any_write_is_finished_by_the_next_run,
        ApiServer: a_restarted_api_server_is_waited_for,
        ApiServer: a_server_that_has_not_heard_of_the_storage_version_is_waited_for,
    ]
}

pub(super) fn proxied(proxy: &FaultProxy, crd: &TestCrd) -> Pushback {
    Pushback::with_kubeconfig(&proxy.kubeconfig()).with("PUSHBACK_NAMESPACE", &crd.namespace)
}

pub(super) fn migrate(proxy: &FaultProxy, crd: &TestCrd, arguments: &[&str]) -> Ran {
    let name = crd.name();
    proxied(proxy, crd).run(&[&["storage", "migrate", &name], arguments].concat())
}

pub(super) fn proxy() -> FaultProxy {
    FaultProxy::start(TestCluster::shared().kubeconfig_path())
}

/// The rewrite of one object.
pub(super) fn rewrite_of(name: &str) -> Matching {
    matching(Verb::Patch, "cogs").named(name)
}

/// Patches of objects that the server was sent.
pub(super) fn written(proxy: &FaultProxy) -> usize {
    proxy.count(&matching(Verb::Patch, "cogs"))
}

#[track_caller]
pub(super) fn assert_proved(crd: &TestCrd, ran: &Ran, objects: usize) {
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("proved: "), "{}", ran.stdout);
    assert_eq!((crd.in_etcd(), crd.stored_versions()), (format!("v2: {objects}"), json!(["v2"])));
}

fn an_object_that_somebody_else_writes_meanwhile_is_moved_with_what_was_written() {
    let crd = flipped("trouble-writer", 4);
    let (path, api) = (crd.object_path("v1", "cog-2"), crd.api());
    let proxy = proxy();
    proxy.before(rewrite_of("cog-2").first(2), move |request| {
        let size = 100 + request.number;
        api.merge_patch(&path, &json!({"spec": {"size": size}})).ok();
    });
    let ran = migrate(&proxy, &crd, &[]);
    assert_proved(&crd, &ran, 4);
    let size = crd.api().get(&crd.object_path("v2", "cog-2")).ok()["spec"]["size"].as_u64();
    assert!(size.is_some_and(|size| size >= 100), "{size:?}");
    // One write an object and pass, and one for each conflict.
    assert!(written(&proxy) <= 3 * 4 + 2, "{} writes", written(&proxy));
}

/// Such a server stores what is written in the old version: a write that changes nothing proves nothing.
fn a_server_that_has_not_heard_of_the_storage_version_is_waited_for() {
    for command in ["migrate", "verify"] {
        let crd = flipped("trouble-late-server", 3);
        if command == "verify" {
            crd.pushback().run(&["storage", "migrate", &crd.name()]).expect(0);
        }
        let proxy = proxy();
        let path = format!("/apis/{}/v2", crd.group);
        let is_discovery = move |request: &Request| request.path == path;
        let old = |discovery: &mut Value| discovery["resources"][0]["storageVersionHash"] = json!("of v1");
        proxy.on(any().that(is_discovery.clone()).first(3), Fault::edit(old));
        let ran = proxied(&proxy, &crd).run(&["storage", command, &crd.name(), "--settle", "0s"]);
        assert_proved(&crd, &ran, 3);
        let log: Vec<Request> = proxy.requests().into_iter().map(|exchange| exchange.request).collect();
        let first_write = log.iter().position(|request| request.verb == Verb::Patch).expect("a write");
        let asked = log.iter().take(first_write).filter(|request| is_discovery(request)).count();
        assert_eq!(asked, 4, "{command}");
    }
}

/// Each write of such a client names the old version in the field owners, which a pass moves.
fn objects_that_a_client_of_the_old_version_writes_before_each_pass_are_proved() {
    for command in ["migrate", "verify"] {
        let crd = flipped("trouble-old-client", 3);
        if command == "verify" {
            crd.pushback().run(&["storage", "migrate", &crd.name()]).expect(0);
        }
        let (path, api) = (crd.object_path("v1", "cog-2"), crd.api());
        let proxy = proxy();
        proxy.before(matching(Verb::List, "cogs"), move |request| {
            api.merge_patch(&path, &json!({"spec": {"size": 100 + request.number}})).ok();
        });
        let ran = proxied(&proxy, &crd).run(&["storage", command, &crd.name()]);
        assert_proved(&crd, &ran, 3);
    }
}

/// No guarded write succeeds. The default of the new version would make an ordinary patch drop the owners.
fn object_that_a_client_of_the_old_version_writes_before_each_write_is_moved_with_its_owners() {
    let crd = TestCrd::new("trouble-each-write");
    crd.put(&[("v1", true, true, size())]);
    crd.create("v1", 3);
    let with_default = json!({"size": {"type": "integer"}, "mode": {"type": "string", "default": "slow"}});
    crd.put(&[("v1", true, false, size()), ("v2", true, true, with_default)]);
    let (path, api) = (crd.object_path("v1", "cog-2"), crd.api());
    let managers = |version: &str| {
        let object = crd.api().get(&crd.object_path(version, "cog-2")).ok();
        let entries = object["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
        entries.iter().map(|entry| entry["manager"].clone()).collect::<Vec<_>>()
    };
    let before = managers("v1");
    assert!(!before.is_empty());
    let proxy = proxy();
    proxy.before(rewrite_of("cog-2"), move |request| {
        api.merge_patch(&path, &json!({"spec": {"size": 100 + request.number}})).ok();
    });
    let ran = migrate(&proxy, &crd, &[]);
    assert_proved(&crd, &ran, 3);
    for manager in before {
        assert!(managers("v2").contains(&manager), "{manager} lost its fields");
    }
    assert!(!ran.stdout.contains("kept field owners at an old version"), "{}", ran.stdout);
}

/// The server answers 409 too if its own attempts to write lose against others.
fn conflict_of_every_guarded_write_does_not_count_as_deleted() {
    let crd = flipped("trouble-conflicts", 2);
    let proxy = proxy();
    // Guarded writes, and the first without a guard.
    proxy.on(rewrite_of("cog-1").first(11), Fault::status(409));
    let ran = migrate(&proxy, &crd, &[]);
    assert_proved(&crd, &ran, 2);
    assert!(!ran.stdout.contains("deleted meanwhile"), "{}", ran.stdout);
}

/// etcd holds the new version alone, although the client writes until the end.
fn migrate_beside_a_client_of_the_old_version_in_a_tight_loop_ends_with_0() {
    let crd = flipped("trouble-tight-loop", 3);
    let (path, api) = (crd.object_path("v1", "cog-2"), crd.api());
    let (is_done, writes) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                let size = writes.fetch_add(1, Ordering::Relaxed);
                api.merge_patch(&path, &json!({"spec": {"size": size}})).ok();
            }
        });
        let ran = crd.pushback().run(&["storage", "migrate", &crd.name()]);
        is_done.store(true, Ordering::Relaxed);
        assert_proved(&crd, &ran, 3);
    });
    assert!(writes.into_inner() > 0);
}

fn an_object_that_is_deleted_meanwhile_stays_deleted() {
    let crd = flipped("trouble-deleted", 3);
    let (path, api) = (crd.object_path("v2", "cog-1"), crd.api());
    let proxy = proxy();
    proxy.before(rewrite_of("cog-1").first(1), move |_| drop(api.delete(&path)));
    let ran = migrate(&proxy, &crd, &[]);
    assert_proved(&crd, &ran, 2);
    assert!(ran.stdout.contains("1 were deleted meanwhile"), "{}", ran.stdout);
    assert_eq!(written(&proxy), 3 + 2, "each object once, and once more for the proof");
    assert_eq!(crd.api().get(&crd.object_path("v2", "cog-1")).status, 404);
}

fn a_busy_server_and_an_expired_list_cost_a_retry_each() {
    let crd = flipped("trouble-busy", 9);
    let proxy = proxy();
    proxy.on(rewrite_of("cog-3").first(2), Fault::status(429).retry_after(1));
    proxy.on(later_pages("cogs").first(1), Fault::status(410));
    proxy.on(rewrite_of("cog-5").first(1), Fault::close());
    proxy.on(rewrite_of("cog-7").first(1), Fault::status(503));
    let ran = migrate(&proxy, &crd, &["--page", "4"]);
    assert_proved(&crd, &ran, 9);
    assert_eq!(written(&proxy), 9 + 4 + 9 + 4, "each object, the first page again, the proof, and each failure");
}

fn a_definition_that_changes_meanwhile_keeps_its_list() {
    let crd = flipped("trouble-changed", 2);
    let proxy = proxy();
    let (api, manifest, path) = (
        crd.api(),
        crd.manifest(&[("v1", true, false, size()), ("v2", true, true, size()), ("v3", true, false, size())]),
        crd.path(),
    );
    proxy.after(rewrite_of("cog-0").nth(2), move |_| {
        let patch = json!({"spec": {"versions": manifest["spec"]["versions"]}});
        api.merge_patch(&path, &patch).ok();
    });
    let ran = migrate(&proxy, &crd, &[]);
    assert_eq!(ran.code, 20, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stderr.contains("was changed during the migration"), "{}", ran.stderr);
    assert_eq!(written(&proxy), 2 + 2);
    assert_eq!(crd.stored_versions(), json!(["v1", "v2"]));
    assert_proved(&crd, &crd.pushback().run(&["storage", "migrate", &crd.name()]), 2);
}

fn an_object_that_the_server_cannot_write_is_named_and_the_list_stays() {
    let crd = flipped("trouble-refused", 3);
    let proxy = proxy();
    // Whatever way of writing is tried.
    proxy.on_each(|request| {
        let is_meant = request.name == "cog-1" && matches!(request.verb, Verb::Patch | Verb::Apply);
        is_meant.then(|| Fault::status(422))
    });
    let ran = migrate(&proxy, &crd, &[]);
    assert_eq!(ran.code, 20, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains(&format!("failed: {}/cog-1: ", crd.namespace)), "{}", ran.stdout);
    assert_eq!((crd.in_etcd().as_str(), crd.stored_versions()), ("v1: 1, v2: 2", json!(["v1", "v2"])));
    assert_eq!(written(&proxy), 3, "what is refused once as a patch is not sent again as one");
    assert_proved(&crd, &crd.pushback().run(&["storage", "migrate", &crd.name()]), 3);
}

fn a_killed_migration_goes_on_behind_its_last_page() {
    let crd = flipped("trouble-killed", 12);
    let name = crd.name();
    let arguments: Vec<String> =
        ["storage", "migrate", &name, "--page", "3", "--workers", "1"].map(str::to_owned).to_vec();
    let place = crd.pushback();
    let killed = killed(TestCluster::shared(), &place, &arguments, matching(Verb::Patch, "cogs").nth(8), true);
    assert!(killed.is_some());
    let proxy = proxy();
    let ran = migrate(&proxy, &crd, &["--page", "3"]);
    assert_proved(&crd, &ran, 12);
    assert!(ran.stderr.contains("goes on where an earlier run stopped"), "{}", ran.stderr);
    // Two pages need no first pass again. Later pages show objects as they were when the list began, so that each of the
    // two that the killed run had written on its third page is a conflict.
    assert_eq!(written(&proxy), (12 - 6) + 2 + 12, "the rest, and the proof");
}

/// All requests that write in a usual run; every request in a full one.
fn a_bridge_killed_at_any_write_is_finished_by_the_next_run() {
    let points: fn() -> Matching = if rounds(0, 1) > 0 { any } else { writes };
    let wanted: &[Version] = &[("v2", true, true, size())];
    let mut number = 0;
    loop {
        number += 1;
        let crd = deployed("kill-bridge", &V1_AND_V2(), 3);
        let before = contents(&crd);
        let place = crd.pushback();
        place.write("wanted.yaml", format!("{}\n---\n{}", crd.manifest(wanted), without_clients()));
        let arguments = ["apply", "-a", "cogs", "-f", "wanted.yaml", "--storage", "bridge", "--yes"];
        let owned: Vec<String> = arguments.map(str::to_owned).to_vec();
        let was_killed = killed(TestCluster::shared(), &place, &owned, points().nth(number), number % 2 == 0).is_some();
        // Whatever is there can be read, before anything is mended.
        assert_eq!(contents(&crd), before, "killed at {number}");
        let ran = place.run(&arguments);
        assert_eq!(ran.code, 0, "killed at {number}: {}{}", ran.stdout, ran.stderr);
        assert_eq!(contents(&crd), before, "killed at {number}");
        assert_eq!((crd.in_etcd().as_str(), crd.stored_versions()), ("v2: 3", json!(["v2"])), "killed at {number}");
        if !was_killed {
            break;
        }
    }
    assert!(number > 6, "a bridge has more than {number} writes");
    let _ = writeln!(std::io::stderr(), "a bridge killed at {} points", number - 1);
}

/// uid and spec of every object.
fn contents(crd: &TestCrd) -> Vec<Value> {
    let objects = crd.api().list(&format!("/apis/{}/v2/namespaces/{}/cogs", crd.group, crd.namespace));
    objects.iter().map(|object| json!([object["metadata"]["uid"], object["spec"]])).collect()
}

fn a_restarted_api_server_is_waited_for() {
    let cluster = TestCluster::start(&crate::support::Options::default());
    let crd = TestCrd::on(Box::leak(Box::new(cluster)), "trouble-restart");
    super::migrate::flip(&crd, 6);
    let proxy = FaultProxy::start(crd.cluster().kubeconfig_path());
    let restarted = crd.cluster();
    proxy.after(rewrite_of("cog-2").first(1), move |_| {
        restarted.stop_api_server();
        restarted.restart_api_server();
    });
    let ran = migrate(&proxy, &crd, &["--workers", "2"]);
    assert_proved(&crd, &ran, 6);
}
