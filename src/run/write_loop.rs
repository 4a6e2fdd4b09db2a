//! The loop of apply and delete: read the app, plan, judge, ask, write. It is repeated if another run or the cluster has
//! changed what the plan is based on.

use std::ops::ControlFlow;

use pushback_app::record::{AppError, AppName, Observed};
use pushback_deploy::apply::engine::Outcome;
use pushback_deploy::plan::{self, Plan};
use pushback_events::exit::ExitCode;
use pushback_events::{Counts, PlannedLine, RunFailure, RunOutcome};
use pushback_preflight::judge::RunReport;

use super::error::CommandError;
use super::options::{PreflightOptions, WriteOptions};
use super::outcome::End;
use super::planning::PlanDisplay;
use super::running::Run;
use super::setup::Setup;
use super::signals::until_stopped;
use super::write::{WriteEnd, Writing, lock_locally};
use super::{judging, planning, record};

/// Maximum number of plans, if each is outdated before it is carried out.
const ROUNDS: u32 = 4;

const APP_CHANGED: &str = "another run was at work on the app; planning again";

const CLUSTER_CHANGED: &str = "the cluster has changed since the plan was made; planning again";

/// The step at which the loop stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopAfter {
    /// After the preflight verdict: nothing is written.
    Verdict,
    /// After everything is written.
    End,
}

/// Result of the loop.
#[derive(Debug)]
pub struct LoopEnd {
    /// End of the run.
    pub end: End,
    /// Changes of the judged plan that the user has not agreed to, if nothing was written.
    pub unagreed: Option<Vec<PlannedLine>>,
}

impl From<End> for LoopEnd {
    fn from(end: End) -> Self {
        Self { end, unagreed: None }
    }
}

/// Number of a round, counted from 1.
#[derive(Clone, Copy, Debug)]
pub(super) struct Round(u32);

impl Round {
    pub(super) fn is_first(self) -> bool {
        self.0 == 1
    }

    pub(super) fn is_last(self) -> bool {
        self.0 == ROUNDS
    }
}

/// The steps in which apply and delete differ.
pub(super) trait LoopSteps {
    /// Plans; breaks with the end of the run if there is nothing to plan.
    async fn plan(&mut self, round: Round, observed: Observed) -> Result<ControlFlow<End, Plan>, CommandError>;

    /// Returns the form in which the plan is shown.
    fn display(&self) -> PlanDisplay<'_>;

    /// Checks a plan that is shown, before the rules judge it.
    fn check_plan(&self, plan: &Plan) -> Result<(), CommandError>;

    /// Checks the report of the rules.
    fn check_report(&self, _report: &RunReport) -> Result<(), CommandError> {
        Ok(())
    }

    /// Returns whether the report stops the run before the first write.
    fn is_refused(&self, _plan: &Plan, report: &RunReport) -> bool {
        report.outcome.refuses()
    }

    /// The question to ask before the first write; `None` if the user has agreed in advance.
    fn question(&self, plan: &Plan) -> Option<String>;

    /// Prepares the first write. Breaks if that changed the app record, so that the plan is outdated.
    async fn prepare_write(&self, _plan: &Plan) -> Result<ControlFlow<()>, CommandError> {
        Ok(ControlFlow::Continue(()))
    }

    /// Ends the run after the writes; continues if another round has to follow.
    async fn finish(
        &mut self,
        round: Round,
        plan: Plan,
        report: &RunReport,
        outcome: Outcome,
    ) -> Result<ControlFlow<End>, CommandError>;
}

/// Context of the loop.
#[derive(Clone, Copy, Debug)]
pub(super) struct WriteLoop<'a> {
    pub(super) run: &'a Run,
    pub(super) setup: &'a Setup,
    pub(super) preflight: &'a PreflightOptions,
    pub(super) write: &'a WriteOptions,
}

