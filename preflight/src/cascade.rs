//! Cascaded deletions by owner references: which objects the garbage collector deletes once their owners are deleted.
//!
//! An object is deleted if it has an owner that is deleted, and none that still exists. A namespaced owner counts only
//! for objects in its namespace. An owner with the finalizer `orphan` leaves its dependents behind.
//! Source: Kubernetes, `pkg/controller/garbagecollector/garbagecollector.go` (`attemptToDeleteItem`).

use std::collections::{BTreeMap, BTreeSet};

use pushback_objects::bookkeeping;
use pushback_objects::object::{ObjectExt, ObjectRef};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Objects whose owners are not looked at: the cluster makes them, and makes them anew, or they hold nothing of their own.
pub const EPHEMERAL_KINDS: [(&str, &str); 24] = [
    ("", "ComponentStatus"),
    ("", "Endpoints"),
    ("", "Event"),
    ("", "Node"),
    ("", "Pod"),
    ("", "PodTemplate"),
    ("apps", "ControllerRevision"),
    ("apps", "ReplicaSet"),
    ("certificates.k8s.io", "CertificateSigningRequest"),
    ("coordination.k8s.io", "Lease"),
    ("coordination.k8s.io", "LeaseCandidate"),
    ("discovery.k8s.io", "EndpointSlice"),
    ("events.k8s.io", "Event"),
    ("flowcontrol.apiserver.k8s.io", "FlowSchema"),
    ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"),
    ("internal.apiserver.k8s.io", "StorageVersion"),
    ("metrics.k8s.io", "NodeMetrics"),
    ("metrics.k8s.io", "PodMetrics"),
    ("networking.k8s.io", "IPAddress"),
    ("networking.k8s.io", "ServiceCIDR"),
    ("storage.k8s.io", "CSINode"),
    ("storage.k8s.io", "CSIStorageCapacity"),
    ("storage.k8s.io", "VolumeAttachment"),
    ("storagemigration.k8s.io", "StorageVersionMigration"),
];

/// Objects that every namespace has.
pub const IN_EVERY_NAMESPACE: [(&str, &str); 4] = [
    ("ConfigMap", "kube-root-ca.crt"),
    ("ConfigMap", "istio-ca-root-cert"),
    ("ConfigMap", "openshift-service-ca.crt"),
    ("ServiceAccount", "default"),
];

/// An object that is deleted by a change.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeletedOwner {
    /// The object.
    pub object: ObjectRef,
    /// Its uid.
    pub uid: String,
    /// Field managers that write its status: the operators that reconcile it.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub operators: BTreeSet<String>,
}

impl DeletedOwner {
    /// Reads the owner from a live object; `None` if it has no uid, is deleted already, or leaves its dependents behind.
    #[must_use]
    pub fn from_live(live: &Value) -> Option<Self> {
        let node = Node::from_object(live);
        let owns = !node.uid.is_empty() && !live.is_terminating() && !node.orphans;
        owns.then_some(Self { object: node.object, uid: node.uid, operators: node.operators })
    }
}

/// The cause of a cascaded deletion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum CascadeCause {
    /// Its owners are deleted.
    Owner,
    /// The CRD of its kind is deleted.
    Crd,
    /// Its namespace is deleted.
    Namespace,
}

/// An object that is deleted together with another one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Dependent {
    /// The object.
    pub object: ObjectRef,
    /// Its uid.
    pub uid: String,
    /// Uid of the object of the change set that starts the cascade.
    pub root: String,
    /// The object that it is deleted with.
    pub parent: ObjectRef,
    /// The reason for its deletion.
    pub cause: CascadeCause,
    /// Whether a controller made it for its parent: the owner reference is that of its controller, or its parent's
    /// operator wrote it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub made_by_controller: bool,
    /// Value of the label that assigns it to an app; empty if there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub app_label: String,
    /// The volume of a claim; empty for other kinds.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub volume: String,
}

/// A kind that could not be listed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UnlistedKind {
    /// Resource with its group, such as `widgets.example.com`.
    pub resource: String,
    /// Namespace of the list; empty for the whole cluster.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// The reason.
    pub reason: String,
}

