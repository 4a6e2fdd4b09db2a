//! Whose fields an apply would overwrite, on a real API server: people, other tools, predecessors; and the settings that
//! decide about them.

use serde_json::{Value, json};

use crate::support::api::ApiClient;
use crate::support::apply::{TestApp, config_map, config_map_path};
use crate::support::pushback::Ran;
use crate::support::{TestCase, TestCluster, cases};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        ApiServer: what_somebody_has_edited_is_not_overwritten_unasked,
        ApiServer: without_the_rule_an_edit_is_overwritten_and_the_plan_says_so,
        ApiServer: settings_decide_by_manager_kind_and_path,
        ApiServer: another_tool_that_applies_the_same_field_is_a_conflict_and_one_that_agrees_is_none,
        ApiServer: a_count_set_through_scale_is_a_conflict_with_the_manifest,
        ApiServer: a_secret_value_is_in_no_finding_report_or_facts_file,
        ApiServer: a_predecessor_is_taken_over_once_and_refused_when_it_comes_back,
        Nothing: a_folder_has_no_managers_and_the_rule_is_skipped,
        Nothing: a_wrong_setting_is_refused_with_its_place,
    ]
}

fn api() -> &'static ApiClient {
    TestCluster::shared().api()
}

fn app() -> TestApp {
    TestApp::new("app", &TestCluster::shared().namespace("conflict"))
}

fn config(settings: &Value) -> String {
    let rules = json!([{"name": "FieldConflicts", "config": settings}]);
    json!({"apiVersion": "pushback.dev/v1alpha1", "kind": "Config", "preflightRules": rules}).to_string()
}

/// Applies with the rule, and only it.
fn apply(app: &TestApp, input: &str, settings: &Value) -> Ran {
    app.pushback.write("config.yaml", config(settings));
    app.apply(input, &["--config", "config.yaml", "--wait=false"])
}

fn edit(path: &str, manager: &str, patch: &Value) -> Value {
    let path = format!("{path}?fieldManager={manager}");
    api().request("PATCH", &path, Some("application/merge-patch+json"), Some(patch)).expect("an answer").ok()
}

fn findings(ran: &Ran) -> Vec<Value> {
    ran.events_of("finding").into_iter().map(|mut event| event["finding"].take()).collect()
}

/// `check severity path old new`, a line each.
fn lines(ran: &Ran) -> Vec<String> {
    let line = |finding: &Value| {
        let text = |key: &str| finding[key].as_str().map_or_else(|| finding[key].to_string(), str::to_owned);
        format!("{} {} {} {} → {}", text("check"), text("severity"), text("path"), finding["old"], finding["new"])
    };
    findings(ran).iter().map(line).collect()
}

