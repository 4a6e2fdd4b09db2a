//! What strangers can do to a user through a file, a URL, a kubeconfig or a name: little.

use std::path::Path;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::support::http::{self, kubeconfig, write_json};
use crate::support::https::{HttpsServer, Request};
use crate::support::terminal::run_at_terminal;
use crate::support::{Pushback, TestCase, cases};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        Nothing: what_may_hold_state_is_its_owners_alone,
        Nothing: a_credential_plugin_is_named_before_it_runs,
        Nothing: a_credential_plugin_that_is_not_allowed_is_not_run,
        Nothing: a_credential_plugin_reads_no_input_and_runs_once,
        Nothing: a_url_leads_to_manifests_over_https_alone,
        Nothing: a_url_with_a_digest_leads_to_that_content_alone,
        Nothing: no_credentials_follow_a_redirect_to_another_server,
        Nothing: nothing_that_a_terminal_acts_on_gets_through,
        Nothing: no_report_goes_where_a_link_leads,
        Nothing: a_full_disk_ends_the_writing_of_a_folder_at_once,
        Nothing: no_line_of_any_output_is_a_workflow_command,
        Nothing: a_kubeconfig_that_cannot_be_read_to_its_end_is_refused,
        Nothing: releases_are_built_so_that_a_number_that_wraps_stops_the_run,
    ]
}

const MANIFEST: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: b}\n";
const SECRET: &str = "---\napiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {a: b}\n";

#[cfg(unix)]
fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::metadata(path).unwrap_or_else(|error| panic!("{}: {error}", path.display())).permissions().mode() & 0o777
}

#[cfg(unix)]
fn what_may_hold_state_is_its_owners_alone() {
    let pushback = Pushback::new();
    pushback.write("app.yaml", format!("{MANIFEST}{SECRET}")).write("live/.keep", "");
    let ran = pushback.run_in_shell(
        "umask 022; $0 check -a x -f app.yaml --cluster dir:live --report json=report.json --facts-out facts.json &&
         $0 apply -a x -f app.yaml --cluster dir:live --yes --report json=applied.json",
    );
    assert_eq!(ran.code, 0, "{ran:?}");
    for file in
        ["report.json", "applied.json", "facts.json", "live/default/secret_s.yaml", "live/.pushback/default/x.yaml"]
    {
        assert_eq!(mode(&pushback.directory().join(file)), 0o600, "{file}");
    }
    let locks = pushback.place().join("home/.cache/pushback/locks");
    assert_eq!(mode(&locks), 0o700);
    for entry in locks.read_dir().expect("a folder") {
        let path = entry.expect("an entry").path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
    // What is no secret is as readable as any file of the user.
    assert_eq!(mode(&pushback.directory().join("live/default/configmap_a.yaml")), 0o644);
}

/// An API server that answers everything with 403, and a kubeconfig whose plugin leaves a note.
fn with_plugin(pushback: &Pushback, script: &str) -> (std::path::PathBuf, std::path::PathBuf) {
    let (_, server) = http::start(|_, stream| {
        let status = json!({"kind": "Status", "code": 403, "message": "forbidden: User \"u\" cannot get path"});
        write_json(stream, 403, "", &status)
    });
    let note = pushback.place().join("note");
    let plugin = pushback.place().join("bin/login");
    std::fs::create_dir_all(plugin.parent().expect("a folder")).expect("a folder");
    let text =
        format!("#!/bin/sh\necho run >> {}\n{script}\necho '{{\"status\":{{\"token\":\"t\"}}}}'\n", note.display());
    std::fs::write(&plugin, text).expect("a program");
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&plugin, executable).expect("a program");
    let exec = json!({"apiVersion": "client.authentication.k8s.io/v1", "command": plugin, "args": ["get-token"],
        "interactiveMode": "IfAvailable"});
    (kubeconfig(pushback, "plugin", &server, &json!({}), &json!({"exec": exec})), note)
}

