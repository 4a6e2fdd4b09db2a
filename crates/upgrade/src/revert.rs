//! Reverts what an experiment changed, judged by the cluster's state and never by the run's memory: a field gets its
//! old value if it still has ours, later changes by others are kept, and every response is compared.

use std::sync::Arc;
use std::time::Duration;

use pushback_cluster::{Address, Cluster, ClusterError, DeleteOptions, ErrorKind, Kinds};
use pushback_objects::ObjectExt;
use serde_json::{Value, json};

use super::change::{Change, Step, Target};
use super::difference::{self, FieldChange};
use super::inject::guarded;
use super::mark::{MARK, mark_place};
use super::owners;
use super::place::Place;

/// Most attempts for a write that conflicts with others.
const ATTEMPTS: u32 = 8;

/// Most reads, one per second, of a terminating object.
const LOOKS: u32 = 30;

/// Reason for a difference.
const CHANGED: &str = "changed since by somebody else";
const ALTERED: &str = "the server has changed it";

/// Result of reverting one change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RevertOutcome {
    /// It was reverted.
    Restored,
    /// There was nothing to do: it was never made, or somebody has undone it.
    Nothing,
    /// Another object has replaced the deleted one, by its controller or somebody else: it is kept.
    Replaced,
    /// The object is gone or replaced: nothing of the change is left to revert.
    Gone(String),
    /// After an upgrade: the new release sets what was changed.
    Released(String),
    /// Something differs from before and is left as it is; described without values.
    Left(String),
    /// The same for a field that the server altered and the journal does not contain: a later revert would not notice
    /// it.
    Altered(String),
}

/// Who reverts a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requester {
    /// The run that made the change and has the server's response to it.
    Run,
    /// The same run after applying a new release: the release's values win.
    RunAfterUpgrade,
    /// A later run that has only the journal. It touches no object without the journal's mark, and makes sure that a
    /// request of the dead run still in flight comes too late.
    LaterRun,
}

/// Reverts one change.
///
/// # Errors
/// The cluster's error; the change may still be there.
pub async fn revert(
    cluster: &dyn Cluster,
    kinds: &Kinds,
    step: &Step,
    mark: &str,
    requester: Requester,
) -> Result<RevertOutcome, ClusterError> {
    let address = step.target.address(kinds)?;
    let reverting = Reverting { cluster, address, step, mark, requester };
    let mut alterations = ServerAlterations::default();
    for _ in 1..ATTEMPTS {
        match reverting.attempt(&mut alterations).await {
            // Somebody has written in between: read again.
            Err(error) if matches!(error.kind, ErrorKind::Conflict | ErrorKind::AlreadyExists) => {}
            done => return done,
        }
    }
    reverting.attempt(&mut alterations).await
}

/// Fields that the server altered during the revert, and their owners: reverted too, once.
#[derive(Default)]
struct ServerAlterations {
    fields: Vec<FieldChange>,
    owners: Vec<Value>,
}

struct Reverting<'a> {
    cluster: &'a dyn Cluster,
    address: Address,
    step: &'a Step,
    mark: &'a str,
    requester: Requester,
}

