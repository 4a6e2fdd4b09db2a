//! Findings as text: object and problem first, then the facts that prove it, then what to do; and the summary line of
//! all rules.

use pushback_events::{Millis, RuleLine};
use pushback_manifest::excerpt::Excerpt;
use pushback_objects::text::counted;
use pushback_objects::{Finding, Position};
use pushback_preflight::judge::{Outcome, RuleOutcome};
use pushback_preflight::registry;

use crate::error_text::place;
use crate::escape::{terminal_safe, terminal_safe_lines};
use crate::excerpt_text::{excerpt_text, margin};
use crate::finding_card::{FindingCard, witness_yaml};
use crate::theme::{Look, Role, Theme, severity_role};
use crate::words::{hang, shorten, took, wrap};

/// Most characters of a value.
pub(crate) const VALUE_LIMIT: usize = 200;
/// Most characters of old and new value next to the field.
const LABEL_LIMIT: usize = 70;
/// Most lines of a witness.
const WITNESS_LINES: usize = 16;

/// The card of a finding, followed by an empty line; `excerpt` holds the input lines that it is about.
#[must_use]
pub fn finding_text(card: &FindingCard<'_>, excerpt: Option<&Excerpt>, theme: Theme, width: u16) -> String {
    let CardHead { mut text, margin, change } = card_head(card, excerpt, theme, width);
    for (key, value) in card.facts() {
        match key {
            // The values are next to the field already.
            "old" | "new" if change.is_some() => {}
            "old" | "new" => text += &fact(key, &shorten(&value, VALUE_LIMIT, theme.ellipsis()), &margin, width),
            _ => text += &fact(key, &value, &margin, width),
        }
    }
    if let Some(witness) = card.witness {
        let yaml = witness_yaml(witness);
        text += &witness_lines(&yaml.trim_end().lines().collect::<Vec<_>>(), &margin, theme, width);
    }
    for (key, value) in card.advice() {
        text += &fact(key, &value, &margin, width);
    }
    text.push('\n');
    text
}

/// The first lines of a card.
pub(crate) struct CardHead {
    pub(crate) text: String,
    /// Blanks before the lines below.
    pub(crate) margin: String,
    /// Old and new value, where they stand next to the field.
    pub(crate) change: Option<String>,
}

/// Rule and change, position, and the lines of the manifest there.
pub(crate) fn card_head(card: &FindingCard<'_>, excerpt: Option<&Excerpt>, theme: Theme, width: u16) -> CardHead {
    let severity = card.finding.severity;
    let role = if card.finding.waived.is_some() { Role::Quiet } else { severity_role(severity) };
    let mut text = headline(&format!("{}[{}]", card.weight, card.rule), role, &card.change, theme, width);
    let margin = " ".repeat(excerpt.map_or(2, margin));
    if let Some(position) = card.position {
        text += &pointer_line(position, &margin, theme);
    }
    let change = excerpt.and_then(|_| short_change(card.finding, theme));
    if let Some(excerpt) = excerpt {
        text += &excerpt_text(excerpt, change.as_deref(), severity, theme, width);
    }
    CardHead { text, margin, change }
}

/// `error[CRDUpgradeSafety/minLength]: field "path": minLength added: 1`, further lines of the message below it.
fn headline(name: &str, role: Role, message: &str, theme: Theme, width: u16) -> String {
    let message = terminal_safe_lines(message);
    let mut lines = message.lines();
    let first = theme.paint(Role::Strong, lines.next().unwrap_or_default());
    let mut text = hang(&format!("{}: {first}\n", theme.paint(role, &terminal_safe(name))), width);
    for line in lines {
        text += &hang(&format!("  {line}\n"), width);
    }
    text
}

/// ` --> new.yaml:41:15`, in one piece however long, so that it can be copied and followed.
fn pointer_line(position: &Position, margin: &str, theme: Theme) -> String {
    let arrow = theme.paint(Role::Pointer, "-->");
    format!("{margin}{arrow} {}\n", theme.paint(Role::Pointer, &place(position)))
}

/// Short old and new values as one label of the field. A removed field is not in the input: its position is that of its
/// parent.
fn short_change(finding: &Finding, theme: Theme) -> Option<String> {
    let new = finding.new.as_ref()?.to_string();
    let old = finding.old.as_ref().map_or_else(|| "nothing".to_owned(), ToString::to_string);
    let short = old.chars().count() + new.chars().count() <= LABEL_LIMIT;
    short.then(|| terminal_safe(&format!("{old} {} {new}", theme.arrow())).into_owned())
}

