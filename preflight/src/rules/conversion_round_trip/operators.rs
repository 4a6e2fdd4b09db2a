//! How likely it is that clients of two versions write the same objects: whether an old and a new release of the operator
//! run side by side in this run.

use pushback_crd::definition::Crd;
use pushback_objects::object::ObjectRef;

use crate::facts::{ChangeSet, Operation};
use crate::operator_workloads::{DefinedResource, Rollout, operator_workloads};

/// Whether clients of different versions meet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Risk {
    /// Two releases of this operator run side by side.
    Overlap(ObjectRef),
    /// The old release of this operator is gone before the new one starts, or it is not replaced in this run.
    Apart(ObjectRef, &'static str),
    /// No operator is known.
    Open,
}

impl Risk {
    /// Looks at the operators of a definition among the changes.
    pub(super) fn of(changes: &ChangeSet, definition: &Crd<'_>) -> Self {
        let resource = DefinedResource { group: definition.group(), plural: definition.plural() };
        let objects = changes.changes.iter().filter_map(|change| change.after());
        let mut risk = Self::Open;
        for operator in operator_workloads(objects, resource) {
            let Some(change) = changes.find(&operator.object.key()) else { continue };
            let template = |object: &serde_json::Value| object.pointer("/spec/template").cloned();
            let is_replaced = change.operation == Operation::Update
                && change.live.as_deref().map(template) != change.after().map(template);
            risk = match (operator.rollout, is_replaced) {
                (Rollout::Rolling, true) => return Self::Overlap(change.object.clone()),
                (_, false) => Self::Apart(change.object.clone(), "is not replaced in this run"),
                (Rollout::Recreate, true) => Self::Apart(change.object.clone(), "stops before its new release starts"),
                (Rollout::OneByOne, true) => Self::Apart(change.object.clone(), "replaces its pods one by one"),
            };
        }
        risk
    }

    /// What the message adds.
    pub(super) fn sentence(&self) -> String {
        match self {
            Self::Overlap(operator) => format!("; the old and the new release of {operator} run side by side"),
            Self::Apart(operator, why) => format!("; {operator} {why}"),
            Self::Open => String::new(),
        }
    }

    pub(super) fn remedy(&self) -> String {
        let keep = "give both versions the same fields, or convert with a webhook";
        match self {
            Self::Overlap(operator) => {
                format!("stop {operator} before the update (strategy Recreate, or 0 replicas), {keep}")
            }
            Self::Apart(..) => keep.to_owned(),
            Self::Open => format!(
                "{keep}, or let all clients use one version; the annotation pushback.dev/operator-of names the operator"
            ),
        }
    }
}
