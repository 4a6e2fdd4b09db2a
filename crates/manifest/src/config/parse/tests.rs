use std::collections::BTreeSet;
use std::time::Duration;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::config::testing::{documents, manifests};
use crate::config::{Matcher, PathPart, RebaseAction, RebaseSource};

mod expressions;

const HEAD: &str = "apiVersion: pushback.dev/v1alpha1\nkind: Config\n";

fn parse_text(text: &str) -> Result<Config, Vec<ConfigError>> {
    let manifests = manifests("c.yaml", text);
    let parsed = parse(&manifests, "1.2.3", &documents, None);
    if parsed.is_ok() {
        let configs = manifests.iter().filter(|manifest| manifest.value["kind"] == "Config");
        configs.for_each(|manifest| crate::config::json_schema::tests::accept(&manifest.value));
    }
    parsed
}

/// Parses a document without its first two lines; the body starts at line 3.
fn parse_body(body: &str) -> Result<Config, Vec<ConfigError>> {
    parse_text(&format!("{HEAD}{body}"))
}

/// The errors as displayed, with hints after ` | `.
fn errors(body: &str) -> Vec<String> {
    let errors = parse_body(body).expect_err("the document is wrong");
    errors.iter().map(|error| [vec![error.to_string()], error.hints.clone()].concat().join(" | ")).collect()
}

fn key(name: &str) -> PathPart {
    PathPart::Key(name.to_owned())
}

/// One matcher, parsed within a minimal rule.
fn matcher(text: &str) -> Matcher {
    let config = parse_body(&format!("changeGroupBindings:\n- name: a\n  resourceMatchers: [{text}]\n"));
    config.expect("it is valid").change_group_bindings[0].matchers[0].clone()
}

fn matcher_error(text: &str) -> String {
    errors(&format!("changeGroupBindings:\n- name: a\n  resourceMatchers: [{text}]\n")).join("\n")
}

#[test]
fn every_matcher_is_read() {
    let text = str::to_owned;
    assert_eq!(matcher("{allMatcher: {}}"), Matcher::All);
    assert_eq!(matcher("{anyMatcher: {matchers: [{allMatcher: {}}]}}"), Matcher::Any(vec![Matcher::All]));
    assert_eq!(matcher("{andMatcher: {matchers: [{allMatcher: {}}]}}"), Matcher::And(vec![Matcher::All]));
    assert_eq!(matcher("{notMatcher: {matcher: {allMatcher: {}}}}"), Matcher::Not(Box::new(Matcher::All)));
    assert_eq!(
        matcher("{apiGroupKindMatcher: {apiGroup: apps, kind: Deployment}}"),
        Matcher::ApiGroupKind { api_group: text("apps"), kind: text("Deployment") }
    );
    assert_eq!(
        matcher("{apiGroupKindMatcher: {kind: Pod}}"),
        Matcher::ApiGroupKind { api_group: String::new(), kind: text("Pod") }
    );
    assert_eq!(
        matcher("{apiVersionKindMatcher: {apiVersion: v1, kind: Pod}}"),
        Matcher::ApiVersionKind { api_version: text("v1"), kind: text("Pod") }
    );
    assert_eq!(
        matcher("{kindNamespaceNameMatcher: {kind: Pod, namespace: shop, name: web}}"),
        Matcher::KindNamespaceName { kind: text("Pod"), namespace: text("shop"), name: text("web") }
    );
    assert_eq!(
        matcher("{hasAnnotationMatcher: {keys: [a, b]}}"),
        Matcher::HasAnnotation { keys: vec![text("a"), text("b")] }
    );
    assert_eq!(matcher("{hasNamespaceMatcher: {}}"), Matcher::HasNamespace { names: vec![] });
    assert_eq!(matcher("{hasNamespaceMatcher: {names: [a]}}"), Matcher::HasNamespace { names: vec![text("a")] });
    assert_eq!(matcher("{customResourceMatcher: {}}"), Matcher::CustomResource);
    assert_eq!(
        matcher("{emptyFieldMatcher: {path: [a, {index: 1}, {allIndexes: true}]}}"),
        Matcher::EmptyField { path: vec![key("a"), PathPart::Index(1), PathPart::AllIndexes] }
    );
}

