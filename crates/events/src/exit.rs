//! Every exit code. No other module defines one.

/// How the process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum ExitCode {
    /// Done, converged, or nothing to do.
    Success = 0,
    /// Usage, config or input error, declined prompt; nothing written.
    Usage = 1,
    /// Only with `--diff-exit-status` or `--apply-exit-status`: no changes.
    NoChanges = 2,
    /// Only with `--diff-exit-status` or `--apply-exit-status`: changes.
    Changes = 3,
    /// Preflight refused the change; nothing written.
    Refused = 10,
    /// A saved plan is stale, was edited, or is for another cluster, app or policy; facts were edited, or files are not of
    /// one run. Nothing written.
    Stale = 11,
    /// Another run holds the app's lock.
    Locked = 12,
    /// Cluster unreachable, not authorised, or a folder that cannot be written, before the first write.
    Unreachable = 13,
    /// Some writes failed, the lock was lost, or standard output could not be written. The rest is recorded: run again to
    /// resume. For experiments: an injected change could not be reverted.
    Partial = 20,
    /// Applied, but an object reached a terminal failure; or an experiment ran and was not resilient.
    Failed = 21,
    /// Applied, but waiting timed out; or the time limit of the whole run has passed.
    TimedOut = 22,
    /// A defect in pushback.
    Defect = 70,
    /// SIGINT; state saved, lock released.
    Interrupted = 130,
    /// SIGTERM or, on Linux, SIGHUP; state saved, lock released.
    Terminated = 143,
}

impl ExitCode {
    /// The numeric exit code.
    #[must_use]
    pub fn code(self) -> u8 {
        self as u8
    }
}

impl From<ExitCode> for std::process::ExitCode {
    fn from(code: ExitCode) -> Self {
        code.code().into()
    }
}
