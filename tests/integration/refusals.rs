//! What the API server would refuse is found before anything is written: all of it at once, each at its place.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::apply::TestApp;
use crate::support::snapshot::snapshot;
use crate::support::webhook::{Form, Verdict, Webhook};
use crate::support::{Pushback, TestCase, TestCluster, cases, wait_until};

const SOON: Duration = Duration::from_secs(60);

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        Controllers: all_refusals_are_found_at_once_and_nothing_is_written,
        Controllers: nothing_is_written_for_a_new_app_that_is_refused,
        Controllers: a_quota_counts_in_a_namespace_that_comes_along_and_is_there,
        Controllers: an_object_that_its_new_definition_refuses_fails_alone,
        ApiServer: a_refused_update_takes_nothing_away_that_the_server_filled_in,
        ApiServer: a_replacement_takes_away_what_was_set_and_not_what_the_server_filled_in,
        Controllers: a_webhook_that_is_down_lets_nothing_through,
        ApiServer: what_a_rule_and_the_server_refuse_is_told_once,
    ]
}

/// What is fine, and applied first.
const GOOD: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 0
  selector:
    matchLabels: {app: web}
  template:
    metadata:
      labels: {app: web}
    spec:
      containers:
        - name: main
          image: registry.example/web:1
---
apiVersion: v1
kind: ConfigMap
metadata: {name: frozen}
immutable: true
data:
  key: value
";

/// The same objects and more, with everything wrong that a server can tell.
const BAD: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 0
  selector:
    matchLabels: {app: other}
  template:
    metadata:
      labels: {app: other}
    spec:
      containers:
        - name: main
          image: registry.example/web:1
---
apiVersion: v1
kind: ConfigMap
metadata: {name: frozen}
immutable: true
data:
  key: changed
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: misspelt}
spec:
  replica: 3
  selector:
    matchLabels: {app: misspelt}
  template:
    metadata:
      labels: {app: misspelt}
    spec:
      containers:
        - name: first
          image: registry.example/first:1
        - name: second
          imagePolicy: Always
          image: registry.example/second:1
---
apiVersion: v1
kind: Service
metadata: {name: nameless}
spec:
  ports:
    - port: 80
    - port: 81
";

/// Number 50 has its `kind` in line 50 × 5 - 3.
fn hundred() -> String {
    let maps =
        (1..=100).map(|number| format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c-{number:03}\n---\n"));
    maps.collect()
}

fn secrets() -> String {
    let secrets = (1..=4).map(|number| format!("apiVersion: v1\nkind: Secret\nmetadata:\n  name: s-{number}\n---\n"));
    secrets.collect()
}

/// The line of the first text that starts with `text` behind the first `after`, from 1.
#[track_caller]
fn line(of: &str, after: &str, text: &str) -> u64 {
    let start = of.find(after).expect("the object");
    let number = of[..start].matches('\n').count()
        + of[start..].lines().position(|line| line.trim_start().starts_with(text)).expect("the line");
    u64::try_from(number).expect("a line number") + 1
}

fn deny_number_50() -> Webhook {
    Webhook::start(&[], |request| match request["name"].as_str() {
        Some("c-050") => Verdict::Deny("number 50 is not wanted".to_owned()),
        _ => Verdict::Allow,
    })
}

fn allow_two_secrets(cluster: &TestCluster, namespace: &str) {
    let quota = json!({
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"namespace": namespace, "name": "few-secrets"},
        "spec": {"hard": {"count/secrets": "2"}},
    });
    cluster.api().apply(&quota).ok();
    let path = cluster.api().path_of(&quota);
    wait_until("the quota is counted", SOON, || {
        (cluster.api().get(&path).ok()["status"]["used"]["count/secrets"] == "0").then_some(())
    });
}

/// (check, kind and name, file, line, path) of each finding.
fn told(report: &Value) -> Vec<(String, String, String, u64, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let findings = report["findings"].as_array().expect("findings");
    let mut told: Vec<_> = findings
        .iter()
        .map(|finding| {
            assert_eq!((&finding["rule"], &finding["severity"]), (&json!("server"), &json!("error")), "{finding}");
            let object = format!("{} {}", text(&finding["object"]["kind"]), text(&finding["object"]["name"]));
            let position = &finding["position"];
            let line = position["line"].as_u64().unwrap_or_default();
            (text(&finding["check"]), object, text(&position["file"]), line, text(&finding["path"]))
        })
        .collect();
    told.sort();
    told
}

