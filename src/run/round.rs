//! One round of a run that writes: the plan is agreed to, and carried out. Where somebody else has changed what the plan
//! stands on, the next round begins with another look.

use super::error::CommandError;
use super::judging::Judged;
use super::options::WriteOptions;
use super::running::Run;
use super::setup::Setup;
use super::write::{Ended, Writing, lock_locally};
use crate::app::record::{AppError, Phase};
use crate::apply::engine::Outcome;
use crate::cluster::LocalLock;
use crate::event::PlannedLine;
use crate::plan::{self, Plan};

/// How often a plan is made anew before anything is written, when somebody else changes what it stands on.
pub const ROUNDS: u32 = 4;

/// What the rounds of a run have in common.
#[derive(Debug)]
pub struct Rounds<'a> {
    run: &'a Run,
    setup: &'a Setup,
    write: &'a WriteOptions,
    phase: Phase,
    local_lock: Option<LocalLock>,
    /// What was agreed to.
    agreed: Option<Vec<PlannedLine>>,
}

/// How a round ended.
#[derive(Debug)]
pub enum Ending {
    /// The plan was carried out.
    Done(Box<Outcome>),
    /// Nothing was written: the cluster is no longer what was planned for.
    ClusterChanged,
    /// Nothing was written: another run was at work.
    AppChanged,
}

impl<'a> Rounds<'a> {
    /// Before the first.
    pub fn new(run: &'a Run, setup: &'a Setup, write: &'a WriteOptions, phase: Phase) -> Self {
        Self { run, setup, write, phase, local_lock: None, agreed: None }
    }

    /// Begins a round.
    ///
    /// # Errors
    /// This machine's lock for the app is held for too long, or the user said stop.
    pub async fn begin(&mut self) -> Result<(), CommandError> {
        lock_locally(self.run, self.setup, self.write.lock.patience, &mut self.local_lock).await
    }

    /// What a plan does, where that is not what was agreed to before.
    #[must_use]
    pub fn news(&self, plan: &Plan) -> Option<Vec<PlannedLine>> {
        let view = plan::View { config: &self.setup.config, text: false };
        let lines = plan::planned_lines(plan, &view).1;
        (self.agreed.as_ref() != Some(&lines)).then_some(lines)
    }

    /// Has what is new agreed to; without a question nobody need be asked.
    ///
    /// # Errors
    /// No; or the user said stop.
    pub async fn agree(&mut self, news: Option<Vec<PlannedLine>>, question: Option<&str>) -> Result<(), CommandError> {
        if let Some(lines) = news {
            if let Some(question) = question {
                self.run.confirm(question).await?;
            }
            self.agreed = Some(lines);
        }
        let stopped = self.run.stop.borrow().exit_code();
        stopped.map_or(Ok(()), |code| Err(CommandError::stopped(code)))
    }

    /// Carries a plan out.
    ///
    /// # Errors
    /// The cluster's before the first write; the user said stop.
    pub async fn carry_out(&mut self, plan: &Plan, judged: &Judged) -> Result<Ending, CommandError> {
        let writing = Writing {
            run: self.run,
            setup: self.setup,
            write: self.write,
            report: &judged.report,
            second_look: &judged.second_look,
            phase: self.phase,
        };
        match writing.carry_out(plan, &mut self.local_lock).await {
            Ok(Ended::Done(outcome)) => Ok(Ending::Done(outcome)),
            Ok(Ended::Stopped(code)) => Err(CommandError::stopped(code)),
            Ok(Ended::PlanAgain) => Ok(Ending::ClusterChanged),
            Err(AppError::Changed { .. }) => Ok(Ending::AppChanged),
            Err(error) => Err(error.into()),
        }
    }

    /// The error where no round is left.
    #[must_use]
    pub fn none_left(&self) -> CommandError {
        AppError::Changed { app: self.setup.app.name.clone() }.into()
    }
}
