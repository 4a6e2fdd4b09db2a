//! CRDUpgradeSafety and the objects that are there, on a real API server: it names those that a new definition harms, lists
//! page by page and only where it is asked to, and claims nothing of objects that it could not see.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::api::ApiClient;
use crate::support::apply::TestApp;
use crate::support::case::show;
use crate::support::proxy::{Fault, FaultProxy, Matching, Verb, later_pages, matching};
use crate::support::{Pushback, TestCase, TestCluster, cases, wait_until};

const SOON: Duration = Duration::from_secs(60);
/// Objects that one request may bring.
const PAGE: usize = 250;
/// Two pages of them.
const FEW: usize = 300;

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        ApiServer: objects_that_suffer_are_named_page_by_page,
        ApiServer: objects_that_cannot_be_listed_leave_the_verdict,
        ApiServer: a_list_that_expires_under_way_is_counted_from_the_start,
        ApiServer: objects_count_in_every_version_that_is_served,
        ApiServer: value_that_a_read_may_have_filled_in_counts_as_possibly_affected,
        ApiServer: objects_of_a_kind_that_discovery_does_not_show_decide_all_the_same,
    ]
}

/// A version of notes whose text may be so long.
fn version(name: &str, most: usize) -> Value {
    let text = json!({"type": "string", "maxLength": most});
    json!({"name": name, "served": true, "storage": true, "schema": {"openAPIV3Schema": {
        "type": "object",
        "properties": {"spec": {"type": "object", "properties": {"text": text}}},
    }}})
}

/// Notes of a group of their own, in three namespaces, and an app behind a proxy that sees what is listed.
struct Notes {
    namespaces: [String; 3],
    group: String,
    proxy: FaultProxy,
    app: TestApp,
}

impl Notes {
    /// So many of them; three are longer than 10, on the first page and on the last.
    fn of(versions: &[Value], count: usize) -> Self {
        let notes = Self::without_any(versions);
        (0..count).for_each(|number| notes.create("v1", number, count));
        notes
    }

    fn without_any(versions: &[Value]) -> Self {
        let cluster = TestCluster::shared();
        let namespaces = ["live-a", "live-b", "live-c"].map(|prefix| cluster.namespace(prefix));
        let proxy = FaultProxy::start(cluster.kubeconfig_path());
        let app = TestApp::of(Pushback::with_kubeconfig(&proxy.kubeconfig()), "live", &namespaces[0]);
        let notes = Self { group: format!("{}.example.com", namespaces[0]), namespaces, proxy, app };
        notes.api().apply(&notes.definition(versions)).ok();
        let path = notes.collection("v1", 0);
        wait_until("the notes are served", SOON, || (notes.api().get(&path).status == 200).then_some(()));
        notes
    }

    fn api(&self) -> &'static ApiClient {
        TestCluster::shared().api()
    }

    fn definition(&self, versions: &[Value]) -> Value {
        let group = &self.group;
        json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("notes.{group}")},
            "spec": {
                "group": group, "scope": "Namespaced", "names": {"plural": "notes", "singular": "note", "kind": "Note"},
                "versions": versions,
            },
        })
    }

    fn collection(&self, version: &str, number: usize) -> String {
        format!("/apis/{}/{version}/namespaces/{}/notes", self.group, self.namespaces[number % 3])
    }

    fn create(&self, version: &str, number: usize, count: usize) {
        let text = if [1, 2, count - 1].contains(&number) { "much too long" } else { "short" };
        let note = json!({
            "apiVersion": format!("{}/{version}", self.group), "kind": "Note",
            "metadata": {"name": format!("note-{number:05}")}, "spec": {"text": text},
        });
        self.api().post(&self.collection(version, number), &note).ok();
    }

    /// The names of the three.
    fn long(&self, count: usize) -> Vec<String> {
        let name = |number: usize| format!("{}/note-{number:05}", self.namespaces[number % 3]);
        let mut names = [1, 2, count - 1].map(name).to_vec();
        names.sort();
        names
    }

    /// What a check finds of a version in an upgrade.
    fn check(&self, mode: &str, versions: &[Value], check: &str, of: &str) -> Found {
        let rules = json!([{"name": "CRDUpgradeSafety", "config": {"liveObjects": mode}}]);
        let config = json!({"apiVersion": "pushback.dev/v1alpha1", "kind": "Config", "preflightRules": rules});
        self.app.pushback.write("config.yaml", config.to_string());
        self.app.pushback.write("app.yaml", self.definition(versions).to_string());
        let lists = || self.proxy.count(&matching(Verb::List, "notes"));
        let (before, began) = (lists(), Instant::now());
        let ran = self.app.run("check", &["-f", "app.yaml", "--config", "config.yaml"]);
        let (took, requests) = (began.elapsed(), lists() - before);
        let report = ran.json();
        let findings = report["findings"].as_array().expect("findings").clone();
        let about = |finding: &Value| finding["check"] == check && finding["version"] == of;
        let finding = findings.into_iter().find(about).expect("a finding");
        Found { code: ran.code, finding, requests, took }
    }

    /// The same with one version.
    fn tighten(&self, mode: &str, most: usize) -> Found {
        self.check(mode, &[version("v1", most)], "maxLength", "v1")
    }

    /// With requests that fail.
    fn tighten_where(&self, meant: Matching, status: u16, mode: &str, most: usize) -> Found {
        self.proxy.on(meant, Fault::status(status));
        let found = self.tighten(mode, most);
        self.proxy.clear();
        found
    }
}

