//! Waiting as kapp tells it: the conditions of wait rules, what is still not ready, and what somebody else has created. The
//! texts are those of a real kapp on the same input.

use std::time::Duration;

use serde_json::json;

use crate::support::api::ApiClient;
use crate::support::{Pushback, Ran, TestCase, TestCluster, cases, wait_until};

pub(super) fn tests() -> Vec<TestCase> {
    cases![
        ApiServer: the_condition_of_a_wait_rule_is_told,
        ApiServer: everything_that_is_not_ready_is_listed,
        ApiServer: what_exists_already_is_not_shown,
        ApiServer: what_nobody_creates_is_named_when_time_is_up,
        ApiServer: a_deletion_is_not_waited_for_where_its_annotation_says_so,
        ApiServer: an_unknown_key_of_a_config_is_a_warning,
    ]
}

fn api() -> &'static ApiClient {
    TestCluster::shared().api()
}

fn kapp(namespace: &str) -> Pushback {
    Pushback::on(TestCluster::shared()).with("PUSHBACK_VOICE", "kapp").with("KAPP_NAMESPACE", namespace)
}

/// The lines of the progress, without their times.
fn progress(ran: &Ran) -> Vec<&str> {
    ran.stdout.lines().filter_map(|line| line.split_once("M: ").map(|(_, text)| text)).collect()
}

const RULE: &str = "apiVersion: kapp.k14s.io/v1alpha1
kind: Config
waitRules:
- conditionMatchers:
  - {type: Failed, status: 'True', failure: true}
  - {type: Started, status: 'True', unblockChanges: true}
  - {type: Ready, status: 'True', success: true}
  resourceMatchers: [{apiVersionKindMatcher: {apiVersion: voice.example.com/v1, kind: Gadget}}]
---
apiVersion: voice.example.com/v1
kind: Gadget
metadata: {name: one}
";

fn the_condition_of_a_wait_rule_is_told() {
    api()
        .apply(&json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "gadgets.voice.example.com"},
            "spec": {
                "group": "voice.example.com", "scope": "Namespaced",
                "names": {"plural": "gadgets", "singular": "gadget", "kind": "Gadget"},
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema":
                    {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}],
            },
        }))
        .ok();
    let namespace = TestCluster::shared().namespace("conditions");
    let path = format!("/apis/voice.example.com/v1/namespaces/{namespace}/gadgets/one");
    let example = json!({"apiVersion": "voice.example.com/v1", "kind": "Gadget", "metadata": {"namespace": namespace}});
    wait_until("the kind is served", Duration::from_secs(60), || api().serves(&example).then_some(()));
    let kapp = kapp(&namespace);
    kapp.write("app.yaml", RULE);
    let deploy = || kapp.run(&["deploy", "-a", "gadgets", "-f", "app.yaml", "-y", "--wait-timeout", "1s"]);
    let conditions = |conditions: serde_json::Value| {
        let patch = json!({"status": {"conditions": conditions}});
        api().request("PATCH", &path, Some("application/merge-patch+json"), Some(&patch)).expect("an answer").ok();
    };
    let one = format!("gadget/one (voice.example.com/v1) namespace: {namespace}");

    let ran = deploy();
    assert!(progress(&ran).contains(&" ^ No failing or successful conditions found"), "{}", ran.stdout);
    assert_eq!(ran.stderr, format!("kapp: Error: Timed out waiting after 1s for resources: [{one}]\n"));

    conditions(json!([{"type": "Started", "status": "True", "reason": "Booting", "message": "half"}]));
    let ran = deploy();
    let expected = " ^ Allowing blocked changes to proceed: Encountered condition Started == True: Booting";
    assert!(progress(&ran).contains(&expected), "{}", ran.stdout);

    conditions(json!([{"type": "Failed", "status": "True", "reason": "Broken", "message": "no disk"}]));
    let ran = deploy();
    let expected = [
        "---- applying 1 changes [0/1 done] ----".to_owned(),
        format!("noop {one}"),
        "---- waiting on 1 changes [0/1 done] ----".to_owned(),
        format!("fail: reconcile {one}"),
        " ^ Encountered failure condition Failed == True: Broken (message: no disk)".to_owned(),
    ];
    assert_eq!(progress(&ran), expected);
    assert!(ran.stdout.contains("Op:      0 create, 0 delete, 0 update, 1 noop, 0 exists"), "{}", ran.stdout);
    assert_eq!(
        ran.stderr,
        format!(
            "kapp: Error: waiting on reconcile {one}:\n  Finished unsuccessfully (Encountered failure condition Failed \
             == True: Broken (message: no disk))\n"
        )
    );

    conditions(json!([{"type": "Ready", "status": "True"}]));
    let ran = deploy();
    assert!(ran.stdout.contains("Op:      0 create, 0 delete, 0 update, 0 noop, 0 exists"), "{}", ran.stdout);
}

