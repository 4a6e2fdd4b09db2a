//! Limits concurrent requests. The limit doubles while that costs no time, is halved if the server is busy or becomes
//! much slower, and otherwise grows by one after each window of successes. The server queues requests beyond its seats,
//! so more of them would only wait there; with a high latency most requests are in transit, and more are better.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use super::client::REQUESTS_PER_CONNECTION;

/// A window is overloaded if its mean time exceeds the best one by this factor, and by [`MIN_SLOWDOWN`].
const SLOWDOWN_FACTOR: u32 = 3;

/// Smaller differences are noise of a healthy server.
const MIN_SLOWDOWN: Duration = Duration::from_millis(250);

/// Bounds and initial value of the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Concurrency {
    /// Initial number of concurrent requests.
    pub start: usize,
    /// Minimum number.
    pub min: usize,
    /// Maximum number.
    pub max: usize,
}

impl Default for Concurrency {
    fn default() -> Self {
        // More would begin with opening a second connection.
        Self { start: REQUESTS_PER_CONNECTION, min: 1, max: 256 }
    }
}

/// The limiter that every request but a watch passes.
#[derive(Debug)]
pub(super) struct Limit {
    permits: Arc<Semaphore>,
    bounds: Concurrency,
    state: Mutex<State>,
    /// Signals that queued requests are turned away.
    turned_away: watch::Sender<()>,
}

/// A queued request was turned away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TurnedAway;

#[derive(Debug)]
struct State {
    limit: usize,
    /// Permits to discard when they are returned.
    owed: usize,
    /// Successes since the limit was last adjusted.
    successes: usize,
    /// The meaningful times among them.
    times: Vec<Duration>,
    /// The best mean time of a window so far.
    best: Option<Duration>,
    /// The shortest time of the quickest quarter of a window so far.
    quickest: Option<Duration>,
    /// Whether a request has waited since the limit was last adjusted: a higher limit would be used.
    waited: bool,
    /// Whether the server has never been overloaded.
    never_overloaded: bool,
    /// Incremented with each reduction, so that concurrent requests reduce the limit only once.
    epoch: u64,
}

/// Permission to have one request in flight; returned on drop.
#[derive(Debug)]
pub(super) struct Permit {
    limit: Arc<Limit>,
    permit: Option<OwnedSemaphorePermit>,
    epoch: u64,
}

impl Limit {
    pub(super) fn new(bounds: Concurrency) -> Arc<Self> {
        let min = bounds.min.max(1);
        let max = bounds.max.clamp(min, Semaphore::MAX_PERMITS);
        let start = bounds.start.clamp(min, max);
        Arc::new(Self {
            permits: Arc::new(Semaphore::new(start)),
            bounds: Concurrency { start, min, max },
            state: Mutex::new(State {
                limit: start,
                owed: 0,
                successes: 0,
                times: Vec::new(),
                best: None,
                quickest: None,
                waited: false,
                never_overloaded: true,
                epoch: 0,
            }),
            turned_away: watch::Sender::new(()),
        })
    }

    /// Waits for a permit. Permits are granted in the order of requests.
    pub(super) async fn acquire(self: &Arc<Self>) -> Result<Permit, TurnedAway> {
        // The semaphore is never closed; if it were, requests would run without a limit.
        let permit = match Arc::clone(&self.permits).try_acquire_owned() {
            Ok(permit) => Some(permit),
            Err(_) => {
                let mut turned_away = self.turned_away.subscribe();
                self.state().waited = true;
                tokio::select! {
                    biased;
                    _ = turned_away.changed() => return Err(TurnedAway),
                    permit = Arc::clone(&self.permits).acquire_owned() => permit.ok(),
                }
            }
        };
        let epoch = self.state().epoch;
        Ok(Permit { limit: Arc::clone(self), permit, epoch })
    }

    /// Turns away all queued requests; later ones wait as usual.
    pub(super) fn turn_away(&self) {
        self.turned_away.send_replace(());
    }

