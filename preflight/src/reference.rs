//! The rule reference, generated from the registry: one rule for `pushback rules NAME`, all of them for
//! `docs/rules.md`. A test compares the checked-in page with it, so that it cannot go stale.

use crate::registry;
use crate::rule::{Rule, RuleMeta, Setting, SettingKind};
use crate::settings;

/// Maximum number of settings in a map that are listed one by one.
const FEW: usize = 12;

/// The reference of all rules, in Markdown.
#[must_use]
pub fn reference_markdown() -> String {
    let mut page = String::from(include_str!("reference/head.md"));
    page.push_str("\n| rule | what it says | by default | without an API server |\n|---|---|---|---|\n");
    for meta in registry::metas() {
        let RuleMeta { name, summary, .. } = meta;
        let default = if meta.default { "on" } else { "off" };
        let directory = if meta.on_directory { "runs" } else { "skipped" };
        page.push_str(&format!("| [{name}](#{}) | {summary} | {default} | {directory} |\n", name.to_lowercase()));
    }
    page.push_str("\n## Settings of every rule\n\n");
    settings_table(&[settings::COMMON], &[], &mut page);
    page.push_str(include_str!("reference/common.md"));
    for rule in registry::RULES {
        page.push('\n');
        page.push_str(&rule_section(*rule, &[rule.meta().settings]));
    }
    page
}

/// The reference of one rule, in Markdown, including the settings that every rule has.
#[must_use]
pub fn rule_markdown(rule: &dyn Rule) -> String {
    rule_section(rule, &[settings::COMMON, rule.meta().settings])
}

/// A line for each setting with another default where nobody asks for the rule, for `pushback rules`.
#[must_use]
pub fn unasked_lines() -> Vec<String> {
    let line = |rule: &&dyn Rule, name: &str, value: &str| {
        let rule = rule.meta();
        let asked = settings::defaults(rule)[name].clone();
        let asked = asked.as_str().unwrap_or_default();
        format!(
            "{} runs with `{name}: {value}`; named in preflightRules or --preflight, with `{name}: {asked}` unless its \
             config says otherwise",
            rule.name
        )
    };
    let of_rule = |rule: &&'static dyn Rule| -> Vec<String> {
        rule.meta().unasked.iter().map(|(name, value)| line(rule, name, value)).collect()
    };
    registry::RULES.iter().flat_map(of_rule).collect()
}

fn rule_section(rule: &dyn Rule, settings: &[&[Setting]]) -> String {
    let meta = rule.meta();
    let mut page = format!("## {}\n\n{}.\n\n{}\n", meta.name, capital(meta.summary), meta.docs.trim());
    page.push_str("\n### Checks\n\n| check | reported when |\n|---|---|\n");
    for (name, doc) in meta.checks {
        page.push_str(&format!("| `{name}` | {doc} |\n"));
    }
    if settings.iter().any(|settings| !settings.is_empty()) {
        page.push_str("\n### Settings\n\n");
        settings_table(settings, meta.unasked, &mut page);
    }
    page.push_str(&format!("\n### What it needs from the cluster\n\n{}.\n", capital(meta.needs)));
    page
}

fn settings_table(settings: &[&[Setting]], unasked: &[(&str, &str)], page: &mut String) {
    fn rows(settings: &[Setting], unasked: &[(&str, &str)], prefix: &str, page: &mut String) {
        let all = |words: &[&str]| words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ");
        for Setting { name, doc, kind, .. } in settings {
            let (values, default) = match kind {
                SettingKind::Choice(words) => {
                    let asked = words.first().copied().unwrap_or_default();
                    let otherwise = unasked.iter().find(|(of, _)| prefix.is_empty() && of == name);
                    let otherwise = otherwise.map(|(_, value)| format!("; `{value}` where the rule is not named"));
                    (all(words), format!("`{asked}`{}", otherwise.unwrap_or_default()))
                }
                SettingKind::Required(words) => (all(words), "must be given".to_owned()),
                SettingKind::Number { default, least, most } => (format!("{least} to {most}"), format!("`{default}`")),
                SettingKind::InputPath(_) | SettingKind::OutputFolder => ("text".to_owned(), "none".to_owned()),
                SettingKind::Texts([]) => ("list of texts".to_owned(), "any".to_owned()),
                SettingKind::Texts(words) => (format!("list of {}", all(words)), "any".to_owned()),
                SettingKind::List(inner) => {
                    page.push_str(&format!("| `{prefix}{name}` | list | `[]` | {doc} |\n"));
                    rows(inner, unasked, &format!("{prefix}{name}[]."), page);
                    continue;
                }
                SettingKind::Map(inner) if inner.len() > FEW => {
                    table_of_many(&format!("{prefix}{name}"), doc, inner, page);
                    continue;
                }
                SettingKind::Map(inner) => {
                    rows(inner, unasked, &format!("{prefix}{name}."), page);
                    continue;
                }
            };
            page.push_str(&format!("| `{prefix}{name}` | {values} | {default} | {doc} |\n"));
        }
    }
    page.push_str("| setting | values | default | meaning |\n|---|---|---|---|\n");
    settings.iter().for_each(|settings| rows(settings, unasked, "", page));
}

