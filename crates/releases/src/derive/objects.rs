//! The objects of a release as input for derivation: without those that the cluster or a deploy tool created, without
//! duplicates, in a fixed order, and indexed by kind, namespace and name.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use pushback_objects::object::{ObjectExt, ObjectRef, is_custom_group};
use pushback_objects::source::{PathSegment, Position, Positions};
use serde_json::Value;

/// Kinds that controllers create; they are not part of a release.
const MADE_BY_THE_CLUSTER: [(&str, &str); 9] = [
    ("", "Event"),
    ("events.k8s.io", "Event"),
    ("", "Endpoints"),
    ("discovery.k8s.io", "EndpointSlice"),
    ("", "Pod"),
    ("apps", "ReplicaSet"),
    ("extensions", "ReplicaSet"),
    ("apps", "ControllerRevision"),
    ("metrics.k8s.io", "PodMetrics"),
];

/// Labels of the ConfigMaps in which a deploy tool records an app.
const RECORDS: [&str; 3] = ["kapp.k14s.io/is-app", "kapp.k14s.io/is-app-change", "pushback.dev/inventory"];

/// Labels that record the deployer of an object or its release: they do not distinguish components, and would mark
/// every object of a new release as changed.
const STAMPS: [&str; 6] = [
    "kapp.k14s.io/app",
    "kapp.k14s.io/association",
    "pod-template-hash",
    "controller-revision-hash",
    "app.kubernetes.io/version",
    "helm.sh/chart",
];

/// Annotations that contain a copy of the object, including the data of a Secret.
const COPIES: [&str; 4] = [
    "kubectl.kubernetes.io/last-applied-configuration",
    "kapp.k14s.io/original",
    "kapp.k14s.io/original-diff",
    "kapp.k14s.io/original-diff-full",
];

/// An object of a release, from a file or a cluster.
#[derive(Clone, Debug)]
pub struct Given {
    /// Content of the object.
    pub value: Arc<Value>,
    /// Position of each node; `None` for a live object.
    pub positions: Option<Arc<Positions>>,
}

/// An object of a release.
#[derive(Clone, Debug)]
pub(super) struct Object {
    /// Reference, without the number of a versioned name.
    pub(super) reference: ObjectRef,
    /// Name as written in the manifest.
    pub(super) written_name: String,
    pub(super) value: Arc<Value>,
    positions: Option<Arc<Positions>>,
}

impl Object {
    /// `None` if the object is not part of a release.
    fn from_given(given: &Given) -> Option<Self> {
        let value = &given.value;
        let mut reference = ObjectRef::of(value);
        let is_made =
            MADE_BY_THE_CLUSTER.iter().any(|(group, kind)| reference.group == *group && reference.kind == *kind);
        let is_record = RECORDS.iter().any(|label| value.label(label).is_some());
        let is_controlled = owners(value).any(|owner| owner.get("controller") == Some(&Value::Bool(true)));
        let is_named = ![&reference.version, &reference.kind, &reference.name].iter().any(|part| part.is_empty());
        if !is_named || is_made || is_record || is_controlled {
            return None;
        }
        let written_name = reference.name.clone();
        if let Some((base, _)) = versioned(value) {
            reference.name = base.to_owned();
        }
        let value = if reference.kind == "Secret" && reference.group.is_empty() {
            Arc::new(without_secrets(value))
        } else {
            Arc::clone(value)
        };
        Some(Self { reference, written_name, value, positions: given.positions.clone() })
    }

    pub(super) fn is(&self, group: &str, kind: &str) -> bool {
        self.reference.group == group && self.reference.kind == kind
    }

    pub(super) fn is_crd(&self) -> bool {
        self.is("apiextensions.k8s.io", "CustomResourceDefinition")
    }

    /// Whether its kind is defined by a CustomResourceDefinition: only those have such group names.
    pub(super) fn is_custom(&self) -> bool {
        is_custom_group(&self.reference.group)
    }

