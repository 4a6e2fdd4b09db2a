//! Config documents at work on a real server: rebase rules, labels, wait rules, masks; and that Secret values
//! reach no output whatever.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::api::ApiClient;
use crate::support::apply::{TestApp, config_map, config_map_path, moment, parse_text, planned};
use crate::support::{TestCase, TestCluster, cases, kapp, wait_until};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        ApiServer: a_rebase_rule_keeps_what_is_live,
        ApiServer: a_rebase_rule_keeps_what_kapp_has_set,
        ApiServer: replicas_that_a_rule_leaves_to_others_are_not_written_after_scaling,
        ApiServer: additional_labels_are_on_every_object_and_template,
        ApiServer: a_wait_rule_decides_when_a_custom_resource_is_ready,
        ApiServer: expressions_decide_when_a_custom_resource_is_ready,
        ApiServer: a_rebase_rule_computes_a_value_and_refuses_where_it_cannot,
        ApiServer: findings_and_waivers_are_in_the_history,
        ApiServer: secret_values_reach_no_output,
        ApiServer: masked_fields_of_custom_resources_reach_no_output,
    ]
}

const WEB: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: 'registry.example/web:1'}]}
";

const SOON: Duration = Duration::from_secs(60);

fn api() -> &'static ApiClient {
    TestCluster::shared().api()
}

fn app(prefix: &str) -> TestApp {
    TestApp::new("shop", &TestCluster::shared().namespace(prefix))
}

fn config(keys: &str) -> String {
    format!("---\napiVersion: kapp.k14s.io/v1alpha1\nkind: Config\n{keys}")
}

/// What somebody else does to an object, as a field manager of their own.
fn patch_as(manager: &str, path: &str, patch: &Value) {
    let path = format!("{path}{}fieldManager={manager}", if path.contains('?') { '&' } else { '?' });
    let answer = api().request("PATCH", &path, Some("application/merge-patch+json"), Some(patch));
    answer.expect("an answer").ok();
}

fn keep_live(field: &str) -> String {
    config(&format!(
        "rebaseRules:\n- path: [data, {field}]\n  type: copy\n  sources: [existing, new]\n  resourceMatchers: [{{apiVersionKindMatcher: {{apiVersion: v1, kind: ConfigMap}}}}]\n"
    ))
}

fn a_rebase_rule_keeps_what_is_live() {
    let app = app("rebase");
    let path = config_map_path(&app.namespace, "a");
    app.apply(&[config_map("a", "1"), keep_live("key")].concat(), &[]).expect(0);
    assert_eq!(api().get(&path).ok()["data"]["key"], "1");
    patch_as("tuner", &path, &json!({"data": {"key": "tuned"}}));
    let ran = app.apply(&[config_map("a", "1"), keep_live("key")].concat(), &[]).expect(0);
    assert_eq!(api().get(&path).ok()["data"]["key"], "tuned", "{}", ran.stdout);
    assert_eq!(
        planned(&app.apply(&[config_map("a", "1"), keep_live("key")].concat(), &[]).expect(0)),
        Vec::<String>::new()
    );
    app.apply(&config_map("a", "1"), &[]).expect(0);
    assert_eq!(api().get(&path).ok()["data"]["key"], "1", "without the rule the manifest decides");
}

fn a_rebase_rule_keeps_what_kapp_has_set() {
    let namespace = TestCluster::shared().namespace("rebase");
    kapp::revive("01-plain", &[("kd-a", &namespace)]);
    let app = TestApp::new("shop", &namespace);
    let input = kapp::input("01-plain", 1, &[]).replace("mode: fast", "mode: from the manifest");
    app.apply(&[&input, keep_live("mode").as_str()].concat(), &["--wait=false"]).expect(0);
    let path = config_map_path(&namespace, "web-settings");
    assert_eq!(api().get(&path).ok()["data"], json!({"mode": "fast"}));
}

