//! Rules that a policy brings with it: they refuse, warn, are waived and reported as the built-in ones are, and count from
//! a source of policy alone.

mod agreement;
mod programs;

use serde_json::Value;

use crate::support::{Pushback, Ran, TestCase, cases};

pub(crate) fn tests() -> Vec<TestCase> {
    let mut tests = cases![
        Nothing: a_rule_of_the_policy_refuses_with_the_place_in_the_input,
        Nothing: modes_waivers_and_the_flag_are_those_of_any_rule,
        Nothing: every_report_names_the_rule_and_what_it_says,
        Nothing: a_rule_among_the_manifests_counts_for_nothing_and_is_told,
        Nothing: a_rule_that_lands_counts_from_then_on,
        Nothing: secret_values_are_judged_and_shown_nowhere,
        Nothing: what_is_wrong_with_a_rule_is_told_with_its_place,
        Nothing: rules_of_a_policy_are_listed_and_explained,
    ];
    tests.extend(agreement::tests());
    tests.extend(programs::tests());
    tests
}

const APP: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 9
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: web
        image: registry.example/web:latest
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: shop}
";

const RULES: &str = "\
preflightRules:
- name: NoLatestTag
  description: no container runs an image tagged latest
  cel: object.spec.template.spec.containers.all(c, !c.image.endsWith(':latest'))
  message: an image is tagged latest
  resourceMatchers:
  - apiVersionKindMatcher: {apiVersion: apps/v1, kind: Deployment}
- name: FewReplicas
  cel: object.spec.replicas <= params.most
  messageExpression: \"'at most ' + string(params.most) + ' replicas'\"
  params: {most: 5}
  config: {mode: warn}
  resourceMatchers:
  - apiVersionKindMatcher: {apiVersion: apps/v1, kind: Deployment}
";

fn config(keys: &str) -> String {
    format!("apiVersion: pushback.dev/v1alpha1\nkind: Config\n{keys}")
}

fn shop(rules: &str) -> Pushback {
    let pushback = Pushback::new();
    pushback.write("app/app.yaml", APP).write("policy.yaml", config(rules)).write("live/.keep", "");
    pushback
}

fn check(pushback: &Pushback, more: &[&str]) -> Ran {
    let arguments = ["check", "-f", "app", "--cluster", "dir:live", "--report", "json=r.json"];
    pushback.run(&[&arguments[..], more].concat())
}

const POLICY: [&str; 2] = ["--config", "policy.yaml"];

/// Rule, severity, line and message of every finding.
fn findings(pushback: &Pushback) -> Vec<String> {
    let report = pushback.read_json("r.json");
    let findings = report["findings"].as_array().expect("findings").iter();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    findings
        .map(|it| {
            let line = &it["position"]["line"];
            format!("{} {} {line} {}", text(&it["rule"]), text(&it["severity"]), text(&it["message"]))
        })
        .collect()
}

fn a_rule_of_the_policy_refuses_with_the_place_in_the_input() {
    let pushback = shop(RULES);
    let ran = check(&pushback, &POLICY).expect(10);
    assert_eq!(
        findings(&pushback),
        ["NoLatestTag error 1 an image is tagged latest", "FewReplicas warning 5 at most 5 replicas"]
    );
    let ran = ran.stdout + &ran.stderr;
    assert!(ran.contains("--> app/app.yaml:1:1") && ran.contains("an image is tagged latest"), "{ran}");
    let report = pushback.read_json("r.json");
    let found = &report["findings"][1];
    assert_eq!((&found["path"], &found["new"]), (&"spec.replicas".into(), &9.into()));
    let names: Vec<&str> =
        report["rules"].as_array().expect("rules").iter().filter_map(|rule| rule["name"].as_str()).collect();
    assert!(names.contains(&"CRDUpgradeSafety") && names.ends_with(&["NoLatestTag", "FewReplicas"]), "{names:?}");
    pushback.write("app/app.yaml", APP.replace(":latest", ":1.2").replace('9', "3"));
    check(&pushback, &POLICY).expect(0);
}

