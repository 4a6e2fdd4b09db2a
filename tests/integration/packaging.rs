//! What is published: scripts of `packaging/` on stand-ins of the artefacts, the action for pull requests as a runner runs it,
//! the plugin of kubectl.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::pushback::Ran;
use crate::support::{Pushback, TestCase, cases};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        Nothing: the_manifest_for_krew_names_each_archive_with_its_digest,
        Nothing: a_release_is_installed_as_its_digests_say,
        Nothing: a_debian_package_holds_what_it_says,
        Nothing: a_tag_is_the_version,
        Nothing: workflows_run_scripts_that_exist,
        Nothing: the_action_refuses_a_pull_request,
        Nothing: kubectl_runs_it_as_a_plugin,
    ]
}

const LINUX: &str = "x86_64-unknown-linux-musl";
const WINDOWS: &str = "x86_64-pc-windows-gnu";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn script(path: &str) -> String {
    root().join(path).display().to_string()
}

/// A folder `out` with stand-ins of binaries: small ones, as packing the real one takes long.
fn built() -> Pushback {
    let pushback = Pushback::new().with("SOURCE_DATE_EPOCH", "1700000000");
    pushback.write(&format!("out/bin/{WINDOWS}/pushback.exe"), "MZ").write(
        &format!("out/bin/{LINUX}/pushback"),
        format!("#!/bin/sh\nexec '{}' \"$@\"\n", env!("CARGO_BIN_EXE_pushback")),
    );
    pushback.shell("chmod", &["755", &format!("out/bin/{LINUX}/pushback")]);
    pushback
}

/// Runs a script of the repository, to the end.
fn run(pushback: &Pushback, path: &str, arguments: &[&str]) -> Ran {
    let line = format!("exec '{}' {}", script(path), arguments.join(" "));
    pushback.run_in_shell(&line)
}

/// `built`, packed.
fn packed() -> Pushback {
    let pushback = built().with("PUSHBACK_BINARY", env!("CARGO_BIN_EXE_pushback"));
    run(&pushback, "packaging/archives", &["out"]).expect(0);
    pushback
}

fn digest(pushback: &Pushback, path: &str) -> String {
    pushback.shell("sha256sum", &[path]).split(' ').next().expect("a digest").to_owned()
}

/// What an installed binary says of its version.
fn installed(pushback: &Pushback, path: &str) -> String {
    pushback.shell(&pushback.directory().join(path).display().to_string(), &["version"])
}

fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

fn the_manifest_for_krew_names_each_archive_with_its_digest() {
    let pushback = packed();
    let url = "https://example.com/releases/";
    run(&pushback, "packaging/krew", &[url, "out"]).expect(0);
    let manifest: Value = serde_yaml::from_str(&pushback.read("out/pushback.yaml")).expect("YAML");
    assert_eq!(manifest["kind"], "Plugin");
    assert_eq!(manifest["metadata"]["name"], "pushback");
    assert_eq!(manifest["spec"]["version"], format!("v{}", version()));
    let platforms = manifest["spec"]["platforms"].as_array().expect("platforms");
    let expected = [(LINUX, "tar.gz", "linux", "pushback"), (WINDOWS, "zip", "windows", "pushback.exe")];
    assert_eq!(platforms.len(), expected.len(), "{manifest:#}");
    for (platform, (target, ending, system, program)) in platforms.iter().zip(expected) {
        let archive = format!("pushback-{}-{target}.{ending}", version());
        assert_eq!(platform["uri"], format!("https://example.com/releases/{archive}"));
        assert_eq!(platform["sha256"], digest(&pushback, &format!("out/{archive}")));
        assert_eq!(platform["selector"]["matchLabels"], serde_json::json!({"os": system, "arch": "amd64"}));
        assert_eq!(platform["bin"], program);
    }

    run(&pushback, "packaging/krew", &["--check", "out"]).expect(0);
    let archive = format!("out/pushback-{}-{LINUX}.tar.gz", version());
    let whole = std::fs::read(pushback.directory().join(&archive)).expect("an archive");
    pushback.write(&archive, "another");
    let refused = run(&pushback, "packaging/krew", &["--check", "out"]).expect(1);
    assert!(refused.stderr.contains("has another digest than"), "{}", refused.stderr);
    pushback.write(&archive, whole);
    pushback.write(&format!("out/pushback-{}-aarch64-unknown-linux-musl.tar.gz", version()), "new");
    let refused = run(&pushback, "packaging/krew", &["--check", "out"]).expect(1);
    assert!(refused.stderr.contains("does not name"), "{}", refused.stderr);
}

