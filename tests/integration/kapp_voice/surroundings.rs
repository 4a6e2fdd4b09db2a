//! Under kapp's name: which cluster and which namespace a command is about, what standard input holds, what scripts see of
//! the end, and what is told of a webhook that does not answer. The texts are those of a real kapp on the same input.

use serde_json::json;

use super::session::Session;
use crate::support::apply::{annotated, config_map, config_map_path};
use crate::support::proxy::{FaultProxy, Verb, matching};
use crate::support::webhook::{Form, Verdict, Webhook};
use crate::support::{Pushback, Ran, TestCase, TestCluster, cases};

pub(super) fn tests() -> Vec<TestCase> {
    cases![
        ApiServer: the_namespace_is_that_of_the_flag_then_of_the_variable_then_of_the_context,
        ApiServer: the_cluster_is_that_of_the_flag_then_of_the_variable_then_of_kubectl,
        ApiServer: a_kubeconfig_can_be_given_as_text,
        ApiServer: input_from_standard_input_leaves_nobody_to_ask,
        ApiServer: exit_statuses_tell_whether_something_was_applied,
        ApiServer: what_is_given_twice_with_different_content_is_listed,
        ApiServer: what_an_object_lacks_is_listed,
        ApiServer: a_namespace_that_does_not_exist_is_told_before_the_changes_and_shown_by_a_diff,
        ApiServer: a_run_that_cannot_be_shown_writes_nothing,
        ApiServer: a_rename_of_an_app_that_does_not_exist_names_where_it_is,
        ApiServer: a_new_version_of_a_secret_is_shown_as_the_input_has_it,
        ApiServer: a_write_that_a_webhook_blocks_is_tried_until_its_time_is_over,
        ApiServer: app_whose_writes_all_failed_exists,
        ApiServer: warning_of_the_server_stands_at_the_write_unless_warnings_are_off,
        ApiServer: change_between_answer_and_write_ends_the_run,
        ApiServer: renewed_object_has_the_time_in_whole_seconds,
    ]
}

fn kapp() -> Pushback {
    Pushback::new().with("PUSHBACK_VOICE", "kapp")
}

/// A kubeconfig of the cluster whose context has a namespace.
fn kubeconfig(namespace: &str) -> String {
    let text = std::fs::read_to_string(TestCluster::shared().kubeconfig_path()).expect("a kubeconfig");
    let mut value: serde_json::Value = serde_yaml::from_str(&text).expect("YAML");
    value["contexts"][0]["context"]["namespace"] = json!(namespace);
    let mut other = value["contexts"][0].clone();
    other["name"] = json!("other");
    other["context"]["cluster"] = json!("none");
    value["contexts"].as_array_mut().expect("a list").push(other);
    value.to_string()
}

/// Three namespaces, each with an app that is named after it.
fn three_apps() -> [String; 3] {
    ["flag", "variable", "context"].map(|name| {
        let namespace = TestCluster::shared().namespace(name);
        let kapp = kapp().with("KUBECONFIG", TestCluster::shared().kubeconfig_path());
        kapp.write("app.yaml", config_map("one", "1"));
        kapp.run(&["deploy", "-a", name, "-n", &namespace, "-f", "app.yaml", "-y"]).expect(0);
        namespace
    })
}

/// The names of the apps that a list tells.
fn listed(ran: Ran) -> Vec<String> {
    let names = ran.expect(0).stdout;
    names.lines().filter_map(|line| Some(line.split('\t').next()?.trim().to_owned())).collect()
}

fn the_namespace_is_that_of_the_flag_then_of_the_variable_then_of_the_context() {
    let [flag, variable, context] = three_apps();
    let kapp = || {
        let kapp = kapp().with("KUBECONFIG", "config");
        kapp.write("config", kubeconfig(&context));
        kapp
    };
    assert_eq!(listed(kapp().run(&["list"])), ["context"]);
    let kapp = kapp().with("KAPP_NAMESPACE", variable.as_str());
    assert_eq!(listed(kapp.run(&["list"])), ["variable"]);
    assert_eq!(listed(kapp.run(&["list", "-n", &flag])), ["flag"]);
}

