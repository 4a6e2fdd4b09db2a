//! Definitions that the API server would reject, if no server checked them: in a directory, a file or a git ref.

use pushback_crd::definition::refusals;
use pushback_crd::schema::invalid::Problem;
use pushback_objects::finding::{Finding, Verdict};
use pushback_objects::source::display_path;

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