/// An entry of `metadata.ownerReferences`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OwnerReference {
    /// API version and kind, name, namespace of the dependent.
    pub object: ObjectRef,
    /// Uid of the owner.
    pub uid: String,
    /// Whether the owner is the controller of the object.
    pub is_controller: bool,
}

/// An object with its owners.
#[derive(Clone, Debug)]
pub struct Node {
    object: ObjectRef,
    uid: String,
    owners: Vec<OwnerReference>,
    managers: BTreeSet<String>,
    operators: BTreeSet<String>,
    app_label: String,
    volume: String,
    /// Whether it is deleted without its dependents.
    orphans: bool,
}

impl Node {
    /// Reads a node from an object or its metadata.
    #[must_use]
    pub fn from_object(object: &Value) -> Self {
        let entries = || object.pointer("/metadata/managedFields").and_then(Value::as_array).into_iter().flatten();
        let writes_status =
            |entry: &&Value| entry.text("/subresource") == "status" || entry.pointer("/fieldsV1/f:status").is_some();
        let manager = |entry: &Value| entry.text("/manager").to_owned();
        let finalizers = object.pointer("/metadata/finalizers").and_then(Value::as_array).into_iter().flatten();
        Self {
            object: ObjectRef::of(object),
            uid: object.uid().to_owned(),
            owners: owners_of(object),
            managers: entries().map(manager).collect(),
            operators: entries().filter(writes_status).map(manager).collect(),
            app_label: bookkeeping::app_label_of(object).unwrap_or_default().to_owned(),
            volume: match object.text("/kind") {
                "PersistentVolumeClaim" => object.text("/spec/volumeName").to_owned(),
                _ => String::new(),
            },
            orphans: finalizers.into_iter().any(|finalizer| finalizer == "orphan"),
        }
    }

    /// Reads a node from the metadata of an object of this kind.
    #[must_use]
    pub fn of_kind(group: &str, version: &str, kind: &str, object: &Value) -> Self {
        let mut node = Self::from_object(object);
        node.object = ObjectRef {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: kind.to_owned(),
            namespace: object.namespace().to_owned(),
            name: object.name().to_owned(),
        };
        if kind == "PersistentVolumeClaim" && group.is_empty() {
            node.volume = object.text("/spec/volumeName").to_owned();
        }
        node
    }

    /// Whether every namespace has this object.
    #[must_use]
    pub fn is_in_every_namespace(&self) -> bool {
        let ObjectRef { group, kind, name, .. } = &self.object;
        group.is_empty() && IN_EVERY_NAMESPACE.contains(&(kind.as_str(), name.as_str()))
    }

    /// Whether it has an owner, so that it can be deleted with it.
    #[must_use]
    pub fn has_owner(&self) -> bool {
        !self.owners.is_empty()
    }
}

/// The owners that an object names; their namespace is that of the object.
#[must_use]
pub fn owners_of(object: &Value) -> Vec<OwnerReference> {
    let references = object.pointer("/metadata/ownerReferences").and_then(Value::as_array).into_iter().flatten();
    let read = |reference: &Value| OwnerReference {
        object: ObjectRef {
            name: reference.text("/name").to_owned(),
            namespace: object.namespace().to_owned(),
            ..ObjectRef::of(reference)
        },
        uid: reference.text("/uid").to_owned(),
        is_controller: reference.get("controller") == Some(&Value::Bool(true)),
    };
    references.map(read).collect()
}

/// A cascade in progress: starts with the deleted owners and grows while nodes, and the existence of other owners, become
/// known.
#[derive(Debug, Default)]
pub struct Cascade {
    nodes: BTreeMap<String, Node>,
    /// Deleted objects by uid.
    deleted: BTreeMap<String, Deleted>,
    /// Whether other owners exist, by uid.
    existing: BTreeMap<String, bool>,
    dependents: Vec<Dependent>,
}

#[derive(Clone, Debug)]
struct Deleted {
    object: ObjectRef,
    root: String,
    operators: BTreeSet<String>,
    orphans: bool,
}

