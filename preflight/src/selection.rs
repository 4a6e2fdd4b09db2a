//! Which rules run with which settings, from the `--preflight` flag and `preflightRules`.
//! A test at the end of this file covers all combinations.

use std::collections::BTreeSet;

use pushback_objects::source::{InputError, Positions};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::default_set::{DefaultSet, LeftOut};
use crate::loosened::{Loosened, Loosening, RuleOff};
use crate::registry::{self, UnknownRule};
use crate::rule::{DocumentKind, Rule, Settings};
use crate::settings;
use crate::strictness::{self, Looser};
use crate::waiver::Accepted;

/// The flag's value that switches off every rule, and the one for the default set.
pub use crate::registry::{DEFAULT, NONE};

/// An entry of `preflightRules`.
#[derive(Clone, Copy, Debug)]
pub struct ConfigRule<'a> {
    /// `name`.
    pub name: &'a str,
    /// `config` as written; `Null` or an empty map where absent.
    pub config: &'a Value,
    /// Positions of its values, if it is from a file.
    pub positions: Option<&'a Positions>,
}

/// Who chose the rules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// The rule is in the default set.
    #[default]
    Default,
    /// `preflightRules` of a policy source.
    Source,
    /// `preflightRules` of the manifests.
    Config,
    /// The `--preflight` flag.
    Flag,
}

/// A selected rule.
#[derive(Clone, Debug)]
pub struct Selected {
    /// The rule itself.
    pub rule: &'static dyn Rule,
    /// Its validated settings.
    pub settings: Settings,
    /// Who chose it.
    pub origin: Origin,
}

impl Selected {
    /// Its name, and the `config` that gives it its settings.
    pub(crate) fn written(&self) -> (&'static str, Map<String, Value>) {
        let meta = self.rule.meta();
        (meta.name, settings::written(meta, &self.settings))
    }

    /// Document paths named by its settings, with the kind of documents expected there.
    #[must_use]
    pub fn input_paths(&self) -> Vec<(DocumentKind, &str)> {
        settings::input_paths(self.rule.meta().settings, &self.settings.values)
    }
}

/// The selected rules of a run, in the order of the registry.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// The rules; empty if none is to run.
    pub rules: Vec<Selected>,
    /// Who decided which rules run.
    pub origin: Origin,
    /// Rules that would run if they were not switched off.
    pub off: Vec<RuleOff>,
    /// Rules of the default set that a list of rules leaves out.
    pub left_out: Option<LeftOut>,
    /// Where the manifests are less strict than the policy.
    pub loosened: Vec<Loosened>,
    /// What a loosening does.
    pub loosening: Loosening,
    /// Number of objects affected by each waived finding before, by fingerprint.
    pub accepted: Accepted,
}

impl Selection {
    /// Whether all rules are switched off explicitly, which the report must point out.
    #[must_use]
    pub fn is_switched_off(&self) -> bool {
        self.rules.is_empty()
    }

    /// Each rule with the `config` that gives it its settings.
    pub fn written(&self) -> impl Iterator<Item = (&'static str, Map<String, Value>)> {
        self.rules.iter().map(Selected::written)
    }

    /// Names of the rules that another rule may leave a finding to. Rules that only the manifests add next to a policy
    /// are excluded: the manifests control their settings.
    #[must_use]
    pub fn relied_on(&self) -> BTreeSet<String> {
        let relied_on = self.rules.iter().filter(|selected| selected.origin == self.origin);
        relied_on.map(|selected| selected.rule.meta().name.to_owned()).collect()
    }
}

/// The names that the flag gives.
#[derive(Debug, Default)]
pub(crate) struct Named {
    /// Rules given by name.
    pub(crate) rules: Vec<String>,
    /// Whether the default set is given.
    pub(crate) includes_default: bool,
}

impl Named {
    /// Whether no rule is to run.
    pub(crate) fn is_none(&self) -> bool {
        self.rules.is_empty() && !self.includes_default
    }

