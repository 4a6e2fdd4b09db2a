//! The command line as its users meet it: help, suggestions, streams, and events that always end.

use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

use crate::support::pushback::example;
use crate::support::terminal::run_at_terminal;
use crate::support::{Pushback, TestCase, cases};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        Nothing: help_names_every_command_and_groups_the_flags,
        Nothing: help_is_a_command_too,
        Nothing: the_short_flag_for_output_is_a_format_everywhere,
        Nothing: commands_that_need_no_cluster_offer_none,
        Nothing: tables_keep_to_the_terminal,
        Nothing: the_changed_fields_of_a_plan_are_in_its_reports,
        Nothing: rules_are_listed_and_explained_and_slips_are_answered,
        Nothing: the_question_is_answered_by_what_is_piped,
        Nothing: a_reader_that_goes_away_does_not_end_a_run,
        Nothing: the_json_of_a_check_is_its_report,
        Nothing: every_report_tells_of_a_finding_where_it_stands,
        Nothing: a_diff_runs_the_rules_where_they_are_asked_for,
        Nothing: a_run_without_rules_is_no_pass,
        Nothing: what_is_left_empty_or_misspelt_is_answered,
        Nothing: values_on_both_sides_of_an_arrow_can_be_told_apart,
        Nothing: a_definition_without_its_group_is_told_as_such,
        Nothing: data_that_cannot_be_written_fails_the_run,
        Nothing: events_begin_with_the_start_and_end_with_the_end,
        Nothing: url_and_proxy_that_cannot_be_used_are_refused_without_their_password,
        Nothing: manifests_are_fetched_through_a_socks_proxy,
        Nothing: namespace_that_leaves_its_path_is_refused_wherever_it_is_given,
    ]
}

const COMMANDS: [&str; 10] =
    ["apply", "delete", "diff", "check", "inspect", "list", "rules", "version", "completion", "help"];

fn help(arguments: &[&str]) -> String {
    Pushback::new().run(arguments).expect(0).stdout
}

fn help_names_every_command_and_groups_the_flags() {
    let whole = help(&["--help"]);
    for command in COMMANDS {
        assert!(whole.contains(&format!("\n  {command} ")), "{command}: {whole}");
    }
    let apply = help(&["apply", "--help"]);
    let groups: Vec<&str> = apply.lines().filter(|line| line.ends_with(':') && !line.starts_with(' ')).collect();
    let expected = [
        "Options:",
        "App:",
        "Input:",
        "Rendering:",
        "Plan:",
        "Filters:",
        "Diff:",
        "Preflight:",
        "Apply and wait:",
        "Global options:",
        "Examples:",
    ];
    assert_eq!(groups, expected);
    // What is seldom needed is on the long page only.
    let short = help(&["apply", "-h"]);
    assert!(!short.contains("--dangerous-") && apply.contains("--dangerous-"));
    for flag in ["--app", "--file", "--namespace", "--preflight", "--wait-timeout", "--cluster", "--yes"] {
        assert!(short.contains(flag), "{flag}: {short}");
    }
    // No subcommand: the same page, as an error.
    let none = Pushback::new().run(&[]).expect(1);
    assert!(none.stderr.contains("Usage: pushback [OPTIONS] <COMMAND>") && none.stdout.is_empty());
}

fn help_is_a_command_too() {
    for words in [&[][..], &["apply"], &["upgrade", "diff"], &["ls"], &["simulate-upgrade"]] {
        assert_eq!(help(&[&["help"], words].concat()), help(&[words, &["--help"]].concat()), "{words:?}");
    }
    let slip = Pushback::new().run(&["help", "aply"]).expect(1);
    assert!(
        slip.stderr.contains("unrecognized subcommand 'aply'") && slip.stderr.contains("'apply'"),
        "{}",
        slip.stderr
    );
}

