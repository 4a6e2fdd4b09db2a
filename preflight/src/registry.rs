//! The one list of rules. Help, docs, completions and the selection of a run are made from it,
//! so a rule that is in it is documented, selectable and explained, and no other rule exists.

use crate::finding::{Finding, FindingRef};
use crate::object::ObjectRef;
use crate::rule::{Rule, RuleMeta};
use crate::rules::{CrdUpgradeSafety, DestructiveChange, FieldConflicts, PermissionValidation, UpgradeDiff};
use crate::suggest;

/// Every rule, in the order in which they run and are listed.
pub static RULES: &[&dyn Rule] =
    &[&CrdUpgradeSafety, &PermissionValidation, &FieldConflicts, &DestructiveChange, &UpgradeDiff];

/// The name under which refusals of the API server are reported. No rule: it cannot be selected or waived.
pub const SERVER: &str = "server";

/// The name under which unused and expired waivers are reported. No rule either.
pub const WAIVERS: &str = "preflightWaivers";

/// The name under which it is told in what the manifests ask for less than the policy. No rule either.
pub const POLICY: &str = "policy";

/// A rule name that the registry does not know.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown preflight rule \"{name}\"{}", suggest::hint_or_known(.suggestion.as_deref(), .known))]
pub struct UnknownRule {
    /// The name as given.
    pub name: String,
    /// The nearest name that exists.
    pub suggestion: Option<String>,
    /// Every name that exists.
    pub known: Vec<&'static str>,
}

impl UnknownRule {
    /// For a name that none of the rules has.
    #[must_use]
    pub fn new(name: &str, rules: &[&dyn Rule]) -> Self {
        let known: Vec<&'static str> = rules.iter().map(|rule| rule.meta().name).collect();
        let suggestion = suggest::nearest(name, known.iter().copied()).map(ToOwned::to_owned);
        Self { name: name.to_owned(), suggestion, known }
    }
}

/// Finds a rule by its exact name.
///
/// # Errors
/// [`UnknownRule`] with the nearest existing name.
pub fn find(name: &str) -> Result<&'static dyn Rule, UnknownRule> {
    find_in(RULES, name)
}

/// [`find`] in a list of rules of one's own.
///
/// # Errors
/// [`UnknownRule`] with the nearest name in the list.
pub fn find_in<'r>(rules: &[&'r dyn Rule], name: &str) -> Result<&'r dyn Rule, UnknownRule> {
    rules.iter().copied().find(|rule| rule.meta().name == name).ok_or_else(|| UnknownRule::new(name, rules))
}

/// What is known of every rule, in order.
pub fn metas() -> impl Iterator<Item = &'static RuleMeta> {
    RULES.iter().map(|rule| rule.meta())
}

/// The line that checks published by others print for a finding.
#[must_use]
pub fn published_line(finding: &Finding) -> Option<String> {
    RULES.iter().find(|rule| rule.meta().name == finding.rule)?.published_line(finding)
}

