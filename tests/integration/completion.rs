//! Completion as shells ask for it: the engine's answers, and what bash, zsh and fish make of them when somebody presses Tab.

use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

use crate::support::apply::TestApp;
use crate::support::pushback::example;
use crate::support::terminal::AtTerminal;
use crate::support::{Pushback, TestCase, TestCluster, cases};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        Nothing: every_shell_gets_a_completion_script,
        Nothing: apps_namespaces_and_clusters_are_completed,
        Nothing: rules_are_completed_those_of_a_policy_too,
        Nothing: contexts_are_completed,
        Nothing: fingerprints_of_what_is_refused_are_completed,
        Nothing: a_cluster_that_does_not_answer_completes_nothing,
        Nothing: a_line_that_means_nothing_completes_nothing,
        Nothing: bash_completes_what_is_typed,
        Nothing: zsh_completes_what_is_typed,
        Nothing: fish_completes_what_is_typed,
        ApiServer: apps_and_namespaces_of_a_server_are_completed,
    ]
}

/// What a shell without rules of its own for words is answered, without the lines about each.
fn completed(pushback: Pushback, words: &[&str]) -> Vec<String> {
    let asking = pushback.with("_PUSHBACK_COMPLETE", "fish");
    let ran = asking.run(&[&["--", "pushback"], words].concat()).expect(0);
    assert_eq!(ran.stderr, "", "a message would land on the line that is typed");
    ran.stdout.lines().map(|line| line.split('\t').next().unwrap_or_default().to_owned()).collect()
}

/// Two apps in a folder.
fn with_apps() -> Pushback {
    let pushback = Pushback::new();
    let manifest = |name: &str| {
        format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}-settings}}\n---\n\
            apiVersion: v1\nkind: Namespace\nmetadata: {{name: of-{name}}}\n"
        )
    };
    for app in ["shop", "shelf"] {
        pushback.write(&format!("{app}.yaml"), manifest(app));
        pushback.run(&["apply", "-a", app, "-f", &format!("{app}.yaml"), "--cluster", "dir:live", "--yes"]).expect(0);
    }
    pushback
}

fn every_shell_gets_a_completion_script() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = Pushback::new().run(&["completion", shell]).expect(0).stdout;
        assert!(script.contains("_PUSHBACK_COMPLETE") && script.contains(shell), "{shell}: {script}");
    }
    let script = Pushback::new();
    script.write("script", script.run(&["completion", "bash"]).expect(0).stdout);
    script.shell("bash", &["-n", "script"]);
    let unknown = Pushback::new().run(&["completion", "bsh"]).expect(1);
    insta::assert_snapshot!(unknown.stderr, @"
    error: invalid value 'bsh' for '<SHELL>'
      [possible values: bash, elvish, fish, powershell, zsh]

      tip: a similar value exists: 'bash'

    For more information, try '--help'.
    ");
    // A shell that the engine does not know.
    Pushback::new().with("_PUSHBACK_COMPLETE", "tcsh").run(&["--", "pushback", ""]).expect(1);
}

fn apps_namespaces_and_clusters_are_completed() {
    assert_eq!(completed(with_apps(), &["inspect", "--cluster", "dir:live", "-a", ""]), ["shelf", "shop"]);
    assert_eq!(completed(with_apps(), &["--cluster=dir:live", "delete", "--app=sho"]), ["--app=shop"]);
    assert_eq!(completed(with_apps(), &["--cluster=dir:live", "delete", "-n", "other", "-a", ""]), [] as [&str; 0]);
    let namespaces = completed(with_apps(), &["list", "--cluster", "dir:live", "--namespace", "of-"]);
    assert_eq!(namespaces, ["of-shelf", "of-shop"]);
    assert_eq!(completed(with_apps(), &["list", "--cluster", "dir:l"]), ["dir:live/"]);
    assert_eq!(completed(with_apps(), &["list", "--cluster", ""]), ["kube", "dir:", "file:", "git:"]);
    let commands = completed(Pushback::new(), &["app"]);
    assert_eq!(commands, ["apply", "app-change", "app-group"]);
}

