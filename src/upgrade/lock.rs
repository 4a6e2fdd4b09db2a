//! One run of experiments at a time in a namespace: a Lease that says who holds it, renewed in the background. As with
//! an app's lock, expiry is judged by what the observer sees on its own clock.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use pushback_preflight::ObjectExt;
use serde_json::{Value, json};

use super::journal::{IS_LOCK, marked};
use super::mark::MARK;
use crate::app::lease::{Lease, LockLost, Renew, Renewed};
use crate::app::lock::LockEntry;
use crate::cluster::{Address, Cluster, ClusterError, DeleteOptions, ErrorKind, Kinds, Patch};
use crate::environment::{Environment, boot_clock};

/// The Lease of a namespace.
pub const LEASE: &str = "pushback-experiments";
/// Who holds it.
const HOLDER: &str = "pushback.dev/lock";
/// How often a held lock is looked at.
const POLL: Duration = Duration::from_millis(500);

/// Why a lock cannot be had.
#[derive(Clone, Debug, thiserror::Error)]
pub enum LockError {
    /// Another run holds it.
    #[error("another run of experiments holds namespace {namespace}: {holder}")]
    Held {
        /// Namespace.
        namespace: String,
        /// Who.
        holder: String,
    },
    /// The cluster refused.
    #[error("failed to lock namespace {namespace}: {error}")]
    Cluster {
        /// Namespace.
        namespace: String,
        /// Its error.
        error: ClusterError,
    },
}

/// How a lock is taken.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// How long it holds without being renewed.
    pub lease: Duration,
    /// How long another run is waited for.
    pub patience: Duration,
}

impl LockError {
    /// Whether the namespace is not there.
    #[must_use]
    pub fn is_of_no_namespace(&self) -> bool {
        matches!(self, Self::Cluster { error, .. } if error.kind == ErrorKind::NotFound)
    }
}

/// Held locks of some namespaces.
#[derive(Debug)]
pub struct Locks {
    cluster: Arc<dyn Cluster>,
    held: Vec<Held>,
}

#[derive(Debug)]
struct Held {
    address: Address,
    run: String,
    lease: Arc<Lease>,
    renewal: tokio::task::JoinHandle<()>,
}

impl Locks {
    /// Takes the locks of these namespaces, in their order: two runs that want the same ones never wait for each other.
    ///
    /// # Errors
    /// [`LockError::Held`] when patience is over; the cluster's. What was taken is given back.
    pub async fn take(
        cluster: &Arc<dyn Cluster>,
        kinds: &Kinds,
        environment: &Environment,
        run: &str,
        namespaces: &BTreeSet<String>,
        terms: Terms,
    ) -> Result<Self, LockError> {
        let mut locks = Self::none(cluster);
        for namespace in namespaces {
            if let Err(error) = locks.add(kinds, environment, run, namespace, terms).await {
                locks.release().await;
                return Err(error);
            }
        }
        Ok(locks)
    }

    /// Not a single one.
    #[must_use]
    pub fn none(cluster: &Arc<dyn Cluster>) -> Self {
        Self { cluster: Arc::clone(cluster), held: Vec::new() }
    }

    /// Takes the lock of one more namespace.
    ///
    /// # Errors
    /// As [`Self::take`]; the others are still held.
    pub async fn add(
        &mut self,
        kinds: &Kinds,
        environment: &Environment,
        run: &str,
        namespace: &str,
        terms: Terms,
    ) -> Result<(), LockError> {
        let kind = kinds.preferred("coordination.k8s.io", "Lease").cloned().ok_or_else(|| LockError::Cluster {
            namespace: namespace.to_owned(),
            error: ClusterError::new(ErrorKind::UnknownKind, "the cluster serves no Lease"),
        })?;
        let address = Address::new(kind, namespace, LEASE).urgent();
        let held = acquire(&*self.cluster, &address, environment, run, terms).await?;
        let lease = Arc::new(Lease::taken(held.at, held.entry.lease()));
        let mut renewal = Renewal {
            cluster: Arc::clone(&self.cluster),
            address: address.clone(),
            entry: held.entry,
            uid: held.object.uid().to_owned(),
        };
        let kept = Arc::clone(&lease);
        let renewal = tokio::spawn(async move { kept.keep(&mut renewal).await });
        self.held.push(Held { address, run: run.to_owned(), lease, renewal });
        Ok(())
    }

    /// Returns when every lock holds for certain: an outage in which nobody could take one is waited for. Asked before
    /// every injection; taking back never waits for it.
    ///
    /// # Errors
    /// [`LockLost`] where another run has taken one, or nothing is heard for too long.
    pub async fn confirmed(&self) -> Result<(), LockLost> {
        // Once more where one ran out while another was waited for.
        while !self.held.iter().all(|held| held.lease.holds()) {
            for held in &self.held {
                held.lease.confirmed().await?;
            }
        }
        Ok(())
    }

    /// Gives them back.
    pub async fn release(mut self) {
        for held in std::mem::take(&mut self.held) {
            held.renewal.abort();
            // One that cannot be deleted expires.
            let _ = give_back(&*self.cluster, &held).await;
        }
    }
}

impl Drop for Locks {
    fn drop(&mut self) {
        self.held.iter().for_each(|held| held.renewal.abort());
    }
}

/// Deletes the Lease in the very state in which it is ours: another run writes its name into the same object.
async fn give_back(cluster: &dyn Cluster, held: &Held) -> Result<(), ClusterError> {
    loop {
        let Some(live) = cluster.get(&held.address).await? else { return Ok(()) };
        if holder(&live).is_none_or(|holder| holder.run != held.run) {
            return Ok(());
        }
        let options = DeleteOptions {
            uid: live.uid().to_owned(),
            resource_version: live.resource_version().to_owned(),
            ..DeleteOptions::default()
        };
        match cluster.delete(&held.address, &options).await {
            // A renewal was still under way.
            Err(error) if error.kind == ErrorKind::Conflict => {}
            done => return done.map(|_| ()),
        }
    }
}

