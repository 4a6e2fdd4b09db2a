//! Kinds of an aggregated API, whose server may take a dry-run for the real thing: nothing is sent to it
//! before the verdict.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::https::{HttpsServer, Request};
use crate::support::{Options, Pushback, TestCase, TestCluster, cases, wait_until};

const SOON: Duration = Duration::from_secs(60);
const GROUP: &str = "aggregated.example.com";

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        ApiServer: a_kind_of_an_aggregated_api_is_written_without_a_dry_run,
        ApiServer: a_definition_whose_api_group_is_broken_is_deleted,
        ApiServer: a_service_of_an_api_that_nobody_answers_for_is_not_waited_for_on_request,
    ]
}

/// An API server of one kind that knows no dry-run: what it is sent, it does.
#[derive(Debug)]
struct Aggregated {
    server: HttpsServer,
    writes: Arc<Mutex<Vec<String>>>,
}

impl Aggregated {
    fn start() -> Self {
        let writes = Arc::<Mutex<Vec<String>>>::default();
        let (objects, remembered) = (Mutex::new(BTreeMap::new()), Arc::clone(&writes));
        let server = HttpsServer::start(&[], move |request| {
            if !matches!(request.method.as_str(), "GET" | "HEAD") {
                let mut writes = remembered.lock().unwrap_or_else(PoisonError::into_inner);
                writes.push(format!("{} {}", request.method, request.target));
            }
            answer(&mut objects.lock().unwrap_or_else(PoisonError::into_inner), request)
        });
        Self { server, writes }
    }

    /// The writes since the last look: method, path and query.
    fn writes(&self) -> Vec<String> {
        std::mem::take(&mut *self.writes.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn answer(objects: &mut BTreeMap<String, Value>, request: &Request) -> (u16, Value) {
    let api_version = format!("{GROUP}/v1");
    let path = request.target.split('?').next().unwrap_or_default();
    let root = format!("/apis/{GROUP}/v1");
    let missing = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404,
        "message": "gadgets \"one\" not found", "details": {"name": "one", "kind": "gadgets"},
    });
    if path == root {
        let verbs = ["create", "delete", "get", "list", "patch", "update"];
        let resource =
            json!({"name": "gadgets", "singularName": "gadget", "namespaced": true, "kind": "Gadget", "verbs": verbs});
        return (
            200,
            json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": api_version, "resources": [resource]}),
        );
    }
    if !path.starts_with(&root) {
        return (404, Value::Null);
    }
    if path.ends_with("/gadgets") {
        let items: Vec<&Value> = objects.values().collect();
        return (
            200,
            json!({"kind": "GadgetList", "apiVersion": api_version, "metadata": {"resourceVersion": "1"}, "items": items}),
        );
    }
    match request.method.as_str() {
        "GET" => objects.get(path).map_or((404, missing), |object| (200, object.clone())),
        "DELETE" => objects.remove(path).map_or((404, missing), |object| (200, object)),
        "PATCH" => {
            let known = objects.get(path).map(|object| object["metadata"]["resourceVersion"].clone());
            let version = known.as_ref().and_then(Value::as_str).and_then(|version| version.parse().ok()).unwrap_or(0);
            let mut object = request.body.clone();
            object["metadata"]["uid"] = json!("7d2c");
            object["metadata"]["resourceVersion"] = json!(format!("{}", version + 1));
            objects.insert(path.to_owned(), object.clone());
            (if known.is_some() { 200 } else { 201 }, object)
        }
        _ => (405, Value::Null),
    }
}

/// The API server reaches it by a Service that leads to this machine.
fn register(cluster: &TestCluster, aggregated: &Aggregated) {
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"namespace": "default", "name": "aggregated"},
        "spec": {"type": "ExternalName", "externalName": "localhost"},
    });
    cluster.api().apply(&service).ok();
    let api_service = json!({
        "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": format!("v1.{GROUP}")},
        "spec": {
            "group": GROUP, "version": "v1", "groupPriorityMinimum": 1000, "versionPriority": 10,
            "service": {"namespace": "default", "name": "aggregated", "port": aggregated.server.port()},
            "insecureSkipTLSVerify": true,
        },
    });
    cluster.api().apply(&api_service).ok();
    // The product reads this form of discovery.
    wait_until("the API server knows the kind", SOON, || {
        let accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
        let found = cluster.api().get_as("/apis", accept).ok().to_string();
        found.contains("\"Gadget\"").then_some(())
    });
}

