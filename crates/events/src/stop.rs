//! What ends a run early: a signal, or the time limit that the user has set.

use crate::exit::ExitCode;

/// Whether, and by what, the run was asked to end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stop {
    /// By nothing.
    #[default]
    No,
    /// SIGINT.
    Interrupted,
    /// SIGTERM.
    Terminated,
    /// SIGHUP: the terminal was closed.
    HungUp,
    /// The time limit of the whole run.
    TimedOut,
}

impl Stop {
    /// The exit code for this; `None` if nothing ends the run.
    #[must_use]
    pub fn exit_code(self) -> Option<ExitCode> {
        match self {
            Self::No => None,
            Self::Interrupted => Some(ExitCode::Interrupted),
            Self::Terminated | Self::HungUp => Some(ExitCode::Terminated),
            Self::TimedOut => Some(ExitCode::TimedOut),
        }
    }
}
