//! The objects that a refusal is about, a row each: how many causes, what they affect, and what to do now.

use std::collections::{BTreeMap, BTreeSet};

use pushback_preflight::cause::{Cause, LiveTotal, live_total};
use pushback_preflight::{Audience, Finding, RemedyKind, Severity, Verdict, registry};

use crate::report::finding_words::object_name;
use crate::text::counted;

/// One object that refuses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectRow {
    /// Its name.
    pub name: String,
    /// Number of causes.
    pub causes: usize,
    /// Affected objects, `3 of 112`.
    pub affected: String,
    /// The next step.
    pub now: String,
}

/// A row for each object that refuses, in the order of the causes.
#[must_use]
pub fn object_rows(loud: &[&Cause], findings: &[Finding]) -> Vec<ObjectRow> {
    let mut objects: Vec<(String, Vec<&Finding>, usize)> = Vec::new();
    let mut index: BTreeMap<String, usize> = BTreeMap::new();
    for cause in loud {
        let mut here = BTreeSet::new();
        let refusing = cause.at.iter().map(|index| &findings[*index]);
        for finding in refusing.filter(|finding| finding.severity == Severity::Error && finding.waived.is_none()) {
            let name = object_name(finding);
            let row = *index.entry(name.clone()).or_insert_with(|| {
                objects.push((name, Vec::new(), 0));
                objects.len() - 1
            });
            objects[row].1.push(finding);
            objects[row].2 += usize::from(here.insert(row));
        }
    }
    let row = |(name, members, causes): (String, Vec<&Finding>, usize)| {
        let live = live_total(members.iter().copied());
        let affected = live.as_ref().map_or_else(
            || if members[0].object.kind == "CustomResourceDefinition" { "not counted" } else { "-" }.to_owned(),
            |live| format!("{}{} of {}", if live.up_to { "up to " } else { "" }, live.affected, live.examined),
        );
        ObjectRow { name, causes, affected, now: what_now(&members, live.as_ref()) }
    };
    objects.into_iter().map(row).collect()
}

/// The next step for an object with these findings.
fn what_now(findings: &[&Finding], live: Option<&LiveTotal>) -> String {
    let moves = |finding: &&Finding| {
        registry::answered_by_moving_objects().any(|(rule, check)| rule == finding.rule && check == finding.check)
    };
    let is_of_a_definition = findings.iter().all(|finding| finding.object.kind == "CustomResourceDefinition");
    match live {
        Some(live) if live.affected > 0 => format!("correct {} first", counted(live.affected, "object")),
        _ if first_kind(findings) == Some(RemedyKind::AskCluster) => "check against the cluster".to_owned(),
        _ if findings.iter().any(moves) => "move its objects: --storage=bridge".to_owned(),
        Some(live) if live.examined > 0 => "none is affected: accept it".to_owned(),
        _ if findings.iter().all(|finding| finding.verdict == Verdict::Unknown) => "judge it by hand".to_owned(),
        _ if is_of_a_definition => "check against the cluster".to_owned(),
        _ => "see its fix".to_owned(),
    }
}

/// The kind of the first way out for who deploys.
fn first_kind(findings: &[&Finding]) -> Option<RemedyKind> {
    let mut remedies = findings.iter().flat_map(|finding| &finding.remedies);
    remedies.find(|remedy| remedy.audience == Audience::Deployer).map(|remedy| remedy.kind)
}