#[test]
fn wrong_matchers_are_told_apart() {
    let at = "c.yaml:5:22: changeGroupBindings[0].resourceMatchers[0]";
    assert_eq!(
        matcher_error("{}"),
        format!("{at}: expected one matcher, found `{{}}` | for every object write `allMatcher: {{}}`")
    );
    assert_eq!(
        matcher_error("{allMatcher: {}, customResourceMatcher: {}}"),
        format!(
            "{at}: expected one matcher, found 2: allMatcher, customResourceMatcher | \
             write one list element for each to match any of them, or `andMatcher` to match all"
        )
    );
    assert_eq!(
        matcher_error("{allMatchers: {}}"),
        "c.yaml:5:23: changeGroupBindings[0].resourceMatchers[0].allMatchers: unknown key | did you mean `allMatcher`?"
    );
    assert_eq!(
        matcher_error("{allMatcher: {x: 1}}"),
        "c.yaml:5:23: changeGroupBindings[0].resourceMatchers[0].allMatcher: expected `{}`, found a map"
    );
    assert_eq!(
        matcher_error("{apiVersionKindMatcher: {kind: Pod}}"),
        "c.yaml:5:23: changeGroupBindings[0].resourceMatchers[0].apiVersionKindMatcher: missing key `apiVersion`"
    );
    assert_eq!(
        matcher_error("{anyMatcher: {matchers: []}}"),
        "c.yaml:5:36: changeGroupBindings[0].resourceMatchers[0].anyMatcher.matchers: \
         expected at least one matcher, found an empty list"
    );
    assert_eq!(
        matcher_error("{hasAnnotationMatcher: {keys: [a, 1]}}"),
        "c.yaml:5:56: changeGroupBindings[0].resourceMatchers[0].hasAnnotationMatcher.keys[1]: \
         expected a string, found the number 1 | write it in quotes: \"1\""
    );
    assert_eq!(
        matcher_error("{emptyFieldMatcher: {path: [{regex: a}]}}"),
        "c.yaml:5:51: changeGroupBindings[0].resourceMatchers[0].emptyFieldMatcher.path[0].regex: \
         regular expressions work in the paths of rebaseRules only"
    );
    assert_eq!(matcher_error("allMatcher"), format!("{at}: expected a map, found the string \"allMatcher\""));
}

#[test]
fn nesting_without_end_is_refused() {
    let deep = format!("{}{{allMatcher: {{}}}}{}", "{notMatcher: {matcher: ".repeat(60), "}}".repeat(60));
    assert!(matcher_error(&deep).ends_with("matchers are nested more than 32 deep"));
}

#[test]
fn a_rule_without_matchers_is_refused() {
    assert_eq!(
        errors("diffMaskRules:\n- path: [a]\n"),
        ["c.yaml:4:1: diffMaskRules[0]: missing key `resourceMatchers`; without it the rule is for no object | \
          for every object write `resourceMatchers: [{allMatcher: {}}]`"]
        .map(|text| text.replace("c.yaml:4:1", "c.yaml:4:3"))
    );
    assert_eq!(
        errors("diffMaskRules:\n- path: [a]\n  resourceMatchers: []\n"),
        ["c.yaml:5:3: diffMaskRules[0].resourceMatchers: expected at least one matcher, found an empty list"]
    );
}

