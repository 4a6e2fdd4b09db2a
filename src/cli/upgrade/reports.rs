//! Targets of the report of a run of experiments, and of the additional reports that flags request.

use std::fs;
use std::path::PathBuf;

use pushback_system::environment::reason;
use pushback_system::path_safety::check_folder;
use pushback_terminal::check::file::{ReportSpec, is_standard_output, write_text};
use pushback_terminal::check::formats as check_formats;
use pushback_terminal::output::Output;
use pushback_upgrade::outcome::RunReport;
use pushback_upgrade::report::experiments_text::{RUN_FORMATS, RunFormat};
use pushback_upgrade::report::formats::{self, Format};

use super::arguments::Place;
use super::ended::not_written;
use crate::run::error::CommandError;
use crate::run::upgrade::execute::ExperimentReports;

/// Reports of a run of experiments.
#[derive(Debug)]
pub struct RunReports {
    path: PathBuf,
    format: &'static Format,
    /// Columns of the terminal that it is printed on.
    columns: Option<usize>,
    /// Whether the table goes to standard error because another report occupies standard output.
    on_errors: bool,
    /// Folder for `--report-dir`.
    folder: Option<PathBuf>,
    reports: Vec<(&'static RunFormat, ReportSpec)>,
}

impl RunReports {
    /// The main report, on standard output without a path, and those that `--report` and `--report-dir` request.
    ///
    /// # Errors
    /// A report has an unknown format, or two go to standard output.
    pub fn of(place: Place, flags: &[String], folder: Option<PathBuf>) -> Result<Self, CommandError> {
        let columns = place.columns();
        let path = place.path.unwrap_or_else(|| PathBuf::from("-"));
        let mut reports: Vec<(&RunFormat, ReportSpec)> = Vec::new();
        for flag in flags {
            let spec: ReportSpec = flag.parse()?;
            let Some(format) = RUN_FORMATS.iter().find(|format| format.word == spec.format.word) else {
                return Err(CommandError::usage(format!(
                    "report {flag}: a run of experiments is reported as json or junit"
                )));
            };
            reports.push((format, spec));
        }
        for (folder, format) in folder.iter().flat_map(|folder| RUN_FORMATS.iter().map(move |format| (folder, format)))
        {
            let word = check_formats::find(format.word).unwrap_or(&check_formats::JSON);
            reports.push((format, ReportSpec { format: word, path: folder.join(format.file) }));
        }
        // Standard output holds one document: a report there moves the table to standard error.
        let on_standard_output = reports.iter().filter(|(_, spec)| spec.is_standard_output()).count();
        let on_errors = is_standard_output(&path) && on_standard_output > 0;
        if on_standard_output > 1 || (on_errors && place.format.word != formats::TABLE.word) {
            let hint = "name a file for one of them";
            return Err(CommandError::usage_with_hint("two reports go to standard output", hint));
        }
        Ok(Self { path, format: place.format, columns, on_errors, folder, reports })
    }
}

impl ExperimentReports for RunReports {
    fn prepare(&self) -> Result<(), CommandError> {
        if let Some(folder) = &self.folder {
            check_folder(folder).and_then(|()| fs::create_dir_all(folder)).map_err(|error| {
                CommandError::usage(format!("cannot make folder {}: {}", folder.display(), reason(&error)))
            })?;
        }
        Ok(self.reports.iter().try_for_each(|(_, spec)| spec.prepare())?)
    }

    fn take(&self, report: &RunReport) -> Result<(), CommandError> {
        let failed = |error: String| not_written(&error);
        let text = (self.format.render)(report, self.columns).map_err(failed)?;
        if self.on_errors {
            Output::standard().progress(&text);
        } else {
            write_text(&self.path, &text)?;
        }
        for (format, spec) in &self.reports {
            write_text(&spec.path, &(format.render)(report).map_err(failed)?)?;
        }
        Ok(())
    }
}
