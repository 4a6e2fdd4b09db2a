//! Reads the app's current state: its record, and whether another run is in progress.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use pushback_app::identity::RECORD_LABEL;
use pushback_app::lock;
use pushback_app::record::{AppName, Observed, config_map_kind, observe};
use pushback_cluster::{ListQuery, list_all};
use pushback_events::{DiagnosticCode, Event};
use pushback_objects::{ObjectExt, bookkeeping};
use serde_json::Value;

use super::error::CommandError;
use super::record;
use super::running::Run;
use super::setup::Setup;

/// Reads the app. With `patience`, the app is about to be written: waits until no other run holds its lock.
///
/// # Errors
/// The record cannot be read or written; the lock is held for too long.
pub async fn look(run: &Run, setup: &Setup, patience: Option<Duration>) -> Result<Observed, CommandError> {
    if !setup.is_named {
        return app_of_base(setup).await;
    }
    run.planning(format!("reading app {}", setup.app.name));
    let mut observed = record::read(setup, setup.take_seen()).await?;
    record::check_labels(setup, &observed)?;
    let Some(patience) = patience else { return Ok(observed) };
    if record::finish_rename(run, setup, &observed).await? {
        observed = record::read(setup, None).await?;
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
    let freed = lock::wait_until_free(cluster, &observed.app, record, around, &run.id, patience, on_wait).await?;
    if freed.is_none_or(|record| record.resource_version != before) {
        // The former holder has written: read everything again.
        observed = record::read(setup, None).await?;
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

/// Whether another run has written since the app was read, so that a plan may be meaningless. False if that cannot be
/// determined.
pub async fn has_moved(setup: &Setup, before: &RecordState) -> bool {
    // In a directory the lock is taken before the app is read.
    setup.cluster.capabilities().server
        && record::read(setup, None).await.is_ok_and(|now| record_state(&now) != *before)
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
