//! Changes between two releases, in each format.

use pushback_releases::ReleaseDiff;
use serde::Serialize;
use serde_json::Value;

use super::formats::ReleaseReport;
use super::{difference_html, difference_markdown, difference_text};

impl ReleaseReport for ReleaseDiff {
    fn table(&self, columns: Option<usize>) -> String {
        difference_text::table(self, columns)
    }

    fn markdown(&self) -> String {
        difference_markdown::text(self)
    }

    fn page(&self) -> String {
        difference_html::text(self)
    }

    fn data(&self) -> serde_json::Result<Value> {
        serde_json::to_value(Report { schema_version: 1, diff: self })
    }
}

/// The report for programs.
#[derive(Debug, Serialize)]
struct Report<'a> {
    #[serde(rename = "schemaVersion")]
    schema_version: u32,
    #[serde(flatten)]
    diff: &'a ReleaseDiff,
}
