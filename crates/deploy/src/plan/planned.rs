//! One planned object. It starts from its manifest or from its live object, and each pass of planning adds what it finds.

use std::sync::{Arc, LazyLock};

use pushback_app::inventory::Entry;
use pushback_cluster::{Address, Kind};
use pushback_crd::definition::CarryOver;
use pushback_objects::{ObjectExt, ObjectKey, ObjectRef, PathSegment, Position, Positions};
use pushback_preflight::service_backend::pod_template;
use pushback_preflight::{Change, Operation, TakenFrom, Verification};
use pushback_storage::converting::Conversion;
use serde_json::Value;

use super::annotations::{Strategies, UpdateStrategy};
use super::desired::Desired;
use super::diff::FieldChange;
use super::digest::{BodyDigest, LiveDigest, live_digest};
use super::original;
use super::refusal::Refusal;
use super::takeover::Takeover;

/// One planned object.
#[derive(Clone, Debug, Default)]
pub struct Planned {
    /// Identity on the cluster.
    pub object: ObjectRef,
    /// The kind of the object.
    pub kind: Arc<Kind>,
    /// True if the kind is served only after a CRD of this set is applied.
    pub kind_from_set: bool,
    /// True if this run changes the kind's CRD: the server takes a moment to serve the new one.
    pub kind_changes: bool,
    /// Strategies that its annotations request.
    pub strategies: Strategies,
    /// Positions in the manifests; `None` for deletes.
    pub positions: Option<Arc<Positions>>,
    /// The action of the run.
    pub action: Action,
    /// The live object; `None` if it does not exist.
    pub live: Option<Arc<Value>>,
    /// The manifest as sent; `None` for deletes.
    pub desired: Option<Arc<Value>>,
    /// The object after the change, from the server's dry run.
    pub result: Option<Arc<Value>>,
    /// The check of the change by the server.
    pub verification: Verification,
    /// The server's refusal in a dry run.
    pub refused: Option<Box<Refusal>>,
    /// True if the server must not, or cannot, be asked in a dry run.
    pub no_dry_run: bool,
    /// Objects that this run changes and that the server needs before it accepts this one.
    pub after: Vec<ObjectKey>,
    /// Parents that this run replaces or deletes, and with them the live object: it is created again after them.
    pub recreated_after: Vec<ObjectKey>,
    /// Remarks for people.
    pub notes: Vec<String>,
    /// Warnings of the server.
    pub warnings: Vec<String>,
    /// Rules by which kapp compares it with its copy of the manifest, if that is kept up to date.
    pub original: Option<Arc<original::Rules>>,
    /// Digest of the manifest, for the inventory.
    pub manifest_digest: BodyDigest,
    /// Digest of what the app owns of the live object.
    pub live_digest: LiveDigest,
    /// Label value of the app that owns the live object, if it is another one: the plan then fails.
    pub foreign_app: Option<String>,
    /// True if the run waits for the object.
    pub wait: bool,
    /// True if a workload is paused, or will be by then, and continues when this object's turn comes.
    pub resumes: bool,
}

/// The action of the run on one object, with the facts that only this action has.
#[derive(Clone, Debug, Default)]
pub enum Action {
    /// Creates it: it does not exist yet, or is still being deleted.
    Create,
    /// Updates the live object.
    Update(Box<Difference>),
    /// Deletes the live object, and creates it again.
    Replace(Box<Difference>),
    /// Deletes the live object; with `delete-strategy: orphan`, only releases it from the app.
    Delete,
    /// Writes nothing; with annotation `exists`, waits until the object exists.
    #[default]
    Keep,
}

/// The changes of an update or a replacement to the live object.
#[derive(Clone, Debug, Default)]
pub struct Difference {
    /// The fields that differ.
    pub fields: Vec<FieldChange>,
    /// The takeover of other deploy tools' fields: their entries in `managedFields` become ours first.
    pub takeover: Option<Takeover>,
    /// The managers that lose fields by an update.
    pub taken_from: Vec<TakenFrom>,
    /// The handling of the stored objects of a CRD when it is written.
    pub carry_over: Option<CarryOver>,
    /// The conversion of its stored objects, if their fields differ.
    pub conversion: Option<Conversion>,
    /// The operators of a CRD whose objects are carried over.
    pub operators: Vec<PlannedOperator>,
}

/// An operator of a CRD whose objects are carried over. Its own change comes after that of the CRD.
#[derive(Clone, Debug)]
pub struct PlannedOperator {
    /// Its index in the plan.
    pub index: usize,
    /// Its address.
    pub address: Address,
    /// True if it is paused while objects are moved.
    pub pauses: bool,
}

/// The difference of an action that has none.
static NO_DIFFERENCE: LazyLock<Difference> = LazyLock::new(Difference::default);

impl Difference {
    /// A difference in these fields.
    pub(super) fn of_fields(fields: Vec<FieldChange>) -> Box<Self> {
        Box::new(Self { fields, ..Self::default() })
    }
}

impl Action {
    /// Returns the difference, or an empty one.
    pub(super) fn into_difference(self) -> Box<Difference> {
        match self {
            Self::Update(difference) | Self::Replace(difference) => difference,
            Self::Create | Self::Delete | Self::Keep => Box::default(),
        }
    }

    /// Returns the difference for passes that add to it.
    pub(super) fn difference_mut(&mut self) -> Option<&mut Difference> {
        match self {
            Self::Update(difference) | Self::Replace(difference) => Some(difference),
            Self::Create | Self::Delete | Self::Keep => None,
        }
    }
}