fn the_cluster_is_that_of_the_flag_then_of_the_variable_then_of_kubectl() {
    let [flag, variable, context] = three_apps();
    let with = |variables: &[(&str, &str)]| {
        let kapp = variables.iter().fold(kapp(), |kapp, (name, value)| kapp.with(name, *value));
        for (file, namespace) in [("flag", &flag), ("variable", &variable), ("kubectl", &context)] {
            kapp.write(file, kubeconfig(namespace));
        }
        kapp
    };
    assert_eq!(listed(with(&[("KUBECONFIG", "kubectl")]).run(&["list"])), ["context"]);
    let kapp = with(&[("KUBECONFIG", "kubectl"), ("KAPP_KUBECONFIG", "variable")]);
    assert_eq!(listed(kapp.run(&["list"])), ["variable"]);
    assert_eq!(listed(kapp.run(&["list", "--kubeconfig", "flag"])), ["flag"]);
    // The same order for the context.
    let kapp = with(&[("KUBECONFIG", "kubectl"), ("KAPP_KUBECONFIG_CONTEXT", "other")]);
    let refused = kapp.run(&["list"]).expect(1);
    assert!(refused.stderr.contains("context \"other\" names the cluster \"none\""), "{}", refused.stderr);
    assert_eq!(listed(kapp.run(&["list", "--kubeconfig-context", "test"])), ["context"]);
}

fn a_kubeconfig_can_be_given_as_text() {
    let namespace = TestCluster::shared().namespace("text");
    let text = kubeconfig(&namespace);
    let kapp = || kapp().with("KUBECONFIG", "/nonexistent");
    kapp().run(&["list"]).expect(1);
    let by_variable = kapp().with("KAPP_KUBECONFIG_YAML", text.as_str());
    by_variable.write("app.yaml", config_map("one", "1"));
    by_variable.run(&["deploy", "-a", "shop", "-f", "app.yaml", "-y"]).expect(0);
    assert_eq!(listed(by_variable.run(&["list"])), ["shop"]);
    assert_eq!(listed(kapp().run(&["list", "--kubeconfig-yaml", &text])), ["shop"]);
    // As kapp-controller gives it: the address is that of the cluster in which it runs.
    let server =
        serde_json::from_str::<serde_json::Value>(&text).expect("JSON")["clusters"][0]["cluster"]["server"].take();
    let address = server.as_str().and_then(|server| server.strip_prefix("https://")).expect("an address").to_owned();
    let (host, port) = address.rsplit_once(':').expect("a port");
    let placeholder = text.replace(&address, "${KAPP_KUBERNETES_SERVICE_HOST_PORT}");
    let inside = kapp().with("KAPP_KUBECONFIG_YAML", placeholder.as_str());
    let outside = inside.run(&["list"]).expect(1);
    assert!(outside.stderr.contains("KUBERNETES_SERVICE_HOST"), "{}", outside.stderr);
    let inside = inside.with("KUBERNETES_SERVICE_HOST", host).with("KUBERNETES_SERVICE_PORT", port);
    assert_eq!(listed(inside.run(&["list"])), ["shop"]);
    // It holds credentials.
    let broken = kapp().with("KAPP_KUBECONFIG_YAML", "users: [{name: a, user: {token: [marker-7f3a]}}]");
    for arguments in [&["list"][..], &["list", "--help"], &["list", "--debug"]] {
        let ran = broken.run(arguments);
        assert!(!(ran.stdout + &ran.stderr).contains("marker-7f3a"), "{arguments:?}");
    }
}

fn input_from_standard_input_leaves_nobody_to_ask() {
    let session = Session::on(TestCluster::shared());
    let deploy = ["deploy", "-a", "piped", "-f", "-"];
    let unanswered = session.answer(&deploy, &config_map("one", "1"));
    assert_eq!((unanswered.code, unanswered.stderr.as_str()), (1, "kapp: Error: Asking for confirmation:\n  EOF\n"));
    let told = session.answer(&[&deploy[..], &["-y"]].concat(), &config_map("one", "1"));
    assert!(told.code == 0 && told.stdout.ends_with("\nSucceeded\n"), "{}{}", told.stdout, told.stderr);
}

