//! The old object of a replacement: waits until it is gone, and reports what blocks its deletion.

use pushback_cluster::Address;
use pushback_events::{Awaited, Event, WaitOutcome};
use pushback_objects::ObjectExt;
use tokio::time::Instant;

use super::{Failure, GONE_POLL, Writer};
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
}
