//! The holder's view of its own lease: until when nobody else can have taken the lock, and what to do if the cluster
//! does not respond. Shared by the locks of apps and of experiments.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use pushback_system::environment::boot_clock;

/// Nothing new is started in this last fraction of the lease: a pending write must arrive while the lease holds.
const MARGIN_DIVISOR: u32 = 5;

/// Interval at which the state of the lock is checked.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// How long a holder waits after its lease to learn who holds the lock: as long as a request waits for a server.
const MAX_OUTAGE: Duration = Duration::from_secs(120);

/// How long a lock holds without being renewed, unless the user says otherwise.
pub const DEFAULT_LEASE: Duration = Duration::from_secs(15);

/// How long to wait for another run's lock, beyond this run's lease: so long outlasts a run that was killed.
const BEYOND_THE_LEASE: Duration = Duration::from_secs(5);

/// Options for taking and holding a lock.
#[derive(Clone, Copy, Debug)]
pub struct LockOptions {
    /// How long it holds without being renewed.
    pub lease: Duration,
    /// How long to wait for another run.
    pub patience: Duration,
}

impl LockOptions {
    /// Options with this lease; the default patience outlasts a killed run.
    #[must_use]
    pub fn new(lease: Duration, patience: Option<Duration>) -> Self {
        Self { lease, patience: patience.unwrap_or(lease + BEYOND_THE_LEASE) }
    }
}

impl Default for LockOptions {
    fn default() -> Self {
        Self::new(DEFAULT_LEASE, None)
    }
}

/// The lock was lost: nothing may be written any more.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the lock was lost: another run took it over, or the cluster did not answer for too long")]
pub struct LockLost;

/// The result of one attempt to renew a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renewed {
    /// Granted; the request was sent at this time of the boot clock.
    Since(Duration),
    /// No answer, or not the expected one.
    Unheard,
    /// Another run holds it.
    Lost,
}

/// Renews one kind of lock.
#[async_trait]
pub trait Renew: Send {
    /// Makes one attempt.
    async fn attempt(&mut self) -> Renewed;
}

/// A lease held by this run.
#[derive(Debug)]
pub struct Lease {
    length: Duration,
    /// Milliseconds of the clock until which writing is safe.
    safe_until: AtomicU64,
    lost: AtomicBool,
    clock: fn() -> Duration,
}

impl Lease {
    /// A lease requested at this time of the boot clock.
    #[must_use]
    pub fn taken(at: Duration, length: Duration) -> Self {
        Self::by_clock(at, length, boot_clock)
    }

    /// A lease that never expires: something else keeps others away.
    #[must_use]
    pub fn unlimited() -> Self {
        let lease = Self::taken(Duration::ZERO, Duration::ZERO);
        lease.safe_until.store(u64::MAX, Ordering::Release);
        lease
    }

    fn by_clock(at: Duration, length: Duration, clock: fn() -> Duration) -> Self {
        let lease = Self { length, safe_until: AtomicU64::new(0), lost: AtomicBool::new(false), clock };
        lease.extend(at);
        lease
    }

    /// Whether the lock certainly holds, with a margin for the next write. If not, use [`Self::confirmed`].
    #[must_use]
    pub fn holds(&self) -> bool {
        self.time_left().is_some()
    }

    /// Returns as soon as nothing may be written; pending writes must then be cancelled.
    pub async fn until_uncertain(&self) {
        // In steps: the timer stops while the machine is suspended, and the lease may be renewed or lost.
        while let Some(left) = self.time_left() {
            tokio::time::sleep(left.min(CHECK_INTERVAL)).await;
        }
    }

    /// Returns once the lock certainly holds. A lease that expired while the server did not respond is not yet lost:
    /// another run could not reach the record either. The next renewal settles it, because it requires the exact state
    /// that this run wrote.
    ///
    /// # Errors
    /// [`LockLost`] if another run has taken the lock, or if there is no answer for too long.
    pub async fn confirmed(&self) -> Result<(), LockLost> {
        while self.time_left().is_none() {
            let silent = millis((self.clock)()).saturating_sub(self.safe_until.load(Ordering::Acquire));
            if self.is_lost() || silent >= millis(MAX_OUTAGE) {
                self.lost.store(true, Ordering::Release);
                return Err(LockLost);
            }
            tokio::time::sleep(CHECK_INTERVAL).await;
        }
        Ok(())
    }

