//! What `check` and `diff` compare: each side can be a folder, a file or a git ref, and no app need be named. And the
//! release pipeline of the examples, which lives on that, run as it is written.

use std::path::Path;

use serde_json::Value;

use crate::support::{Pushback, TestCase, cases};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        Nothing: every_kind_of_side_gives_the_same_findings,
        Nothing: release_of_crds_alone_removes_the_rest,
        Nothing: base_without_a_named_app_is_the_app,
        Nothing: a_file_with_several_definitions_is_a_side_and_is_not_written,
        Nothing: a_side_that_is_not_there_is_an_error,
        Nothing: content_that_a_clone_lacks_is_not_a_missing_base,
        Nothing: a_shallow_clone_is_told_how_to_fetch,
        Nothing: two_files_of_two_definitions_are_no_comparison,
        Nothing: a_witness_folder_is_made_or_refused_before_anything_is_done,
        Nothing: the_release_pipeline_runs_as_written,
    ]
}

/// A definition of `ex.com`.
fn definition(plural: &str, scope: &str) -> String {
    format!(
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: {plural}.ex.com}}\nspec:\n  \
         group: ex.com\n  scope: {scope}\n  names: {{kind: {plural}Kind, plural: {plural}}}\n  versions:\n  - name: v1\n    \
         served: true\n    storage: true\n    schema: {{openAPIV3Schema: {{type: object}}}}\n"
    )
}

fn git(pushback: &Pushback, arguments: &[&str]) {
    pushback.shell("git", arguments);
}

/// `crd/` and `new.yaml` hold a definition that `main` has with another scope.
fn changed_scope() -> Pushback {
    let pushback = Pushback::new();
    pushback
        .write("crd/foos.yaml", definition("foos", "Namespaced"))
        .write("old.yaml", definition("foos", "Namespaced"));
    pushback.commit();
    pushback.write("crd/foos.yaml", definition("foos", "Cluster")).write("new.yaml", definition("foos", "Cluster"));
    git(&pushback, &["checkout", "--quiet", "-b", "change"]);
    git(&pushback, &["add", "--all"]);
    git(&pushback, &["commit", "--quiet", "--message=change"]);
    pushback
}

fn every_kind_of_side_gives_the_same_findings() {
    let pushback = changed_scope();
    let mut fingerprints = Vec::new();
    for old in ["git:main:crd", "git:main:crd/foos.yaml", "file:old.yaml", "dir:old.yaml"] {
        for (new, shown) in [
            ("crd", "crd/foos.yaml:6:3"),
            ("new.yaml", "new.yaml:6:3"),
            ("git:change:crd", "git:change:crd/foos.yaml:6:3"),
            ("git:HEAD:new.yaml", "git:HEAD:new.yaml:6:3"),
        ] {
            let check = ["check", "-f", new, "--cluster", old, "--preflight=CRDUpgradeSafety", "--report=json=r.json"];
            let ran = pushback.run(&check).expect(10);
            assert!(ran.stdout.contains(&format!("--> {shown}\n")), "{old} {new}: {}", ran.stdout);
            let report = pushback.read_json("r.json");
            assert_eq!(report["findings"].as_array().map(Vec::len), Some(1), "{old} {new}: {report}");
            fingerprints.push(report["findings"][0]["fingerprint"].clone());
            pushback.run(&["diff", "-f", new, "--cluster", old, "--diff-exit-status"]).expect(3);
        }
    }
    fingerprints.dedup();
    assert_eq!(fingerprints.len(), 1);
    // A path in a ref is where hosts look for it.
    let check = ["check", "-f", "git:change:crd", "--cluster", "git:main:crd", "--report", "github=-"];
    let ran = pushback.run(&check).expect(10);
    assert!(ran.stdout.contains("::error file=crd/foos.yaml,line=6,col=3,"), "{}", ran.stdout);
}

fn release_of_crds_alone_removes_the_rest() {
    let pushback = Pushback::new();
    let crd = definition("foos", "Namespaced");
    let namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: vault}\n";
    pushback.write("old/crd.yaml", &crd).write("old/namespace.yaml", namespace).write("new/crd.yaml", &crd);
    let report =
        pushback.run(&["upgrade", "diff", "--from", "old", "--to", "new", "--format", "json"]).expect(10).json();
    assert_eq!(report["componentChanges"][0]["changes"][0]["type"], "ResourceRemoved", "{report:#}");
}

