//! A check as Markdown for a pull request comment: a table of the rules, the causes by object, witnesses
//! collapsed. Input is shown as text: it creates no markup, link or mention.

use pushback_deploy::check::report::CheckReport;
use pushback_events::RuleLine;
use pushback_objects::text::counted;
use pushback_objects::{Finding, Severity};
use pushback_preflight::Cause;
use pushback_preflight::judge::RuleOutcome;
use serde_json::Value;

use super::grouped::cards;
use super::markdown_plan;
use crate::cause_text;
use crate::escape::terminal_safe_lines;
use crate::finding_card::{CardStyle, FindingCard, witness_yaml};
use crate::finding_text::no_rule_ran;
use crate::markdown::{LIMIT, cell, code, prose};
use crate::policy_text::policy_lines;
use crate::witness_excerpt::one_line;
use crate::words::{counts_to_do, shorten};

/// Bytes reserved for the note about omitted findings.
const NOTICE: usize = 400;
/// Most causes that refuse nothing and are described one by one.
const QUIET: usize = 10;
/// Most characters of a message or value.
const MESSAGE: usize = 1_000;
const VALUE: usize = 200;
/// Most lines of a witness.
const WITNESS_LINES: usize = 60;
const WITNESS_WIDTH: usize = 300;

/// The report as Markdown.
#[must_use]
pub fn text(report: &CheckReport) -> String {
    let mut text = head(report);
    let mut objects: Vec<(String, String)> = Vec::new();
    let mut size = text.len() + NOTICE;
    let mut shown = 0;
    let mut cards = cards(report);
    let is_quiet = |card: &FindingCard<'_>| card.finding.severity != Severity::Error || card.finding.waived.is_some();
    let quiet = quiet_lines(report);
    // As on a terminal: many findings that refuse nothing are counted by kind.
    let counts_quiet = cards.iter().filter(|card| is_quiet(card)).count() > QUIET;
    if counts_quiet {
        shown += cards.iter().filter(|card| is_quiet(card)).map(|card| card.others.len() + 1).sum::<usize>();
        cards.retain(|card| !is_quiet(card));
        size += quiet.len();
    }
    for card in cards {
        let heading = heading(card.finding);
        let block = block(&card);
        let known = objects.iter().position(|(other, _)| *other == heading);
        size += block.len() + if known.is_some() { 0 } else { heading.len() };
        // The worst come first: what matters least is omitted.
        if size > LIMIT {
            break;
        }
        shown += card.others.len() + 1;
        match known {
            Some(index) => objects[index].1 += &block,
            None => objects.push((heading, block)),
        }
    }
    let accepting = Some(accepting(report)).filter(|text| size + text.len() <= LIMIT).unwrap_or_default();
    let (changes, unseen) = markdown_plan::changes(&report.plan, LIMIT.saturating_sub(size + accepting.len()));
    let findings = report.findings.len();
    let omitted = [
        (shown < findings).then(|| format!("{} of {}", findings - shown, counted(findings, "finding"))),
        (unseen > 0).then(|| format!("{} of {}", unseen, counted(report.plan.len(), "change"))),
    ];
    let omitted: Vec<String> = omitted.into_iter().flatten().collect();
    if !omitted.is_empty() {
        // Above the findings, so that nobody takes these for all.
        text += &format!(
            "\n> [!WARNING]\n> **{} not shown**: this comment would be too long. The JSON report has them all.\n",
            omitted.join(" and "),
        );
    }
    for (heading, blocks) in objects {
        text += &heading;
        text += &blocks;
    }
    if counts_quiet {
        text += &quiet;
    }
    text + &accepting + &changes
}