impl WriteLoop<'_> {
    /// Runs the loop up to this step. Changes that the user has agreed to before are not asked about again.
    ///
    /// # Errors
    /// The error of a step before the first write; the user declined, or another run stays at work.
    pub(super) async fn run(
        &self,
        mut steps: impl LoopSteps,
        upto: StopAfter,
        mut agreed: Option<Vec<PlannedLine>>,
    ) -> Result<LoopEnd, CommandError> {
        let Self { run, setup, preflight, write } = *self;
        let mut local_lock = None;
        for round in (1..=ROUNDS).map(Round) {
            if local_lock.is_none() {
                local_lock = lock_locally(run, setup, write.lock.patience).await?;
            }
            let plan = match until_stopped(run.stop.clone(), self.plan(round, &mut steps)).await? {
                Some(ControlFlow::Continue(plan)) => plan,
                Some(ControlFlow::Break(end)) => return Ok(end.into()),
                None => {
                    run.warn("plan-again", APP_CHANGED);
                    continue;
                }
            };
            let lines = plan::planned_lines(&plan, &plan::View { config: &setup.config, text: false }).1;
            let unagreed = (agreed.as_ref() != Some(&lines)).then_some(lines);
            if unagreed.is_some() || round.is_first() {
                planning::show(run, setup, &plan, PlanDisplay { is_known: unagreed.is_none(), ..steps.display() });
            }
            steps.check_plan(&plan)?;
            let judged = until_stopped(run.stop.clone(), judging::judge(run, setup, &plan, preflight)).await?;
            steps.check_report(&judged.report)?;
            if steps.is_refused(&plan, &judged.report) {
                let before = record::record_state(&plan.observed);
                if !round.is_last() && record::has_changed_since(setup, &before).await {
                    run.warn("plan-again", APP_CHANGED);
                    continue;
                }
                return Ok(LoopEnd { end: End::refused(&judged.report), unagreed });
            }
            if upto == StopAfter::Verdict {
                let end = End::new(ExitCode::Success, RunOutcome::Succeeded, Counts::default());
                return Ok(LoopEnd { end, unagreed });
            }
            if let Some(lines) = unagreed.filter(|_| plan.deletes_app || plan.has_changes()) {
                if let Some(question) = steps.question(&plan) {
                    // kapp asks once.
                    if setup.observer.is_some() && agreed.is_some() && !round.is_first() {
                        let message = "the cluster has changed since the changes were confirmed; run again";
                        return Err(CommandError::usage(message).because(RunFailure::PlanOutdated));
                    }
                    run.confirm(&question).await?;
                }
                agreed = Some(lines);
            }
            if let Some(code) = run.stop.borrow().exit_code() {
                return Err(CommandError::stopped(code));
            }
            if steps.prepare_write(&plan).await?.is_break() {
                continue;
            }
            let again =
                match (Writing { run, setup, write, judged: &judged }).carry_out(&plan, local_lock.take()).await? {
                    WriteEnd::Done(outcome) => match steps.finish(round, plan, &judged.report, *outcome).await? {
                        ControlFlow::Break(end) => return Ok(end.into()),
                        ControlFlow::Continue(()) => continue,
                    },
                    WriteEnd::ClusterChanged => CLUSTER_CHANGED,
                    WriteEnd::AppChanged => APP_CHANGED,
                };
            if !round.is_last() {
                run.warn("plan-again", again);
            }
        }
        Err(AppError::Changed { app: setup.app.name.clone() }.into())
    }

    /// Reads the app and plans; `None` if another run has written meanwhile, so that half of its work may have been read.
    async fn plan(
        &self,
        round: Round,
        steps: &mut impl LoopSteps,
    ) -> Result<Option<ControlFlow<End, Plan>>, CommandError> {
        let Self { run, setup, write, .. } = *self;
        let observed = record::read_current(run, setup, Some(write.lock.patience)).await?;
        let before = record::record_state(&observed);
        match steps.plan(round, observed).await {
            Ok(planned) => Ok(Some(planned)),
            Err(_) if record::has_changed_since(setup, &before).await => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// The app and its cluster, for a prompt: `shop to kind-prod, namespace default`.
pub fn app_words(setup: &Setup, preposition: &str) -> String {
    let AppName { name, namespace } = &setup.app;
    format!("{name} {preposition} {}, namespace {namespace}", setup.cluster.description())
}

/// Numbers of the changes of a plan.
pub fn change_counts(plan: &Plan) -> Counts {
    let mut counts = Counts::default();
    for planned in &plan.objects {
        counts.add_change(planned.reported_operation(), planned.is_orphaned());
    }
    Counts { noop: 0, exists: 0, ..counts }
}