/// Every `-o` of every command, also of those whose `--output` is a path.
fn the_short_flag_for_output_is_a_format_everywhere() {
    fn check(command: &clap::Command, words: &str, count: &mut usize) {
        for argument in command.get_arguments().filter(|argument| argument.get_short() == Some('o')) {
            *count += 1;
            let values: Vec<String> =
                argument.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect();
            assert!(values.contains(&"json".to_owned()), "{words}: -o is {argument}, one of {values:?}");
        }
        for subcommand in command.get_subcommands() {
            check(subcommand, &format!("{words} {}", subcommand.get_name()), count);
        }
    }
    let mut command = pushback::cli::command();
    command.build();
    let mut count = 0;
    check(&command, "pushback", &mut count);
    assert!(count > 25, "{count}");

    let pushback = Pushback::new();
    let path = ["upgrade", "diff", "--from", "a", "--to", "b", "-o", "diff.json"];
    let ran = pushback.run(&path).expect(1);
    assert!(ran.stderr.contains("hint: -o is a format in every command; the path to write to is named by --output"));
    assert_eq!(ran.stdout, "", "a command on releases sends no events");
    pushback.write("a/map.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n");
    let json = pushback.run(&["upgrade", "diff", "--from", "a", "--to", "a", "-o", "json"]).expect(0).stdout;
    assert!(json.starts_with('{'), "{json}");
}

fn commands_that_need_no_cluster_offer_none() {
    for command in ["completion", "help", "man", "rules", "version"] {
        let page = help(&[command, "--help"]);
        for flag in ["--cluster", "--kubeconfig", "--as", "--request-timeout", "--yes"] {
            assert!(!page.contains(&format!("{flag} ")) && !page.contains(&format!("{flag}\n")), "{command}: {page}");
        }
    }
    // A script may put the same flags before every command.
    Pushback::new().run(&["--cluster", "dir:live", "version"]).expect(0);
    Pushback::new().run(&["version", "--cluster", "dir:live", "-o", "json"]).expect(0);
}

fn tables_keep_to_the_terminal() {
    let pushback = Pushback::new();
    let workload = |name: &str, image: &str| {
        format!(
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: {name}, namespace: a-rather-long-namespace}}\nspec:\n  \
             selector: {{matchLabels: {{app: {name}}}}}\n  template:\n    metadata: {{labels: {{app: {name}}}}}\n    spec:\n      \
             containers: [{{name: manager, image: \"registry.example/a/long/path/of/{image}\", args: [--{image}]}}]\n"
        )
    };
    pushback.write("old.yaml", workload("controller-manager", "manager:1"));
    pushback.write("new.yaml", workload("controller-manager", "manager:2"));
    for arguments in
        [&["rules"][..], &["rules", "CRDUpgradeSafety"], &["upgrade", "diff", "--from", "old.yaml", "--to", "new.yaml"]]
    {
        for columns in [60, 80] {
            let shown = run_at_terminal(pushback.command(arguments), columns);
            let wide: Vec<&str> =
                shown.screen.lines().filter(|line| line.chars().count() > usize::from(columns)).collect();
            assert!(wide.is_empty() && shown.screen.lines().count() > 5, "{arguments:?} at {columns}: {wide:?}");
        }
    }
    let piped = pushback.run(&["upgrade", "diff", "--from", "old.yaml", "--to", "new.yaml"]).expect(0).stdout;
    assert!(piped.lines().any(|line| line.chars().count() > 80), "a line a row where nobody looks: {piped}");
}

fn the_changed_fields_of_a_plan_are_in_its_reports() {
    let pushback = Pushback::new();
    let input = |replicas: u32, password: &str| {
        format!(
            "apiVersion: v1\nkind: Secret\nmetadata: {{name: login}}\nstringData: {{password: {password}}}\n---\n\
             apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: settings}}\ndata: {{replicas: \"{replicas}\"}}\n"
        )
    };
    pushback.write("in.yaml", input(3, "first-pa55"));
    pushback.run(&["apply", "-a", "x", "-f", "in.yaml", "--cluster", "dir:live", "--yes"]).expect(0);
    pushback.write("in.yaml", input(4, "second-pa55"));
    let reports = ["--report", "json=report.json", "--report", "markdown=report.md"];
    pushback.run(&[&["check", "-a", "x", "-f", "in.yaml", "--cluster", "dir:live"][..], &reports].concat()).expect(0);
    let plan = &pushback.read_json("report.json")["plan"];
    let of = |kind: &str| {
        let lines = plan.as_array().expect("changes");
        lines.iter().find(|line| line["object"]["kind"] == kind).expect("a change").clone()
    };
    let field = &of("ConfigMap")["fields"][0];
    assert_eq!(
        (&field["path"], &field["old"], &field["new"]),
        (&"data.replicas".into(), &"\"3\"".into(), &"\"4\"".into())
    );
    assert_eq!(of("Secret")["fields"][0]["path"], "data.password");
    let markdown = pushback.read("report.md");
    assert!(markdown.contains("`data.replicas`: `\"3\"` → `\"4\"`"), "{markdown}");
    for text in [&markdown, &pushback.read("report.json")] {
        assert!(!text.contains("pa55"), "{text}");
    }
}

fn rules_are_listed_and_explained_and_slips_are_answered() {
    let pushback = Pushback::new();
    let list = pushback.run(&["rules"]).expect(0).stdout;
    assert!(list.starts_with("NAME "), "{list}");
    for rule in ["CRDUpgradeSafety", "StoredVersions", "PermissionValidation"] {
        assert!(list.contains(rule));
        let page = pushback.run(&["rules", rule]).expect(0).stdout;
        assert!(page.contains(rule) && page.contains("failMode"), "{page}");
    }
    let json = pushback.run(&["rules", "-o", "json"]).expect(0).stdout;
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["rules"][0]["name"], "CRDUpgradeSafety");
    let slip = pushback.run(&["rules", "crdupgradesafety"]).expect(1);
    assert_eq!(slip.stderr, "error: unknown preflight rule \"crdupgradesafety\"; did you mean \"CRDUpgradeSafety\"?\n");
    let slip = pushback.run(&["rules", "\u{1b}[2J"]).expect(1);
    assert!(slip.stderr.starts_with("error: unknown preflight rule \"\\u{1b}[2J\""), "{:?}", slip.stderr);
}

