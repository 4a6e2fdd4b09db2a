//! Remedies that follow from facts: stored versions, fields, subresources, what the manifests write, and what the API
//! server refuses.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::ways::{SOON, TEXT, api, definition, group, namespace, only, store, stored_versions};
use super::{Refused, app, new_app, refusing};
use crate::support::apply::{TestApp, config_map, config_map_path};
use crate::support::wait_until;

/// `v1*` with `colour`, and an object of it in colour red.
fn with_colour(editing: [&str; 2]) -> TestApp {
    let app = app(&namespace(), editing);
    app.apply(&definition(&group(&app), &["v1*"], TEXT), &[]).expect(0);
    store(&app, "v1", "a", "red");
    app
}

/// The only version is v2, in which the field has this name.
fn renamed(app: &TestApp, name: &str) -> String {
    definition(&group(app), &["v2*"], TEXT).replace("colour:", &format!("{name}:"))
}

fn spec_in_v2(app: &TestApp) -> Value {
    let path = format!("/apis/{}/v2/namespaces/{}/widgets/a", group(app), app.namespace);
    api().get(&path).ok()["spec"].clone()
}

pub(super) fn renamed_field_is_converted_by_the_drafted_plan() {
    let app = with_colour(["nothing", "nothing"]);
    let wanted = renamed(&app, "color");
    let refused = Refused::of(app, &wanted, &[]);
    let settled = refused.settled_by("a field has another name", "storedVersionRemoval", "moveObjects");
    assert_eq!(spec_in_v2(&settled.app), json!({"color": "red"}));
    assert_eq!(stored_versions(&settled.app), json!(["v2"]));
}

/// Without a plan the bridge refuses, and its own remedy leads to the plan.
pub(super) fn bridge_that_would_lose_a_renamed_field_is_given_a_plan() {
    let app = with_colour(["nothing", "nothing"]);
    let wanted = renamed(&app, "color");
    let refused = Refused::of(app, &wanted, &["--storage=bridge"]);
    let finding = refused.finding("loss");
    assert_eq!(
        (&finding["rule"], &finding["path"], &finding["version"]),
        (&json!("storage"), &json!("spec.colour"), &json!("v2"))
    );
    assert_eq!(finding["liveObjects"]["names"], json!([format!("{}/a", refused.app.namespace)]));
    assert!(finding["position"]["line"].as_u64().is_some_and(|line| line > 2), "{finding:#}");
    let settled = refused.settled_by("the bridge would lose a field", "loss", "moveObjects");
    assert_eq!(spec_in_v2(&settled.app), json!({"color": "red"}));
}

pub(super) fn bridge_passes_once_the_objects_lack_the_field() {
    let app = with_colour(["colour: red", "{}"]);
    let deprecated =
        definition(&group(&app), &["v1*"], TEXT).replace("served: true", "served: true\n    deprecated: true");
    app.apply(&deprecated, &[]).expect(0);
    let wanted = definition(&group(&app), &["v2*"], "{type: string}").replace("colour: {type: string}", "");
    let refused = Refused::of(app, &wanted, &["--storage=bridge"]);
    let settled = refused.settled_by("a field is gone", "loss", "correctObjects");
    assert_eq!(stored_versions(&settled.app), json!(["v2"]));
}

/// Both versions are served: the command drafts the plan, and who converts is the user's decision.
pub(super) fn renamed_field_between_served_versions_gets_a_draft() {
    let app = with_colour(["nothing", "nothing"]);
    let both = definition(&group(&app), &["v1", "v2*"], TEXT);
    let (v1, v2) = both.split_once("name: v2").expect("two versions");
    let mut refused = Refused::of(app, &format!("{v1}name: v2{}", v2.replace("colour", "color")), &[]);
    let way = refused.ways("crossVersionLoss", "change")[0].clone();
    assert_eq!(way["for"], "deployer");
    let ran = refused.follow(&way);
    assert_eq!(ran.len(), 1);
    assert!(ran[0].data().contains("spec.colour: spec.color"), "{}", ran[0].data());
}