fn a_release_is_installed_as_its_digests_say() {
    let pushback = packed();
    // Packed twice, the bytes are the same.
    let archive = format!("pushback-{}-{LINUX}.tar.gz", version());
    let first = digest(&pushback, &format!("out/{archive}"));
    run(&pushback, "packaging/archives", &["out"]).expect(0);
    assert_eq!(digest(&pushback, &format!("out/{archive}")), first);

    pushback.write("out/SHA256SUMS", format!("{first}  {archive}\n"));
    let url = format!("file://{}/out", pushback.directory().display());
    let install = |prefix: &str| run(&pushback, "packaging/install", &[&url, prefix]);
    if std::env::consts::ARCH != "x86_64" || std::env::consts::OS != "linux" {
        assert_eq!(install("usr").code, 1);
        return;
    }
    install("usr").expect(0);
    assert!(installed(&pushback, "usr/bin/pushback").starts_with("pushback version "));
    let files = pushback.tree("usr");
    for file in ["bash-completion/completions/pushback", "zsh/site-functions/_pushback"] {
        assert!(files[&format!("share/{file}")].contains("pushback"), "{file}");
    }

    pushback.write(&format!("out/{archive}"), "another");
    let refused = install("elsewhere").expect(1);
    assert!(refused.stderr.contains("is not what SHA256SUMS says"), "{}", refused.stderr);
    pushback.write("out/SHA256SUMS", "");
    assert!(install("elsewhere").expect(1).stderr.contains("has no archive for"));
    assert_eq!(pushback.tree("elsewhere").len(), 0);
}

fn a_debian_package_holds_what_it_says() {
    let pushback = packed();
    if pushback.run_in_shell("command -v dpkg-deb").code != 0 {
        crate::support::case::show("left out: dpkg-deb is not installed");
        return;
    }
    run(&pushback, "packaging/debian", &["out"]).expect(0);
    let package = format!("out/pushback_{}_amd64.deb", version());
    let first = digest(&pushback, &package);
    run(&pushback, "packaging/debian", &["out"]).expect(0);
    assert_eq!(digest(&pushback, &package), first, "packed twice");
    let field = |name: &str| pushback.shell("dpkg-deb", &["--field", &package, name]);
    assert_eq!(field("Version").trim(), version());
    assert_eq!(field("Depends").trim(), "");
    pushback.shell("dpkg-deb", &["--extract", &package, "there"]);
    let files = pushback.tree("there/usr");
    for file in ["bash-completion/completions/pushback", "doc/pushback/copyright", "doc/pushback/changelog.gz"] {
        assert!(files.contains_key(&format!("share/{file}")), "{file}: {:#?}", files.keys());
    }
    assert!(installed(&pushback, "there/usr/bin/pushback").starts_with("pushback version "));
    let plugin = pushback.directory().join("there/usr/bin/kubectl-pushback");
    assert_eq!(std::fs::read_link(plugin).expect("a link"), Path::new("pushback"));
}

fn a_tag_is_the_version() {
    let pushback = built();
    run(&pushback, "packaging/version", &[&format!("v{}", version())]).expect(0);
    run(&pushback, "packaging/version", &["v999.0.0"]).expect(1);
}

/// Every value of a key, wherever it is.
fn values<'v>(value: &'v Value, key: &str, found: &mut Vec<&'v str>) {
    match value {
        Value::Object(fields) => {
            found.extend(fields.get(key).and_then(Value::as_str));
            fields.values().for_each(|below| values(below, key, found));
        }
        Value::Array(items) => items.iter().for_each(|below| values(below, key, found)),
        _ => {}
    }
}

fn read_yaml(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_yaml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn workflows_run_scripts_that_exist() {
    let folder = root().join(".github/workflows");
    let mut files: Vec<PathBuf> =
        folder.read_dir().expect("workflows").map(|entry| entry.expect("an entry").path()).collect();
    files.push(root().join("action.yml"));
    let mut found = 0;
    for file in files {
        let workflow = read_yaml(&file);
        let mut commands = Vec::new();
        values(&workflow, "run", &mut commands);
        let words = commands.iter().flat_map(|command| command.split([' ', '\n', '"']));
        for word in words.map(|word| word.trim_start_matches("$GITHUB_ACTION_PATH/")) {
            if ["packaging/", "action/"].iter().any(|folder| word.starts_with(folder)) {
                assert!(root().join(word).is_file(), "{}: {word}", file.display());
                found += 1;
            }
        }
        // An expression in a script would let a branch's name be a command.
        assert!(commands.iter().all(|command| !command.contains("${{")), "{}", file.display());
    }
    assert!(found >= 5, "{found}");
    let pipeline = read_yaml(&root().join("examples/release-pipeline/gitlab-ci.yml"));
    assert_eq!(pipeline["definitions"]["script"], serde_json::json!(["sh ci/pull-request.sh"]));
}

fn definition(scope: &str) -> String {
    format!(
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: foos.ex.com}}\nspec:\n  \
         group: ex.com\n  scope: {scope}\n  names: {{kind: Foo, plural: foos}}\n  versions:\n  - name: v1\n    \
         served: true\n    storage: true\n    schema: {{openAPIV3Schema: {{type: object}}}}\n"
    )
}