fn the_question_is_answered_by_what_is_piped() {
    let apply = ["apply", "-a", "shop", "-n", "shop", "--cluster", "dir:live", "-f", "app.yaml"];
    let answered = |answer: &str, code: i32| {
        let pushback = Pushback::new();
        pushback.write("app.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {key: x}\n");
        let ran = pushback.run_with_input(&apply, answer.as_bytes()).expect(code);
        (ran.stderr.clone(), pushback.directory().join("live").exists())
    };
    let (told, written) = answered("y\n", 0);
    assert!(told.contains("[y/N]") && written, "{told}");
    for (answer, why) in [("n\n", "not confirmed"), ("\n", "not confirmed"), ("", "there is nobody to ask")] {
        let (told, written) = answered(answer, 1);
        assert!(told.contains(why) && !written, "{answer:?}: {told}");
    }
}

fn a_reader_that_goes_away_does_not_end_a_run() {
    for format in ["json", "plain"] {
        let pushback = Pushback::new();
        let input = example("web-app");
        let arguments = ["apply", "-a", "shop", "-f", &input, "--cluster", "dir:live", "--yes", "--output", format];
        let mut command = pushback.command(&arguments);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the binary");
        let mut first = String::new();
        // One line, then the pipe is closed, as `head -1` does.
        BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut first).expect("a line");
        assert!(!first.is_empty());
        let mut stderr = String::new();
        child.stderr.take().expect("a pipe").read_to_string(&mut stderr).expect("text");
        assert_eq!(child.wait().expect("an end").code(), Some(0), "{format}: {stderr}");
        assert!(!stderr.contains("panicked"), "{format}: {stderr}");
        assert_eq!(pushback.tree("live").keys().filter(|file| !file.starts_with(".pushback/")).count(), 5, "{format}");
        // The record was closed too: the next run has nothing to do.
        pushback.run(&[&arguments[..], &["--apply-exit-status"]].concat()).expect(2);
    }
}

fn the_json_of_a_check_is_its_report() {
    let pushback = Pushback::new();
    pushback.write("live/.keep", "");
    let input = example("web-app");
    let check = ["check", "-a", "shop", "-f", &input, "--cluster", "dir:live", "--output", "json"];
    let ran = pushback.run(&[&check[..], &["--report", "json=report.json"]].concat()).expect(0);
    assert_eq!(ran.stdout, pushback.read("report.json"));
    let report = pushback.read_json("report.json");
    assert_eq!(
        (&report["app"], &report["outcome"], &report["changes"]["create"]),
        (&"shop".into(), &"passed".into(), &5.into())
    );
}

