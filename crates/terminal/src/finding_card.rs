//! The finding card: place, change, effect, affected objects and remedies of a finding, or of several findings of one
//! cause. Every output uses these sentences in this order, and escapes them in its own way.

use std::collections::BTreeSet;

use pushback_objects::finding::{LiveObjects, VersionUse, VersionWriter};
use pushback_objects::text::counted;
use pushback_objects::{Audience, Finding, Position, Severity};
use pushback_preflight::cause::{Cause, LiveTotal, headline, live_total};
use pushback_preflight::registry;
use serde_json::Value;

/// Name and value of a line on a card.
pub type CardLine = (&'static str, String);

/// Limits and glyphs of the texts on a card.
#[derive(Clone, Copy, Debug)]
pub struct CardStyle {
    /// Glyph for omitted text.
    pub ellipsis: &'static str,
    /// Most further places that are named.
    pub places: usize,
}

impl CardStyle {
    /// Style of reports.
    pub const REPORT: Self = Self { ellipsis: "…", places: 10 };
}

/// A finding, or several findings of one cause, in words.
#[derive(Clone, Debug)]
pub struct FindingCard<'f> {
    /// The finding; of several, the one that affects most objects.
    pub finding: &'f Finding,
    /// Further findings of the cause.
    pub others: Vec<&'f Finding>,
    /// The cause; `None` for a finding that is shown by itself.
    pub cause: Option<&'f Cause>,
    /// Rule and check: `CRDUpgradeSafety/enum`.
    pub rule: String,
    /// Severity, or `waived` if a waiver covers the finding.
    pub weight: &'static str,
    /// The change in one sentence.
    pub change: String,
    /// The sentence of kapp and OLM for a refused change that they refuse too.
    pub published: Option<String>,
    /// Object and API version: `CustomResourceDefinition foos.ex.com, version v1`.
    pub object: Option<String>,
    /// Object, API version and field: `foos.ex.com v1 spec.f`.
    pub place: String,
    /// Position in the manifests, which an excerpt shows.
    pub position: Option<&'f Position>,
    /// Further places: `in 26 more places, 2 versions: spec.a, spec.b, …`.
    pub also_in: Option<String>,
    /// Effect on objects: `rejected on create`.
    pub effect: Option<String>,
    /// Affected objects: `3 of 112 objects affected: team-a/w1, …`.
    pub affected: Option<String>,
    /// Steps for the deployer (`do`) and for the author of the manifests (`fix`).
    pub remedies: Vec<CardLine>,
    /// The smallest object that shows the problem.
    pub witness: Option<&'f Value>,
    ellipsis: &'static str,
}

impl<'f> FindingCard<'f> {
    /// Describes a finding by itself.
    #[must_use]
    pub fn new(finding: &'f Finding, style: CardStyle) -> Self {
        Self::of_several(finding, Vec::new(), None, style)
    }

    /// Describes the members of a cause.
    #[must_use]
    pub fn of_cause(cause: &'f Cause, findings: &'f [Finding], style: CardStyle) -> Self {
        let mut members = cause.at.iter().map(|index| &findings[*index]);
        // A cause has members.
        let first = members.next().unwrap_or(&findings[0]);
        Self::of_several(first, members.collect(), Some(cause), style)
    }

