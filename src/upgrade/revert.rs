//! Takes back what an experiment has changed, by what the cluster holds now and never by what a run remembers: a field
//! gets its old value if it still has ours, and what somebody else has changed since is left.

use std::sync::Arc;
use std::time::Duration;

use pushback_preflight::ObjectExt;
use serde_json::{Value, json};

use super::change::{Change, FieldChange, Step};
use super::inject::{guarded, mark_place};
use super::journal::MARK;
use super::owners;
use crate::cluster::{Address, Cluster, ClusterError, DeleteOptions, ErrorKind, Kinds};

/// How often a write is tried that others get in between of.
const ATTEMPTS: u32 = 8;

/// How often it is looked whether an object that is being deleted is gone, once a second.
const LOOKS: u32 = 30;

/// What became of one change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reverted {
    /// It was taken back.
    Restored,
    /// Nothing was to do: it was never made, or somebody has put it right.
    Nothing,
    /// Another object is in the place of the one that was deleted, its controller's or somebody else's: it stays.
    Replaced,
    /// Somebody has changed the object since, and it is left as it is; in words without values.
    Left(String),
}

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// The run that made the change: the server has answered it.
    ByItsRun,
    /// A later run, which has the journal's word only. It touches nothing that does not carry the journal's mark, and
    /// sees to it that a request of the dead run that is still under way comes too late.
    ByAnother,
}

/// Takes one change back.
///
/// # Errors
/// The cluster's; the change may be there still.
pub async fn revert(
    cluster: &dyn Cluster,
    kinds: &Kinds,
    step: &Step,
    mark: &str,
    asked: Asked,
) -> Result<Reverted, ClusterError> {
    let address = step.target.address(kinds)?;
    let reverting = Reverting { cluster, address, step, mark, asked };
    for _ in 1..ATTEMPTS {
        match reverting.attempt().await {
            // Somebody has written in between: it is looked at again.
            Err(error) if matches!(error.kind, ErrorKind::Conflict | ErrorKind::AlreadyExists) => {}
            done => return done,
        }
    }
    reverting.attempt().await
}

struct Reverting<'a> {
    cluster: &'a dyn Cluster,
    address: Address,
    step: &'a Step,
    mark: &'a str,
    asked: Asked,
}

