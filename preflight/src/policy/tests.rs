//! Policy sources and manifests, setting by setting: what is in effect and what is reported.

use pushback_objects::finding::Verdict;
use serde_json::json;

use super::*;
use crate::rule::Mode;

/// Effective rules and settings, and what is reported about the manifests.
fn resolved(flag: Option<&[&str]>, source: Option<Option<Value>>, manifests: Option<Value>) -> String {
    let flag: Option<Vec<String>> = flag.map(|values| values.iter().map(ToString::to_string).collect());
    let entries = |rules: &Option<Value>| -> Option<Vec<(String, Value)>> {
        let entry = |rule: &Value| (rule["name"].as_str().expect("a name").to_owned(), rule["config"].clone());
        rules.as_ref().map(|rules| rules.as_array().expect("a list").iter().map(entry).collect())
    };
    fn of(entries: &Option<Vec<(String, Value)>>) -> Option<Vec<ConfigRule<'_>>> {
        entries
            .as_ref()
            .map(|rules| rules.iter().map(|(name, config)| ConfigRule { name, config, positions: None }).collect())
    }
    let (of_source, of_manifests) = (source.as_ref().map(entries), entries(&manifests));
    let (of_source, of_manifests) = (of_source.as_ref().map(of), of(&of_manifests));
    let side = of_source.as_ref().map(|rules| Side { rules: rules.as_deref(), ..Side::default() });
    let among = Side { rules: of_manifests.as_deref(), ..Side::default() };
    let policy = resolve(flag.as_deref(), side, among, &[]).expect("valid");
    let rule = |selected: &Selected| {
        let mode = if selected.settings.mode == Mode::Warn { " warn" } else { "" };
        format!("{}{mode}", selected.rule.meta().name)
    };
    let rules: Vec<String> = policy.selection.rules.iter().map(rule).collect();
    let told = |loosened: &Loosened| {
        let followed = if loosened.followed { "followed" } else { "not followed" };
        format!("{:?} {} {followed}", loosened.kind, loosened.what)
    };
    let told: Vec<String> = policy.selection.loosened.iter().map(told).collect();
    let off: Vec<String> = policy.selection.off.iter().map(|off| format!("{}: {}", off.name, off.reason)).collect();
    format!("{} | {} | {}", rules.join(", "), told.join(", "), off.join(", "))
}

#[test]
fn with_a_source_manifests_add_rules_and_take_none_away() {
    let source = || Some(Some(json!([{"name": "CRDUpgradeSafety"}])));
    let show = |source, manifests| resolved(None, source, manifests);
    insta::assert_snapshot!(show(source(), Some(json!([]))), @"CRDUpgradeSafety | RuleOff CRDUpgradeSafety not followed | ");
    insta::assert_snapshot!(show(source(), Some(json!([{"name": "FieldConflicts"}]))), @"CRDUpgradeSafety, FieldConflicts | RuleOff CRDUpgradeSafety not followed | ");
    insta::assert_snapshot!(show(source(), Some(json!([{"name": "CRDUpgradeSafety", "config": {"mode": "warn"}}]))), @"CRDUpgradeSafety | LooserSetting CRDUpgradeSafety mode not followed | ");
    // A source without the key has the defaults.
    insta::assert_snapshot!(show(Some(None), Some(json!([]))), @"CRDUpgradeSafety, StoredVersions, PermissionValidation, References warn, PodAdmission, RemovedAPIs warn, DestructiveChange | RuleOff CRDUpgradeSafety not followed, RuleOff StoredVersions not followed, RuleOff PermissionValidation not followed, RuleOff PodAdmission not followed, RuleOff DestructiveChange not followed | ");
    insta::assert_snapshot!(show(Some(Some(json!([]))), Some(json!([{"name": "CRDUpgradeSafety", "config": {"mode": "warn"}}]))), @"CRDUpgradeSafety warn |  | ");
}

