//! Secret values are seen by nobody: markers are planted wherever one can be, everything is done with them that can be
//! done and that can fail, and then they are looked for in all that was said and written.

mod credentials;

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};

use crate::support::markers::Markers;
use crate::support::webhook::{Form, Verdict, Webhook};
use crate::support::{Pushback, TestCase, TestCluster, cases, wait_until};

pub(crate) fn tests() -> Vec<TestCase> {
    let cases = cases![
        ApiServer: no_secret_value_is_shown_by_a_cluster_or_stored_in_a_record,
        Nothing: no_secret_value_leaves_its_file_in_a_folder,
        Nothing: no_error_of_the_loader_quotes_a_value,
    ];
    [cases, credentials::tests()].concat()
}

/// Secrets of every sort, with new values each time.
fn secrets(markers: &mut Markers) -> String {
    let mut value = |name: &str| markers.value(name);
    let registry = json!({"auths": {"registry.example": {"username": "robot", "password": value("registry")}}});
    let in_data = BASE64.encode(value("data"));
    let twice = BASE64.encode(BASE64.encode(value("base64 of base64")));
    let (string, quoted, line) = (value("stringData"), value("quoted"), value("a line of several"));
    let (in_list, annotated) = (value("in a List"), value("in an annotation"));
    let copy = json!({"kind": "Secret", "stringData": {"a": annotated}}).to_string();
    format!(
        "\
apiVersion: v1
kind: Secret
metadata: {{name: plain}}
stringData:
  password: {string}
  quoted: \"a \\\"{quoted}\\\"\\tb\\\\\"
  key: |
    -----BEGIN PRIVATE KEY-----
    {line}
    -----END PRIVATE KEY-----
---
apiVersion: v1
kind: Secret
metadata: {{name: encoded}}
data: {{password: {in_data}, twice: {twice}}}
---
apiVersion: v1
kind: List
items:
- {{apiVersion: v1, kind: Secret, metadata: {{name: listed}}, stringData: {{token: {in_list}}}}}
---
apiVersion: v1
kind: Secret
metadata: {{name: registry}}
type: kubernetes.io/dockerconfigjson
data: {{.dockerconfigjson: {}}}
---
apiVersion: v1
kind: Secret
metadata:
  name: copied
  annotations: {{kubectl.kubernetes.io/last-applied-configuration: '{copy}'}}
stringData: {{a: b}}
",
        BASE64.encode(registry.to_string()),
    )
}

/// A custom resource with values that a Config declares secret.
fn login(group: &str, markers: &mut Markers) -> String {
    let (password, token) = (markers.value("masked by rule"), markers.value("masked by rule, in a list"));
    format!(
        "\
---
apiVersion: {group}/v1
kind: Login
metadata: {{name: db}}
spec: {{user: robot, password: {password}, tokens: [{token}]}}
"
    )
}

fn mask_rules(group: &str) -> String {
    let rule = |field: &str| {
        format!(
            "- path: [spec, {field}]\n  resourceMatchers:\n  - apiVersionKindMatcher: {{apiVersion: {group}/v1, kind: Login}}\n"
        )
    };
    format!("apiVersion: pushback.dev/v1alpha1\nkind: Config\ndiffMaskRules:\n{}{}", rule("password"), rule("tokens"))
}

fn definition(group: &str) -> Value {
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("logins.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced", "names": {"plural": "logins", "singular": "login", "kind": "Login"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": any}}],
        },
    })
}

/// One user of one app, and all that was ever said to them.
struct Place {
    pushback: Pushback,
    markers: Markers,
    common: Vec<String>,
}

impl Place {
    /// Runs a command as people and as programs would, with everything that can be asked for.
    fn run(&mut self, arguments: &[&str]) -> Vec<i32> {
        let own: Vec<String> = self.common.clone();
        let common: Vec<&str> = own.iter().map(String::as_str).collect();
        let mut codes = Vec::new();
        for how in [&["-vvv", "-o", "plain"][..], &["-vvv", "-o", "json"]] {
            let all = [arguments, &common, how].concat();
            let ran = self.pushback.run(&all);
            codes.push(ran.code);
            assert!(!ran.stderr.contains("panicked"), "{}", ran.stderr);
            self.markers.look_at_run(&all.join(" "), &ran);
        }
        codes
    }

    /// Everything that looks at an input, then what writes it.
    fn look_and_apply(&mut self) -> Vec<i32> {
        let input = ["-f", "app.yaml", "--config", "config.yaml"];
        self.run(&[&["diff"][..], &input].concat());
        self.run(&[&["diff", "-c"][..], &input].concat());
        self.run(&[&["check", "--report", "json=report.json", "--facts-out", "facts.json"][..], &input].concat());
        self.run(&[&["apply", "--yes", "--wait-timeout=60s", "--report", "json=apply.json"][..], &input].concat())
    }
}