/// Runs the step `check` of the action with these inputs, as a runner does.
fn run_action(pushback: &Pushback, inputs: &[(&str, &str)]) -> Ran {
    let action = read_yaml(&root().join("action.yml"));
    let steps = action["runs"]["steps"].as_array().expect("steps");
    let check = steps.iter().find(|step| step["id"] == "check").expect("the check");
    let mut line = format!("PATH=\"${{0%/*}}:$PATH\"; export PATH; export GITHUB_ACTION_PATH='{}'\n", root().display());
    for (variable, value) in check["env"].as_object().expect("variables") {
        let name = value.as_str().and_then(|value| value.strip_prefix("${{ inputs.")?.strip_suffix(" }}"));
        let name = name.expect("an input");
        let declared = action["inputs"][name]["default"].as_str();
        let given = inputs.iter().find(|(input, _)| *input == name).map(|(_, value)| *value);
        let value = given.or(declared).unwrap_or_else(|| panic!("{name} is required"));
        line += &format!("export {variable}='{value}'\n");
    }
    pushback.run_in_shell(&(line + check["run"].as_str().expect("a command")))
}

fn the_action_refuses_a_pull_request() {
    let pushback = Pushback::new()
        .with("GITHUB_BASE_REF", "main")
        .with("GITHUB_STEP_SUMMARY", "summary.md")
        .with("GITHUB_OUTPUT", "output.txt");
    pushback.write("deploy/foos.yaml", definition("Namespaced"));
    for arguments in [
        &["init", "--quiet", "--initial-branch=main"][..],
        &["add", "--all"],
        &["commit", "--quiet", "--message=state"],
        &["remote", "add", "origin", "."],
        &["fetch", "--quiet", "origin"],
    ] {
        pushback.shell("git", arguments);
    }
    let inputs = [("manifests", "deploy")];
    let passed = run_action(&pushback, &inputs).expect(0);
    assert!(!passed.stdout.contains("::error"), "{}", passed.stdout);
    assert_eq!(pushback.read("output.txt"), "outcome=passed\n");
    assert!(pushback.read("summary.md").starts_with("## pushback: passed\n"));

    pushback.write("deploy/foos.yaml", definition("Cluster"));
    let refused = run_action(&pushback, &inputs).expect(10);
    assert!(refused.stdout.contains("\n::error file=deploy/foos.yaml,line=6,col=3,"), "{}", refused.stdout);
    assert_eq!(pushback.read("output.txt"), "outcome=passed\noutcome=refused\n");
    assert!(pushback.read("summary.md").contains("\n## pushback: refused\n"));
    assert_eq!(pushback.read_json("pushback-reports/check.json")["outcome"], "refused");
    // Of two folders, with other rules.
    let other = [("manifests", "deploy"), ("base", "dir:deploy"), ("preflight", "none"), ("reports", "other")];
    run_action(&pushback, &other).expect(0);
    assert_eq!(pushback.read_json("other/check.json")["rules"].as_array().map(Vec::len), Some(0));

    // What cannot be read has no report, and not that of the last time.
    pushback.write("deploy/foos.yaml", "kind: [\n");
    run_action(&pushback, &inputs).expect(1);
    assert!(!pushback.directory().join("pushback-reports/check.json").exists());
    assert_eq!(pushback.read("output.txt"), "outcome=passed\noutcome=refused\noutcome=passed\n");
}

fn kubectl_runs_it_as_a_plugin() {
    let pushback = Pushback::new();
    pushback.shell("ln", &["-s", env!("CARGO_BIN_EXE_pushback"), "kubectl-pushback"]);
    let plugin = pushback.directory().join("kubectl-pushback").display().to_string();
    for arguments in [&["apply", "--help"][..], &["help", "apply"]] {
        let help = pushback.shell(&plugin, arguments);
        assert!(help.contains("\nUsage: kubectl pushback apply [OPTIONS]"), "{help}");
    }
    let ran = pushback.run_in_shell(&format!("{plugin} apply --no-such-option")).expect(1);
    assert!(ran.stderr.contains("Usage: kubectl pushback apply"), "{}", ran.stderr);
    assert!(pushback.run(&["apply", "--help"]).expect(0).stdout.contains("\nUsage: pushback apply"));
}