#[test]
fn without_a_source_the_manifests_decide_and_it_is_told() {
    let show = |manifests| resolved(None, None, manifests);
    insta::assert_snapshot!(show(None), @"CRDUpgradeSafety, StoredVersions, PermissionValidation, References warn, PodAdmission, RemovedAPIs warn, DestructiveChange |  | ");
    insta::assert_snapshot!(show(Some(json!([]))), @" | RuleOff CRDUpgradeSafety followed, RuleOff StoredVersions followed, RuleOff PermissionValidation followed, RuleOff PodAdmission followed, RuleOff DestructiveChange followed | CRDUpgradeSafety: the manifests' preflightRules leave it out, StoredVersions: the manifests' preflightRules leave it out, PermissionValidation: the manifests' preflightRules leave it out, PodAdmission: the manifests' preflightRules leave it out, DestructiveChange: the manifests' preflightRules leave it out");
    insta::assert_snapshot!(show(Some(json!([{"name": "CRDUpgradeSafety", "config": {"mode": "warn"}}]))), @"CRDUpgradeSafety warn | LooserSetting CRDUpgradeSafety mode followed, RuleOff StoredVersions followed, RuleOff PermissionValidation followed, RuleOff PodAdmission followed, RuleOff DestructiveChange followed | StoredVersions: the manifests' preflightRules leave it out, PermissionValidation: the manifests' preflightRules leave it out, PodAdmission: the manifests' preflightRules leave it out, DestructiveChange: the manifests' preflightRules leave it out");
    // A rule that is not a default and that the manifests add is theirs.
    insta::assert_snapshot!(show(Some(json!([{"name": "CRDUpgradeSafety"}, {"name": "PermissionValidation"}, {"name": "UpgradeDiff", "config": {"mode": "warn", "model": "/m"}}]))), @"CRDUpgradeSafety, PermissionValidation, UpgradeDiff warn | RuleOff StoredVersions followed, RuleOff PodAdmission followed, RuleOff DestructiveChange followed, OutsideOnly UpgradeDiff model not followed | StoredVersions: the manifests' preflightRules leave it out, PodAdmission: the manifests' preflightRules leave it out, DestructiveChange: the manifests' preflightRules leave it out");
}

#[test]
fn the_flag_chooses_rules_and_is_no_source_of_settings() {
    let warn = || json!([{"name": "CRDUpgradeSafety", "config": {"mode": "warn"}}]);
    let flag: Option<&[&str]> = Some(&["CRDUpgradeSafety"]);
    insta::assert_snapshot!(resolved(flag, None, Some(warn())), @"CRDUpgradeSafety warn | LooserSetting CRDUpgradeSafety mode followed | StoredVersions: --preflight names other rules, PermissionValidation: --preflight names other rules, PodAdmission: --preflight names other rules, DestructiveChange: --preflight names other rules");
    insta::assert_snapshot!(resolved(flag, Some(None), Some(warn())), @"CRDUpgradeSafety | LooserSetting CRDUpgradeSafety mode not followed | StoredVersions: --preflight names other rules, PermissionValidation: --preflight names other rules, PodAdmission: --preflight names other rules, DestructiveChange: --preflight names other rules");
    insta::assert_snapshot!(resolved(Some(&["none"]), Some(None), None), @" |  | CRDUpgradeSafety: --preflight=none, StoredVersions: --preflight=none, PermissionValidation: --preflight=none, PodAdmission: --preflight=none, DestructiveChange: --preflight=none");
}

#[test]
fn what_a_rule_leaves_to_another_it_does_not_leave_to_one_that_the_manifests_add() {
    let entries = [("CRDUpgradeSafety", json!({"mode": "warn"}))];
    let rules = entries.each_ref().map(|(name, config)| ConfigRule { name, config, positions: None });
    let config = json!({});
    let source = [ConfigRule { name: "DestructiveChange", config: &config, positions: None }];
    let side = |rules| Side { rules: Some(rules), ..Side::default() };
    let policy = resolve(None, Some(side(&source)), side(&rules), &[]).expect("valid");
    let names: Vec<&str> = policy.selection.rules.iter().map(|selected| selected.rule.meta().name).collect();
    assert_eq!(names, ["CRDUpgradeSafety", "DestructiveChange"]);
    assert_eq!(policy.selection.relied_on().into_iter().collect::<Vec<_>>(), ["DestructiveChange"]);
}

