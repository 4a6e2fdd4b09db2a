//! What a check came to: the data that every report of it is made from. Its JSON form is stable.

use std::path::PathBuf;

use pushback_preflight::judge::Outcome;
use pushback_preflight::loosened::{Loosened, RuleOff};
use pushback_preflight::{Finding, RunReport};
use serde::Serialize;

use crate::event::{Counts, RuleLine, SCHEMA_VERSION};

/// What a check came to.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CheckReport {
    /// Version of this form.
    pub schema_version: u32,
    /// Who wrote it.
    pub tool: Tool,
    /// App name.
    pub app: String,
    /// The cluster, as people know it.
    pub cluster: String,
    /// What all rules came to.
    pub outcome: Outcome,
    /// Each rule, in registry order.
    pub rules: Vec<RuleLine>,
    /// Numbers of changes.
    pub changes: Counts,
    /// Everything found, in the order of the output.
    pub findings: Vec<Finding>,
    /// By which policy.
    pub policy: PolicyReport,
    /// The working directory: paths of the input are relative to it.
    #[serde(skip)]
    pub working_directory: PathBuf,
}

/// By which policy a check was made.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PolicyReport {
    /// Where it comes from; left out where the manifests decide.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Rules that would run, had nobody switched them off.
    pub rules_off: Vec<RuleOff>,
    /// In what the manifests ask for less, followed or not.
    pub loosened: Vec<Loosened>,
}

impl PolicyReport {
    /// That of a run.
    #[must_use]
    pub fn of(source: Option<String>, report: &RunReport) -> Self {
        Self { source, rules_off: report.off.clone(), loosened: report.loosened.clone() }
    }
}

/// The program that wrote a report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Tool {
    /// Its name.
    pub name: &'static str,
    /// Its version.
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
    /// A report of this program without rules and findings.
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
            findings: Vec::new(),
            policy: PolicyReport::default(),
            working_directory: PathBuf::new(),
        }
    }
}
