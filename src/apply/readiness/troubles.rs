//! Since when pods fail below an object, and how long that may go on.
//! Which of them fail is read elsewhere; these are the times.

use std::time::Duration;

/// How long a state that will not heal by itself may last until it counts as failure: others may be about to repair it,
/// this run among them.
pub(super) const GRACE: Duration = Duration::from_secs(30);

/// How long an object whose containers ended badly during the wait must stay ready.
pub(super) const STABLE: Duration = Duration::from_secs(10);

/// Since when pods of one object fail, on the clock that counts from when waiting began.
/// Kept by whoever watches the object: call [`observe`](Self::observe) with each state of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Troubles {
    /// Whose pods these are; with another revision everything starts anew.
    pub(super) revision: String,
    /// Something that waiting does not heal, without a break.
    pub(super) terminal: Option<Duration>,
    /// Something that may heal, without a break and without anything moving.
    pub(super) transient: Option<Duration>,
    /// The most pods that were ready or done.
    pub(super) best: usize,
    /// A container ended badly while it was waited for.
    pub(super) ended_badly: bool,
    /// Ready without a break.
    pub(super) ready: Option<Duration>,
}

impl Troubles {
    /// In how long the first of the times is over.
    pub(super) fn next(&self, waited: Duration, failure_timeout: Duration) -> Option<Duration> {
        let left = |since: Option<Duration>, window: Duration| Some((since? + window).saturating_sub(waited));
        let patience = Some(failure_timeout).filter(|timeout| !timeout.is_zero());
        let times = [
            left(self.terminal, GRACE),
            patience.and_then(|patience| left(self.transient, patience)),
            left(self.ready, STABLE),
        ];
        times.into_iter().flatten().filter(|left| !left.is_zero()).min()
    }
}