    /// Whether a rule is given by name.
    pub(crate) fn names(&self, rule: &str) -> bool {
        self.rules.iter().any(|name| name == rule)
    }
}

/// The entries of `preflightRules`.
#[derive(Debug, Default)]
pub(crate) struct Listed<'c> {
    /// Entries for rules, by name.
    pub(crate) rules: Vec<Configured<'c>>,
    /// Whether there is an entry for the default set.
    pub(crate) includes_default: bool,
}

impl<'c> Listed<'c> {
    /// The entry for a rule.
    pub(crate) fn find(&self, name: &str) -> Option<&Configured<'c>> {
        self.rules.iter().find(|configured| configured.name == name)
    }
}

/// A parsed entry of `preflightRules`.
#[derive(Debug)]
pub(crate) struct Configured<'c> {
    /// Index of the entry, from 0.
    pub(crate) index: usize,
    /// Name of the rule.
    pub(crate) name: &'c str,
    /// `config` as written.
    pub(crate) written: &'c Value,
    /// All values, with defaults.
    pub(crate) values: Map<String, Value>,
}

/// An error in the flag or the Config.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SelectionError {
    /// The flag names a rule that does not exist.
    #[error("--preflight: {0}")]
    UnknownInFlag(UnknownRule),
    /// The flag names a rule twice.
    #[error("--preflight: rule \"{0}\" is named more than once")]
    RepeatedInFlag(String),
    /// The flag has an empty name, as in `A,,B`.
    #[error("--preflight: a rule name is empty in \"{0}\"")]
    EmptyInFlag(String),
    /// The flag is given both bare, which asks for the Config's rules, and with names, which replace them.
    #[error("--preflight is given both alone and with rule names; give the names only, or no names at all")]
    AloneAndWithNames,
    /// The flag mixes `none` with rules.
    #[error("--preflight: \"none\" switches all rules off and cannot be combined with other names")]
    NoneWithNames,
    /// The Config names a rule that does not exist.
    #[error("{error}{}", if .error.name == NONE { "; to run no rule, write `preflightRules: []`" } else { "" })]
    UnknownInConfig {
        /// Index of the entry, from 0, over all Config documents.
        index: usize,
        /// The unknown name.
        error: UnknownRule,
    },
    /// The Config names a rule twice, in one or several documents.
    #[error("preflight rule \"{name}\" is configured more than once")]
    RepeatedInConfig {
        /// Index of the repeated entry.
        index: usize,
        /// Index of the first entry with the name.
        first: usize,
        /// Name of the rule.
        name: String,
    },
    /// The entry for the default set has settings.
    #[error(
        "the entry \"{DEFAULT}\" has no config: its rules run with their own settings; to change those of one rule, name it \
         in an entry of its own"
    )]
    DefaultWithConfig {
        /// Index of the entry.
        index: usize,
    },
    /// A rule's `config` is invalid.
    #[error("preflight rule \"{name}\": {}", error.message)]
    Setting {
        /// Index of the entry.
        index: usize,
        /// Name of the rule.
        name: String,
        /// The error; the path in its message starts inside `config`.
        error: InputError,
    },
}

impl SelectionError {
    /// Index of the offending entry of `preflightRules`; `None` for the flag.
    #[must_use]
    pub fn config_index(&self) -> Option<usize> {
        match self {
            Self::UnknownInConfig { index, .. }
            | Self::RepeatedInConfig { index, .. }
            | Self::DefaultWithConfig { index }
            | Self::Setting { index, .. } => Some(*index),
            _ => None,
        }
    }
}