fn everything_that_is_not_ready_is_listed() {
    let namespace = TestCluster::shared().namespace("late");
    let kapp = kapp(&namespace);
    let service = |name: &str| {
        format!(
            "apiVersion: v1\nkind: Service\nmetadata: {{name: {name}}}\nspec: {{type: LoadBalancer, ports: [{{port: 80}}]}}\n---\n"
        )
    };
    kapp.write("app.yaml", ["one", "two"].map(service).concat());
    let item = |name: &str, before: &str, after: &str| {
        format!("\n  - {before}service/{name} (v1) namespace: {namespace}{after}\n")
    };
    let both = |before: &str, after: &str| ["one", "two"].map(|name| item(name, before, after)).concat();
    let deploy = |more: &[&str]| kapp.run(&[&["deploy", "-a", "late", "-f", "app.yaml", "-y"], more].concat());
    let ran = deploy(&["--wait-timeout", "1s"]);
    let expected = format!("kapp: Error: Timed out waiting after 1s for resources: \n{}\n", both("", ""));
    assert_eq!((ran.code, ran.stderr.trim_end()), (1, expected.trim_end()));
    let ran = deploy(&["--wait-resource-timeout", "1s", "--exit-early-on-wait-error=false"]);
    let late = both("waiting on reconcile ", ": Errored: Resource timed out waiting after 1s");
    assert_eq!(ran.stderr.trim_end(), format!("kapp: Error: \n{late}").trim_end());
}

fn what_exists_already_is_not_shown() {
    let namespace = TestCluster::shared().namespace("there");
    let kapp = kapp(&namespace);
    api()
        .apply(
            &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "theirs", "namespace": namespace}}),
        )
        .ok();
    let theirs = "{name: theirs, annotations: {kapp.k14s.io/exists: ''}}";
    let config_map = |metadata: &str| format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {metadata}\n---\n");
    kapp.write("app.yaml", [theirs, "{name: own}"].map(config_map).concat());
    for changes in [1, 0] {
        let ran = kapp.run(&["deploy", "-a", "there", "-f", "app.yaml", "-y"]).expect(0);
        let expected = format!("Op:      {changes} create, 0 delete, 0 update, 0 noop, 0 exists");
        assert!(ran.stdout.contains(&expected) && !ran.stdout.contains("theirs"), "{}", ran.stdout);
    }
}

fn what_nobody_creates_is_named_when_time_is_up() {
    let namespace = TestCluster::shared().namespace("nobody");
    let kapp = kapp(&namespace);
    let absent = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: absent, annotations: {kapp.k14s.io/exists: ''}}\n";
    kapp.write("app.yaml", absent);
    let ran = kapp.run(&["deploy", "-a", "nobody", "-f", "app.yaml", "-y", "--wait-timeout", "1s"]).expect(1);
    let expected = format!(
        "kapp: Error: Timed out waiting after 1s for resources: [configmap/absent (v1) namespace: {namespace}]\n"
    );
    assert_eq!(ran.stderr, expected);
}

fn a_deletion_is_not_waited_for_where_its_annotation_says_so() {
    let namespace = TestCluster::shared().namespace("unwaited");
    let kapp = kapp(&namespace);
    let held = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: held\n  finalizers: [example.com/hold]\n  \
                annotations: {kapp.k14s.io/disable-wait: ''}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: plain}\n";
    kapp.write("app.yaml", held);
    kapp.run(&["deploy", "-a", "unwaited", "-f", "app.yaml", "-y"]).expect(0);
    let ran = kapp.run(&["delete", "-a", "unwaited", "-y", "--column", "name,wait_to"]).expect(0);
    for told in ["held   -", "plain  delete", "Wait to: 0 reconcile, 1 delete, 1 noop"] {
        assert!(ran.stdout.contains(told), "{told}: {}", ran.stdout);
    }
    let noop = format!("ok: noop configmap/held (v1) namespace: {namespace}");
    assert!(progress(&ran).contains(&noop.as_str()), "{}", ran.stdout);
    let path = format!("/api/v1/namespaces/{namespace}/configmaps/held");
    let patch = json!({"metadata": {"finalizers": null}});
    api().request("PATCH", &path, Some("application/merge-patch+json"), Some(&patch)).expect("an answer").ok();
}

fn an_unknown_key_of_a_config_is_a_warning() {
    let namespace = TestCluster::shared().namespace("keys");
    let kapp = kapp(&namespace);
    let config = "---\napiVersion: kapp.k14s.io/v1alpha1\nkind: Config\nwaitRulez: []\n";
    kapp.write("app.yaml", format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: own}}\n{config}"));
    let deploy = |more: &[&str]| kapp.run(&[&["deploy", "-a", "keys", "-f", "app.yaml", "-y"], more].concat());
    let ran = deploy(&[]).expect(0);
    let expected =
        "Warning: app.yaml:7:1: unknown key \"waitRulez\" of a Config is ignored; did you mean `waitRules`?\n";
    assert_eq!(ran.stderr, expected);
    assert!(deploy(&["--strict"]).expect(1).stderr.contains("waitRulez: unknown key"));
}
