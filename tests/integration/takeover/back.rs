//! The way back to kapp: what it reads is intact, so it finds, prunes and deletes what we have made; and when it has
//! deployed in between, the next run of ours works as the first one did.

use pushback_deploy::plan::original::Rules;
use pushback_manifest::config::Config;
use serde_json::{Value, json};

use super::{api, assert_settled, content, managers, new_app, shown_fields};
use crate::support::apply::{config_map, config_map_path, parse_text, planned};
use crate::support::{TestCase, cases, kapp};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        ApiServer: kapp_finds_everything_that_was_made_and_nothing_else,
        ApiServer: what_kapp_no_longer_wants_is_what_it_would_prune,
        ApiServer: what_is_handed_back_is_for_kapp_as_it_has_left_it,
        ApiServer: an_object_can_be_without_kapps_copy,
        ApiServer: an_app_goes_to_kapp_and_back_as_often_as_one_likes,
    ]
}

const APP: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {mode: fast}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: 'registry.example/web:1', envFrom: [{configMapRef: {name: settings}}]}]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader}
rules: [{apiGroups: [''], resources: [pods], verbs: [get]}]
";

fn kapp_finds_everything_that_was_made_and_nothing_else() {
    let app = new_app();
    app.apply(APP, &["--wait=false"]).expect(0);
    // What a controller would make below the Deployment: the labels of its template, and no identity of its own.
    let child = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "child", "namespace": app.namespace,
        "labels": {"kapp.k14s.io/app": app.label()}}});
    api().apply(&child).ok();
    let in_namespace = |what: &str| what.replace(' ', &format!(" {}/", app.namespace));
    let made = ["ConfigMap settings", "Deployment web", "Role reader", "Service web"].map(in_namespace);
    let record = app.record();
    assert_eq!(kapp::selected(&record), made);
    // The history, by the label that the record's annotation speaks of; the last change is there.
    let spec = parse_text(&record["data"]["spec"]);
    assert_eq!(record["metadata"]["annotations"]["kapp.k14s.io/app-changes-use-app-label"], "");
    let last = api().get(&config_map_path(&app.namespace, spec["lastChangeName"].as_str().expect("a name"))).ok();
    assert_eq!(parse_text(&last["data"]["spec"]), spec["lastChange"]);
    assert_eq!(last["metadata"]["labels"]["kapp.k14s.io/app-change-app-label"], spec["labelValue"]);
}

fn what_kapp_no_longer_wants_is_what_it_would_prune() {
    let app = new_app();
    app.apply(APP, &["--wait=false"]).expect(0);
    let (rest, _) = APP.rsplit_once("---").expect("documents");
    let all = kapp::selected(&app.record());
    // kapp's deploy of less: what it selects and the input does not have, it deletes with the uid that it has seen.
    let role = format!("Role {}/reader", app.namespace);
    assert!(all.contains(&role), "{all:?}");
    let path = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{}/roles/reader", app.namespace);
    api().delete(&path).ok();
    let kinds = [("", "ConfigMap"), ("", "Service"), ("apps", "Deployment")];
    kapp::deploy_record(&app.record_path(), "shop-change-kapp1", &kinds, &[&app.namespace]);
    let left: Vec<String> = all.into_iter().filter(|one| *one != role).collect();
    assert_eq!(kapp::selected(&app.record()), left);
    // And for us the app is what kapp has left of it.
    let ran = app.apply(rest, &["--wait=false"]).expect(0);
    assert_eq!(planned(&ran), Vec::<String>::new());
    app.delete(&["--wait=false"]).expect(0);
    assert_eq!(api().get(&app.record_path()).status, 404);
}

/// What kapp does to an object that is there: all of it is sent, then once more with its own annotations.
fn deployed_by_kapp(path: &str, change: impl Fn(&mut Value)) {
    let mut object = api().get(path).ok();
    change(&mut object);
    object["metadata"].as_object_mut().expect("metadata").shift_remove("managedFields");
    let sent = api().put(&format!("{path}?fieldManager=kapp"), &object).ok();
    let mut noted = sent.clone();
    let annotations = noted["metadata"]["annotations"].as_object_mut().expect("annotations");
    annotations.insert("kapp.k14s.io/original".to_owned(), json!(content(&object).to_string()));
    annotations.insert("kapp.k14s.io/original-diff-md5".to_owned(), json!("58e0494c51d30eb3494f7c9198986bb9"));
    api().put(&format!("{path}?fieldManager=kapp"), &noted).ok();
}

fn parse(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

/// The object without kapp's copy of the manifest.
fn without_copies(object: &Value) -> Value {
    let mut object = object.clone();
    let annotations = object["metadata"]["annotations"].as_object_mut().expect("annotations");
    annotations.retain(|name, _| !name.starts_with("kapp.k14s.io/original"));
    object
}

/// What kapp compares with at its next deploy, less its own labels and the namespace: `None` if it would compare with the
/// live object, and show every default.
fn compared_by_kapp(path: &str) -> Option<Value> {
    let live = api().get(path).ok();
    let copy = parse(live["metadata"]["annotations"]["kapp.k14s.io/original"].as_str()?);
    let is_current = Rules::of(&Config::default()).outdated(&live).is_none();
    is_current.then(|| without_labels(copy))
}

fn without_labels(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let kept = map.into_iter().filter(|(key, _)| !key.starts_with("kapp.k14s.io/a") && key != "namespace");
            let kept = kept.map(|(key, value)| (key, without_labels(value)));
            Value::Object(
                kept.filter(|(key, value)| !matches!(key.as_str(), "labels" | "metadata") || *value != json!({}))
                    .collect(),
            )
        }
        Value::Array(items) => Value::Array(items.into_iter().map(without_labels).collect()),
        other => other,
    }
}