fn replicas_that_a_rule_leaves_to_others_are_not_written_after_scaling() {
    let app = app("scaled");
    let rule = config(
        "rebaseRules:\n- path: [spec, replicas]\n  type: copy\n  sources: [existing, new]\n  resourceMatchers: [{allMatcher: {}}]\n",
    );
    let apply = || app.apply(&[WEB, rule.as_str()].concat(), &["--wait=false"]).expect(0);
    apply();
    let path = format!("/apis/apps/v1/namespaces/{}/deployments/web", app.namespace);
    // The server records nobody as the owner of replicas that nobody has owned before.
    for replicas in [2, 3] {
        patch_as("scaler", &format!("{path}/scale"), &json!({"spec": {"replicas": replicas}}));
        assert_eq!(planned(&apply()), Vec::<String>::new());
        assert_eq!(api().get(&path).ok()["spec"]["replicas"], replicas);
    }
}

fn additional_labels_are_on_every_object_and_template() {
    let app = app("labels");
    let labels = |team: &str| config(&format!("additionalLabels: {{example.com/team: {team}}}\n"));
    app.apply(&[WEB, &config_map("a", "1"), &labels("shop")].concat(), &["--wait=false"]).expect(0);
    let deployment = api().get(&format!("/apis/apps/v1/namespaces/{}/deployments/web", app.namespace)).ok();
    let team = "example.com/team";
    assert_eq!(deployment["metadata"]["labels"][team], "shop");
    assert_eq!(deployment["spec"]["template"]["metadata"]["labels"][team], "shop");
    assert_eq!(deployment["spec"]["selector"]["matchLabels"][team], Value::Null);
    let path = config_map_path(&app.namespace, "a");
    assert_eq!(api().get(&path).ok()["metadata"]["labels"][team], "shop");
    app.apply(&[WEB, &config_map("a", "1")].concat(), &["--wait=false"]).expect(0);
    assert_eq!(api().get(&path).ok()["metadata"]["labels"][team], Value::Null);
}

/// Creates a CRD `KINDs.config.example.com` with a status, and waits until it is served.
fn define(kind: &str) {
    let plural = format!("{}s", kind.to_lowercase());
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.config.example.com")},
        "spec": {
            "group": "config.example.com", "scope": "Namespaced", "names": {"plural": plural, "kind": kind},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "properties": {
                        "password": {"type": "string", "maxLength": 40}, "mode": {"type": "string"},
                        "port": {"type": "integer"},
                    }},
                    "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                }}}}],
        },
    });
    api().apply(&definition).ok();
    let example = json!({"apiVersion": "config.example.com/v1", "kind": kind});
    wait_until("the kind is served", SOON, || api().serves(&example).then_some(()));
}

fn a_wait_rule_decides_when_a_custom_resource_is_ready() {
    define("Waited");
    let app = app("waits");
    let rule = config(
        "waitRules:
- conditionMatchers:
  - {type: Broken, status: 'True', failure: true}
  - {type: Fine, status: 'True', success: true}
  resourceMatchers: [{apiVersionKindMatcher: {apiVersion: config.example.com/v1, kind: Waited}}]
",
    );
    let waited = |name: &str| {
        format!(
            "---\napiVersion: config.example.com/v1\nkind: Waited\nmetadata:\n  name: {name}\n  annotations: {{kapp.k14s.io/change-group: {name}}}\n"
        )
    };
    let behind = |name: &str| {
        let rule = format!("upsert after upserting {name}");
        crate::support::apply::annotated("behind", &[("kapp.k14s.io/change-rule", &rule)])
    };
    let path = |name: &str| format!("/apis/config.example.com/v1/namespaces/{}/waiteds/{name}", app.namespace);
    let condition =
        |kind: &str| json!({"status": {"conditions": [{"type": kind, "status": "True", "message": "said so"}]}});

    // Nobody sets a condition: the object is not ready, and what waits for it is not written.
    let input = [waited("w"), behind("w"), rule.clone()].concat();
    app.apply(&input, &["--wait-timeout", "2s"]).expect(22);
    assert_eq!(api().get(&config_map_path(&app.namespace, "behind")).status, 404);
    patch_as("controller", &format!("{}/status", path("w")), &condition("Fine"));
    let ran = app.apply(&input, &[]).expect(0);
    assert_eq!(planned(&ran), ["create ConfigMap behind"]);
    // A failure is final.
    patch_as("controller", &format!("{}/status", path("w")), &condition("Broken"));
    let ran = app.apply(&input, &[]).expect(21);
    let events = ran.events();
    assert_eq!(events[moment(&events, "wait.done", "Waited w")]["outcome"], "failed");
    app.apply(&[waited("w"), behind("w")].concat(), &[]).expect(0);
}

