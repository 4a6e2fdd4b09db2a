//! What a run looks like from outside: rows that move leave nothing behind on a terminal, and nothing but lines where
//! there is none; programs get one JSON object a line.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::support::terminal::run_at_terminal;
use crate::support::{TestCase, TestCluster, cases};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        Nothing: rows_that_were_asked_for_are_lines_without_a_terminal,
        Nothing: a_dumb_terminal_gets_lines,
        Nothing: every_line_fits_its_width,
        Nothing: every_line_for_programs_is_an_event_and_the_last_is_the_end,
        Nothing: a_finding_shows_its_line_unless_something_in_the_file_is_secret,
        Nothing: an_error_of_a_command_that_only_prints_has_its_exit_code_and_nothing_on_standard_output,
        Controllers: what_moved_while_waiting_is_gone_at_the_end_and_the_cause_is_told,
    ]
}

/// The program, with nothing of this process' environment, and a folder for its files.
fn pushback(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pushback"));
    command.args(arguments).current_dir(folder).env_clear();
    command.env("HOME", folder).env("TERM", "xterm-256color").env("LC_ALL", "C.UTF-8");
    command
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a directory");
    let manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: shop}\ndata: {a: b}\n";
    std::fs::write(folder.path().join("app.yaml"), manifest).expect("a manifest");
    folder
}

const APPLY: [&str; 8] = ["apply", "-a", "shop", "-f", "app.yaml", "--cluster", "dir:live", "--yes"];

fn ran(mut command: Command) -> Output {
    command.output().expect("a program that runs")
}

fn rows_that_were_asked_for_are_lines_without_a_terminal() {
    let folder = folder();
    let output = ran(pushback(folder.path(), &[&APPLY[..], &["--output", "tty"]].concat()));
    let progress = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(0), "{progress}");
    assert!(progress.contains("apply created configmap/shop/settings"), "{progress}");
    assert!(!progress.contains('\u{1b}'), "{progress:?}");
}

fn a_dumb_terminal_gets_lines() {
    let folder = folder();
    let mut command = pushback(folder.path(), &[&APPLY[..], &["--output", "tty"]].concat());
    command.env("TERM", "dumb");
    let shown = run_at_terminal(command, 100);
    assert!(shown.screen.contains("apply created configmap/shop/settings"), "{}", shown.screen);
}

/// Commands on an app with names, kinds and paths that are too long for 80 columns.
fn every_line_fits_its_width() {
    let folder = folder();
    let place = folder.path().join("apps/of-the-platform-team/release-with-a-long-name");
    std::fs::create_dir_all(&place).expect("a folder");
    let names = ["controller", "controller-admission", "admission-create"];
    let object = |kind: &str, name: &str, image: &str| {
        format!(
            "---\napiVersion: v1\nkind: {kind}\nmetadata: {{name: a-name-that-is-long-{name}, namespace: ingress-platform}}\n\
             {image}\n"
        )
    };
    let manifest = |tag: &str| -> String {
        let data = format!(
            "data: {{image: \"registry.example.com/platform/ingress/controller:{tag}@sha256:{}\"}}",
            "0".repeat(64)
        );
        names.map(|name| object("ConfigMap", name, &data) + &object("ServiceAccount", name, "")).concat()
    };
    let file = "apps/of-the-platform-team/release-with-a-long-name/deployment-of-everything.yaml";
    let write = |tag: &str| std::fs::write(folder.path().join(file), manifest(tag)).expect("a manifest");
    let fits = |text: &str, command: &str| {
        for line in text.lines() {
            assert!(line.chars().count() <= 80, "{command}: {line}");
        }
    };
    let app = ["-a", "ingress", "--cluster", "dir:live"];
    write("v1.11.3");
    for (command, more) in [
        ("apply", &["-f", "apps", "--yes"][..]),
        ("inspect", &[]),
        ("history", &[]),
        ("diff", &["-f", "apps"]),
        ("check", &["-f", "apps"]),
        ("delete", &["--yes"]),
    ] {
        let arguments = [&[command][..], &app, more].concat();
        let shown = run_at_terminal(pushback(folder.path(), &arguments), 80);
        assert_eq!(shown.code, 0, "{}", shown.screen);
        fits(&shown.screen, command);
        let mut piped = pushback(folder.path(), &arguments);
        piped.env("COLUMNS", "80");
        fits(&String::from_utf8(ran(piped).stdout).expect("text"), command);
        if command == "history" {
            write("v1.15.1");
        }
        if command == "diff" {
            assert!(shown.screen.contains("v1.11.3@") && shown.screen.contains("v1.15.1@"), "{}", shown.screen);
        }
    }
}

fn every_line_for_programs_is_an_event_and_the_last_is_the_end() {
    let folder = folder();
    let output = ran(pushback(folder.path(), &[&APPLY[..], &["--output", "json"]].concat()));
    let text = String::from_utf8(output.stdout).expect("text");
    let events: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let types: Vec<&str> = events.iter().filter_map(|event| event["type"].as_str()).collect();
    assert_eq!(types.len(), events.len(), "{text}");
    assert_eq!(types.last(), Some(&"run.end"), "{text}");
    let start = types.iter().position(|name| *name == "run.start").expect("a start");
    assert!(types[..start].iter().all(|name| matches!(*name, "retry" | "warning" | "diagnostic")), "{text}");
    let planning = events.iter().filter(|event| event["code"] == "planning").count();
    assert!(planning >= 3, "{text}");
}