fn a_credential_plugin_is_named_before_it_runs() {
    let pushback = Pushback::new();
    pushback.write("app.yaml", MANIFEST);
    // What the plugin says is on the screen after its name.
    let (kubeconfig, _) = with_plugin(&pushback, "echo PLUGIN-SPEAKS >&2");
    let kubeconfig = kubeconfig.display().to_string();
    let said = format!(
        "running the credential plugin {} with 1 argument, for user \"test\" of {kubeconfig}",
        pushback.place().join("bin/login").display()
    );
    for arguments in [
        &["list", "--kubeconfig", &kubeconfig][..],
        &["diff", "-a", "x", "-f", "app.yaml", "--kubeconfig", &kubeconfig],
    ] {
        let mut command = pushback.command(arguments);
        command.env("TERM", "xterm");
        let shown = run_at_terminal(command, 1000);
        let (named, spoke) = (shown.screen.find(&said), shown.screen.find("PLUGIN-SPEAKS"));
        assert!(named.is_some() && named < spoke, "{}", shown.screen);
        // Where the messages go to a log, the plugin's are left out.
        let ran = pushback.run(arguments);
        assert_eq!((ran.stderr.matches(&said).count(), ran.stderr.contains("PLUGIN-SPEAKS")), (1, false), "{ran:?}");
    }
    let ran = pushback.run(&["diff", "-a", "x", "-f", "app.yaml", "--kubeconfig", &kubeconfig, "-o", "json"]);
    let told = ran.events_of("diagnostic");
    let told = told.iter().find(|event| event["code"] == "credential-plugin");
    assert_eq!(told.map(|event| event["message"].as_str()), Some(Some(said.as_str())));
}

fn a_credential_plugin_that_is_not_allowed_is_not_run() {
    let pushback = Pushback::new();
    let (kubeconfig, note) = with_plugin(&pushback, "");
    let kubeconfig = kubeconfig.display().to_string();
    for allowed in ["none", "login", "aws,kubelogin", ""] {
        let ran = pushback.run(&["list", "--kubeconfig", &kubeconfig, "--credential-plugins", allowed]).expect(1);
        assert!(ran.stderr.contains("is not among those that --credential-plugins allows"), "{ran:?}");
    }
    assert!(!note.exists());
    let login = pushback.place().join("bin/login");
    let pushback = pushback.with("PUSHBACK_CREDENTIAL_PLUGINS", login.display().to_string());
    pushback.run(&["list", "--kubeconfig", &kubeconfig]).expect(13);
    assert!(note.exists());
}

fn a_credential_plugin_reads_no_input_and_runs_once() {
    let pushback = Pushback::new();
    let (kubeconfig, note) = with_plugin(&pushback, "cat >> \"$0.input\"");
    let kubeconfig = kubeconfig.display().to_string();
    let arguments = ["diff", "-a", "x", "-f", "-", "--kubeconfig", &kubeconfig];
    pushback.run_with_input(&arguments, MANIFEST.as_bytes()).expect(13);
    assert_eq!(std::fs::read_to_string(note).expect("a note"), "run\n");
    assert_eq!(std::fs::read_to_string(pushback.place().join("bin/login.input")).expect("a file"), "");
}

/// A server for manifests, trusted by the user.
fn manifests(
    pushback: Pushback,
    handler: impl Fn(&Request) -> (u16, Value) + Send + Sync + 'static,
) -> (Pushback, HttpsServer) {
    let server = HttpsServer::start(&[], handler);
    let authority = pushback.place().join(format!("authority-{}", server.port()));
    std::fs::write(&authority, server.certificate_authority()).expect("a file");
    (pushback.with("SSL_CERT_FILE", authority.display().to_string()), server)
}

fn config_map() -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"key": "fetched"}})
}

