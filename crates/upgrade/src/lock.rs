//! Allows one run of experiments at a time in a namespace: a Lease that names its holder and is renewed in the
//! background. As with an app's lock, the observer judges expiry by its own clock.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use pushback_app::lease::{Lease, LockLost, LockOptions, Renew, Renewed};
use pushback_app::lock::LockEntry;
use pushback_cluster::{Address, Cluster, ClusterError, DeleteOptions, ErrorKind, Kinds, Patch};
use pushback_objects::ObjectExt;
use pushback_system::environment::{Environment, boot_clock};
use serde_json::{Value, json};

use super::journal::{IS_LOCK, marked};
use super::mark::MARK;

/// Name of the Lease in a namespace.
pub const LEASE: &str = "pushback-experiments";
/// Annotation that names the holder.
const HOLDER: &str = "pushback.dev/lock";
/// Interval between reads of a lock that another run holds.
const POLL: Duration = Duration::from_millis(500);

/// Why a lock could not be taken.
#[derive(Clone, Debug, thiserror::Error)]
pub enum LockError {
    /// Another run holds it.
    #[error("another run of experiments holds namespace {namespace}: {holder}")]
    Held {
        /// Namespace that is locked.
        namespace: String,
        /// Description of the holding run.
        holder: String,
    },
    /// The cluster refused.
    #[error("failed to lock namespace {namespace}: {error}")]
    Cluster {
        /// Namespace to lock.
        namespace: String,
        /// The cluster's error.
        error: ClusterError,
    },
}

impl LockError {
    /// Whether the namespace does not exist.
    #[must_use]
    pub fn is_of_no_namespace(&self) -> bool {
        matches!(self, Self::Cluster { error, .. } if error.kind == ErrorKind::NotFound)
    }
}

/// Locks that a run holds, one per namespace.
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
    /// Takes the locks of these namespaces in sorted order, so that two runs never wait for each other.
    ///
    /// # Errors
    /// [`LockError::Held`] after `patience`; the cluster's error. Locks already taken are released.
    pub async fn take(
        cluster: &Arc<dyn Cluster>,
        kinds: &Kinds,
        environment: &Environment,
        run: &str,
        namespaces: &BTreeSet<String>,
        terms: LockOptions,
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

    /// An empty set of locks.
    #[must_use]
    pub fn none(cluster: &Arc<dyn Cluster>) -> Self {
        Self { cluster: Arc::clone(cluster), held: Vec::new() }
    }

    /// Takes the lock of one more namespace.
    ///
    /// # Errors
    /// As [`Self::take`]; the other locks stay held.
    pub async fn add(
        &mut self,
        kinds: &Kinds,
        environment: &Environment,
        run: &str,
        namespace: &str,
        terms: LockOptions,
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

    /// Waits until every lock is confirmed, through an outage in which nobody else could take one. Called before every
    /// injection; reverts never wait for it.
    ///
    /// # Errors
    /// [`LockLost`] if another run has taken one, or the outage lasts too long.
    pub async fn confirmed(&self) -> Result<(), LockLost> {
        // Repeat in case one expired during the wait for another.
        while !self.held.iter().all(|held| held.lease.holds()) {
            for held in &self.held {
                held.lease.confirmed().await?;
            }
        }
        Ok(())
    }

    /// Releases all locks.
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

/// Deletes the Lease only in the exact state in which it is ours: another run would write its name into the same
/// object.
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
            // A renewal was still in flight.
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
    terms: LockOptions,
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
                // An unreadable holder may mean a permanent lock or a mistake: assume our own lease duration.
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
            // Another run was faster, or the Lease is gone; read it again.
            Err(error)
                if matches!(error.kind, ErrorKind::Conflict | ErrorKind::AlreadyExists | ErrorKind::NotFound)
                    && now.saturating_sub(started) <= terms.patience =>
            {
                if error.kind == ErrorKind::NotFound && live.is_none() {
                    // The namespace does not exist.
                    return Err(failed(error));
                }
                tokio::time::sleep(POLL / 10).await;
            }
            Err(error) => return Err(failed(error)),
        }
    }
}

/// Namespaces whose lock belongs to a process of this machine that no longer runs. Locks of other machines expire by
/// themselves.
///
/// # Errors
/// The cluster's error.
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

/// The part of a Lease that changes with every renewal.
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
    /// Renews the Lease if it is still ours.
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
