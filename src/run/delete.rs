//! Deleting an app: look, plan, judge, ask, delete; anew where somebody else has changed it.

use super::error::CommandError;
use super::input;
use super::judging::{self, Judged};
use super::look;
use super::options::{RunOptions, WriteOptions};
use super::outcome::End;
use super::planning;
use super::running::Run;
use super::setup::set_up;
use super::signals::until_stopped;
use super::write::{Ended, Writing, lock_locally};
use super::{ROUNDS, unknown_app};
use crate::app::record::{AppError, Phase};
use crate::event::{Counts, DiagnosticCode, Event, PlannedLine, RunOutcome};
use crate::exit::ExitCode;
use crate::manifest::excerpt::Sources;
use crate::plan;

/// A deletion.
#[derive(Clone, Debug)]
pub struct Delete {
    /// Where, what, by which rules.
    pub options: RunOptions,
    /// Files with Config documents.
    pub config: Vec<String>,
    /// How it is written.
    pub write: WriteOptions,
}

impl Delete {
    /// Deletes.
    ///
    /// # Errors
    /// Wrong Config, no cluster, another run at work, no consent: nothing is deleted then.
    pub async fn run(&self, run: &mut Run) -> Result<End, CommandError> {
        let config = input::read_config_only(&self.config)?;
        let setup = set_up(run, &self.options, config, Sources::default()).await?;
        setup.require_writable()?;
        let patience = self.write.lock.patience;
        let mut local_lock = None;
        let mut confirmed: Option<Vec<PlannedLine>> = None;
        for _ in 0..ROUNDS {
            lock_locally(run, &setup, patience, &mut local_lock).await?;
            let work = async {
                let observed = look::look(run, &setup, Some(patience)).await?;
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
            let Some((plan, Judged { report, second_look })) = until_stopped(run.stop.clone(), work).await? else {
                run.events.send(Event::Diagnostic {
                    code: DiagnosticCode::NoApp,
                    message: unknown_app::message(&*setup.cluster, &setup.app).await,
                });
                return Ok(End::new(ExitCode::Success, RunOutcome::Unchanged, Counts::default()));
            };
            if report.outcome.refuses() {
                return Ok(End::refused(&report));
            }
            let view = plan::View { config: &setup.config, text: false };
            let lines = plan::planned_lines(&plan, &view).1;
            if confirmed.as_ref() != Some(&lines) {
                run.confirm("Delete the app and these objects?").await?;
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
                phase: Phase::Deleting,
            };
            match writing.carry_out(&plan, &mut local_lock).await {
                Ok(Ended::Done(outcome)) => return Ok(End::of_delete(*outcome, self.write.exit_status)),
                Ok(Ended::Stopped(code)) => return Err(CommandError::stopped(code)),
                Ok(Ended::PlanAgain) | Err(AppError::Changed { .. }) => {
                    run.warn("plan-again", "the app has changed since it was looked at; looking again");
                }
                Err(error) => return Err(error.into()),
            }
        }
        Err(AppError::Changed { app: setup.app.name.clone() }.into())
    }
}