fn rules_are_completed_those_of_a_policy_too() {
    assert_eq!(completed(Pushback::new(), &["rules", "Re"]), ["References", "RemovedAPIs"]);
    let policy = example("own-rules/policy.yaml");
    assert_eq!(completed(Pushback::new(), &["rules", "--config", &policy, "Rep"]), ["ReplicasShrinkSlowly"]);
    let list = completed(Pushback::new(), &["check", "-f", ".", "--preflight=References,Upg"]);
    assert_eq!(list, ["--preflight=References,UpgradeDiff"]);
}

fn contexts_are_completed() {
    let pushback = Pushback::new();
    let context = |name: &str| format!("- {{name: {name}, context: {{cluster: c, user: u}}}}\n");
    let text = format!("apiVersion: v1\nkind: Config\ncontexts:\n{}{}", context("staging"), context("production"));
    pushback.write("kubeconfig", text);
    let kubeconfig = pushback.directory().join("kubeconfig");
    let found = completed(pushback.with("KUBECONFIG", kubeconfig), &["list", "--kubeconfig-context", "s"]);
    assert_eq!(found, ["staging"]);
}

fn fingerprints_of_what_is_refused_are_completed() {
    let (old, new) = (example("operator"), example("operator-upgrade-bad"));
    let line = ["apply", "-a", "backup", "-f", &new, "--cluster", &format!("dir:{old}"), "--waive", ""];
    let found = completed(Pushback::new(), &line);
    assert!(found.len() > 1, "{found:?}");
    assert!(found.iter().all(|text| text.len() == 33 && text.ends_with('=')), "{found:?}");
    let waived = format!("--waive={}reviewed", found[0]);
    let rest = completed(Pushback::new(), &[&line[..1], &[&waived], &line[1..]].concat());
    assert_eq!(rest, found[1..], "what is accepted already is not offered");
    // Nothing is fetched, and nothing is read from the terminal.
    for source in ["-", "https://192.0.2.1/app.yaml"] {
        assert_eq!(completed(Pushback::new(), &["apply", "-a", "x", "-f", source, "--waive", ""]), [] as [&str; 0]);
    }
}

fn a_cluster_that_does_not_answer_completes_nothing() {
    // Takes connections, and says nothing; then, nobody listens.
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let gone = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port");
    for address in [silent.local_addr().expect("an address"), gone] {
        for line in [["inspect", "-a", ""], ["inspect", "-n", ""]] {
            let pushback = Pushback::new();
            pushback.write(
                "kubeconfig",
                format!(
                    "apiVersion: v1\nkind: Config\ncurrent-context: x\n\
                 clusters: [{{name: x, cluster: {{server: 'http://{address}'}}}}]\nusers: [{{name: x, user: {{}}}}]\n\
                 contexts: [{{name: x, context: {{cluster: x, user: x}}}}]\n"
                ),
            );
            let kubeconfig = pushback.directory().join("kubeconfig");
            assert_eq!(
                completed(pushback.with("KUBECONFIG", kubeconfig), &line),
                [] as [&str; 0],
                "{address} {line:?}"
            );
        }
    }
    // A plugin that waits at the terminal gets no terminal, and its words stay off it.
    let pushback = Pushback::new();
    pushback.write("kubeconfig", "apiVersion: v1\nkind: Config\ncurrent-context: x\n\
        clusters: [{name: x, cluster: {server: 'https://127.0.0.1:1'}}]\n\
        users: [{name: x, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: sh, interactiveMode: IfAvailable,\n\
        args: ['-c', 'echo who are you >&2; cat; exit 1']}}}]\n\
        contexts: [{name: x, context: {cluster: x, user: x}}]\n");
    let kubeconfig = pushback.directory().join("kubeconfig");
    assert_eq!(completed(pushback.with("KUBECONFIG", kubeconfig), &["inspect", "-a", ""]), [] as [&str; 0]);
}

fn a_line_that_means_nothing_completes_nothing() {
    for line in [
        &["inspect", "--cluster", "moon:x", "-a", ""][..],
        &["inspect", "--cluster", "dir:nowhere", "-a", ""],
        &["rules", "--config", "missing.yaml", "Nothing"],
    ] {
        assert_eq!(completed(Pushback::new(), line), [] as [&str; 0], "{line:?}");
    }
    completed(Pushback::new(), &["apply", "--plan"]);
    // Beyond the end.
    let none = Pushback::new().with("_PUSHBACK_COMPLETE", "bash").with("_CLAP_COMPLETE_INDEX", "7");
    let ran = none.run(&["--", "pushback"]);
    assert_eq!(ran.stdout + &ran.stderr, "");
}

