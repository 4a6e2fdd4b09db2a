//! Objects that controllers make CRDs from, and that could not be read.

use pushback_objects::finding::{Finding, Verdict};

use super::subject::NAME;
use crate::facts::Facts;
use crate::rule::Judgement;

/// Name of the check.
pub(super) const CHECK: &str = "derivedCrd";

pub(super) fn check(facts: &Facts, judgement: &mut Judgement) {
    for source in &facts.changes.derived.unreadable {
        let message = format!("its CRD cannot be derived: {}", source.message);
        if !source.is_manifest {
            judgement.unable.push(format!("{}: the live object: {message}", source.object));
            continue;
        }
        let mut finding = Finding::new(NAME, CHECK, Verdict::Unknown, source.object.clone(), message)
            .at(source.position.clone())
            .remedy("correct the field; the controller of the object rejects it as well");
        finding.blocks = Some("create".to_owned());
        judgement.findings.push(finding);
    }
}
