//! Desired and live state to a change set: each object's operation, differences and server response, and the order.

mod absent;
mod adoption;
mod aggregated;
pub mod annotations;
pub mod answer;
pub mod base;
mod bindings;
pub mod body;
mod build;
mod carried;
mod compare;
mod comparison;
pub mod conflicts;
pub mod conversion_backends;
mod crds_first;
pub mod deploy_logs;
pub mod desired;
pub mod diff;
pub mod digest;
mod drift;
pub mod filter;
pub mod graph;
pub mod guard;
pub mod helm;
pub mod live;
mod misspelt;
mod operators;
pub mod ordering;
pub mod original;
mod own_record;
mod ownership;
pub mod part;
mod permission_fields;
mod planned;
mod providers;
pub mod quota;
mod recreated;
pub mod refusal;
mod renewal;
mod rivals;
pub mod saved;
pub mod sides;
mod size;
mod stale_pods;
pub mod steady;
pub mod stored;
pub mod takeover;
mod unlabelled;
mod unwanted;
pub mod versioned;
mod view;
pub mod waves;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use pushback_app::inventory::{Entry, Inventory};
use pushback_app::record::{Observed, Record};
use pushback_cluster::ClusterError;
use pushback_events::OwnedObject;
use pushback_manifest::InputError;
use pushback_manifest::config::Config;
use pushback_objects::{Finding, ObjectRef, Position};
use pushback_preflight::rule::Judgement;
use pushback_preflight::{CascadeSize, ChangeSet, Operation};

pub use annotations::{Strategies, UpdateStrategy};
pub use build::{Options, Request, build, build_delete};
use conversion_backends::ConversionBackend;
pub use diff::FieldChange;
pub use drift::NamedDrift;
pub use graph::Graph;
pub use planned::{Action, Difference, Planned, PlannedOperator};
pub use view::{View, planned_lines};

/// Objects of the app that the plan does not cover.
#[derive(Clone, Debug, Default)]
pub struct Retained {
    /// Live objects that are not pruned: by `--patch` or a filter, or because an annotation protects them.
    pub objects: Vec<Arc<serde_json::Value>>,
    /// Group and kind of objects that could not be listed; their versions are unknown too.
    pub unreadable: Vec<(String, String)>,
}

/// A warning of the plan.
#[derive(Clone, Debug)]
pub struct PlanWarning {
    /// Stable identifier.
    pub code: &'static str,
    /// The text, one sentence.
    pub message: String,
    /// Index of the object concerned, if any.
    pub object: Option<usize>,
    /// The place in the input that it is about, if any.
    pub position: Option<Position>,
}

/// Everything that a run will do.
#[derive(Debug)]
pub struct Plan {
    /// The observed state of the app.
    pub observed: Observed,
    /// The app's label value: the record's, or a new one.
    pub label_value: String,
    /// All objects: desired ones in input order, then deletes.
    pub objects: Vec<Planned>,
    /// The order of the changes; a node is an index in `objects`.
    pub graph: Graph,
    /// The conversion backends of CRDs.
    pub conversions: Vec<ConversionBackend>,
    /// Objects of the app that are neither desired nor deleted by this run, but must stay in the record.
    pub retained: Retained,
    /// What the server refused: findings of rule `server`.
    pub refusals: Vec<Finding>,
    /// What could not be checked, and why: preflight cannot pass.
    pub unable: Vec<String>,
    /// Warnings of planning.
    pub warnings: Vec<PlanWarning>,
    /// The inventory lists objects that no longer exist: the record is written even if nothing else is.
    pub forgets: bool,
    /// Whether the user explicitly deletes the whole app.
    pub deletes_app: bool,
    /// What is deleted together with the objects of the plan.
    pub cascades: Vec<CascadeSize>,
    /// Whether no app is named, so that the app is everything in the base.
    pub is_of_base: bool,
}

/// Why there is no plan.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// The input cannot be applied.
    #[error("the input has errors")]
    Input(Vec<InputError>),
    /// Change rules contradict each other: the objects on the cycle, the first one again at the end.
    #[error("{}", .0.message)]
    Cycle(InputError, Vec<ObjectRef>),
    /// The cluster returned an error.
    #[error("{0}")]
    Cluster(#[from] ClusterError),
    /// The filters select nothing of the input.
    #[error("the filters select none of the input's objects")]
    NothingSelected,
    /// Objects belong to other apps.
    #[error("{}", .0.iter().map(|error| error.message.as_str()).collect::<Vec<_>>().join("; "))]
    Ownership(Vec<InputError>, Vec<OwnedObject>),
}

impl Plan {
    /// A plan without objects.
    fn new(observed: Observed, label_value: String) -> Self {
        Self {
            observed,
            label_value,
            objects: Vec::new(),
            graph: Graph::default(),
            conversions: Vec::new(),
            retained: Retained::default(),
            refusals: Vec::new(),
            unable: Vec::new(),
            warnings: Vec::new(),
            forgets: false,
            deletes_app: false,
            cascades: Vec::new(),
            is_of_base: false,
        }
    }

