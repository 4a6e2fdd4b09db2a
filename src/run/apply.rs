//! Applying: look, plan, judge, ask, write; anew where somebody else has changed what the plan stands on.

use super::error::CommandError;
use super::judging::{self, Judged};
use super::look;
use super::options::{InputOptions, PlanOptions, RunOptions, WriteOptions};
use super::outcome::End;
use super::planning;
use super::running::Run;
use super::setup::{Setup, set_up};
use super::signals::until_stopped;
use super::write::{Ended, Writing, lock_locally};
use super::{ROUNDS, input};
use crate::app::record::{AppError, Phase};
use crate::event::{Counts, PlannedLine, RunOutcome};
use crate::exit::ExitCode;
use crate::manifest::Manifest;
use crate::plan::{self, Plan};

const ANOTHER_RUN: &str = "another run was at work on the app; planning again";

/// An apply.
#[derive(Clone, Debug)]
pub struct Apply {
    /// Where, what, by which rules.
    pub options: RunOptions,
    /// What is applied.
    pub input: InputOptions,
    /// How it is planned.
    pub plan: PlanOptions,
    /// Show changes as text.
    pub as_text: bool,
    /// How it is written.
    pub write: WriteOptions,
    /// Nobody need be asked.
    pub is_confirmed: bool,
}

/// How far an apply goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Upto {
    /// To the verdict of preflight: nothing is written.
    Verdict,
    /// To its end.
    End,
}

impl Apply {
    /// Applies, so far as is asked for.
    ///
    /// # Errors
    /// Wrong input, no cluster, another run at work, no consent: nothing is written then.
    pub async fn run(&self, run: &mut Run, upto: Upto) -> Result<End, CommandError> {
        let given = input::read(&self.input)?;
        let setup = set_up(run, &self.options, given.config, given.input.sources).await?;
        setup.require_writable()?;
        run.warn_input(&given.input.warnings);
        let mut local_lock = None;
        let mut confirmed: Option<Vec<PlannedLine>> = None;
        for round in 1..=ROUNDS {
            lock_locally(run, &setup, self.write.lock.patience, &mut local_lock).await?;
            let prepared = self.prepare(run, &setup, given.input.manifests.clone(), round == 1);
            let Some(plan) = until_stopped(run.stop.clone(), prepared).await? else {
                run.warn("plan-again", ANOTHER_RUN);
                continue;
            };
            let view = plan::View { config: &setup.config, text: false };
            let lines = plan::planned_lines(&plan, &view).1;
            if confirmed.as_ref() != Some(&lines) {
                planning::show(run, &setup, &plan, self.as_text);
            }
            let judged = judging::judge(run, &setup, &plan, &self.options.preflight);
            let Judged { report, second_look } = until_stopped(run.stop.clone(), judged).await?;
            if report.outcome.refuses() {
                if round < ROUNDS && look::has_moved(&setup, &look::record_state(&plan.observed)).await {
                    run.warn("plan-again", ANOTHER_RUN);
                    continue;
                }
                return Ok(End::refused(&report));
            }
            if upto == Upto::Verdict {
                return Ok(End::new(ExitCode::Success, RunOutcome::Succeeded, Counts::default()));
            }
            if plan.has_changes() && confirmed.as_ref() != Some(&lines) {
                if !self.is_confirmed {
                    run.confirm("Apply these changes?").await?;
                }
                confirmed = Some(lines);
            }
            if let Some(code) = run.stop.borrow().exit_code() {
                return Err(CommandError::stopped(code));
            }
            let writing = Writing {
                run,
                setup: &setup,
                write: &self.write,
                report: &report,
                second_look: &second_look,
                phase: Phase::Applying,
            };
            match writing.carry_out(&plan, &mut local_lock).await {
                Ok(Ended::Done(outcome)) => {
                    let end = End::of_apply(*outcome, plan.has_changes(), self.write.exit_status);
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
        first: bool,
    ) -> Result<Option<Plan>, CommandError> {
        let observed = look::look(run, setup, Some(self.write.lock.patience)).await?;
        let before = look::record_state(&observed);
        match planning::plan_apply(run, setup, observed, manifests, &self.plan, false).await {
            Ok((plan, warnings)) => {
                if first {
                    run.warn_input(&warnings);
                }
                Ok(Some(plan))
            }
            Err(_) if look::has_moved(setup, &before).await => Ok(None),
            Err(error) => Err(error),
        }
    }
}