fn modes_waivers_and_the_flag_are_those_of_any_rule() {
    let pushback = shop(RULES);
    check(&pushback, &[&POLICY[..], &["--preflight=FewReplicas"]].concat()).expect(0);
    assert_eq!(findings(&pushback), ["FewReplicas warning 5 at most 5 replicas"]);
    check(&pushback, &[&POLICY[..], &["--preflight=NoLatestTag"]].concat()).expect(10);
    let report = pushback.read_json("r.json");
    let fingerprint = report["findings"][0]["fingerprint"].as_str().expect("a fingerprint");
    let waive = format!("{fingerprint}=until Friday");
    check(&pushback, &[&POLICY[..], &["--waive", &waive]].concat()).expect(0);
    // Another image is another change.
    pushback.write("app/app.yaml", APP.replace("/web:", "/other:"));
    check(&pushback, &[&POLICY[..], &["--waive", &waive]].concat()).expect(10);
    let by_rule = "preflightWaivers: [{rule: NoLatestTag, object: Deployment shop/web, reason: known}]\n";
    pushback.write("policy.yaml", config(&format!("{RULES}{by_rule}")));
    check(&pushback, &POLICY).expect(0);
    assert!(!findings(&pushback).iter().any(|line| line.contains("preflightWaivers")));
    let slip = check(&pushback, &[&POLICY[..], &["--preflight=NoLatestTags"]].concat()).expect(1);
    assert!(slip.stderr.contains("did you mean \"NoLatestTag\"?"), "{}", slip.stderr);
}

fn every_report_names_the_rule_and_what_it_says() {
    let pushback = shop(RULES);
    let formats = ["sarif", "junit", "markdown", "html", "github"];
    let reports: Vec<String> = formats.iter().map(|format| format!("{format}=r.{format}")).collect();
    let flags = reports.iter().flat_map(|report| ["--report", report]);
    check(&pushback, &POLICY.into_iter().chain(flags).collect::<Vec<_>>()).expect(10);
    for format in formats {
        let text = pushback.read(&format!("r.{format}"));
        assert!(text.contains("NoLatestTag") && text.contains("an image is tagged latest"), "{format}: {text}");
    }
    let sarif: Value = serde_json::from_str(&pushback.read("r.sarif")).expect("JSON");
    let rules = sarif["runs"][0]["tool"]["driver"]["rules"].as_array().expect("rules");
    let rule = rules.iter().find(|rule| rule["id"] == "NoLatestTag/cel").expect("the rule");
    assert_eq!(rule["shortDescription"]["text"], "no container runs an image tagged latest");
}

fn a_rule_among_the_manifests_counts_for_nothing_and_is_told() {
    let pushback = shop("");
    pushback.write("app/config.yaml", config(RULES));
    for source in [&[][..], &POLICY] {
        check(&pushback, source).expect(0);
        assert_eq!(
            findings(&pushback),
            [
                "policy warning 4 rule NoLatestTag is ignored: a rule is defined only in a policy source",
                "policy warning 10 rule FewReplicas is ignored: a rule is defined only in a policy source",
            ]
        );
    }
    // Where the policy defines the same, the manifests may repeat it.
    pushback.write("policy.yaml", config(RULES));
    check(&pushback, &POLICY).expect(10);
    assert!(!findings(&pushback).iter().any(|line| line.starts_with("policy")));
    // Settings of the policy's rule are met as those of any rule.
    let names =
        "preflightRules: [{name: NoLatestTag, config: {mode: warn}}, {name: FewReplicas, config: {mode: error}}]\n";
    pushback.write("app/config.yaml", config(names));
    check(&pushback, &POLICY).expect(10);
    let found = findings(&pushback);
    assert!(found.contains(&"FewReplicas error 5 at most 5 replicas".to_owned()), "{found:?}");
    assert!(found.contains(&"NoLatestTag error 1 an image is tagged latest".to_owned()), "{found:?}");
    assert!(found.iter().any(|line| line.contains("NoLatestTag mode stays")), "{found:?}");
}