fn no_secret_value_is_shown_by_a_cluster_or_stored_in_a_record() {
    let cluster = TestCluster::shared();
    let namespace = cluster.namespace("secrets");
    let group = format!("{namespace}.example");
    let definition = definition(&group);
    cluster.api().apply(&definition).ok();
    let mut markers = Markers::default();
    // What is there before, written by kubectl with its copy of the whole.
    let before = markers.value("before, by kubectl");
    let copy = json!({"apiVersion": "v1", "kind": "Secret", "stringData": {"password": before}}).to_string();
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "stringData": {"password": before, "gone": before},
        "metadata": {"name": "plain", "namespace": namespace,
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": copy}},
    });
    let path = format!("/api/v1/namespaces/{namespace}/secrets?fieldManager=kubectl-client-side-apply");
    cluster.api().post(&path, &secret).ok();
    let sample = json!({"apiVersion": format!("{group}/v1"), "kind": "Login",
        "metadata": {"name": "x", "namespace": namespace}});
    wait_until("logins are served", std::time::Duration::from_secs(60), || cluster.api().serves(&sample).then_some(()));

    let pushback = Pushback::on(cluster).with("RUST_BACKTRACE", "full").with("RUST_LOG", "trace");
    let common = ["-a", "shop", "-n", &namespace].map(str::to_owned).to_vec();
    let mut place = Place { pushback, markers, common };
    place.pushback.write("config.yaml", mask_rules(&group));

    // Twice: what is created, then what is changed.
    for _ in 0..2 {
        let input = secrets(&mut place.markers) + &login(&group, &mut place.markers);
        place.pushback.write("app.yaml", &input);
        assert_eq!(place.look_and_apply(), [0, 0]);
    }
    place.run(&["inspect", "--tree", "--status"]);
    let common = std::mem::take(&mut place.common);
    place.common = vec!["-n".to_owned(), namespace.clone()];
    place.run(&["list"]);
    place.common = common;

    refused_by_the_server(&mut place, &group);
    refused_by_a_webhook(&mut place, cluster, &namespace, &group);

    assert_eq!(place.run(&["delete", "--yes", "--wait-timeout=60s", "--config", "config.yaml"])[0], 0);
    for kind in ["configmaps", "events"] {
        for object in cluster.api().list(&format!("/api/v1/namespaces/{namespace}/{kind}")) {
            place.markers.look_at(&format!("a stored {kind}"), object.to_string().as_bytes());
        }
    }
    look_at_files(&mut place, &["app.yaml"]);
    cluster.api().delete(&cluster.api().path_of(&definition)).ok();
    place.markers.assert_hidden(100);
}

/// Everything below the place but the inputs.
fn look_at_files(place: &mut Place, kept: &[&str]) {
    let root = place.pushback.place().to_owned();
    place.markers.look_below(&root, |path| kept.iter().any(|name| path.ends_with(name)));
}

/// What an API server itself does not take.
fn refused_by_the_server(place: &mut Place, group: &str) {
    let frozen = |value: &str| {
        format!(
            "apiVersion: v1\nkind: Secret\nmetadata: {{name: frozen}}\nimmutable: true\nstringData: {{a: {value}}}\n"
        )
    };
    let good = place.pushback.read("app.yaml");
    let first = frozen(&place.markers.value("immutable"));
    place.pushback.write("app.yaml", format!("{good}---\n{first}"));
    assert_eq!(place.look_and_apply(), [0, 0]);
    let changed = frozen(&place.markers.value("immutable, changed"));
    let broken = place.markers.value("not base64");
    let (object, number) = (place.markers.value("no text"), place.markers.value("in a type"));
    let misspelt = place.markers.value("in a misspelt field");
    let tls = place.markers.value("tls");
    for (bad, code) in [
        (changed, 10),
        (format!("apiVersion: v1\nkind: Secret\nmetadata: {{name: bad}}\ndata: {{a: '%{broken}%'}}\n"), 10),
        (format!("apiVersion: v1\nkind: Secret\nmetadata: {{name: bad}}\ndata: {{a: {{b: {object}}}}}\n"), 10),
        (format!("apiVersion: v1\nkind: Secret\nmetadata: {{name: bad}}\ndata: [{number}]\n"), 10),
        (format!("apiVersion: v1\nkind: Secret\nmetadata: {{name: bad}}\nstringDta: {{a: {misspelt}}}\n"), 10),
        (
            format!(
                "apiVersion: v1\nkind: Secret\nmetadata: {{name: bad}}\ntype: kubernetes.io/tls\nstringData: {{tls.crt: {tls}}}\n"
            ),
            10,
        ),
        (
            format!(
                "apiVersion: v1\nkind: Secret\nmetadata: {{name: bad}}\ntype: kubernetes.io/dockerconfigjson\n\
                 stringData: {{.dockerconfigjson: '{{\"{tls}'}}\n"
            ),
            10,
        ),
        (format!("apiVersion: {group}/v1\nkind: Login\nmetadata: {{name: bad}}\nspec: {tls}\n"), 0),
    ] {
        place.pushback.write("app.yaml", format!("{good}---\n{bad}"));
        let codes = place.look_and_apply();
        assert!(codes.iter().all(|found| *found == code || (*found == 1 && code == 10)), "{codes:?} for {bad}");
    }
    place.pushback.write("app.yaml", format!("{good}---\n{first}"));
    place.look_and_apply();
}