fn all_refusals_are_found_at_once_and_nothing_is_written() {
    let cluster = TestCluster::shared();
    let namespace = cluster.namespace("refused");
    let pushback = Pushback::on(cluster);
    let app = ["-a", "shop", "-n", &namespace, "--yes"];
    pushback.write("good.yaml", GOOD);
    pushback.run(&[&["apply", "-f", "good.yaml"], &app[..]].concat()).expect(0);

    allow_two_secrets(cluster, &namespace);
    let webhook = deny_number_50();
    let _registered = webhook.register(cluster, Form::Validating, &namespace, json!({}));
    pushback.write("bad/a.yaml", hundred());
    pushback.write("bad/b.yaml", BAD);
    pushback.write("bad/c.yaml", secrets());

    let row = |check: &str, object: &str, file: &str, line: u64, path: &str| {
        (check.to_owned(), object.to_owned(), format!("bad/{file}"), line, path.to_owned())
    };
    let mut expected = vec![
        row("denied", "ConfigMap c-050", "a.yaml", 49 * 5 + 1, ""),
        row("immutable", "ConfigMap frozen", "b.yaml", line(BAD, "immutable: true", "data:"), "data"),
        row("immutable", "Deployment web", "b.yaml", line(BAD, "Deployment", "selector:"), "spec.selector"),
        row("unknown-field", "Deployment misspelt", "b.yaml", line(BAD, "misspelt", "replica:"), "spec.replica"),
        row(
            "unknown-field",
            "Deployment misspelt",
            "b.yaml",
            line(BAD, "misspelt", "imagePolicy:"),
            "spec.template.spec.containers[1].imagePolicy",
        ),
        row("quota", "Secret s-3", "c.yaml", 2 * 5 + 1, ""),
    ];
    for index in [0, 1] {
        // What is not there stands where its owner does.
        let port = if index == 0 { "- port: 80" } else { "- port: 81" };
        let path = format!("spec.ports[{index}].name");
        expected.push(row("invalid", "Service nameless", "b.yaml", line(BAD, "nameless", port), &path));
    }
    expected.sort();

    let before = snapshot(cluster, &namespace, &[]);
    for command in ["check", "apply"] {
        let ran =
            pushback.run(&[&[command, "-f", "bad", "--report", "json=report.json"], &app[..]].concat()).expect(10);
        let report = pushback.read_json("report.json");
        assert_eq!(told(&report), expected, "{}", ran.stderr);
        assert_eq!(report["outcome"], "refused");
        let server = report["rules"].as_array().expect("rules").iter().find(|rule| rule["name"] == "server");
        assert_eq!(server.map(|rule| &rule["outcome"]), Some(&json!("failed")));
        let words = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("number 50 is not wanted"), "{words}");
    }
    pushback.run(&[&["diff", "-f", "bad"], &app[..]].concat()).expect(10);
    assert_eq!(snapshot(cluster, &namespace, &[]), before);
    let dry_runs = webhook.asked();
    assert!(!dry_runs.is_empty() && dry_runs.iter().all(|request| request["dryRun"] == true));
}

fn nothing_is_written_for_a_new_app_that_is_refused() {
    let cluster = TestCluster::shared();
    let namespace = cluster.namespace("refused-new");
    let webhook = deny_number_50();
    let _registered = webhook.register(cluster, Form::Validating, &namespace, json!({}));
    let pushback = Pushback::on(cluster);
    let name = format!("{namespace}-reader");
    let role =
        format!("apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {{name: {name}}}\n---\n");
    pushback.write("app.yaml", role + &hundred());

    let before = snapshot(cluster, &namespace, &[]);
    let ran =
        pushback.run(&["apply", "-a", "new", "-f", "app.yaml", "-n", &namespace, "--yes", "-o", "json"]).expect(10);
    assert_eq!((&ran.end()["outcome"], &ran.end()["exitCode"]), (&json!("refused"), &json!(10)));
    assert_eq!(ran.events_of("finding").len(), 1);
    assert_eq!(ran.events_of("change.start").len(), 0);
    assert_eq!(snapshot(cluster, &namespace, &[]), before);
    let path = format!("/apis/rbac.authorization.k8s.io/v1/clusterroles/{name}");
    assert_eq!(cluster.api().get(&path).status, 404);
}

