//! How many requests may be under way at once: halved when the server is busy, one more after each window of successes.
//! The server's own fairness queues requests beyond its seats, so more of them would only wait there.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bounds and start of the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Concurrency {
    /// Requests at once, at first.
    pub start: usize,
    /// Never fewer.
    pub min: usize,
    /// Never more.
    pub max: usize,
}

impl Default for Concurrency {
    fn default() -> Self {
        Self { start: 32, min: 1, max: 64 }
    }
}

/// The gate that every request but a watch passes.
#[derive(Debug)]
pub(super) struct Limit {
    permits: Arc<Semaphore>,
    bounds: Concurrency,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    limit: usize,
    /// Permits that are to vanish when they come back.
    owed: usize,
    /// Successes since the limit last changed.
    successes: usize,
    /// Grows with each halving, so that requests that ran together halve it once.
    epoch: u64,
}

/// The right to have one request under way; given back on drop.
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
            state: Mutex::new(State { limit: start, owed: 0, successes: 0, epoch: 0 }),
        })
    }

    /// Waits for a place. Places are given in the order of asking.
    pub(super) async fn acquire(self: &Arc<Self>) -> Permit {
        // The semaphore is never closed; were it, requests would go on without a limit.
        let permit = Arc::clone(&self.permits).acquire_owned().await.ok();
        let epoch = self.state().epoch;
        Permit { limit: Arc::clone(self), permit, epoch }
    }

    /// The limit of the moment.
    #[cfg(test)]
    fn current(&self) -> usize {
        self.state().limit
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Permit {
    /// The server answered in good order.
    pub(super) fn succeeded(&self) {
        let mut state = self.limit.state();
        state.successes += 1;
        if state.successes < state.limit || state.limit >= self.limit.bounds.max {
            return;
        }
        state.successes = 0;
        state.limit += 1;
        if state.owed > 0 {
            state.owed -= 1;
        } else {
            self.limit.permits.add_permits(1);
        }
    }

    /// The server was busy or too slow.
    pub(super) fn overloaded(&self) {
        let mut state = self.limit.state();
        state.successes = 0;
        if self.epoch != state.epoch {
            return;
        }
        state.epoch += 1;
        let halved = (state.limit / 2).max(self.limit.bounds.min);
        let fewer = state.limit.saturating_sub(halved);
        state.limit = halved;
        state.owed += fewer - self.limit.permits.forget_permits(fewer);
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
            held.push(permit);
        }
        held.len()
    }

    #[tokio::test]
    async fn overload_halves_once_for_requests_that_ran_together() {
        let limit = limit(8, 1, 64);
        let mut permits = Vec::new();
        for _ in 0..8 {
            permits.push(limit.acquire().await);
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
            limit.acquire().await.overloaded();
        }
        assert_eq!(limit.current(), 2);
        assert_eq!(free_places(&limit).await, 2);
    }

    #[tokio::test]
    async fn a_window_of_successes_adds_one_place_up_to_the_maximum() {
        let limit = limit(2, 1, 3);
        for _ in 0..2 {
            limit.acquire().await.succeeded();
        }
        assert_eq!(limit.current(), 3);
        for _ in 0..50 {
            limit.acquire().await.succeeded();
        }
        assert_eq!(limit.current(), 3);
        assert_eq!(free_places(&limit).await, 3);
    }

    #[tokio::test]
    async fn a_request_that_is_given_up_gives_its_place_back() {
        let limit = limit(1, 1, 1);
        let held = limit.acquire().await;
        let mut waiting = Box::pin(limit.acquire());
        assert!(waiting.as_mut().now_or_never().is_none());
        drop(waiting);
        drop(held);
        assert_eq!(free_places(&limit).await, 1);
    }
}