fn a_url_leads_to_manifests_over_https_alone() {
    let (_, plain) = http::start(|_, stream| write_json(stream, 200, "", &config_map()));
    let insecure = format!("{plain}/a.yaml");
    let (pushback, server) = manifests(Pushback::new(), move |request| match request.target.as_str() {
        "/a.yaml" => (200, config_map()),
        "/moved" => (302, json!("/a.yaml")),
        "/weaker" => (302, json!(insecure)),
        "/file" => (302, json!("file:///etc/passwd")),
        "/nowhere" => (302, json!("")),
        "/for-ever" => (307, json!("/for-ever")),
        "/huge" => (200, json!("x".repeat(65 << 20))),
        _ => (404, json!("gone")),
    });
    let at = |path: &str| format!("https://127.0.0.1:{}/{path}", server.port());
    let diff = |pushback: &Pushback, input: &str, more: &[&str]| {
        pushback.write("live/.keep", "");
        pushback.run(&[&["diff", "-a", "x", "--cluster", "dir:live", "-f", input][..], more].concat())
    };
    for path in ["a.yaml", "moved"] {
        assert!(diff(&pushback, &at(path), &["-c"]).expect(0).stdout.contains("fetched"));
    }
    for (input, expected) in [
        (at("weaker"), "a redirect from https to http is refused"),
        (at("file"), "a redirect from https to file is refused"),
        (at("for-ever"), "more than 5 redirects"),
        (at("huge"), "larger than 64 MiB"),
        (at("gone"), "the server answered 404 Not Found"),
        (format!("{plain}/a.yaml"), "http:// is refused"),
        ("file:///etc/passwd".to_owned(), "the scheme file:// is not supported"),
    ] {
        let ran = diff(&pushback, &input, &["--allow-http"][..usize::from(input.starts_with("https"))]).expect(1);
        assert!(ran.stderr.contains(expected), "{input}: {}", ran.stderr);
    }
    diff(&pushback, &format!("{plain}/a.yaml"), &["--allow-http"]).expect(0);
    // A server that nobody vouches for.
    let ran = diff(&Pushback::new(), &at("a.yaml"), &[]).expect(1);
    assert!(ran.stderr.contains("no trusted connection"), "{}", ran.stderr);
}

fn a_url_with_a_digest_leads_to_that_content_alone() {
    let (pushback, server) = manifests(Pushback::new(), |request| match request.target.as_str() {
        "/a.yaml" => (200, config_map()),
        "/moved" => (302, json!("/a.yaml")),
        _ => (200, policy()),
    });
    let at = |path: &str| format!("https://127.0.0.1:{}/{path}", server.port());
    pushback.write("live/.keep", "");
    let diff = |input: &str, more: &[&str]| {
        pushback.run(&[&["diff", "-a", "x", "--cluster", "dir:live", "-f", input][..], more].concat())
    };
    let pin = format!("sha256={}", digest(&config_map()));
    let other = format!("sha256={}", "0".repeat(64));
    for path in ["a.yaml", "moved"] {
        diff(&at(&format!("{path}#{pin}")), &[]).expect(0);
        let ran = diff(&at(&format!("{path}#{other}")), &[]).expect(1);
        assert!([&pin[7..], &other[7..]].iter().all(|digest| ran.stderr.contains(digest)), "{}", ran.stderr);
    }
    // A typing error pins nothing, so it is one. What else may stand there is not shown.
    for wrong in ["", "sha256=", "sha265=00", "hunter2", &pin[..pin.len() - 1], &format!("{pin}0")] {
        let ran = diff(&at(&format!("a.yaml#{wrong}")), &[]).expect(1);
        assert!(ran.stderr.contains("what stands behind the # is no digest"), "{}", ran.stderr);
        assert!(!ran.stderr.contains("hunter2"), "{}", ran.stderr);
    }
    let judged_by = |pin: &str| diff(&at("a.yaml"), &["--config", &at(&format!("policy.yaml#{pin}"))]);
    judged_by(&format!("sha256={}", digest(&policy()))).expect(0);
    assert!(judged_by(&other).expect(1).stderr.contains(&digest(&policy())));
    // A plan keeps the digest with the URL.
    let url = at(&format!("a.yaml#{pin}"));
    pushback.run(&["plan", "-a", "x", "--cluster", "dir:live", "--out", "x.plan", "-f", &url]).expect(0);
    assert!(pushback.read("x.plan").contains(&format!("\"--file\":[\"{url}\"]")), "{}", pushback.read("x.plan"));
    pushback.run(&["apply", "--plan", "x.plan", "--cluster", "dir:live"]).expect(0);
}

fn policy() -> Value {
    json!({"apiVersion": "pushback.dev/v1alpha1", "kind": "Config"})
}

/// Digest of an answer of the server.
fn digest(answer: &Value) -> String {
    pushback_objects::hex::encode(&Sha256::digest(answer.to_string()))
}

