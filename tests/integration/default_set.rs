//! The default set in a list of rules, and what a policy leaves unchecked: default rules that a list leaves out, and
//! waivers of a whole rule. Both are in the text, the report and the events of each run.

use serde_json::{Value, json};

use crate::support::pushback::{Pushback, Ran};
use crate::support::{TestCase, cases};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        Nothing: list_without_default_rules_is_reported_in_one_line,
        Nothing: default_entry_runs_the_default_set_beside_the_rules_of_the_list,
        Nothing: waiver_of_a_whole_rule_is_reported_with_its_number_of_findings,
        Nothing: every_report_shows_what_the_policy_leaves_unchecked,
        Nothing: name_of_the_default_set_is_not_a_rule,
    ]
}

const DEFAULTS: [&str; 4] = ["CRDUpgradeSafety", "StoredVersions", "References", "RemovedAPIs"];

/// A folder that a release with a removed field is checked against.
fn place() -> Pushback {
    let pushback = Pushback::new();
    let definition = |fields: Value| {
        let schema = json!({"openAPIV3Schema": {"type": "object", "properties": fields}});
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "foos.ex.com"},
            "spec": {
                "group": "ex.com", "scope": "Namespaced", "names": {"kind": "Foo", "plural": "foos"},
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}],
            },
        })
    };
    let field = json!({"type": "string"});
    pushback.write("live/crd.yaml", definition(json!({"a": field, "b": field, "c": field})).to_string());
    pushback.write("new.yaml", definition(json!({"a": field})).to_string());
    pushback
}

fn check(pushback: &Pushback, policy: &Value, arguments: &[&str]) -> Ran {
    let mut config = json!({"apiVersion": "pushback.dev/v1alpha1", "kind": "Config"});
    for (key, value) in policy.as_object().expect("keys") {
        config[key] = value.clone();
    }
    pushback.write("policy.yaml", config.to_string());
    let common = ["check", "-f", "new.yaml", "--cluster", "dir:live", "--config", "policy.yaml"];
    pushback.run(&[&common[..], arguments].concat())
}

fn rules(report: &Value) -> Vec<String> {
    let rules = report["rules"].as_array().expect("rules");
    rules.iter().map(|rule| rule["name"].as_str().expect("a name").to_owned()).collect()
}

fn list_without_default_rules_is_reported_in_one_line() {
    let pushback = place().with("COLUMNS", "250");
    let policy = json!({"preflightRules": [{"name": "DestructiveChange"}]});
    let text = check(&pushback, &policy, &[]).expect(0);
    let lines: Vec<&str> = text.stdout.lines().filter(|line| line.contains("leaves out")).collect();
    assert_eq!(lines.len(), 1, "{}", text.stdout);
    assert!(
        DEFAULTS.iter().all(|rule| lines[0].contains(rule)) && lines[0].contains("- name: default"),
        "{}",
        lines[0]
    );
    let report = check(&pushback, &policy, &["-o", "json"]).expect(0).json();
    assert_eq!(report["policy"]["leftOut"]["list"], "preflightRules");
    let left_out = report["policy"]["leftOut"]["rules"].as_array().expect("rules").clone();
    assert!(DEFAULTS.iter().all(|rule| left_out.contains(&json!(rule))), "{left_out:?}");
    // The flag is a list, too.
    let report = check(&pushback, &json!({}), &["-o", "json", "--preflight=DestructiveChange"]).expect(0).json();
    assert_eq!(report["policy"]["leftOut"]["list"], "--preflight");
    for complete in [&["-o", "json"][..], &["-o", "json", "--preflight=none"]] {
        let report = check(&pushback, &json!({}), complete).json();
        assert_eq!(report["policy"]["leftOut"], Value::Null, "{complete:?}");
    }
    // An event of an apply has it as well.
    let arguments = ["apply", "-a", "app", "-f", "new.yaml", "--cluster", "dir:live", "--yes", "-o", "json"];
    let ran = pushback.run(&[&arguments[..], &["--preflight=FieldConflicts"]].concat()).expect(0);
    let preflight = ran.events_of("preflight").pop().expect("preflight");
    assert_eq!(preflight["leftOut"]["list"], "--preflight");
}

