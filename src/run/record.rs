//! The app record of a run: reads it, checks its labels, renames it, writes it to a file.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use pushback_app::identity::{APP_LABEL, RECORD_LABEL};
use pushback_app::lease::LockOptions;
use pushback_app::record::{AppName, Observed, QUALIFIED_SUFFIX, config_map_kind, observe};
use pushback_app::rename::{self, Mover};
use pushback_app::{error::AppError, moving::Place};
use pushback_app::{lock, lock_wait};
use pushback_cluster::{Address, ListQuery, list_all};
use pushback_events::{DiagnosticCode, Event, RunFailure};
use pushback_objects::{ObjectExt, bookkeeping};
use pushback_system::atomic_file;
use serde_json::{Value, json};

use super::error::CommandError;
use super::running::Run;
use super::setup::Setup;

/// Reads the app. With `patience`, the app is about to be written: waits until no other run holds its lock.
///
/// # Errors
/// The record cannot be read or written; the lock is held for too long.
pub async fn read_current(run: &Run, setup: &Setup, patience: Option<Duration>) -> Result<Observed, CommandError> {
    if !setup.is_named {
        return app_of_base(setup).await;
    }
    run.planning(format!("reading app {}", setup.app.name));
    let mut observed = read(setup, setup.take_seen()).await?;
    check_labels(setup, &observed)?;
    let Some(patience) = patience else { return Ok(observed) };
    if finish_rename(run, setup, &observed).await? {
        observed = read(setup, None).await?;
    }
    observed.require_known_layout()?;
    let Some(record) = observed.record.clone().filter(|record| record.lock.is_some()) else {
        observed.require_unmoved()?;
        return Ok(observed);
    };
    let before = record.resource_version.clone();
    let events = run.events.clone();
    let on_wait = |holder: &lock::LockEntry| {
        let message = format!("waiting for the app's lock, held by {}", holder.describe());
        events.send(Event::diagnostic(DiagnosticCode::LockWaiting, message));
    };
    let (cluster, around) = (&*setup.cluster, &run.environment);
    let freed = lock_wait::until_free(cluster, &observed.app, record, around, &run.id, patience, on_wait).await?;
    if freed.is_none_or(|record| record.resource_version != before) {
        // The former holder has written: read everything again.
        observed = read(setup, None).await?;
        observed.require_known_layout()?;
    }
    observed.require_unmoved()?;
    Ok(observed)
}

/// The app behind a folder, a file or a git ref where none is named: the one that it records, if any.
async fn app_of_base(setup: &Setup) -> Result<Observed, CommandError> {
    let cluster = &*setup.cluster;
    let records = list_all(cluster, &ListQuery::new(config_map_kind(), None, RECORD_LABEL)).await?.items;
    let app = |record: &Arc<Value>| Some((bookkeeping::record_of(record)?.to_owned(), record.namespace().to_owned()));
    let apps: BTreeSet<(String, String)> = records.iter().filter_map(app).collect();
    let mut named = apps.iter().map(|(name, namespace)| AppName { name: name.clone(), namespace: namespace.clone() });
    match (named.next(), named.next()) {
        (None, _) => Ok(Observed::unrecorded(setup.app.clone())),
        (Some(app), None) => Ok(observe(cluster, &app).await?),
        (Some(_), Some(_)) => {
            let names: Vec<String> =
                apps.iter().map(|(name, namespace)| format!("{name} (namespace {namespace})")).collect();
            let message = format!("{} holds {} apps: {}", cluster.description(), names.len(), names.join(", "));
            Err(CommandError::usage_with_hint(message, "name the one to compare with: -a NAME, and -n NAMESPACE"))
        }
    }
}

/// Returns whether another run has written since the app was read, so that a plan may be meaningless. False if that cannot
/// be determined.
pub async fn has_changed_since(setup: &Setup, before: &RecordState) -> bool {
    // In a directory the lock is taken before the app is read.
    setup.cluster.capabilities().server && read(setup, None).await.is_ok_and(|now| record_state(&now) != *before)
}

/// uid and resourceVersion of an app's record; `None` if there is none.
pub type RecordState = Option<(String, String)>;

/// State of the record that was read.
pub fn record_state(observed: &Observed) -> RecordState {
    observed.record.as_ref().map(|record| (record.uid.clone(), record.resource_version.clone()))
}

/// Value of the app's label: from the record, or a new one.
pub fn label_value(run: &Run, setup: &Setup, observed: &Observed) -> String {
    match &observed.record {
        Some(record) => record.label_value().to_owned(),
        None if setup.cluster.capabilities().server => run.label_of_new(&setup.app),
        // A directory must not differ from run to run, so there is no random part.
        None => setup.app.name.clone(),
    }
}

/// Reads the app; where there is none, the one of the earlier name.
///
/// # Errors
/// A record cannot be read.
pub async fn read(setup: &Setup, seen: Option<Result<Observed, AppError>>) -> Result<Observed, AppError> {
    let observed = match seen {
        Some(seen) => seen?,
        None => observe(&*setup.cluster, &setup.app).await?,
    };
    let (None, Some(previous)) = (&observed.record, &setup.record.prev_app) else { return Ok(observed) };
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
    for (key, wanted) in &setup.record.written.labels {
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
    let (from, to) =
        (rename::place(record), Place::of(&setup.app, is_qualified || setup.record.written.fq_configmap_names));
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
    let is_wanted =
        from == to && setup.record.written.fq_configmap_names || setup.record.prev_app.as_ref() == Some(&from.name);
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
    let Some(path) = &setup.record.written.app_metadata_file_output else { return Ok(()) };
    let observed = read(setup, None).await?;
    let spec = match &observed.record {
        Some(record) => record.spec.clone().into(),
        None => {
            let never = "0001-01-01T00:00:00Z";
            json!({"labelKey": APP_LABEL, "labelValue": label_value(run, setup, &observed),
                "lastChange": {"startedAt": never, "finishedAt": never}, "usedGKs": []})
        }
    };
    atomic_file::replace(path, spec.to_string().as_bytes())
        .map_err(|error| CommandError::unwritable(format!("--app-metadata-file-output {}: {error}", path.display())))
}
