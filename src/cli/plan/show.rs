//! `pushback plan show`: a saved plan for people, or as JSON.
//! Needs no cluster.

use std::path::PathBuf;

use clap::Args;
use pushback_terminal::{RenderOptions, saved_plan_text};

use crate::cli::arguments::GlobalArgs;
use crate::cli::screen::{data_columns, data_theme};
use crate::run::error::CommandError;
use crate::run::saved;

/// Show a saved plan.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pushback plan show shop.plan
  pushback plan show shop.plan -v              nothing cut, and findings for information too
  pushback plan show shop.plan -o json

Needs no cluster. Shows what the file says if it is as it was written. Who has written it, a digest
does not say.

Exit codes: 0 shown, 1 no such file or no plan, 11 the file was edited, or a later version has made
it.")]
pub struct ShowArgs {
    /// The plan
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

/// Runs the command.
///
/// # Errors
/// The file is no plan, or was edited.
pub fn run(global: &GlobalArgs, arguments: &ShowArgs) -> Result<String, CommandError> {
    let plan = saved::read(&arguments.file)?;
    if global.wants_json() {
        return Ok(plan.render());
    }
    let options = RenderOptions {
        data_theme: data_theme(global),
        data_columns: data_columns(),
        verbose: global.verbose > 0,
        ..RenderOptions::default()
    };
    Ok(saved_plan_text::text(&plan, &options))
}
