//! The lock inside the record: who holds it, and when another run may take it over.
//! Expiry is judged by what the observer sees on its own clock, never by comparing clocks of two machines.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::record::{AppError, AppName, Record, reread};
use crate::cluster::Cluster;
use crate::environment::{Environment, boot_clock, process_is_gone};

/// How often an observer looks at a held lock.
const POLL: Duration = Duration::from_millis(500);

/// Who holds the lock.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LockEntry {
    /// User.
    pub holder: String,
    /// Host.
    pub host: String,
    /// Boot and process id namespace of the host.
    pub boot: String,
    /// Process id.
    pub process: u32,
    /// Run id.
    pub run: String,
    /// Start of the run, RFC 3339, by the holder's clock; for people.
    pub since: String,
    /// The lease: not renewed for so long means expired.
    pub lease_seconds: u64,
    /// Counts renewals.
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
            // Rounded up: others must never count less than the holder does.
            lease_seconds: (lease.as_secs() + u64::from(lease.subsec_nanos() > 0)).max(1),
            renewals: 0,
        }
    }

    /// The lease, as holder and observers count it.
    #[must_use]
    pub fn lease(&self) -> Duration {
        Duration::from_secs(self.lease_seconds)
    }

    /// Holder, host, process, run, since when.
    #[must_use]
    pub fn describe(&self) -> String {
        format!("{} on {} (process {}, run {}), since {}", self.holder, self.host, self.process, self.run, self.since)
    }

    /// Whether its process ran on this very machine and boot, and is gone.
    #[must_use]
    pub fn holder_is_gone(&self, environment: &Environment) -> bool {
        !self.boot.is_empty()
            && self.boot == environment.boot
            && self.host == environment.host
            && self.process != environment.process
            && process_is_gone(self.process)
    }
}

/// Waits until the record's lock is free, expired, or `patience` is over.
/// Returns the record as last seen; `None` where it was deleted meanwhile.
/// A lock of this very `run` is free: it was taken by a request whose answer was lost.
///
/// # Errors
/// [`AppError::Locked`] when patience is over; the cluster's errors.
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
        // No later than the moment at which there is something to decide.
        // Whoever may write the record may have written any number into it.
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
    use super::super::record::{OwnPart, Phase, RecordWrite, config_map_kind};
    use super::*;
    use crate::cluster::Address;

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

    #[tokio::test]
    async fn a_lease_without_an_end_is_waited_for_no_longer_than_asked() {
        let directory = tempfile::tempdir().unwrap();
        let cluster = crate::cluster::directory::DirectoryCluster::open(directory.path()).unwrap();
        let environment = Environment::fixed(1);
        let app = AppName { name: "shop".to_owned(), namespace: "default".to_owned() };
        let lock = LockEntry { lease_seconds: u64::MAX, ..LockEntry::new(&environment, "other", Duration::ZERO) };
        let write = RecordWrite {
            spec: serde_json::Map::new(),
            own: OwnPart::new(Phase::Applying, "other"),
            lock: Some(lock),
            inline_inventory: None,
        };
        let address = Address::new(config_map_kind(), &app.namespace, &app.name);
        let record = write.create(&cluster, &app, &address).await.unwrap();
        let patience = Duration::from_millis(20);
        let waited = wait_until_free(&cluster, &app, record, &environment, "mine", patience, |_| {}).await;
        assert!(matches!(waited, Err(AppError::Locked { .. })));
    }

    #[tokio::test]
    async fn a_run_that_already_holds_the_lock_does_not_wait_for_itself() {
        let directory = tempfile::tempdir().unwrap();
        let cluster = crate::cluster::directory::DirectoryCluster::open(directory.path()).unwrap();
        let environment = Environment::fixed(1);
        let app = AppName { name: "shop".to_owned(), namespace: "default".to_owned() };
        let lock = LockEntry::new(&environment, "mine", Duration::from_secs(15));
        let write = RecordWrite {
            spec: serde_json::Map::new(),
            own: OwnPart::new(Phase::Applying, "mine"),
            lock: Some(lock),
            inline_inventory: None,
        };
        let address = Address::new(config_map_kind(), &app.namespace, &app.name);
        let record = write.create(&cluster, &app, &address).await.unwrap();

        let wait = async |run: &str| {
            let patience = Duration::ZERO;
            wait_until_free(&cluster, &app, record.clone(), &environment, run, patience, |_| {}).await
        };
        assert!(wait("mine").await.is_ok_and(|record| record.is_some()));
        assert!(matches!(wait("another").await, Err(AppError::Locked { .. })));
    }
}
