//! Deleting an app: look, plan, judge, ask, delete; repeated if somebody else has changed it.

use pushback_deploy::apply::engine::Progress;
use pushback_deploy::apply::gone::until_gone;
use pushback_deploy::plan::part::Selection;
use pushback_deploy::plan::{self, live};
use pushback_events::exit::ExitCode;
use pushback_events::{Counts, DiagnosticCode, Event, PlannedLine, RunOutcome};
use pushback_manifest::excerpt::Sources;
use pushback_objects::text::counted;
use tokio::time::Instant;

use super::apply::StopAfter;
use super::error::CommandError;
use super::options::{RunOptions, WriteOptions};
use super::outcome::End;
use super::round::{ROUNDS, RoundResult, Rounds};
use super::running::Run;
use super::setup::set_up;
use super::signals::until_stopped;
use super::{input, judging, planning, record, unknown_app};

/// Options of a deletion.
#[derive(Clone, Debug)]
pub struct Delete {
    /// Cluster, app and rules.
    pub options: RunOptions,
    /// Files with Config documents.
    pub config: Vec<String>,
    /// The part of the app that is deleted.
    pub selection: Selection,
    /// Whether it stops at the plan.
    pub is_dry: bool,
    /// With `is_dry`: whether the exit code says if there are changes.
    pub diff_exit_status: bool,
    /// What becomes of objects that controllers have made.
    pub derived: Derived,
    /// Writing options.
    pub write: WriteOptions,
}

/// What becomes of objects that carry the app's label and that controllers have made: the garbage collector deletes them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Derived {
    /// The run neither deletes them nor waits for them.
    Ignored,
    /// The run waits until they are gone.
    #[default]
    WaitedFor,
    /// The run deletes them itself.
    Deleted,
}

impl Delete {
    /// Deletes the app.
    ///
    /// # Errors
    /// Invalid Config, no cluster, another run in progress, or no consent; nothing is deleted then.
    pub async fn run(&self, run: &mut Run) -> Result<End, CommandError> {
        self.run_agreed(run, StopAfter::End, &mut None).await
    }

    /// The same up to this point, where the user may have agreed to changes before. A run up to the verdict leaves there
    /// what is to be agreed to.
    ///
    /// # Errors
    /// As [`Delete::run`].
    pub async fn run_agreed(
        &self,
        run: &mut Run,
        upto: StopAfter,
        agreed: &mut Option<Vec<PlannedLine>>,
    ) -> Result<End, CommandError> {
        let config = input::read_config_only(&self.config)?;
        let setup = set_up(run, &self.options, config, Sources::default()).await?;
        if !self.is_dry {
            setup.require_writable()?;
        }
        let run = &*run;
        let mut rounds = Rounds::new(run, &setup, &self.write).with_agreed(agreed.clone());
        let was_agreed = agreed.take().is_some();
        for _ in 0..ROUNDS {
            rounds.begin().await?;
            let work = async {
                let patience = (!self.is_dry).then_some(self.write.lock.patience);
                let observed = record::read_current(run, &setup, patience).await?;
                if observed.record.is_none() {
                    return Ok(None);
                }
                let options = plan::Options {
                    selection: self.selection.clone(),
                    deletes_derived: self.derived == Derived::Deleted,
                    releases_unlabelled: setup.observer.is_some(),
                    honours_helm: setup.observer.is_none(),
                    ..plan::Options::default()
                };
                let ahead = (!self.is_dry).then_some(&setup.ahead);
                let expect_write = |namespace: &str| ahead.into_iter().for_each(|ahead| ahead.write_in(namespace));
                let request = plan::Request {
                    cluster: &*setup.cluster,
                    kinds: &setup.kinds,
                    config: &setup.config,
                    label_value: record::label_value(run, &setup, &observed),
                    observed,
                    options: &options,
                };
                let mut plan = plan::build_delete(request, &expect_write).await?;
                planning::add_cascades(&setup, &mut plan).await;
                let going = match setup.observer {
                    Some(_) if self.derived == Derived::WaitedFor => {
                        let own = plan.objects.iter().filter_map(|planned| planned.live.as_deref());
                        let own = own.chain(plan.retained.objects.iter().map(|object| &**object));
                        let mut going =
                            live::labelled(&*setup.cluster, &setup.kinds, &plan.observed, own, self.selection.scope)
                                .await;
                        going.retain(|object| self.selection.covers_deletion(object));
                        going
                    }
                    _ => Vec::new(),
                };
                let is_known = was_agreed && rounds.news(&plan).is_none();
                planning::show(run, &setup, &plan, (false, is_known), &going);
                if !plan.deletes_app {
                    let kept = counted(plan.retained.objects.len(), "object");
                    let message = format!("app {} stays, with {kept} outside of the filters", setup.app.name);
                    run.events.send(Event::diagnostic(DiagnosticCode::PartlyDeleted, message));
                }
                if self.is_dry {
                    return Ok(Some((plan, None, going)));
                }
                let judged = judging::judge(run, &setup, &plan, &self.options.preflight).await?;
                Ok(Some((plan, Some(judged), going)))
            };
            let Some((plan, judged, going)) = until_stopped(run.stop.clone(), work).await? else {
                let found = unknown_app::look(&*setup.cluster, &setup.app).await;
                let message = found.to_string();
                let (code, elsewhere) = (DiagnosticCode::NoApp, found.elsewhere);
                run.events.send(Event::Diagnostic { code, message, elsewhere });
                return Ok(End::new(ExitCode::Success, RunOutcome::Unchanged, Counts::default()));
            };
            let Some(judged) = judged else {
                return Ok(End::of_diff(plan.has_changes() || !going.is_empty(), self.diff_exit_status));
            };
            if upto == StopAfter::Verdict {
                *agreed = rounds.news(&plan);
            }
            if judged.report.outcome.refuses() {
                return Ok(End::refused(&judged.report));
            }
            if upto == StopAfter::Verdict {
                return Ok(End::new(ExitCode::Success, RunOutcome::Succeeded, Counts::default()));
            }
            let question = if plan.deletes_app { "Delete the app and these objects?" } else { "Delete these objects?" };
            let news = rounds.news(&plan).filter(|_| plan.deletes_app || plan.has_changes());
            rounds.agree(news, Some(&plan.question(question))).await?;
            match rounds.carry_out(&plan, &judged).await? {
                RoundResult::Done(outcome) => {
                    let is_done = outcome.progress.iter().all(|progress| *progress == Progress::Done);
                    if is_done && self.write.engine.wait {
                        let deadline = Instant::now() + self.write.engine.wait_timeout;
                        let (cluster, kinds) = (&*setup.cluster, &setup.kinds);
                        let left = until_gone(cluster, kinds, &run.events, &run.stop, going, deadline).await;
                        if !left.is_empty() {
                            return Ok(End::still_there(&left, self.write.engine.wait_timeout));
                        }
                    }
                    return Ok(match plan.deletes_app {
                        true => End::of_delete(*outcome, self.write.exit_status),
                        false => End::of_apply(*outcome, plan.has_changes(), self.write.exit_status, false),
                    });
                }
                RoundResult::ClusterChanged | RoundResult::AppChanged => {
                    run.warn("plan-again", "the app has changed since it was looked at; looking again");
                }
            }
        }
        Err(rounds.none_left())
    }
}
