//! A refusal for each kind of way out, and following it.

use serde_json::{Value, json};

use super::{Refused, app, new_app, refusing};
use crate::support::api::ApiClient;
use crate::support::apply::{TestApp, config_map, config_map_path};
use crate::support::{TestCluster, wait_until};
use std::time::Duration;

pub(super) const SOON: Duration = Duration::from_secs(60);

pub(super) fn api() -> &'static ApiClient {
    TestCluster::shared().api()
}

pub(super) fn namespace() -> String {
    TestCluster::shared().namespace("way")
}

/// A definition with these versions, `name` or `name*` for the one that is stored; `colour` has this schema.
pub(super) fn definition(group: &str, versions: &[&str], colour: &str) -> String {
    let version = |name: &&str| {
        let (name, storage) = name.strip_suffix('*').map_or((*name, false), |name| (name, true));
        format!(
            "  - name: {name}\n    served: true\n    storage: {storage}\n    schema: {{openAPIV3Schema: {{type: object, properties: \
             {{spec: {{type: object, properties: {{colour: {colour}}}}}}}}}}}\n"
        )
    };
    let versions: String = versions.iter().map(version).collect();
    format!(
        "---\napiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: widgets.{group}}}\nspec:\n  \
         group: {group}\n  scope: Namespaced\n  names: {{plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}}\n  \
         versions:\n{versions}"
    )
}

pub(super) const TEXT: &str = "{type: string}";

pub(super) fn group(app: &TestApp) -> String {
    format!("{}.example.com", app.namespace)
}

/// Stores an object in a version.
pub(super) fn store(app: &TestApp, version: &str, name: &str, colour: &str) {
    let group = group(app);
    let path = format!("/apis/{group}/{version}/namespaces/{}/widgets", app.namespace);
    wait_until("widgets are served", SOON, || (api().get(&path).status == 200).then_some(()));
    let object = json!({
        "apiVersion": format!("{group}/{version}"), "kind": "Widget", "metadata": {"name": name}, "spec": {"colour": colour},
    });
    api().post(&path, &object).ok();
}

pub(super) fn stored_versions(app: &TestApp) -> Value {
    let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.{}", group(app));
    api().get(&path).ok()["status"]["storedVersions"].clone()
}

/// Two objects in v1alpha1, of which v1 has taken over as the version that is stored.
fn moved_on() -> TestApp {
    let app = new_app(&namespace());
    app.apply(&definition(&group(&app), &["v1alpha1*"], TEXT), &[]).expect(0);
    store(&app, "v1alpha1", "a", "red");
    store(&app, "v1alpha1", "b", "blue");
    app.apply(&definition(&group(&app), &["v1alpha1", "v1*"], TEXT), &[]).expect(0);
    app
}

pub(super) fn objects_are_moved_in_the_same_apply() {
    let app = moved_on();
    let wanted = definition(&group(&app), &["v1*"], TEXT);
    let refused = Refused::of(app, &wanted, &[]);
    let settled = refused.settled_by("a stored version is removed", "storedVersionRemoval", "moveObjects");
    assert_eq!(stored_versions(&settled.app), json!(["v1"]));
}

pub(super) fn objects_are_moved_step_by_step() {
    let app = moved_on();
    let wanted = definition(&group(&app), &["v1*"], TEXT);
    let mut refused = Refused::of(app, &wanted, &[]);
    let way = refused.ways("storedVersionRemoval", "moveObjects")[1].clone();
    assert_eq!(way["commands"].as_array().map(Vec::len), Some(4), "{way}");
    refused.follow(&way);
    refused.assert_settled("the same, step by step", "storedVersionRemoval", &way);
    assert_eq!(stored_versions(&refused.app), json!(["v1"]));
}

pub(super) fn objects_are_carried_over_by_a_bridge() {
    let app = new_app(&namespace());
    app.apply(&definition(&group(&app), &["v1alpha1*"], TEXT), &[]).expect(0);
    store(&app, "v1alpha1", "a", "red");
    let wanted = definition(&group(&app), &["v1*"], TEXT);
    let refused = Refused::of(app, &wanted, &[]);
    let settled = refused.settled_by("the version that is stored is replaced", "storedVersionRemoval", "moveObjects");
    let path = format!("/apis/{}/v1/namespaces/{}/widgets/a", group(&settled.app), settled.app.namespace);
    assert_eq!(api().get(&path).ok()["spec"]["colour"], "red");
}