fn exit_statuses_tell_whether_something_was_applied() {
    let session = Session::on(TestCluster::shared());
    let deploy = ["deploy", "-a", "status", "-f", "in-6.yaml", "-y", "--apply-exit-status"];
    let changed = session.answer(&deploy, "");
    let expected = "kapp: Error: Exiting after applying with changes (exit status 3)\n";
    assert_eq!((changed.code, changed.stderr.as_str()), (3, expected));
    for complete in [": ---- applying complete [", ": ---- waiting complete ["] {
        assert!(changed.stdout.contains(complete), "{}", changed.stdout);
    }
    let unchanged = session.answer(&deploy, "");
    let expected = "kapp: Error: Exiting after applying with no changes (exit status 2)\n";
    assert_eq!((unchanged.code, unchanged.stderr.as_str()), (2, expected));
    assert!(!unchanged.stdout.contains("Succeeded") && !unchanged.stdout.contains("complete"), "{}", unchanged.stdout);
    let compared = session.answer(&[&deploy[..6], &["--diff-run", "--diff-exit-status"]].concat(), "");
    let expected = "kapp: Error: Exiting after diffing with no pending changes (exit status 2)\n";
    assert_eq!((compared.code, compared.stderr.as_str()), (2, expected));
    let deleted = session.answer(&["delete", "-a", "status", "-y", "--apply-exit-status"], "");
    assert!(deleted.code == 3 && deleted.stdout.contains(": ---- waiting complete ["), "{}", deleted.stdout);
}

fn what_is_given_twice_with_different_content_is_listed() {
    let session = Session::on(TestCluster::shared());
    session.write("one.yaml", &(config_map("one", "1") + &config_map("two", "1")));
    session.write("more.yaml", &(config_map("one", "2") + &config_map("two", "1")));
    let ran = session.answer(&["deploy", "-a", "a", "-f", "one.yaml", "-f", "more.yaml", "-y"], "");
    // Objects get their namespaces after that.
    let expected = "kapp: Error: Uniqueness errors:\n\
                    - Found resource 'configmap/one (v1) cluster' multiple times with different content\n";
    assert_eq!((ran.code, ran.stderr.as_str()), (1, expected));
}

fn what_an_object_lacks_is_listed() {
    let session = Session::on(TestCluster::shared());
    session.write("odd.yaml", "a: b\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {}\n");
    let deploy = |file: &str| session.answer(&["deploy", "-a", "a", "-f", file, "-y"], "").stderr;
    let line = |field: &str, object: &str, document: u8| {
        format!("- Expected '{field}' on resource '{object}' to be non-empty (file 'odd.yaml' doc {document})\n")
    };
    let expected = [
        "kapp: Error: Validation errors:\n".to_owned(),
        line("kind", "/ () cluster", 1),
        line("apiVersion", "/ () cluster", 1),
        line("metadata.name", "/ () cluster", 1),
        line("metadata.name", "configmap/ (v1) cluster", 2),
    ];
    assert_eq!(deploy("odd.yaml"), expected.concat());
    // Nothing is missing here, so that the place and the reason are told.
    session.write("odd.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, annotations: {x: y}}\n");
    let told = deploy("odd.yaml");
    assert!(told.starts_with("kapp: Error: odd.yaml:3:35: metadata.annotations.x must be a string"), "{told}");
    assert_eq!(deploy("absent.yaml"), "kapp: Error: stat absent.yaml: no such file or directory\n");
}

fn a_namespace_that_does_not_exist_is_told_before_the_changes_and_shown_by_a_diff() {
    let session = Session::on(TestCluster::shared());
    session.write("one.yaml", &config_map("one", "1"));
    let deploy = ["deploy", "-a", "early", "-f", "one.yaml", "-n", "not-yet-there", "-y"];
    let refused = session.answer(&deploy, "");
    let expected = "kapp: Error: namespaces \"not-yet-there\" not found\n";
    assert_eq!((refused.code, refused.stderr.as_str()), (1, expected));
    assert!(!refused.stdout.contains("Changes"), "{}", refused.stdout);
    let shown = session.answer(&[&deploy[..], &["--diff-run"]].concat(), "");
    assert!(shown.code == 0 && shown.stdout.ends_with("\nSucceeded\n"), "{}{}", shown.stdout, shown.stderr);
    assert!(shown.stdout.contains("Op:      1 create,"), "{}", shown.stdout);
    let warning = "Warning: the server refuses ConfigMap not-yet-there/one";
    assert!(shown.stdout.contains(warning), "{}", shown.stdout);
}

fn a_run_that_cannot_be_shown_writes_nothing() {
    let session = Session::on(TestCluster::shared());
    let deploy = ["deploy", "-a", "columns", "-f", "in-6.yaml", "-y"];
    let refused = session.answer(&[&deploy[..], &["--column", "op,nope"]].concat(), "");
    assert_eq!((refused.code, refused.stderr.as_str()), (1, "kapp: Error: Failed to find header: nope\n"));
    assert!(!refused.stdout.contains("applying"), "{}", refused.stdout);
    let shown = session.answer(&[&deploy[..], &["--column", "name,op"]].concat(), "");
    assert!(shown.code == 0 && shown.stdout.contains("create"), "{}{}", shown.stdout, shown.stderr);
}

