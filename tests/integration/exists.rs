//! Annotation `kapp.k14s.io/exists`: what somebody else creates is waited for, a Namespace with objects in it too. The texts
//! under kapp's name are those of a real kapp on the same input.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use serde_json::json;

use crate::support::api::ApiClient;
use crate::support::apply::{TestApp, config_map_path, error};
use crate::support::pushback::Pushback;
use crate::support::{TestCase, TestCluster, cases};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        ApiServer: a_namespace_and_what_is_in_it_are_waited_for,
        ApiServer: what_nobody_creates_ends_the_run_when_its_time_is_over,
    ]
}

fn api() -> &'static ApiClient {
    TestCluster::shared().api()
}

/// A Namespace of somebody else, with an object of the app in it.
fn input(namespace: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Namespace\nmetadata: {{name: {namespace}, annotations: {{kapp.k14s.io/exists: ''}}}}\n---\n\
         apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: inside, namespace: {namespace}}}\n"
    )
}

fn a_namespace_and_what_is_in_it_are_waited_for() {
    let home = TestCluster::shared().namespace("exists");
    let theirs = format!("{home}-theirs");
    let kapp = Pushback::on(TestCluster::shared()).with("PUSHBACK_VOICE", "kapp").with("KAPP_NAMESPACE", home.as_str());
    kapp.write("app.yaml", input(&theirs));
    let mut run = kapp.command(&["deploy", "-a", "shop", "-f", "app.yaml", "--yes", "--apply-timeout", "60s"]);
    let mut child = run.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("the binary");
    let mut told = Vec::new();
    for line in BufReader::new(child.stdout.take().expect("a pipe")).lines() {
        told.push(line.expect("text"));
        if told.last().is_some_and(|line| line.ends_with("^ Retryable error: External resource doesn't exists")) {
            let path = config_map_path(&theirs, "inside");
            assert_eq!(api().get(&path).status, 404);
            api().apply(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": theirs}})).ok();
        }
    }
    assert!(child.wait().expect("an end").success(), "{told:#?}");
    let exists = format!(": exists namespace/{theirs} (v1) cluster");
    let of_namespace: Vec<&String> = told.iter().filter(|line| line.ends_with(&exists)).collect();
    assert_eq!(of_namespace.len(), 2, "before it is there, and after: {told:#?}");
    assert_eq!(told.last().map(String::as_str), Some("Succeeded"));
    let inside = api().get(&config_map_path(&theirs, "inside")).ok();
    assert!(inside["metadata"]["labels"]["kapp.k14s.io/app"].is_string());
    let namespace = api().get(&format!("/api/v1/namespaces/{theirs}")).ok();
    assert_eq!(namespace["metadata"]["labels"]["kapp.k14s.io/app"], json!(null), "it stays theirs");
}

fn what_nobody_creates_ends_the_run_when_its_time_is_over() {
    let home = TestCluster::shared().namespace("exists");
    let theirs = format!("{home}-theirs");
    let kapp = Pushback::on(TestCluster::shared()).with("PUSHBACK_VOICE", "kapp").with("KAPP_NAMESPACE", home.as_str());
    kapp.write("app.yaml", input(&theirs));
    let ran = kapp.run(&["deploy", "-a", "shop", "-f", "app.yaml", "--yes", "--apply-timeout", "2s"]);
    let expected = format!(
        "kapp: Error: Timed out waiting after 2s:\n  Last error: exists namespace/{theirs} (v1) cluster:\n    \
         External resource doesn't exists\n"
    );
    assert_eq!((ran.code, ran.stderr), (1, expected));

    let app = TestApp::new("other", &home);
    let ran = app.apply(&input(&theirs), &["--apply-timeout", "1s"]).expect(20);
    let failed =
        ran.events_of("change.done").into_iter().find(|event| event["outcome"] == "failed").expect("a failure");
    assert!(failed["message"].as_str().is_some_and(|text| text.starts_with("it does not exist (")), "{failed}");
    assert!(!error(&ran).is_empty());
    let note = ran.events_of("plan")[0].to_string();
    assert!(note.contains("does not exist yet") && !note.contains("is created by this run"), "{note}");
}
