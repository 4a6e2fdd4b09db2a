//! References that lead nowhere and API versions that go, on a real API server: what is warned of, what it costs to know,
//! and that following a way out ends the finding. Real releases raise no alarm.

use std::io::Read as _;
use std::path::Path;

use flate2::read::GzDecoder;
use pushback_preflight::api_lifecycle::{State, TABLE};
use serde_json::{Value, json};

use crate::support::apply::{TestApp, config_map, short};
use crate::support::proxy::FaultProxy;
use crate::support::pushback::Ran;
use crate::support::{Pushback, TestCase, TestCluster, cases};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        ApiServer: a_missing_secret_is_warned_of_and_the_way_out_ends_it,
        ApiServer: what_the_input_brings_is_not_asked_for_and_many_names_are_one_list,
        ApiServer: what_may_not_be_read_makes_the_rule_skipped_with_the_reason,
        ApiServer: what_a_kept_object_needs_is_not_deleted_where_the_rule_is_named,
        ApiServer: a_webhook_whose_service_goes_is_told_before_it_blocks,
        ApiServer: a_port_is_looked_for_in_a_service_on_the_cluster,
        ApiServer: a_service_that_selects_nothing_asks_for_one_pod,
        ApiServer: an_api_version_that_the_server_lacks_is_refused_with_its_successor,
        ApiServer: a_deprecated_api_version_warns_and_refuses_nothing,
        ApiServer: the_server_serves_nothing_that_the_table_calls_removed,
        ApiServer: real_releases_on_an_empty_cluster_raise_no_alarm,
        Nothing: real_upgrades_on_folders_raise_no_alarm,
        Nothing: the_version_asked_about_decides_on_a_folder,
    ]
}

fn app(prefix: &str) -> TestApp {
    TestApp::new("app", &TestCluster::shared().namespace(prefix))
}

fn deployment(name: &str, spec: &Value) -> String {
    let labels = json!({"app": name});
    let template = json!({"metadata": {"labels": labels}, "spec": spec});
    yaml(&json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {"replicas": 0, "selector": {"matchLabels": labels}, "template": template},
    }))
}

fn yaml(object: &Value) -> String {
    format!("---\n{object}\n")
}

/// A Deployment that has a Secret in its environment.
fn needs_secret(name: &str, secret: &str) -> String {
    let from = json!([{"secretRef": {"name": secret}}]);
    deployment(name, &json!({"containers": [{"name": "web", "image": "registry.example/web:1", "envFrom": from}]}))
}

fn secret(name: &str) -> String {
    yaml(&json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": {"key": "hunter2"}}))
}

fn service(name: &str, port: u64) -> String {
    let spec = json!({"ports": [{"port": port}]});
    yaml(&json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}))
}

/// `severity check message` of each finding of the two rules.
fn findings(ran: &Ran) -> Vec<String> {
    let ours = |finding: &Value| ["References", "RemovedAPIs"].iter().any(|rule| finding["rule"] == *rule);
    let line = |finding: &Value| {
        let text = |key: &str| finding[key].as_str().unwrap_or_default().to_owned();
        format!("{} {} {}", text("severity"), text("check"), text("message"))
    };
    let found = ran.events_of("finding").into_iter().map(|mut event| event["finding"].take());
    found.filter(ours).map(|finding| line(&finding)).collect()
}

/// What the preflight says of a rule: outcome and reasons.
fn rule(ran: &Ran, name: &str) -> (String, String) {
    let preflight = ran.events_of("preflight");
    let rules = preflight.last().expect("a preflight")["rules"].as_array().expect("rules").clone();
    let rule = rules.into_iter().find(|rule| rule["name"] == name).expect("the rule runs");
    (rule["outcome"].as_str().expect("an outcome").to_owned(), rule["reasons"].to_string())
}

const QUICK: &[&str] = &["--wait=false"];

