//! Objects of an app below a parent that the run replaces, on a real control plane: what is deleted with the parent is
//! created again, and what nobody would create again is refused.

use serde_json::{Value, json};

use crate::kill_points::killed;
use crate::support::api::ApiClient;
use crate::support::apply::{TestApp, assert_order, config_map_path, planned, short};
use crate::support::proxy::{Verb, matching};
use crate::support::pushback::Ran;
use crate::support::{Pushback, TestCase, TestCluster, cases};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        Controllers: contents_of_a_replaced_namespace_are_created_again,
        Controllers: custom_resources_of_a_replaced_crd_are_created_again_once_accepted,
        Controllers: replaced_crd_with_objects_of_others_is_refused_whatever_is_accepted_for_the_app,
        Controllers: replaced_namespace_with_objects_of_others_is_refused,
        Controllers: run_killed_after_the_deletion_of_a_namespace_is_finished_by_the_next,
        Controllers: run_killed_after_the_deletion_of_a_crd_is_finished_by_the_next,
        Controllers: versioned_contents_of_a_replaced_namespace_are_created_again,
        Controllers: replaced_namespace_with_an_object_that_the_app_may_not_touch_is_refused,
        Controllers: awaited_object_in_a_replaced_namespace_is_awaited_after_the_replacement,
        Controllers: dependent_of_a_replaced_owner_is_created_again,
        Controllers: object_of_the_manifests_in_a_deleted_namespace_is_refused,
        Controllers: scope_of_custom_resources_is_that_of_the_crd_in_the_manifests,
        Controllers: saved_plan_creates_contents_again,
        Controllers: object_that_the_server_refuses_as_new_keeps_its_namespace,
        Nothing: contents_of_a_replaced_namespace_stay_in_a_folder,
    ]
}

fn api() -> &'static ApiClient {
    TestCluster::shared().api()
}

fn app() -> TestApp {
    TestApp::new("app", &TestCluster::shared().namespace("parents"))
}

/// A field case, with names of this test alone.
fn case(file: &str, app: &TestApp) -> String {
    let path = format!("{}/tests/data/replaced-parent/{file}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).expect("a field case");
    text.replace("field-cases", &app.namespace)
        .replace("w28.example.com", &format!("{}.example.com", app.namespace))
        .replace("r28b", &inside(app))
}

/// The namespace that is replaced.
fn inside(app: &TestApp) -> String {
    format!("{}-inside", app.namespace)
}

/// A Namespace that is replaced if this label changes, and what is in it.
fn namespace(app: &TestApp, tier: &str, contents: &[Value]) -> String {
    let annotations = json!({"kapp.k14s.io/update-strategy": "always-replace"});
    let metadata = json!({"name": inside(app), "labels": {"tier": tier}, "annotations": annotations});
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata});
    let mut objects = vec![namespace];
    objects.extend(contents.iter().cloned().map(|mut object| {
        object["metadata"]["namespace"] = json!(inside(app));
        object
    }));
    stream(&objects)
}

fn stream(objects: &[Value]) -> String {
    objects.iter().map(|object| format!("---\n{object}\n")).collect()
}

fn config_map(name: &str, value: &str, annotations: &Value) -> Value {
    let metadata = json!({"name": name, "annotations": annotations});
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"key": value}})
}

/// Arguments that accept everything that refuses the input now.
fn accepted(app: &TestApp, input: &str) -> Vec<String> {
    let ran = app.apply(input, &[]).expect(10);
    let errors = ran.events_of("finding").into_iter().map(|event| event["finding"].clone());
    let errors = errors.filter(|finding| finding["severity"] == "error");
    errors.map(|finding| format!("--waive={}=known", finding["fingerprint"].as_str().expect("a text"))).collect()
}