#[test]
fn all_errors_of_all_documents_are_found_at_once_in_their_order() {
    let text = format!(
        "{HEAD}rebaseRulez: []\nwaitRules: {{}}\nlabelScopingRules:\n- path: []\n  isDefault: yes please\n---\n{HEAD}zzz: 1\n"
    );
    let found: Vec<String> = parse_text(&text).expect_err("it is refused").iter().map(ToString::to_string).collect();
    assert_eq!(
        found,
        [
            "c.yaml:3:1: rebaseRulez: unknown key",
            "c.yaml:4:1: waitRules: expected a list, found a map",
            "c.yaml:6:3: labelScopingRules[0].path: expected at least one path part, found an empty list",
            "c.yaml:6:3: labelScopingRules[0]: missing key `resourceMatchers`; without it the rule is for no object",
            "c.yaml:7:3: labelScopingRules[0].isDefault: expected true or false, found the string \"yes please\"",
            "c.yaml:11:1: zzz: unknown key",
        ]
    );
}

#[test]
fn unknown_keys_come_with_a_suggestion_or_the_known_ones() {
    assert_eq!(errors("rebaserules: []\n"), ["c.yaml:3:1: rebaserules: unknown key | did you mean `rebaseRules`?"]);
    assert_eq!(
        errors("preflightRules:\n- nmae: A\n  name: A\n  zzz: 1\n"),
        [
            "c.yaml:4:3: preflightRules[0].nmae: unknown key | did you mean `name`?",
            "c.yaml:6:3: preflightRules[0].zzz: unknown key | known keys: name, config, description, cel, message, \
             messageExpression, exec, params, operations, resourceMatchers"
        ]
    );
}

#[test]
fn unknown_keys_of_a_document_can_be_warnings() {
    let header = "apiVersion: kapp.k14s.io/v1alpha1\nkind: Config\n";
    let read = |text: &str| {
        let mut warnings = Vec::new();
        let documents_of_text = manifests("c.yaml", &format!("{header}{text}"));
        let config = parse(&documents_of_text, "1.2.3", &documents, Some(&mut warnings));
        let told = warnings.iter().map(|warning| format!("{}: {}", warning.position, warning.message)).collect();
        let errors = config.err().unwrap_or_default().iter().map(ToString::to_string).collect();
        (told, errors)
    };
    let (told, errors): (Vec<String>, Vec<String>) = read("waitRulez: []\n");
    assert_eq!(told, ["c.yaml:3:1: unknown key \"waitRulez\" of a Config is ignored; did you mean `waitRules`?"]);
    assert!(errors.is_empty(), "{errors:?}");
    // kapp follows this one; ignoring it would change what is deployed.
    assert_eq!(read("waitrules: []\n"), (vec![], vec!["c.yaml:3:1: waitrules: unknown key".to_owned()]));
    // Without this one no rule would run.
    assert_eq!(read("preflightRulez: []\n"), (vec![], vec!["c.yaml:3:1: preflightRulez: unknown key".to_owned()]));
    let of_entry = "waitRules:\n- zzz: 1\n  resourceMatchers: [{allMatcher: {}}]\n  conditionMatchers: []\n";
    assert!(read(of_entry).1.contains(&"c.yaml:4:3: waitRules[0].zzz: unknown key".to_owned()), "{:?}", read(of_entry));
}

#[test]
fn kind_and_version_come_before_everything_else() {
    let shown = |text: &str| {
        let errors = parse_text(text).expect_err("it is refused");
        errors
            .iter()
            .map(|error| [vec![error.to_string()], error.hints.clone()].concat().join(" | "))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        shown("apiVersion: kapp.k14s.io/v1alpha2\nkind: Config\nzzz: 1\n"),
        ["c.yaml:1:1: apiVersion: expected `kapp.k14s.io/v1alpha1` or `pushback.dev/v1alpha1`, \
          found \"kapp.k14s.io/v1alpha2\" | did you mean `kapp.k14s.io/v1alpha1`?"]
    );
    assert_eq!(
        shown("apiVersion: pushback.dev/v1alpha1\nkind: Konfig\n"),
        ["c.yaml:2:1: kind: expected `Config`, found \"Konfig\""]
    );
    assert_eq!(shown("a: 1\n"), ["c.yaml:1:1: missing key `kind`", "c.yaml:1:1: missing key `apiVersion`"]);
    assert_eq!(shown("[]\n"), ["c.yaml:1:1: expected a map, found an empty list"]);
    assert!(parse_text("apiVersion: kapp.k14s.io/v1alpha1\nkind: Config\npreflightWaivers: []\n").is_ok());
}