fn a_missing_secret_is_warned_of_and_the_way_out_ends_it() {
    let app = app("references");
    let input = needs_secret("web", "db");
    let ran = app.apply(&input, QUICK).expect(0);
    let missing = format!("Secret {}/db is neither in the input nor on the cluster", app.namespace);
    assert_eq!(findings(&ran), [format!("warning missing {missing}")]);
    assert_eq!(rule(&ran, "References").0, "warned");
    // Named, it refuses, until the finding is ignored by the setting that it gives, or the Secret is there.
    let refused = app.apply(&input, &["--wait=false", "--preflight=References"]).expect(10);
    assert_eq!(findings(&refused), [format!("error missing {missing}")]);
    let finding = &refused.events_of("finding")[0]["finding"];
    let setting = finding["remedies"].as_array().expect("remedies").iter().find_map(|remedy| remedy.get("config"));
    let mut config = json!({"apiVersion": "pushback.dev/v1alpha1", "kind": "Config"});
    config.as_object_mut().expect("a map").extend(setting.expect("a setting").as_object().expect("a map").clone());
    app.pushback.write("config.yaml", config.to_string());
    app.apply(&input, &["--wait=false", "--config", "config.yaml"]).expect(0);
    let made = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "db", "namespace": app.namespace}});
    TestCluster::shared().api().apply(&made).ok();
    let ran = app.apply(&input, &["--wait=false", "--preflight=References"]).expect(0);
    assert_eq!(findings(&ran), [""; 0]);
}

fn what_the_input_brings_is_not_asked_for_and_many_names_are_one_list() {
    let cluster = TestCluster::shared();
    let proxy = FaultProxy::start(cluster.kubeconfig_path());
    let pushback = Pushback::with_kubeconfig(&proxy.kubeconfig());
    let app = TestApp::of(pushback, "app", &cluster.namespace("references"));
    let secrets = |input: &str| {
        let count = |verb: &str| proxy.counts().get(&format!("{verb} secrets")).copied().unwrap_or_default();
        let before = (count("get"), count("list"));
        app.pushback.write("app.yaml", input);
        let ran = app.run("diff", &["-f", "app.yaml", "--preflight=References"]);
        (count("get") - before.0, count("list") - before.1, findings(&ran).len())
    };
    assert_eq!(secrets(&(secret("db") + &needs_secret("web", "db"))), (0, 0, 0));
    assert_eq!(secrets(&needs_secret("web", "db")), (1, 0, 1));
    let many: String = (0..30).map(|number| needs_secret(&format!("web-{number}"), &format!("db-{number}"))).collect();
    assert_eq!(secrets(&many), (0, 1, 30));
}

fn what_may_not_be_read_makes_the_rule_skipped_with_the_reason() {
    let cluster = TestCluster::shared();
    let namespace = cluster.namespace("references");
    let user = format!("{namespace}-user");
    let rbac = "rbac.authorization.k8s.io";
    let everything =
        |group: &str, resource: &str| json!({"apiGroups": [group], "resources": [resource], "verbs": ["*"]});
    let role = json!({
        "apiVersion": format!("{rbac}/v1"), "kind": "Role", "metadata": {"name": "deployer", "namespace": namespace},
        "rules": [everything("", "configmaps"), everything("apps", "deployments")],
    });
    let binding = json!({
        "apiVersion": format!("{rbac}/v1"), "kind": "RoleBinding", "metadata": {"name": "deployer", "namespace": namespace},
        "roleRef": {"apiGroup": rbac, "kind": "Role", "name": "deployer"},
        "subjects": [{"apiGroup": rbac, "kind": "User", "name": user}],
    });
    cluster.api().apply(&role).ok();
    cluster.api().apply(&binding).ok();
    let pushback = Pushback::with_kubeconfig(&cluster.kubeconfig_once_allowed(&user, &namespace));
    let app = TestApp::of(pushback, "app", &namespace);
    let ran = app.apply(&needs_secret("web", "db"), QUICK).expect(0);
    let (outcome, reasons) = rule(&ran, "References");
    assert_eq!(outcome, "skipped");
    assert!(reasons.contains("failed to read Secret") && reasons.contains("cannot get resource"), "{reasons}");
    assert_eq!(findings(&ran), [""; 0]);
}