fn an_object_that_its_new_definition_refuses_fails_alone() {
    let cluster = TestCluster::shared();
    let namespace = cluster.namespace("refused-late");
    let pushback = Pushback::on(cluster);
    let input = crate::unverified::definition(&namespace, "size: {type: string}")
        + &format!(
            "---\napiVersion: {namespace}.example.com/v1\nkind: Box\nmetadata: {{name: wrong}}\nspec: {{size: 3}}\n\
             ---\napiVersion: {namespace}.example.com/v1\nkind: Box\nmetadata: {{name: misspelt}}\nspec: {{sise: big}}\n\
             ---\napiVersion: {namespace}.example.com/v1\nkind: Box\nmetadata: {{name: right}}\nspec: {{size: big}}\n",
        );
    pushback.write("app.yaml", &input);
    let ran = pushback
        .run(&[
            "apply",
            "-a",
            "late",
            "-f",
            "app.yaml",
            "-n",
            &namespace,
            "--yes",
            "-o",
            "json",
            "--exit-early-on-apply-error=false",
        ])
        .expect(20);
    let unfinished = ran.end()["unfinished"].clone();
    let mut names: Vec<&str> =
        unfinished.as_array().expect("lines").iter().filter_map(|line| line["object"]["name"].as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["misspelt", "wrong"], "{unfinished}");
    let boxes = cluster.api().list(&format!("/apis/{namespace}.example.com/v1/namespaces/{namespace}/boxes"));
    assert_eq!(boxes.iter().map(|one| &one["metadata"]["name"]).collect::<Vec<_>>(), ["right"]);
}

fn a_webhook_that_is_down_lets_nothing_through() {
    let cluster = TestCluster::shared();
    let namespace = cluster.namespace("webhook-down");
    let mut webhook = Webhook::start(&[], |_| Verdict::Allow);
    let _registered = webhook.register(cluster, Form::Validating, &namespace, json!({}));
    webhook.stop();
    let pushback = Pushback::on(cluster);
    pushback.write("app.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: settings\n");

    let before = snapshot(cluster, &namespace, &[]);
    let arguments = ["-a", "down", "-f", "app.yaml", "-n", &namespace, "--report", "json=report.json", "--yes"];
    for command in ["check", "apply"] {
        let ran = pushback.run(&[&[command], &arguments[..]].concat()).expect(10);
        let report = pushback.read_json("report.json");
        assert_eq!((&report["outcome"], &report["findings"]), (&json!("unable"), &json!([])), "{}", ran.stderr);
        let words = format!("{namespace}.webhook.example");
        assert!(ran.stdout.contains(&words), "the webhook is not named: {}", ran.stdout);
    }
    assert_eq!(snapshot(cluster, &namespace, &[]), before);
}

