//! kapp's voice: the scripted session that was recorded from kapp, replayed under kapp's name. What differs is listed
//! here, each with its reason.

mod recorded;
mod session;
mod surroundings;
mod waits;

use regex::Regex;

use self::session::Session;
use crate::support::{TestCase, TestCluster, cases};

pub(crate) fn tests() -> Vec<TestCase> {
    let own = cases![
        Nothing: under_kapps_name_errors_are_kapps,
        ApiServer: a_prompt_is_answered_by_what_standard_input_holds,
        ApiServer: secrets_stay_masked_whatever_the_flag_says,
        ApiServer: a_run_that_waits_for_nothing_says_so,
        ApiServer: an_update_that_is_skipped_is_shown_and_not_made,
        ApiServer: columns_can_be_asked_for_that_are_not_shown,
        ApiServer: an_app_that_is_somewhere_else_is_named,
        Controllers: a_session_reads_as_kapp_tells_it,
    ];
    [own, surroundings::tests(), waits::tests()].concat()
}

fn under_kapps_name_errors_are_kapps() {
    let session = Session::alone();
    let ran = session.link(&["deploy", "-f", "in-1.yaml"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (1, "kapp: Error: Expected app name to be non-empty\n"));
    let version = session.link(&["version"]);
    assert!(version.code == 0 && version.stdout.starts_with("kapp version "), "{}", version.stdout);
    let bare = session.link(&[]);
    let expected = "kapp: Error: Invalid command - see available commands/subcommands above\n";
    assert_eq!((bare.code, bare.stderr.as_str()), (1, expected));
    assert!(bare.stdout.contains("Usage: kapp"), "{}", bare.stdout);
    let extra = session.link(&["app-change", "list", "-a", "app", "extra"]);
    assert_eq!(extra.stderr, "kapp: Error: command 'kapp app-change list' does not accept extra arguments 'extra'\n");
    session.write(
        "cycle.yaml",
        "apiVersion: v1
kind: ConfigMap
metadata: {name: one, annotations: {kapp.k14s.io/change-group: a, kapp.k14s.io/change-rule: upsert after upserting b}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: two, annotations: {kapp.k14s.io/change-group: b, kapp.k14s.io/change-rule: upsert after upserting a}}
",
    );
    let cycle =
        session.link(&["deploy", "-a", "cycle", "-f", "cycle.yaml", "-y", "-n", "shop", "--cluster", "dir:empty"]);
    assert_eq!(
        cycle.stderr,
        "kapp: Error: Detected cycle while ordering changes: [configmap/one (v1) namespace: shop] -> \
         [configmap/two (v1) namespace: shop] -> [configmap/one (v1) namespace: shop] (found repeated: configmap/one \
         (v1) namespace: shop)\n"
    );
    session.write("rules.yaml", "apiVersion: kapp.k14s.io/v1alpha1\nkind: Config\npreflightRules: [{name: Nothing}]\n");
    let rules = ["deploy", "-a", "a", "-f", "cycle.yaml", "-f", "rules.yaml", "-y", "--cluster", "dir:empty"];
    let expected =
        "kapp: Error: preflight configuration settings failed: unknown preflight check in configuration: \"Nothing\"\n";
    assert_eq!(session.link(&rules).stderr, expected);
}

fn a_run_that_waits_for_nothing_says_so() {
    let session = Session::on(TestCluster::shared());
    let deploy = ["deploy", "-a", "hasty", "-f", "in-6.yaml", "-y", "--wait=false"];
    let ran = session.answer(&deploy, "");
    assert!(
        ran.stdout.contains("Wait to: 0 reconcile, 0 delete, ") && !ran.stdout.contains(" reconcile "),
        "{}",
        ran.stdout
    );
    assert!(ran.stdout.contains(": ok: noop "), "{}", ran.stdout);
    let gone = session.answer(&["delete", "-a", "hasty", "-y", "--wait=false"], "");
    assert!(gone.code == 0 && gone.stdout.contains("Wait to: 0 reconcile, 0 delete, "), "{}", gone.stdout);
}

fn an_update_that_is_skipped_is_shown_and_not_made() {
    let session = Session::on(TestCluster::shared());
    let deploy = |value: &str| {
        let text = format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: kept\n  annotations: \
             {{kapp.k14s.io/update-strategy: skip}}\ndata: {{key: {value}}}\n"
        );
        session.write("skip.yaml", &text);
        let ran = session
            .answer(&["deploy", "-a", "skipped", "-f", "skip.yaml", "-y", "-c", "--column", "op,op_strategy"], "");
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        ran.stdout
    };
    assert!(deploy("old").contains("Wait to: 1 reconcile, "));
    for _ in 0..2 {
        let told = deploy("new");
        for expected in
            ["-   key: old", "+   key: new", "update  skip", "applying 1 changes [0/1 done]", ": update configmap/kept"]
        {
            assert!(told.contains(expected), "{expected}: {told}");
        }
    }
    // It counts as a change, as what is waited for does.
    let changes = session.answer(&["app-change", "list", "-a", "skipped", "--tty=false"], "").stdout;
    let of_update =
        "update: Op: 0 create, 0 delete, 1 update, 0 noop, 0 exists / Wait to: 1 reconcile, 0 delete, 0 noop";
    assert_eq!(changes.matches(of_update).count(), 2, "{changes}");
    for (flags, code) in [(["--diff-run", "--diff-exit-status"], 3), (["-y", "--apply-exit-status"], 3)] {
        let ran = session.answer(&[&["deploy", "-a", "skipped", "-f", "skip.yaml"], &flags[..]].concat(), "");
        assert_eq!(ran.code, code, "{}", ran.stderr);
    }
    assert!(deploy("old").contains("Op:      0 create, 0 delete, 0 update, "));
}

