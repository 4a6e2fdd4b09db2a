//! The manifests that are printed: rights, failure policy, and what never reaches the webhook.

use serde_json::{Value, json};

use crate::support::{Pushback, TestCase, TestCluster, cases};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        Nothing: rights_are_those_of_the_named_groups,
        Nothing: arguments_that_cannot_be_used_are_refused,
        ApiServer: api_server_accepts_every_manifest,
    ]
}

const PRINT: [&str; 6] = ["serve-admission", "print-manifests", "--image", "registry.example/pushback:1", "-o", "json"];

#[track_caller]
fn printed(more: &[&str]) -> Vec<Value> {
    let list = Pushback::new().run(&[&PRINT[..], more].concat()).expect(0).json();
    list["items"].as_array().expect("items").clone()
}

fn of_kind<'o>(objects: &'o [Value], kind: &str) -> Option<&'o Value> {
    objects.iter().find(|object| object["kind"] == kind)
}

fn rights_are_those_of_the_named_groups() {
    let without = printed(&[]);
    assert!(of_kind(&without, "ClusterRole").is_none());
    let webhook = &of_kind(&without, "ValidatingWebhookConfiguration").expect("a configuration")["webhooks"][0];
    assert_eq!((&webhook["failurePolicy"], &webhook["timeoutSeconds"]), (&json!("Ignore"), &json!(5)));
    let with = printed(&["--read-group", "argoproj.io", "--failure-policy", "fail", "--timeout", "3"]);
    let rules = json!([{"apiGroups": ["argoproj.io"], "resources": ["*"], "verbs": ["list"]}]);
    assert_eq!(of_kind(&with, "ClusterRole").expect("a role")["rules"], rules);
    let webhook = &of_kind(&with, "ValidatingWebhookConfiguration").expect("a configuration")["webhooks"][0];
    assert_eq!((&webhook["failurePolicy"], &webhook["timeoutSeconds"]), (&json!("Fail"), &json!(3)));
    assert_eq!(with.last().map(|last| &last["kind"]), Some(&json!("ValidatingWebhookConfiguration")));
}

fn arguments_that_cannot_be_used_are_refused() {
    let place = Pushback::new();
    place.write("text.crt", "not PEM");
    for (arguments, expected) in [
        (&["--read-group", "*"][..], "--read-group \"*\": expected the name of an API group"),
        (&["--ca-file", "text.crt"], "text.crt: it is not PEM"),
        (&["--config", "none.yaml"], "--config none.yaml: it cannot be read"),
        (&["--url", "http://a", "--ca-file", "text.crt"], "with https alone"),
        (&["--timeout", "31"], "31 is not in 2..=30"),
    ] {
        let ran = place.run(&[&PRINT[..], arguments].concat()).expect(1);
        assert!(ran.stderr.contains(expected), "{}", ran.stderr);
    }
}

fn api_server_accepts_every_manifest() {
    let cluster = TestCluster::shared();
    let namespace = cluster.namespace("admission-manifests");
    let more =
        ["--webhook-namespace", &namespace, "--read-group", "ex.com", "--exempt-user", "a\"b'c", "--exempt-group", "g"];
    for object in printed(&more) {
        // cert-manager is not installed.
        if object["apiVersion"] != "cert-manager.io/v1" {
            cluster.api().apply_with(&object, "fieldManager=test&fieldValidation=Strict&dryRun=All").ok();
        }
    }
}