fn a_kind_of_an_aggregated_api_is_written_without_a_dry_run() {
    let cluster = TestCluster::start(&Options::default());
    let aggregated = Aggregated::start();
    register(&cluster, &aggregated);
    let namespace = cluster.namespace("aggregated");
    let pushback = Pushback::on(&cluster);
    let gadget =
        |size: u32| format!("apiVersion: {GROUP}/v1\nkind: Gadget\nmetadata: {{name: one}}\nspec: {{size: {size}}}\n");
    let settings = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n";
    let run = |command: &[&str], input: &str| {
        pushback.write("app.yaml", input);
        let arguments = ["-a", "gadgets", "-f", "app.yaml", "-n", &namespace, "--yes", "-o", "json"];
        let ran = pushback.run(&[command, &arguments[..]].concat()).expect(0);
        // A dry-run would have to be in the query.
        let writes = aggregated.writes();
        assert!(writes.iter().all(|write| !write.contains("dryRun")), "{writes:?}");
        (ran, writes.iter().filter_map(|write| write.split(' ').next().map(str::to_owned)).collect::<Vec<_>>())
    };
    let none = Vec::<String>::new();

    assert_eq!(run(&["check"], &(gadget(1) + settings)).1, none);
    let (ran, writes) = run(&["apply"], &(gadget(1) + settings));
    assert_eq!(writes, ["PATCH"]);
    let notes = ran.events_of("plan").remove(0)["changes"].to_string();
    assert!(notes.contains("served by an aggregated API"), "{notes}");

    assert_eq!(run(&["apply"], &(gadget(1) + settings)).1, none);
    assert_eq!(run(&["apply", "--recheck"], &(gadget(1) + settings)).1, none);
    assert_eq!(run(&["check"], &(gadget(2) + settings)).1, none);
    assert_eq!(run(&["apply"], &(gadget(2) + settings)).1, ["PATCH"]);
    // A field that the manifest no longer has shows in the manifest alone.
    let without = gadget(2).replace("size: 2", "");
    assert_eq!(run(&["apply"], &(without + settings)).1, ["PATCH"]);
    assert_eq!(run(&["apply"], settings).1, ["DELETE"]);
}

/// An APIService without a backend stands in the way of a definition's own API: nobody can read its objects.
fn a_service_of_an_api_that_nobody_answers_for_is_not_waited_for_on_request() {
    // Its own control plane: a group that does not answer is everybody's.
    let cluster = TestCluster::start(&Options::default());
    let pushback = Pushback::on(&cluster).with("PUSHBACK_VOICE", "kapp");
    pushback.write(
        "app.yaml",
        "apiVersion: apiregistration.k8s.io/v1\nkind: APIService\nmetadata: {name: v1.silent.example.com}\nspec: {group: \
         silent.example.com, version: v1, groupPriorityMinimum: 1000, versionPriority: 10, insecureSkipTLSVerify: true, \
         service: {namespace: default, name: nowhere}}\n",
    );
    let deploy = ["deploy", "-a", "api", "-n", "default", "-f", "app.yaml", "-y", "--wait-timeout=2s"];
    let waited = pushback.run(&deploy).expect(1);
    assert!(waited.stderr.contains("Timed out waiting after 2s for resources: [apiservice/"), "{}", waited.stderr);
    let flag = ["--dangerous-ignore-failing-api-services", "--dangerous-disable-gk-scoping"];
    pushback.run(&[&deploy[..], &flag].concat()).expect(0);
    for command in ["inspect", "delete"] {
        pushback.run(&[command, "-a", "api", "-n", "default", "-y", flag[0]]).expect(0);
    }
}

fn a_definition_whose_api_group_is_broken_is_deleted() {
    let cluster = TestCluster::start(&Options::default());
    let namespace = cluster.namespace("broken");
    for (voice, group) in [("kapp", "kapp.broken.example.com"), ("pushback", "own.broken.example.com")] {
        let api_service = json!({
            "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": format!("v1.{group}")},
            "spec": {
                "group": group, "version": "v1", "groupPriorityMinimum": 1000, "versionPriority": 10,
                "service": {"namespace": "default", "name": "nowhere"}, "insecureSkipTLSVerify": true,
            },
        });
        cluster.api().apply(&api_service).ok();
        let pushback = Pushback::on(&cluster).with("PUSHBACK_VOICE", voice);
        pushback.write(
            "app.yaml",
            format!(
                "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: gears.{group}}}\n\
                 spec:\n  group: {group}\n  scope: Namespaced\n  names: {{kind: Gear, plural: gears}}\n  versions:\n  \
                 - {{name: v1, served: true, storage: true, schema: {{openAPIV3Schema: {{type: object}}}}}}\n---\n\
                 apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: settings}}\n"
            ),
        );
        let app = ["-a", voice, "-n", &namespace, "--yes"];
        let deploy = if voice == "kapp" { "deploy" } else { "apply" };
        pushback.run(&[&[deploy, "-f", "app.yaml"][..], &app].concat()).expect(0);
        let definition = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/gears.{group}");
        assert_eq!(cluster.api().get(&definition).status, 200);
        let delete = |further: &[&str]| pushback.run(&[&["delete"][..], &app, further].concat());
        if voice == "pushback" {
            // What would be deleted along with it cannot be told, so that it takes a word of the user.
            let refused = delete(&[]).expect(10);
            assert!(refused.stdout.contains("CRDUpgradeSafety unable"), "{}", refused.stdout);
            delete(&["--preflight=none"]).expect(0);
        } else {
            delete(&[]).expect(0);
        }
        assert_eq!(cluster.api().get(&definition).status, 404, "{voice}");
    }
}
