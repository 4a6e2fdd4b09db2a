//! What lies below the awaited objects, as the watches see it: ReplicaSets and Pods by owner, endpoints of Services,
//! and the events that explain what goes wrong.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pushback_cluster::Kind;
use pushback_cluster::core_kinds::{self, is_pod};
use pushback_objects::{ObjectExt, ObjectRef};
use serde_json::Value;

use super::readiness::Related;

/// Most objects whose events are kept. A namespace also has events about unrelated objects.
const MAX_EVENT_SUBJECTS: usize = 10_000;

/// Most reasons that are kept per object, each by its latest event.
const MAX_EVENT_REASONS: usize = 32;

/// Label that names the Service of an EndpointSlice.
const SERVICE_LABEL: &str = "kubernetes.io/service-name";

/// Children by their uid, the uids of the children of each owner, and the events about each object.
#[derive(Debug, Default)]
pub(super) struct Children {
    objects: BTreeMap<String, Arc<Value>>,
    by_owner: BTreeMap<String, BTreeSet<String>>,
    /// Events by the uid of their object, then by reason.
    events: BTreeMap<String, BTreeMap<String, Arc<Value>>>,
}

impl Children {
    /// Kinds that are watched to explain a wait.
    pub(super) fn kinds() -> [Arc<Kind>; 2] {
        [core_kinds::pod(), core_kinds::replica_set()]
    }

    /// Records a child or an event; ignores any other object and any state older than the known one. Returns the uids
    /// of the objects that it concerns.
    pub(super) fn insert(&mut self, object: &Arc<Value>) -> Vec<String> {
        if core_kinds::is_of(object, &core_kinds::event()) {
            return self.insert_event(object);
        }
        if !is_child(object) || self.objects.get(object.uid()).is_some_and(|known| is_older(object, known)) {
            return Vec::new();
        }
        for owner in owners(object) {
            self.by_owner.entry(owner).or_default().insert(object.uid().to_owned());
        }
        self.objects.insert(object.uid().to_owned(), Arc::clone(object));
        self.above(object.uid())
    }

    fn insert_event(&mut self, event: &Arc<Value>) -> Vec<String> {
        let subject = event.text("/involvedObject/uid");
        let is_full = self.events.len() >= MAX_EVENT_SUBJECTS && !self.events.contains_key(subject);
        if subject.is_empty() || is_full {
            return Vec::new();
        }
        let known = self.events.entry(subject.to_owned()).or_default();
        let reason = event.text("/reason");
        if known.len() >= MAX_EVENT_REASONS && !known.contains_key(reason)
            || known.get(reason).is_some_and(|known| is_older(event, known))
        {
            return Vec::new();
        }
        known.insert(reason.to_owned(), Arc::clone(event));
        let mut about = self.above(subject);
        about.push(subject.to_owned());
        about
    }

    /// Uids of a child's owners and of their owners.
    fn above(&self, uid: &str) -> Vec<String> {
        let of = |uid: &str| self.objects.get(uid).map(|child| owners(child)).unwrap_or_default();
        let mut above = of(uid);
        let further: Vec<String> = above.iter().flat_map(|owner| of(owner)).collect();
        above.extend(further);
        above
    }

    /// Removes a child. Returns the uids of the objects above it.
    pub(super) fn remove(&mut self, object: &Value) -> Vec<String> {
        let above = self.above(object.uid());
        self.objects.remove(object.uid());
        for owner in owners(object) {
            if let Some(children) = self.by_owner.get_mut(&owner) {
                children.remove(object.uid());
            }
        }
        above
    }

    /// Removes the children of a kind that a complete list lacks. Returns the uids of the objects above them.
    pub(super) fn keep_listed(&mut self, kind: &Kind, namespace: &str, listed: &BTreeSet<&str>) -> Vec<String> {
        let missing: Vec<Arc<Value>> = self
            .objects
            .values()
            .filter(|child| {
                let object = ObjectRef::of(child);
                (&object.group, &object.kind) == (&kind.group, &kind.kind)
                    && (namespace.is_empty() || object.namespace == namespace)
                    && !listed.contains(child.uid())
            })
            .cloned()
            .collect();
        missing.iter().flat_map(|child| self.remove(child)).collect()
    }