/// Two CRDs remove their storage version. `--storage=bridge` leaves one kind of finding, and its command settles it.
pub(super) fn clients_of_bridged_versions_are_accepted_by_one_command() {
    let app = new_app(&namespace());
    let both = |version: &str| {
        let widgets = definition(&group(&app), &[version], TEXT);
        widgets.clone() + &widgets.replace("widget", "gadget").replace("Widget", "Gadget")
    };
    app.apply(&both("v1alpha1*"), &[]).expect(0);
    store(&app, "v1alpha1", "a", "red");
    let wanted = both("v1*");
    let refused = Refused::of(app, &wanted, &["--storage=bridge"]);
    assert_eq!(refusing(&refused.report).len(), 2, "{:#}", refused.report);
    let settled = refused.settled_by("clients of a version that is removed", "servedVersionRemoval", "accept");
    let path = format!("/apis/{}/v1/namespaces/{}/widgets/a", group(&settled.app), settled.app.namespace);
    assert_eq!(api().get(&path).ok()["spec"]["colour"], "red");
}

pub(super) fn old_entries_of_the_list_are_cleared() {
    let app = moved_on();
    // The rule warns of what is left behind; it refuses where a policy asks for that.
    let input = definition(&group(&app), &["v1alpha1", "v1*"], "{type: string, description: new}");
    app.pushback.write("new.yaml", &input);
    let arguments = ["-f", "new.yaml", "--yes", "--wait=false", "--report", "json=report.json"];
    app.run("apply", &arguments).expect(0);
    let report = app.pushback.read_json("report.json");
    let mut findings = report["findings"].as_array().expect("findings").iter();
    let finding = findings.find(|finding| finding["check"] == "debt").unwrap_or_else(|| panic!("{report:#}"));
    let way = finding["remedies"][0].clone();
    assert_eq!(way["kind"], "moveObjects");
    let mut refused = Refused { app, arguments: arguments.map(str::to_owned).to_vec(), report };
    refused.follow(&way);
    assert_eq!(stored_versions(&refused.app), json!(["v1"]));
    // The command that is given back writes no report.
    refused.app.run("apply", &arguments).expect(0);
    let after = refused.app.pushback.read_json("report.json");
    assert_eq!(after["findings"], json!([]), "{after:#}");
}

pub(super) fn objects_that_would_be_refused_are_corrected() {
    let app = app(&namespace(), ["colour: mauve", "colour: red"]);
    app.apply(&definition(&group(&app), &["v1*"], TEXT), &[]).expect(0);
    store(&app, "v1", "a", "red");
    store(&app, "v1", "b", "mauve");
    let wanted = definition(&group(&app), &["v1*"], "{type: string, enum: [red, blue]}");
    let refused = Refused::of(app, &wanted, &[]);
    refused.settled_by("an object has a value that is no longer allowed", "enum", "correctObjects");
}

pub(super) fn an_object_that_would_be_changed_is_corrected() {
    let app = app(&namespace(), ["colour: red", "shape: round"]);
    let with_shape = TEXT.to_owned() + ", shape: {type: string}";
    app.apply(&definition(&group(&app), &["v1*"], &with_shape), &[]).expect(0);
    store(&app, "v1", "a", "red");
    // `colour` goes; what is in it is moved to `shape`.
    let wanted = definition(&group(&app), &["v1*"], &with_shape).replace("colour: {type: string}, ", "");
    let refused = Refused::of(app, &wanted, &[]);
    refused.settled_by("an object uses a field that goes", "existingFieldRemoval", "correctObjects");
}

