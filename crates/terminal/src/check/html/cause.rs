//! One cause on the page of a check: its facts, its proof, whom it affects, the ways out, and its members.

use std::collections::BTreeSet;

use pushback_objects::Finding;
use pushback_objects::text::counted;

use super::WayView;
use crate::cause_text::accepting_until;
use crate::check::grouped::Group;
use crate::finding_words::{
    also, consequence, live_objects, place_words, rule_and_check, used, waivable, weight, witness_yaml,
};
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
    pub(super) facts: Vec<(&'static str, String)>,
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
    pub(super) fn of(group: &Group<'_>, expires: Option<&str>, findings: &[Finding]) -> Self {
        let first = group.first;
        let is_alone = group.others.is_empty();
        let members = match is_alone {
            true => Vec::new(),
            false => group.members().map(MemberView::of).collect(),
        };
        let names: BTreeSet<&str> = group
            .members()
            .filter_map(|finding| finding.live_objects.as_ref())
            .flat_map(|live| live.names.iter().map(String::as_str))
            .collect();
        let live = group.live().or_else(|| first.live_objects.as_ref().map(|live| live_objects(live, "…")));
        let affected_words = live.as_deref().map(|live| live.split(": ").next().unwrap_or_default().to_owned());
        let mut accept = accepting_until(&[&group.cause], findings, expires).trim_end().to_owned();
        if first.waived.is_some() || waivable(first).is_none() {
            accept.clear();
        }
        let witness = group.witness().map(|witness| {
            let smallest = group.cause.witness.as_ref();
            WitnessView {
                line: one_line(witness, smallest.map_or("", |smallest| &smallest.pointer), "…"),
                breaks: smallest.map(|smallest| smallest.message.clone()).unwrap_or_default(),
                yaml: witness_yaml(witness).trim_end().to_owned(),
            }
        });
        let remedies = group.cause.remedies.iter().filter(|remedy| !remedy.is_waiver_entry());
        Self {
            anchor: anchor(&group.cause.fingerprint),
            finding_anchor: is_alone.then(|| anchor(&first.fingerprint)).filter(|anchor| !anchor.is_empty()),
            weight: weight(first),
            is_open: false,
            headline: group.cause.headline.clone(),
            count: counted(group.others.len() + 1, "finding"),
            facts: facts(group, live),
            fingerprint: group.fingerprint().to_owned(),
            fingerprint_name: if is_alone { "fingerprint" } else { "cause" },
            sides: sides(first.old.as_ref(), first.new.as_ref()),
            witness,
            affected: names.into_iter().take(NAMES).map(ToOwned::to_owned).collect(),
            affected_words: affected_words.unwrap_or_default(),
            ways: remedies.map(WayView::of).collect(),
            accept: (!accept.is_empty()).then_some(accept),
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

/// What is known about it, in reading order.
fn facts(group: &Group<'_>, live: Option<String>) -> Vec<(&'static str, String)> {
    let first = group.first;
    let mut facts = vec![("check", rule_and_check(first))];
    facts.extend(Some(place_words(first)).filter(|place| !place.is_empty()).map(|place| ("where", place)));
    if group.others.is_empty() && first.message != group.cause.headline {
        facts.push(("message", first.message.clone()));
    }
    if !group.others.is_empty() {
        facts.push(("also", format!("in {}, see below", counted(group.others.len(), "more place"))));
    }
    facts.extend(first.position.as_ref().map(|position| ("in the input", position.to_string())));
    facts.extend(consequence(first).map(|effect| ("effect", effect)));
    facts.extend(live.map(|live| ("affected", live)));
    facts.extend(used(first, "…").map(|used| ("used", used)));
    facts.extend(first.undecided.clone().map(|undecided| ("unknown", undecided)));
    facts.extend(also(first).map(|also| ("server", also.to_owned())));
    facts.extend(first.waived.clone().map(|reason| ("waived", reason)));
    if first.remedies.is_empty() {
        facts.extend(first.remedy.clone().map(|remedy| ("fix", remedy)));
    }
    facts
}
