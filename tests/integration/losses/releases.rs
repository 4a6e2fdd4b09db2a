//! Random releases of an app, from the objects of real ones.

use std::io::Read as _;
use std::path::Path;
use std::sync::LazyLock;

use flate2::read::GzDecoder;
use serde_json::{Value, json};

use crate::support::api::ApiClient;
use crate::support::dice::Dice;

/// Kinds that would disturb other rounds of the same cluster, or need what it lacks.
const LEFT_OUT: [&str; 6] = [
    "APIService",
    "CustomResourceDefinition",
    "Namespace",
    "ValidatingWebhookConfiguration",
    "MutatingWebhookConfiguration",
    "Job",
];

/// Objects of the real apps, without CRDs, namespaces and custom resources.
static OBJECTS: LazyLock<Vec<Value>> = LazyLock::new(|| {
    let files =
        ["ingress-nginx/controller-v1.15.1/deploy.yaml", "strimzi/0.48.0.yaml.gz", "kube-prometheus/v0.18.0.yaml.gz"];
    let objects = files.iter().flat_map(|file| read(file));
    objects.filter(|object| !LEFT_OUT.iter().any(|kind| object["kind"] == *kind) && is_built_in(object)).collect()
});

/// A small CRD of a real app.
static CRD: LazyLock<Value> = LazyLock::new(|| {
    let mut objects = read("strimzi/0.48.0.yaml.gz").into_iter();
    objects.find(|object| object["metadata"]["name"] == "kafkatopics.kafka.strimzi.io").expect("a CRD")
});

fn read(file: &str) -> Vec<Value> {
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/apps")).join(file);
    let bytes = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut text = String::new();
    if file.ends_with(".gz") {
        GzDecoder::new(&*bytes).read_to_string(&mut text).expect("packed YAML");
    } else {
        text = String::from_utf8(bytes).expect("text");
    }
    let documents: Vec<Value> = serde_yaml::from_multiple(&text).unwrap_or_else(|error| panic!("{file}: {error}"));
    documents.into_iter().flat_map(into_objects).collect()
}

/// A document is an object, or a list of them.
fn into_objects(document: Value) -> Vec<Value> {
    let kind = document["kind"].as_str().unwrap_or_default();
    match (kind.strip_suffix("List"), document["items"].as_array()) {
        (Some(kind), Some(items)) => items
            .iter()
            .map(|item| {
                let mut object = json!({"apiVersion": document["apiVersion"], "kind": kind});
                let fields = item.as_object().expect("an object").clone();
                object.as_object_mut().expect("an object").extend(fields);
                object
            })
            .collect(),
        _ => vec![document],
    }
}

fn is_built_in(object: &Value) -> bool {
    let group = object["apiVersion"].as_str().unwrap_or_default().split_once('/').map_or("", |(group, _)| group);
    !group.contains('.') || group.ends_with(".k8s.io")
}

fn is_namespaced(object: &Value) -> bool {
    let kind = object["kind"].as_str().unwrap_or_default();
    !kind.starts_with("Cluster") && kind != "IngressClass"
}

/// The manifests of an app, and where its objects are.
#[derive(Debug)]
pub(super) struct Release {
    objects: Vec<Value>,
    /// The namespace that is there before the app.
    given: String,
    /// A namespace of the app, if it has one.
    own: Option<String>,
}

