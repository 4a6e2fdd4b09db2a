//! Definitions that the API server would reject, if no server checked them: in a directory, a file or a git ref.

use pushback_crd::definition::refusals;
use pushback_crd::schema::invalid::{Problem, unknown_fields};
use pushback_objects::finding::{Finding, Severity, Verdict};
use pushback_objects::source::{PathSegment, display_path};

use super::subject::NAME;
use crate::facts::{Change, ClusterFacts, ClusterSide, Verification};

pub(super) fn check(change: &Change, cluster: &ClusterFacts, findings: &mut Vec<Finding>) {
    let written = change.operation.applies();
    let Some(definition) = change.desired.as_deref().filter(|_| written) else { return };
    // A server's own answer is reported separately and says more. A directory accepts everything.
    let is_answered = matches!(change.verification, Verification::Server | Verification::Refused);
    if cluster.side == ClusterSide::Server && is_answered && !cluster.is_about_another_version() {
        return;
    }
    // Another server has not accepted the live definition either.
    let accepted = change.live.as_deref().filter(|_| cluster.asked_version.is_none());
    let problems = refusals(accepted, definition, cluster.judged_server());
    findings.extend(problems.iter().map(|problem| finding(change, problem)));
    let known = accepted.map(unknown_fields).unwrap_or_default();
    let unknown = unknown_fields(definition).into_iter().filter(|path| !known.contains(path));
    findings.extend(unknown.map(|path| unknown_field(change, &path)));
}

/// A warning: other tools may have the server drop what it does not know.
fn unknown_field(change: &Change, path: &[PathSegment]) -> Finding {
    let message = "unknown field: the API server refuses it, or drops it without strict validation";
    let mut finding = Finding::new(NAME, "invalid", Verdict::Change, change.object.clone(), message)
        .at(change.locate(path))
        .path(display_path(path))
        .remedy("correct the name of the field, or remove it");
    finding.severity = Severity::Warning;
    finding
}

fn finding(change: &Change, problem: &Problem) -> Finding {
    let verdict = if problem.is_certain { Verdict::Breaking } else { Verdict::Unknown };
    let mut finding = Finding::new(NAME, "invalid", verdict, change.object.clone(), problem.to_string())
        .at(change.locate(&problem.path))
        .path(display_path(&problem.path))
        .remedy("correct the definition; `kubectl apply --dry-run=server` shows what a server says of it");
    finding.effect = Some("rejected".to_owned());
    finding.blocks = Some("create".to_owned());
    finding
}