fn a_refused_update_takes_nothing_away_that_the_server_filled_in() {
    let cluster = TestCluster::shared();
    let namespace = cluster.namespace("refused-update");
    let pushback = Pushback::on(cluster);
    let probe = "          readinessProbe: {tcpSocket: {port: 80}}\n          env: [{name: A, value: b}]\n---";
    let good = GOOD.replacen("---", probe, 1);
    pushback.write("app.yaml", &good);
    let app = ["-a", "shop", "-n", &namespace, "-f", "app.yaml"];
    pushback.run(&[&["apply", "--yes", "--wait=false"], &app[..]].concat()).expect(0);
    // A selector never changes. With it comes a new image, and our own variable goes.
    let bad = good.replace("app: web}", "app: other}").replace("web:1", "web:2");
    pushback.write("app.yaml", bad.replace("          env: [{name: A, value: b}]\n", ""));
    let ran = pushback.run(&[&["diff", "-o", "json"], &app[..]].concat()).expect(10);
    let plan = ran.events_of("plan").pop().expect("a plan");
    let fields = plan["changes"][0]["fields"].as_array().expect("fields").clone();
    let main = "spec.template.spec.containers[name=main]";
    assert_eq!(
        fields,
        [
            json!({"path": "spec.selector.matchLabels.app", "old": "web", "new": "other"}),
            json!({"path": "spec.template.metadata.labels.app", "old": "web", "new": "other"}),
            json!({"path": format!("{main}.image"), "old": "registry.example/web:1", "new": "registry.example/web:2"}),
            json!({"path": format!("{main}.env"), "old": "[{name: A, value: b}]"}),
        ]
    );
    let text = pushback.run(&[&["diff", "-c"], &app[..]].concat()).expect(10).stdout;
    let gone: Vec<&str> = text.lines().map(str::trim).filter(|line| line.starts_with("- ")).collect();
    assert!(
        !gone.is_empty() && gone.iter().all(|line| !line.contains("Policy") && !line.contains("Seconds")),
        "{text}"
    );
}

/// A version that objects are stored in goes, and the kind changes its scope: the server refuses both, and so does the rule.
fn what_a_rule_and_the_server_refuse_is_told_once() {
    let cluster = TestCluster::shared();
    let namespace = cluster.namespace("told-once");
    let app = TestApp::of(Pushback::on(cluster), "shop", &namespace);
    let version = |name: &str, storage: bool| json!({"name": name, "served": true, "storage": storage, "schema": {"openAPIV3Schema": {"type": "object"}}});
    let definition = |scope: &str, versions: &[Value]| {
        let group = format!("{namespace}.example.com");
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("carts.{group}")},
            "spec": {
                "group": group, "scope": scope, "versions": versions,
                "names": {"kind": "Cart", "listKind": "CartList", "plural": "carts", "singular": "cart"},
            },
        });
        definition.to_string()
    };
    app.apply(&definition("Namespaced", &[version("v1beta1", true), version("v1", false)]), &[]).expect(0);

    let bad = definition("Cluster", &[version("v1", true)]);
    let checked = |arguments: &[&str]| {
        app.pushback.write("bad.yaml", &bad);
        let given = [&["-f", "bad.yaml", "--report", "json=report.json"], arguments].concat();
        app.run("check", &given).expect(10);
        let report = app.pushback.read_json("report.json");
        assert_eq!(report["outcome"], "refused");
        report["findings"].as_array().expect("findings").clone()
    };
    let rows = |findings: &[Value]| -> Vec<String> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let row = |finding: &Value| {
            let (rule, check, severity) = (&finding["rule"], &finding["check"], &finding["severity"]);
            format!("{}/{} {} {}", text(rule), text(check), text(severity), finding["also"])
        };
        let mut rows: Vec<String> = findings.iter().map(row).collect();
        rows.sort();
        rows
    };
    let findings = checked(&[]);
    let once = [
        "CRDUpgradeSafety/scope error [\"server/immutable\"]",
        "CRDUpgradeSafety/storedVersionRemoval error \
         [\"CRDUpgradeSafety/servedVersionRemoval\",\"StoredVersions/storedVersionRemoval\",\"server/immutable\"]",
    ];
    assert_eq!(rows(&findings), once, "{findings:#?}");
    let shown = app.pushback.run(&["check", "-a", "shop", "-n", &namespace, "-f", "bad.yaml"]).expect(10).stdout;
    assert!(shown.contains("no waiver covers it") && !shown.contains("fingerprint:"), "{shown}");

    // Without the rule, or with a waiver for what it says, the server says it.
    let alone = checked(&["--preflight=none"]);
    assert_eq!(rows(&alone), ["server/immutable error null"; 2], "{alone:#?}");
    let waivers: Vec<String> =
        findings.iter().map(|finding| format!("{}=known", finding["fingerprint"].as_str().expect("one"))).collect();
    let waived = checked(&["--waive", &waivers[0], "--waive", &waivers[1]]);
    let both = [
        "CRDUpgradeSafety/scope info null",
        "CRDUpgradeSafety/servedVersionRemoval error null",
        "CRDUpgradeSafety/storedVersionRemoval info null",
        "StoredVersions/storedVersionRemoval error [\"server/immutable\"]",
        "server/immutable error null",
    ];
    assert_eq!(rows(&waived), both, "{waived:#?}");
    app.delete(&["--preflight=none"]).expect(0);
}

