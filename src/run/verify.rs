//! `verify`: whether reports, saved plans and facts are of one run, and of this program.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use pushback_deploy::check::facts_file::{self, FactsFile};
use pushback_deploy::plan::saved::{SavedPlan, SavedTool};
use pushback_objects::{ObjectRef, Severity};
use pushback_preflight::{Operation, Outcome, RuleOutcome};
use pushback_system::bounded_file::{DOCUMENT, read_text};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::error::CommandError;
use super::replay::{self, Replayed};
use super::saved;

/// Differences that are named for two files.
const NAMED: usize = 10;

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum FileKind {
    /// The JSON report of a check.
    Report,
    /// A saved plan.
    Plan,
    /// What the rules judged.
    Facts,
}

impl FileKind {
    /// Its name in messages.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Report => "report",
            Self::Plan => "saved plan",
            Self::Facts => "facts",
        }
    }
}

/// What one file says of its run.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Verified {
    /// The file, as the user named it.
    pub file: String,
    /// What it is.
    pub kind: FileKind,
    /// The program that wrote it.
    pub tool: SavedTool,
    /// The app.
    pub app: String,
    /// The cluster, as shown to people.
    pub cluster: String,
    /// The verdict.
    pub outcome: Outcome,
    /// Digest of the file, by which others name it; a plan's own.
    pub digest: String,
    #[serde(skip)]
    policy: Option<String>,
    #[serde(skip)]
    rules: BTreeMap<String, String>,
    #[serde(skip)]
    findings: BTreeMap<String, String>,
    #[serde(skip)]
    changes: BTreeMap<String, String>,
    /// Digest of what the rules knew of the cluster; a report does not say.
    #[serde(skip)]
    answers: Option<String>,
}

/// Whether files belong together.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Verification {
    /// The files, in the order in which they were given.
    pub files: Vec<Verified>,
    /// What does not fit, each in a sentence.
    pub mismatches: Vec<String>,
}

/// The report, as far as it is compared.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReportFile {
    tool: SavedTool,
    app: String,
    cluster: String,
    outcome: Outcome,
    rules: Vec<ReportRule>,
    #[serde(default)]
    plan: Vec<ReportChange>,
    findings: Vec<ReportFinding>,
    policy: ReportPolicy,
}

#[derive(Deserialize)]
struct ReportRule {
    name: String,
    outcome: RuleOutcome,
}

#[derive(Deserialize)]
struct ReportChange {
    object: ObjectRef,
    operation: Operation,
}

#[derive(Deserialize)]
struct ReportFinding {
    fingerprint: String,
    rule: String,
    severity: Severity,
    object: ObjectRef,
    #[serde(default)]
    waived: Option<String>,
}

#[derive(Deserialize)]
struct ReportPolicy {
    #[serde(default)]
    source: Option<String>,
}

/// Reads the files and compares them. `config` are the files of the policy, for the rules that it brings.
///
/// # Errors
/// A file cannot be read, is neither of them, or was edited.
pub fn verify(files: &[PathBuf], config: &[String]) -> Result<Verification, CommandError> {
    let version = env!("CARGO_PKG_VERSION");
    let (mut read, mut mismatches): (Vec<Verified>, Vec<String>) = (Vec::new(), Vec::new());
    for path in files {
        let shown = path.display();
        let text = read_text(path, DOCUMENT)
            .map_err(|reason| CommandError::usage(format!("{shown}: the file cannot be read: {reason}")))?;
        let (said, facts) = said(path, &text)?;
        if said.tool.version != version {
            mismatches.push(format!("{shown}: written by pushback {}, and this is {version}", said.tool.version));
        } else if let Some(facts) = &facts {
            let Replayed { verdict, is_the_same, .. } = replay::judge(path, facts, config)?;
            if !is_the_same {
                mismatches.push(format!(
                    "{shown}: the verdict on it is another: {} now, {} in the run",
                    verdict.outcome.as_str(),
                    said.outcome.as_str()
                ));
            }
        }
        if let Some(first) = read.first() {
            mismatches.extend(differences(first, &said));
        }
        // A plan and facts know what the rules knew; the first file may be a report.
        if let (Some(answers), Some(earlier)) = (&said.answers, read.iter().find(|other| other.answers.is_some()))
            && earlier.answers.as_ref() != Some(answers)
        {
            mismatches
                .push(format!("{shown}: its rules knew something else of the cluster than those of {}", earlier.file));
        }
        read.push(said);
    }
    Ok(Verification { files: read, mismatches })
}

/// What a file says, and its facts if it has them.
fn said(path: &Path, text: &str) -> Result<(Verified, Option<FactsFile>), CommandError> {
    let file = path.display().to_string();
    if SavedPlan::is_one(text) {
        return Ok((of_plan(file, &saved::parse(path, text)?), None));
    }
    let value: Option<Value> = serde_json::from_str(text).ok();
    let is_facts = value.as_ref().is_some_and(|value| value["kind"] == facts_file::KIND);
    if is_facts {
        let facts = replay::parse(path, text)?;
        return Ok((of_facts(file, text, &facts), Some(facts)));
    }
    match value.map(serde_json::from_value::<ReportFile>) {
        Some(Ok(report)) => Ok((of_report(file, text, report), None)),
        _ => Err(CommandError::usage_with_hint(
            format!("{file}: neither a report, a saved plan nor facts"),
            "--report json=FILE, `pushback plan --out FILE` and --facts-out FILE write them",
        )),
    }
}

