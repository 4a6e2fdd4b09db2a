//! Applying: look, plan, judge, ask, write; repeated if somebody else has changed what the plan is based on.

use std::sync::Arc;

use pushback_crd::definition::{CarryOver, listed};
use pushback_deploy::plan::Plan;
use pushback_deploy::plan::saved::SavedPlan;
use pushback_events::exit::ExitCode;
use pushback_events::{Counts, PlannedLine, RunOutcome};
use pushback_manifest::{KeptManifests, Manifest};
use pushback_objects::ObjectRef;
use pushback_storage::note;

use super::error::CommandError;
use super::options::{InputOptions, PlanOptions, RunOptions, WriteOptions};
use super::outcome::End;
use super::round::{ROUNDS, RoundResult, Rounds};
use super::running::{Run, free_aside};
use super::saved::Approval;
use super::setup::{Setup, connected_before, set_up};
use super::signals::until_stopped;
use super::{allowed, input, judging, last_good, planning, record};

const ANOTHER_RUN: &str = "another run was at work on the app; planning again";

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

/// Where an apply stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopAfter {
    /// After the preflight verdict: nothing is written.
    Verdict,
    /// After everything is written.
    End,
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
    /// Applies up to this point.
    ///
    /// # Errors
    /// Invalid input, no cluster, another run in progress, or no consent; nothing is written then.
    pub async fn run(&self, run: &mut Run, upto: StopAfter) -> Result<End, CommandError> {
        self.run_agreed(run, upto, &mut None).await
    }

    /// The same where the user may have agreed to changes before, which are not asked about again. A run up to the
    /// verdict leaves there what is to be agreed to.
    ///
    /// # Errors
    /// As [`Apply::run`].
    pub async fn run_agreed(
        &self,
        run: &mut Run,
        upto: StopAfter,
        agreed: &mut Option<Vec<PlannedLine>>,
    ) -> Result<End, CommandError> {
        self.saved.iter().try_for_each(|saved| Approval::check_validity(saved, run))?;
        let mut given = connected_before(run, &self.options, input::read(&self.input)).await?;
        let read = given.take_sources();
        let setup = set_up(run, &self.options, given.config, given.input.sources).await?;
        setup.require_writable()?;
        let approval = match &self.saved {
            Some(saved) => Some(until_stopped(run.stop.clone(), Approval::open(run, &setup, saved, &read)).await?),
            None => None,
        };
        run.warn_input(&given.input.warnings);
        let run = &*run;
        let kept = KeptManifests::of(&read.manifests);
        let mut first = Some(read.manifests);
        let mut done = None;
        let mut rounds = Rounds::new(run, &setup, &self.write).with_agreed(agreed.take());
        for round in 1..=ROUNDS {
            rounds.begin().await?;
            let manifests = first.take().unwrap_or_else(|| kept.manifests());
            let prepared = self.prepare(run, &setup, manifests, round == 1);
            let Some(plan) = until_stopped(run.stop.clone(), prepared).await? else {
                run.warn("plan-again", ANOTHER_RUN);
                continue;
            };
            let news = rounds.news(&plan);
            if news.is_some() || round == 1 {
                planning::show(run, &setup, &plan, (self.as_text, news.is_none()), &[]);
            }
            allowed::check(&setup, &plan, &self.plan)?;
            approval.iter().try_for_each(|approval| approval.check_plan(&plan))?;
            let judging = judging::judge(run, &setup, &plan, &self.options.preflight);
            let judged = until_stopped(run.stop.clone(), judging).await?;
            approval.iter().try_for_each(|approval| approval.check_verdict(&judged.report))?;
            let is_left_out =
                !self.write.engine.exit_early_on_apply_error && judging::only_the_server_refuses(&judged.report);
            if judged.report.outcome.refuses() && !is_left_out {
                if round < ROUNDS && record::has_changed_since(&setup, &record::record_state(&plan.observed)).await {
                    run.warn("plan-again", ANOTHER_RUN);
                    continue;
                }
                return Ok(End::refused(&judged.report));
            }
            if upto == StopAfter::Verdict {
                *agreed = news;
                return Ok(End::new(ExitCode::Success, RunOutcome::Succeeded, Counts::default()));
            }
            let question = (!self.is_confirmed).then(|| plan.question("Apply these changes?"));
            rounds.agree(news.filter(|_| plan.has_changes()), question.as_deref()).await?;
            if record::rename(run, &setup, &plan.observed).await? {
                continue;
            }
            if plan.has_changes() {
                setup.revision.get_or_init(|| last_good::revision(run, &setup, &self.input.files));
            }
            let again = match rounds.carry_out(&plan, &judged).await? {
                RoundResult::Done(outcome) => {
                    if let Some(message) = unreported(&outcome.unreported).filter(|_| setup.observer.is_none()) {
                        run.warn("no-status", message);
                    }
                    let others = setup.counts_unwritten(&plan);
                    let mut end = End::of_apply(*outcome, plan.has_changes(), self.write.exit_status, others);
                    if judged.report.outcome.refuses() && end.code == ExitCode::Partial {
                        // The same again would be refused again.
                        end.hints = vec!["correct what the server refuses, and run again".to_owned()];
                    }
                    end.done = done.map_or(end.done, |before: Counts| before.and_then(end.done));
                    if setup.cluster.capabilities().server && end.done.writes() > 0 {
                        end.hints.extend(plan.stale_pods_hints());
                    }
                    let is_done = matches!(end.code, ExitCode::Success | ExitCode::Changes | ExitCode::NoChanges);
                    if is_done && webhook_came_first(&plan) && approval.is_some() {
                        end.hints.push(STORAGE_LATER.to_owned());
                    } else if is_done && round < ROUNDS && webhook_came_first(&plan) {
                        done = Some(end.done);
                        note(&run.events, "conversion webhooks are ready: storage versions change now".to_owned());
                        continue;
                    }
                    if matches!(end.code, ExitCode::Partial | ExitCode::Failed | ExitCode::TimedOut) {
                        end.hints.extend(last_good::hint(run, &setup, &plan.label_value, &self.input.files).await);
                    }
                    record::write_file(run, &setup).await?;
                    free_aside(plan);
                    return Ok(end);
                }
                RoundResult::ClusterChanged => "the cluster has changed since the plan was made; planning again",
                RoundResult::AppChanged => ANOTHER_RUN,
            };
            if round < ROUNDS {
                run.warn("plan-again", again);
            }
        }
        Err(rounds.none_left())
    }

    /// Looks and plans; `None` if another run has written meanwhile, so that what was read may be half its work.
    async fn prepare(
        &self,
        run: &Run,
        setup: &Setup,
        manifests: Vec<Manifest>,
        first: bool,
    ) -> Result<Option<Plan>, CommandError> {
        let observed = record::read_current(run, setup, Some(self.write.lock.patience)).await?;
        if setup.observer.is_some() && setup.cluster.capabilities().server {
            record::require_namespace(setup, &observed).await?;
        }
        let before = record::record_state(&observed);
        match planning::plan_apply(run, setup, observed, manifests, &self.plan, false).await {
            Ok((plan, warnings)) => {
                if first {
                    run.warn_input(&warnings);
                }
                Ok(Some(plan))
            }
            Err(_) if record::has_changed_since(setup, &before).await => Ok(None),
            Err(error) => Err(error),
        }
    }
}
