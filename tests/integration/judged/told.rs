//! What comes out only when it is written is told as what was refused before: in every report, and of objects that the
//! server could not be asked about, too.

use serde_json::{Value, json};

use super::{Boxes, FIELDS, seen, unfinished};
use crate::support::apply::TestApp;
use crate::support::webhook::{Form, Verdict, Webhook};
use crate::support::{Pushback, TestCase, TestCluster, cases};

const FORMATS: [&str; 6] = ["json", "junit", "sarif", "markdown", "github", "html"];

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        ApiServer: what_a_second_look_refuses_is_in_every_report,
        ApiServer: what_the_server_makes_of_an_answer_is_in_every_report,
        ApiServer: what_the_server_sets_otherwise_in_an_object_that_nobody_could_verify_stops_what_depends_on_it,
        ApiServer: how_the_server_writes_a_value_is_no_other_value,
    ]
}

fn flags() -> Vec<String> {
    FORMATS.iter().map(|format| format!("--report={format}=report.{format}")).collect()
}

/// Applies with a report of each format; each one has this word.
#[track_caller]
fn assert_told(boxes: &Boxes, input: &str, word: &str) -> Value {
    let flags = flags();
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    boxes.app.apply(input, &flags).expect(20);
    let silent = FORMATS.iter().filter(|format| !boxes.app.pushback.read(&format!("report.{format}")).contains(word));
    assert_eq!(silent.collect::<Vec<_>>(), [&""; 0], "reports without {word}");
    boxes.app.pushback.read_json("report.json")
}

/// The line of a rule in a report.
fn rule<'r>(report: &'r Value, name: &str) -> &'r Value {
    let rules = report["rules"].as_array().expect("rules");
    rules.iter().find(|rule| rule["name"] == name).unwrap_or(&Value::Null)
}

fn what_a_second_look_refuses_is_in_every_report() {
    let boxes = Boxes::new("reported");
    let narrows = |request: &Value| {
        seen(request).unwrap_or_else(|| Verdict::Patch(json!([{"op": "remove", "path": format!("{FIELDS}/size")}])))
    };
    let _registered = boxes.webhook(narrows);
    let report = assert_told(&boxes, &boxes.whole(&["size", "colour"]), "existingFieldRemoval");
    assert_eq!(report["outcome"], "refused");
    let rule = rule(&report, "CRDUpgradeSafety");
    assert_eq!((&rule["outcome"], &rule["breaking"]), (&json!("failed"), &json!(1)), "{report:#}");
}

fn what_the_server_makes_of_an_answer_is_in_every_report() {
    let boxes = Boxes::new("reported-answer");
    let two_faced = |request: &Value| match seen(request) {
        Some(seen) => seen,
        None if request["dryRun"] == true => Verdict::Allow,
        None => Verdict::Patch(json!([{"op": "remove", "path": format!("{FIELDS}/size")}])),
    };
    let _registered = boxes.webhook(two_faced);
    let report = assert_told(&boxes, &boxes.whole(&["size", "colour"]), "something other");
    assert_eq!(report["outcome"], "refused");
    assert_eq!(rule(&report, "server")["outcome"], "failed", "{report:#}");
}

/// A set that goes into a namespace of its own, which the server cannot be asked about before it is there.
struct New {
    cluster: &'static TestCluster,
    inside: String,
    app: TestApp,
}

impl New {
    fn of(prefix: &str) -> Self {
        let cluster = TestCluster::shared();
        let home = cluster.namespace(prefix);
        let app = TestApp::of(Pushback::on(cluster), "new", &home);
        Self { cluster, inside: format!("{home}-inside"), app }
    }

    fn namespace(&self) -> String {
        let metadata = json!({"name": self.inside, "labels": {"kubernetes.io/metadata.name": self.inside}});
        format!("{}\n---\n", json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}))
    }
}

fn what_the_server_sets_otherwise_in_an_object_that_nobody_could_verify_stops_what_depends_on_it() {
    let new = New::of("set-otherwise");
    let webhook = Webhook::start(&[], |request| match request["name"].as_str() {
        Some("first" | "probe") => Verdict::Patch(json!([{"op": "replace", "path": "/data/key", "value": "other"}, {
            "op": "add", "path": "/data/more", "value": "theirs",
        }])),
        _ => Verdict::Allow,
    });
    let _registered = webhook.register(new.cluster, Form::Mutating, &new.inside, json!({}));
    let object = |name: &str, annotations: Value| {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"key": "mine"},
            "metadata": {"name": name, "namespace": new.inside, "annotations": annotations}})
    };
    let first = object("first", json!({"kapp.k14s.io/change-group": "example.com/first"}));
    let second = object("second", json!({"kapp.k14s.io/change-rule": "upsert after upserting example.com/first"}));
    let input = format!("{}{first}\n---\n{second}\n", new.namespace());
    let ran = new.app.apply(&input, &[]).expect(20);
    let (state, message) = unfinished(&ran, "first");
    assert_eq!(state, "failed");
    assert!(message.contains("data.key") && !message.contains("more"), "{message}");
    assert_eq!(unfinished(&ran, "second").0, "not applied");
    // It is there now, and so is what the server makes of it: the next run can ask.
    new.app.apply(&input, &[]).expect(0);
}

fn how_the_server_writes_a_value_is_no_other_value() {
    let new = New::of("written-otherwise");
    let home = &new.inside;
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys", "namespace": home},
        "data": {"a": "YWJj\nZGVm", "empty": ""}, "stringData": {"b": "text"}});
    let web = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "namespace": home, "creationTimestamp": null, "annotations": {}},
        "spec": {
            "replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "strategy": {}, "paused": false,
            "template": {
                "metadata": {"labels": {"app": "web"}, "creationTimestamp": null},
                "spec": {
                    "hostNetwork": false, "serviceAccountName": "", "tolerations": [], "nodeSelector": {},
                    "containers": [{
                        "name": "main", "image": "registry.example/web:1", "env": [{"name": "A", "value": ""}],
                        "resources": {"limits": {"cpu": 0.5, "memory": "1024Mi"}, "requests": {"cpu": "0.10"}},
                        "ports": [{"containerPort": 80}, {"containerPort": 80, "protocol": "UDP"}],
                        "livenessProbe": {"httpGet": {"path": "/", "port": 80}, "periodSeconds": 0},
                    }],
                },
            },
        },
        "status": {},
    });
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": home},
    "spec": {"selector": {"app": "web"}, "clusterIP": "", "sessionAffinity": "", "ports": [
        {"name": "a", "port": 80, "nodePort": 0}, {"name": "b", "port": 81, "targetPort": "b"},
    ]}});
    let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "all", "namespace": home},
        "spec": {"hard": {"pods": 10, "requests.cpu": "2000m"}}});
    let budget = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"name": "web", "namespace": home},
        "spec": {"minAvailable": "50%", "selector": {"matchLabels": {"app": "web"}}}});
    let all = [secret, web, service, quota, budget].map(|object| object.to_string()).join("\n---\n");
    new.app.apply(&(new.namespace() + &all), &["--wait=false"]).expect(0);
}