fn what_somebody_has_edited_is_not_overwritten_unasked() {
    let app = app();
    let path = config_map_path(&app.namespace, "a");
    apply(&app, &config_map("a", "1"), &json!({})).expect(0);
    let edited = edit(&path, "kubectl-edit", &json!({"data": {"key": "2", "extra": "x"}}));
    let ran = apply(&app, &config_map("a", "1"), &json!({})).expect(10);
    // What the manifest does not set stays with whoever has set it.
    assert_eq!(lines(&ran), [r#"conflict error data.key "2" → "1""#]);
    let finding = &findings(&ran)[0];
    assert_eq!((&finding["position"]["file"], &finding["position"]["line"]), (&json!("app.yaml"), &json!(7)));
    let managers = edited["metadata"]["managedFields"].as_array().expect("managers");
    let entry = managers.iter().find(|entry| entry["manager"] == "kubectl-edit").expect("the editor");
    let since = format!("kubectl-edit (Update, last wrote {})", entry["time"].as_str().expect("a time"));
    assert!(finding["message"].as_str().is_some_and(|message| message.contains(&since)), "{finding}");
    assert_eq!(api().get(&path).ok()["data"], json!({"key": "2", "extra": "x"}), "nothing is written");

    // Both ways out that the finding names: the waiver, and the value in the manifest.
    let waiver = format!("{}=agreed with ops", finding["fingerprint"].as_str().expect("one"));
    let check = app.run("check", &["-f", "app.yaml", "--config", "config.yaml", "--waive", &waiver]).expect(0);
    assert_eq!(check.json()["findings"][0]["waived"], "agreed with ops");
    let adopted = apply(&app, &config_map("a", "2"), &json!({})).expect(0);
    assert_eq!(lines(&adopted), Vec::<String>::new());
}

fn without_the_rule_an_edit_is_overwritten_and_the_plan_says_so() {
    let app = app();
    let path = config_map_path(&app.namespace, "a");
    app.apply(&config_map("a", "1"), &[]).expect(0);
    edit(&path, "kubectl-edit", &json!({"data": {"key": "2"}}));
    let ran = app.apply(&config_map("a", "1"), &[]).expect(0);
    assert_eq!(ran.events_of("plan")[0]["changes"][0]["notes"], json!(["takes over data.key from kubectl-edit"]));
    assert_eq!(lines(&ran), Vec::<String>::new());
    assert_eq!(api().get(&path).ok()["data"]["key"], "1");
}

fn settings_decide_by_manager_kind_and_path() {
    let app = app();
    let input = config_map("a", "1") + &config_map("b", "1");
    apply(&app, &input, &json!({})).expect(0);
    edit(&config_map_path(&app.namespace, "a"), "kubectl-edit", &json!({"data": {"key": "2"}}));
    edit(&config_map_path(&app.namespace, "b"), "robot", &json!({"data": {"key": "2"}}));
    let check = |settings: Value| {
        app.pushback.write("config.yaml", config(&settings));
        let ran = app.run("check", &["-f", "app.yaml", "--config", "config.yaml"]);
        let report = ran.json();
        let severities: Vec<String> = report["findings"]
            .as_array()
            .expect("findings")
            .iter()
            .map(|finding| format!("{} {}", finding["object"]["name"].as_str().expect("a name"), finding["severity"]))
            .collect();
        format!("{} {}", ran.code, severities.join(", ").replace('"', ""))
    };
    assert_eq!(check(json!({})), "10 a error, b error");
    assert_eq!(check(json!({"rules": [{"managers": ["kubectl*"], "action": "allow"}]})), "10 b error, a info");
    let by_path = json!([{"kinds": ["ConfigMap"], "paths": ["data"], "managers": ["robot"], "action": "warn"},
        {"paths": ["data.key"], "action": "allow"}]);
    assert_eq!(check(json!({"rules": by_path})), "0 b warning, a info");
    assert_eq!(
        check(json!({"default": "warn", "rules": [{"kinds": ["Secret"], "action": "refuse"}]})),
        "0 a warning, b warning"
    );
    assert_eq!(check(json!({"mode": "warn"})), "0 a warning, b warning");
}

fn another_tool_that_applies_the_same_field_is_a_conflict_and_one_that_agrees_is_none() {
    let app = app();
    let object = |value: &str| {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"key": value},
        "metadata": {"namespace": app.namespace, "name": "a"}})
    };
    apply(&app, &config_map("a", "1"), &json!({})).expect(0);
    api().apply_with(&object("1"), "fieldManager=gitops&force=true").ok();
    let ran = apply(&app, &config_map("a", "1"), &json!({})).expect(0);
    assert_eq!(lines(&ran), Vec::<String>::new(), "both set the same value");
    let ran = apply(&app, &config_map("a", "3"), &json!({})).expect(10);
    assert_eq!(lines(&ran), [r#"conflict error data.key "1" → "3""#]);
    let finding = &findings(&ran)[0];
    assert!(finding["message"].as_str().is_some_and(|text| text.contains("from gitops (Apply)")), "{finding}");
    assert!(finding["remedy"].as_str().is_some_and(|text| text.starts_with("let one of the two set it")), "{finding}");
}

fn a_count_set_through_scale_is_a_conflict_with_the_manifest() {
    let app = app();
    let input = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: 'registry.example/web:1'}]}
";
    apply(&app, input, &json!({})).expect(0);
    let path = format!("/apis/apps/v1/namespaces/{}/deployments/web", app.namespace);
    edit(&format!("{path}/scale"), "kubectl", &json!({"spec": {"replicas": 5}}));
    let image = json!([{"name": "web", "image": "registry.example/web:2"}]);
    let patch = json!({"spec": {"template": {"spec": {"containers": image}}}});
    let path = format!("{path}?fieldManager=kubectl-set");
    api()
        .request("PATCH", &path, Some("application/strategic-merge-patch+json"), Some(&patch))
        .expect("an answer")
        .ok();
    let ran = apply(&app, input, &json!({})).expect(10);
    assert_eq!(
        lines(&ran),
        [
            "conflict error spec.replicas 5 → 2",
            r#"conflict error spec.template.spec.containers[name=web].image "registry.example/web:2" → "registry.example/web:1""#,
        ]
    );
    assert!(findings(&ran)[0]["message"].as_str().is_some_and(|text| text.contains("from kubectl (Update of scale)")));
}

