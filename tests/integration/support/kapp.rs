//! Apps that kapp has made, brought back from what was recorded of them, and kapp's way of writing its record:
//! whole objects with operation Update, nothing of ours in them but what it keeps.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use pushback_app::identity::association;
use pushback_objects::ObjectRef;
use serde_json::{Value, json};

use super::TestCluster;
use super::apply::parse_text;
use super::poll::wait_until;

/// Where the recorded app lies.
pub(crate) fn recorded(app: &str) -> PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/kapp-apps")).join(app)
}

/// An input of the recorded app, its namespaces replaced.
#[track_caller]
pub(crate) fn input(app: &str, number: usize, namespaces: &[(&str, &str)]) -> String {
    let text = read(&recorded(app).join(format!("input-{number}.yaml")));
    namespaces.iter().fold(text, |text, (from, to)| text.replace(from, to))
}

#[track_caller]
fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// What the cluster had after kapp's last deploy, in other namespaces and with a label value of its own.
#[track_caller]
pub(crate) fn live(app: &str, namespaces: &[(&str, &str)]) -> Vec<Value> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let text = read(&recorded(app).join("live.yaml"));
    let text = namespaces.iter().fold(text, |text, (from, to)| text.replace(from, to));
    let mut objects: Vec<Value> = serde_yaml::from_multiple(&text).expect("recorded objects");
    let record = objects.iter().find(|object| label(object, "is-app").is_some()).expect("a record");
    let old_label = parse_text(&record["data"]["spec"])["labelValue"].as_str().expect("a label value").to_owned();
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let new_label = format!("{}{number:04}", &old_label[..old_label.len() - 4]);
    let mut replaced = vec![(old_label, new_label)];
    for object in &objects {
        // The digest is of the namespace, too.
        if let Some(old) = label(object, "association") {
            let mut key = ObjectRef::of(object).key();
            // All versions of an object share it.
            key.name.truncate(key.name.find("-ver-").unwrap_or(key.name.len()));
            replaced.push((old.to_owned(), association(&key)));
        }
    }
    for object in &mut objects {
        let text = replaced.iter().fold(object.to_string(), |text, (from, to)| text.replace(from, to));
        *object = serde_json::from_str(&text).expect("still JSON");
    }
    objects
}

fn label<'a>(object: &'a Value, name: &str) -> Option<&'a str> {
    object["metadata"]["labels"][format!("kapp.k14s.io/{name}")].as_str()
}

/// Brings a recorded app onto the shared cluster; returns its objects, record and history included.
#[track_caller]
pub(crate) fn revive(app: &str, namespaces: &[(&str, &str)]) -> Vec<Value> {
    let mut objects = live(app, namespaces);
    objects.sort_by_key(|object| object["kind"] != "CustomResourceDefinition");
    for object in &mut objects {
        create(object);
    }
    objects
}

/// As [`revive`], and every object has exactly the entries of `managedFields` that were recorded, those of others, too.
/// Status comes from the cluster's own controllers.
#[track_caller]
pub(crate) fn revive_with_managers(app: &str, namespaces: &[(&str, &str)]) -> Vec<Value> {
    let recorded = live(app, namespaces);
    let api = TestCluster::shared().api();
    let mut objects = recorded.clone();
    objects.sort_by_key(|object| object["kind"] != "CustomResourceDefinition");
    objects.iter_mut().for_each(create);
    for object in &recorded {
        let mut entries = object["metadata"]["managedFields"].as_array().expect("entries").clone();
        entries.retain(|entry| entry["subresource"] != "status");
        set_managers(api.path_of(object).as_str(), &entries);
    }
    recorded
}

/// Makes these the entries of an object.
#[track_caller]
pub(crate) fn set_managers(path: &str, entries: &[Value]) {
    let patch = json!([{"op": "add", "path": "/metadata/managedFields", "value": entries}]);
    let api = TestCluster::shared().api();
    // Controllers may write at the same moment; the server repeats the patch by itself.
    let answer = api.request("PATCH", path, Some("application/json-patch+json"), Some(&patch));
    answer.expect("an answer").ok();
}