fn columns_can_be_asked_for_that_are_not_shown() {
    let session = Session::on(TestCluster::shared());
    let plain = |arguments: &[&str]| session.answer(&[arguments, &["--tty=false"]].concat(), "").stdout;
    let deployed = plain(&["deploy", "-a", "columns", "-f", "in-6.yaml", "-y", "--column", "version,op"]);
    assert!(deployed.starts_with("v1\tcreate\t\n"), "{deployed}");
    assert!(plain(&["inspect", "-a", "columns", "--column", "version"]).starts_with("v1\t\n"));
    assert!(plain(&["list", "--column", "label"]).contains("kapp.k14s.io/app="));
    let everything = plain(&["inspect", "-a", "columns"]);
    assert!(!everything.contains("\tv1\t"), "{everything}");
    let renamed = ["deploy", "-a", "others", "--prev-app", "columns", "-f", "in-6.yaml", "-y"];
    assert_eq!(plain(&renamed), "", "the plan is made twice and told once");
}

fn an_app_that_is_somewhere_else_is_named() {
    let session = Session::on(TestCluster::shared());
    let name = format!("here-{}", session.namespace());
    assert_eq!(session.answer(&["deploy", "-a", &name, "-f", "in-6.yaml", "-y"], "").code, 0);
    let found = format!(" (hint: found app '{name}' in other namespaces: {})", session.namespace());
    let deleted = session.answer(&["delete", "-a", &name, "-n", "default", "-y"], "");
    assert!(deleted.code == 0 && deleted.stdout.contains(&found), "{}", deleted.stdout);
    let inspected = session.answer(&["inspect", "-a", &name, "-n", "default"], "");
    assert!(inspected.code == 1 && inspected.stderr.contains(&found), "{}", inspected.stderr);
}

fn a_prompt_is_answered_by_what_standard_input_holds() {
    let session = Session::on(TestCluster::shared());
    let deploy = ["deploy", "-a", "asked", "-f", "in-6.yaml"];
    let declined = session.answer(&deploy, "n\n");
    assert_eq!((declined.code, declined.stderr.as_str()), (1, "kapp: Error: Stopped\n"));
    assert!(declined.stdout.ends_with("\nContinue? [yN]: n\n\n"), "{}", declined.stdout);
    let unanswered = session.answer(&deploy, "");
    assert_eq!(unanswered.stderr, "kapp: Error: Asking for confirmation:\n  EOF\n");
    let agreed = session.answer(&deploy, "y\n");
    assert!(agreed.code == 0 && agreed.stdout.ends_with("\nSucceeded\n"), "{}{}", agreed.stdout, agreed.stderr);
}

fn secrets_stay_masked_whatever_the_flag_says() {
    let session = Session::on(TestCluster::shared());
    let deploy = |value: &str, flag: &str| {
        let secret =
            format!("apiVersion: v1\nkind: Secret\nmetadata: {{name: login}}\nstringData: {{password: {value}}}\n");
        session.write("secret.yaml", &secret);
        let ran = session.answer(&["deploy", "-a", "masked", "-f", "secret.yaml", "-c", "-y", flag], "");
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let told = format!("{}{}", ran.stdout, ran.stderr);
        assert!(told.contains("value not shown"), "{told}");
        for secret in [value, &base64(value)] {
            assert!(!told.contains(secret), "{told}");
        }
        told
    };
    deploy("marker-one", "--diff-mask=true");
    let told = deploy("marker-two", "--diff-mask=false");
    assert!(told.contains("without effect here: --diff-mask=false"), "{told}");
}

fn base64(text: &str) -> String {
    base64::Engine::encode(&base64::engine::general_purpose::STANDARD, text)
}

fn a_session_reads_as_kapp_tells_it() {
    let known: Vec<Regex> =
        recorded::DIFFERENCES.iter().map(|(line, _)| Regex::new(line).expect("a pattern")).collect();
    let mut unknown = Vec::new();
    for form in ["tty", "plain", "json"] {
        let session = Session::on(TestCluster::shared());
        for step in recorded::steps(form) {
            let differences = session.replay(&step).into_iter();
            let differences = differences.filter(|line| !known.iter().any(|known| known.is_match(line)));
            unknown.extend(differences.map(|line| format!("{form} {}: {line}", step.name)));
        }
    }
    assert!(unknown.is_empty(), "{unknown:#?}");
}
