//! kapp and pushback on one app: what either writes, the other reads. kapp's side is recorded
//! (`tests/data/kapp-apps`), down to its field manager and operation.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::support::apply::{TestApp, config_map, config_map_path, parse_text, planned, short};
use crate::support::{Pushback, TestCase, TestCluster, cases, kapp};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        ApiServer: a_record_has_what_kapp_reads_and_nothing_that_it_would_not_keep,
        ApiServer: objects_are_stamped_and_scoped_as_kapp_does_it,
        ApiServer: an_app_made_by_kapp_is_listed_and_inspected,
        ApiServer: an_app_made_by_kapp_is_taken_on_without_changing_a_value,
        ApiServer: what_kapp_has_set_goes_when_the_input_drops_it,
        ApiServer: an_app_made_by_kapp_is_deleted_whole,
        ApiServer: a_record_under_the_fully_qualified_name_stays_there,
        ApiServer: a_custom_resource_made_by_kapp_is_kept_and_pruned,
        ApiServer: what_kapp_has_orphaned_is_not_touched_again,
        ApiServer: objects_in_other_namespaces_are_found,
        ApiServer: with_the_scope_of_known_namespaces_no_other_is_looked_into,
        ApiServer: an_object_that_is_served_in_two_groups_is_updated,
        ApiServer: after_a_deploy_by_kapp_nothing_is_lost,
        ApiServer: a_change_of_another_name_voids_the_inventory,
        ApiServer: a_record_without_used_kinds_means_every_kind,
        ApiServer: a_patch_of_an_app_of_kapp_keeps_the_rest_of_it_known,
        ApiServer: history_is_written_as_kapp_writes_it,
        ApiServer: history_is_trimmed_and_can_be_switched_off,
    ]
}

fn keys(value: &Value) -> BTreeSet<&str> {
    value.as_object().expect("a map").keys().map(String::as_str).collect()
}

fn names(kinds: &Value) -> BTreeSet<String> {
    kinds.as_array().expect("a list").iter().map(Value::to_string).collect()
}

fn api() -> &'static crate::support::api::ApiClient {
    TestCluster::shared().api()
}

/// A namespace in place of the recorded one, and the app in it, revived.
fn revived(recording: &str, name: &str) -> (TestApp, Vec<Value>) {
    let namespace = TestCluster::shared().namespace("kapp");
    let objects = kapp::revive(recording, &[("kd-a", &namespace)]);
    (TestApp::new(name, &namespace), objects)
}

/// The path of a recorded object.
fn path(objects: &[Value], what: &str) -> String {
    let described = |object: &Value| {
        format!(
            "{} {}",
            object["kind"].as_str().unwrap_or_default(),
            object["metadata"]["name"].as_str().unwrap_or_default()
        )
    };
    api().path_of(objects.iter().find(|object| described(object) == what).expect(what))
}

fn exists(path: &str) -> bool {
    api().get(path).status == 200
}

fn a_record_has_what_kapp_reads_and_nothing_that_it_would_not_keep() {
    let namespace = TestCluster::shared().namespace("kapp");
    let app = TestApp::new("shop", &namespace);
    app.apply(&kapp::input("01-plain", 1, &[]), &["--wait=false"]).expect(0);
    let (record, recorded) = (app.record(), kapp::live("01-plain", &[("kd-a", &namespace)]).remove(0));
    assert_eq!(record["metadata"]["labels"], recorded["metadata"]["labels"]);
    assert_eq!(record["metadata"]["annotations"], recorded["metadata"]["annotations"]);

    let (spec, recorded) = (app.spec(), parse_text(&recorded["data"]["spec"]));
    assert_eq!(keys(&spec), keys(&recorded));
    assert_eq!(keys(&spec["lastChange"]), keys(&recorded["lastChange"]));
    assert_eq!(names(&spec["usedGKs"]), names(&recorded["usedGKs"]));
    assert_eq!(names(&spec["usedGVs"]), names(&recorded["usedGVs"]));
    assert_eq!(spec["labelKey"], recorded["labelKey"]);
    for same in ["successful", "namespaces"] {
        assert_eq!(spec["lastChange"][same], recorded["lastChange"][same], "{same}");
    }
    // The recorded run waited, and this one did not.
    let parts = |spec: &Value| {
        let description = spec["lastChange"]["description"].as_str().unwrap_or_default();
        description.split_once(" / ").map(|(done, waits)| (done.to_owned(), waits.to_owned())).expect("two parts")
    };
    let ((done, waits), (recorded_done, recorded_waits)) = (parts(&spec), parts(&recorded));
    assert_eq!(done, recorded_done);
    assert_eq!(recorded_waits.split(' ').nth(2), waits.rsplit(' ').nth(1), "{waits}, {recorded_waits}");
    assert!(spec["labelValue"].as_str().is_some_and(|label| label.parse::<u64>().is_ok_and(|nanos| nanos > 1 << 60)));
    assert_eq!(spec["lastChangeName"], app.history()[0]["metadata"]["name"]);
}

