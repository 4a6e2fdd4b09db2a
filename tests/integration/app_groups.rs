//! Groups of apps: one for each directory, planned and asked about together, written one after the other; apps whose
//! directory is gone are deleted, and a run stops at the first app that fails.

use std::collections::BTreeMap;
use std::fs;

use regex::Regex;
use serde_json::{Value, json};

use crate::support::apply::{config_map, config_map_path};
use crate::support::{Pushback, Ran, TestCase, TestCluster, cases};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        ApiServer: each_directory_is_an_app_and_what_is_unchanged_stays,
        ApiServer: apps_whose_directory_is_gone_are_deleted_and_no_others,
        ApiServer: one_question_is_asked_for_all_apps,
        ApiServer: an_app_that_is_refused_keeps_all_from_being_written,
        ApiServer: a_run_stops_at_the_app_that_fails_and_goes_on_from_there,
        ApiServer: an_app_with_a_kind_of_another_is_planned_after_it,
        ApiServer: an_app_of_another_group_is_not_taken,
        ApiServer: names_of_apps_may_be_longer_than_labels,
        ApiServer: under_kapps_name_every_app_is_told_as_kapp_tells_it,
        Nothing: a_group_in_a_folder_is_kept_there,
    ]
}

fn api() -> &'static crate::support::api::ApiClient {
    TestCluster::shared().api()
}

/// Directories of a group, and the namespace of its apps.
struct Group {
    pushback: Pushback,
    namespace: String,
}

impl Group {
    fn new() -> Self {
        let cluster = TestCluster::shared();
        Self { pushback: Pushback::on(cluster), namespace: cluster.namespace("groups") }
    }

    fn write(&self, app: &str, input: &str) -> &Self {
        self.pushback.write(&format!("apps/{app}/app.yaml"), input);
        self
    }

    fn remove(&self, app: &str) {
        fs::remove_dir_all(self.pushback.directory().join("apps").join(app)).expect("a directory");
    }

    fn arguments<'a>(&'a self, command: &'a str, more: &[&'a str]) -> Vec<&'a str> {
        let common = ["app-group", command, "-g", "shop", "-n", &self.namespace];
        let directory = if command == "deploy" { &["-d", "apps"][..] } else { &[] };
        [&common[..], directory, more].concat()
    }

    fn run(&self, command: &str, more: &[&str]) -> Ran {
        self.pushback.run(&self.arguments(command, &[&["--yes", "-o", "json"], more].concat()))
    }

    fn has(&self, name: &str) -> bool {
        api().get(&config_map_path(&self.namespace, name)).status == 200
    }
}

/// `app: outcome` of each app, in the order in which they ended.
fn ended(ran: &Ran) -> Vec<String> {
    let ends = ran.events_of("app.end");
    ends.iter().map(|end| format!("{}: {}", end["app"], end["outcome"]).replace('"', "")).collect()
}

/// What the run is to do with each app.
fn told(ran: &Ran) -> Value {
    ran.events_of("group").pop().expect("a group")["apps"].clone()
}

fn each_directory_is_an_app_and_what_is_unchanged_stays() {
    let group = Group::new();
    group.write("web", &config_map("a", "1")).write("db", &config_map("b", "1")).write(".git", "no manifest");
    let ran = group.run("deploy", &[]).expect(0);
    assert_eq!(ended(&ran), ["shop-db: succeeded", "shop-web: succeeded"]);
    assert_eq!(ran.end()["done"]["create"], 2);
    let record = api().get(&config_map_path(&group.namespace, "shop-web")).ok();
    assert_eq!(record["metadata"]["labels"]["kapp.k14s.io/app-group"], "shop");
    // A new app gets one label value, however often it is planned.
    let spec: Value = serde_json::from_str(record["data"]["spec"].as_str().expect("a text")).expect("JSON");
    let object = api().get(&config_map_path(&group.namespace, "a")).ok();
    assert_eq!(object["metadata"]["labels"]["kapp.k14s.io/app"], spec["labelValue"]);

    let again = group.run("deploy", &["--apply-exit-status"]).expect(2);
    assert_eq!(ended(&again), ["shop-db: unchanged", "shop-web: unchanged"]);
    assert_eq!(api().get(&config_map_path(&group.namespace, "a")).ok(), object);
    group.write("web", &config_map("a", "2"));
    let diff = group.run("deploy", &["--diff-run", "--diff-exit-status"]).expect(3);
    assert!(diff.events_of("change.start").is_empty());
    group.run("deploy", &["--apply-exit-status"]).expect(3);
}

