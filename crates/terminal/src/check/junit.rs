//! A check as JUnit XML, which every CI server reads: a suite is a rule, a case a cause. Refusals are
//! failures and missing facts errors; waived findings, skipped rules and disabled rules are skipped. There is always a
//! case, since a file without tests would look like a success.

use std::collections::BTreeMap;

use pushback_deploy::check::report::CheckReport;
use pushback_events::RuleLine;
use pushback_objects::Severity;
use pushback_preflight::judge::RuleOutcome;
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};

use super::grouped::{cards, left_out};
use super::source_path::source_path;
use crate::escape::{terminal_safe, terminal_safe_lines};
use crate::finding_card::{CardStyle, FindingCard};
use crate::policy_text::policy_lines;

/// The report as JUnit XML.
#[must_use]
pub fn text(report: &CheckReport) -> String {
    let mut document = Report::new("pushback");
    let cards = cards(report);
    for rule in &report.rules {
        document.add_test_suite(suite(rule, &cards, report));
    }
    for off in &report.policy.rules_off {
        document.add_test_suite(not_run(&off.name, &format!("switched off: {}", off.reason)));
    }
    let unchecked = policy_lines(report.policy.left_out.as_ref(), &report.policy.broad_waivers);
    if !unchecked.is_empty() {
        document.add_test_suite(not_checked(&unchecked));
    }
    if document.test_suites.is_empty() {
        document.add_test_suite(not_run("preflight", "no preflight rule ran"));
    }
    // Written to memory, with text that XML can represent: this cannot fail.
    document.to_string().unwrap_or_default()
}

/// A suite with one skipped case.
fn not_run(name: &str, reason: &str) -> TestSuite {
    let name = terminal_safe(name).into_owned();
    let mut status = TestCaseStatus::skipped();
    status.set_message(terminal_safe(reason).into_owned()).set_type("off");
    let mut case = TestCase::new(name.clone(), status);
    case.set_classname(name.clone());
    let mut suite = TestSuite::new(name);
    suite.add_property(("outcome", "off"));
    suite.add_test_case(case);
    suite
}

/// A suite with a skipped case for each line about what the policy leaves unchecked.
fn not_checked(lines: &[String]) -> TestSuite {
    let mut suite = TestSuite::new("unchecked");
    suite.add_property(("outcome", "off"));
    for (index, line) in lines.iter().enumerate() {
        let mut status = TestCaseStatus::skipped();
        status.set_message(terminal_safe(line).into_owned()).set_type("unchecked");
        let mut case = TestCase::new(format!("unchecked {}", index + 1), status);
        case.set_classname("unchecked");
        suite.add_test_case(case);
    }
    suite
}

