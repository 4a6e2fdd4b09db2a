//! Which preflight rules run, with which settings, and what their findings do to a run: every combination of flag and
//! Config, and of `mode`, `failMode` and what a rule has to say. `--nocapture` prints the tables.

use std::fmt::Write as _;
use std::io::Write as _;

use serde_json::{Value, json};

use crate::support::apply::{TestApp, annotated, config_map, config_map_path};
use crate::support::{Pushback, Ran, TestCase, TestCluster, cases};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        Controllers: tenant_may_bind_a_role_that_it_cannot_read,
        Nothing: mode_and_fail_mode_decide_what_findings_do,
        ApiServer: a_rule_that_cannot_get_its_facts_refuses_or_warns,
        ApiServer: what_an_app_lets_go_of_takes_no_permission_to_delete,
        Nothing: flag_and_config_decide_which_rules_run,
        Nothing: switched_off_rules_are_said_loudly,
        Nothing: a_waived_finding_is_shown_and_refuses_nothing,
    ]
}

/// A definition; `validation` is a CEL rule of its schema, of which nobody can tell what it accepts.
fn definition(group: &str, scope: &str, validation: &str) -> String {
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("widgets.{group}")},
        "spec": {
            "group": group, "scope": scope,
            "names": {"kind": "Widget", "listKind": "WidgetList", "plural": "widgets", "singular": "widget"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object",
                "properties": {"spec": {
                    "type": "object",
                    "properties": {"size": {"type": "integer"}},
                    "x-kubernetes-validations": [{"rule": validation}],
                }},
            }}}],
        },
    });
    serde_json::to_string_pretty(&definition).expect("JSON") + "\n"
}

const GROUP: &str = "example.com";
const BIG: &str = "self.size * self.size > 7";
const BIGGER: &str = "self.size * self.size * self.size > 20";

/// A folder in which a definition is applied, and the input to change it.
fn with_definition(changed: &str) -> Pushback {
    let pushback = Pushback::new();
    pushback.write("in/crd.json", definition(GROUP, "Namespaced", BIG));
    pushback.run(&["apply", "-a", "widgets", "-f", "in", "--cluster", "dir:live", "--yes"]).expect(0);
    pushback.write("in/crd.json", changed);
    pushback
}

fn config(rules: &Value) -> String {
    let config = json!({"apiVersion": "pushback.dev/v1alpha1", "kind": "Config", "preflightRules": rules});
    serde_json::to_string(&config).expect("JSON")
}

fn settings(mode: &str, fail_mode: &str) -> String {
    config(&json!([{"name": "CRDUpgradeSafety", "config": {"mode": mode, "failMode": fail_mode}}]))
}

/// The report of a check, after what it printed is found to say the same; `None` where an error came first.
fn report(pushback: &Pushback, check: &Ran) -> Option<Value> {
    if check.stdout.is_empty() {
        return None;
    }
    assert_eq!(check.stdout, pushback.read("report.json"));
    Some(pushback.read_json("report.json"))
}

/// What the rules came to, in a check's report or an apply's event.
fn rules(from: &Value) -> String {
    let rule = |rule: &Value| {
        format!("{} {}", rule["name"].as_str().expect("a name"), rule["outcome"].as_str().expect("an outcome"))
    };
    let rules: Vec<String> = from["rules"].as_array().expect("rules").iter().map(rule).collect();
    let rules = if rules.is_empty() { "no rule".to_owned() } else { rules.join(", ") };
    format!("{}: {rules}", from["outcome"].as_str().expect("an outcome"))
}

/// Exit code, and what the rules came to or which errors came first.
fn outcome(pushback: &Pushback, check: &Ran) -> String {
    let complaints = check.complaints();
    let errors = complaints.lines().filter(|line| line.starts_with("error: ") || line.starts_with("  "));
    let errors: Vec<&str> = errors.map(|line| line.strip_prefix("error: ").unwrap_or(line.trim_start())).collect();
    match report(pushback, check) {
        Some(report) => format!("exit {}, {}", check.code, rules(&report)),
        None => format!("exit {}: {}", check.code, errors.join(" | ")),
    }
}