fn a_finding_shows_its_line_unless_something_in_the_file_is_secret() {
    let folder = folder();
    let definition = |scope: &str| {
        format!(
            "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: foos.ex.com}}\nspec:\n  \
             group: ex.com\n  scope: {scope} # for whom\n  names: {{kind: Foo, plural: foos}}\n  versions:\n  - name: v1\n    \
             served: true\n    storage: true\n    schema: {{openAPIV3Schema: {{type: object}}}}\n"
        )
    };
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("a file");
    let secret = "---\napiVersion: v1\nkind: Secret\nmetadata: {name: token}\nstringData: {token: hunter2hunter2}\n";
    write("old.yaml", &definition("Namespaced"));
    let config = "---\napiVersion: pushback.dev/v1alpha1\nkind: Config\ndiffMaskRules:\n- path: [data]\n  resourceMatchers:\n  \
                  - apiVersionKindMatcher: {apiVersion: v1, kind: ConfigMap}\n";
    let map = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: map}\ndata: {token: hunter2hunter2}\n";
    for (beside, shown) in [
        (String::new(), true),
        (map.to_owned(), true),
        (secret.to_owned(), false),
        (format!("{map}{config}"), false),
        (
            format!(
                "---\nkind: SecretList\napiVersion: v1\nitems:\n- {}\n",
                secret[4..].trim_end().replace('\n', "\n  ")
            ),
            false,
        ),
    ] {
        write("new.yaml", &(definition("Cluster") + &beside));
        let check = ["check", "-f", "new.yaml", "--cluster", "file:old.yaml"];
        let output = ran(pushback(folder.path(), &check));
        let text = String::from_utf8(output.stdout).expect("text");
        assert_eq!(output.status.code(), Some(10), "{text}{}", String::from_utf8_lossy(&output.stderr));
        assert!(text.contains(" --> new.yaml:6:3\n"), "{text}");
        let line = "6 |   scope: Cluster # for whom\n  |   ^^^^^^^^^^^^^^ \"Namespaced\" → \"Cluster\"\n";
        assert_eq!(text.contains(line), shown, "{beside}\n{text}");
        let findings = text.split("Plan: ").nth(1).expect("findings");
        assert!(!findings.contains("hunter2"), "{text}");
    }
    // Of what cannot be read again there is the place alone.
    let mut piped = pushback(folder.path(), &["check", "-f", "-", "--cluster", "file:old.yaml"]);
    piped.stdin(std::fs::File::open(folder.path().join("new.yaml")).expect("a file"));
    let text = String::from_utf8(ran(piped).stdout).expect("text");
    assert!(text.contains(" --> -:6:3\n") && !text.contains("6 |"), "{text}");
}

fn an_error_of_a_command_that_only_prints_has_its_exit_code_and_nothing_on_standard_output() {
    let folder = folder();
    let cases: [(&[&str], &str); 3] = [
        (&["rules", "CRDUpgradeSafty"], "CRDUpgradeSafety"),
        (&["inspect", "-a", "nobody", "--cluster", "dir:live"], "hint: `pushback list -A` shows all apps"),
        (&["list", "--cluster", "nowhere"], "hint: expected kube, dir:PATH, "),
    ];
    for (arguments, expected) in cases {
        let output = ran(pushback(folder.path(), arguments));
        let message = String::from_utf8(output.stderr).expect("text");
        assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0), "{arguments:?}: {message}");
        assert!(message.starts_with("error: ") && message.contains(expected), "{arguments:?}: {message}");
    }
}

fn what_moved_while_waiting_is_gone_at_the_end_and_the_cause_is_told() {
    let cluster = TestCluster::shared();
    let namespace = cluster.namespace("moving");
    let folder = folder();
    let deployment = format!(
        "apiVersion: apps/v1
kind: Deployment
metadata: {{name: homeless, namespace: {namespace}}}
spec:
  selector: {{matchLabels: {{app: homeless}}}}
  template:
    metadata: {{labels: {{app: homeless}}}}
    spec:
      nodeSelector: {{disk: none}}
      containers: [{{name: web, image: registry.example/web:1}}]
"
    );
    std::fs::write(folder.path().join("app.yaml"), deployment).expect("a manifest");
    let kubeconfig = cluster.kubeconfig_path().display().to_string();
    let arguments = [
        "apply",
        "-a",
        "moving",
        "-n",
        &namespace,
        "-f",
        "app.yaml",
        "--yes",
        "--kubeconfig",
        &kubeconfig,
        "--wait-timeout",
        "4s",
    ];
    let shown = run_at_terminal(pushback(folder.path(), &arguments), 100);
    assert_eq!(shown.code, 22, "{}", shown.screen);
    let end = shown.screen.split_once("error: waiting timed out").expect("an end").1;
    assert!(end.contains("waiting  Deployment") && end.contains("Unschedulable"), "{end}");
    for trace in ["░", "█", "⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"] {
        assert!(!shown.screen.contains(trace), "{trace} is left on the screen:\n{}", shown.screen);
    }
}