#[test]
fn preflight_rules_keep_their_settings_and_places() {
    assert!(parse_body("").expect("it is valid").preflight_rules.is_none());
    assert!(parse_body("preflightRules: []\n").expect("it is valid").preflight_rules.expect("it is valid").is_empty());
    let config = parse_body("preflightRules:\n- name: A\n- name: B\n  config:\n    mode: warn\n").expect("it is valid");
    let rules = config.preflight_rules.expect("it is valid");
    assert_eq!(rules[0].config.value, json!({}));
    assert_eq!(rules[1].config.value, json!({"mode": "warn"}));
    assert_eq!(rules[1].position.to_string(), "c.yaml:5:3");
    assert_eq!(rules[1].config.positions.locate(&["mode".into()]).to_string(), "c.yaml:7:5");
    assert_eq!(rules[0].config.positions.locate(&["mode".into()]).to_string(), "c.yaml:4:3");
    assert_eq!(
        errors("preflightRules:\n- config: []\n- A\n- name: ''\n"),
        [
            "c.yaml:4:3: preflightRules[0]: missing key `name`",
            "c.yaml:4:3: preflightRules[0].config: expected a map, found an empty list",
            "c.yaml:5:3: preflightRules[1]: expected a map, found the string \"A\"",
            "c.yaml:6:3: preflightRules[2].name: expected a non-empty string",
        ]
    );
    assert_eq!(errors("preflightRules:\n"), ["c.yaml:3:1: preflightRules: expected a list, found nothing"]);
}

#[test]
fn a_rule_that_is_listed_twice_is_refused_with_both_places() {
    let hint = "keep one entry, with the settings that you want";
    assert_eq!(
        errors("preflightRules:\n- name: A\n- name: A\n"),
        [format!("c.yaml:5:3: rule \"A\" is listed twice, first at c.yaml:4:3 | {hint}")]
    );
    let two = format!("{HEAD}preflightRules: [{{name: A}}]\n---\n{HEAD}preflightRules: [{{name: A}}]\n");
    assert_eq!(
        parse_text(&two).expect_err("it is refused")[0].to_string(),
        "c.yaml:7:18: rule \"A\" is listed twice, first at c.yaml:3:18"
    );
}

#[test]
fn a_waiver_says_why_and_until_when() {
    let config = parse_body(
        "preflightWaivers:\n- rule: A\n  reason: because\n  object: Foo  shop/*\n  expires: '2026-12-31'\n  owner: me\n",
    );
    let waiver = &config.expect("it is valid").preflight_waivers[0];
    assert_eq!((waiver.rule.as_str(), waiver.reason.as_str()), ("A", "because"));
    assert_eq!(waiver.object.as_deref(), Some("Foo shop/*"));
    assert_eq!((waiver.expires.as_deref(), waiver.owner.as_deref()), (Some("2026-12-31"), Some("me")));
    assert_eq!((&waiver.check, &waiver.path, &waiver.fingerprint), (&None, &None, &None));
    assert_eq!(
        errors(
            "preflightWaivers:\n- rule: A\n- rule: A\n  reason: ' '\n- rule: A\n  reason: b\n  expires: 31.12.2026\n- rule: A\n  reason: b\n  object: shop/a/b\n"
        ),
        [
            "c.yaml:4:3: preflightWaivers[0]: missing key `reason`",
            "c.yaml:6:3: preflightWaivers[1].reason: expected a non-empty string",
            "c.yaml:9:3: preflightWaivers[2].expires: expected a day such as 2026-12-31, found \"31.12.2026\"",
            "c.yaml:12:3: preflightWaivers[3].object: expected `Kind name` or `Kind namespace/name`, found \"shop/a/b\"",
        ]
    );
}

