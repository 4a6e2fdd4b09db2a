//! FinalizerBlock: what is seen of a deletion that a finalizer holds, and of the deletion once it is let go.

use std::sync::Arc;
use std::time::Duration;

use pushback_cluster::{Address, ClusterError, ErrorKind};
use pushback_objects::ObjectExt;
use serde_json::Value;
use tokio::time::Instant;

use super::{ActiveExperiment, Runner};
use crate::change::{Change, Step};
use crate::outcome::HeldDeletion;
use crate::revert::release;
use crate::steady::POLL;

/// How long a deletion may take once nothing of ours holds it.
const GOING_ON: Duration = Duration::from_secs(30);

impl ActiveExperiment<'_> {
    /// The deletions that a finalizer of ours holds.
    pub(super) fn held(&self) -> impl Iterator<Item = &Step> {
        self.steps().iter().filter(|step| matches!(step.change, Change::Held { .. }))
    }
}

impl Runner<'_> {
    /// Looks whether the object is still there, in deletion, with the finalizer.
    pub(super) async fn look_at_deletion(&self, begun: &mut ActiveExperiment<'_>) {
        let Some(step) = begun.held().next().cloned() else { return };
        let Change::Held { finalizer, .. } = &step.change else { return };
        let Ok(live) = self.live(&step).await else { return };
        let is_held = live.is_some_and(|live| {
            live.uid() == step.target.uid && live.is_terminating() && has_finalizer(&live, finalizer)
        });
        if is_held {
            begun.outcome.deletion.get_or_insert_default().held = true;
        } else if !begun.outcome.deviations.iter().any(|deviation| deviation.name == "deletion_not_held") {
            begun.outcome.deviate("deletion_not_held", format!("{}: finalizer {finalizer} was removed", step.target));
        }
    }

    /// Removes the finalizer, and waits until the object is gone or its owner has made another.
    pub(super) async fn let_deletion_go_on(&self, begun: &mut ActiveExperiment<'_>) {
        let Some(step) = begun.held().next().cloned() else { return };
        if self.is_stopped() || !begun.outcome.deletion.as_ref().is_some_and(|deletion| deletion.held) {
            return;
        }
        (self.tell)(format!("{}: letting the deletion of {} go on", begun.experiment.name, step.target));
        match self.let_go(&step).await {
            Ok(deletion) => begun.outcome.deletion = Some(deletion),
            // The revert tries it again, and tells if it cannot.
            Err(error) => begun.outcome.notes.push(format!("the deletion could not go on: {error}")),
        }
    }

    async fn let_go(&self, step: &Step) -> Result<HeldDeletion, ClusterError> {
        let Change::Held { finalizer, body } = &step.change else { return Ok(HeldDeletion::default()) };
        let has_owner = has_controller(body);
        let end = Instant::now() + GOING_ON;
        loop {
            let live = self.live(step).await?;
            let seen = HeldDeletion { held: true, ..HeldDeletion::default() };
            match &live {
                Some(live) if live.uid() != step.target.uid => {
                    return Ok(HeldDeletion { went_on: true, recreated: true, ..seen });
                }
                None if !has_owner || Instant::now() >= end => return Ok(HeldDeletion { went_on: true, ..seen }),
                Some(live) if has_finalizer(live, finalizer) => {
                    match release(&*self.cluster, &self.address(step).await?, live, finalizer).await {
                        // Somebody has written in between.
                        Err(error) if error.kind == ErrorKind::Conflict => {}
                        done => done?,
                    }
                }
                Some(live) if Instant::now() >= end => {
                    let left = finalizers(live).collect::<Vec<_>>().join(", ");
                    let message = format!("{} is still there, with finalizers {left}", step.target);
                    return Err(ClusterError::new(ErrorKind::Timeout, message));
                }
                _ => tokio::time::sleep(POLL).await,
            }
        }
    }

    async fn address(&self, step: &Step) -> Result<Address, ClusterError> {
        step.target.address(&*self.cluster.kinds().await?)
    }

    async fn live(&self, step: &Step) -> Result<Option<Arc<Value>>, ClusterError> {
        self.cluster.get(&self.address(step).await?).await
    }
}

/// Whether a controller owns the object, and makes it again.
pub(super) fn has_controller(body: &Value) -> bool {
    let owners = body.pointer("/metadata/ownerReferences").and_then(Value::as_array).into_iter().flatten();
    owners.into_iter().any(|owner| owner.get("controller") == Some(&Value::Bool(true)))
}

fn finalizers(live: &Value) -> impl Iterator<Item = &str> {
    let list = live.pointer("/metadata/finalizers").and_then(Value::as_array).into_iter().flatten();
    list.filter_map(Value::as_str)
}

fn has_finalizer(live: &Value, name: &str) -> bool {
    finalizers(live).any(|finalizer| finalizer == name)
}
