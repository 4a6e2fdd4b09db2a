//! The formats of reports on releases: a row says all that is known of one. Help, endings of files and parsing go by
//! this table.

use std::path::Path;

use serde::Serialize;
use serde_json::Value;

use crate::report::escape::{terminal_safe_json, terminal_safe_lines};

/// A report on releases, in each of its forms.
pub trait ReleaseReport {
    /// For people.
    fn table(&self) -> String;

    /// For a comment on a pull request.
    fn markdown(&self) -> String;

    /// For programs.
    ///
    /// # Errors
    /// It has no such form.
    fn data(&self) -> serde_json::Result<Value>;
}

/// A format of these reports.
#[derive(Debug)]
pub struct Format {
    /// The word for it.
    pub word: &'static str,
    /// What it is for.
    pub about: &'static str,
    /// Endings of files that are written so.
    endings: &'static [&'static str],
    /// Renders a report; an error says why it cannot be written so.
    pub render: fn(&dyn ReleaseReport) -> Result<String, String>,
}

/// For people, where nothing else is asked for.
pub static TABLE: Format =
    Format { word: "table", about: "For people", endings: &[], render: |report| Ok(report.table()) };

static JSON: Format = Format {
    word: "json",
    about: "JSON",
    endings: &["json"],
    render: |report| json(&report.data().map_err(|error| error.to_string())?),
};

static YAML: Format = Format {
    word: "yaml",
    about: "The same as YAML",
    endings: &["yaml", "yml"],
    render: |report| yaml(&report.data().map_err(|error| error.to_string())?),
};

static MARKDOWN: Format = Format {
    word: "markdown",
    about: "For a comment on a pull request",
    endings: &["md"],
    render: |report| Ok(report.markdown()),
};

/// Every format.
pub static FORMATS: [&Format; 4] = [&TABLE, &JSON, &YAML, &MARKDOWN];

/// The format of that word.
#[must_use]
pub fn find(word: &str) -> Option<&'static Format> {
    FORMATS.into_iter().find(|format| format.word == word)
}

/// What the ending of a file's name says.
#[must_use]
pub fn of_file(path: &Path) -> Option<&'static Format> {
    let ending = path.extension()?.to_str()?.to_ascii_lowercase();
    FORMATS.into_iter().find(|format| format.endings.contains(&ending.as_str()))
}

/// JSON, with what a terminal would act on escaped.
///
/// # Errors
/// It cannot be written so.
pub(super) fn json(report: &impl Serialize) -> Result<String, String> {
    let json = serde_json::to_string_pretty(report).map_err(|error| error.to_string())?;
    Ok(terminal_safe_json(&json) + "\n")
}

/// A document as YAML, such as a model.
///
/// # Errors
/// Why it cannot be written so.
pub fn yaml(value: &Value) -> Result<String, String> {
    let yaml = serde_yaml::to_string(value).map_err(|error| error.to_string())?;
    Ok(terminal_safe_lines(&yaml).into_owned())
}
