//! The part of an app that a run is about, where filters name one; the rest of the app is left as it is: neither written
//! nor pruned nor forgotten.

use std::collections::BTreeSet;

use pushback_objects::{ObjectExt, ObjectKey};
use pushback_preflight::Operation;
use serde_json::Value;

use super::Planned;
use super::desired::Desired;
use super::filter::{ChangeFilter, ObjectFilter};
use super::live::{Live, Scope};
use super::versioned::version_of;

/// Which objects and which changes a run is about.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Which objects.
    pub objects: ObjectFilter,
    /// Which changes.
    pub changes: ChangeFilter,
    /// Where live objects are looked for.
    pub scope: Scope,
}

impl Selection {
    /// Whether it selects everything.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty() && self.changes.is_empty()
    }

    /// Whether it selects the deletion of a live object.
    #[must_use]
    pub fn covers_deletion(&self, live: &Value) -> bool {
        self.objects.matches(live) && self.changes.matches(Operation::Delete, Some(live), None)
    }
}

/// The part of an input that is selected, and what is known of the rest.
#[derive(Debug)]
pub(super) struct Part<'s> {
    selection: &'s Selection,
    /// Empty where all are.
    selected: BTreeSet<ObjectKey>,
    /// Objects of the input that are not selected.
    pub(super) rest: Vec<Desired>,
    rest_keys: BTreeSet<ObjectKey>,
}

impl<'s> Part<'s> {
    /// Divides the input. An object is judged by its manifest; its age is that of its live object.
    pub(super) fn divide(selection: &'s Selection, live: &Live, desired: Vec<Desired>) -> (Self, Vec<Desired>) {
        if selection.objects.is_empty() {
            let part = Self { selection, selected: BTreeSet::new(), rest: Vec::new(), rest_keys: BTreeSet::new() };
            return (part, desired);
        }
        let is_selected = |wanted: &Desired| {
            let created = live.objects.get(&wanted.object.key()).map(|live| live.text("/metadata/creationTimestamp"));
            selection.objects.matches_created(&wanted.value, created.unwrap_or_default())
        };
        let (desired, rest): (Vec<Desired>, Vec<Desired>) = desired.into_iter().partition(is_selected);
        let keys = |objects: &[Desired]| objects.iter().map(|wanted| wanted.object.key()).collect();
        (Self { selection, selected: keys(&desired), rest_keys: keys(&rest), rest }, desired)
    }

    /// Whether the run may delete a live object. One of the input goes with its manifest, whatever it is like itself; so
    /// does a version of it.
    pub(super) fn covers_prune(&self, planned: &Planned) -> bool {
        let Some(live) = planned.live.as_deref() else { return true };
        let key = planned.object.key();
        let key = version_of(&key, live).map_or(key, |(key, _)| key);
        let is_selected = match (self.rest_keys.contains(&key), self.selected.contains(&key)) {
            (true, _) => false,
            (false, true) => true,
            (false, false) => self.selection.objects.matches(live),
        };
        is_selected && self.selection.changes.matches(Operation::Delete, Some(live), None)
    }

    /// Whether the run may carry out a change.
    pub(super) fn covers_change(&self, wanted: &Desired, planned: &Planned) -> bool {
        self.selection.changes.matches(planned.operation(), planned.live.as_deref(), Some(&wanted.value))
    }
}
