//! Result of a command without events, and its messages on the way. How either is shown is decided elsewhere.

use pushback_events::exit::ExitCode;
use pushback_manifest::InputWarning;

/// Receives a command's messages besides its result.
pub trait Notes: Send + Sync {
    /// Shows a sentence to the user.
    fn note(&self, text: &str);

    /// Shows warnings about the input.
    fn warn(&self, warnings: &[InputWarning]);
}

/// Result of a command.
#[derive(Debug)]
pub struct Answer<T> {
    /// The report.
    pub report: T,
    /// Exit code of the process.
    pub code: ExitCode,
    /// Why the exit code is not 0, for readers who do not see the report.
    pub reason: Option<String>,
}

impl<T> Answer<T> {
    /// A successful result.
    pub fn good(report: T) -> Self {
        Self { report, code: ExitCode::Success, reason: None }
    }

    /// A result that fails with this code if `wrong` gives a reason.
    pub fn unless(report: T, code: ExitCode, wrong: Option<String>) -> Self {
        let code = if wrong.is_some() { code } else { ExitCode::Success };
        Self { report, code, reason: wrong }
    }
}
