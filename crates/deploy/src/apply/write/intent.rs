//! Checks before a write is retried, and after predecessors' entries have become ours, that it still does what was
//! planned and no more.

use std::sync::Arc;

use pushback_cluster::{Address, ApplyOptions, ClusterError, ErrorKind, Guard};
use pushback_objects::ObjectExt;
use pushback_objects::source::display_path;
use pushback_storage::operators;
use serde_json::Value;

use super::{Failure, Writer};
use crate::plan::takeover::{self, Takeover};
use crate::plan::{FieldChange, Planned, diff, steady};

/// When two changes count as the same.
#[derive(Clone, Copy, Debug)]
pub(super) enum Compare {
    /// Same field, same values.
    Values,
    /// Same field: nothing was changed in between, and admission may fill in a new value each time.
    Places,
}

impl Writer {
    /// The object as it is now; fails if it is no longer the one planned for.
    pub(super) async fn seen_again(&self, planned: &Planned, address: &Address) -> Result<Arc<Value>, Failure> {
        let Some(seen) = self.cluster.get(address).await.map_err(Failure::Cluster)? else {
            return Err(Failure::Changed("it was deleted meanwhile".to_owned()));
        };
        if planned.live.as_deref().is_some_and(|planned| planned.uid() != seen.uid()) {
            return Err(Failure::Changed("it was deleted and created again in the meantime".to_owned()));
        }
        if seen.label(&self.label_key) != planned.live.as_deref().and_then(|live| live.label(&self.label_key)) {
            return Err(Failure::Changed("it now belongs to another app".to_owned()));
        }
        Ok(seen)
    }

    /// The object as it is after a dry-run, if that was about this state: nothing but its status has changed. Otherwise a
    /// conflict.
    pub(super) async fn still_the_same(
        &self,
        planned: &Planned,
        address: &Address,
        seen: &Value,
    ) -> Result<Arc<Value>, Failure> {
        let now = self.seen_again(planned, address).await?;
        match steady::is_same(seen, &now) {
            true => Ok(now),
            false => Err(Failure::Cluster(ClusterError::new(ErrorKind::Conflict, "it was changed again"))),
        }
    }

    /// Fails if the update would now do more than was planned. Returns how to continue the takeover from managers that
    /// have written since. The answers count if nothing but the status changes meanwhile.
    pub(super) async fn seen_intent(
        &self,
        planned: &Planned,
        address: &Address,
        body: &Value,
        seen: &Value,
        compare: Compare,
    ) -> Result<Option<Takeover>, Failure> {
        let dry_run = ApplyOptions::DRY_RUN;
        let answer = self.cluster.apply(address, &Guard::Identity.of(body, seen), dry_run).await;
        let server_answer = match &answer {
            Ok(written) => Some(takeover::Answer::Object(&written.object)),
            Err(error) if error.kind == ErrorKind::Invalid => Some(takeover::Answer::Invalid),
            Err(_) => None,
        };
        let mut continued = None;
        if let (Some(answer), Some(known)) = (server_answer, &planned.difference().takeover) {
            let autoscaled = takeover::Autoscaled::Known(known.keeps_replicas);
            let blocking: Vec<_> = known.blocking.iter().map(|field| field.path.clone()).collect();
            let scene = takeover::Scene {
                cluster: &*self.cluster,
                address,
                live: seen,
                body,
                answer,
                autoscaled,
                exclusive: &known.exclusive,
                blocking: &blocking,
                guard: Guard::Identity,
            };
            continued = match takeover::continue_work(scene).await {
                Some(Ok(continued)) => Some(continued),
                Some(Err(takeover::Refused::Server(error))) => return Err(Failure::Cluster(error)),
                Some(Err(takeover::Refused::Impossible(why))) => return Err(Failure::Changed(why)),
                None => None,
            };
        }
        let (now, takeover) = match continued {
            Some(continued) => (continued.fields, Some(continued.takeover)),
            None => {
                let answer = answer.map_err(Failure::Cluster)?;
                // That this run has paused it is no change of somebody else's.
                let (before, after) = (operators::unpaused(seen), operators::unpaused(&answer.object));
                (diff::diff(&before, &after, &diff::DiffOptions::default()), None)
            }
        };
        let was_planned = |change: &FieldChange| match compare {
            Compare::Values => planned.difference().fields.contains(change),
            // The server's merge decides the order of the remaining items.
            Compare::Places if change.segments.last() == Some(&diff::DiffSegment::Order) => true,
            Compare::Places => planned.difference().fields.iter().any(|planned| is_same_place(planned, change)),
        };
        // Even if no value is left to change, ownership may be: the write is sent all the same.
        let now = if planned.difference().takeover.is_some() { takeover::without_copies(now) } else { now };
        // Paths only: the keys of list items are values, and this message is not masked.
        let mut paths: Vec<String> =
            now.iter().filter(|change| !was_planned(change)).map(|change| display_path(&change.path)).collect();
        paths.dedup();
        if paths.is_empty() {
            return Ok(takeover);
        }
        // What somebody has written during the dry-run is looked at with the next attempt.
        self.still_the_same(planned, address, seen).await?;
        Err(Failure::Changed(format!("it was changed since it was planned: {}", paths.join(", "))))
    }
}

/// Whether two changes add, change or remove the same field. A list item is the same at any index.
fn is_same_place(planned: &FieldChange, change: &FieldChange) -> bool {
    let kind = |change: &FieldChange| (change.old.is_some(), change.new.is_some());
    let place = |change: &FieldChange| change.display(&|_| false);
    kind(planned) == kind(change) && place(planned) == place(change)
}
