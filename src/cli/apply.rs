//! `pushback apply`.

use std::time::Duration;

use clap::{Args, Parser};

use super::arguments::{AppArgs, DiffArgs, GlobalArgs, InputArgs, PlanArgs, PreflightArgs, WriteArgs};
use super::run::Run;
use crate::app::record::{AppError, Phase};
use crate::event::{Counts, RunOutcome};
use crate::exit::ExitCode;
use crate::manifest::Manifest;
use crate::plan::Plan;
use crate::report::DiffStyle;
use crate::run::error::CommandError;
use crate::run::outcome::End;
use crate::run::pipeline::{self, Setup};
use crate::run::write::{self, Ended};
use crate::run::{input, signals};

/// How often a plan is made anew before anything is written, when somebody else changes what it stands on.
const ROUNDS: u32 = 4;

const ANOTHER_RUN: &str = "another run was at work on the app; planning again";

/// Apply manifests as an app.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pushback apply -a shop -f shop/                            to the cluster of the kubeconfig
  pushback apply -a shop -f shop/ --cluster dir:rendered     into a folder of YAML
  kustomize build . | pushback apply -a shop -f - --yes      from standard input

Exit codes: 0 done, 1 wrong input, 10 refused before anything was written, 12 another run holds the
app, 13 no cluster, 20 partly written, 21 an object has failed, 22 waiting timed out.")]
pub struct ApplyArgs {
    #[command(flatten)]
    app: AppArgs,
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    plan: PlanArgs,
    #[command(flatten)]
    diff: DiffArgs,
    /// Stop after the plan, as `pushback diff` does; with --preflight, after the rules
    #[arg(long, help_heading = "Diff")]
    diff_run: bool,
    #[command(flatten)]
    preflight: PreflightArgs,
    #[command(flatten)]
    write: WriteArgs,
}

/// Runs the command.
pub async fn run(global: &GlobalArgs, arguments: ApplyArgs) -> ExitCode {
    let ApplyArgs { app, input, plan, diff, diff_run, preflight, write } = arguments;
    if diff_run {
        return super::diff::run(
            global,
            super::diff::DiffCommandArgs { app: app.into(), input, plan, diff, preflight },
        )
        .await;
    }
    let style = if diff.diff_changes { DiffStyle::Text } else { DiffStyle::Fields };
    let started = Run::start(global, style, &preflight);
    let apply = Apply { global, command: "apply", upto: Upto::End, app, input, plan, diff, preflight, write };
    super::run::complete(global, started, async |run| apply.run(run).await).await
}

/// How far an apply goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Upto {
    /// To the verdict of preflight: nothing is written.
    Verdict,
    /// To its end.
    End,
}

/// Applies as a part of another command's run; nobody is asked. The arguments are those of `pushback apply`.
///
/// # Errors
/// As the command's.
pub async fn within(
    global: &GlobalArgs,
    run: &mut Run,
    command: &'static str,
    arguments: &[String],
    upto: Upto,
) -> Result<End, CommandError> {
    /// The command's arguments alone.
    #[derive(Debug, Parser)]
    struct Alone {
        #[command(flatten)]
        arguments: ApplyArgs,
    }
    let given = std::iter::once("apply").chain(arguments.iter().map(String::as_str));
    let Alone { arguments } = Alone::try_parse_from(given).map_err(|error| CommandError::usage(error.to_string()))?;
    let ApplyArgs { app, input, plan, diff, diff_run: _, preflight, write } = arguments;
    let global = GlobalArgs { yes: true, ..global.clone() };
    Apply { global: &global, command, upto, app, input, plan, diff, preflight, write }.run(run).await
}

struct Apply<'a> {
    global: &'a GlobalArgs,
    command: &'static str,
    upto: Upto,
    app: AppArgs,
    input: InputArgs,
    plan: PlanArgs,
    diff: DiffArgs,
    preflight: PreflightArgs,
    write: WriteArgs,
}

