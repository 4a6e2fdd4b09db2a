//! A release of every kind of object that a plan can rest on, on a real server: each object in turn is changed, deleted, or
//! deleted and created again between plan and apply, and the plan names it and writes nothing.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::support::apply::TestApp;
use crate::support::case::rounds;
use crate::support::{TestCase, TestCluster, cases};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        ApiServer: each_object_of_a_release_that_moves_is_named_and_nothing_is_written,
        ApiServer: a_verdict_that_differs_by_then_is_told,
        ApiServer: what_controllers_and_others_do_does_not_matter,
    ]
}

/// An object of a release: its path, its kind, and its manifest with a value.
type Part = (String, &'static str, fn(&str) -> Value);

/// The objects of a release.
fn objects(namespace: &str) -> Vec<Part> {
    let core = |plural: &str, name: &str| format!("/api/v1/namespaces/{namespace}/{plural}/{name}");
    let group =
        |group: &str, plural: &str, name: &str| format!("/apis/{group}/v1/namespaces/{namespace}/{plural}/{name}");
    vec![
        (
            core("configmaps", "settings"),
            "ConfigMap",
            |value| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"key": value}}),
        ),
        (
            core("secrets", "login"),
            "Secret",
            |value| json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login"}, "stringData": {"key": value}}),
        ),
        (core("serviceaccounts", "runner"), "ServiceAccount", |value| {
            json!({"apiVersion": "v1", "kind": "ServiceAccount",
                "metadata": {"name": "runner", "annotations": {"example.com/key": value}}})
        }),
        (core("services", "web"), "Service", |value| {
            json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "labels": {"key": value}},
                "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}})
        }),
        (group("apps", "deployments", "web"), "Deployment", |value| {
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {
                "replicas": 0, "selector": {"matchLabels": {"app": "web"}}, "template": {
                    "metadata": {"labels": {"app": "web"}, "annotations": {"example.com/key": value}},
                    "spec": {"containers": [{"name": "web", "image": "registry.example/web:1"}]}}}})
        }),
        (group("rbac.authorization.k8s.io", "roles", "reader"), "Role", |value| {
            json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "reader"},
                "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"], "resourceNames": [value]}]})
        }),
        (group("batch", "cronjobs", "nightly"), "CronJob", |value| {
            json!({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "nightly"}, "spec": {
                "schedule": "0 0 1 1 *", "suspend": true, "jobTemplate": {"spec": {"template": {
                    "metadata": {"annotations": {"example.com/key": value}},
                    "spec": {"restartPolicy": "Never",
                        "containers": [{"name": "job", "image": "registry.example/job:1"}]}}}}}})
        }),
    ]
}

fn render(objects: impl IntoIterator<Item = Value>) -> String {
    objects.into_iter().map(|object| format!("---\n{object}\n")).collect()
}

/// The release's objects and its record, without what controllers do to them meanwhile.
fn state(app: &TestApp) -> BTreeMap<String, Value> {
    let api = TestCluster::shared().api();
    let paths = objects(&app.namespace).into_iter().map(|(path, ..)| path).chain([app.record_path()]);
    paths
        .map(|path| {
            let mut found = api.get(&path).body;
            if let Some(object) = found.as_object_mut() {
                object.remove("status");
            }
            if let Some(metadata) = found["metadata"].as_object_mut() {
                metadata.remove("resourceVersion");
                metadata.remove("managedFields");
                let annotations = metadata.get_mut("annotations").and_then(Value::as_object_mut);
                annotations.map(|annotations| annotations.remove("deployment.kubernetes.io/revision"));
                // Its only annotation may be that of the controller, which comes when it likes.
                if metadata.get("annotations").is_some_and(|left| left == &json!({})) {
                    metadata.remove("annotations");
                }
            }
            (path, found)
        })
        .collect()
}

#[derive(Clone, Copy, Debug)]
enum Move {
    Changed,
    Deleted,
    Recreated,
}

fn each_object_of_a_release_that_moves_is_named_and_nothing_is_written() {
    let app = TestApp::new("release", &TestCluster::shared().namespace("plan-release"));
    let api = TestCluster::shared().api();
    let all = objects(&app.namespace);
    let with = |value: &'static str| all.iter().map(move |(_, _, make)| make(value));
    // What the release does to each object: it changes it, leaves it, or deletes it.
    let releases: [(&str, String); 3] =
        [("changes", render(with("new"))), ("leaves", render(with("old"))), ("deletes", render(std::iter::empty()))];
    let mut told = Vec::new();
    for (number, (what, input)) in releases.iter().enumerate() {
        for (index, (path, kind, make)) in all.iter().enumerate() {
            for (turn, step) in [Move::Changed, Move::Deleted, Move::Recreated].into_iter().enumerate() {
                // Each object meets each move and each release, and each move each release.
                if (number + index + turn) % 3 != 0 && rounds(0, 1) == 0 {
                    continue;
                }
                app.apply(&render(with("old")), &["--wait=false"]).expect(0);
                app.pushback.write("app.yaml", input);
                let plan = ["-f", "app.yaml", "--out", "app.plan", "--dangerous-allow-empty-list-of-resources"];
                app.run("plan", &plan).expect(0);
                match step {
                    Move::Changed => {
                        // Somebody who writes over what the app has set.
                        let theirs = make("theirs");
                        let patch = match theirs.get("metadata").filter(|it| it.get("annotations").is_some()) {
                            Some(metadata) => json!({"metadata": metadata}),
                            None => theirs,
                        };
                        api.merge_patch(path, &patch).ok();
                    }
                    Move::Deleted | Move::Recreated => drop(api.delete(path).ok()),
                }
                if let Move::Recreated = step {
                    let mut live = make("old");
                    let label = json!({"kapp.k14s.io/app": app.label()});
                    live["metadata"]["labels"] = match live["metadata"]["labels"].take() {
                        Value::Object(mut own) => {
                            own.extend(label.as_object().cloned().unwrap_or_default());
                            own.into()
                        }
                        _ => label,
                    };
                    let (folder, _) = path.rsplit_once('/').expect("a folder");
                    api.post(folder, &live).ok();
                }
                let before = state(&app);
                let end = app.pushback.run(&["apply", "--plan", "app.plan", "-o", "json"]);
                let text = end.end()["error"].as_str().unwrap_or_default().to_owned();
                let writes = ["create", "update", "replace", "delete"].map(|word| end.end()["done"][word].as_u64());
                let name = format!("{kind} {}/", app.namespace);
                if end.code != 11
                    || writes != [Some(0); 4]
                    || !text.contains(&name)
                    || text.lines().count() > 2
                    || state(&app) != before
                {
                    told.push(format!("{what} {index} {kind} {step:?}: {} {text}", end.code));
                }
            }
        }
    }
    assert!(told.is_empty(), "{}", told.join("\n"));
}

