//! `pushback apply`.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use pushback_deploy::plan::saved::{Deletion, SavedPlan};
use pushback_events::exit::ExitCode;

use super::arguments::{AppArgs, DiffArgs, GlobalArgs, InputArgs, NewBaseArgs, PlanArgs, PreflightArgs};
use super::diff::DiffCommandArgs;
use super::plan::MakePlanArgs;
use super::plan::given::{self, Given};
use super::reports::HeldDocument;
use super::screen;
use super::writing::{PodLogArgs, WriteArgs};
use crate::run::app_name::app_or_label;
use crate::run::apply::Apply;
use crate::run::error::CommandError;
use crate::run::options::{AppOptions, Command, NamespaceOptions, RecordOptions, RunOptions};
use crate::run::saved;
use crate::run::write_loop::StopAfter;

/// Apply manifests as an app.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pushback apply -a shop -f shop/                            to the cluster of the kubeconfig
  pushback apply -a shop -f shop/ --cluster dir:rendered     into a folder of YAML
  pushback apply -a shop -f overlays/prod                    an overlay, rendered with kustomize
  pushback apply --plan shop.plan                            exactly what was planned

Exit codes: 0 done, 1 wrong input, 10 refused before anything was written, 11 the plan is stale or
for something else, 12 another run holds the app, 13 unreachable, 20 partly written, 21 an object
has failed, 22 waiting timed out.")]
pub struct ApplyArgs {
    #[command(flatten)]
    app: PlannedAppArgs,
    #[command(flatten)]
    record: RecordOptions,
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    plan: PlanArgs,
    /// Carry out this plan of `pushback plan`: exactly what it says, or exit with 11. It is the consent, too. Its files
    /// are read again, from -f and --config where they are given
    #[arg(long = "plan", id = "saved_plan", value_name = "FILE", help_heading = "Plan")]
    saved_plan: Option<PathBuf>,
    #[command(flatten)]
    diff: DiffArgs,
    /// Stop after the plan, as `pushback diff` does; with --preflight, after the rules
    #[arg(long, help_heading = "Diff")]
    diff_run: bool,
    #[command(flatten)]
    preflight: PreflightArgs,
    #[command(flatten)]
    write: WriteArgs,
    #[command(flatten)]
    logs: PodLogArgs,
    /// The options as they were given.
    #[arg(skip)]
    pub(super) given: Given,
}

/// Which app; a plan names its own.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "App")]
struct PlannedAppArgs {
    /// App name
    #[arg(long, short = 'a', value_name = "NAME", value_parser = app_or_label, required_unless_present = "saved_plan")]
    app: Option<String>,
    #[command(flatten)]
    namespace: NamespaceOptions,
}

/// Runs the command.
pub async fn run(global: &GlobalArgs, arguments: ApplyArgs) -> ExitCode {
    let ApplyArgs { app, record, input, plan, saved_plan, diff, diff_run, preflight, write, logs, given } = arguments;
    let (app, planned) = match (app, saved_plan) {
        (PlannedAppArgs { app: Some(app), namespace }, None) => (AppArgs { app, namespace }, None),
        (app, Some(path)) => match planned(&path, app, input.clone(), &given) {
            Ok((app, saved, made)) => (app, Some((saved, made))),
            Err(error) => return screen::end(global, diff.style(), error).await,
        },
        (_, None) => return ExitCode::Usage,
    };
    if diff_run {
        return super::diff::run(
            global,
            DiffCommandArgs {
                app: app.into(),
                record,
                input,
                base: NewBaseArgs { new_base: false },
                plan,
                diff,
                preflight,
                of_apply: true,
            },
        )
        .await;
    }
    let document = HeldDocument::default();
    let is_document = preflight.reports_to_standard_output();
    let started = screen::start(global, diff.style(), is_document, HeldDocument::clone(&document));
    screen::complete(global, started, async |run| {
        write.timeout.into_iter().for_each(|limit| run.limit_to(limit));
        let is_confirmed = planned.is_some();
        let (saved, input, plan, preflight) = match planned {
            Some((saved, made)) => {
                (Some(saved), made.input, made.plan, PreflightArgs { rules: made.preflight.rules, ..preflight })
            }
            None => (None, input, plan, preflight),
        };
        let (mut input, plan) = input.resolve(plan)?;
        let plan = global.planning(plan);
        input.load.digests = saved.is_some();
        let options = RunOptions {
            command: Command::Apply,
            cluster: global.cluster()?.strict(plan.options.strict),
            app: AppOptions { record, ..app.resolve() },
            preflight: global.preflight(preflight, &document)?,
            observer: global.behaviour.observer.clone(),
        };
        let (as_text, mut write) = (diff.diff_changes, global.writing(logs.resolve(write.resolve())));
        if saved.is_some() {
            write.engine.deletion = Deletion::AsPlanned;
        }
        Apply { options, input, plan, as_text, write, is_confirmed, saved }.run(run, StopAfter::End).await
    })
    .await
}

/// A plan to carry out, and the arguments that it was made with; what is given beside it says where it finds its input
/// and its policy now, and is checked against what it says of its app.
fn planned(
    path: &std::path::Path,
    app: PlannedAppArgs,
    input: InputArgs,
    given: &Given,
) -> Result<(AppArgs, Arc<SavedPlan>, MakePlanArgs), CommandError> {
    given.require_beside_a_plan()?;
    let saved = saved::read(path)?;
    let mut made = given::read(&saved.options, input.files)?;
    let own = made.app();
    let namespace = NamespaceOptions {
        namespace: app.namespace.namespace.or(own.namespace.namespace),
        app_namespace: app.namespace.app_namespace.or(own.namespace.app_namespace),
    };
    let app = AppArgs { app: app.app.unwrap_or(own.app), namespace };
    if !input.reading.config.is_empty() {
        made.input.reading.config = input.reading.config;
    }
    Ok((app, Arc::new(saved), made))
}