impl Reverting<'_> {
    async fn attempt(&self, alterations: &mut ServerAlterations) -> Result<RevertOutcome, ClusterError> {
        let live = self.cluster.get(&self.address).await?;
        match (&self.step.change, live) {
            (Change::Killed, _) | (Change::Created(_), None) => Ok(RevertOutcome::Nothing),
            (Change::Created(_), Some(live)) => self.remove_created(&live).await,
            (Change::Held { finalizer, body }, Some(live)) if live.uid() == self.step.target.uid => {
                if live.is_terminating() {
                    self.let_go(finalizer, body, &live).await
                } else {
                    // Killed before the deletion.
                    self.restore(&live, alterations).await
                }
            }
            (Change::Deleted(body) | Change::Held { body, .. }, live) => self.recreate(body, live).await,
            (Change::Fields(_) | Change::Finalizer(_), None) => {
                Ok(RevertOutcome::Gone(format!("{} is gone", self.step.target)))
            }
            (Change::Fields(_) | Change::Finalizer(_), Some(live)) => self.restore(&live, alterations).await,
        }
    }

    async fn remove_created(&self, live: &Value) -> Result<RevertOutcome, ClusterError> {
        // Checks the mark, which names this journal: another object of that name is not ours.
        if live.annotation(MARK) != Some(self.mark) {
            return Ok(RevertOutcome::Left(format!("{} is not what the experiment created", self.step.target)));
        }
        let options = DeleteOptions { uid: live.uid().to_owned(), ..DeleteOptions::default() };
        match self.cluster.delete(&self.address, &options).await {
            Ok(_) => Ok(RevertOutcome::Restored),
            Err(error) if error.kind == ErrorKind::NotFound => Ok(RevertOutcome::Nothing),
            Err(error) => Err(error),
        }
    }

    async fn recreate(&self, body: &Value, mut live: Option<Arc<Value>>) -> Result<RevertOutcome, ClusterError> {
        let target = &self.step.target;
        for _ in 0..LOOKS {
            let Some(found) = live else {
                let mut body = body.clone();
                // An upgrade may have removed the version in which it was read.
                body["apiVersion"] = json!(self.address.kind.api_version());
                if let Some(annotations) = body.metadata_map_mut("annotations") {
                    annotations.insert(MARK.to_owned(), self.mark.into());
                }
                let created = self.cluster.create(&self.address, &body, false).await?.object;
                let differing = places(&difference::between_contents(&body, &created));
                self.give_all_back(&created).await?;
                return Ok(self.as_before(&differing, ALTERED, RevertOutcome::Altered));
            };
            if found.uid() != target.uid && found.annotation(MARK) == Some(self.mark) {
                // Created by a run that was killed before it could restore the managers.
                let differing = places(&lost(body, &found));
                self.give_all_back(&found).await?;
                return Ok(self.as_before(&differing, CHANGED, RevertOutcome::Left));
            }
            if found.uid() != target.uid {
                let differing = places(&lost(body, &found));
                return Ok(if differing.is_empty() {
                    RevertOutcome::Replaced
                } else {
                    RevertOutcome::Left(format!("{target}: another one is in its place, and differs in {differing}"))
                });
            }
            if !found.is_terminating() {
                self.overtake(&found).await?;
                return Ok(RevertOutcome::Nothing);
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
            live = self.cluster.get(&self.address).await?;
        }
        Err(ClusterError::new(
            ErrorKind::Timeout,
            format!("{target} is still being deleted, and cannot be created anew"),
        ))
    }

    /// Removes the finalizer that holds the deletion, and creates the object again once it is gone.
    async fn let_go(&self, finalizer: &str, body: &Value, live: &Arc<Value>) -> Result<RevertOutcome, ClusterError> {
        if live.annotation(MARK) != Some(self.mark) {
            return Ok(RevertOutcome::Left(format!("{} is being deleted by somebody else", self.step.target)));
        }
        release(self.cluster, &self.address, live, finalizer).await?;
        self.recreate(body, self.cluster.get(&self.address).await?).await
    }

    fn as_before(&self, differing: &str, why: &str, reverted: fn(String) -> RevertOutcome) -> RevertOutcome {
        match differing {
            "" => RevertOutcome::Restored,
            places => reverted(format!("{places} of {}: {why}", self.step.target)),
        }
    }

    /// Restores the managers of a re-created object, and removes its mark.
    async fn give_all_back(&self, created: &Value) -> Result<(), ClusterError> {
        let mut operations: Vec<Value> = mark_place().remove(created, 0).into_iter().collect();
        operations.extend(owners::give_all_back(&self.step.owners));
        self.cluster.patch(&self.address, &guarded(created, operations), false).await.map(drop)
    }

    async fn restore(
        &self,
        live: &Arc<Value>,
        alterations: &mut ServerAlterations,
    ) -> Result<RevertOutcome, ClusterError> {
        let target = &self.step.target;
        if live.uid() != target.uid {
            return Ok(RevertOutcome::Gone(format!("{target} is another object of that name")));
        }
        let before = Arc::clone(live);
        let values: Vec<FieldChange> = self.step.values().into_iter().chain(alterations.fields.clone()).collect();
        let is_marked = live.annotation(MARK) == Some(self.mark);
        if !is_marked && self.requester == Requester::LaterRun && alterations.fields.is_empty() {
            self.overtake(live).await?;
            return Ok(if values.iter().any(|field| field.place.get(live) != field.before.as_ref()) {
                RevertOutcome::Left(format!(
                    "{target} does not carry the experiment's mark and has other values than before"
                ))
            } else {
                RevertOutcome::Nothing
            });
        }
        let mut revert_plan = RevertPlan { expected: live.as_ref().clone(), ..RevertPlan::default() };
        // There is no earlier answer about fields that the server altered during the revert: use the owners from then.
        let held = self.step.held.as_ref().unwrap_or(&self.step.owners);
        let held = [&held[..], &alterations.owners[..]].concat();
        values.iter().for_each(|field| self.plan(field, live, &held, &mut revert_plan));
        if let Change::Finalizer(name) | Change::Held { finalizer: name, .. } = &self.step.change {
            revert_plan.operations.extend(without_finalizer(&mut revert_plan.expected, name));
        }
        let restores = !revert_plan.operations.is_empty();
        let mut operations = std::mem::take(&mut revert_plan.operations);
        let mut live = Arc::clone(live);
        if operations.iter().any(|operation| operation["op"] == "add") {
            // A patch makes its sender the owner of what it sets, so managers can be restored only after it. The mark
            // stays until then.
            live = self.cluster.patch(&self.address, &guarded(&live, operations), false).await?.object;
            revert_plan.look(&live);
            operations = Vec::new();
        }
        if let Some(remove) = mark_place().remove(&live, 0).filter(|_| is_marked) {
            Place::perform(&mut revert_plan.expected, &remove);
            operations.push(remove);
        }
        let places = values.iter().map(|field| &field.place);
        let owners = [&self.step.owners[..], &alterations.owners].concat();
        operations.extend(owners::give_back(&live, places, &owners));
        if !operations.is_empty() {
            let answer = self.cluster.patch(&self.address, &guarded(&live, operations), false).await?.object;
            revert_plan.look(&answer);
        }
        if !revert_plan.differing.is_empty() && alterations.fields.is_empty() {
            alterations.owners = owners::of_places(&before, revert_plan.differing.iter().map(|field| &field.place));
            alterations.fields = revert_plan.differing;
            return Err(ClusterError::new(ErrorKind::Conflict, "the server has changed it on the way back"));
        }
        Ok(revert_plan.end(target, restores))
    }

    /// Plans to restore a field's old value; nothing if it has it. A value that is neither that nor ours is recorded.
    fn plan(&self, field: &FieldChange, live: &Value, held: &[Value], revert_plan: &mut RevertPlan) {
        let current = field.place.get(live);
        if current == field.before.as_ref() {
            return;
        }
        if self.requester == Requester::RunAfterUpgrade && owners::is_taken_by_app(live, &field.place, held) {
            revert_plan.released.push(field.place.to_string());
            return;
        }
        // Even the experiment's value may be somebody else's by now: of whoever has applied it since.
        let is_taken = current.is_some() && owners::is_taken(live, &field.place, held);
        let operation = match &field.before {
            _ if current != field.after.as_ref() || is_taken => None,
            Some(value) => field.place.set(&revert_plan.expected, value),
            None => field.place.remove(&revert_plan.expected, field.made_parents),
        };
        match operation {
            Some(operation) => {
                Place::perform(&mut revert_plan.expected, &operation);
                revert_plan.operations.push(operation);
            }
            None => revert_plan.left.push(field.place.to_string()),
        }
    }

    /// In the state that guarded the injection, the dead run's request could still succeed. This moves the
    /// resourceVersion on without changing anything else.
    async fn overtake(&self, live: &Value) -> Result<(), ClusterError> {
        if self.requester != Requester::LaterRun {
            return Ok(());
        }
        let overtaken = format!("overtaken {}", self.mark);
        let marked = if live.annotation(MARK) == Some(&overtaken) {
            // An earlier recovery that began with it was killed as well.
            Arc::new(live.clone())
        } else if live.resource_version() == self.step.target.resource_version {
            let Some(add) = mark_place().set(live, &json!(overtaken)) else { return Ok(()) };
            self.cluster.patch(&self.address, &guarded(live, vec![add]), false).await?.object
        } else {
            return Ok(());
        };
        let Some(remove) = mark_place().remove(&marked, 0) else { return Ok(()) };
        self.cluster.patch(&self.address, &guarded(&marked, vec![remove]), false).await.map(drop)
    }
}

