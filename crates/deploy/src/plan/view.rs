//! The plan for display: lines and texts, Secrets masked.

use pushback_cluster::estimate;
use pushback_events::{Counts, PlannedLine};
use pushback_manifest::config::Config;
use pushback_manifest::config::mask::Masker;
use pushback_objects::PathSegment;
use pushback_preflight::Operation;
use serde_json::Value;

use super::permission_fields::shown_fields;
use super::{Plan, Planned, diff};

/// How to show a plan.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// Config of the run, for its masks.
    pub config: &'a Config,
    /// Whether to include the unified diff.
    pub text: bool,
}

/// The counts, and a line for each change, and for each unchanged object whose field owners change.
#[must_use]
pub fn planned_lines(plan: &Plan, view: &View<'_>) -> (Counts, Vec<PlannedLine>) {
    let masker = Masker::new(&view.config.diff_mask_rules);
    let mut counts = Counts::default();
    let mut lines = Vec::new();
    for planned in &plan.objects {
        counts.add_change(planned.reported_operation(), planned.is_orphaned());
        if planned.operation() != Operation::Noop {
            lines.push(line(planned, &masker, view.text));
        }
    }
    (counts, lines)
}

fn line(planned: &Planned, masker: &Masker, text: bool) -> PlannedLine {
    let cover =
        masker.cover([&planned.live, &planned.desired, &planned.result].into_iter().flatten().map(|object| &**object));
    let masked = |path: &[PathSegment]| cover.hides(path);
    let shown_text = if text && planned.operation().writes() && !planned.is_orphaned() {
        let estimated;
        let new: Option<&Value> = match (planned.operation(), &planned.result, &planned.desired, &planned.live) {
            (Operation::Delete, ..) => None,
            (_, Some(result), ..) => Some(result),
            // The server has not said what the result would be.
            (Operation::Update, None, Some(desired), Some(live)) => {
                estimated = estimate::applied(live, desired);
                Some(&estimated)
            }
            (Operation::Replace, None, Some(desired), Some(live)) => {
                estimated = estimate::replaced(live, desired);
                Some(&estimated)
            }
            (_, None, desired, _) => desired.as_deref(),
        };
        diff::text(planned.live.as_deref(), new, &masked)
    } else {
        String::new()
    };
    PlannedLine {
        object: planned.object.clone(),
        operation: planned.reported_operation(),
        position: planned.locate(&[]),
        fields: shown_fields(planned, &masked),
        text: shown_text,
        notes: planned.notes.clone(),
    }
}