fn expressions_decide_when_a_custom_resource_is_ready() {
    define("Judged");
    let app = app("expressions");
    let rule = config(
        "waitRules:
- cel:
    failed: object.status.phase == 'Broken'
    current: object.status.phase == 'Fine'
    unblock: object.status.phase == 'Begun'
    message: \"'phase ' + object.status.phase\"
  resourceMatchers: [{apiVersionKindMatcher: {apiVersion: config.example.com/v1, kind: Judged}}]
",
    );
    let judged = "---\napiVersion: config.example.com/v1\nkind: Judged\nmetadata:\n  name: j\n  annotations: \
                  {kapp.k14s.io/change-group: j}\n";
    let behind =
        crate::support::apply::annotated("behind", &[("kapp.k14s.io/change-rule", "upsert after upserting j")]);
    let status = format!("/apis/config.example.com/v1/namespaces/{}/judgeds/j/status", app.namespace);
    let enter = |phase: &str| patch_as("controller", &status, &json!({"status": {"phase": phase}}));
    let input = [judged, &behind, &rule].concat();
    // There is no status yet, which is no failure.
    let ran = app.apply(&input, &["--wait-timeout", "2s"]).expect(22);
    assert!(ran.end().to_string().contains("no such key: status"), "{}", ran.end());
    assert_eq!(api().get(&config_map_path(&app.namespace, "behind")).status, 404);
    enter("Begun");
    let ran = app.apply(&input, &["--wait-timeout", "2s"]).expect(22);
    assert!(ran.end().to_string().contains("phase Begun"), "{}", ran.end());
    assert_eq!(api().get(&config_map_path(&app.namespace, "behind")).status, 200);
    enter("Broken");
    let ran = app.apply(&input, &[]).expect(21);
    assert!(ran.end().to_string().contains("phase Broken"), "{}", ran.end());
    enter("Fine");
    app.apply(&input, &[]).expect(0);
}

fn a_rebase_rule_computes_a_value_and_refuses_where_it_cannot() {
    let app = app("computed");
    let path = config_map_path(&app.namespace, "a");
    let rule = |cel: &str| {
        config(&format!(
            "rebaseRules:\n- path: [data, key]\n  cel: {cel}\n  resourceMatchers: [{{apiVersionKindMatcher: \
             {{apiVersion: v1, kind: ConfigMap}}}}]\n"
        ))
    };
    let longer = rule("\"size(existing.data.key) > size(new.data.key) ? existing.data.key : new.data.key\"");
    app.apply(&[config_map("a", "1"), longer.clone()].concat(), &[]).expect(0);
    patch_as("tuner", &path, &json!({"data": {"key": "tuned"}}));
    app.apply(&[config_map("a", "1"), longer.clone()].concat(), &[]).expect(0);
    assert_eq!(api().get(&path).ok()["data"]["key"], "tuned");
    app.apply(&[config_map("a", "longer than that"), longer].concat(), &[]).expect(0);
    assert_eq!(api().get(&path).ok()["data"]["key"], "longer than that");
    let ran = app.apply(&[config_map("a", "2"), rule("existing.data.other")].concat(), &[]).expect(10);
    let told = ran.stdout + &ran.stderr;
    assert!(told.contains("the rebase rule of data.key fails: no such key: other"), "{told}");
    assert_eq!(api().get(&path).ok()["data"]["key"], "longer than that");
}