fn no_credentials_follow_a_redirect_to_another_server() {
    type Asked = Arc<Mutex<Vec<(String, Option<String>)>>>;
    let asked = Asked::default();
    let (seen_plain, seen) = (Arc::clone(&asked), Arc::clone(&asked));
    let (_, elsewhere) = http::start(move |head, stream| {
        let authorization = head.iter().find(|line| line.to_ascii_lowercase().starts_with("authorization:"));
        seen_plain.lock().expect("a list").push(("elsewhere".to_owned(), authorization.cloned()));
        write_json(stream, 200, "", &config_map())
    });
    let (_, first) = {
        let elsewhere = elsewhere.clone();
        http::start(move |head, stream| {
            let authorization = head.iter().find(|line| line.to_ascii_lowercase().starts_with("authorization:"));
            seen.lock().expect("a list").push(("first".to_owned(), authorization.cloned()));
            let target = if head[0].contains("/again") { elsewhere.clone() } else { "/again".to_owned() };
            write_json(stream, 302, &format!("location: {target}\r\n"), &json!({}))
        })
    };
    let pushback = Pushback::new();
    pushback.write("live/.keep", "");
    let input = first.replace("http://", "http://me:hunter2@") + "/a.yaml";
    pushback.run(&["diff", "-a", "x", "--cluster", "dir:live", "--allow-http", "-f", &input]).expect(0);
    let asked = asked.lock().expect("a list").clone();
    let with_credentials: Vec<bool> = asked.iter().map(|(_, authorization)| authorization.is_some()).collect();
    let servers: Vec<&str> = asked.iter().map(|(server, _)| server.as_str()).collect();
    assert_eq!(servers, ["first", "first", "elsewhere"]);
    assert!(with_credentials[0] && !with_credentials[2], "{asked:?}");
}

/// Colours, a window title, a clipboard, 8-bit controls, text that runs backwards, a bell, a line drawn over.
const EVIL: &str = "\u{1b}[31mred\u{1b}]0;title\u{7}\u{1b}]52;c;aGk=\u{1b}\\\u{9b}2J\u{9d}x\u{9c}\u{202e}txt\u{2066}\u{200b}\u{8}\rover\u{1b}P1$r\u{1b}\\";