    /// Adds the changes of further variants of CRDs, which a plan of their own compares.
    ///
    /// # Errors
    /// The changes cannot be ordered.
    pub fn add_variants(&mut self, further: Self, config: &Config) -> Result<(), PlanError> {
        let is_change = |planned: &Planned| planned.operation() != Operation::Noop;
        self.objects.extend(further.objects.into_iter().filter(is_change));
        self.refusals.extend(further.refusals);
        self.unable.extend(further.unable);
        self.warnings.extend(further.warnings.into_iter().map(|warning| PlanWarning { object: None, ..warning }));
        self.graph = ordering::draw(&self.objects, config, &self.observed.app.namespace, Some(&self.conversions))?;
        Ok(())
    }

    /// The changes as rules see them.
    #[must_use]
    pub fn change_set(&self) -> ChangeSet {
        ChangeSet {
            app: if self.is_of_base && self.observed.record.is_none() {
                String::new()
            } else {
                self.observed.app.name.clone()
            },
            deletes_app: self.deletes_app,
            changes: self.objects.iter().map(Planned::change).collect(),
            kept: self.retained.objects.clone(),
            early_backends: conversion_backends::early(&self.objects, &self.graph, &self.conversions)
                .map(ObjectRef::key)
                .collect(),
            ..ChangeSet::default()
        }
    }

    /// Adds what is deleted together with objects of the plan.
    pub fn add_cascades(&mut self, cascades: Vec<CascadeSize>) {
        for cascade in &cascades {
            let planned = self.objects.iter_mut().find(|planned| planned.object == cascade.object);
            planned.into_iter().for_each(|planned| planned.notes.push(format!("{cascade} deleted with it")));
        }
        self.cascades = cascades;
    }

    /// The question before the changes are made; it states the size of cascades.
    #[must_use]
    pub fn question(&self, question: &str) -> String {
        let sizes: Vec<String> =
            self.cascades.iter().map(|cascade| format!("{cascade}, with {}", cascade.object)).collect();
        match sizes.is_empty() {
            true => question.to_owned(),
            false => format!("Also deleted: {}. {question}", sizes.join("; ")),
        }
    }

    /// What the server rejected, or could not check.
    #[must_use]
    pub fn told_by_the_server(&self) -> Judgement {
        Judgement { findings: self.refusals.clone(), unable: self.unable.clone() }
    }

    /// Returns whether any value changes, or any object is created or deleted.
    #[must_use]
    pub fn has_changes(&self) -> bool {
        self.objects.iter().any(|planned| planned.reported_operation().writes())
    }

    /// Returns whether any object is written, if only to change the owners of its fields.
    #[must_use]
    pub fn has_writes(&self) -> bool {
        self.objects.iter().any(|planned| planned.operation().writes())
    }

    /// Returns whether the server refuses every write.
    #[must_use]
    pub fn is_wholly_refused(&self) -> bool {
        self.objects.iter().filter(|planned| planned.operation().writes()).all(|planned| planned.refused.is_some())
    }

    /// Everything that exists now or may exist afterwards: the inventory while the run is in progress.
    #[must_use]
    pub fn union_inventory(&self) -> Inventory {
        use pushback_objects::ObjectExt;
        let mut union = self.observed.inventory.clone();
        for object in &self.retained.objects {
            let reference = pushback_objects::ObjectRef::of(object);
            if union.get(&reference.key()).is_none_or(|entry| entry.uid != object.uid()) {
                let version = reference.version.clone();
                union.insert(reference.key(), Entry { version, uid: object.uid().to_owned(), ..Entry::default() });
            }
        }
        for planned in &self.objects {
            let key = planned.object.key();
            let live = planned.live.as_deref();
            match planned.operation() {
                Operation::Noop => {
                    if let Some(live) = live
                        && (self.observed.inventory_void.is_some() || union.get(&key).is_none())
                    {
                        union.insert(key, planned.entry(live));
                    }
                }
                // Its digests are now void; its uid still proves ownership.
                Operation::Create | Operation::Update | Operation::Replace | Operation::Delete => {
                    let uid = live.map(ObjectExt::uid).unwrap_or_default();
                    let version = planned.object.version.clone();
                    union.insert(key, Entry { version, uid: uid.to_owned(), ..Entry::default() });
                }
                Operation::Exists => {}
            }
        }
        union
    }

    /// Group, version and kind of every object, for kapp's part of the record; the version is empty if unknown.
    #[must_use]
    pub fn kinds(&self, with_deletes: bool) -> Vec<(String, String, String)> {
        let mut kinds: Vec<_> = self
            .objects
            .iter()
            .filter(|planned| with_deletes || planned.operation() != Operation::Delete)
            .filter(|planned| planned.operation() != Operation::Exists)
            .map(|planned| {
                let object = &planned.object;
                (object.group.clone(), object.version.clone(), object.kind.clone())
            })
            .collect();
        kinds.extend(self.retained.objects.iter().map(|object| {
            let object = pushback_objects::ObjectRef::of(object);
            (object.group, object.version, object.kind)
        }));
        kinds.extend(self.retained.unreadable.iter().map(|(group, kind)| (group.clone(), String::new(), kind.clone())));
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
            .map(|planned| match planned.object.namespace.as_str() {
                "" => "(cluster)".to_owned(),
                namespace => namespace.to_owned(),
            })
            .collect();
        if !self.retained.objects.is_empty() || !self.retained.unreadable.is_empty() {
            namespaces.extend(self.observed.record.iter().flat_map(Record::namespaces));
        }
        namespaces.sort();
        namespaces.dedup();
        namespaces
    }
}
