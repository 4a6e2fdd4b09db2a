//! What a check came to, and its JSON form, which is stable: the data that every report is made from.

use std::path::PathBuf;

use pushback_preflight::judge::Outcome;
use pushback_preflight::policy::{Loosened, RuleOff};
use pushback_preflight::{Finding, RunReport};
use serde::Serialize;

use super::json::{SCHEMA_VERSION, terminal_safe_json};
use crate::event::{Counts, RuleLine};

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

    /// The report as JSON for people and programs, with a line break at the end; safe to show on a terminal.
    #[must_use]
    pub fn to_json(&self) -> String {
        // Plain data with text keys: it always has a JSON form.
        terminal_safe_json(&serde_json::to_string_pretty(self).unwrap_or_default()) + "\n"
    }
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use pushback_preflight::{ObjectRef, RuleOutcome, Verdict};

    use super::*;

    fn report() -> CheckReport {
        let mut report = CheckReport::new("shop", "dir:./live", Outcome::Refused);
        report.tool.version = "1.2.3";
        report.changes = Counts { create: 1, noop: 18, ..Counts::default() };
        report.rules.push(RuleLine {
            name: "CRDUpgradeSafety".to_owned(),
            outcome: RuleOutcome::Failed,
            breaking: 1,
            unknown: 0,
            changes: 2,
            waived: 0,
            reasons: Vec::new(),
        });
        report.findings.push(Finding::new(
            "CRDUpgradeSafety",
            "scope",
            Verdict::Breaking,
            ObjectRef::default(),
            "scope changed\u{202e}",
        ));
        report
    }

    #[test]
    fn the_report_has_its_documented_form() {
        assert_snapshot!(report().to_json(), @r#"
    {
      "schemaVersion": 1,
      "tool": {
        "name": "pushback",
        "version": "1.2.3"
      },
      "app": "shop",
      "cluster": "dir:./live",
      "outcome": "refused",
      "rules": [
        {
          "name": "CRDUpgradeSafety",
          "outcome": "failed",
          "breaking": 1,
          "unknown": 0,
          "changes": 2,
          "waived": 0
        }
      ],
      "changes": {
        "create": 1,
        "update": 0,
        "replace": 0,
        "delete": 0,
        "noop": 18,
        "exists": 0
      },
      "findings": [
        {
          "rule": "CRDUpgradeSafety",
          "check": "scope",
          "verdict": "breaking",
          "severity": "info",
          "object": {
            "group": "",
            "version": "",
            "kind": "",
            "namespace": "",
            "name": ""
          },
          "message": "scope changed\u202e",
          "fingerprint": ""
        }
      ],
      "policy": {
        "rulesOff": [],
        "loosened": []
      }
    }
    "#);
    }
}