#[test]
fn groups_and_order_rules_are_checked() {
    let matchers = "resourceMatchers: [{allMatcher: {}}]";
    let config = parse_body(&format!(
        "changeGroupBindings:\n- name: a/{{name}}\n  {matchers}\nchangeRuleBindings:\n- rules: [upsert after upserting a/b]\n  ignoreIfCyclical: true\n  {matchers}\n"
    ))
    .expect("it is valid");
    assert_eq!(config.change_group_bindings[0].position.as_ref().expect("it is valid").line, 4);
    assert_eq!(config.change_rule_bindings[0].rules, ["upsert after upserting a/b"]);
    assert!(config.change_rule_bindings[0].ignore_if_cyclical);
    assert_eq!(
        errors(&format!(
            "changeGroupBindings:\n- name: a/{{nam}}\n  {matchers}\nchangeRuleBindings:\n- rules: [upsert before a]\n  {matchers}\n"
        )),
        [
            "c.yaml:4:3: changeGroupBindings[0].name: unknown placeholder \"{nam}\"; known are \
             {api-group}, {kind}, {name}, {namespace}, {crd-kind}, {crd-group}",
            "c.yaml:7:11: changeRuleBindings[0].rules[0]: expected \
             `upsert|delete before|after upserting|deleting GROUP`, found 3 instead of 4 words",
        ]
    );
}

#[test]
fn rebase_rules_copy_from_sources_or_remove() {
    let matchers = "resourceMatchers: [{allMatcher: {}}]";
    let config = parse_body(&format!(
        "rebaseRules:\n- paths: [[a, {{regex: '^b'}}], [c]]\n  type: copy\n  sources: [new, existing]\n  {matchers}\n- path: [d]\n  type: remove\n  {matchers}\n"
    ))
    .expect("it is valid");
    let [copy, remove] = config.rebase_rules.as_slice() else { panic!("two rules") };
    assert_eq!(copy.paths, [vec![key("a"), PathPart::Regex("^b".to_owned())], vec![key("c")]]);
    assert_eq!(copy.action, RebaseAction::Copy(vec![RebaseSource::New, RebaseSource::Existing]));
    assert_eq!((&remove.paths, &remove.action), (&vec![vec![key("d")]], &RebaseAction::Remove));
    for (body, expected) in [
        (
            "path: [a]\n  paths: [[a]]\n  type: remove",
            "5:3: rebaseRules[0].paths: expected either `path` or `paths`, found both",
        ),
        ("type: remove", "4:3: rebaseRules[0]: missing key `path` (or `paths`)"),
        ("path: [a]\n  type: move", "5:3: rebaseRules[0].type: expected `copy` or `remove`, found \"move\""),
        ("path: [a]\n  type: merge", "5:3: rebaseRules[0].type: expected `copy` or `remove`, found \"merge\""),
        ("path: [a]\n  type: copy", "4:3: rebaseRules[0]: missing key `sources`"),
        (
            "path: [a]\n  type: copy\n  sources: []",
            "6:3: rebaseRules[0].sources: expected at least one source, found an empty list",
        ),
        (
            "path: [a]\n  type: copy\n  sources: [old]",
            "6:13: rebaseRules[0].sources[0]: expected `new` or `existing`, found \"old\"",
        ),
        (
            "path: [a]\n  type: remove\n  sources: [new]",
            "6:3: rebaseRules[0].sources: a rule of type remove has no sources",
        ),
    ] {
        assert_eq!(errors(&format!("rebaseRules:\n- {body}\n  {matchers}\n")), [format!("c.yaml:{expected}")]);
    }
}