/// What kapp takes for the app's own, when it lists, prunes or deletes: of the kinds in the record, everything with the
/// record's label whose identity names itself. `Kind namespace/name`, sorted.
#[track_caller]
pub(crate) fn selected(record: &Value) -> Vec<String> {
    let api = TestCluster::shared().api();
    let spec = parse_text(&record["data"]["spec"]);
    let text = |value: &Value| value.as_str().unwrap_or_else(|| panic!("no text in {spec}")).to_owned();
    let selector =
        format!("labelSelector={}%3D{}", text(&spec["labelKey"]).replace('/', "%2F"), text(&spec["labelValue"]));
    let mut found = Vec::new();
    for kind in spec["usedGKs"].as_array().expect("kinds") {
        let (group, kind) = (text(&kind["Group"]), text(&kind["Kind"]));
        let versions = spec["usedGVs"].as_array().expect("versions").iter();
        let version = versions.clone().find(|version| version["Group"] == group.as_str());
        let version = text(&version.unwrap_or_else(|| panic!("no version of {group:?} in {spec}"))["Version"]);
        let api_version = if group.is_empty() { version } else { format!("{group}/{version}") };
        let root = if group.is_empty() { "api" } else { "apis" };
        let resources = api.get(&format!("/{root}/{api_version}")).ok();
        let resource = resources["resources"]
            .as_array()
            .expect("resources")
            .iter()
            .find(|resource| resource["kind"] == kind.as_str() && !text(&resource["name"]).contains('/'));
        let Some(resource) = resource else { continue };
        let plural = text(&resource["name"]);
        for item in api.list(&format!("/{root}/{api_version}/{plural}?{selector}")) {
            let metadata = &item["metadata"];
            let namespace = metadata["namespace"].as_str().unwrap_or_default();
            let name = text(&metadata["name"]);
            let identity = metadata["annotations"]["kapp.k14s.io/identity"].as_str().unwrap_or_default();
            if identity == format!("v1;{namespace}/{group}/{kind}/{name};{api_version}") {
                found.push(format!("{kind} {namespace}/{name}"));
            }
        }
    }
    found.sort();
    found
}

/// Creates an object as kapp does: the whole of it, with operation Update.
#[track_caller]
pub(crate) fn create(object: &mut Value) {
    let api = TestCluster::shared().api();
    for field in ["uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "generateName"] {
        object["metadata"].as_object_mut().expect("metadata").shift_remove(field);
    }
    object.as_object_mut().expect("an object").shift_remove("status");
    if object["kind"] == "Service" {
        let spec = object["spec"].as_object_mut().expect("a spec");
        spec.shift_remove("clusterIP");
        spec.shift_remove("clusterIPs");
    }
    let path = wait_until("the kind is served", Duration::from_secs(60), || {
        api.serves(object).then(|| api.path_of(object)).filter(|path| api.get(path).status == 404)
    });
    let (collection, _) = path.rsplit_once('/').expect("a collection");
    api.post(&format!("{collection}?fieldManager=kapp"), object).ok();
}

/// Does to a record what a deploy of kapp does: the next change, the kinds that it has used. Of `data` only kapp's
/// own key is left; labels and annotations stay.
#[track_caller]
pub(crate) fn deploy_record(path: &str, change: &str, kinds: &[(&str, &str)], namespaces: &[&str]) {
    let api = TestCluster::shared().api();
    let mut record = api.get(path).ok();
    let mut spec = parse_text(&record["data"]["spec"]);
    spec["lastChangeName"] = json!(change);
    spec["lastChange"] = json!({
        "startedAt": "2026-11-21T08:00:00.1Z", "finishedAt": "2026-11-21T08:00:01.1Z", "successful": true,
        "description": "update: Op: 1 create, 0 delete, 0 update, 0 noop, 0 exists / Wait to: 1 reconcile, 0 delete, 0 noop",
        "namespaces": namespaces,
    });
    spec["usedGKs"] = kinds.iter().map(|(group, kind)| json!({"Group": group, "Kind": kind})).collect();
    record["data"] = json!({"spec": spec.to_string()});
    api.put(&format!("{path}?fieldManager=kapp"), &record).ok();
}
