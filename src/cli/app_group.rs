//! `pushback app-group`: an app for each directory below another.

use std::time::Duration;

use clap::{ArgAction, Args, Subcommand};
use pushback_deploy::plan::part::Selection;
use pushback_events::exit::ExitCode;
use pushback_terminal::DiffStyle;

use super::arguments::{DiffArgs, GlobalArgs, PlanArgs, ReadingArgs, RuleArgs, duration};
use super::filters::ChangeFilterArgs;
use super::reports::HeldDocument;
use super::screen;
use super::writing::{PodLogArgs, WriteArgs};
use crate::run::app_group::{AppGroup, Dry, GROUP_LABEL, group_name};
use crate::run::apply::Apply;
use crate::run::delete::Delete;
use crate::run::error::CommandError;
use crate::run::options::{
    AppOptions, Command, InputOptions, NamespaceOptions, PlanOptions, RecordOptions, RunOptions, WriteOptions,
    WrittenRecordOptions,
};

/// Work on a group of apps: one for each directory below another.
#[derive(Debug, Args)]
pub struct AppGroupArgs {
    #[command(subcommand)]
    command: AppGroupCommand,
}

#[derive(Debug, Subcommand)]
enum AppGroupCommand {
    /// Apply each directory as an app, and delete the group's apps whose directory is gone
    #[command(visible_alias = "apply", aliases = ["d", "dep"])]
    Deploy(Box<DeployArgs>),
    /// Delete every app of a group
    Delete(Box<DeleteArgs>),
}

/// Which group.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Group")]
struct GroupArgs {
    /// Name of the group: the start of its apps' names, and the value of a label of their records
    #[arg(long, short = 'g', value_name = "NAME", value_parser = group_name)]
    group: String,
    #[command(flatten)]
    namespace: NamespaceOptions,
}

/// Apply each directory as an app, and delete the group's apps whose directory is gone.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pushback app-group deploy -g shop -d apps/                 apps/web is app shop-web
  pushback app-group deploy -g shop -d apps/ --diff-run
  pushback app-group deploy -g shop -d apps/ --patch         no app is deleted

Every app is planned and judged, and asked about once, before the first is written; an app that
needs a namespace or a kind of an app before it is planned when its turn has come. The apps are
written in the order of their names, and at the first that fails the run stops: the same command
again goes on. Apps whose directory is gone are deleted last. Hidden directories are left out.

Exit codes: 0 done, 1 wrong input, 10 an app is refused before anything was written, 12 another run
holds an app, 13 unreachable, 20 partly written, 21 an object has failed, 22 waiting timed out.")]
struct DeployArgs {
    #[command(flatten)]
    group: GroupArgs,
    /// Directory with a directory for each app
    #[arg(long, short = 'd', value_name = "DIR", help_heading = "Group")]
    directory: String,
    #[command(flatten)]
    record: WrittenRecordOptions,
    #[command(flatten)]
    reading: ReadingArgs,
    #[command(flatten)]
    plan: PlanArgs,
    #[command(flatten)]
    diff: DiffArgs,
    /// Stop after the plans; with --preflight, after the rules
    #[arg(long, help_heading = "Diff")]
    diff_run: bool,
    #[command(flatten)]
    rules: RuleArgs,
    #[command(flatten)]
    write: WriteArgs,
    #[command(flatten)]
    logs: PodLogArgs,
    #[command(flatten)]
    deletion: DeletionArgs,
}

/// How apps are deleted whose directory is gone, where that differs from how the others are applied.
#[derive(Clone, Copy, Debug, Args)]
#[command(next_help_heading = "Deleted apps")]
struct DeletionArgs {
    /// Wait until the objects of deleted apps are gone [default: as --wait]
    #[arg(long, action = ArgAction::Set, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true",
          require_equals = true, hide_short_help = true)]
    delete_wait: Option<bool>,
    /// How long deleting an app and waiting for it may take [default: as --wait-timeout]
    #[arg(long, value_parser = duration, value_name = "DURATION", hide_short_help = true)]
    delete_wait_timeout: Option<Duration>,
    /// How long to wait for one object of a deleted app [default: as --wait-resource-timeout]
    #[arg(long, value_parser = duration, value_name = "DURATION", hide_short_help = true)]
    delete_wait_resource_timeout: Option<Duration>,
    /// How long to try one deletion [default: as --apply-timeout]
    #[arg(long, value_parser = duration, value_name = "DURATION", hide_short_help = true)]
    delete_apply_timeout: Option<Duration>,
    /// Start no more deletions after one has failed [default: as --exit-early-on-apply-error]
    #[arg(long, action = ArgAction::Set, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true",
          require_equals = true, hide_short_help = true)]
    delete_exit_early_on_apply_error: Option<bool>,
    /// Start no more deletions after an object was not deleted in time [default: as --exit-early-on-wait-error]
    #[arg(long, action = ArgAction::Set, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true",
          require_equals = true, hide_short_help = true)]
    delete_exit_early_on_wait_error: Option<bool>,
}

impl DeletionArgs {
    fn resolve(self, write: &WriteOptions) -> WriteOptions {
        let mut write = write.clone();
        let engine = &mut write.engine;
        engine.wait = self.delete_wait.unwrap_or(engine.wait);
        engine.wait_timeout = self.delete_wait_timeout.unwrap_or(engine.wait_timeout);
        engine.wait_resource_timeout = self.delete_wait_resource_timeout.unwrap_or(engine.wait_resource_timeout);
        engine.apply_timeout = self.delete_apply_timeout.unwrap_or(engine.apply_timeout);
        engine.exit_early_on_apply_error =
            self.delete_exit_early_on_apply_error.unwrap_or(engine.exit_early_on_apply_error);
        engine.exit_early_on_wait_error =
            self.delete_exit_early_on_wait_error.unwrap_or(engine.exit_early_on_wait_error);
        write
    }
}