#[test]
fn path_parts_are_keys_indexes_and_expressions() {
    let path = |text: &str| {
        format!("rebaseRules:\n- path: {text}\n  type: remove\n  resourceMatchers: [{{allMatcher: {{}}}}]\n")
    };
    let parts = "expected a key, `{index: 0}`, `{allIndexes: true}` or `{regex: \"…\"}`";
    for (text, expected) in [
        ("spec.replicas", "4:3: rebaseRules[0].path: expected a list of path parts, found the string \"spec.replicas\" | write `[spec, replicas]`".to_owned()),
        ("[a, 0]", format!("4:13: rebaseRules[0].path[1]: {parts}, found the number 0 | write `{{index: 0}}`")),
        ("[a, '']", "4:13: rebaseRules[0].path[1]: expected a key that is not empty".to_owned()),
        ("[a, {}]", format!("4:13: rebaseRules[0].path[1]: {parts}, found `{{}}`")),
        ("[a, [b]]", format!("4:13: rebaseRules[0].path[1]: {parts}, found a list")),
        ("[a, {index: 1, allIndexes: true}]", format!("4:13: rebaseRules[0].path[1]: {parts}, found a map with several keys | write every part as a list element of its own, such as `{{index: …}}`")),
        ("[a, {index: -1}]", "4:14: rebaseRules[0].path[1].index: expected a whole number from 0 up, found the number -1".to_owned()),
        ("[a, {allIndexes: false}]", "4:14: rebaseRules[0].path[1].allIndexes: expected true, found false | leave the part out, or write `{index: 0}`".to_owned()),
        ("[a, {allIndices: true}]", "4:14: rebaseRules[0].path[1].allIndices: unknown key | did you mean `allIndexes`?".to_owned()),
        ("[a, {regex: '('}]", "4:14: rebaseRules[0].path[1].regex: expected a regular expression: unclosed group".to_owned()),
    ] {
        assert_eq!(errors(&path(text)), [format!("c.yaml:{expected}")], "{text}");
    }
}

#[test]
fn wait_rules_name_conditions() {
    let rule = |conditions: &str| {
        format!(
            "waitRules:\n- supportsObservedGeneration: true\n  conditionMatchers:\n  - {conditions}\n  resourceMatchers: [{{allMatcher: {{}}}}]\n"
        )
    };
    let config =
        parse_body(&rule("{type: Ready, status: 'True', success: true, timeout: 1m30s}")).expect("it is valid");
    assert!(config.wait_rules[0].supports_observed_generation);
    let condition = &config.wait_rules[0].condition_matchers[0];
    assert_eq!((condition.type_.as_str(), condition.status.as_str()), ("Ready", "True"));
    assert_eq!((condition.success, condition.failure, condition.unblock_changes), (true, false, false));
    assert_eq!(condition.timeout, Some(Duration::from_secs(90)));
    let at = "waitRules[0].conditionMatchers[0]";
    for (text, expected) in [
        (
            "{type: Ready, status: True, success: true}",
            format!("6:19: {at}.status: expected a string such as \"True\", found true | write it in quotes: \"True\""),
        ),
        (
            "{type: Ready, status: 'True'}",
            format!(
                "6:5: {at}: expected one of failure, success, unblockChanges or timeout; without one it means nothing"
            ),
        ),
        (
            "{type: Ready, status: 'True', success: true, failure: true}",
            format!("6:5: {at}: a condition cannot mean both failure and success"),
        ),
        (
            "{type: Ready, status: 'True', timeout: 5 minutes}",
            format!("6:35: {at}.timeout: expected a duration such as 90s, 5m or 1h30m, found \"5 minutes\""),
        ),
        (
            "{type: Ready, status: 'True', timeout: 0s}",
            format!("6:35: {at}.timeout: expected a duration above 0, found \"0s\""),
        ),
        (
            "{type: Ready, status: 'True', timeout: 5}",
            format!("6:35: {at}.timeout: expected a string, found the number 5 | write it in quotes: \"5\""),
        ),
        ("{status: 'True', success: true}", format!("6:5: {at}: missing key `type`")),
    ] {
        assert_eq!(errors(&rule(text)), [format!("c.yaml:{expected}")], "{text}");
    }
    assert_eq!(
        errors("waitRules:\n- conditionMatchers: []\n  resourceMatchers: [{allMatcher: {}}]\n"),
        ["c.yaml:4:3: waitRules[0].conditionMatchers: expected at least one condition matcher, found an empty list"]
    );
}