/// Warnings, waived findings and information, a line for each kind.
fn quiet_lines(report: &CheckReport) -> String {
    let quiet: Vec<&Cause> =
        report.causes.iter().filter(|cause| cause.severity != Severity::Error || cause.is_waived()).collect();
    let line =
        |line: cause_text::QuietLine| format!("- {}: {}\n", prose(&line.label, VALUE), prose(&line.words, MESSAGE));
    let lines: String =
        cause_text::quiet_kinds(&quiet, &report.findings, CardStyle::REPORT).into_iter().map(line).collect();
    format!("\n{lines}\nThe JSON report has each of them.\n")
}

/// The waivers that accept what refuses, folded.
fn accepting(report: &CheckReport) -> String {
    let refusing: Vec<&Cause> =
        report.causes.iter().filter(|cause| cause.severity == Severity::Error && !cause.is_waived()).collect();
    match cause_text::accepting(&refusing, &report.findings) {
        none if none.is_empty() => none,
        // Each line starts with a key, a dash or a `#`: none closes the fence.
        yaml => format!("\n<details><summary>Accept it</summary>\n\n```yaml\n{}\n```\n\n</details>\n", yaml.trim_end()),
    }
}

fn head(report: &CheckReport) -> String {
    let outcome_words = match report.rules.is_empty() {
        true => no_rule_ran(report.outcome),
        false => report.outcome.as_str().to_owned(),
    };
    let mut text = format!("## pushback: {}\n\n", prose(&outcome_words, VALUE));
    text += &format!(
        "App {} on {}: {}.\n\n",
        code(&report.app, VALUE),
        code(&report.cluster, VALUE),
        counts_to_do(&report.changes)
    );
    if let Some(source) = &report.policy.source {
        text += &format!("Judged by the policy of {}.\n\n", code(source, VALUE));
    }
    if report.rules.is_empty() {
        text += "No preflight rule judged this change.\n";
    }
    if report.rules.is_empty() && report.policy.rules_off.is_empty() {
        return text;
    }
    text += "| Rule | Outcome | Breaking | Unknown | Changes | Waived |\n|---|---|--:|--:|--:|--:|\n";
    for rule in &report.rules {
        text += &format!(
            "| {} | {} | {} | {} | {} | {} |\n",
            cell(&prose(&rule.name, VALUE)),
            outcome(rule),
            rule.breaking,
            rule.unknown,
            rule.changes,
            rule.waived
        );
    }
    for off in &report.policy.rules_off {
        let (name, reason) = (cell(&prose(&off.name, VALUE)), cell(&prose(&off.reason, VALUE)));
        text += &format!("| {name} | **off**<br>{reason} | | | | |\n");
    }
    let unchecked = policy_lines(report.policy.left_out.as_ref(), &report.policy.broad_waivers);
    for (index, line) in unchecked.iter().enumerate() {
        text += &format!("{}- {}\n", if index == 0 { "\n" } else { "" }, prose(line, 600));
    }
    text
}

/// The rule's outcome, and why it was skipped or lacked facts.
fn outcome(rule: &RuleLine) -> String {
    let mut text = rule.outcome.as_str().to_owned();
    if matches!(rule.outcome, RuleOutcome::Failed | RuleOutcome::Unable) {
        text = format!("**{text}**");
    }
    for reason in rule.reasons.iter().take(3) {
        text += &format!("<br>{}", cell(&prose(reason, VALUE)));
    }
    if rule.reasons.len() > 3 {
        text += &format!("<br>and {} more", counted(rule.reasons.len() - 3, "reason"));
    }
    text
}

fn heading(finding: &Finding) -> String {
    if finding.object.kind.is_empty() {
        return "\n### The run itself\n\n".to_owned();
    }
    format!("\n### {}\n\n", code(&finding.object.to_string(), 600))
}

