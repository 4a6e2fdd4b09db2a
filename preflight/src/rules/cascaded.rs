//! The need for everything that the garbage collector deletes with the objects of a change set, shared by the rules that
//! judge deletions: one search answers all of them.

use std::collections::BTreeSet;

use pushback_objects::bookkeeping;

use crate::cascade::{DeletedOwner, Dependent};
use crate::facts::{Answer, ChangeSet, Facts, Need};

/// The objects that the change set deletes and that may own others.
pub(super) fn owners(changes: &ChangeSet) -> BTreeSet<DeletedOwner> {
    let deleted = changes.changes.iter().filter(|change| change.ends_live_object());
    deleted.filter_map(|change| DeletedOwner::from_live(change.live.as_deref()?)).collect()
}

/// The need; `None` if nothing is deleted.
pub(super) fn need(changes: &ChangeSet) -> Option<Need> {
    let owners = owners(changes);
    (!owners.is_empty()).then_some(Need::Dependents { owners })
}

/// The objects that are deleted with an object of the change set, by its uid.
pub(super) fn of_root<'f>(facts: &'f Facts, uid: &str) -> Vec<&'f Dependent> {
    match need(&facts.changes).and_then(|need| facts.answers.get(&need)) {
        Some(Answer::Dependents { objects, .. }) => objects.iter().filter(|it| it.root == uid).collect(),
        _ => Vec::new(),
    }
}

/// Values of the label that assigns the objects of the change set to their app.
pub(super) fn own_labels(changes: &ChangeSet) -> BTreeSet<&str> {
    let live = changes.changes.iter().filter_map(|change| change.live.as_deref());
    let kept = changes.kept.iter().map(|object| &**object);
    live.chain(kept).filter_map(bookkeeping::app_label_of).collect()
}
