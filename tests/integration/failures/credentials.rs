//! Credentials that run out, plugins that fail, hang or ask, and certificates that do not hold now.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use rustix::process::Signal;
use serde_json::{Value, json};

use super::{SECRET_VALUE, lock, secret, sound, unfinished};
use crate::support::apply::{TestApp, config_map, error};
use crate::support::certificates::Authority;
use crate::support::https::HttpsServer;
use crate::support::proxy::{Fault, FaultProxy, Verb, any, matching, writes};
use crate::support::{Pushback, Running, TestCase, TestCluster, cases, poll, wait_until};

pub(super) fn tests() -> Vec<TestCase> {
    cases![
        ApiServer: a_token_that_runs_out_is_renewed_and_the_run_goes_on,
        ApiServer: a_token_that_cannot_be_renewed_ends_the_run_and_the_next_one_goes_on,
        Nothing: a_plugin_that_fails_is_named_and_its_words_are_not_repeated,
        ApiServer: a_plugin_that_would_ask_finds_nobody_and_ends,
        Nothing: a_plugin_that_hangs_can_be_interrupted,
        Nothing: a_certificate_that_does_not_hold_now_is_told_with_the_clock,
    ]
}

/// A kubeconfig whose credentials come from a line of the shell.
fn with_plugin(kubeconfig: &Path, line: &str) -> Value {
    let text = std::fs::read(kubeconfig).expect("a kubeconfig");
    let mut kubeconfig: Value = serde_json::from_slice(&text).expect("JSON");
    kubeconfig["users"][0]["user"] = plugin(line);
    kubeconfig
}

fn plugin(line: &str) -> Value {
    json!({"exec": {
        "apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "IfAvailable",
        "command": "sh", "args": ["-c", line],
    }})
}

/// A plugin's answer, as a command of the shell; the token is what the word of the shell comes to.
fn prints(token: &str) -> String {
    let credential =
        r#"{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"%s"}}"#;
    format!("printf '{credential}' {token}")
}

/// An app through a proxy, with the tokens `first`, and `second` ever after. Each run of the plugin adds to a file.
fn renewing(prefix: &str) -> (FaultProxy, TestApp) {
    let cluster = TestCluster::shared();
    let proxy = FaultProxy::start(cluster.kubeconfig_path());
    proxy.kubeconfig_of("second");
    let pushback = Pushback::new();
    let line = format!(
        "if test -e plugin-runs; then token=second; else token=first; fi; echo run >> plugin-runs; {}",
        prints("$token")
    );
    pushback.write("kubeconfig", with_plugin(&proxy.kubeconfig(), &line).to_string());
    let app = TestApp::of(pushback.with("KUBECONFIG", "kubeconfig"), "shop", &cluster.namespace(prefix));
    (proxy, app)
}

fn a_token_that_runs_out_is_renewed_and_the_run_goes_on() {
    for after in [3, 8, 14] {
        let (proxy, app) = renewing("token");
        proxy.on(any().from("first").after_first(after), Fault::status(401));
        let ran = sound(app.apply(&(config_map("first", "1") + &secret()), &[]), 0);
        assert_eq!(ran.end()["done"]["create"], 2);
        assert_eq!(app.pushback.read("plugin-runs").lines().count(), 2, "the plugin is asked once more");
        assert_eq!(lock(&TestApp::new("shop", &app.namespace)), Value::Null);
    }
}

fn a_token_that_cannot_be_renewed_ends_the_run_and_the_next_one_goes_on() {
    let input = config_map("first", "1") + &secret();
    let (proxy, app) = renewing("no-token");
    proxy.on(any().after_first(3), Fault::status(401));
    let ran = sound(app.apply(&input, &[]), 13);
    assert!(error(&ran).contains("log in again"), "{}", error(&ran));
    assert_eq!(proxy.count(&writes()), 0);

    // In the middle of the writes.
    let (proxy, app) = renewing("no-token");
    proxy.on(matching(Verb::Apply, "secrets"), Fault::status(401));
    let ran = sound(app.apply(&input, &["--lock-lease", "3m"]), 20);
    let left = unfinished(&ran);
    assert_eq!(left[0].0, "Secret/password failed", "{left:?}");
    assert!(
        left[0].1.contains("does not accept these credentials") || left[0].1.contains("script says 401"),
        "{left:?}"
    );
    assert!(ran.events_of("retry").is_empty(), "no repetition makes a token valid: {}", ran.stdout);
    proxy.clear();
    sound(app.apply(&input, &["--lock-wait", "0s"]), 0);
}

