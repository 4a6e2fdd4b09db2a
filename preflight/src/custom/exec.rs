//! Rules that are programs: what they are asked, and what of their answers counts. An answer that is not exactly as agreed
//! counts as none, so that the rule refuses.

use std::time::Duration;

use pushback_crd::path::display_path;
use pushback_objects::finding::{Finding, Verdict};
use pushback_objects::reader::Node;
use pushback_objects::source::{PathSegment, value_at};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Definition;
use super::request::Asked;
use crate::facts::{Answer, ClusterSide, Facts, Need};
use crate::rule::{Judgement, ProgramCall};

/// Version of the protocol, in every question and every answer.
const API_VERSION: &str = "rules.pushback.dev/v1";
const REQUEST: &str = "RuleRequest";
const RESPONSE: &str = "RuleResponse";

/// How long a program may take, unless the rule says otherwise, and at most.
const TIME: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(600));

/// MiB of memory that a program may fill, unless the rule says otherwise, and at most.
const MEMORY: (u64, u64) = (1024, 65_536);

/// Most findings of an answer.
const MOST_FINDINGS: usize = 10_000;

/// Longest message, in bytes.
const LONGEST_MESSAGE: usize = 5 * 1024;

/// A rule as a program.
#[derive(Clone, Debug)]
pub struct ExecRule {
    command: Vec<String>,
    time: Duration,
    memory: u64,
}

impl ExecRule {
    /// Reads `exec` of an entry of `preflightRules`.
    pub(super) fn of_entry(node: &Node<'_>) -> Option<Self> {
        let fields = node.fields(&["command", "timeout", "memory"]);
        let command: Vec<String> = fields
            .filled_list("command", "word")
            .iter()
            .enumerate()
            .filter_map(|(index, word)| if index == 0 { word.filled_text() } else { word.text() })
            .map(str::to_owned)
            .collect();
        let time = match fields.optional("timeout") {
            None => TIME.0,
            Some(node) => match node.positive_duration()? {
                time if time > TIME.1 => return node.malformed("a duration of at most 10m", &[]),
                time => time,
            },
        };
        let memory = match fields.optional("memory") {
            None => MEMORY.0,
            Some(node) => node.whole_number(1..=MEMORY.1)?,
        };
        (!command.is_empty()).then_some(Self { command, time, memory })
    }

    /// One line about it.
    pub(super) fn summary(&self) -> String {
        self.command.join(" ")
    }

    /// The rule in Markdown.
    pub(super) fn markdown(&self) -> String {
        format!("This program judges the changes:\n\n```text\n{}\n```", self.summary())
    }
}

/// The program of a rule with its question. Secret values are masked in it.
pub(super) fn call(definition: &Definition, rule: &ExecRule, facts: &Facts) -> ProgramCall {
    let shown = |object: Option<&Value>| {
        object.map(|object| definition.masked(object).unwrap_or_else(|| object.clone())).unwrap_or_default()
    };
    let changes: Vec<Value> = definition
        .asked(&facts.changes)
        .enumerate()
        .map(|(id, asked)| {
            json!({"id": id, "operation": asked.change.operation, "request": asked.variable(),
                "object": shown(asked.object), "oldObject": shown(asked.old)})
        })
        .collect();
    let side = match facts.cluster.side {
        ClusterSide::Server => "server",
        ClusterSide::Directory => "directory",
    };
    let version = facts.cluster.version.map(|(major, minor)| format!("{major}.{minor}"));
    let input = json!({
        "apiVersion": API_VERSION, "kind": REQUEST, "rule": definition.name, "app": facts.changes.app,
        "cluster": {"side": side, "version": version}, "params": definition.params, "changes": changes,
    });
    ProgramCall {
        command: rule.command.clone(),
        named_by: definition.position.file.clone(),
        is_trusted: definition.is_trusted,
        input,
        time: rule.time,
        memory: rule.memory << 20,
    }
}

/// An answer.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Response {
    api_version: String,
    kind: String,
    findings: Vec<Told>,
    #[serde(default)]
    unable: Vec<String>,
}

/// A finding of an answer.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Told {
    change: usize,
    check: String,
    message: String,
    #[serde(default = "breaking")]
    verdict: Verdict,
    #[serde(default)]
    path: Vec<Step>,
}

