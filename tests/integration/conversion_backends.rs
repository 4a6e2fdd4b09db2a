//! The backends of conversion webhooks: a CRD whose objects nobody could convert is refused; a backend is replaced without
//! a gap; a CRD is ready once its objects can be read. And CRDs come before the workloads of the app.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};

use crate::storage::crd::{TestCrd, Version, size};
use crate::support::apply::{TestApp, assert_order, moment, short};
use crate::support::https::{HttpsServer, Request};
use crate::support::{Ran, TestCase, cases};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        ApiServer: crd_that_names_a_missing_service_is_refused,
        ApiServer: crd_that_keeps_a_backend_which_the_run_deletes_is_refused,
        Controllers: backend_is_replaced_without_a_gap,
        ApiServer: crd_whose_objects_cannot_be_read_does_not_become_ready,
        ApiServer: new_client_config_is_verified_without_objects,
        Controllers: backend_that_stays_follows_the_crd,
        ApiServer: custom_resources_wait_until_their_crd_can_be_read,
        ApiServer: change_rule_that_deletes_the_backend_first_is_refused,
        Controllers: crds_are_established_before_workloads_are_written,
        ApiServer: bridge_without_a_known_operator_comes_before_every_workload,
    ]
}

/// Both served, stored in v1.
fn versions() -> [Version; 2] {
    [("v1beta1", true, false, size()), ("v1", true, true, size())]
}

/// A webhook that rewrites `apiVersion`, under the name of a Service.
fn converter(crd: &TestCrd, name: &str) -> HttpsServer {
    let host = format!("{name}.{}.svc", crd.namespace);
    HttpsServer::start(&[&host], |Request { body, .. }| {
        let request = &body["request"];
        let mut objects = request["objects"].as_array().cloned().unwrap_or_default();
        objects.iter_mut().for_each(|object| object["apiVersion"] = request["desiredAPIVersion"].clone());
        let result = json!({"status": "Success"});
        let response = json!({"uid": request["uid"], "convertedObjects": objects, "result": result});
        (200, json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "response": response}))
    })
}

/// The CRD, converted by a Service that leads to a port of this machine.
fn converted(crd: &TestCrd, service: &str, port: u16, authority: &str) -> Value {
    let mut manifest = crd.manifest(&versions());
    let service = json!({"namespace": crd.namespace, "name": service, "path": "/convert", "port": port});
    let client = json!({"service": service, "caBundle": BASE64.encode(authority)});
    manifest["spec"]["conversion"] =
        json!({"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": client}});
    manifest
}

/// A Service that leads to this machine. The API server does not read its selector.
fn service(crd: &TestCrd, name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": crd.namespace},
        "spec": {"type": "ExternalName", "externalName": "localhost", "selector": {"app": name}},
    })
}

fn deployment(crd: &TestCrd, name: &str, image: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": crd.namespace},
        "spec": {
            "replicas": 1, "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "main", "image": format!("registry.example/{image}")}]},
            },
        },
    })
}

fn apply(crd: &TestCrd, documents: &[Value], arguments: &[&str]) -> Ran {
    let input: Vec<String> = documents.iter().map(Value::to_string).collect();
    TestApp::new("hooks", &crd.namespace).apply(&input.join("\n---\n"), arguments)
}

/// The messages of the findings about backends.
fn findings(ran: &Ran) -> Vec<String> {
    let events = ran.events();
    let found = events.iter().filter(|event| event["type"] == "finding").map(|event| &event["finding"]);
    let about = found.filter(|finding| finding["check"] == "conversionBackend");
    about.map(|finding| finding["message"].as_str().unwrap_or_default().to_owned()).collect()
}

fn crd_name(crd: &TestCrd) -> String {
    format!("CustomResourceDefinition {}", crd.name())
}

/// The `Kind name` of all changes that were begun.
fn started(ran: &Ran) -> Vec<String> {
    let events = ran.events();
    let started = events.iter().filter(|event| event["type"] == "change.start");
    started.map(|event| short(&event["object"])).collect()
}

fn crd_that_names_a_missing_service_is_refused() {
    let crd = TestCrd::new("backend-missing");
    let missing = converted(&crd, "nowhere", 443, "");
    let ran = apply(&crd, std::slice::from_ref(&missing), &[]).expect(10);
    assert_eq!(findings(&ran).len(), 1, "{}", ran.stdout);
    assert_eq!(crd.api().get(&crd.path()).status, 404);
    // Also where it has objects, and none is converted yet.
    apply(&crd, &[crd.manifest(&versions())], &[]).expect(0);
    crd.await_version("v1", true);
    crd.create("v1", 1);
    let ran = apply(&crd, std::slice::from_ref(&missing), &[]).expect(10);
    assert_eq!(findings(&ran).len(), 1, "{}", ran.stdout);
    // With the Service among the manifests, nothing is wrong.
    let server = converter(&crd, "here");
    let named = converted(&crd, "here", server.port(), server.certificate_authority());
    let ran = apply(&crd, &[named, service(&crd, "here")], &[]).expect(0);
    assert_eq!(findings(&ran), [""; 0]);
}

