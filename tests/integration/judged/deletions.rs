//! What a deletion takes along is looked at again right before it: objects that come while somebody reads the plan are
//! not lost.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::{Boxes, findings, unfinished};
use crate::support::apply::{TestApp, config_map, config_map_path};
use crate::support::webhook::{Form, Verdict, Webhook};
use crate::support::{Pushback, TestCase, cases};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        ApiServer: an_object_that_comes_after_the_verdict_keeps_its_definition,
        ApiServer: an_object_that_takes_the_place_of_a_deleted_one_keeps_its_definition,
        ApiServer: an_object_that_comes_after_the_verdict_keeps_its_definition_from_being_replaced,
        ApiServer: a_definition_without_objects_is_replaced,
        ApiServer: an_object_that_cannot_come_back_is_not_deleted_to_be_replaced,
        ApiServer: an_object_that_comes_after_the_verdict_keeps_its_definition_when_the_app_is_deleted,
        ApiServer: an_object_that_comes_at_the_moment_of_the_deletion_is_told,
        ApiServer: a_guest_that_comes_after_the_verdict_keeps_its_namespace,
        ApiServer: a_guest_that_comes_at_the_moment_of_the_deletion_of_its_namespace_is_told,
        ApiServer: a_volume_whose_policy_changes_after_the_verdict_keeps_its_claim,
    ]
}

/// The definition is there, and so is the object of this name.
#[track_caller]
fn assert_kept(boxes: &Boxes, name: &str, context: &str) {
    let definition = boxes.stored_definition();
    assert_eq!(definition["metadata"]["deletionTimestamp"], Value::Null, "{context}");
    boxes.api().get(&format!("{}/{name}", boxes.boxes())).ok();
}

fn an_object_that_comes_after_the_verdict_keeps_its_definition() {
    let boxes = Boxes::new("late-object");
    let (api, path, guest) = (boxes.api(), boxes.boxes(), boxes.a_box("guest"));
    boxes.proxy.before(boxes.locks(), move |_| {
        api.post(&path, &guest).ok();
    });
    let ran = boxes.app.apply(&config_map("rest", "1"), &[]);
    assert_kept(&boxes, "guest", &ran.stdout);
    let ran = ran.expect(20);
    let name = boxes.definition_name();
    assert!(findings(&ran).contains(&format!("crdDeletion error {name}")), "{:?}", findings(&ran));
    let (state, message) = unfinished(&ran, &name);
    assert_eq!(state, "failed");
    assert!(message.contains("not deleted"), "{message}");
    // It stays the app's, so that the next run judges it anew.
    boxes.app.apply(&config_map("rest", "1"), &[]).expect(10);
}

fn an_object_that_takes_the_place_of_a_deleted_one_keeps_its_definition() {
    let boxes = Boxes::new("same-name");
    let (api, path, successor) = (boxes.api(), boxes.boxes(), boxes.a_box("one"));
    boxes.proxy.before(boxes.locks(), move |_| {
        api.delete(&format!("{path}/one")).ok();
        api.post(&path, &successor).ok();
    });
    let ran = boxes.app.apply(&config_map("rest", "1"), &[]);
    assert_kept(&boxes, "one", &ran.stdout);
    ran.expect(20);
}

fn an_object_that_comes_after_the_verdict_keeps_its_definition_from_being_replaced() {
    let boxes = Boxes::new("late-replace");
    // There is none of them when the verdict is given.
    boxes.api().delete(&format!("{}/one", boxes.boxes())).ok();
    let (api, path, guest) = (boxes.api(), boxes.boxes(), boxes.a_box("guest"));
    boxes.proxy.before(boxes.locks(), move |_| {
        api.post(&path, &guest).ok();
    });
    let mut definition = boxes.definition(&["size", "colour"]);
    definition["metadata"]["annotations"] = json!({"kapp.k14s.io/update-strategy": "always-replace"});
    let ran = boxes.app.apply(&definition.to_string(), &[]);
    assert_kept(&boxes, "guest", &ran.stdout);
    let ran = ran.expect(20);
    assert!(findings(&ran).iter().any(|line| line.starts_with("crdReplacementLoss error")), "{:?}", findings(&ran));
}

