//! Facts files: a verdict comes again from them without a cluster, byte for byte; and whether a report, a saved plan and
//! facts are of one run.

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::support::apply::{TestApp, config_map};
use crate::support::markers::Markers;
use crate::support::{Pushback, Ran, TestCase, TestCluster, cases};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        Nothing: a_verdict_on_definitions_comes_again_from_its_facts,
        Nothing: rules_of_the_policy_and_waivers_judge_facts_again,
        ApiServer: a_verdict_of_a_server_comes_again_without_it,
        ApiServer: no_value_of_a_secret_is_in_facts_or_their_verdict,
        Nothing: facts_that_are_not_as_they_were_written_are_refused_with_the_place,
        Nothing: hostile_facts_come_to_an_end,
        Nothing: what_is_given_beside_facts_is_refused,
        Nothing: files_of_one_run_belong_together,
        Nothing: what_does_not_belong_together_is_named,
    ]
}

const OUT: [&str; 4] = ["--report", "json=report.json", "--facts-out", "facts.json"];

/// Judges the facts of a run elsewhere, without a cluster, and expects the same report and exit code.
#[track_caller]
fn same_again(of: &Pushback, ran: &Ran, more: &[&str]) -> Ran {
    let elsewhere = Pushback::new();
    elsewhere.write("facts.json", of.read("facts.json"));
    if let Some(file) = more.get(1) {
        elsewhere.write(file, of.read(file));
    }
    let check = ["check", "--facts", "facts.json", "--report", "json=report.json"];
    let again = elsewhere.run(&[&check[..], more].concat()).expect(ran.code);
    assert_eq!(elsewhere.read("report.json"), of.read("report.json"));
    assert!(!again.stderr.contains("other-verdict") && !again.stderr.contains("another verdict"), "{}", again.stderr);
    again
}

fn a_verdict_on_definitions_comes_again_from_its_facts() {
    let crds = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/crds");
    let mut files: Vec<String> = std::fs::read_dir(crds)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path().display().to_string())
        .filter(|path| path.ends_with(".json"))
        .collect();
    files.sort();
    let kind = |path: &str| path.rsplit('-').next().map(str::to_owned);
    let mut codes = Vec::new();
    for (old, new) in files.iter().flat_map(|old| files.iter().map(move |new| (old, new))) {
        if old == new || kind(old) != kind(new) {
            continue;
        }
        let pushback = Pushback::new();
        let ran = pushback.run(&[&["check", "-f", new, "--cluster", &format!("file:{old}")][..], &OUT].concat());
        same_again(&pushback, &ran, &[]);
        codes.push(ran.code);
    }
    assert!(codes.contains(&0) && codes.contains(&10), "{codes:?}");
}

const POLICY: &str = "\
apiVersion: pushback.dev/v1alpha1
kind: Config
preflightRules:
- name: NoOld
  cel: object.data.key != 'old'
  message: the value is old