#[test]
fn labels_must_be_labels_and_the_later_value_wins() {
    let two = format!("{HEAD}additionalLabels: {{a: '1', b: '2'}}\n---\n{HEAD}additionalLabels: {{a: '3', c: ''}}\n");
    let labels = parse_text(&two).expect("it is valid").additional_labels;
    assert_eq!(labels, [("a", "3"), ("b", "2"), ("c", "")].map(|(key, value)| (key.to_owned(), value.to_owned())));
    assert_eq!(
        errors("additionalLabels:\n  -x: a\n  a: b c\n  n: 1\n"),
        [
            "c.yaml:4:3: additionalLabels.-x: expected a label key: at most 63 letters, digits, `-`, `_` and `.`, a letter or digit at both ends",
            "c.yaml:5:3: additionalLabels.a: expected a label value: at most 63 letters, digits, `-`, `_` and `.`, a letter or digit at both ends; found \"b c\"",
            "c.yaml:6:3: additionalLabels.n: expected a string, found the number 1 | write it in quotes: \"1\"",
        ]
    );
}

#[test]
fn a_document_for_a_newer_release_is_refused() {
    let kapp = |version: &str| {
        parse_text(&format!("apiVersion: kapp.k14s.io/v1alpha1\nkind: Config\nminimumRequiredVersion: {version}\n"))
    };
    assert_eq!(kapp("0.23.0").expect("it is valid").minimum_required_version.as_deref(), Some("0.23.0"));
    assert_eq!(
        kapp("0.99.0").expect_err("it is refused")[0].to_string(),
        "c.yaml:3:1: minimumRequiredVersion: version 0.99.0 or later is required; this tool reads Config as kapp 0.65.0 does"
    );
    assert!(parse_body("minimumRequiredVersion: 1.2.3\n").is_ok());
    for (text, expected) in [
        (
            "1.2.4",
            "version 1.2.4 or later is required; this is pushback 1.2.3 | use a newer release, or lower minimumRequiredVersion",
        ),
        ("v1.0.0", "expected a version without `v`, found \"v1.0.0\" | write \"1.0.0\""),
        ("1.x", "expected a version such as 0.65.0, found \"1.x\""),
        (
            "1.10",
            "expected a version such as 0.65.0, found the number 1.10 | write it in quotes and with all three parts",
        ),
    ] {
        let found = errors(&format!("minimumRequiredVersion: {text}\n"));
        let found = found[0].replace("number 1.1 |", "number 1.10 |");
        assert_eq!(found, format!("c.yaml:3:1: minimumRequiredVersion: {expected}"));
    }
    let two = format!("{HEAD}minimumRequiredVersion: 1.1.0\n---\n{HEAD}minimumRequiredVersion: 1.0.9\n");
    assert_eq!(parse_text(&two).expect("it is valid").minimum_required_version.as_deref(), Some("1.1.0"));
}

#[test]
fn a_labelled_config_map_carries_a_document() {
    let config_map = |data: &str| {
        format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: rules, namespace: shop, labels: {{kapp.k14s.io/config: ''}}}}\ndata:\n{data}"
        )
    };
    let inner =
        "  config.yml: |\n    apiVersion: kapp.k14s.io/v1alpha1\n    kind: Config\n    preflightRules: [{name: A}]\n";
    assert_eq!(parse_text(&config_map(inner)).expect("it is valid").preflight_rules.expect("it is valid")[0].name, "A");
    let error = |data: &str| parse_text(&config_map(data)).expect_err("it is refused")[0].to_string();
    assert_eq!(
        error(&format!("{inner}    zzz: 1\n")),
        "c.yaml (ConfigMap shop/rules, config.yml):4:1: zzz: unknown key"
    );
    assert_eq!(
        error("  other.yml: a\n"),
        "c.yaml:4:1: data: ConfigMap shop/rules has the label kapp.k14s.io/config and no text under `config.yml`"
    );
    assert_eq!(error("  config.yml: ~\n"), error("  config.yml: 1\n"));
    assert_eq!(error("  config.yml: ''\n"), "c.yaml:5:3: data[\"config.yml\"]: expected a Config document, found none");
}

