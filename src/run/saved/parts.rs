//! The parts of a saved plan, taken from a run.

use pushback_deploy::plan::saved::digests::Digests;
use pushback_deploy::plan::saved::{SavedApp, SavedFacts, SavedFinding, SavedPolicy, SavedVerdict};
use pushback_manifest::FileDigest;
use pushback_preflight::facts::Facts;
use pushback_preflight::{RunReport, Waiver};
use serde_json::{Map, Value};

use crate::run::judging;
use crate::run::setup::Setup;

pub(super) fn app(setup: &Setup, label: &str) -> SavedApp {
    SavedApp {
        name: setup.app.name.clone(),
        namespace: setup.app.namespace.clone(),
        default_namespace: setup.namespaces.objects.clone(),
        label: label.to_owned(),
    }
}

pub(super) fn policy(setup: &Setup, digests: &Digests, files: &[FileDigest]) -> SavedPolicy {
    SavedPolicy {
        source: setup.policy_source.clone(),
        files: digests.files(files, &[]),
        rules: setup.selection.written().map(|(name, settings)| (name.to_owned(), settings)).collect(),
        waivers: setup.waivers.iter().map(waiver).collect(),
    }
}

/// What a waiver says, and not where.
fn waiver(waiver: &Waiver) -> Map<String, Value> {
    let Ok(Value::Object(mut written)) = serde_json::to_value(waiver) else { return Map::new() };
    written
        .retain(|key, value| key != "position" && !value.is_null() && value.as_array().is_none_or(|it| !it.is_empty()));
    written
}

/// The verdict, and why facts were not available.
pub(super) fn verdict(report: &RunReport) -> (SavedVerdict, Vec<String>) {
    let findings = report.findings.iter().map(|finding| SavedFinding {
        fingerprint: finding.fingerprint.clone(),
        rule: finding.rule.clone(),
        check: finding.check.clone(),
        severity: finding.severity,
        object: finding.object.clone(),
        message: finding.message.clone(),
        waived: finding.waived.clone(),
    });
    let verdict = SavedVerdict {
        outcome: report.outcome,
        rules: report.rules.iter().map(|rule| (rule.name.clone(), rule.outcome)).collect(),
        findings: findings.collect(),
    };
    let unable = |rule: &pushback_preflight::RuleResult| {
        let name = rule.name.clone();
        rule.unable.clone().into_iter().map(move |reason| format!("{name}: {reason}"))
    };
    (verdict, report.rules.iter().flat_map(unable).collect())
}

/// What the rules knew of the cluster, apart from the objects of the plan.
pub(super) fn facts(setup: &Setup, facts: &Facts) -> SavedFacts {
    let digest = judging::digest_of_answers(facts.answers.clone(), &setup.config);
    SavedFacts { answers: facts.answers.len(), digest }
}