fn apps_whose_directory_is_gone_are_deleted_and_no_others() {
    let group = Group::new();
    group.write("web", &config_map("a", "1")).write("db", &config_map("b", "1")).write("mq", &config_map("c", "1"));
    group.run("deploy", &[]).expect(0);
    // An app of its own, whose name begins as those of the group.
    group.pushback.write("alone.yaml", config_map("d", "1"));
    let alone = ["apply", "-a", "shop-alone", "-n", &group.namespace, "-f", "alone.yaml", "--yes"];
    group.pushback.run(&alone).expect(0);

    group.remove("db");
    group.remove("mq");
    let diff = group.run("deploy", &["--diff-run", "--diff-exit-status"]).expect(3);
    let apps = told(&diff);
    let deleted: Vec<&Value> = apps
        .as_array()
        .expect("apps")
        .iter()
        .filter(|app| app.get("directory").is_none())
        .map(|app| &app["app"])
        .collect();
    assert_eq!(deleted, ["shop-mq", "shop-db"]);
    assert!(group.has("b") && group.has("c"));
    group.run("deploy", &["--patch"]).expect(0);
    assert!(group.has("b"), "--patch deletes nothing");

    let ran = group.run("deploy", &[]).expect(0);
    assert_eq!(ended(&ran), ["shop-web: unchanged", "shop-mq: succeeded", "shop-db: succeeded"]);
    assert_eq!(ran.end()["done"]["delete"], 2);
    for gone in ["b", "c", "shop-db", "shop-mq"] {
        assert!(!group.has(gone), "{gone}");
    }
    assert!(group.has("a") && group.has("d") && group.has("shop-alone"));

    group.remove("web");
    let refused = group.run("deploy", &[]).expect(1);
    assert!(refused.stderr.contains("every app of the group would be deleted"), "{}", refused.stderr);
    assert!(group.has("a"));
    group.run("deploy", &["--dangerous-allow-empty-list-of-resources"]).expect(0);
    assert!(!group.has("a") && group.has("d"));
}

fn one_question_is_asked_for_all_apps() {
    let group = Group::new();
    group.write("web", &config_map("a", "1")).write("db", &config_map("b", "1"));
    let ask = |command: &str, answer: &str| {
        group.pushback.run_with_input(&group.arguments(command, &["-o", "plain"]), answer.as_bytes())
    };
    let questions = |ran: &Ran| ran.stderr.matches("[y/N]").count();
    let declined = ask("deploy", "n\n").expect(1);
    assert_eq!(questions(&declined), 1, "{}", declined.stderr);
    assert!(declined.stderr.contains("Apply these changes to 2 apps?"), "{}", declined.stderr);
    assert!(!group.has("shop-web") && !group.has("shop-db"));
    let agreed = ask("deploy", "y\n").expect(0);
    assert_eq!(questions(&agreed), 1, "{}", agreed.stderr);
    for line in ["Applied shop-db to ", "Applied shop-web to ", "Applied group shop to "] {
        assert_eq!(agreed.stderr.matches(line).count(), 1, "{line}\n{}", agreed.stderr);
    }
    assert_eq!(agreed.stdout.matches("ConfigMap").count(), 2, "each plan is shown once\n{}", agreed.stdout);
    assert_eq!(questions(&ask("deploy", "").expect(0)), 0, "nothing changes");

    group.write("web", &config_map("a", "2")).remove("db");
    let both = ask("deploy", "y\n").expect(0);
    assert!(both.stderr.contains("Apply these changes to 1 app, and delete 1 app?"), "{}", both.stderr);
    let deleted = ask("delete", "y\n").expect(0);
    assert!(questions(&deleted) == 1 && !group.has("a") && !group.has("shop-web"), "{}", deleted.stderr);
    let nothing = ask("delete", "").expect(0);
    assert!(nothing.stderr.contains("group shop has no app in namespace"), "{}", nothing.stderr);
}

fn an_app_that_is_refused_keeps_all_from_being_written() {
    let group = Group::new();
    let wrong = "apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {ports: [{port: 99999}]}\n";
    group.write("a", &config_map("a", "1")).write("b", wrong).write("c", wrong);
    let ran = group.run("deploy", &[]).expect(10);
    assert_eq!(ran.end()["error"], "preflight refuses 2 apps: shop-b, shop-c");
    assert!(!group.has("a") && !group.has("shop-a"));
    group.write("b", "apiVersion: v1\nkind: Nothing\n");
    group.run("deploy", &[]).expect(1);
    assert!(!group.has("a"));
}