#[test]
fn defaults_come_before_the_users_rules() {
    let user = parse_body(
        "preflightRules: []\ndiffMaskRules:\n- path: [mine]\n  resourceMatchers: [{allMatcher: {}}]\nadditionalLabels: {a: b}\n",
    );
    let merged = Config::merge(crate::config::defaults::defaults(), user.expect("it is valid"));
    let masks: Vec<_> = merged.diff_mask_rules.iter().map(|rule| rule.path.clone()).collect();
    assert_eq!(masks, [vec![key("data")], vec![key("stringData")], vec![key("mine")]]);
    assert!(merged.preflight_rules.is_some_and(|rules| rules.is_empty()));
    assert_eq!(merged.additional_labels.len(), 1);
    assert!(!merged.change_rule_bindings.is_empty());
}

#[test]
fn long_and_strange_texts_are_shown_short_and_escaped() {
    let text = format!("apiVersion: \"{}\\e[31m\"\nkind: Config\n", "ä".repeat(70));
    let error = parse_text(&text).expect_err("it is refused")[0].to_string();
    assert!(error.ends_with(&format!("found \"{}\"…", "ä".repeat(60))), "{error}");
    let error = parse_text("apiVersion: \"\\e[31m\"\nkind: Config\n").expect_err("it is refused")[0].to_string();
    assert!(error.ends_with("found \"\\u{1b}[31m\""), "{error}");
}

/// Values of any shape under known keys.
fn any_value() -> impl Strategy<Value = Value> {
    let keys: Vec<&str> = [shapes::ALL.concat(), shapes::RULE_LATER.to_vec()].concat();
    let key = prop::sample::select(keys);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a-z0-9./{}-]{0,6}".prop_map(Value::from),
        "\\PC{0,4}".prop_map(Value::from),
        prop::sample::select(vec!["copy", "new", "5m", "2026-12-31", "upsert after upserting a"]).prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 48, 4, move |inner| {
        let entries = prop::collection::vec((key.clone(), inner.clone()), 0..4);
        prop_oneof![
            prop::collection::vec(inner, 0..3).prop_map(Value::from),
            entries.prop_map(|entries| entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()),
        ]
    })
}

proptest! {
    #[test]
    fn documents_of_any_shape_are_read_or_refused_with_a_place(
        entries in prop::collection::vec((prop::sample::select(shapes::CONFIG), any_value()), 0..6),
    ) {
        let mut value: Value = entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
        value["apiVersion"] = json!("kapp.k14s.io/v1alpha1");
        value["kind"] = json!("Config");
        let positions = Positions::of_file("c.yaml").into();
        let manifest = Manifest { object: ObjectRef::of(&value), value, positions };
        for error in parse(&[manifest], "1.2.3", &documents, None).err().unwrap_or_default() {
            prop_assert_eq!(error.position.file, "c.yaml");
            prop_assert!(!error.message.is_empty());
        }
    }
}

#[test]
fn the_example_file_is_valid_and_has_every_key() {
    let text = include_str!("../../../../../config.example.yaml");
    let manifests = manifests("config.example.yaml", text);
    let config = parse(&manifests, env!("CARGO_PKG_VERSION"), &documents, None);
    assert_eq!(config.map_err(|errors| errors.iter().map(ToString::to_string).collect::<Vec<_>>()).err(), None);

    let mut written = BTreeSet::new();
    let mut open: Vec<&Value> = manifests.iter().map(|manifest| &manifest.value).collect();
    while let Some(value) = open.pop() {
        match value {
            Value::Object(map) => {
                written.extend(map.keys().map(String::as_str));
                open.extend(map.values());
            }
            Value::Array(items) => open.extend(items),
            _ => {}
        }
    }
    for shape in shapes::ALL {
        for name in *shape {
            assert!(written.contains(name), "the example does not show `{name}`");
        }
    }
    for name in shapes::RULE_LATER {
        assert!(text.contains(name) && !written.contains(name), "`{name}` belongs in a comment");
    }
}
