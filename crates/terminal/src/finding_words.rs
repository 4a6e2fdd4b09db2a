//! What all outputs say about a finding: its consequence, its facts as lines, its witness as YAML. Nothing here is
//! escaped: each output does so in its own way.

use pushback_objects::finding::{LiveObjects, VersionUse, VersionWriter};
use pushback_objects::text::counted;
use pushback_objects::{Finding, Severity};
use pushback_preflight::cause::LiveTotal;
use pushback_preflight::registry;
use serde_json::Value;

/// `CRDUpgradeSafety/enum`.
#[must_use]
pub fn rule_and_check(finding: &Finding) -> String {
    if finding.check.is_empty() { finding.rule.clone() } else { format!("{}/{}", finding.rule, finding.check) }
}

/// `CustomResourceDefinition foos.ex.com, version v1`; `None` where it is about no object.
#[must_use]
pub fn subject(finding: &Finding) -> Option<String> {
    if finding.object.kind.is_empty() {
        return None;
    }
    let version = finding.version.as_ref().map(|version| format!(", version {version}")).unwrap_or_default();
    Some(format!("{}{version}", finding.object))
}

/// Object and message.
#[must_use]
pub fn headline(finding: &Finding) -> String {
    match subject(finding) {
        Some(subject) => format!("{subject}: {}", finding.message),
        None => finding.message.clone(),
    }
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
#[must_use]
pub fn consequence(finding: &Finding) -> Option<String> {
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

/// Who uses the version of a finding; `None` where that is not known, or where it is said that there are no objects.
#[must_use]
pub fn used(finding: &Finding, ellipsis: &str) -> Option<String> {
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

/// Says that the API server refuses the change too, since no waiver helps then.
#[must_use]
pub fn also(finding: &Finding) -> Option<&'static str> {
    (![registry::SERVER, registry::WAIVERS].contains(&finding.rule.as_str()) && !finding.is_waivable())
        .then_some("the API server refuses it by itself, so that no waiver covers it")
}

/// What proves a finding besides subject, message, position and witness, in reading order.
#[must_use]
pub fn facts(finding: &Finding, ellipsis: &str) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    facts.extend(finding.path.clone().map(|path| ("path", path)));
    facts.extend(finding.old.as_ref().map(|old| ("old", old.to_string())));
    facts.extend(finding.new.as_ref().map(|new| ("new", new.to_string())));
    facts.extend(consequence(finding).map(|consequence| ("effect", consequence)));
    facts.extend(finding.live_objects.as_ref().map(|live| ("live", live_objects(live, ellipsis))));
    facts.extend(used(finding, ellipsis).map(|used| ("used", used)));
    facts.extend(finding.undecided.clone().map(|undecided| ("unknown", undecided)));
    facts.extend(also(finding).map(|also| ("also", also.to_owned())));
    facts
}

/// What to do about a finding, and what was done.
#[must_use]
pub fn advice(finding: &Finding) -> Vec<(&'static str, String)> {
    let mut advice = Vec::new();
    advice.extend(finding.remedy.clone().map(|remedy| ("fix", remedy)));
    advice.extend(finding.waived.clone().map(|reason| ("waived", reason)));
    advice.extend(waivable(finding).map(|fingerprint| ("fingerprint", fingerprint.to_owned())));
    advice
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
    if object.kind == "CustomResourceDefinition" { object.name.clone() } else { object.to_string() }
}

/// `foos.ex.com v1 spec.f`.
#[must_use]
pub fn place_words(finding: &Finding) -> String {
    let parts = [Some(object_name(finding)), finding.version.clone(), finding.path.clone()];
    parts.into_iter().flatten().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
}

/// The finding as lines of plain text: headline, the line that kapp and OLM print for refusals, position, facts, what
/// else is to be said, witness.
#[must_use]
pub fn plain_text_of(finding: &Finding, more: &[(&str, String)]) -> String {
    let mut text = format!("{}\n", headline(finding));
    let refuses = finding.severity == Severity::Error && finding.waived.is_none();
    if let Some(line) = registry::published_line(finding).filter(|_| refuses) {
        text += &format!("{line}\n");
    }
    if let Some(position) = &finding.position {
        text += &format!("at: {position}\n");
    }
    let facts = facts(finding, "…").into_iter().chain(advice(finding));
    for (name, value) in facts.chain(more.iter().cloned()) {
        text += &format!("{name}: {value}\n");
    }
    if let Some(witness) = &finding.witness {
        text += "witness:\n";
        for line in witness_yaml(witness).trim_end().lines() {
            text += &format!("  {line}\n");
        }
    }
    text
}

/// The finding as lines of plain text.
#[must_use]
pub fn plain_text(finding: &Finding) -> String {
    plain_text_of(finding, &[])
}
