//! Policy sources: with one, what a release carries beside its manifests is followed where it tightens and never where
//! it loosens; without one it decides, and output, reports and history tell what it has loosened.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::apply::{TestApp, parse_text};
use crate::support::proxy::{Fault, FaultProxy, Verb, matching};
use crate::support::{Pushback, Ran, TestCase, TestCluster, cases, wait_until};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        Nothing: a_release_does_not_loosen_the_policy_that_it_is_judged_by,
        Nothing: without_a_source_every_loosening_is_told,
        Nothing: a_policy_that_says_so_refuses_what_would_loosen_it,
        Nothing: a_change_of_policy_lands_and_counts_from_then_on,
        Nothing: what_a_release_adds_to_the_policy_counts,
        Nothing: masks_of_the_policy_stay_whatever_the_release_says,
        Nothing: files_are_named_by_the_policy_alone,
        Nothing: a_waiver_is_for_one_change_and_so_many_objects,
        ApiServer: what_an_unfinished_run_has_waived_is_not_waived_for_more_objects,
        Nothing: a_policy_of_the_old_side_that_cannot_be_read_is_an_error,
    ]
}

/// A definition whose sizes end at `maximum`; `more` stands in the schema of `spec`.
fn definition(maximum: u32, more: &str) -> String {
    format!(
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: foos.ex.com}}\nspec:\n  \
         group: ex.com\n  scope: Namespaced\n  names: {{kind: Foo, plural: foos}}\n  versions:\n  - name: v1\n    \
         served: true\n    storage: true\n    schema: {{openAPIV3Schema: {{type: object, properties: {{spec: {{type: object, \
         properties: {{size: {{type: integer, maximum: {maximum}{more}}}}}}}}}}}}}\n"
    )
}

fn config(keys: &str) -> String {
    format!("apiVersion: pushback.dev/v1alpha1\nkind: Config\n{keys}")
}

/// The same, as kapp carries it among the manifests.
fn config_map(keys: &str) -> String {
    let text = config(keys).replace('\n', "\n    ");
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: config, labels: {{kapp.k14s.io/config: ''}}}}\ndata:\n  \
         config.yml: |\n    {text}\n"
    )
}

/// What a release may carry to get its own breaking change through.
const LOOSE: [(&str, &str); 6] = [
    ("mode", "preflightRules: [{name: CRDUpgradeSafety, config: {mode: warn}}]\n"),
    ("check", "preflightRules: [{name: CRDUpgradeSafety, config: {checks: {maximum: 'off'}}}]\n"),
    ("profile", "preflightRules: [{name: CRDUpgradeSafety, config: {profile: published, checks: {maximum: warn}}}]\n"),
    ("no rule", "preflightRules: []\n"),
    ("another rule", "preflightRules: [{name: PermissionValidation}]\n"),
    ("a waiver of everything", "preflightWaivers: [{rule: CRDUpgradeSafety, reason: trust me}]\n"),
];

/// `live` and the branch `main` hold the definition that `app` breaks; `policy.yaml` says nothing.
fn breaking() -> Pushback {
    let pushback = Pushback::new();
    pushback.write("live/crd.yaml", definition(100, "")).write("policy.yaml", config(""));
    pushback.write("old/crd.yaml", definition(100, "")).write("old/policy.yaml", config(""));
    pushback.commit();
    pushback.write("app/crd.yaml", definition(10, ""));
    pushback
}

fn check(pushback: &Pushback, more: &[&str]) -> Ran {
    let arguments = ["check", "-f", "app", "--report", "json=r.json", "--report", "junit=r.xml"];
    pushback.run(&[&arguments[..], more].concat())
}

fn checks_of(pushback: &Pushback, rule: &str) -> Vec<String> {
    let report = pushback.read_json("r.json");
    let findings = report["findings"].as_array().expect("findings").iter();
    let of_rule = findings.filter(|finding| finding["rule"] == rule);
    of_rule.map(|finding| finding["check"].as_str().expect("a check").to_owned()).collect()
}