fn findings_and_waivers_are_in_the_history() {
    let app = app("waived");
    let group = format!("{}.example.com", app.namespace);
    let definition = |kind: &str| {
        format!(
            "---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: things.{group}}}
spec:
  group: {group}
  scope: Namespaced
  names: {{plural: things, singular: thing, kind: Thing}}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {{openAPIV3Schema: {{type: object, properties: {{spec: {{type: object, properties: {{size: {{type: {kind}}}}}}}}}}}}}
"
        )
    };
    app.apply(&definition("integer"), &[]).expect(0);
    // A rule that is asked for refuses what no object shows.
    let asked = "--preflight=CRDUpgradeSafety";
    let refused = app.apply(&definition("string"), &[asked]).expect(10);
    let events = refused.events();
    let finding = events.iter().find(|event| event["type"] == "finding").expect("a finding");
    let fingerprint = finding["finding"]["fingerprint"].as_str().expect("a fingerprint");
    assert_eq!(app.history().len(), 1, "what was refused is no change");
    app.apply(&definition("string"), &[asked, "--waive", &format!("{fingerprint}=nobody has one yet")]).expect(0);
    let history = app.history();
    let recorded = parse_text(&history[1]["data"]["findings"]).to_string();
    assert!(recorded.contains(fingerprint) && recorded.contains("nobody has one yet"), "{recorded}");
    let shown = app.run("history", &[]).expect(0).json();
    let change = &shown["changes"][0];
    assert_eq!(change["waivers"][0]["reason"], "nobody has one yet");
    assert_eq!(change["waivers"][0]["rule"], "CRDUpgradeSafety/type");
    assert_eq!(change["waivers"][0]["object"], format!("CustomResourceDefinition things.{group}"));
    assert!(change["by"].as_str().is_some_and(|by| by.contains(" (") && by.ends_with(')')), "{change}");
    app.delete(&["--preflight=none"]).expect(0);
}

/// In clear text and in base64, so that none of either may be found anywhere.
const MARKER: &str = "MARKER-7f3a-clear";
const MARKER_BASE64: &str = "TUFSS0VSLTdmM2EtY2xlYXI=";

/// Everything that a run shows or writes, the app's bookkeeping included.
fn outputs(app: &TestApp, command: &str, arguments: &[&str]) -> String {
    let mut text = String::new();
    for format in ["plain", "tty", "json"] {
        let common = [command, "-a", &app.name, "-n", &app.namespace, "-o", format, "-f", "app.yaml"];
        let ran = app.pushback.run(&[&common[..], arguments].concat());
        text += &format!("=== {command} {format}\n{}{}", ran.stdout, ran.stderr);
    }
    text
}

fn bookkeeping(app: &TestApp) -> String {
    let all = api().list(&format!("/api/v1/namespaces/{}/configmaps", app.namespace));
    all.iter().map(Value::to_string).collect()
}

#[track_caller]
fn assert_hidden(text: &str) {
    for secret in [MARKER, MARKER_BASE64, "TUFSS0VS", "918273645"] {
        if let Some(at) = text.find(secret) {
            let before: Vec<char> = text[..at].chars().rev().take(400).collect();
            let before: String = before.into_iter().rev().collect();
            panic!("{secret} is shown: …{before}{}…", text[at..].chars().take(100).collect::<String>());
        }
    }
}

/// `diff`, `check` and `apply` of what is in `app.yaml`, in every format and report, and what stays of it.
fn everything_about(app: &TestApp, input: &str) -> String {
    app.pushback.write("app.yaml", input);
    let mut text = outputs(app, "diff", &["-c", "-vvv"]) + &outputs(app, "diff", &[]);
    text += &outputs(app, "check", &["--report", "json=report.json", "--facts-out", "facts.json"]);
    for file in ["report.json", "facts.json"] {
        if let Ok(written) = std::fs::read_to_string(app.pushback.directory().join(file)) {
            text += &format!("=== {file}\n{written}");
        }
    }
    text += &outputs(app, "apply", &["--yes", "-c", "-vvv", "--wait=false", "--recheck"]);
    let inspected = app.run("inspect", &["--status", "--tree"]);
    text + &inspected.stdout + &inspected.stderr + &bookkeeping(app)
}

