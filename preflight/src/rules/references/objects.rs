//! The objects that a run leaves behind: what is there afterwards, what goes, and what can be named in each.

use std::collections::{BTreeSet, HashMap};

use pushback_objects::object::{ObjectExt, ObjectKey, ObjectRef};
use serde_json::Value;

use super::pods;
use crate::facts::{Change, ChangeSet, ClusterSide, Operation};
use crate::parts::parts;

/// The state of an object after the run.
#[derive(Clone, Debug)]
pub(super) enum After {
    /// It is there. What can be named in it, if that is known.
    There(Option<BTreeSet<String>>),
    /// This run deletes it.
    Deleted,
}

/// The objects of the set and what else the app keeps, by identity.
#[derive(Debug, Default)]
pub(super) struct Objects<'a> {
    after: HashMap<ObjectKey, After>,
    /// Manifests of what is there afterwards, with the change that makes it so; none for what is only kept.
    pub(super) standing: Vec<(&'a Value, Option<&'a Change>)>,
    /// The labels of the Pods that each object makes, by namespace.
    pods: HashMap<&'a str, Vec<PodLabels<'a>>>,
}

/// The labels of an object's Pods, in layers: the first one that has a label decides.
pub(super) type PodLabels<'a> = Vec<&'a Value>;

impl<'a> Objects<'a> {
    pub(super) fn of(changes: &'a ChangeSet, side: ClusterSide) -> Self {
        let mut objects = Self::default();
        for kept in &changes.kept {
            objects.add_pods(&[Some(kept)]);
            objects.after.insert(ObjectRef::of(kept).key(), After::There(parts(kept).map(BTreeSet::from_iter)));
            objects.standing.push((kept, None));
        }
        for change in &changes.changes {
            let stays = change.operation != Operation::Delete || change.orphaned;
            let Some(manifest) = change.desired.as_deref().or(change.live.as_deref()).filter(|_| stays) else {
                objects.after.entry(change.object.key()).or_insert(After::Deleted);
                continue;
            };
            objects.after.insert(change.object.key(), After::There(named(change, side)));
            objects.standing.push((manifest, Some(change)));
            // Labels may be there that the manifest does not have.
            objects.add_pods(&[change.result.as_deref(), Some(manifest), change.live.as_deref()]);
        }
        objects
    }

    fn add_pods(&mut self, layers: &[Option<&'a Value>]) {
        let layers = || layers.iter().copied().flatten();
        let templates: Vec<_> = layers().filter_map(pods::template).collect();
        if let Some(object) = layers().next().filter(|_| !templates.is_empty()) {
            let labels = templates.iter().filter_map(|at| at.value.pointer("/metadata/labels")).collect();
            self.pods.entry(object.namespace()).or_default().push(labels);
        }
    }

    /// The labels of the Pods that the objects of a namespace make.
    pub(super) fn pods(&self, namespace: &str) -> &[PodLabels<'a>] {
        self.pods.get(namespace).map_or(&[], Vec::as_slice)
    }

    pub(super) fn get(&self, key: &ObjectKey) -> Option<&After> {
        self.after.get(key)
    }
}

/// What can be named in an object after the run. An apply leaves the keys of other field managers where they are.
fn named(change: &Change, side: ClusterSide) -> Option<BTreeSet<String>> {
    let after = change.result.as_deref().or(change.desired.as_deref()).or(change.live.as_deref())?;
    let mut all: BTreeSet<String> = parts(after)?.into_iter().collect();
    if side == ClusterSide::Server && change.result.is_none() && change.operation == Operation::Update {
        all.extend(change.live.as_deref().and_then(parts).unwrap_or_default());
    }
    Some(all)
}
