//! What a policy leaves unchecked, as lines below the summary of all rules: default rules that a list leaves out, and
//! waivers that accept every finding of a rule.

use pushback_objects::text::counted;
use pushback_preflight::default_set::LeftOut;
use pushback_preflight::waiver::BroadWaiver;

use crate::error_text::place;
use crate::escape::terminal_safe;

/// One line for the default rules that a list leaves out, and one for each broad waiver: never broken, so that a search
/// finds each name.
#[must_use]
pub fn policy_text(left_out: Option<&LeftOut>, broad: &[BroadWaiver]) -> String {
    policy_lines(left_out, broad).iter().map(|line| format!("  {}\n", terminal_safe(line))).collect()
}

/// The lines of [`policy_text`] as they are, for reports.
#[must_use]
pub fn policy_lines(left_out: Option<&LeftOut>, broad: &[BroadWaiver]) -> Vec<String> {
    left_out.map(left_out_line).into_iter().chain(broad.iter().map(broad_line)).collect()
}

fn left_out_line(LeftOut { list, rules }: &LeftOut) -> String {
    let way = if list.starts_with('-') { "add `default` to its names" } else { "add `- name: default`" };
    format!(
        "{list} leaves out {}: {} ({way} to run {})",
        counted(rules.len(), "default rule"),
        rules.join(", "),
        if rules.len() == 1 { "it" } else { "them" }
    )
}

fn broad_line(waiver: &BroadWaiver) -> String {
    let BroadWaiver { rule, reason, findings, errors, position } = waiver;
    let refusing = match errors {
        0 => String::new(),
        errors => format!(", of which {errors} would refuse the run"),
    };
    let position = position.as_ref().map(|position| format!("{}: ", place(position))).unwrap_or_default();
    format!("{position}a waiver accepts every finding of {rule}: {findings}{refusing} (reason: {reason})")
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use pushback_objects::Position;

    use super::*;

    #[test]
    fn policy_that_leaves_rules_and_findings_unchecked_is_shown_in_one_line_each() {
        let list = |list: &str, rules: &[&str]| LeftOut {
            list: list.to_owned(),
            rules: rules.iter().map(ToString::to_string).collect(),
        };
        let broad = |errors| BroadWaiver {
            rule: "CRDUpgradeSafety".to_owned(),
            reason: "not yet\n\u{1b}[2J released".to_owned(),
            findings: 7,
            errors,
            position: Some(Position { file: "policy.yaml".to_owned(), line: 12, column: 5 }),
        };
        let listed = list("preflightRules", &["StoredVersions", "References"]);
        assert_snapshot!(policy_text(Some(&listed), &[broad(0), broad(3)]), @r#"
          preflightRules leaves out 2 default rules: StoredVersions, References (add `- name: default` to run them)
          policy.yaml:12:5: a waiver accepts every finding of CRDUpgradeSafety: 7 (reason: not yet\n\u{1b}[2J released)
          policy.yaml:12:5: a waiver accepts every finding of CRDUpgradeSafety: 7, of which 3 would refuse the run (reason: not yet\n\u{1b}[2J released)
        "#);
        assert_snapshot!(policy_text(Some(&list("--preflight", &["References"])), &[]), @"  --preflight leaves out 1 default rule: References (add `default` to its names to run it)");
        assert_eq!(policy_text(None, &[]), "");
    }
}