fn default_entry_runs_the_default_set_beside_the_rules_of_the_list() {
    let pushback = place();
    let both = |report: &Value| {
        DEFAULTS.iter().chain(&["FieldConflicts"]).all(|rule| rules(report).contains(&(*rule).to_owned()))
    };
    let policy = json!({"preflightRules": [{"name": "default"}, {"name": "FieldConflicts"}]});
    let by_config = check(&pushback, &policy, &["-o", "json"]).expect(10).json();
    assert!(both(&by_config), "{:?}", rules(&by_config));
    assert_eq!(by_config["policy"]["leftOut"], Value::Null);
    let by_flag = check(&pushback, &json!({}), &["-o", "json", "--preflight=default,FieldConflicts"]).expect(10).json();
    assert!(both(&by_flag), "{:?}", rules(&by_flag));
    // An entry of its own has a rule's settings.
    let warn =
        json!({"preflightRules": [{"name": "default"}, {"name": "CRDUpgradeSafety", "config": {"mode": "warn"}}]});
    check(&pushback, &warn, &[]).expect(0);
    // Among the manifests, too.
    let config =
        json!({"apiVersion": "pushback.dev/v1alpha1", "kind": "Config", "preflightRules": [{"name": "default"}]});
    pushback.write("config.yaml", config.to_string());
    let arguments = ["check", "-f", "new.yaml", "-f", "config.yaml", "--cluster", "dir:live", "-o", "json"];
    let report = pushback.run(&arguments).expect(10).json();
    assert_eq!((&report["policy"]["leftOut"], &report["policy"]["loosened"]), (&Value::Null, &json!([])));
}

fn every_report_shows_what_the_policy_leaves_unchecked() {
    let pushback = place();
    let policy = json!({
        "preflightRules": [{"name": "CRDUpgradeSafety"}],
        "preflightWaivers": [{"rule": "CRDUpgradeSafety", "reason": "not released"}],
    });
    let formats = ["json", "markdown", "html", "junit", "sarif"];
    let reports = formats.map(|format| format!("--report={format}=report.{format}"));
    let reports: Vec<&str> = reports.iter().map(String::as_str).collect();
    check(&pushback, &policy, &reports).expect(0);
    for format in formats {
        let report = pushback.read(&format!("report.{format}"));
        let words: &[&str] = match format {
            "json" => &["leftOut", "broadWaivers"],
            _ => &["leaves out", "StoredVersions", "accepts every finding of CRDUpgradeSafety"],
        };
        let missing: Vec<_> = words.iter().filter(|word| !report.contains(*word)).collect();
        assert!(missing.is_empty(), "{format} lacks {missing:?}: {report}");
    }
}

fn waiver_of_a_whole_rule_is_reported_with_its_number_of_findings() {
    let pushback = place();
    let policy = json!({"preflightWaivers": [{"rule": "CRDUpgradeSafety", "reason": "not released"}]});
    let text = check(&pushback, &policy, &[]).expect(0);
    let lines: Vec<&str> = text.stdout.lines().filter(|line| line.contains("accepts every finding")).collect();
    assert_eq!(lines.len(), 1, "{}", text.stdout);
    let report = check(&pushback, &policy, &["-o", "json"]).expect(0).json();
    let broad = &report["policy"]["broadWaivers"];
    assert_eq!(broad.as_array().expect("waivers").len(), 1);
    assert_eq!((&broad[0]["rule"], &broad[0]["errors"]), (&json!("CRDUpgradeSafety"), &json!(2)));
    let waived =
        report["findings"].as_array().expect("findings").iter().filter(|finding| finding["waived"].is_string());
    assert_eq!(broad[0]["findings"], waived.count());
    let narrow = json!({"preflightWaivers": [
        {"rule": "CRDUpgradeSafety", "check": "existingFieldRemoval", "reason": "not released"},
    ]});
    let report = check(&pushback, &narrow, &["-o", "json"]).expect(0).json();
    assert_eq!(report["policy"]["broadWaivers"], Value::Null);
}

fn name_of_the_default_set_is_not_a_rule() {
    let pushback = place();
    for (policy, expected) in [
        (json!({"preflightRules": [{"name": "default", "config": {"mode": "warn"}}]}), "has no config"),
        (json!({"preflightRules": [{"name": "default", "cel": "true", "message": "m"}]}), "\"default\" is taken"),
        (json!({"preflightRules": [{"name": "default"}, {"name": "default"}]}), "listed twice"),
        (json!({"preflightRules": [{"name": "Default"}]}), "did you mean \"default\"?"),
    ] {
        let ran = check(&pushback, &policy, &[]).expect(1);
        assert!(ran.stderr.contains(expected), "{policy}: {}", ran.stderr);
    }
    let ran = pushback.run(&["rules", "default"]).expect(1);
    assert!(ran.stderr.contains("default set") || ran.stderr.contains("on by default"), "{}", ran.stderr);
}