fn a_release_does_not_loosen_the_policy_that_it_is_judged_by() {
    let sources: [&[&str]; 6] = [
        &["--cluster", "dir:live", "--config", "policy.yaml"],
        &["--cluster", "dir:live", "--config", "git:main:old/policy.yaml"],
        &["--cluster", "dir:live", "--policy-from", "outside"],
        &["--cluster", "dir:old"],
        &["--cluster", "git:main:old"],
        &["--cluster", "dir:live", "--config", "policy.yaml", "--preflight=CRDUpgradeSafety"],
    ];
    let pushback = breaking();
    for source in sources {
        for (title, keys) in LOOSE {
            for (carrier, text) in [("Config", config(keys)), ("ConfigMap", config_map(keys))] {
                pushback.write("app/config.yaml", text);
                let ran = check(&pushback, source);
                assert_eq!(ran.code, 10, "{title} in a {carrier}, {source:?}: {}{}", ran.stdout, ran.stderr);
                let report = pushback.read_json("r.json");
                assert_eq!(checks_of(&pushback, "CRDUpgradeSafety"), ["maximum"], "{title}, {source:?}");
                assert!(report["policy"]["source"].is_string(), "{report}");
                // The flag says which rules run: then a list of rules loosens nothing.
                if !source.contains(&"--preflight=CRDUpgradeSafety") {
                    let loosened = report["policy"]["loosened"].as_array().expect("a list");
                    assert!(loosened.iter().all(|one| one["followed"] == false) && !loosened.is_empty(), "{report}");
                    assert_eq!(
                        loosened[0]["position"]["file"].as_str().map(|file| &file[..15]),
                        Some("app/config.yaml")
                    );
                    assert!(!checks_of(&pushback, "policy").is_empty(), "{report}");
                }
            }
        }
    }
    for (name, value) in [("PUSHBACK_CONFIG", "policy.yaml"), ("PUSHBACK_POLICY_FROM", "outside")] {
        let pushback = breaking().with(name, value);
        pushback.write("app/config.yaml", config(LOOSE[0].1));
        check(&pushback, &["--cluster", "dir:live"]).expect(10);
    }
}