    /// Everything known below an object.
    pub(super) fn of(&self, owner: &Value) -> Below {
        let mut below = Below { events: self.events_of(owner), ..Below::default() };
        for child in self.owned_by(owner.uid()) {
            if child.text("/kind") == "ReplicaSet" {
                below.events.extend(self.events_of(child));
                below.replica_sets.push(Arc::clone(child));
                below.pods.extend(self.owned_by(child.uid()).cloned());
            } else if child.text("/kind") == "Pod" {
                below.pods.push(Arc::clone(child));
            }
        }
        let of_pods: Vec<_> = below.pods.iter().flat_map(|pod| self.events_of(pod)).collect();
        below.events.extend(of_pods);
        below
    }

    /// All known Pods in a claim's namespace.
    pub(super) fn around_claim(&self, claim: &Value) -> Below {
        let namespace = claim.namespace();
        let pods = self.objects.values().filter(|child| child.text("/kind") == "Pod" && child.namespace() == namespace);
        Below { pods: pods.cloned().collect(), events: self.events_of(claim), ..Below::default() }
    }

    /// Whether at least one endpoint of a Service is ready.
    pub(super) fn has_endpoint(&self, namespace: &str, service: &str) -> bool {
        let slices = self.objects.values().filter(|child| {
            child.text("/kind") == "EndpointSlice"
                && child.namespace() == namespace
                && child.label(SERVICE_LABEL) == Some(service)
        });
        let endpoints = slices.filter_map(|slice| slice.pointer("/endpoints")?.as_array()).flatten();
        // The API treats an absent condition as ready.
        endpoints.into_iter().any(|endpoint| endpoint.pointer("/conditions/ready") != Some(&Value::Bool(false)))
    }

    fn owned_by(&self, uid: &str) -> impl Iterator<Item = &Arc<Value>> {
        self.by_owner.get(uid).into_iter().flatten().filter_map(|child| self.objects.get(child))
    }

    fn events_of(&self, object: &Value) -> Vec<Arc<Value>> {
        self.events.get(object.uid()).map(|events| events.values().cloned().collect()).unwrap_or_default()
    }
}

/// Pods, ReplicaSets and events below one object.
#[derive(Debug, Default)]
pub(super) struct Below {
    pods: Vec<Arc<Value>>,
    replica_sets: Vec<Arc<Value>>,
    events: Vec<Arc<Value>>,
}

impl Below {
    /// ReplicaSets, then Pods.
    pub(super) fn into_children(self) -> Vec<Arc<Value>> {
        [self.replica_sets, self.pods].concat()
    }

    /// The same, borrowed for a readiness check.
    pub(super) fn related<'a>(&'a self, storage_classes: &'a [Arc<Value>]) -> Related<'a> {
        Related {
            pods: &self.pods,
            replica_sets: &self.replica_sets,
            events: &self.events,
            storage_classes,
            ..Related::default()
        }
    }
}

/// Whether the Pods of a kind explain why it is not ready.
pub(super) fn has_children(object: &ObjectRef) -> bool {
    matches!(
        (object.group.as_str(), object.kind.as_str()),
        ("apps", "Deployment" | "StatefulSet" | "DaemonSet" | "ReplicaSet") | ("batch", "Job")
    )
}

pub(super) fn is_endpoint_slice(object: &Value) -> bool {
    core_kinds::is_of(object, &core_kinds::endpoint_slice())
}

fn is_child(object: &Value) -> bool {
    let is_replica_set = core_kinds::is_of(object, &core_kinds::replica_set());
    is_pod(object) || is_replica_set || is_endpoint_slice(object)
}

fn owners(object: &Value) -> Vec<String> {
    let owners = object.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    owners.into_iter().flatten().map(|owner| owner.text("/uid").to_owned()).filter(|uid| !uid.is_empty()).collect()
}