    /// The current limit.
    #[cfg(test)]
    fn current(&self) -> usize {
        self.state().limit
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Permit {
    /// Records a success; `time` is given for requests that take comparable time.
    pub(super) fn succeeded(&self, time: Option<Duration>) {
        let mut state = self.limit.state();
        state.successes += 1;
        state.times.extend(time);
        if state.successes < state.limit {
            return;
        }
        let (mean, quick) = (state.mean_time(), state.quick_time());
        let (best, waited) = (state.best, state.waited);
        state.look_anew();
        let much_longer =
            matches!((mean, best), (Some(mean), Some(best)) if mean > best * SLOWDOWN_FACTOR + MIN_SLOWDOWN);
        if much_longer {
            // Consistently slow is normal, and becomes the new reference.
            (state.best, state.quickest) = (mean, quick);
            self.limit.halve(&mut state);
            return;
        }
        state.best = [mean, best].into_iter().flatten().min();
        // Half as long again even for the quickest: the server has begun to queue, and more requests would only lengthen
        // the queue. Others may have waited for a new connection.
        let queues = matches!((quick, state.quickest), (Some(now), Some(best)) if now > best + best / 2);
        state.quickest = [quick, state.quickest].into_iter().flatten().min();
        if waited && !queues {
            let more = if state.never_overloaded { state.limit } else { 1 };
            self.limit.grow(&mut state, more);
        }
    }

    /// Records that the server was busy or did not answer in time.
    pub(super) fn overloaded(&self) {
        let mut state = self.limit.state();
        state.look_anew();
        if self.epoch == state.epoch {
            self.limit.halve(&mut state);
        }
    }
}

impl State {
    fn look_anew(&mut self) {
        self.successes = 0;
        self.times.clear();
        self.waited = false;
    }

    fn mean_time(&self) -> Option<Duration> {
        let count = u32::try_from(self.times.len()).ok()?;
        self.times.iter().sum::<Duration>().checked_div(count)
    }

    /// The longest time of the quickest quarter.
    fn quick_time(&mut self) -> Option<Duration> {
        let quarter = self.times.len() / 4;
        (!self.times.is_empty()).then(|| *self.times.select_nth_unstable(quarter).1)
    }
}

impl Limit {
    fn grow(&self, state: &mut State, more: usize) {
        let more = more.min(self.bounds.max - state.limit);
        state.limit += more;
        let repaid = more.min(state.owed);
        state.owed -= repaid;
        self.permits.add_permits(more - repaid);
    }

    fn halve(&self, state: &mut State) {
        state.epoch += 1;
        state.never_overloaded = false;
        let halved = (state.limit / 2).max(self.bounds.min);
        let fewer = state.limit.saturating_sub(halved);
        state.limit = halved;
        state.owed += fewer - self.permits.forget_permits(fewer);
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut state = self.limit.state();
        if state.owed > 0
            && let Some(permit) = self.permit.take()
        {
            state.owed -= 1;
            permit.forget();
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    fn limit(start: usize, min: usize, max: usize) -> Arc<Limit> {
        Limit::new(Concurrency { start, min, max })
    }

    async fn free_places(limit: &Arc<Limit>) -> usize {
        let mut held = Vec::new();
        while let Some(permit) = limit.acquire().now_or_never() {
            held.push(permit.unwrap());
        }
        held.len()
    }

    #[tokio::test]
    async fn overload_halves_once_for_requests_that_ran_together() {
        let limit = limit(8, 1, 64);
        let mut permits = Vec::new();
        for _ in 0..8 {
            permits.push(limit.acquire().await.unwrap());
        }
        permits.iter().for_each(Permit::overloaded);
        assert_eq!(limit.current(), 4);
        permits.clear();
        assert_eq!(free_places(&limit).await, 4);
    }

    #[tokio::test]
    async fn repeated_overload_never_falls_below_the_minimum() {
        let limit = limit(8, 2, 64);
        for _ in 0..10 {
            limit.acquire().await.unwrap().overloaded();
        }
        assert_eq!(limit.current(), 2);
        assert_eq!(free_places(&limit).await, 2);
    }

    /// Requests sent all at once, within the limit, each taking this long.
    async fn window(limit: &Arc<Limit>, milliseconds: u64) {
        let full = limit.current();
        let mut permits = Vec::new();
        for _ in 0..full {
            permits.push(limit.acquire().await.unwrap());
        }
        assert!(limit.acquire().now_or_never().is_none());
        permits.iter().for_each(|permit| permit.succeeded(Some(Duration::from_millis(milliseconds))));
    }

    #[tokio::test]
    async fn the_limit_doubles_while_answers_take_no_longer_and_then_stays() {
        let limit = limit(8, 1, 40);
        for (milliseconds, expected) in [(100, 16), (140, 32), (160, 32), (140, 40), (100, 40)] {
            window(&limit, milliseconds).await;
            assert_eq!(limit.current(), expected, "after answers that take {milliseconds} ms");
        }
        assert_eq!(free_places(&limit).await, 40);
    }

    #[tokio::test]
    async fn requests_that_wait_for_a_new_connection_do_not_keep_the_limit_from_growing() {
        let limit = limit(4, 1, 32);
        for expected in [8, 16, 32] {
            let full = limit.current();
            let mut permits = Vec::new();
            for _ in 0..full {
                permits.push(limit.acquire().await.unwrap());
            }
            assert!(limit.acquire().now_or_never().is_none());
            for (index, permit) in permits.iter().enumerate() {
                let time = if index < full / 2 { 300 } else { 100 };
                permit.succeeded(Some(Duration::from_millis(time)));
            }
            assert_eq!(limit.current(), expected);
        }
    }

    #[tokio::test]
    async fn answers_that_take_much_longer_than_before_halve_the_limit_and_it_grows_again_by_one() {
        let limit = limit(16, 1, 64);
        for (milliseconds, expected) in [(100, 32), (100, 64), (540, 64), (560, 32), (560, 33), (560, 34), (500, 35)] {
            window(&limit, milliseconds).await;
            assert_eq!(limit.current(), expected, "after answers that take {milliseconds} ms");
        }
        assert_eq!(free_places(&limit).await, 35);
    }

    #[tokio::test]
    async fn many_times_longer_is_no_overload_where_it_is_still_soon() {
        let limit = limit(16, 1, 16);
        window(&limit, 1).await;
        window(&limit, 200).await;
        assert_eq!(limit.current(), 16);
    }

    #[tokio::test]
    async fn after_an_overload_a_window_of_successes_adds_one_place() {
        let limit = limit(8, 1, 64);
        limit.acquire().await.unwrap().overloaded();
        for expected in [5, 6, 7] {
            window(&limit, 10).await;
            assert_eq!(limit.current(), expected);
        }
        assert_eq!(free_places(&limit).await, 7);
    }

    #[tokio::test]
    async fn places_that_nobody_waits_for_do_not_become_more() {
        let limit = limit(2, 1, 8);
        for _ in 0..50 {
            limit.acquire().await.unwrap().succeeded(None);
        }
        assert_eq!(limit.current(), 2);
    }

    #[tokio::test]
    async fn a_request_that_is_given_up_gives_its_place_back() {
        let limit = limit(1, 1, 1);
        let held = limit.acquire().await.unwrap();
        let mut waiting = Box::pin(limit.acquire());
        assert!(waiting.as_mut().now_or_never().is_none());
        drop(waiting);
        drop(held);
        assert_eq!(free_places(&limit).await, 1);
    }

    #[tokio::test]
    async fn who_waits_is_turned_away_and_who_comes_later_is_not() {
        let limit = limit(1, 1, 1);
        let held = limit.acquire().await.unwrap();
        let mut waiting = Box::pin(limit.acquire());
        assert!(waiting.as_mut().now_or_never().is_none());
        limit.turn_away();
        assert_eq!(waiting.await.unwrap_err(), TurnedAway);
        let mut later = Box::pin(limit.acquire());
        assert!(later.as_mut().now_or_never().is_none());
        drop(held);
        assert!(later.await.is_ok());
    }
}