#[test]
fn waivers_of_the_manifests_count_only_where_they_are_the_policys_too() {
    let waiver = |check: &str, expires: Option<&str>, affected: Option<u64>| Waiver {
        rule: Some("CRDUpgradeSafety".into()),
        check: Some(check.into()),
        expires: expires.map(Into::into),
        affected,
        reason: "known".into(),
        ..Waiver::default()
    };
    let source = [waiver("scope", Some("2030-01-01"), Some(3))];
    fn side(waivers: &[Waiver]) -> Side<'_> {
        Side { waivers, ..Side::default() }
    }
    let told = |manifests: Waiver| {
        let manifests = [manifests];
        let policy = resolve(None, Some(side(&source)), side(&manifests), &[]).expect("valid");
        assert_eq!(policy.waivers, source);
        policy.selection.loosened.len()
    };
    assert_eq!(told(waiver("scope", Some("2029-01-01"), Some(2))), 0);
    assert_eq!(told(waiver("scope", None, Some(3))), 1);
    assert_eq!(told(waiver("scope", Some("2030-01-01"), None)), 1);
    assert_eq!(told(waiver("scope", Some("2030-01-01"), Some(4))), 1);
    assert_eq!(told(waiver("enum", Some("2029-01-01"), Some(1))), 1);
    let policy = resolve(None, None, side(&source), &[]).expect("valid");
    assert_eq!((policy.waivers.len(), policy.selection.loosened[0].followed), (1, true));
}

#[test]
fn a_loosening_warns_and_refuses_where_the_policy_says_so() {
    let config = json!({"mode": "warn"});
    let rules = [ConfigRule { name: "CRDUpgradeSafety", config: &config, positions: None }];
    for (of_source, of_manifests, expected) in [
        (None, None, Verdict::Change),
        (Some(Loosening::Error), None, Verdict::Breaking),
        (Some(Loosening::Error), Some(Loosening::Warn), Verdict::Breaking),
        (None, Some(Loosening::Error), Verdict::Breaking),
    ] {
        let source = Side { loosening: of_source, ..Side::default() };
        let manifests = Side { rules: Some(&rules), loosening: of_manifests, ..Side::default() };
        let selection = resolve(None, Some(source), manifests, &[]).expect("valid").selection;
        let of_mode = selection.loosened.iter().find(|loosened| loosened.what.ends_with("mode")).expect("told");
        let finding = of_mode.finding(selection.loosening);
        assert_eq!((finding.verdict, finding.severity), (expected, Severity::Warning));
    }
}

#[test]
fn of_a_source_that_many_apps_share_the_strictest_settings_count() {
    let (warn, off) = (json!({"mode": "warn"}), json!({"checks": {"enum": "off"}}));
    let rules = [&warn, &off].map(|config| ConfigRule { name: "CRDUpgradeSafety", config, positions: None });
    let source = Side { rules: Some(&rules), may_repeat: true, ..Side::default() };
    let selection = resolve(None, Some(source), Side::default(), &[]).expect("valid").selection;
    let settings = &selection.rules[0].settings;
    assert_eq!((settings.mode, settings.values["checks"]["enum"].as_str()), (Mode::Error, Some("error")));
    let source = Side { may_repeat: false, ..source };
    let errors = resolve(None, Some(source), Side::default(), &[]).expect_err("one of them is a mistake");
    assert!(matches!(errors[0], (true, SelectionError::RepeatedInConfig { .. })));
}

/// The value of `liveObjects` in effect, and what is reported about the manifests.
fn live_objects(flag: Option<&[&str]>, source: Option<Option<Value>>, manifests: Option<Value>) -> String {
    fn entries(config: &Option<Value>) -> Option<Vec<ConfigRule<'_>>> {
        config.as_ref().map(|config| vec![ConfigRule { name: "CRDUpgradeSafety", config, positions: None }])
    }
    let flag: Option<Vec<String>> = flag.map(|names| names.iter().map(ToString::to_string).collect());
    let of_source = source.as_ref().map(entries);
    let of_manifests = entries(&manifests);
    let source = of_source.as_ref().map(|rules| Side { rules: rules.as_deref(), ..Side::default() });
    let among = Side { rules: of_manifests.as_deref(), ..Side::default() };
    let policy = resolve(flag.as_deref(), source, among, &[]).expect("valid");
    let selected = &policy.selection.rules[0];
    let told = policy.selection.loosened.iter().filter(|loosened| loosened.kind == LoosenedKind::LooserSetting);
    let told: Vec<String> = told.map(|it| it.finding(Loosening::default()).message).collect();
    [selected.settings.values["liveObjects"].as_str().unwrap_or_default().to_owned()]
        .into_iter()
        .chain(told)
        .collect::<Vec<_>>()
        .join(" | ")
}