    /// Its labels without [`STAMPS`].
    pub(super) fn labels(&self) -> BTreeMap<String, String> {
        let labels = texts(self.value.pointer("/metadata/labels")).into_iter();
        labels.filter(|(key, _)| !is_stamp(key)).map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
    }

    pub(super) fn positions(&self) -> Option<Arc<Positions>> {
        self.positions.clone()
    }

    /// Position of a node.
    pub(super) fn position(&self, path: &[PathSegment]) -> Position {
        self.positions.as_ref().map(|positions| positions.locate(path)).unwrap_or_default()
    }
}

/// Whether a label only records the deployer of an object or its release.
pub(super) fn is_stamp(key: &str) -> bool {
    STAMPS.contains(&key)
}

/// Base name and number of a versioned object.
fn versioned(value: &Value) -> Option<(&str, u64)> {
    let is_marked = value.annotation("kapp.k14s.io/versioned").is_some();
    let may_be = is_marked || matches!(value.text("/kind"), "ConfigMap" | "Secret");
    versioned_name(value.name()).filter(|_| may_be)
}

/// Base name and number of a name in kapp's format for versioned objects.
pub(crate) fn versioned_name(name: &str) -> Option<(&str, u64)> {
    let (base, number) = name.rsplit_once("-ver-").filter(|(base, _)| !base.is_empty())?;
    let number = number.bytes().all(|byte| byte.is_ascii_digit()).then(|| number.parse().ok())??;
    Some((base, number))
}

/// A Secret without its data.
fn without_secrets(value: &Value) -> Value {
    let Some(fields) = value.as_object() else { return Value::Null };
    let mut kept = serde_json::Map::new();
    for (key, field) in fields {
        match (key.as_str(), field) {
            ("metadata", Value::Object(metadata)) => {
                let mut metadata = metadata.clone();
                metadata.remove("managedFields");
                if let Some(Value::Object(annotations)) = metadata.get_mut("annotations") {
                    annotations.retain(|key, _| !COPIES.contains(&key.as_str()));
                }
                kept.insert(key.clone(), Value::Object(metadata));
            }
            ("apiVersion" | "kind" | "type" | "immutable", field) if !field.is_object() && !field.is_array() => {
                kept.insert(key.clone(), field.clone());
            }
            _ => {}
        }
    }
    Value::Object(kept)
}

/// `metadata.ownerReferences`.
pub(super) fn owners(value: &Value) -> impl Iterator<Item = &Value> {
    list(value.pointer("/metadata/ownerReferences"))
}

/// The elements of a list; none if the value is not a list.
pub(super) fn list(value: Option<&Value>) -> impl Iterator<Item = &Value> {
    value.and_then(Value::as_array).into_iter().flatten()
}

/// The string entries of a map.
pub(super) fn texts(value: Option<&Value>) -> BTreeMap<&str, &str> {
    let entries = value.and_then(Value::as_object).into_iter().flatten();
    entries.filter_map(|(key, value)| Some((key.as_str(), value.as_str()?))).collect()
}

/// The objects of a release in a fixed order; ties are broken by content.
pub(super) fn sorted(given: &[Given]) -> Vec<Object> {
    let mut objects: Vec<Object> = given.iter().filter_map(Object::from_given).collect();
    objects.sort_by(|one, other| {
        let key = |object: &Object| {
            let ObjectRef { group, kind, namespace, name, .. } = object.reference.clone();
            (group, kind, namespace, name)
        };
        // Of several versions of a name, the last counts.
        let number = |object: &Object| versioned(&object.value).map(|(_, number)| number);
        key(one)
            .cmp(&key(other))
            .then_with(|| number(other).cmp(&number(one)))
            .then_with(|| one.reference.version.cmp(&other.reference.version))
            .then_with(|| one.value.to_string().cmp(&other.value.to_string()))
    });
    objects.dedup_by(|later, kept| later.reference.key() == kept.reference.key());
    objects
}

