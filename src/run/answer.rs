//! What a command without events comes to, and what it tells on the way there.
//! How either is shown is not known here.

use crate::exit::ExitCode;
use crate::manifest::InputWarning;

/// Hears what a command tells beside its answer.
pub trait Notes: Send + Sync {
    /// A sentence for people.
    fn note(&self, text: &str);

    /// Warnings of the input.
    fn warn(&self, warnings: &[InputWarning]);
}

/// What a command comes to.
#[derive(Debug)]
pub struct Answer<T> {
    /// What was found.
    pub report: T,
    /// How the process ends.
    pub code: ExitCode,
    /// Why the exit code is not 0, for whoever does not read the report.
    pub reason: Option<String>,
}

impl<T> Answer<T> {
    /// Nothing in it is wrong.
    pub fn good(report: T) -> Self {
        Self { report, code: ExitCode::Success, reason: None }
    }

    /// What is wrong, where something is, and the exit code for it.
    pub fn unless(report: T, code: ExitCode, wrong: Option<String>) -> Self {
        let code = if wrong.is_some() { code } else { ExitCode::Success };
        Self { report, code, reason: wrong }
    }
}