/// Whether a state of an object is older than another. resourceVersions of one kind are compared as numbers; without
/// two numbers nothing counts as older.
pub(super) fn is_older(object: &Value, than: &Value) -> bool {
    let number = |object: &Value| object.resource_version().parse::<u128>().ok();
    matches!((number(object), number(than)), (Some(object), Some(than)) if object < than)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn child(api_version: &str, kind: &str, name: &str, owner: &str, version: &str) -> Arc<Value> {
        Arc::new(json!({
            "apiVersion": api_version, "kind": kind,
            "metadata": {
                "namespace": "n", "name": name, "uid": name, "resourceVersion": version,
                "ownerReferences": [{"uid": owner}],
            },
        }))
    }

    fn pod(name: &str, owner: &str) -> Arc<Value> {
        child("v1", "Pod", name, owner, "1")
    }

    fn event(uid: &str, reason: &str, message: &str, version: &str) -> Arc<Value> {
        Arc::new(json!({
            "apiVersion": "v1", "kind": "Event", "metadata": {"uid": version, "resourceVersion": version},
            "involvedObject": {"uid": uid}, "type": "Warning", "reason": reason, "message": message,
        }))
    }

    fn names(below: &Below) -> Vec<&str> {
        below.pods.iter().map(|pod| pod.name()).collect()
    }

    fn owner(uid: &str) -> Value {
        json!({"metadata": {"uid": uid, "namespace": "n"}})
    }

    #[test]
    fn what_a_list_does_not_have_any_more_is_forgotten() {
        let mut children = Children::default();
        for pod in [pod("kept", "set"), pod("gone", "set")] {
            assert_eq!(children.insert(&pod), ["set"]);
        }
        assert_eq!(names(&children.of(&owner("set"))), ["gone", "kept"]);

        let [pods, replica_sets] = Children::kinds();
        assert!(children.keep_listed(&replica_sets, "n", &BTreeSet::new()).is_empty());
        assert!(children.keep_listed(&pods, "other", &BTreeSet::new()).is_empty());
        assert_eq!(names(&children.of(&owner("set"))), ["gone", "kept"]);
        assert_eq!(children.keep_listed(&pods, "n", &BTreeSet::from(["kept"])), ["set"]);
        assert_eq!(names(&children.of(&owner("set"))), ["kept"]);
        assert_eq!(names(&children.around_claim(&owner("claim"))), ["kept"]);
    }

    #[test]
    fn a_child_says_something_about_its_owner_and_about_the_owners_owner() {
        let mut children = Children::default();
        assert_eq!(children.insert(&child("apps/v1", "ReplicaSet", "set", "web", "1")), ["web"]);
        assert_eq!(children.insert(&pod("p", "set")), ["set", "web"]);
        assert_eq!(children.insert(&event("p", "FailedMount", "no secret", "5")), ["set", "web", "p"]);
        assert_eq!(children.of(&owner("web")).events.len(), 1);
        assert_eq!(children.remove(&pod("p", "set")), ["set", "web"]);
        assert_eq!(children.of(&owner("web")).events.len(), 0);
    }

    #[test]
    fn what_arrives_late_does_not_replace_what_is_newer() {
        let mut children = Children::default();
        children.insert(&child("v1", "Pod", "p", "set", "10"));
        assert!(children.insert(&child("v1", "Pod", "p", "set", "9")).is_empty());
        assert_eq!(children.of(&owner("set")).pods[0].resource_version(), "10");
        children.insert(&event("p", "FailedMount", "new", "8"));
        assert!(children.insert(&event("p", "FailedMount", "old", "7")).is_empty());
        assert_eq!(children.of(&owner("set")).events[0].text("/message"), "new");
    }

    #[test]
    fn events_are_kept_within_bounds() {
        let mut children = Children::default();
        for number in 0..MAX_EVENT_REASONS + 5 {
            children.insert(&event("p", &format!("Reason{number}"), "x", "1"));
        }
        assert_eq!(children.events["p"].len(), MAX_EVENT_REASONS);
        for number in 0..MAX_EVENT_SUBJECTS + 5 {
            children.insert(&event(&format!("u{number}"), "Reason", "x", "1"));
        }
        assert_eq!(children.events.len(), MAX_EVENT_SUBJECTS);
    }

    #[test]
    fn a_service_has_an_endpoint_once_one_of_a_slice_of_its_own_is_ready() {
        let slice = |service: &str, ready: Value| {
            let mut slice = (*child("discovery.k8s.io/v1", "EndpointSlice", service, "uid", "1")).clone();
            slice["metadata"]["labels"] = json!({SERVICE_LABEL: service});
            slice["endpoints"] = json!([{"conditions": {"ready": false}}, {"conditions": {"ready": ready}}]);
            Arc::new(slice)
        };
        let mut children = Children::default();
        children.insert(&slice("other", json!(true)));
        children.insert(&slice("hook", json!(false)));
        assert!(!children.has_endpoint("n", "hook"));
        children.insert(&slice("hook", Value::Null));
        assert!(children.has_endpoint("n", "hook"));
        assert!(!children.has_endpoint("m", "hook"));
    }

    #[test]
    fn a_state_is_older_only_where_both_versions_are_numbers() {
        let at = |version: &str| json!({"metadata": {"resourceVersion": version}});
        assert!(is_older(&at("9"), &at("10")));
        assert!(!is_older(&at("10"), &at("10")));
        assert!(!is_older(&at("a"), &at("b")));
        assert!(!is_older(&at(""), &at("10")));
    }
}