/// A shell at a terminal, in a folder with two apps; `None` where the shell is not installed.
fn shell(name: &str, arguments: &[&str]) -> Option<(AtTerminal, Pushback)> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    if !["setsid", name].iter().all(|program| std::env::split_paths(&path).any(|folder| folder.join(program).exists()))
    {
        crate::support::case::show(&format!("left out: {name} is not installed"));
        return None;
    }
    let pushback = with_apps();
    let binary = Path::new(env!("CARGO_BIN_EXE_pushback"));
    let folders = binary.parent().map(Path::to_owned).into_iter().chain(std::env::split_paths(&path));
    // A session of its own: the terminal is the shell's, as it is for who sits there.
    let mut command = Command::new("setsid");
    command.args(["--ctty", "--wait", name]).args(arguments).current_dir(pushback.directory());
    command.env_clear().env("PATH", std::env::join_paths(folders).expect("a path"));
    command.env("HOME", pushback.place()).env("TERM", "xterm").env("LC_ALL", "C.UTF-8").env("PS1", "ready> ");
    Some((AtTerminal::start(command, 120), pushback))
}

/// Types the same lines into each shell; what follows the last Tab has been completed.
fn types_and_completes(mut terminal: AtTerminal, script: &str) {
    terminal.type_in(&format!("{script}; echo loa''ded\n"));
    terminal.wait_for("loaded");
    for (typed, whole) in
        [("pushback insp\t", "pushback inspect "), ("-a sho\t", "-a shop"), (" --clus\t", " --cluster")]
    {
        terminal.type_in(typed);
        terminal.wait_for(whole.trim_end());
    }
    terminal.type_in("\u{15}exit\n");
    terminal.finish();
}

fn bash_completes_what_is_typed() {
    let Some((terminal, _folder)) = shell("bash", &["--norc", "--noprofile", "-i"]) else { return };
    types_and_completes(terminal, "export PUSHBACK_CLUSTER=dir:live; source <(pushback completion bash)");
    // What bash cuts at `:` and `=`.
    let Some((mut terminal, _folder)) = shell("bash", &["--norc", "--noprofile", "-i"]) else { return };
    terminal.type_in("source <(pushback completion bash); echo loa''ded\n");
    terminal.wait_for("loaded");
    terminal.type_in("pushback inspect --cluster=dir:li\t");
    terminal.wait_for("--cluster=dir:live/");
    terminal.type_in("\u{15}pushback inspect --cluster dir:live --app=sho\t");
    terminal.wait_for("--app=shop");
    terminal.type_in("\u{15}exit\n");
    terminal.finish();
}

fn zsh_completes_what_is_typed() {
    let Some((terminal, _folder)) = shell("zsh", &["-f", "-i"]) else { return };
    let script =
        "export PUSHBACK_CLUSTER=dir:live; autoload -U compinit; compinit -u -D; source <(pushback completion zsh)";
    types_and_completes(terminal, script);
}

/// fish draws its line anew with every key, so it is asked what it would complete.
fn fish_completes_what_is_typed() {
    let asked = "pushback completion fish | source; complete -C 'pushback inspect --cluster dir:live -a sho'; \
                 complete -C 'pushback rules Removed'; exit";
    let Some((terminal, _folder)) = shell("fish", &["--no-config", "-c", asked]) else { return };
    let shown = terminal.finish().screen;
    assert!(shown.contains("shop") && shown.contains("RemovedAPIs"), "{shown}");
}

fn apps_and_namespaces_of_a_server_are_completed() {
    let namespace = TestCluster::shared().namespace("completion");
    let app = TestApp::new("shop", &namespace);
    app.pushback.write("app.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n");
    app.pushback.run(&["apply", "-a", "shop", "-n", &namespace, "-f", "app.yaml", "--yes"]).expect(0);
    let on = || Pushback::on(TestCluster::shared());
    assert_eq!(completed(on(), &["inspect", "-n", &namespace, "-a", ""]), ["shop"]);
    assert_eq!(completed(on(), &["list", "-n", &namespace]), [namespace]);
}