struct Acquired {
    object: Arc<Value>,
    entry: LockEntry,
    at: Duration,
}

async fn acquire(
    cluster: &dyn Cluster,
    address: &Address,
    environment: &Environment,
    run: &str,
    terms: Terms,
) -> Result<Acquired, LockError> {
    let failed = |error| LockError::Cluster { namespace: address.namespace.clone(), error };
    let entry = LockEntry::new(environment, run, terms.lease);
    let started = boot_clock();
    let mut seen: Option<(Value, Duration)> = None;
    loop {
        let live = cluster.get(address).await.map_err(failed)?;
        let now = boot_clock();
        let taken = match &live {
            None => cluster.create(address, &lease(address, &entry), false).await,
            Some(live) => {
                let holder = holder(live);
                let unchanged_since = match &seen {
                    Some((state, since)) if *state == state_of(live) => *since,
                    _ => now,
                };
                seen = Some((state_of(live), unchanged_since));
                // Whoever wrote something else there meant to hold it for ever, or by accident: the same lease as ours.
                let lease = holder.as_ref().map_or(terms.lease, LockEntry::lease);
                let is_free =
                    holder.as_ref().is_some_and(|holder| holder.run == run || holder.holder_is_gone(environment))
                        || now.saturating_sub(unchanged_since) >= lease;
                if !is_free {
                    if now.saturating_sub(started) >= terms.patience {
                        let holder = holder.map_or_else(|| "somebody unknown".to_owned(), |holder| holder.describe());
                        return Err(LockError::Held { namespace: address.namespace.clone(), holder });
                    }
                    tokio::time::sleep(POLL).await;
                    continue;
                }
                cluster.patch(address, &renewed(live.uid(), live.resource_version(), &entry), false).await
            }
        };
        match taken {
            Ok(written) => return Ok(Acquired { object: written.object, entry, at: now }),
            // Another run was faster, or the lease has gone; it is looked at again.
            Err(error)
                if matches!(error.kind, ErrorKind::Conflict | ErrorKind::AlreadyExists | ErrorKind::NotFound)
                    && now.saturating_sub(started) <= terms.patience =>
            {
                if error.kind == ErrorKind::NotFound && live.is_none() {
                    // The namespace is missing.
                    return Err(failed(error));
                }
                tokio::time::sleep(POLL / 10).await;
            }
            Err(error) => return Err(failed(error)),
        }
    }
}

/// Namespaces whose lock a process of this machine holds that is gone. Locks of other machines expire by themselves.
///
/// # Errors
/// The cluster's.
pub async fn orphaned(
    cluster: &dyn Cluster,
    kinds: &Kinds,
    environment: &Environment,
    namespaces: Option<&[String]>,
) -> Result<BTreeSet<String>, ClusterError> {
    let Some(kind) = kinds.preferred("coordination.k8s.io", "Lease") else { return Ok(BTreeSet::new()) };
    let leases = marked(cluster, kind, namespaces, IS_LOCK).await?;
    let is_orphaned = |lease: &Value| holder(lease).is_some_and(|holder| holder.holder_is_gone(environment));
    Ok(leases.iter().filter(|lease| is_orphaned(lease)).map(|lease| lease.namespace().to_owned()).collect())
}

/// What changes with every renewal.
fn state_of(lease: &Value) -> Value {
    json!([lease.uid(), lease.annotation(HOLDER)])
}

fn holder(lease: &Value) -> Option<LockEntry> {
    serde_json::from_str(lease.annotation(HOLDER)?).ok()
}

fn text(entry: &LockEntry) -> String {
    serde_json::to_string(entry).unwrap_or_default()
}

fn lease(address: &Address, entry: &LockEntry) -> Value {
    json!({
        "apiVersion": address.kind.api_version(),
        "kind": "Lease",
        "metadata": {
            "namespace": address.namespace,
            "name": address.name,
            "labels": {MARK: IS_LOCK},
            "annotations": {HOLDER: text(entry)},
        },
        "spec": {"holderIdentity": entry.run, "leaseDurationSeconds": entry.lease_seconds.min(3600)},
    })
}

fn renewed(uid: &str, resource_version: &str, entry: &LockEntry) -> Patch {
    Patch::Merge(json!({
        "metadata": {"uid": uid, "resourceVersion": resource_version, "annotations": {HOLDER: text(entry)}},
        "spec": {"holderIdentity": entry.run, "leaseDurationSeconds": entry.lease_seconds.min(3600)},
    }))
}

struct Renewal {
    cluster: Arc<dyn Cluster>,
    address: Address,
    entry: LockEntry,
    uid: String,
}

#[async_trait]
impl Renew for Renewal {
    /// Renews it if it is still ours.
    async fn attempt(&mut self) -> Renewed {
        let asked = boot_clock();
        let live = match self.cluster.get(&self.address).await {
            Ok(Some(live)) => live,
            Ok(None) => return Renewed::Lost,
            Err(_) => return Renewed::Unheard,
        };
        if live.uid() != self.uid || holder(&live).is_none_or(|holder| holder.run != self.entry.run) {
            return Renewed::Lost;
        }
        self.entry.renewals += 1;
        let patch = renewed(live.uid(), live.resource_version(), &self.entry);
        match self.cluster.patch(&self.address, &patch, false).await {
            Ok(_) => Renewed::Since(asked),
            Err(_) => Renewed::Unheard,
        }
    }
}
