//! `pushback inspect`: an app's objects as a tree, with their readiness.

use clap::Args;
use pushback_system::environment::wall_clock;
use pushback_terminal::inspect_text::{self, InspectTable};

use super::arguments::{AppArgs, GlobalArgs};
use super::filters::FilterArgs;
use super::screen::{ProgressNotes, data_columns};
use crate::run::error::CommandError;
use crate::run::inspect::{Inspect, InspectedApp};

/// Show an app.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pushback inspect -a shop
  pushback inspect -a shop --tree --status
  pushback inspect -a shop --filter-kind Deployment,Pod --tree

Exit codes: 0 shown, 1 no such app or wrong input, 13 unreachable.")]
pub struct InspectArgs {
    #[command(flatten)]
    pub(crate) app: AppArgs,
    /// Show what the objects have made too: ReplicaSets, Pods
    #[arg(long, short = 't')]
    pub(crate) tree: bool,
    /// Show each object's status
    #[arg(long)]
    pub(crate) status: bool,
    /// Print the objects as YAML, Secrets masked
    #[arg(long)]
    pub(crate) raw: bool,
    /// With --raw: with metadata.managedFields
    #[arg(long)]
    pub(crate) managed_fields: bool,
    #[command(flatten)]
    pub(crate) filters: FilterArgs,
}

/// Runs the command.
///
/// # Errors
/// The cluster's error; no such app.
pub async fn run(global: &GlobalArgs, arguments: InspectArgs) -> Result<String, CommandError> {
    let InspectArgs { app, filters, tree, status, raw, managed_fields } = arguments;
    let (scope, filter) = (filters.scope(), filters.resolve()?);
    let inspect = Inspect { cluster: global.cluster()?, app: app.resolve(), with_children: tree, filter, scope };
    let InspectedApp { observed, lines, server, objects } = inspect.run(&ProgressNotes(global)).await?;
    if raw {
        return Ok(inspect_text::raw(&objects, managed_fields, global.wants_json()));
    }
    Ok(if global.wants_json() {
        inspect_text::json(&observed, &lines)
    } else {
        inspect_text::table(
            &observed,
            &lines,
            InspectTable { with_status: status, server, now: wall_clock(), columns: data_columns() },
        )
    })
}
