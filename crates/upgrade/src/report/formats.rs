//! The formats of reports on releases, one row each; help, file extensions and parsing use this table.

use std::path::Path;

use pushback_terminal::escape::{terminal_safe_json, terminal_safe_lines};
use pushback_terminal::html::text_page;
use serde::Serialize;
use serde_json::Value;

/// A report on releases that every format can render.
pub trait ReleaseReport {
    /// A table for people, in lines of at most this many columns; none: a line a row.
    fn table(&self, columns: Option<usize>) -> String;

    /// Markdown for a pull request comment.
    fn markdown(&self) -> String;

    /// A page to look at; by default the table on a page.
    fn page(&self) -> String {
        text_page(&self.table(None))
    }

    /// JSON data for programs.
    ///
    /// # Errors
    /// It cannot be represented as JSON.
    fn data(&self) -> serde_json::Result<Value>;
}

/// A format of these reports.
#[derive(Debug)]
pub struct Format {
    /// Name of the format in `--format`.
    pub word: &'static str,
    /// What it is for.
    pub about: &'static str,
    /// File extensions that select it.
    endings: &'static [&'static str],
    /// Renders a report, tables within this many columns; the error says why it cannot be represented.
    pub render: fn(&dyn ReleaseReport, Option<usize>) -> Result<String, String>,
}

/// The default: a table for people.
pub static TABLE: Format =
    Format { word: "table", about: "For people", endings: &[], render: |report, columns| Ok(report.table(columns)) };

static JSON: Format = Format {
    word: "json",
    about: "JSON",
    endings: &["json"],
    render: |report, _| json(&report.data().map_err(|error| error.to_string())?),
};

static YAML: Format = Format {
    word: "yaml",
    about: "The same as YAML",
    endings: &["yaml", "yml"],
    render: |report, _| yaml(&report.data().map_err(|error| error.to_string())?),
};

static MARKDOWN: Format = Format {
    word: "markdown",
    about: "For a comment on a pull request",
    endings: &["md"],
    render: |report, _| Ok(report.markdown()),
};

static HTML: Format = Format {
    word: "html",
    about: "A page to look at, one file",
    endings: &["html", "htm"],
    render: |report, _| Ok(report.page()),
};

/// Every format.
pub static FORMATS: [&Format; 5] = [&TABLE, &JSON, &YAML, &MARKDOWN, &HTML];

/// The format with this name.
#[must_use]
pub fn find(word: &str) -> Option<&'static Format> {
    FORMATS.into_iter().find(|format| format.word == word)
}

/// The format that a file's extension selects.
#[must_use]
pub fn of_file(path: &Path) -> Option<&'static Format> {
    let ending = path.extension()?.to_str()?.to_ascii_lowercase();
    FORMATS.into_iter().find(|format| format.endings.contains(&ending.as_str()))
}

/// JSON that is safe to show on a terminal.
///
/// # Errors
/// It cannot be represented as JSON.
pub(super) fn json(report: &impl Serialize) -> Result<String, String> {
    let json = serde_json::to_string_pretty(report).map_err(|error| error.to_string())?;
    Ok(terminal_safe_json(&json) + "\n")
}

/// A document, such as a model, as YAML.
///
/// # Errors
/// The reason why it cannot be represented as YAML.
pub fn yaml(value: &Value) -> Result<String, String> {
    let yaml = serde_yaml::to_string(value).map_err(|error| error.to_string())?;
    Ok(terminal_safe_lines(&yaml).into_owned())
}
