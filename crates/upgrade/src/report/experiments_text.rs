//! A run of experiments as text: a table for people, Markdown for a pull request, JUnit XML for CI servers.

use std::fmt::Write as _;

use pushback_objects::text::counted;
use pushback_terminal::cause_text::judged_text;
use pushback_terminal::escape::{terminal_safe, terminal_safe_lines};
use pushback_terminal::finding_card::{CardStyle, FindingCard};
use pushback_terminal::live::options::WIDTH;
use pushback_terminal::markdown::{self, code, prose};
use pushback_terminal::table::Table;
use pushback_terminal::theme::Look;
use pushback_terminal::theme::Theme;
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};
use serde_json::Value;

use super::formats::{ReleaseReport, json};
use crate::outcome::{Outcome, RunReport, Verdict};
use crate::steady::CheckResult;

/// Most characters of a cell or sentence in Markdown.
const CELL: usize = 500;

/// A format of the additional reports of a run of experiments.
#[derive(Debug)]
pub struct RunFormat {
    /// Name of the format in `--report`.
    pub word: &'static str,
    /// File name in the report folder.
    pub file: &'static str,
    /// Renders a report; the error says why it cannot be represented.
    pub render: fn(&RunReport) -> Result<String, String>,
}

/// Every format of run reports.
pub static RUN_FORMATS: [RunFormat; 2] = [
    RunFormat { word: "json", file: "results.json", render: |report| json(report) },
    RunFormat { word: "junit", file: "suite-results.xml", render: |report| Ok(junit(report)) },
];

/// A table for people: a row per experiment, with its deviations below.
#[must_use]
pub fn table(report: &RunReport, columns: Option<usize>) -> String {
    let mut table = Table::new(&["EXPERIMENT", "INJECTION", "VERDICT", "REASON"]);
    for outcome in &report.experiments {
        table.row(&[&outcome.name, &outcome.injection, outcome.verdict.as_str(), &outcome.reason]);
    }
    let mut text = table.text_within(columns);
    for outcome in &report.experiments {
        let details = details(outcome);
        if !details.is_empty() {
            let _ = write!(text, "\n{}\n", terminal_safe(&outcome.name));
            details.iter().for_each(|line| {
                let _ = writeln!(text, "  {}", terminal_safe(line));
            });
        }
    }
    if let Some(upgrade) = report.unmade_upgrade() {
        let _ = writeln!(text, "\nupgrade: it did not happen: {}", terminal_safe(&upgrade.reason));
        let judged = upgrade.findings.iter().map(|finding| (finding.clone(), None)).collect();
        text += &judged_text(judged, Look { theme: Theme::plain(), width: WIDTH, verbose: false });
    } else if let Some(upgrade) = &report.upgrade {
        let _ = write!(text, "\nupgrade (apply ended with {})\n", upgrade.exit_code);
        for check in &upgrade.checks {
            let _ = writeln!(text, "  {}", terminal_safe(&looked(check)));
        }
    }
    if !report.steps.is_empty() {
        let mut steps = Table::new(&["STEP", "EXPERIMENT", "ACTION", "OBJECT", "WHAT"]);
        for (number, step) in (1..).zip(&report.steps) {
            let number = number.to_string();
            steps.row(&[number.as_str(), &step.experiment, step.action, &step.object, &step.detail]);
        }
        let _ = write!(text, "\n{}", steps.text());
    }
    let _ = writeln!(text, "\n{}", summary(report));
    text
}

/// Markdown for a pull request comment.
#[must_use]
pub fn markdown(report: &RunReport) -> String {
    let cell = |text: &str| markdown::cell(&prose(text, CELL));
    let mut text = format!("### Upgrade experiments: {}\n\n", summary(report));
    text += "| experiment | injection | verdict | reason |\n|---|---|---|---|\n";
    for outcome in &report.experiments {
        let cells = [&outcome.name, &outcome.injection, outcome.verdict.as_str(), &outcome.reason].map(cell);
        let _ = writeln!(text, "| {} |", cells.join(" | "));
    }
    if let Some(upgrade) = report.unmade_upgrade() {
        let _ = writeln!(text, "\n**The upgrade did not happen**: {}\n", prose(&upgrade.reason, CELL));
        for card in upgrade.findings.iter().map(|finding| FindingCard::new(finding, CardStyle::REPORT)) {
            let _ = writeln!(text, "- {}: {}", code(&card.rule, CELL), prose(&card.title(), CELL));
        }
    }
    text
}

