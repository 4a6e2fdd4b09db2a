//! Makes the changes of an experiment, each guarded by the uid and resourceVersion that were read, and plans them: one
//! file for each family of injection types.

mod admission;
mod created;
mod deleted;
mod fields;
mod held;
mod planning;
mod pods;
mod rights;
mod scope;
mod webhook;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use pushback_cluster::{Address, Cluster, ClusterError, DeleteOptions, ErrorKind, Kinds, Patch};
use pushback_objects::ObjectExt;
use serde_json::{Value, json};

pub use self::admission::{admit, plan};
pub use self::planning::Planned;
pub use self::scope::{ClusterScoped, Refusal, Site};
use super::change::{Change, Step, Target};
use super::journal::IS_OBJECT;
use super::mark::{MARK, mark_place};

/// Most attempts to delete an object that others write at the same time.
const DELETIONS: u32 = 8;

/// An object before a change, and the server's response to the change.
#[derive(Clone, Debug)]
pub struct StateChange {
    /// State before the change.
    pub before: Arc<Value>,
    /// State after the change.
    pub after: Arc<Value>,
}

/// Makes a change, or with `dry_run` only asks the server for the result. `None` if there are not two states to
/// compare: the object is created or deleted.
///
/// # Errors
/// The cluster's error; `Conflict` if the object has changed since it was read.
pub async fn make(
    cluster: &dyn Cluster,
    kinds: &Kinds,
    step: &Step,
    mark: &str,
    dry_run: bool,
) -> Result<Option<StateChange>, ClusterError> {
    let target = &step.target;
    let address = target.address(kinds)?;
    match &step.change {
        Change::Created(body) => {
            cluster.create(&address, &marked_body(body, mark), dry_run).await?;
            Ok(None)
        }
        Change::Deleted(_) | Change::Killed => {
            let killed = step.change == Change::Killed;
            let options = DeleteOptions {
                uid: target.uid.clone(),
                // A Pod's status changes constantly, and none of it is kept.
                resource_version: if killed { String::new() } else { target.resource_version.clone() },
                immediate: killed,
                dry_run,
            };
            cluster.delete(&address, &options).await?;
            Ok(None)
        }
        Change::Fields(_) | Change::Finalizer(_) | Change::Held { .. } => {
            let live = cluster.get(&address).await?.ok_or_else(|| moved(target))?;
            if live.uid() != target.uid || live.resource_version() != target.resource_version {
                return Err(moved(target));
            }
            let operations = operations(step, &live, mark).ok_or_else(|| {
                ClusterError::new(
                    ErrorKind::Invalid,
                    format!("{target}: there is something else in the place of the field"),
                )
            })?;
            let after = cluster.patch(&address, &guarded(&live, operations), dry_run).await?.object;
            if matches!(step.change, Change::Held { .. }) {
                delete_held(cluster, &address, if dry_run { &live } else { &after }, dry_run).await?;
            }
            Ok(Some(StateChange { before: live, after }))
        }
    }
}

fn operations(step: &Step, live: &Value, mark: &str) -> Option<Vec<Value>> {
    let mut operations = match &step.change {
        Change::Fields(fields) => fields
            .iter()
            .map(|field| match &field.after {
                Some(value) => field.place.set(live, value),
                None => field.place.remove(live, 0),
            })
            .collect::<Option<Vec<Value>>>()?,
        Change::Finalizer(name) | Change::Held { finalizer: name, .. } => {
            vec![match live.pointer("/metadata/finalizers") {
                Some(Value::Array(_)) => json!({"op": "add", "path": "/metadata/finalizers/-", "value": name}),
                _ => json!({"op": "add", "path": "/metadata/finalizers", "value": [name]}),
            }]
        }
        Change::Created(_) | Change::Deleted(_) | Change::Killed => Vec::new(),
    };
    operations.push(mark_place().set(live, &json!(mark))?);
    Some(operations)
}

/// Deletes an object that a finalizer holds. Its resourceVersion guards the request, so that one that is late cannot
/// delete what a recovery has restored; the operator may write in between.
async fn delete_held(
    cluster: &dyn Cluster,
    address: &Address,
    marked: &Value,
    dry_run: bool,
) -> Result<(), ClusterError> {
    let mut resource_version = marked.resource_version().to_owned();
    for _ in 1..DELETIONS {
        let options =
            DeleteOptions { uid: marked.uid().to_owned(), resource_version, dry_run, ..DeleteOptions::default() };
        match cluster.delete(address, &options).await {
            Err(error) if error.kind == ErrorKind::Conflict => {}
            done => return done.map(drop),
        }
        let live = cluster.get(address).await?.filter(|live| live.uid() == marked.uid());
        let live = live.filter(|live| dry_run || live.annotation(MARK) == marked.annotation(MARK));
        resource_version = live.ok_or_else(|| moved(&Target::of(marked)))?.resource_version().to_owned();
    }
    Err(moved(&Target::of(marked)))
}

/// A JSON patch that fails if the object is no longer in this state.
#[must_use]
pub fn guarded(live: &Value, operations: Vec<Value>) -> Patch {
    let mut all = vec![
        json!({"op": "replace", "path": "/metadata/uid", "value": live.uid()}),
        json!({"op": "replace", "path": "/metadata/resourceVersion", "value": live.resource_version()}),
    ];
    all.extend(operations);
    Patch::Json(Value::Array(all))
}

fn marked_body(body: &Value, mark: &str) -> Value {
    let mut body = body.clone();
    for (field, value) in [("annotations", mark), ("labels", IS_OBJECT)] {
        if let Some(map) = body.metadata_map_mut(field) {
            map.insert(MARK.to_owned(), value.into());
        }
    }
    body
}

/// The error for an object that is not as it was looked at.
#[must_use]
pub fn moved(target: &Target) -> ClusterError {
    ClusterError::new(ErrorKind::Conflict, format!("{target} has changed since it was looked at"))
}

/// Whether an injection that was answered with an error was made all the same; reads the object.
///
/// # Errors
/// The cluster's error.
pub async fn was_made(cluster: &dyn Cluster, kinds: &Kinds, step: &Step, mark: &str) -> Result<bool, ClusterError> {
    let live = cluster.get(&step.target.address(kinds)?).await?;
    Ok(match (&step.change, live) {
        (Change::Deleted(_) | Change::Killed, live) => {
            live.is_none_or(|live| live.uid() != step.target.uid || live.is_terminating())
        }
        (Change::Held { .. }, live) => {
            live.is_none_or(|live| live.is_terminating() && live.annotation(MARK) == Some(mark))
        }
        (_, live) => live.is_some_and(|live| live.annotation(MARK) == Some(mark)),
    })
}
