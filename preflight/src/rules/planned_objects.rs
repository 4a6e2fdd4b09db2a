//! Custom resources that the run itself writes or deletes, as it leaves them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pushback_crd::definition::{Strategy, Upgrade};
use pushback_crd::schema::contain::in_version;
use pushback_crd::schema::pipeline::Resource;
use pushback_objects::object::ObjectExt;
use serde_json::Value;

use crate::facts::{Change, ChangeSet, Operation, Verification};

/// The objects of one kind that the run writes or deletes.
pub(super) struct PlannedObjects<'f> {
    changes: BTreeMap<(&'f str, &'f str), &'f Change>,
    deleted_namespaces: BTreeSet<&'f str>,
}

/// The state in which the run leaves an object.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum PlannedObject {
    /// It stays as it is.
    Unchanged,
    /// It is deleted.
    Deleted,
    /// It is deleted once its finalizers are removed, and stays as it is until then.
    Terminating,
    /// It is written, and one of these afterwards: without an answer of the server, either the manifest alone or with
    /// the fields that only the live object has.
    Written(Vec<Arc<Value>>),
}

impl<'f> PlannedObjects<'f> {
    /// Collects the changes of objects of a kind.
    pub(super) fn of_kind(changes: &'f ChangeSet, group: &str, kind: &str) -> Self {
        let is_of_kind = |change: &&Change| change.object.group == group && change.object.kind == kind;
        let key = |change: &'f Change| ((change.object.namespace.as_str(), change.object.name.as_str()), change);
        let is_deleted_namespace = |change: &&Change| {
            change.object.group.is_empty() && change.object.kind == "Namespace" && change.ends_live_object()
        };
        let namespaces = changes.changes.iter().filter(is_deleted_namespace);
        Self {
            changes: changes.changes.iter().filter(is_of_kind).map(key).collect(),
            deleted_namespaces: namespaces.map(|change| change.object.name.as_str()).collect(),
        }
    }

    /// Returns the state in which the run leaves an object that a list returned. An object of another uid than the planned one has
    /// been created since.
    pub(super) fn after(&self, object: &Value) -> PlannedObject {
        let namespace = object.namespace();
        let change = self.changes.get(&(namespace, object.name())).copied().filter(|change| {
            let planned = change.live.as_deref().map(ObjectExt::uid).unwrap_or_default();
            planned.is_empty() || object.uid().is_empty() || planned == object.uid()
        });
        match change {
            Some(change) if change.operation == Operation::Delete && !change.orphaned => deleted(object),
            Some(change) if is_written(change) => PlannedObject::Written(written(change, object)),
            _ if !namespace.is_empty() && self.deleted_namespaces.contains(namespace) => deleted(object),
            _ => PlannedObject::Unchanged,
        }
    }
}

/// Returns whether the run writes the object. Right before another change is written, the plan is judged again with what has been
/// judged as `Noop`; an object that is never written needs no verification.
fn is_written(change: &Change) -> bool {
    match change.operation {
        Operation::Update | Operation::Replace => true,
        Operation::Noop => change.verification != Verification::NotNeeded,
        Operation::Create | Operation::Delete | Operation::Exists => false,
    }
}

fn deleted(object: &Value) -> PlannedObject {
    let finalizers = object.pointer("/metadata/finalizers").and_then(Value::as_array);
    if finalizers.is_none_or(Vec::is_empty) { PlannedObject::Deleted } else { PlannedObject::Terminating }
}

fn written(change: &Change, object: &Value) -> Vec<Arc<Value>> {
    match (&change.result, &change.desired) {
        (Some(result), _) => vec![Arc::clone(result)],
        (None, Some(desired)) if change.operation == Operation::Replace => vec![Arc::clone(desired)],
        (None, Some(desired)) => {
            let mut merged = object.clone();
            merge(&mut merged, desired);
            vec![Arc::clone(desired), Arc::new(merged)]
        }
        (None, None) => Vec::new(),
    }
}