fn what_a_kept_object_needs_is_not_deleted_where_the_rule_is_named() {
    let app = app("references");
    let kept = needs_secret("web", "db");
    app.apply(&(secret("db") + &kept), QUICK).expect(0);
    let refused = app.apply(&kept, &["--wait=false", "--preflight=References"]).expect(10);
    assert_eq!(findings(&refused), [format!("error deleted Secret {}/db is deleted by this run", app.namespace)]);
    let path = format!("/api/v1/namespaces/{}/secrets/db", app.namespace);
    let api = TestCluster::shared().api();
    assert_eq!(api.get(&path).status, 200, "nothing is written");
    // The way out: it stays when it leaves the app.
    let finding = &refused.events_of("finding")[0]["finding"];
    let command = finding["remedies"][0]["commands"][0].as_str().expect("a command");
    assert!(command.starts_with("kubectl annotate secrets db kapp.k14s.io/delete-strategy=orphan -n "), "{command}");
    api.merge_patch(&path, &json!({"metadata": {"annotations": {"kapp.k14s.io/delete-strategy": "orphan"}}})).ok();
    app.apply(&kept, &["--wait=false", "--preflight=References"]).expect(0);
    assert_eq!(api.get(&path).status, 200);
}

/// A webhook that no object concerns.
fn webhook(name: &str, namespace: &str, service: &str) -> String {
    let called = json!({"service": {"namespace": namespace, "name": service, "port": 443}});
    let concerned = json!({"matchLabels": {"concerned": name}});
    let rules =
        json!([{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE"]}]);
    yaml(&json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": [{
            "name": "a.example.com", "clientConfig": called, "objectSelector": concerned, "rules": rules,
            "sideEffects": "None", "admissionReviewVersions": ["v1"],
        }],
    }))
}

fn a_webhook_whose_service_goes_is_told_before_it_blocks() {
    let app = app("references");
    let hook = webhook(&app.namespace, &app.namespace, "hook");
    app.apply(&(service("hook", 443) + &hook), QUICK).expect(0);
    let other = app.apply(&(service("hook", 8443) + &hook), &["--wait=false", "--preflight=References"]).expect(10);
    assert_eq!(findings(&other), [format!("error port Service {}/hook has no port 443; it has 8443", app.namespace)]);
    let gone = app.apply(&hook, &["--wait=false", "--preflight=References"]).expect(10);
    assert_eq!(findings(&gone), [format!("error deleted Service {}/hook is deleted by this run", app.namespace)]);
    // Both may go together.
    app.apply(&config_map("left", "1"), &["--wait=false", "--preflight=References"]).expect(0);
}

fn a_port_is_looked_for_in_a_service_on_the_cluster() {
    let app = app("references");
    let foreign = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "api", "namespace": app.namespace},
        "spec": {"ports": [{"name": "http", "port": 80}]},
    });
    TestCluster::shared().api().apply(&foreign).ok();
    let ingress = |number: u64| {
        let backend = json!({"service": {"name": "api", "port": {"number": number}}});
        yaml(&json!({
            "apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "web"},
            "spec": {"defaultBackend": backend},
        }))
    };
    assert_eq!(findings(&app.apply(&ingress(80), QUICK).expect(0)), [""; 0]);
    assert_eq!(
        findings(&app.apply(&ingress(81), QUICK).expect(0)),
        [format!("warning port Service {}/api has no port 81; it has 80, http", app.namespace)]
    );
}