fn block(card: &FindingCard<'_>) -> String {
    let finding = card.finding;
    let weight = if card.weight == "error" { "**error**" } else { card.weight };
    let mut text = format!("- {weight} {}: {}\n", code(&card.rule, VALUE), prose(&card.change, MESSAGE));
    let mut line = |name: &str, value: String| text += &format!("  - {name}: {value}\n");
    if let Some(position) = card.position {
        line("at", code(&position.to_string(), 600));
    }
    let place = [&finding.version, &finding.path].into_iter().flatten();
    let place: Vec<String> = place.map(|part| code(part, VALUE)).collect();
    if !place.is_empty() {
        line("field", place.join(" "));
    }
    match (&finding.old, &finding.new) {
        (None, None) => {}
        (old, new) => line("change", format!("{} → {}", value(old.as_ref()), value(new.as_ref()))),
    }
    for (name, text) in card.facts().into_iter().chain(card.advice()) {
        match name {
            "object" | "path" | "old" | "new" => {}
            "fingerprint" | "cause" => line(name, code(&text, VALUE)),
            _ => line(name, prose(&text, MESSAGE)),
        }
    }
    if let Some(witness) = card.witness {
        let smallest = card.cause.and_then(|cause| cause.witness.as_ref());
        if let Some(smallest) = smallest.filter(|smallest| !smallest.pointer.is_empty()) {
            line("breaks", code(&one_line(witness, &smallest.pointer, "…"), MESSAGE));
        }
        text += &folded(witness);
    }
    text
}

fn value(value: Option<&Value>) -> String {
    value.map_or_else(|| "nothing".to_owned(), |value| code(&value.to_string(), VALUE))
}