/// ` = key:  value`, with further lines below the value.
pub(crate) fn fact(key: &str, value: &str, margin: &str, width: u16) -> String {
    let lead = format!("{margin} = {:<8} ", format!("{key}:"));
    let indent = lead.chars().count();
    let lines = wrap(&terminal_safe(value), usize::from(width).saturating_sub(indent));
    let mut text = String::new();
    for (number, line) in lines.iter().enumerate() {
        text += &(if number == 0 { format!("{lead}{line}") } else { format!("{:indent$}{line}", "") });
        text.push('\n');
    }
    text
}

/// A witness below its name, cut to a number of lines.
pub(crate) fn witness_lines(lines: &[impl AsRef<str>], margin: &str, theme: Theme, width: u16) -> String {
    let mut text = format!("{margin} = witness:\n");
    for line in lines.iter().take(WITNESS_LINES) {
        text += &hang(&format!("{margin}     {}\n", terminal_safe(line.as_ref())), width);
    }
    if lines.len() > WITNESS_LINES {
        let more = counted(lines.len() - WITNESS_LINES, "more line");
        text += &format!("{margin}     {} and {more}, which --witness-dir DIR writes\n", theme.ellipsis());
    }
    text
}

/// `Preflight  CRDUpgradeSafety failed (1 breaking), 3 rules passed, 2 skipped   0.9s`, and below it why rules were
/// skipped or could not get their facts.
#[must_use]
pub fn preflight_text(outcome: Outcome, rules: &[RuleLine], elapsed: Millis, look: Look) -> String {
    let Look { theme, width, verbose } = look;
    let heading = theme.paint(Role::Strong, "Preflight");
    // Findings about the policy belong to no rule.
    if rules.iter().all(|rule| rule.name == registry::POLICY) {
        return format!("{heading}  {}\n", theme.paint(Role::Caution, &no_rule_ran(outcome)));
    }
    let line = format!("{heading}  {}\n", summary(rules, theme, verbose));
    // How long it took decides about no line break.
    let line = hang(&line, width.saturating_sub(10));
    let text = format!("{}   {}\n", line.trim_end(), theme.paint(Role::Quiet, &took(elapsed)));
    let reasons = [RuleOutcome::Skipped, RuleOutcome::Unable].map(|outcome| reasons_line(rules, outcome));
    hang(&(text + &reasons.concat()), width)
}

/// The rules whose outcome matters by name, then the numbers of the others.
fn summary(rules: &[RuleLine], theme: Theme, verbose: bool) -> String {
    let is_named = |rule: &&RuleLine| {
        let is_quiet = matches!(rule.outcome, RuleOutcome::Passed | RuleOutcome::Skipped);
        verbose || !is_quiet || rule.waived > 0
    };
    let (named, counted_only): (Vec<&RuleLine>, Vec<&RuleLine>) = rules.iter().partition(is_named);
    let mut words: Vec<String> = named.into_iter().map(|rule| rule_words(rule, theme)).collect();
    let mut noun = "rule";
    for outcome in [RuleOutcome::Passed, RuleOutcome::Skipped] {
        let count = counted_only.iter().filter(|rule| rule.outcome == outcome).count();
        if count > 0 {
            let number = if noun.is_empty() { count.to_string() } else { counted(count, noun) };
            words.push(format!("{number} {}", theme.paint(outcome_role(outcome), outcome.as_str())));
            noun = "";
        }
    }
    words.join(", ")
}

/// `  skipped: StoredVersions, PermissionValidation (needs an API server)`; empty if no rule ended in this way.
fn reasons_line(rules: &[RuleLine], outcome: RuleOutcome) -> String {
    let mut reasons: Vec<(&[String], Vec<&str>)> = Vec::new();
    for rule in rules.iter().filter(|rule| rule.outcome == outcome) {
        match reasons.iter_mut().find(|(known, _)| *known == rule.reasons) {
            Some((_, names)) => names.push(&rule.name),
            None => reasons.push((&rule.reasons, vec![&rule.name])),
        }
    }
    let words = |(reasons, names): (&[String], Vec<&str>)| match reasons {
        [] => names.join(", "),
        reasons => format!("{} ({})", names.join(", "), reasons.join("; ")),
    };
    let words: Vec<String> = reasons.into_iter().map(words).collect();
    if words.is_empty() {
        String::new()
    } else {
        format!("  {}: {}\n", outcome.as_str(), terminal_safe(&words.join(", ")))
    }
}

