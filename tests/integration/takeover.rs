//! Objects that kapp, kubectl or nobody has written, taken over: what is shown is what happens, what others own stays,
//! and the second run has nothing to do.

mod adopted;
mod autoscaled;
mod back;
mod generated;
mod kubectl;
mod owners_only;
mod races;
mod recorded;
mod versions;

use serde_json::{Value, json};

use crate::support::api::ApiClient;
use crate::support::apply::{TestApp, short};
use crate::support::pushback::Ran;
use crate::support::{TestCase, TestCluster};

pub(crate) fn tests() -> Vec<TestCase> {
    [
        adopted::tests(),
        autoscaled::tests(),
        back::tests(),
        generated::tests(),
        kubectl::tests(),
        owners_only::tests(),
        races::tests(),
        recorded::tests(),
        versions::tests(),
    ]
    .concat()
}

fn api() -> &'static ApiClient {
    TestCluster::shared().api()
}

fn new_app() -> TestApp {
    TestApp::new("shop", &TestCluster::shared().namespace("takeover"))
}

/// An object as its manager left it. `query` tells whose it is, `fieldManager=kapp`.
#[track_caller]
fn create(app: &TestApp, query: &str, mut object: Value) -> String {
    object["metadata"]["namespace"] = json!(app.namespace);
    let path = api().path_of(&object);
    let (collection, _) = path.rsplit_once('/').expect("a collection");
    api().post(&format!("{collection}?{query}"), &object).ok();
    path
}

/// A manifest of objects; JSON is YAML.
fn manifest(objects: &[Value]) -> String {
    objects.iter().map(|object| format!("---\n{object}\n")).collect()
}

/// What an object is, without what the server counts and who owns it: `metadata.managedFields`, versions, status.
fn content(object: &Value) -> Value {
    let mut object = object.clone();
    object.as_object_mut().expect("an object").shift_remove("status");
    let metadata = object["metadata"].as_object_mut().expect("metadata");
    for field in ["managedFields", "resourceVersion", "generation"] {
        metadata.shift_remove(field);
    }
    if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
        // The controllers' own, which comes when they have seen the object.
        annotations.shift_remove("deployment.kubernetes.io/revision");
    }
    object
}

/// The entries of one object, by manager and operation; ours are left out.
fn foreign_entries(object: &Value) -> Vec<Value> {
    let mut entries = object["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    entries.retain(|entry| entry["manager"] != "pushback" && entry["subresource"] != "status");
    entries
}

/// `manager operation` of the entries, subresources left out.
fn managers(object: &Value) -> Vec<String> {
    let mut entries = object["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    entries.retain(|entry| entry["subresource"].is_null());
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    // The controllers of a cluster annotate Deployments.
    let all = entries.iter().map(|entry| format!("{} {}", text(&entry["manager"]), text(&entry["operation"])));
    all.filter(|name| !name.starts_with("kube-controller-manager")).collect()
}

/// The changes that a run has shown.
#[track_caller]
fn shown(ran: &Ran) -> Vec<Value> {
    let events = ran.events();
    let plan = events.iter().rfind(|event| event["type"] == "plan").expect("a plan");
    plan["changes"].as_array().expect("changes").clone()
}

/// Paths of the fields that a run has shown for an object, those that we stamp left out, each with what happens.
#[track_caller]
fn shown_fields(ran: &Ran, object: &str) -> Vec<String> {
    let changes = shown(ran);
    let change = changes.iter().find(|change| short(&change["object"]) == object).expect("a change of the object");
    let fields = change["fields"].as_array().expect("fields").iter();
    let stamps = ["kapp.k14s.io/app", "kapp.k14s.io/association", "kapp.k14s.io/identity"];
    let fields = fields.filter(|field| stamps.iter().all(|stamp| !field.to_string().contains(stamp)));
    fields
        .map(|field| {
            let text = |name: &str| field[name].as_str().unwrap_or("-").to_owned();
            format!("{}: {} → {}", text("path"), text("old"), text("new"))
        })
        .collect()
}

/// The remarks that a run has made on an object.
#[track_caller]
fn notes(ran: &Ran, object: &str) -> String {
    let changes = shown(ran);
    let change = changes.iter().find(|change| short(&change["object"]) == object).expect("a change of the object");
    change["notes"].to_string()
}

/// Runs again with the same input: nothing is planned, and nothing written.
#[track_caller]
fn assert_settled(app: &TestApp, input: &str, further: &[&str], paths: &[String]) {
    let arguments = [&["--wait=false"], further].concat();
    // A controller's status is not our write.
    let versions = || -> Vec<Value> { paths.iter().map(|path| content_and_owners(&api().get(path).ok())).collect() };
    let before = versions();
    let ran = app.apply(input, &arguments).expect(0);
    assert_eq!(ran.end()["outcome"], "unchanged", "{}", ran.stdout);
    assert_eq!(versions(), before);
}

fn content_and_owners(object: &Value) -> Value {
    let entries = object["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    let ours: Vec<Value> = entries.into_iter().filter(|entry| entry["manager"] == "pushback").collect();
    json!([content(object), ours])
}