fn a_run_stops_at_the_app_that_fails_and_goes_on_from_there() {
    let group = Group::new();
    let elsewhere = TestCluster::shared().namespace("groups-new");
    let new = format!("{elsewhere}-x");
    let namespace = format!("apiVersion: v1\nkind: Namespace\nmetadata: {{name: {new}}}\n");
    let service = |port: u32| {
        format!(
            "apiVersion: v1\nkind: Service\nmetadata: {{name: s, namespace: {new}}}\nspec: {{ports: [{{port: {port}}}]}}\n"
        )
    };
    group.write("a", &namespace).write("b", &service(99999)).write("c", &config_map("c", "1"));
    let ran = group.run("deploy", &[]).expect(20);
    let later = told(&ran)[1]["later"].clone();
    assert_eq!(later, format!("planned after app shop-a, which brings namespace {new}"));
    assert_eq!(ended(&ran), ["shop-a: succeeded"]);
    let end = ran.end();
    assert_eq!(end["error"], "app shop-b: preflight refuses it");
    assert!(end["hints"].to_string().contains("had no turn: shop-c"), "{end}");
    assert!(!group.has("c") && end["done"]["create"] == 1);

    group.write("b", &service(80));
    let ran = group.run("deploy", &[]).expect(0);
    assert_eq!(ended(&ran), ["shop-a: unchanged", "shop-b: succeeded", "shop-c: succeeded"]);
    let deleted = group.run("delete", &["--wait=false"]).expect(0);
    assert_eq!(deleted.events_of("app.end").len(), 3);
}

fn an_app_with_a_kind_of_another_is_planned_after_it() {
    let group = Group::new();
    let suffix = group.namespace.replace('-', "");
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("parts.{suffix}.example.com")},
        "spec": {
            "group": format!("{suffix}.example.com"), "scope": "Namespaced",
            "names": {"kind": "Part", "plural": "parts", "singular": "part", "listKind": "PartList"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}],
        },
    });
    let part = json!({"apiVersion": format!("{suffix}.example.com/v1"), "kind": "Part", "metadata": {"name": "p"}});
    group.write("crds", &definition.to_string()).write("parts", &part.to_string());
    let ran = group.run("deploy", &[]).expect(0);
    assert!(told(&ran)[1]["later"].as_str().is_some_and(|later| later.ends_with("which brings kind Part")));
    // Both are known now, and planned together; they go in the reverse order.
    assert_eq!(told(&group.run("deploy", &[]).expect(0))[1].get("later"), None);
    assert_eq!(ended(&group.run("delete", &[]).expect(0)), ["shop-parts: succeeded", "shop-crds: succeeded"]);
}

fn an_app_of_another_group_is_not_taken() {
    let group = Group::new();
    group.write("a-b", &config_map("a", "1"));
    group.run("deploy", &[]).expect(0);
    group.pushback.write("other/b/app.yaml", config_map("b", "1"));
    let other = ["app-group", "deploy", "-g", "shop-a", "-d", "other", "-n", &group.namespace, "--yes"];
    let ran = group.pushback.run(&other).expect(1);
    assert!(ran.stderr.contains("label kapp.k14s.io/app-group of app shop-a-b is shop"), "{}", ran.stderr);
    assert!(group.has("a") && !group.has("b"));
}

fn names_of_apps_may_be_longer_than_labels() {
    let group = Group::new();
    let long = "x".repeat(80);
    group.write(&long, &config_map("a", "1"));
    group.run("deploy", &[]).expect(0);
    assert!(group.has(&format!("shop-{long}")));
    group.write("b", &config_map("b", "1")).remove(&long);
    assert_eq!(
        ended(&group.run("deploy", &[]).expect(0)),
        ["shop-b: succeeded".to_owned(), format!("shop-{long}: succeeded")]
    );
    assert!(!group.has("a") && group.has("b"));
}

/// Lines as kapp 0.65 prints them, its defect left out: it deletes the apps whose directory is there.
const AS_KAPP: &str = "\
--- deploying app 'shop-a' (namespace: NS) from apps/a

Target cluster

Changes

Namespace  Name  Kind       Age  Op      Op st.  Wait to    Rs  Ri
NS  a  ConfigMap  -    create  -       reconcile  -   -

Op:      1 create, 0 delete, 0 update, 0 noop, 0 exists
Wait to: 1 reconcile, 0 delete, 0 noop

TIME: ---- applying 1 changes [0/1 done] ----
TIME: create configmap/a (v1) namespace: NS
TIME: ---- waiting on 1 changes [0/1 done] ----
TIME: ok: reconcile configmap/a (v1) namespace: NS
TIME: ---- applying complete [1/1 done] ----
TIME: ---- waiting complete [1/1 done] ----