fn breaking() -> Verdict {
    Verdict::Breaking
}

/// One step of a path: a key, or a position in a list.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Step {
    Index(usize),
    Key(String),
}

/// Judges by the answer of a program.
pub(super) fn check(definition: &Definition, number: usize, facts: &Facts, judgement: &mut Judgement) {
    let need = Need::Program { rule: definition.name.clone(), number };
    let asked: Vec<Asked<'_>> = definition.asked(&facts.changes).collect();
    if asked.is_empty() {
        return;
    }
    let read = match facts.answer(&need) {
        Answer::Program { output } => read(definition, &asked, output),
        Answer::Unable { reason } => Err(reason),
        _ => Err("the program was not run".to_owned()),
    };
    match read {
        Ok((findings, unable)) => {
            judgement.findings.extend(findings);
            judgement.unable.extend(unable);
        }
        Err(reason) => judgement.unable.push(format!("the program of {}: {}", definition.name, plain(&reason))),
    }
}

fn read(definition: &Definition, asked: &[Asked<'_>], output: Value) -> Result<(Vec<Finding>, Vec<String>), String> {
    // The version first: another one may have any other keys.
    let word = |key: &str| output.get(key).and_then(Value::as_str).unwrap_or("nothing").to_owned();
    if word("apiVersion") != API_VERSION || word("kind") != RESPONSE {
        let found = format!("{} {}", word("apiVersion"), word("kind"));
        return Err(format!("expected an answer of {API_VERSION} {RESPONSE}, found {found}"));
    }
    let response: Response =
        serde_json::from_value(output).map_err(|error| format!("its answer is not as agreed: {error}"))?;
    debug_assert!(response.api_version == API_VERSION && response.kind == RESPONSE);
    if response.findings.len() > MOST_FINDINGS {
        return Err(format!("its answer has more than {MOST_FINDINGS} findings"));
    }
    let findings: Result<Vec<Finding>, String> =
        response.findings.into_iter().map(|told| finding(definition, asked, told)).collect();
    let unable = response.unable.iter().take(MOST_FINDINGS).map(|reason| plain(reason)).collect();
    Ok((findings?, unable))
}

fn finding(definition: &Definition, asked: &[Asked<'_>], told: Told) -> Result<Finding, String> {
    let Told { change, check, message, verdict, path } = told;
    let Some(asked) = asked.get(change) else {
        return Err(format!("a finding is about change {change}, and it was given {}", asked.len()));
    };
    let is_name =
        (1..=63).contains(&check.len()) && check.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
    if !is_name {
        return Err("the name of a check has 1 to 63 letters, digits, `-`, `_` and `.`".to_owned());
    }
    let message = plain(&message);
    if message.is_empty() || message.len() > LONGEST_MESSAGE {
        return Err(format!("a message is empty or longer than {} KiB", LONGEST_MESSAGE >> 10));
    }
    let place: Vec<PathSegment> = path
        .into_iter()
        .map(|step| match step {
            Step::Index(index) => PathSegment::from(index),
            Step::Key(key) => PathSegment::from(key.as_str()),
        })
        .collect();
    let desired = asked.change.desired.as_deref();
    let value = desired.and_then(|desired| {
        let masked = definition.masked(desired);
        value_at(masked.as_ref().unwrap_or(desired), &place).cloned()
    });
    let mut finding = Finding::new(&definition.name, &check, verdict, asked.change.object.clone(), message.clone())
        .at(asked.change.locate(&place));
    if !place.is_empty() {
        finding = finding.path(plain(&display_path(&place)));
    }
    Ok(finding.bound_to(&json!({
        "message": message, "request": asked.request.as_str(),
        "value": if place.is_empty() { Value::Null } else { value.unwrap_or_default() },
    })))
}

/// One line in which control characters, which could change what a terminal shows, are spelled out.
fn plain(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let is_harmful = |c: char| {
        c.is_control() || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    line.chars()
        .flat_map(|c| {
            let (spelled, same) = if is_harmful(c) { (Some(c.escape_unicode()), None) } else { (None, Some(c)) };
            spelled.into_iter().flatten().chain(same)
        })
        .collect()
}
