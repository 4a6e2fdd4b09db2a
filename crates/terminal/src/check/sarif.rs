//! A check as SARIF 2.1.0, for code scanners: every check of the rules that ran is described, and every cause is a
//! result with its positions and a stable fingerprint. A waived one is a suppressed result.

use std::collections::{BTreeMap, BTreeSet};

use pushback_deploy::check::report::CheckReport;
use pushback_objects::{Finding, Severity};
use pushback_preflight::judge::{Outcome, RuleOutcome};
use pushback_preflight::registry;
use serde_json::{Value, json};

use super::grouped::{cards, left_out};
use super::source_path::source_path;
use crate::escape::terminal_safe_json;
use crate::finding_card::{FindingCard, place_words, subject};
use crate::policy_text::policy_lines;

const SCHEMA: &str = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";
/// Base of relative paths: the root of the sources.
const SOURCE_ROOT: &str = "%SRCROOT%";

/// Most further places of a result.
const RELATED: usize = 100;

/// The report as SARIF.
#[must_use]
pub fn text(report: &CheckReport) -> String {
    let ids = check_ids(report);
    let rules: Vec<Value> = ids.iter().map(|(rule, check)| descriptor(rule, check, report)).collect();
    let index = |finding: &Finding| {
        ids.iter().position(|(rule, check)| *rule == finding.rule && *check == finding.check).unwrap_or_default()
    };
    let mut seen = BTreeMap::new();
    let cards = cards(report);
    let results = cards.iter().map(|card| {
        let times: &mut usize = seen.entry(card.fingerprint()).or_default();
        *times += 1;
        result(card, index(card.finding), *times, report)
    });
    let results: Vec<Value> = results.collect();
    let (name, version) = (report.tool.name, report.tool.version);
    let log = json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {"name": name, "version": version, "semanticVersion": version, "rules": rules}},
            // Scanners use it to keep the results of different apps apart.
            "automationDetails": {"id": format!("pushback/{}/", report.app)},
            "invocations": [invocation(report, left_out(cards.iter(), RELATED))],
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    });
    // Plain data with string keys: serialisation cannot fail.
    terminal_safe_json(&serde_json::to_string_pretty(&log).unwrap_or_default()) + "\n"
}

/// Rule and check of all descriptors: the checks of the rules that ran, and of all other findings.
fn check_ids(report: &CheckReport) -> Vec<(String, String)> {
    let mut ids = Vec::new();
    for rule in &report.rules {
        if let Ok(known) = registry::find(&rule.name) {
            ids.extend(known.meta().checks.iter().map(|(check, _)| (rule.name.clone(), (*check).to_owned())));
        }
    }
    let mut known: BTreeSet<(String, String)> = ids.iter().cloned().collect();
    for finding in &report.findings {
        let id = (finding.rule.clone(), finding.check.clone());
        if known.insert(id.clone()) {
            ids.push(id);
        }
    }
    ids
}

fn descriptor(rule: &str, check: &str, report: &CheckReport) -> Value {
    let meta = registry::metas().find(|meta| meta.name == rule);
    let line = meta.and_then(|meta| meta.checks.iter().find(|(name, _)| *name == check)).map(|(_, line)| *line);
    let short = match (line, rule) {
        (Some(line), _) => line.to_owned(),
        (None, registry::SERVER) => "the API server refuses the change".to_owned(),
        (None, registry::STORAGE) => "stored objects cannot be carried over".to_owned(),
        (None, registry::WAIVERS) => "a waiver is expired or covers nothing".to_owned(),
        (None, _) => report
            .rules
            .iter()
            .find(|line| line.name == rule)
            .and_then(|line| line.summary.clone())
            .unwrap_or_else(|| format!("{rule}/{check}")),
    };
    let mut properties = json!({"tags": ["kubernetes", rule]});
    let help = if let Some(meta) = meta {
        properties["needs"] = meta.needs.into();
        properties["default"] = meta.default.into();
        let text = format!("{}. `pushback rules {rule}` explains the rule.", meta.summary);
        json!({"text": text, "markdown": help(rule, check, &short)})
    } else {
        json!({"text": short})
    };
    json!({
        "id": if check.is_empty() { rule.to_owned() } else { format!("{rule}/{check}") },
        "shortDescription": {"text": short},
        "fullDescription": {"text": meta.map_or(short.as_str(), |meta| meta.summary)},
        "help": help,
        "defaultConfiguration": {"level": "error"},
        "properties": properties,
    })
}

/// Help for a check, with a link to its rule: a rule's explanation is long and has dozens of checks.
fn help(rule: &str, check: &str, line: &str) -> String {
    format!("`{check}`: {line}.\n\n`pushback rules {rule}` explains the rule, and so does `docs/rules.md`.")
}

