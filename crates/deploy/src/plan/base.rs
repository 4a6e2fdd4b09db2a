//! The base of a comparison where no app is named: a folder, a file or a git ref, all of whose objects count as the app's.
//! They are read as the manifests are: with the same namespaces, and without the fields that a server or a deploy tool adds.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pushback_cluster::{Cluster, Kinds, ListQuery, list_all};
use pushback_manifest::config::Config;
use pushback_manifest::{InputError, collect};
use pushback_objects::{ObjectExt, ObjectKey, ObjectRef};
use serde_json::Value;

use super::desired::{self, Desired, Placement};
use super::live::Live;
use super::{PlanError, helm};

/// Objects that an API server serves in two groups: kind, older group, newer group.
const SERVED_TWICE: [(&str, &str, &str); 7] = [
    ("DaemonSet", "extensions", "apps"),
    ("Deployment", "extensions", "apps"),
    ("ReplicaSet", "extensions", "apps"),
    ("Ingress", "extensions", "networking.k8s.io"),
    ("NetworkPolicy", "extensions", "networking.k8s.io"),
    ("PodSecurityPolicy", "extensions", "policy"),
    ("Event", "", "events.k8s.io"),
];

/// Namespaces of the objects of a base.
#[derive(Clone, Debug, Default)]
pub struct BasePlacement {
    /// Namespaces that the options give to the manifests.
    pub placement: Placement,
    /// True if the base has these namespaces already.
    pub is_placed: bool,
}

/// Reads every object of the base, by its identity among the manifests.
///
/// # Errors
/// The base cannot be read; or both sides are a single CRD in a file, and not the same one.
pub(super) async fn read(
    cluster: &dyn Cluster,
    kinds: &Kinds,
    placement: &BasePlacement,
    desired: &[Desired],
) -> Result<Live, PlanError> {
    let mut objects = Vec::new();
    for kind in kinds.iter().filter(|kind| kind.is_guessed() || kind.offers("list")) {
        objects.extend(list_all(cluster, &ListQuery::new(Arc::clone(kind), None, "")).await?.items);
    }
    objects.retain(|object| !helm::is_hook_of_other_command(object));
    require_one_definition(cluster, &objects, desired)?;
    let places = Places::new(placement, desired, &objects);
    let mut live = Live::default();
    for object in objects {
        let (key, object) = places.as_manifest(Arc::unwrap_or_clone(object));
        live.objects.insert(key, Arc::new(object));
    }
    Ok(live)
}

/// The Config without the marks that only an apply leaves on objects: the base was not applied, and lacks them.
pub(super) fn without_marks(config: &Config) -> Config {
    Config { additional_labels: Vec::new(), orphaned: Vec::new(), ..config.clone() }
}

/// Files with one CRD each are two versions of it.
fn require_one_definition(cluster: &dyn Cluster, base: &[Arc<Value>], desired: &[Desired]) -> Result<(), PlanError> {
    let ([new], [old]) = (desired, base) else { return Ok(()) };
    let is_definition = new.object.is_definition() && ObjectRef::of(old).is_definition();
    if !is_definition || new.object.name == old.name() || !cluster.description().starts_with("file:") {
        return Ok(());
    }
    Err(PlanError::Input(vec![InputError {
        message: format!("the two files hold different CRDs: {} here, {} there", new.object.name, old.name()),
        position: new.positions.start(),
        hints: vec!["compare files of the same CRD, or name an app with -a NAME".to_owned()],
    }]))
}

/// Identities of the base's objects among the manifests.
struct Places<'a> {
    placement: &'a Placement,
    is_placed: bool,
    wanted: BTreeSet<ObjectKey>,
    /// Whether the objects of a kind are namespaced, as far as the manifests show.
    scopes: BTreeMap<(&'a str, &'a str), bool>,
    base: BTreeSet<ObjectKey>,
}

impl<'a> Places<'a> {
    fn new(placement: &'a BasePlacement, desired: &'a [Desired], base: &[Arc<Value>]) -> Self {
        let scope =
            |wanted: &'a Desired| ((wanted.object.group.as_str(), wanted.object.kind.as_str()), wanted.kind.namespaced);
        Self {
            placement: &placement.placement,
            is_placed: placement.is_placed,
            wanted: desired.iter().map(|wanted| wanted.object.key()).collect(),
            scopes: desired.iter().map(scope).collect(),
            base: base.iter().map(|object| ObjectRef::of(object).key()).collect(),
        }
    }

    /// The object as it would be among the manifests, with its identity there. uid and resourceVersion stay: they are
    /// derived from the base.
    fn as_manifest(&self, mut object: Value) -> (ObjectKey, Value) {
        let key = self.key(&ObjectRef::of(&object).key());
        let (uid, version) = (object.uid().to_owned(), object.resource_version().to_owned());
        collect::normalize_object(&mut object);
        desired::strip_bookkeeping(&mut object);
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            if key.namespace.is_empty() {
                metadata.shift_remove("namespace");
            } else {
                metadata.insert("namespace".to_owned(), key.namespace.clone().into());
            }
            metadata.insert("uid".to_owned(), uid.into());
            metadata.insert("resourceVersion".to_owned(), version.into());
        }
        (key, object)
    }

    fn key(&self, own: &ObjectKey) -> ObjectKey {
        if self.wanted.contains(own) {
            return own.clone();
        }
        let placed = self.placed(own);
        let (group, kind) = (placed.group.as_str(), placed.kind.as_str());
        let twins = SERVED_TWICE.iter().filter(|(name, ..)| *name == kind).filter_map(|(_, old, new)| match group {
            _ if group == *old => Some(*new),
            _ if group == *new => Some(*old),
            _ => None,
        });
        let as_twin = |group: &str| ObjectKey { group: group.to_owned(), ..placed.clone() };
        let twin = twins.map(as_twin).find(|twin| self.wanted.contains(twin) && !self.base.contains(twin));
        if self.wanted.contains(&placed) { placed } else { twin.unwrap_or(placed) }
    }

    /// The identity in the namespace that the options give to manifests.
    fn placed(&self, own: &ObjectKey) -> ObjectKey {
        if self.is_placed && !own.namespace.is_empty() {
            return own.clone();
        }
        let is_namespaced = self.scopes.get(&(own.group.as_str(), own.kind.as_str())).copied();
        if !is_namespaced.unwrap_or(!own.namespace.is_empty()) {
            return own.clone();
        }
        // A folder puts objects that name no namespace into this one.
        let names_none = matches!(own.namespace.as_str(), "" | "default");
        let namespace = if names_none { &self.placement.default_namespace } else { &own.namespace };
        let namespace = desired::place(namespace, self.placement).unwrap_or_else(|| namespace.clone());
        let placed = ObjectKey { namespace, ..own.clone() };
        if self.base.contains(&placed) { own.clone() } else { placed }
    }
}