fn objects_are_stamped_and_scoped_as_kapp_does_it() {
    let namespace = TestCluster::shared().namespace("kapp");
    let app = TestApp::new("shop", &namespace);
    app.apply(&kapp::input("01-plain", 1, &[]), &["--wait=false"]).expect(0);
    let label = app.label();
    let recorded = kapp::live("01-plain", &[("kd-a", &namespace)]);
    let old_label = parse_text(&recorded[0]["data"]["spec"])["labelValue"].as_str().expect("a label").to_owned();
    let stamped: Vec<Value> = recorded
        .iter()
        .filter(|object| object["metadata"]["labels"]["kapp.k14s.io/app"].is_string())
        .map(|object| serde_json::from_str(&object.to_string().replace(&old_label, &label)).expect("JSON"))
        .collect();
    assert_eq!(stamped.len(), 4);
    for theirs in &stamped {
        let ours = api().get(&api().path_of(theirs)).ok();
        assert_eq!(ours["metadata"]["labels"], theirs["metadata"]["labels"], "{}", theirs["kind"]);
        let identity = "kapp.k14s.io/identity";
        assert_eq!(ours["metadata"]["annotations"][identity], theirs["metadata"]["annotations"][identity]);
        for pointer in ["/spec/selector", "/spec/template/metadata/labels", "/data"] {
            assert_eq!(ours.pointer(pointer), theirs.pointer(pointer), "{} {pointer}", theirs["kind"]);
        }
    }
}

fn an_app_made_by_kapp_is_listed_and_inspected() {
    let (app, _) = revived("01-plain", "shop");
    let listed = app.pushback.run(&["list", "-n", &app.namespace, "-o", "json"]).expect(0).json();
    let listed = listed["apps"].as_array().expect("apps");
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0]["name"], "shop");
    assert_eq!(listed[0]["successful"], true);
    assert_eq!(listed[0]["namespaces"], json!([app.namespace]));
    let shown: BTreeSet<String> = app.inspected().into_iter().collect();
    let expected = ["ConfigMap web-settings", "Secret web-secret", "Service web", "Deployment web"];
    assert_eq!(shown, expected.map(str::to_owned).into());
}