#[track_caller]
fn assert_harmless(title: &str, text: &str) {
    let acts = |c: char| {
        (c.is_control() && c != '\n')
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    assert!(!text.chars().any(acts), "{title}: {text:?}");
}

fn nothing_that_a_terminal_acts_on_gets_through() {
    // Everything that the server says is evil, in a body as in a warning.
    let (_, server) = http::start(|head, stream| {
        let path = head[0].split(' ').nth(1).unwrap_or_default().to_owned();
        let metadata = json!({"name": format!("n{EVIL}"), "namespace": "default", "uid": "u", "resourceVersion": "1",
            "labels": {"kapp.k14s.io/is-app": "", "kapp.k14s.io/app": "1"}, "annotations": {EVIL: EVIL},
            "managedFields": [{"manager": EVIL, "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1",
                "fieldsV1": {"f:data": {"f:a": {}}}}]});
        let spec = json!({"labelKey": "kapp.k14s.io/app", "labelValue": EVIL, "lastChange": {"successful": true,
            "startedAt": EVIL, "finishedAt": EVIL, "namespaces": [EVIL]}, "usedGKs": [{"Group": "", "Kind": "ConfigMap"}]});
        let lock = json!({"holder": EVIL, "host": EVIL, "boot": "b", "process": 1, "run": EVIL, "since": EVIL,
            "leaseSeconds": 60, "renewals": 1});
        let record = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata,
            "data": {"spec": spec.to_string(), "pushback-lock": lock.to_string()}});
        let resource = |name: &str, kind: &str| json!({"name": name, "kind": kind, "namespaced": true, "singularName": "", "verbs": ["get", "list", "patch"]});
        // A header cannot hold everything, but it can hold eight-bit controls.
        let warning = "warning: 299 - \"w\u{9b}31m\u{202e}x\"\r\n";
        match path.split('?').next().unwrap_or_default() {
            "/version" => write_json(stream, 200, warning, &json!({"major": "1", "minor": "36", "gitVersion": EVIL})),
            "/api" => write_json(stream, 200, warning, &json!({"kind": "APIVersions", "versions": ["v1"]})),
            "/apis" => write_json(
                stream,
                200,
                warning,
                &json!({"kind": "APIGroupList", "groups": [
                {"name": format!("g{EVIL}"), "versions": [{"version": EVIL}]}]}),
            ),
            "/api/v1" => write_json(stream, 200, warning, &json!({"resources": [resource("configmaps", "ConfigMap")]})),
            "/api/v1/namespaces/default/configmaps" => {
                write_json(stream, 200, warning, &json!({"kind": "ConfigMapList", "metadata": {}, "items": [record]}))
            }
            "/api/v1/namespaces/default/configmaps/locked" => write_json(stream, 200, warning, &record),
            _ => write_json(
                stream,
                422,
                warning,
                &json!({"kind": "Status", "code": 422, "reason": EVIL, "message": EVIL,
                "details": {"name": EVIL, "causes": [{"reason": EVIL, "field": EVIL, "message": EVIL}]}}),
            ),
        }
    });
    let pushback = Pushback::new();
    let annotated = MANIFEST.replace("{name: a}", &format!("{{name: a, annotations: {{e: {}}}}}", Value::from(EVIL)));
    pushback.write("app.yaml", &annotated);
    let exec_user = json!({"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": format!("/x{EVIL}"),
        "installHint": EVIL, "interactiveMode": "Never"}});
    let evil_user = kubeconfig(&pushback, "exec", &server, &json!({}), &exec_user).display().to_string();
    let plain = kubeconfig(&pushback, "plain", &server, &json!({}), &json!({})).display().to_string();
    let evil_folder = format!("dir:live{EVIL}");
    let evil_file = format!("{EVIL}.yaml");
    for arguments in [
        &["list", "--kubeconfig", &plain][..],
        &["list", "--kubeconfig", &evil_user],
        &["inspect", "-a", "locked", "--tree", "--status", "--kubeconfig", &plain],
        &["diff", "-a", "x", "-f", "app.yaml", "-c", "--kubeconfig", &plain, "-vvv"],
        &["apply", "-a", "locked", "-f", "app.yaml", "--yes", "--lock-wait", "1s", "--kubeconfig", &plain],
        &["diff", "-a", "x", "-f", "app.yaml", "-c", "--cluster", &evil_folder],
        &["diff", "-a", "x", "-f", &evil_file, "--cluster", "dir:live"],
        &["diff", "-a", EVIL, "-f", "app.yaml", "--cluster", "dir:live"],
        &["diff", "-a", "x", "-f", "app.yaml", "--cluster", "dir:live", "--config", &evil_file],
        &["diff", "-a", "x", "-f", "app.yaml", "--cluster", "dir:live", EVIL],
        &["list", "--kubeconfig", &evil_file],
        &["list", "--kubeconfig", &plain, "--kubeconfig-context", EVIL],
    ] {
        let title = format!("{arguments:?}");
        for output in ["plain", "json"] {
            let ran = pushback.run(&[arguments, &["-o", output]].concat());
            assert!(!ran.stderr.contains("panicked"), "{ran:?}");
            assert_harmless(&title, &ran.stdout);
            assert_harmless(&title, &ran.stderr);
        }
        let mut command = pushback.command(&[arguments, &["-o", "tty"]].concat());
        command.env("TERM", "xterm");
        // A terminal that was acted on shows other text than was meant, or none.
        let shown = run_at_terminal(command, 200);
        assert!(!shown.screen.contains("panicked") && !shown.screen.is_empty(), "{title}");
        assert!(!shown.screen.lines().any(|line| line.starts_with("over")), "{title}: {}", shown.screen);
        assert_harmless(&title, &shown.screen);
    }
}

