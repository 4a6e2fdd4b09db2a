//! Rules that are programs: what they are asked and what counts of their answers. A program that does anything else than
//! agreed refuses, and harms nobody.

use std::os::unix::fs::PermissionsExt as _;

use rustix::process::Signal;
use serde_json::{Value, json};

use super::{POLICY, check, config, findings, shop};
use crate::support::{Pushback, Running, TestCase, cases, poll};

pub(super) fn tests() -> Vec<TestCase> {
    cases![
        Nothing: a_program_judges_what_it_is_given,
        Nothing: the_example_is_a_rule,
        Nothing: a_program_sees_neither_secrets_nor_the_environment,
        Nothing: masks_of_the_release_change_only_what_is_displayed,
        Nothing: values_that_the_release_masks_have_fingerprints_of_their_own,
        Nothing: masks_of_the_policy_hold_for_programs,
        Nothing: a_program_that_misbehaves_refuses_and_harms_nobody,
        Nothing: what_a_program_leaves_behind_is_ended,
        Nothing: a_program_that_fills_the_memory_is_ended,
        Nothing: program_that_complains_at_length_is_heard,
        Nothing: program_that_starts_many_processes_is_ended,
        Nothing: memory_of_all_processes_counts_together,
        Nothing: unmapped_file_in_memory_counts,
        Nothing: processes_with_sessions_of_their_own_are_ended,
        Nothing: daemons_of_a_program_are_counted_and_ended,
        Nothing: interrupted_run_ends_its_program,
        Nothing: control_characters_of_a_program_reach_no_terminal,
        Nothing: a_program_runs_only_for_a_policy_that_the_user_names,
        Nothing: a_program_is_not_run_where_it_has_nothing_to_judge,
    ]
}

/// What a program answers that finds nothing.
const NOTHING: &str = r#"{"apiVersion":"rules.pushback.dev/v1","kind":"RuleResponse","findings":[]}"#;

fn answer(findings: &Value) -> String {
    json!({"apiVersion": "rules.pushback.dev/v1", "kind": "RuleResponse", "findings": findings}).to_string()
}

fn rules(more: &str) -> String {
    format!(
        "preflightRules:\n- name: Outside\n  exec: {{command: [./rules/program, one], timeout: 2s, memory: 64}}\n  \
         params: {{most: 5}}\n  resourceMatchers: [{{apiVersionKindMatcher: {{apiVersion: apps/v1, kind: Deployment}}}}]\n{more}"
    )
}

/// A folder with a policy whose program is this shell script.
fn with(script: &str) -> Pushback {
    let pushback = shop(&rules(""));
    pushback.write("rules/program", format!("#!/bin/sh\n{script}\n"));
    let path = pushback.directory().join("rules/program");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("permissions");
    pushback
}

fn answering(answer: &str) -> Pushback {
    let pushback = with("cat > seen.json; cat \"$(dirname \"$0\")/answer.json\"");
    pushback.write("rules/answer.json", answer);
    pushback
}

/// Why the rule could not judge.
fn unable(pushback: &Pushback, more: &[&str]) -> String {
    check(pushback, &[&POLICY[..], more].concat()).expect(10);
    let report = pushback.read_json("r.json");
    let rule = report["rules"].as_array().expect("rules").iter().find(|rule| rule["name"] == "Outside");
    let rule = rule.expect("the rule");
    assert_eq!(rule["outcome"], "unable", "{report}");
    rule["reasons"][0].as_str().expect("a reason").to_owned()
}

