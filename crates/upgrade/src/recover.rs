//! Reverts what killed runs have left: by their journals, and under the locks of their namespaces, so that a live run
//! is never touched. Idempotent.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use pushback_app::lease::LockOptions;
use pushback_cluster::{Address, Cluster, ClusterError, DeleteOptions, ErrorKind, Kind, Kinds};
use pushback_objects::ObjectExt;
use pushback_system::environment::Environment;
use serde_json::Value;

use super::journal::{IS_OBJECT, Journals, StoredJournal, find, marked};
use super::lock::{LockError, Locks, orphaned};
use super::mark::MARK;
use super::revert::{Requester, RevertOutcome, revert};

/// Kinds of the objects that experiments create.
const CREATED: [(&str, &str, &str); 2] = [("networking.k8s.io", "v1", "NetworkPolicy"), ("", "v1", "ResourceQuota")];

/// What killed runs have left in a cluster.
#[derive(Clone, Default)]
pub struct Leftovers {
    /// Journals of killed runs.
    pub found: Journals,
    /// Objects that experiments created, with or without a journal.
    created: Vec<(Arc<Kind>, Arc<Value>)>,
    /// Namespaces with a stale lock.
    locked: BTreeSet<String>,
}

impl fmt::Debug for Leftovers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leftovers")
            .field("found", &self.found)
            .field("created", &self.created.len())
            .finish_non_exhaustive()
    }
}

impl Leftovers {
    /// Whether nothing is left.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.found.is_empty() && self.created.is_empty() && self.locked.is_empty()
    }

    /// Namespaces with something left.
    #[must_use]
    pub fn namespaces(&self) -> BTreeSet<String> {
        let journals = self.found.journals.iter().map(|stored| stored.address.namespace.clone());
        let unreadable = self.found.unreadable.iter().map(|unreadable| unreadable.namespace.clone());
        let created = self.created.iter().map(|(_, object)| object.namespace().to_owned());
        journals.chain(unreadable).chain(created).chain(self.locked.iter().cloned()).collect()
    }

    /// One line per item, without values.
    #[must_use]
    pub fn describe(&self) -> Vec<String> {
        let journals = self.found.journals.iter().map(|stored| {
            let journal = &stored.journal;
            let steps: Vec<String> = journal.steps.iter().map(super::change::Step::describe).collect();
            format!("{} ({}), run {}: {}", journal.experiment, journal.injection, journal.run, steps.join("; "))
        });
        let unreadable = self.found.unreadable.iter().map(|bad| format!("{} cannot be read: {}", bad.name, bad.reason));
        let strays = self
            .strays()
            .map(|(kind, object)| format!("{} {}/{}, without a journal", kind.kind, object.namespace(), object.name()));
        let locks = self.locked.iter().map(|namespace| format!("the lock of namespace {namespace}"));
        journals.chain(unreadable).chain(strays).chain(locks).collect()
    }

    /// Created objects without a journal: the request arrived after its run was given up.
    fn strays(&self) -> impl Iterator<Item = &(Arc<Kind>, Arc<Value>)> {
        let names: BTreeMap<&str, &StoredJournal> =
            self.found.journals.iter().map(|stored| (stored.address.name.as_str(), stored)).collect();
        self.created.iter().filter(move |(_, object)| {
            object
                .annotation(MARK)
                .and_then(|mark| mark.split(':').next())
                .is_some_and(|name| !names.contains_key(name))
        })
    }
}

/// Finds what is left in these namespaces, or everywhere if none is given.
///
/// # Errors
/// The cluster's error.
pub async fn look(
    cluster: &dyn Cluster,
    kinds: &Kinds,
    environment: &Environment,
    namespaces: Option<&[String]>,
) -> Result<Leftovers, ClusterError> {
    // Objects first: the journal of a live run is written before its object and deleted after it.
    let mut created = Vec::new();
    for (group, version, kind) in CREATED {
        let Some(kind) = kinds.find(group, version, kind) else { continue };
        let objects = marked(cluster, kind, namespaces, IS_OBJECT).await?;
        created.extend(objects.into_iter().map(|object| (Arc::clone(kind), object)));
    }
    let locked = orphaned(cluster, kinds, environment, namespaces).await?;
    Ok(Leftovers { found: find(cluster, kinds, namespaces).await?, created, locked })
}

/// Result of a recovery.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecoveryReport {
    /// What was reverted, or was already as before.
    pub done: Vec<String>,
    /// What differs from before and was left as it is.
    pub left: Vec<String>,
    /// What could not be reverted; its journal is kept.
    pub failed: Vec<String>,
}