fn crd_that_keeps_a_backend_which_the_run_deletes_is_refused() {
    let crd = TestCrd::new("backend-deleted");
    let server = converter(&crd, "old");
    let named = converted(&crd, "old", server.port(), server.certificate_authority());
    apply(&crd, &[named.clone(), service(&crd, "old"), deployment(&crd, "old", "hook:1")], &["--wait=false"]).expect(0);
    let new = [named.clone(), service(&crd, "new"), deployment(&crd, "new", "hook:2")];
    let ran = apply(&crd, &new, &[]).expect(10);
    let service_name = format!("Service {}/old", crd.namespace);
    assert_eq!(findings(&ran), [format!("its objects are converted by {service_name}, which this run deletes")]);
    let path = format!("/api/v1/namespaces/{}/services", crd.namespace);
    assert_eq!(crd.api().get(&format!("{path}/old")).status, 200);
    assert_eq!(crd.api().get(&format!("{path}/new")).status, 404);
}

fn backend_is_replaced_without_a_gap() {
    let crd = TestCrd::new("backend-moved");
    let (old, new) = (converter(&crd, "old"), converter(&crd, "new"));
    let backend = |name: &str, server: &HttpsServer| {
        let manifest = converted(&crd, name, server.port(), server.certificate_authority());
        [manifest, service(&crd, name), deployment(&crd, name, "hook:1")]
    };
    apply(&crd, &backend("old", &old), &[]).expect(0);
    crd.create("v1", 1);
    let ran = apply(&crd, &backend("new", &new), &[]).expect(0);
    let events = ran.events();
    let ready = moment(&events, "wait.done", "Deployment new");
    assert!(ready < moment(&events, "change.start", &crd_name(&crd)));
    let read = moment(&events, "wait.done", &crd_name(&crd));
    for gone in ["Service old", "Deployment old"] {
        assert!(read < moment(&events, "change.start", gone), "{gone}");
    }
    assert_eq!(crd.api().get(&crd.object_path("v1beta1", "cog-0")).status, 200);
}

fn crd_whose_objects_cannot_be_read_does_not_become_ready() {
    let crd = TestCrd::new("backend-silent");
    let old = converter(&crd, "old");
    let named = converted(&crd, "old", old.port(), old.certificate_authority());
    apply(&crd, &[named, service(&crd, "old")], &[]).expect(0);
    crd.create("v1", 1);
    // Another authority than the one that vouches for the server.
    let (new, other) = (converter(&crd, "new"), converter(&crd, "new"));
    let wrong = converted(&crd, "new", new.port(), other.certificate_authority());
    let ran = apply(&crd, &[wrong, service(&crd, "new")], &["--wait-timeout", "12s"]).expect(22);
    let events = ran.events();
    let waited = &events[moment(&events, "wait.done", &crd_name(&crd))];
    assert_eq!(waited["outcome"], "timeout");
    let message = waited["message"].as_str().unwrap_or_default();
    assert!(message.contains("v1beta1") && message.contains("x509"), "{message}");
    assert!(!started(&ran).contains(&"Service old".to_owned()), "{:?}", started(&ran));
    // Once the authority is right, the same run ends.
    let right = converted(&crd, "new", new.port(), new.certificate_authority());
    let ran = apply(&crd, &[right, service(&crd, "new")], &[]).expect(0);
    assert!(started(&ran).contains(&"Service old".to_owned()), "{:?}", started(&ran));
    assert_eq!(crd.api().get(&crd.object_path("v1beta1", "cog-0")).status, 200);
}

fn new_client_config_is_verified_without_objects() {
    let crd = TestCrd::new("backend-empty");
    let old = converter(&crd, "old");
    let named = converted(&crd, "old", old.port(), old.certificate_authority());
    apply(&crd, &[named, service(&crd, "old")], &[]).expect(0);
    let (new, other) = (converter(&crd, "new"), converter(&crd, "new"));
    let wrong = converted(&crd, "new", new.port(), other.certificate_authority());
    let ran = apply(&crd, &[wrong, service(&crd, "new")], &["--wait-timeout", "12s"]).expect(22);
    assert!(!started(&ran).contains(&"Service old".to_owned()), "{:?}", started(&ran));
}

