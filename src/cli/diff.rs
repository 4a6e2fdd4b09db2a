//! `pushback diff`: apply that stops at the plan.

use clap::Args;
use pushback_preflight::judge::{self, RunReport};
use pushback_preflight::rule::Judgement;

use super::arguments::{DiffArgs, GlobalArgs, InputArgs, OptionalAppArgs, PlanArgs, PreflightArgs};
use super::run::Run;
use crate::event::{Counts, RunOutcome};
use crate::exit::ExitCode;
use crate::plan::Plan;
use crate::report::DiffStyle;
use crate::run::error::CommandError;
use crate::run::outcome::End;
use crate::run::pipeline::Setup;
use crate::run::{input, pipeline, write};

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

Exit codes: 0 done, 1 wrong input, 10 the server, or with --preflight a rule, refuses it, 13 no
cluster; with --diff-exit-status 2 no changes, 3 changes.")]
pub struct DiffCommandArgs {
    #[command(flatten)]
    pub(super) app: OptionalAppArgs,
    #[command(flatten)]
    pub(super) input: InputArgs,
    #[command(flatten)]
    pub(super) plan: PlanArgs,
    #[command(flatten)]
    pub(super) diff: DiffArgs,
    #[command(flatten)]
    pub(super) preflight: PreflightArgs,
}

/// Runs the command.
pub async fn run(global: &GlobalArgs, arguments: DiffCommandArgs) -> ExitCode {
    let style = if arguments.diff.diff_changes { DiffStyle::Text } else { DiffStyle::Fields };
    super::run::complete(global, Run::start(global, style, &arguments.preflight), async |run| {
        show(global, run, arguments).await
    })
    .await
}

async fn show(global: &GlobalArgs, run: &mut Run, arguments: DiffCommandArgs) -> Result<End, CommandError> {
    let DiffCommandArgs { app, input, plan, diff, preflight } = arguments;
    let (app, named) = app.resolve(global)?;
    let given = input::read(&input)?;
    let mut setup = pipeline::set_up(run, global, "diff", &app, given.config, &preflight).await?;
    setup.named = named;
    setup.sources = given.input.sources;
    run.warn_input(&given.input.warnings);
    let stop = run.stop.clone();
    let judged = preflight.preflight.is_some();
    let work = async {
        let observed = pipeline::look(run, &setup, None).await?;
        let (plan, warnings) =
            pipeline::plan_apply(run, &setup, observed, given.input.manifests, &input, &plan, true).await?;
        run.warn_input(&warnings);
        pipeline::show_plan(run, &setup, &plan, diff.diff_changes);
        let report = match judged {
            true => pipeline::judge(run, &setup, &plan, &preflight).await?.report,
            false => told_by_the_server(run, &setup, &plan)?,
        };
        Ok((plan, report))
    };
    let (plan, report) = pipeline::until_stopped(stop, work).await?;
    if report.outcome.refuses() {
        let mut end = write::refused(&report);
        if !judged {
            end.error = report.rules.iter().flat_map(|rule| rule.unable.clone()).collect::<Vec<_>>().join("\n");
        }
        return Ok(end);
    }
    let (code, word) = match (plan.has_changes(), diff.diff_exit_status) {
        (true, true) => (ExitCode::Changes, RunOutcome::Changes),
        (false, true) => (ExitCode::NoChanges, RunOutcome::Unchanged),
        (true, false) => (ExitCode::Success, RunOutcome::Changes),
        (false, false) => (ExitCode::Success, RunOutcome::Unchanged),
    };
    Ok(End::new(code, word, Counts::default()))
}

/// What the plan itself has met, shown and reported: no rule runs.
fn told_by_the_server(run: &Run, setup: &Setup, plan: &Plan) -> Result<RunReport, CommandError> {
    let server = Judgement { findings: plan.refusals.clone(), unable: plan.unable.clone() };
    let report = judge::judge(Vec::new(), server, &[], &run.surroundings.today());
    pipeline::show_findings(run, setup, plan, &report.findings);
    pipeline::write_reports(run, setup, plan, &report)?;
    Ok(report)
}