fn a_rename_of_an_app_that_does_not_exist_names_where_it_is() {
    let cluster = TestCluster::shared();
    let (there, elsewhere) = (cluster.namespace("there"), cluster.namespace("elsewhere"));
    let kapp = kapp().with("KUBECONFIG", cluster.kubeconfig_path());
    kapp.write("one.yaml", config_map("one", "1"));
    kapp.run(&["deploy", "-a", "gone-elsewhere", "-f", "one.yaml", "-n", &there, "-y"]).expect(0);
    let ran = kapp.run(&["rename", "-a", "gone-elsewhere", "--new-name", "x", "-n", &elsewhere, "-y"]).expect(1);
    let expected = format!(
        "kapp: Error: App 'gone-elsewhere' (namespace: {elsewhere}) does not exist (hint: found app \
         'gone-elsewhere' in other namespaces: {there})\n"
    );
    assert_eq!(ran.stderr, expected);
}

fn a_new_version_of_a_secret_is_shown_as_the_input_has_it() {
    let session = Session::on(TestCluster::shared());
    let deploy = |value: &str, show: &str| {
        let text = format!(
            "apiVersion: v1\nkind: Secret\nmetadata: {{name: login, annotations: {{kapp.k14s.io/versioned: ''}}}}\n\
             stringData: {{key: {value}}}\n"
        );
        session.write("secret.yaml", &text);
        session.answer(&["deploy", "-a", "versions", "-f", "secret.yaml", "-y", show], "").stdout
    };
    deploy("one", "-c");
    let told = deploy("two", "-c");
    for line in ["stringData:", "-   key: <-- value not shown (#1)", "+   key: <-- value not shown (#2)"] {
        assert!(told.contains(line), "{line}: {told}");
    }
    let told = deploy("three", "--diff-changes-yaml");
    let (_, yaml) = told.split_once("# create: secret/login-ver-3").expect("the new version");
    let (yaml, _) = yaml.split_once("Changes").expect("the table");
    assert!(yaml.contains("name: login-ver-3\n") && yaml.contains("stringData:\n"), "{yaml}");
    assert!(!yaml.contains("uid:") && !yaml.contains("creationTimestamp"), "{yaml}");
}

fn a_write_that_a_webhook_blocks_is_tried_until_its_time_is_over() {
    let cluster = TestCluster::shared();
    let session = Session::on(cluster);
    let blocked = cluster.namespace("blocked");
    let mut webhook = Webhook::start(&[], |_| Verdict::Allow);
    let registered = webhook.register(cluster, Form::Validating, &blocked, json!({}));
    webhook.stop();
    // The record is where no webhook is asked.
    let deploy =
        ["deploy", "-a", "shop", "-n", &blocked, "--app-namespace", session.namespace(), "-f", "in-6.yaml", "-y"];
    let ran = session.answer(&[&deploy[..], &["--apply-timeout", "3s"]].concat(), "");
    let object = format!("configmap/cfg (v1) namespace: {blocked}");
    let start = format!(
        "kapp: Error: Timed out waiting after 3s:\n  Last error: create {object}:\n    Creating resource {object}:\n      \
         API server says:\n        Internal error occurred: failed calling webhook \"{blocked}.webhook.example\": failed \
         to call webhook:\n          Post \"https://127.0.0.1:"
    );
    assert_eq!(ran.code, 1, "{}", ran.stdout);
    assert!(ran.stderr.starts_with(&start) && ran.stderr.ends_with(" (reason: InternalError)\n"), "{}", ran.stderr);
    let told = format!(":  ^ Retryable error: Creating resource {object}: API server says: Internal error occurred: ");
    assert_eq!(ran.stdout.matches(&told).count(), 1, "{}", ran.stdout);
    drop(registered);
}

fn app_whose_writes_all_failed_exists() {
    let session = Session::on(TestCluster::shared());
    session.write("app.yaml", &config_map("Upper", "1"));
    let ran = session.answer(&["deploy", "-a", "failed", "-f", "app.yaml", "-y"], "");
    assert_eq!(ran.code, 1, "{}", ran.stdout);
    assert_eq!(listed(session.answer(&["ls"], "")), ["failed"]);
    let changes = listed(session.answer(&["app-change", "list", "-a", "failed"], ""));
    assert_eq!(changes.len(), 1, "{changes:?}");
    session.write("app.yaml", &config_map("lower", "1"));
    session.answer(&["deploy", "-a", "failed", "-f", "app.yaml", "-y"], "").expect(0);
}

