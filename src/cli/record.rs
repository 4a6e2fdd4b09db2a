//! Arguments about an app's record: labels, an earlier name, where it is written to.

use std::path::PathBuf;

use clap::Args;

use super::app_name::app_name;
use crate::run::options::RecordOptions;

/// About the app's record.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "App")]
pub struct RecordArgs {
    /// Earlier name of the app: if there is no app of the new name, and one of this, it is renamed first
    #[arg(long, value_name = "NAME", value_parser = app_name)]
    prev_app: Option<String>,
    #[command(flatten)]
    written: WrittenRecordArgs,
}

/// How an app's record is written.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "App")]
pub struct WrittenRecordArgs {
    /// Labels of the app's record, KEY=VALUE; a value stays as it was first given
    #[arg(long, value_name = "LABELS", value_parser = label, value_delimiter = ',')]
    labels: Vec<(String, String)>,
    /// Write kapp's part of the record to this file, JSON: label, last change, kinds
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    app_metadata_file_output: Option<PathBuf>,
    /// Name the record NAME.apps.k14s.io, one of kapp's two names for it; a record under the other is renamed first
    #[arg(long, hide_short_help = true)]
    fq_configmap_names: bool,
}

impl RecordArgs {
    /// Resolves to options.
    #[must_use]
    pub fn resolve(self) -> RecordOptions {
        RecordOptions { previous: self.prev_app, ..self.written.resolve() }
    }
}

impl WrittenRecordArgs {
    /// Resolves to options.
    #[must_use]
    pub fn resolve(self) -> RecordOptions {
        RecordOptions {
            previous: None,
            labels: self.labels,
            qualified: self.fq_configmap_names,
            file: self.app_metadata_file_output,
        }
    }
}

fn label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("expected KEY=VALUE".to_owned()),
    }
}
