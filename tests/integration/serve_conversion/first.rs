//! A release that brings its conversion webhook along: the webhook is there before the storage version changes.

use serde_json::{Value, json};

use super::plan;
use crate::storage::crd::TestCrd;
use crate::support::apply::TestApp;
use crate::support::conversion_server::ConversionServer;
use crate::support::{TestCase, cases};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        ApiServer: a_webhook_of_the_release_is_there_before_the_storage_version_changes,
    ]
}

fn versions(storage: &str) -> [crate::storage::crd::Version; 2] {
    let text = || json!({"type": "string"});
    [
        ("v1", true, storage == "v1", json!({"size": text(), "colour": text()})),
        ("v2", true, storage == "v2", json!({"size": text(), "color": text()})),
    ]
}

/// The definition, converted by a webhook behind a Service of the namespace.
fn converted(crd: &TestCrd, server: &ConversionServer) -> Value {
    let mut definition = crd.manifest(&versions("v2"));
    definition["spec"]["conversion"] = server.patch()["spec"]["conversion"].clone();
    let client = &mut definition["spec"]["conversion"]["webhook"]["clientConfig"];
    client.as_object_mut().expect("a map").remove("url");
    client["service"] =
        json!({"namespace": crd.namespace, "name": "converter", "path": "/convert", "port": server.port});
    definition
}

fn a_webhook_of_the_release_is_there_before_the_storage_version_changes() {
    let crd = TestCrd::new("webhook-first");
    let app = TestApp::new("cogs", &crd.namespace);
    let apply = |documents: &[Value]| {
        let input: Vec<String> = documents.iter().map(Value::to_string).collect();
        app.apply(&input.join("\n---\n"), &["--storage", "migrate"])
    };
    let old = crd.manifest(&versions("v1")[..1]);
    let ran = apply(&[old]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    crd.await_version("v1", true);
    for number in 0..5 {
        let object = crd.object("v1", &format!("cog-{number}"), &json!({"size": "s", "colour": "red"}));
        crd.api().apply_with(&object, "fieldManager=owner").ok();
    }
    let steps = json!({"steps": [{"from": "v1", "to": "v2", "renames": {"spec.colour": "spec.color"}}]});
    let name = format!("converter.{}.svc", crd.namespace);
    let rules = plan(&crd.name(), steps);
    let server = ConversionServer::start_named(&crd.manifest(&versions("v2")), &rules, &[], &[&name]);
    let definition = converted(&crd, &server);
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "converter", "namespace": crd.namespace},
        "spec": {"type": "ExternalName", "externalName": "localhost"},
    });

    let ran = apply(&[definition.clone(), service.clone()]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let told = format!(
        "objects stay in v1 until its webhook, Service {}/converter of this app, is ready; then a second round stores \
         them in v2",
        crd.namespace
    );
    assert!(ran.stdout.contains(&told), "{}", ran.stdout);
    assert_eq!((crd.in_etcd().as_str(), crd.stored_versions()), ("v2: 5", json!(["v2"])));
    let read = crd.api().get(&crd.object_path("v2", "cog-3")).ok();
    assert_eq!(read["spec"], json!({"size": "s", "color": "red"}), "the webhook has converted it");
    let ran = apply(&[definition, service]);
    assert!(ran.code == 0 && !ran.stdout.contains("second round"), "{}{}", ran.stdout, ran.stderr);
}
