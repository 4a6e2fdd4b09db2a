//! `pushback plan`: saves what an apply would change, to be looked at, approved, and carried out later.

pub mod given;
pub mod show;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use pushback_events::exit::ExitCode;

use super::arguments::{AppArgs, DiffArgs, GlobalArgs, InputArgs, NewBaseArgs, PlanArgs, PreflightArgs, duration};
use super::reports::HeldDocument;
use super::screen;
use crate::run::app_name::app_name;
use crate::run::base::Base;
use crate::run::compare::Compare;
use crate::run::options::{Command, NamespaceOptions, RunOptions};
use crate::run::saved::SavePlan;
use given::Given;

/// Save what apply would change.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "\
Examples:
  pushback plan -a shop -f shop/ --out shop.plan      what apply would change, with the verdict
  pushback plan show shop.plan                        a look at it
  pushback apply --plan shop.plan                     exactly this, or exit code 11

Nothing is written to the cluster. A change that the rules refuse is not saved.

Exit codes: 0 saved, 1 wrong input, 10 refused and not saved, 13 unreachable; with
--diff-exit-status 2 no changes, 3 changes."
)]
pub struct PlanCommandArgs {
    #[command(subcommand)]
    command: Option<PlanCommand>,
    #[command(flatten)]
    making: MakePlanArgs,
    /// The options as they were given, to be kept in the plan.
    #[arg(skip)]
    pub(super) given: Given,
}

#[derive(Debug, Subcommand)]
enum PlanCommand {
    /// Show a saved plan
    Show(show::ShowArgs),
}

/// What is planned, and where it is saved.
#[derive(Debug, Args)]
pub struct MakePlanArgs {
    #[command(flatten)]
    app: PlanAppArgs,
    #[command(flatten, next_help_heading = "Input")]
    base: NewBaseArgs,
    #[command(flatten)]
    pub(super) input: InputArgs,
    #[command(flatten)]
    pub(super) plan: PlanArgs,
    #[command(flatten)]
    diff: DiffArgs,
    #[command(flatten)]
    pub(super) preflight: PreflightArgs,
    /// File to write the plan to
    #[arg(long, value_name = "FILE", help_heading = "Plan", required = true)]
    out: Option<PathBuf>,
    /// How long it may be carried out
    #[arg(long, value_parser = duration, default_value = "24h", value_name = "DURATION", help_heading = "Plan")]
    valid_for: Duration,
}

/// Which app. The parser requires it, unless it is a subcommand that is given.
#[derive(Debug, Args)]
#[command(next_help_heading = "App")]
struct PlanAppArgs {
    /// App name
    #[arg(long, short = 'a', value_name = "NAME", value_parser = app_name, required = true)]
    app: Option<String>,
    #[command(flatten)]
    namespace: NamespaceOptions,
}

impl MakePlanArgs {
    /// The app that is planned.
    pub(super) fn app(&self) -> AppArgs {
        let PlanAppArgs { app, namespace } = &self.app;
        AppArgs { app: app.clone().unwrap_or_default(), namespace: namespace.clone() }
    }
}

/// Runs the command.
pub async fn run(global: &GlobalArgs, arguments: PlanCommandArgs) -> ExitCode {
    let PlanCommandArgs { command, making, given } = arguments;
    match command {
        Some(PlanCommand::Show(arguments)) => screen::simple(global, show::run(global, &arguments)),
        None => make(global, making, given).await,
    }
}

async fn make(global: &GlobalArgs, making: MakePlanArgs, given: Given) -> ExitCode {
    let app = making.app();
    let MakePlanArgs { input, base: NewBaseArgs { new_base }, plan, diff, preflight, out, valid_for, .. } = making;
    let document = HeldDocument::default();
    let is_document = preflight.reports_to_standard_output();
    let started = screen::start(global, diff.style(), is_document, HeldDocument::clone(&document));
    screen::complete(global, started, async |run| {
        let (mut input, plan) = input.resolve(plan)?;
        input.load.digests = true;
        let options = RunOptions {
            command: Command::Plan,
            app: app.resolve(),
            cluster: global.cluster()?.strict(plan.options.strict),
            preflight: global.preflight(preflight, &document)?,
            observer: None,
        };
        let compare = Compare { options, input, plan, base: Base::from_flag(new_base), as_text: diff.diff_changes };
        let given = given.to_keep();
        let path = out.unwrap_or_default();
        SavePlan { compare, path, valid_for, given, exit_status: diff.diff_exit_status }.run(run).await
    })
    .await
}