fn a_program_judges_what_it_is_given() {
    let told = json!([
        {"change": 0, "check": "tag", "message": "an image is tagged latest", "path": ["spec", "template", "spec", "containers", 0, "image"]},
        {"change": 0, "check": "size", "message": "many replicas", "verdict": "change", "path": ["spec", "replicas"]},
    ]);
    let pushback = answering(&answer(&told));
    let ran = check(&pushback, &POLICY).expect(10);
    let found = findings(&pushback);
    assert_eq!(found[0], "Outside error 12 an image is tagged latest", "{found:?}");
    assert!(found.iter().any(|line| line.starts_with("Outside") && line.ends_with(" 5 many replicas")), "{found:?}");
    assert!(ran.stdout.contains("Outside/tag") || ran.stderr.contains("Outside/tag"), "{}{}", ran.stdout, ran.stderr);
    let asked = pushback.read_json("seen.json");
    assert_eq!(asked["apiVersion"], "rules.pushback.dev/v1");
    assert_eq!(
        (&asked["kind"], &asked["rule"], &asked["params"]["most"]),
        (&"RuleRequest".into(), &"Outside".into(), &5.into())
    );
    let changes = asked["changes"].as_array().expect("changes");
    assert_eq!(changes.len(), 1, "the ConfigMap is not matched");
    assert_eq!(
        (&changes[0]["id"], &changes[0]["operation"], &changes[0]["request"]["operation"], &changes[0]["oldObject"]),
        (&0.into(), &"create".into(), &"CREATE".into(), &Value::Null)
    );
    assert_eq!(changes[0]["object"]["spec"]["replicas"], 9);
    // Modes and waivers are those of any rule.
    let fingerprint = pushback.read_json("r.json")["findings"][0]["fingerprint"].as_str().expect("one").to_owned();
    check(&pushback, &[&POLICY[..], &["--waive", &format!("{fingerprint}=known")]].concat()).expect(0);
    pushback.write("policy.yaml", config(&rules("  config: {mode: warn}\n")));
    check(&pushback, &POLICY).expect(0);
}

/// The example of docs/custom-rules.md.
fn the_example_is_a_rule() {
    let docs = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/custom-rules.md")).expect("a page");
    let (_, script) = docs.split_once("```sh\n#!/bin/sh\n").expect("the example");
    let (script, _) = script.split_once("```").expect("its end");
    let pushback = with(script);
    check(&pushback, &POLICY).expect(10);
    assert_eq!(findings(&pushback)[0], "Outside error 1 an image is tagged latest");
    pushback.write("app/app.yaml", super::APP.replace(":latest", ":1.2"));
    check(&pushback, &POLICY).expect(0);
}

fn a_program_sees_neither_secrets_nor_the_environment() {
    const MARKER: &str = "bWFya2VyLW9mLWEtc2VjcmV0";
    let pushback = with(&format!("cat > seen.json; env > environment; echo '{NOTHING}'"));
    let pushback = pushback.with("PUSHBACK_TEST_TOKEN", "marker-of-the-environment").with("HOME", "/marker-home");
    pushback.write("policy.yaml", config("preflightRules:\n- name: Outside\n  exec: {command: [./rules/program]}\n"));
    let secret = format!(
        "apiVersion: v1\nkind: Secret\nmetadata:\n  name: s\n  namespace: shop\n  annotations:\n    \
         kubectl.kubernetes.io/last-applied-configuration: '{{\"data\": {{\"k\": \"{MARKER}\"}}}}'\ndata: {{k: {MARKER}}}\n"
    );
    pushback.write("app/app.yaml", &secret).write("live/old.yaml", secret.replace("k: b", "k: c"));
    check(&pushback, &POLICY).expect(0);
    let seen = pushback.read("seen.json");
    assert!(seen.contains("\"Secret\"") && !seen.contains(MARKER) && !seen.contains("cWFya2VyLW9m"), "{seen}");
    let environment = pushback.read("environment");
    assert!(environment.contains("PATH=") && !environment.contains("marker"), "{environment}");
}

/// A Config that masks the images of Deployments.
fn masks_images() -> String {
    config(
        "diffMaskRules:\n- path: [spec, template, spec, containers, {allIndexes: true}, image]\n  \
         resourceMatchers: [{apiVersionKindMatcher: {apiVersion: apps/v1, kind: Deployment}}]\n",
    )
}

/// The answer of a program that quotes the image.
fn quotes_the_image(image: &str) -> String {
    let path = json!(["spec", "template", "spec", "containers", 0, "image"]);
    answer(&json!([{"change": 0, "check": "tag", "message": format!("image {image} is not allowed"), "path": path}]))
}