/// Files that stand for the cluster have the old version, too: the plan is drafted from them.
pub(super) fn plan_for_a_folder_is_drafted_from_its_files() {
    let app = with_colour(["nothing", "nothing"]);
    app.pushback.write("live/widgets.yaml", definition(&group(&app), &["v1*"], TEXT));
    let wanted = renamed(&app, "color");
    let mut refused = Refused::of(app, &wanted, &["--cluster", "dir:live"]);
    let way = refused.ways("storedVersionRemoval", "moveObjects")[0].clone();
    refused.follow(&way);
    assert_eq!(spec_in_v2(&refused.app), json!({"color": "red"}));
}

pub(super) fn status_field_is_edited_through_its_subresource() {
    let app = app(&namespace(), ["phase: mauve", "phase: red"]);
    let of = |phase: &str| {
        let crd = definition(&group(&app), &["v1*"], TEXT);
        let crd = crd.replace(
            "properties: {spec:",
            &format!("properties: {{status: {{type: object, properties: {{phase: {phase}}}}}, spec:"),
        );
        crd.replace("    schema:", "    subresources: {status: {}}\n    schema:")
    };
    app.apply(&of(TEXT), &[]).expect(0);
    store(&app, "v1", "a", "red");
    let path = format!("/apis/{}/v1/namespaces/{}/widgets/a/status", group(&app), app.namespace);
    api().merge_patch(&path, &json!({"status": {"phase": "mauve"}})).ok();
    let wanted = of("{type: string, enum: [red, blue]}");
    let refused = Refused::of(app, &wanted, &[]);
    refused.settled_by("a status has a value that is no longer allowed", "enum", "correctObjects");
}

/// An edit on the cluster would be undone by the same run.
pub(super) fn object_of_the_manifests_is_corrected_there() {
    let app = new_app(&namespace());
    let widget = |colour: &str| {
        format!(
            "---\napiVersion: {}/v1\nkind: Widget\nmetadata: {{name: a}}\nspec: {{colour: {colour}}}\n",
            group(&app)
        )
    };
    let crd = |colour: &str| definition(&group(&app), &["v1*"], colour);
    app.apply(&(crd(TEXT) + &widget("mauve")), &["--wait=false"]).expect(0);
    let [bad, good] = ["mauve", "red"].map(|colour| crd("{type: string, enum: [red, blue]}") + &widget(colour));
    let refused = Refused::of(app, &bad, &[]);
    let way = refused.ways("enum", "correctObjects")[0].clone();
    let commands = way["commands"].as_array().expect("commands");
    assert!(commands.iter().all(|command| !command.as_str().unwrap_or_default().contains("kubectl")), "{way:#}");
    assert!(way["steps"][0].as_str().is_some_and(|step| step.contains("new.yaml:")), "{way:#}");
    refused.app.pushback.write("new.yaml", good);
    refused.assert_settled("an object of the manifests has a value that is no longer allowed", "enum", &way);
}

fn fixed(name: &str, value: &str, annotation: &str) -> String {
    config_map(name, value)
        .replace("\ndata:\n", "\nimmutable: true\ndata:\n")
        .replace(&format!("  name: {name}\n"), &format!("  name: {name}\n  annotations: {{{annotation}}}\n"))
}

/// Each way to change content that is fixed: by a new name, not at all, or by another object.
pub(super) fn content_that_is_fixed_is_renamed_kept_or_replaced() {
    for (index, annotation) in [
        "kapp.k14s.io/versioned: \"\"",
        "kapp.k14s.io/update-strategy: skip",
        "kapp.k14s.io/update-strategy: fallback-on-replace",
    ]
    .into_iter()
    .enumerate()
    {
        let app = new_app(&namespace());
        app.apply(&fixed("a", "1", ""), &[]).expect(0);
        let refused = Refused::of(app, &fixed("a", "2", ""), &[]);
        let way = refused.ways("immutable", "change")[index].clone();
        assert!(way["steps"][0].as_str().is_some_and(|step| step.contains(annotation)), "{way:#}");
        refused.app.pushback.write("new.yaml", fixed("a", "2", annotation));
        refused.assert_settled("fixed content changes", "immutable", &way);
    }
}

