//! Desired × live → change set: what is done to every object, what differs, what the server says to it, in which order.

mod absent;
mod aggregated;
pub mod annotations;
pub mod answer;
mod bindings;
pub mod body;
mod build;
mod compare;
mod compared;
pub mod conflicts;
pub mod desired;
pub mod diff;
pub mod digest;
mod estimate;
pub mod fields;
pub mod graph;
#[cfg(test)]
mod growth;
pub mod guard;
pub mod live;
mod missing;
mod misspelt;
pub mod ordering;
pub mod providers;
pub mod quota;
pub mod refusal;
mod rivals;
pub mod takeover;
mod view;

use std::sync::Arc;

use pushback_preflight::facts::MissingDefinition;
use pushback_preflight::{Change, ChangeSet, Finding, ObjectKey, Operation};

use crate::app::inventory::{Entry, Inventory};
use crate::app::record::{Observed, Record};
use crate::cluster::{ClusterError, Kind};
use crate::manifest::InputError;
pub use annotations::{Strategies, UpdateStrategy};
pub use build::{Options, Request, build, build_delete};
pub use diff::FieldChange;
pub use graph::Graph;
pub use view::{View, planned_lines};

/// One planned object.
#[derive(Clone, Debug)]
pub struct Planned {
    /// What rules see.
    pub change: Change,
    /// The kind that serves it.
    pub kind: Arc<Kind>,
    /// The kind is served only once a CRD of this set is applied.
    pub kind_from_set: bool,
    /// The kind's definition changes in this run: the server takes a moment to serve the new one.
    pub kind_changes: bool,
    /// What its annotations ask for.
    pub strategies: Strategies,
    /// Whose work on it is continued: their entries in `managedFields` become ours first.
    pub takeover: Option<takeover::Takeover>,
    /// What the server makes of it is asked again right before it is written: the plan's answer is missing, or what a
    /// verdict rests on.
    pub asked_again: bool,
    /// What the server misses before it takes the object, and this run changes: it goes first.
    pub after: Vec<ObjectKey>,
    /// What differs.
    pub fields: Vec<FieldChange>,
    /// Remarks for people.
    pub notes: Vec<String>,
    /// Digest of the manifest, for the inventory.
    pub manifest_digest: digest::BodyDigest,
    /// Whether it is waited for.
    pub wait: bool,
}

impl Planned {
    /// Whether deleting it means only to let go of it.
    #[must_use]
    pub fn is_orphaned(&self) -> bool {
        self.change.orphaned
    }
}

/// What an app owns beyond the objects of a plan.
#[derive(Clone, Debug, Default)]
pub struct Kept {
    /// Live objects that are not pruned (`--patch`).
    pub objects: Vec<Arc<serde_json::Value>>,
    /// Group and kind of what could not be listed; which versions there are is not known either.
    pub unreadable: Vec<(String, String)>,
}

/// A warning of the plan.
#[derive(Clone, Debug)]
pub struct PlanWarning {
    /// Stable word.
    pub code: &'static str,
    /// One sentence.
    pub message: String,
    /// Index of the object, where it is about one.
    pub object: Option<usize>,
}

/// Everything that a run is going to do.
#[derive(Debug)]
pub struct Plan {
    /// What was known of the app.
    pub observed: Observed,
    /// The app's label value: the record's, or a new one.
    pub label_value: String,
    /// All objects: wanted ones in input order, then deletes.
    pub objects: Vec<Planned>,
    /// Who waits for whom; node = index in `objects`.
    pub graph: Graph,
    /// What belongs to the app and is neither wanted nor deleted by this run: the record must not forget it.
    pub kept: Kept,
    /// What the server refused: findings of rule `server`.
    pub refusals: Vec<Finding>,
    /// What could not be asked, and why: preflight cannot pass.
    pub unable: Vec<String>,
    /// Warnings.
    pub warnings: Vec<PlanWarning>,
    /// The inventory lists objects that are gone: the record is written even where nothing else is.
    pub forgets: bool,
    /// The user deletes the whole app, by its name.
    pub deletes_app: bool,
    /// Definitions of the cluster that the input lacks, where nobody named an app.
    pub missing_definitions: Vec<MissingDefinition>,
}

