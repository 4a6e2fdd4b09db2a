//! The app as it is: its record, and whether another run is at work on it.

use std::time::Duration;

use super::error::CommandError;
use super::running::Run;
use super::setup::Setup;
use crate::app::lock;
use crate::app::record::{Observed, observe};
use crate::event::{DiagnosticCode, Event};

/// Looks at the app. With `patience`, as one that is to be written: waits until no other run holds its lock.
///
/// # Errors
/// The record cannot be read, or not be written; the lock is held for too long.
pub async fn look(run: &Run, setup: &Setup, patience: Option<Duration>) -> Result<Observed, CommandError> {
    if !setup.is_named {
        return Ok(Observed::unrecorded(setup.app.clone()));
    }
    run.planning(format!("reading app {}", setup.app.name));
    let mut observed = match setup.take_seen() {
        Some(seen) => seen?,
        None => observe(&*setup.cluster, &setup.app).await?,
    };
    let Some(patience) = patience else { return Ok(observed) };
    observed.require_known_layout()?;
    let Some(record) = observed.record.clone().filter(|record| record.lock.is_some()) else { return Ok(observed) };
    let before = record.resource_version.clone();
    let events = run.events.clone();
    let on_wait = |holder: &lock::LockEntry| {
        events.send(Event::Diagnostic {
            code: DiagnosticCode::LockWaiting,
            message: format!("waiting for the app's lock, held by {}", holder.describe()),
        });
    };
    let (cluster, around) = (&*setup.cluster, &run.environment);
    let freed = lock::wait_until_free(cluster, &setup.app, record, around, &run.id, patience, on_wait).await?;
    if freed.is_none_or(|record| record.resource_version != before) {
        // Whoever held it has written: everything is looked at anew.
        observed = observe(&*setup.cluster, &setup.app).await?;
        observed.require_known_layout()?;
    }
    Ok(observed)
}

/// Whether another run has written since the app was looked at: what was planned then need not make sense.
/// Where that cannot be told, no.
pub async fn has_moved(setup: &Setup, before: &RecordState) -> bool {
    // In a directory the lock is held from before the look.
    setup.cluster.capabilities().server
        && observe(&*setup.cluster, &setup.app).await.is_ok_and(|now| record_state(&now) != *before)
}

/// uid and resourceVersion of an app's record; `None` where there is none.
pub type RecordState = Option<(String, String)>;

/// The state of the record that was observed.
pub fn record_state(observed: &Observed) -> RecordState {
    observed.record.as_ref().map(|record| (record.uid.clone(), record.resource_version.clone()))
}

/// The app's label value: the record's, or a new one.
pub fn label_value(run: &Run, setup: &Setup, observed: &Observed) -> String {
    match &observed.record {
        Some(record) => record.label_value().to_owned(),
        None if setup.cluster.capabilities().server => run.environment.new_app_label(),
        // Nothing is stamped in a directory, and nothing there may differ from run to run.
        None => setup.app.name.clone(),
    }
}