/// The severities of the findings, and how many of each.
fn severities(report: &Value) -> String {
    let findings = report["findings"].as_array().expect("findings");
    let count = |severity: &str| findings.iter().filter(|finding| finding["severity"] == severity).count();
    let counts = ["error", "warning", "info"].map(|severity| (count(severity), severity));
    let shown: Vec<String> =
        counts.iter().filter(|(count, _)| *count > 0).map(|(count, severity)| format!("{count} {severity}")).collect();
    if shown.is_empty() { "no finding".to_owned() } else { shown.join(", ") }
}

/// Shows a table to whoever asks for it.
fn show(title: &str, table: &str) {
    if std::env::args().any(|argument| argument == "--nocapture") {
        let _ = writeln!(std::io::stderr(), "\n{title}\n{table}");
    }
}

const REPORT: [&str; 4] = ["--output", "json", "--report", "json=report.json"];
const MODES: [(&str, &str); 4] = [("error", "closed"), ("error", "open"), ("warn", "closed"), ("warn", "open")];

fn mode_and_fail_mode_decide_what_findings_do() {
    let changes = [
        ("breaking", definition(GROUP, "Cluster", BIG)),
        ("unknown", definition(GROUP, "Namespaced", BIGGER)),
        ("both", definition(GROUP, "Cluster", BIGGER)),
        ("nothing", definition(GROUP, "Namespaced", BIG)),
    ];
    let mut table = String::new();
    for (what, changed) in &changes {
        for (mode, fail_mode) in MODES {
            let pushback = with_definition(changed);
            pushback.write("config.yaml", settings(mode, fail_mode));
            let common = ["-a", "widgets", "-f", "in", "--config", "config.yaml", "--cluster", "dir:live"];
            let check = pushback.run(&[&["check"], &common[..], &REPORT].concat());
            let checked = outcome(&pushback, &check);
            let report = report(&pushback, &check).expect("a report");
            let _ = writeln!(
                table,
                "{what:<9}mode: {mode:<6}failMode: {fail_mode:<7}| {checked} ({})",
                severities(&report)
            );

            // The same rules refuse the same change before anything of it is written, or let it through.
            let before = pushback.tree("live");
            let apply = pushback.run(&[&["apply", "--yes"], &common[..], &REPORT].concat());
            assert_eq!((apply.code, &apply.end()["exitCode"]), (check.code, &json!(check.code)), "{what} {mode}");
            assert_eq!(rules(&apply.events_of("preflight")[0]), rules(&report), "{what} {mode} {fail_mode}");
            let written = pushback.tree("live") != before;
            assert_eq!(written, apply.code == 0 && *what != "nothing", "{what} {mode} {fail_mode}");
        }
    }
    show("mode x failMode x what the rule finds", &table);
    insta::assert_snapshot!(table, @"
    breaking mode: error failMode: closed | exit 10, refused: CRDUpgradeSafety failed (1 error)
    breaking mode: error failMode: open   | exit 10, refused: CRDUpgradeSafety failed (1 error)
    breaking mode: warn  failMode: closed | exit 0, warned: CRDUpgradeSafety warned (1 warning)
    breaking mode: warn  failMode: open   | exit 0, warned: CRDUpgradeSafety warned (1 warning)
    unknown  mode: error failMode: closed | exit 10, refused: CRDUpgradeSafety failed (1 error)
    unknown  mode: error failMode: open   | exit 0, warned: CRDUpgradeSafety warned (1 warning)
    unknown  mode: warn  failMode: closed | exit 0, warned: CRDUpgradeSafety warned (1 warning)
    unknown  mode: warn  failMode: open   | exit 0, warned: CRDUpgradeSafety warned (1 warning)
    both     mode: error failMode: closed | exit 10, refused: CRDUpgradeSafety failed (2 error)
    both     mode: error failMode: open   | exit 10, refused: CRDUpgradeSafety failed (1 error, 1 warning)
    both     mode: warn  failMode: closed | exit 0, warned: CRDUpgradeSafety warned (2 warning)
    both     mode: warn  failMode: open   | exit 0, warned: CRDUpgradeSafety warned (2 warning)
    nothing  mode: error failMode: closed | exit 0, passed: CRDUpgradeSafety passed (no finding)
    nothing  mode: error failMode: open   | exit 0, passed: CRDUpgradeSafety passed (no finding)
    nothing  mode: warn  failMode: closed | exit 0, passed: CRDUpgradeSafety passed (no finding)
    nothing  mode: warn  failMode: open   | exit 0, passed: CRDUpgradeSafety passed (no finding)
    ");
}

/// Somebody who may do everything but read the objects of a kind.
fn allow_all_but(cluster: &TestCluster, user: &str) {
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": user},
        "rules": [
            {"apiGroups": ["", "apiextensions.k8s.io"], "resources": ["*"], "verbs": ["*"]},
            {"nonResourceURLs": ["*"], "verbs": ["get"]},
        ],
    });
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": user},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": user},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    });
    cluster.api().apply(&role).ok();
    cluster.api().apply(&binding).ok();
}