#[test]
fn objects_decide_where_nobody_asks_for_the_rule_and_else_only_where_the_settings_say_so() {
    let of = |word: &str| Some(json!({"liveObjects": word}));
    let bare = || Some(json!({}));
    let named: Option<&[&str]> = Some(&["CRDUpgradeSafety"]);
    let cases = [
        ("nobody", None, None, None),
        ("a policy without a list", None, Some(None), None),
        ("--preflight alone", Some(&[""][..]), None, None),
        ("--preflight=NAME", named, None, None),
        ("--preflight=NAME, a policy", named, Some(None), None),
        ("the policy", None, Some(bare()), None),
        ("the policy: auto", None, Some(of("auto")), None),
        ("the policy: published", None, Some(Some(json!({"profile": "published"}))), None),
        ("the manifests", None, None, bare()),
        ("the manifests: auto", None, None, of("auto")),
        ("the manifests: report", None, None, of("report")),
        ("the manifests: decide", None, None, of("decide")),
        ("a policy without a list, the manifests", None, Some(None), bare()),
        ("a policy without a list, the manifests: decide", None, Some(None), of("decide")),
        ("the policy, the manifests: auto", None, Some(bare()), of("auto")),
        ("the policy: decide, the manifests: auto", None, Some(of("decide")), of("auto")),
        ("--preflight=NAME, the manifests: auto", named, None, of("auto")),
    ];
    let mut table = String::new();
    for (who, flag, source, manifests) in cases {
        table.push_str(&format!("{who:<46} | {}\n", live_objects(flag, source, manifests)));
    }
    insta::assert_snapshot!(table, @r#"
    nobody                                         | auto
    a policy without a list                        | auto
    --preflight alone                              | auto
    --preflight=NAME                               | report
    --preflight=NAME, a policy                     | report
    the policy                                     | report
    the policy: auto                               | auto
    the policy: published                          | report
    the manifests                                  | report
    the manifests: auto                            | auto
    the manifests: report                          | report
    the manifests: decide                          | decide | CRDUpgradeSafety liveObjects is "decide", and without the manifests' Config "auto"
    a policy without a list, the manifests         | report
    a policy without a list, the manifests: decide | auto | CRDUpgradeSafety liveObjects stays "auto": "decide" is not stricter
    the policy, the manifests: auto                | report | CRDUpgradeSafety liveObjects stays "report": "auto" is not stricter
    the policy: decide, the manifests: auto        | auto
    --preflight=NAME, the manifests: auto          | auto | CRDUpgradeSafety liveObjects is "auto", and without the manifests' Config "report"
    "#);
}

/// Effective rules with their settings, and the default rules that a list leaves out.
fn with_left_out(flag: Option<&[&str]>, source: Option<Option<Value>>, manifests: Option<Value>) -> String {
    let flag: Option<Vec<String>> = flag.map(|values| values.iter().map(ToString::to_string).collect());
    let entries = |rules: &Option<Value>| -> Option<Vec<(String, Value)>> {
        let entry = |rule: &Value| (rule["name"].as_str().expect("a name").to_owned(), rule["config"].clone());
        rules.as_ref().map(|rules| rules.as_array().expect("a list").iter().map(entry).collect())
    };
    fn of(entries: &Option<Vec<(String, Value)>>) -> Option<Vec<ConfigRule<'_>>> {
        entries
            .as_ref()
            .map(|rules| rules.iter().map(|(name, config)| ConfigRule { name, config, positions: None }).collect())
    }
    let (of_source, of_manifests) = (source.as_ref().map(entries), entries(&manifests));
    let (of_source, of_manifests) = (of_source.as_ref().map(of), of(&of_manifests));
    let side = of_source.as_ref().map(|rules| Side { rules: rules.as_deref(), ..Side::default() });
    let among = Side { rules: of_manifests.as_deref(), ..Side::default() };
    match resolve(flag.as_deref(), side, among, &[]) {
        Ok(policy) => {
            let rules: Vec<String> = policy
                .selection
                .written()
                .map(
                    |(name, config)| {
                        if config.is_empty() { name.to_owned() } else { format!("{name} {}", json!(config)) }
                    },
                )
                .collect();
            let left_out = policy.selection.left_out;
            let left_out = left_out.map(|it| format!("{} without {}", it.list, it.rules.join(", ")));
            format!("{} | {}", rules.join(", "), left_out.unwrap_or_default())
        }
        Err(errors) => errors.iter().map(|(_, error)| format!("error: {error}")).collect::<Vec<_>>().join(" | "),
    }
}