/// Everything that a server fills in differently for each object.
const FILLED_IN: &str = "
apiVersion: batch/v1
kind: Job
metadata: {name: migrate, annotations: {kapp.k14s.io/update-strategy: always-replace}}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: 'registry.example/migrate:1'}]}}}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80}]}
---
apiVersion: v1
kind: Secret
metadata: {name: login}
stringData: {password: 'example: #1'}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 0
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: web, image: 'registry.example/web:1', resources: {requests: {cpu: 1000m}}, ports: [{containerPort: 80}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, annotations: {kapp.k14s.io/versioned: ''}}
data: {mode: fast}
";

fn what_is_handed_back_is_for_kapp_as_it_has_left_it() {
    let app = new_app();
    let arguments = ["--wait=false", "--kapp-annotations"];
    for (image, mode, version) in [("migrate:1", "fast", 1), ("migrate:2", "slow", 2)] {
        let input = FILLED_IN.replace("migrate:1", image).replace("mode: fast", &format!("mode: {mode}"));
        app.apply(&input, &arguments).expect(0);
        let given: Vec<Value> = serde_yaml::from_multiple(&input).expect("objects");
        let mut paths = Vec::new();
        for mut object in given {
            object["metadata"]["namespace"] = json!(app.namespace);
            if object["kind"] == "ConfigMap" {
                object["metadata"]["name"] = json!(format!("settings-ver-{version}"));
            }
            let path = api().path_of(&object);
            // What differs is its selector, which the app's label became part of.
            assert_eq!(compared_by_kapp(&path), Some(without_labels(object)), "{path}");
            paths.push(path);
        }
        assert_settled(&app, &input, &["--kapp-annotations"], &paths);
    }
    // Without the flag what is there is kept up to date, and what has been there is known.
    let input = FILLED_IN.replace("migrate:1", "migrate:2").replace("mode: fast", "mode: slow");
    assert_eq!(planned(&app.apply(&input, &["--wait=false"]).expect(0)), Vec::<String>::new());
    let changed = input
        .replace("port: 80}]}\n---\napiVersion: v1\nkind: Secret", "port: 81}]}\n---\napiVersion: v1\nkind: Secret");
    assert_eq!(planned(&app.apply(&changed, &["--wait=false"]).expect(0)), ["update Service web"]);
    let service = format!("/api/v1/namespaces/{}/services/web", app.namespace);
    assert_eq!(compared_by_kapp(&service).expect("still current")["spec"]["ports"], json!([{"port": 81}]));
}

fn an_object_can_be_without_kapps_copy() {
    let app = new_app();
    let input =
        config_map("a", "1").replace("metadata:", "metadata:\n  annotations: {kapp.k14s.io/disable-original: ''}");
    app.apply(&input, &["--kapp-annotations"]).expect(0);
    assert_eq!(compared_by_kapp(&config_map_path(&app.namespace, "a")), None);
    assert_settled(&app, &input, &["--kapp-annotations"], &[]);
}

fn an_app_goes_to_kapp_and_back_as_often_as_one_likes() {
    let app = new_app();
    let input = config_map("a", "ours");
    app.apply(&input, &[]).expect(0);
    let path = config_map_path(&app.namespace, "a");
    for round in ["first", "second"] {
        let before = api().get(&path).ok();
        deployed_by_kapp(&path, |object| {
            object["data"]["key"] = json!("theirs");
            object["data"][round] = json!("added");
        });
        kapp::deploy_record(
            &app.record_path(),
            &format!("shop-change-{round}"),
            &[("", "ConfigMap")],
            &[&app.namespace],
        );
        assert_eq!(kapp::selected(&app.record()), [format!("ConfigMap {}/a", app.namespace)]);

        let ran = app.apply(&input, &[]).expect(0);
        assert_eq!(shown_fields(&ran, "ConfigMap a"), ["data.key: theirs → ours", &format!("data.{round}: added → -")]);
        let after = api().get(&path).ok();
        let noted = |object: &Value| object["metadata"]["annotations"]["kapp.k14s.io/original"].as_str().map(parse);
        assert_eq!(noted(&after).expect("kapp's copy")["data"], json!({"key": "ours"}));
        assert_eq!(Rules::of(&Config::default()).outdated(&after), None);
        let contents = [&after, &before].map(|object| without_copies(&content(object)));
        assert_eq!((&contents[0], managers(&after)), (&contents[1], vec!["pushback Apply".to_owned()]));
        assert_settled(&app, &input, &[], &[path.clone(), app.record_path()]);
    }
}
