//! The end of a command on releases: its report is printed or written, and its exit code explained.

use std::path::PathBuf;

use pushback_events::exit::ExitCode;
use pushback_terminal::check::file::write_text;
use pushback_terminal::output::Output;
use pushback_upgrade::report::formats::ReleaseReport;

use super::arguments::Place;
use crate::cli::arguments::GlobalArgs;
use crate::cli::screen::fail;
use crate::run::answer::Answer;
use crate::run::error::CommandError;

/// A rendered report, and how the command ends.
#[derive(Debug)]
pub struct RenderedReport {
    /// The rendered report.
    text: String,
    /// Path to write it to; `None`: standard output.
    path: Option<PathBuf>,
    /// The exit code.
    code: ExitCode,
    /// Why the exit code is not 0, for readers who do not see the report.
    reason: Option<String>,
}

impl RenderedReport {
    /// A successful text.
    #[must_use]
    pub fn good(text: String, path: Option<PathBuf>) -> Self {
        Self { text, path, code: ExitCode::Success, reason: None }
    }

    /// Renders an answer in the target's format.
    ///
    /// # Errors
    /// The report cannot be represented in this format.
    pub fn of(answer: Answer<impl ReleaseReport>, place: Place) -> Result<Self, CommandError> {
        let Answer { report, code, reason } = answer;
        let text = (place.format.render)(&report, place.columns()).map_err(|error| not_written(&error))?;
        Ok(Self { text, path: place.path, code, reason })
    }
}

/// The error for a report that cannot be represented in a format.
pub(super) fn not_written(error: &str) -> CommandError {
    CommandError::usage(format!("the report cannot be written: {error}"))
}

/// Prints or writes the report.
pub(super) fn ended(global: &GlobalArgs, result: Result<RenderedReport, CommandError>) -> ExitCode {
    let written = result.and_then(|ended| {
        let path = ended.path.unwrap_or_else(|| PathBuf::from("-"));
        write_text(&path, &ended.text)?;
        if let Some(reason) = ended.reason {
            Output::standard().progress(&format!("{reason}\n"));
        }
        Ok(ended.code)
    });
    written.unwrap_or_else(|error| fail(global, &error))
}
