//! Manifests that server-side apply refuses and a plain write takes: refused with their places, and with `--strict=false` or
//! under kapp's name written as a plain write would store them. What is stored was compared with a real kapp.

use serde_json::{Value, json};

use crate::support::api::ApiClient;
use crate::support::apply::{TestApp, config_map_path, planned};
use crate::support::pushback::{Pushback, Ran};
use crate::support::{TestCase, TestCluster, cases};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        ApiServer: what_a_plain_write_takes_is_refused_or_written_with_a_warning,
        ApiServer: list_items_that_were_written_twice_go_when_they_are_dropped,
        ApiServer: an_object_of_a_new_definition_is_written_without_what_it_lacks,
        ApiServer: field_that_the_server_left_out_of_an_unverified_object_is_no_failure,
        ApiServer: under_kapps_name_it_is_written_and_told_once,
        ApiServer: what_no_write_takes_is_refused_and_not_tried_again,
    ]
}

fn api() -> &'static ApiClient {
    TestCluster::shared().api()
}

fn app() -> TestApp {
    TestApp::new("shop", &TestCluster::shared().namespace("lenient"))
}

/// Line 6, line 14; lines 15 and 16; line 22.
const INPUT: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 0
  replica: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: main
        image: registry.example/web:1
        imagee: x
        env: [{name: A, value: '1'}, {name: B, value: x}, {name: A, value: '2'}]
        ports: [{containerPort: 80, name: http}, {containerPort: 80, name: web}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: cfg}
data: {a: '1'}
datas: {x: '2'}
";

/// `app.yaml:6:3 unknown field …` of every warning that has a place.
fn placed(ran: &Ran) -> Vec<String> {
    let events = ran.events();
    let warnings = events.iter().filter(|event| event["type"] == "warning" && event["position"].is_object());
    let text = |value: &Value| value.to_string().trim_matches('"').to_owned();
    warnings
        .map(|event| {
            let place = &event["position"];
            let message = event["message"].as_str().unwrap_or_default();
            format!("{}:{}:{} {message}", text(&place["file"]), place["line"], place["column"])
        })
        .collect()
}

fn container(namespace: &str) -> Value {
    let path = format!("/apis/apps/v1/namespaces/{namespace}/deployments/web");
    let live = api().get(&path).ok();
    assert_eq!(live["spec"]["replica"], Value::Null);
    live["spec"]["template"]["spec"]["containers"][0].clone()
}

const LENIENT: [&str; 2] = ["--strict=false", "--wait=false"];

fn what_a_plain_write_takes_is_refused_or_written_with_a_warning() {
    let app = app();
    let refused = app.apply(INPUT, &["--wait=false"]).expect(10);
    assert_eq!(refused.events().iter().filter(|event| event["type"] == "finding").count(), 5);
    assert_eq!(api().get(&config_map_path(&app.namespace, "cfg")).status, 404);

    let ran = app.apply(INPUT, &LENIENT).expect(0);
    let told = placed(&ran);
    assert_eq!(told.len(), 5, "{told:#?}");
    for (place, message) in [
        ("app.yaml:6:3", "unknown field \"spec.replica\""),
        ("app.yaml:14:9", "unknown field \"spec.template.spec.containers[0].imagee\""),
        ("app.yaml:15:", "env[2]: hides previous definition of \"A\""),
        ("app.yaml:16:", "ports[1]: duplicate port definition"),
        ("app.yaml:22:1", "unknown field \"datas\""),
    ] {
        assert!(told.iter().any(|line| line.starts_with(place) && line.contains(message)), "{message}: {told:#?}");
    }
    let container = container(&app.namespace);
    assert_eq!(
        container["env"],
        json!([{"name": "A", "value": "1"}, {"name": "B", "value": "x"}, {"name": "A", "value": "2"}])
    );
    let names: Vec<&Value> = container["ports"].as_array().expect("ports").iter().map(|port| &port["name"]).collect();
    assert_eq!(names, ["http", "web"], "a Service may name either");
    let stored = api().get(&config_map_path(&app.namespace, "cfg")).ok();
    assert_eq!((&stored["data"], &stored["datas"]), (&json!({"a": "1"}), &Value::Null));

    let again = app.apply(INPUT, &LENIENT).expect(0);
    assert_eq!(again.end()["outcome"], "unchanged", "{:#?}", planned(&again));
}

fn list_items_that_were_written_twice_go_when_they_are_dropped() {
    let app = app();
    app.apply(INPUT, &LENIENT).expect(0);
    let other = INPUT.replace("value: x}, {name: A, value: '2'}", "value: z}, {name: A, value: '3'}");
    app.apply(&other, &LENIENT).expect(0);
    let env = container(&app.namespace)["env"].clone();
    assert_eq!(env, json!([{"name": "A", "value": "1"}, {"name": "B", "value": "z"}, {"name": "A", "value": "3"}]));

    let correct: String = INPUT
        .lines()
        .filter(|line| !["replica:", "imagee", "datas"].iter().any(|it| line.contains(it)))
        .map(|line| line.to_owned() + "\n")
        .collect();
    let correct = correct.replace("{name: A, value: '1'}, ", "").replace("{containerPort: 80, name: http}, ", "");
    app.apply(&correct, &["--wait=false"]).expect(0);
    let container = container(&app.namespace);
    assert_eq!(container["env"], json!([{"name": "B", "value": "x"}, {"name": "A", "value": "2"}]));
    assert_eq!(container["ports"].as_array().expect("ports").len(), 1);
    let again = app.apply(&correct, &["--wait=false"]).expect(0);
    assert_eq!(again.end()["outcome"], "unchanged", "{:#?}", planned(&again));
}