/// A name, the flag, the list of the policy if there is one, and that of the manifests.
type Choice<'a> = (&'a str, Option<&'a [&'a str]>, Option<Option<Value>>, Option<Value>);

#[test]
fn default_entry_runs_default_set_with_its_settings_and_named_rules_with_theirs() {
    let default = || json!({"name": "default"});
    let rule = |name: &str| json!({"name": name});
    let warn = |name: &str| json!({"name": name, "config": {"mode": "warn"}});
    let all = with_left_out(None, None, None);
    let cases: Vec<Choice<'_>> = vec![
        ("nothing", None, None, None),
        ("manifests: one", None, None, Some(json!([rule("ExistingObjects")]))),
        ("manifests: default", None, None, Some(json!([default()]))),
        ("manifests: default, one", None, None, Some(json!([default(), rule("ExistingObjects")]))),
        ("manifests: default, a default rule", None, None, Some(json!([default(), rule("References")]))),
        (
            "manifests: a default rule with config, default",
            None,
            None,
            Some(json!([warn("StoredVersions"), default()])),
        ),
        ("policy: one", None, Some(Some(json!([rule("ExistingObjects")]))), None),
        ("policy: default, one", None, Some(Some(json!([default(), rule("ExistingObjects")]))), None),
        (
            "policy: one, manifests: default",
            None,
            Some(Some(json!([rule("ExistingObjects")]))),
            Some(json!([default()])),
        ),
        (
            "policy: default, manifests: one",
            None,
            Some(Some(json!([default()]))),
            Some(json!([rule("ExistingObjects")])),
        ),
        ("policy: default, manifests: default", None, Some(Some(json!([default()]))), Some(json!([default()]))),
        ("flag: one", Some(&["ExistingObjects"]), None, None),
        ("flag: default", Some(&["default"]), None, None),
        ("flag: default,one", Some(&["default,ExistingObjects"]), None, None),
        ("flag: one and default", Some(&["ExistingObjects", "default"]), None, None),
        ("flag: default,References", Some(&["default,References"]), None, None),
        (
            "flag: default, policy: StoredVersions warns",
            Some(&["default"]),
            Some(Some(json!([warn("StoredVersions")]))),
            None,
        ),
        (
            "flag: default, manifests: StoredVersions warns",
            Some(&["default"]),
            None,
            Some(json!([warn("StoredVersions")])),
        ),
        ("flag: none", Some(&["none"]), None, None),
        ("manifests: []", None, None, Some(json!([]))),
        ("flag: default twice", Some(&["default,default"]), None, None),
        ("flag: Default", Some(&["Default"]), None, None),
        ("flag: none,default", Some(&["none,default"]), None, None),
        ("manifests: default twice", None, None, Some(json!([default(), default()]))),
        ("manifests: Default", None, None, Some(json!([rule("Default")]))),
        ("manifests: default with config", None, None, Some(json!([warn("default")]))),
    ];
    let mut table = String::new();
    for (who, flag, source, manifests) in cases {
        let shown = with_left_out(flag, source, manifests).replace(all.split(" | ").next().expect("rules"), "ALL");
        table.push_str(&format!("{who}\n    {shown}\n"));
    }
    insta::assert_snapshot!(table, @r#"
    nothing
        ALL | 
    manifests: one
        ExistingObjects | preflightRules without CRDUpgradeSafety, StoredVersions, PermissionValidation, References, PodAdmission, RemovedAPIs, DestructiveChange
    manifests: default
        ALL | 
    manifests: default, one
        ALL, ExistingObjects | 
    manifests: default, a default rule
        CRDUpgradeSafety {"liveObjects":"auto"}, StoredVersions, PermissionValidation, References, PodAdmission {"failMode":"open"}, RemovedAPIs {"mode":"warn"}, DestructiveChange {"unlisted":"warn","losses":"irreversible","failMode":"open"} | 
    manifests: a default rule with config, default
        CRDUpgradeSafety {"liveObjects":"auto"}, StoredVersions {"mode":"warn"}, PermissionValidation, References {"mode":"warn"}, PodAdmission {"failMode":"open"}, RemovedAPIs {"mode":"warn"}, DestructiveChange {"unlisted":"warn","losses":"irreversible","failMode":"open"} | 
    policy: one
        ExistingObjects | preflightRules without CRDUpgradeSafety, StoredVersions, PermissionValidation, References, PodAdmission, RemovedAPIs, DestructiveChange
    policy: default, one
        ALL, ExistingObjects | 
    policy: one, manifests: default
        ALL, ExistingObjects | 
    policy: default, manifests: one
        ALL, ExistingObjects | 
    policy: default, manifests: default
        ALL | 
    flag: one
        ExistingObjects | --preflight without CRDUpgradeSafety, StoredVersions, PermissionValidation, References, PodAdmission, RemovedAPIs, DestructiveChange
    flag: default
        ALL | 
    flag: default,one
        ALL, ExistingObjects | 
    flag: one and default
        ALL, ExistingObjects | 
    flag: default,References
        CRDUpgradeSafety {"liveObjects":"auto"}, StoredVersions, PermissionValidation, References, PodAdmission {"failMode":"open"}, RemovedAPIs {"mode":"warn"}, DestructiveChange {"unlisted":"warn","losses":"irreversible","failMode":"open"} | 
    flag: default, policy: StoredVersions warns
        CRDUpgradeSafety {"liveObjects":"auto"}, StoredVersions {"mode":"warn"}, PermissionValidation, References {"mode":"warn"}, PodAdmission {"failMode":"open"}, RemovedAPIs {"mode":"warn"}, DestructiveChange {"unlisted":"warn","losses":"irreversible","failMode":"open"} | 
    flag: default, manifests: StoredVersions warns
        CRDUpgradeSafety {"liveObjects":"auto"}, StoredVersions {"mode":"warn"}, PermissionValidation, References {"mode":"warn"}, PodAdmission {"failMode":"open"}, RemovedAPIs {"mode":"warn"}, DestructiveChange {"unlisted":"warn","losses":"irreversible","failMode":"open"} | 
    flag: none
         | 
    manifests: []
         | 
    flag: default twice
        error: --preflight: rule "default" is named more than once
    flag: Default
        error: --preflight: unknown preflight rule "Default"; did you mean "default"?
    flag: none,default
        error: --preflight: "none" switches all rules off and cannot be combined with other names
    manifests: default twice
        error: preflight rule "default" is configured more than once
    manifests: Default
        error: unknown preflight rule "Default"; did you mean "default"?
    manifests: default with config
        error: the entry "default" has no config: its rules run with their own settings; to change those of one rule, name it in an entry of its own
    "#);
}