struct Found {
    code: i32,
    finding: Value,
    /// Lists of notes.
    requests: usize,
    took: Duration,
}

impl Found {
    /// Affected and examined objects; `None` where nothing is said of them.
    fn counts(&self) -> Option<(u64, u64)> {
        let live = &self.finding["liveObjects"];
        Some((live["affected"].as_u64()?, live["examined"].as_u64()?))
    }

    fn names(&self) -> Vec<String> {
        let names = self.finding["liveObjects"]["names"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let mut names: Vec<String> = names.map(ToOwned::to_owned).collect();
        names.sort();
        names
    }

    /// It refuses, and says that objects could not be looked at rather than that there are none.
    #[track_caller]
    fn claims_nothing(&self, reason: &str) {
        assert_eq!((self.code, self.counts()), (10, None), "{}", self.finding);
        assert_eq!((&self.finding["verdict"], &self.finding["severity"]), (&json!("breaking"), &json!("error")));
        let message = self.finding["message"].as_str().unwrap_or_default();
        assert!(message.contains("its objects could not be listed") && message.contains(reason), "{message}");
        assert!(!message.contains("no object that is there now"), "{message}");
    }
}

fn objects_that_suffer_are_named_page_by_page() {
    let full = std::env::var("PUSHBACK_ROUNDS").is_ok_and(|rounds| rounds == "full");
    let count = if full { 5_000 } else { FEW };
    let notes = Notes::of(&[version("v1", 20)], count);
    let pages = count.div_ceil(PAGE);
    for (mode, most, affected, severity) in [
        ("report", 10, 3, "error"),
        ("decide", 10, 3, "error"),
        ("report", 15, 0, "error"),
        ("auto", 10, 3, "error"),
        ("auto", 15, 0, "warning"),
        ("decide", 15, 0, "warning"),
    ] {
        let before = notes.proxy.counts();
        let found = notes.tighten(mode, most);
        assert_eq!(found.counts(), Some((affected, count as u64)), "{}", found.finding);
        assert_eq!(found.names(), if affected == 0 { Vec::new() } else { notes.long(count) });
        assert_eq!((&found.finding["severity"], found.requests), (&json!(severity), pages), "{mode} {most}");
        let mut counts = notes.proxy.counts();
        counts.retain(|kind, number| {
            *number -= before.get(kind).copied().unwrap_or_default();
            *number > 0
        });
        let (all, took): (usize, Duration) = (counts.values().sum(), found.took);
        show(&format!("{mode}: {affected} of {count}, {pages} pages, {took:?}, {all} requests: {counts:?}"));
    }
    let found = notes.tighten("off", 10);
    assert_eq!((found.counts(), found.requests), (None, 0), "{}", found.finding);
}

fn value_that_a_read_may_have_filled_in_counts_as_possibly_affected() {
    let with = |group: Value| {
        json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object",
            "properties": {"spec": {"type": "object", "properties": {"text": {"type": "string"}, "group": group}}}}}})
    };
    let default = |value: &str| with(json!({"type": "string", "default": value}));
    let notes = Notes::without_any(&[with(json!({"type": "string"}))]);
    // What the first one lacks, a read fills in once there is a default.
    for (name, spec) in [("bare", json!({"text": "a"})), ("set", json!({"text": "a", "group": "one"}))] {
        let api_version = format!("{}/v1", notes.group);
        let note = json!({"apiVersion": api_version, "kind": "Note", "metadata": {"name": name}, "spec": spec});
        notes.api().post(&notes.collection("v1", 0), &note).ok();
    }
    notes.api().apply(&notes.definition(&[default("one")])).ok();
    let bare = format!("{}/bare", notes.collection("v1", 0));
    let is_filled_in = || (notes.api().get(&bare).body["spec"]["group"] == "one").then_some(());
    wait_until("the default is read", SOON, is_filled_in);
    for new in [default("two"), with(json!({"type": "string"}))] {
        let found = notes.check("report", &[new], "default", "v1");
        assert_eq!((found.counts(), &found.finding["liveObjects"]["upTo"]), (Some((1, 2)), &json!(true)));
        assert_eq!(found.names(), [format!("{}/bare", notes.namespaces[0])]);
    }
}