/// Why there is no plan.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// The input cannot be applied.
    #[error("the input has errors")]
    Input(Vec<InputError>),
    /// The cluster did not answer.
    #[error("{0}")]
    Cluster(#[from] ClusterError),
    /// Objects belong to other apps.
    #[error("{}", .0.iter().map(|error| error.message.as_str()).collect::<Vec<_>>().join("; "))]
    Ownership(Vec<InputError>),
}

impl Plan {
    /// What rules judge.
    #[must_use]
    pub fn change_set(&self) -> ChangeSet {
        ChangeSet {
            app: self.observed.app.name.clone(),
            deletes_app: self.deletes_app,
            changes: self.objects.iter().map(|planned| planned.change.clone()).collect(),
            missing_definitions: self.missing_definitions.clone(),
        }
    }

    /// Whether anything is written to an object.
    #[must_use]
    pub fn has_changes(&self) -> bool {
        self.objects.iter().any(|planned| planned.change.operation.writes())
    }

    /// Everything that exists now or may exist after: the inventory while the run goes on.
    #[must_use]
    pub fn union_inventory(&self) -> Inventory {
        use pushback_preflight::ObjectExt;
        let mut union = self.observed.inventory.clone();
        for object in &self.kept.objects {
            let reference = pushback_preflight::ObjectRef::of(object);
            if union.get(&reference.key()).is_none_or(|entry| entry.uid != object.uid()) {
                let version = reference.version.clone();
                union.insert(reference.key(), Entry { version, uid: object.uid().to_owned(), ..Entry::default() });
            }
        }
        for planned in &self.objects {
            let key = planned.change.object.key();
            let live = planned.change.live.as_deref();
            match planned.change.operation {
                Operation::Noop => {
                    if let Some(live) = live
                        && (self.observed.inventory_void.is_some() || union.get(&key).is_none())
                    {
                        union.insert(key, entry(planned, live));
                    }
                }
                // Its digests are void from now on; its uid still says what is ours.
                Operation::Create | Operation::Update | Operation::Replace | Operation::Delete => {
                    let uid = live.map(ObjectExt::uid).unwrap_or_default();
                    let version = planned.change.object.version.clone();
                    union.insert(key, Entry { version, uid: uid.to_owned(), ..Entry::default() });
                }
                Operation::Exists => {}
            }
        }
        union
    }

    /// Group, version and kind of every object, for kapp's part of the record; no version where it is not known.
    #[must_use]
    pub fn kinds(&self, with_deletes: bool) -> Vec<(String, String, String)> {
        let mut kinds: Vec<_> = self
            .objects
            .iter()
            .filter(|planned| with_deletes || planned.change.operation != Operation::Delete)
            .filter(|planned| planned.change.operation != Operation::Exists)
            .map(|planned| {
                let object = &planned.change.object;
                (object.group.clone(), object.version.clone(), object.kind.clone())
            })
            .collect();
        kinds.extend(self.kept.objects.iter().map(|object| {
            let object = pushback_preflight::ObjectRef::of(object);
            (object.group, object.version, object.kind)
        }));
        kinds.extend(self.kept.unreadable.iter().map(|(group, kind)| (group.clone(), String::new(), kind.clone())));
        kinds.sort();
        kinds.dedup();
        kinds
    }

    /// Namespaces of the app's objects as kapp records them, `(cluster)` for cluster-scoped ones.
    #[must_use]
    pub fn namespaces(&self) -> Vec<String> {
        let mut namespaces: Vec<String> = self
            .objects
            .iter()
            .map(|planned| match planned.change.object.namespace.as_str() {
                "" => "(cluster)".to_owned(),
                namespace => namespace.to_owned(),
            })
            .collect();
        if !self.kept.objects.is_empty() || !self.kept.unreadable.is_empty() {
            namespaces.extend(self.observed.record.iter().flat_map(Record::namespaces));
        }
        namespaces.sort();
        namespaces.dedup();
        namespaces
    }
}

/// The inventory entry of an object in a known state.
#[must_use]
pub fn entry(planned: &Planned, live: &serde_json::Value) -> Entry {
    use pushback_preflight::ObjectExt;
    let digest = |body| planned.manifest_digest.of(body).to_owned();
    Entry {
        version: planned.change.object.version.clone(),
        uid: live.uid().to_owned(),
        manifest_digest: planned.change.desired.as_deref().map(digest).unwrap_or_default(),
        live_digest: digest::live_digest(live),
    }
}