fn a_kubeconfig_that_cannot_be_read_to_its_end_is_refused() {
    let pushback = Pushback::new();
    pushback.shell("mkfifo", &["pipe"]);
    pushback.write("binary", b"\x7fELF\x02\x01\0\xff\xfe");
    pushback.write("cyclic", "a: &a [*a, *a]\nclusters: *a\n");
    pushback.write("empty", "");
    pushback.write("deep", "[".repeat(100_000));
    std::os::unix::fs::symlink("loop", pushback.directory().join("loop")).expect("a link");
    for (path, expected) in [
        ("pipe", "the kubeconfig pipe is no regular file"),
        ("/dev/zero", "the kubeconfig /dev/zero is no regular file"),
        ("binary", "cannot read binary: "),
        ("cyclic", "cyclic:1:"),
        ("empty", "no context is current in empty"),
        ("deep", "deep:1:"),
        ("loop", "cannot read the kubeconfig loop: "),
        (".", "the kubeconfig . is no regular file"),
        ("missing", "cannot read missing: no such file or directory"),
    ] {
        let ran = pushback.run(&["list", "--kubeconfig", path]).expect(1);
        assert!(ran.stderr.starts_with(&format!("error: {expected}")), "{path}: {}", ran.stderr);
    }
    // A list of files: what is missing is passed over, what is broken is not.
    let pushback = pushback.with("KUBECONFIG", "missing:empty:also-missing");
    let ran = pushback.run(&["list"]).expect(1);
    assert!(ran.stderr.contains("no context is current in empty"), "{}", ran.stderr);
    let pushback = pushback.with("KUBECONFIG", "missing:empty:cyclic");
    assert!(pushback.run(&["list"]).expect(1).stderr.contains("cyclic:1:"));
}

/// Whether the runner of GitHub Actions acts on a line: `::name properties::data` after blanks, or, as it was before,
/// `##[name properties]data` wherever it stands.
fn is_workflow_command(line: &str) -> bool {
    let now = line.trim_start().strip_prefix("::").and_then(|rest| rest.split_once("::"));
    let before = line.split_once("##[").and_then(|(_, rest)| rest.split_once(']'));
    let known =
        ["add-mask", "add-matcher", "debug", "endgroup", "error", "group", "notice", "stop-commands", "warning"];
    [now, before]
        .into_iter()
        .flatten()
        .any(|(command, _)| command.split(' ').next().is_some_and(|name| known.contains(&name.to_lowercase().as_str())))
}