fn a_service_that_selects_nothing_asks_for_one_pod() {
    let app = app("references");
    let spec = json!({"selector": {"app": "wbe"}, "ports": [{"port": 80}]});
    let service = yaml(&json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": spec}));
    let input =
        service + &deployment("web", &json!({"containers": [{"name": "web", "image": "registry.example/web:1"}]}));
    app.pushback.write("app.yaml", &input);
    // Without the app's own label, which would make the selector another.
    let check = || {
        let arguments = ["-f", "app.yaml", "--default-label-scoping-rules=false", "--report", "json=report.json"];
        app.run("check", &arguments).expect(0);
        alarms(&app.pushback)
    };
    assert_eq!(check(), ["selectsNothing Service web: it selects no Pod, neither of the input nor on the cluster"]);
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "other", "namespace": app.namespace, "labels": {"app": "wbe"}},
        "spec": {"containers": [{"name": "web", "image": "registry.example/web:1"}]},
    });
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": app.namespace}});
    let api = TestCluster::shared().api();
    api.apply(&account).ok();
    api.apply(&pod).ok();
    assert_eq!(check(), [""; 0]);
}

fn an_api_version_that_the_server_lacks_is_refused_with_its_successor() {
    let app = app("removed");
    let input = |version: &str, kind: &str| {
        yaml(&json!({"apiVersion": version, "kind": kind, "metadata": {"name": "web"}, "spec": {}}))
    };
    for (version, kind, hint) in [
        ("policy/v1beta1", "PodDisruptionBudget", "do not serve PodDisruptionBudget in policy/v1beta1; use policy/v1"),
        ("extensions/v1beta1", "Ingress", "do not serve Ingress in extensions/v1beta1; use networking.k8s.io/v1"),
        ("policy/v1beta1", "PodSecurityPolicy", "use Pod Security Admission"),
    ] {
        let refused = app.apply(&input(version, kind), QUICK).expect(1);
        assert!(refused.complaints().contains(hint), "{}", refused.complaints());
    }
}

fn a_deprecated_api_version_warns_and_refuses_nothing() {
    let app = app("removed");
    let input = yaml(&json!({"apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": "web"}}));
    let says = "warning deprecated Endpoints in v1 is deprecated since Kubernetes 1.33";
    assert_eq!(findings(&app.apply(&input, &["--wait=false", "--preflight=RemovedAPIs"]).expect(0)), [says]);
    let older = ["--wait=false", "--preflight=RemovedAPIs", "--kubernetes-version=1.32"];
    assert_eq!(findings(&app.apply(&input, &older).expect(0)), [""; 0]);
}

fn the_server_serves_nothing_that_the_table_calls_removed() {
    let api = TestCluster::shared().api();
    let version = api.get("/version").ok();
    let number = |key: &str| version[key].as_str().and_then(|text| text.parse::<u32>().ok()).expect("a number");
    let release = (number("major"), number("minor"));
    let mut judged = 0;
    for row in TABLE {
        let path = match row.api_version.split_once('/') {
            Some(_) => format!("/apis/{}", row.api_version),
            None => format!("/api/{}", row.api_version),
        };
        let answer = api.get(&path);
        let served = answer.status == 200 && {
            let resources = answer.ok()["resources"].as_array().cloned().unwrap_or_default();
            resources.iter().any(|resource| row.kinds.iter().any(|kind| resource["kind"] == *kind))
        };
        if row.state(release) == State::Removed {
            assert!(!served, "{} {:?}", row.api_version, row.kinds);
            judged += 1;
        }
        if let Some(successor) = row.successor.filter(|successor| successor.api_version.ends_with("/v1")) {
            assert_eq!(api.get(&format!("/apis/{}", successor.api_version)).status, 200, "{}", successor.api_version);
        }
    }
    assert!(judged > 30, "{judged}");
}

const APPS: [(&str, [&str; 2]); 4] = [
    ("argo-cd", ["v2.14.21.yaml.gz", "v3.5.1.yaml.gz"]),
    ("strimzi", ["0.48.0.yaml.gz", "1.0.0.yaml.gz"]),
    ("kube-prometheus", ["v0.15.0.yaml.gz", "v0.18.0.yaml.gz"]),
    ("ingress-nginx", ["controller-v1.11.3/deploy.yaml", "controller-v1.15.1/deploy.yaml"]),
];

