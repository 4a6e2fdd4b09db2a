//! CRDUpgradeSafety and the objects that are there, on a real API server: it names those that a new definition harms, lists
//! page by page, and only where it is asked to.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::apply::TestApp;
use crate::support::proxy::FaultProxy;
use crate::support::{Pushback, TestCase, TestCluster, cases, wait_until};

const SOON: Duration = Duration::from_secs(60);
/// Objects that one request may bring.
const PAGE: usize = 250;

pub(crate) fn tests() -> Vec<TestCase> {
    cases![ApiServer: objects_that_suffer_are_named_page_by_page]
}

/// A definition whose text may be so long.
fn definition(group: &str, most: usize) -> Value {
    let text = json!({"type": "string", "maxLength": most});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("notes.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced", "names": {"plural": "notes", "singular": "note", "kind": "Note"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object",
                "properties": {"spec": {"type": "object", "properties": {"text": text}}},
            }}}],
        },
    })
}

fn objects_that_suffer_are_named_page_by_page() {
    let full = std::env::var("PUSHBACK_ROUNDS").is_ok_and(|rounds| rounds == "full");
    let count = if full { 5_000 } else { 300 };
    let cluster = TestCluster::shared();
    let api = cluster.api();
    let namespaces = ["live-a", "live-b", "live-c"].map(|prefix| cluster.namespace(prefix));
    let group = format!("{}.example.com", namespaces[0]);
    api.apply(&definition(&group, 20)).ok();
    let path = |namespace: &str| format!("/apis/{group}/v1/namespaces/{namespace}/notes");
    wait_until("the notes are served", SOON, || (api.get(&path(&namespaces[0])).status == 200).then_some(()));
    for number in 0..count {
        let namespace = &namespaces[number % 3];
        // Three of them are longer than the new definition allows, on the first page and on the last.
        let text = if [1, 2, count - 1].contains(&number) { "much too long" } else { "short" };
        let note = json!({
            "apiVersion": format!("{group}/v1"), "kind": "Note", "metadata": {"name": format!("note-{number:05}")},
            "spec": {"text": text},
        });
        api.post(&path(namespace), &note).ok();
    }
    let mut harmed: Vec<String> =
        [1, 2, count - 1].map(|number| format!("{}/note-{number:05}", namespaces[number % 3])).to_vec();
    harmed.sort();

    let proxy = FaultProxy::start(cluster.kubeconfig_path());
    let app = TestApp::of(Pushback::with_kubeconfig(&proxy.kubeconfig()), "live", &namespaces[0]);
    let lists = || proxy.counts().get("list notes").copied().unwrap_or_default();
    let check = |mode: &str, most: usize| {
        let rules = json!([{"name": "CRDUpgradeSafety", "config": {"liveObjects": mode}}]);
        let config = json!({"apiVersion": "pushback.dev/v1alpha1", "kind": "Config", "preflightRules": rules});
        app.pushback.write("config.yaml", config.to_string());
        app.pushback.write("app.yaml", definition(&group, most).to_string());
        let before = lists();
        let report = app.run("check", &["-f", "app.yaml", "--config", "config.yaml"]).json();
        let findings = report["findings"].as_array().expect("findings").clone();
        let found = findings.into_iter().find(|finding| finding["check"] == "maxLength").expect("a finding");
        (found, lists() - before)
    };
    let pages = count.div_ceil(PAGE);
    for (mode, most, affected, severity) in [
        ("report", 10, 3, "error"),
        ("decide", 10, 3, "error"),
        ("report", 15, 0, "error"),
        ("decide", 15, 0, "warning"),
    ] {
        let (finding, requests) = check(mode, most);
        let live = &finding["liveObjects"];
        assert_eq!((&live["affected"], &live["examined"]), (&json!(affected), &json!(count)), "{finding}");
        let mut names: Vec<&str> = live["names"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, if affected == 0 { Vec::new() } else { harmed.iter().map(String::as_str).collect() });
        assert_eq!((&finding["severity"], requests), (&json!(severity), pages), "{mode} {most}: {finding}");
    }
    let (finding, requests) = check("off", 10);
    assert_eq!((finding.get("liveObjects").filter(|live| !live.is_null()), requests), (None, 0), "{finding}");
}
