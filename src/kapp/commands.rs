//! kapp's commands that print a table or a line instead of a run: the program's own work, in kapp's words and layout.

use std::ffi::OsString;
use std::sync::Arc;

use pushback_cluster::Cluster;
use pushback_deploy::plan::sides::ChangeSides;
use pushback_events::exit::ExitCode;
use pushback_events::{AppRef, RunFailure};
use pushback_kapp::{DiffLook, ShownChange, Style, Target, Ui, changes, history as history_tables, reports};
use pushback_manifest::Manifest;
use pushback_manifest::config::defaults::defaults;
use pushback_manifest::config::mask::{MaskNumbers, Masker};
use pushback_manifest::config::parse::COMPATIBLE_KAPP_VERSION;
use pushback_system::environment::wall_clock;
use pushback_terminal::output::Output;
use pushback_terminal::raw_objects::{documents, placeholder, sorted_documents};

use crate::cli::Command;
use crate::cli::arguments::GlobalArgs;
use crate::cli::history::{AppChangeCommand, ChangesArgs, GarbageCollectArgs, LabelArgs, check_deleted};
use crate::cli::inspect::InspectArgs;
use crate::cli::list::ListArgs;
use crate::cli::rename::RenameArgs;
use crate::cli::screen::{self, ProgressNotes, not_written};
use crate::cli::tools::{self, ToolsCommand};
use crate::run::error::CommandError;
use crate::run::inspect::{Inspect, LabelledApp, LabelledObjects};
use crate::run::list::ListedApps;
use crate::run::rename::Prepared;
use crate::run::tools::{Pair, pairs};

/// Runs a command. `arguments` are the whole command line.
pub(super) async fn run(command: Command, global: &GlobalArgs, style: &Style, arguments: &[OsString]) -> ExitCode {
    let mut ui = Ui::new(style.clone(), Output::standard());
    let is_rename = matches!(command, Command::Rename(_));
    let ended = match command {
        Command::Inspect(arguments) => inspect(global, &mut ui, arguments).await,
        Command::List(arguments) => list(global, &mut ui, arguments).await,
        Command::History(arguments) => list_changes(global, &mut ui, style, arguments.changes).await,
        Command::AppChange(arguments) => match arguments.command {
            AppChangeCommand::List(arguments) => list_changes(global, &mut ui, style, arguments.changes).await,
            AppChangeCommand::GarbageCollect(arguments) => delete_changes(global, &mut ui, style, arguments).await,
        },
        Command::Label(arguments) => label(global, &mut ui, arguments).await,
        Command::Rename(arguments) => rename(global, &mut ui, arguments).await,
        Command::Tools(arguments) => match arguments.command {
            ToolsCommand::Inspect(arguments) => inspect_files(&mut ui, arguments),
            ToolsCommand::Diff(arguments) => {
                let diff = DiffLook {
                    summary: arguments.summary,
                    changes: arguments.changes,
                    context: usize::try_from(arguments.context).ok(),
                    line_numbers: arguments.line_numbers,
                    yaml: arguments.changes_yaml,
                };
                ui = Ui::new(Style { diff, ..style.clone() }, Output::standard());
                diff_files(&mut ui, &arguments)
            }
        },
        Command::Version(_) if !global.wants_json() => {
            let version = env!("CARGO_PKG_VERSION");
            return screen::simple(
                global,
                Ok(format!("kapp version {COMPATIBLE_KAPP_VERSION} (pushback {version})\n")),
            );
        }
        other => return other.run(global, arguments).await,
    };
    let code = match ended {
        Ok(()) => {
            ui.line("Succeeded");
            ExitCode::Success
        }
        Err(error) => {
            ui.error(&super::in_words(&error, is_rename));
            error.code
        }
    };
    ui.finish().map_or_else(|error| not_written(&error), |()| code)
}

/// Prints which cluster answers.
async fn print_target(ui: &mut Ui, cluster: &dyn Cluster) {
    if let Some(target) = Target::read(cluster).await {
        target.print(ui);
    }
}

