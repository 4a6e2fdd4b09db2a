//! Waiting for what happens elsewhere: look, and look again, until a deadline. Nothing in the tests
//! sleeps for a fixed time.

use std::time::{Duration, Instant};

const PAUSE: Duration = Duration::from_millis(50);

/// Calls `look` until it answers, and returns the answer; `None` once the deadline has passed.
pub(crate) fn poll<T>(deadline: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let end = Instant::now() + deadline;
    loop {
        if let Some(found) = look() {
            return Some(found);
        }
        if Instant::now() >= end {
            return None;
        }
        std::thread::sleep(PAUSE);
    }
}

/// As [`poll`], and fails the test at the deadline. `what` completes the sentence "… did not happen".
pub(crate) fn wait_until<T>(what: &str, deadline: Duration, look: impl FnMut() -> Option<T>) -> T {
    poll(deadline, look).unwrap_or_else(|| panic!("within {deadline:?} this did not happen: {what}"))
}