fn a_rule_that_cannot_get_its_facts_refuses_or_warns() {
    let cluster = TestCluster::shared();
    let namespace = cluster.namespace("unable");
    let group = format!("{namespace}.example.com");
    let user = format!("{namespace}-user");
    allow_all_but(cluster, &user);
    let pushback = Pushback::with_kubeconfig(&cluster.kubeconfig_once_allowed(&user, &namespace));
    let kept = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kept"}}).to_string();
    pushback.write("in/crd.json", definition(&group, "Namespaced", BIG)).write("in/kept.json", kept);
    let common = ["-a", "widgets", "-n", &namespace, "-f", "in", "--config", "config.yaml"];
    pushback.write("config.yaml", settings("error", "closed"));
    let run = |command: &[&str]| pushback.run(&[command, &common[..], &REPORT].concat());
    run(&["apply", "--yes"]).expect(0);

    // Deleting the definition deletes every object of the kind, and this user may not see whether there are any.
    std::fs::remove_file(pushback.directory().join("in/crd.json")).expect("a file");
    let mut table = String::new();
    for (mode, fail_mode) in MODES {
        pushback.write("config.yaml", settings(mode, fail_mode));
        let check = run(&["check"]);
        let _ = writeln!(table, "unable   mode: {mode:<6}failMode: {fail_mode:<7}| {}", outcome(&pushback, &check));
        let reasons = pushback.read_json("report.json")["rules"][0]["reasons"].to_string();
        assert!(reasons.contains("failed to list Widget") && reasons.contains(&user), "{reasons}");
    }
    show("mode x failMode for a rule without its facts", &table);
    insta::assert_snapshot!(table, @"
    unable   mode: error failMode: closed | exit 10, unable: CRDUpgradeSafety unable
    unable   mode: error failMode: open   | exit 10, unable: CRDUpgradeSafety unable
    unable   mode: warn  failMode: closed | exit 0, warned: CRDUpgradeSafety warned
    unable   mode: warn  failMode: open   | exit 0, warned: CRDUpgradeSafety warned
    ");

    let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.{group}");
    pushback.write("config.yaml", settings("error", "open"));
    run(&["apply", "--yes"]).expect(10);
    assert_eq!(cluster.api().get(&path).status, 200);
    pushback.write("config.yaml", settings("warn", "closed"));
    run(&["apply", "--yes"]).expect(0);
    assert_eq!(cluster.api().get(&path).status, 404);
}

fn what_an_app_lets_go_of_takes_no_permission_to_delete() {
    let cluster = TestCluster::shared();
    let namespace = cluster.namespace("let-go");
    let user = format!("{namespace}-user");
    let verbs = ["get", "list", "watch", "create", "patch", "update"];
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": user},
        "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": verbs}],
    });
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": user},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": user},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    });
    cluster.api().apply(&role).ok();
    cluster.api().apply(&binding).ok();
    let pushback = Pushback::with_kubeconfig(&cluster.kubeconfig_once_allowed(&user, &namespace));
    let app = TestApp::of(pushback, "app", &namespace);
    let orphan = annotated("orphan", &[("kapp.k14s.io/delete-strategy", "orphan")]);
    app.apply(&(config_map("a", "1") + &config_map("b", "1") + &orphan), &[]).expect(0);
    // The same user may not prune.
    let refused = app.apply(&(config_map("a", "1") + &orphan), &[]).expect(10);
    assert_eq!(refused.events_of("finding")[0]["finding"]["check"], "delete");
    app.apply(&(config_map("a", "1") + &config_map("b", "1")), &[]).expect(0);
    let live = cluster.api().get(&config_map_path(&namespace, "orphan")).ok();
    assert_eq!(live["metadata"]["labels"]["kapp.k14s.io/app"], Value::Null);
}