/// JUnit XML for CI servers: a case is an experiment. Anything but resilient is a failure, no conclusion or no run is
/// skipped, and a failed revert is an error.
#[must_use]
pub fn junit(report: &RunReport) -> String {
    let mut document = Report::new("pushback");
    let mut suite = TestSuite::new("upgrade-experiments");
    for outcome in &report.experiments {
        let mut status = match outcome.verdict {
            Verdict::Resilient => TestCaseStatus::success(),
            Verdict::Skipped | Verdict::Inconclusive => TestCaseStatus::skipped(),
            Verdict::Degraded | Verdict::Failed => {
                let kind = if outcome.is_restored() { NonSuccessKind::Failure } else { NonSuccessKind::Error };
                TestCaseStatus::non_success(kind)
            }
        };
        if outcome.verdict != Verdict::Resilient {
            status.set_type(outcome.verdict.as_str()).set_message(terminal_safe_lines(&outcome.reason).into_owned());
            status.set_description(terminal_safe_lines(&details(outcome).join("\n")).into_owned());
        }
        let mut case = TestCase::new(terminal_safe(&outcome.name).into_owned(), status);
        case.set_classname(format!("experiment.{}", outcome.injection));
        if let Some(seconds) = outcome.recovery_seconds {
            case.set_time(std::time::Duration::from_secs_f64(seconds));
        }
        suite.add_test_case(case);
    }
    if let Some(upgrade) = report.unmade_upgrade() {
        let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
        let findings: Vec<String> =
            upgrade.findings.iter().map(|finding| FindingCard::new(finding, CardStyle::REPORT).plain_text()).collect();
        status.set_type("upgrade").set_message(terminal_safe_lines(&upgrade.reason).into_owned());
        status.set_description(terminal_safe_lines(&findings.join("\n")).into_owned());
        let mut case = TestCase::new("the upgrade is made", status);
        case.set_classname("upgrade");
        suite.add_test_case(case);
    }
    for check in report.upgrade.iter().flat_map(|upgrade| &upgrade.checks) {
        let mut status =
            if check.passed { TestCaseStatus::success() } else { TestCaseStatus::non_success(NonSuccessKind::Failure) };
        if !check.passed {
            status.set_type("upgrade").set_message(terminal_safe_lines(&check.detail).into_owned());
        }
        let mut case = TestCase::new(terminal_safe(&check.check).into_owned(), status);
        case.set_classname("upgrade");
        suite.add_test_case(case);
    }
    document.add_test_suite(suite);
    // Written to memory, with text that XML can represent: this cannot fail.
    document.to_string().unwrap_or_default()
}

/// Details of an experiment besides its verdict.
fn details(outcome: &Outcome) -> Vec<String> {
    let mut lines: Vec<String> = outcome.changes.iter().map(|change| format!("change: {change}")).collect();
    let phases = [("before", &outcome.before), ("under the fault", &outcome.under_fault), ("after", &outcome.after)];
    for (phase, checks) in phases {
        lines.extend(checks.iter().filter(|check| !check.passed).map(|check| format!("{phase}: {}", looked(check))));
    }
    let before = outcome.admissions_before.iter().map(|admission| ("before", admission));
    for (phase, admission) in before.chain(outcome.admissions.iter().map(|admission| ("under the fault", admission))) {
        let webhook = if admission.webhook.is_empty() { "outside of its scope" } else { &admission.webhook };
        let (request, answer, seconds) = (&admission.request, admission.answer, admission.seconds);
        lines.push(format!("admission {phase}, {webhook}: {request} {answer} in {seconds:.3} s"));
    }
    if let Some(deletion) = &outcome.deletion {
        let end = match (deletion.went_on, deletion.recreated) {
            (false, _) => "it did not go on",
            (true, false) => "it went on, and the object was gone",
            (true, true) => "it went on, and the owner made the object again",
        };
        lines.push(format!("deletion: it was held; once the finalizer was gone {end}"));
    }
    let deviations = outcome.deviations.iter().map(|deviation| format!("{}: {}", deviation.name, deviation.detail));
    lines.extend(deviations.chain(outcome.notes.iter().cloned()));
    lines
}

