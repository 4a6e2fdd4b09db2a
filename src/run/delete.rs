//! Deleting an app: look, plan, judge, ask, delete; repeated if somebody else has changed it.

use super::error::CommandError;
use super::options::{RunOptions, WriteOptions};
use super::outcome::End;
use super::round::{ROUNDS, RoundResult, Rounds};
use super::running::Run;
use super::setup::set_up;
use super::signals::until_stopped;
use super::{input, judging, look, planning, unknown_app};
use crate::app::record::Phase;
use crate::event::{Counts, DiagnosticCode, Event, RunOutcome};
use crate::exit::ExitCode;
use crate::manifest::excerpt::Sources;
use crate::plan;

/// Options of a deletion.
#[derive(Clone, Debug)]
pub struct Delete {
    /// Cluster, app and rules.
    pub options: RunOptions,
    /// Files with Config documents.
    pub config: Vec<String>,
    /// Writing options.
    pub write: WriteOptions,
}

impl Delete {
    /// Deletes the app.
    ///
    /// # Errors
    /// Invalid Config, no cluster, another run in progress, or no consent; nothing is deleted then.
    pub async fn run(&self, run: &mut Run) -> Result<End, CommandError> {
        let config = input::read_config_only(&self.config)?;
        let setup = set_up(run, &self.options, config, Sources::default()).await?;
        setup.require_writable()?;
        let run = &*run;
        let mut rounds = Rounds::new(run, &setup, &self.write, Phase::Deleting);
        for _ in 0..ROUNDS {
            rounds.begin().await?;
            let work = async {
                let observed = look::look(run, &setup, Some(self.write.lock.patience)).await?;
                if observed.record.is_none() {
                    return Ok(None);
                }
                let request = plan::Request {
                    cluster: &*setup.cluster,
                    kinds: &setup.kinds,
                    config: &setup.config,
                    label_value: look::label_value(run, &setup, &observed),
                    observed,
                    options: &plan::Options::default(),
                };
                let plan = plan::build_delete(request).await?;
                planning::show(run, &setup, &plan, false);
                let judged = judging::judge(run, &setup, &plan, &self.options.preflight).await?;
                Ok(Some((plan, judged)))
            };
            let Some((plan, judged)) = until_stopped(run.stop.clone(), work).await? else {
                run.events.send(Event::Diagnostic {
                    code: DiagnosticCode::NoApp,
                    message: unknown_app::message(&*setup.cluster, &setup.app).await,
                });
                return Ok(End::new(ExitCode::Success, RunOutcome::Unchanged, Counts::default()));
            };
            if judged.report.outcome.refuses() {
                return Ok(End::refused(&judged.report));
            }
            rounds.agree(rounds.news(&plan), Some("Delete the app and these objects?")).await?;
            match rounds.carry_out(&plan, &judged).await? {
                RoundResult::Done(outcome) => return Ok(End::of_delete(*outcome, self.write.exit_status)),
                RoundResult::ClusterChanged | RoundResult::AppChanged => {
                    run.warn("plan-again", "the app has changed since it was looked at; looking again");
                }
            }
        }
        Err(rounds.none_left())
    }
}