/// Planned revert of one object.
#[derive(Default)]
struct RevertPlan {
    /// The object as it must be afterwards.
    expected: Value,
    /// JSON patch operations of the revert.
    operations: Vec<Value>,
    /// Fields that somebody else has changed since.
    left: Vec<String>,
    /// Fields that the new release sets.
    released: Vec<String>,
    /// Fields that the server altered during the revert: as they must be, and as they are.
    differing: Vec<FieldChange>,
}

impl RevertPlan {
    /// Compares the response: a webhook may have changed what was sent.
    fn look(&mut self, answer: &Value) {
        self.differing = difference::between_contents(&self.expected, answer);
    }

    fn end(self, target: &Target, restores: bool) -> RevertOutcome {
        let mut reasons = Vec::new();
        if !self.left.is_empty() {
            reasons.push(format!("{} of {target}: {CHANGED}", self.left.join(", ")));
        }
        if !self.differing.is_empty() {
            let places = places(&self.differing);
            reasons.push(format!("{places} of {target}: {ALTERED}"));
        }
        match (reasons.is_empty(), self.released.is_empty()) {
            (false, _) if !self.differing.is_empty() => RevertOutcome::Altered(reasons.join("; ")),
            (false, _) => RevertOutcome::Left(reasons.join("; ")),
            (true, false) => {
                RevertOutcome::Released(format!("{} of {target}: as the new release says", self.released.join(", ")))
            }
            (true, true) if restores => RevertOutcome::Restored,
            (true, true) => RevertOutcome::Nothing,
        }
    }
}

