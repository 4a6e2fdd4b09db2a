//! CRDs that a controller makes from other objects: CompositeResourceDefinitions of Crossplane, ResourceGraphDefinitions
//! of kro, ConstraintTemplates of Gatekeeper. A change of such a source object changes its CRDs, and is judged like
//! that. Each module derives the CRDs as the controller does.

mod crossplane;
mod fields;
mod gatekeeper;
mod kro;
mod layout;
mod merge;
mod simple_schema;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pushback_crd::definition::crd::{GROUP, KIND};
use pushback_objects::object::{ObjectExt, ObjectRef};
use pushback_objects::source::{PathSegment, Positions};
use serde_json::{Map, Value, json};

use self::fields::Field;
use self::layout::Origins;
use crate::facts::{
    Answer, Change, ChangeSet, DerivedChange, DerivedCrds, Need, Needs, Operation, UnreadableSource, Verification,
};

/// Deepest nesting of fields in a source object.
const DEEPEST: usize = 64;

/// A CRD derived from a source object.
#[derive(Clone, Debug, PartialEq)]
struct DerivedCrd {
    crd: Value,
    /// The parts of the source object that the parts of the CRD are made from.
    origins: Origins,
}

/// An error in a source object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
struct SourceError {
    path: Vec<PathSegment>,
    message: String,
}

/// The kinds of source objects.
const SOURCES: [(&str, &str, Derive); 3] = [
    ("apiextensions.crossplane.io", "CompositeResourceDefinition", crossplane::derive),
    ("kro.run", "ResourceGraphDefinition", kro::derive),
    ("templates.gatekeeper.sh", "ConstraintTemplate", gatekeeper::derive),
];

type Derive = fn(&Value) -> Result<Vec<DerivedCrd>, SourceError>;

/// The function that derives the CRDs of an object; `None` if it is not a source object.
fn derivation(object: &ObjectRef) -> Option<Derive> {
    let source = SOURCES.iter().find(|(group, kind, _)| object.group == *group && object.kind == *kind);
    source.map(|(_, _, derive)| *derive)
}

/// Returns whether a controller makes CRDs from an object.
#[must_use]
pub fn is_source(object: &ObjectRef) -> bool {
    derivation(object).is_some()
}

/// Builds a CRD.
fn crd(name: &str, spec: Map<String, Value>) -> Value {
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": KIND, "metadata": {"name": name}, "spec": spec})
}

/// Copies a field unless it is absent.
fn insert_present(map: &mut Map<String, Value>, key: &str, field: &Field<'_>) {
    if let Some(value) = field.present() {
        map.insert(key.to_owned(), value.clone());
    }
}

/// CRD changes that wait for the CRDs of the API server.
#[derive(Debug, Default)]
pub(crate) struct PendingCrds {
    changes: Vec<PendingChange>,
    unreadable: Vec<UnreadableSource>,
}

/// A CRD on both sides of the change of its source object.
#[derive(Debug)]
struct PendingChange {
    source: ObjectRef,
    operation: Operation,
    is_orphaned: bool,
    crd: ObjectRef,
    old: Option<Value>,
    new: Option<DerivedCrd>,
    positions: Option<Arc<Positions>>,
    /// The error in the live source object, if it cannot be read.
    old_error: Option<SourceError>,
}

impl PendingCrds {
    /// Derives the CRDs of all source objects that a change set changes. A CRD that the change set itself has is left
    /// out.
    pub(crate) fn new(changes: &ChangeSet) -> Self {
        let mut pending = Self::default();
        let own: BTreeSet<&str> = changes
            .changes
            .iter()
            .filter(|change| change.object.is_definition())
            .map(|change| change.object.name.as_str())
            .collect();
        for change in &changes.changes {
            if let Some(derive) = derivation(&change.object).filter(|_| change.operation.writes()) {
                pending.add(change, derive);
            }
        }
        pending.changes.retain(|change| !own.contains(change.crd.name.as_str()));
        pending.changes.sort_by(|a, b| a.crd.cmp(&b.crd));
        pending.changes.dedup_by(|a, b| a.crd == b.crd);
        pending
    }