fn masks_of_the_release_change_only_what_is_displayed() {
    let pushback = answering(&quotes_the_image("registry.example/web:latest"));
    pushback.write("app/config.yaml", masks_images());
    let facts = ["--facts-out", "facts.json", "--report", "html=r.html"];
    let ran = check(&pushback, &[&POLICY[..], &facts].concat()).expect(10);
    let seen = pushback.read("seen.json");
    assert!(seen.contains("registry.example/web:latest"), "{seen}");
    let files = ["r.json", "facts.json", "r.html"].map(|file| pushback.read(file)).concat();
    let shown = format!("{}{}{files}", ran.stdout, ran.stderr);
    assert!(shown.contains("is not allowed") && !shown.contains("web:latest"), "{shown}");
}

fn values_that_the_release_masks_have_fingerprints_of_their_own() {
    let fingerprint = |image: &str, masks: bool| {
        let pushback = answering(&quotes_the_image("X"));
        if masks {
            pushback.write("app/config.yaml", masks_images());
        }
        pushback.write("app/app.yaml", super::APP.replace("registry.example/web:latest", image));
        check(&pushback, &POLICY).expect(10);
        pushback.read_json("r.json")["findings"][0]["fingerprint"].as_str().expect("one").to_owned()
    };
    assert_ne!(fingerprint("web:latest", true), fingerprint("evil:latest", true));
    assert_eq!(fingerprint("web:latest", true), fingerprint("web:latest", false));
}

fn masks_of_the_policy_hold_for_programs() {
    let pushback = answering(NOTHING);
    pushback.write(
        "policy.yaml",
        format!("{}{}", config(&rules("")), masks_images().split_once("Config\n").expect("keys").1),
    );
    check(&pushback, &POLICY).expect(0);
    let seen = pushback.read("seen.json");
    assert!(seen.contains("(secret #1)") && !seen.contains("web:latest"), "{seen}");
}

fn a_program_that_misbehaves_refuses_and_harms_nobody() {
    let said = |script: &str| unable(&with(script), &[]);
    let cases = [
        ("sleep 60", "it has not answered within 2 s"),
        ("exec yes", "longer than 16 MiB"),
        ("trap '' TERM INT; while :; do :; done", "it has not answered within 2 s"),
        ("echo broken >&2; exit 3", "exit status: 3: broken"),
        ("kill -9 $$", "signal: 9"),
        ("exit 0", "not JSON"),
        ("echo hello", "not JSON"),
        (&format!("echo '{}'", NOTHING.replace("\"findings\"", "\"findings\":[],\"findings\"")), "has a key twice"),
        ("echo '[]'", "expected an answer of rules.pushback.dev/v1 RuleResponse, found nothing nothing"),
        ("cat", "found rules.pushback.dev/v1 RuleRequest"),
        (&format!("echo '{}'", NOTHING.replace("/v1", "/v2")), "found rules.pushback.dev/v2 RuleResponse"),
        (&format!("echo '{}'", NOTHING.replace("[]", "{}")), "not as agreed"),
        (&format!("echo '{}'", NOTHING.replace("\"findings\"", "\"more\":1,\"findings\"")), "unknown field `more`"),
    ];
    for (script, expected) in cases {
        let reason = said(script);
        assert!(reason.starts_with("the program of Outside: ") && reason.contains(expected), "{script}: {reason}");
    }
    let lied = |finding: Value| unable(&answering(&answer(&json!([finding]))), &[]);
    let good = json!({"change": 0, "check": "c", "message": "m"});
    let with_value = |key: &str, value: Value| {
        let mut finding = good.clone();
        finding[key] = value;
        finding
    };
    for (finding, expected) in [
        (with_value("change", json!(1)), "a finding is about change 1, and it was given 1"),
        (with_value("change", json!(-1)), "not as agreed"),
        (with_value("object", json!({"kind": "Node", "name": "another"})), "unknown field `object`"),
        (with_value("severity", json!("error")), "unknown field `severity`"),
        (with_value("verdict", json!("fine")), "not as agreed"),
        (with_value("check", json!("a b")), "the name of a check"),
        (with_value("message", json!("")), "a message is empty"),
        (with_value("message", json!("m".repeat(6000))), "a message is empty or longer"),
    ] {
        let reason = lied(finding.clone());
        assert!(reason.contains(expected), "{finding}: {reason}");
    }
    let many = vec![good; 10_001];
    assert!(unable(&answering(&answer(&json!(many))), &[]).contains("more than 10000 findings"));
    let missing = shop(&rules(""));
    assert!(unable(&missing, &[]).contains("it cannot be started: no such file"));
    // Under `mode: warn` nothing is refused, and it is told.
    let warned = with("exit 1");
    warned.write("policy.yaml", config(&rules("  config: {mode: warn}\n")));
    check(&warned, &POLICY).expect(0);
}