/// What a webhook says that quotes all that it was shown, in every way that comes to mind.
fn everything(request: &Value) -> String {
    let mut text = String::from("I was shown: ");
    for object in [&request["object"], &request["oldObject"]] {
        text.push_str(&format!("{object} and {:?} ", object.to_string()));
        let values = object["data"].as_object().into_iter().flatten().filter_map(|(_, value)| value.as_str());
        for value in values {
            let decoded = BASE64.decode(value).unwrap_or_default();
            let decoded = String::from_utf8_lossy(&decoded);
            text.push_str(&format!("[{value}] [{decoded}] {decoded:?} {} ", Value::from(&*decoded)));
        }
    }
    text
}

fn refused_by_a_webhook(place: &mut Place, cluster: &TestCluster, namespace: &str, group: &str) {
    #[derive(Clone, Copy, PartialEq)]
    enum Mode {
        Allow,
        Warn,
        DenyDryRun,
        DenyWrite,
        DenyDelete,
    }
    let mode = std::sync::Arc::new(std::sync::Mutex::new(Mode::Allow));
    let asked = std::sync::Arc::clone(&mode);
    let webhook = Webhook::start(&[], move |request| {
        let mode = *asked.lock().expect("a mode");
        let dry_run = request["dryRun"] == true;
        let deletes = request["operation"] == "DELETE";
        match mode {
            _ if request["kind"]["kind"] == "ConfigMap" => Verdict::Allow,
            Mode::Warn => Verdict::Warn(everything(request)),
            Mode::DenyDryRun if dry_run => Verdict::Deny(everything(request)),
            Mode::DenyWrite if !dry_run && !deletes => Verdict::Deny(everything(request)),
            Mode::DenyDelete if deletes => Verdict::Deny(everything(request)),
            _ => Verdict::Allow,
        }
    });
    let rules = json!([{"apiGroups": ["", group], "apiVersions": ["*"], "resources": ["secrets", "logins", "configmaps"],
        "operations": ["CREATE", "UPDATE", "DELETE"], "scope": "Namespaced"}]);
    let registration = webhook.register(cluster, Form::Validating, namespace, json!({"rules": rules}));
    for (now, code) in [(Mode::Warn, 0), (Mode::DenyDryRun, 10), (Mode::DenyWrite, 20)] {
        *mode.lock().expect("a mode") = now;
        let input = secrets(&mut place.markers) + &login(group, &mut place.markers);
        place.pushback.write("app.yaml", &input);
        assert_eq!(place.look_and_apply()[0], code);
        assert!(!webhook.asked().is_empty());
    }
    // Deletes, of the app and by an input that lacks them.
    *mode.lock().expect("a mode") = Mode::DenyDelete;
    place.pushback.write("app.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: only}\n");
    assert_eq!(place.look_and_apply()[0], 20);
    assert_eq!(place.run(&["delete", "--yes", "--wait-timeout=60s", "--config", "config.yaml"])[0], 20);
    drop(registration);
}