fn a_replacement_takes_away_what_was_set_and_not_what_the_server_filled_in() {
    let cluster = TestCluster::shared();
    let namespace = cluster.namespace("replacement-shown");
    let pushback = Pushback::on(cluster);
    let probe = "          readinessProbe: {tcpSocket: {port: 80}}\n          env: [{name: A, value: b}]\n---";
    let strategy = "name: web, annotations: {kapp.k14s.io/update-strategy: fallback-on-replace}";
    let good = GOOD.replacen("---", probe, 1).replacen("name: web", strategy, 1);
    pushback.write("app.yaml", &good);
    let app = ["-a", "shop", "-n", &namespace, "-f", "app.yaml"];
    pushback.run(&[&["apply", "--yes", "--wait=false"], &app[..]].concat()).expect(0);
    // Somebody else's annotation does not come back with the new object.
    let path = format!("/apis/apps/v1/namespaces/{namespace}/deployments/web?fieldManager=somebody");
    let noted = json!({"metadata": {"annotations": {"example.com/note": "mine"}}});
    let merge = Some("application/merge-patch+json");
    cluster.api().request("PATCH", &path, merge, Some(&noted)).expect("an answer").ok();
    let bad = good.replace("app: web}", "app: other}").replace("web:1", "web:2");
    pushback.write("app.yaml", bad.replace("          env: [{name: A, value: b}]\n", ""));
    let ran = pushback.run(&[&["diff", "-o", "json"], &app[..]].concat()).expect(0);
    let plan = ran.events_of("plan").pop().expect("a plan");
    let change = plan["changes"].as_array().expect("changes").iter().find(|change| change["operation"] == "replace");
    let mut fields = change.expect("a replacement")["fields"].as_array().expect("fields").clone();
    // Its controller sets it when it comes to it.
    fields.retain(|field| field["path"] != "metadata.annotations[\"deployment.kubernetes.io/revision\"]");
    let main = "spec.template.spec.containers[name=main]";
    assert_eq!(
        fields,
        [
            json!({"path": "metadata.annotations[\"example.com/note\"]", "old": "mine"}),
            json!({"path": "spec.selector.matchLabels.app", "old": "web", "new": "other"}),
            json!({"path": "spec.template.metadata.labels.app", "old": "web", "new": "other"}),
            json!({"path": format!("{main}.image"), "old": "registry.example/web:1", "new": "registry.example/web:2"}),
            json!({"path": format!("{main}.env"), "old": "[{name: A, value: b}]"}),
        ]
    );
    let text = pushback.run(&[&["diff", "-c"], &app[..]].concat()).expect(0).stdout;
    let gone: Vec<&str> = text.lines().map(str::trim).filter(|line| line.starts_with("- ")).collect();
    assert!(
        gone.iter().any(|line| line.contains("example.com/note"))
            && gone.iter().all(|line| !line.contains("Policy") && !line.contains("Seconds")),
        "{text}"
    );
}

fn a_quota_counts_in_a_namespace_that_comes_along_and_is_there() {
    let cluster = TestCluster::shared();
    let namespace = cluster.namespace("quota");
    allow_two_secrets(cluster, &namespace);
    let secret = |name: &str| format!("---\n{{apiVersion: v1, kind: Secret, metadata: {{name: {name}}}}}\n");
    let input = format!(
        "{{apiVersion: v1, kind: Namespace, metadata: {{name: {namespace}}}}}\n{}{}{}",
        secret("one"),
        secret("two"),
        secret("three")
    );
    let ran = TestApp::new("filled", &namespace).apply(&input, &[]).expect(10);
    let checks: Vec<Value> = ran.events_of("finding").iter().map(|event| event["finding"]["check"].clone()).collect();
    assert_eq!(checks, ["quota"]);
}