fn a_definition_without_objects_is_replaced() {
    let boxes = Boxes::new("replaced");
    boxes.api().delete(&format!("{}/one", boxes.boxes())).ok();
    let before = boxes.stored_definition();
    let mut definition = boxes.definition(&["colour"]);
    definition["metadata"]["annotations"] = json!({"kapp.k14s.io/update-strategy": "always-replace"});
    boxes.app.apply(&definition.to_string(), &[]).expect(0);
    assert_eq!(boxes.stored_fields(), ["colour"]);
    assert_ne!(boxes.stored_definition()["metadata"]["uid"], before["metadata"]["uid"]);
}

/// What is to be created anew was allowed by the plan, and is denied by the time of its deletion.
fn an_object_that_cannot_come_back_is_not_deleted_to_be_replaced() {
    let boxes = Boxes::new("come-back");
    let fixed = |step: u8| {
        json!({
            "apiVersion": "v1", "kind": "ConfigMap", "immutable": true, "data": {"step": step.to_string()},
            "metadata": {
                "name": "fixed", "annotations": {"kapp.k14s.io/update-strategy": "fallback-on-replace"},
            },
        })
    };
    let app = TestApp {
        name: "coming".to_owned(),
        pushback: Pushback::with_kubeconfig(&boxes.proxy.kubeconfig()),
        namespace: boxes.namespace.clone(),
    };
    app.apply(&fixed(1).to_string(), &[]).expect(0);
    let denies = Webhook::start(&[], |request| {
        let is_meant = request["name"].as_str().is_some_and(|name| name.starts_with("fixed-") || name == "fixed");
        let is_data = request["object"]["immutable"] == true;
        if is_meant && is_data && request["operation"] == "CREATE" {
            Verdict::Deny("no more".to_owned())
        } else {
            Verdict::Allow
        }
    });
    let denies = Arc::new(denies);
    let registration = Arc::new(Mutex::new(None));
    let (cluster, namespace, slot) = (boxes.cluster, boxes.namespace.clone(), Arc::clone(&registration));
    let webhook = Arc::downgrade(&denies);
    // The run takes the app's lock: the verdict has been given.
    boxes.proxy.before(boxes.locks(), move |_| {
        let Some(webhook) = webhook.upgrade() else { return };
        *slot.lock().expect("nobody panics") = Some(webhook.register(cluster, Form::Mutating, &namespace, json!({})));
    });
    let ran = app.apply(&fixed(2).to_string(), &[]);
    drop(registration.lock().expect("nobody panics").take());
    let kept = boxes.api().get(&config_map_path(&boxes.namespace, "fixed")).ok();
    assert_eq!(kept["data"]["step"], "1", "{}", ran.stdout);
    let (state, message) = unfinished(&ran.expect(20), "fixed");
    assert_eq!(state, "failed");
    assert!(message.contains("no more"), "{message}");
}

fn an_object_that_comes_after_the_verdict_keeps_its_definition_when_the_app_is_deleted() {
    let boxes = Boxes::new("late-delete");
    let (api, path, guest) = (boxes.api(), boxes.boxes(), boxes.a_box("guest"));
    boxes.proxy.before(boxes.locks(), move |_| {
        api.post(&path, &guest).ok();
    });
    let ran = boxes.app.delete(&[]);
    assert_kept(&boxes, "guest", &ran.stdout);
    ran.expect(20);
}

/// Nothing can keep an object that comes between the last look and the deletion; the run does not pass it over.
fn an_object_that_comes_at_the_moment_of_the_deletion_is_told() {
    let boxes = Boxes::new("last-moment");
    let (api, path, guest) = (boxes.api(), boxes.boxes(), boxes.a_box("guest"));
    let name = boxes.definition_name();
    let deletes = crate::support::proxy::matching(crate::support::proxy::Verb::Delete, "customresourcedefinitions");
    boxes.proxy.before(deletes.named(&name).nth(1), move |_| {
        api.post(&path, &guest).ok();
    });
    let ran = boxes.app.apply(&config_map("rest", "1"), &[]).expect(20);
    let (_, message) = unfinished(&ran, &name);
    assert!(message.contains(&format!("{}/guest", boxes.namespace)), "{message}");
}

/// The rule that looks into namespaces, and only it.
const NAMESPACES: &str =
    "{apiVersion: kapp.k14s.io/v1alpha1, kind: Config, preflightRules: [{name: DestructiveChange}]}\n---\n";

