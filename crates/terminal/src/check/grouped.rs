//! The cards of a report: one for the findings of a cause with the same severity and waiver.

use std::collections::BTreeMap;

use pushback_deploy::check::report::CheckReport;
use pushback_objects::text::counted;
use pushback_objects::{Finding, Severity};

use crate::finding_card::{CardStyle, FindingCard};

/// Returns the cards in the order of their causes, the severest first.
pub(super) fn cards(report: &CheckReport) -> Vec<FindingCard<'_>> {
    let mut cards: Vec<FindingCard<'_>> = Vec::new();
    for cause in &report.causes {
        let mut by_weight: BTreeMap<(Severity, Option<&str>), Vec<&Finding>> = BTreeMap::new();
        for finding in cause.at.iter().filter_map(|index| report.findings.get(*index)) {
            by_weight.entry((finding.severity, finding.waived.as_deref())).or_default().push(finding);
        }
        let card = |mut members: Vec<_>| {
            let first = members.remove(0);
            FindingCard::of_several(first, members, Some(cause), CardStyle::REPORT)
        };
        cards.extend(by_weight.into_values().map(card));
    }
    cards.sort_by_key(|card| (card.finding.waived.is_some(), card.finding.severity));
    cards
}

/// What a report that names this many places of a cause leaves out; `None` if that is nothing.
pub(super) fn left_out<'g>(cards: impl Iterator<Item = &'g FindingCard<'g>>, named: usize) -> Option<String> {
    let of_card = |card: &FindingCard<'_>| card.others.len().saturating_sub(named);
    let (causes, places) = cards
        .map(of_card)
        .filter(|places| *places > 0)
        .fold((0, 0), |(causes, sum): (usize, usize), places| (causes + 1, sum + places));
    (places > 0).then(|| {
        let (places, causes) = (counted(places, "place"), counted(causes, "cause"));
        format!(
            "left out here: {places} of {causes}, of which {named} are named at most; the JSON report has every finding"
        )
    })
}