fn secret_values_reach_no_output() {
    let namespace = TestCluster::shared().namespace("secret");
    let app = TestApp::new("shop", &namespace);
    let secret = |name: &str, data: &str, rest: &str| {
        format!("---\napiVersion: v1\nkind: Secret\nmetadata:\n  name: {name}\n{data}\n{rest}\n")
    };
    let of_clear = |key: &str| format!("stringData: {{{key}: {MARKER}}}");
    let of_data = |key: &str| format!("data: {{{key}: {MARKER_BASE64}}}");
    // A first life with other values, so that there is something to compare, and copies that other tools keep.
    let before = "stringData: {key: before}";
    let frozen = secret("frozen", before, "immutable: true");
    app.apply(&[secret("a", before, ""), secret("b", before, ""), frozen.clone()].concat(), &[]).expect(0);
    let copy = json!({"metadata": {"annotations": {
        "kubectl.kubernetes.io/last-applied-configuration": format!("{{\"stringData\":{{\"key\":\"{MARKER}\"}}}}"),
        "kapp.k14s.io/original": format!("{{\"stringData\":{{\"key\":\"{MARKER}\"}}}}"),
    }}});
    patch_as("kubectl-client-side-apply", &format!("/api/v1/namespaces/{namespace}/secrets/a"), &copy);
    let text =
        everything_about(&app, &[secret("a", &of_clear("key"), ""), secret("b", &of_data("key"), ""), frozen].concat());
    assert!(text.contains("(secret #"), "the change is not even shown: {text}");
    assert_hidden(&text);
    let stored = api().get(&format!("/api/v1/namespaces/{namespace}/secrets/a")).ok();
    assert_eq!(stored["data"]["key"], MARKER_BASE64, "not what is tested");

    // What the server or the loader refuses, it must not quote.
    let refused = [
        secret("frozen", &of_clear("key"), "immutable: true"),
        secret("new", &of_clear("bad key!"), ""),
        secret("new", "data: {key: 918273645}", ""),
        secret("new", "data: {key: [918273645]}", ""),
        secret("new", &format!("data: {{key: {MARKER}!!}}"), ""),
        secret("new", "stringData: {key: 918273645}", ""),
        secret("new", &format!("data: {MARKER}"), ""),
        secret("new", &format!("stringData: [{MARKER}]"), ""),
        secret("new", &of_clear(".dockerconfigjson"), "type: kubernetes.io/dockerconfigjson"),
        secret("new", &of_clear("tls.crt"), "type: kubernetes.io/tls"),
        secret("new", &of_clear("key"), &format!("unknown: {MARKER}")),
        secret("new", &format!("stringData: {{key: {MARKER}"), ""),
    ];
    for input in &refused {
        app.pushback.write("app.yaml", input);
        let text = outputs(&app, "diff", &["-c"]) + &outputs(&app, "apply", &["--yes", "--patch"]);
        assert!(text.contains("error"), "not refused: {input}\n{text}");
        assert_hidden(&text);
        assert_hidden(&bookkeeping(&app));
    }
    // A key that is there twice is warned of.
    let twice = secret("new", &format!("stringData: {{key: {MARKER}, key: {MARKER}}}"), "");
    app.pushback.write("app.yaml", &twice);
    assert_hidden(&outputs(&app, "diff", &["-c"]));
    // In a namespace of the same set it is tried in another one.
    let inner = format!("{namespace}-inner");
    let late =
        secret("late", &of_clear("bad key!"), "").replace("name: late", &format!("name: late\n  namespace: {inner}"));
    let input = format!("apiVersion: v1\nkind: Namespace\nmetadata:\n  name: {inner}\n{late}");
    let ran = app.apply(&input, &["--patch"]).expect(10);
    assert!(ran.stdout.contains("bad key!"), "{}", ran.stdout);
    assert_hidden(&(ran.stdout + &ran.stderr + &bookkeeping(&app)));
}

fn masked_fields_of_custom_resources_reach_no_output() {
    define("Masked");
    let app = app("masked");
    let rule = config(
        "diffMaskRules:
- path: [spec, password]
  resourceMatchers: [{apiVersionKindMatcher: {apiVersion: config.example.com/v1, kind: Masked}}]
",
    );
    let masked = |password: &str| {
        format!(
            "---\napiVersion: config.example.com/v1\nkind: Masked\nmetadata: {{name: m}}\nspec: {{mode: shown-mode, password: {password}}}\n"
        )
    };
    let before = [masked("before"), rule.clone()].concat();
    app.apply(&before, &[]).expect(0);
    let text = everything_about(&app, &[masked(MARKER), rule.clone()].concat());
    assert_hidden(&text);
    let path = format!("/apis/config.example.com/v1/namespaces/{}/maskeds/m", app.namespace);
    assert_eq!(api().get(&path).ok()["spec"]["password"], MARKER, "not what is tested");
    for wrong in [format!("{MARKER}-{}", "x".repeat(40)), "918273645".to_owned()] {
        app.pushback.write("app.yaml", [masked(&wrong), rule.clone()].concat());
        let text = outputs(&app, "diff", &["-c"]) + &outputs(&app, "apply", &["--yes"]);
        assert!(text.contains("spec.password"), "not refused: {text}");
        assert_hidden(&text);
    }
}