/// Definition of `Foo`, with versions of which the last is stored.
fn definition(group: &str, versions: &[&str], kinds: &[&str]) -> Value {
    let schema = json!({"openAPIV3Schema": {"type": "object", "properties": {
        "spec": {"type": "object", "properties": {"kind": {"type": "string", "enum": kinds}}}}}});
    let version = |(index, name): (usize, &&str)| json!({"name": name, "served": true, "storage": index + 1 == versions.len(), "schema": schema});
    let versions: Vec<Value> = versions.iter().enumerate().map(version).collect();
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("foos.{group}")},
        "spec": {"group": group, "scope": "Namespaced", "names": {"kind": "Foo", "plural": "foos"}, "versions": versions}})
}

fn a_verdict_that_differs_by_then_is_told() {
    let cluster = TestCluster::shared();
    let api = cluster.api();
    // The definition is somebody else's: another enum by then, which the app's object does not fit.
    let app = TestApp::new("verdict", &cluster.namespace("plan-verdict"));
    let group = format!("{}.ex", app.namespace);
    let theirs = TestApp::new("theirs", &app.namespace);
    theirs.apply(&render([definition(&group, &["v1"], &["one", "two"])]), &[]).expect(0);
    let sample =
        json!({"apiVersion": format!("{group}/v1"), "kind": "Foo", "metadata": {"name": "x"}, "spec": {"kind": "two"}});
    app.pushback.write("app.yaml", render([sample]));
    app.run("plan", &["-f", "app.yaml", "--out", "app.plan"]).expect(0);
    let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/foos.{group}");
    let narrower = definition(&group, &["v1"], &["one"]);
    api.merge_patch(&path, &json!({"spec": {"versions": narrower["spec"]["versions"]}})).ok();
    let end = app.pushback.run(&["apply", "--plan", "app.plan", "-o", "json"]).expect(11).end();
    let error = end["error"].as_str().unwrap_or_default();
    assert!(error.contains("Foo.") && error.contains("Unsupported value"), "{error}");

    // A version that the app takes off its definition is stored by then.
    let app = TestApp::new("versions", &cluster.namespace("plan-versions"));
    let group = format!("{}.ex", app.namespace);
    app.apply(&render([definition(&group, &["v1", "v2"], &["one"])]), &[]).expect(0);
    app.pushback.write("app.yaml", render([definition(&group, &["v2"], &["one"])]));
    let policy = "apiVersion: pushback.dev/v1alpha1\nkind: Config\npreflightRules: [{name: StoredVersions}]\n";
    app.pushback.write("policy.yaml", policy);
    app.run("plan", &["-f", "app.yaml", "--config", "policy.yaml", "--out", "app.plan"]).expect(0);
    let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/foos.{group}");
    api.merge_patch(&format!("{path}/status"), &json!({"status": {"storedVersions": ["v1", "v2"]}})).ok();
    let end = app.pushback.run(&["apply", "--plan", "app.plan", "-o", "json"]).expect(11).end();
    let error = end["error"].as_str().unwrap_or_default();
    assert!(error.contains("StoredVersions says of"), "{error}");
}

fn what_controllers_and_others_do_does_not_matter() {
    let app = TestApp::new("beside", &TestCluster::shared().namespace("plan-others"));
    let api = TestCluster::shared().api();
    let all = objects(&app.namespace);
    let with = |value: &'static str| render(all.iter().map(move |(_, _, make)| make(value)));
    app.apply(&with("old"), &["--wait=false"]).expect(0);
    app.pushback.write("app.yaml", with("new"));
    app.run("plan", &["-f", "app.yaml", "--out", "app.plan"]).expect(0);
    for (path, ..) in &all {
        api.merge_patch(path, &json!({"metadata": {"annotations": {"theirs": "1"}, "labels": {"theirs": "1"}}})).ok();
    }
    let (deployment, ..) = all.iter().find(|(_, kind, _)| *kind == "Deployment").expect("a Deployment");
    api.merge_patch(&format!("{deployment}/status"), &json!({"status": {"observedGeneration": 1}})).ok();
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web-1", "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "c", "image": "i.example/i"}]}});
    api.post(&format!("/api/v1/namespaces/{}/pods", app.namespace), &pod).ok();
    let other = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "unrelated"}});
    api.post(&format!("/api/v1/namespaces/{}/configmaps", app.namespace), &other).ok();
    app.pushback.run(&["apply", "--plan", "app.plan", "-o", "json", "--wait=false"]).expect(0);
}
