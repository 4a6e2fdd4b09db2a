//! The objects that a run leaves behind: what is there afterwards, what goes, and what can be named in each.

use std::collections::{BTreeSet, HashMap};

use serde_json::Value;

use crate::facts::{Change, ChangeSet, ClusterSide, Operation};
use crate::object::{ObjectKey, ObjectRef};
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
}

impl<'a> Objects<'a> {
    pub(super) fn of(changes: &'a ChangeSet, side: ClusterSide) -> Self {
        let mut objects = Self::default();
        for kept in &changes.kept {
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
        }
        objects
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