fn what_a_program_leaves_behind_is_ended() {
    for script in [
        "sleep 600 & echo $! > left; sleep 600",
        &format!("sleep 600 > /dev/null 2>&1 & echo $! > left; cat > /dev/null; echo '{NOTHING}'"),
    ] {
        let pushback = with(script);
        check(&pushback, &POLICY);
        let left = pushback.read("left");
        let process = format!("/proc/{}/cmdline", left.trim());
        let is_over = || std::fs::read_to_string(&process).is_ok_and(|line| !line.is_empty()).then_some(());
        // Whoever adopts it has to take note of its end first.
        let gone = poll(std::time::Duration::from_secs(10), || is_over().is_none().then_some(()));
        assert!(gone.is_some(), "{script}: {process} is still there");
    }
}

fn a_program_that_fills_the_memory_is_ended() {
    let fills = |bytes: u32| with(&format!("text=$(head -c {bytes} /dev/zero | tr '\\0' x)\necho '{NOTHING}'"));
    check(&fills(1_000_000), &POLICY).expect(0);
    let filling = fills(200_000_000);
    filling.write("policy.yaml", config(&rules("").replace("timeout: 2s", "timeout: 60s")));
    let reason = unable(&filling, &[]);
    assert!(reason.contains("it failed with") || reason.contains("filled more than 64 MiB"), "{reason}");
}

fn program_that_complains_at_length_is_heard() {
    let pushback = with(&format!("head -c 1000000 /dev/zero | tr '\\0' x >&2\necho '{NOTHING}'"));
    check(&pushback, &POLICY).expect(0);
}

fn program_that_starts_many_processes_is_ended() {
    let pushback = with("for i in $(seq 300); do sleep 600 & done\nsleep 600");
    assert!(unable(&pushback, &[]).contains("it started more than 64 processes"));
}

fn memory_of_all_processes_counts_together() {
    // Each of them is within the limit of 64 MiB.
    let one = "(text=$(head -c 12000000 /dev/zero | tr '\\0' x); sleep 600) &";
    let pushback = with(&format!("{}\nsleep 600", [one; 8].join("\n")));
    let policy = config(&rules("").replace("timeout: 2s", "timeout: 60s"));
    pushback.write("policy.yaml", policy);
    assert!(unable(&pushback, &[]).contains("its processes filled more than 64 MiB of memory"));
}

fn unmapped_file_in_memory_counts() {
    let script = format!(
        "exec 3> /dev/shm/pushback-$$; rm /dev/shm/pushback-$$\n\
         head -c 200000000 /dev/zero >&3\nsleep 600\necho '{NOTHING}'"
    );
    let pushback = with(&script);
    pushback.write("policy.yaml", config(&rules("").replace("timeout: 2s", "timeout: 60s")));
    assert!(unable(&pushback, &[]).contains("its processes filled more than 64 MiB of memory"));
}

fn processes_with_sessions_of_their_own_are_ended() {
    // They are started one after the other while the program is ended.
    let pushback = with("for i in $(seq 300); do setsid sh -c 'echo $$ >> left; exec sleep 600' & done\nsleep 600");
    assert!(unable(&pushback, &[]).contains("it started more than 64 processes"));
    let runs =
        |process: &&str| std::fs::read_to_string(format!("/proc/{process}/cmdline")).is_ok_and(|it| !it.is_empty());
    let left = || pushback.read("left").lines().filter(runs).count();
    let gone = poll(std::time::Duration::from_secs(10), || (left() == 0).then_some(()));
    assert!(gone.is_some(), "{} processes are still there", left());
}

