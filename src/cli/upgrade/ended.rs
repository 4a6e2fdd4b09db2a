//! How a command on releases ends: its report is printed or written, and its exit code said.

use std::path::PathBuf;

use super::arguments::Place;
use crate::cli::arguments::GlobalArgs;
use crate::cli::screen::fail;
use crate::exit::ExitCode;
use crate::report::check::file::write_text;
use crate::report::output::Output;
use crate::report::release::formats::ReleaseReport;
use crate::run::answer::Answer;
use crate::run::error::CommandError;

/// A report that is to be shown, and how the command ends then.
#[derive(Debug)]
pub struct Ended {
    /// The report.
    text: String,
    /// Where it goes; `None`: to standard output.
    path: Option<PathBuf>,
    /// The exit code.
    code: ExitCode,
    /// Why the exit code is not 0, for whoever does not read the report.
    reason: Option<String>,
}

impl Ended {
    /// A text, and nothing is wrong.
    #[must_use]
    pub fn good(text: String, path: Option<PathBuf>) -> Self {
        Self { text, path, code: ExitCode::Success, reason: None }
    }

    /// An answer, in the format of the place that it goes to.
    ///
    /// # Errors
    /// The report has no such form.
    pub fn of(answer: Answer<impl ReleaseReport>, place: Place) -> Result<Self, CommandError> {
        let Answer { report, code, reason } = answer;
        let text = (place.format.render)(&report).map_err(|error| not_written(&error))?;
        Ok(Self { text, path: place.path, code, reason })
    }
}

/// A report has no such form.
pub(super) fn not_written(error: &str) -> CommandError {
    CommandError::usage(format!("the report cannot be written: {error}"))
}

/// Prints or writes the report.
pub(super) fn ended(global: &GlobalArgs, result: Result<Ended, CommandError>) -> ExitCode {
    let written = result.and_then(|ended| {
        let path = ended.path.unwrap_or_else(|| PathBuf::from("-"));
        write_text(&path, &ended.text).map_err(|error| CommandError::usage(error.to_string()))?;
        if let Some(reason) = ended.reason {
            Output::standard().progress(&format!("{reason}\n"));
        }
        Ok(ended.code)
    });
    written.unwrap_or_else(|error| fail(global, &error))
}