fn with(app: &TestApp, input: &str, arguments: &[String]) -> Ran {
    app.apply(input, &arguments.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Checks that refuse, as `rule/check`.
fn refused(ran: &Ran) -> Vec<String> {
    let findings = ran.events_of("finding").into_iter().map(|event| event["finding"].clone());
    let errors = findings.filter(|finding| finding["severity"] == "error");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    errors.map(|finding| format!("{}/{}", text(&finding["rule"]), text(&finding["check"]))).collect()
}

fn uid(path: &str) -> String {
    api().get(path).ok()["metadata"]["uid"].as_str().expect("a uid").to_owned()
}

fn widgets(app: &TestApp) -> String {
    format!("/apis/{}.example.com/v1/namespaces/{0}/widgets", app.namespace)
}

fn counts(ran: &Ran) -> Value {
    ran.events_of("plan").pop().expect("a plan")["counts"].clone()
}

fn contents_of_a_replaced_namespace_are_created_again() {
    let app = app();
    app.apply(&case("b1.yaml", &app), &[]).expect(0);
    let path = config_map_path(&inside(&app), "inside");
    let before = uid(&path);
    let ran = app.apply(&case("b2.yaml", &app), &[]).expect(0);
    assert_ne!(uid(&path), before);
    let namespace = inside(&app);
    assert_eq!(planned(&ran), [format!("replace Namespace {namespace}"), "replace ConfigMap inside".to_owned()]);
    assert_eq!((&counts(&ran)["replace"], &counts(&ran)["noop"]), (&json!(2), &json!(0)));
    assert_order(&ran, &format!("Namespace {namespace}"), "ConfigMap inside");
    // Nothing is left for another run.
    let again = app.apply(&case("b2.yaml", &app), &[]).expect(0);
    assert_eq!(planned(&again), Vec::<String>::new());
}

fn custom_resources_of_a_replaced_crd_are_created_again_once_accepted() {
    let app = app();
    app.apply(&case("a1.yaml", &app), &[]).expect(0);
    let path = format!("{}/one", widgets(&app));
    let before = uid(&path);
    let ran = app.apply(&case("a2.yaml", &app), &[]).expect(10);
    assert_eq!(refused(&ran), ["CRDUpgradeSafety/crdReplacement"]);
    assert_eq!(uid(&path), before);
    let accepted = accepted(&app, &case("a2.yaml", &app));
    let ran = with(&app, &case("a2.yaml", &app), &accepted).expect(0);
    assert_ne!(uid(&path), before);
    assert_eq!(api().get(&path).ok()["spec"]["a"], "x");
    assert_eq!(counts(&ran)["replace"], 2);
    assert_order(&ran, &format!("CustomResourceDefinition widgets.{}.example.com", app.namespace), "Widget one");
    app.apply(&case("a2.yaml", &app), &[]).expect(0);
}

fn replaced_crd_with_objects_of_others_is_refused_whatever_is_accepted_for_the_app() {
    let app = app();
    app.apply(&case("a1.yaml", &app), &[]).expect(0);
    let accepted = accepted(&app, &case("a2.yaml", &app));
    let guest = json!({
        "apiVersion": format!("{}.example.com/v1", app.namespace), "kind": "Widget", "metadata": {"name": "guest"},
    });
    api().post(&widgets(&app), &guest).ok();
    let before = uid(&format!("{}/one", widgets(&app)));
    let ran = with(&app, &case("a2.yaml", &app), &accepted).expect(10);
    assert_eq!(refused(&ran), ["CRDUpgradeSafety/crdReplacementLoss"]);
    assert_eq!(uid(&format!("{}/one", widgets(&app))), before);
    api().get(&format!("{}/guest", widgets(&app))).ok();
}

fn replaced_namespace_with_objects_of_others_is_refused() {
    let app = app();
    app.apply(&case("b1.yaml", &app), &[]).expect(0);
    let guest = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "guest"}});
    api().post(&format!("/api/v1/namespaces/{}/configmaps", inside(&app)), &guest).ok();
    let ran = app.apply(&case("b2.yaml", &app), &["--preflight=default,DestructiveChange"]).expect(10);
    assert_eq!(refused(&ran), ["DestructiveChange/namespaceDeleted"]);
    let finding = ran.events_of("finding").into_iter().find(|event| event["finding"]["severity"] == "error");
    assert_eq!(finding.expect("a finding")["finding"]["liveObjects"]["affected"], 1, "only the guest is lost");
    api().get(&config_map_path(&inside(&app), "guest")).ok();
}

/// Kills a run right after its deletion of an object; the next plain run makes everything exist.
fn killed_after_deletion(app: &TestApp, input: &str, resource: &str, arguments: &[String]) {
    app.pushback.write("app.yaml", input);
    let all: Vec<String> = ["apply", "-a", &app.name, "-n", &app.namespace, "-f", "app.yaml", "--yes", "-o", "json"]
        .map(str::to_owned)
        .into_iter()
        .chain(arguments.iter().cloned())
        .collect();
    let at = matching(Verb::Delete, resource);
    assert!(killed(TestCluster::shared(), &app.pushback, &all, at, true).is_some(), "it deletes the parent");
}

