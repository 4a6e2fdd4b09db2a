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
        ApiServer: an_app_that_is_deployed_under_a_new_name_is_renamed_after_the_question,
        ApiServer: a_record_gets_the_longer_of_kapps_names_where_that_is_wanted,
        ApiServer: labels_of_a_record_are_written_and_stay,
        ApiServer: kapps_part_of_the_record_is_written_to_a_file,
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

    // A mistake leaves nothing behind that only the same mistake could finish.
    let nowhere =
        app.run("rename", &["--new-name", "store", "--new-namespace", "no-such-namespace", "--yes"]).expect(1);
    assert!(nowhere.stderr.contains("namespaces \"no-such-namespace\" not found"), "{}", nowhere.stderr);

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

fn an_app_that_is_deployed_under_a_new_name_is_renamed_after_the_question() {
    let app = TestApp::new("shop", &TestCluster::shared().namespace("renames"));
    app.apply(&config_map("a", "1"), &[]).expect(0);
    let store = TestApp::new("store", &app.namespace);
    let previous = ["--prev-app", "shop"];
    let shown = store.apply(&config_map("a", "2"), &[&previous[..], &["--diff-run"]].concat()).expect(0);
    assert_eq!(planned(&shown), ["update ConfigMap a"]);
    assert!(config_maps(&app.namespace).contains("shop"), "a plan writes nothing");
    let label = app.label();
    for value in ["2", "2"] {
        store.apply(&config_map("a", value), &previous).expect(0);
        assert_eq!(store.label(), label);
        assert!(!config_maps(&app.namespace).contains("shop"));
    }
    assert_eq!(entries(&store).len(), 2);
    // Where both are there, the earlier name is another app's.
    app.apply(&config_map("b", "1"), &[]).expect(0);
    store.apply(&config_map("a", "3"), &previous).expect(0);
    assert_eq!(app.inspected(), ["ConfigMap b"]);
    TestApp::new("new", &app.namespace).delete(&previous).expect(0);
    assert!(!config_maps(&app.namespace).contains("b") && config_maps(&app.namespace).contains("a"));
}

fn a_record_gets_the_longer_of_kapps_names_where_that_is_wanted() {
    let namespace = TestCluster::shared().namespace("renames");
    let as_kapp = Pushback::on(TestCluster::shared()).with("PUSHBACK_VOICE", "kapp");
    let as_kapp = as_kapp.with("KAPP_NAMESPACE", &namespace);
    as_kapp.write("app.yaml", config_map("a", "1"));
    let deploy = |kapp: &Pushback, name: &str| {
        kapp.run(&["deploy", "-a", name, "-f", "app.yaml", "--yes"]).expect(0);
        config_maps(&namespace)
            .into_iter()
            .filter(|name| name.starts_with("shop") && !name.contains("-change-"))
            .collect::<Vec<_>>()
    };
    assert_eq!(deploy(&as_kapp, "shop"), ["shop"]);
    let app = TestApp::new("shop", &namespace);
    let label = app.label();
    let as_kapp = as_kapp.with("KAPP_FQ_CONFIGMAP_NAMES", "true");
    assert_eq!(deploy(&as_kapp, "shop"), ["shop.apps.k14s.io"]);
    let record = api().get(&config_map_path(&namespace, "shop.apps.k14s.io")).ok();
    assert!(record["data"]["spec"].as_str().is_some_and(|spec| spec.contains(&label)), "{record}");
    assert_eq!(record["metadata"]["annotations"]["kapp.k14s.io/is-configmap-migrated"], "");
    assert_eq!(entries(&app).len(), 1);
    as_kapp.write("app.yaml", config_map("b", "1"));
    assert_eq!(deploy(&as_kapp, "shop-b.apps.k14s.io"), ["shop-b.apps.k14s.io", "shop.apps.k14s.io"]);
}

fn labels_of_a_record_are_written_and_stay() {
    let app = TestApp::new("shop", &TestCluster::shared().namespace("renames"));
    let labels = || app.record()["metadata"]["labels"].clone();
    app.apply(&config_map("a", "1"), &["--labels", "team=web,tier=front"]).expect(0);
    app.apply(&config_map("a", "1"), &["--labels", "stage=prod"]).expect(0);
    let expected = ["team", "tier", "stage"].map(|key| labels()[key].clone());
    assert_eq!(expected, ["web", "front", "prod"]);
    let refused = app.apply(&config_map("a", "2"), &["--labels", "team=api"]).expect(1);
    assert!(refused.complaints().contains("label team of app shop is web"), "{}", refused.complaints());
    assert_eq!(labels()["team"], "web");
}

fn kapps_part_of_the_record_is_written_to_a_file() {
    let app = TestApp::new("shop", &TestCluster::shared().namespace("renames"));
    let file = ["--app-metadata-file-output", "record.json"];
    app.apply(&config_map("a", "1"), &[&file[..], &["--diff-run"]].concat()).expect(0);
    assert_eq!(app.pushback.read_json("record.json")["labelKey"], "kapp.k14s.io/app");
    for _ in 0..2 {
        app.apply(&config_map("a", "1"), &file).expect(0);
        assert_eq!(app.pushback.read_json("record.json"), app.spec());
    }
}
