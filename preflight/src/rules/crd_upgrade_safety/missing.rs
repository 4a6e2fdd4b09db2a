//! A comparison of files sees what a release no longer brings: a definition of the old side that the input lacks. Where an
//! app owns it, apply would prune it, and every object of its kind with it.

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
    // A release that brings other kinds of the group has dropped this one; a file of another group says nothing of it.
    let dropped = given.any(|other| !other.plural().is_empty() && other.group() == crd.group());
    let message = format!("the input lacks the definition of {}, which the old side has", crd.kind());
    let verdict = match (dropped, side) {
        (false, _) => Verdict::Change,
        // Whether there are objects that go with it, files do not tell.
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
