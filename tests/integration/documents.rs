//! Standard output holds one document of the format that was asked for, or events, and nothing beside it: each command
//! with each format, on `-`.

use crate::support::pushback::{Pushback, Ran, example};
use crate::support::{TestCase, TestCluster, cases};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        Nothing: a_report_on_standard_output_is_alone_there_and_people_read_on_standard_error,
        Nothing: two_documents_never_share_standard_output,
        Nothing: json_is_one_value_events_or_refused,
        Nothing: a_comparison_prints_what_it_would_write_to_a_file,
        ApiServer: a_run_of_experiments_prints_its_report_alone,
    ]
}

const KNOWLEDGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/knowledge");

const FORMATS: [&str; 6] = ["json", "junit", "sarif", "markdown", "github", "html"];

/// A folder with the app `backup`, whose next release is refused.
fn deployed() -> Pushback {
    let pushback = Pushback::new();
    let app = ["-a", "backup", "-f", &example("operator"), "--cluster", "dir:live", "--yes"];
    pushback.run(&[&["apply"][..], &app].concat()).expect(0);
    pushback
}

fn a_report_on_standard_output_is_alone_there_and_people_read_on_standard_error() {
    let pushback = deployed();
    let (bad, good) = (example("operator-upgrade-bad"), example("operator"));
    let app = ["-a", "backup", "--cluster", "dir:live", "--yes"];
    let commands: [(&[&str], i32, &str); 7] = [
        (&["check", "-f", &bad], 10, "error[CRDUpgradeSafety/"),
        (&["check", "-f", &good], 0, "Preflight  "),
        (&["diff", "-f", &bad], 0, "~ update"),
        (&["diff", "-f", &bad, "-c"], 0, "~ update"),
        (&["apply", "-f", &bad], 10, "error[CRDUpgradeSafety/"),
        (&["apply", "-f", &good], 0, "Preflight  "),
        (&["delete", "--preflight=none"], 0, "- delete"),
    ];
    for (command, code, for_people) in commands {
        for (format, name) in FORMATS.map(|format| (format, "-")).into_iter().chain([("json", "/dev/stdout")]) {
            // What is deleted is there again for the next format.
            pushback.run(&[&["apply", "-f", &good, "--preflight=none"][..], &app].concat()).expect(0);
            let reports = [format!("--report={format}={name}"), format!("--report={format}=beside")];
            let arguments = [command, &app[..], &reports.each_ref().map(String::as_str)].concat();
            let command = command.iter().filter(|argument| !matches!(**argument, "--yes"));
            let shown = command.copied().collect::<Vec<_>>().join(" ");
            let ran = pushback.run(&arguments).expect(code);
            assert_eq!(ran.stdout, pushback.read("beside"), "{shown} --report {format}={name}");
            assert!(ran.stderr.contains(for_people), "{shown} --report {format}={name}: {}", ran.stderr);
        }
    }
}

fn two_documents_never_share_standard_output() {
    let pushback = deployed();
    let good = example("operator");
    let app = ["-a", "backup", "-f", &good, "--cluster", "dir:live", "--yes"];
    for command in ["check", "diff", "apply"] {
        for format in FORMATS {
            for other in
                [&["--output", "json"][..], &["--report", "json=/dev/stdout"], &["--report", "sarif=/dev/fd/1"]]
            {
                let report = format!("--report={format}=-");
                let ran = pushback.run(&[&[command][..], &app, &[&report], other].concat()).expect(1);
                let is_event = |line: &str| line.starts_with('{') && other[1] == "json" && command != "check";
                assert!(ran.stdout.lines().all(is_event), "{command} {report} {other:?}: {}", ran.stdout);
            }
        }
    }
}

