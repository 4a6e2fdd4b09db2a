//! `pushback delete`.

use clap::Args;
use pushback_events::exit::ExitCode;
use pushback_terminal::DiffStyle;

use super::arguments::{AppArgs, GlobalArgs, PreflightArgs};
use super::filters::SelectionArgs;
use super::reports::HeldDocument;
use super::screen;
use super::writing::WriteArgs;
use crate::run::app_name::app_name;
use crate::run::delete::Delete;
use crate::run::options::{AppOptions, Command, RecordOptions, RunOptions};

/// Delete an app with everything that it owns.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pushback delete -a shop
  pushback delete -a shop --yes --wait=false
  pushback delete -a shop --diff-run                         what it would delete
  pushback delete -a shop --filter-kind Job                  the app stays, with the rest

Objects whose delete-strategy is orphan stay. An app that does not exist is no error.

Exit codes: 0 done, 1 wrong input, 10 refused before anything was deleted, 12 another run holds the
app, 13 unreachable, 20 partly deleted, 21 a deletion has failed, 22 waiting timed out; with
--diff-exit-status 2 no changes, 3 changes.")]
pub struct DeleteArgs {
    #[command(flatten)]
    app: AppArgs,
    /// Earlier name of the app: it is deleted where there is none of the new name
    #[arg(long, value_name = "NAME", value_parser = app_name, help_heading = "App", hide_short_help = true)]
    prev_app: Option<String>,
    /// File with Config documents: order, waits, preflight rules; can be given more than once
    #[arg(long, env = "PUSHBACK_CONFIG", hide_env = true, value_name = "FILE")]
    config: Vec<String>,
    /// Stop after the plan
    #[arg(long)]
    diff_run: bool,
    /// With --diff-run, exit with 3 where there are changes and with 2 where there are none
    #[arg(long)]
    diff_exit_status: bool,
    #[command(flatten)]
    selection: SelectionArgs,
    #[command(flatten)]
    preflight: PreflightArgs,
    #[command(flatten)]
    write: WriteArgs,
}

/// Runs the command.
pub async fn run(global: &GlobalArgs, arguments: DeleteArgs) -> ExitCode {
    let DeleteArgs { app, prev_app, config, diff_run, diff_exit_status, selection, preflight, write } = arguments;
    let document = HeldDocument::default();
    let is_document = preflight.reports_to_standard_output();
    let started = screen::start(global, DiffStyle::None, is_document, HeldDocument::clone(&document));
    screen::complete(global, started, async |run| {
        write.timeout.into_iter().for_each(|limit| run.limit_to(limit));
        let options = RunOptions {
            command: if diff_run { Command::Diff } else { Command::Delete },
            cluster: global.cluster()?,
            app: AppOptions { record: RecordOptions { prev_app, ..RecordOptions::default() }, ..app.resolve() },
            preflight: global.preflight(preflight, &document)?,
            observer: global.behaviour.observer.clone(),
        };
        let delete = Delete {
            options,
            config,
            selection: selection.resolve()?,
            is_dry: diff_run,
            diff_exit_status,
            derived: global.behaviour.derived,
            write: write.resolve(),
        };
        delete.run(run).await
    })
    .await
}
