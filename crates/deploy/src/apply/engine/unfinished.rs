//! What is left when a run of the engine ends: a line for each object that is not written, not ready or not gone, with the
//! reasons.

use std::collections::BTreeMap;

use pushback_cluster::FIELD_MANAGER;
use pushback_cluster::managed_fields::{ForeignField, foreign_fields};
use pushback_events::{FailedContainer, Unfinished, UnfinishedLine};
use pushback_preflight::Operation;
use serde_json::Value;
use tokio::time::Instant;

use super::progress::{Explanation, FailedWait};
use super::{Engine, Progress};
use crate::apply::write::ABSENT;
use crate::plan::Planned;

/// Most fields of others that are named with an object that is not ready.
const FOREIGN_FIELDS: usize = 3;

impl Engine<'_> {
    /// A line for each object that is not as it should be.
    pub(super) fn unfinished(&self, mut containers: BTreeMap<usize, Vec<FailedContainer>>) -> Vec<UnfinishedLine> {
        let mut lines = Vec::new();
        for (index, (node, planned)) in self.nodes.iter().zip(&self.plan.objects).enumerate() {
            let writes = planned.operation().writes();
            let is_deletion = planned.operation() == Operation::Delete;
            let not_yet = if is_deletion { Unfinished::NotDeleted } else { Unfinished::NotReady };
            let of = |message: &str| Explanation { message: message.to_owned(), ..Explanation::default() };
            let (state, explanation, since) = match &node.progress {
                Progress::Pending if writes => (Unfinished::NotApplied, of(""), None),
                Progress::Done | Progress::Going | Progress::Pending => continue,
                Progress::Writing(_) => {
                    (Unfinished::Unknown, of("the write was cut off; the next run finds out"), None)
                }
                Progress::Waiting(waiting) => {
                    (not_yet, waiting.explanation().cloned().unwrap_or_default(), Some(waiting.since))
                }
                Progress::TimedOut(ended) => (not_yet, ended.explanation.clone(), Some(ended.since)),
                Progress::NeverReady(ended) => (Unfinished::Failed, ended.explanation.clone(), Some(ended.since)),
                Progress::WriteFailed(message) => (Unfinished::Failed, of(message), None),
                Progress::Skipped(_) if !writes => continue,
                Progress::Skipped(message) | Progress::Stopped(message) => (Unfinished::NotApplied, of(message), None),
            };
            let mut reasons = explanation.reasons;
            if matches!(&node.progress, Progress::TimedOut(_) | Progress::NeverReady(_)) && !is_deletion {
                reasons.extend(foreign_reasons(planned, node.object.as_deref()));
            }
            lines.push(UnfinishedLine {
                object: planned.object.clone(),
                state,
                message: explanation.message,
                reasons,
                containers: containers.remove(&index).unwrap_or_default(),
                elapsed: since.map(|at: Instant| at.elapsed().into()),
            });
        }
        lines
    }
}

/// The end of looking for what somebody else is to create: nothing was written, so nothing is left half done.
pub(super) fn still_absent(since: Instant) -> Progress {
    Progress::TimedOut(FailedWait {
        explanation: Explanation { message: ABSENT.to_owned(), ..Explanation::default() },
        since,
    })
}

/// Fields that others have set in an object that does not become ready.
fn foreign_reasons(planned: &Planned, live: Option<&Value>) -> Vec<String> {
    let (Some(live), Some(manifest)) = (live, planned.desired.as_deref()) else { return Vec::new() };
    let fields = foreign_fields(live, manifest, FIELD_MANAGER);
    let more = fields.len().saturating_sub(FOREIGN_FIELDS);
    let named = fields.iter().take(FOREIGN_FIELDS).map(ForeignField::describe);
    named.chain((more > 0).then(|| format!("{more} more fields are set by others"))).collect()
}
