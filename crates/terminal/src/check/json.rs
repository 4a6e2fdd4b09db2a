//! A check's report as JSON, for people and programs.

use pushback_deploy::check::report::CheckReport;

use crate::escape::terminal_safe_json;

/// The report as JSON with a final line break; safe to show on a terminal.
#[must_use]
pub fn text(report: &CheckReport) -> String {
    // Plain data with string keys: serialisation cannot fail.
    terminal_safe_json(&serde_json::to_string_pretty(report).unwrap_or_default()) + "\n"
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use pushback_objects::{Finding, ObjectRef, Verdict};
    use pushback_preflight::{Outcome, RuleOutcome};

    use pushback_events::{Counts, RuleLine};
    use serde_json::Value;

    use super::*;
    use crate::escape::is_hidden;
    use crate::fixture::{every_character, report_quoting};

    fn report() -> CheckReport {
        let mut report = CheckReport::new("shop", "dir:./live", Outcome::Refused);
        report.tool.version = "1.2.3";
        report.changes = Counts { create: 1, noop: 18, ..Counts::default() };
        report.rules.push(RuleLine {
            summary: None,
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
        assert_snapshot!(text(&report()), @r#"
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
      "causes": [],
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

    #[test]
    fn every_character_reads_back() {
        for part in every_character(1 << 16) {
            let text = text(&report_quoting(&part));
            assert!(!text.chars().any(|c| c != '\n' && is_hidden(c)));
            let read: Value = serde_json::from_str(&text).expect("JSON");
            for field in ["message", "old"] {
                assert_eq!(read["findings"][0][field].as_str(), Some(part.as_str()), "{field}");
            }
        }
    }
}