fn a_secret_value_is_in_no_finding_report_or_facts_file() {
    let app = app();
    let secret = |value: &str| {
        format!("apiVersion: v1\nkind: Secret\nmetadata: {{name: login}}\nstringData: {{password: {value}}}\n")
    };
    apply(&app, &secret("ours-7f3a"), &json!({})).expect(0);
    let path = format!("/api/v1/namespaces/{}/secrets/login", app.namespace);
    edit(&path, "kubectl-edit", &json!({"stringData": {"password": "theirs-91bc"}}));
    app.pushback.write("config.yaml", config(&json!({})));
    let outputs = ["--report", "json=r.json", "--facts-out", "facts.json"];
    let ran = app.run("check", &[&["-f", "app.yaml", "--config", "config.yaml"][..], &outputs].concat()).expect(10);
    let finding = &ran.json()["findings"][0];
    assert_eq!((&finding["path"], &finding["rule"]), (&json!("data.password"), &json!("FieldConflicts")));
    assert_ne!(finding["old"], finding["new"]);
    let files = ["r.json", "facts.json"].map(|file| app.pushback.read(file));
    for text in [ran.stdout, ran.stderr].iter().chain(&files) {
        for value in ["ours-7f3a", "theirs-91bc", "b3Vycy03ZjNh", "dGhlaXJzLTkxYmM="] {
            assert!(!text.contains(value), "{value} in {text}");
        }
    }
    assert!(files[1].contains("takenFrom"), "not what is tested: {}", files[1]);
}

fn a_predecessor_is_taken_over_once_and_refused_when_it_comes_back() {
    let app = app();
    let path = config_map_path(&app.namespace, "a");
    let object = |data: Value| {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "data": data,
        "metadata": {"namespace": app.namespace, "name": "a"}})
    };
    let collection = format!("/api/v1/namespaces/{}/configmaps", app.namespace);
    api()
        .post(
            &format!("{collection}?fieldManager=kubectl-client-side-apply"),
            &object(json!({"key": "0", "gone": "x"})),
        )
        .ok();
    let strict = apply(&app, &config_map("a", "1"), &json!({"predecessors": "refuse"})).expect(10);
    assert_eq!(findings(&strict)[0]["check"], "takeover");
    let ran = apply(&app, &config_map("a", "1"), &json!({})).expect(0);
    let finding = &findings(&ran)[0];
    assert_eq!((&finding["check"], &finding["severity"]), (&json!("takeover"), &json!("info")));
    assert!(finding["message"].as_str().is_some_and(|text| text.contains("data.gone and 1 more change")), "{finding}");
    assert_eq!(lines(&apply(&app, &config_map("a", "1"), &json!({})).expect(0)), Vec::<String>::new());

    // Now the object is ours, and who applies to it again takes part in a dispute.
    edit(&path, "kubectl-client-side-apply", &json!({"data": {"key": "2"}}));
    let ran = apply(&app, &config_map("a", "1"), &json!({})).expect(10);
    assert_eq!(lines(&ran), [r#"conflict error data.key "2" → "1""#]);
}

fn a_folder_has_no_managers_and_the_rule_is_skipped() {
    let pushback = crate::support::Pushback::new();
    pushback.write("in/a.yaml", config_map("a", "1"));
    let check = [
        "check",
        "-a",
        "x",
        "-f",
        "in",
        "--cluster",
        "dir:live",
        "--new-base",
        "--preflight=FieldConflicts",
        "-o",
        "json",
    ];
    assert_eq!(pushback.run(&check).expect(0).json()["rules"][0]["outcome"], "skipped");
}

fn a_wrong_setting_is_refused_with_its_place() {
    let pushback = crate::support::Pushback::new();
    pushback.write("in/a.yaml", config_map("a", "1"));
    pushback.write(
        "config.yaml",
        "apiVersion: pushback.dev/v1alpha1\nkind: Config\npreflightRules:\n- name: FieldConflicts\n  config:\n    rules:\n    - managers: [x]\n      action: deny\n    - managers: [z]\n- name: DestructiveChange\n  config:\n    checks:\n      replicasReset: off\n      crdDeleted: never\n    deletedShare:\n      percent: 200\n",
    );
    let ran =
        pushback.run(&["check", "-a", "x", "-f", "in", "--cluster", "dir:live", "--config", "config.yaml"]).expect(1);
    let complaints = ran.complaints();
    for part in [
        "config.yaml:8:7: preflight rule \"FieldConflicts\": rules[0].action: expected `allow`, `warn` or `refuse`, found \"deny\"",
        "config.yaml:9:7: preflight rule \"FieldConflicts\": rules[1]: missing key `action`",
        "config.yaml:14:7: preflight rule \"DestructiveChange\": checks.crdDeleted: expected `error`, `warn` or `off`, found \"never\"",
        "config.yaml:16:7: preflight rule \"DestructiveChange\": deletedShare.percent: expected a whole number from 0 to 99, found the number 200",
    ] {
        assert!(complaints.contains(part), "no {part:?} in {complaints}");
    }
    assert!(!complaints.contains("replicasReset"), "an unquoted off is off: {complaints}");
}