async fn inspect(global: &GlobalArgs, ui: &mut Ui, arguments: InspectArgs) -> Result<(), CommandError> {
    let InspectArgs { app, filters, tree, status, raw, managed_fields } = arguments;
    let (scope, filter) = (filters.scope(), filters.resolve()?);
    let inspect = Inspect { cluster: global.cluster()?, app: app.resolve(), with_children: true, filter, scope };
    let LabelledApp { cluster, app, objects, elsewhere } = inspect.labelled(&ProgressNotes(global)).await?;
    print_target(ui, &*cluster).await;
    let Some(LabelledObjects { own, others }) = objects else {
        let error = CommandError::usage("there is no such app");
        let app = AppRef { name: app.name, namespace: app.namespace };
        return Err(error.because(RunFailure::NoApp { app, elsewhere }));
    };
    if raw {
        sorted_documents(own.iter().chain(&others), managed_fields).iter().for_each(|block| ui.block(block));
    } else if status {
        ui.table(&reports::statuses(&app.name, &own, &others))?;
    } else {
        ui.table(&reports::resources(&app.name, &own, &others, tree, wall_clock()))?;
    }
    Ok(())
}

async fn list(global: &GlobalArgs, ui: &mut Ui, arguments: ListArgs) -> Result<(), CommandError> {
    let list = arguments.resolve(global)?;
    let ListedApps { cluster, namespace, apps } = list.run(&ProgressNotes(global)).await?;
    print_target(ui, &*cluster).await;
    let namespace = (!list.all_namespaces).then_some(namespace.as_str());
    ui.table(&reports::apps(namespace, &apps, wall_clock()))?;
    Ok(())
}

async fn list_changes(
    global: &GlobalArgs,
    ui: &mut Ui,
    style: &Style,
    arguments: ChangesArgs,
) -> Result<(), CommandError> {
    let read = arguments.read(global).await?;
    print_target(ui, &*read.cluster).await;
    ui.table(&history_tables::changes("App changes", &read.changes(0), &style.columns))?;
    Ok(())
}

async fn delete_changes(
    global: &GlobalArgs,
    ui: &mut Ui,
    style: &Style,
    arguments: GarbageCollectArgs,
) -> Result<(), CommandError> {
    let max = arguments.max;
    let read = arguments.read(global).await?;
    print_target(ui, &*read.cluster).await;
    let old = read.changes(max);
    ui.table(&history_tables::changes("App changes to delete", &old, &style.columns))?;
    screen::confirm(global, "")?;
    let (kept, deleted) = read.trim(max).await;
    ui.line(&format!("Kept {kept}, deleted {deleted} app changes"));
    check_deleted(old.len(), deleted)
}

async fn label(global: &GlobalArgs, ui: &mut Ui, arguments: LabelArgs) -> Result<(), CommandError> {
    let read = arguments.read(global).await?;
    print_target(ui, &*read.cluster).await;
    ui.block(&read.label());
    Ok(())
}

async fn rename(global: &GlobalArgs, ui: &mut Ui, arguments: RenameArgs) -> Result<(), CommandError> {
    let prepared = arguments.prepare(global).await?;
    let Prepared { cluster, from, to, .. } = &prepared;
    print_target(ui, &**cluster).await;
    ui.line(&format!(
        "Renaming '{}' (namespace: {}) to '{}' (namespace: {}) (app changes will be renamed)",
        from.name, from.namespace, to.name, to.namespace
    ));
    screen::confirm(global, "")?;
    prepared.carry_out().await
}

fn inspect_files(ui: &mut Ui, arguments: tools::InspectArgs) -> Result<(), CommandError> {
    let tools::InspectArgs { files, raw, sort, filters } = arguments;
    for file in &files {
        let manifests = tools::read(std::slice::from_ref(file), sort && !raw, filters.clone())?;
        let objects: Vec<_> = manifests.into_iter().map(|manifest| Arc::new(manifest.value)).collect();
        if raw {
            documents(objects.iter(), false).iter().for_each(|block| ui.block(block));
        } else {
            ui.table(&reports::of_file(file, &objects))?;
        }
    }
    Ok(())
}

fn diff_files(ui: &mut Ui, arguments: &tools::DiffArgs) -> Result<(), CommandError> {
    let (old, new) = tools::sides(arguments)?;
    let masker = Masker::new(&defaults().diff_mask_rules);
    let mut numbers = MaskNumbers::shown_as(placeholder);
    let mut masked = |side: Option<&Manifest>| {
        let mut value = side?.value.clone();
        masker.mask(&mut value, &mut numbers);
        Some(value)
    };
    let shown = |Pair { operation, old, new, named }| {
        let (old, new) = (masked(old), masked(new));
        let strategy = changes::NO_STRATEGY.to_owned();
        let sides = ChangeSides { live: old.clone().map(Arc::new), old, new, strategy, ..ChangeSides::default() };
        ShownChange { object: named.object.clone(), operation, sides, resource: String::new() }
    };
    let lines: Vec<ShownChange> = pairs(&old, &new, &arguments.filter).into_iter().map(shown).collect();
    changes::show(ui, &lines, &[], wall_clock());
    Ok(())
}