/// The witness in a collapsed block. The fence is longer than any fence inside.
fn folded(witness: &Value) -> String {
    let yaml = witness_yaml(witness);
    let safe = terminal_safe_lines(yaml.trim_end());
    let all: Vec<&str> = safe.lines().collect();
    let mut lines: Vec<String> =
        all.iter().take(WITNESS_LINES).map(|line| shorten(line, WITNESS_WIDTH, "…").clone()).collect();
    if all.len() > WITNESS_LINES {
        lines.push(format!("# and {} more", counted(all.len() - WITNESS_LINES, "line")));
    }
    let longest = lines.iter().flat_map(|line| line.split(|c| c != '`')).map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(longest.max(2) + 1);
    let mut text = format!("\n  <details><summary>Witness</summary>\n\n  {fence}yaml\n");
    for line in lines {
        text += &format!("  {line}\n");
    }
    text + &format!("  {fence}\n\n  </details>\n\n")
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use proptest::prelude::*;
    use pulldown_cmark::{Event, Options, Parser};
    use pushback_preflight::causes;

    use super::*;
    use crate::fixture::{check_report, every_character, hostile_report};

    #[test]
    fn a_comment_has_a_table_of_rules_and_the_findings_of_each_object() {
        assert_snapshot!(text(&check_report()), @r#"
        ## pushback: refused

        App `shop` on `git:main:crds`: 1 to update, 18 unchanged.

        | Rule | Outcome | Breaking | Unknown | Changes | Waived |
        |---|---|--:|--:|--:|--:|
        | CRDUpgradeSafety | **failed** | 1 | 0 | 0 | 0 |
        | PermissionValidation | skipped<br>a directory has no permissions | 0 | 0 | 0 | 0 |
        | FieldConflicts | **unable**<br>failed to read Deployment shop/web: forbidden | 0 | 0 | 0 | 0 |
        | DestructiveChange | passed | 0 | 0 | 0 | 0 |

        ### `CustomResourceDefinition foos.ex.com`

        - **error** `CRDUpgradeSafety/enum`: value "B" is no longer allowed
          - at: `./crds/new.yaml:41:15`
          - field: `v1` `spec.f`
          - change: `["A","B"]` → `["A"]`
          - effect: rejected on create
          - fix: keep the value, or serve a new version
          - fingerprint: `9c1185a5deadbeef`
          - breaks: `Foo with spec.f: "B"`

          <details><summary>Witness</summary>

          ```yaml
          apiVersion: ex.com/v1
          kind: Foo
          metadata:
            name: witness
          spec:
            f: B
          ```

          </details>

        - warning `CRDUpgradeSafety/versionDeprecated`: version v1 becomes deprecated
          - fingerprint: `fedcba9876543210`
        - waived `CRDUpgradeSafety/scope`: the scope changes
          - waived: nobody uses it, checked on 2026-11-02

        <details><summary>Accept it</summary>

        ```yaml
        preflightWaivers:
        - rule: CRDUpgradeSafety
          cause: "99f477db08e581588430f35e6c7199b2"
          # value "B" is no longer allowed
          members:
          - "9c1185a5deadbeef"
          reason: "" # why it is acceptable; `owner` and `expires` can follow
        ```

        </details>
        "#);
    }

    #[test]
    fn a_comment_stays_within_its_limit_and_says_what_is_left_out() {
        let mut report = check_report();
        let mut least = report.findings[1].clone();
        least.message = "@".repeat(5_000);
        least.severity = Severity::Error;
        let worst = report.findings[0].clone();
        let several = |finding: Finding, count: usize| {
            (0..count).map(move |index| finding.clone().path(format!("spec.f{index}")))
        };
        report.findings = several(worst, 3).chain(several(least, 2_000)).collect();
        report.causes = causes(&report.findings);
        let text = text(&report);
        assert!(text.len() <= LIMIT, "{}", text.len());
        assert_eq!(text.matches("CRDUpgradeSafety/enum").count(), 3);
        let shown = text.matches("\n- ").count();
        let notice = text.find("not shown").expect("a notice");
        assert!(notice < text.find("**error**").expect("an error"), "it stands above the findings");
        assert!(shown > 3 && text.contains(&format!("**{} of 2003 findings not shown**", 2_003 - shown)), "{shown}");
    }

    #[test]
    fn many_findings_that_refuse_nothing_are_counted() {
        let mut report = check_report();
        let warning = report.findings[1].clone();
        report.findings = (0..500).map(|index| warning.clone().path(format!("spec.f{index}"))).collect();
        for (index, finding) in report.findings.iter_mut().enumerate() {
            finding.new = Some(serde_json::json!(index));
        }
        report.causes = causes(&report.findings);
        let text = text(&report);
        assert!(text.len() < 3_000 && text.contains("500 places"), "{}: {text}", text.len());
    }

    #[test]
    fn fence_around_a_witness_is_longer_than_any_inside() {
        let mut report = check_report();
        report.findings[0].witness = Some(serde_json::json!({"a": "```\n</details>\n````"}).into());
        let text = text(&report);
        assert!(text.contains("  `````yaml\n"), "{text}");
    }

    /// The markup of a report, as a parser reads it: tags without text.
    fn markup(report: &str) -> Vec<String> {
        let is_text = |event: &Event<'_>| matches!(event, Event::Text(_) | Event::Code(_));
        let events =
            Parser::new_ext(report, Options::ENABLE_GFM | Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH);
        events.filter(|event| !is_text(event)).map(|event| format!("{event:?}")).collect()
    }

    #[test]
    fn every_character_makes_no_markup() {
        let harmless = markup(&text(&hostile_report("word")));
        for part in every_character(1_000) {
            let text = text(&hostile_report(&part));
            assert_eq!(markup(&text), harmless, "{text}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]
        #[test]
        fn hostile_text_makes_no_markup(
            evil in prop_oneof![any::<String>(), "[ `|\\\\*_<>&:@#$!~a\\[\\]()-]{0,12}"]
                .prop_filter("text", |text| !text.is_empty()),
        ) {
            let text = text(&hostile_report(&evil));
            prop_assert!(!text.chars().any(|c| c != '\n' && crate::escape::is_hidden(c)));
            prop_assert_eq!(markup(&text), markup(&super::text(&hostile_report("word"))), "{}", text);
        }
    }
}