fn run_killed_after_the_deletion_of_a_namespace_is_finished_by_the_next() {
    let app = app();
    app.apply(&case("b1.yaml", &app), &[]).expect(0);
    killed_after_deletion(&app, &case("b2.yaml", &app), "namespaces", &[]);
    app.apply(&case("b2.yaml", &app), &[]).expect(0);
    assert_eq!(api().get(&config_map_path(&inside(&app), "inside")).ok()["data"]["a"], "b");
}

fn run_killed_after_the_deletion_of_a_crd_is_finished_by_the_next() {
    let app = app();
    app.apply(&case("a1.yaml", &app), &[]).expect(0);
    let accepted = accepted(&app, &case("a2.yaml", &app));
    killed_after_deletion(&app, &case("a2.yaml", &app), "customresourcedefinitions", &accepted);
    app.apply(&case("a2.yaml", &app), &[]).expect(0);
    assert_eq!(api().get(&format!("{}/one", widgets(&app))).ok()["spec"]["a"], "x");
}

fn versioned_contents_of_a_replaced_namespace_are_created_again() {
    let app = app();
    let settings = |value: &str| config_map("settings", value, &json!({"kapp.k14s.io/versioned": ""}));
    app.apply(&namespace(&app, "one", &[settings("1")]), &[]).expect(0);
    app.apply(&namespace(&app, "one", &[settings("2")]), &[]).expect(0);
    let ran =
        app.apply(&namespace(&app, "two", &[settings("2")]), &["--preflight=default,DestructiveChange"]).expect(0);
    let path = |version: u8| config_map_path(&inside(&app), &format!("settings-ver-{version}"));
    assert_eq!(api().get(&path(2)).ok()["data"]["key"], "2");
    assert_eq!(api().get(&path(1)).status, 404);
    assert!(planned(&ran).contains(&"delete ConfigMap settings-ver-1".to_owned()), "{:?}", planned(&ran));
}

fn replaced_namespace_with_an_object_that_the_app_may_not_touch_is_refused() {
    let app = app();
    let mine = |annotations: &Value| config_map("mine", "1", annotations);
    app.apply(&namespace(&app, "one", &[mine(&json!({}))]), &[]).expect(0);
    let next = namespace(&app, "two", &[mine(&json!({"kapp.k14s.io/noop": ""}))]);
    let ran = app.apply(&next, &["--preflight=default,DestructiveChange"]).expect(10);
    assert_eq!(refused(&ran), ["DestructiveChange/namespaceDeleted"]);
    api().get(&config_map_path(&inside(&app), "mine")).ok();
}

fn awaited_object_in_a_replaced_namespace_is_awaited_after_the_replacement() {
    let app = app();
    app.apply(&namespace(&app, "one", &[]), &[]).expect(0);
    let guest = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "guest"}});
    api().post(&format!("/api/v1/namespaces/{}/configmaps", inside(&app)), &guest).ok();
    let awaited = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "guest", "annotations": {"kapp.k14s.io/exists": ""}},
    });
    let next = namespace(&app, "two", &[awaited]);
    // Nobody creates it again, so a run that is made to go on does not end with 0.
    let ran = app.apply(&next, &["--preflight=none", "--apply-timeout=3s"]);
    assert_eq!(ran.code, 20, "{}", ran.stdout);
}

fn dependent_of_a_replaced_owner_is_created_again() {
    let app = app();
    let owner = |value: &str| config_map("owner", value, &json!({"kapp.k14s.io/update-strategy": "always-replace"}));
    let input = |value: &str| stream(&[owner(value), config_map("dependent", "1", &json!({}))]);
    app.apply(&input("1"), &[]).expect(0);
    let path = |name: &str| config_map_path(&app.namespace, name);
    let references = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid(&path("owner"))}]);
    api().merge_patch(&path("dependent"), &json!({"metadata": {"ownerReferences": references}})).ok();
    let before = uid(&path("dependent"));
    let ran = app.apply(&input("2"), &["--preflight=none"]).expect(0);
    let mut lines = planned(&ran);
    lines.sort();
    assert_eq!(lines, ["replace ConfigMap dependent", "replace ConfigMap owner"]);
    let after = api().get(&path("dependent")).ok();
    assert_ne!(after["metadata"]["uid"], before);
    assert_eq!(after["metadata"]["ownerReferences"], Value::Null, "the garbage collector leaves it alone");
}

