//! Compares conversions of fixed objects with those that a folder holds, or writes them.

use std::fs;
use std::path::{Path, PathBuf};

use pushback_conversion::goldens;
use pushback_manifest::files;
use pushback_storage::conversion::GoldenReport;
use pushback_system::bounded_file::{DOCUMENT, read_text};
use pushback_system::environment::reason;

use super::conversion::ConversionFiles;
use super::programs::NamedPrograms;
use crate::run::error::CommandError;

/// What to compare.
#[derive(Clone, Debug)]
pub struct GoldenRun {
    /// Definition and plan.
    pub files: ConversionFiles,
    /// Programs that the plan may hand objects to.
    pub programs: NamedPrograms,
    /// The folder with a file for each conversion.
    pub folder: PathBuf,
    /// Whether files are written instead of compared.
    pub update: bool,
}

impl GoldenRun {
    /// Compares or writes.
    ///
    /// # Errors
    /// The plan is wrong, a conversion fails, or the folder cannot be read or written.
    pub fn run(&self, render: impl Fn(&[&serde_json::Value]) -> String) -> Result<GoldenReport, CommandError> {
        let converter = self.files.converter()?;
        self.programs.check(&converter)?;
        let goldens = goldens(&converter, &self.programs).map_err(|error| CommandError::usage(error.to_string()))?;
        let mut report = GoldenReport::default();
        let mut known = Vec::new();
        for golden in &goldens {
            let path = self.folder.join(format!("{}.yaml", golden.name));
            let text = render(&[&golden.before, &golden.after]);
            known.push(path.clone());
            let shown = files::shown(&path);
            match read_text(&path, DOCUMENT) {
                Ok(old) if old == text => report.equal.push(shown),
                _ if self.update => {
                    let written = fs::create_dir_all(&self.folder).and_then(|()| fs::write(&path, &text));
                    written.map_err(|error| failed(&path, "written", &error))?;
                    report.written.push(shown);
                }
                Ok(_) => report.different.push(format!("{shown}: the conversion gives something else")),
                Err(_) => report.different.push(format!("{shown}: there is no such file")),
            }
        }
        for path in others(&self.folder, &known) {
            report.different.push(format!("{}: no conversion with expressions is called so", files::shown(&path)));
        }
        Ok(report)
    }
}

/// Golden files that belong to no conversion any more.
fn others(folder: &Path, known: &[PathBuf]) -> Vec<PathBuf> {
    let is_golden = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.ends_with(".yaml") && name.contains("-to-")
    };
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut others: Vec<PathBuf> = entries.filter(|path| is_golden(path) && !known.contains(path)).collect();
    others.sort();
    others
}

fn failed(path: &Path, what: &str, error: &std::io::Error) -> CommandError {
    CommandError::usage(format!("{}: it cannot be {what}: {}", files::shown(path), reason(error)))
}