    /// Renews the lock every third of the lease, until it is lost or the future is dropped.
    pub async fn keep(&self, lock: &mut dyn Renew) {
        let mut pause = self.length / 3;
        while !self.is_lost() {
            tokio::time::sleep(pause).await;
            // After a failed attempt there is little time left for more.
            pause = if self.renew(lock).await { self.length / 3 } else { self.length / 30 };
        }
    }

    /// Attempts one renewal and returns whether it succeeded. A hanging request is cancelled in time for another.
    pub async fn renew(&self, lock: &mut dyn Renew) -> bool {
        // No answer: retried until the future is dropped.
        match tokio::time::timeout(self.length / 3, lock.attempt()).await.unwrap_or(Renewed::Unheard) {
            Renewed::Since(at) => self.extend(at),
            Renewed::Unheard => return false,
            Renewed::Lost => self.lost.store(true, Ordering::Release),
        }
        !self.is_lost()
    }

    fn extend(&self, at: Duration) {
        self.safe_until.store(millis(at + self.length - self.length / MARGIN_DIVISOR), Ordering::Release);
    }

    fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Acquire)
    }

    /// For how long writing is safe without a renewal; `None` if it is not.
    fn time_left(&self) -> Option<Duration> {
        let left = self.safe_until.load(Ordering::Acquire).checked_sub(millis((self.clock)()))?;
        (left > 0 && !self.is_lost()).then_some(Duration::from_millis(left))
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::cell::OnceCell;

    use tokio::time::Instant;

    use super::*;

    const LENGTH: Duration = Duration::from_secs(15);

    /// Follows the runtime's clock, which these tests pause and advance.
    fn paused_clock() -> Duration {
        thread_local!(static START: OnceCell<Instant> = const { OnceCell::new() });
        START.with(|start| start.get_or_init(Instant::now).elapsed())
    }

    fn lease() -> Lease {
        Lease::by_clock(paused_clock(), LENGTH, paused_clock)
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_begun_in_the_last_fifth_of_a_lease() {
        let lease = lease();
        tokio::time::advance(Duration::from_millis(11_999)).await;
        assert!(lease.holds());
        tokio::time::advance(Duration::from_millis(1)).await;
        assert!(!lease.holds());
        assert!(Lease::unlimited().holds());
    }

    /// A server that does not respond for a while.
    struct Server {
        back: Instant,
        answer: fn() -> Renewed,
        asked: usize,
    }

    #[async_trait]
    impl Renew for Server {
        async fn attempt(&mut self) -> Renewed {
            self.asked += 1;
            if Instant::now() < self.back { std::future::pending().await } else { (self.answer)() }
        }
    }

    fn server(away: u64, answer: fn() -> Renewed) -> Server {
        Server { back: Instant::now() + Duration::from_secs(away), answer, asked: 0 }
    }

    #[tokio::test(start_paused = true)]
    async fn an_outage_is_outlived_for_two_minutes_after_the_lease_and_no_longer() {
        for (away, outlived) in [(20, true), (60, true), (125, true), (145, false)] {
            let lease = lease();
            let mut server = server(away, || Renewed::Since(paused_clock()));
            let confirmed = tokio::select! {
                confirmed = async {
                    lease.until_uncertain().await;
                    lease.confirmed().await
                } => confirmed,
                () = lease.keep(&mut server) => panic!("given up after {} attempts", server.asked),
            };
            assert_eq!((confirmed.is_ok(), lease.holds()), (outlived, outlived), "{away} s");
            assert!(server.asked > 2, "{away} s: {} attempts", server.asked);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_lock_that_another_run_has_taken_is_lost_at_once_and_for_good() {
        let lease = lease();
        lease.keep(&mut server(0, || Renewed::Lost)).await;
        assert!(!lease.holds());
        assert!(!lease.renew(&mut server(0, || Renewed::Since(paused_clock()))).await);
        let before = Instant::now();
        assert_eq!(lease.confirmed().await, Err(LockLost));
        assert_eq!(before.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_renewed_holds_from_the_moment_it_was_asked_for() {
        let lease = lease();
        tokio::time::advance(Duration::from_secs(60)).await;
        let asked_before = || Renewed::Since(paused_clock() - Duration::from_secs(4));
        assert!(lease.renew(&mut server(0, asked_before)).await);
        tokio::time::advance(Duration::from_millis(7_999)).await;
        assert!(lease.holds());
        tokio::time::advance(Duration::from_millis(1)).await;
        assert!(!lease.holds());
    }
}