fn merge(into: &mut Value, from: &Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (name, value) in from {
                merge(into.entry(name.as_str()).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from.clone(),
    }
}

/// Returns written objects in the version of a list; `None` if there are none, or if a webhook would convert one.
pub(super) fn in_version_of_list(
    upgrade: &Upgrade<'_>,
    old: &Resource<'_>,
    after: &[Arc<Value>],
) -> Option<Vec<Value>> {
    let is_own = |object: &Arc<Value>| object.text("/apiVersion") == format!("{}/{}", old.group, old.version);
    let converts = [&upgrade.old, &upgrade.new].iter().all(|crd| crd.strategy() == Strategy::None);
    let can_read = after.iter().all(|object| is_own(object) || converts);
    (can_read && !after.is_empty()).then(|| after.iter().map(|object| in_version(object, old)).collect())
}

#[cfg(test)]
mod tests {
    use pushback_objects::object::ObjectRef;
    use serde_json::json;

    use super::*;

    fn object(namespace: &str, uid: &str, spec: Value) -> Value {
        json!({"apiVersion": "ex.com/v1", "kind": "Foo", "spec": spec,
            "metadata": {"namespace": namespace, "name": "a", "uid": uid}})
    }

    fn change(operation: Operation, live: Value, desired: Option<Value>) -> Change {
        Change {
            object: ObjectRef::of(&live),
            resource: "foos".into(),
            namespaced: true,
            operation,
            positions: None,
            desired: desired.map(Arc::new),
            live: Some(Arc::new(live)),
            result: None,
            verification: Verification::NotNeeded,
            orphaned: false,
            taken_from: Vec::new(),
        }
    }

    fn after(changes: Vec<Change>, object: &Value) -> PlannedObject {
        let changes = ChangeSet { changes, ..ChangeSet::default() };
        PlannedObjects::of_kind(&changes, "ex.com", "Foo").after(object)
    }

    #[test]
    fn object_is_deleted_with_its_uid_or_its_namespace() {
        let live = || object("shop", "1", json!({}));
        let delete = || change(Operation::Delete, live(), None);
        assert_eq!(after(vec![delete()], &live()), PlannedObject::Deleted);
        assert_eq!(after(vec![delete()], &object("shop", "2", json!({}))), PlannedObject::Unchanged);
        assert_eq!(after(vec![delete()], &object("other", "1", json!({}))), PlannedObject::Unchanged);
        let orphan = Change { orphaned: true, ..delete() };
        assert_eq!(after(vec![orphan], &live()), PlannedObject::Unchanged);
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}});
        let namespace = || change(Operation::Delete, namespace.clone(), None);
        assert_eq!(after(vec![namespace()], &live()), PlannedObject::Deleted);
        assert_eq!(after(vec![namespace()], &object("", "1", json!({}))), PlannedObject::Unchanged);
    }

    #[test]
    fn deleted_object_with_finalizers_is_terminating() {
        let mut live = object("shop", "1", json!({}));
        live["metadata"]["finalizers"] = json!(["ex.com/cleanup"]);
        assert_eq!(after(vec![change(Operation::Delete, live.clone(), None)], &live), PlannedObject::Terminating);
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}});
        assert_eq!(after(vec![change(Operation::Delete, namespace, None)], &live), PlannedObject::Terminating);
        live["metadata"]["finalizers"] = json!([]);
        assert_eq!(after(vec![change(Operation::Delete, live.clone(), None)], &live), PlannedObject::Deleted);
    }

    #[test]
    fn written_object_without_an_answer_is_the_manifest_or_keeps_the_fields_of_the_live_object() {
        let live = || object("shop", "1", json!({"a": 1, "b": 2}));
        let desired = json!({"spec": {"a": 3}});
        let update = change(Operation::Update, live(), Some(desired.clone()));
        let merged = object("shop", "1", json!({"a": 3, "b": 2}));
        assert_eq!(after(vec![update.clone()], &live()), PlannedObject::Written(vec![desired.into(), merged.into()]));
        let answered = Change { result: Some(Arc::new(json!({"spec": {}}))), ..update };
        assert_eq!(after(vec![answered], &live()), PlannedObject::Written(vec![json!({"spec": {}}).into()]));
        let left_alone = change(Operation::Noop, live(), Some(json!({"spec": {"a": 3}})));
        assert_eq!(after(vec![left_alone.clone()], &live()), PlannedObject::Unchanged);
        // A judged change, as context of another one.
        let result = Some(Arc::new(json!({"spec": {}})));
        let judged = Change { verification: Verification::Server, result, ..left_alone };
        assert_eq!(after(vec![judged], &live()), PlannedObject::Written(vec![json!({"spec": {}}).into()]));
    }
}
