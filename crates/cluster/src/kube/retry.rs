//! When a request is retried, and after what delay. Depends on verb and class of error: a request is repeated only if
//! it certainly had no effect or may have it twice, and only if a retry can help.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::{ClusterError, ErrorKind};

/// Limits of retries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryLimits {
    /// Total time for all attempts of one request, including delays.
    pub budget: Duration,
    /// The same while nothing has been found at the server's address: a wrong one should not take minutes to detect.
    pub first_contact_budget: Duration,
    /// Maximum attempts if the server answers with 500, or with a truncated answer.
    pub server_errors: u32,
    /// Delay after the first attempt; doubled after each further one.
    pub first_delay: Duration,
    /// Maximum delay, unless the server asks for more.
    pub longest_delay: Duration,
    /// Maximum delay for a server's `Retry-After`.
    pub longest_retry_after: Duration,
}

impl Default for RetryLimits {
    fn default() -> Self {
        Self {
            budget: Duration::from_secs(120),
            first_contact_budget: Duration::from_secs(10),
            server_errors: 5,
            first_delay: Duration::from_millis(250),
            longest_delay: Duration::from_secs(10),
            longest_retry_after: Duration::from_secs(30),
        }
    }
}

/// Whether a request may be repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Repeatable {
    /// Idempotent: reads, dry-runs, applies, and deletes and patches that require a certain state of the object.
    Yes,
    /// Only if the server did not process it: POST, and patches and deletes by name alone.
    IfNotProcessed,
}

/// What is known about a failed attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Processed {
    /// The server has not received the request, or rejected it unprocessed.
    No,
    /// It may have taken effect.
    Maybe,
    /// It was processed: the answer is final.
    Judged,
}

/// A failed attempt.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) error: ClusterError,
    pub(super) processed: Processed,
    /// The server's `Retry-After`.
    pub(super) retry_after: Option<Duration>,
}

/// The state of a request when an attempt failed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Progress {
    /// The attempt that failed, from 1.
    pub(super) attempt: u32,
    /// Time since the first attempt began.
    pub(super) elapsed: Duration,
    /// Whether anything has been found at the server's address: an answer, or an open port.
    pub(super) reached: bool,
}

/// The delay before the next attempt; `None` ends the request.
pub(super) fn delay(
    limits: &RetryLimits,
    repeatable: Repeatable,
    failure: &Failure,
    progress: Progress,
    jitter: f64,
) -> Option<Duration> {
    match (failure.processed, repeatable) {
        (Processed::Judged, _) | (Processed::Maybe, Repeatable::IfNotProcessed) => return None,
        (Processed::No, _) | (Processed::Maybe, Repeatable::Yes) => {}
    }
    let broken = failure.error.status == 500 || failure.error.kind == ErrorKind::Protocol;
    if broken && progress.attempt >= limits.server_errors {
        return None;
    }
    let silent = matches!(failure.error.kind, ErrorKind::Unreachable | ErrorKind::Timeout);
    let budget =
        if silent && !progress.reached { limits.first_contact_budget.min(limits.budget) } else { limits.budget };
    let delay = match failure.retry_after {
        // Never sooner than the server asks, and spread over time.
        Some(wished) => wished.min(limits.longest_retry_after).mul_f64(1.0 + 0.1 * jitter),
        None => {
            let doubled = limits.first_delay.saturating_mul(1 << (progress.attempt - 1).min(16));
            doubled.min(limits.longest_delay).mul_f64(0.5 + 0.5 * jitter)
        }
    };
    (progress.elapsed.saturating_add(delay) < budget).then_some(delay)
}

/// The delay of a `Retry-After` header: seconds, or an HTTP date relative to the answer's own `Date`, so that the two
/// machines' clocks need not agree.
pub(super) fn retry_after(value: &str, date: Option<&str>, now: jiff::Timestamp) -> Option<Duration> {
    let value = value.trim();
    if let Ok(seconds) = value.parse::<u64>() {
        return Some(Duration::from_secs(seconds));
    }
    let until = http_date(value)?;
    let from = date.and_then(http_date).unwrap_or(now);
    Some(Duration::try_from(until.duration_since(from)).unwrap_or_default())
}

/// Parses `Sun, 06 Nov 1994 08:49:37 GMT`.
pub(super) fn http_date(text: &str) -> Option<jiff::Timestamp> {
    jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(text.trim()).ok()
}

/// Random numbers for jitter: splitmix64 with a given seed.
#[derive(Debug)]
pub(super) struct Jitter(AtomicU64);

impl Jitter {
    pub(super) fn new(seed: u64) -> Self {
        Self(AtomicU64::new(seed))
    }