/// Objects by their references.
#[derive(Debug)]
pub(super) struct Index<'a> {
    pub(super) all: &'a [Object],
    /// Namespace for objects that name none.
    default_namespace: &'a str,
    /// Used for lookups only: its order has no effect.
    by_name: HashMap<(&'a str, &'a str, &'a str, &'a str), usize>,
}

impl<'a> Index<'a> {
    pub(super) fn new(all: &'a [Object], default_namespace: &'a str) -> Self {
        let mut index = Self { all, default_namespace, by_name: HashMap::with_capacity(all.len()) };
        for (at, object) in all.iter().enumerate() {
            let ObjectRef { group, kind, namespace, .. } = &object.reference;
            let namespace = index.effective(namespace);
            for name in [&object.written_name, &object.reference.name] {
                index.by_name.entry((group, kind, namespace, name)).or_insert(at);
            }
        }
        index
    }

    /// The namespace, or the default for an empty one.
    pub(super) fn effective<'n>(&self, namespace: &'n str) -> &'n str
    where
        'a: 'n,
    {
        if namespace.is_empty() { self.default_namespace } else { namespace }
    }

    /// The namespace of an object.
    pub(super) fn namespace_of(&self, at: usize) -> &'a str {
        self.effective(&self.all[at].reference.namespace)
    }

    pub(super) fn find(&self, group: &str, kind: &str, namespace: &str, name: &str) -> Option<usize> {
        let namespace = if namespace.is_empty() { self.default_namespace } else { namespace };
        self.by_name.get(&(group, kind, namespace, name)).copied()
    }

    /// Index of a cluster-scoped object.
    pub(super) fn find_cluster_scoped(&self, group: &str, kind: &str, name: &str) -> Option<usize> {
        self.find(group, kind, "", name)
    }
}

/// The namespace of objects that name none, inferred from the others: bindings and webhooks must name one, which
/// usually is the one that the release is installed into.
pub(super) fn implied_namespace(objects: &[Object]) -> String {
    let homeless: std::collections::BTreeSet<(&str, &str)> = objects
        .iter()
        .filter(|object| object.reference.namespace.is_empty())
        .filter(|object| object.reference.group.is_empty())
        .map(|object| (object.reference.kind.as_str(), object.reference.name.as_str()))
        .collect();
    let named = objects.iter().flat_map(|object| {
        let subjects = list(object.value.get("subjects")).filter(|it| it.text("/kind") == "ServiceAccount");
        let subjects = subjects.map(|it| ("ServiceAccount", it.text("/name"), it.text("/namespace")));
        let services = services_of(&object.value).map(|it| ("Service", it.text("/name"), it.text("/namespace")));
        subjects.chain(services)
    });
    let named = named.filter(|(kind, name, _)| homeless.contains(&(*kind, *name))).map(|(_, _, namespace)| namespace);
    most_frequent(named).unwrap_or_default().to_owned()
}

/// The Services behind a webhook configuration, a conversion webhook or an APIService.
pub(super) fn services_of(value: &Value) -> impl Iterator<Item = &Value> {
    let conversion = ["/spec/conversion/webhook/clientConfig/service", "/spec/conversion/webhookClientConfig/service"];
    let entries = list(value.get("webhooks")).filter_map(|entry| entry.pointer("/clientConfig/service"));
    let served = (value.text("/kind") == "APIService").then(|| value.pointer("/spec/service")).flatten();
    entries.chain(conversion.into_iter().filter_map(|path| value.pointer(path))).chain(served)
}

/// The most frequent non-empty value; the first in alphabetical order if there are several.
pub(super) fn most_frequent<'a>(said: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for text in said.filter(|text| !text.is_empty()) {
        *counts.entry(text).or_default() += 1;
    }
    counts.into_iter().max_by(|one, other| one.1.cmp(&other.1).then_with(|| other.0.cmp(one.0))).map(|(text, _)| text)
}