pub(super) fn a_definition_is_kept_that_leaves_the_app() {
    let app = new_app(&namespace());
    let rest = config_map("rest", "1");
    app.apply(&(rest.clone() + &definition(&group(&app), &["v1*"], TEXT)), &[]).expect(0);
    store(&app, "v1", "a", "red");
    let refused = Refused::of(app, &rest, &[]);
    let settled = refused.settled_by("a definition with objects leaves the app", "crdDeletion", "keep");
    assert_eq!(stored_versions(&settled.app), json!(["v1"]));
}

/// Only this rule runs, with its defaults.
pub(super) fn only(app: &TestApp, rule: &str) -> [&'static str; 2] {
    let config = json!({"apiVersion": "pushback.dev/v1alpha1", "kind": "Config", "preflightRules": [{"name": rule}]});
    app.pushback.write("config.yaml", config.to_string());
    ["--config", "config.yaml"]
}

/// A claim whose volume goes with it, and what else is in the app.
fn with_claim(app: &TestApp) -> String {
    let name = format!("{}-volume", app.namespace);
    let volume = json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": {
        "persistentVolumeReclaimPolicy": "Delete", "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
        "storageClassName": "none", "hostPath": {"path": "/tmp/x"},
    }});
    api().post("/api/v1/persistentvolumes", &volume).ok();
    let rest = config_map("rest", "1");
    let claim = format!(
        "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {{name: data}}\nspec:\n  volumeName: {name}\n  storageClassName: \
         none\n  accessModes: [ReadWriteOnce]\n  resources: {{requests: {{storage: 1Gi}}}}\n"
    );
    app.apply(&(rest.clone() + &claim), &["--wait=false"]).expect(0);
    rest
}

pub(super) fn a_volume_is_kept_when_its_claim_goes() {
    let app = new_app(&namespace());
    let rest = with_claim(&app);
    let only = only(&app, "DestructiveChange");
    let refused = Refused::of(app, &rest, &only);
    let settled = refused.settled_by("a claim goes, and its volume with it", "persistentVolumeClaimDeleted", "keep");
    let path = format!("/api/v1/persistentvolumes/{}-volume", settled.app.namespace);
    assert_eq!(api().get(&path).ok()["spec"]["persistentVolumeReclaimPolicy"], "Retain");
}

pub(super) fn a_claim_is_kept_that_leaves_the_app() {
    let app = new_app(&namespace());
    let rest = with_claim(&app);
    let only = only(&app, "DestructiveChange");
    let mut refused = Refused::of(app, &rest, &only);
    let way = refused.ways("persistentVolumeClaimDeleted", "keep")[1].clone();
    refused.follow(&way);
    refused.assert_settled("the same claim stays", "persistentVolumeClaimDeleted", &way);
    let path = format!("/api/v1/namespaces/{}/persistentvolumeclaims/data", refused.app.namespace);
    assert_eq!(api().get(&path).ok()["metadata"]["deletionTimestamp"], Value::Null);
}

fn stateful_set(service: &str) -> String {
    format!(
        "---\napiVersion: apps/v1\nkind: StatefulSet\nmetadata:\n  name: db\n  annotations: {{kapp.k14s.io/update-strategy: \
         fallback-on-replace}}\nspec:\n  serviceName: {service}\n  replicas: 2\n  selector: {{matchLabels: {{app: db}}}}\n  template:\n    \
         metadata: {{labels: {{app: db}}}}\n    spec: {{containers: [{{name: db, image: 'registry.example/db:1'}}]}}\n"
    )
}

pub(super) fn pods_are_kept_when_their_stateful_set_is_replaced() {
    let app = new_app(&namespace());
    app.apply(&stateful_set("db"), &["--wait=false"]).expect(0);
    let only = only(&app, "DestructiveChange");
    let refused = Refused::of(app, &stateful_set("other"), &only);
    let settled = refused.settled_by("a StatefulSet is replaced", "statefulSetReplaced", "keep");
    let path = format!("/apis/apps/v1/namespaces/{}/statefulsets/db", settled.app.namespace);
    assert_eq!(api().get(&path).ok()["spec"]["serviceName"], "other");
}

