//! `pushback history` and `pushback app-change`: the changes of an app; and `pushback label`, what its objects carry.

use clap::{Args, Subcommand};
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use pushback_app::history::KEEP;
use pushback_events::exit::ExitCode;
use pushback_terminal::history_text;

use super::arguments::{AppArgs, GlobalArgs};
use super::screen::{self, ProgressNotes, data_columns};
use crate::run::error::CommandError;
use crate::run::history::{AppHistory, History};

/// Show an app's changes: when, by whom, with which outcome, and what was waived.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pushback history -a shop
  pushback history -a shop --after 2026-11-01 -o json

Exit codes: 0 shown, 1 no such app or wrong input, 13 unreachable.")]
pub struct HistoryArgs {
    #[command(flatten)]
    pub(crate) changes: ChangesArgs,
}

/// Work on the records of an app's changes.
#[derive(Debug, Args)]
pub struct AppChangeArgs {
    #[command(subcommand)]
    pub(crate) command: AppChangeCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AppChangeCommand {
    /// List an app's changes, as `pushback history` does
    #[command(visible_alias = "ls", alias = "l")]
    List(ListChangesArgs),
    /// Delete an app's oldest changes from its history
    #[command(visible_alias = "gc")]
    GarbageCollect(GarbageCollectArgs),
}

/// List an app's changes, as `pushback history` does.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pushback app-change list -a shop
  pushback app-change list -a shop --before 2026-11-01T12:00:00Z

Exit codes: 0 shown, 1 no such app or wrong input, 13 unreachable.")]
pub(crate) struct ListChangesArgs {
    #[command(flatten)]
    pub(crate) changes: ChangesArgs,
}

/// Delete an app's oldest changes from its history.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pushback app-change garbage-collect -a shop --max 50

Nothing but records of changes is deleted. apply does the same with --app-changes-max-to-keep.

Exit codes: 0 done, 1 no such app or wrong input, 13 unreachable, 20 some could not be deleted.")]
pub(crate) struct GarbageCollectArgs {
    #[command(flatten)]
    app: AppArgs,
    /// How many of the newest changes are kept
    #[arg(long, default_value_t = KEEP, value_name = "COUNT")]
    pub(crate) max: usize,
}

/// The changes of an app to show.
#[derive(Debug, Args)]
pub(crate) struct ChangesArgs {
    #[command(flatten)]
    app: AppArgs,
    /// Only changes that started before this time: 2026-11-21T10:23:10Z, or 2026-11-21
    #[arg(long, value_name = "TIME", value_parser = time)]
    before: Option<Timestamp>,
    /// Only changes that started after this time
    #[arg(long, value_name = "TIME", value_parser = time)]
    after: Option<Timestamp>,
}

/// Print the label of an app's objects.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pushback label -a shop
  kubectl get pods -A -l $(pushback label -a shop)

Exit codes: 0 printed, 1 no such app or wrong input, 13 unreachable.")]
pub struct LabelArgs {
    #[command(flatten)]
    app: AppArgs,
}

fn time(text: &str) -> Result<Timestamp, String> {
    let day = || text.parse::<Date>().ok()?.to_zoned(TimeZone::UTC).ok().map(|start| start.timestamp());
    let known = text.parse().ok().or_else(day);
    known.ok_or_else(|| "expected a time, 2026-11-21T10:23:10Z, or a day, 2026-11-21".to_owned())
}

/// Runs `history`.
///
/// # Errors
/// The cluster's error; no such app.
pub async fn run(global: &GlobalArgs, arguments: HistoryArgs) -> Result<String, CommandError> {
    list(global, arguments.changes).await
}

/// Runs `app-change`.
///
/// # Errors
/// The cluster's error; no such app; the user declined; changes could not be deleted.
pub async fn run_app_change(global: &GlobalArgs, arguments: AppChangeArgs) -> Result<String, CommandError> {
    match arguments.command {
        AppChangeCommand::List(arguments) => list(global, arguments.changes).await,
        AppChangeCommand::GarbageCollect(arguments) => garbage_collect(global, arguments).await,
    }
}

/// Runs `label`.
///
/// # Errors
/// The cluster's error; no such app.
pub async fn run_label(global: &GlobalArgs, arguments: LabelArgs) -> Result<String, CommandError> {
    Ok(arguments.read(global).await?.label() + "\n")
}

impl ChangesArgs {
    /// Reads the changes.
    ///
    /// # Errors
    /// The cluster's error; no such app.
    pub(crate) async fn read(self, global: &GlobalArgs) -> Result<AppHistory, CommandError> {
        let Self { app, before, after } = self;
        let history = History { cluster: global.cluster()?, app: app.resolve(), before, after };
        history.read(&ProgressNotes(global)).await
    }
}

impl GarbageCollectArgs {
    /// Reads the changes of which the oldest are deleted.
    ///
    /// # Errors
    /// The cluster's error; no such app.
    pub(crate) async fn read(self, global: &GlobalArgs) -> Result<AppHistory, CommandError> {
        ChangesArgs { app: self.app, before: None, after: None }.read(global).await
    }
}

impl LabelArgs {
    /// Reads the app.
    ///
    /// # Errors
    /// The cluster's error; no such app.
    pub(crate) async fn read(self, global: &GlobalArgs) -> Result<AppHistory, CommandError> {
        ChangesArgs { app: self.app, before: None, after: None }.read(global).await
    }
}

async fn list(global: &GlobalArgs, changes: ChangesArgs) -> Result<String, CommandError> {
    let read = changes.read(global).await?;
    let changes = read.changes(0);
    Ok(if global.wants_json() {
        history_text::json(&read.app, &changes)
    } else {
        history_text::table(&changes, data_columns())
    })
}

async fn garbage_collect(global: &GlobalArgs, arguments: GarbageCollectArgs) -> Result<String, CommandError> {
    let max = arguments.max;
    let read = arguments.read(global).await?;
    let old = read.changes(max).len();
    if old > 0 {
        let plural = if old == 1 { "" } else { "s" };
        screen::confirm(global, &format!("Delete the oldest {old} change{plural} from the history?"))?;
    }
    let (kept, deleted) = read.trim(max).await;
    check_deleted(old, deleted)?;
    Ok(if global.wants_json() {
        format!("{:#}\n", serde_json::json!({"schemaVersion": 1, "kept": kept, "deleted": deleted}))
    } else {
        format!("deleted {deleted}, kept {kept}\n")
    })
}

/// Checks that every change was deleted that was to be.
///
/// # Errors
/// Some were not.
pub(crate) fn check_deleted(wanted: usize, deleted: usize) -> Result<(), CommandError> {
    if deleted == wanted {
        return Ok(());
    }
    let message = format!("{} changes could not be deleted from the history", wanted - deleted);
    Err(CommandError { code: ExitCode::Partial, ..CommandError::usage(message) })
}
