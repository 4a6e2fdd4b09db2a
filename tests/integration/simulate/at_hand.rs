//! Suites for apps on a cluster that has a few custom resources: instances come from there, values fit into them, and
//! the API server takes what would be injected.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};

use super::accepted::unpacked;
use super::yaml;
use crate::support::{Options, Pushback, TestCase, TestCluster, cases, wait_until};

pub(super) fn tests() -> Vec<TestCase> {
    cases![
        ApiServer: suites_for_real_apps_are_ready_where_the_cluster_has_objects,
    ]
}

/// A real app, and custom resources that somebody may have.
struct App {
    name: &'static str,
    releases: [&'static str; 2],
    namespace: &'static str,
    objects: Vec<Value>,
    /// Experiments at least, and the most that may have to be filled in.
    expected: (usize, usize),
}

fn object(api_version: &str, kind: &str, spec: &Value) -> Value {
    json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": format!("a-{}", kind.to_lowercase())}, "spec": spec})
}

fn argo_cd() -> App {
    let argo = |kind: &str, spec: Value| object("argoproj.io/v1alpha1", kind, &spec);
    let destination = json!({"server": "https://kubernetes.default.svc", "namespace": "shop"});
    let source = json!({"repoURL": "https://git.example.com/shop.git", "path": "deploy", "targetRevision": "main"});
    let application = json!({"project": "default", "source": source, "destination": destination});
    App {
        name: "argo-cd",
        releases: ["v2.14.21", "v3.5.1"],
        namespace: "argocd",
        objects: vec![
            argo("Application", application.clone()),
            argo("AppProject", json!({"sourceRepos": ["*"], "destinations": [destination]})),
            argo(
                "ApplicationSet",
                json!({
                    "generators": [{"list": {"elements": [{"cluster": "one"}]}}],
                    "template": {"metadata": {"name": "{{cluster}}-shop"}, "spec": application},
                }),
            ),
        ],
        expected: (6, 0),
    }
}

fn kube_prometheus() -> App {
    let v1 = |kind: &str, spec: Value| object("monitoring.coreos.com/v1", kind, &spec);
    let alpha = |kind: &str, spec: Value| object("monitoring.coreos.com/v1alpha1", kind, &spec);
    let selector = json!({"matchLabels": {"app": "shop"}});
    App {
        name: "kube-prometheus",
        releases: ["v0.15.0", "v0.18.0"],
        namespace: "monitoring",
        objects: vec![
            alpha("AlertmanagerConfig", json!({"route": {"receiver": "team"}, "receivers": [{"name": "team"}]})),
            alpha("ScrapeConfig", json!({"staticConfigs": [{"targets": ["shop:8080"]}]})),
            alpha("PrometheusAgent", json!({"replicas": 1})),
            v1("Alertmanager", json!({"replicas": 1})),
            v1("Prometheus", json!({"replicas": 1})),
            v1("ThanosRuler", json!({"queryEndpoints": ["shop:9090"]})),
            v1("Probe", json!({"prober": {"url": "prober:9115"}})),
            v1("PodMonitor", json!({"selector": selector, "podMetricsEndpoints": [{"port": "metrics"}]})),
            v1("ServiceMonitor", json!({"selector": selector, "endpoints": [{"port": "metrics"}]})),
        ],
        expected: (100, 0),
    }
}

fn suites_for_real_apps_are_ready_where_the_cluster_has_objects() {
    let cluster = TestCluster::start(&Options::default());
    let place = Pushback::on(&cluster);
    for app in [argo_cd(), kube_prometheus()] {
        let [from, to] = app.releases.map(|release| unpacked(&place, app.name, release));
        install(&cluster, &place, &from, &app);
        let simulate = ["upgrade", "simulate", "--from", &from, "--to", &to, "--live", "--output", app.name];
        place.run(&simulate).expect(0);
        place.run(&["upgrade", "validate", app.name]).expect(0);
        let manifest = yaml(place.directory().join(app.name).join("suite-manifest.yaml"));
        let entries = manifest["experiments"].as_array().expect("a list");
        let open: Vec<&Value> = entries.iter().filter(|entry| entry["enabled"] == false).collect();
        assert!(entries.len() >= app.expected.0, "{}: {}", app.name, entries.len());
        assert!(open.len() <= app.expected.1, "{}: {open:?}", app.name);
        let names: BTreeSet<&str> = entries.iter().filter_map(|entry| entry["name"].as_str()).collect();
        assert_eq!(names.len(), entries.len());
        let (taken, refused) = accepted(&cluster, &place, app.name, entries);
        if std::env::var_os("PUSHBACK_SHOW").is_some() {
            let lines = [refused.join("\n"), format!("{}: {taken} of {} taken", app.name, entries.len())];
            let _ = std::io::Write::write_all(&mut std::io::stderr(), format!("{}\n", lines.join("\n")).as_bytes());
        }
        assert!(taken * 100 >= (taken + refused.len()) * 95, "{}: {taken} taken, refused: {refused:?}", app.name);
    }
}

/// The definitions of the old release, and the custom resources.
fn install(cluster: &TestCluster, place: &Pushback, release: &str, app: &App) {
    let api = cluster.api();
    let path = place.directory().join(release);
    let text = std::fs::read_to_string(&path).expect("the release");
    let objects: Vec<Value> = serde_yaml::from_multiple(&text).expect("a release");
    for object in objects {
        if object["kind"] == "CustomResourceDefinition" {
            api.apply(&object).ok();
        }
    }
    api.apply(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": app.namespace}})).ok();
    for object in &app.objects {
        let mut object = object.clone();
        object["metadata"]["namespace"] = app.namespace.into();
        wait_until("its kind is served", Duration::from_secs(60), || {
            let text = |key: &str| object[key].as_str().expect("a text");
            let answer = api.post(&collection(text("apiVersion"), text("kind"), app.namespace), &object);
            assert!([201, 404, 503].contains(&answer.status), "{}", answer.body);
            (answer.status == 201).then_some(())
        });
    }
}

/// Path of the objects of a kind.
fn collection(api_version: &str, kind: &str, namespace: &str) -> String {
    let kind = kind.to_lowercase();
    let plural = if kind.ends_with('s') { format!("{kind}es") } else { format!("{kind}s") };
    format!("/apis/{api_version}/namespaces/{namespace}/{plural}")
}

/// How many injections into custom resources the API server takes, and those that it refuses.
fn accepted(cluster: &TestCluster, place: &Pushback, folder: &str, entries: &[Value]) -> (usize, Vec<String>) {
    let (mut taken, mut refused) = (0, Vec::new());
    for entry in entries.iter().filter(|entry| entry["injection"] == "CRDMutation") {
        let file = entry["file"].as_str().expect("a file");
        let experiment = yaml(place.directory().join(folder).join(file));
        let parameters = &experiment["spec"]["injection"]["parameters"];
        let text = |key: &str| parameters[key].as_str().unwrap_or_default().to_owned();
        let value = text("value");
        let value: Value = serde_json::from_str(&value).unwrap_or(Value::from(value));
        let path = if text("field").is_empty() { text("path") } else { format!("spec.{}", text("field")) };
        let patch = path.rsplit('.').fold(value, |inner, key| json!({key: inner}));
        let namespace = experiment["metadata"]["namespace"].as_str().expect("a namespace");
        let object = format!("{}/{}", collection(&text("apiVersion"), &text("kind"), namespace), text("name"));
        let answer = cluster.api().merge_patch(&format!("{object}?dryRun=All&fieldValidation=Strict"), &patch);
        match answer.status {
            200 => taken += 1,
            _ => refused.push(format!("{file}: {} {}", answer.status, answer.body)),
        }
    }
    (taken, refused)
}