fn an_app_made_by_kapp_is_taken_on_without_changing_a_value() {
    let (app, objects) = revived("01-plain", "shop");
    let before = app.label();
    let deployment = api().get(&path(&objects, "Deployment web")).ok();
    let input = kapp::input("01-plain", 1, &[]);
    let ran = app.apply(&input, &["--wait=false"]).expect(0);
    assert_eq!(app.label(), before);
    let after = api().get(&path(&objects, "Deployment web")).ok();
    assert_eq!(after["spec"], deployment["spec"], "a rollout for nothing");
    assert_eq!(after["metadata"]["uid"], deployment["metadata"]["uid"]);
    assert_eq!(after["metadata"]["labels"], deployment["metadata"]["labels"]);
    // kapp's copy of a Secret stays for the way back to kapp, and is told nowhere.
    let secret = api().get(&path(&objects, "Secret web-secret")).ok();
    assert!(secret["metadata"]["annotations"].to_string().contains("example-only"), "{secret}");
    assert!(![&ran.stdout, &ran.stderr].into_iter().any(|text| text.contains("example-only")), "{ran:?}");
    let managers = |object: &Value| -> Vec<String> {
        let entries = object["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
        entries.iter().map(|entry| format!("{} {}", entry["manager"], entry["operation"])).collect()
    };
    assert!(!managers(&after).contains(&r#""kapp" "Update""#.to_owned()), "{:?}", managers(&after));

    let version = after["metadata"]["resourceVersion"].clone();
    let again = app.apply(&input, &["--wait=false"]).expect(0);
    assert_eq!(planned(&again), Vec::<String>::new());
    assert_eq!(api().get(&path(&objects, "Deployment web")).ok()["metadata"]["resourceVersion"], version);
}

fn what_kapp_has_set_goes_when_the_input_drops_it() {
    let (app, objects) = revived("01-plain", "shop");
    let input = kapp::input("01-plain", 1, &[])
        .replace("  mode: fast\n", "  other: value\n")
        .replace("        envFrom:\n        - configMapRef:\n            name: web-settings\n", "");
    let ran = app.apply(&input, &["--wait=false"]).expect(0);
    let settings = api().get(&path(&objects, "ConfigMap web-settings")).ok();
    assert_eq!(settings["data"], json!({"other": "value"}));
    let deployment = api().get(&path(&objects, "Deployment web")).ok();
    assert_eq!(deployment.pointer("/spec/template/spec/containers/0/envFrom"), None);
    // Nothing is removed that was not shown before.
    let plan = ran.events().into_iter().find(|event| event["type"] == "plan").expect("a plan").to_string();
    assert!(plan.contains("data.mode") && plan.contains("envFrom"), "{plan}");
    assert_eq!(planned(&app.apply(&input, &["--wait=false"]).expect(0)), Vec::<String>::new());
}

fn an_app_made_by_kapp_is_deleted_whole() {
    let (app, objects) = revived("02-updated-and-pruned", "shop");
    app.delete(&["--wait=false"]).expect(0);
    for object in &objects {
        assert!(!exists(&api().path_of(object)), "{} stays", object["metadata"]["name"]);
    }
    let listed = app.pushback.run(&["list", "-n", &app.namespace, "-o", "json"]).expect(0).json();
    assert_eq!(listed["apps"], json!([]));
}

fn a_record_under_the_fully_qualified_name_stays_there() {
    let (app, objects) = revived("04-fq-names-and-labels", "shop");
    let record = path(&objects, "ConfigMap shop.apps.k14s.io");
    let before = api().get(&record).ok();
    app.apply(&config_map("a", "new"), &[]).expect(0);
    assert!(!exists(&app.record_path()), "a second record");
    let after = api().get(&record).ok();
    // Labels that the user gave the app, and kapp's marks of how it keeps the app.
    assert_eq!(after["metadata"]["labels"], before["metadata"]["labels"]);
    assert_eq!(after["metadata"]["annotations"], before["metadata"]["annotations"]);
    assert_eq!(api().get(&config_map_path(&app.namespace, "a")).ok()["data"]["key"], "new");
    let qualified = TestApp::new("shop.apps.k14s.io", &app.namespace);
    assert_eq!(qualified.inspected(), ["ConfigMap a"]);
    qualified.delete(&[]).expect(0);
    assert!(!exists(&record));
}

fn a_custom_resource_made_by_kapp_is_kept_and_pruned() {
    let (app, objects) = revived("05-crd-and-custom-resource", "shop");
    let input = kapp::input("05-crd-and-custom-resource", 1, &[]);
    app.apply(&input, &[]).expect(0);
    let widget = path(&objects, "Widget w1");
    assert_eq!(api().get(&widget).ok()["spec"], json!({"size": 3}));
    let (crd, _) = input.split_once("---").expect("two documents");
    let ran = app.apply(crd, &[]).expect(0);
    assert_eq!(planned(&ran), ["delete Widget w1"]);
    assert!(!exists(&widget));
    app.delete(&["--preflight=none"]).expect(0);
    let events = app.pushback.run(&["list", "-n", &app.namespace, "-o", "json"]).expect(0).json();
    assert_eq!(events["apps"], json!([]));
}

fn what_kapp_has_orphaned_is_not_touched_again() {
    let (app, objects) = revived("06-orphaned", "shop");
    assert_eq!(app.inspected(), ["ConfigMap other"]);
    let orphan = api().get(&path(&objects, "ConfigMap stays")).ok();
    app.apply(&kapp::input("06-orphaned", 2, &[]), &[]).expect(0);
    app.delete(&[]).expect(0);
    assert_eq!(api().get(&path(&objects, "ConfigMap stays")).ok(), orphan);
    assert!(!exists(&path(&objects, "ConfigMap other")));
}

fn objects_in_other_namespaces_are_found() {
    let cluster = TestCluster::shared();
    let (first, second) = (cluster.namespace("kapp"), cluster.namespace("kapp"));
    let namespaces = [("kd-a", first.as_str()), ("kd-b", second.as_str())];
    let objects = kapp::revive("08-other-namespace", &namespaces);
    let app = TestApp::new("shop", &first);
    assert_eq!(app.inspected(), ["ConfigMap in-a", "ConfigMap in-b"]);
    let ran = app.apply(&config_map("in-a", "value"), &[]).expect(0);
    assert!(planned(&ran).contains(&"delete ConfigMap in-b".to_owned()), "{:?}", planned(&ran));
    assert!(!exists(&path(&objects, "ConfigMap in-b")));
}

/// A ConfigMap as kapp leaves it.
fn made_by_kapp(namespace: &str, name: &str, label: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "data": {"key": "kapp"},
        "metadata": {
            "namespace": namespace, "name": name, "labels": {"kapp.k14s.io/app": label},
            "annotations": {"kapp.k14s.io/identity": format!("v1;{namespace}//ConfigMap/{name};v1")},
        },
    })
}

fn after_a_deploy_by_kapp_nothing_is_lost() {
    let cluster = TestCluster::shared();
    let (namespace, other) = (cluster.namespace("kapp"), cluster.namespace("kapp"));
    let app = TestApp::new("shop", &namespace);
    let two = config_map("a", "1") + &config_map("b", "1");
    app.apply(&two, &[]).expect(0);
    // kapp changes one object, and adds two: of another kind, and in another namespace.
    let changed = config_map_path(&namespace, "a");
    let mut object = api().get(&changed).ok();
    object["data"]["key"] = json!("by kapp");
    api().put(&format!("{changed}?fieldManager=kapp"), &object).ok();
    let mut elsewhere = made_by_kapp(&other, "c", &app.label());
    kapp::create(&mut elsewhere);
    let mut account = made_by_kapp(&namespace, "d", &app.label());
    account["kind"] = json!("ServiceAccount");
    account.as_object_mut().expect("a map").shift_remove("data");
    account["metadata"]["annotations"]["kapp.k14s.io/identity"] = json!(format!("v1;{namespace}//ServiceAccount/d;v1"));
    kapp::create(&mut account);
    let kinds = [("", "ConfigMap"), ("", "ServiceAccount")];
    kapp::deploy_record(&app.record_path(), "shop-change-kapp1", &kinds, &[&namespace, &other]);
    // A part of an inventory that was too large for the record; no pointer leads to it any more. The label is the MD5
    // of the app's name.
    let inventory = "fb54f3c5992b96d001bb16e8e92d968d";
    let shard = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"entries": "[]"}, "metadata":
        {"namespace": namespace, "name": "shop-inventory-x-0", "labels": {"pushback.dev/inventory": inventory}}});
    api().apply(&shard).ok();

    let shown: BTreeSet<String> = app.inspected().into_iter().collect();
    let all = ["ConfigMap a", "ConfigMap b", "ConfigMap c", "ServiceAccount d"];
    assert_eq!(shown, all.map(str::to_owned).into());
    let ran = app.apply(&two, &[]).expect(0);
    let plan = planned(&ran);
    for expected in ["update ConfigMap a", "delete ConfigMap c", "delete ServiceAccount d"] {
        assert!(plan.contains(&expected.to_owned()), "no {expected} in {plan:?}");
    }
    assert_eq!(api().get(&changed).ok()["data"]["key"], "1");
    assert!(!exists(&api().path_of(&elsewhere)) && !exists(&api().path_of(&account)));
    assert!(!exists(&api().path_of(&shard)));
    assert_eq!(planned(&app.apply(&two, &[]).expect(0)), Vec::<String>::new());
}