    /// Describes some of the members of a cause.
    #[must_use]
    pub fn of_several(
        finding: &'f Finding,
        others: Vec<&'f Finding>,
        cause: Option<&'f Cause>,
        style: CardStyle,
    ) -> Self {
        let mut members = std::iter::once(finding).chain(others.iter().copied());
        let affected = match others.is_empty() {
            true => finding.live_objects.as_ref().map(|live| live_objects(live, style.ellipsis)),
            false => live_total(members.clone()).map(|live| live_total_words(&live, style.ellipsis)),
        };
        let smallest = cause.and_then(|cause| cause.witness.as_ref());
        let proof = smallest.and_then(|smallest| members.find(|member| member.fingerprint == smallest.finding));
        let refuses = finding.severity == Severity::Error && finding.waived.is_none();
        Self {
            rule: rule_and_check(finding),
            weight: weight(finding),
            change: headline(finding),
            published: registry::published_line(finding).filter(|_| refuses),
            object: subject(finding),
            place: place_words(finding),
            position: finding.position.as_ref(),
            also_in: also_in(finding, &others, style),
            effect: consequence(finding),
            affected,
            remedies: remedies(finding),
            witness: proof.unwrap_or(finding).witness.as_deref(),
            ellipsis: style.ellipsis,
            finding,
            others,
            cause,
        }
    }

    /// Returns all findings of the card.
    pub fn members(&self) -> impl Iterator<Item = &'f Finding> {
        std::iter::once(self.finding).chain(self.others.iter().copied())
    }

    /// Returns place and change as one sentence.
    #[must_use]
    pub fn title(&self) -> String {
        let place = [self.object.as_ref(), self.finding.path.as_ref().filter(|path| !path.is_empty())];
        let place: Vec<&str> = place.into_iter().flatten().map(String::as_str).collect();
        if place.is_empty() { self.change.clone() } else { format!("{}: {}", place.join(", "), self.change) }
    }

    /// Returns a stable identifier: the fingerprint of a single finding, or that of the cause.
    #[must_use]
    pub fn fingerprint(&self) -> &'f str {
        let cause = self.cause.filter(|_| !self.others.is_empty());
        cause.map_or(&self.finding.fingerprint, |cause| &cause.fingerprint)
    }

    /// Returns the proof of a finding besides title, position and witness, in reading order.
    #[must_use]
    pub fn facts(&self) -> Vec<CardLine> {
        let value = |value: &Option<Value>| value.as_ref().map(ToString::to_string);
        let server = "the API server refuses it by itself, so that no waiver covers it";
        let facts = [
            ("object", self.object.clone()),
            ("path", self.finding.path.clone()),
            ("source", self.finding.derived_from.as_ref().map(ToString::to_string)),
            ("also", self.also_in.clone()),
            ("old", value(&self.finding.old)),
            ("new", value(&self.finding.new)),
            ("unknown", self.members().find_map(|member| member.undecided.clone())),
            ("effect", self.effect.clone()),
            ("live", self.affected.clone()),
            ("used", used(self.finding, self.ellipsis)),
            ("server", is_refused_by_server(self.finding).then(|| server.to_owned())),
        ];
        facts.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }

    /// Returns the remedies, the waiver, and the fingerprint that a waiver names.
    #[must_use]
    pub fn advice(&self) -> Vec<CardLine> {
        let mut advice = self.remedies.clone();
        let count = self.others.len() + 1;
        match (&self.finding.waived, self.members().filter(|member| member.waived.is_some()).count()) {
            (Some(reason), _) => advice.push(("waived", reason.clone())),
            (None, 0) => {}
            (None, waived) => advice.push(("waived", format!("{waived} of {}", counted(count, "finding")))),
        }
        match waivable(self.finding) {
            None => {}
            Some(fingerprint) if count == 1 => advice.push(("fingerprint", fingerprint.to_owned())),
            Some(_) => advice.push(("cause", format!("{} ({})", self.fingerprint(), counted(count, "finding")))),
        }
        advice
    }

    /// Returns the card as lines of plain text.
    #[must_use]
    pub fn plain_text(&self) -> String {
        let mut text = format!("{}\n", self.title());
        text.extend(self.published.iter().map(|line| format!("{line}\n")));
        text.extend(self.position.map(|position| format!("at: {position}\n")));
        let is_in_title = |(name, _): &CardLine| ["object", "path"].contains(name);
        let facts = self.facts().into_iter().filter(|line| !is_in_title(line));
        text.extend(facts.chain(self.advice()).map(|(name, value)| format!("{name}: {value}\n")));
        if let Some(witness) = self.witness {
            text += "witness:\n";
            text.extend(witness_yaml(witness).trim_end().lines().map(|line| format!("  {line}\n")));
        }
        text
    }
}