fn invocation(report: &CheckReport, left_out: Option<String>) -> Value {
    let unable = report.rules.iter().filter(|rule| rule.outcome != RuleOutcome::Skipped);
    let notifications = unable.flat_map(|rule| {
        rule.reasons.iter().map(|reason| {
            json!({
                "level": if rule.outcome == RuleOutcome::Unable { "error" } else { "warning" },
                "message": {"text": format!("{}: the facts could not be had: {reason}", rule.name)},
                "properties": {"rule": rule.name},
            })
        })
    });
    let unchecked = policy_lines(report.policy.left_out.as_ref(), &report.policy.broad_waivers);
    let left_out =
        left_out.into_iter().chain(unchecked).map(|text| json!({"level": "note", "message": {"text": text}}));
    json!({
        "executionSuccessful": report.outcome != Outcome::Unable,
        // What is left out comes first, so that nobody takes the rest for all.
        "toolExecutionNotifications": left_out.chain(notifications).collect::<Vec<_>>(),
        "properties": {
            "outcome": report.outcome,
            "app": report.app,
            "cluster": report.cluster,
            "rules": report.rules,
            "changes": report.changes,
        },
    })
}

fn result(card: &FindingCard<'_>, rule_index: usize, times: usize, report: &CheckReport) -> Value {
    let finding = card.finding;
    let level = match (&finding.waived, finding.severity) {
        (None, Severity::Error) => "error",
        (None, Severity::Warning) => "warning",
        (Some(_), _) | (None, Severity::Info) => "note",
    };
    let is_shown = |(name, _): &(&str, _)| ["also", "effect", "live", "do", "fix"].contains(name);
    let lines = card.facts().into_iter().chain(card.advice()).filter(is_shown);
    let more: String = lines.map(|(name, value)| format!("\n{name}: {value}")).collect();
    let accepted = |reason| json!({"kind": "external", "status": "accepted", "justification": reason});
    let mut result = json!({
        "ruleId": card.rule,
        "ruleIndex": rule_index,
        "level": level,
        "message": {"text": card.title() + &more},
    });
    if let Some(location) = location(finding, report) {
        result["locations"] = json!([location]);
    }
    result["partialFingerprints"] = json!({
        // GitHub identifies a result by this fingerprint; without it, by the text around its line.
        "primaryLocationLineHash": format!("{}:{times}", card.fingerprint()),
        "pushback/v1": card.fingerprint(),
    });
    result["suppressions"] = finding.waived.iter().map(accepted).collect();
    result["properties"] = properties(finding);
    if !card.others.is_empty() {
        let related = card.others.iter().filter_map(|other| {
            let mut place = location(other, report)?;
            place["message"] = json!({"text": place_words(other)});
            Some(place)
        });
        result["relatedLocations"] = related.take(RELATED).collect();
        result["occurrenceCount"] = (card.others.len() + 1).into();
        result["properties"]["cause"] = card.fingerprint().into();
        result["properties"]["members"] = card.members().map(|member| member.fingerprint.clone()).collect();
    }
    result
}

/// The location of a finding; a finding outside any file has none, since scanners reject a log with an empty location.
fn location(finding: &Finding, report: &CheckReport) -> Option<Value> {
    let position = finding.position.as_ref()?;
    let uri = percent_encoded(&source_path(&position.file, &report.working_directory)?);
    let mut place = json!({"artifactLocation": {"uri": uri, "uriBaseId": SOURCE_ROOT}});
    if position.line > 0 {
        place["region"] = json!({"startLine": position.line});
        if position.column > 0 {
            place["region"]["startColumn"] = position.column.into();
        }
    }
    let mut location = json!({"physicalLocation": place});
    if let Some(subject) = subject(finding) {
        let name = finding.path.as_ref().map_or_else(|| subject.clone(), |path| format!("{subject}, {path}"));
        location["logicalLocations"] = json!([{"fullyQualifiedName": name, "kind": "resource"}]);
    }
    Some(location)
}

/// The finding as in the JSON report, without what the result says elsewhere.
fn properties(finding: &Finding) -> Value {
    let mut properties = serde_json::to_value(finding).unwrap_or_default();
    for said in ["rule", "check", "position", "waived"] {
        properties.as_object_mut().map(|properties| properties.shift_remove(said));
    }
    properties
}

/// A path as a relative URI reference.
fn percent_encoded(path: &str) -> String {
    let mut encoded = String::with_capacity(path.len());
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded += &format!("%{byte:02X}");
        }
    }
    encoded
}

#[cfg(test)]
mod tests;
