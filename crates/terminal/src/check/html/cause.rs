//! One cause on the page of a check: its facts, its proof, whom it affects, the ways out, and its members.

use std::collections::BTreeSet;

use pushback_objects::Finding;
use pushback_objects::text::counted;

use super::WayView;
use crate::cause_text::accepting_until;
use crate::finding_card::{CardLine, FindingCard, live_objects, place_words, waivable, witness_yaml};
use crate::html::anchor;
use crate::html::sides::{Row, sides};
use crate::witness_excerpt::one_line;

/// Most affected objects that are listed.
const NAMES: usize = 100;

/// Findings of one cause, severity and waiver.
pub(super) struct CauseView {
    pub(super) anchor: String,
    /// Place of the finding, where it is alone.
    pub(super) finding_anchor: Option<String>,
    pub(super) weight: &'static str,
    pub(super) is_open: bool,
    pub(super) headline: String,
    pub(super) count: String,
    pub(super) facts: Vec<CardLine>,
    pub(super) fingerprint: String,
    pub(super) fingerprint_name: &'static str,
    pub(super) sides: Vec<Row>,
    pub(super) witness: Option<WitnessView>,
    pub(super) affected: Vec<String>,
    pub(super) affected_words: String,
    pub(super) ways: Vec<WayView>,
    pub(super) accept: Option<String>,
    pub(super) members: Vec<MemberView>,
}

/// The smallest witness.
pub(super) struct WitnessView {
    pub(super) line: String,
    pub(super) breaks: String,
    pub(super) yaml: String,
}

/// One of several findings.
pub(super) struct MemberView {
    pub(super) anchor: String,
    pub(super) place: String,
    pub(super) position: String,
    pub(super) live: String,
    pub(super) fingerprint: String,
}

impl CauseView {
    pub(super) fn of(card: &FindingCard<'_>, expires: Option<&str>, findings: &[Finding]) -> Self {
        let first = card.finding;
        let is_alone = card.others.is_empty();
        let members = match is_alone {
            true => Vec::new(),
            false => card.members().map(MemberView::of).collect(),
        };
        let names: BTreeSet<&str> = card
            .members()
            .filter_map(|finding| finding.live_objects.as_ref())
            .flat_map(|live| live.names.iter().map(String::as_str))
            .collect();
        let affected_words =
            card.affected.as_deref().map(|live| live.split(": ").next().unwrap_or_default().to_owned());
        let is_accepted = first.waived.is_some() || waivable(first).is_none();
        let accept = card.cause.filter(|_| !is_accepted);
        let accept = accept.map(|cause| accepting_until(&[cause], findings, expires).trim_end().to_owned());
        let smallest = card.cause.and_then(|cause| cause.witness.as_ref());
        let witness = card.witness.map(|witness| WitnessView {
            line: one_line(witness, smallest.map_or("", |smallest| &smallest.pointer), "…"),
            breaks: smallest.map(|smallest| smallest.message.clone()).unwrap_or_default(),
            yaml: witness_yaml(witness).trim_end().to_owned(),
        });
        Self {
            anchor: anchor(card.cause.map_or("", |cause| &cause.fingerprint)),
            finding_anchor: is_alone.then(|| anchor(&first.fingerprint)).filter(|anchor| !anchor.is_empty()),
            weight: card.weight,
            is_open: false,
            headline: card.change.clone(),
            count: counted(card.others.len() + 1, "finding"),
            facts: facts(card),
            fingerprint: card.fingerprint().to_owned(),
            fingerprint_name: if is_alone { "fingerprint" } else { "cause" },
            sides: sides(first.old.as_ref(), first.new.as_ref()),
            witness,
            affected: names.into_iter().take(NAMES).map(ToOwned::to_owned).collect(),
            affected_words: affected_words.unwrap_or_default(),
            // The entry of a waiver has a section of its own.
            ways: first.remedies.iter().filter(|remedy| !remedy.is_waiver_entry()).map(WayView::of).collect(),
            accept: accept.filter(|accept| !accept.is_empty()),
            members,
        }
    }

    /// A cause whose findings have several severities has several places in the page.
    pub(super) fn name_uniquely(&mut self, taken: &mut BTreeSet<String>) {
        let name = if self.anchor.is_empty() { "cause".to_owned() } else { self.anchor.clone() };
        let numbered = (2_usize..).map(|number| format!("{name}-{number}"));
        let free = std::iter::once(name.clone()).chain(numbered).find(|name| !taken.contains(name));
        self.anchor = free.unwrap_or(name);
        taken.insert(self.anchor.clone());
        if self.finding_anchor.as_ref().is_some_and(|anchor| !taken.insert(anchor.clone())) {
            self.finding_anchor = None;
        }
    }
}

impl MemberView {
    fn of(finding: &Finding) -> Self {
        Self {
            anchor: anchor(&finding.fingerprint),
            place: place_words(finding),
            position: finding.position.as_ref().map(ToString::to_string).unwrap_or_default(),
            live: finding.live_objects.as_ref().map(|live| live_objects(live, "…")).unwrap_or_default(),
            fingerprint: finding.fingerprint.clone(),
        }
    }
}

/// Place and proof, without the remedies, values and fingerprint, which have sections of their own.
fn facts(card: &FindingCard<'_>) -> Vec<CardLine> {
    let place = Some(card.place.clone()).filter(|place| !place.is_empty());
    let mut facts = vec![("check", card.rule.clone())];
    facts.extend(place.map(|place| ("where", place)));
    facts.extend(card.position.map(|position| ("in the input", position.to_string())));
    facts.extend(card.facts().into_iter().filter(|(name, _)| !["object", "path", "old", "new"].contains(name)));
    let is_way = |step: &String| card.finding.remedies.iter().any(|remedy| remedy.steps.contains(step));
    let has_section = |(name, value): &CardLine| match *name {
        "fix" => is_way(value),
        name => ["do", "fingerprint", "cause"].contains(&name),
    };
    facts.extend(card.advice().into_iter().filter(|line| !has_section(line)));
    facts
}