/// An app of seven, of which five leave.
fn of_seven() -> (TestApp, String) {
    let app = new_app(&namespace());
    let input = |names: &[&str]| names.iter().map(|name| config_map(name, "1")).collect::<String>();
    app.apply(&input(&["a", "b", "c", "d", "e", "f", "g"]), &[]).expect(0);
    let few = input(&["a", "b"]);
    (app, few)
}

pub(super) fn the_rest_of_an_app_is_kept() {
    let (app, few) = of_seven();
    let only = only(&app, "DestructiveChange");
    let mut refused = Refused::of(app, &few, &only);
    let way = refused.ways("deletedShare", "keep")[0].clone();
    let ran = refused.follow(&way);
    // What is repeated without the flag would delete again: it stays in the command line.
    assert_eq!(ran.len(), 1);
    refused.arguments.push("--patch".to_owned());
    refused.assert_settled("most of an app is missing in the input", "deletedShare", &way);
    assert_eq!(api().get(&config_map_path(&refused.app.namespace, "g")).status, 200);
}

pub(super) fn a_permission_is_granted() {
    let app = new_app(&namespace());
    app.apply(&config_map("rest", "1"), &[]).expect(0);
    // Everything of the app but what it is about to get.
    let user = format!("deployer-{}", app.namespace);
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "own", "namespace": app.namespace},
        "rules": [
            {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["*"]},
            {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["*"]},
            {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get", "list", "watch", "patch"]},
        ],
    });
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": {"name": "own", "namespace": app.namespace},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "own"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    });
    [role, binding].iter().for_each(|object| drop(api().apply(object).ok()));
    let deployment = "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  selector: {matchLabels: {app: web}}\n  \
                      template:\n    metadata: {labels: {app: web}}\n    spec: {containers: [{name: web, image: 'registry.example/web:1'}]}\n";
    let refused = Refused::of(app, &(config_map("rest", "1") + deployment), &["--as", &user]);
    refused.settled_by("the user may not create what is new", "create", "grant");
}

pub(super) fn objects_decide_when_they_are_asked_to() {
    let app = new_app(&namespace());
    app.apply(&definition(&group(&app), &["v1*"], TEXT), &[]).expect(0);
    store(&app, "v1", "a", "red");
    let only = only(&app, "CRDUpgradeSafety");
    let wanted = definition(&group(&app), &["v1*"], "{type: string, enum: [red, blue]}");
    let refused = Refused::of(app, &wanted, &only);
    refused.settled_by("a tightening that affects no object", "enum", "configure");
}

pub(super) fn a_version_that_nobody_uses_any_more_goes() {
    let app = new_app(&namespace());
    app.apply(&definition(&group(&app), &["v1alpha1", "v1*"], TEXT), &[]).expect(0);
    store(&app, "v1", "a", "red");
    let wanted = definition(&group(&app), &["v1*"], TEXT);
    let refused = Refused::of(app, &wanted, &[]);
    refused.settled_by("a served version goes", "servedVersionRemoval", "configure");
}

pub(super) fn a_loss_is_intended() {
    let (app, few) = of_seven();
    let only = only(&app, "DestructiveChange");
    let refused = Refused::of(app, &few, &only);
    let settled = refused.settled_by("most of an app goes on purpose", "deletedShare", "configure");
    assert_eq!(api().get(&config_map_path(&settled.app.namespace, "g")).status, 404);
}

