//! Deleting an app, or a part of it.

use std::ops::ControlFlow;
use std::sync::Arc;

use pushback_app::record::Observed;
use pushback_deploy::apply::engine::{Outcome, Progress};
use pushback_deploy::apply::gone::until_gone;
use pushback_deploy::plan::part::Selection;
use pushback_deploy::plan::{self, Plan, live};
use pushback_events::exit::ExitCode;
use pushback_events::{Counts, DiagnosticCode, Event, PlannedLine, RunOutcome};
use pushback_manifest::excerpt::Sources;
use pushback_objects::text::counted;
use pushback_preflight::judge::RunReport;
use serde_json::Value;
use tokio::time::Instant;

use super::error::CommandError;
use super::options::{RunOptions, WriteOptions};
use super::outcome::End;
use super::planning::PlanDisplay;
use super::running::Run;
use super::setup::{Setup, set_up};
use super::signals::until_stopped;
use super::write::lock_locally;
use super::write_loop::{self, LoopEnd, LoopSteps, Round, StopAfter, WriteLoop};
use super::{input, planning, record, unknown_app};

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
        Ok(self.run_agreed(run, StopAfter::End, None).await?.end)
    }

    /// Deletes the app up to this step. Changes that the user has agreed to before are not asked about again.
    ///
    /// # Errors
    /// As [`Delete::run`].
    pub async fn run_agreed(
        &self,
        run: &mut Run,
        upto: StopAfter,
        agreed: Option<Vec<PlannedLine>>,
    ) -> Result<LoopEnd, CommandError> {
        let config = input::read_config_only(&self.config)?;
        let setup = set_up(run, &self.options, config, Sources::default()).await?;
        if !self.is_dry {
            setup.require_writable()?;
        }
        let run = &*run;
        let steps = DeleteSteps { run, setup: &setup, delete: self, derived: Vec::new() };
        if self.is_dry {
            return Ok(steps.diff().await?.into());
        }
        let writing = WriteLoop { run, setup: &setup, preflight: &self.options.preflight, write: &self.write };
        writing.run(steps, upto, agreed).await
    }
}

/// Steps of the loop that are particular to a deletion.
struct DeleteSteps<'a> {
    run: &'a Run,
    setup: &'a Setup,
    delete: &'a Delete,
    /// Objects that the garbage collector deletes with those of the plan, and that are waited for.
    derived: Vec<Arc<Value>>,
}

impl DeleteSteps<'_> {
    /// Shows what would be deleted.
    async fn diff(mut self) -> Result<End, CommandError> {
        let Self { run, setup, delete, .. } = self;
        let _local_lock = lock_locally(run, setup, delete.write.lock.patience).await?;
        let work = async {
            let observed = record::read_current(run, setup, None).await?;
            self.plan_with(observed, &|_| ()).await
        };
        let plan = match until_stopped(run.stop.clone(), work).await? {
            ControlFlow::Continue(plan) => plan,
            ControlFlow::Break(end) => return Ok(end),
        };
        planning::show(run, setup, &plan, self.display());
        self.check_plan(&plan)?;
        Ok(End::of_diff(plan.has_changes() || !self.derived.is_empty(), delete.diff_exit_status))
    }

    async fn plan_with(
        &mut self,
        observed: Observed,
        expect_write: &(dyn Fn(&str) + Sync),
    ) -> Result<ControlFlow<End, Plan>, CommandError> {
        let Self { run, setup, delete, .. } = *self;
        if observed.record.is_none() {
            let found = unknown_app::look(&*setup.cluster, &setup.app).await;
            let message = found.to_string();
            let (code, elsewhere) = (DiagnosticCode::NoApp, found.elsewhere);
            run.events.send(Event::Diagnostic { code, message, elsewhere });
            let end = End::new(ExitCode::Success, RunOutcome::Unchanged, Counts::default());
            return Ok(ControlFlow::Break(end));
        }
        let options = plan::Options {
            selection: delete.selection.clone(),
            deletes_derived: delete.derived == Derived::Deleted,
            releases_unlabelled: setup.observer.is_some(),
            honours_helm: setup.observer.is_none(),
            ..plan::Options::default()
        };
        let request = plan::Request {
            cluster: &*setup.cluster,
            kinds: &setup.kinds,
            config: &setup.config,
            label_value: record::label_value(run, setup, &observed),
            observed,
            options: &options,
        };
        let mut plan = plan::build_delete(request, expect_write).await?;
        planning::add_cascades(setup, &mut plan).await;
        if setup.observer.is_some() && delete.derived == Derived::WaitedFor {
            let own = plan.objects.iter().filter_map(|planned| planned.live.as_deref());
            let own = own.chain(plan.retained.objects.iter().map(|object| &**object));
            let scope = delete.selection.scope;
            self.derived = live::labelled(&*setup.cluster, &setup.kinds, &plan.observed, own, scope).await;
            self.derived.retain(|object| delete.selection.covers_deletion(object));
        }
        Ok(ControlFlow::Continue(plan))
    }
}

impl LoopSteps for DeleteSteps<'_> {
    async fn plan(&mut self, _round: Round, observed: Observed) -> Result<ControlFlow<End, Plan>, CommandError> {
        let ahead = &self.setup.ahead;
        self.plan_with(observed, &|namespace: &str| ahead.write_in(namespace)).await
    }

    fn display(&self) -> PlanDisplay<'_> {
        PlanDisplay { derived: &self.derived, ..PlanDisplay::default() }
    }

    /// Reports objects that stay, and with them the app.
    fn check_plan(&self, plan: &Plan) -> Result<(), CommandError> {
        if !plan.deletes_app {
            let kept = counted(plan.retained.objects.len(), "object");
            let message = format!("app {} stays, with {kept} outside of the filters", self.setup.app.name);
            self.run.events.send(Event::diagnostic(DiagnosticCode::PartlyDeleted, message));
        }
        Ok(())
    }

    fn question(&self, plan: &Plan) -> Option<String> {
        let verb = if plan.deletes_app { "Delete" } else { "Delete only a part of" };
        let app = write_loop::app_words(self.setup, "from");
        let objects = counted(write_loop::change_counts(plan).writes(), "object");
        Some(plan.question(&format!("{verb} {app}: {objects}?")))
    }

    async fn finish(
        &mut self,
        _round: Round,
        plan: Plan,
        _report: &RunReport,
        outcome: Outcome,
    ) -> Result<ControlFlow<End>, CommandError> {
        let Self { run, setup, delete, .. } = *self;
        let (write, derived) = (&delete.write, std::mem::take(&mut self.derived));
        let is_done = outcome.progress.iter().all(|progress| *progress == Progress::Done);
        if is_done && write.engine.wait {
            let deadline = Instant::now() + write.engine.wait_timeout;
            let left = until_gone(&*setup.cluster, &setup.kinds, &run.events, &run.stop, derived, deadline).await;
            if !left.is_empty() {
                return Ok(ControlFlow::Break(End::still_there(&left, write.engine.wait_timeout)));
            }
        }
        Ok(ControlFlow::Break(match plan.deletes_app {
            true => End::of_delete(outcome, write.exit_status),
            false => End::of_apply(outcome, plan.has_changes(), write.exit_status, false),
        }))
    }
}