/// A change that a rule refuses.
fn refused_change() -> Pushback {
    let pushback = Pushback::new();
    let crd = |scope: &str| {
        format!(
            "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: foos.ex.com}}\n\
             spec:\n  group: ex.com\n  scope: {scope}\n  names: {{kind: Foo, plural: foos}}\n  versions:\n  - name: v1\n    \
             served: true\n    storage: true\n    schema: {{openAPIV3Schema: {{type: object}}}}\n"
        )
    };
    pushback.write("in.yaml", crd("Namespaced"));
    pushback.run(&["apply", "-a", "foo", "-f", "in.yaml", "--cluster", "dir:live", "--yes"]).expect(0);
    pushback.write("in.yaml", crd("Cluster"));
    pushback
}

fn every_report_tells_of_a_finding_where_it_stands() {
    let pushback = refused_change();
    let formats = ["json", "junit", "sarif", "markdown", "github", "html"];
    let flags: Vec<String> = formats.iter().map(|format| format!("--report={format}=report.{format}")).collect();
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let common = ["-a", "foo", "-f", "in.yaml", "--cluster", "dir:live"];
    for command in ["check", "apply"] {
        pushback.run(&[&[command][..], &common, &["--yes"], &flags].concat()).expect(10);
        let sarif = pushback.read_json("report.sarif");
        let result = &sarif["runs"][0]["results"][0];
        assert_eq!((&result["ruleId"], &result["level"]), (&"CRDUpgradeSafety/scope".into(), &"error".into()));
        let place = &result["locations"][0]["physicalLocation"];
        assert_eq!((&place["artifactLocation"]["uri"], &place["region"]["startLine"]), (&"in.yaml".into(), &6.into()));
        let junit = pushback.read("report.junit");
        assert!(junit.contains("failures=\"1\"") && junit.contains("file=\"in.yaml\" line=\"6\""), "{junit}");
        let github = pushback.read("report.github");
        assert!(github.starts_with("::error file=in.yaml,line=6,col=3,title=CRDUpgradeSafety/scope::"), "{github}");
        let markdown = pushback.read("report.markdown");
        assert!(markdown.starts_with("## pushback: refused\n"), "{markdown}");
        for format in formats {
            std::fs::remove_file(pushback.directory().join(format!("report.{format}"))).expect("a report");
        }
    }
    // A diff runs no rule, and its reports say so.
    pushback.run(&[&["diff"][..], &common, &flags].concat()).expect(0);
    assert_eq!(pushback.read_json("report.json")["changes"]["update"], 1);
    assert!(pushback.read("report.markdown").starts_with("## pushback: no rule ran\n"));
    assert_eq!(pushback.read("report.github"), "");
}

fn a_diff_runs_the_rules_where_they_are_asked_for() {
    let pushback = refused_change();
    let common = ["-a", "foo", "-f", "in.yaml", "--cluster", "dir:live", "--yes", "--report", "json=report.json"];
    let live = pushback.tree("live");
    for command in [&["diff"][..], &["apply", "--diff-run"]] {
        pushback.run(&[command, &common].concat()).expect(0);
        pushback.run(&[command, &common, &["--preflight=none", "--diff-exit-status"]].concat()).expect(3);
        for preflight in
            [&["--preflight"][..], &["--preflight=CRDUpgradeSafety"], &["--preflight", "--diff-exit-status"]]
        {
            let ran = pushback.run(&[command, &common, preflight].concat()).expect(10);
            assert!(ran.stdout.contains("error[CRDUpgradeSafety/scope]"), "{command:?} {preflight:?}: {}", ran.stdout);
            assert!(ran.stderr.contains("Refused: nothing was written."), "{}", ran.stderr);
            assert_eq!(pushback.read_json("report.json")["rules"][0]["outcome"], "failed");
        }
    }
    assert_eq!(pushback.tree("live"), live);
}

