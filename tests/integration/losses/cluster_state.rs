//! The objects of one round of the test as the API server has them, and what is lost between two states.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use serde_json::Value;

use crate::support::api::ApiClient;
use crate::support::poll;

/// The garbage collector and the namespace controller are done within this time.
const SETTLED_WITHIN: Duration = Duration::from_secs(120);

/// Kinds that controllers write all the time, and virtual ones.
const UNSTABLE: [&str; 6] = ["Event", "Lease", "Endpoints", "EndpointSlice", "ComponentStatus", "APIService"];

/// Kind, namespace and name of an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Identity {
    kind: String,
    namespace: String,
    name: String,
}

impl Identity {
    pub(super) fn new(kind: &str, namespace: &str, name: &str) -> Self {
        Self { kind: kind.to_owned(), namespace: namespace.to_owned(), name: name.to_owned() }
    }
}

impl Identity {
    /// Reads the identity of a manifest.
    pub(super) fn from_manifest(manifest: &Value) -> Self {
        identity(manifest)
    }

    /// Whether a text has the name, with its namespace, as a word.
    pub(super) fn is_in(&self, text: &str) -> bool {
        let name = match self.namespace.as_str() {
            "" => self.name.clone(),
            namespace => format!("{namespace}/{}", self.name),
        };
        let continues = |rest: &str| rest.starts_with(|next: char| next.is_ascii_alphanumeric() || "-.".contains(next));
        text.match_indices(&name).any(|(start, _)| !continues(&text[start + name.len()..]))
    }
}

/// What happened to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Loss {
    Disappeared,
    Changed,
}

impl fmt::Display for Loss {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Disappeared => "disappeared",
            Self::Changed => "changed",
        })
    }
}

/// Objects with their uid and their content.
#[derive(Debug)]
pub(super) struct ClusterState(BTreeMap<Identity, (String, Value)>);

impl ClusterState {
    /// Waits until no deletion is under way, and returns the objects of the round with this prefix.
    pub(super) fn settled(api: &ApiClient, prefix: &str) -> Self {
        let mut going = Vec::new();
        let settled = poll(SETTLED_WITHIN, || {
            let (objects, served) = list_everything(api);
            let uids: BTreeSet<&str> = objects.iter().filter_map(|object| object["metadata"]["uid"].as_str()).collect();
            let is_going = |object: &Value| {
                let owners = object["metadata"]["ownerReferences"].as_array().map_or(&[][..], Vec::as_slice);
                object["metadata"].get("deletionTimestamp").is_some()
                    || (!owners.is_empty()
                        && owners.iter().all(|owner| owner["uid"].as_str().is_none_or(|uid| !uids.contains(uid)))
                        // The garbage collector cannot look for an owner of a kind that is gone, and may wait for ever.
                        && owners.iter().all(|owner| owner["apiVersion"].as_str().is_some_and(|of| served.contains(of))))
            };
            let of_round: Vec<&Value> = objects.iter().filter(|object| is_of_round(object, prefix)).collect();
            going =
                of_round.iter().filter(|object| is_going(object)).map(|object| object["metadata"].clone()).collect();
            if !going.is_empty() {
                return None;
            }
            let kept = of_round.into_iter().filter(|object| !is_made_by_controllers(object));
            Some(Self(kept.map(|object| (identity(object), (uid(object), content(object)))).collect()))
        });
        settled.unwrap_or_else(|| panic!("within {SETTLED_WITHIN:?} these were not deleted: {going:#?}"))
    }

    /// Whether there is an object of this name.
    pub(super) fn contains(&self, object: &Identity) -> bool {
        self.0.contains_key(object)
    }

    /// The objects that are missing, are others, or have another content in a later state.
    pub(super) fn losses(&self, later: &Self) -> Vec<(Identity, Loss)> {
        let mut losses = Vec::new();
        for (object, (uid, content)) in &self.0 {
            match later.0.get(object) {
                Some((same, now)) if same == uid && now == content => {}
                Some((same, _)) if same == uid => losses.push((object.clone(), Loss::Changed)),
                _ => losses.push((object.clone(), Loss::Disappeared)),
            }
        }
        losses
    }
}

/// Lists all objects, and the group versions that are served.
fn list_everything(api: &ApiClient) -> (Vec<Value>, BTreeSet<String>) {
    let mut roots = vec!["/api/v1".to_owned()];
    let mut served = BTreeSet::from(["v1".to_owned()]);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    for group in api.get("/apis").ok()["groups"].as_array().cloned().unwrap_or_default() {
        roots.push(format!("/apis/{}", text(&group["preferredVersion"]["groupVersion"])));
        let versions = group["versions"].as_array().into_iter().flatten();
        served.extend(versions.map(|version| text(&version["groupVersion"])));
    }
    let mut objects = Vec::new();
    for root in roots {
        // A CRD that has just gone may still be in the list of groups.
        let answer = api.get(&root);
        for resource in answer.body["resources"].as_array().cloned().unwrap_or_default() {
            let name = resource["name"].as_str().unwrap_or_default();
            let kind = resource["kind"].as_str().unwrap_or_default();
            let lists = resource["verbs"].as_array().is_some_and(|verbs| verbs.iter().any(|verb| verb == "list"));
            if name.contains('/') || !lists || UNSTABLE.contains(&kind) {
                continue;
            }
            for mut object in api.get(&format!("{root}/{name}")).body["items"].as_array().cloned().unwrap_or_default() {
                object["kind"] = kind.into();
                objects.push(object);
            }
        }
    }
    (objects, served)
}

fn is_of_round(object: &Value, prefix: &str) -> bool {
    let text = |key: &str| object["metadata"][key].as_str().unwrap_or_default().to_owned();
    let starts = |text: &str| text == prefix || text.strip_prefix(prefix).is_some_and(|rest| rest.starts_with('-'));
    starts(&text("namespace")) || starts(&text("name")) || text("name").contains(&format!(".{prefix}."))
}

/// What controllers make from an object is not the concern of a deploy, and neither are the records of the app.
fn is_made_by_controllers(object: &Value) -> bool {
    let metadata = &object["metadata"];
    let owners = metadata["ownerReferences"].as_array().map_or(&[][..], Vec::as_slice);
    let labels = &metadata["labels"];
    owners.iter().any(|owner| owner["controller"] == true)
        || labels.get("kapp.k14s.io/is-app").is_some()
        || labels.get("kapp.k14s.io/is-app-change").is_some()
        || (object["kind"] == "ServiceAccount" && metadata["name"] == "default")
        || (object["kind"] == "ConfigMap" && metadata["name"] == "kube-root-ca.crt")
}

fn identity(object: &Value) -> Identity {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let metadata = &object["metadata"];
    Identity::new(&text(&object["kind"]), &text(&metadata["namespace"]), &text(&metadata["name"]))
}

fn uid(object: &Value) -> String {
    object["metadata"]["uid"].as_str().unwrap_or_default().to_owned()
}

/// The object without what servers and controllers write.
fn content(object: &Value) -> Value {
    let mut content = object.clone();
    let map = content.as_object_mut().expect("an object");
    map.remove("status");
    map.remove("secrets");
    if let Some(metadata) = map.get_mut("metadata").and_then(Value::as_object_mut) {
        for key in ["resourceVersion", "managedFields", "generation", "finalizers"] {
            metadata.remove(key);
        }
        if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
            annotations.retain(|key, _| !key.contains("kubernetes.io/"));
        }
    }
    content
}
