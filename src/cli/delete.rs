//! `pushback delete`.

use std::time::Duration;

use clap::Args;

use super::arguments::{AppArgs, GlobalArgs, PreflightArgs, WriteArgs};
use super::run::Run;
use crate::app::record::{AppError, Phase};
use crate::event::{Counts, DiagnosticCode, Event, RunOutcome};
use crate::exit::ExitCode;
use crate::plan;
use crate::report::DiffStyle;
use crate::run::error::CommandError;
use crate::run::outcome::End;
use crate::run::write::{self, Ended};
use crate::run::{input, pipeline, signals, unknown_app};

const ROUNDS: u32 = 4;

/// Delete an app with everything that it owns.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pushback delete -a shop
  pushback delete -a shop --yes --wait=false

Objects whose delete-strategy is orphan stay. An app that does not exist is no error.

Exit codes: 0 done, 1 wrong input, 10 refused before anything was deleted, 12 another run holds the
app, 13 no cluster, 20 partly deleted, 21 a deletion has failed, 22 waiting timed out.")]
pub struct DeleteArgs {
    #[command(flatten)]
    app: AppArgs,
    /// File with Config documents: order, waits, preflight rules; can be given more than once
    #[arg(long, env = "PUSHBACK_CONFIG", hide_env = true, value_name = "FILE")]
    config: Vec<String>,
    #[command(flatten)]
    preflight: PreflightArgs,
    #[command(flatten)]
    write: WriteArgs,
}

/// Runs the command.
pub async fn run(global: &GlobalArgs, arguments: DeleteArgs) -> ExitCode {
    let started = Run::start(global, DiffStyle::None, &arguments.preflight);
    super::run::complete(global, started, async |run| delete(global, run, &arguments).await).await
}

async fn delete(global: &GlobalArgs, run: &mut Run, arguments: &DeleteArgs) -> Result<End, CommandError> {
    let config = input::read_config_only(&arguments.config)?;
    let setup = pipeline::set_up(run, global, "delete", &arguments.app, config, &arguments.preflight).await?;
    pipeline::require_writable(&setup)?;
    let write = &arguments.write;
    let patience = write.lock_wait.unwrap_or(write.lock_lease + Duration::from_secs(5));
    let mut local_lock = None;
    let options = plan::Options::default();
    let mut confirmed: Option<Vec<crate::event::PlannedLine>> = None;
    for _ in 0..ROUNDS {
        write::lock_locally(run, &setup, patience, &mut local_lock).await?;
        let stop = run.stop.clone();
        let work = async {
            let observed = pipeline::look(run, &setup, Some(patience)).await?;
            if observed.record.is_none() {
                return Ok(None);
            }
            let label_value = pipeline::label_value(run, &setup, &observed);
            let request = plan::Request {
                cluster: &*setup.cluster,
                kinds: &setup.kinds,
                config: &setup.config,
                observed,
                label_value,
                options: &options,
            };
            let plan = plan::build_delete(request).await?;
            pipeline::show_plan(run, &setup, &plan, false);
            let judged = pipeline::judge(run, &setup, &plan, &arguments.preflight).await?;
            Ok(Some((plan, judged)))
        };
        let Some((plan, pipeline::Judged { report, second_look })) = pipeline::until_stopped(stop, work).await? else {
            run.events.send(Event::Diagnostic {
                code: DiagnosticCode::NoApp,
                message: unknown_app::message(&*setup.cluster, &setup.app).await,
            });
            return Ok(End::new(ExitCode::Success, RunOutcome::Unchanged, Counts::default()));
        };
        if report.outcome.refuses() {
            return Ok(write::refused(&report));
        }
        let view = plan::View { config: &setup.config, text: false };
        let lines = plan::planned_lines(&plan, &view).1;
        if confirmed.as_ref() != Some(&lines) {
            run.confirm(global, "Delete the app and these objects?").await?;
            confirmed = Some(lines);
        }
        if let Some(code) = signals::exit_code(*run.stop.borrow()) {
            return Err(CommandError::stopped(code));
        }
        let writing = write::Writing {
            run,
            setup: &setup,
            write,
            report: &report,
            second_look: &second_look,
            phase: Phase::Deleting,
        };
        match writing.carry_out(&plan, &mut local_lock).await {
            Ok(Ended::Done(outcome)) => return Ok(end(*outcome, write.apply_exit_status)),
            Ok(Ended::Stopped(code)) => return Err(CommandError::stopped(code)),
            Ok(Ended::PlanAgain) | Err(AppError::Changed { .. }) => {
                run.warn("plan-again", "the app has changed since it was looked at; looking again");
            }
            Err(error) => return Err(error.into()),
        }
    }
    Err(AppError::Changed { app: setup.app.name.clone() }.into())
}

fn end(outcome: crate::apply::engine::Outcome, exit_status: bool) -> End {
    let mut end = End::engine(outcome);
    if end.code == ExitCode::Success && exit_status {
        end.code = ExitCode::Changes;
    }
    end
}