/// The rows of a map with many equal settings: one row per default.
fn table_of_many(name: &str, doc: &str, inner: &[Setting], page: &mut String) {
    let words = |setting: &Setting| match setting.kind {
        SettingKind::Choice(words) => words,
        _ => &[],
    };
    let mut told: Vec<&str> = Vec::new();
    for setting in inner {
        let default = words(setting).first().copied().unwrap_or_default();
        if told.contains(&default) {
            continue;
        }
        told.push(default);
        let all: Vec<String> = words(setting).iter().map(|word| format!("`{word}`")).collect();
        // The first default is that of most names; the others are listed by name.
        let names = if told.len() == 1 { "NAME" } else { setting.name };
        page.push_str(&format!("| `{name}.{names}` | {} | `{default}` | {doc} |\n", all.join(", ")));
    }
}

fn capital(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or_else(String::new, |first| first.to_uppercase().chain(characters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `UPDATE_DOCS=1 cargo test -p pushback-preflight reference` rewrites the page.
    #[test]
    fn the_checked_in_reference_is_up_to_date() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/rules.md");
        let page = reference_markdown();
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(path, &page).expect("docs/ can be written");
        }
        let checked_in = std::fs::read_to_string(path).unwrap_or_default();
        assert!(checked_in == page, "docs/rules.md is stale; run with UPDATE_DOCS=1 to rewrite it");
    }

    #[test]
    fn one_rule_is_explained_with_all_settings_that_it_takes() {
        for rule in registry::RULES {
            let (page, meta) = (rule_markdown(*rule), rule.meta());
            for setting in settings::COMMON.iter().chain(meta.settings) {
                assert!(page.contains(&format!("| `{}", setting.name)), "{}: {}", meta.name, setting.name);
            }
        }
    }

    #[test]
    fn a_default_that_depends_on_who_asks_is_told_in_both_forms() {
        let rule = registry::find("CRDUpgradeSafety").expect("it is registered");
        assert!(rule_markdown(rule).contains("| `report`; `auto` where the rule is not named |"));
        insta::assert_snapshot!(unasked_lines().join("\n"), @r"
        CRDUpgradeSafety runs with `liveObjects: auto`; named in preflightRules or --preflight, with `liveObjects: report` unless its config says otherwise
        References runs with `mode: warn`; named in preflightRules or --preflight, with `mode: error` unless its config says otherwise
        PodAdmission runs with `failMode: open`; named in preflightRules or --preflight, with `failMode: closed` unless its config says otherwise
        RemovedAPIs runs with `mode: warn`; named in preflightRules or --preflight, with `mode: error` unless its config says otherwise
        DestructiveChange runs with `failMode: open`; named in preflightRules or --preflight, with `failMode: closed` unless its config says otherwise
        DestructiveChange runs with `losses: irreversible`; named in preflightRules or --preflight, with `losses: all` unless its config says otherwise
        DestructiveChange runs with `unlisted: warn`; named in preflightRules or --preflight, with `unlisted: unable` unless its config says otherwise
        ");
    }

    #[test]
    fn every_check_and_setting_is_in_the_reference() {
        let page = reference_markdown();
        for meta in registry::metas() {
            assert!(meta.checks.iter().all(|(check, _)| page.contains(&format!("| `{check}` |"))), "{}", meta.name);
        }
        assert!(page.contains("| `versions.removed` | `error`, `warn` | `error` |"));
    }
}
