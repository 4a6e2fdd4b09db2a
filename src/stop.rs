//! What ends a run early: the signal that requested it.

use crate::exit::ExitCode;

/// Whether, and by which signal, the run was asked to end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stop {
    /// No signal has arrived.
    #[default]
    No,
    /// SIGINT.
    Interrupted,
    /// SIGTERM.
    Terminated,
}

impl Stop {
    /// The exit code for this signal; `None` without one.
    #[must_use]
    pub fn exit_code(self) -> Option<ExitCode> {
        match self {
            Self::No => None,
            Self::Interrupted => Some(ExitCode::Interrupted),
            Self::Terminated => Some(ExitCode::Terminated),
        }
    }
}
