//! The objects below what is waited for: ReplicaSets and Pods by owner, kept from the watches.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};

use pushback_preflight::{ObjectExt, ObjectRef};
use serde_json::Value;

use super::readiness::Related;
use crate::cluster::Kind;

static KINDS: LazyLock<[Arc<Kind>; 2]> = LazyLock::new(|| {
    let kind = |group: &str, kind: &str, plural: &str| {
        Arc::new(Kind {
            group: group.to_owned(),
            version: "v1".to_owned(),
            kind: kind.to_owned(),
            plural: plural.to_owned(),
            namespaced: true,
            verbs: vec!["list".to_owned(), "watch".to_owned()],
            ..Kind::default()
        })
    };
    [kind("", "Pod", "pods"), kind("apps", "ReplicaSet", "replicasets")]
});

/// Children by their uid, and the uids of the children of each owner.
#[derive(Debug, Default)]
pub(super) struct Children {
    objects: BTreeMap<String, Arc<Value>>,
    by_owner: BTreeMap<String, BTreeSet<String>>,
}

impl Children {
    /// The kinds that are watched for causes.
    pub(super) fn kinds() -> [Arc<Kind>; 2] {
        KINDS.clone()
    }

    /// Pods: who uses a claim.
    pub(super) fn pod_kind() -> Arc<Kind> {
        Arc::clone(&KINDS[0])
    }

    /// Notes a child; anything else is passed over.
    pub(super) fn insert(&mut self, object: &Arc<Value>) {
        if !is_child(object) {
            return;
        }
        for owner in owners(object) {
            self.by_owner.entry(owner).or_default().insert(object.uid().to_owned());
        }
        self.objects.insert(object.uid().to_owned(), Arc::clone(object));
    }

    /// Forgets a child.
    pub(super) fn remove(&mut self, object: &Value) {
        self.objects.remove(object.uid());
        for owner in owners(object) {
            if let Some(children) = self.by_owner.get_mut(&owner) {
                children.remove(object.uid());
            }
        }
    }

    /// Forgets the children of a kind that a whole list does not have.
    pub(super) fn keep_listed(&mut self, kind: &Kind, namespace: &str, listed: &BTreeSet<&str>) {
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
        missing.iter().for_each(|child| self.remove(child));
    }

    /// What is below an object.
    pub(super) fn of(&self, owner: &Value) -> Below {
        let mut below = Below::default();
        for child in self.owned_by(owner.uid()) {
            if ObjectRef::of(child).kind == "ReplicaSet" {
                below.replica_sets.push(Arc::clone(child));
                below.pods.extend(self.owned_by(child.uid()).cloned());
            } else {
                below.pods.push(Arc::clone(child));
            }
        }
        below
    }

    /// All Pods of a namespace that are known.
    pub(super) fn pods_in(&self, namespace: &str) -> Below {
        let pods = self.objects.values().filter(|child| child.text("/kind") == "Pod" && child.namespace() == namespace);
        Below { pods: pods.cloned().collect(), replica_sets: Vec::new() }
    }

    fn owned_by(&self, uid: &str) -> impl Iterator<Item = &Arc<Value>> {
        self.by_owner.get(uid).into_iter().flatten().filter_map(|child| self.objects.get(child))
    }
}

/// What is below one object.
#[derive(Debug, Default)]
pub(super) struct Below {
    pods: Vec<Arc<Value>>,
    replica_sets: Vec<Arc<Value>>,
}

impl Below {
    /// As readiness takes it.
    pub(super) fn related<'a>(&'a self, storage_classes: &'a [Arc<Value>]) -> Related<'a> {
        Related { pods: &self.pods, replica_sets: &self.replica_sets, storage_classes, ..Related::default() }
    }
}

/// Whether a kind's Pods say why it is not ready.
pub(super) fn has_children(object: &ObjectRef) -> bool {
    matches!(
        (object.group.as_str(), object.kind.as_str()),
        ("apps", "Deployment" | "StatefulSet" | "DaemonSet" | "ReplicaSet") | ("batch", "Job")
    )
}

fn is_child(object: &Value) -> bool {
    matches!((object.text("/apiVersion"), object.text("/kind")), ("v1", "Pod") | ("apps/v1", "ReplicaSet"))
}

fn owners(object: &Value) -> Vec<String> {
    let owners = object.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    owners.into_iter().flatten().map(|owner| owner.text("/uid").to_owned()).filter(|uid| !uid.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(name: &str, owner: &str) -> Arc<Value> {
        Arc::new(json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"namespace": "n", "name": name, "uid": name, "ownerReferences": [{"uid": owner}]},
        }))
    }

    fn names(below: &Below) -> Vec<&str> {
        below.pods.iter().map(|pod| pod.name()).collect()
    }

    #[test]
    fn what_a_list_does_not_have_any_more_is_forgotten() {
        let mut children = Children::default();
        [pod("kept", "set"), pod("gone", "set")].iter().for_each(|pod| children.insert(pod));
        let set = json!({"metadata": {"uid": "set"}});
        assert_eq!(names(&children.of(&set)), ["gone", "kept"]);

        let [pods, replica_sets] = Children::kinds();
        children.keep_listed(&replica_sets, "n", &BTreeSet::new());
        children.keep_listed(&pods, "other", &BTreeSet::new());
        assert_eq!(names(&children.of(&set)), ["gone", "kept"]);
        children.keep_listed(&pods, "n", &BTreeSet::from(["kept"]));
        assert_eq!(names(&children.of(&set)), ["kept"]);
        assert_eq!(names(&children.pods_in("n")), ["kept"]);
    }
}