fn release(app: &str, file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/apps").join(app).join(file);
    let bytes = std::fs::read(path).expect("the release");
    if !file.ends_with(".gz") {
        return String::from_utf8(bytes).expect("text");
    }
    let mut text = String::new();
    GzDecoder::new(&*bytes).read_to_string(&mut text).expect("packed YAML");
    text
}

/// The findings of the two rules in a check's report.
fn alarms(pushback: &Pushback) -> Vec<String> {
    let report = pushback.read_json("report.json");
    let ran = |name: &str| report["rules"].as_array().expect("rules").iter().any(|rule| rule["name"] == name);
    assert!(ran("References") && ran("RemovedAPIs"), "{}", report["rules"]);
    let findings = report["findings"].as_array().expect("findings").iter();
    let ours = findings.filter(|finding| finding["rule"] == "References" || finding["rule"] == "RemovedAPIs");
    let line = |finding: &Value| {
        let text = |key: &str| finding[key].as_str().unwrap_or_default().to_owned();
        format!("{} {}: {}", text("check"), short(&finding["object"]), text("message"))
    };
    ours.map(line).collect()
}

fn real_releases_on_an_empty_cluster_raise_no_alarm() {
    for (name, versions) in APPS {
        // The bindings of some name the accounts of one namespace.
        let namespace = match name {
            "argo-cd" => "argocd",
            "strimzi" => "myproject",
            _ => "releases",
        };
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
        TestCluster::shared().api().apply(&object).ok();
        for version in versions {
            let app = TestApp::new("app", namespace);
            app.pushback.write("release.yaml", release(name, version));
            let arguments =
                ["-f", "release.yaml", "--report", "json=report.json", "--preflight=References,RemovedAPIs"];
            app.run("check", &arguments);
            assert_eq!(alarms(&app.pushback), [""; 0], "{name} {version}");
        }
    }
}

fn real_upgrades_on_folders_raise_no_alarm() {
    for (name, [old, new]) in APPS {
        let pushback = Pushback::new();
        pushback.write("old/release.yaml", release(name, old)).write("new/release.yaml", release(name, new));
        for app in [&[][..], &["-a", "app"]] {
            let arguments = ["check", "-f", "new", "--cluster", "dir:old", "--report", "json=report.json"];
            pushback.run(&[&arguments[..], app].concat());
            assert_eq!(alarms(&pushback), [""; 0], "{name}");
        }
    }
}

fn the_version_asked_about_decides_on_a_folder() {
    let pushback = Pushback::new();
    std::fs::create_dir(pushback.directory().join("live")).expect("a folder");
    pushback
        .write("app.yaml", yaml(&json!({"apiVersion": "batch/v1beta1", "kind": "CronJob", "metadata": {"name": "a"}})));
    let check = ["check", "-f", "app.yaml", "--cluster", "dir:live"];
    let says = |version: &[&str]| pushback.run(&[&check[..], version].concat()).expect(0).data();
    let removed = "Kubernetes 1.25 and later do not serve CronJob in batch/v1beta1";
    assert!(says(&[]).contains(removed), "{}", says(&[]));
    assert!(says(&["--kubernetes-version", "1.24"]).contains("is deprecated since Kubernetes 1.21"));
    assert!(!says(&["--kubernetes-version=v1.20"]).contains("RemovedAPIs"));
    let named = ["--preflight=RemovedAPIs", "--report", "json=report.json"];
    pushback.run(&[&check[..], &named].concat()).expect(10);
    let remedy = &pushback.read_json("report.json")["findings"][0]["remedies"][0];
    assert_eq!(remedy["commands"][0], "kubectl convert -f app.yaml --output-version batch/v1");
    let slip = pushback.run(&[&check[..], &["--kubernetes-version", "newest"]].concat()).expect(1);
    assert!(slip.complaints().contains("expected a version such as 1.36"), "{}", slip.complaints());
}
