//! Runs that are about a part of an app: what the filters leave out is neither written nor pruned nor forgotten.

use std::time::Duration;

use serde_json::Value;

use crate::support::apply::{TestApp, annotated, config_map, config_map_path, error, planned, short};
use crate::support::pushback::Pushback;
use crate::support::{TestCase, TestCluster, cases, wait_until};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        ApiServer: an_apply_of_a_part_leaves_the_rest_as_it_is,
        ApiServer: a_change_that_is_filtered_out_is_not_made_and_its_object_stays_in_the_app,
        ApiServer: references_lead_to_the_newest_version_of_what_is_left_out,
        ApiServer: a_deletion_of_a_part_keeps_the_app,
        ApiServer: a_filter_that_selects_nothing_deletes_nothing,
        ApiServer: an_object_is_as_old_as_it_is_on_the_cluster,
        ApiServer: only_what_is_allowed_is_written,
        ApiServer: kinds_and_namespaces_select_what_is_deployed,
        ApiServer: a_deletion_is_shown_without_being_made,
        ApiServer: a_refused_object_does_not_keep_the_others_from_being_written,
        Controllers: what_controllers_have_made_is_deleted_where_it_is_asked_for,
        ApiServer: what_is_applied_is_printed_as_yaml,
        ApiServer: objects_are_printed_whole_with_secrets_masked,
        Controllers: endpoints_are_below_their_service,
        Nothing: in_a_folder_a_part_is_applied_the_same_way,
    ]
}

fn app(prefix: &str) -> TestApp {
    TestApp::new("shop", &TestCluster::shared().namespace(prefix))
}

impl TestApp {
    fn key_of(&self, name: &str) -> Value {
        let path = config_map_path(&self.namespace, name);
        TestCluster::shared().api().get(&path).body["data"]["key"].clone()
    }
}

fn maps(value: &str, names: &[&str]) -> String {
    names.iter().map(|name| config_map(name, value)).collect()
}

fn an_apply_of_a_part_leaves_the_rest_as_it_is() {
    let app = app("part");
    app.apply(&maps("1", &["web-a", "web-b", "db", "gone"]), &[]).expect(0);
    let input = maps("2", &["web-a", "db", "new"]);
    let ran = app.apply(&input, &["--filter-name", "web-*"]).expect(0);
    assert_eq!(planned(&ran), ["update ConfigMap web-a", "delete ConfigMap web-b"]);
    assert_eq!((app.key_of("web-a"), app.key_of("db"), app.key_of("gone")), ("2".into(), "1".into(), "1".into()));
    assert_eq!(app.inspected(), ["ConfigMap db", "ConfigMap gone", "ConfigMap web-a"]);
    // Nothing was forgotten: the whole input finds what is left to do, and no more.
    let ran = app.apply(&input, &[]).expect(0);
    assert_eq!(planned(&ran), ["update ConfigMap db", "create ConfigMap new", "delete ConfigMap gone"]);
    let filter = r#"{"not": {"resource": {"kindNames": ["ConfigMap/db"]}}}"#;
    let shown = app.run("inspect", &["--filter", filter, "--filter-kind", "ConfigMap"]).expect(0).json();
    assert_eq!(shown["objects"].as_array().map(Vec::len), Some(2), "{shown}");
}

fn a_change_that_is_filtered_out_is_not_made_and_its_object_stays_in_the_app() {
    let app = app("changes");
    app.apply(&maps("1", &["a", "b", "gone"]), &[]).expect(0);
    let input = maps("2", &["a", "b", "new"]);
    let filter = r#"{"and": [{"ops": ["update"]}, {"newResource": {"names": ["a"]}}]}"#;
    let ran = app.apply(&input, &["--diff-filter", filter]).expect(0);
    assert_eq!(planned(&ran), ["update ConfigMap a"]);
    assert_eq!(app.inspected(), ["ConfigMap a", "ConfigMap b", "ConfigMap gone"]);
    let ran = app.apply(&input, &[]).expect(0);
    assert_eq!(planned(&ran), ["update ConfigMap b", "create ConfigMap new", "delete ConfigMap gone"]);
}