/// A kubeconfig that is never used, for all the plugin has to say.
fn unreachable(line: &str) -> Pushback {
    let pushback = Pushback::new();
    let kubeconfig = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "users": [{"name": "u", "user": plugin(line)}],
    });
    pushback.write("kubeconfig", kubeconfig.to_string());
    pushback.with("KUBECONFIG", "kubeconfig")
}

fn a_plugin_that_fails_is_named_and_its_words_are_not_repeated() {
    let garbage = format!("echo '{{token: {SECRET_VALUE}'");
    let no_token = format!("echo '{{\"status\": {{\"password\": \"{SECRET_VALUE}\"}}}}'");
    let huge = format!("yes {SECRET_VALUE} | head -c 1000000");
    for (line, words, code) in [
        ("exit 3", "failed (exit status: 3)", 13),
        ("kill -9 $$", "failed (signal: 9", 13),
        (garbage.as_str(), "did not answer with an ExecCredential", 1),
        (no_token.as_str(), "neither a token nor a certificate", 1),
        (huge.as_str(), "did not answer with an ExecCredential", 1),
        ("true", "answered without a status", 1),
    ] {
        let app = TestApp::of(unreachable(line), "shop", "default");
        let ran = sound(app.apply(&config_map("first", "1"), &[]), code);
        assert!(error(&ran).contains("credential plugin") && error(&ran).contains(words), "{line}: {}", error(&ran));
    }
}

fn a_plugin_that_would_ask_finds_nobody_and_ends() {
    let cluster = TestCluster::shared();
    let proxy = FaultProxy::start(cluster.kubeconfig_path());
    let pushback = Pushback::new();
    // A prompt that nobody answers is the end of the input at once.
    let line = format!("printf 'Password: ' >&2; read answer; {}", prints("first"));
    pushback.write("kubeconfig", with_plugin(&proxy.kubeconfig(), &line).to_string());
    pushback.write("app.yaml", config_map("first", "1"));
    let pushback = pushback.with("KUBECONFIG", "kubeconfig");
    let namespace = cluster.namespace("asks");
    let arguments = ["apply", "-a", "shop", "-n", &namespace, "-f", "app.yaml", "--yes", "-o", "json"];
    // A standard input that stays open and is no terminal: nobody is there, and the plugin must not wait for it.
    let mut command = pushback.command(&arguments);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("a run");
    let ended = poll(Duration::from_secs(60), || child.try_wait().expect("a child"));
    drop(child.kill());
    assert_eq!(ended.and_then(|status| status.code()), Some(0));
}

fn a_plugin_that_hangs_can_be_interrupted() {
    let pushback = unreachable("echo started > plugin-started; exec sleep 600");
    pushback.write("app.yaml", config_map("first", "1"));
    let arguments = ["apply", "-a", "shop", "-f", "app.yaml", "--yes", "-o", "json"];
    let run = Running::start(pushback.command(&arguments));
    wait_until("the plugin runs", Duration::from_secs(60), || {
        pushback.directory().join("plugin-started").exists().then_some(())
    });
    run.signal(Signal::TERM);
    sound(run.finish_within(Duration::from_secs(60)), 143);
}

fn a_certificate_that_does_not_hold_now_is_told_with_the_clock() {
    let authority = Authority::new().expect("an authority");
    for (from, to, words) in [(2001, 2002, "expired"), (2998, 2999, "not valid yet")] {
        let identity = authority.server_between(from, to).expect("a certificate");
        let server = HttpsServer::start_as(&authority, &identity, |_| (200, json!({})));
        let kubeconfig = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": {
                "server": format!("https://127.0.0.1:{}", server.port()),
                "certificate-authority-data": BASE64.encode(authority.certificate()),
            }}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "users": [{"name": "u", "user": {"token": SECRET_VALUE}}],
        });
        let pushback = Pushback::new();
        pushback.write("kubeconfig", kubeconfig.to_string());
        let app = TestApp::of(pushback.with("KUBECONFIG", "kubeconfig"), "shop", "default");
        let ran = sound(app.apply(&config_map("first", "1"), &[]), 13);
        let told = error(&ran);
        assert!(told.contains("by this machine's clock") && told.contains(words), "{told}");
        assert!(ran.events_of("retry").is_empty(), "no repetition makes it valid: {}", ran.stdout);
    }
}
