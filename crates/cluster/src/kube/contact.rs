//! Whether the server can be reached: one outage shared by all requests, so that an unreachable server is given up
//! once, not by each of a thousand requests in turn.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Failures further apart than this are separate outages: no request was sent in between.
const APART: Duration = Duration::from_secs(60);

/// The state of the connections of a run.
#[derive(Debug, Default)]
pub(super) struct Contact(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    reached: bool,
    /// The first and the last failure since the server answered.
    outage: Option<(Instant, Instant)>,
}

impl Contact {
    /// The server sent an answer.
    pub(super) fn answered(&self) {
        *self.state() = State { reached: true, outage: None };
    }

    /// Something accepts connections, though it has not answered.
    pub(super) fn found(&self) {
        self.state().reached = true;
    }

    /// Records a failed connection and returns the length of the outage.
    pub(super) fn failed(&self) -> Duration {
        let now = Instant::now();
        let mut state = self.state();
        let since = match state.outage {
            Some((first, last)) if now.duration_since(last) <= APART => first,
            _ => now,
        };
        state.outage = Some((since, now));
        now.duration_since(since)
    }

    /// Whether the server has ever answered, or something accepts connections.
    pub(super) fn reached(&self) -> bool {
        self.state().reached
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_outage_lasts_from_its_first_failure_to_the_next_answer() {
        let contact = Contact::default();
        assert_eq!((contact.failed(), contact.reached()), (Duration::ZERO, false));
        tokio::time::advance(Duration::from_secs(40)).await;
        assert_eq!(contact.failed().as_secs(), 40);
        tokio::time::advance(Duration::from_secs(40)).await;
        assert_eq!(contact.failed().as_secs(), 80);
        contact.answered();
        assert_eq!((contact.failed(), contact.reached()), (Duration::ZERO, true));
    }

    #[tokio::test(start_paused = true)]
    async fn failures_far_apart_are_not_one_outage() {
        let contact = Contact::default();
        contact.failed();
        tokio::time::advance(Duration::from_secs(61)).await;
        assert_eq!(contact.failed(), Duration::ZERO);
    }
}
