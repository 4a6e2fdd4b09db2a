//! Definitions on the old side of a comparison of files that are missing in the new release. If an app owned them,
//! apply would prune them, with every object of their kind.

use pushback_crd::definition::Crd;

use super::subject::NAME;
use crate::facts::{ChangeSet, ClusterSide, Facts, MissingDefinition};
use crate::finding::{Finding, Severity, Verdict};

pub(super) fn check(facts: &Facts, findings: &mut Vec<Finding>) {
    let missing = facts.changes.missing_definitions.iter();
    findings.extend(missing.map(|missing| finding(&facts.changes, facts.cluster.side, missing)));
}

fn finding(changes: &ChangeSet, side: ClusterSide, missing: &MissingDefinition) -> Finding {
    let crd = Crd::of(&missing.live);
    let mut given = changes.changes.iter().filter_map(|change| change.desired.as_deref()).map(Crd::of);
    // A release with other kinds of the group has dropped this one; a file of another group proves nothing.
    let dropped = given.any(|other| !other.plural().is_empty() && other.group() == crd.group());
    let message = format!("the input lacks the definition of {}, which the old side has", crd.kind());
    let verdict = match (dropped, side) {
        (false, _) => Verdict::Change,
        // Files do not show whether objects would be deleted with it.
        (true, ClusterSide::Directory) => Verdict::Unknown,
        (true, ClusterSide::Server) => Verdict::Breaking,
    };
    let mut finding = Finding::new(NAME, "crdMissing", verdict, missing.object.clone(), message);
    finding.severity = Severity::Warning;
    if dropped {
        finding.effect = Some("pruned".to_owned());
        finding.blocks = Some("read".to_owned());
    }
    finding.remedy(
        "keep the definition until no object of its kind is left, or set `checks: {crdMissing: warn}` where only a part of \
         the files is compared",
    )
}
