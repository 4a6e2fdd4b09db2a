//! `pushback upgrade model`: derives operator models from manifests or a live app.

use clap::builder::{PathBufValueParser, TypedValueParser};
use clap::{ArgGroup, Args, Subcommand};
use pushback_upgrade::report::formats::yaml;

use super::arguments::output_path;
use super::ended::RenderedReport;
use crate::cli::arguments::{GlobalArgs, Output};
use crate::cli::screen::ProgressNotes;
use crate::run::app_name::app_name;
use crate::run::error::CommandError;
use crate::run::options::NamespaceOptions;
use crate::run::upgrade::derive::Derive;

/// Work with operator models.
#[derive(Debug, Args)]
pub struct ModelArgs {
    #[command(subcommand)]
    pub command: ModelCommand,
}

/// What can be done with models.
#[derive(Debug, Subcommand)]
pub enum ModelCommand {
    /// Derive a model from manifests or a live app, and print it as one that can be kept and edited
    Derive(DeriveArgs),
}

/// Derive a model.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("source").args(["files", "app"]).required(true).multiple(true)))]
#[command(after_help = "\
Examples:
  pushback upgrade model derive -f deploy/
  pushback upgrade model derive -f deploy/ -a shop --output knowledge/shop.yaml
  pushback upgrade model derive -f deploy/ -f corrections.yaml
  pushback upgrade model derive -a shop --cluster kube

Models among the files are laid over what the manifests show. Without -f the app is read
from the cluster.

Exit codes: 0 printed or written, 1 wrong input, 13 unreachable.")]
pub struct DeriveArgs {
    /// Manifests: a folder (read recursively), a file, git:REF:PATH, an https URL, or - for standard input; can be given
    /// more than once
    #[arg(long = "file", short = 'f', value_name = "PATH")]
    files: Vec<String>,
    /// App name; with -f the name of the operator [default there: what app.kubernetes.io/part-of says]
    #[arg(long, short = 'a', value_name = "NAME", value_parser = app_name)]
    app: Option<String>,
    #[command(flatten)]
    namespace: NamespaceOptions,
    /// Allow http URLs
    #[arg(long, hide_short_help = true)]
    allow_http: bool,
    /// Follow symbolic links that lead out of a directory that is read
    #[arg(long, hide_short_help = true)]
    follow_links: bool,
    /// Write it to this file instead of standard output
    #[arg(long, value_name = "PATH", value_parser = PathBufValueParser::new().map(Output::Path))]
    output: Option<Output>,
}

/// Runs the command.
///
/// # Errors
/// The manifests cannot be read; no such app.
pub async fn run(global: &GlobalArgs, arguments: ModelArgs) -> Result<RenderedReport, CommandError> {
    let ModelCommand::Derive(DeriveArgs { files, app, namespace, allow_http, follow_links, output }) =
        arguments.command;
    let path = output_path(output.as_ref())?;
    let derive = match app {
        Some(app) if files.is_empty() => Derive::App { cluster: global.cluster()?, app, namespace },
        app => Derive::Manifests {
            files,
            app: app.unwrap_or_default(),
            namespace: namespace.namespace.unwrap_or_default(),
            allow_http,
            follow_links,
        },
    };
    let mut text = String::new();
    for document in derive.run(&ProgressNotes(global)).await? {
        let failed = |error| CommandError::usage(format!("the model cannot be written: {error}"));
        text.push_str("---\n");
        text.push_str(&yaml(&document).map_err(failed)?);
    }
    Ok(RenderedReport::good(text, path))
}
