//! One round of a run that writes: consent to the plan, then carrying it out. If somebody else has changed what the
//! plan is based on, another round starts.

use pushback_app::record::{AppError, Phase};
use pushback_cluster::LocalLock;
use pushback_deploy::apply::engine::Outcome;
use pushback_deploy::plan::{self, Plan};
use pushback_events::PlannedLine;

use super::error::CommandError;
use super::judging::PreflightResult;
use super::options::WriteOptions;
use super::running::Run;
use super::setup::Setup;
use super::write::{WriteEnd, Writing, lock_locally};

/// Most plans made before anything is written, when somebody else keeps changing what they are based on.
pub const ROUNDS: u32 = 4;

/// State shared by the rounds of a run.
#[derive(Debug)]
pub struct Rounds<'a> {
    run: &'a Run,
    setup: &'a Setup,
    write: &'a WriteOptions,
    local_lock: Option<LocalLock>,
    /// The changes last agreed to.
    agreed: Option<Vec<PlannedLine>>,
}

/// Result of a round.
#[derive(Debug)]
pub enum RoundResult {
    /// The plan was carried out.
    Done(Box<Outcome>),
    /// Nothing was written: the cluster has changed since planning.
    ClusterChanged,
    /// Nothing was written: another run is in progress.
    AppChanged,
}

impl<'a> Rounds<'a> {
    /// State before the first round.
    pub fn new(run: &'a Run, setup: &'a Setup, write: &'a WriteOptions) -> Self {
        Self { run, setup, write, local_lock: None, agreed: None }
    }

    /// The same where the user has agreed to changes before.
    #[must_use]
    pub fn with_agreed(self, agreed: Option<Vec<PlannedLine>>) -> Self {
        Self { agreed, ..self }
    }

    /// Starts a round.
    ///
    /// # Errors
    /// This machine's lock for the app is held for too long, or the user sent a signal.
    pub async fn begin(&mut self) -> Result<(), CommandError> {
        lock_locally(self.run, self.setup, self.write.lock.patience, &mut self.local_lock).await
    }

    /// The plan's changes, if they differ from those agreed to.
    #[must_use]
    pub fn news(&self, plan: &Plan) -> Option<Vec<PlannedLine>> {
        let view = plan::View { config: &self.setup.config, text: false };
        let lines = plan::planned_lines(plan, &view).1;
        (self.agreed.as_ref() != Some(&lines)).then_some(lines)
    }

    /// Asks for consent to new changes; without a question there is consent already.
    ///
    /// # Errors
    /// The user declined or sent a signal.
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

    /// Carries out a plan.
    ///
    /// # Errors
    /// The cluster's error before the first write; a signal.
    pub async fn carry_out(&mut self, plan: &Plan, judged: &PreflightResult) -> Result<RoundResult, CommandError> {
        let writing = Writing {
            run: self.run,
            setup: self.setup,
            write: self.write,
            report: &judged.report,
            second_look: &judged.second_look,
            phase: if plan.deletes_app { Phase::Deleting } else { Phase::Applying },
        };
        match writing.carry_out(plan, &mut self.local_lock).await {
            Ok(WriteEnd::Done(outcome)) => Ok(RoundResult::Done(outcome)),
            Ok(WriteEnd::Stopped(code)) => Err(CommandError::stopped(code)),
            Ok(WriteEnd::PlanAgain) => Ok(RoundResult::ClusterChanged),
            Err(AppError::Changed { .. }) => Ok(RoundResult::AppChanged),
            Err(error) => Err(error.into()),
        }
    }

    /// The error after the last round.
    #[must_use]
    pub fn none_left(&self) -> CommandError {
        AppError::Changed { app: self.setup.app.name.clone() }.into()
    }
}