/// Their parents end, so that nothing leads from the program to them.
fn daemons_of_a_program_are_counted_and_ended() {
    let daemon = |file: &str| format!("setsid -f sh -c 'echo $$ >> {file}; exec sleep 600' </dev/null >/dev/null 2>&1");
    let runs =
        |process: &&str| std::fs::read_to_string(format!("/proc/{process}/cmdline")).is_ok_and(|it| !it.is_empty());
    let many = with(&format!("for i in $(seq 200); do {}; done\nsleep 600", daemon("left")));
    assert!(unable(&many, &[]).contains("it started more than 64 processes"));
    // Not only those of a program that is refused.
    let one = with(&format!("{}\nwhile [ ! -s left ]; do sleep 0.01; done\necho '{NOTHING}'", daemon("left")));
    check(&one, &POLICY).expect(0);
    for pushback in [many, one] {
        let left = || pushback.read("left").lines().filter(runs).count();
        let gone = poll(std::time::Duration::from_secs(10), || (left() == 0).then_some(()));
        assert!(gone.is_some(), "{} processes are still there", left());
    }
}

fn interrupted_run_ends_its_program() {
    for (signal, code) in [(Signal::TERM, 143), (Signal::INT, 130), (Signal::HUP, 143)] {
        is_ended_by(signal, code);
    }
}

fn is_ended_by(signal: Signal, code: i32) {
    let pushback = with("echo $$ > running; exec sleep 600");
    pushback.write("policy.yaml", config(&rules("").replace("timeout: 2s", "timeout: 60s")));
    let arguments = ["check", "-f", "app", "--cluster", "dir:live", "--config", "policy.yaml"];
    let run = Running::start(pushback.command(&arguments));
    let running = poll(std::time::Duration::from_secs(30), || {
        std::fs::read_to_string(pushback.directory().join("running")).ok().filter(|text| text.ends_with('\n'))
    });
    let process = format!("/proc/{}/cmdline", running.expect("a program").trim());
    run.signal(signal);
    run.finish_within(std::time::Duration::from_secs(30)).expect(code);
    let is_over = || !std::fs::read_to_string(&process).is_ok_and(|line| !line.is_empty());
    assert!(poll(std::time::Duration::from_secs(10), || is_over().then_some(())).is_some(), "it still runs");
}

fn control_characters_of_a_program_reach_no_terminal() {
    let evil = "\u{1b}[2Jgone\u{7}\r\nnext \u{202e}txet";
    let told = json!([{"change": 0, "check": "c", "message": evil, "path": ["spec", "\u{1b}[31m"]}]);
    for pushback in [
        answering(&answer(&told)),
        with("printf '\\033[2Jbroken\\007' >&2; exit 1"),
        answering(&answer(&json!([])).replace("/v1", "/\\u001b[2J")),
    ] {
        for format in ["junit", "markdown", "html", "sarif", "github", "json"] {
            let report = format!("{format}=other.{format}");
            let ran = check(&pushback, &[&POLICY[..], &["--report", &report, "--verbose"]].concat()).expect(10);
            let shown = [ran.stdout, ran.stderr, pushback.read(&format!("other.{format}"))].concat();
            let is_harmful = |c: char| (c.is_control() && c != '\n' && c != '\t') || c == '\u{202e}';
            assert!(!shown.contains(is_harmful), "{format}: {shown:?}");
        }
    }
}

fn a_program_runs_only_for_a_policy_that_the_user_names() {
    let pushback = with(&format!("touch ran; echo '{NOTHING}'"));
    // Among the manifests it is ignored.
    pushback.write("app/config.yaml", config(&rules("").replace("./rules", "../rules")));
    check(&pushback, &[]).expect(0);
    assert!(findings(&pushback).iter().any(|line| line.contains("rule Outside is ignored")));
    // On the old side it counts, and is not run.
    pushback.write("live/config.yaml", config(&rules("").replace("./rules", "../rules")));
    check(&pushback, &[]).expect(10);
    let report = pushback.read_json("r.json").to_string();
    assert!(report.contains("it runs only where the policy is a file given with --config"), "{report}");
    assert!(!pushback.directory().join("ran").exists());
    check(&pushback, &POLICY).expect(0);
    assert!(pushback.directory().join("ran").exists());
}

fn a_program_is_not_run_where_it_has_nothing_to_judge() {
    let pushback = with("touch ran; exit 1");
    pushback.write("app/app.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: shop}\n");
    check(&pushback, &POLICY).expect(0);
    assert!(!pushback.directory().join("ran").exists());
}