fn object_of_the_manifests_in_a_deleted_namespace_is_refused() {
    let app = app();
    app.apply(&case("b1.yaml", &app), &[]).expect(0);
    let mut object = config_map("inside", "1", &json!({}));
    object["metadata"]["namespace"] = json!(inside(&app));
    let ran = app.apply(&object.to_string(), &["--preflight=none"]).expect(10);
    assert_eq!(refused(&ran), ["server/deleted-parent"]);
    // What the finding advises helps.
    let kept = json!({"metadata": {"annotations": {"kapp.k14s.io/delete-strategy": "orphan"}}});
    api().merge_patch(&format!("/api/v1/namespaces/{}", inside(&app)), &kept).ok();
    app.apply(&object.to_string(), &["--preflight=none"]).expect(0);
    assert_eq!(api().get(&config_map_path(&inside(&app), "inside")).ok()["data"]["key"], "1");
}

fn scope_of_custom_resources_is_that_of_the_crd_in_the_manifests() {
    let app = app();
    let cluster_scoped = |file: &str| {
        let text = case(file, &app).replace("scope: Namespaced", "scope: Cluster");
        text.replace(&format!("{{name: one, namespace: {}}}", app.namespace), "{name: one}")
    };
    app.apply(&case("a1.yaml", &app), &[]).expect(0);
    let next = cluster_scoped("a2.yaml");
    assert!(next.contains("{name: one}") && next.contains("scope: Cluster"), "{next}");
    let everything = accepted(&app, &next);
    let ran = with(&app, &next, &everything).expect(0);
    let path = format!("/apis/{}.example.com/v1/widgets/one", app.namespace);
    assert_eq!(api().get(&path).ok()["spec"]["a"], "x");
    let events = ran.events_of("plan").pop().expect("a plan");
    let namespaces: Vec<(String, String)> = events["changes"]
        .as_array()
        .expect("changes")
        .iter()
        .filter(|change| short(&change["object"]) == "Widget one")
        .map(|change| {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            (text(&change["operation"]), text(&change["object"]["namespace"]))
        })
        .collect();
    let expected = [("create", ""), ("delete", app.namespace.as_str())];
    assert_eq!(namespaces, expected.map(|(operation, namespace)| (operation.to_owned(), namespace.to_owned())));
    // And back, the other way round.
    let everything = accepted(&app, &case("a1.yaml", &app));
    with(&app, &case("a1.yaml", &app), &everything).expect(0);
    assert_eq!(api().get(&format!("{}/one", widgets(&app))).ok()["spec"]["a"], "x");
}

fn saved_plan_creates_contents_again() {
    let app = app();
    app.apply(&case("b1.yaml", &app), &[]).expect(0);
    let path = config_map_path(&inside(&app), "inside");
    let before = uid(&path);
    app.pushback.write("app.yaml", case("b2.yaml", &app));
    app.run("plan", &["-f", "app.yaml", "--out", "plan.json"]).expect(0);
    app.pushback.run(&["apply", "--plan", "plan.json", "-o", "json"]).expect(0);
    assert_ne!(uid(&path), before);
}

/// A live object may be one that the server would not accept any more as a new one: its namespace stays.
fn object_that_the_server_refuses_as_new_keeps_its_namespace() {
    let app = app();
    app.apply(&namespace(&app, "one", &[config_map("inside", "1", &json!({}))]), &[]).expect(0);
    let before = uid(&config_map_path(&inside(&app), "inside"));
    let mut wrong = config_map("inside", "1", &json!({}));
    wrong["data"] = json!({"not a key": "1"});
    let ran = app.apply(&namespace(&app, "two", &[wrong]), &["--preflight=none"]).expect(10);
    assert!(refused(&ran)[0].starts_with("server/"), "{:?}", refused(&ran));
    assert_eq!(uid(&config_map_path(&inside(&app), "inside")), before);
}

fn contents_of_a_replaced_namespace_stay_in_a_folder() {
    let app = TestApp { pushback: Pushback::new(), name: "app".to_owned(), namespace: "default".to_owned() };
    std::fs::create_dir(app.pushback.directory().join("live")).expect("a folder");
    let apply = |tier: &str| {
        let input = namespace(&app, tier, &[config_map("inside", "1", &json!({}))]);
        app.pushback.write("app.yaml", input);
        let arguments = ["apply", "-a", "app", "-f", "app.yaml", "--yes", "-o", "json", "--cluster", "dir:live"];
        app.pushback.run(&[&arguments[..], &["--preflight=none"]].concat())
    };
    apply("one").expect(0);
    let ran = apply("two").expect(0);
    assert_eq!(counts(&ran)["replace"], 2);
    assert!(
        app.pushback.tree("live").values().any(|text| text.contains("kind: ConfigMap") || text.contains("ConfigMap"))
    );
}
