//! The end of a run: operators that are still paused go on, unless a definition of theirs is left half carried over.

use std::collections::BTreeMap;

use pushback_events::{Unfinished, UnfinishedLine};

use super::Engine;
use super::progress::Progress;
use crate::plan::PlannedOperator;

impl Engine<'_> {
    /// Lets operators go on whose turn did not come. Returns those that stay paused, and why.
    pub(super) async fn resume_operators(&self) -> Vec<UnfinishedLine> {
        let mut paused: BTreeMap<usize, (&PlannedOperator, Vec<usize>)> = BTreeMap::new();
        for (definition, planned) in self.plan.objects.iter().enumerate() {
            for operator in planned.difference().operators.iter().filter(|operator| operator.pauses) {
                paused.entry(operator.index).or_insert_with(|| (operator, Vec::new())).1.push(definition);
            }
        }
        let mut lines = Vec::new();
        for (operator, definitions) in paused.into_values() {
            let mut half_done = None;
            for definition in definitions {
                half_done = half_done.or(self.half_carried_over(definition).await);
            }
            let message = match half_done {
                Some(name) => {
                    format!("it stays paused, because {name} is half carried over; the next apply goes on from there")
                }
                None => match self.writes.writer.go_on_at_last(&operator.address).await {
                    Ok(()) => continue,
                    Err(failure) => format!("it is still paused: {}", failure.message()),
                },
            };
            lines.push(UnfinishedLine {
                object: self.plan.objects[operator.index].object.clone(),
                state: Unfinished::NotReady,
                message,
                reasons: Vec::new(),
                containers: Vec::new(),
                elapsed: None,
            });
        }
        lines
    }

    /// The name of a definition that was changed, but not carried over to its end.
    async fn half_carried_over(&self, definition: usize) -> Option<String> {
        let is_written = match self.nodes[definition].progress {
            Progress::Done | Progress::Waiting(_) | Progress::TimedOut(_) | Progress::NeverReady(_) => true,
            Progress::Pending
            | Progress::Writing(_)
            | Progress::WriteFailed(_)
            | Progress::Skipped(_)
            | Progress::Stopped(_)
            | Progress::Going => false,
        };
        let planned = &self.plan.objects[definition];
        let is_untouched = || self.writes.writer.is_untouched(planned);
        let is_whole = is_written || matches!(is_untouched().await, Ok(true));
        (!is_whole).then(|| planned.object.name.clone())
    }
}
