//! Since when the pods of an object have been failing, and how long they may. Which of them fail is determined
//! elsewhere; these are the times.

use std::time::Duration;

/// How long a state that waiting does not fix may last before it counts as a failure: another change, of this run or of
/// somebody else, may be about to repair it.
pub(super) const GRACE: Duration = Duration::from_secs(30);

/// How long an object must stay ready if a container of it failed during the wait.
pub(super) const STABLE: Duration = Duration::from_secs(10);

/// Since when pods of one object have been failing, as time since the wait began. Whoever watches the object calls
/// [`observe`](Self::observe) with each state of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Troubles {
    /// Revision of these pods; a new revision resets everything.
    pub(super) revision: String,
    /// Since when a terminal failure has lasted without a break.
    pub(super) terminal: Option<Duration>,
    /// Since when a recoverable failure has lasted without a break or progress.
    pub(super) transient: Option<Duration>,
    /// Highest number of pods that were ready or done.
    pub(super) best: usize,
    /// Whether a container failed during the wait.
    pub(super) ended_badly: bool,
    /// Since when it has been ready without a break.
    pub(super) ready: Option<Duration>,
}

impl Troubles {
    /// Time until the first of the limits is reached.
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