impl Reverting<'_> {
    async fn attempt(&self) -> Result<Reverted, ClusterError> {
        let live = self.cluster.get(&self.address).await?;
        match (&self.step.change, live) {
            (Change::Killed, _) | (Change::Created(_), None) => Ok(Reverted::Nothing),
            (Change::Created(_), Some(live)) => self.remove_created(&live).await,
            (Change::Deleted(body), live) => self.recreate(body, live).await,
            (Change::Fields(_) | Change::Finalizer(_), None) => {
                Ok(Reverted::Left(format!("{} is gone", self.step.target)))
            }
            (Change::Fields(_) | Change::Finalizer(_), Some(live)) => self.restore(&live).await,
        }
    }

    async fn remove_created(&self, live: &Value) -> Result<Reverted, ClusterError> {
        // By the mark, which names this very journal: another object of that name is not ours.
        if live.annotation(MARK) != Some(self.mark) {
            return Ok(Reverted::Left(format!("{} is not what the experiment created", self.step.target)));
        }
        let options = DeleteOptions { uid: live.uid().to_owned(), ..DeleteOptions::default() };
        match self.cluster.delete(&self.address, &options).await {
            Ok(_) => Ok(Reverted::Restored),
            Err(error) if error.kind == ErrorKind::NotFound => Ok(Reverted::Nothing),
            Err(error) => Err(error),
        }
    }

    async fn recreate(&self, body: &Value, mut live: Option<Arc<Value>>) -> Result<Reverted, ClusterError> {
        let target = &self.step.target;
        for _ in 0..LOOKS {
            let Some(found) = live else {
                let mut body = body.clone();
                // An upgrade may have ended the version in which it was read.
                body["apiVersion"] = json!(self.address.kind.api_version());
                if let Some(annotations) = body.metadata_map_mut("annotations") {
                    annotations.insert(MARK.to_owned(), self.mark.into());
                }
                let created = self.cluster.create(&self.address, &body, false).await?.object;
                self.give_all_back(&created).await?;
                return Ok(Reverted::Restored);
            };
            if found.uid() != target.uid && found.annotation(MARK) == Some(self.mark) {
                // Created by a run that was killed before it could say whose it is.
                self.give_all_back(&found).await?;
                return Ok(Reverted::Restored);
            }
            if found.uid() != target.uid {
                return Ok(Reverted::Replaced);
            }
            if !found.is_terminating() {
                self.overtake(&found).await?;
                return Ok(Reverted::Nothing);
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
            live = self.cluster.get(&self.address).await?;
        }
        Err(ClusterError::new(
            ErrorKind::Timeout,
            format!("{target} is still being deleted, and cannot be created anew"),
        ))
    }

    /// An object that was created again is its managers', and no longer marked.
    async fn give_all_back(&self, created: &Value) -> Result<(), ClusterError> {
        let mut operations: Vec<Value> = mark_place().remove(created, 0).into_iter().collect();
        operations.extend(owners::give_all_back(&self.step.owners));
        self.cluster.patch(&self.address, &guarded(created, operations), false).await.map(drop)
    }

    async fn restore(&self, live: &Arc<Value>) -> Result<Reverted, ClusterError> {
        let target = &self.step.target;
        if live.uid() != target.uid {
            return Ok(Reverted::Left(format!("{target} is another object of that name")));
        }
        let is_marked = live.annotation(MARK) == Some(self.mark);
        if !is_marked && self.asked == Asked::ByAnother {
            self.overtake(live).await?;
            return Ok(match &self.step.change {
                Change::Fields(fields) if fields.iter().any(|field| field.place.get(live) != field.before.as_ref()) => {
                    Reverted::Left(format!(
                        "{target} does not carry the experiment's mark and has other values than before"
                    ))
                }
                _ => Reverted::Nothing,
            });
        }
        let mut left = Vec::new();
        let mut operations = match &self.step.change {
            Change::Fields(fields) => fields.iter().filter_map(|field| operation(field, live, &mut left)).collect(),
            Change::Finalizer(name) => without_finalizer(live, name).into_iter().collect(),
            Change::Created(_) | Change::Deleted(_) | Change::Killed => Vec::new(),
        };
        let restores = !operations.is_empty();
        let mut live = Arc::clone(live);
        if operations.iter().any(|operation| operation["op"] == "add") {
            // A patch makes its sender the owner of what it sets: whose it is can be said only once it is there. The
            // mark stays until then.
            live = self.cluster.patch(&self.address, &guarded(&live, operations), false).await?.object;
            operations = Vec::new();
        }
        operations.extend(mark_place().remove(&live, 0).filter(|_| is_marked));
        if let Change::Fields(fields) = &self.step.change {
            let places = fields.iter().map(|field| &field.place);
            operations.extend(owners::give_back(&live, places, &self.step.owners));
        }
        if !operations.is_empty() {
            self.cluster.patch(&self.address, &guarded(&live, operations), false).await?;
        }
        if left.is_empty() {
            Ok(if restores { Reverted::Restored } else { Reverted::Nothing })
        } else {
            Ok(Reverted::Left(format!("{} of {target}: changed since by somebody else", left.join(", "))))
        }
    }

    /// In the state that the injection was guarded by, the object could still be hit by the dead run's request. Its
    /// resourceVersion is moved on, and nothing else is different afterwards.
    async fn overtake(&self, live: &Value) -> Result<(), ClusterError> {
        if self.asked == Asked::ByItsRun {
            return Ok(());
        }
        let overtaken = format!("overtaken {}", self.mark);
        let marked = if live.annotation(MARK) == Some(&overtaken) {
            // Whoever began with it was killed as well.
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

/// What gives a field its old value; nothing where it has it. Where it has neither, its place is noted.
fn operation(field: &FieldChange, live: &Value, left: &mut Vec<String>) -> Option<Value> {
    let current = field.place.get(live);
    if current == field.before.as_ref() {
        return None;
    }
    // With the value of the experiment it may be somebody else's all the same: of who has applied it since.
    let is_taken = current.is_some() && owners::is_taken(live, &field.place);
    if current != field.after.as_ref() || is_taken {
        left.push(field.place.to_string());
        return None;
    }
    let operation = match &field.before {
        Some(value) => field.place.set(live, value),
        None => field.place.remove(live, field.made_parents),
    };
    if operation.is_none() {
        left.push(field.place.to_string());
    }
    operation
}

fn without_finalizer(live: &Value, name: &str) -> Option<Value> {
    let index = live.pointer("/metadata/finalizers")?.as_array()?.iter().position(|finalizer| finalizer == name)?;
    Some(json!({"op": "remove", "path": format!("/metadata/finalizers/{index}")}))
}
