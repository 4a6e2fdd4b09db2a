//! Result of a check: the data behind every report format. Its JSON form is stable.

use std::path::PathBuf;

use pushback_events::{Counts, PlannedLine, RuleLine, SCHEMA_VERSION};
use pushback_objects::Finding;
use pushback_preflight::default_set::LeftOut;
use pushback_preflight::judge::Outcome;
use pushback_preflight::loosened::{Loosened, RuleOff};
use pushback_preflight::waiver::BroadWaiver;
use pushback_preflight::{Cause, RunReport, causes};
use serde::{Deserialize, Serialize};

use crate::plan::waves::Waves;

/// Report of a check.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CheckReport {
    /// Version of the JSON form.
    pub schema_version: u32,
    /// The program that wrote it.
    pub tool: Tool,
    /// App name.
    pub app: String,
    /// The cluster, as shown to people.
    pub cluster: String,
    /// Overall outcome.
    pub outcome: Outcome,
    /// One entry per rule, in registry order.
    pub rules: Vec<RuleLine>,
    /// Number of changes by operation.
    pub changes: Counts,
    /// The changes themselves with their fields, Secrets masked, unchanged objects left out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub plan: Vec<PlannedLine>,
    /// What the findings have in common: the worst first.
    pub causes: Vec<Cause>,
    /// All findings, in output order.
    pub findings: Vec<Finding>,
    /// The policy that applied.
    pub policy: PolicyReport,
    /// The order of the changes.
    #[serde(skip)]
    pub waves: Waves,
    /// The day of the run, `2026-11-21`; empty where it does not matter.
    #[serde(skip)]
    pub today: String,
    /// The working directory: paths of the input are relative to it.
    #[serde(skip)]
    pub working_directory: PathBuf,
}

/// The policy behind a check.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PolicyReport {
    /// Its source; absent if the manifests decide.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Rules that would run if they had not been switched off.
    pub rules_off: Vec<RuleOff>,
    /// Rules of the default set that a list of rules leaves out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_out: Option<LeftOut>,
    /// Waivers that accept every finding of their rule, with the number of findings.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub broad_waivers: Vec<BroadWaiver>,
    /// Where the manifests ask for weaker checks, followed or not.
    pub loosened: Vec<Loosened>,
}

impl PolicyReport {
    /// The policy of a run.
    #[must_use]
    pub fn of(source: Option<String>, report: &RunReport) -> Self {
        Self {
            source,
            rules_off: report.off.clone(),
            left_out: report.left_out.clone(),
            broad_waivers: report.broad_waivers.clone(),
            loosened: report.loosened.clone(),
        }
    }
}

/// The program that wrote a report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Tool {
    /// Program name.
    pub name: &'static str,
    /// Program version.
    pub version: &'static str,
}

impl Tool {
    /// This program.
    #[must_use]
    pub fn this() -> Self {
        Self { name: "pushback", version: env!("CARGO_PKG_VERSION") }
    }
}

impl CheckReport {
    /// A report by this program without rules and findings.
    #[must_use]
    pub fn new(app: &str, cluster: &str, outcome: Outcome) -> Self {
        Self {
            schema_version: SCHEMA_VERSION,
            tool: Tool::this(),
            app: app.to_owned(),
            cluster: cluster.to_owned(),
            outcome,
            rules: Vec::new(),
            changes: Counts::default(),
            plan: Vec::new(),
            causes: Vec::new(),
            findings: Vec::new(),
            policy: PolicyReport::default(),
            waves: Waves::default(),
            today: String::new(),
            working_directory: PathBuf::new(),
        }
    }
}

/// What a report says besides the verdict.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ReportParts {
    /// App name.
    pub app: String,
    /// The cluster, as shown to people.
    pub cluster: String,
    /// Source of the policy; `None` if the manifests decided.
    pub policy: Option<String>,
    /// Number of changes by operation.
    pub changes: Counts,
    /// The changes themselves.
    pub plan: Vec<PlannedLine>,
    /// The order of the changes.
    pub waves: Waves,
}

impl ReportParts {
    /// The report on a verdict.
    #[must_use]
    pub fn report(self, verdict: &RunReport, today: &str) -> CheckReport {
        CheckReport {
            rules: verdict.rules.iter().map(RuleLine::from).collect(),
            changes: self.changes,
            plan: self.plan,
            causes: causes(&verdict.findings),
            findings: verdict.findings.clone(),
            policy: PolicyReport::of(self.policy, verdict),
            waves: self.waves,
            today: today.to_owned(),
            working_directory: std::env::current_dir().unwrap_or_default(),
            ..CheckReport::new(&self.app, &self.cluster, verdict.outcome)
        }
    }
}