/// Reverts what is left in these namespaces, under their locks. The journal of anything that differs from before is
/// kept, unless differences are accepted.
///
/// # Errors
/// [`LockError::Held`] by a live run.
pub async fn recover(
    cluster: &Arc<dyn Cluster>,
    environment: &Environment,
    run: &str,
    namespaces: &BTreeSet<String>,
    terms: LockOptions,
    accept: bool,
) -> Result<RecoveryReport, LockError> {
    let failed =
        |error| LockError::Cluster { namespace: namespaces.iter().cloned().collect::<Vec<_>>().join(", "), error };
    let kinds = cluster.kinds().await.map_err(failed)?;
    let locks = Locks::take(cluster, &kinds, environment, run, namespaces, terms).await?;
    let names: Vec<String> = namespaces.iter().cloned().collect();
    // Read again: a live run may have ended since.
    let recovered = match look(&**cluster, &kinds, environment, Some(&names)).await {
        Ok(left) => Ok(take_back(&**cluster, &kinds, &left, accept).await),
        Err(error) => Err(failed(error)),
    };
    locks.release().await;
    recovered
}

async fn take_back(cluster: &dyn Cluster, kinds: &Kinds, left: &Leftovers, accept: bool) -> RecoveryReport {
    let mut recovered = RecoveryReport::default();
    for unreadable in &left.found.unreadable {
        recovered.failed.push(format!("{}: {}", unreadable.name, unreadable.reason));
    }
    for stored in &left.found.journals {
        let (failed, changed) = (recovered.failed.len(), recovered.left.len());
        let kept = |why: &str| format!("{why}; {} says what was before", stored.address);
        recovered.left.extend(stored.altered.iter().map(|why| kept(why)));
        let mut altered = Vec::new();
        for step in stored.journal.steps.iter().rev() {
            let what = format!("{}: {}", stored.journal.experiment, step.describe());
            if !stays_inside(stored, step) {
                recovered.failed.push(format!("{what}: its journal is in another namespace"));
                continue;
            }
            match revert(cluster, kinds, step, &stored.mark, Requester::LaterRun).await {
                Ok(RevertOutcome::Restored) => recovered.done.push(format!("{what}: taken back")),
                // An earlier revert has recorded the differences.
                Ok(RevertOutcome::Nothing) if !stored.altered.is_empty() => {}
                Ok(RevertOutcome::Nothing) => recovered.done.push(format!("{what}: is as before")),
                Ok(RevertOutcome::Replaced) => recovered.done.push(format!("{what}: another one is in its place")),
                Ok(RevertOutcome::Left(why) | RevertOutcome::Gone(why) | RevertOutcome::Released(why)) => {
                    recovered.left.push(kept(&why));
                }
                Ok(RevertOutcome::Altered(why)) => {
                    if !stored.altered.contains(&why) {
                        recovered.left.push(kept(&why));
                    }
                    altered.push(why);
                }
                Err(error) => recovered.failed.push(format!("{what}: {error}")),
            }
        }
        if let Err(error) = stored.note_altered(cluster, &altered).await {
            recovered.failed.push(format!("{}: {error}", stored.address));
        }
        let is_settled = recovered.failed.len() == failed && (accept || recovered.left.len() == changed);
        if is_settled && let Err(error) = stored.remove(cluster).await {
            recovered.failed.push(format!("{}: {error}", stored.address));
        }
    }
    for (kind, object) in left.strays() {
        let address = Address::new(Arc::clone(kind), object.namespace(), object.name());
        let options = DeleteOptions { uid: object.uid().to_owned(), ..DeleteOptions::default() };
        match cluster.delete(&address, &options).await {
            Ok(_) => recovered.done.push(format!("{address}: deleted")),
            Err(error) if matches!(error.kind, ErrorKind::NotFound | ErrorKind::Conflict) => {}
            Err(error) => recovered.failed.push(format!("{address}: {error}")),
        }
    }
    recovered
}

/// Somebody who may write ConfigMaps in one namespace must not use the permissions of whoever recovers to change other
/// namespaces.
fn stays_inside(stored: &StoredJournal, step: &super::change::Step) -> bool {
    use super::change::Change;
    let namespace = &step.target.namespace;
    match &step.change {
        // Guarded by a mark that only somebody who may write the object can have set.
        Change::Fields(_) | Change::Finalizer(_) => namespace.is_empty() || *namespace == stored.address.namespace,
        Change::Created(_) | Change::Killed => *namespace == stored.address.namespace,
        // A deleted object has only the journal's word: its body is restored where it says and nowhere else.
        Change::Deleted(body) | Change::Held { body, .. } => {
            *namespace == stored.address.namespace
                && body.namespace() == namespace
                && body.name() == step.target.name
                && body.text("/kind") == step.target.kind
                && stored.address.kind.kind == "Secret"
        }
    }
}
