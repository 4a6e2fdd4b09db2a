//! What we show to a server to be let in is shown to nobody else, whatever the server, a proxy or a plugin says.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};

use crate::support::http::{self, kubeconfig, write_json};
use crate::support::markers::Markers;
use crate::support::{Pushback, TestCase, cases};

pub(super) fn tests() -> Vec<TestCase> {
    cases![
        Nothing: no_credential_is_shown_whatever_a_server_hands_back,
        Nothing: nothing_of_a_plugin_is_shown,
        Nothing: no_password_of_an_address_is_shown,
    ]
}

const MANIFEST: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";

/// A server that answers every request by repeating it.
fn repeating_server(status: u16, as_text: bool) -> String {
    let (_, server) = http::start(move |head, stream| {
        let said = head.join("; ");
        let authorization = head.iter().find(|line| line.to_ascii_lowercase().starts_with("authorization: basic "));
        let decoded = authorization.and_then(|line| BASE64.decode(&line["authorization: basic ".len()..]).ok());
        let said = format!("you sent {said} {}", String::from_utf8_lossy(&decoded.unwrap_or_default()));
        let warning =
            format!("warning: 299 - \"{}\"\r\nlocation: /{}\r\n", said.replace('"', ""), said.replace(' ', ""));
        if as_text {
            let length = said.len();
            return write!(stream, "HTTP/1.1 {status} No\r\n{warning}content-length: {length}\r\n\r\n{said}");
        }
        let status_object = json!({"kind": "Status", "apiVersion": "v1", "code": status, "message": said,
            "details": {"causes": [{"reason": "x", "field": "y", "message": said}]}});
        write_json(stream, status, &warning, &status_object)
    });
    server
}

fn run_all(pushback: &Pushback, markers: &mut Markers, title: &str, kubeconfig: &Path) {
    let kubeconfig = kubeconfig.display().to_string();
    for arguments in [
        &["diff", "-a", "x", "-f", "app.yaml", "-vvv"][..],
        &["apply", "-a", "x", "-f", "app.yaml", "--yes", "-o", "json"],
        &["list", "-vvv"],
    ] {
        let ran = pushback.run(&[arguments, &["--kubeconfig", &kubeconfig]].concat());
        assert!(!ran.stderr.contains("panicked") && ran.code != 0, "{title}: {ran:?}");
        markers.look_at_run(&format!("{title}, {}", arguments[0]), &ran);
    }
}