fn objects_that_cannot_be_listed_leave_the_verdict() {
    let notes = Notes::of(&[version("v1", 20)], FEW);
    for mode in ["report", "auto", "decide"] {
        // Nothing that is there suffers: where it could be seen, `decide` would warn only.
        for (meant, status) in [(matching(Verb::List, "notes"), 403), (later_pages("notes"), 403)] {
            notes.tighten_where(meant, status, mode, 15).claims_nothing("403");
        }
    }
    let found = notes.tighten("decide", 15);
    assert_eq!((found.code, &found.finding["severity"]), (0, &json!("warning")), "{}", found.finding);
}

fn a_list_that_expires_under_way_is_counted_from_the_start() {
    let notes = Notes::of(&[version("v1", 20)], FEW);
    // The first page again, and no object twice.
    let found = notes.tighten_where(later_pages("notes").first(2), 410, "report", 10);
    assert_eq!((found.counts(), found.requests), (Some((3, FEW as u64)), 6), "{}", found.finding);
    assert_eq!(found.names(), notes.long(FEW));
    let found = notes.tighten_where(later_pages("notes").first(1), 410, "decide", 15);
    assert_eq!((found.counts(), &found.finding["severity"]), (Some((0, FEW as u64)), &json!("warning")));
    // One that expires every time comes to no end.
    let found = notes.tighten_where(later_pages("notes"), 410, "decide", 15);
    found.claims_nothing("410");
    assert_eq!(found.requests, 8, "{}", found.finding);
}

fn objects_of_a_kind_that_discovery_does_not_show_decide_all_the_same() {
    let notes = Notes::of(&[version("v1", 20)], 9);
    // The discovery of a while ago does not have the kind: that is no proof that there are no objects.
    notes.proxy.hide_group(&notes.group);
    for (most, code, counts) in [(10, 10, Some((3, 9))), (15, 0, Some((0, 9)))] {
        let found = notes.tighten("auto", most);
        assert_eq!((found.code, found.counts()), (code, counts), "{}", found.finding);
    }
}

fn objects_count_in_every_version_that_is_served() {
    let unstored = |mut version: Value| {
        version["storage"] = false.into();
        version
    };
    let unserved = |mut version: Value| {
        version["served"] = false.into();
        version
    };
    const COUNT: usize = 9;
    let notes = Notes::without_any(&[version("v1", 20), unstored(version("v2", 20))]);
    (0..5).for_each(|number| notes.create("v1", number, COUNT));
    // What is written from now on is stored in the other version.
    let moved = [unstored(version("v1", 20)), version("v2", 20)];
    notes.api().apply(&notes.definition(&moved)).ok();
    let stored =
        || notes.api().get(&notes.api().path_of(&notes.definition(&[]))).ok()["status"]["storedVersions"].take();
    wait_until("both versions are stored", SOON, || (stored() == json!(["v1", "v2"])).then_some(()));
    (5..COUNT).for_each(|number| notes.create("v2", number, COUNT));

    let stricter = [unstored(version("v1", 10)), version("v2", 10)];
    for of in ["v1", "v2"] {
        let found = notes.check("report", &stricter, "maxLength", of);
        assert_eq!(found.counts(), Some((3, COUNT as u64)), "{of}: {}", found.finding);
        assert_eq!(found.names(), notes.long(COUNT), "{of}");
    }
    // Once a version is not served nobody can list what is in it: the finding about it stands, whatever the other shows.
    notes.api().apply(&notes.definition(&[unserved(unstored(version("v1", 20))), version("v2", 20)])).ok();
    let path = notes.collection("v1", 0);
    wait_until("the version is not served", SOON, || (notes.api().get(&path).status == 404).then_some(()));
    let mut emptied = unserved(unstored(version("v1", 20)));
    emptied["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"] = json!({});
    let milder = [emptied, version("v2", 15)];
    let found = notes.check("decide", &milder, "maxLength", "v2");
    assert_eq!((found.counts(), &found.finding["severity"]), (Some((0, COUNT as u64)), &json!("warning")));
    let found = notes.check("decide", &milder, "existingFieldRemoval", "v1");
    assert_eq!((found.counts(), &found.finding["severity"]), (None, &json!("error")), "{}", found.finding);
}