fn a_rule_that_lands_counts_from_then_on() {
    let pushback = shop("");
    pushback.write("app/config.yaml", config(RULES));
    check(&pushback, &[]).expect(0);
    // What was new is the old side of the next change.
    pushback.write("live/config.yaml", config(RULES));
    check(&pushback, &[]).expect(10);
}

fn secret_values_are_judged_and_shown_nowhere() {
    const MARKER: &str = "dGhlLXNlY3JldC1tYXJrZXI=";
    let rules = "\
preflightRules:
- name: Judged
  cel: object.data.password != params.known
  params: {known: dGhlLXNlY3JldC1tYXJrZXI=}
  messageExpression: \"'it is ' + object.data.password\"
  resourceMatchers: [{apiVersionKindMatcher: {apiVersion: v1, kind: Secret}}]
- name: Failing
  cel: '{\"a\": 1}[object.data.password] == 1'
  resourceMatchers: [{apiVersionKindMatcher: {apiVersion: v1, kind: Secret}}]
";
    let pushback = shop(rules);
    let secret =
        format!("apiVersion: v1\nkind: Secret\nmetadata: {{name: s, namespace: shop}}\ndata: {{password: {MARKER}}}\n");
    pushback.write("app/app.yaml", secret);
    let ran = check(&pushback, &[&POLICY[..], &["--verbose"]].concat()).expect(10);
    assert_eq!(findings(&pushback).len(), 2, "{:?}", findings(&pushback));
    let shown = [ran.stdout, ran.stderr, pushback.read("r.json")].concat();
    assert!(!shown.contains(MARKER) && !shown.contains("the-secret-marker"), "{shown}");
    assert!(shown.contains("it is (secret #1)"), "{shown}");
}

fn what_is_wrong_with_a_rule_is_told_with_its_place() {
    let wrong = |entry: &str| {
        let pushback = shop(&format!("preflightRules:\n- {entry}\n"));
        check(&pushback, &POLICY).expect(1).stderr
    };
    let text = wrong("{name: R, cel: object.spec.replcas <= most}");
    assert!(text.contains("policy.yaml:4:") && text.contains("undeclared reference to `most`"), "{text}");
    assert!(text.contains("the variables are object, oldObject, request, change and params"), "{text}");
    assert!(wrong("{name: R, cel: 'object.name.startWith(\"a\")'}").contains("there is no function startWith()"));
    assert!(wrong("{name: References, cel: 'true'}").contains("is taken"));
    assert!(wrong("{name: R, message: m}").contains("belongs to a rule with `cel` or `exec`"));
    assert!(wrong("{name: References, resourceMatchers: [{allMatcher: {}}]}").contains("resourceMatchers"));
}

fn rules_of_a_policy_are_listed_and_explained() {
    let pushback = shop(RULES);
    let list = pushback.run(&["rules", "--config", "policy.yaml"]).expect(0).stdout;
    assert!(list.contains("NoLatestTag") && list.contains("no container runs an image tagged latest"), "{list}");
    let page = pushback.run(&["rules", "FewReplicas", "--config", "policy.yaml"]).expect(0).stdout;
    assert!(page.contains("object.spec.replicas <= params.most") && page.contains("failMode"), "{page}");
    let json = pushback.run(&["rules", "-o", "json", "--config", "policy.yaml"]).expect(0).json();
    let custom = json["rules"].as_array().expect("rules").iter().filter(|rule| rule["custom"] == true);
    assert_eq!(custom.count(), 2);
    pushback.run(&["rules", "FewReplicas"]).expect(1);
}