fn looked(check: &CheckResult) -> String {
    if check.passed { format!("{}: yes", check.check) } else { format!("{}: no: {}", check.check, check.detail) }
}

fn summary(report: &RunReport) -> String {
    let verdicts = [Verdict::Resilient, Verdict::Degraded, Verdict::Failed, Verdict::Inconclusive, Verdict::Skipped];
    let count = |verdict| report.experiments.iter().filter(|outcome| outcome.verdict == verdict).count();
    let counts = verdicts.map(|verdict| (count(verdict), verdict.as_str().to_lowercase()));
    let words: Vec<String> =
        counts.iter().filter(|(count, _)| *count > 0).map(|(count, word)| format!("{count} {word}")).collect();
    let words = if words.is_empty() { "no experiment".to_owned() } else { words.join(", ") };
    match (report.failed_checks().count(), &report.upgrade) {
        (failed, Some(upgrade)) if failed > 0 => {
            format!("{words}; the upgrade failed {failed} of {}", counted(upgrade.checks.len(), "check"))
        }
        _ => words,
    }
}

impl ReleaseReport for RunReport {
    fn table(&self, columns: Option<usize>) -> String {
        table(self, columns)
    }

    fn markdown(&self) -> String {
        markdown(self)
    }

    fn data(&self) -> serde_json::Result<Value> {
        serde_json::to_value(self)
    }
}

#[cfg(test)]
mod tests {
    use pushback_preflight::experiment::Experiment;

    use super::*;
    use crate::outcome::RunStep;
    use crate::run::blank;

    fn report() -> RunReport {
        let named = |name: &str, verdict, reason: &str| Outcome {
            name: name.to_owned(),
            verdict,
            reason: reason.to_owned(),
            ..blank(&Experiment::default())
        };
        let mut degraded = named("drift", Verdict::Degraded, "nobody undid it in time");
        degraded.deviate("changed_by_another", "data.a of ConfigMap shop/b: changed since by somebody else");
        let mut stuck = named("stuck", Verdict::Failed, "it could not be taken back");
        stuck.revert_error = "forbidden".to_owned();
        RunReport {
            schema_version: 1,
            run: "r".to_owned(),
            cluster: "test".to_owned(),
            outcome: "Failed".to_owned(),
            upgrade: None,
            experiments: vec![
                named("kill", Verdict::Resilient, "as before by itself after 2 s"),
                degraded,
                stuck,
                named("later", Verdict::Skipped, "needs upgrade \u{1b}[31m"),
            ],
            steps: vec![RunStep::new("kill", "delete", "Pod shop/web\u{1b}[31m", "at once")],
        }
    }

    #[test]
    fn every_verdict_has_its_kind_of_case() {
        let text = junit(&report());
        let read = Report::deserialize_from_str(&text).expect("junit");
        let suite = &read.test_suites[0];
        assert_eq!((suite.tests, suite.errors, suite.failures), (4, 1, 1), "{text}");
    }

    #[test]
    fn the_table_counts_says_why_and_acts_on_no_terminal() {
        let text = table(&report(), None);
        assert!(text.ends_with("\n1 resilient, 1 degraded, 1 failed, 1 skipped\n"), "{text}");
        assert!(text.contains("  changed_by_another: data.a of ConfigMap shop/b"), "{text}");
        assert!(!text.contains('\u{1b}') && !markdown(&report()).contains('\u{1b}'));
    }
}