/// Whoever keeps our keys: the name of the last change tells that somebody else has deployed.
fn a_change_of_another_name_voids_the_inventory() {
    let namespace = TestCluster::shared().namespace("kapp");
    let app = TestApp::new("shop", &namespace);
    app.apply(&config_map("a", "1"), &[]).expect(0);
    let mut added = made_by_kapp(&namespace, "b", &app.label());
    kapp::create(&mut added);
    let requests = |ran: &crate::support::pushback::Ran| ran.events().last().expect("an end")["requests"].as_u64();
    let known = requests(&app.apply(&config_map("a", "1"), &["--patch"]).expect(0));
    let mut spec = app.spec();
    spec["lastChangeName"] = json!("shop-change-by-kapp");
    api().merge_patch(&app.record_path(), &json!({"data": {"spec": spec.to_string()}})).ok();
    let void = requests(&app.apply(&config_map("a", "1"), &["--patch"]).expect(0));
    assert!(void > known, "what the record said is believed: {void:?} requests, {known:?} before");
    assert_eq!(planned(&app.apply(&config_map("a", "1"), &[]).expect(0)), ["delete ConfigMap b"]);
}

fn a_record_without_used_kinds_means_every_kind() {
    let (app, objects) = revived("01-plain", "shop");
    let mut spec = app.spec();
    spec.as_object_mut().expect("a map").retain(|key, _| !key.starts_with("used"));
    api().merge_patch(&app.record_path(), &json!({"data": {"spec": spec.to_string()}})).ok();
    let ran = app.apply(&config_map("web-settings", "value"), &["--wait=false"]).expect(0);
    let deleted = planned(&ran).into_iter().filter(|line| line.starts_with("delete")).collect::<BTreeSet<_>>();
    let expected = ["delete Secret web-secret", "delete Service web", "delete Deployment web"];
    assert_eq!(deleted, expected.map(str::to_owned).into());
    assert!(!exists(&path(&objects, "Service web")));
}