fn places(fields: &[FieldChange]) -> String {
    fields.iter().map(|field| field.place.to_string()).collect::<Vec<_>>().join(", ")
}

/// Fields of a deleted object's body that its replacement lacks or changes. Extra fields are its creator's, and rollout
/// counters start again.
fn lost(body: &Value, found: &Value) -> Vec<FieldChange> {
    let revision = Place::keys(["metadata", "annotations", "deployment.kubernetes.io/revision"]);
    let mut lost = difference::between_contents(body, found);
    lost.retain(|field| field.before.is_some() && field.place != revision && field.place != mark_place());
    lost
}

/// Removes a finalizer from an object in this state; nothing if it is not there.
///
/// # Errors
/// The cluster's error; `Conflict` if the object has changed.
pub async fn release(
    cluster: &dyn Cluster,
    address: &Address,
    live: &Value,
    finalizer: &str,
) -> Result<(), ClusterError> {
    let Some(remove) = without_finalizer(&mut live.clone(), finalizer) else { return Ok(()) };
    match cluster.patch(address, &guarded(live, vec![remove]), false).await {
        // It was the last one.
        Err(error) if error.kind == ErrorKind::NotFound => Ok(()),
        done => done.map(drop),
    }
}

fn without_finalizer(object: &mut Value, name: &str) -> Option<Value> {
    let finalizers = object.pointer_mut("/metadata/finalizers")?.as_array_mut()?;
    let index = finalizers.iter().position(|finalizer| finalizer == name)?;
    finalizers.remove(index);
    Some(json!({"op": "remove", "path": format!("/metadata/finalizers/{index}")}))
}
