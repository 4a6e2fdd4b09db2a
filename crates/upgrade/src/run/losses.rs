//! Looks whether an injected value is still there. No operator is expected to undo the change of a custom resource, so a
//! value that is gone is lost, and nothing that happens later changes the verdict.

use super::{ActiveExperiment, Runner};
use crate::loss;

impl Runner<'_> {
    /// Records the injected values that are lost; none if an object cannot be read, or is gone, which the revert reports.
    pub(super) async fn look_for_losses(&self, begun: &mut ActiveExperiment<'_>) {
        if !begun.is_made || begun.planned.heals || !begun.outcome.lost.is_empty() {
            return;
        }
        let Ok(kinds) = self.cluster.kinds().await else { return };
        for step in &begun.planned.steps {
            let Ok(address) = step.target.address(&kinds) else { continue };
            let Ok(Some(live)) = self.cluster.get(&address).await else { continue };
            for place in loss::lost(step, &live) {
                begun.outcome.lost.push(format!("{place} of {}", step.target));
            }
        }
        if !begun.outcome.lost.is_empty() {
            let lost = begun.outcome.lost.join("; ");
            let by = if self.released.is_some() { "after the upgrade" } else { "while it was observed" };
            begun.outcome.deviate("lost", format!("{lost}: not kept {by}"));
        }
    }
}
