//! The server by itself: verdicts, reload of the policy, metrics, and what is refused at the start.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::server::AdmissionServer;
use super::{narrow, review, wide};
use crate::crd_pairs;
use crate::support::{Pushback, TestCase, cases};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        Nothing: verdict_of_each_pair_is_that_of_check,
        Nothing: changed_policy_is_used_and_an_unusable_one_is_not,
        Nothing: policy_that_cannot_be_served_is_refused_at_the_start,
        Nothing: many_reviews_at_once_are_all_answered,
    ]
}

/// The verdicts of `judge` are those of `check` on files, which a test of `judge` compares.
fn verdict_of_each_pair_is_that_of_check() {
    let mut pairs = crd_pairs::all_crds();
    pairs.retain(|(old, new)| old["metadata"]["name"] == new["metadata"]["name"] && old["spec"] != new["spec"]);
    assert!(pairs.len() > 800);
    let request = |(old, new): &(Value, Value)| {
        json!({"apiVersion": "pushback.dev/v1alpha1", "kind": "JudgeRequest", "old": old, "new": new}).to_string()
            + "\n"
    };
    let requests: String = pairs.iter().map(request).collect();
    let judged = Pushback::new().run_with_input(&["judge"], requests.as_bytes()).expect(0).events();
    let server = AdmissionServer::start(None, None, &[]);
    let mut connection = server.connect();
    let mut different = BTreeMap::new();
    for ((old, new), judged) in pairs.iter().zip(&judged) {
        let answer = connection.request("POST", "/admit?timeout=30s", &review(old, new)).expect("an answer");
        let answer: Value = serde_json::from_str(&answer.text()).expect("JSON");
        let found = |severity: &str| {
            judged["changes"].as_array().into_iter().flatten().any(|finding| finding["severity"] == severity)
        };
        let expected = match () {
            () if found("error") || judged.get("unable").is_some() => "refused",
            () if found("warning") => "warned",
            () => "passed",
        };
        let result = &answer["response"]["auditAnnotations"]["result"];
        if *result != expected || answer["response"]["allowed"] != (expected != "refused") {
            different.insert(old["metadata"]["name"].to_string(), format!("{expected}: {answer}"));
        }
    }
    assert!(different.is_empty(), "{different:#?}");
}

fn changed_policy_is_used_and_an_unusable_one_is_not() {
    let policy = |settings: &str| {
        format!(
            "apiVersion: pushback.dev/v1alpha1\nkind: Config\npreflightRules:\n- name: CRDUpgradeSafety\n{settings}"
        )
    };
    let server = AdmissionServer::start(Some(&policy("")), None, &[]);
    let broken = review(&wide("ex.com"), &narrow("ex.com"));
    assert_eq!(server.ask(&broken)["allowed"], false);
    server.place.write("policy.yaml", policy("  config: {mode: wrn}\n"));
    server.wait_for("the policy has changed and cannot be used");
    assert_eq!(server.ask(&broken)["allowed"], false);
    assert!(server.metrics().contains("pushback_admission_stale{source=\"policy\"} 1\n"));
    server.place.write("policy.yaml", policy("  config: {mode: warn}\n- name: References\n"));
    server.wait_for("policy in use (generation 2): policy.yaml; not used here: rule References");
    let warned = server.ask(&broken);
    assert_eq!((&warned["allowed"], &warned["auditAnnotations"]["result"]), (&json!(true), &json!("warned")));
    let metrics = server.metrics();
    for line in [
        "pushback_admission_requests_total{operation=\"update\",result=\"refused\"} 2\n",
        "pushback_admission_requests_total{operation=\"update\",result=\"warned\"} 1\n",
        "pushback_admission_policy_generation 2\n",
        "pushback_admission_stale{source=\"policy\"} 0\n",
        "pushback_admission_request_duration_seconds_count 3\n",
    ] {
        assert!(metrics.contains(line), "{line}{metrics}");
    }
    let exempt = policy("admissionExemptions:\n- {user: dev, reason: on call}\n");
    server.place.write("policy.yaml", exempt);
    server.wait_for("policy in use (generation 3)");
    assert_eq!(server.ask(&broken)["auditAnnotations"]["exempt"], "user dev (on call)");
    assert!(server.log().contains("update of foos.ex.com by dev refused: foos.ex.com v1 spec.f: "), "{}", server.log());
}

fn policy_that_cannot_be_served_is_refused_at_the_start() {
    let place = Pushback::new();
    place.write("tls.crt", "").write("tls.key", "");
    let head = "apiVersion: pushback.dev/v1alpha1\nkind: Config\n";
    for (policy, expected) in [
        (format!("{head}preflightRules: []\n"), "the policy does not run CRDUpgradeSafety"),
        (format!("{head}preflightRules:\n- name: References\n"), "the policy does not run CRDUpgradeSafety"),
        (format!("{head}preflightRules:\n- name: CRDUpgradeSafetty\n"), "did you mean \"CRDUpgradeSafety\"?"),
        (
            format!("{head}admissionExemptions:\n- {{user: a, group: b, reason: c}}\n"),
            "expected either `user` or `group`",
        ),
        (format!("{head}admissionExemptions:\n- {{user: a}}\n"), "missing key `reason`"),
        ("apiVersion: v1\nkind: Secret\nmetadata: {name: a}\n".to_owned(), "policy.yaml"),
    ] {
        place.write("policy.yaml", &policy);
        let start = ["serve-admission", "--tls-cert", "tls.crt", "--tls-key", "tls.key", "--config", "policy.yaml"];
        let ran = place.run(&[&start[..], &["--listen", "127.0.0.1:0"]].concat()).expect(1);
        assert!(ran.stderr.contains(expected), "{policy}{}", ran.stderr);
    }
}

fn many_reviews_at_once_are_all_answered() {
    let server = AdmissionServer::start(None, None, &[]);
    let (broken, safe) = (review(&wide("ex.com"), &narrow("ex.com")), review(&narrow("ex.com"), &wide("ex.com")));
    std::thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                for _ in 0..10 {
                    assert_eq!(server.ask(&broken)["allowed"], false);
                    assert_eq!(server.ask(&safe)["allowed"], true);
                }
            });
        }
    });
}