fn references_lead_to_the_newest_version_of_what_is_left_out() {
    let app = app("part-versions");
    let settings = |value: &str| {
        let annotations = "annotations: {kapp.k14s.io/versioned: ''}";
        config_map("settings", value).replace("  name: settings", &format!("  name: settings\n  {annotations}"))
    };
    let user = |value: &str| {
        let reference = "apiVersion: v1\\nkind: ConfigMap\\nname: settings\\n";
        let annotations = format!("annotations: {{kapp.k14s.io/versioned-explicit-ref: \"{reference}\"}}");
        config_map("user", value).replace("  name: user", &format!("  name: user\n  {annotations}"))
    };
    app.apply(&(settings("1") + &user("1")), &[]).expect(0);
    app.apply(&(settings("2") + &user("1")), &[]).expect(0);
    let ran = app.apply(&(settings("3") + &user("2")), &["--filter-name", "user"]).expect(0);
    assert_eq!(planned(&ran), ["update ConfigMap user"]);
    let path = config_map_path(&app.namespace, "user");
    let live = TestCluster::shared().api().get(&path).ok();
    let reference = live["metadata"]["annotations"]["kapp.k14s.io/versioned-explicit-ref"].as_str().unwrap_or_default();
    assert!(reference.contains("settings-ver-2"), "{reference}");
    // Versions go with their manifest, whatever their own names are.
    let ran = app.apply(&(settings("2") + &user("2")), &["--filter-name", "settings-ver-*,user"]).expect(0);
    assert_eq!(planned(&ran), Vec::<String>::new());
}

fn a_deletion_of_a_part_keeps_the_app() {
    let app = app("part-delete");
    app.apply(&maps("1", &["a", "b"]), &[]).expect(0);
    let ran = app.delete(&["--filter-name", "a"]).expect(0);
    assert_eq!(planned(&ran), ["delete ConfigMap a"]);
    assert!(ran.stdout.contains("app shop stays, with 1 object outside of the filters"), "{}", ran.stdout);
    assert_eq!(app.inspected(), ["ConfigMap b"]);
    let nothing = ["delete", "-a", "shop", "-y", "--filter-kind", "Secret"];
    let said = voice(&app.namespace).run(&nothing).expect(0).stdout;
    let kapp = format!(
        "\nApp 'shop' (namespace: {}) will not be fully deleted because some resources are excluded by filters\n",
        app.namespace
    );
    assert!(said.contains(&kapp) && said.ends_with("\nSucceeded\n"), "{said}");
    assert_eq!(app.inspected(), ["ConfigMap b"]);
    // A filter that covers all that is left deletes the app.
    app.delete(&["--filter-kind", "ConfigMap"]).expect(0);
    assert_eq!(TestCluster::shared().api().get(&app.record_path()).status, 404);
}

fn a_filter_that_selects_nothing_deletes_nothing() {
    let app = app("part-none");
    app.apply(&maps("1", &["a", "b"]), &[]).expect(0);
    let refused = app.apply(&config_map("a", "1"), &["--filter-name", "b"]).expect(1);
    assert!(error(&refused).contains("the filters select none"), "{}", error(&refused));
    let allowed = ["--filter-name", "b", "--dangerous-allow-empty-list-of-resources"];
    assert_eq!(planned(&app.apply(&config_map("a", "1"), &allowed).expect(0)), ["delete ConfigMap b"]);
    let wrong = app.run("inspect", &["--filter", "{\"kinds\": [\"ConfigMap\"]}"]).expect(1);
    assert!(wrong.stderr.contains("expected one of and, or, not, resource"), "{}", wrong.stderr);
}

fn an_object_is_as_old_as_it_is_on_the_cluster() {
    let app = app("part-age");
    app.apply(&maps("1", &["a", "gone"]), &[]).expect(0);
    let input = maps("2", &["a", "new"]);
    let old = app.apply(&input, &["--filter-age", "1000h+", "--dangerous-allow-empty-list-of-resources"]).expect(0);
    assert_eq!(planned(&old), Vec::<String>::new());
    let young = app.apply(&input, &["--filter-age", "1h-"]).expect(0);
    assert_eq!(planned(&young), ["update ConfigMap a", "create ConfigMap new", "delete ConfigMap gone"]);
}

