//! Applying: plans from manifests, and carries the plan out.

use std::ops::ControlFlow;
use std::sync::Arc;

use pushback_app::record::Observed;
use pushback_crd::definition::{CarryOver, listed};
use pushback_deploy::apply::engine::Outcome;
use pushback_deploy::plan::Plan;
use pushback_deploy::plan::saved::SavedPlan;
use pushback_events::exit::ExitCode;
use pushback_events::{Counts, PlannedLine};
use pushback_manifest::{KeptManifests, Manifest};
use pushback_objects::ObjectRef;
use pushback_preflight::judge::RunReport;
use pushback_storage::note;
use pushback_terminal::words::counts_to_do;

use super::error::CommandError;
use super::options::{InputOptions, PlanOptions, RunOptions, WriteOptions};
use super::outcome::End;
use super::planning::PlanDisplay;
use super::running::{Run, free_aside};
use super::saved::Approval;
use super::setup::{Setup, connected_before, set_up};
use super::signals::until_stopped;
use super::write_loop::{self, LoopEnd, LoopSteps, Round, StopAfter, WriteLoop};
use super::{allowed, input, judging, last_good, planning, record};

/// Most custom resources without a status that a warning names.
const UNREPORTED: usize = 10;

const STORAGE_LATER: &str = "storage versions change with the next plan: now the conversion webhooks are ready";

/// Options of an apply.
#[derive(Clone, Debug)]
pub struct Apply {
    /// Cluster, app and rules.
    pub options: RunOptions,
    /// The input.
    pub input: InputOptions,
    /// Planning options.
    pub plan: PlanOptions,
    /// Whether changes are shown as text.
    pub as_text: bool,
    /// Writing options.
    pub write: WriteOptions,
    /// Whether to proceed without asking.
    pub is_confirmed: bool,
    /// The plan to carry out; nothing else is written then.
    pub saved: Option<Arc<SavedPlan>>,
}

/// Whether another round is needed to change a storage version.
fn webhook_came_first(plan: &Plan) -> bool {
    plan.objects.iter().any(|planned| matches!(planned.difference().carry_over, Some(CarryOver::WebhookFirst(_))))
}

/// Returns a warning that names custom resources without a status.
fn unreported(objects: &[ObjectRef]) -> Option<String> {
    let names: Vec<String> = objects.iter().map(ToString::to_string).collect();
    let pronoun = match names.len() {
        0 => return None,
        1 => "it counts",
        _ => "they count",
    };
    let listed = listed(&names, UNREPORTED);
    Some(format!("no controller has reported on {listed}: {pronoun} as ready once stored"))
}

impl Apply {
    /// Applies up to this step, and asks about all changes.
    ///
    /// # Errors
    /// Invalid input, no cluster, another run in progress, or no consent; nothing is written then.
    pub async fn run(&self, run: &mut Run, upto: StopAfter) -> Result<End, CommandError> {
        Ok(self.run_agreed(run, upto, None).await?.end)
    }

    /// Applies up to this step. Changes that the user has agreed to before are not asked about again.
    ///
    /// # Errors
    /// As [`Apply::run`].
    pub async fn run_agreed(
        &self,
        run: &mut Run,
        upto: StopAfter,
        agreed: Option<Vec<PlannedLine>>,
    ) -> Result<LoopEnd, CommandError> {
        self.saved.iter().try_for_each(|saved| Approval::check_validity(saved, run))?;
        let mut given = connected_before(run, &self.options, input::read(&self.input.of_run(&self.options))).await?;
        let read = given.take_sources();
        let setup = set_up(run, &self.options, given.config, given.input.sources).await?;
        setup.require_writable()?;
        let approval = match &self.saved {
            Some(saved) => Some(until_stopped(run.stop.clone(), Approval::open(run, &setup, saved, &read)).await?),
            None => None,
        };
        run.show_rendered(&given.input.rendered);
        run.warn_input(&given.input.warnings);
        let run = &*run;
        let kept = KeptManifests::of(&read.manifests);
        let steps =
            ApplySteps { run, setup: &setup, apply: self, approval, kept, first: Some(read.manifests), done: None };
        let writing = WriteLoop { run, setup: &setup, preflight: &self.options.preflight, write: &self.write };
        writing.run(steps, upto, agreed).await
    }
}