fn a_patch_of_an_app_of_kapp_keeps_the_rest_of_it_known() {
    let (app, objects) = revived("01-plain", "shop");
    let one = config_map("web-settings", "value");
    app.apply(&one, &["--patch", "--wait=false"]).expect(0);
    assert!(exists(&path(&objects, "Service web")));
    // kapp goes by the kinds in the record: one that is left out there is never looked for again.
    let recorded = kapp::live("01-plain", &[]).remove(0);
    assert_eq!(names(&app.spec()["usedGKs"]), names(&parse_text(&recorded["data"]["spec"])["usedGKs"]));
    assert_eq!(app.inspected().len(), 4);
    app.apply(&one, &["--wait=false"]).expect(0);
    assert!(!exists(&path(&objects, "Service web")) && !exists(&path(&objects, "Secret web-secret")));
    assert_eq!(names(&app.spec()["usedGKs"]).len(), 1);
}

fn history_is_written_as_kapp_writes_it() {
    let namespace = TestCluster::shared().namespace("kapp");
    let app = TestApp::new("shop", &namespace);
    app.apply(&config_map("a", "1"), &[]).expect(0);
    app.apply(&(config_map("a", "2") + &config_map("b", "2")), &[]).expect(0);
    let history = app.history();
    assert_eq!(history.len(), 2);
    let recorded = kapp::live("01-plain", &[]).remove(1);
    for entry in &history {
        assert_eq!(entry["metadata"]["generateName"], recorded["metadata"]["generateName"]);
        assert_eq!(keys(&entry["metadata"]["labels"]), keys(&recorded["metadata"]["labels"]));
        assert_eq!(entry["metadata"]["labels"]["kapp.k14s.io/app-change-app"], "shop");
        assert_eq!(keys(&parse_text(&entry["data"]["spec"])), keys(&parse_text(&recorded["data"]["spec"])));
    }
    let spec = parse_text(&history[1]["data"]["spec"]);
    assert_eq!(
        spec["description"],
        "update: Op: 1 create, 0 delete, 1 update, 0 noop, 0 exists / Wait to: 2 reconcile, 0 delete, 0 noop"
    );
    assert_eq!(app.spec()["lastChange"], spec);
    // What changes nothing is no change, and has no part in one.
    app.apply(&(config_map("a", "2") + &config_map("b", "2")), &[]).expect(0);
    assert_eq!(app.history().len(), 2);
    app.apply(&config_map("a", "2"), &[]).expect(0);
    assert_eq!(
        app.spec()["lastChange"]["description"],
        "update: Op: 0 create, 1 delete, 0 update, 0 noop, 0 exists / Wait to: 0 reconcile, 1 delete, 0 noop"
    );
}