/// The binary in kapp's voice.
fn voice(namespace: &str) -> Pushback {
    Pushback::on(TestCluster::shared()).with("PUSHBACK_VOICE", "kapp").with("KAPP_NAMESPACE", namespace)
}

fn only_what_is_allowed_is_written() {
    let app = app("allowed");
    let other = TestCluster::shared().namespace("elsewhere");
    let cluster = format!("---\napiVersion: v1\nkind: Namespace\nmetadata: {{name: {other}-new}}\n");
    let outside = config_map("b", "1").replace("  name: b", &format!("  name: b\n  namespace: {other}"));
    let input = config_map("a", "1") + &outside + &cluster;
    let refused = app.apply(&input, &["--allow-check"]).expect(1);
    let told = error(&refused);
    assert!(told.contains("app.yaml:") && told.contains("is in a namespace that is not allowed"), "{told}");
    assert!(told.contains("is cluster-scoped, which is not allowed") && !told.contains("ConfigMap a"), "{told}");
    assert!(app.key_of("a").is_null(), "nothing is written");
    app.run("diff", &["-f", "app.yaml", "--allow-check", "--allow-ns", &other]).expect(1);
    app.run("diff", &["-f", "app.yaml", "--allow-check", "--allow-ns", &other, "--allow-cluster"]).expect(0);
    app.run("diff", &["-f", "app.yaml", "--allow-check", "--into-ns", &other, "--allow-cluster"]).expect(0);
    // In kapp's words, after the table.
    let kapp = voice(&app.namespace);
    kapp.write("app.yaml", &input);
    let ran = kapp.run(&["deploy", "-a", "other", "-f", "app.yaml", "-y", "--allow-check", "--allow-all-ns"]).expect(1);
    let expected = format!(
        "kapp: Error: Validation errors:\n- Cluster level resource 'namespace/{other}-new (v1) cluster' is not allowed \
         (file 'app.yaml' doc 3)\n"
    );
    assert!(ran.stdout.contains("Wait to: 3 reconcile") && ran.stderr == expected, "{}{}", ran.stdout, ran.stderr);
}

fn kinds_and_namespaces_select_what_is_deployed() {
    let home = TestCluster::shared().namespace("selected");
    let other = TestCluster::shared().namespace("elsewhere");
    let kapp = voice(&home);
    let outside = config_map("b", "1").replace("  name: b", &format!("  name: b\n  namespace: {other}"));
    let account = "---\napiVersion: v1\nkind: ServiceAccount\nmetadata: {name: a}\n";
    kapp.write("app.yaml", [&config_map("a", "1"), account, &outside].concat());
    let selected = |flags: &[&str]| -> Vec<String> {
        let deploy = ["deploy", "-a", "shop", "-f", "app.yaml", "--diff-run", "--tty=false", "--column", "name,kind"];
        let told = kapp.run(&[&deploy[..], flags].concat()).expect(0).stdout;
        let cells = |line: &str| line.split('\t').map(|cell| cell.trim().to_owned()).collect::<Vec<_>>().join(" ");
        told.lines().map(|line| cells(line).trim().to_owned()).collect()
    };
    let in_other = format!("ConfigMap/{other}");
    let named = format!("ConfigMap/{other}/b");
    assert_eq!(selected(&["--filter-kind", "ServiceAccount"]), ["a ServiceAccount"]);
    assert_eq!(selected(&["--filter-kind", "%Map"]), ["b ConfigMap", "a ConfigMap"]);
    assert_eq!(selected(&["--filter-ns", &other]), ["b ConfigMap"]);
    assert_eq!(selected(&["--filter-kind-name", "ConfigMap/a"]), ["a ConfigMap"]);
    assert_eq!(selected(&["--filter-kind-ns", &in_other]), ["b ConfigMap"]);
    assert_eq!(selected(&["--filter-kind-ns-name", &named]), ["b ConfigMap"]);
    let tree =
        r#"{"and": [{"not": {"resource": {"namespaces": ["elsewhere*"]}}}, {"resource": {"kinds": ["ConfigMap"]}}]}"#;
    assert_eq!(selected(&["--filter", tree]), ["a ConfigMap"]);
    // Every namespace may be written to, and the cluster may not be.
    assert_eq!(selected(&["--allow-check", "--allow-all-ns"]).len(), 3);
}