impl Release {
    /// A first release: some objects, often with a namespace of its own, often with a CRD and custom resources.
    pub(super) fn new(dice: &mut Dice, given: &str) -> Self {
        let mut release = Self { objects: Vec::new(), given: given.to_owned(), own: None };
        if dice.one_in(2) {
            let own = format!("{given}-own");
            release.objects.push(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": own}}));
            release.own = Some(own);
        }
        for number in 0..6 + dice.throw(8) {
            let mut object = OBJECTS[dice.place(OBJECTS.len())].clone();
            let name = format!("{given}-{number}-{}", object["metadata"]["name"].as_str().unwrap_or_default());
            object["metadata"]["name"] = name.chars().take(60).collect::<String>().trim_end_matches(['-', '.']).into();
            if is_namespaced(&object) {
                object["metadata"]["namespace"] = release.some_namespace(dice).into();
            }
            release.objects.push(object);
        }
        if dice.one_in(2) {
            let mut crd = CRD.clone();
            let group = format!("kafka.{given}.example");
            crd["metadata"]["name"] = format!("kafkatopics.{group}").into();
            crd["spec"]["group"] = group.into();
            release.objects.push(crd);
            for number in 0..dice.throw(3) {
                let namespace = release.some_namespace(dice);
                release.objects.push(topic(given, &format!("topic-{number}"), &namespace));
            }
        }
        release
    }

    fn some_namespace(&self, dice: &mut Dice) -> String {
        let own = self.own.clone().filter(|_| dice.one_in(2));
        own.unwrap_or_else(|| self.given.clone())
    }

    /// The objects, as they are in the manifests.
    pub(super) fn objects(&self) -> &[Value] {
        &self.objects
    }

    /// The manifests as one text.
    pub(super) fn manifests(&self) -> String {
        self.objects.iter().map(|object| format!("---\n{object}\n")).collect()
    }

    /// Creates objects of others: in the app's namespace, of its kind, and owned by its objects, which it may reach.
    pub(super) fn add_objects_of_others(&self, dice: &mut Dice, api: &ApiClient) {
        let settings = |namespace: &str, name: &str, owner: Option<&Value>| {
            let mut object =
                json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": namespace, "name": name}});
            if let Some(owner) = owner {
                object["metadata"]["ownerReferences"] = json!([reference(owner)]);
            }
            api.apply(&object).ok()
        };
        if let Some(own) = self.own.as_ref().filter(|_| dice.one_in(2)) {
            settings(own, "of-others", None);
        }
        if self.has_crd() && dice.one_in(2) {
            api.apply(&topic(&self.given, "of-others", &self.given)).ok();
        }
        for (number, object) in self.objects.iter().enumerate() {
            if !dice.one_in(4) {
                continue;
            }
            let live = api.get(&api.path_of(object)).ok();
            match live["metadata"]["namespace"].as_str() {
                Some(namespace) => {
                    let first = settings(namespace, &format!("owned-{number}"), Some(&live));
                    if dice.one_in(2) {
                        settings(namespace, &format!("owned-by-owned-{number}"), Some(&first));
                    }
                }
                None if dice.one_in(2) => {
                    let name = format!("{}-owned-{number}", self.given);
                    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
                        "metadata": {"name": name, "ownerReferences": [reference(&live)]}});
                    api.apply(&role).ok();
                }
                None => {
                    settings(&self.given, &format!("owned-{number}"), Some(&live));
                }
            }
        }
    }

    fn has_crd(&self) -> bool {
        self.objects.iter().any(|object| object["kind"] == "CustomResourceDefinition")
    }

    /// Makes the next release. Returns which live objects of the app are owned by others of it since.
    pub(super) fn change(&mut self, dice: &mut Dice, api: &ApiClient) -> Vec<String> {
        let owned = self.re_own(dice, api);
        let mut next = Vec::new();
        for (number, mut object) in std::mem::take(&mut self.objects).into_iter().enumerate() {
            match dice.throw(12) {
                0 | 1 => continue,
                2 if object["metadata"].get("namespace").is_some() => {
                    object["metadata"]["namespace"] = self.some_namespace(dice).into();
                }
                3 if object["kind"] != "CustomResourceDefinition" && object["kind"] != "Namespace" => {
                    object["metadata"]["name"] = format!("{}-renamed-{number}", self.given).into();
                }
                4 => {
                    object["metadata"]["annotations"]["kapp.k14s.io/update-strategy"] = "always-replace".into();
                    object["metadata"]["labels"]["example.com/release"] = "replaced".into();
                }
                5 | 6 => object["metadata"]["labels"]["example.com/release"] = "changed".into(),
                _ => {}
            }
            next.push(object);
        }
        let has_namespace = next.iter().any(|object| object["kind"] == "Namespace");
        let has_crd = next.iter().any(|object| object["kind"] == "CustomResourceDefinition");
        let own = self.own.clone().unwrap_or_default();
        next.retain(|object| {
            (has_namespace || object["metadata"]["namespace"] != own.as_str())
                && (has_crd || object["kind"] != "KafkaTopic")
        });
        self.objects = next;
        owned
    }

    /// Lets an object of the app own another one.
    fn re_own(&self, dice: &mut Dice, api: &ApiClient) -> Vec<String> {
        let mut owned = Vec::new();
        for _ in 0..dice.throw(3) {
            let owner = &self.objects[dice.place(self.objects.len())];
            let object = &self.objects[dice.place(self.objects.len())];
            let namespace = &owner["metadata"]["namespace"];
            // A namespaced owner owns only objects of its own namespace.
            if owner == object || (!namespace.is_null() && *namespace != object["metadata"]["namespace"]) {
                continue;
            }
            let live = api.get(&api.path_of(owner)).ok();
            let patch = json!({"metadata": {"ownerReferences": [reference(&live)]}});
            api.merge_patch(&api.path_of(object), &patch).ok();
            owned.push(format!("{} owned by {}", object["metadata"]["name"], owner["metadata"]["name"]));
        }
        owned
    }
}

fn topic(round: &str, name: &str, namespace: &str) -> Value {
    json!({"apiVersion": format!("kafka.{round}.example/v1beta2"), "kind": "KafkaTopic",
        "metadata": {"name": name, "namespace": namespace}, "spec": {"partitions": 1}})
}

fn reference(owner: &Value) -> Value {
    json!({"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"]})
}