/// An app whose value somebody else has changed.
fn edited() -> (TestApp, [&'static str; 2]) {
    let app = new_app(&namespace());
    app.apply(&config_map("a", "1"), &[]).expect(0);
    let path = format!("{}?fieldManager=kubectl-edit", config_map_path(&app.namespace, "a"));
    let patch = json!({"data": {"key": "2"}});
    api().request("PATCH", &path, Some("application/merge-patch+json"), Some(&patch)).expect("an answer").ok();
    let only = only(&app, "FieldConflicts");
    (app, only)
}

fn value(app: &TestApp) -> Value {
    api().get(&config_map_path(&app.namespace, "a")).ok()["data"]["key"].clone()
}

pub(super) fn a_field_is_taken_over_on_purpose() {
    let (app, only) = edited();
    let refused = Refused::of(app, &config_map("a", "3"), &only);
    let settled = refused.settled_by("a field that somebody has edited", "conflict", "configure");
    assert_eq!(value(&settled.app), "3");
}

pub(super) fn a_field_is_left_to_its_owner() {
    let (app, only) = edited();
    let refused = Refused::of(app, &config_map("a", "3"), &only);
    let way = refused.ways("conflict", "change")[0].clone();
    // "Copy the other value into the manifest."
    refused.app.pushback.write("new.yaml", config_map("a", "2"));
    refused.assert_settled("the same field", "conflict", &way);
    assert_eq!(value(&refused.app), "2");
}

pub(super) fn an_author_keeps_what_clients_use() {
    let app = new_app(&namespace());
    app.apply(&definition(&group(&app), &["v1*"], "{type: string, enum: [red, blue]}"), &[]).expect(0);
    store(&app, "v1", "a", "blue");
    let wanted = definition(&group(&app), &["v1*"], "{type: string, enum: [red]}");
    let refused = Refused::of(app, &wanted, &[]);
    let way = refused.ways("enum", "change")[0].clone();
    assert_eq!(way["for"], "author");
    // "Keep the value": the definition as it was, with something new.
    let kept = definition(&group(&refused.app), &["v1*"], "{type: string, enum: [red, blue, green]}");
    refused.app.pushback.write("new.yaml", kept);
    refused.assert_settled("a value is no longer allowed", "enum", &way);
}

pub(super) fn the_cluster_is_asked_in_place_of_a_folder() {
    let app = new_app(&namespace());
    let old = definition(&group(&app), &["v1*"], TEXT);
    let wanted = definition(&group(&app), &["v1*"], "{type: string, enum: [red, blue]}");
    app.apply(&old, &[]).expect(0);
    store(&app, "v1", "a", "red");
    app.pushback.write("live/widgets.yaml", &old);
    let mut refused = Refused::of(app, &wanted, &["--cluster", "dir:live"]);
    let way = refused.ways("enum", "askCluster")[0].clone();
    let ran = refused.follow(&way);
    assert_eq!(ran.len(), 1);
    refused.arguments.retain(|argument| argument != "--cluster" && argument != "dir:live");
    refused.assert_settled("a folder does not show what is stored", "enum", &way);
}

/// A folder does not show what is stored; the command that it prints carries the objects over without another refusal.
pub(super) fn bridge_that_a_folder_recommends_is_not_refused_by_the_cluster() {
    let app = new_app(&namespace());
    let old = definition(&group(&app), &["v1alpha1*"], TEXT);
    app.apply(&old, &[]).expect(0);
    store(&app, "v1alpha1", "a", "red");
    app.pushback.write("live/widgets.yaml", &old);
    let wanted = definition(&group(&app), &["v1*"], TEXT);
    let mut refused = Refused::of(app, &wanted, &["--cluster", "dir:live"]);
    let way = refused.ways("storedVersionRemoval", "askCluster")[0].clone();
    assert_eq!(refused.follow(&way).len(), 1);
    assert_eq!(stored_versions(&refused.app), json!(["v1"]));
}

pub(super) fn a_cause_is_accepted_with_its_members() {
    let app = new_app(&namespace());
    app.apply(&definition(&group(&app), &["v1alpha1", "v1*"], TEXT), &[]).expect(0);
    store(&app, "v1", "a", "mauve");
    let wanted = definition(&group(&app), &["v1alpha1", "v1*"], "{type: string, enum: [red, blue]}");
    let mut refused = Refused::of(app, &wanted, &[]);
    let causes = refused.report["causes"].as_array().expect("causes").clone();
    let cause = causes.iter().find(|cause| cause["check"] == "enum").expect("a cause");
    assert_eq!(cause["members"].as_array().map(Vec::len), Some(2), "one in each version");
    let mut way = cause["remedies"].as_array().expect("remedies").last().expect("one").clone();
    assert_eq!(way["kind"], "accept");
    // Whoever accepts it says why.
    way["config"]["preflightWaivers"][0]["reason"] = json!("mauve is written by nobody, checked with the painters");
    refused.follow(&way);
    refused.assert_settled("a cause that is acceptable", "enum", &way);
}