fn without_a_source_every_loosening_is_told() {
    let mut table = String::new();
    for (title, keys) in LOOSE {
        let pushback = breaking();
        pushback.write("app/config.yaml", config(keys));
        let ran = check(&pushback, &["--cluster", "dir:live"]).expect(0);
        assert!(ran.stdout.contains("app/config.yaml:3:"), "{title}: {}", ran.stdout);
        let policy = &pushback.read_json("r.json")["policy"];
        let loosened = policy["loosened"].as_array().expect("a list");
        assert!(policy.get("source").is_none() && loosened.iter().all(|one| one["followed"] == true), "{policy}");
        let what: Vec<&str> = loosened.iter().filter_map(|one| one["what"].as_str()).collect();
        let off: Vec<&str> =
            policy["rulesOff"].as_array().expect("a list").iter().filter_map(|off| off["name"].as_str()).collect();
        let junit = pushback.read("r.xml");
        assert!(!junit.contains("tests=\"0\""), "{junit}");
        assert!(what.iter().all(|what| junit.contains(what)) && off.iter().all(|off| junit.contains(off)), "{junit}");
        table.push_str(&format!("{title}: {}; off: {}\n", what.join(", "), off.join(", ")));
        // And for good: whoever looks at the history of the app sees the same.
        pushback
            .run(&[
                "apply",
                "-a",
                "shop",
                "-f",
                "app",
                "--cluster",
                "dir:live",
                "--yes",
                "--dangerous-override-ownership-of-existing-resources",
            ])
            .expect(0);
        let history: String =
            pushback.tree("live/.pushback").into_values().filter(|text| text.contains("is-app-change")).collect();
        assert!(what.iter().all(|what| history.contains(what)), "{title}: {history}");
        assert!(!keys.contains("Waivers") || history.contains("trust me"), "{history}");
    }
    insta::assert_snapshot!(table, @"
    mode: CRDUpgradeSafety mode, StoredVersions, PermissionValidation, PodAdmission, DestructiveChange; off: StoredVersions, PermissionValidation, PodAdmission, DestructiveChange
    check: CRDUpgradeSafety checks.maximum, StoredVersions, PermissionValidation, PodAdmission, DestructiveChange; off: StoredVersions, PermissionValidation, PodAdmission, DestructiveChange
    profile: CRDUpgradeSafety profile, CRDUpgradeSafety checks.maximum, StoredVersions, PermissionValidation, PodAdmission, DestructiveChange; off: StoredVersions, PermissionValidation, PodAdmission, DestructiveChange
    no rule: CRDUpgradeSafety, StoredVersions, PermissionValidation, PodAdmission, DestructiveChange; off: CRDUpgradeSafety, StoredVersions, PermissionValidation, PodAdmission, DestructiveChange
    another rule: CRDUpgradeSafety, StoredVersions, PodAdmission, DestructiveChange; off: CRDUpgradeSafety, StoredVersions, PodAdmission, DestructiveChange
    a waiver of everything: CRDUpgradeSafety; off: 
    ");
}

fn a_policy_that_says_so_refuses_what_would_loosen_it() {
    let pushback = breaking();
    pushback.write("app/crd.yaml", definition(100, "")).write("policy.yaml", config("policyLoosening: error\n"));
    let judged = ["--cluster", "dir:live", "--config", "policy.yaml"];
    check(&pushback, &judged).expect(0);
    for (title, keys) in LOOSE {
        pushback.write("app/config.yaml", config(&format!("policyLoosening: warn\n{keys}")));
        let ran = check(&pushback, &judged);
        assert_eq!(ran.code, 10, "{title}: {}", ran.stdout);
    }
}

fn a_change_of_policy_lands_and_counts_from_then_on() {
    let pushback = breaking();
    let waiver =
        "preflightWaivers: [{rule: CRDUpgradeSafety, check: maximum, path: 'spec.*', reason: nobody has more}]\n";
    // The waiver alone is judged by what is there, says what it loosens, and lands.
    pushback.write("app/crd.yaml", definition(100, "")).write("app/policy.yaml", config(waiver));
    let ran = check(&pushback, &["--cluster", "git:main:old"]).expect(0);
    assert!(ran.stdout.contains("warning[policy/waiver]"), "{}", ran.stdout);
    pushback.write("old/policy.yaml", config(waiver));
    pushback.shell("git", &["commit", "--quiet", "--all", "--message=waived"]);
    pushback.write("app/crd.yaml", definition(10, ""));
    let ran = check(&pushback, &["--cluster", "git:main:old"]).expect(0);
    assert!(ran.stdout.contains("waived[CRDUpgradeSafety/maximum]"), "{}", ran.stdout);
    assert_eq!(checks_of(&pushback, "policy"), Vec::<String>::new(), "what the policy says too loosens nothing");
}

fn what_a_release_adds_to_the_policy_counts() {
    let pushback = breaking();
    pushback.write("app/crd.yaml", definition(100, ", default: 5"));
    let judged = ["--cluster", "dir:live", "--config", "policy.yaml"];
    pushback.write("policy.yaml", config("preflightRules: [{name: CRDUpgradeSafety, config: {mode: warn}}]\n"));
    check(&pushback, &judged).expect(0);
    pushback.write("app/config.yaml", config("preflightRules: [{name: CRDUpgradeSafety, config: {mode: error}}]\n"));
    check(&pushback, &judged).expect(10);
    assert_eq!(checks_of(&pushback, "policy"), Vec::<String>::new());
}

fn masks_of_the_policy_stay_whatever_the_release_says() {
    let pushback = Pushback::new();
    let masked = "diffMaskRules: [{path: [data], resourceMatchers: [{apiVersionKindMatcher: {apiVersion: v1, kind: ConfigMap}}]}]\n";
    let map = |value: &str| format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a}}\ndata: {{key: {value}}}\n");
    pushback.write("live/policy.yaml", config(masked)).write("live/map.yaml", map("hunter2"));
    pushback.write("app/map.yaml", map("hunter3")).write("app/config.yaml", config("diffMaskRules: []\n"));
    let ran = pushback.run(&["diff", "-f", "app", "--cluster", "dir:live"]).expect(0);
    assert!(ran.stdout.contains("data.key") && !ran.stdout.contains("hunter"), "{}", ran.stdout);
}