fn base_without_a_named_app_is_the_app() {
    let pushback = changed_scope();
    pushback.write("app/foos.yaml", definition("foos", "Namespaced"));
    pushback.write("app/map.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: map}\n");
    pushback.run(&["apply", "-a", "check", "-f", "app", "--cluster", "dir:live", "--yes"]).expect(0);
    let before = pushback.tree("live");
    let check = ["check", "-f", "app/map.yaml", "--cluster", "dir:live", "--output", "json"];
    let report = pushback.run(&check).expect(10).json();
    assert_eq!((&report["changes"]["delete"], &report["changes"]["noop"]), (&1.into(), &1.into()));
    assert_eq!(report["findings"][0]["check"], "crdDeletion");
    assert_eq!(pushback.tree("live"), before);
    // What an API server has belongs to many.
    let refused = pushback.run(&["check", "-f", "crd"]).expect(1);
    insta::assert_snapshot!(refused.complaints(), @"
    error: no app is named
    hint: name it with -a NAME; it can be left out where --cluster is a folder, a file or a git ref
    ");
}

fn a_file_with_several_definitions_is_a_side_and_is_not_written() {
    let pushback = Pushback::new();
    let all = |scope| format!("{}---\n{}", definition("foos", scope), definition("bars", "Namespaced"));
    pushback.write("old.txt", all("Namespaced")).write("new.yaml", all("Cluster"));
    let ran = pushback.run(&["check", "-f", "new.yaml", "--cluster", "file:old.txt", "--output", "json"]).expect(10);
    let report = ran.json();
    assert_eq!((&report["changes"]["update"], &report["changes"]["noop"]), (&1.into(), &1.into()));
    assert_eq!(report["cluster"], "file:old.txt");
    for cluster in ["file:old.txt", "dir:old.txt"] {
        let ran = pushback.run(&["apply", "-a", "x", "-f", "new.yaml", "--cluster", cluster, "--yes"]).expect(1);
        assert!(ran.stderr.contains("error: file:old.txt is read only\n"), "{}", ran.stderr);
    }
    assert_eq!(pushback.read("old.txt"), all("Namespaced"));
}

fn a_side_that_is_not_there_is_an_error() {
    let pushback = changed_scope();
    for (new, old, message) in [
        ("crd", "file:absent.yaml", "absent.yaml: no such file or directory"),
        ("crd", "file:crd", "crd is not a file"),
        ("crd", "file:", "cannot be read"),
        ("crd", "git:main:crd/foos.yaml/x/../y", "leads out of the repository"),
        ("crd", "git:absent:crd", "the repository has no such ref"),
        ("git:main:absent", "git:main:crd", "git:main:absent: main does not contain the path absent"),
        ("git:main", "git:main:crd", "git:main: expected git:REF:PATH"),
        ("git:--help:crd", "git:main:crd", "is not a git ref"),
        ("git:main:../x", "git:main:crd", "leads out of the repository"),
    ] {
        let ran = pushback.run(&["check", "-f", new, "--cluster", old]);
        assert!(matches!(ran.code, 1 | 13) && ran.stderr.contains(message), "{new} {old}: {} {}", ran.code, ran.stderr);
    }
}

fn content_that_a_clone_lacks_is_not_a_missing_base() {
    let pushback = changed_scope();
    let object = pushback.shell("git", &["rev-parse", "main:crd"]);
    let (folder, file) = object.trim().split_at(2);
    std::fs::remove_file(pushback.directory().join(".git/objects").join(folder).join(file)).expect("an object");
    for more in [&[][..], &["--new-base"]] {
        let check = ["check", "-f", "new.yaml", "--cluster", "git:main:crd/foos.yaml"];
        let ran = pushback.run(&[&check, more].concat());
        assert_eq!(ran.code, 1, "{}", ran.stdout);
    }
}

fn a_shallow_clone_is_told_how_to_fetch() {
    let pushback = changed_scope();
    let here = format!("file://{}", pushback.directory().display());
    git(&pushback, &["clone", "--quiet", "--depth=1", &here, "shallow"]);
    let line = "cd shallow && exec $0 check -f crd --cluster git:origin/main:crd";
    let ran = pushback.run_in_shell(line).expect(1);
    let hint = "this clone is shallow: `git fetch --unshallow` brings the rest (`fetch-depth: 0` in actions/checkout)";
    assert!(ran.stderr.contains("the repository has no such ref") && ran.stderr.contains(hint), "{}", ran.stderr);
}

fn two_files_of_two_definitions_are_no_comparison() {
    let pushback = Pushback::new();
    pushback.write("old.yaml", definition("foos", "Namespaced")).write("new.yaml", definition("bars", "Namespaced"));
    let ran = pushback.run(&["check", "-f", "new.yaml", "--cluster", "file:old.yaml"]).expect(1);
    insta::assert_snapshot!(ran.complaints(), @"
    error: new.yaml:1:1: the two files hold different CRDs: bars.ex.com here, foos.ex.com there
    hint: compare files of the same CRD, or name an app with -a NAME
    ");
}

fn a_witness_folder_is_made_or_refused_before_anything_is_done() {
    let pushback = changed_scope();
    let common = ["-f", "crd", "--cluster", "dir:live", "--witness-dir"];
    pushback.run(&[&["check", "--new-base"][..], &common, &["deep/witnesses"]].concat()).expect(0);
    assert!(pushback.directory().join("deep/witnesses").is_dir());
    for command in [&["check", "--new-base"][..], &["diff", "--new-base"], &["apply", "-a", "x", "--yes"]] {
        let ran = pushback.run(&[command, &common, &["new.yaml"]].concat()).expect(1);
        assert!(ran.stderr.contains("error: cannot write witness new.yaml: "), "{}", ran.stderr);
    }
    assert!(!pushback.directory().join("live").exists());
}

/// The commands of a job's steps, and whether each runs after a failure too.
fn steps(job: &Value) -> Vec<(String, bool)> {
    let steps = job["steps"].as_array().expect("steps").iter();
    let own = steps.filter(|step| step["name"] != "Install pushback");
    own.filter_map(|step| Some((step["run"].as_str()?.to_owned(), step["if"] == "always()"))).collect()
}

/// Runs a job as a runner does; the exit code of its first failure.
fn run_job(pushback: &Pushback, job: &Value) -> i32 {
    let mut code = 0;
    for (command, always) in steps(job) {
        if code == 0 || always {
            let ran = pushback.run_in_shell(&format!("PATH=\"${{0%/*}}:$PATH\"; export PATH; {command}"));
            code = if code == 0 { ran.code } else { code };
            assert!(!always || ran.code == 0, "{command}: {}", ran.stderr);
        }
    }
    code
}

fn the_release_pipeline_runs_as_written() {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/release-pipeline"));
    let text = |name: &str| std::fs::read_to_string(folder.join(name)).expect("an example");
    let workflow: Value = serde_yaml::from_str(&text("workflow.yaml")).expect("YAML");
    let (check, release) = (&workflow["jobs"]["check"], &workflow["jobs"]["release"]);
    let pushback = Pushback::new().with("GITHUB_STEP_SUMMARY", "summary.md");
    for script in ["pull-request.sh", "release.sh"] {
        pushback.write(&format!("ci/{script}"), text(script));
    }
    pushback.write("config/crd/foos.yaml", definition("foos", "Namespaced"));
    pushback.commit();
    git(&pushback, &["remote", "add", "origin", "."]);
    git(&pushback, &["fetch", "--quiet", "origin"]);

    assert_eq!(run_job(&pushback, release), 0);
    assert!(pushback.tree("live").keys().any(|file| file.contains("foos.ex.com")));
    assert!(pushback.read("summary.md").starts_with("## pushback: passed\n"));
    assert_eq!(run_job(&pushback, check), 0);
    assert_eq!(pushback.read("reports/annotations.txt"), "");

    pushback.write("config/crd/foos.yaml", definition("foos", "Cluster"));
    assert_eq!(run_job(&pushback, check), 10);
    let result = &pushback.read_json("reports/check.sarif")["runs"][0]["results"][0];
    assert_eq!(result["ruleId"], "CRDUpgradeSafety/scope");
    assert!(pushback.read("reports/check.xml").contains("failures=\"1\""));
    assert!(pushback.read("reports/annotations.txt").starts_with("::error file=config/crd/foos.yaml,line=6,col=3,"));
    assert!(pushback.read("summary.md").contains("\n## pushback: refused\n"));
    let live = pushback.tree("live");
    assert_eq!(run_job(&pushback, release), 10);
    assert_eq!(pushback.tree("live"), live);
}
