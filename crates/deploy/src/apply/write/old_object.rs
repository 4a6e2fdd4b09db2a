//! The old object of a replacement, or of one that is created again after its parent: waits until it is gone, and reports
//! what blocks its deletion.

use pushback_cluster::{Address, DeleteOptions, ErrorKind};
use pushback_events::{Awaited, Event, WaitOutcome};
use pushback_objects::ObjectExt;
use serde_json::Value;
use tokio::time::Instant;

use super::{Done, Failure, GONE_POLL, Writer};
use crate::apply::readiness;
use crate::plan::Planned;

impl Writer {
    /// Waits until the old object of a replacement is gone; reports what blocks it.
    pub(super) async fn wait_until_gone(
        &self,
        planned: &Planned,
        address: &Address,
        deadline: Instant,
    ) -> Result<(), Failure> {
        let uid = planned.live.as_deref().map(ObjectExt::uid).unwrap_or_default();
        let started = Instant::now();
        let wanted = Awaited::Deleted;
        let mut told = String::new();
        loop {
            let Some(seen) = self.cluster.get(address).await.map_err(Failure::Cluster)?.filter(|it| it.uid() == uid)
            else {
                if !told.is_empty() {
                    self.events.send(Event::WaitDone {
                        object: planned.object.clone(),
                        wanted,
                        outcome: WaitOutcome::Ok,
                        message: String::new(),
                        reasons: Vec::new(),
                        elapsed: started.elapsed().into(),
                    });
                }
                return Ok(());
            };
            let blockers = readiness::deletion_blockers(&seen);
            let held = if blockers.is_empty() { String::new() } else { format!(": {blockers}") };
            if Instant::now() >= deadline {
                return Err(Failure::Stuck(format!("timed out waiting for the old object to be deleted{held}")));
            }
            let message = format!("the old object is being deleted{held}");
            if told != message {
                self.events.send(Event::WaitProgress {
                    object: planned.object.clone(),
                    wanted,
                    message: message.clone(),
                    reasons: Vec::new(),
                    elapsed: started.elapsed().into(),
                });
                told.clone_from(&message);
            }
            if self.pause(GONE_POLL).await.is_break() {
                return Err(Failure::Stopped(message));
            }
        }
    }

    /// Creates an object again whose parent this run has replaced or deleted. The deletion of the parent was judged with
    /// everything below it, so nothing is judged again here: the object would otherwise stay deleted.
    pub(super) async fn recreate(
        &self,
        planned: &Planned,
        address: &Address,
        deadline: Instant,
    ) -> Result<Done, Failure> {
        let uid = planned.live.as_deref().map(ObjectExt::uid).unwrap_or_default();
        let seen = match self.cluster.get(address).await {
            // The CRD is there again, and not served by every API server yet.
            Err(error) if error.kind == ErrorKind::UnknownKind => None,
            seen => seen.map_err(Failure::Cluster)?,
        };
        let is_old = |seen: &Value| seen.uid() == uid && !seen.is_terminating();
        if seen.is_some_and(|seen| is_old(&seen)) {
            // The garbage collector deletes it later; a folder has none.
            self.allowed()?;
            let options = DeleteOptions { uid: uid.to_owned(), ..DeleteOptions::default() };
            match self.cluster.delete(address, &options).await {
                Err(error) if !matches!(error.kind, ErrorKind::NotFound | ErrorKind::Conflict) => {
                    return Err(Failure::Cluster(error));
                }
                _ => {}
            }
        }
        self.wait_until_gone(planned, address, deadline).await?;
        self.write_new(planned, address).await
    }
}
