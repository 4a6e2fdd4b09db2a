//! Field owners after a migration: what each way of writing an unchanged object makes of them, and whether the owner's
//! next server-side apply removes a field that it no longer sets.

use serde_json::{Value, json};

use super::crd::TestCrd;
use crate::support::api::Answer;
use crate::support::{TestCase, cases};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        ApiServer: ways_of_writing_where_both_versions_have_one_schema,
        ApiServer: ways_of_writing_where_the_new_version_adds_a_default,
    ]
}

const OWNER: &str = "fieldManager=owner&force=true";

fn properties() -> Value {
    json!({"a": {"type": "string"}, "c": {"type": "string"}})
}

fn with_default() -> Value {
    json!({"a": {"type": "string"}, "c": {"type": "string"}, "y": {"type": "string", "default": "added"}})
}

/// How an object is written so that it is stored in the storage version, and whether this tool goes over it afterwards.
type Way = (&'static str, bool, fn(&TestCrd, &str) -> Option<Answer>);

/// Each on an object of its own. What other tools send is sent raw.
const WAYS: [Way; 8] = [
    ("merge", false, merge),
    ("put", false, |crd, name| {
        let path = crd.object_path("v2", name);
        Some(crd.api().put(&path, &crd.api().get(&path).ok()))
    }),
    ("apply", false, apply),
    ("status-merge", false, |crd, name| Some(crd.api().merge_patch(&status_path(crd, name), &json!({})))),
    ("status-json", false, |crd, name| {
        let content_type = Some("application/json-patch+json");
        crd.api().request("PATCH", &status_path(crd, name), content_type, Some(&json!([]))).ok()
    }),
    ("pushback", true, |_, _| None),
    ("merge-then-pushback", true, merge),
    ("apply-then-pushback", true, apply),
];

fn merge(crd: &TestCrd, name: &str) -> Option<Answer> {
    Some(crd.api().merge_patch(&crd.object_path("v2", name), &json!({})))
}

fn apply(crd: &TestCrd, name: &str) -> Option<Answer> {
    let live = crd.api().get(&crd.object_path("v2", name)).ok();
    let mut minimal = json!({"apiVersion": live["apiVersion"], "kind": live["kind"], "metadata": {}});
    for key in ["name", "namespace", "uid", "resourceVersion"] {
        minimal["metadata"][key] = live["metadata"][key].clone();
    }
    Some(crd.api().apply_with(&minimal, "fieldManager=migrator"))
}

fn status_path(crd: &TestCrd, name: &str) -> String {
    format!("{}/status", crd.object_path("v2", name))
}

/// An object a way, applied by `owner` at v1; each is written so that it is stored in v2; then `owner` applies it at v2
/// without `c`. One row each: what the write made of generation and entries, and what becomes of the field.
#[track_caller]
fn rows(prefix: &str, new: Value) -> Vec<String> {
    let crd = TestCrd::new(prefix);
    crd.put(&[("v1", true, true, properties())]);
    for (name, ..) in WAYS {
        crd.api().apply_with(&crd.object("v1", name, &json!({"a": "1", "c": "1"})), OWNER).ok();
    }
    crd.put(&[("v1", true, false, properties()), ("v2", true, true, new)]);
    for (name, _, way) in WAYS {
        if let Some(answer) = way(&crd, name) {
            assert!(answer.status < 300, "{name}: {}", answer.body);
        }
    }
    assert_eq!(crd.in_etcd(), "v1: 1, v2: 7", "each way moves its object");
    let rows = |ours: bool| WAYS.iter().filter(move |way| way.1 == ours).map(|way| row(&crd, way.0)).collect();
    let others: Vec<String> = rows(false);
    let ran = crd.pushback().run(&["storage", "migrate", &crd.name()]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert_eq!(crd.in_etcd(), "v2: 8");
    [others, rows(true)].concat()
}

fn row(crd: &TestCrd, name: &str) -> String {
    let written = crd.api().get(&crd.object_path("v2", name)).ok()["metadata"].clone();
    let entries = written["managedFields"].as_array().into_iter().flatten();
    let entries: Vec<String> = entries
        .map(|entry| {
            let version = entry["apiVersion"].as_str().and_then(|version| version.rsplit('/').next());
            format!("{}@{}", entry["manager"].as_str().unwrap_or_default(), version.unwrap_or_default())
        })
        .collect();
    let entries = if entries.is_empty() { "nobody".to_owned() } else { entries.join(" ") };
    let applied = crd.api().apply_with(&crd.object("v2", name, &json!({"a": "2"})), OWNER);
    let field = match (applied.status, applied.body["spec"].get("c")) {
        (200, None) => "removed".to_owned(),
        (200, Some(_)) => "kept".to_owned(),
        (status, _) => format!("{status} {}", applied.message()),
    };
    format!("{name}: generation {}, {entries}, c {field}", written["generation"])
}

fn ways_of_writing_where_both_versions_have_one_schema() {
    assert_eq!(
        rows("owners-same", properties()),
        [
            "merge: generation 1, owner@v1, c removed",
            "put: generation 1, owner@v1, c removed",
            "apply: generation 1, owner@v1, c removed",
            "status-merge: generation 1, owner@v1, c removed",
            "status-json: generation 1, owner@v1, c removed",
            "pushback: generation 1, owner@v2, c removed",
            "merge-then-pushback: generation 1, owner@v2, c removed",
            "apply-then-pushback: generation 1, owner@v2, c removed",
        ]
    );
}

/// Here the other ways take the owner its fields, or its next apply. What one of them has broken for good, no later run
/// can mend: the server keeps no trace of who owned what.
fn ways_of_writing_where_the_new_version_adds_a_default() {
    assert_eq!(
        rows("owners-default", with_default()),
        [
            "merge: generation 2, nobody, c kept",
            "put: generation 2, nobody, c kept",
            "apply: generation 1, owner@v1, c 500 .spec.y: field not declared in schema",
            "status-merge: generation 1, nobody, c kept",
            "status-json: generation 1, nobody, c kept",
            "pushback: generation 2, owner@v2 pushback@v2, c removed",
            "merge-then-pushback: generation 2, nobody, c kept",
            "apply-then-pushback: generation 1, owner@v2, c removed",
        ]
    );
}