fn backend_that_stays_follows_the_crd() {
    let crd = TestCrd::new("backend-stays");
    let server = converter(&crd, "hook");
    let set = |image: &str, label: &str| {
        let mut manifest = converted(&crd, "hook", server.port(), server.certificate_authority());
        manifest["metadata"]["labels"] = json!({"release": label});
        [deployment(&crd, "hook", image), service(&crd, "hook"), manifest]
    };
    let order = |ran: &Ran| {
        let events = ran.events();
        let start = moment(&events, "change.start", "Deployment hook");
        assert!(moment(&events, "change.done", &crd_name(&crd)) < start);
        let read = moment(&events, "wait.done", &crd_name(&crd));
        assert!(moment(&events, "wait.done", "Deployment hook") < read, "the reads follow the backend");
    };
    order(&apply(&crd, &set("hook:1", "one"), &[]).expect(0));
    crd.create("v1", 1);
    order(&apply(&crd, &set("hook:2", "two"), &[]).expect(0));
}

fn custom_resources_wait_until_their_crd_can_be_read() {
    let crd = TestCrd::new("backend-objects");
    apply(&crd, &[crd.manifest(&versions())], &[]).expect(0);
    crd.await_version("v1", true);
    crd.create("v1", 1);
    let (new, other) = (converter(&crd, "new"), converter(&crd, "new"));
    let cog = crd.object("v1", "mine", &json!({"size": 1}));
    let wrong = converted(&crd, "new", new.port(), other.certificate_authority());
    let ran = apply(&crd, &[cog.clone(), wrong, service(&crd, "new")], &["--wait-timeout", "12s"]).expect(22);
    assert!(!started(&ran).contains(&"Cog mine".to_owned()), "{:?}", started(&ran));
    let right = converted(&crd, "new", new.port(), new.certificate_authority());
    let ran = apply(&crd, &[cog, right, service(&crd, "new")], &[]).expect(0);
    let events = ran.events();
    assert!(moment(&events, "wait.done", &crd_name(&crd)) < moment(&events, "change.start", "Cog mine"));
}

fn change_rule_that_deletes_the_backend_first_is_refused() {
    let crd = TestCrd::new("backend-early");
    let (old, new) = (converter(&crd, "old"), converter(&crd, "new"));
    let backend = |name: &str, server: &HttpsServer| {
        let manifest = converted(&crd, name, server.port(), server.certificate_authority());
        let mut service = service(&crd, name);
        service["metadata"]["annotations"] = json!({"kapp.k14s.io/change-group": "hooks"});
        [manifest, service]
    };
    apply(&crd, &backend("old", &old), &[]).expect(0);
    let [mut manifest, service] = backend("new", &new);
    manifest["metadata"]["annotations"] = json!({"kapp.k14s.io/change-rule": "upsert after deleting hooks"});
    let ran = apply(&crd, &[manifest, service], &[]).expect(10);
    assert_eq!(findings(&ran).len(), 1, "{}", ran.stdout);
}

fn crds_are_established_before_workloads_are_written() {
    let crd = TestCrd::new("crds-first");
    let set = |image: &str, versions: &[Version]| [deployment(&crd, "operator", image), crd.manifest(versions)];
    let order = |ran: &Ran| {
        let events = ran.events();
        let established = moment(&events, "wait.done", &crd_name(&crd));
        assert!(established < moment(&events, "change.start", "Deployment operator"));
    };
    order(&apply(&crd, &set("operator:1", &versions()[1..]), &[]).expect(0));
    let ran = apply(&crd, &set("operator:2", &versions()), &[]).expect(0);
    assert_order(&ran, &crd_name(&crd), "Deployment operator");
    // A rule of the user wins.
    let mut set = set("operator:3", &versions()[1..]);
    set[0]["metadata"]["annotations"] = json!({"kapp.k14s.io/change-group": "operator"});
    set[1]["metadata"]["annotations"] = json!({"kapp.k14s.io/change-rule": "upsert after upserting operator"});
    let ran = apply(&crd, &set, &["--preflight=none"]).expect(0);
    assert_order(&ran, "Deployment operator", &crd_name(&crd));
}

fn bridge_without_a_known_operator_comes_before_every_workload() {
    let crd = TestCrd::new("bridge-first");
    let set = |image: &str, versions: &[Version], size: u64| {
        let version = versions[0].0;
        let cog = crd.object(version, "mine", &json!({"size": size}));
        [deployment(&crd, "operator", image), cog, crd.manifest(versions)]
    };
    let old = [("v1", true, true, size())];
    let new = [("v2", true, true, size())];
    apply(&crd, &set("operator:1", &old, 1), &["--wait=false"]).expect(0);
    let bridge = ["--wait=false", "--storage", "bridge", "--preflight=StoredVersions"];
    let ran = apply(&crd, &set("operator:2", &new, 2), &bridge).expect(0);
    assert!(
        ran.stdout.contains("every workload of the app is written after the CRD and its objects"),
        "{}",
        ran.stdout
    );
    assert_order(&ran, &crd_name(&crd), "Deployment operator");
    assert_order(&ran, "Cog mine", "Deployment operator");
    assert_eq!(crd.in_etcd(), "v2: 1");
}