/// A claim that has grown outside of the manifests.
fn grown_claim() -> (TestApp, String) {
    let app = new_app(&namespace());
    let name = format!("{}-grown", app.namespace);
    let class = json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name},
        "provisioner": "example.com/none", "allowVolumeExpansion": true});
    let volume = json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": {
        "capacity": {"storage": "2Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": name, "hostPath": {"path": "/tmp/x"}}});
    api().post("/apis/storage.k8s.io/v1/storageclasses", &class).ok();
    api().post("/api/v1/persistentvolumes", &volume).ok();
    let claim = format!(
        "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {{name: data}}\nspec:\n  volumeName: {name}\n  storageClassName: \
         {name}\n  accessModes: [ReadWriteOnce]\n  resources:\n    requests:\n      storage: 1Gi\n"
    );
    app.apply(&claim, &["--wait=false"]).expect(0);
    let path = format!("/api/v1/namespaces/{}/persistentvolumeclaims/data", app.namespace);
    let status = json!({"status": {"phase": "Bound", "capacity": {"storage": "2Gi"}}});
    api().merge_patch(&format!("{path}/status"), &status).ok();
    wait_until("the claim is grown", SOON, || {
        let grown = api().merge_patch(&path, &json!({"spec": {"resources": {"requests": {"storage": "2Gi"}}}}));
        (grown.status == 200).then_some(())
    });
    (app, claim)
}

pub(super) fn claim_that_has_grown_keeps_its_size() {
    let (app, claim) = grown_claim();
    let refused = Refused::of(app, &claim, &[]);
    let same = refused.ways("immutable", "change")[0].clone();
    let rule = refused.ways("immutable", "configure")[0].clone();
    refused.app.pushback.write("new.yaml", claim.replace("storage: 1Gi", "storage: 2Gi"));
    refused.assert_settled("a claim has grown", "immutable", &same);
    let mut refused =
        Refused { report: refused.report.clone(), arguments: refused.arguments.clone(), app: refused.app };
    refused.app.pushback.write("new.yaml", &claim);
    refused.follow(&rule);
    refused.assert_settled("a controller grows a claim", "immutable", &rule);
}

pub(super) fn namespace_that_is_missing_is_created() {
    let app = new_app(&namespace());
    let missing = format!("{}-missing", app.namespace);
    let input = config_map("a", "1").replace("  name: a\n", &format!("  name: a\n  namespace: {missing}\n"));
    let refused = Refused::of(app, &input, &[]);
    refused.settled_by("a namespace is missing", "namespace", "correctObjects");
}

pub(super) fn unknown_field_is_left_out() {
    let app = new_app(&namespace());
    let input = config_map("a", "1") + "unknown: null\n";
    let mut refused = Refused::of(app, &input, &[]);
    let way = refused.ways("unknown-field", "configure")[0].clone();
    refused.follow(&way);
    assert_eq!(api().get(&config_map_path(&refused.app.namespace, "a")).status, 200);
}