--- deploying app 'shop-b' (namespace: NS) from apps/b

Changes

Namespace  Name  Kind       Age  Op      Op st.  Wait to    Rs  Ri
NS  b  ConfigMap  -    create  -       reconcile  -   -

Op:      1 create, 0 delete, 0 update, 0 noop, 0 exists
Wait to: 1 reconcile, 0 delete, 0 noop

TIME: ---- applying 1 changes [0/1 done] ----
TIME: create configmap/b (v1) namespace: NS
TIME: ---- waiting on 1 changes [0/1 done] ----
TIME: ok: reconcile configmap/b (v1) namespace: NS
TIME: ---- applying complete [1/1 done] ----
TIME: ---- waiting complete [1/1 done] ----

Succeeded
";

fn under_kapps_name_every_app_is_told_as_kapp_tells_it() {
    let group = Group::new();
    group.write("a", &config_map("a", "1")).write("b", &config_map("b", "1"));
    let as_kapp = |arguments: &[&str], answers: &str| {
        let mut command = group.pushback.command(arguments);
        command.env("PUSHBACK_VOICE", "kapp");
        crate::support::pushback::finish(command, answers.as_bytes())
    };
    let normal = |text: &str| {
        let spaces = |text: &str| Regex::new(" {2,}").expect("a pattern").replace_all(text, "  ").into_owned();
        let time = Regex::new(r"\d+:\d\d:\d\d[AP]M").expect("a pattern");
        let target = Regex::new(r"Target cluster '.*").expect("a pattern");
        let text = time.replace_all(text, "TIME").replace(&group.namespace, "NS");
        let text = target.replace_all(&text, "Target cluster").into_owned();
        let text: Vec<String> = text.lines().map(|line| spaces(line.trim_end())).collect();
        text.join("\n")
    };
    let deploy = group.arguments("deploy", &["-y"]);
    assert_eq!(normal(&as_kapp(&deploy, "").expect(0).stdout), normal(AS_KAPP));

    // Every app is asked about in its turn, and the one whose directory is gone is deleted.
    group.write("a", &config_map("a", "2")).remove("b");
    let asked = as_kapp(&group.arguments("deploy", &[]), "y\ny\n").expect(0);
    assert_eq!(asked.stdout.matches("Continue? [yN]: y").count(), 2, "{}", asked.stdout);
    assert!(asked.stdout.contains("--- deleting app 'shop-b'") && !group.has("b") && group.has("a"));
    assert_eq!(asked.stdout.matches("Target cluster").count(), 1);
    let declined = as_kapp(&group.arguments("delete", &[]), "n\n").expect(1);
    assert_eq!(declined.stderr, "kapp: Error: Stopped\n");
    let deleted = as_kapp(&group.arguments("delete", &["-y"]), "").expect(0).stdout;
    assert_eq!(deleted.matches("waiting complete").count(), 1, "{deleted}");
    let none = normal(&as_kapp(&group.arguments("delete", &["-y"]), "").expect(0).stdout);
    assert_eq!(none, "Target cluster\n\nSucceeded");
    for (arguments, error) in [
        (&["app-group", "deploy"][..], "Expected group name to be non-empty"),
        (&["ag", "d", "-g", "x"], "Reading directory '': open : no such file or directory"),
        (&["ag", "d", "-g", "x", "-d", "/nope"], "Reading directory '/nope': open /nope: no such file or directory"),
        (&["ag"], "Use one of available subcommands: delete, deploy"),
    ] {
        assert_eq!(as_kapp(arguments, "").expect(1).stderr, format!("kapp: Error: {error}\n"));
    }
}

fn a_group_in_a_folder_is_kept_there() {
    let pushback = Pushback::new();
    for app in ["a", "b"] {
        pushback.write(&format!("apps/{app}/app.yaml"), config_map(app, "1"));
    }
    let common = ["-g", "shop", "-n", "shop", "--cluster", "dir:live", "--yes", "-o", "json"];
    let deploy = || pushback.run(&[&["app-group", "deploy", "-d", "apps"], &common[..]].concat()).expect(0);
    assert_eq!(deploy().end()["done"]["create"], 2);
    let before: BTreeMap<String, String> = pushback.tree("live");
    deploy();
    assert_eq!(pushback.tree("live"), before, "nothing changes, and nothing is written");
    fs::remove_dir_all(pushback.directory().join("apps/b")).expect("a directory");
    assert_eq!(deploy().end()["done"]["delete"], 1);
    let ran = pushback.run(&[&["app-group", "delete"], &common[..]].concat()).expect(0);
    assert_eq!(ended(&ran), ["shop-a: succeeded"]);
}