    fn add(&mut self, change: &Change, derive: Derive) {
        let old = change.live.as_deref().map(derive);
        let new = match change.after().map(derive) {
            Some(Ok(crds)) => crds,
            None => Vec::new(),
            Some(Err(error)) => return self.unreadable.push(unreadable(change, &error, true)),
        };
        let (old, old_error) = match old {
            Some(Ok(crds)) => (crds, None),
            Some(Err(error)) => (Vec::new(), Some(error)),
            None => (Vec::new(), None),
        };
        if let Some(error) = old_error.as_ref().filter(|_| new.is_empty()) {
            return self.unreadable.push(unreadable(change, error, false));
        }
        let mut old: BTreeMap<String, Value> =
            old.into_iter().map(|derived| (derived.crd.name().to_owned(), derived.crd)).collect();
        let pending = |name: &str, old: Option<Value>, new: Option<DerivedCrd>| PendingChange {
            source: change.object.clone(),
            operation: change.operation,
            is_orphaned: change.orphaned,
            crd: ObjectRef {
                group: GROUP.to_owned(),
                version: "v1".to_owned(),
                kind: KIND.to_owned(),
                namespace: String::new(),
                name: name.to_owned(),
            },
            old,
            new,
            positions: change.positions.clone(),
            old_error: old_error.clone(),
        };
        for derived in new {
            let name = derived.crd.name().to_owned();
            let before = old.remove(&name);
            self.changes.push(pending(&name, before, Some(derived)));
        }
        self.changes.extend(old.into_iter().map(|(name, crd)| pending(&name, Some(crd), None)));
    }

    /// The CRDs that the API server may have.
    pub(crate) fn needs(&self) -> Needs {
        self.changes.iter().map(|change| Need::Object { object: change.crd.clone() }).collect()
    }

    /// Completes the changes with the CRDs of the API server.
    pub(crate) fn settle(self, answers: &BTreeMap<Need, Answer>) -> DerivedCrds {
        let mut settled = DerivedCrds { changes: Vec::new(), unreadable: self.unreadable };
        for change in self.changes {
            let live = match answers.get(&Need::Object { object: change.crd.clone() }) {
                Some(Answer::Object { object }) => object.clone(),
                _ => None,
            };
            match change.settle(live) {
                Ok(change) => settled.changes.extend(change),
                Err(unreadable) => settled.unreadable.push(*unreadable),
            }
        }
        settled
    }
}

impl PendingChange {
    /// `None` if the CRD stays as it is.
    fn settle(self, live: Option<Arc<Value>>) -> Result<Option<DerivedChange>, Box<UnreadableSource>> {
        let Self { source, operation, is_orphaned, crd, old, new, positions, old_error } = self;
        let Some(new) = new else {
            // The source object is deleted, or defines another CRD from now on.
            let change = derived_change(crd, Operation::Delete, live.or(old.map(Arc::new)), None, None);
            return Ok(Some(DerivedChange { source, change: Change { orphaned: is_orphaned, ..change } }));
        };
        let desired = match (&old, &live) {
            (Some(old), Some(live)) => merge::changed(old, &new.crd, live),
            _ => new.crd,
        };
        let positions = positions.map(|positions| Arc::new(new.origins.positions(&desired, &positions)));
        let before = match (live, old, old_error) {
            (Some(live), ..) => Some(live),
            (None, Some(old), _) => Some(Arc::new(old)),
            (None, None, Some(error)) => {
                let object = source;
                let message = error.message;
                return Err(Box::new(UnreadableSource { object, position: None, message, is_manifest: false }));
            }
            (None, None, None) => None,
        };
        let operation = match (&before, operation) {
            (None, _) => Operation::Create,
            (Some(_), Operation::Replace) => Operation::Replace,
            (Some(before), _) if before.get("spec") == desired.get("spec") => return Ok(None),
            (Some(_), _) => Operation::Update,
        };
        let change = derived_change(crd, operation, before, Some(Arc::new(desired)), positions);
        Ok(Some(DerivedChange { source, change }))
    }
}

fn derived_change(
    object: ObjectRef,
    operation: Operation,
    live: Option<Arc<Value>>,
    desired: Option<Arc<Value>>,
    positions: Option<Arc<Positions>>,
) -> Change {
    Change {
        object,
        resource: "customresourcedefinitions".to_owned(),
        namespaced: false,
        operation,
        desired,
        live,
        result: None,
        verification: Verification::NotVerified("a controller writes it after the run".to_owned()),
        positions,
        orphaned: false,
        taken_from: Vec::new(),
    }
}

fn unreadable(change: &Change, error: &SourceError, is_manifest: bool) -> UnreadableSource {
    UnreadableSource {
        object: change.object.clone(),
        position: change.locate(&error.path).filter(|_| is_manifest),
        message: error.message.clone(),
        is_manifest,
    }
}