fn of_report(file: String, text: &str, report: ReportFile) -> Verified {
    let ReportFile { tool, app, cluster, outcome, rules, plan, findings, policy } = report;
    Verified {
        file,
        kind: FileKind::Report,
        tool,
        app,
        cluster,
        outcome,
        digest: facts_file::sha256(text),
        policy: policy.source,
        rules: rules.into_iter().map(|rule| (rule.name, rule.outcome.as_str().to_owned())).collect(),
        findings: findings
            .iter()
            .map(|it| finding(&it.fingerprint, &it.rule, it.severity, &it.object, it.waived.as_deref()))
            .collect(),
        changes: plan.iter().filter_map(|line| change(&line.object, line.operation)).collect(),
        answers: None,
    }
}

fn of_plan(file: String, plan: &SavedPlan) -> Verified {
    let findings = plan.verdict.findings.iter();
    Verified {
        file,
        kind: FileKind::Plan,
        tool: plan.tool.clone(),
        app: plan.app.name.clone(),
        cluster: plan.cluster.description.clone(),
        outcome: plan.verdict.outcome,
        digest: format!("sha256:{}", plan.digest()),
        policy: plan.policy.source.clone(),
        rules: plan.verdict.rules.iter().map(|(name, it)| (name.clone(), it.as_str().to_owned())).collect(),
        findings: findings
            .map(|it| finding(&it.fingerprint, &it.rule, it.severity, &it.object, it.waived.as_deref()))
            .collect(),
        changes: plan.objects.iter().filter_map(|line| change(&line.object, line.operation)).collect(),
        answers: Some(plan.facts.digest.clone()),
    }
}

fn of_facts(file: String, text: &str, facts: &FactsFile) -> Verified {
    let FactsFile { tool, report, named, verdict, .. } = facts;
    Verified {
        file,
        kind: FileKind::Facts,
        tool: tool.clone(),
        app: report.app.clone(),
        cluster: report.cluster.clone(),
        outcome: verdict.outcome,
        digest: facts_file::sha256(text),
        policy: report.policy.clone(),
        rules: verdict.rules.iter().map(|rule| (rule.name.clone(), rule.outcome.as_str().to_owned())).collect(),
        findings: verdict
            .findings
            .iter()
            .map(|it| finding(&it.fingerprint, &it.rule, it.severity, &it.object, it.waived.as_deref()))
            .collect(),
        changes: report.plan.iter().filter_map(|line| change(&line.object, line.operation)).collect(),
        answers: Some(named.answers.clone()),
    }
}

/// A finding by its fingerprint, with what is compared of it.
fn finding(
    fingerprint: &str,
    rule: &str,
    severity: Severity,
    object: &ObjectRef,
    waived: Option<&str>,
) -> (String, String) {
    let waived = waived.map(|reason| format!(", waived: {reason}")).unwrap_or_default();
    let severity = severity.as_str();
    (fingerprint.to_owned(), format!("{severity} of {rule} on {object}{waived}"))
}

/// A change by its object; `None` if nothing is written.
fn change(object: &ObjectRef, operation: Operation) -> Option<(String, String)> {
    operation.writes().then(|| (object.to_string(), operation.as_str().to_owned()))
}

/// How a file differs from another one of the same run.
fn differences(first: &Verified, other: &Verified) -> Vec<String> {
    let (one, two) = (&first.file, &other.file);
    let mut told = Vec::new();
    let mut word = |what: &str, there: &str, here: &str| {
        if there != here {
            told.push(format!("{two}: {what} {here}, and {one} {what} {there}"));
        }
    };
    word("is about app", &first.app, &other.app);
    word("is about cluster", &first.cluster, &other.cluster);
    let policy = |of: &Verified| of.policy.clone().unwrap_or_else(|| "the manifests".to_owned());
    word("has its policy from", &policy(first), &policy(other));
    word("says", first.outcome.as_str(), other.outcome.as_str());
    told.extend(entries(first, other, "rule", |of| &of.rules));
    told.extend(entries(first, other, "finding", |of| &of.findings));
    told.extend(entries(first, other, "change of", |of| &of.changes));
    let more = told.len().saturating_sub(NAMED);
    told.truncate(NAMED);
    if more > 0 {
        told.push(format!("{two}: {more} more differences from {one}"));
    }
    told
}

/// Entries that only one of two files has, or that differ.
fn entries(
    first: &Verified,
    other: &Verified,
    what: &str,
    of: impl Fn(&Verified) -> &BTreeMap<String, String>,
) -> Vec<String> {
    let (there, here) = (of(first), of(other));
    let keys: BTreeSet<&String> = there.keys().chain(here.keys()).collect();
    let none = "none".to_owned();
    let told = keys.into_iter().filter(|key| there.get(*key) != here.get(*key)).map(|key| {
        let [there, here] = [there, here].map(|entries| entries.get(key).unwrap_or(&none));
        format!("{}: {what} {key}: {here}, and in {}: {there}", other.file, first.file)
    });
    told.collect()
}