fn a_deletion_is_shown_without_being_made() {
    let app = app("delete-dry");
    app.apply(&maps("1", &["a"]), &[]).expect(0);
    let shown = app.run("delete", &["--diff-run"]).expect(0);
    assert_eq!(planned(&shown), ["delete ConfigMap a"]);
    app.run("delete", &["--diff-run", "--diff-exit-status"]).expect(3);
    assert_eq!(app.inspected(), ["ConfigMap a"]);
    let kapp = voice(&app.namespace).run(&["delete", "-a", "shop", "--diff-run", "--diff-exit-status"]).expect(3);
    assert_eq!(kapp.stderr, "kapp: Error: Exiting after diffing with pending changes (exit status 3)\n");
}

fn a_refused_object_does_not_keep_the_others_from_being_written() {
    let app = app("refused");
    let bad = config_map("bad", "1").replace("  key: \"1\"", "  a b: x");
    let after = annotated("after", &[("kapp.k14s.io/change-rule", "upsert after upserting bad")]);
    let bad = bad.replace("  name: bad", "  name: bad\n  annotations: {kapp.k14s.io/change-group: bad}");
    let input = config_map("a", "1") + &bad + &after;
    app.apply(&input, &[]).expect(10);
    assert!(app.key_of("a").is_null());
    let ran = app.apply(&input, &["--exit-early-on-apply-error=false"]).expect(20);
    assert_eq!(app.inspected(), ["ConfigMap a"], "{}", ran.stdout);
    let end = ran.end();
    assert_eq!(end["hints"], serde_json::json!(["correct what the server refuses, and run again"]), "{end}");
    // What is corrected is found by the next run.
    let corrected = input.replace("a b: x\n", "key: \"1\"\n");
    assert_eq!(planned(&app.apply(&corrected, &[]).expect(0)), ["create ConfigMap bad", "create ConfigMap after"]);
    let kapp = voice(&app.namespace);
    kapp.write("app.yaml", bad.replace("name: bad", "name: worse") + &config_map("c", "1"));
    let flags = ["deploy", "-a", "voice", "-f", "app.yaml", "-y", "--exit-early-on-apply-error=false"];
    let ran = kapp.run(&flags).expect(1);
    let start = "kapp: Error: create configmap/worse (v1) namespace: ";
    assert!(ran.stderr.starts_with(start) && ran.stderr.contains("API server says:"), "{}", ran.stderr);
    assert!(ran.stderr.ends_with("(reason: Invalid)\n"), "{}", ran.stderr);
    assert_eq!(app.key_of("c"), "1");
}

