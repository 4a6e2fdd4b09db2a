//! A check as workflow commands of GitHub Actions: the runner turns each line into an annotation. It shows at most ten
//! per level and step, so the first line counts the rest.

use pushback_deploy::check::report::CheckReport;
use pushback_objects::Severity;
use pushback_objects::text::counted;
use pushback_preflight::judge::RuleOutcome;

use super::grouped::cards;
use super::source_path::source_path;
use crate::escape::terminal_safe_lines;
use crate::finding_card::FindingCard;

/// Annotations per level that GitHub shows.
const SHOWN: usize = 10;

/// One annotation.
struct Annotation {
    level: &'static str,
    properties: Vec<(&'static str, String)>,
    message: String,
}

/// The report as workflow commands.
#[must_use]
pub fn text(report: &CheckReport) -> String {
    let unable = report.rules.iter().filter(|rule| rule.outcome != RuleOutcome::Skipped).flat_map(|rule| {
        let level = if rule.outcome == RuleOutcome::Warned { "warning" } else { "error" };
        rule.reasons.iter().map(move |reason| Annotation {
            level,
            properties: vec![("title", rule.name.clone())],
            message: format!("the facts could not be had: {reason}"),
        })
    });
    let cards = cards(report);
    let findings = cards.iter().map(|card| annotation(card, report));
    let all: Vec<Annotation> = unable.chain(findings).collect();
    let mut text = String::new();
    let mut left_out = Vec::new();
    for level in ["error", "warning", "notice"] {
        let of_level: Vec<&Annotation> = all.iter().filter(|annotation| annotation.level == level).collect();
        // The line about omitted annotations is a notice itself.
        let shown = if level == "notice" { SHOWN - 1 } else { SHOWN };
        of_level.iter().take(shown).for_each(|annotation| text += &annotation.line());
        if of_level.len() > shown {
            left_out.push(counted(of_level.len() - shown, level));
        }
    }
    if !left_out.is_empty() {
        let message = format!("left out here: {}; the other reports have them all", left_out.join(", "));
        // Above the others, so that nobody takes ten for all.
        text =
            Annotation { level: "notice", properties: vec![("title", "pushback".to_owned())], message }.line() + &text;
    }
    text
}

fn annotation(card: &FindingCard<'_>, report: &CheckReport) -> Annotation {
    let finding = card.finding;
    let level = match (&finding.waived, finding.severity) {
        (Some(_), _) | (None, Severity::Info) => "notice",
        (None, Severity::Error) => "error",
        (None, Severity::Warning) => "warning",
    };
    let mut properties = Vec::new();
    if let Some((position, path)) =
        card.position.and_then(|position| Some((position, source_path(&position.file, &report.working_directory)?)))
    {
        properties.push(("file", path));
        if position.line > 0 {
            properties.push(("line", position.line.to_string()));
        }
        if position.column > 0 {
            properties.push(("col", position.column.to_string()));
        }
    }
    properties.push(("title", card.rule.clone()));
    Annotation { level, properties, message: card.plain_text().trim_end().to_owned() }
}

impl Annotation {
    fn line(&self) -> String {
        let properties: Vec<String> =
            self.properties.iter().map(|(name, value)| format!("{name}={}", escape_property(value))).collect();
        format!("::{} {}::{}\n", self.level, properties.join(","), escape_data(&self.message))
    }
}

fn escape_data(text: &str) -> String {
    terminal_safe_lines(text).replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn escape_property(text: &str) -> String {
    escape_data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use proptest::prelude::*;
    use pushback_preflight::causes;

    use super::*;
    use crate::fixture::{check_report, every_character, hostile_report};

    /// Parses a line as the runner does: level, properties, message.
    fn read(line: &str) -> (String, Vec<(String, String)>, String) {
        let unescape = |text: &str| {
            text.replace("%0D", "\r").replace("%0A", "\n").replace("%3A", ":").replace("%2C", ",").replace("%25", "%")
        };
        let (head, message) = line.strip_prefix("::").expect("a command").split_once("::").expect("two parts");
        let (level, properties) = head.split_once(' ').expect("properties");
        let properties = properties.split(',').map(|property| {
            let (name, value) = property.split_once('=').expect("a property");
            (name.to_owned(), unescape(value))
        });
        (level.to_owned(), properties.collect(), unescape(message))
    }

    #[test]
    fn each_finding_is_a_command_with_its_place() {
        assert_snapshot!(text(&check_report()), @r#"
        ::error title=FieldConflicts::the facts could not be had: failed to read Deployment shop/web: forbidden
        ::error file=crds/new.yaml,line=41,col=15,title=CRDUpgradeSafety/enum::CustomResourceDefinition foos.ex.com, version v1, spec.f: value "B" is no longer allowed%0ACustomResourceDefinition foos.ex.com failed upgrade safety validation. "ChangeValidator" validation failed: value "B" is no longer allowed%0Aat: ./crds/new.yaml:41:15%0Aold: ["A","B"]%0Anew: ["A"]%0Aeffect: rejected on create%0Afix: keep the value, or serve a new version%0Afingerprint: 9c1185a5deadbeef%0Awitness:%0A  apiVersion: ex.com/v1%0A  kind: Foo%0A  metadata:%0A    name: witness%0A  spec:%0A    f: B
        ::warning title=CRDUpgradeSafety/versionDeprecated::CustomResourceDefinition foos.ex.com: version v1 becomes deprecated%0Afingerprint: fedcba9876543210
        ::notice title=CRDUpgradeSafety/scope::CustomResourceDefinition foos.ex.com: the scope changes%0Awaived: nobody uses it, checked on 2026-11-02
        "#);
    }

    #[test]
    fn of_each_level_ten_are_shown_and_the_others_counted() {
        let mut report = check_report();
        let error = report.findings[0].clone();
        report.findings.clear();
        for (severity, count) in [(Severity::Error, 12), (Severity::Info, 13)] {
            let numbered = |index: usize| error.clone().path(format!("spec.{severity:?}{index}"));
            report.findings.extend((0..count).map(numbered));
            report.findings.iter_mut().rev().take(count).for_each(|finding| finding.severity = severity);
        }
        report.causes = causes(&report.findings);
        report.rules.clear();
        let text = text(&report);
        let count = |level: &str| text.lines().filter(|line| line.starts_with(&format!("::{level} "))).count();
        assert_eq!((count("error"), count("warning"), count("notice")), (10, 0, 10));
        assert_snapshot!(text.lines().next().expect("a line"), @"::notice title=pushback::left out here: 2 errors, 4 notices; the other reports have them all");
    }

    #[test]
    fn every_character_stays_in_one_command_and_reads_back() {
        for part in every_character(2048) {
            let text = text(&hostile_report(&part));
            assert_eq!(text.lines().count(), 2, "{part:?}");
            let (_, _, message) = read(text.lines().nth(1).expect("the finding"));
            assert!(message.contains(terminal_safe_lines(&part).trim_end()), "{part:?}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn hostile_text_stays_one_command_and_reads_back(evil in any::<String>()) {
            let report = hostile_report(&evil);
            let text = text(&report);
            prop_assert_eq!(text.lines().count(), report.findings.len() + 1);
            prop_assert!(!text.chars().any(|c| c != '\n' && crate::escape::is_hidden(c)));
            let (level, properties, message) = read(text.lines().nth(1).expect("the finding"));
            prop_assert_eq!(level, "error");
            prop_assert_eq!(&properties.last().expect("a title").0, "title");
            prop_assert!(message.contains(terminal_safe_lines(&evil).trim_end()), "{message:?}");
        }
    }
}
