//! The lock inside the record: who holds it, and when another run may take it over.
//! An observer measures expiry on its own clock, never by comparing the clocks of two machines.

use std::time::Duration;

use pushback_cluster::Cluster;
use pushback_system::environment::{Environment, boot_clock, process_is_gone};
use serde::{Deserialize, Serialize};

use super::record::{AppError, AppName, Record, reread};

/// Interval at which an observer polls a held lock.
const POLL: Duration = Duration::from_millis(500);

/// The holder of the lock.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LockEntry {
    /// User name of the holder.
    pub holder: String,
    /// Host name.
    pub host: String,
    /// Boot and process id namespace of the host.
    pub boot: String,
    /// Process id.
    pub process: u32,
    /// Run id.
    pub run: String,
    /// Start of the run by the holder's clock, RFC 3339; for display only.
    pub since: String,
    /// Length of the lease: the lock expires if it is not renewed for so long.
    pub lease_seconds: u64,
    /// Number of renewals so far.
    pub renewals: u64,
}

impl LockEntry {
    /// A new lock of this process.
    #[must_use]
    pub fn new(environment: &Environment, run: &str, lease: Duration) -> Self {
        Self {
            holder: environment.user.clone(),
            host: environment.host.clone(),
            boot: environment.boot.clone(),
            process: environment.process,
            run: run.to_owned(),
            since: environment.now(),
            // Rounded up: an observer must never count a shorter lease than the holder.
            lease_seconds: (lease.as_secs() + u64::from(lease.subsec_nanos() > 0)).max(1),
            renewals: 0,
        }
    }

    /// Length of the lease, as holder and observers count it.
    #[must_use]
    pub fn lease(&self) -> Duration {
        Duration::from_secs(self.lease_seconds)
    }

    /// Describes the holder: user, host, process, run and start.
    #[must_use]
    pub fn describe(&self) -> String {
        format!("{} on {} (process {}, run {}), since {}", self.holder, self.host, self.process, self.run, self.since)
    }

    /// Whether the holder was a process of this machine and boot, and has ended.
    #[must_use]
    pub fn holder_is_gone(&self, environment: &Environment) -> bool {
        !self.boot.is_empty()
            && self.boot == environment.boot
            && self.host == environment.host
            && self.process != environment.process
            && process_is_gone(self.process)
    }
}

/// Waits until the record's lock is free or expired, for at most `patience`.
/// Returns the record as last read; `None` if it was deleted meanwhile.
/// A lock of this `run` counts as free: it was taken by a request whose answer was lost.
///
/// # Errors
/// [`AppError::Locked`] if patience runs out; the cluster's errors.
pub async fn wait_until_free(
    cluster: &dyn Cluster,
    app: &AppName,
    record: Record,
    environment: &Environment,
    run: &str,
    patience: Duration,
    mut on_wait: impl FnMut(&LockEntry),
) -> Result<Option<Record>, AppError> {
    let started = boot_clock();
    let mut record = record;
    let mut unchanged_since = started;
    let mut told = false;
    loop {
        let Some(lock) = record.lock.clone() else { return Ok(Some(record)) };
        let now = boot_clock();
        let expired = now.saturating_sub(unchanged_since) >= lock.lease();
        if expired || lock.run == run || lock.holder_is_gone(environment) {
            return Ok(Some(record));
        }
        if now.saturating_sub(started) >= patience {
            return Err(AppError::Locked { app: app.name.clone(), holder: lock.describe() });
        }
        if !told {
            on_wait(&lock);
            told = true;
        }
        // Wake no later than the next decision is due. Saturating: the record may contain any number.
        let expiry = unchanged_since.saturating_add(lock.lease());
        let left = expiry.min(started.saturating_add(patience)).saturating_sub(now);
        tokio::time::sleep(POLL.min(left.max(Duration::from_millis(10)))).await;
        match reread(cluster, &record.address).await? {
            None => return Ok(None),
            Some(seen) => {
                if seen.lock.as_ref() != Some(&lock) {
                    unchanged_since = boot_clock();
                }
                record = seen;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use pushback_cluster::Address;

    use super::super::record::{OwnPart, Phase, RecordWrite, config_map_kind};
    use super::*;

    #[test]
    fn only_a_dead_process_of_the_same_host_and_boot_is_gone() {
        let environment = Environment::fixed(1);
        // Above every platform's limit, so it never exists.
        let dead = i32::MAX.unsigned_abs();
        let lock = LockEntry { process: dead, ..LockEntry::new(&environment, "r", Duration::from_secs(15)) };
        assert!(lock.holder_is_gone(&environment));
        assert!(!LockEntry { boot: "other".to_owned(), ..lock.clone() }.holder_is_gone(&environment));
        assert!(!LockEntry { host: "other".to_owned(), ..lock.clone() }.holder_is_gone(&environment));
        assert!(!LockEntry { boot: String::new(), ..lock.clone() }.holder_is_gone(&environment));
        assert!(!LockEntry { process: std::process::id(), ..lock }.holder_is_gone(&environment));
    }

    #[test]
    fn no_observer_counts_a_shorter_lease_than_the_holder() {
        let lease = |millis| LockEntry::new(&Environment::fixed(1), "r", Duration::from_millis(millis)).lease();
        assert_eq!([0, 1, 1000, 1001, 2500].map(lease).map(|lease| lease.as_secs()), [1, 1, 1, 2, 3]);
    }

    /// How waiting ends for `run` while `holder` holds the lock of a new app.
    async fn wait_for_lock_of(
        holder: &str,
        lease: Duration,
        run: &str,
        patience: Duration,
    ) -> Result<Option<Record>, AppError> {
        let directory = tempfile::tempdir().unwrap();
        let cluster = pushback_cluster::directory::DirectoryCluster::open(directory.path()).unwrap();
        let environment = Environment::fixed(1);
        let app = AppName { name: "shop".to_owned(), namespace: "default".to_owned() };
        let write = RecordWrite {
            spec: serde_json::Map::new(),
            own: OwnPart::new(Phase::Applying, holder),
            lock: Some(LockEntry::new(&environment, holder, lease)),
            inline_inventory: None,
            labels: Vec::new(),
        };
        let address = Address::new(config_map_kind(), &app.namespace, &app.name);
        let record = write.create(&cluster, &app, &address).await.unwrap();
        wait_until_free(&cluster, &app, record, &environment, run, patience, |_| {}).await
    }

    #[tokio::test]
    async fn a_lease_without_an_end_is_waited_for_no_longer_than_asked() {
        let lease = Duration::from_secs(u64::MAX);
        let waited = wait_for_lock_of("other", lease, "mine", Duration::from_millis(20)).await;
        assert!(matches!(waited, Err(AppError::Locked { .. })));
    }

    #[tokio::test]
    async fn a_run_that_already_holds_the_lock_does_not_wait_for_itself() {
        let lease = Duration::from_secs(15);
        assert!(wait_for_lock_of("mine", lease, "mine", Duration::ZERO).await.is_ok_and(|record| record.is_some()));
        let another = wait_for_lock_of("mine", lease, "another", Duration::ZERO).await;
        assert!(matches!(another, Err(AppError::Locked { .. })));
    }
}
