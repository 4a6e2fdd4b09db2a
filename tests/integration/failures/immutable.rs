//! Fields that the server does not let change, whatever words and reasons it has for that: refused before anything is
//! written, with the way out; replaced where the object says so.

use serde_json::{Value, json};

use super::{app, findings, sound};
use crate::support::{TestCase, TestCluster, cases};

pub(super) fn tests() -> Vec<TestCase> {
    cases![
        Controllers: what_cannot_be_changed_is_refused_and_replaced_only_on_demand,
        Controllers: a_change_that_is_wrong_in_itself_is_not_called_immutable,
    ]
}

/// An object before and after a change that the server refuses.
struct Case {
    before: Value,
    after: Value,
    /// Where the server says it is.
    path: &'static str,
}

fn case(object: Value, change: &Value, path: &'static str) -> Case {
    let mut before = object;
    // What the objects come to is not the matter here.
    before["metadata"]["annotations"] = json!({"kapp.k14s.io/disable-wait": ""});
    let mut after = before.clone();
    merge(&mut after, change);
    Case { before, after, path }
}

fn merge(into: &mut Value, change: &Value) {
    match (into, change) {
        (Value::Object(into), Value::Object(change)) => {
            change.iter().for_each(|(key, value)| merge(into.entry(key).or_insert(Value::Null), value));
        }
        (into, change) => *into = change.clone(),
    }
}

fn cases_of(namespace: &str) -> Vec<Case> {
    let pods = |label: &str, policy: &str| {
        json!({
            "metadata": {"labels": {"app": label}},
            "spec": {"restartPolicy": policy, "containers": [{"name": "main", "image": "registry.example/main:1"}]},
        })
    };
    let claim = |size: &str| json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}, "storageClassName": "none"});
    let rbac = "rbac.authorization.k8s.io";
    vec![
        case(
            json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "store"}, "spec": {
                "replicas": 0, "serviceName": "store", "selector": {"matchLabels": {"app": "store"}},
                "template": pods("store", "Always"),
                "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": claim("1Gi")}],
            }}),
            &json!({"spec": {"volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": claim("2Gi")}]}}),
            "spec",
        ),
        case(
            json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": {
                "ports": [{"port": 80}], "selector": {"app": "web"},
            }}),
            &json!({"spec": {"clusterIP": "None"}}),
            "spec.clusterIPs[0]",
        ),
        case(
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {
                "replicas": 0, "selector": {"matchLabels": {"app": "web"}}, "template": pods("web", "Always"),
            }}),
            &json!({"spec": {"selector": {"matchLabels": {"app": "other"}}, "template": pods("other", "Always")}}),
            "spec.selector",
        ),
        case(
            json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "once"}, "spec": {
                "suspend": true, "template": pods("once", "Never"),
            }}),
            &json!({"spec": {"template": pods("once", "OnFailure")}}),
            "spec.template.spec",
        ),
        case(
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "fixed"}, "immutable": true,
                "stringData": {"value": "one"}}),
            &json!({"stringData": {"value": super::SECRET_VALUE}}),
            "data",
        ),
        case(
            json!({"apiVersion": format!("{rbac}/v1"), "kind": "RoleBinding", "metadata": {"name": "bound"},
                "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": "view"},
                "subjects": [{"apiGroup": rbac, "kind": "User", "name": "somebody"}]}),
            &json!({"roleRef": {"name": "edit"}}),
            "roleRef",
        ),
        case(
            json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "disk"}, "spec": claim("1Gi")}),
            &json!({"spec": {"storageClassName": "other"}}),
            "spec",
        ),
        case(
            json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
                "metadata": {"name": format!("{namespace}-first")}, "value": 10}),
            &json!({"value": 20}),
            "value",
        ),
        case(
            json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
                "metadata": {"name": format!("{namespace}-fast")}, "provisioner": "example.com/one"}),
            &json!({"provisioner": "example.com/two"}),
            "provisioner",
        ),
    ]
}

fn manifest<'a>(objects: impl Iterator<Item = &'a Value>) -> String {
    objects.map(|object| format!("---\n{object}\n")).collect()
}

fn what_cannot_be_changed_is_refused_and_replaced_only_on_demand() {
    let app = app("immutable");
    let api = TestCluster::shared().api();
    let cases = cases_of(&app.namespace);
    sound(app.apply(&manifest(cases.iter().map(|case| &case.before)), &[]), 0);
    let live = || -> Vec<(Value, Value)> {
        let objects = cases.iter().map(|case| {
            let mut object = case.before.clone();
            object["metadata"]["namespace"] = json!(app.namespace);
            let metadata = api.get(&api.path_of(&object)).ok()["metadata"].take();
            (metadata["uid"].clone(), metadata["generation"].clone())
        });
        objects.collect()
    };
    let before = live();

    let ran = sound(app.apply(&manifest(cases.iter().map(|case| &case.after)), &[]), 10);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut told = ran.events_of("finding");
    told.retain(|event| event["finding"]["rule"] == "server");
    let mut found: Vec<(String, String, String)> = told
        .iter()
        .map(|event| &event["finding"])
        .map(|finding| (text(&finding["object"]["kind"]), text(&finding["check"]), text(&finding["path"])))
        .collect();
    found.sort();
    let mut expected: Vec<(String, String, String)> =
        cases.iter().map(|case| (text(&case.before["kind"]), "immutable".to_owned(), case.path.to_owned())).collect();
    expected.sort();
    assert_eq!(found, expected, "{told:#?}");
    let way_out = |event: &Value| {
        let data = event["finding"]["object"]["kind"] == "PersistentVolumeClaim";
        // What takes its data along is not replaced on a hint.
        let words = if data { "under another name" } else { "fallback-on-replace" };
        text(&event["finding"]["remedy"]).contains(words)
    };
    assert!(told.iter().all(way_out), "{told:#?}");
    assert_eq!(live(), before, "nothing is written where anything is refused");

    let replaced: Vec<Value> = cases
        .iter()
        .map(|case| {
            let mut object = case.after.clone();
            object["metadata"]["annotations"]["kapp.k14s.io/update-strategy"] = json!("fallback-on-replace");
            object
        })
        .collect();
    let input = manifest(replaced.iter());
    let ran = sound(app.apply(&input, &[]), 0);
    assert_eq!(ran.end()["done"]["replace"], cases.len(), "{}", ran.stdout);
    assert!(live().iter().zip(&before).all(|(now, before)| now.0 != before.0));
    assert_eq!(sound(app.apply(&input, &[]), 0).end()["outcome"], "unchanged");
    sound(app.delete(&[]), 0);
}

fn a_change_that_is_wrong_in_itself_is_not_called_immutable() {
    let app = app("invalid");
    let service = |port: u32| {
        format!(
            "---\n{}\n",
            json!({
                "apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": {"ports": [{"port": port}]},
            })
        )
    };
    sound(app.apply(&service(80), &[]), 0);
    let ran = sound(app.apply(&service(80_000), &[]), 10);
    let told = findings(&ran);
    assert!(!told.is_empty() && told.iter().all(|(check, _)| check == "invalid"), "{told:?}");
}
