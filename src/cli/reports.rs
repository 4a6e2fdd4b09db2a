//! `--report` and `--witness-dir`: which reports of a check are written, and where.

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

use pushback_deploy::check::report::CheckReport;
use pushback_objects::quoted;
use pushback_terminal::check::file::{Document, ReportError, ReportSpec, is_standard_output};
use pushback_terminal::check::{formats, witness_files};

use crate::run::error::CommandError;
use crate::run::options::CheckReports;

/// The report to print on standard output at the end of a run. If a plan is repeated and judged again, the last report
/// is printed.
pub type HeldDocument = Arc<Mutex<Option<Document>>>;

/// What a run writes to standard output, apart from requested reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StandardOutput {
    /// Text for people, unless a report takes its place.
    Text,
    /// Events as JSON lines.
    Events,
    /// The report as JSON.
    Report,
}

/// Requested reports of a check.
#[derive(Debug)]
pub struct Reports {
    specs: Vec<ReportSpec>,
    witness_dir: Option<PathBuf>,
    /// The report to print at the end.
    document: HeldDocument,
}

impl Reports {
    /// From the `--report` flags and the witness folder; `None` if nothing is requested.
    ///
    /// # Errors
    /// A flag has an unknown format, or two have the same target.
    pub fn of(
        flags: &[String],
        witness_dir: Option<PathBuf>,
        standard_output: StandardOutput,
        document: &HeldDocument,
    ) -> Result<Option<Rc<dyn CheckReports>>, CommandError> {
        let mut specs: Vec<ReportSpec> = Vec::new();
        for flag in flags {
            let spec: ReportSpec = flag.parse()?;
            let standard = spec.is_standard_output();
            if standard && standard_output != StandardOutput::Text {
                let message = format!("standard output carries JSON: report {flag} needs a file");
                return Err(CommandError::usage(message));
            }
            let same = |other: &ReportSpec| {
                if standard { other.is_standard_output() } else { same_file(&other.path, &spec.path) }
            };
            if specs.iter().any(same) {
                return Err(CommandError::usage(format!("two reports go to {}", spec.path.display())));
            }
            specs.push(spec);
        }
        if standard_output == StandardOutput::Report {
            specs.push(ReportSpec { format: &formats::JSON, path: "-".into() });
        }
        if specs.is_empty() && witness_dir.is_none() {
            return Ok(None);
        }
        Ok(Some(Rc::new(Self { specs, witness_dir, document: Arc::clone(document) })))
    }
}

impl CheckReports for Reports {
    fn prepare(&self) -> Result<(), CommandError> {
        self.specs.iter().try_for_each(ReportSpec::prepare)?;
        match &self.witness_dir {
            Some(folder) => witness_files::prepare(folder).map_err(|error| CommandError::usage(error.to_string())),
            None => Ok(()),
        }
    }

    fn take(&self, report: &CheckReport) -> Result<(), CommandError> {
        if let Some(folder) = &self.witness_dir {
            witness_files::write(folder, &report.findings).map_err(|error| CommandError::usage(error.to_string()))?;
        }
        for spec in &self.specs {
            if spec.is_standard_output() {
                *self.document.lock().unwrap_or_else(PoisonError::into_inner) = Some(spec.document(report));
            } else {
                spec.write(report)?;
            }
        }
        Ok(())
    }
}

impl From<ReportError> for CommandError {
    fn from(error: ReportError) -> Self {
        match error {
            ReportError::Write { path, source } if is_standard_output(&path) => Self::standard_output(&source),
            ReportError::Write { ref path, ref source } if source.kind() == std::io::ErrorKind::NotFound => {
                let folder = path.parent().map(|folder| quoted(&folder.to_string_lossy())).unwrap_or_default();
                Self::usage_with_hint(error.to_string(), format!("create the folder first: mkdir -p {folder}"))
            }
            error => Self::usage(error.to_string()),
        }
    }
}

/// Whether two paths lead to the same file, which need not exist yet.
fn same_file(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let named = || Some(folder.canonicalize().ok()?.join(path.file_name()?));
        path.canonicalize().ok().or_else(named).unwrap_or_else(|| path.to_owned())
    };
    real(one) == real(other)
}
