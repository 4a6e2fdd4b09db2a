//! `pushback inspect`: an app's objects as a tree, with their readiness.

use clap::Args;
use pushback_events::{EndCause, MissingApp};
use pushback_kapp::{Ui, reports};
use pushback_system::environment::wall_clock;
use pushback_terminal::inspect_text;
use pushback_terminal::raw_objects::sorted_documents;

use super::arguments::{AppArgs, GlobalArgs};
use super::filters::FilterArgs;
use super::screen::ProgressNotes;
use crate::run::error::CommandError;
use crate::run::inspect::{Inspect, InspectedApp, LabelledApp, LabelledObjects};

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
    app: AppArgs,
    /// Show what the objects have made too: ReplicaSets, Pods
    #[arg(long, short = 't')]
    tree: bool,
    /// Show each object's status
    #[arg(long)]
    status: bool,
    /// Print the objects as YAML, Secrets masked
    #[arg(long)]
    raw: bool,
    /// With --raw: with metadata.managedFields
    #[arg(long)]
    managed_fields: bool,
    #[command(flatten)]
    filters: FilterArgs,
}

/// Runs the command in kapp's voice.
///
/// # Errors
/// The cluster's error; no such app.
pub async fn run_as_kapp(global: &GlobalArgs, ui: &mut Ui, arguments: InspectArgs) -> Result<(), CommandError> {
    let InspectArgs { app, filters, tree, status, raw, managed_fields } = arguments;
    let (scope, filter) = (filters.scope(), filters.resolve()?);
    let inspect = Inspect { cluster: global.cluster()?, app: app.resolve(), with_children: true, filter, scope };
    let LabelledApp { target, app, objects, elsewhere } = inspect.labelled(&ProgressNotes(global)).await?;
    target.iter().for_each(|target| reports::target(ui, target));
    let Some(LabelledObjects { own, others }) = objects else {
        let error = CommandError::usage("there is no such app");
        return Err(error.because(EndCause::NoApp(MissingApp { app: app.name, namespace: app.namespace, elsewhere })));
    };
    if raw {
        sorted_documents(own.iter().chain(&others), managed_fields).iter().for_each(|block| ui.block(block));
    } else if status {
        ui.table(&reports::statuses(&app.name, &own, &others))?;
    } else {
        ui.table(&reports::resources(&app.name, &own, &others, tree, wall_clock()))?;
    }
    Ok(())
}

/// Runs the command.
///
/// # Errors
/// The cluster's error; no such app.
pub async fn run(global: &GlobalArgs, arguments: InspectArgs) -> anyhow::Result<String> {
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
        inspect_text::table(&observed, &lines, status, server, wall_clock())
    })
}
