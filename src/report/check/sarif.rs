//! A check as SARIF 2.1.0, for code scanners: every check of the rules that ran is described, and every finding is a
//! result with its position and a stable fingerprint. A waived finding is a suppressed result.

use std::collections::{BTreeMap, BTreeSet};

use pushback_preflight::judge::{Outcome, RuleOutcome};
use pushback_preflight::{Finding, Severity, registry};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::source_path::source_path;
use crate::check::report::CheckReport;
use crate::report::escape::terminal_safe_json;
use crate::report::finding_words::{advice, facts, headline, rule_and_check, subject};

const SCHEMA: &str = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";
/// Base of relative paths: the root of the sources.
const SOURCE_ROOT: &str = "%SRCROOT%";

#[derive(Serialize)]
struct Log {
    #[serde(rename = "$schema")]
    schema: &'static str,
    version: &'static str,
    runs: [Run; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Run {
    tool: Tool,
    automation_details: AutomationDetails,
    invocations: [Invocation; 1],
    column_kind: &'static str,
    results: Vec<ResultEntry>,
}

#[derive(Serialize)]
struct Tool {
    driver: Driver,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Driver {
    name: &'static str,
    version: &'static str,
    semantic_version: &'static str,
    rules: Vec<Descriptor>,
}

#[derive(Serialize)]
struct AutomationDetails {
    id: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Descriptor {
    id: String,
    short_description: Message,
    full_description: Message,
    help: Message,
    default_configuration: Configuration,
    properties: Map<String, Value>,
}

#[derive(Serialize)]
struct Configuration {
    level: &'static str,
}

#[derive(Serialize)]
struct Message {
    text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    markdown: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Invocation {
    execution_successful: bool,
    tool_execution_notifications: Vec<Notification>,
    properties: Map<String, Value>,
}

#[derive(Serialize)]
struct Notification {
    level: &'static str,
    message: Message,
    properties: Map<String, Value>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ResultEntry {
    rule_id: String,
    rule_index: usize,
    level: &'static str,
    message: Message,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    locations: Vec<Location>,
    partial_fingerprints: BTreeMap<&'static str, String>,
    suppressions: Vec<Suppression>,
    properties: Map<String, Value>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Location {
    physical_location: PhysicalLocation,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    logical_locations: Vec<LogicalLocation>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PhysicalLocation {
    artifact_location: ArtifactLocation,
    #[serde(skip_serializing_if = "Option::is_none")]
    region: Option<Region>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ArtifactLocation {
    uri: String,
    uri_base_id: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Region {
    start_line: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    start_column: Option<u32>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct LogicalLocation {
    fully_qualified_name: String,
    kind: &'static str,
}

#[derive(Serialize)]
struct Suppression {
    kind: &'static str,
    status: &'static str,
    justification: String,
}

/// The report as SARIF.
#[must_use]
pub fn text(report: &CheckReport) -> String {
    let ids = check_ids(report);
    let rules = ids.iter().map(|(rule, check)| descriptor(rule, check)).collect();
    let index = |finding: &Finding| {
        ids.iter().position(|(rule, check)| *rule == finding.rule && *check == finding.check).unwrap_or_default()
    };
    let mut seen = BTreeMap::new();
    let results = report.findings.iter().map(|finding| {
        let times: &mut usize = seen.entry(finding.fingerprint.as_str()).or_default();
        *times += 1;
        result(finding, index(finding), *times, report)
    });
    let run = Run {
        tool: Tool {
            driver: Driver {
                name: report.tool.name,
                version: report.tool.version,
                semantic_version: report.tool.version,
                rules,
            },
        },
        // Scanners use it to keep the results of different apps apart.
        automation_details: AutomationDetails { id: format!("pushback/{}/", report.app) },
        invocations: [invocation(report)],
        column_kind: "unicodeCodePoints",
        results: results.collect(),
    };
    let log = Log { schema: SCHEMA, version: "2.1.0", runs: [run] };
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

fn descriptor(rule: &str, check: &str) -> Descriptor {
    let meta = registry::metas().find(|meta| meta.name == rule);
    let line = meta.and_then(|meta| meta.checks.iter().find(|(name, _)| *name == check)).map(|(_, line)| *line);
    let short = match (line, rule) {
        (Some(line), _) => line.to_owned(),
        (None, registry::SERVER) => "the API server refuses the change".to_owned(),
        (None, registry::WAIVERS) => "a waiver is expired or covers nothing".to_owned(),
        (None, _) => format!("{rule}/{check}"),
    };
    let mut properties = Map::new();
    properties.insert("tags".to_owned(), json!(["kubernetes", rule]));
    let help = if let Some(meta) = meta {
        properties.insert("needs".to_owned(), meta.needs.into());
        properties.insert("default".to_owned(), meta.default.into());
        Message {
            text: format!("{}. `pushback rules {rule}` explains the rule.", meta.summary),
            markdown: Some(help(rule, check, &short)),
        }
    } else {
        plain(short.clone())
    };
    let summary = meta.map_or_else(|| short.clone(), |meta| meta.summary.to_owned());
    Descriptor {
        id: if check.is_empty() { rule.to_owned() } else { format!("{rule}/{check}") },
        short_description: plain(short),
        full_description: plain(summary),
        help,
        default_configuration: Configuration { level: "error" },
        properties,
    }
}

/// Help for a check, with a link to its rule: a rule's explanation is long and has dozens of checks.
fn help(rule: &str, check: &str, line: &str) -> String {
    format!("`{check}`: {line}.\n\n`pushback rules {rule}` explains the rule, and so does `docs/rules.md`.")
}

fn invocation(report: &CheckReport) -> Invocation {
    let unable = report.rules.iter().filter(|rule| rule.outcome != RuleOutcome::Skipped);
    let notifications = unable.flat_map(|rule| {
        rule.reasons.iter().map(|reason| Notification {
            level: if rule.outcome == RuleOutcome::Unable { "error" } else { "warning" },
            message: plain(format!("{}: the facts could not be had: {reason}", rule.name)),
            properties: map(json!({"rule": rule.name})),
        })
    });
    Invocation {
        execution_successful: report.outcome != Outcome::Unable,
        tool_execution_notifications: notifications.collect(),
        properties: map(json!({
            "outcome": report.outcome,
            "app": report.app,
            "cluster": report.cluster,
            "rules": report.rules,
            "changes": report.changes,
        })),
    }
}

fn result(finding: &Finding, rule_index: usize, times: usize, report: &CheckReport) -> ResultEntry {
    let level = match (&finding.waived, finding.severity) {
        (None, Severity::Error) => "error",
        (None, Severity::Warning) => "warning",
        (Some(_), _) | (None, Severity::Info) => "note",
    };
    let said =
        facts(finding, "…").into_iter().chain(advice(finding)).filter(|(name, _)| ["effect", "fix"].contains(name));
    let more: String = said.map(|(name, value)| format!("\n{name}: {value}")).collect();
    let suppressions = finding.waived.iter().map(|reason| Suppression {
        kind: "external",
        status: "accepted",
        justification: reason.clone(),
    });
    ResultEntry {
        rule_id: rule_and_check(finding),
        rule_index,
        level,
        message: plain(headline(finding) + &more),
        locations: location(finding, report).into_iter().collect(),
        partial_fingerprints: BTreeMap::from([
            // GitHub identifies a result by this fingerprint; without it, by the text around its line.
            ("primaryLocationLineHash", format!("{}:{times}", finding.fingerprint)),
            ("pushback/v1", finding.fingerprint.clone()),
        ]),
        suppressions: suppressions.collect(),
        properties: properties(finding),
    }
}

/// The location of a finding; a finding outside any file has none, since scanners reject a log with an empty location.
fn location(finding: &Finding, report: &CheckReport) -> Option<Location> {
    let position = finding.position.as_ref()?;
    let path = source_path(&position.file, &report.working_directory)?;
    let region = (position.line > 0).then_some(Region {
        start_line: position.line,
        start_column: (position.column > 0).then_some(position.column),
    });
    let logical = subject(finding).map(|subject| LogicalLocation {
        fully_qualified_name: match &finding.path {
            Some(path) => format!("{subject}, {path}"),
            None => subject,
        },
        kind: "resource",
    });
    Some(Location {
        physical_location: PhysicalLocation {
            artifact_location: ArtifactLocation { uri: percent_encoded(&path), uri_base_id: SOURCE_ROOT },
            region,
        },
        logical_locations: logical.into_iter().collect(),
    })
}

/// The finding as in the JSON report, without what the result says elsewhere.
fn properties(finding: &Finding) -> Map<String, Value> {
    let mut properties = map(serde_json::to_value(finding).unwrap_or_default());
    for said in ["rule", "check", "position", "message", "waived"] {
        properties.shift_remove(said);
    }
    properties
}

fn plain(text: String) -> Message {
    Message { text, markdown: None }
}

fn map(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
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
