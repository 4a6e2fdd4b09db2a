//! `pushback rename`: another name or namespace for an app.

use std::time::Duration;

use clap::Args;
use pushback_app::identity::BY_LABEL;
use pushback_app::lease::{DEFAULT_LEASE, LockOptions};
use pushback_events::RunFailure;

use super::arguments::{AppArgs, GlobalArgs, duration};
use super::screen::{self, ProgressNotes};
use crate::run::app_name::{app_name, namespace};
use crate::run::error::CommandError;
use crate::run::rename::{Prepared, Rename};

/// Give an app another name or namespace.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pushback rename -a shop --new-name store
  pushback rename -a shop -n staging --new-namespace prod

The app's record moves, with its inventory and its history; its objects stay as they are, where they
are. Nothing else can write to the app meanwhile. If it is interrupted, apply and delete say so, and
the same command again finishes it.

Exit codes: 0 done, 1 no such app, the new name is taken or wrong input, 12 another run holds the
app, 13 unreachable.")]
pub struct RenameArgs {
    #[command(flatten)]
    app: AppArgs,
    /// New name
    #[arg(long, value_name = "NAME", value_parser = app_name)]
    new_name: Option<String>,
    /// New namespace of the app's record
    #[arg(long, value_name = "NAME", value_parser = namespace)]
    new_namespace: Option<String>,
    /// How long to wait for another run of the same app [default: 20s]
    #[arg(long, value_parser = duration, value_name = "DURATION")]
    lock_wait: Option<Duration>,
}

impl RenameArgs {
    /// Finds the app to rename.
    ///
    /// # Errors
    /// The cluster's error; wrong arguments; the app has this name already.
    pub(crate) async fn prepare(self, global: &GlobalArgs) -> Result<Prepared, CommandError> {
        let Self { app, new_name, new_namespace, lock_wait } = self;
        if new_name.is_none() && new_namespace.is_none() {
            let error = CommandError::usage_with_hint("no new name is given", "give --new-name or --new-namespace");
            return Err(error.because(RunFailure::Flag { flag: "--new-name", value: String::new() }));
        }
        if app.app.starts_with(BY_LABEL) {
            return Err(CommandError::usage("an app that is defined by a label has no record, and nothing to rename"));
        }
        let patience = LockOptions::new(DEFAULT_LEASE, lock_wait).patience;
        let rename = Rename { cluster: global.cluster()?, app: app.resolve(), new_name, new_namespace, patience };
        rename.prepare(&ProgressNotes(global)).await
    }
}

/// Runs the command.
///
/// # Errors
/// The cluster's error; wrong arguments; the user declined.
pub async fn run(global: &GlobalArgs, arguments: RenameArgs) -> Result<String, CommandError> {
    let prepared = arguments.prepare(global).await?;
    let Prepared { from, to, .. } = &prepared;
    let is_elsewhere = from.namespace != to.namespace;
    let place = if is_elsewhere { format!(" in namespace {}", to.namespace) } else { String::new() };
    screen::confirm(global, &format!("Rename app {} to {}{place}?", from.name, to.name))?;
    prepared.carry_out().await?;
    Ok(if global.wants_json() {
        let done = serde_json::json!({"schemaVersion": 1, "app": to.name, "namespace": to.namespace});
        format!("{done:#}\n")
    } else {
        format!("app {} of namespace {} is app {} of namespace {}\n", from.name, from.namespace, to.name, to.namespace)
    })
}
