//! Objects created between the last look and the deletion of their definition. They cannot be saved; the error names
//! them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::BoxStream;
use pushback_cluster::{ClusterError, ListQuery, WatchEvent, list_all};
use pushback_objects::ObjectExt;
use tokio::time::{Instant, timeout_at};

use super::{Failure, Writer};
use crate::plan::{Planned, desired};

/// How long to wait for reports of earlier objects. The server ends the watch when the definition is gone.
const LATE_NEWS: Duration = Duration::from_secs(3);

/// Most names in a message.
const SHOWN: usize = 5;

/// Watch for objects of a kind, from a given moment on.
pub(super) struct Arrivals {
    kind: String,
    known: BTreeSet<String>,
    events: BoxStream<'static, Result<WatchEvent, ClusterError>>,
}

impl Writer {
    /// Starts watching for new objects of a definition that is about to be deleted. `None` if no verdict depends on
    /// their absence, or they cannot be watched.
    pub(super) async fn arrivals(&self, planned: &Planned) -> Option<Arrivals> {
        let is_relied_on = self.second_look.as_ref().is_some_and(|it| it.rests_on_what_goes_with(&planned.change()));
        if !is_relied_on || !planned.object.is_definition() {
            return None;
        }
        let kind = desired::kinds_of_crd(planned.live.as_deref()?).into_iter().next()?;
        let query = ListQuery::new(Arc::new(kind), None, "");
        let there = list_all(&*self.cluster, &query).await.ok()?;
        let events = self.cluster.watch(&query, &there.resource_version).await.ok()?;
        let known = there.items.iter().map(|object| object.uid().to_owned()).collect();
        Some(Arrivals { kind: query.kind.kind.clone(), known, events })
    }
}

impl Arrivals {
    /// Called after the deletion: fails if objects were created that were not judged.
    pub(super) async fn none(mut self) -> Result<(), Failure> {
        let end = Instant::now() + LATE_NEWS;
        let mut lost = BTreeSet::new();
        while let Ok(Some(Ok(event))) = timeout_at(end, self.events.next()).await {
            match event {
                WatchEvent::Applied(object) if !self.known.contains(object.uid()) => {
                    lost.insert(object.full_name());
                }
                _ => {}
            }
        }
        if lost.is_empty() {
            return Ok(());
        }
        let names: Vec<&str> = lost.iter().take(SHOWN).map(String::as_str).collect();
        let more = if lost.len() > SHOWN { ", …" } else { "" };
        Err(Failure::differs(format!(
            "it was deleted, and with it objects of kind {} that somebody created at the same moment: {}{more}",
            self.kind,
            names.join(", ")
        )))
    }
}