fn an_object_of_a_new_definition_is_written_without_what_it_lacks() {
    let app = app();
    let group = format!("{}.example.com", app.namespace);
    let input = format!(
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: gears.{group}}}\nspec:\n  \
         group: {group}\n  scope: Namespaced\n  names: {{kind: Gear, plural: gears}}\n  versions:\n  - name: v1\n    \
         served: true\n    storage: true\n    schema:\n      openAPIV3Schema:\n        type: object\n        properties:\n          \
         spec: {{type: object, properties: {{teeth: {{type: integer}}}}}}\n---\napiVersion: {group}/v1\nkind: Gear\n\
         metadata: {{name: small}}\nspec: {{teeth: 8, tooth: 9}}\n"
    );
    let ran = app.apply(&input, &LENIENT).expect(0);
    let told = placed(&ran);
    assert!(
        told.iter().any(|line| line.starts_with("app.yaml:21:18 ") && line.ends_with("\"spec.tooth\"")),
        "{told:#?}"
    );
    let path = format!("/apis/{group}/v1/namespaces/{}/gears/small", app.namespace);
    assert_eq!(api().get(&path).ok()["spec"], json!({"teeth": 8}));
    app.delete(&[]).expect(0);
}

/// Atomic maps and lists, of which the server counts every field as applied, even one that it has left out. Their namespace,
/// role or CRD is new, so that there is no dry run.
const UNVERIFIED: &str = "\
apiVersion: v1
kind: Namespace
metadata: {name: NEW}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader, namespace: NEW}
rules: [{apiGroups: [''], resources: [pods], verbs: [get], verb: list}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: reader, namespace: NEW}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader, namespace: NEW}
subjects: [{kind: ServiceAccount, name: a, namespace: NEW}, {kind: ServiceAccount, name: b, namespace: NEW, uid: x}]
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: closed, namespace: NEW}
spec:
  podSelector: {matchLabels: {app: web}, matchLabel: {app: web}}
  ingress: [{from: [{podSelector: {matchLabels: {app: web}}, namespace: x}], port: 80}]
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: NEW}
spec:
  accessModes: [ReadWriteOnce]
  resources: {requests: {storage: 1Gi}}
  selector: {matchLabels: {disk: fast}, labels: {disk: fast}}
";

fn field_that_the_server_left_out_of_an_unverified_object_is_no_failure() {
    let app = app();
    let input = UNVERIFIED.replace("NEW", &format!("{}-new", app.namespace));
    let ran = app.apply(&input, &LENIENT).expect(0);
    let told = placed(&ran);
    for field in [
        "rules[0].verb",
        "roleRef.namespace",
        "subjects[1].uid",
        "spec.podSelector.matchLabel",
        "spec.ingress[0].port",
        "spec.ingress[0].from[0].namespace",
        "spec.selector.labels",
    ] {
        assert!(told.iter().any(|line| line.ends_with(&format!("unknown field \"{field}\""))), "{field}: {told:#?}");
    }
    let again = app.apply(&input, &LENIENT).expect(0);
    assert_eq!(again.end()["outcome"], "unchanged", "{:#?}", planned(&again));
}

fn under_kapps_name_it_is_written_and_told_once() {
    let namespace = TestCluster::shared().namespace("lenient");
    let kapp =
        Pushback::on(TestCluster::shared()).with("PUSHBACK_VOICE", "kapp").with("KAPP_NAMESPACE", namespace.as_str());
    kapp.write("app.yaml", INPUT);
    let ran = kapp.run(&["deploy", "-a", "shop", "-f", "app.yaml", "--yes", "--wait=false"]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    for message in ["unknown field \"datas\"", "unknown field \"spec.replica\""] {
        assert_eq!(ran.stdout.matches(&format!("Warning: {message}\n")).count(), 1, "{}", ran.stdout);
    }
    assert_eq!(container(&namespace)["env"].as_array().expect("env").len(), 3);
    let strict = kapp.run(&["deploy", "-a", "other", "-f", "app.yaml", "--yes", "--strict", "--into-ns", &namespace]);
    assert_eq!(strict.code, 1, "{}", strict.stdout);
}

fn what_no_write_takes_is_refused_and_not_tried_again() {
    let app = app();
    let wrong = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec:\n  ports: [{port: 80, name: a}, {port: 80, name: b}]\n";
    let ran = app.apply(wrong, &LENIENT).expect(10);
    let events = ran.events();
    assert!(events.iter().all(|event| event["type"] != "retry"), "{events:#?}");
    let finding = events.iter().find(|event| event["type"] == "finding").expect("a finding");
    assert!(finding.to_string().contains("Duplicate value"), "{finding}");
    let hints = ran.end()["hints"].to_string();
    assert!(!hints.contains("run the same command again"), "{hints}");
}
