//! The lock inside the record: who holds it, and for how long.

use std::time::Duration;

use pushback_system::environment::{Environment, process_is_gone};
use serde::{Deserialize, Serialize};

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
        let Self { holder, host, process, run, .. } = self;
        format!("{holder} on {host} (process {process}, run {run}), since {}", self.since_words())
    }

    /// `2026-11-29 14:10:05 UTC`; a time in another form stays as it is.
    fn since_words(&self) -> String {
        let words = || {
            let (day, time) = self.since.strip_suffix('Z')?.split_once('T')?;
            Some(format!("{day} {} UTC", time.split('.').next().unwrap_or(time)))
        };
        words().unwrap_or_else(|| self.since.clone())
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

#[cfg(test)]
mod tests {
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
    fn holder_is_described_with_a_time_that_people_read() {
        let entry = |since: &str| LockEntry {
            holder: "me".to_owned(),
            host: "laptop".to_owned(),
            process: 7,
            run: "r".to_owned(),
            since: since.to_owned(),
            ..LockEntry::default()
        };
        let described = entry("2026-11-29T14:10:05.123456Z").describe();
        assert_eq!(described, "me on laptop (process 7, run r), since 2026-11-29 14:10:05 UTC");
        assert!(entry("yesterday").describe().ends_with("since yesterday"));
    }

    #[test]
    fn no_observer_counts_a_shorter_lease_than_the_holder() {
        let lease = |millis| LockEntry::new(&Environment::fixed(1), "r", Duration::from_millis(millis)).lease();
        assert_eq!([0, 1, 1000, 1001, 2500].map(lease).map(|lease| lease.as_secs()), [1, 1, 1, 2, 3]);
    }
}
