//! The formats of check reports, one row each; help, errors and parsing use this table.

use std::fmt;

use pushback_deploy::check::report::CheckReport;

use super::{github, html, json, junit, markdown, sarif};
use crate::output::Output;

/// A format of check reports.
pub struct Format {
    /// Name of the format in `--report`.
    pub word: &'static str,
    /// Renders a report.
    pub render: fn(&CheckReport) -> String,
    /// Prints a rendered report to standard output.
    pub print: fn(&mut Output, &str),
}

/// [`CheckReport`] as JSON.
pub static JSON: Format = Format { word: "json", render: json::text, print: Output::data };

/// A JUnit XML file: a suite per rule, a case per finding.
static JUNIT: Format = Format { word: "junit", render: junit::text, print: Output::data };

/// SARIF 2.1.0, for code scanners.
static SARIF: Format = Format { word: "sarif", render: sarif::text, print: Output::data };

/// Markdown short enough for a pull request comment.
static MARKDOWN: Format = Format { word: "markdown", render: markdown::text, print: Output::data };

/// Workflow commands of GitHub Actions, which become annotations: the only text that a runner may act on.
static GITHUB: Format = Format { word: "github", render: github::text, print: Output::commands };

/// A page to look at: one HTML file.
static HTML: Format = Format { word: "html", render: html::text, print: Output::data };

/// Every format.
static FORMATS: [&Format; 6] = [&JSON, &JUNIT, &SARIF, &MARKDOWN, &GITHUB, &HTML];

/// The format with this name.
#[must_use]
pub fn find(word: &str) -> Option<&'static Format> {
    FORMATS.into_iter().find(|format| format.word == word)
}

/// Names of all formats.
#[must_use]
pub fn words() -> Vec<&'static str> {
    FORMATS.iter().map(|format| format.word).collect()
}

/// Help text of `--report`.
#[must_use]
pub fn help() -> String {
    let words = words();
    let (last, others) = words.split_last().unwrap_or((&"", &[]));
    format!(
        "Write a report, FORMAT=PATH, for {} or {last}; the path - is standard output, which then holds that report \
         alone; can be given more than once",
        others.join(", ")
    )
}

impl PartialEq for Format {
    fn eq(&self, other: &Self) -> bool {
        self.word == other.word
    }
}

impl Eq for Format {}

impl fmt::Debug for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word)
    }
}