/// Steps of the loop that are particular to an apply.
struct ApplySteps<'a> {
    run: &'a Run,
    setup: &'a Setup,
    apply: &'a Apply,
    /// The saved plan to carry out.
    approval: Option<Approval<'a>>,
    kept: KeptManifests,
    /// The manifests as read, until the first round takes them.
    first: Option<Vec<Manifest>>,
    /// Counts of the rounds before this one.
    done: Option<Counts>,
}

impl LoopSteps for ApplySteps<'_> {
    async fn plan(&mut self, round: Round, observed: Observed) -> Result<ControlFlow<End, Plan>, CommandError> {
        let Self { run, setup, .. } = *self;
        let manifests = self.first.take().unwrap_or_else(|| self.kept.manifests());
        if setup.observer.is_some() && setup.cluster.capabilities().server {
            record::require_namespace(setup, &observed).await?;
        }
        let (plan, warnings) = planning::plan_apply(run, setup, observed, manifests, &self.apply.plan).await?;
        if round.is_first() {
            run.warn_input(&warnings);
        }
        Ok(ControlFlow::Continue(plan))
    }

    fn display(&self) -> PlanDisplay<'_> {
        PlanDisplay { as_text: self.apply.as_text, ..PlanDisplay::default() }
    }

    fn check_plan(&self, plan: &Plan) -> Result<(), CommandError> {
        allowed::check(self.setup, plan, &self.apply.plan)?;
        self.approval.iter().try_for_each(|approval| approval.check_plan(plan))
    }

    fn check_report(&self, report: &RunReport) -> Result<(), CommandError> {
        self.approval.iter().try_for_each(|approval| approval.check_verdict(report))
    }

    /// Objects that only the server refuses can be left out, and the others written. kapp records an app before its first
    /// write, so that one whose writes are all refused exists.
    fn is_refused(&self, plan: &Plan, report: &RunReport) -> bool {
        let goes_on = || {
            !self.apply.write.engine.exit_early_on_apply_error
                || (self.setup.observer.is_some() && plan.is_wholly_refused())
        };
        report.outcome.refuses() && !(judging::only_the_server_refuses(report) && goes_on())
    }

    fn question(&self, plan: &Plan) -> Option<String> {
        let app = write_loop::app_words(self.setup, "to");
        let counts = counts_to_do(&write_loop::change_counts(plan));
        (!self.apply.is_confirmed).then(|| plan.question(&format!("Apply {app}: {counts}?")))
    }

    async fn prepare_write(&self, plan: &Plan) -> Result<ControlFlow<()>, CommandError> {
        let Self { run, setup, apply, .. } = *self;
        if record::rename(run, setup, &plan.observed).await? {
            return Ok(ControlFlow::Break(()));
        }
        if plan.has_changes() {
            setup.revision.get_or_init(|| last_good::revision(run, setup, &apply.input.files));
        }
        Ok(ControlFlow::Continue(()))
    }

    async fn finish(
        &mut self,
        round: Round,
        plan: Plan,
        report: &RunReport,
        outcome: Outcome,
    ) -> Result<ControlFlow<End>, CommandError> {
        let Self { run, setup, apply, .. } = *self;
        if let Some(message) = unreported(&outcome.unreported).filter(|_| setup.observer.is_none()) {
            run.warn("no-status", message);
        }
        let others = setup.counts_unwritten(&plan);
        let mut end = End::of_apply(outcome, plan.has_changes(), apply.write.exit_status, others);
        if report.outcome.refuses() && end.code == ExitCode::Partial {
            // The same again would be refused again.
            end.hints = vec!["correct what the server refuses, and run again".to_owned()];
        }
        end.done = self.done.map_or(end.done, |before| before.and_then(end.done));
        if setup.cluster.capabilities().server && end.done.writes() > 0 {
            end.hints.extend(plan.stale_pods_hints());
        }
        let is_done = matches!(end.code, ExitCode::Success | ExitCode::Changes | ExitCode::NoChanges);
        if is_done && webhook_came_first(&plan) && self.approval.is_some() {
            end.hints.push(STORAGE_LATER.to_owned());
        } else if is_done && !round.is_last() && webhook_came_first(&plan) {
            self.done = Some(end.done);
            note(&run.events, "conversion webhooks are ready: storage versions change now".to_owned());
            return Ok(ControlFlow::Continue(()));
        }
        if matches!(end.code, ExitCode::Partial | ExitCode::Failed | ExitCode::TimedOut) {
            end.hints.extend(last_good::hint(run, setup, &plan.label_value, &apply.input.files).await);
        }
        record::write_file(run, setup).await?;
        free_aside(plan);
        Ok(ControlFlow::Break(end))
    }
}