fn flag_and_config_decide_which_rules_run() {
    let (a, b) = ("CRDUpgradeSafety", "PermissionValidation");
    let flags: [(&str, &[&str]); 9] = [
        ("no flag", &[]),
        ("--preflight", &["--preflight"]),
        ("--preflight=A", &["--preflight=CRDUpgradeSafety"]),
        ("--preflight A", &["--preflight", "CRDUpgradeSafety"]),
        ("--preflight=A,B", &["--preflight=CRDUpgradeSafety,PermissionValidation"]),
        ("--preflight=B --preflight=A", &["--preflight=PermissionValidation", "--preflight=CRDUpgradeSafety"]),
        ("--preflight=A --preflight=A", &["--preflight=CRDUpgradeSafety", "--preflight=CRDUpgradeSafety"]),
        ("--preflight=none", &["--preflight=none"]),
        ("--preflight=Z", &["--preflight=CRDUpgradeSafty"]),
    ];
    // The change is breaking: a rule with its defaults fails, one with these settings warns.
    let with_settings = json!({"name": a, "config": {"mode": "warn"}});
    let configs: [(&str, Vec<String>); 7] = [
        ("no key", vec![]),
        ("[]", vec![config(&json!([]))]),
        ("A with mode: warn", vec![config(&json!([with_settings]))]),
        ("only B", vec![config(&json!([{"name": b}]))]),
        ("A twice", vec![config(&json!([with_settings, {"name": a}]))]),
        ("A in two Configs", vec![config(&json!([with_settings])), config(&json!([{"name": a}]))]),
        ("unknown name", vec![config(&json!([{"name": "PermissionValidaton"}]))]),
    ];
    let pushback = with_definition(&definition(GROUP, "Cluster", BIG));
    let mut table = String::new();
    for (flag_title, flag) in &flags {
        for (config_title, configs) in &configs {
            pushback.write("in/config.yaml", configs.join("\n---\n"));
            let check = ["check", "-a", "widgets", "-f", "in", "--cluster", "dir:live"];
            let ran = pushback.run(&[&check[..], flag, &REPORT].concat());
            let came_to = outcome(&pushback, &ran).replace(a, "A").replace(b, "B").replace("StoredVersions", "C");
            let _ = writeln!(table, "{flag_title:<28}| {config_title:<18}| {came_to}");
        }
    }
    show("--preflight x preflightRules, A = CRDUpgradeSafety, B = PermissionValidation, C = StoredVersions", &table);
    insta::assert_snapshot!(table, @r#"
    no flag                     | no key            | exit 10, refused: A failed, C skipped, B skipped, References passed, PodAdmission skipped, RemovedAPIs passed, DestructiveChange passed
    no flag                     | []                | exit 0, passed: policy passed
    no flag                     | A with mode: warn | exit 0, warned: A warned, policy passed
    no flag                     | only B            | exit 0, passed: B skipped, policy passed
    no flag                     | A twice           | exit 1: in/config.yaml:1:126: rule "A" is listed twice, first at in/config.yaml:1:73
    no flag                     | A in two Configs  | exit 1: in/config.yaml:3:73: rule "A" is listed twice, first at in/config.yaml:1:73
    no flag                     | unknown name      | exit 1: in/config.yaml:1:73: unknown preflight rule "PermissionValidaton"; did you mean "B"?
    --preflight                 | no key            | exit 10, refused: A failed, C skipped, B skipped, References passed, PodAdmission skipped, RemovedAPIs passed, DestructiveChange passed
    --preflight                 | []                | exit 0, passed: policy passed
    --preflight                 | A with mode: warn | exit 0, warned: A warned, policy passed
    --preflight                 | only B            | exit 0, passed: B skipped, policy passed
    --preflight                 | A twice           | exit 1: in/config.yaml:1:126: rule "A" is listed twice, first at in/config.yaml:1:73
    --preflight                 | A in two Configs  | exit 1: in/config.yaml:3:73: rule "A" is listed twice, first at in/config.yaml:1:73
    --preflight                 | unknown name      | exit 1: in/config.yaml:1:73: unknown preflight rule "PermissionValidaton"; did you mean "B"?
    --preflight=A               | no key            | exit 10, refused: A failed
    --preflight=A               | []                | exit 10, refused: A failed
    --preflight=A               | A with mode: warn | exit 0, warned: A warned, policy passed
    --preflight=A               | only B            | exit 10, refused: A failed
    --preflight=A               | A twice           | exit 1: in/config.yaml:1:126: rule "A" is listed twice, first at in/config.yaml:1:73
    --preflight=A               | A in two Configs  | exit 1: in/config.yaml:3:73: rule "A" is listed twice, first at in/config.yaml:1:73
    --preflight=A               | unknown name      | exit 1: in/config.yaml:1:73: unknown preflight rule "PermissionValidaton"; did you mean "B"?
    --preflight A               | no key            | exit 10, refused: A failed
    --preflight A               | []                | exit 10, refused: A failed
    --preflight A               | A with mode: warn | exit 0, warned: A warned, policy passed
    --preflight A               | only B            | exit 10, refused: A failed
    --preflight A               | A twice           | exit 1: in/config.yaml:1:126: rule "A" is listed twice, first at in/config.yaml:1:73
    --preflight A               | A in two Configs  | exit 1: in/config.yaml:3:73: rule "A" is listed twice, first at in/config.yaml:1:73
    --preflight A               | unknown name      | exit 1: in/config.yaml:1:73: unknown preflight rule "PermissionValidaton"; did you mean "B"?
    --preflight=A,B             | no key            | exit 10, refused: A failed, B skipped
    --preflight=A,B             | []                | exit 10, refused: A failed, B skipped
    --preflight=A,B             | A with mode: warn | exit 0, warned: A warned, B skipped, policy passed
    --preflight=A,B             | only B            | exit 10, refused: A failed, B skipped
    --preflight=A,B             | A twice           | exit 1: in/config.yaml:1:126: rule "A" is listed twice, first at in/config.yaml:1:73
    --preflight=A,B             | A in two Configs  | exit 1: in/config.yaml:3:73: rule "A" is listed twice, first at in/config.yaml:1:73
    --preflight=A,B             | unknown name      | exit 1: in/config.yaml:1:73: unknown preflight rule "PermissionValidaton"; did you mean "B"?
    --preflight=B --preflight=A | no key            | exit 10, refused: A failed, B skipped
    --preflight=B --preflight=A | []                | exit 10, refused: A failed, B skipped
    --preflight=B --preflight=A | A with mode: warn | exit 0, warned: A warned, B skipped, policy passed
    --preflight=B --preflight=A | only B            | exit 10, refused: A failed, B skipped
    --preflight=B --preflight=A | A twice           | exit 1: in/config.yaml:1:126: rule "A" is listed twice, first at in/config.yaml:1:73
    --preflight=B --preflight=A | A in two Configs  | exit 1: in/config.yaml:3:73: rule "A" is listed twice, first at in/config.yaml:1:73
    --preflight=B --preflight=A | unknown name      | exit 1: in/config.yaml:1:73: unknown preflight rule "PermissionValidaton"; did you mean "B"?
    --preflight=A --preflight=A | no key            | exit 1: --preflight: rule "A" is named more than once
    --preflight=A --preflight=A | []                | exit 1: --preflight: rule "A" is named more than once
    --preflight=A --preflight=A | A with mode: warn | exit 1: --preflight: rule "A" is named more than once
    --preflight=A --preflight=A | only B            | exit 1: --preflight: rule "A" is named more than once
    --preflight=A --preflight=A | A twice           | exit 1: in/config.yaml:1:126: rule "A" is listed twice, first at in/config.yaml:1:73
    --preflight=A --preflight=A | A in two Configs  | exit 1: in/config.yaml:3:73: rule "A" is listed twice, first at in/config.yaml:1:73
    --preflight=A --preflight=A | unknown name      | exit 1: --preflight: rule "A" is named more than once | in/config.yaml:1:73: unknown preflight rule "PermissionValidaton"; did you mean "B"?
    --preflight=none            | no key            | exit 0, passed: no rule
    --preflight=none            | []                | exit 0, passed: no rule
    --preflight=none            | A with mode: warn | exit 0, passed: no rule
    --preflight=none            | only B            | exit 0, passed: no rule
    --preflight=none            | A twice           | exit 1: in/config.yaml:1:126: rule "A" is listed twice, first at in/config.yaml:1:73
    --preflight=none            | A in two Configs  | exit 1: in/config.yaml:3:73: rule "A" is listed twice, first at in/config.yaml:1:73
    --preflight=none            | unknown name      | exit 1: in/config.yaml:1:73: unknown preflight rule "PermissionValidaton"; did you mean "B"?
    --preflight=Z               | no key            | exit 1: --preflight: unknown preflight rule "CRDUpgradeSafty"; did you mean "A"?
    --preflight=Z               | []                | exit 1: --preflight: unknown preflight rule "CRDUpgradeSafty"; did you mean "A"?
    --preflight=Z               | A with mode: warn | exit 1: --preflight: unknown preflight rule "CRDUpgradeSafty"; did you mean "A"?
    --preflight=Z               | only B            | exit 1: --preflight: unknown preflight rule "CRDUpgradeSafty"; did you mean "A"?
    --preflight=Z               | A twice           | exit 1: in/config.yaml:1:126: rule "A" is listed twice, first at in/config.yaml:1:73
    --preflight=Z               | A in two Configs  | exit 1: in/config.yaml:3:73: rule "A" is listed twice, first at in/config.yaml:1:73
    --preflight=Z               | unknown name      | exit 1: --preflight: unknown preflight rule "CRDUpgradeSafty"; did you mean "A"? | in/config.yaml:1:73: unknown preflight rule "PermissionValidaton"; did you mean "B"?
    "#);
}

fn switched_off_rules_are_said_loudly() {
    let pushback = with_definition(&definition(GROUP, "Cluster", BIG));
    let apply = ["apply", "-a", "widgets", "-f", "in", "--cluster", "dir:live", "--yes", "--preflight=none"];
    let ran = pushback.run(&apply).expect(0);
    assert!(ran.stderr.contains(" warning no preflight rule runs: they are switched off\n"), "{}", ran.stderr);
    assert!(ran.stdout.contains("Preflight  no rule ran\n"), "{}", ran.stdout);
}

fn a_waived_finding_is_shown_and_refuses_nothing() {
    let pushback = with_definition(&definition(GROUP, "Cluster", BIG));
    let check = ["check", "-a", "widgets", "-f", "in", "--cluster", "dir:live", "--output", "json"];
    let checked = |more: &[&str], code: i32| -> Value {
        let ran = pushback.run(&[&check[..], more].concat()).expect(code);
        serde_json::from_str(&ran.stdout).expect("a report")
    };
    let refused = checked(&[], 10);
    let fingerprint = refused["findings"][0]["fingerprint"].as_str().expect("one");
    let passed = checked(&["--waive", &format!("{fingerprint}=nobody uses it yet")], 0);
    let finding = &passed["findings"][0];
    assert_eq!((finding["severity"].as_str(), finding["fingerprint"].as_str()), (Some("info"), Some(fingerprint)));
    assert_eq!(finding["waived"], "nobody uses it yet");
    assert_eq!(passed["rules"][0]["waived"], 1);

    // A waiver of something else says so, and the finding still refuses.
    let other = checked(&["--waive", "00000000000000000000000000000000=by mistake"], 10);
    let findings = other["findings"].as_array().expect("findings");
    assert!(findings.iter().any(|finding| finding["rule"] == "preflightWaivers"), "{other}");
}

fn tenant_may_bind_a_role_that_it_cannot_read() {
    let cluster = TestCluster::shared();
    let namespace = cluster.namespace("tenant");
    let user = format!("{namespace}-user");
    let rbac = "rbac.authorization.k8s.io";
    let binding = |name: &str, role: &str, user: &str| {
        json!({"apiVersion": format!("{rbac}/v1"), "kind": "RoleBinding", "metadata": {"name": name, "namespace": namespace},
            "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": role},
            "subjects": [{"apiGroup": rbac, "kind": "User", "name": user}]})
    };
    cluster.api().apply(&binding("tenant", "admin", &user)).ok();
    let pushback = Pushback::with_kubeconfig(&cluster.kubeconfig_once_allowed(&user, &namespace));
    let client = cluster.api_for(&user, &[]);
    assert_eq!(client.get(&format!("/apis/{rbac}/v1/clusterroles/view")).status, 403);
    let app = TestApp::of(pushback, "app", &namespace);
    app.apply(&binding("people", "view", "ada").to_string(), &[]).expect(0);
    // More than the tenant has.
    let refused = app.apply(&binding("people", "cluster-admin", "ada").to_string(), &[]);
    assert_eq!(refused.code, 10, "{}", refused.stdout);
}
