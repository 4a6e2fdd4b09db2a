//! `pushback history` and `pushback app-change`: the changes of an app; and `pushback label`, what its objects carry.

use clap::{Args, Subcommand};
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use pushback_app::history::KEEP;
use pushback_events::exit::ExitCode;
use pushback_kapp::{self as kapp, Ui};
use pushback_terminal::history_text;

use super::arguments::{AppArgs, GlobalArgs};
use super::screen::{self, ProgressNotes};
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
    app: AppArgs,
    #[command(flatten)]
    times: TimeArgs,
}

/// Work on the records of an app's changes.
#[derive(Debug, Args)]
pub struct AppChangeArgs {
    #[command(subcommand)]
    command: AppChangeCommand,
}

#[derive(Debug, Subcommand)]
enum AppChangeCommand {
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
struct ListChangesArgs {
    #[command(flatten)]
    app: AppArgs,
    #[command(flatten)]
    times: TimeArgs,
}

/// Delete an app's oldest changes from its history.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pushback app-change garbage-collect -a shop --max 50

Nothing but records of changes is deleted. apply does the same with --app-changes-max-to-keep.

Exit codes: 0 done, 1 no such app or wrong input, 13 unreachable, 20 some could not be deleted.")]
struct GarbageCollectArgs {
    #[command(flatten)]
    app: AppArgs,
    /// How many of the newest changes are kept
    #[arg(long, default_value_t = KEEP, value_name = "COUNT")]
    max: usize,
}

/// Which changes.
#[derive(Clone, Copy, Debug, Args)]
struct TimeArgs {
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
pub async fn run(global: &GlobalArgs, arguments: HistoryArgs) -> ExitCode {
    list(global, arguments.app, arguments.times).await
}

/// Runs `app-change`.
pub async fn run_app_change(global: &GlobalArgs, arguments: AppChangeArgs) -> ExitCode {
    match arguments.command {
        AppChangeCommand::List(arguments) => list(global, arguments.app, arguments.times).await,
        AppChangeCommand::GarbageCollect(arguments) => garbage_collect(global, arguments).await,
    }
}

/// Runs `label`.
pub async fn run_label(global: &GlobalArgs, arguments: LabelArgs) -> ExitCode {
    let read = read(global, arguments.app, TimeArgs { before: None, after: None });
    if let Some(style) = &global.kapp {
        return screen::simple_as_kapp(style, async |ui| {
            let label = begun(ui, read.await?).label();
            ui.block(&label);
            Ok(())
        })
        .await;
    }
    screen::simple(global, read.await.map_err(Into::into).map(|read| read.label() + "\n"))
}

async fn read(global: &GlobalArgs, app: AppArgs, times: TimeArgs) -> Result<AppHistory, CommandError> {
    let TimeArgs { before, after } = times;
    let history = History { cluster: global.cluster()?, app: app.resolve(), before, after };
    history.read(&ProgressNotes(global), global.kapp.is_some()).await
}

/// Says first which cluster answers.
fn begun(ui: &mut Ui, read: AppHistory) -> AppHistory {
    read.target.iter().for_each(|target| kapp::reports::target(ui, target));
    read
}

async fn list(global: &GlobalArgs, app: AppArgs, times: TimeArgs) -> ExitCode {
    let read = read(global, app, times);
    if let Some(style) = &global.kapp {
        return screen::simple_as_kapp(style, async |ui| {
            let read = begun(ui, read.await?);
            ui.table(&kapp::history::changes("App changes", &read.changes(0), &style.columns))?;
            Ok(())
        })
        .await;
    }
    let shown = read.await.map(|read| {
        let changes = read.changes(0);
        if global.wants_json() { history_text::json(&read.app, &changes) } else { history_text::table(&changes) }
    });
    screen::simple(global, shown.map_err(Into::into))
}

async fn garbage_collect(global: &GlobalArgs, arguments: GarbageCollectArgs) -> ExitCode {
    let GarbageCollectArgs { app, max } = arguments;
    let read = read(global, app, TimeArgs { before: None, after: None });
    if let Some(style) = &global.kapp {
        return screen::simple_as_kapp(style, async |ui| {
            let read = begun(ui, read.await?);
            let old = read.changes(max);
            ui.table(&kapp::history::changes("App changes to delete", &old, &style.columns))?;
            screen::confirm(global, "")?;
            let (kept, deleted) = read.trim(max).await;
            ui.line(&format!("Kept {kept}, deleted {deleted} app changes"));
            complete(old.len(), deleted)
        })
        .await;
    }
    let work = async {
        let read = read.await?;
        let old = read.changes(max).len();
        if old > 0 {
            let plural = if old == 1 { "" } else { "s" };
            screen::confirm(global, &format!("Delete the oldest {old} change{plural} from the history?"))?;
        }
        let (kept, deleted) = read.trim(max).await;
        complete(old, deleted)?;
        Ok(if global.wants_json() {
            format!("{:#}\n", serde_json::json!({"schemaVersion": 1, "kept": kept, "deleted": deleted}))
        } else {
            format!("deleted {deleted}, kept {kept}\n")
        })
    };
    screen::simple(global, work.await.map_err(|error: CommandError| error.into()))
}

fn complete(wanted: usize, deleted: usize) -> Result<(), CommandError> {
    if deleted == wanted {
        return Ok(());
    }
    let message = format!("{} changes could not be deleted from the history", wanted - deleted);
    Err(CommandError { code: ExitCode::Partial, ..CommandError::usage(message) })
}