/// Reads the names in the flag: `None` if it leaves the choice to the Config, no rule for `none`.
pub(crate) fn read_flag(
    rules: &[&'static dyn Rule],
    default_set: DefaultSet,
    values: &[String],
    errors: &mut Vec<SelectionError>,
) -> Option<Named> {
    let (alone, named): (Vec<&String>, Vec<&String>) = values.iter().partition(|value| value.trim().is_empty());
    if named.is_empty() {
        return None;
    }
    if !alone.is_empty() {
        errors.push(SelectionError::AloneAndWithNames);
    }
    let mut names: Vec<String> = Vec::new();
    for value in named {
        for name in value.split(',').map(str::trim) {
            if name.is_empty() {
                errors.push(SelectionError::EmptyInFlag(value.clone()));
            } else if names.iter().any(|earlier| earlier == name) {
                errors.push(SelectionError::RepeatedInFlag(name.to_owned()));
            } else {
                names.push(name.to_owned());
            }
        }
    }
    let words: &[&str] = if default_set == DefaultSet::Exists { &[NONE, DEFAULT] } else { &[NONE] };
    let is_known = |name: &str| words.contains(&name) || rules.iter().any(|rule| rule.meta().name == name);
    for name in names.iter().filter(|name| !is_known(name)) {
        let mut error = UnknownRule::new(name, rules);
        // These words are suggested only for a different spelling of themselves.
        if let Some(word) = words.iter().find(|word| name.eq_ignore_ascii_case(word)) {
            error.suggestion = Some((*word).to_owned());
        }
        errors.push(SelectionError::UnknownInFlag(error));
    }
    if names.iter().any(|name| name == NONE) {
        if names.len() > 1 {
            errors.push(SelectionError::NoneWithNames);
        }
        names.clear();
    }
    let includes_default = names.iter().any(|name| name == DEFAULT);
    names.retain(|name| name != DEFAULT);
    Some(Named { rules: names, includes_default })
}

/// Reads the entries of `preflightRules`, without those of the rules to `skip`. If a rule may repeat, its strictest
/// settings win.
pub(crate) fn read_config<'c>(
    rules: &[&'static dyn Rule],
    default_set: DefaultSet,
    entries: &[ConfigRule<'c>],
    skip: &[&str],
    may_repeat: bool,
    errors: &mut Vec<SelectionError>,
) -> Listed<'c> {
    let nowhere = Positions::default();
    let mut seen: Vec<(usize, &str)> = Vec::new();
    let mut configured: Vec<Configured<'c>> = Vec::new();
    let mut includes_default = false;
    for (index, entry) in entries.iter().enumerate().filter(|(_, entry)| !skip.contains(&entry.name)) {
        let first = seen.iter().find(|(_, name)| *name == entry.name).map(|(first, _)| *first);
        if let Some(first) = first.filter(|_| !may_repeat) {
            errors.push(SelectionError::RepeatedInConfig { index, first, name: entry.name.to_owned() });
            continue;
        }
        seen.push((index, entry.name));
        if entry.name == DEFAULT && default_set == DefaultSet::Exists {
            includes_default = true;
            if entry.config.as_object().is_some_and(|config| !config.is_empty()) {
                errors.push(SelectionError::DefaultWithConfig { index });
            }
            continue;
        }
        let found = registry::find_in(rules, entry.name);
        let positions = entry.positions.unwrap_or(&nowhere);
        match found.map(|rule| (rule, settings::read(rule.meta(), entry.config, positions))) {
            Ok((rule, Ok(values))) => match configured.iter_mut().find(|earlier| earlier.name == entry.name) {
                Some(earlier) => {
                    let declared = settings::declared(rule.meta());
                    strictness::meet(&declared, &mut earlier.values, &values, &values, Looser::NotFollowed);
                }
                None => configured.push(Configured { index, name: entry.name, written: entry.config, values }),
            },
            Ok((_, Err(wrong))) => errors.extend(wrong.into_iter().map(|error| SelectionError::Setting {
                index,
                name: entry.name.to_owned(),
                error,
            })),
            Err(mut error) => {
                if error.name == NONE {
                    error.known.clear();
                } else if default_set == DefaultSet::Exists && error.name.eq_ignore_ascii_case(DEFAULT) {
                    error.suggestion = Some(DEFAULT.to_owned());
                }
                errors.push(SelectionError::UnknownInConfig { index, error });
            }
        }
    }
    Listed { rules: configured, includes_default }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::facts::{ChangeSet, Facts, Needs};
    use crate::policy::{select, select_from};
    use crate::rule::{Checked, FailMode, Judgement, Memory, Mode, RuleMeta};

    #[derive(Debug)]
    struct Named(&'static RuleMeta);

    impl Rule for Named {
        fn meta(&self) -> &'static RuleMeta {
            self.0
        }
        fn plan(&self, _: &ChangeSet, _: &Settings) -> Needs {
            Needs::new()
        }
        fn check(&self, _: &Facts, _: &Settings, _: &mut Memory) -> Checked {
            Checked::Done(Judgement::default())
        }
    }

    const fn meta(name: &'static str, default: bool) -> RuleMeta {
        RuleMeta { name, default, ..RuleMeta::COMMON }
    }

    static A: Named = Named(&meta("Alpha", true));
    static B: Named = Named(&meta("Bravo", true));
    static C: Named = Named(&meta("Charlie", false));
    static THREE: &[&dyn Rule] = &[&A, &B, &C];

    type Entries = Vec<(&'static str, Value)>;

    /// `Alpha warn open + Bravo @Flag`, `nothing @Source`, or the errors.
    fn outcome(flag: Option<&[&str]>, config: Option<&[(&str, Value)]>) -> String {
        let flag: Option<Vec<String>> = flag.map(|values| values.iter().map(ToString::to_string).collect());
        let config: Option<Vec<ConfigRule<'_>>> = config
            .map(|entries| entries.iter().map(|(name, config)| ConfigRule { name, config, positions: None }).collect());
        match select_from(THREE, flag.as_deref(), config.as_deref()) {
            Err(errors) => errors.iter().map(|error| format!("error: {error}")).collect::<Vec<_>>().join(" | "),
            Ok(selection) if selection.is_switched_off() => format!("nothing @{:?}", selection.origin),
            Ok(selection) => {
                assert!(selection.rules.iter().all(|selected| selected.origin == selection.origin));
                let rules: Vec<String> = selection
                    .rules
                    .iter()
                    .map(|selected| {
                        let mode = if selected.settings.mode == Mode::Warn { " warn" } else { "" };
                        let open = if selected.settings.fail_mode == FailMode::Open { " open" } else { "" };
                        format!("{}{mode}{open}", selected.rule.meta().name)
                    })
                    .collect();
                format!("{} @{:?}", rules.join(" + "), selection.origin)
            }
        }
    }

    #[test]
    fn flag_and_config_together_decide_which_rules_run_with_which_settings() {
        let flags: [(&str, Option<&[&str]>); 8] = [
            ("no flag", None),
            ("--preflight", Some(&[""])),
            ("--preflight=Alpha", Some(&["Alpha"])),
            // Both spellings reach this function as the same value.
            ("--preflight Alpha", Some(&["Alpha"])),
            ("--preflight=Alpha,Bravo", Some(&["Alpha,Bravo"])),
            ("--preflight=Bravo --preflight=Alpha", Some(&["Bravo", "Alpha"])),
            ("--preflight=none", Some(&["none"])),
            ("--preflight=Charlie", Some(&["Charlie"])),
        ];
        let set = || json!({"mode": "warn", "failMode": "open"});
        let configs: [(&str, Option<Entries>); 6] = [
            ("no key", None),
            ("[]", Some(vec![])),
            ("Alpha with settings", Some(vec![("Alpha", set())])),
            ("only Bravo", Some(vec![("Bravo", Value::Null)])),
            ("Alpha twice", Some(vec![("Alpha", set()), ("Bravo", Value::Null), ("Alpha", Value::Null)])),
            ("unknown name", Some(vec![("Brave", Value::Null)])),
        ];
        let mut table = String::new();
        for (flag_title, flag) in &flags {
            for (config_title, config) in &configs {
                let result = outcome(*flag, config.as_deref());
                table.push_str(&format!("{flag_title:<36}| {config_title:<20}| {result}\n"));
            }
        }
        insta::assert_snapshot!(table, @r#"
        no flag                             | no key              | Alpha + Bravo @Default
        no flag                             | []                  | nothing @Source
        no flag                             | Alpha with settings | Alpha warn open @Source
        no flag                             | only Bravo          | Bravo @Source
        no flag                             | Alpha twice         | error: preflight rule "Alpha" is configured more than once
        no flag                             | unknown name        | error: unknown preflight rule "Brave"; did you mean "Bravo"?
        --preflight                         | no key              | Alpha + Bravo @Default
        --preflight                         | []                  | nothing @Source
        --preflight                         | Alpha with settings | Alpha warn open @Source
        --preflight                         | only Bravo          | Bravo @Source
        --preflight                         | Alpha twice         | error: preflight rule "Alpha" is configured more than once
        --preflight                         | unknown name        | error: unknown preflight rule "Brave"; did you mean "Bravo"?
        --preflight=Alpha                   | no key              | Alpha @Flag
        --preflight=Alpha                   | []                  | Alpha @Flag
        --preflight=Alpha                   | Alpha with settings | Alpha warn open @Flag
        --preflight=Alpha                   | only Bravo          | Alpha @Flag
        --preflight=Alpha                   | Alpha twice         | error: preflight rule "Alpha" is configured more than once
        --preflight=Alpha                   | unknown name        | error: unknown preflight rule "Brave"; did you mean "Bravo"?
        --preflight Alpha                   | no key              | Alpha @Flag
        --preflight Alpha                   | []                  | Alpha @Flag
        --preflight Alpha                   | Alpha with settings | Alpha warn open @Flag
        --preflight Alpha                   | only Bravo          | Alpha @Flag
        --preflight Alpha                   | Alpha twice         | error: preflight rule "Alpha" is configured more than once
        --preflight Alpha                   | unknown name        | error: unknown preflight rule "Brave"; did you mean "Bravo"?
        --preflight=Alpha,Bravo             | no key              | Alpha + Bravo @Flag
        --preflight=Alpha,Bravo             | []                  | Alpha + Bravo @Flag
        --preflight=Alpha,Bravo             | Alpha with settings | Alpha warn open + Bravo @Flag
        --preflight=Alpha,Bravo             | only Bravo          | Alpha + Bravo @Flag
        --preflight=Alpha,Bravo             | Alpha twice         | error: preflight rule "Alpha" is configured more than once
        --preflight=Alpha,Bravo             | unknown name        | error: unknown preflight rule "Brave"; did you mean "Bravo"?
        --preflight=Bravo --preflight=Alpha | no key              | Alpha + Bravo @Flag
        --preflight=Bravo --preflight=Alpha | []                  | Alpha + Bravo @Flag
        --preflight=Bravo --preflight=Alpha | Alpha with settings | Alpha warn open + Bravo @Flag
        --preflight=Bravo --preflight=Alpha | only Bravo          | Alpha + Bravo @Flag
        --preflight=Bravo --preflight=Alpha | Alpha twice         | error: preflight rule "Alpha" is configured more than once
        --preflight=Bravo --preflight=Alpha | unknown name        | error: unknown preflight rule "Brave"; did you mean "Bravo"?
        --preflight=none                    | no key              | nothing @Flag
        --preflight=none                    | []                  | nothing @Flag
        --preflight=none                    | Alpha with settings | nothing @Flag
        --preflight=none                    | only Bravo          | nothing @Flag
        --preflight=none                    | Alpha twice         | error: preflight rule "Alpha" is configured more than once
        --preflight=none                    | unknown name        | error: unknown preflight rule "Brave"; did you mean "Bravo"?
        --preflight=Charlie                 | no key              | Charlie @Flag
        --preflight=Charlie                 | []                  | Charlie @Flag
        --preflight=Charlie                 | Alpha with settings | Charlie @Flag
        --preflight=Charlie                 | only Bravo          | Charlie @Flag
        --preflight=Charlie                 | Alpha twice         | error: preflight rule "Alpha" is configured more than once
        --preflight=Charlie                 | unknown name        | error: unknown preflight rule "Brave"; did you mean "Bravo"?
        "#);
    }

    #[test]
    fn a_flag_that_contradicts_itself_is_an_error() {
        let flag = |values: &[&str]| outcome(Some(values), None);
        insta::assert_snapshot!(flag(&["Alpha,Alpha"]), @r#"error: --preflight: rule "Alpha" is named more than once"#);
        insta::assert_snapshot!(flag(&["Alpha", "Bravo,Alpha"]), @r#"error: --preflight: rule "Alpha" is named more than once"#);
        insta::assert_snapshot!(flag(&["none,Alpha"]), @r#"error: --preflight: "none" switches all rules off and cannot be combined with other names"#);
        insta::assert_snapshot!(flag(&["none", "Alpha"]), @r#"error: --preflight: "none" switches all rules off and cannot be combined with other names"#);
        insta::assert_snapshot!(flag(&["", "Alpha"]), @"error: --preflight is given both alone and with rule names; give the names only, or no names at all");
        insta::assert_snapshot!(flag(&["Alpha,,Bravo"]), @r#"error: --preflight: a rule name is empty in "Alpha,,Bravo""#);
        insta::assert_snapshot!(flag(&["alpha"]), @r#"error: --preflight: unknown preflight rule "alpha"; did you mean "Alpha"?"#);
        insta::assert_snapshot!(flag(&["None"]), @r#"error: --preflight: unknown preflight rule "None"; did you mean "none"?"#);
        insta::assert_snapshot!(flag(&["Alpha , Bravo"]), @"Alpha + Bravo @Flag");
        insta::assert_snapshot!(flag(&["", ""]), @"Alpha + Bravo @Default");
    }

    #[test]
    fn the_config_is_validated_even_where_the_flag_switches_its_rules_off() {
        let config = [("Bravo", json!({"mode": "off", "x": 1})), ("none", Value::Null)];
        insta::assert_snapshot!(outcome(Some(&["none"]), Some(&config)), @r#"error: preflight rule "Bravo": x: unknown key | error: preflight rule "Bravo": mode: expected `error` or `warn`, found "off" | error: unknown preflight rule "none"; to run no rule, write `preflightRules: []`"#);
        insta::assert_snapshot!(outcome(Some(&["Zulu"]), Some(&config[1..])), @r#"error: --preflight: unknown preflight rule "Zulu"; known are Alpha, Bravo, Charlie | error: unknown preflight rule "none"; to run no rule, write `preflightRules: []`"#);
    }

    #[test]
    fn an_error_in_the_config_carries_its_entry() {
        let config = json!({"mode": "off"});
        let rules = [("Bravo", &config), ("Bravo", &config), ("Brave", &config)];
        let entries = rules.map(|(name, config)| ConfigRule { name, config, positions: None });
        let errors = select_from(THREE, Some(&["Zulu".to_owned()]), Some(&entries)).expect_err("all are wrong");
        let places: Vec<_> = errors.iter().map(SelectionError::config_index).collect();
        assert_eq!(places, [None, Some(0), Some(1), Some(2)]);
    }

    #[test]
    fn without_flag_and_config_the_default_set_runs() {
        let selection = select(None, None).expect("defaults are valid");
        let names: Vec<_> = selection.rules.iter().map(|selected| selected.rule.meta().name).collect();
        let defaults = [
            "CRDUpgradeSafety",
            "StoredVersions",
            "PermissionValidation",
            "References",
            "PodAdmission",
            "RemovedAPIs",
            "DestructiveChange",
        ];
        assert_eq!(names, defaults);
        assert_eq!(selection.origin, Origin::Default);
    }
}