fn warning_of_the_server_stands_at_the_write_unless_warnings_are_off() {
    let session = Session::on(TestCluster::shared());
    let endpoints = |name: &str| {
        format!("apiVersion: v1\nkind: Endpoints\nmetadata: {{name: {name}, namespace: {}}}\n", session.namespace())
    };
    session.write("app.yaml", &endpoints("one"));
    let ran = session.answer(&["deploy", "-a", "warned", "-f", "app.yaml", "-y"], "").expect(0);
    let lines: Vec<&str> = ran.stdout.lines().collect();
    let warning = lines.iter().position(|line| line.starts_with("Warning: v1 Endpoints is deprecated"));
    let warning = warning.unwrap_or_else(|| panic!("no warning: {}", ran.stdout));
    assert!(lines[warning - 1].contains("applying 1 changes") && lines[warning + 1].contains("create endpoints/one"));
    session.write("app.yaml", &endpoints("two"));
    let ran = session.answer(&["deploy", "-a", "warned", "-f", "app.yaml", "-y", "--warnings=false"], "").expect(0);
    assert!(!ran.stdout.contains("Warning:") && !ran.stderr.contains("Warning:"), "{}{}", ran.stdout, ran.stderr);
}

fn change_between_answer_and_write_ends_the_run() {
    let cluster = TestCluster::shared();
    let namespace = cluster.namespace("between");
    let proxy = FaultProxy::start(cluster.kubeconfig_path());
    let kapp = Pushback::with_kubeconfig(&proxy.kubeconfig()).with("PUSHBACK_VOICE", "kapp");
    let deploy = |value: &str, answer: &str| {
        kapp.write("app.yaml", config_map("one", value));
        kapp.run_with_input(&["deploy", "-a", "shop", "-n", &namespace, "-f", "app.yaml"], answer.as_bytes())
    };
    deploy("1", "y\n").expect(0);
    let path = config_map_path(&namespace, "one");
    let object = format!("configmap/one (v1) namespace: {namespace}");

    let edited = path.clone();
    proxy.before(matching(Verb::Apply, "configmaps").named("one").first(1), move |_| {
        TestCluster::shared().api().merge_patch(&edited, &json!({"data": {"key": "theirs"}})).ok();
    });
    let ran = deploy("2", "y\ny\n").expect(1);
    let expected = format!(
        "kapp: Error: update {object}:
  Failed to update due to resource conflict (approved diff no longer matches):
    Updating resource {object}:
      API server says:
        Operation cannot be fulfilled on configmaps \"one\": the object has been modified; please apply your changes to \
         the latest version and try again (reason: Conflict):
          Recalculated diff:
  2,  2 -   key: theirs
  3,  2 +   key: \"2\"

"
    );
    assert_eq!(ran.stderr, expected);
    assert_eq!(ran.stdout.matches("Continue? [yN]:").count(), 1, "{}", ran.stdout);
    assert_eq!(cluster.api().get(&path).ok()["data"]["key"], "theirs");

    let deleted = path.clone();
    proxy.before(matching(Verb::Apply, "configmaps").named("one").first(1), move |_| {
        TestCluster::shared().api().delete(&deleted).ok();
    });
    let ran = deploy("3", "y\ny\n").expect(1);
    let expected = format!(
        "kapp: Error: update {object}:\n  Updating resource {object}:\n    API server says: configmaps \"one\" not found \
         (reason: NotFound)\n"
    );
    assert_eq!(ran.stderr, expected);
}

fn renewed_object_has_the_time_in_whole_seconds() {
    let session = Session::on(TestCluster::shared());
    session.write("app.yaml", &annotated("one", &[("kapp.k14s.io/renew-duration", "1ms")]));
    let deploy = ["deploy", "-a", "renewed", "-f", "app.yaml", "-y", "-c"];
    session.answer(&deploy, "").expect(0);
    let ran = session.answer(&deploy, "").expect(0);
    let line = ran.stdout.lines().find(|line| line.contains("+     kapp.k14s.io/last-renewed-time:"));
    let line = line.unwrap_or_else(|| panic!("not renewed: {}", ran.stdout));
    let time = line.split('"').nth(1).expect("a time");
    assert_eq!(time.len(), "2026-01-01T00:00:00Z".len(), "{line}");
}