fn files_are_named_by_the_policy_alone() {
    let pushback = breaking();
    pushback.write("app/crd.yaml", definition(100, ", minimum: 1"));
    let named =
        "preflightRules: [{name: UpgradeDiff, config: {failOn: never, experiments: out, model: /etc/shadow}}]\n";
    pushback.write("app/config.yaml", config(named));
    for more in [&["--cluster", "dir:live"][..], &["--cluster", "dir:live", "--preflight=UpgradeDiff"]] {
        let ran = check(&pushback, more).expect(0);
        assert_eq!(checks_of(&pushback, "policy").iter().filter(|check| *check == "outsideOnly").count(), 2);
        assert!(ran.stdout.contains("give the Config that has it with --config"), "{}", ran.stdout);
        assert!(!pushback.directory().join("out").exists());
    }
    pushback.write("policy.yaml", config(&named.replace(", model: /etc/shadow", "")));
    check(&pushback, &["--cluster", "dir:live", "--config", "policy.yaml"]).expect(0);
    assert!(pushback.directory().join("out/suite-manifest.yaml").exists());
}

fn a_waiver_is_for_one_change_and_so_many_objects() {
    let pushback = breaking();
    let object =
        |name: &str| format!("apiVersion: ex.com/v1\nkind: Foo\nmetadata: {{name: {name}}}\nspec: {{size: 50}}\n");
    for folder in ["live", "app"] {
        pushback.write(&format!("{folder}/one.yaml"), object("one"));
    }
    let fingerprint = || -> String {
        let report = pushback.read_json("r.json");
        let findings: &Vec<Value> = report["findings"].as_array().expect("findings");
        let refusing = findings.iter().find(|finding| finding["severity"] == "error").expect("one that refuses");
        refusing["fingerprint"].as_str().expect("a fingerprint").to_owned()
    };
    check(&pushback, &["--cluster", "dir:live"]).expect(10);
    let accepted = fingerprint();
    assert_eq!(accepted.len(), 32);
    assert_eq!(pushback.read_json("r.json")["findings"][0]["liveObjects"]["affected"], json!(1));
    let waive = |count: &str| format!("{accepted}{count}=known");
    check(&pushback, &["--cluster", "dir:live", "--waive", &waive("@1")]).expect(0);
    check(&pushback, &["--cluster", "dir:live", "--waive", &waive("@0")]).expect(10);
    for folder in ["live", "app"] {
        pushback.write(&format!("{folder}/two.yaml"), object("two"));
    }
    let ran = check(&pushback, &["--cluster", "dir:live", "--waive", &waive("@1")]).expect(10);
    assert!(ran.stdout.contains("was given for 1 affected object"), "{}", ran.stdout);
    check(&pushback, &["--cluster", "dir:live", "--waive", &waive("")]).expect(0);
    let in_config = |affected: u32| {
        config(&format!(
            "preflightWaivers: [{{rule: CRDUpgradeSafety, fingerprint: {accepted}, affected: {affected}, reason: known}}]\n"
        ))
    };
    for (affected, code) in [(2, 0), (1, 10)] {
        pushback.write("policy.yaml", in_config(affected));
        check(&pushback, &["--cluster", "dir:live", "--config", "policy.yaml"]).expect(code);
    }
    // The same field, from and to the same value, in another schema: another change.
    pushback.write("app/crd.yaml", definition(10, ", multipleOf: 2"));
    check(&pushback, &["--cluster", "dir:live", "--waive", &waive("")]).expect(10);
    let refused =
        pushback.run(&["check", "-f", "app", "--cluster", "dir:live", "--waive", "9c1185a5deadbeef=short"]).expect(1);
    assert!(refused.stderr.contains("32 hexadecimal digits"), "{}", refused.stderr);
}