/// Returns rule and check: `CRDUpgradeSafety/enum`.
#[must_use]
pub fn rule_and_check(finding: &Finding) -> String {
    if finding.check.is_empty() { finding.rule.clone() } else { format!("{}/{}", finding.rule, finding.check) }
}

/// Returns object and API version: `CustomResourceDefinition foos.ex.com, version v1`.
pub fn subject(finding: &Finding) -> Option<String> {
    let version = finding.version.as_ref().map(|version| format!(", version {version}")).unwrap_or_default();
    (!finding.object.kind.is_empty()).then(|| format!("{}{version}", finding.object))
}

/// Names the places of further findings: `in 26 more places, 2 definitions: spec.a, b.ex.com v1 spec.a, …`.
fn also_in(first: &Finding, others: &[&Finding], style: CardStyle) -> Option<String> {
    let mut seen = BTreeSet::from([place_words(first)]);
    let others: Vec<&Finding> = others.iter().copied().filter(|finding| seen.insert(place_words(finding))).collect();
    let members = || others.iter().copied().chain([first]);
    let objects = members().map(|finding| finding.object.to_string()).collect::<BTreeSet<_>>().len();
    let versions = members().filter_map(|finding| finding.version.as_ref()).collect::<BTreeSet<_>>().len();
    let mut counts = Vec::new();
    if first.path.is_some() {
        counts.push(counted(others.len(), "more place"));
    }
    if objects > 1 || counts.is_empty() {
        counts.push(counted(objects, if first.object.is_definition() { "definition" } else { "object" }));
    }
    if versions > 1 {
        counts.push(counted(versions, "version"));
    }
    let name = |finding: &&Finding| match &finding.path {
        Some(path) if finding.object == first.object && finding.version == first.version => path.clone(),
        _ => place_words(finding),
    };
    let mut names: Vec<String> = others.iter().take(style.places).map(name).collect();
    if others.len() > style.places {
        names.push(style.ellipsis.to_owned());
    }
    (!others.is_empty()).then(|| format!("in {}: {}", counts.join(", "), names.join(", ")))
}

/// Returns the best remedy for the deployer, and the one for the author of the manifests.
fn remedies(finding: &Finding) -> Vec<CardLine> {
    let of =
        |audience| finding.remedies.iter().find(move |remedy| remedy.audience == audience && !remedy.is_waiver_entry());
    let steps = of(Audience::Deployer).map(|remedy| remedy.steps.join("; "));
    let fix = of(Audience::Author).and_then(|remedy| remedy.steps.first()).or(finding.remedy.as_ref());
    let fix = fix.filter(|fix| Some(*fix) != steps.as_ref()).cloned();
    steps.map(|steps| ("do", steps)).into_iter().chain(fix.map(|fix| ("fix", fix))).collect()
}

/// The finding's severity, or `waived` if a waiver covers it.
#[must_use]
pub fn weight(finding: &Finding) -> &'static str {
    match (&finding.waived, finding.severity) {
        (Some(_), _) => "waived",
        (None, Severity::Error) => "error",
        (None, Severity::Warning) => "warning",
        (None, Severity::Info) => "info",
    }
}

/// `rejected on create`, `pruned`, `blocks read`.
fn consequence(finding: &Finding) -> Option<String> {
    match (&finding.effect, &finding.blocks) {
        (Some(effect), Some(blocks)) => Some(format!("{effect} on {blocks}")),
        (Some(effect), None) => Some(effect.clone()),
        (None, Some(blocks)) => Some(format!("blocks {blocks}")),
        (None, None) => None,
    }
}

