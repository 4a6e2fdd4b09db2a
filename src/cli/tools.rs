//! `pushback tools`: the objects of files, and what changes from one input to another, without a cluster. For scripts
//! that were written for kapp.

use std::sync::Arc;

use clap::{ArgAction, Args, Subcommand};
use pushback_deploy::plan::filter::ChangeFilter;
use pushback_events::Millis;
use pushback_manifest::Manifest;
use pushback_objects::Position;
use pushback_terminal::live::plan_text::plan_text;
use pushback_terminal::raw_objects::documents;
use pushback_terminal::table::Table;
use pushback_terminal::{DiffStyle, RenderOptions};
use serde_json::json;

use super::arguments::GlobalArgs;
use super::filters::FilterArgs;
use super::screen;
use crate::run::error::CommandError;
use crate::run::tools;

/// Look at files without a cluster.
#[derive(Debug, Args)]
pub struct ToolsArgs {
    #[command(subcommand)]
    pub(crate) command: ToolsCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ToolsCommand {
    /// List the objects of files
    #[command(alias = "i")]
    Inspect(InspectArgs),
    /// Show what changes from one input to another: `pushback diff --cluster file:OLD`
    Diff(DiffArgs),
}

/// List the objects of files.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pushback tools inspect -f shop/

Exit codes: 0 shown, 1 wrong input.")]
pub(crate) struct InspectArgs {
    /// File, directory, https URL, or - for standard input; can be given more than once
    #[arg(long = "file", short = 'f', value_name = "PATH")]
    pub(crate) files: Vec<String>,
    /// Print the objects as YAML, Secrets masked
    #[arg(long)]
    pub(crate) raw: bool,
    /// Sort them by namespace, name and kind
    #[arg(long, default_value_t = true, action = ArgAction::Set, value_name = "BOOL", num_args = 0..=1,
          default_missing_value = "true", require_equals = true)]
    pub(crate) sort: bool,
    #[command(flatten)]
    pub(crate) filters: FilterArgs,
}

/// Show what changes from one input to another.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pushback tools diff -f new.yaml --file2 old.yaml -c
  pushback diff -f new.yaml --cluster file:old.yaml       the same, with everything that diff can do

Exit codes: 0 shown, 1 wrong input.")]
pub(crate) struct DiffArgs {
    /// The new side: file, directory, https URL, or - for standard input; can be given more than once
    #[arg(long = "file", short = 'f', value_name = "PATH")]
    pub(crate) files: Vec<String>,
    /// The old side; can be given more than once
    #[arg(long, value_name = "PATH")]
    pub(crate) file2: Vec<String>,
    /// Show changes as text, with the lines around them
    #[arg(long, short = 'c')]
    pub(crate) changes: bool,
    /// Only changes that this JSON selects
    #[arg(long, value_name = "JSON", value_parser = ChangeFilter::parse, default_value = "", hide_default_value = true)]
    pub(crate) filter: ChangeFilter,
    /// Show the table of changes
    #[arg(long, default_value_t = true, action = ArgAction::Set, value_name = "BOOL", num_args = 0..=1,
          default_missing_value = "true", require_equals = true, hide = true)]
    pub(crate) summary: bool,
    /// Unchanged lines around a change; negative: all
    #[arg(long, default_value_t = 2, allow_negative_numbers = true, value_name = "LINES", hide = true)]
    pub(crate) context: i64,
    /// Show line numbers
    #[arg(long, default_value_t = true, action = ArgAction::Set, value_name = "BOOL", num_args = 0..=1,
          default_missing_value = "true", require_equals = true, hide = true)]
    pub(crate) line_numbers: bool,
    /// Print the new objects as YAML
    #[arg(long, hide = true)]
    pub(crate) changes_yaml: bool,
}

/// Runs `tools`.
///
/// # Errors
/// All errors in the input.
pub fn run(global: &GlobalArgs, arguments: ToolsArgs) -> Result<String, CommandError> {
    Ok(match arguments.command {
        ToolsCommand::Inspect(arguments) => inspect(global, arguments)?,
        ToolsCommand::Diff(arguments) => diff(global, &arguments)?,
    })
}

/// Objects of files that the filters select.
///
/// # Errors
/// All errors in the input and the filters.
pub(crate) fn read(files: &[String], is_sorted: bool, filters: FilterArgs) -> Result<Vec<Manifest>, CommandError> {
    let mut objects = tools::read(files, &filters.resolve()?)?;
    if is_sorted {
        tools::sort(&mut objects);
    }
    Ok(objects)
}

fn inspect(global: &GlobalArgs, arguments: InspectArgs) -> Result<String, CommandError> {
    let InspectArgs { files, raw, sort, filters } = arguments;
    let manifests = read(&files, sort, filters)?;
    if raw {
        let objects: Vec<_> = manifests.into_iter().map(|manifest| Arc::new(manifest.value)).collect();
        return Ok(documents(objects.iter(), false).concat());
    }
    if global.wants_json() {
        let objects: Vec<_> = manifests.iter().map(|manifest| json!(manifest.object)).collect();
        return Ok(format!("{:#}\n", json!({"schemaVersion": 1, "objects": objects})));
    }
    let mut table = Table::new(&["NAMESPACE", "KIND", "NAME", "PLACE"]).with_names(&[0, 1, 2]);
    for manifest in &manifests {
        let place = Position { column: 0, ..manifest.positions.start() }.to_string();
        table.row(&[&manifest.object.namespace, &manifest.object.kind, &manifest.object.name, &place]);
    }
    Ok(table.text_for(screen::data_columns(), "…"))
}

/// Both sides of a comparison: the old one, then the new one.
///
/// # Errors
/// All errors in the input.
pub(crate) fn sides(arguments: &DiffArgs) -> Result<(Vec<Manifest>, Vec<Manifest>), CommandError> {
    let side = |files: &[String]| tools::read(files, &pushback_deploy::plan::filter::ObjectFilter::default());
    Ok((side(&arguments.file2)?, side(&arguments.files)?))
}

fn diff(global: &GlobalArgs, arguments: &DiffArgs) -> Result<String, CommandError> {
    let (old, new) = sides(arguments)?;
    let (counts, lines) = tools::changes(&tools::pairs(&old, &new, &arguments.filter), arguments.changes);
    if global.wants_json() {
        let changed: Vec<_> = lines.iter().filter(|line| line.operation.writes()).collect();
        return Ok(format!("{:#}\n", json!({"schemaVersion": 1, "counts": counts, "changes": changed})));
    }
    let options = RenderOptions {
        data_theme: screen::data_theme(global),
        data_columns: screen::data_columns(),
        verbose: global.verbose > 0,
        diff: if arguments.changes { DiffStyle::Text } else { DiffStyle::Fields },
        ..RenderOptions::default()
    };
    Ok(plan_text(&lines, &counts, Millis(0), &options))
}