/// Without a number of its own a waiver covers as many objects as there were when it was given, until the change is done.
fn what_an_unfinished_run_has_waived_is_not_waived_for_more_objects() {
    let cluster = TestCluster::shared();
    let proxy = FaultProxy::start(cluster.kubeconfig_path());
    let pushback = Pushback::with_kubeconfig(&proxy.kubeconfig());
    let app = TestApp::of(pushback, "waived", &cluster.namespace("waived"));
    let (api, namespace) = (cluster.api(), app.namespace.as_str());
    let group = format!("{namespace}.ex.com");
    let input = |maximum| definition(maximum, "").replace("ex.com", &group);
    app.apply(&input(100), &[]).expect(0);
    let objects = format!("/apis/{group}/v1/namespaces/{namespace}/foos");
    wait_until("the kind is served", Duration::from_secs(60), || (api.get(&objects).status == 200).then_some(()));
    let create = |name: &str| {
        let object = json!({"apiVersion": format!("{group}/v1"), "kind": "Foo", "metadata": {"name": name}, "spec": {"size": 50}});
        api.post(&objects, &object).ok();
    };
    ["one", "two"].into_iter().for_each(create);
    let refused = app.apply(&input(10), &[]).expect(10);
    let finding = refused.events_of("finding").remove(0)["finding"].take();
    assert_eq!(finding["liveObjects"]["affected"], 2, "{finding:#}");
    let fingerprint = finding["fingerprint"].as_str().expect("a fingerprint");
    let waiver = format!("{fingerprint}=known");
    let apply = |code: i32| app.apply(&input(10), &["--waive", &waiver]).expect(code);
    let accepted = || parse_text(&app.record()["data"]["pushback"])["accepted"].clone();

    // The waiver counts, and the change does not come to its end.
    proxy.on(matching(Verb::Apply, "customresourcedefinitions"), Fault::status(403));
    apply(20);
    assert_eq!(accepted(), json!({fingerprint: 2}));
    create("three");
    let grown = apply(10);
    let told =
        grown.events_of("finding").iter().map(|event| event["finding"]["message"].to_string()).collect::<String>();
    assert!(told.contains("was given for 2 affected objects, and there are 3"), "{told}");
    assert_eq!(accepted(), json!({fingerprint: 2}), "what refuses accepts nothing");
    // As many as then are covered, and so are fewer.
    api.delete(&format!("{objects}/three"));
    apply(20);
    api.delete(&format!("{objects}/two"));
    proxy.clear();
    apply(0);
    assert_eq!(accepted(), Value::Null, "what is done is not waived again");
    app.delete(&["--preflight=none"]).expect(0);
}

fn a_policy_of_the_old_side_that_cannot_be_read_is_an_error() {
    let pushback = breaking();
    pushback.write("live/policy.yaml", config("preflightRule: []\n"));
    let ran = check(&pushback, &["--cluster", "dir:live"]).expect(1);
    assert!(ran.stderr.contains("live/policy.yaml:3:1") && ran.stderr.contains("--config"), "{}", ran.stderr);
    check(&pushback, &["--cluster", "dir:live", "--config", "policy.yaml"]).expect(10);
    // Two apps side by side, each with its own: the strictest of both.
    let warn = "preflightRules: [{name: CRDUpgradeSafety, config: {mode: warn}}]\n";
    pushback
        .write("live/policy.yaml", config(warn))
        .write("live/other.yaml", config("preflightRules: [{name: CRDUpgradeSafety}]\n"));
    check(&pushback, &["--cluster", "dir:live"]).expect(10);
    pushback.write("live/other.yaml", config(warn));
    check(&pushback, &["--cluster", "dir:live"]).expect(0);
}
