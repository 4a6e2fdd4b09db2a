//! CRDs whose objects a webhook converts: once established and its backend is up, a CRD is ready when its objects can be
//! read through each served version.

use std::sync::Arc;
use std::time::Duration;

use pushback_events::Event;
use pushback_storage::served_versions::{UnreadVersion, WithoutObjects, read_each};
use tokio::time::Instant;

use super::progress::{Explanation, VersionReads};
use super::view::ReadResponse;
use super::{Engine, Progress};
use crate::plan::conversion_backends::ConversionBackend;

/// Interval between reads through all versions.
const INTERVAL: Duration = Duration::from_secs(2);

/// State of a CRD whose objects are being read.
const READING: &str = "established; its objects are read through each served version";

/// Interval between checks of a backend.
const BACKEND_POLL: Duration = Duration::from_millis(200);

impl Engine<'_> {
    /// Explains why an established CRD is not ready: its objects cannot be read yet. `None` once they were read, and for any
    /// other object.
    pub(super) fn unread(&mut self, node: usize) -> Option<Explanation> {
        let backend = self.plan.conversions.iter().find(|it| it.crd == node && it.is_written && it.converts)?;
        let reads = self.nodes[node].waiting()?.reads.clone();
        if reads == VersionReads::NotStarted {
            self.release_workloads(node);
        }
        let message = match (reads, self.unfinished_backend(backend)) {
            (VersionReads::Done, _) => return None,
            (VersionReads::NotStarted | VersionReads::Following, Some(first)) => {
                let object = &self.plan.objects[first].object;
                self.set_reads(node, VersionReads::Following, BACKEND_POLL);
                format!("established; {object}, which converts its objects, is not ready yet")
            }
            (VersionReads::NotStarted | VersionReads::Following, None) => {
                self.read_versions(node, backend);
                READING.to_owned()
            }
            (VersionReads::Failed { message, at }, _) => {
                if Instant::now() >= at + INTERVAL {
                    self.read_versions(node, backend);
                }
                message
            }
            (VersionReads::InFlight(message), _) => message,
        };
        Some(Explanation { message, ..Explanation::default() })
    }

    /// Workloads wait until the CRD is established, not until its objects can be read: they may serve the webhook.
    fn release_workloads(&mut self, node: usize) {
        let objects = self.plan.objects.iter().enumerate();
        let workloads: Vec<usize> =
            objects.filter(|(_, planned)| planned.makes_pods()).map(|(index, _)| index).collect();
        let ready = self.order.release_towards(node, &workloads);
        self.queue.extend(ready);
    }

    /// The first Service or workload of a backend that is under way. One that comes before the CRD is ready by now.
    fn unfinished_backend(&self, backend: &ConversionBackend) -> Option<usize> {
        backend.new.iter().copied().find(|&index| {
            matches!(self.nodes[index].progress, Progress::Pending | Progress::Writing(_) | Progress::Waiting(_))
        })
    }

    fn read_versions(&mut self, node: usize, backend: &ConversionBackend) {
        let Some(crd) = self.nodes[node].object.clone() else { return };
        let message = match self.nodes[node].waiting().map(|waiting| &waiting.reads) {
            Some(VersionReads::Failed { message, .. }) => message.clone(),
            _ => READING.to_owned(),
        };
        let without_objects = match backend.moves {
            true => WithoutObjects::DryRun(self.plan.observed.app.namespace.clone()),
            false => WithoutObjects::Skip,
        };
        self.set_reads(node, VersionReads::InFlight(message), INTERVAL);
        let cluster = Arc::clone(&self.writes.writer.cluster);
        self.view
            .looks
            .spawn(async move { ReadResponse::Versions(node, read_each(&*cluster, &crd, &without_objects).await) });
    }

    fn set_reads(&mut self, node: usize, reads: VersionReads, pause: Duration) {
        if let Some(waiting) = self.nodes[node].waiting_mut() {
            if waiting.reads == VersionReads::Following {
                // The time limit of an object is not for the time that its backend takes.
                waiting.since = Instant::now();
            }
            waiting.reads = reads;
            waiting.due = Some(Instant::now() + pause);
        }
    }

    /// Handles the answer of the reads.
    pub(super) fn on_versions_read(&mut self, node: usize, read: Result<Vec<String>, UnreadVersion>) {
        let reads = match read {
            Ok(hidden) => {
                if !hidden.is_empty() {
                    self.events.send(Event::Warning {
                        code: "conversion-unread".to_owned(),
                        message: format!(
                            "cannot verify the conversion of its objects: no permission to read them in {}",
                            hidden.join(", ")
                        ),
                        object: Some(self.plan.objects[node].object.clone()),
                        position: None,
                    });
                }
                VersionReads::Done
            }
            Err(UnreadVersion { version, reason }) => VersionReads::Failed {
                message: format!("its objects cannot be read in {version}: {reason}"),
                at: Instant::now(),
            },
        };
        self.set_reads(node, reads, INTERVAL);
        if self.nodes[node].waiting().is_some() {
            self.update_readiness(node);
        }
    }
}