fn no_line_of_any_output_is_a_workflow_command() {
    let pushback = Pushback::new();
    let hostile = "x\\n::stop-commands::y\\n  ##[group]z\\n::error file=a::b\\n";
    let manifests = |values: &str, last: &str| {
        format!(
            "apiVersion: v1
kind: ConfigMap
metadata: {{name: a, namespace: default}}
data: {{text: \"{hostile}{last}\"}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: foos.ex.com}}
spec:
  group: ex.com
  scope: Namespaced
  names: {{kind: Foo, plural: foos, singular: foo, listKind: FooList}}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {{openAPIV3Schema: {{type: object, properties: {{spec: {{type: object, properties: {{f: {{type: string, \
enum: [{values}]}}}}}}}}}}}}
"
        )
    };
    pushback.write("live/old.yaml", manifests(&format!("\"{hostile}\", b"), "old"));
    pushback.write("new.yaml", manifests("b", "new"));
    pushback.write("bad.yaml", format!("a: \"{hostile}\"\n"));
    let inputs = ["--cluster", "dir:live", "-f", "new.yaml"];
    for more in [
        &["check"][..],
        &["check", "-o", "plain"],
        &["check", "-o", "json"],
        &["check", "--report", "json=-"],
        &["check", "--report", "markdown=-"],
        &["check", "--report", "junit=-"],
        &["check", "--report", "sarif=-"],
        &["diff", "--diff-changes", "-o", "plain"],
        &["diff", "--diff-changes", "-o", "json"],
        &["apply", "-a", "x", "--diff-changes", "--yes", "-o", "plain"],
        &["check", "-f", "bad.yaml"],
        &["check", "-a", "x\n::error::y"],
        &["check", "--cluster", "git:##[error]x"],
        &["##[error]x"],
    ] {
        let arguments: Vec<&str> = more.iter().chain(&inputs).copied().collect();
        let ran = pushback.run(&arguments);
        let commands: Vec<&str> =
            ran.stdout.lines().chain(ran.stderr.lines()).filter(|line| is_workflow_command(line)).collect();
        assert_eq!(commands, Vec::<&str>::new(), "{more:?}");
    }
    // What is meant for the runner gets there, and nothing else with it.
    let ran = pushback.run(&[&["check", "-o", "plain", "--report", "github=-"][..], &inputs].concat());
    let commands: Vec<&str> = ran.stdout.lines().filter(|line| is_workflow_command(line)).collect();
    assert!(!commands.is_empty() && commands.iter().all(|line| line.starts_with("::error file=new.yaml,")), "{ran:?}");
}

fn no_report_goes_where_a_link_leads() {
    use std::os::unix::fs::symlink;
    let pushback = Pushback::new();
    pushback.write("app.yaml", MANIFEST).write("live/.keep", "");
    let outside = pushback.place().join("outside");
    let victim = outside.join("victim");
    std::fs::create_dir(&outside).expect("a folder");
    std::fs::write(&victim, "mine").expect("a file");
    // As they may come with a checkout.
    symlink(&victim, pushback.directory().join("report.json")).expect("a link");
    symlink(&outside, pushback.directory().join("out")).expect("a link");
    symlink("/dev/null", pushback.directory().join("device")).expect("a link");
    for (flag, path) in [
        ("--report", "json=report.json"),
        ("--report", "json=out/report.json"),
        ("--report", "json=out/new/report.json"),
        ("--report", "json=device"),
        ("--facts-out", "out/facts.json"),
        ("--witness-dir", "out"),
        ("--witness-dir", "out/witnesses"),
    ] {
        let ran = pushback.run(&["check", "--cluster", "dir:live", "-f", "app.yaml", flag, path]).expect(1);
        assert!(ran.stderr.contains("symbolic link"), "{flag} {path}: {}", ran.stderr);
    }
    // A link that is written to by its name is replaced, not followed.
    pushback.run(&["check", "--cluster", "dir:live", "-f", "app.yaml", "--facts-out", "report.json"]).expect(0);
    assert_eq!(std::fs::read_to_string(&victim).expect("a file"), "mine");
    assert_eq!(outside.read_dir().expect("a folder").count(), 1);
    // What the shell opens is no file of anybody.
    let ran = pushback.run_in_shell(
        "$0 check --cluster dir:live -f app.yaml --report json=/dev/fd/3 3>&1 >/dev/null | grep -c schemaVersion",
    );
    assert_eq!(ran.stdout.trim(), "1", "{ran:?}");
}

fn a_full_disk_ends_the_writing_of_a_folder_at_once() {
    let pushback = Pushback::new();
    let large = format!("{MANIFEST}---\n{}", MANIFEST.replace("{a: b}", &format!("{{a: {}}}", "x".repeat(100_000))));
    pushback.write("app.yaml", large.replacen("{name: a}", "{name: small}", 1));
    // No file may become larger than this: as on a disk with no more room, writing fails.
    let ran = pushback
        .run_in_shell("trap '' XFSZ; ulimit -f 16; exec $0 apply -a x -f app.yaml --cluster dir:live --yes -o json");
    assert_eq!(ran.code, 20, "{ran:?}");
    assert_eq!(ran.events_of("retry"), Vec::<Value>::new());
    let failed = ran.events_of("change.done").into_iter().find(|event| event["outcome"] == "failed");
    let message = failed.map(|event| event["message"].to_string()).unwrap_or_default();
    assert!(message.contains("configmap_a.yaml: cannot be written: file too large"), "{message}");
    // Nothing at all can be written: the record, which comes first, is not.
    let pushback = Pushback::new();
    pushback.write("app.yaml", MANIFEST);
    let ran = pushback
        .run_in_shell("trap '' XFSZ; ulimit -f 0; exec $0 apply -a x -f app.yaml --cluster dir:live --yes -o json");
    assert!(ran.stdout.contains("cannot be written: file too large"), "{ran:?}");
    assert_eq!((ran.code, ran.events_of("retry").len()), (13, 0), "{ran:?}");
}

fn releases_are_built_so_that_a_number_that_wraps_stops_the_run() {
    let manifest = include_str!("../../Cargo.toml");
    let (_, profile) = manifest.split_once("[profile.release]\n").expect("a profile for releases");
    let settings: Vec<&str> = profile.lines().take_while(|line| !line.starts_with('[')).collect();
    assert!(settings.contains(&"overflow-checks = true"), "{settings:?}");
    // A panic unwinds: locks and temporary files are given up on the way.
    assert!(!settings.iter().any(|line| line.starts_with("panic")), "{settings:?}");
}