/// `3 of 112 objects affected: team-a/w1, team-b/z, …`, or `up to 3 of …`.
#[must_use]
pub fn live_objects(live: &LiveObjects, ellipsis: &str) -> String {
    let examined = counted(live.examined, "object");
    let up_to = if live.up_to { "up to " } else { "" };
    let mut text = format!("{up_to}{} of {examined} affected", live.affected);
    if !live.names.is_empty() {
        text += &format!(": {}", live.names.join(", "));
        if live.affected > live.names.len() as u64 {
            text += &format!(", {ellipsis}");
        }
    }
    text
}

/// Describes who uses the version of a finding; `None` if that is unknown, or if the affected objects show it already.
fn used(finding: &Finding, ellipsis: &str) -> Option<String> {
    let used = finding.version_use.as_ref()?;
    match (used.examined, &finding.live_objects) {
        (0, Some(_)) => None,
        (0, None) => Some("there are no objects".to_owned()),
        _ => Some(version_use(used, ellipsis)),
    }
}

/// `12 of 37 objects were written in it: by helm (10, last 2026-03-01), flux (2, last 2025-11-30); all are stored in v1`.
fn version_use(used: &VersionUse, ellipsis: &str) -> String {
    let VersionUse { objects, examined, writers, more_writers, stored_versions } = used;
    let stored = match stored_versions.as_slice() {
        [] => String::new(),
        [one] => format!("; all are stored in {one}"),
        several => format!("; they are stored in {}", several.join(" or ")),
    };
    let examined = counted(*examined, "object");
    if *objects == 0 {
        return format!("no manager has written any of {examined} in it{stored}");
    }
    let writer = |writer: &VersionWriter| {
        // The day is enough to see whether it is still in use.
        let day = writer.last_write.as_deref().and_then(|time| time.split('T').next());
        let last = day.map(|day| format!(", last {day}")).unwrap_or_default();
        format!("{} ({}{last})", writer.manager, writer.objects)
    };
    let writers: Vec<String> = writers.iter().map(writer).collect();
    let more = if *more_writers { format!(", {ellipsis}") } else { String::new() };
    let verb = if *objects == 1 { "was" } else { "were" };
    format!("{objects} of {examined} {verb} written in it: by {}{more}{stored}", writers.join(", "))
}

/// The fingerprint, if a waiver could accept the finding.
#[must_use]
pub fn waivable(finding: &Finding) -> Option<&str> {
    let of_use = !finding.fingerprint.is_empty() && finding.severity != Severity::Info;
    (of_use && finding.is_waivable()).then_some(finding.fingerprint.as_str())
}

/// Returns whether the API server refuses the change too: no waiver helps then.
fn is_refused_by_server(finding: &Finding) -> bool {
    let own = [registry::SERVER, registry::STORAGE, registry::WAIVERS];
    !own.contains(&finding.rule.as_str()) && !finding.is_waivable()
}

/// The witness as YAML, or as JSON if YAML cannot represent it.
#[must_use]
pub fn witness_yaml(witness: &Value) -> String {
    serde_yaml::to_string(witness).unwrap_or_else(|_| witness.to_string())
}

/// `up to 3 of 112 objects affected: team-a/w1, …`.
#[must_use]
pub fn live_total_words(live: &LiveTotal, ellipsis: &str) -> String {
    let LiveTotal { affected, examined, up_to, ref names } = *live;
    live_objects(&LiveObjects { affected, examined, up_to, names: names.clone() }, ellipsis)
}

/// Name of a definition, which says what it is; kind and name of another object.
#[must_use]
pub fn object_name(finding: &Finding) -> String {
    let object = &finding.object;
    if object.is_definition() { object.name.clone() } else { object.to_string() }
}

/// `foos.ex.com v1 spec.f`.
#[must_use]
pub fn place_words(finding: &Finding) -> String {
    let parts = [Some(object_name(finding)), finding.version.clone(), finding.path.clone()];
    parts.into_iter().flatten().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
}