fn no_credential_is_shown_whatever_a_server_hands_back() {
    let mut markers = Markers::default();
    let pushback = Pushback::new().with("RUST_LOG", "trace").with("RUST_BACKTRACE", "full");
    pushback.write("app.yaml", MANIFEST);
    let (token, in_file) = (markers.value("token"), markers.value("token file"));
    let (password, of_plugin) = (markers.value("password"), markers.value("token of a plugin"));
    let id_token = format!(
        "{}.{}.{}",
        BASE64.encode(r#"{"alg":"none"}"#).trim_end_matches('='),
        BASE64.encode(r#"{"exp":9999999999}"#).trim_end_matches('='),
        markers.value("id-token")
    );
    let token_file = pushback.place().join("token");
    std::fs::write(&token_file, format!("{in_file}\n")).expect("a file");
    let credential = json!({"kind": "ExecCredential", "apiVersion": "client.authentication.k8s.io/v1",
        "status": {"token": of_plugin}});
    let plugin = json!({"apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Never",
        "command": "sh", "args": ["-c", format!("echo '{credential}'")]});
    for (number, (status, as_text)) in
        [(401, false), (403, false), (403, true), (400, true), (422, false), (302, true), (500, false)]
            .iter()
            .enumerate()
    {
        let server = repeating_server(*status, *as_text);
        for (name, user) in [
            ("token", json!({"token": token})),
            ("tokenFile", json!({"tokenFile": token_file})),
            ("basic", json!({"username": "me", "password": password})),
            ("plugin", json!({"exec": plugin})),
            ("oidc", json!({"auth-provider": {"name": "oidc", "config": {"id-token": id_token}}})),
        ] {
            // Repetitions take their time, and once is enough.
            if *status == 500 && name != "token" {
                continue;
            }
            let path = kubeconfig(&pushback, &format!("{name}-{number}"), &server, &json!({}), &user);
            run_all(&pushback, &mut markers, &format!("{name} answered with {status}"), &path);
        }
    }
    let secret_files = |path: &Path| path.ends_with("token") || path.extension().is_some_and(|end| end == "kubeconfig");
    let root = pushback.place().to_owned();
    markers.look_below(&root, secret_files);
    markers.assert_hidden(140);
}

fn nothing_of_a_plugin_is_shown() {
    let mut markers = Markers::default();
    let pushback = Pushback::new();
    pushback.write("app.yaml", MANIFEST);
    let (server, key) = (repeating_server(403, false), markers.value("key of a plugin"));
    let (out, error, argument) = (markers.value("stdout"), markers.value("stderr"), markers.value("an argument"));
    let environment = markers.value("the environment of a plugin");
    for (number, script) in [
        format!("echo {out}; echo {error} >&2; exit 1"),
        format!("echo {out}; echo {error} >&2"),
        format!("echo '{{\"status\": {{\"token\": [\"{out}\"]}}}}'; echo {error} >&2"),
        format!("echo '{{\"status\": {{\"token\": \"{out}\", \"expirationTimestamp\": \"{error}\"}}}}'"),
        format!("echo '{{\"status\": {{\"clientCertificateData\": \"{out}\", \"clientKeyData\": \"{key}\"}}}}'"),
        format!("echo 'kind: {out}'; echo {error} >&2; kill -9 $$"),
    ]
    .iter()
    .enumerate()
    {
        let exec = json!({"apiVersion": "client.authentication.k8s.io/v1", "command": "sh",
            "args": ["-c", script, argument], "env": [{"name": "PLUGIN_SECRET", "value": environment}]});
        let path = kubeconfig(&pushback, &format!("plugin-{number}"), &server, &json!({}), &json!({"exec": exec}));
        run_all(&pushback, &mut markers, script.split(' ').next_back().unwrap_or_default(), &path);
    }
    markers.assert_hidden(36);
}

fn no_password_of_an_address_is_shown() {
    let mut markers = Markers::default();
    let pushback = Pushback::new();
    pushback.write("app.yaml", MANIFEST);
    let (proxy, variable) = (markers.value("proxy-url"), markers.value("HTTPS_PROXY"));
    let (user, query, fragment) = (markers.value("user of a URL"), markers.value("query"), markers.value("fragment"));
    let (key, authority) = (markers.value("client key"), markers.value("certificate authority"));
    let in_file = markers.value("in a file that is no kubeconfig");
    let server = repeating_server(407, true);
    let behind = |port: &str| format!("http://me:{proxy}@127.0.0.1:{port}");
    let port = server.rsplit(':').next().unwrap_or_default().to_owned();
    let unused = json!({});
    let pem = |text: &str| BASE64.encode(format!("-----BEGIN PRIVATE KEY-----\n{text}\n-----END PRIVATE KEY-----\n"));
    let cases: [(&str, &str, Value, Value, i32); 6] = [
        ("a proxy that repeats", "https://api.example", json!({"proxy-url": behind(&port)}), unused.clone(), 13),
        ("no proxy there", "https://api.example", json!({"proxy-url": behind("1")}), unused.clone(), 13),
        (
            "an odd proxy",
            "https://api.example",
            json!({"proxy-url": format!("ftp://me:{proxy}@host")}),
            unused.clone(),
            1,
        ),
        (
            "a broken key",
            &server,
            unused.clone(),
            json!({"client-certificate-data": pem(&key), "client-key-data": pem(&key)}),
            1,
        ),
        (
            "a broken authority",
            "https://api.example",
            json!({"certificate-authority-data": BASE64.encode(&authority)}),
            unused.clone(),
            1,
        ),
        ("credentials in the address", "https://me:USER@127.0.0.1:1/", unused.clone(), unused.clone(), 13),
    ];
    for (title, server, cluster, user_fields, code) in cases {
        let server = server.replace("USER", &user);
        let path = kubeconfig(&pushback, &title.replace(' ', "-"), &server, &cluster, &user_fields);
        let ran = pushback.run(&["list", "-vvv", "--kubeconfig", &path.display().to_string()]);
        assert_eq!(ran.code, code, "{title}");
        markers.look_at_run(title, &ran);
    }
    // A proxy of the environment, for the cluster and for `-f`.
    let path = kubeconfig(&pushback, "plain", "https://api.example", &json!({}), &json!({}));
    let shown = path.display().to_string();
    let pushback = pushback
        .with("HTTPS_PROXY", format!("http://me:{variable}@127.0.0.1:{port}"))
        .with("https_proxy", format!("http://me:{variable}@127.0.0.1:{port}"));
    for arguments in [
        &["list", "-vvv", "--kubeconfig", &shown][..],
        &[
            "diff",
            "-a",
            "x",
            "-vvv",
            "--cluster",
            "dir:live",
            "-f",
            &format!("https://me:{user}@api.example/?a={query}"),
        ],
        &[
            "diff",
            "-a",
            "x",
            "-vvv",
            "--cluster",
            "dir:live",
            "-f",
            &format!("https://{user}@127.0.0.1:1/?{query}#{fragment}"),
        ],
        &["diff", "-a", "x", "--cluster", "dir:live", "-f", &format!("ftp://me:{user}@host/?{query}#{fragment}")],
        &["diff", "-a", "x", "--cluster", "dir:live", "-f", &format!("https://me:{user}@ho st/?{query}#{fragment}")],
        // Arguments that are none: the parser repeats them.
        &["diff", "-a", "x", &format!("https://me:{user}@host/?{query}#{fragment}")],
        &["diff", "-a", "x", "-o", "json", &format!("--url=https://me:{user}@host/?{query}#{fragment}")],
    ] {
        let ran = pushback.run(arguments);
        assert_ne!(ran.code, 0, "{arguments:?}: {ran:?}");
        markers.look_at_run(&arguments[..3].join(" "), &ran);
    }
    for text in [
        format!("users: [{{name: u, user: {{token: {{a: {in_file}}}}}}}]"),
        in_file.clone(),
        format!("users: [\"{in_file}"),
        format!("apiVersion: v1\nusers:\n- name: u\n  user: {{token: {in_file}, {in_file}}}\n - x"),
        format!(
            "clusters: [{{name: test, cluster: {{server: 'https://[{in_file}'}}}}]\ncurrent-context: a\n\
                 contexts: [{{name: a, context: {{cluster: test}}}}]"
        ),
    ] {
        let broken = pushback.place().join("broken.kubeconfig");
        std::fs::write(&broken, text).expect("a file");
        let ran = pushback.run(&["list", "-vvv", "--kubeconfig", &broken.display().to_string()]).expect(1);
        markers.look_at_run("a broken kubeconfig", &ran);
    }
    markers.assert_hidden(36);
}