fn what_controllers_have_made_is_deleted_where_it_is_asked_for() {
    let namespace = TestCluster::shared().namespace("derived");
    let kapp = voice(&namespace);
    let service =
        "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {ports: [{port: 80}], selector: {a: b}}\n";
    kapp.write("app.yaml", service);
    kapp.run(&["deploy", "-a", "web", "-f", "app.yaml", "-y"]).expect(0);
    let rows = |flag: &str| {
        let flags = ["delete", "-a", "web", "--diff-run", "--tty=false", "--column", "kind,op", flag];
        kapp.run(&flags).expect(0).stdout.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let endpoints = format!("/api/v1/namespaces/{namespace}/endpoints/web");
    let is_there = || (TestCluster::shared().api().get(&endpoints).status == 200).then_some(());
    wait_until("a Service has Endpoints", Duration::from_secs(60), is_there);
    assert!(rows("--wait-ignored=true").contains("Endpoints -"));
    assert_eq!(rows("--wait-ignored=false"), "Service delete");
    assert!(rows("--apply-ignored").contains("Endpoints delete"));
    kapp.run(&["delete", "-a", "web", "-y", "--apply-ignored"]).expect(0);
    assert_eq!(TestCluster::shared().api().get(&endpoints).status, 404);
}

fn what_is_applied_is_printed_as_yaml() {
    let kapp = voice(&TestCluster::shared().namespace("yaml"));
    kapp.write("app.yaml", config_map("a", "1"));
    let flags = ["deploy", "-a", "shop", "-f", "app.yaml", "--diff-run", "--diff-changes-yaml", "--diff-summary=false"];
    let told = kapp.run(&flags).expect(0).stdout;
    let yaml = told.lines().skip_while(|line| *line != "---").take(4).collect::<Vec<_>>().join("\n");
    assert!(yaml.starts_with("---\n# create: configmap/a (v1) namespace: yaml"), "{told}");
    assert!(yaml.ends_with("\napiVersion: v1\ndata:") && told.contains("\n  key: \"1\"\nkind: ConfigMap\n"), "{told}");
}

fn objects_are_printed_whole_with_secrets_masked() {
    let app = app("raw");
    let secret = "---\napiVersion: v1\nkind: Secret\nmetadata: {name: login}\nstringData: {password: marker-raw}\n";
    app.apply(&(config_map("a", "1") + secret), &[]).expect(0);
    let shown = |flags: &[&str]| {
        let common = ["inspect", "-a", "shop", "-n", &app.namespace, "--raw"];
        let own = app.pushback.run(&[&common[..], flags].concat()).expect(0).stdout;
        let kapp = voice(&app.namespace).run(&[&common[..], flags].concat()).expect(0).stdout;
        assert_eq!(own, kapp, "both voices print the same");
        own
    };
    let told = shown(&[]);
    assert!(told.starts_with("---\napiVersion: v1\ndata:\n  key: \"1\"\nkind: ConfigMap\n"), "{told}");
    assert!(told.contains("  password: <-- value not shown (#1)\nkind: Secret\n"), "{told}");
    assert!(!told.contains("managedFields") && !told.contains("kapp.k14s.io/identity"), "{told}");
    assert!(shown(&["--managed-fields"]).contains("  managedFields:\n  - apiVersion: v1\n"));
    let list = app.run("inspect", &["--raw", "--filter-kind", "ConfigMap"]).expect(0).json();
    assert_eq!((&list["kind"], &list["items"][0]["data"]["key"]), (&"List".into(), &"1".into()));
    let status = voice(&app.namespace).run(&["inspect", "-a", "shop", "--status", "--tty"]).expect(0).stdout;
    let rows = format!("\nNamespace  {}  \nName       a  \nKind       ConfigMap  \nStatus     -  \n", app.namespace);
    assert!(status.contains(&rows) && status.contains("\n\n2 resources\n"), "{status}");
}

fn endpoints_are_below_their_service() {
    let app = app("endpoints");
    let service =
        "---\napiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {ports: [{port: 80}], selector: {a: b}}\n";
    app.apply(service, &[]).expect(0);
    let below = || {
        let tree = app.run("inspect", &["--tree"]).expect(0).json();
        let lines = tree["objects"].as_array().expect("objects").clone();
        let kinds: Vec<String> =
            lines.iter().map(|line| format!("{} {}", line["depth"], short(&line["object"]))).collect();
        let is_whole = kinds.iter().any(|line| line == "1 Endpoints web") && kinds.len() == 3;
        is_whole.then_some(kinds)
    };
    let lines = wait_until("a Service has Endpoints and slices", Duration::from_secs(60), below);
    assert_eq!(lines[0], "0 Service web");
}

fn in_a_folder_a_part_is_applied_the_same_way() {
    let pushback = Pushback::new();
    let run = |input: &str, more: &[&str]| {
        pushback.write("app.yaml", input);
        let common =
            ["apply", "-a", "shop", "-n", "shop", "-f", "app.yaml", "--cluster", "dir:live", "--yes", "-o", "json"];
        pushback.run(&[&common[..], more].concat()).expect(0)
    };
    run(&maps("1", &["a", "b"]), &[]);
    assert_eq!(
        planned(&run(&maps("2", &["a"]), &["--filter-ns", "shop", "--filter-name", "!b"])),
        ["update ConfigMap a"]
    );
    assert_eq!(planned(&run(&maps("2", &["a"]), &[])), ["delete ConfigMap b"]);
}
