//! What is told once in a report: findings of one cause, severity and waiver.

use std::collections::BTreeMap;
use std::sync::Arc;

use pushback_deploy::check::report::CheckReport;
use pushback_objects::text::counted;
use pushback_objects::{Finding, Severity};
use pushback_preflight::cause::{Cause, live_total};
use serde_json::Value;

use crate::finding_words::{live_total_words, place_words, plain_text_of, subject};

/// Most further places that are named.
pub(super) const PLACES: usize = 10;

/// Findings of one cause, severity and waiver.
#[derive(Clone, Debug)]
pub(super) struct Group<'r> {
    /// The worst of them, by what it affects.
    pub(super) first: &'r Finding,
    /// The others.
    pub(super) others: Vec<&'r Finding>,
    /// What they have in common.
    pub(super) cause: Cause,
}

/// The findings of a report in groups, in the order of their causes, the severest first.
pub(super) fn groups(report: &CheckReport) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for cause in &report.causes {
        let mut by_weight: BTreeMap<(Severity, Option<&str>), usize> = BTreeMap::new();
        for finding in cause.at.iter().filter_map(|index| report.findings.get(*index)) {
            match by_weight.get(&(finding.severity, finding.waived.as_deref())) {
                Some(index) => groups[*index].others.push(finding),
                None => {
                    by_weight.insert((finding.severity, finding.waived.as_deref()), groups.len());
                    groups.push(Group { first: finding, others: Vec::new(), cause: cause.clone() });
                }
            }
        }
    }
    groups.sort_by_key(|group| (group.first.waived.is_some(), group.first.severity));
    groups
}

/// What a report that names this many places of a cause leaves out; `None` if that is nothing.
pub(super) fn left_out<'g>(groups: impl Iterator<Item = &'g Group<'g>>, named: usize) -> Option<String> {
    let of_group = |group: &Group<'_>| group.others.len().saturating_sub(named);
    let (causes, places) = groups
        .map(of_group)
        .filter(|places| *places > 0)
        .fold((0, 0), |(causes, sum): (usize, usize), places| (causes + 1, sum + places));
    (places > 0).then(|| {
        let (places, causes) = (counted(places, "place"), counted(causes, "cause"));
        format!(
            "left out here: {places} of {causes}, of which {named} are named at most; the JSON report has every finding"
        )
    })
}

impl Group<'_> {
    /// All findings of the group.
    pub(super) fn members(&self) -> impl Iterator<Item = &Finding> {
        std::iter::once(self.first).chain(self.others.iter().copied())
    }

    /// Stable identifier: the finding's own where it is alone.
    pub(super) fn fingerprint(&self) -> &str {
        if self.others.is_empty() { &self.first.fingerprint } else { &self.cause.fingerprint }
    }

    /// The smallest witness.
    pub(super) fn witness(&self) -> Option<&Value> {
        let smallest = self.cause.witness.as_ref()?;
        let has = self.members().find(|finding| finding.fingerprint == smallest.finding).unwrap_or(self.first);
        has.witness.as_deref()
    }

    /// One sentence: the finding's own where it is alone.
    pub(super) fn headline(&self) -> String {
        if self.others.is_empty() { self.first.message.clone() } else { self.cause.headline.clone() }
    }

    /// Subject and sentence.
    pub(super) fn title(&self) -> String {
        match subject(self.first) {
            Some(subject) => format!("{subject}: {}", self.headline()),
            None => self.headline(),
        }
    }

    /// The other places: `in 26 more places: …`; `None` if there are none.
    pub(super) fn also_in(&self) -> Option<String> {
        if self.others.is_empty() {
            return None;
        }
        let named: Vec<String> = self.others.iter().take(PLACES).map(|finding| place_words(finding)).collect();
        let more = if self.others.len() > PLACES { ", …" } else { "" };
        Some(format!("in {}: {}{more}", counted(self.others.len(), "more place"), named.join(", ")))
    }

    /// What the group affects, if it is more than one finding.
    pub(super) fn live(&self) -> Option<String> {
        (!self.others.is_empty()).then(|| live_total(self.members())).flatten().map(|live| live_total_words(&live, "…"))
    }

    /// The group as lines of plain text.
    pub(super) fn plain_text(&self) -> String {
        let mut own = self.first.clone();
        if self.others.is_empty() {
            return plain_text_of(&own, &[]);
        }
        own.witness = self.witness().cloned().map(Arc::new);
        own.message = self.cause.headline.clone();
        own.live_objects = None;
        let mut more = Vec::new();
        more.extend(self.also_in().map(|also| ("also", also)));
        more.extend(self.live().map(|live| ("live", live)));
        more.push(("cause", format!("{} ({})", self.cause.fingerprint, counted(self.others.len() + 1, "finding"))));
        plain_text_of(&own, &more)
    }
}