fn json_is_one_value_events_or_refused() {
    let pushback = deployed();
    let (bad, good) = (example("operator-upgrade-bad"), example("operator"));
    pushback.write("experiment.yaml", "kind: Nothing\n");
    let run = |arguments: &[&str], code: i32| {
        pushback.run(&[arguments, &["--output", "json", "--cluster", "dir:live", "--yes"]].concat()).expect(code)
    };
    let values: [(&[&str], i32); 7] = [
        (&["check", "-a", "backup", "-f", &bad], 10),
        (&["check", "-a", "backup", "-f", &good], 0),
        (&["list"], 0),
        (&["inspect", "-a", "backup"], 0),
        (&["rules"], 0),
        (&["rules", "CRDUpgradeSafety"], 0),
        (&["version"], 0),
    ];
    for (arguments, code) in values {
        let value = run(arguments, code).json();
        assert_eq!(value["schemaVersion"], 1, "{arguments:?}: {value}");
    }
    let events: [(&[&str], i32); 4] = [
        (&["diff", "-a", "backup", "-f", &bad], 0),
        (&["apply", "-a", "backup", "-f", &bad], 10),
        (&["apply", "-a", "backup", "-f", &good], 0),
        (&["delete", "-a", "backup", "--preflight=none"], 0),
    ];
    for (arguments, code) in events {
        assert_eq!(run(arguments, code).end()["exitCode"], code, "{arguments:?}");
    }
    let textual: [&[&str]; 3] =
        [&["completion", "bash"], &["upgrade", "validate", "experiment.yaml"], &["upgrade", "recover"]];
    for arguments in textual {
        let ran = run(arguments, 1);
        assert_eq!(ran.stdout, "", "{arguments:?}");
        assert_eq!(ran.stderr, "error: this command has no JSON output\n", "{arguments:?}");
    }
}

fn a_comparison_prints_what_it_would_write_to_a_file() {
    let pushback = Pushback::new();
    let (old, new) = (example("operator"), example("operator-upgrade-bad"));
    let models = &format!("{KNOWLEDGE}/odh-v2.10");
    let sides = ["--from", &old, "--to", &new];
    let commands: [(&[&str], i32); 3] = [
        (&[&["upgrade", "diff"][..], &sides].concat(), 10),
        (&[&["upgrade", "diff-crds"][..], &sides].concat(), 10),
        (&["upgrade", "validate-version", models], 1),
    ];
    for (command, code) in commands {
        for format in ["table", "json", "yaml", "markdown"] {
            let format = ["--format", format];
            let file = pushback.run(&[command, &format, &["--output", "file"]].concat()).expect(code);
            assert_eq!(file.stdout, "", "{command:?} {format:?}");
            for place in [&[][..], &["--output", "-"], &["--output", "/dev/stdout"]] {
                let printed = pushback.run(&[command, &format, place].concat()).expect(code);
                assert_eq!(printed.stdout, pushback.read("file"), "{command:?} {format:?} {place:?}");
            }
        }
    }
}

fn a_run_of_experiments_prints_its_report_alone() {
    let cluster = TestCluster::shared();
    let namespace = cluster.namespace("documents");
    let pushback = Pushback::on(cluster);
    let suite = ["odh-v2.10", "rhoai-v3.3"].map(|release| format!("{KNOWLEDGE}/{release}"));
    let sides = ["--from", &suite[0], "--to", &suite[1], "--allow-namespace", &namespace, "--dry-run"];
    pushback.run(&["upgrade", "simulate", "--from", &suite[0], "--to", &suite[1], "--output", "suite"]).expect(0);
    let commands: [Vec<&str>; 2] = [
        ["upgrade", "run", "suite", "--allow-namespace", &namespace, "--dry-run"].to_vec(),
        [&["upgrade", "simulate", "--execute"][..], &sides].concat(),
    ];
    // Each run has an id of its own.
    let without_run = |text: &str| -> String { text.lines().filter(|line| !line.contains("\"run\"")).collect() };
    for command in &commands {
        let run = |more: &[&str]| -> Ran { pushback.run(&[&command[..], more].concat()) };
        for format in ["json", "junit"] {
            run(&["--report", &format!("{format}=file")]).expect(0);
            let printed = run(&["--report", &format!("{format}=-")]).expect(0);
            assert_eq!(without_run(&printed.stdout), without_run(&pushback.read("file")), "{command:?} {format}");
            assert!(printed.stderr.contains("EXPERIMENT"), "{command:?} {format}: {}", printed.stderr);
            for other in [&["--format", "json"][..], &["--report", "junit=/dev/stdout"]] {
                let ran = run(&[&["--report", &format!("{format}=-")][..], other].concat()).expect(1);
                assert_eq!(ran.stdout, "", "{command:?} {format} {other:?}");
                assert!(ran.stderr.contains("two reports go to standard output"), "{}", ran.stderr);
            }
        }
    }
}
