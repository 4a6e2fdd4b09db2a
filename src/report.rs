//! Everything that the user sees: the renderers of events, and the reports at the end. The only room that prints.
//! Data (plan, findings, JSON) goes to standard output, progress and errors to standard error.

pub mod defect;
pub mod definitions_text;
pub mod end_text;
pub mod error_text;
pub mod escape;
pub mod excerpt_text;
pub mod experiment_report;
pub mod finding_text;
pub mod finding_words;
pub mod github_report;
pub mod json;
pub mod json_report;
pub mod junit_report;
pub mod markdown_report;
pub mod moving;
pub mod output;
pub mod plain;
pub mod plan_text;
pub mod progress;
pub mod prompt;
pub mod release_markdown;
pub mod release_text;
pub mod render;
pub mod report_file;
pub mod sarif_report;
pub mod source_path;
pub mod suite_text;
pub mod table;
pub mod theme;
pub mod tty;
pub mod versioned_text;
pub mod witness_files;
pub mod words;

#[cfg(test)]
mod fixture;

pub use render::{DiffStyle, Format, RenderOptions, Reporter, system_clock};
pub use report_file::ReportSpec;
pub use theme::{ColorChoice, Theme};