fn no_secret_value_leaves_its_file_in_a_folder() {
    let mut markers = Markers::default();
    let environment = markers.value("of the environment");
    let pushback = Pushback::new().with("SECRET_TOKEN", environment).with("RUST_BACKTRACE", "full");
    std::fs::create_dir(pushback.place().join("tmp")).expect("a folder");
    let temporary = pushback.place().join("tmp");
    let pushback = pushback.with("TMPDIR", temporary);
    let common = ["-a", "shop", "-n", "shop", "--cluster", "dir:live"].map(str::to_owned).to_vec();
    let mut place = Place { pushback, markers, common };
    place.pushback.write("config.yaml", mask_rules("markers.example"));
    for _ in 0..2 {
        let definition = definition("markers.example");
        let input =
            secrets(&mut place.markers) + &login("markers.example", &mut place.markers) + &format!("---\n{definition}");
        place.pushback.write("app.yaml", &input);
        assert_eq!(place.look_and_apply(), [0, 0]);
    }
    place.run(&["inspect", "--tree", "--status"]);
    let holds_values = |path: &Path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        name == "app.yaml" || name.starts_with("secret_") || name.starts_with("login.markers.example_")
    };
    let root = place.pushback.place().to_owned();
    place.markers.look_below(&root, holds_values);
    // In a git ref.
    place.pushback.shell("git", &["init", "-q"]);
    place.pushback.shell("git", &["add", "live"]);
    place.pushback.shell("git", &["commit", "-qm", "live"]);
    place.common = ["-a", "shop", "-n", "shop", "--cluster", "git:HEAD:live"].map(str::to_owned).to_vec();
    let input = secrets(&mut place.markers) + &login("markers.example", &mut place.markers);
    place.pushback.write("app.yaml", &input);
    place.look_and_apply();
    place.common = ["-a", "shop", "-n", "shop", "--cluster", "dir:live"].map(str::to_owned).to_vec();
    assert_eq!(place.run(&["delete", "--yes", "--preflight=none"])[0], 0);
    place
        .markers
        .look_below(&root, |path| holds_values(path) || path.components().any(|part| part.as_os_str() == ".git"));
    place.markers.assert_hidden(60);
}

fn no_error_of_the_loader_quotes_a_value() {
    let mut markers = Markers::default();
    let m = markers.value("in a broken file");
    let mut inputs: Vec<Vec<u8>> = [
        "stringData: {password: \"M}\n",
        "stringData: {password: 'M\n",
        "stringData:\n  password: M\n bad: M\n",
        "stringData:\n\tpassword: M\n",
        "stringData: {p: *M}\n",
        "stringData: {p: !M x}\n",
        "stringData: {p: !!int M}\n",
        "stringData: {p: !!binary M%}\n",
        "stringData: {p: !!timestamp M}\n",
        "stringData: {p: !<M> x}\n",
        "stringData: {p: [M]}\n",
        "stringData: {p: {q: M}}\n",
        "stringData: [M]\n",
        "stringData: M\n",
        "stringData: {a: M, a: M}\n",
        "stringData:\n  password:M\n  b: c\n",
        "stringData:\n  - M\n  b: c\n",
        "stringData: \"M\\q\"\n",
        "stringData: {p: @M}\n",
        "stringData: {p: %M}\n",
        "stringData: {p: \u{1b}M}\n",
        "stringData: {<<: M}\n",
        "stringData: {p: {{ M }}}\n",
        "stringData: {p: &M *M}\n",
        "data: {p: M%}\n",
        "data: {p: 12M.5}\n",
        "data: M\n",
        "M\n",
        "metadata: M\n",
        "---\nM\n",
        "---\n- M\n",
        "---\n\"M\n",
        "...\nM: {\n",
    ]
    .iter()
    .map(|text| {
        let text = text.replace('M', &m);
        format!("apiVersion: v1\nkind: Secret\nmetadata: {{name: a}}\n{text}").into_bytes()
    })
    .collect();
    for json in [
        r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"},"stringData":{"a":"M\q"}}"#,
        r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"},"stringData":{"a":"M}"#,
        r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"},"stringData":{"a":M}}"#,
        r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"},"stringData":{"a":"M",}}"#,
        r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"},"data":{"a":"M" "M"}}"#,
        r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"},"data":{"a":["M"]}}"#,
    ] {
        inputs.push(json.replace('M', &m).into_bytes());
    }
    inputs.push([m.as_bytes(), b"\xff\xfe: x"].concat());
    inputs.push([b"\xfe\xff", m.as_bytes()].concat());
    let pushback = Pushback::new();
    let mut refused = 0;
    for input in &inputs {
        pushback.write("app.yaml", input);
        for arguments in [
            &["apply", "-a", "x", "-f", "app.yaml", "--cluster", "dir:live", "--yes", "-vvv"][..],
            &["diff", "-a", "x", "-f", "app.yaml", "--cluster", "dir:live", "-o", "json"],
            &["check", "-a", "x", "-f", "app.yaml", "--config", "app.yaml", "--cluster", "dir:live"],
        ] {
            let ran = pushback.run(arguments);
            assert!(!ran.stderr.contains("panicked"), "{}", ran.stderr);
            refused += usize::from(ran.code == 1);
            markers.look_at_run(&String::from_utf8_lossy(input).replace(&m, "M"), &ran);
        }
    }
    assert!(refused > inputs.len() * 2, "{refused} runs were refused");
    markers.assert_hidden(inputs.len() * 6);
}
