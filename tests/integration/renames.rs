//! An app under another name: the record moves with its inventory and its history, the objects stay, and a rename that is
//! killed is finished by the same command.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::kill_points::killed;
use crate::support::apply::{TestApp, config_map, config_map_path, planned};
use crate::support::proxy::writes;
use crate::support::{Pushback, TestCase, TestCluster, cases, kapp};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        ApiServer: an_app_moves_with_its_inventory_and_its_history,
        ApiServer: an_app_of_kapp_gets_another_name_as_kapp_gives_it,
        ApiServer: a_rename_killed_after_any_write_is_said_and_finished_by_the_same_command,
        Nothing: an_app_in_a_folder_gets_another_name,
    ]
}

fn api() -> &'static crate::support::api::ApiClient {
    TestCluster::shared().api()
}

/// Names of all ConfigMaps of a namespace.
fn config_maps(namespace: &str) -> BTreeSet<String> {
    let listed = api().get(&format!("/api/v1/namespaces/{namespace}/configmaps")).ok();
    let items = listed["items"].as_array().expect("items").iter();
    items.filter_map(|item| item["metadata"]["name"].as_str()).map(str::to_owned).collect()
}

fn entries(app: &TestApp) -> Vec<Value> {
    app.run("history", &[]).expect(0).json()["changes"].as_array().expect("changes").clone()
}

fn started(changes: &[Value]) -> Vec<Value> {
    changes.iter().map(|change| change["startedAt"].clone()).collect()
}

fn an_app_moves_with_its_inventory_and_its_history() {
    let app = TestApp::new("shop", &TestCluster::shared().namespace("renames"));
    let elsewhere = TestCluster::shared().namespace("renames-to");
    app.apply(&config_map("a", "1"), &[]).expect(0);
    app.apply(&(config_map("a", "2") + &config_map("b", "1")), &[]).expect(0);
    let (label, before, history) = (app.label(), api().get(&config_map_path(&app.namespace, "a")).ok(), entries(&app));

    let other = TestApp::new("other", &app.namespace);
    other.apply(&config_map("c", "1"), &[]).expect(0);
    let taken = app.run("rename", &["--new-name", "other", "--yes"]).expect(1);
    assert!(taken.stderr.contains("app other exists already"), "{}", taken.stderr);
    app.run("rename", &["--new-name", "shop", "--yes"]).expect(1);
    app.run("rename", &["--yes"]).expect(1);

    app.run("rename", &["--new-name", "store", "--new-namespace", &elsewhere, "--yes"]).expect(0);
    let moved = TestApp::new("store", &elsewhere);
    assert_eq!(moved.label(), label);
    assert_eq!(api().get(&config_map_path(&app.namespace, "a")).ok(), before, "an object was written");
    assert_eq!(started(&entries(&moved)), started(&history));
    assert_eq!(moved.spec()["lastChangeName"], entries(&moved)[0]["name"]);
    let left = config_maps(&app.namespace);
    assert!(!left.iter().any(|name| name.starts_with("shop")), "{left:?}");
    // The inventory is as good as before: nothing is asked of the server, and what is gone from the input is pruned.
    let ran = moved.apply(&config_map("a", "2"), &["--into-ns", &app.namespace]).expect(0);
    assert_eq!(planned(&ran), ["delete ConfigMap b"]);
    app.run("history", &[]).expect(1);
}