fn a_guest_that_comes_after_the_verdict_keeps_its_namespace() {
    let boxes = Boxes::new("host");
    let host = format!("{}-host", boxes.namespace);
    let namespace = format!("{{apiVersion: v1, kind: Namespace, metadata: {{name: {host}}}}}\n---\n");
    boxes.app.apply(&(NAMESPACES.to_owned() + &namespace + &boxes.whole(&["size"])), &["--wait=false"]).expect(0);
    let (api, collection) = (boxes.api(), format!("/api/v1/namespaces/{host}/configmaps"));
    let guest = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "guest"}});
    boxes.proxy.before(boxes.locks(), move |_| {
        api.post(&collection, &guest).ok();
    });
    let ran = boxes.app.apply(&(NAMESPACES.to_owned() + &boxes.whole(&["size"])), &["--wait=false"]);
    let kept = boxes.api().get(&format!("/api/v1/namespaces/{host}")).ok();
    assert_eq!(kept["metadata"]["deletionTimestamp"], Value::Null, "{}", ran.stdout);
    assert!(findings(&ran.expect(20)).contains(&format!("namespaceDeleted error {host}")));
}

/// Nothing can keep it, and it is named; what the run had been told of before is none.
fn a_guest_that_comes_at_the_moment_of_the_deletion_of_its_namespace_is_told() {
    use crate::support::proxy::{Verb, matching};
    let boxes = Boxes::new("host-moment");
    let host = format!("{}-host", boxes.namespace);
    let namespace = format!("{{apiVersion: v1, kind: Namespace, metadata: {{name: {host}}}}}\n---\n");
    boxes.app.apply(&(NAMESPACES.to_owned() + &namespace + &boxes.whole(&["size"])), &["--wait=false"]).expect(0);
    let (api, collection) = (boxes.api(), format!("/api/v1/namespaces/{host}/configmaps"));
    let guest = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "guest"}});
    boxes.proxy.before(matching(Verb::Delete, "namespaces").named(&host).nth(1), move |_| {
        api.post(&collection, &guest).ok();
    });
    let ran = boxes.app.apply(&(NAMESPACES.to_owned() + &boxes.whole(&["size"])), &["--wait=false"]).expect(20);
    assert!(findings(&ran).contains(&format!("namespaceDeleted error {host}")), "{:?}", findings(&ran));
    let finding = ran.events_of("finding").into_iter().find(|event| event["finding"]["verdict"] == "breaking");
    let names = finding.expect("a finding")["finding"]["liveObjects"]["names"].clone();
    assert_eq!(names, json!([format!("ConfigMap {host}/guest")]));
    let (_, message) = unfinished(&ran, &host);
    assert!(message.contains("it was deleted"), "{message}");
}

fn a_volume_whose_policy_changes_after_the_verdict_keeps_its_claim() {
    let boxes = Boxes::new("volume");
    let name = format!("{}-data", boxes.namespace);
    let volume = json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": {
        "persistentVolumeReclaimPolicy": "Retain", "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
        "storageClassName": "none", "hostPath": {"path": "/tmp/x"},
    }});
    boxes.api().post("/api/v1/persistentvolumes", &volume).ok();
    let claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"}, "spec": {
        "volumeName": name, "storageClassName": "none", "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
    }});
    let rest = NAMESPACES.to_owned() + &boxes.whole(&["size"]);
    boxes.app.apply(&format!("{rest}---\n{claim}\n"), &["--wait=false"]).expect(0);
    let (api, path) = (boxes.api(), format!("/api/v1/persistentvolumes/{name}"));
    boxes.proxy.before(boxes.locks(), move |_| {
        api.merge_patch(&path, &json!({"spec": {"persistentVolumeReclaimPolicy": "Delete"}})).ok();
    });
    let ran = boxes.app.apply(&rest, &["--wait=false"]);
    let kept = format!("/api/v1/namespaces/{}/persistentvolumeclaims/data", boxes.namespace);
    assert_eq!(boxes.api().get(&kept).ok()["metadata"]["deletionTimestamp"], Value::Null, "{}", ran.stdout);
    assert!(findings(&ran.expect(20)).contains(&"persistentVolumeClaimDeleted error data".to_owned()));
}