fn suite(rule: &RuleLine, cards: &[FindingCard<'_>], report: &CheckReport) -> TestSuite {
    let name = terminal_safe(&rule.name).into_owned();
    let mut suite = TestSuite::new(name.clone());
    suite.add_property(("outcome", rule.outcome.as_str()));
    let of_rule = || cards.iter().filter(|card| card.finding.rule == rule.name);
    if let Some(left_out) = left_out(of_rule(), CardStyle::REPORT.places) {
        // At the top of the suite, and where servers show it.
        suite.add_property(("leftOut", left_out.as_str()));
        suite.set_system_out(left_out);
    }
    let mut used = BTreeMap::new();
    for card in of_rule() {
        let mut case = case(card, report);
        // Servers identify a case by its names, so they must be unique.
        let times: &mut usize = used.entry(case.name.to_string()).or_default();
        *times += 1;
        if *times > 1 {
            case.name = format!("{} ({times})", case.name.as_str()).into();
        }
        suite.add_test_case(case);
    }
    for reason in &rule.reasons {
        let reason = terminal_safe_lines(reason).into_owned();
        let (mut status, kind) = match rule.outcome {
            RuleOutcome::Skipped => (TestCaseStatus::skipped(), "skipped"),
            // A warning refuses nothing.
            RuleOutcome::Warned => (TestCaseStatus::skipped(), "unable"),
            _ => (TestCaseStatus::non_success(NonSuccessKind::Error), "unable"),
        };
        status.set_message(reason.clone()).set_type(kind);
        let mut case = TestCase::new(if kind == "skipped" { name.clone() } else { reason }, status);
        case.set_classname(name.clone());
        suite.add_test_case(case);
    }
    if suite.test_cases.is_empty() {
        let mut case = TestCase::new(name.clone(), TestCaseStatus::success());
        case.set_classname(name);
        suite.add_test_case(case);
    }
    suite
}

fn case(card: &FindingCard<'_>, report: &CheckReport) -> TestCase {
    let finding = card.finding;
    let description = terminal_safe_lines(&card.plain_text()).into_owned();
    let mut status = match (&finding.waived, finding.severity) {
        (Some(_), _) => TestCaseStatus::skipped(),
        (None, Severity::Error) => TestCaseStatus::non_success(NonSuccessKind::Failure),
        (None, Severity::Warning | Severity::Info) => TestCaseStatus::success(),
    };
    let shown_otherwise = matches!(status, TestCaseStatus::Success { .. });
    let verdict = serde_json::to_value(finding.verdict).unwrap_or_default();
    let kind = if finding.waived.is_some() { "waived" } else { verdict.as_str().unwrap_or_default() };
    status.set_type(kind).set_message(&*terminal_safe_lines(&card.change)).set_description(description.clone());
    // The name must stay when a cause gains a place.
    let about: Vec<&str> = if card.others.is_empty() {
        [&card.object, &finding.path]
            .into_iter()
            .flatten()
            .map(String::as_str)
            .filter(|part| !part.is_empty())
            .collect()
    } else {
        vec![&card.change]
    };
    let check = if finding.check.is_empty() { &finding.rule } else { &finding.check };
    let name = format!("{check} {}", about.join(" "));
    let mut case = TestCase::new(terminal_safe(name.trim_end()).into_owned(), status);
    case.set_classname(terminal_safe(&finding.rule).into_owned());
    if let Some(position) = card.position
        && let Some(path) = source_path(&position.file, &report.working_directory)
    {
        case.extra.insert("file".into(), terminal_safe(&path).into_owned().into());
        case.extra.insert("line".into(), position.line.to_string().into());
    }
    if shown_otherwise {
        // JUnit has no status for a warning.
        case.set_system_out(format!("{}: {description}", card.weight));
    }
    case
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use proptest::prelude::*;
    use pushback_preflight::loosened::RuleOff;

    use super::*;
    use crate::fixture::{check_report, hostile_report};

    #[test]
    fn a_suite_is_a_rule_and_a_case_a_finding() {
        assert_snapshot!(text(&check_report()), @r#"
        <?xml version="1.0" encoding="UTF-8"?>
        <testsuites name="pushback" tests="6" skipped="2" failures="1" errors="1">
            <testsuite name="CRDUpgradeSafety" tests="3" skipped="1" errors="0" failures="1">
                <properties>
                    <property name="outcome" value="failed"/>
                </properties>
                <testcase name="enum CustomResourceDefinition foos.ex.com, version v1 spec.f" classname="CRDUpgradeSafety" file="crds/new.yaml" line="41">
                    <failure message="value &quot;B&quot; is no longer allowed" type="breaking">CustomResourceDefinition foos.ex.com, version v1, spec.f: value &quot;B&quot; is no longer allowed
        CustomResourceDefinition foos.ex.com failed upgrade safety validation. &quot;ChangeValidator&quot; validation failed: value &quot;B&quot; is no longer allowed
        at: ./crds/new.yaml:41:15
        old: [&quot;A&quot;,&quot;B&quot;]
        new: [&quot;A&quot;]
        effect: rejected on create
        fix: keep the value, or serve a new version
        fingerprint: 9c1185a5deadbeef
        witness:
          apiVersion: ex.com/v1
          kind: Foo
          metadata:
            name: witness
          spec:
            f: B
        </failure>
                </testcase>
                <testcase name="versionDeprecated CustomResourceDefinition foos.ex.com" classname="CRDUpgradeSafety">
                    <system-out>warning: CustomResourceDefinition foos.ex.com: version v1 becomes deprecated
        fingerprint: fedcba9876543210
        </system-out>
                </testcase>
                <testcase name="scope CustomResourceDefinition foos.ex.com" classname="CRDUpgradeSafety">
                    <skipped message="the scope changes" type="waived">CustomResourceDefinition foos.ex.com: the scope changes
        waived: nobody uses it, checked on 2026-11-02
        </skipped>
                </testcase>
            </testsuite>
            <testsuite name="PermissionValidation" tests="1" skipped="1" errors="0" failures="0">
                <properties>
                    <property name="outcome" value="skipped"/>
                </properties>
                <testcase name="PermissionValidation" classname="PermissionValidation">
                    <skipped message="a directory has no permissions" type="skipped"/>
                </testcase>
            </testsuite>
            <testsuite name="FieldConflicts" tests="1" skipped="0" errors="1" failures="0">
                <properties>
                    <property name="outcome" value="unable"/>
                </properties>
                <testcase name="failed to read Deployment shop/web: forbidden" classname="FieldConflicts">
                    <error message="failed to read Deployment shop/web: forbidden" type="unable"/>
                </testcase>
            </testsuite>
            <testsuite name="DestructiveChange" tests="1" skipped="0" errors="0" failures="0">
                <properties>
                    <property name="outcome" value="passed"/>
                </properties>
                <testcase name="DestructiveChange" classname="DestructiveChange"/>
            </testsuite>
        </testsuites>
        "#);
    }

    #[test]
    fn rules_that_are_off_are_cases_that_were_skipped() {
        let mut report = check_report();
        (report.rules, report.findings) = (Vec::new(), Vec::new());
        assert!(text(&report).contains("tests=\"1\" skipped=\"1\""), "{}", text(&report));
        let (name, reason) = ("CRDUpgradeSafety".to_owned(), "--preflight=none".to_owned());
        report.policy.rules_off.push(RuleOff { name, reason });
        let read = Report::deserialize_from_str(&text(&report)).expect("junit");
        let case = &read.test_suites[0].test_cases[0];
        assert_eq!((read.tests, case.name.as_str()), (1, "CRDUpgradeSafety"));
        assert!(matches!(&case.status, TestCaseStatus::Skipped { message: Some(message), .. }
            if message.as_str() == "switched off: --preflight=none"));
    }

    #[test]
    fn places_that_nobody_names_are_counted_at_the_top() {
        let mut report = check_report();
        assert!(!text(&report).contains("leftOut"), "nothing is left out");
        let at = |index: usize| {
            let mut finding = report.findings[0].clone().path(format!("spec.a{index}.f"));
            finding.fingerprint = format!("{index:016}");
            finding
        };
        report.findings = (0..150).map(at).collect();
        report.causes = pushback_preflight::causes(&report.findings);
        assert_eq!(report.causes.len(), 1);
        let said = |places: usize, named: usize| {
            format!("left out here: {places} places of 1 cause, of which {named} are named at most")
        };
        let junit = text(&report);
        assert!(junit.contains("<property name=\"leftOut\"") && junit.contains(&said(139, 10)), "{junit}");
        let sarif = super::super::sarif::text(&report);
        let first = sarif.split("toolExecutionNotifications").nth(1).unwrap_or_default();
        assert!(first.find(&said(49, 100)) < first.find("\"level\": \"error\""), "{first}");
        assert!(sarif.contains(&said(49, 100)), "{sarif}");
    }

    #[test]
    fn findings_that_differ_in_their_values_alone_are_two_cases() {
        let mut report = check_report();
        report.findings = vec![report.findings[0].clone(), report.findings[0].clone()];
        report.findings[1].new = None;
        let read = Report::deserialize_from_str(&text(&report)).expect("junit");
        let names: Vec<&str> = read.test_suites[0].test_cases.iter().map(|case| case.name.as_str()).collect();
        assert_eq!(names[1], format!("{} (2)", names[0]));
    }

    #[test]
    fn every_character_becomes_one_that_xml_allows() {
        let all: String = ('\0'..=char::MAX).collect();
        let allowed =
            |c: char| matches!(c, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..);
        let text = text(&hostile_report(&all));
        let refused: Vec<char> = text.chars().filter(|c| !allowed(*c)).collect();
        assert_eq!(refused, Vec::<char>::new());
        Report::deserialize_from_str(&text).expect("junit");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn hostile_text_reads_back(evil in any::<String>()) {
            let report = hostile_report(&evil);
            let text = text(&report);
            prop_assert!(!text.chars().any(|c| c != '\n' && crate::escape::is_hidden(c)));
            let read = Report::deserialize_from_str(&text).expect("junit");
            prop_assert_eq!(read.test_suites.len(), report.rules.len());
            let TestCaseStatus::NonSuccess { message, .. } = &read.test_suites[0].test_cases[0].status else {
                return Err(TestCaseError::fail("no failure"));
            };
            let message = message.as_ref().expect("a message").as_str();
            // XML normalises whitespace in attributes.
            let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
            prop_assert_eq!(words(message), words(&terminal_safe_lines(&evil)));
        }
    }
}