    /// Between 0 and 1.
    pub(super) fn next(&self) -> f64 {
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        let mut bits = self.0.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let [.., high, low] = (bits ^ (bits >> 31)).to_be_bytes();
        f64::from(u16::from_be_bytes([high, low])) / f64::from(u16::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(kind: ErrorKind, status: u16, processed: Processed, retry_after: Option<u64>) -> Failure {
        Failure {
            error: ClusterError { status, ..ClusterError::new(kind, "test") },
            processed,
            retry_after: retry_after.map(Duration::from_secs),
        }
    }

    fn at(attempt: u32, seconds: u64) -> Progress {
        Progress { attempt, elapsed: Duration::from_secs(seconds), reached: true }
    }

    fn wait(repeatable: Repeatable, failure: &Failure, progress: Progress) -> Option<Duration> {
        delay(&RetryLimits::default(), repeatable, failure, progress, 1.0)
    }

    #[test]
    fn waits_double_up_to_the_longest() {
        let busy = failure(ErrorKind::Busy, 429, Processed::No, None);
        let waits: Vec<u128> = (1..=8)
            .map(|attempt| wait(Repeatable::Yes, &busy, at(attempt, 0)).map_or(0, |wait| wait.as_millis()))
            .collect();
        assert_eq!(waits, [250, 500, 1000, 2000, 4000, 8000, 10_000, 10_000]);
    }

    #[test]
    fn the_servers_wish_is_followed_up_to_thirty_seconds() {
        let limits = RetryLimits::default();
        let asked = |seconds| {
            let busy = failure(ErrorKind::Busy, 429, Processed::No, Some(seconds));
            delay(&limits, Repeatable::IfNotProcessed, &busy, at(1, 0), 0.0)
        };
        assert_eq!(asked(7), Some(Duration::from_secs(7)));
        assert_eq!(asked(3600), Some(Duration::from_secs(30)));
    }

    #[test]
    fn what_may_have_been_done_is_only_repeated_where_twice_is_once() {
        let lost = failure(ErrorKind::Unreachable, 0, Processed::Maybe, None);
        assert!(wait(Repeatable::Yes, &lost, at(1, 0)).is_some());
        assert_eq!(wait(Repeatable::IfNotProcessed, &lost, at(1, 0)), None);
    }

    #[test]
    fn a_judged_request_is_never_repeated() {
        let denied = failure(ErrorKind::Denied, 403, Processed::Judged, Some(1));
        assert_eq!(wait(Repeatable::Yes, &denied, at(1, 0)), None);
    }

    #[test]
    fn internal_errors_end_after_five_attempts_and_everything_after_the_budget() {
        let internal = failure(ErrorKind::Server, 500, Processed::Maybe, None);
        assert!(wait(Repeatable::Yes, &internal, at(4, 0)).is_some());
        assert_eq!(wait(Repeatable::Yes, &internal, at(5, 0)), None);
        let unavailable = failure(ErrorKind::Server, 503, Processed::Maybe, None);
        assert!(wait(Repeatable::Yes, &unavailable, at(12, 100)).is_some());
        assert_eq!(wait(Repeatable::Yes, &unavailable, at(13, 115)), None);
    }

    #[test]
    fn a_server_that_was_never_found_is_given_up_soon() {
        let refused = failure(ErrorKind::Unreachable, 0, Processed::No, None);
        let never = Progress { reached: false, ..at(5, 8) };
        assert_eq!(wait(Repeatable::Yes, &refused, never), None);
        assert!(wait(Repeatable::Yes, &refused, at(5, 8)).is_some());
    }

    #[test]
    fn retry_after_reads_seconds_and_dates_against_the_servers_clock() {
        let now = jiff::Timestamp::UNIX_EPOCH;
        assert_eq!(retry_after("12", None, now), Some(Duration::from_secs(12)));
        assert_eq!(
            retry_after("Sun, 06 Nov 1994 08:49:47 GMT", Some("Sun, 06 Nov 1994 08:49:37 GMT"), now),
            Some(Duration::from_secs(10))
        );
        assert_eq!(
            retry_after("Sun, 06 Nov 1994 08:49:27 GMT", Some("Sun, 06 Nov 1994 08:49:37 GMT"), now),
            Some(Duration::ZERO)
        );
        assert_eq!(retry_after("soon", None, now), None);
        assert_eq!(retry_after("-3", None, now), None);
    }

    #[test]
    fn jitter_stays_between_zero_and_one_and_varies() {
        let jitter = Jitter::new(7);
        let drawn: Vec<f64> = (0..100).map(|_| jitter.next()).collect();
        assert!(drawn.iter().all(|number| (0.0..=1.0).contains(number)));
        assert!(drawn.iter().any(|number| *number < 0.2) && drawn.iter().any(|number| *number > 0.8));
    }
}