impl Cascade {
    /// Starts with the objects that a change set deletes.
    #[must_use]
    pub fn new<'a>(owners: impl IntoIterator<Item = &'a DeletedOwner>) -> Self {
        let deleted = owners.into_iter().map(|owner| {
            let DeletedOwner { object, uid, operators } = owner.clone();
            (uid.clone(), Deleted { object, root: uid, operators, orphans: false })
        });
        Self { deleted: deleted.collect(), ..Self::default() }
    }

    /// Adds an object that has owners.
    pub fn add(&mut self, node: Node) {
        self.nodes.insert(node.uid.clone(), node);
    }

    /// Records whether an owner outside of the cascade exists.
    pub fn set_existing(&mut self, uid: &str, exists: bool) {
        self.existing.insert(uid.to_owned(), exists);
    }

    /// Adds an object that is deleted with its CRD or namespace.
    pub fn delete_with(&mut self, parent: &Dependent, cause: CascadeCause, node: Node) {
        let root = parent.root.clone();
        self.delete(&parent.object, &root, cause, false, node);
    }

    /// Adds an object of a CRD that the change set deletes: counted by those who judge the CRD, so it is not a dependent.
    pub fn delete_with_root(&mut self, root: &str, node: &Node) {
        let Node { object, uid, operators, orphans, .. } = node.clone();
        self.deleted.entry(uid).or_insert(Deleted { object, root: root.to_owned(), operators, orphans });
    }

    fn delete(&mut self, parent: &ObjectRef, root: &str, cause: CascadeCause, made_by_controller: bool, node: Node) {
        if self.deleted.contains_key(&node.uid) {
            return;
        }
        let Node { object, uid, operators, app_label, volume, orphans, .. } = node;
        self.dependents.push(Dependent {
            object: object.clone(),
            uid: uid.clone(),
            root: root.to_owned(),
            parent: parent.clone(),
            cause,
            made_by_controller,
            app_label,
            volume,
        });
        self.deleted.insert(uid, Deleted { object, root: root.to_owned(), operators, orphans });
    }

    /// Follows owner references as far as possible. Returns the owners that decide about further objects and whose
    /// existence is not known yet.
    pub fn grow(&mut self) -> BTreeSet<OwnerReference> {
        loop {
            let mut open = BTreeSet::new();
            let mut next = Vec::new();
            for node in self.nodes.values().filter(|node| !self.deleted.contains_key(&node.uid)) {
                let is_deleted = |owner: &&OwnerReference| {
                    self.deleted.get(&owner.uid).is_some_and(|deleted| {
                        let namespace = &deleted.object.namespace;
                        !deleted.orphans && (namespace.is_empty() || *namespace == node.object.namespace)
                    })
                };
                let Some(by) = node.owners.iter().find(is_deleted) else { continue };
                let others = node.owners.iter().filter(|owner| !is_deleted(owner));
                let mut survives = false;
                let mut unknown = Vec::new();
                for owner in others {
                    match self.existing.get(&owner.uid) {
                        Some(exists) => survives |= exists,
                        None if self.nodes.contains_key(&owner.uid) => survives = true,
                        None => unknown.push(owner.clone()),
                    }
                }
                if survives {
                    continue;
                }
                if unknown.is_empty() {
                    next.push((node.uid.clone(), by.clone()));
                } else {
                    open.extend(unknown);
                }
            }
            if next.is_empty() {
                return open;
            }
            for (uid, by) in next {
                let (Some(node), Some(deleted)) = (self.nodes.get(&uid).cloned(), self.deleted.get(&by.uid).cloned())
                else {
                    continue;
                };
                let made = by.is_controller || !node.managers.is_disjoint(&deleted.operators);
                self.delete(&deleted.object, &deleted.root, CascadeCause::Owner, made, node);
            }
        }
    }

    /// The objects found so far, from this index on.
    #[must_use]
    pub fn dependents_from(&self, start: usize) -> &[Dependent] {
        self.dependents.get(start..).unwrap_or_default()
    }

    /// All objects that are deleted with the owners, sorted.
    #[must_use]
    pub fn into_dependents(mut self) -> Vec<Dependent> {
        self.dependents.sort_by(|left, right| (&left.object, &left.uid).cmp(&(&right.object, &right.uid)));
        self.dependents
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(api_version: &str, kind: &str, name: &str, owners: &[(&str, bool)]) -> Value {
        let (namespace, name) = name.split_once('/').unwrap_or(("", name));
        let owners: Vec<Value> = owners
            .iter()
            .map(|(uid, controller)| json!({"apiVersion": "v1", "kind": "X", "name": uid, "uid": uid, "controller": controller}))
            .collect();
        json!({"apiVersion": api_version, "kind": kind,
            "metadata": {"namespace": namespace, "name": name, "uid": name, "ownerReferences": owners}})
    }

    fn owner(api_version: &str, kind: &str, name: &str) -> DeletedOwner {
        DeletedOwner::from_live(&object(api_version, kind, name, &[])).expect("an owner")
    }

    /// Names of the objects that are deleted, and of the owners that are asked about.
    fn found(roots: &[DeletedOwner], objects: &[Value], existing: &[(&str, bool)]) -> String {
        let mut cascade = Cascade::new(roots);
        objects.iter().for_each(|object| cascade.add(Node::from_object(object)));
        existing.iter().for_each(|(uid, exists)| cascade.set_existing(uid, *exists));
        let open: Vec<String> = cascade.grow().into_iter().map(|owner| owner.uid).collect();
        let dependents = cascade.into_dependents();
        let names: Vec<String> = dependents
            .iter()
            .map(|it| format!("{}{}", it.object.name, if it.made_by_controller { "*" } else { "" }))
            .collect();
        format!("{} ? {}", names.join(" "), open.join(" "))
    }

    #[test]
    fn dependents_are_found_transitively() {
        let objects = [
            object("v1", "ConfigMap", "shop/leaf", &[("middle", false)]),
            object("v1", "ConfigMap", "shop/middle", &[("root", true)]),
            object("v1", "ConfigMap", "shop/other", &[("elsewhere", true)]),
        ];
        assert_eq!(found(&[owner("v1", "ConfigMap", "shop/root")], &objects, &[]), "leaf middle* ? ");
    }

    #[test]
    fn dependent_with_another_existing_owner_survives() {
        let objects = [object("v1", "ConfigMap", "shop/one", &[("root", false), ("second", false)])];
        let roots = [owner("v1", "ConfigMap", "shop/root")];
        assert_eq!(found(&roots, &objects, &[]), " ? second");
        assert_eq!(found(&roots, &objects, &[("second", true)]), " ? ");
        assert_eq!(found(&roots, &objects, &[("second", false)]), "one ? ");
        let both = [roots[0].clone(), owner("v1", "ConfigMap", "shop/second")];
        assert_eq!(found(&both, &objects, &[]), "one ? ");
    }

    #[test]
    fn namespaced_owner_owns_nothing_outside_its_namespace() {
        let objects = [
            object("v1", "ConfigMap", "other/elsewhere", &[("root", false)]),
            object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "crd", &[("root", false)]),
        ];
        assert_eq!(found(&[owner("v1", "ConfigMap", "shop/root")], &objects, &[]), " ? ");
        assert_eq!(found(&[owner("ex.com/v1", "Provider", "root")], &objects, &[]), "elsewhere crd ? ");
    }

    #[test]
    fn owner_that_orphans_its_dependents_deletes_none() {
        let mut root = object("v1", "ConfigMap", "shop/root", &[]);
        root["metadata"]["finalizers"] = json!(["orphan"]);
        assert_eq!(DeletedOwner::from_live(&root), None);
        let mut middle = object("v1", "ConfigMap", "shop/middle", &[("root", true)]);
        middle["metadata"]["finalizers"] = json!(["orphan"]);
        let objects = [middle, object("v1", "ConfigMap", "shop/leaf", &[("middle", true)])];
        assert_eq!(found(&[owner("v1", "ConfigMap", "shop/root")], &objects, &[]), "middle* ? ");
    }

    #[test]
    fn dependent_written_by_the_operator_of_its_owner_is_made_by_a_controller() {
        let mut root = object("ex.com/v1", "Kafka", "shop/root", &[]);
        root["metadata"]["managedFields"] =
            json!([{"manager": "pushback"}, {"manager": "kafka-operator", "subresource": "status"}]);
        let with = |name: &str, manager: &str| {
            let mut dependent = object("ex.com/v1", "PodSet", name, &[("root", false)]);
            dependent["metadata"]["managedFields"] = json!([{"manager": manager}]);
            dependent
        };
        let objects = [with("shop/made", "kafka-operator"), with("shop/written", "pushback")];
        let root = DeletedOwner::from_live(&root).expect("an owner");
        assert_eq!(found(&[root], &objects, &[]), "made* written ? ");
    }
}