/// The findings of rules that tell what the API server refuses of an object, by the field that it names and the value that
/// it quotes.
pub fn findings_for_refusal(object: &ObjectRef, field: &str, value: Option<&str>) -> impl Iterator<Item = FindingRef> {
    RULES.iter().filter_map(move |rule| rule.finding_for_refusal(object, field, value))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::{Value, json};

    use super::*;
    use crate::facts::{ChangeSet, Facts};
    use crate::rule::{Memory, Setting, SettingKind, Settings};

    #[test]
    fn every_rule_is_named_once_and_documented() {
        let mut names = BTreeSet::from([SERVER, WAIVERS, POLICY, "none"]);
        for meta in metas() {
            assert!(names.insert(meta.name), "{} is taken", meta.name);
            assert!(!meta.summary.is_empty() && !meta.summary.ends_with('.'), "{}: summary", meta.name);
            assert!(!meta.needs.is_empty(), "{}: needs", meta.name);
            assert!(meta.docs.len() > 500, "{}: docs", meta.name);
            let checks: BTreeSet<_> = meta.checks.iter().map(|(name, _)| name).collect();
            assert_eq!(checks.len(), meta.checks.len(), "{}: a check is listed twice", meta.name);
            assert!(meta.checks.iter().all(|(_, doc)| !doc.is_empty()), "{}: a check has no line", meta.name);
        }
    }

    #[test]
    fn every_setting_has_a_default_and_leaves_the_common_ones_alone() {
        fn visit(rule: &str, settings: &[Setting]) {
            for setting in settings {
                assert!(!setting.doc.is_empty(), "{rule}: {} has no line", setting.name);
                match setting.kind {
                    SettingKind::Choice(words) | SettingKind::Required(words) => {
                        assert!(words.len() > 1, "{rule}: {} is no choice", setting.name);
                    }
                    SettingKind::Number { default, least, most } => {
                        assert!((least..=most).contains(&default), "{rule}: {} has no default", setting.name);
                    }
                    SettingKind::InputPath(_) | SettingKind::OutputFolder | SettingKind::Texts(_) => {}
                    SettingKind::Map(inner) => visit(rule, inner),
                    SettingKind::List(inner) => {
                        let is_path = |setting: &Setting| {
                            matches!(setting.kind, SettingKind::InputPath(_) | SettingKind::OutputFolder)
                        };
                        assert!(
                            !inner.iter().any(is_path),
                            "{rule}: {}: nobody looks for paths in lists",
                            setting.name
                        );
                        visit(rule, inner);
                    }
                }
            }
        }
        for meta in metas() {
            assert!(meta.settings.iter().all(|setting| !["mode", "failMode"].contains(&setting.name)));
            visit(meta.name, meta.settings);
        }
    }

    /// Every setting at a value, a list with one entry, and where each stands.
    fn sample(settings: &[Setting], place: &str, places: &mut Vec<(String, SettingKind)>) -> Value {
        let of_setting = |Setting { name, kind, .. }: &Setting| {
            let place = format!("{place}/{name}");
            places.push((place.clone(), *kind));
            let value = match kind {
                SettingKind::Choice(words) | SettingKind::Required(words) => words[0].into(),
                SettingKind::Number { default, .. } => (*default).into(),
                SettingKind::InputPath(_) | SettingKind::OutputFolder => "path".into(),
                SettingKind::Texts(words) => json!([words.first().unwrap_or(&"text")]),
                SettingKind::Map(inner) => sample(inner, &place, places),
                SettingKind::List(inner) => json!([sample(inner, &format!("{place}/0"), places)]),
            };
            ((*name).to_owned(), value)
        };
        Value::Object(settings.iter().map(of_setting).collect())
    }

    /// Whether a rule can read its settings. That it cannot is a defect, which it does not survive.
    fn reads(rule: &dyn Rule, values: &Value) -> bool {
        let settings = Settings { values: values.as_object().expect("a map").clone(), ..Settings::default() };
        let run = || {
            rule.plan(&ChangeSet::default(), &settings);
            rule.check(&Facts::default(), &settings, &mut Memory::default());
        };
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).is_ok()
    }

    #[test]
    fn every_rule_reads_what_it_declares_and_has_no_default_of_its_own() {
        for rule in RULES.iter().filter(|rule| !rule.meta().settings.is_empty()) {
            let name = rule.meta().name;
            let mut places = Vec::new();
            let values = sample(rule.meta().settings, "", &mut places);
            assert!(reads(*rule, &values), "{name}: the settings that it declares");
            for (place, kind) in &places {
                let with = |value: Value| {
                    let mut values = values.clone();
                    *values.pointer_mut(place).expect("it is there") = value;
                    reads(*rule, &values)
                };
                if let SettingKind::Choice(words) | SettingKind::Required(words) = kind {
                    assert!(words.iter().all(|word| with((*word).into())), "{name}: a word of {place}");
                }
                let takes_any = matches!(kind, SettingKind::InputPath(_) | SettingKind::OutputFolder);
                assert!(takes_any || !with("no such word".into()), "{name}: {place} takes any word");
                // What single checks do is looked up by their names.
                let (parent, key) = place.rsplit_once('/').expect("a pointer");
                if parent != "/checks" {
                    let mut without = values.clone();
                    let map = without.pointer_mut(parent).and_then(Value::as_object_mut).expect("a map");
                    map.shift_remove(key);
                    assert!(!reads(*rule, &without), "{name}: {place} is left out");
                    let mut beside = values.clone();
                    beside.pointer_mut(parent).expect("a map")["unheardOf"] = json!("text");
                    assert!(!reads(*rule, &beside), "{name}: something is beside {place}");
                }
            }
        }
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_nearest_one() {
        assert_eq!(find("CRDUpgradeSafety").map(|rule| rule.meta().name), Ok("CRDUpgradeSafety"));
        assert_eq!(
            find("CrdUpgradeSafty").map(|_| ()).expect_err("a slip").to_string(),
            "unknown preflight rule \"CrdUpgradeSafty\"; did you mean \"CRDUpgradeSafety\"?"
        );
        assert_eq!(
            find("zzz").map(|_| ()).expect_err("a stranger").to_string(),
            "unknown preflight rule \"zzz\"; known are CRDUpgradeSafety, PermissionValidation, FieldConflicts, \
             DestructiveChange, UpgradeDiff"
        );
    }
}
