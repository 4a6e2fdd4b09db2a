//! The list of all rules. Help, docs, completions and rule selection are generated from it, so every rule in it is
//! documented and selectable, and no other rule exists.

use pushback_objects::finding::{Finding, FindingRef};
use pushback_objects::object::ObjectRef;
use pushback_objects::remedy::Remedy;
use pushback_objects::suggest;

use crate::facts::{Facts, Needs};
use crate::rule::{Rule, RuleMeta};
use crate::rules::{
    ConversionRoundTrip, CrdUpgradeSafety, DestructiveChange, ExistingObjects, FieldConflicts, ImagesExist,
    PermissionValidation, PodAdmission, References, RemovedApis, StoredVersions, UpgradeDiff, crd_upgrade_safety,
    permission_validation, server_refusals, stored_remedy, stored_versions,
};

/// All rules, in the order in which they run and are listed.
pub static RULES: &[&dyn Rule] = &[
    &CrdUpgradeSafety,
    &StoredVersions,
    &PermissionValidation,
    &References,
    &PodAdmission,
    &RemovedApis,
    &FieldConflicts,
    &DestructiveChange,
    &UpgradeDiff,
    &ExistingObjects,
    &ConversionRoundTrip,
    &ImagesExist,
];

pub use pushback_objects::finding::{SERVER, STORAGE, WAIVERS};

pub use crate::rules::crd_upgrade_safety::published_line;

/// The word for the default set of rules, so that no rule has this name.
pub use pushback_objects::remedy::DEFAULT;

/// Name under which manifests less strict than the policy are reported. Not a rule.
pub const POLICY: &str = "policy";

/// The word for no rule at all, so that no rule has this name.
pub const NONE: &str = "none";

/// The error for a name that is not in the registry.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown preflight rule \"{name}\"{}", suggest::hint_or_known(.suggestion.as_deref(), .known))]
pub struct UnknownRule {
    /// The name as given.
    pub name: String,
    /// The most similar known name.
    pub suggestion: Option<String>,
    /// All known names.
    pub known: Vec<&'static str>,
}

impl UnknownRule {
    /// The error for a name that none of `rules` has.
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
/// [`UnknownRule`] with the most similar known name.
pub fn find(name: &str) -> Result<&'static dyn Rule, UnknownRule> {
    find_in(RULES, name)
}

/// Like [`find`], in a given list of rules.
///
/// # Errors
/// [`UnknownRule`] with the most similar name in the list.
pub fn find_in<'r>(rules: &[&'r dyn Rule], name: &str) -> Result<&'r dyn Rule, UnknownRule> {
    rules.iter().copied().find(|rule| rule.meta().name == name).ok_or_else(|| UnknownRule::new(name, rules))
}

/// The metadata of all rules, in order.
pub fn metas() -> impl Iterator<Item = &'static RuleMeta> {
    RULES.iter().map(|rule| rule.meta())
}

/// The ways out of a finding.
#[must_use]
pub fn remedies(facts: &Facts, finding: &Finding) -> Vec<Remedy> {
    match finding.rule.as_str() {
        SERVER => server_refusals::ways_out(facts, finding),
        STORAGE => stored_remedy::ways_past_obstacle(facts, finding),
        name => {
            let rule = RULES.iter().find(|rule| rule.meta().name == name);
            rule.map(|rule| rule.remedies(facts, finding)).unwrap_or_default()
        }
    }
}

/// Reviews of the user's rights that the rule is sure to need for a write in this namespace, or one outside of namespaces
/// if it is empty: they are asked before the whole plan is known.
#[must_use]
pub fn needs_of_write_in(rule: &dyn Rule, namespace: &str) -> Needs {
    let reads_rights = rule.meta().name == permission_validation::NAME;
    if reads_rights { permission_validation::needs_of_write_in(namespace) } else { Needs::new() }
}

/// Rule and check of findings about a version that is removed, which are answered once no object is left in it. Clients
/// that request the version are not helped by that.
pub fn answered_by_moving_objects() -> impl Iterator<Item = (&'static str, &'static str)> {
    let of_crd = (crd_upgrade_safety::NAME, crd_upgrade_safety::ANSWERED_BY_MOVING_OBJECTS);
    std::iter::once(of_crd).chain(of_stored_versions())
}

/// Rule and check of findings that are answered once every object of a CRD is converted by a plan and held against the new
/// schema.
pub fn answered_by_converting_objects() -> impl Iterator<Item = (&'static str, &'static str)> {
    let of_crd = crd_upgrade_safety::answered_by_converting_objects().map(|check| (crd_upgrade_safety::NAME, check));
    of_crd.chain(of_stored_versions())
}

fn of_stored_versions() -> impl Iterator<Item = (&'static str, &'static str)> {
    stored_versions::ANSWERED_BY_MOVING_OBJECTS.iter().map(|check| (stored_versions::NAME, *check))
}

/// The rules' findings for a rejection by the API server, identified by the field that the server names and the value
/// that it quotes. They say what to do, so they are kept if both are reported.
pub fn findings_for_refusal(object: &ObjectRef, field: &str, value: Option<&str>) -> impl Iterator<Item = FindingRef> {
    let of_crd = crd_upgrade_safety::finding_for_refusal(object, field, value);
    of_crd.into_iter().chain(stored_versions::finding_for_refusal(object, field, value))
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
        let mut names = BTreeSet::from([SERVER, STORAGE, WAIVERS, POLICY, NONE, DEFAULT]);
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

    /// A value for every setting, with one entry in each list, and the place of each setting.
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

    /// Whether a rule can read its settings. If it cannot, it panics: a defect.
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
                // The effects of single checks are looked up by name.
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
            "unknown preflight rule \"zzz\"; known are CRDUpgradeSafety, StoredVersions, PermissionValidation, References, \
             PodAdmission, RemovedAPIs, FieldConflicts, DestructiveChange, UpgradeDiff, ExistingObjects, ConversionRoundTrip, \
             ImagesExist"
        );
    }
}
