//! What ends a run before its work is done: the signal that asked for it.

use crate::exit::ExitCode;

/// Somebody wants the run to end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stop {
    /// Go on.
    #[default]
    No,
    /// SIGINT.
    Interrupted,
    /// SIGTERM.
    Terminated,
}

impl Stop {
    /// The exit code that stands for it.
    #[must_use]
    pub fn exit_code(self) -> Option<ExitCode> {
        match self {
            Self::No => None,
            Self::Interrupted => Some(ExitCode::Interrupted),
            Self::Terminated => Some(ExitCode::Terminated),
        }
    }
}