fn with_the_scope_of_known_namespaces_no_other_is_looked_into() {
    let [home, elsewhere] = ["home", "elsewhere"].map(|prefix| TestCluster::shared().namespace(prefix));
    let kapp = Pushback::on(TestCluster::shared()).with("PUSHBACK_VOICE", "kapp").with("KAPP_NAMESPACE", &home);
    kapp.write("one.yaml", config_map("one", "1"));
    kapp.run(&["deploy", "-a", "shop", "-f", "one.yaml", "-y"]).expect(0);
    let app = TestApp::new("shop", &home);
    // An object of the app in a namespace that its record does not tell of.
    api()
        .apply(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {
            "namespace": elsewhere, "name": "two", "labels": {"kapp.k14s.io/app": app.label()},
            "annotations": {"kapp.k14s.io/identity": format!("v1;{elsewhere}//ConfigMap/two;v1")},
        }}))
        .ok();
    let mut spec = app.spec();
    spec["lastChangeName"] = json!("shop-change-by-kapp");
    api().merge_patch(&app.record_path(), &json!({"data": {"spec": spec.to_string()}})).ok();
    let scope = "--dangerous-scope-to-fallback-allowed-namespaces";
    let deploy = ["deploy", "-a", "shop", "-f", "one.yaml", "--diff-run"];
    let counted = |more: &[&str]| kapp.run(&[&deploy[..], more].concat()).expect(0).stdout;
    let (whole, narrow) = (counted(&[]), counted(&[scope]));
    assert!(whole.contains(" 1 delete, 0 update"), "{whole}");
    assert!(narrow.contains(" 0 delete, 0 update"), "{narrow}");
    let inspected = |more: &[&str]| kapp.run(&[&["inspect", "-a", "shop"], more].concat()).expect(0).stdout;
    assert!(inspected(&[]).contains("\ttwo\t") && !inspected(&[scope]).contains("\ttwo\t"), "{}", inspected(&[]));
}

fn an_object_that_is_served_in_two_groups_is_updated() {
    let app = TestApp::new("shop", &TestCluster::shared().namespace("groups"));
    let home = &app.namespace;
    let old =
        format!("{{apiVersion: v1, kind: Event, metadata: {{name: seen}}, involvedObject: {{namespace: {home}}}}}");
    let new = format!(
        "{{apiVersion: events.k8s.io/v1, kind: Event, metadata: {{name: seen}}, regarding: {{namespace: {home}}}}}"
    );
    app.apply(&old, &[]).expect(0);
    let path = format!("/api/v1/namespaces/{home}/events/seen");
    let uid = || api().get(&path).ok()["metadata"]["uid"].take();
    let before = uid();
    let changed = planned(&app.apply(&new, &[]).expect(0));
    assert!(!changed.iter().any(|line| line.starts_with("create") || line.starts_with("delete")), "{changed:?}");
    assert_eq!(uid(), before);
    assert_eq!(app.inspected(), ["Event seen"]);
    app.delete(&[]).expect(0);
    assert_eq!(api().get(&path).status, 404);
}

fn history_is_trimmed_and_can_be_switched_off() {
    let namespace = TestCluster::shared().namespace("kapp");
    let app = TestApp::new("shop", &namespace);
    let change = |value: &str, keep: &str| app.apply(&config_map("a", value), &["--app-changes-max-to-keep", keep]);
    for value in ["1", "2", "3", "4"] {
        change(value, "2").expect(0);
    }
    let kept = app.history();
    assert_eq!(kept.len(), 2);
    assert_eq!(app.spec()["lastChangeName"], kept[1]["metadata"]["name"], "the newest ones stay");
    change("5", "0").expect(0);
    assert_eq!(app.history().len(), 0);
    let listed = app.pushback.run(&["list", "-n", &namespace, "-o", "json"]).expect(0).json();
    assert_eq!(listed["apps"][0]["successful"], true, "{listed}");
    assert_eq!(api().get(&config_map_path(&namespace, "a")).ok()["data"]["key"], "5");
    assert!(app.inspected().iter().map(String::as_str).eq([short(&json!({"kind": "ConfigMap", "name": "a"}))]));
}