fn an_app_of_kapp_gets_another_name_as_kapp_gives_it() {
    let namespace = TestCluster::shared().namespace("renames");
    kapp::revive("01-plain", &[("kd-a", &namespace)]);
    let app = TestApp::new("shop", &namespace);
    let (before, label) = (app.record(), app.label());
    let as_kapp = Pushback::on(TestCluster::shared()).with("PUSHBACK_VOICE", "kapp");
    let arguments = ["rename", "-a", "shop", "-n", &namespace];
    let nothing = as_kapp.run(&arguments).expect(1);
    assert!(nothing.stderr.contains("kapp: Error: Expected either --new-name or/and --new-namespace to be supplied"));
    let arguments = [&arguments[..], &["--new-name", "store", "--tty"]].concat();
    let declined = as_kapp.run_with_input(&arguments, b"n\n").expect(1);
    assert!(declined.stdout.contains("Renaming 'shop' (namespace: ") && declined.stderr.contains("Stopped"));
    assert_eq!(app.record(), before, "nothing was agreed to");
    let done = as_kapp.run_with_input(&arguments, b"y\n").expect(0);
    assert!(done.stdout.ends_with("\nSucceeded\n"), "{}", done.stdout);
    let moved = TestApp::new("store", &namespace);
    let record = moved.record();
    assert_eq!(moved.label(), label);
    for part in ["labels", "annotations"] {
        assert_eq!(record["metadata"][part], before["metadata"][part], "{part}");
    }
    assert_eq!(record["data"].as_object().expect("data").len(), 1, "kapp's part alone");
    assert_eq!(moved.inspected().len(), 4);
}

fn a_rename_killed_after_any_write_is_said_and_finished_by_the_same_command() {
    let cluster = TestCluster::shared();
    for answered in [true, false] {
        let mut at = 1;
        loop {
            let app = TestApp::new("shop", &cluster.namespace("renames"));
            app.apply(&config_map("a", "1"), &[]).expect(0);
            app.apply(&config_map("a", "2"), &[]).expect(0);
            let history = started(&entries(&app));
            let new = ["--new-name", "store", "--yes"];
            let words = [&["rename", "-a", "shop", "-n", &app.namespace][..], &new].concat();
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            let Some(proxy) = killed(cluster, &app.pushback, &words, writes().nth(at), answered) else { break };
            drop(proxy);
            let when = format!("killed at write {at}, answered: {answered}");
            let moved = TestApp::new("store", &app.namespace);
            let names = config_maps(&app.namespace);
            for (record, there) in [(&app, names.contains("shop")), (&moved, names.contains("store"))] {
                let is_marked = there && !record.record()["data"]["pushback-move"].is_null();
                if is_marked {
                    let said = record.apply(&config_map("a", "3"), &[]).expect(1);
                    assert!(said.complaints().contains("--new-name store"), "{when}: {}", said.complaints());
                }
            }
            if names.contains("shop") || !moved.record()["data"]["pushback-move"].is_null() {
                app.run("rename", &new).expect(0);
            }
            let names = config_maps(&app.namespace);
            assert!(!names.iter().any(|name| name.starts_with("shop")), "{when}: {names:?}");
            assert_eq!(started(&entries(&moved)), history, "{when}");
            assert!(moved.record()["data"]["pushback-move"].is_null(), "{when}");
            assert_eq!(planned(&moved.apply(&config_map("a", "2"), &[]).expect(0)).len(), 0, "{when}");
            at += 1;
        }
        assert!(at > 6, "a rename has more writes than {at}");
    }
}

fn an_app_in_a_folder_gets_another_name() {
    let pushback = Pushback::new();
    pushback.write("app.yaml", config_map("a", "1"));
    let on = ["-n", "shop", "--cluster", "dir:live", "--yes"];
    pushback.run(&[&["apply", "-a", "shop", "-f", "app.yaml"][..], &on].concat()).expect(0);
    pushback.run(&[&["rename", "-a", "shop", "--new-name", "store"][..], &on].concat()).expect(0);
    let again = pushback.run(&[&["apply", "-a", "store", "-f", "app.yaml", "-o", "json"][..], &on].concat()).expect(0);
    assert_eq!(planned(&again).len(), 0);
    pushback.run(&[&["apply", "-a", "shop", "-f", "app.yaml"][..], &on].concat()).expect(1);
    assert!(pushback.tree("live/.pushback").keys().all(|name| !name.contains("shop-")));
}