/// "Keep it in the manifests" is not possible where there are none.
pub(super) fn namespace_with_objects_of_others_stays_when_its_app_is_deleted() {
    let app = new_app(&namespace());
    let own = format!("{}-own", app.namespace);
    let namespace = format!("---\napiVersion: v1\nkind: Namespace\nmetadata: {{name: {own}}}\n");
    app.apply(&(namespace + &config_map("rest", "1")), &[]).expect(0);
    let other = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "other"}});
    api().post(&format!("/api/v1/namespaces/{own}/configmaps"), &other).ok();
    app.delete(&["--report", "json=report.json"]).expect(10);
    let report = app.pushback.read_json("report.json");
    let refused = Refused { app, arguments: Vec::new(), report };
    let way = refused.ways("namespaceDeleted", "keep")[0].clone();
    assert!(way["steps"].as_array().is_some_and(|steps| !steps[0].to_string().contains("manifests")), "{way:#}");
    for command in way["commands"].as_array().expect("commands") {
        refused.shell(command.as_str().expect("a command"));
    }
    let kept = api().get(&format!("/api/v1/namespaces/{own}")).ok();
    assert_eq!(kept["metadata"]["deletionTimestamp"], Value::Null);
    assert_eq!(api().get(&config_map_path(&refused.app.namespace, "rest")).status, 404);
}

/// A CRD gets another group and kind: its objects are copied, and the old CRD is deleted last.
pub(super) fn objects_of_a_renamed_kind_are_copied() {
    let app = with_colour(["nothing", "nothing"]);
    let old = group(&app);
    let new = format!("new.{old}");
    let wanted =
        definition(&new, &["v1*"], TEXT).replace("kind: Widget,", "kind: Gadget,").replace("WidgetList", "GadgetList");
    let refused = Refused::of(app, &wanted, &[]);
    let settled = refused.settled_by("a kind has another name", "crdDeletion", "moveObjects");
    let path = format!("/apis/{new}/v1/namespaces/{}/widgets/a", settled.app.namespace);
    let copied = api().get(&path).ok();
    assert_eq!((&copied["kind"], &copied["spec"]["colour"]), (&json!("Gadget"), &json!("red")));
    let crd = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.{old}");
    wait_until("the old CRD is gone", SOON, || (api().get(&crd).status == 404).then_some(()));
}

fn pod(account: &str) -> String {
    format!(
        "---\napiVersion: v1\nkind: Pod\nmetadata: {{name: web}}\nspec:\n  serviceAccountName: {account}\n  containers: [{{name: web, \
         image: 'registry.example/web:1'}}]\n"
    )
}

pub(super) fn account_that_a_pod_needs_is_created() {
    let app = new_app(&namespace());
    let only = only(&app, "References");
    let refused = Refused::of(app, &pod("web"), &only);
    refused.settled_by("a ServiceAccount is missing", "missing", "correctObjects");
}

pub(super) fn reference_that_is_created_elsewhere_is_ignored() {
    let app = new_app(&namespace());
    let reader = config_map("rest", "1")
        + "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  selector: {matchLabels: {app: web}}\n  \
           template:\n    metadata: {labels: {app: web}}\n    spec: {containers: [{name: web, image: 'registry.example/web:1', envFrom: \
           [{configMapRef: {name: elsewhere}}]}]}\n";
    let only = only(&app, "References");
    let refused = Refused::of(app, &reader, &only);
    refused.settled_by("a ConfigMap comes from elsewhere", "missing", "configure");
}

/// Nothing is stored: the bridge only proves that, and the first remedy does not speak of objects to move.
pub(super) fn stored_version_without_objects_is_removed_by_the_first_remedy() {
    let app = new_app(&namespace());
    let deprecated =
        definition(&group(&app), &["v1*"], TEXT).replace("served: true", "served: true\n    deprecated: true");
    app.apply(&deprecated, &[]).expect(0);
    let wanted = renamed(&app, "color");
    let refused = Refused::of(app, &wanted, &[]);
    assert_eq!(
        refusing(&refused.report),
        BTreeSet::from([refused.finding("storedVersionRemoval")["fingerprint"].as_str().expect("one").to_owned()])
    );
    let settled = refused.settled_by("no object is stored", "storedVersionRemoval", "moveObjects");
    assert_eq!(stored_versions(&settled.app), json!(["v2"]));
}
