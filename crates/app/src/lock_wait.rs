//! Waiting for the lock of another run. An observer measures expiry on its own clock, never by comparing the clocks of
//! two machines.

use std::time::Duration;

use pushback_cluster::Cluster;
use pushback_system::environment::{Environment, boot_clock};

use super::lock::LockEntry;
use super::record::{AppError, AppName, Record, reread};

/// Interval at which an observer polls a held lock.
const POLL: Duration = Duration::from_millis(500);

/// Waits until the record's lock is free or expired, for at most `patience`.
/// Returns the record as last read; `None` if it was deleted meanwhile.
/// A lock of this `run` counts as free: it was taken by a request whose answer was lost.
///
/// # Errors
/// [`AppError::Locked`] if patience runs out; the cluster's errors.
pub async fn until_free(
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
    let mut is_reported = false;
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
        if !is_reported {
            on_wait(&lock);
            is_reported = true;
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

    /// Waits as `run` while `holder` holds the lock of a new app.
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
        until_free(&cluster, &app, record, &environment, run, patience, |_| {}).await
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
