//! What an apply does to the app's record besides the change itself: renames it, checks its labels, writes it to a file.

use std::sync::Arc;

use pushback_app::identity::APP_LABEL;
use pushback_app::lease::LockOptions;
use pushback_app::record::{AppName, Observed, QUALIFIED_SUFFIX, observe};
use pushback_app::rename::{self, Mover};
use pushback_app::{error::AppError, moving::Place};
use pushback_cluster::Address;
use pushback_events::RunFailure;
use pushback_system::atomic_file;
use serde_json::json;

use super::error::CommandError;
use super::look;
use super::running::Run;
use super::setup::Setup;

/// Reads the app; where there is none, the one of the earlier name.
///
/// # Errors
/// A record cannot be read.
pub async fn read(setup: &Setup, seen: Option<Result<Observed, AppError>>) -> Result<Observed, AppError> {
    let observed = match seen {
        Some(seen) => seen?,
        None => observe(&*setup.cluster, &setup.app).await?,
    };
    let (None, Some(previous)) = (&observed.record, &setup.record.previous) else { return Ok(observed) };
    let previous = AppName { name: previous.clone(), namespace: setup.app.namespace.clone() };
    let before = observe(&*setup.cluster, &previous).await?;
    Ok(if before.record.is_some() { before } else { observed })
}

/// Refuses a new record whose namespace does not exist, for a tool that creates its record before it shows anything. Who
/// may not read namespaces is told by the write.
///
/// # Errors
/// There is no such namespace.
pub async fn require_namespace(setup: &Setup, observed: &Observed) -> Result<(), CommandError> {
    let (None, Some(kind)) = (&observed.record, setup.kinds.preferred("", "Namespace")) else { return Ok(()) };
    let namespace = &observed.app.namespace;
    match setup.cluster.get(&Address::new(Arc::clone(kind), "", namespace)).await {
        Ok(None) => Err(CommandError::usage(format!("namespaces \"{namespace}\" not found"))),
        Ok(Some(_)) | Err(_) => Ok(()),
    }
}

/// Refuses labels that the record has with other values.
///
/// # Errors
/// Such a label.
pub fn check_labels(setup: &Setup, observed: &Observed) -> Result<(), CommandError> {
    let Some(record) = &observed.record else { return Ok(()) };
    for (key, wanted) in &setup.record.labels {
        if let Some(found) = record.labels.get(key).filter(|found| *found != wanted) {
            let message = format!("label {key} of app {} is {found} and cannot become {wanted}", observed.app.name);
            let failure = RunFailure::Flag { flag: "--labels", value: key.clone() };
            return Err(CommandError::usage(message).because(failure));
        }
    }
    Ok(())
}

/// Gives the record the name that it is to have; whether it had another.
///
/// # Errors
/// The new name is taken, another run is at work, or the cluster refuses.
pub async fn rename(run: &Run, setup: &Setup, observed: &Observed) -> Result<bool, CommandError> {
    let Some(record) = &observed.record else { return Ok(false) };
    let is_qualified = record.address.name.ends_with(QUALIFIED_SUFFIX);
    let (from, to) = (rename::place(record), Place::of(&setup.app, is_qualified || setup.record.qualified));
    if from == to || !setup.is_named {
        return Ok(false);
    }
    move_to(run, setup, &from, &to).await.map(|()| true)
}

/// Finishes a rename to this app that was interrupted, if this run would do the same; whether there was one.
///
/// # Errors
/// As of a rename.
pub async fn finish_rename(run: &Run, setup: &Setup, observed: &Observed) -> Result<bool, CommandError> {
    let Some(moving) = observed.record.as_ref().and_then(|record| record.moving.clone()) else { return Ok(false) };
    let (from, to) = (moving.from.app(), moving.to.app());
    let is_wanted = from == to && setup.record.qualified || setup.record.previous.as_ref() == Some(&from.name);
    if to != setup.app || !is_wanted {
        return Ok(false);
    }
    move_to(run, setup, &moving.from, &moving.to).await.map(|()| true)
}

async fn move_to(run: &Run, setup: &Setup, from: &Place, to: &Place) -> Result<(), CommandError> {
    run.planning(format!("renaming app {} to {}", from.app().name, to.app().name));
    let mover =
        Mover { environment: &run.environment, run: &run.id, patience: LockOptions::default().patience, holds: true };
    Ok(rename::rename(&*setup.cluster, mover, from, to).await?)
}

/// Writes kapp's part of the record to a file, where that is asked for.
///
/// # Errors
/// The record cannot be read, or the file not be written.
pub async fn write_file(run: &Run, setup: &Setup) -> Result<(), CommandError> {
    let Some(path) = &setup.record.file else { return Ok(()) };
    let observed = read(setup, None).await?;
    let spec = match &observed.record {
        Some(record) => record.spec.clone().into(),
        None => {
            let never = "0001-01-01T00:00:00Z";
            json!({"labelKey": APP_LABEL, "labelValue": look::label_value(run, setup, &observed),
                "lastChange": {"startedAt": never, "finishedAt": never}, "usedGKs": []})
        }
    };
    atomic_file::replace(path, spec.to_string().as_bytes())
        .map_err(|error| CommandError::usage(format!("--app-metadata-file-output {}: {error}", path.display())))
}