#[test]
fn default_entry_of_a_policy_counts_as_each_of_its_rules_for_loosening() {
    let default = || Some(Some(json!([{"name": "default"}])));
    insta::assert_snapshot!(resolved(None, default(), Some(json!([{"name": "StoredVersions"}]))), @"CRDUpgradeSafety, StoredVersions, PermissionValidation, References warn, PodAdmission, RemovedAPIs warn, DestructiveChange | RuleOff CRDUpgradeSafety not followed, RuleOff PermissionValidation not followed, RuleOff References not followed, RuleOff PodAdmission not followed, RuleOff RemovedAPIs not followed, RuleOff DestructiveChange not followed |");
    insta::assert_snapshot!(resolved(None, default(), Some(json!([{"name": "default"}, {"name": "StoredVersions", "config": {"mode": "warn"}}]))), @"CRDUpgradeSafety, StoredVersions, PermissionValidation, References warn, PodAdmission, RemovedAPIs warn, DestructiveChange | LooserSetting StoredVersions mode not followed |");
    insta::assert_snapshot!(resolved(None, None, Some(json!([{"name": "default"}]))), @"CRDUpgradeSafety, StoredVersions, PermissionValidation, References warn, PodAdmission, RemovedAPIs warn, DestructiveChange |  |");
}

#[test]
fn without_a_default_set_default_is_an_unknown_rule_and_nothing_is_left_out() {
    let config = json!({});
    let list = |name| [ConfigRule { name, config: &config, positions: None }];
    let (default, one) = (list("default"), list("FieldConflicts"));
    let resolve = |flag: Option<&[String]>, rules| {
        let manifests = Side { rules: Some(rules), ..Side::default() };
        resolve_from(registry::RULES, DefaultSet::Absent, flag, (None, manifests), &[])
    };
    assert!(matches!(
        resolve(None, &default).expect_err("unknown")[0],
        (false, SelectionError::UnknownInConfig { .. })
    ));
    let flag = ["default".to_owned()];
    assert!(matches!(resolve(Some(&flag), &one).expect_err("unknown")[0], (false, SelectionError::UnknownInFlag(_))));
    assert_eq!(resolve(None, &one).expect("valid").selection.left_out, None);
}