fn a_run_without_rules_is_no_pass() {
    let pushback = refused_change();
    pushback.write("none.yaml", "apiVersion: pushback.dev/v1alpha1\nkind: Config\npreflightRules: []\n");
    let common = ["check", "-a", "foo", "-f", "in.yaml", "--cluster", "dir:live", "--report", "markdown=report.md"];
    for off in [&["--preflight=none"][..], &["--config", "none.yaml"]] {
        let ran = pushback.run(&[&common[..], off].concat()).expect(0);
        assert!(ran.stdout.contains("\nPreflight  no rule ran\n"), "{}", ran.stdout);
        for text in [&ran.stdout, &ran.stderr, &pushback.read("report.md")] {
            assert!(!text.contains("passed"), "{text}");
        }
    }
}

fn what_is_left_empty_or_misspelt_is_answered() {
    let pushback = refused_change();
    let check = ["check", "-a", "foo", "-f", "in.yaml", "--cluster", "dir:live"];
    let config =
        "apiVersion: pushback.dev/v1alpha1\nkind: Config\npreflightRules:\n- name: CRDUpgradeSafety\n  config:\n";
    pushback.write("config.yaml", config);
    let ran = pushback.run(&[&check[..], &["--config", "config.yaml"]].concat()).expect(10);
    assert!(ran.stdout.contains("Preflight  CRDUpgradeSafety failed (1 breaking)"), "{}", ran.stdout);
    pushback.write("config.yaml", format!("{config}    checks:\n"));
    pushback.run(&[&check[..], &["--config", "config.yaml"]].concat()).expect(10);
    let misspelt = |name: &str| {
        let preflight = format!("--preflight={name}");
        pushback.run(&[&check[..], &[&preflight]].concat()).expect(1).complaints().lines().next().map(str::to_owned)
    };
    let known = "known are CRDUpgradeSafety, StoredVersions, PermissionValidation, References, PodAdmission, RemovedAPIs, FieldConflicts, DestructiveChange, UpgradeDiff, ExistingObjects, ConversionRoundTrip, ImagesExist";
    for (name, answer) in
        [("Nope", known), ("CRDUpgrade", "did you mean \"CRDUpgradeSafety\"?"), ("None", "did you mean \"none\"?")]
    {
        assert_eq!(misspelt(name), Some(format!("error: --preflight: unknown preflight rule \"{name}\"; {answer}")),);
    }
    // The example of all settings gives no reason for a warning of its own.
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/config.example.yaml");
    let ran = pushback.run(&[&check[..], &["--config", example]].concat());
    assert!(!ran.stderr.contains("warning"), "{}", ran.stderr);
}

fn values_on_both_sides_of_an_arrow_can_be_told_apart() {
    let pushback = Pushback::new();
    let map = |value: &str| format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a}}\ndata: {{a: {value:?}}}\n");
    pushback.write("old.yaml", map("x → y")).write("new.yaml", map("x -> z"));
    let ran = pushback.run(&["diff", "-f", "new.yaml", "--cluster", "file:old.yaml"]).expect(0);
    assert!(ran.stdout.contains(" data.a  \"x → y\" -> \"x -> z\"\n"), "{}", ran.stdout);
}

fn a_definition_without_its_group_is_told_as_such() {
    let pushback = Pushback::new();
    let definition =
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: foos.ex.com}\n";
    pushback.write("crd.yaml", definition);
    let ran = pushback.run(&["check", "-f", "crd.yaml", "--cluster", "dir:live", "--new-base"]).expect(10);
    assert!(ran.stdout.contains("error[CRDUpgradeSafety/invalid]"), "{}", ran.stdout);
    assert!(ran.stdout.contains("spec.group"), "{}", ran.stdout);
    pushback.run(&["diff", "-f", "crd.yaml", "--cluster", "file:crd.yaml"]).expect(0);
}