fn outcome_role(outcome: RuleOutcome) -> Role {
    match outcome {
        RuleOutcome::Passed => Role::Good,
        RuleOutcome::Warned => Role::Caution,
        RuleOutcome::Failed | RuleOutcome::Unable => Role::Bad,
        RuleOutcome::Skipped => Role::Quiet,
    }
}

/// Without rules nothing passes, and what the server refused stays refused.
#[must_use]
pub fn no_rule_ran(outcome: Outcome) -> String {
    match outcome {
        Outcome::Passed => "no rule ran".to_owned(),
        other => format!("{}; no rule ran", other.as_str()),
    }
}

fn rule_words(rule: &RuleLine, theme: Theme) -> String {
    let numbers: Vec<String> = [
        (rule.breaking, "breaking"),
        (rule.unknown, "unknown"),
        (rule.changes, if rule.changes == 1 { "change" } else { "changes" }),
        (rule.waived, "waived"),
    ]
    .iter()
    .filter(|(count, _)| *count > 0)
    .map(|(count, word)| format!("{count} {word}"))
    .collect();
    let numbers = if numbers.is_empty() { String::new() } else { format!(" ({})", numbers.join(", ")) };
    format!("{} {}{numbers}", terminal_safe(&rule.name), theme.paint(outcome_role(rule.outcome), rule.outcome.as_str()))
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use pushback_objects::finding::LiveObjects;
    use pushback_objects::{ObjectRef, Position, Severity, Verdict};
    use serde_json::json;

    use super::*;
    use crate::finding_card::CardStyle;

    fn scope_finding() -> Finding {
        let object = ObjectRef {
            group: "apiextensions.k8s.io".to_owned(),
            version: "v1".to_owned(),
            kind: "CustomResourceDefinition".to_owned(),
            namespace: String::new(),
            name: "foos.ex.com".to_owned(),
        };
        let mut finding =
            Finding::new("CRDUpgradeSafety", "enum", Verdict::Breaking, object, "value \"B\" is no longer allowed")
                .at(Some(Position { file: "new.yaml".to_owned(), line: 41, column: 15 }))
                .path("spec.f")
                .values(Some(json!(["A", "B"])), Some(json!(["A"])))
                .remedy("keep the value, or serve a new version");
        finding.severity = Severity::Error;
        finding.version = Some("v1".to_owned());
        finding.effect = Some("rejected".to_owned());
        finding.blocks = Some("create".to_owned());
        finding.witness = Some(
            json!({"apiVersion": "ex.com/v1", "kind": "Foo", "metadata": {"name": "witness"}, "spec": {"f": "B"}})
                .into(),
        );
        finding.live_objects = Some(LiveObjects::exactly(3, 112, vec!["team-a/w1".to_owned(), "team-b/z".to_owned()]));
        finding.fingerprint = "9c1185a5deadbeef".to_owned();
        finding
    }

    fn shown(finding: &Finding, excerpt: Option<&Excerpt>, theme: Theme) -> String {
        finding_text(&FindingCard::new(finding, CardStyle::REPORT), excerpt, theme, 120)
    }

    #[test]
    fn a_finding_says_what_where_why_and_what_to_do() {
        assert_snapshot!(shown(&scope_finding(), None, Theme { color: false, unicode: true }), @r#"
        error[CRDUpgradeSafety/enum]: value "B" is no longer allowed
          --> new.yaml:41:15
           = object:  CustomResourceDefinition foos.ex.com, version v1
           = path:    spec.f
           = old:     ["A","B"]
           = new:     ["A"]
           = effect:  rejected on create
           = live:    3 of 112 objects affected: team-a/w1, team-b/z, …
           = witness:
               apiVersion: ex.com/v1
               kind: Foo
               metadata:
                 name: witness
               spec:
                 f: B
           = fix:     keep the value, or serve a new version
           = fingerprint: 9c1185a5deadbeef
        "#);
    }

    #[test]
    fn the_field_is_shown_where_it_stands_with_its_old_and_new_value() {
        let mut finding = scope_finding();
        let lines = ["        f:", "          type: string", "          enum: [A]"];
        let excerpt = Excerpt { first_line: 39, lines: lines.map(str::to_owned).to_vec(), start: 10, length: 9 };
        finding.live_objects = None;
        let theme = Theme { color: false, unicode: true };
        assert_snapshot!(shown(&finding, Some(&excerpt), theme), @r#"
        error[CRDUpgradeSafety/enum]: value "B" is no longer allowed
          --> new.yaml:41:15
           |
        39 |         f:
        40 |           type: string
        41 |           enum: [A]
           |           ^^^^^^^^^ ["A","B"] → ["A"]
           = object:  CustomResourceDefinition foos.ex.com, version v1
           = path:    spec.f
           = effect:  rejected on create
           = witness:
               apiVersion: ex.com/v1
               kind: Foo
               metadata:
                 name: witness
               spec:
                 f: B
           = fix:     keep the value, or serve a new version
           = fingerprint: 9c1185a5deadbeef
        "#);
        // Long values have their own lines, and a long witness is cut.
        finding.old = Some(json!(["A".repeat(80)]));
        finding.witness = Some(json!({"spec": vec![1; 40]}).into());
        assert_snapshot!(shown(&finding, Some(&excerpt), theme), @r#"
        error[CRDUpgradeSafety/enum]: value "B" is no longer allowed
          --> new.yaml:41:15
           |
        39 |         f:
        40 |           type: string
        41 |           enum: [A]
           |           ^^^^^^^^^
           = object:  CustomResourceDefinition foos.ex.com, version v1
           = path:    spec.f
           = old:     ["AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"]
           = new:     ["A"]
           = effect:  rejected on create
           = witness:
               spec:
               - 1
               - 1
               - 1
               - 1
               - 1
               - 1
               - 1
               - 1
               - 1
               - 1
               - 1
               - 1
               - 1
               - 1
               - 1
               … and 25 more lines, which --witness-dir DIR writes
           = fix:     keep the value, or serve a new version
           = fingerprint: 9c1185a5deadbeef
        "#);
    }

    #[test]
    fn a_waived_finding_says_so_and_why() {
        let mut finding = scope_finding();
        finding.severity = Severity::Info;
        finding.waived = Some("no stored object uses B, checked on 2026-11-02".to_owned());
        finding.witness = None;
        finding.live_objects = None;
        assert_snapshot!(shown(&finding, None, Theme::plain()), @r#"
        waived[CRDUpgradeSafety/enum]: value "B" is no longer allowed
          --> new.yaml:41:15
           = object:  CustomResourceDefinition foos.ex.com, version v1
           = path:    spec.f
           = old:     ["A","B"]
           = new:     ["A"]
           = effect:  rejected on create
           = fix:     keep the value, or serve a new version
           = waived:  no stored object uses B, checked on 2026-11-02
        "#);
    }

    #[test]
    fn a_finding_shows_hostile_text_instead_of_obeying_it() {
        let mut finding = scope_finding();
        finding.message = "a\u{1b}[2J\nhint: b".to_owned();
        finding.old = Some(json!("\u{202e}x\u{9b}"));
        finding.witness = Some(json!({"\u{1b}k": "\u{200b}\u{7}\n\u{2028}"}).into());
        finding.remedy = Some("one\nerror: two".to_owned());
        let text = shown(&finding, None, Theme::plain());
        assert!(!text.chars().any(|c| c != '\n' && crate::escape::is_hidden(c)), "{text:?}");
        assert!(text.lines().skip(1).all(|line| line.is_empty() || line.starts_with("  ")), "{text}");
    }

    #[test]
    fn every_rule_is_named_with_its_outcome_and_an_unable_one_with_its_reasons() {
        let rule = |name: &str, outcome: RuleOutcome, breaking, reasons: &[&str]| RuleLine {
            summary: None,
            name: name.to_owned(),
            outcome,
            breaking,
            unknown: 0,
            changes: 0,
            waived: 0,
            reasons: reasons.iter().map(|reason| (*reason).to_owned()).collect(),
        };
        let rules = [
            rule("CRDUpgradeSafety", RuleOutcome::Failed, 1, &[]),
            rule("PermissionValidation", RuleOutcome::Skipped, 0, &["a directory has no permissions"]),
            rule("StoredVersions", RuleOutcome::Unable, 0, &["cannot list widgets.example.com: forbidden"]),
        ];
        const LOOK: Look = Look { theme: Theme { color: false, unicode: false }, width: 120, verbose: false };
        assert_snapshot!(preflight_text(Outcome::Refused, &rules, Millis(900), LOOK), @"
        Preflight  CRDUpgradeSafety failed (1 breaking), StoredVersions unable, 1 rule skipped   0.9s
          skipped: PermissionValidation (a directory has no permissions)
          unable: StoredVersions (cannot list widgets.example.com: forbidden)
        ");
        assert_snapshot!(preflight_text(Outcome::Passed, &[], Millis(1), LOOK), @"Preflight  no rule ran");
    }
}
