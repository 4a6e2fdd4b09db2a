//! A definition that the API server would refuse, where it has not been asked: on a directory, in a file, in a git ref.

use super::NAME;
use crate::facts::{Change, ClusterSide, Operation, Verification};
use crate::finding::{Finding, Verdict};
use crate::schema::invalid::{Problem, problems};
use crate::source::display_path;

pub(super) fn check(change: &Change, side: ClusterSide, findings: &mut Vec<Finding>) {
    let written = matches!(change.operation, Operation::Create | Operation::Update | Operation::Replace);
    let Some(definition) = change.desired.as_deref().filter(|_| written) else { return };
    // The server's own answer, where there is one, is told by itself and says more. A folder takes whatever it is given.
    let is_answered = matches!(change.verification, Verification::Server | Verification::Refused);
    if side == ClusterSide::Server && is_answered {
        return;
    }
    let found = problems(definition);
    if found.is_empty() {
        return;
    }
    // What is there already was once taken, by whatever server.
    let known = change.live.as_deref().map(problems).unwrap_or_default();
    let fresh = found.iter().filter(|problem| !known.contains(problem));
    findings.extend(fresh.map(|problem| finding(change, problem)));
}

fn finding(change: &Change, problem: &Problem) -> Finding {
    let (verdict, message) = match problem.is_certain {
        true => (Verdict::Breaking, format!("the API server would refuse the definition: {}", problem.message)),
        false => {
            let message = format!("unable to determine if the API server takes the definition: {}", problem.message);
            (Verdict::Unknown, message)
        }
    };
    let mut finding = Finding::new(NAME, "invalid", verdict, change.object.clone(), message)
        .at(change.locate(&problem.path))
        .path(display_path(&problem.path))
        .remedy("correct the definition; `kubectl apply --dry-run=server` shows what a server says of it");
    finding.effect = Some("rejected".to_owned());
    finding.blocks = Some("create".to_owned());
    finding
}