impl Apply<'_> {
    async fn run(&self, run: &mut Run) -> Result<End, CommandError> {
        let given = input::read(&self.input)?;
        let mut setup =
            pipeline::set_up(run, self.global, self.command, &self.app, given.config, &self.preflight).await?;
        setup.sources = given.input.sources;
        pipeline::require_writable(&setup)?;
        run.warn_input(&given.input.warnings);
        let patience = self.write.lock_wait.unwrap_or(self.write.lock_lease + Duration::from_secs(5));
        let mut local_lock = None;
        let mut confirmed: Option<Vec<crate::event::PlannedLine>> = None;
        for round in 1..=ROUNDS {
            write::lock_locally(run, &setup, patience, &mut local_lock).await?;
            let stop = run.stop.clone();
            let manifests = given.input.manifests.clone();
            let prepared = self.prepare(run, &setup, manifests, patience, round == 1);
            let Some(plan) = pipeline::until_stopped(stop, prepared).await? else {
                run.warn("plan-again", ANOTHER_RUN);
                continue;
            };
            let view = crate::plan::View { config: &setup.config, text: false };
            let lines = crate::plan::planned_lines(&plan, &view).1;
            if confirmed.as_ref() != Some(&lines) {
                pipeline::show_plan(run, &setup, &plan, self.diff.diff_changes);
            }
            let pipeline::Judged { report, second_look } =
                pipeline::until_stopped(run.stop.clone(), pipeline::judge(run, &setup, &plan, &self.preflight)).await?;
            if report.outcome.refuses() {
                if round < ROUNDS && pipeline::has_moved(&setup, &pipeline::record_state(&plan.observed)).await {
                    run.warn("plan-again", ANOTHER_RUN);
                    continue;
                }
                return Ok(write::refused(&report));
            }
            if self.upto == Upto::Verdict {
                return Ok(End::new(ExitCode::Success, RunOutcome::Succeeded, Counts::default()));
            }
            if plan.has_changes() && confirmed.as_ref() != Some(&lines) {
                run.confirm(self.global, "Apply these changes?").await?;
                confirmed = Some(lines);
            }
            if let Some(code) = signals::exit_code(*run.stop.borrow()) {
                return Err(CommandError::stopped(code));
            }
            let writing = write::Writing {
                run,
                setup: &setup,
                write: &self.write,
                report: &report,
                second_look: &second_look,
                phase: Phase::Applying,
            };
            match writing.carry_out(&plan, &mut local_lock).await {
                Ok(Ended::Done(outcome)) => {
                    let end = self.end(&plan, *outcome);
                    // The process ends now: to take thousands of objects apart is a tenth of a run without a change.
                    std::mem::forget(plan);
                    return Ok(end);
                }
                Ok(Ended::Stopped(code)) => return Err(CommandError::stopped(code)),
                Ok(Ended::PlanAgain) if round < ROUNDS => {
                    run.warn("plan-again", "the cluster has changed since the plan was made; planning again");
                }
                Err(AppError::Changed { .. }) if round < ROUNDS => {
                    run.warn("plan-again", ANOTHER_RUN);
                }
                Ok(Ended::PlanAgain) => {
                    return Err(AppError::Changed { app: setup.app.name.clone() }.into());
                }
                Err(error) => return Err(error.into()),
            }
        }
        Err(AppError::Changed { app: setup.app.name.clone() }.into())
    }

    /// Looks and plans; `None` where another run has written meanwhile, so that what was seen is half its work.
    async fn prepare(
        &self,
        run: &Run,
        setup: &Setup,
        manifests: Vec<Manifest>,
        patience: Duration,
        first: bool,
    ) -> Result<Option<Plan>, CommandError> {
        let observed = pipeline::look(run, setup, Some(patience)).await?;
        let before = pipeline::record_state(&observed);
        match pipeline::plan_apply(run, setup, observed, manifests, &self.input, &self.plan, false).await {
            Ok((plan, warnings)) => {
                if first {
                    run.warn_input(&warnings);
                }
                Ok(Some(plan))
            }
            Err(_) if pipeline::has_moved(setup, &before).await => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn end(&self, plan: &Plan, outcome: crate::apply::engine::Outcome) -> End {
        let changed = outcome.done.writes() > 0;
        let mut end = End::engine(outcome);
        if end.code == ExitCode::Success {
            if !plan.has_changes() {
                end.outcome = RunOutcome::Unchanged;
            }
            if self.write.apply_exit_status {
                end.code = if changed { ExitCode::Changes } else { ExitCode::NoChanges };
            }
        }
        end
    }
}