/// Delete every app of a group.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pushback app-group delete -g shop
  pushback app-group delete -g shop --diff-run               what it would delete

The apps are deleted in the reverse order of their names. A group without an app is no error.

Exit codes: 0 done, 1 wrong input, 10 refused before anything was deleted, 12 another run holds an
app, 13 unreachable, 20 partly deleted, 21 a deletion has failed, 22 waiting timed out; with
--diff-exit-status 2 no changes, 3 changes.")]
struct DeleteArgs {
    #[command(flatten)]
    group: GroupArgs,
    /// File with Config documents: order, waits, preflight rules; can be given more than once
    #[arg(long, env = "PUSHBACK_CONFIG", hide_env = true, value_name = "FILE")]
    config: Vec<String>,
    /// Stop after the plans
    #[arg(long)]
    diff_run: bool,
    /// With --diff-run, exit with 3 where there are changes and with 2 where there are none
    #[arg(long)]
    diff_exit_status: bool,
    #[command(flatten)]
    change_filter: ChangeFilterArgs,
    #[command(flatten)]
    rules: RuleArgs,
    #[command(flatten)]
    write: WriteArgs,
}

/// Runs `app-group`.
pub async fn run(global: &GlobalArgs, arguments: AppGroupArgs) -> ExitCode {
    match arguments.command {
        AppGroupCommand::Deploy(arguments) => deploy(global, *arguments).await,
        AppGroupCommand::Delete(arguments) => delete(global, *arguments).await,
    }
}

async fn deploy(global: &GlobalArgs, arguments: DeployArgs) -> ExitCode {
    let DeployArgs { group, directory, record, reading, plan, diff, diff_run, rules, write, logs, deletion } =
        arguments;
    let started = screen::start(global, diff.style(), false, HeldDocument::default());
    screen::complete(global, started, async |run| {
        write.timeout.into_iter().for_each(|limit| run.limit_to(limit));
        let is_judged = rules.preflight.is_some();
        let dry = diff_run.then_some(Dry { is_judged, exit_status: diff.diff_exit_status });
        let config = reading.config.clone();
        let (input, plan) = reading.resolve(Vec::new(), plan)?;
        let plan = global.planning(plan);
        let write = global.writing(logs.resolve(write.resolve()));
        let mut record = RecordOptions { prev_app: None, written: record };
        record.written.labels.push((GROUP_LABEL.to_owned(), group.group.clone()));
        let (name, namespace) = (group.group, group.namespace);
        let options = options(global, &namespace, rules, record)?;
        let options = RunOptions { cluster: options.cluster.strict(plan.options.strict), ..options };
        let delete = Delete {
            // A label that an app lacks is no reason to keep it.
            options: RunOptions {
                app: AppOptions { record: RecordOptions::default(), ..options.app.clone() },
                ..options.clone()
            },
            config,
            selection: plan.options.selection.clone(),
            is_dry: diff_run,
            diff_exit_status: diff.diff_exit_status,
            derived: global.behaviour.derived,
            write: deletion.resolve(&write),
        };
        let apply = Apply { options, input, plan, as_text: diff.diff_changes, write, is_confirmed: false, saved: None };
        let one_by_one = global.behaviour.groups_one_by_one;
        AppGroup { group: name, namespace, apply, delete, dry, one_by_one }.deploy(run, &directory).await
    })
    .await
}

async fn delete(global: &GlobalArgs, arguments: DeleteArgs) -> ExitCode {
    let DeleteArgs { group, config, diff_run, diff_exit_status, change_filter, rules, write } = arguments;
    let started = screen::start(global, DiffStyle::None, false, HeldDocument::default());
    screen::complete(global, started, async |run| {
        write.timeout.into_iter().for_each(|limit| run.limit_to(limit));
        let dry = diff_run.then_some(Dry { is_judged: false, exit_status: diff_exit_status });
        let write = write.resolve();
        let (name, namespace) = (group.group, group.namespace);
        let options = options(global, &namespace, rules, RecordOptions::default())?;
        let delete = Delete {
            options: options.clone(),
            config,
            selection: Selection { changes: change_filter.diff_filter, ..Selection::default() },
            is_dry: diff_run,
            diff_exit_status,
            derived: global.behaviour.derived,
            write: write.clone(),
        };
        let input = InputOptions::default();
        let plan = PlanOptions::default();
        let apply = Apply { options, input, plan, as_text: false, write, is_confirmed: false, saved: None };
        let one_by_one = global.behaviour.groups_one_by_one;
        AppGroup { group: name, namespace, apply, delete, dry, one_by_one }.delete(run).await
    })
    .await
}

/// Options of each app; the name is that of the group until its turn.
fn options(
    global: &GlobalArgs,
    namespace: &NamespaceOptions,
    rules: RuleArgs,
    record: RecordOptions,
) -> Result<RunOptions, CommandError> {
    Ok(RunOptions {
        command: Command::Apply,
        cluster: global.cluster()?,
        app: AppOptions { name: String::new(), namespace: namespace.clone(), is_named: true, record },
        preflight: global.preflight(rules.into(), &HeldDocument::default())?,
        observer: global.behaviour.observer.clone(),
    })
}
