//! `pushback diff`: apply that stops at the plan.

use clap::Args;
use pushback_events::exit::ExitCode;

use super::arguments::{DiffArgs, GlobalArgs, InputArgs, NewBaseArgs, OptionalAppArgs, PlanArgs, PreflightArgs};
use super::reports::HeldDocument;
use super::screen;
use crate::run::base::Base;
use crate::run::compare::Compare;
use crate::run::options::{AppOptions, Command, RecordOptions, RunOptions};

/// Show what apply would change.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pushback diff -a shop -f shop/                 against the cluster of the kubeconfig
  pushback diff -a shop -f shop/ -c              as text
  pushback diff -a shop -f shop/ --diff-exit-status
  pushback diff -a shop -f shop/ --preflight     and what the rules say of it
  pushback diff -f new.yaml --cluster file:old.yaml   two files

What the server refuses is shown too. The preflight rules run with --preflight; `pushback check`
always runs them.

Exit codes: 0 done, 1 wrong input, 10 the server, or with --preflight a rule, refuses it, 13
unreachable; with --diff-exit-status 2 no changes, 3 changes.")]
pub struct DiffCommandArgs {
    #[command(flatten)]
    pub(super) app: OptionalAppArgs,
    #[command(flatten)]
    pub(super) record: RecordOptions,
    #[command(flatten)]
    pub(super) input: InputArgs,
    #[command(flatten)]
    pub(super) base: NewBaseArgs,
    #[command(flatten)]
    pub(super) plan: PlanArgs,
    #[command(flatten)]
    pub(super) diff: DiffArgs,
    #[command(flatten)]
    pub(super) preflight: PreflightArgs,
    /// True if this is an apply that stops at the plan.
    #[arg(skip)]
    pub(super) of_apply: bool,
}

/// Runs the command.
pub async fn run(global: &GlobalArgs, arguments: DiffCommandArgs) -> ExitCode {
    let DiffCommandArgs { app, record, input, base: NewBaseArgs { new_base }, plan, diff, preflight, of_apply } =
        arguments;
    let document = HeldDocument::default();
    let is_document = preflight.reports_to_standard_output();
    let started = screen::start(global, diff.style(), is_document, HeldDocument::clone(&document));
    screen::complete(global, started, async |run| {
        let is_judged = preflight.rules.preflight.is_some();
        let (input, plan) = input.resolve(plan)?;
        let plan = global.planning(plan);
        let options = RunOptions {
            command: Command::Diff,
            app: AppOptions { record, ..app.resolve(global)? },
            cluster: global.cluster()?.strict(plan.options.strict),
            preflight: global.preflight(preflight, &document)?,
            observer: global.behaviour.observer.clone(),
        };
        let base = if of_apply { Base::Created } else { Base::from_flag(new_base) };
        Compare { options, input, plan, base, as_text: diff.diff_changes }
            .diff(run, is_judged, diff.diff_exit_status)
            .await
    })
    .await
}