/// A device that is always full stands for the disk.
fn data_that_cannot_be_written_fails_the_run() {
    let pushback = Pushback::new();
    pushback.write("live/.keep", "");
    for arguments in [
        &["rules"][..],
        &["list", "--cluster", "dir:live"],
        &["diff", "-a", "a", "-f", "in.yaml", "--cluster", "dir:live", "--diff-exit-status"],
    ] {
        pushback.write("in.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: data}\n");
        let line = format!("exec \"$0\" {} > /dev/full", arguments.join(" "));
        let ran = pushback.run_in_shell(&line).expect(20);
        assert_eq!(
            ran.complaints().lines().last(),
            Some("error: standard output could not be written: no space left on device")
        );
    }
}

fn events_begin_with_the_start_and_end_with_the_end() {
    let pushback = Pushback::new();
    pushback.write("live/.keep", "");
    let input = example("web-app");
    let common = ["-a", "shop", "--cluster", "dir:live", "--output", "json"];
    let with_input = [&common[..], &["-f", &input]].concat();
    let runs: [(&[&str], &[&str], i32); 5] = [
        (&["diff"], &with_input, 0),
        (&["apply"], &with_input, 1),
        (&["apply", "--yes"], &with_input, 0),
        (&["delete", "--yes"], &common, 0),
        (&["delete", "--yes"], &common, 0),
    ];
    for (command, rest, code) in runs {
        let ran = pushback.run(&[command, rest].concat()).expect(code);
        let events = ran.events();
        // Before the cluster is known it can only be said that it is being looked for.
        let started = events.iter().position(|event| event["type"] != "diagnostic").expect("a start");
        assert_eq!((&events[started]["type"], &events[started]["command"]), (&"run.start".into(), &command[0].into()));
        let ends: Vec<usize> = (0..events.len()).filter(|index| events[*index]["type"] == "run.end").collect();
        assert_eq!(ends, [events.len() - 1], "{command:?}");
        assert_eq!(events[ends[0]]["exitCode"], code);
        let sequence: Vec<u64> = events.iter().filter_map(|event| event["seq"].as_u64()).collect();
        assert_eq!(sequence, (1..=events.len() as u64).collect::<Vec<_>>());
    }
}

fn url_and_proxy_that_cannot_be_used_are_refused_without_their_password() {
    let url = "https://manifests.invalid/app.yaml";
    for (proxy, url, expected) in [
        ("ftp://me:hunter2@proxy.invalid:1", url, "HTTPS_PROXY has the scheme \"ftp\""),
        ("http://me:hunter2@[::1", url, "HTTPS_PROXY is not an address of a proxy"),
        ("", "https:/me:hunter2@manifests.invalid/app.yaml", "expected https://HOST/PATH"),
    ] {
        let pushback = Pushback::new().with("HTTPS_PROXY", proxy);
        let ran = pushback.run(&["diff", "-a", "shop", "-f", url, "--cluster", "dir:live"]).expect(1);
        assert!(ran.stderr.contains(expected), "{ran:?}");
        assert!(!ran.stderr.contains("hunter2"), "{ran:?}");
    }
}

/// The manifests are asked of this proxy: a run that ignored it would not reach anybody.
fn manifests_are_fetched_through_a_socks_proxy() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let proxy = format!("socks5://{}", listener.local_addr().expect("an address"));
    let (sender, greeted) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut greeting = [0; 1];
        let (mut client, _) = listener.accept().expect("a client");
        client.read_exact(&mut greeting).expect("a greeting");
        sender.send(greeting)
    });
    let pushback = Pushback::new().with("HTTPS_PROXY", proxy);
    pushback.run(&["diff", "-a", "shop", "-f", "https://192.0.2.1/app.yaml", "--cluster", "dir:live"]).expect(1);
    assert_eq!(greeted.recv_timeout(std::time::Duration::from_secs(30)), Ok([5]));
}

fn namespace_that_leaves_its_path_is_refused_wherever_it_is_given() {
    let pushback = Pushback::new();
    pushback.write("app.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n");
    for option in [["-n", "../x"], ["--into-ns", "../x"], ["--map-ns", "a=../x"], ["--allow-ns", "../x"]] {
        let arguments = ["diff", "-a", "shop", "-f", "app.yaml", "--cluster", "dir:live", option[0], option[1]];
        let ran = pushback.run(&arguments).expect(1);
        assert!(ran.stderr.contains("expected lower-case letters, digits and -"), "{ran:?}");
    }
}