impl Planned {
    /// Starts from a manifest; nothing is done yet.
    pub(super) fn new(desired: &Desired) -> Self {
        Self {
            object: desired.object.clone(),
            kind: Arc::clone(&desired.kind),
            kind_from_set: desired.kind_from_set,
            strategies: desired.strategies.clone(),
            positions: Some(Arc::clone(&desired.positions)),
            desired: Some(Arc::clone(&desired.value)),
            ..Self::default()
        }
    }

    /// Returns the action in the words of rules and reports.
    #[must_use]
    pub fn operation(&self) -> Operation {
        match self.action {
            Action::Create => Operation::Create,
            Action::Update(_) => Operation::Update,
            Action::Replace(_) => Operation::Replace,
            Action::Delete => Operation::Delete,
            Action::Keep if self.strategies.exists => Operation::Exists,
            Action::Keep => Operation::Noop,
        }
    }

    /// Returns what an update or a replacement changes; nothing for other actions.
    #[must_use]
    pub fn difference(&self) -> &Difference {
        match &self.action {
            Action::Update(difference) | Action::Replace(difference) => difference,
            Action::Create | Action::Delete | Action::Keep => &NO_DIFFERENCE,
        }
    }

    /// Returns the change as rules see it.
    #[must_use]
    pub fn change(&self) -> Change {
        Change {
            object: self.object.clone(),
            resource: self.kind.plural.clone(),
            namespaced: self.kind.namespaced,
            operation: self.operation(),
            desired: self.desired.clone(),
            live: self.live.clone(),
            result: self.result.clone(),
            verification: self.verification.clone(),
            positions: self.positions.clone(),
            orphaned: self.is_orphaned(),
            taken_from: self.difference().taken_from.clone(),
        }
    }

    /// Returns where the object is on the cluster.
    #[must_use]
    pub fn address(&self) -> Address {
        Address::new(Arc::clone(&self.kind), &self.object.namespace, &self.object.name)
    }

    /// Returns the position in the manifests of a path of the object.
    #[must_use]
    pub fn locate(&self, path: &[PathSegment]) -> Option<Position> {
        self.positions.as_ref().map(|positions| positions.locate(path))
    }

    /// Returns the object after the run: the server's answer, else the manifest.
    #[must_use]
    pub fn after_run(&self) -> Option<&Value> {
        let after = self.result.as_deref().or(self.desired.as_deref()).or(self.live.as_deref());
        after.filter(|_| !matches!(self.action, Action::Delete))
    }

    /// Returns the inventory entry for the object in this live state.
    #[must_use]
    pub fn entry(&self, live: &Value) -> Entry {
        let digest = |body| self.manifest_digest.of(body).to_owned();
        Entry {
            version: self.object.version.clone(),
            uid: live.uid().to_owned(),
            manifest_digest: self.desired.as_deref().map(digest).unwrap_or_default(),
            live_digest: live_digest(live),
        }
    }

    /// Returns whether a deletion only releases the object from the app.
    #[must_use]
    pub fn is_orphaned(&self) -> bool {
        matches!(self.action, Action::Delete) && self.strategies.orphan
    }

    /// Returns whether the live object is deleted, even if another one replaces it.
    #[must_use]
    pub fn ends_live_object(&self) -> bool {
        let is_deleted = matches!(self.action, Action::Delete) && !self.strategies.orphan;
        is_deleted || matches!(self.action, Action::Replace(_))
    }

    /// Returns whether an update changes no value: only who owns which field, or copies of the manifest in annotations.
    #[must_use]
    pub fn changes_no_value(&self) -> bool {
        let Action::Update(difference) = &self.action else { return false };
        let is_empty = difference.fields.is_empty() && difference.carry_over.is_none();
        is_empty && self.verification == Verification::Server && !self.resumes
    }

    /// Returns the operation that is reported: an update that changes no value counts as unchanged, and is written.
    #[must_use]
    pub fn reported_operation(&self) -> Operation {
        if self.changes_no_value() { Operation::Noop } else { self.operation() }
    }

    /// Returns whether an API server is asked again right before the write. Every CRD is, and every existing object that
    /// was not verified: what is lost with it may depend on the answer. The strict write checks a new object.
    #[must_use]
    pub fn is_asked_again(&self) -> bool {
        let is_unknown = matches!(self.verification, Verification::NotVerified(_));
        let may_lose = self.object.is_definition() || (is_unknown && matches!(self.action, Action::Update(_)));
        may_lose && self.operation().applies() && !self.no_dry_run
    }

    /// Returns whether the run waits for an object of the manifests. One that is only checked, or left to others, is not
    /// waited for; without the label no watch would see it either.
    pub(super) fn is_awaited(&self, label_key: &str) -> bool {
        let is_left_alone = match self.action {
            Action::Keep if self.strategies.exists => true,
            Action::Keep => self.live.as_deref().is_some_and(|live| live.label(label_key).is_none()),
            Action::Create | Action::Update(_) | Action::Replace(_) | Action::Delete => false,
        };
        let is_new = matches!(self.action, Action::Create) || !self.recreated_after.is_empty();
        let is_skipped = self.strategies.update == UpdateStrategy::Skip && !is_new;
        !is_left_alone && !is_skipped && !self.strategies.disable_wait
    }

    /// Returns whether the object is a workload after the run: a Pod, or an object that makes Pods.
    #[must_use]
    pub fn makes_pods(&self) -> bool {
        self.desired.as_deref().is_some_and(|desired| pod_template(desired).is_some())
    }

    /// Returns whether a workload is written, or resumed after a pause, in the default order.
    #[must_use]
    pub fn is_changed_workload(&self) -> bool {
        let is_changed = self.operation().applies() || self.resumes;
        self.makes_pods() && is_changed && !self.strategies.no_default_order
    }
}