- name: RemovedAPIs
preflightWaivers:
- {rule: NoOld, object: ConfigMap default/a, reason: it stays, expires: \"2099-12-31\"}
- {rule: RemovedAPIs, object: ConfigMap none, reason: an example, expires: \"2020-12-31\"}
";

fn shop() -> Pushback {
    let pushback = Pushback::new();
    pushback.write("policy.yaml", POLICY).write("live/.keep", "");
    pushback.write("shop/a.yaml", config_map("a", "old")).write("shop/b.yaml", config_map("b", "new"));
    pushback
}

fn run(pushback: &Pushback, command: &[&str]) -> Ran {
    let input = ["-f", "shop", "--config", "policy.yaml", "--cluster", "dir:live", "-a", "shop"];
    pushback.run(&[command, &input, &OUT].concat())
}

fn rules_of_the_policy_and_waivers_judge_facts_again() {
    let pushback = shop();
    let ran = run(&pushback, &["check"]).expect(0);
    let again = same_again(&pushback, &ran, &["--config", "policy.yaml"]);
    assert!(again.stdout.contains("it stays") || again.stderr.contains("it stays"), "{again:?}");
    let error = pushback.run(&["check", "--facts", "facts.json"]).expect(1).stderr;
    assert!(error.contains("facts.json: rule NoOld is the policy's own"), "{error}");
    assert!(error.contains("--config"), "{error}");
    // Another policy is another verdict, and it is told.
    pushback.write("policy.yaml", POLICY.replace("'old'", "'new'"));
    let other = pushback.run(&["check", "--facts", "facts.json", "--config", "policy.yaml"]).expect(10);
    assert!(other.stderr.contains("the run itself came to another verdict"), "{}", other.stderr);
    // A refused run has facts as well.
    pushback.write("policy.yaml", POLICY.replace("default/a", "default/z"));
    let refused = run(&pushback, &["check"]).expect(10);
    same_again(&pushback, &refused, &["--config", "policy.yaml"]);
}

/// Rules that ask the server: what is stored of a kind, what the user may do, what is referred to.
fn a_verdict_of_a_server_comes_again_without_it() {
    let cluster = TestCluster::shared();
    let app = TestApp::new("judged", &cluster.namespace("facts"));
    let definition = |kinds: &str| {
        format!(
            "---\napiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: foos.{0}.ex}}\n\
             spec:\n  group: {0}.ex\n  scope: Namespaced\n  names: {{kind: Foo, plural: foos}}\n  versions:\n  - name: v1\n    \
             served: true\n    storage: true\n    schema: {{openAPIV3Schema: {{type: object, properties: {{spec: {{type: \
             object, properties: {{kind: {{type: string, enum: [{kinds}]}}}}}}}}}}}}\n",
            app.namespace
        )
    };
    let sample = |kind: &str| {
        format!("---\napiVersion: {}.ex/v1\nkind: Foo\nmetadata: {{name: x}}\nspec: {{kind: {kind}}}\n", app.namespace)
    };
    app.apply(&(definition("one, two") + &sample("one") + &config_map("a", "1")), &[]).expect(0);
    let pod = "---\napiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  containers:\n  - name: c\n    image: i.example/i\n    \
               envFrom: [{configMapRef: {name: missing}}]\n";
    app.pushback.write("app.yaml", definition("two") + &sample("one") + pod);
    let ran = app.run("diff", &[&["-f", "app.yaml", "--preflight"][..], &OUT].concat()).expect(10);
    assert!(app.pushback.read("report.json").contains("\"liveObjects\""), "nothing was read of the server");
    same_again(&app.pushback, &ran, &[]);
    // What the server itself refuses.
    app.pushback.write("app.yaml", definition("one, two") + &sample("three"));
    let ran = app.run("diff", &[&["-f", "app.yaml", "--preflight"][..], &OUT].concat()).expect(10);
    same_again(&app.pushback, &ran, &[]);
}

fn no_value_of_a_secret_is_in_facts_or_their_verdict() {
    let mut markers = Markers::default();
    let (old, new, kept) = (markers.value("old"), markers.value("new"), markers.value("kept"));
    let secret = |name: &str, value: &str| {
        format!("---\napiVersion: v1\nkind: Secret\nmetadata: {{name: {name}}}\nstringData: {{password: {value}}}\n")
    };
    let app = TestApp::new("secrets", &TestCluster::shared().namespace("facts-secret"));
    app.apply(&(secret("a", &old) + &secret("kept", &kept)), &[]).expect(0);
    app.pushback.write("app.yaml", secret("a", &new) + &secret("b", &new));
    // `--patch` keeps a Secret that is gone from the input; the rules get to know it.
    let ran = app.run("diff", &[&["-f", "app.yaml", "--preflight", "--patch"][..], &OUT].concat()).expect(0);
    markers.look_at_run("diff", &ran);
    markers.look_at("the facts", app.pushback.read("facts.json").as_bytes());
    markers.look_at("the report", app.pushback.read("report.json").as_bytes());
    assert!(app.pushback.read_json("facts.json")["changes"]["kept"].to_string().contains("\"kept\""));
    markers.look_at_run("facts", &same_again(&app.pushback, &ran, &[]));
    markers.look_at_run("verify", &app.pushback.run(&["verify", "facts.json", "report.json", "-o", "json"]).expect(0));
    markers.assert_hidden(4);
}

/// Changes a part of the facts and the digest that belongs to it: who has the file can do that.
fn reseal(pushback: &Pushback, change: impl FnOnce(&mut Value)) {
    let mut facts = pushback.read_json("facts.json");
    change(&mut facts);
    let parts = facts.as_object_mut().expect("an object");
    parts.remove("digests");
    let digest =
        |value: &Value| format!("sha256:{}", pushback_objects::hex::encode(&Sha256::digest(value.to_string())));
    let digests: serde_json::Map<String, Value> =
        parts.iter().map(|(key, value)| (key.clone(), digest(value).into())).collect();
    facts["digests"] = digests.into();
    pushback.write("facts.json", serde_json::to_string_pretty(&facts).expect("JSON"));
}

fn judged() -> Pushback {
    let pushback = shop();
    pushback.write("policy.yaml", POLICY.split("preflightRules").next().expect("a head"));
    run(&pushback, &["check"]).expect(0);
    pushback
}

fn facts_that_are_not_as_they_were_written_are_refused_with_the_place() {
    let judged = judged();
    let text = judged.read("facts.json");
    let refused = |text: &str, code: i32| {
        judged.write("facts.json", text);
        judged.run(&["check", "--facts", "facts.json"]).expect(code).complaints()
    };
    let line =
        |key: &str| text.lines().position(|line| line.starts_with(&format!("  \"{key}\""))).map_or(0, |at| at + 1);
    let edited = refused(&text.replacen("\"description\": \"dir:live\"", "\"description\": \"dir:other\"", 1), 11);
    assert!(edited.contains(&format!("facts.json:{}:1: `cluster` was edited", line("cluster"))), "{edited}");
    let edited = refused(&text.replacen("\"shop/a.yaml\"", "\"shop/z.yaml\"", 1), 11);
    assert!(edited.contains("was edited"), "{edited}");
    let cut = refused(&text[..text.len() / 2], 1);
    assert!(cut.contains("facts.json:") && cut.contains("EOF while parsing"), "{cut}");
    assert!(refused("kind: Facts\n", 1).contains("facts.json:1:1: expected value"));
    assert!(refused("{}", 1).contains("facts.json: not a file of --facts-out"));
    judged.write("facts.json", &text);
    reseal(&judged, |facts| facts["tool"]["version"] = "0.0.1".into());
    let other = judged.run(&["check", "--facts", "facts.json"]).expect(11).stderr;
    assert!(other.contains("written by pushback 0.0.1"), "{other}");
    reseal(&judged, |facts| facts["schemaVersion"] = 2.into());
    let newer = judged.run(&["check", "--facts", "facts.json"]).expect(11).stderr;
    assert!(newer.contains("the facts have format 2"), "{newer}");
    judged.run(&["check", "--facts", "absent.json"]).expect(1);
}

/// Facts that nobody has written so: an error with its place, or a verdict, and neither a crash nor a run without end.
fn hostile_facts_come_to_an_end() {
    let judged = judged();
    let text = judged.read("facts.json");
    type Edit = fn(&mut Value);
    let edits: &[(Edit, &[i32])] = &[
        (|it| it["changes"]["changes"][0]["positions"]["nodes"][0]["size"] = 0.into(), &[1]),
        (|it| it["changes"]["changes"][0]["positions"]["nodes"][0]["size"] = u32::MAX.into(), &[1]),
        (|it| it["changes"]["changes"][0]["positions"]["nodes"][1]["size"] = 4_000.into(), &[1]),
        (|it| it["changes"]["changes"][0]["operation"] = "explode".into(), &[1]),
        (|it| it["judgedBy"]["rules"][0]["name"] = "NoSuchRule".into(), &[1]),
        (|it| it["judgedBy"]["rules"][0]["name"] = "\u{1b}[2J".into(), &[1]),
        (|it| it["judgedBy"]["rules"][0]["config"] = json!({"mode": "off"}), &[1]),
        (|it| it["judgedBy"]["today"] = "yesterday".into(), &[0, 10]),
        (|it| it["judgedBy"]["server"]["findings"] = json!([{}]), &[1]),
        (
            |it| {
                it["answers"] =
                    json!([[{"need": "conversionPlans"}, {"answer": "count", "objects": 1, "more": false}]]);
            },
            &[0],
        ),
        (|it| it["changes"]["changes"][0]["desired"] = json!([1, null, "x"]), &[0, 10]),
        (|it| it["changes"]["changes"][0]["live"] = json!({"metadata": 3, "spec": []}), &[0, 10]),
        (|it| it["changes"]["changes"] = json!({}), &[1]),
        (|it| it["report"]["plan"] = json!([{"object": {}}]), &[1]),
        (|it| it["report"]["app"] = "\u{1b}[2J\u{202e}".into(), &[0]),
        (|it| it["more"] = 1.into(), &[1]),
    ];
    for (number, (edit, codes)) in edits.iter().enumerate() {
        judged.write("facts.json", &text);
        reseal(&judged, edit);
        let ran = judged.run(&["check", "--facts", "facts.json"]);
        assert!(codes.contains(&ran.code), "{number}: {} {}", ran.code, ran.stderr);
        assert!(!ran.stderr.contains('\u{1b}') && !ran.stdout.contains('\u{1b}'), "{number}: {ran:?}");
        assert!(ran.code != 1 || ran.stderr.contains("facts.json:"), "{number}: {}", ran.stderr);
    }
    judged.write("facts.json", "[".repeat(1 << 20));
    judged.run(&["check", "--facts", "facts.json"]).expect(1);
}

fn what_is_given_beside_facts_is_refused() {
    let judged = judged();
    for more in [
        ["-f", "shop"].as_slice(),
        &["-a", "shop"],
        &["--preflight=none"],
        &["--patch"],
        &["--waive", "0123456789abcdef0123456789abcdef=x"],
        &["--facts-out", "other.json"],
    ] {
        let ran = judged.run(&[&["check", "--facts", "facts.json"], more].concat()).expect(1);
        assert!(ran.stderr.contains("cannot be given with --facts"), "{}", ran.stderr);
    }
    let json = judged.run(&["check", "--facts", "facts.json", "-o", "json"]).expect(0);
    assert_eq!(json.stdout, judged.read("report.json"));
}

fn planned() -> Pushback {
    let pushback = shop();
    run(&pushback, &["plan", "--out", "shop.plan"]).expect(0);
    pushback
}

fn files_of_one_run_belong_together() {
    let pushback = planned();
    for files in [
        ["shop.plan", "report.json", "facts.json"].as_slice(),
        &["facts.json", "report.json", "shop.plan"],
        &["report.json", "shop.plan"],
        &["report.json"],
        &["shop.plan", "shop.plan"],
    ] {
        let ran = pushback.run(&[&["verify", "--config", "policy.yaml"], files].concat()).expect(0);
        assert!(ran.stdout.ends_with("They belong together.\n"), "{}", ran.stdout);
    }
    let ran = pushback.run(&["verify", "shop.plan", "report.json", "-o", "json"]).expect(0);
    let verified: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    assert_eq!((&verified["fits"], &verified["mismatches"]), (&json!(true), &json!([])));
    assert_eq!(verified["files"][0]["kind"], "plan");
    let plan = pushback.read("shop.plan");
    assert!(plan.contains(&format!("\"digest\":{}", verified["files"][0]["digest"])), "{verified}");
    // The report of the apply is that of the plan.
    let apply = ["apply", "--plan", "shop.plan", "--cluster", "dir:live", "--report", "json=applied.json"];
    pushback.run(&apply).expect(0);
    pushback.run(&["verify", "shop.plan", "applied.json"]).expect(0);
}

fn what_does_not_belong_together_is_named() {
    let one = planned();
    let report = one.read("report.json");
    let refused = |files: &[&str], expected: &str| {
        let ran = one.run(&[&["verify", "--config", "policy.yaml"], files].concat()).expect(11);
        assert!(ran.stderr.contains(expected), "{expected}: {}", ran.stderr);
        assert!(!ran.stdout.contains("belong together"), "{}", ran.stdout);
    };
    let edits = [
        ("\"app\": \"shop\"", "\"app\": \"blog\"", "other.json: is about app blog, and shop.plan is about app shop"),
        ("\"cluster\": \"dir:live\"", "\"cluster\": \"dir:x\"", "is about cluster dir:x"),
        ("\"outcome\": \"warned\"", "\"outcome\": \"passed\"", "other.json: says passed, and shop.plan says warned"),
        ("\"source\": \"policy.yaml\"", "\"source\": \"lax.yaml\"", "has its policy from lax.yaml"),
        ("\"operation\": \"create\"", "\"operation\": \"update\"", "change of ConfigMap default/a: update"),
        ("\"waived\": \"it stays\"", "\"waived\": \"fine\"", "waived: fine, and in shop.plan:"),
        ("\"version\": \"0.1.0\"", "\"version\": \"9.9.9\"", "other.json: written by pushback 9.9.9"),
    ];
    for (old, new, expected) in edits {
        assert!(report.contains(old), "{old}: {report}");
        one.write("other.json", report.replacen(old, new, 1));
        refused(&["shop.plan", "other.json"], expected);
    }
    // Another run: another object.
    let text = one.read("shop.plan");
    one.write("shop/c.yaml", config_map("c", "new"));
    run(&one, &["plan", "--out", "other.plan"]).expect(0);
    refused(&["shop.plan", "facts.json"], "change of ConfigMap default/c: create, and in shop.plan: none");
    refused(&["shop.plan", "other.plan"], "change of ConfigMap default/c");
    one.write("shop.plan", text.replacen("\"create\"", "\"noop\"", 1));
    refused(&["shop.plan", "report.json"], "shop.plan: the plan was edited");
    // The facts say something else than their verdict.
    reseal(&one, |facts| {
        for side in ["desired", "result"] {
            if let Some(object) = facts["changes"]["changes"][1].get_mut(side) {
                object["data"]["key"] = "old".into();
            }
        }
    });
    refused(&["facts.json"], "the verdict on it is another: refused now, warned in the run");
    for file in ["policy.yaml", "absent.json"] {
        one.run(&["verify", file]).expect(1);
    }
    let json = one.run(&["verify", "facts.json", "-o", "json", "--config", "policy.yaml"]).expect(11);
    let verified: Value = serde_json::from_str(&json.stdout).expect("JSON");
    assert_eq!(verified["fits"], false);
}
