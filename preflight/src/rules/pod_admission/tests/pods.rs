//! The Pods that are made for the dry runs.

use super::*;
use crate::rules::workload_pod;

fn pod(change: Change) -> WorkloadPod {
    let object = change.object.clone();
    let changes = ChangeSet { changes: vec![change], ..ChangeSet::default() };
    workload_pod(&changes, &object).expect("a Pod")
}

#[test]
fn pod_of_a_deployment_has_no_owner_at_first() {
    let made = pod(create(&deployment("web")));
    assert_eq!(
        made.pod["metadata"],
        json!({
            "labels": {"app": "web", "pod-template-hash": "5d8f7c6b94"}, "annotations": {"a": "b"}, "namespace": "shop",
            "generateName": "web-5d8f7c6b94-",
        })
    );
    assert_eq!(made.pod["spec"], template()["spec"]);
    let owner = &made.owned.expect("a second try")["metadata"]["ownerReferences"][0];
    assert_eq!([&owner["kind"], &owner["name"]], ["ReplicaSet", "web-5d8f7c6b94"]);
}

#[test]
fn pod_of_a_live_workload_has_it_as_its_owner() {
    for kind in ["StatefulSet", "DaemonSet", "ReplicaSet"] {
        let mut live = object("apps/v1", kind, "web", json!({"template": template()}));
        live["metadata"]["uid"] = "u-1".into();
        let desired = with(&live, "/spec/template/spec/containers/0/image", "nginx:2".into());
        let made = pod(change(Some(&desired), Some(&live)));
        let owner = json!([{"apiVersion": "apps/v1", "kind": kind, "name": "web", "uid": "u-1", "controller": true}]);
        assert_eq!(made.pod["metadata"]["ownerReferences"], owner);
        assert_eq!(made.owned, None);
    }
}

#[test]
fn pod_of_a_stateful_set_has_its_identity_and_claims() {
    let mut template = template();
    template["spec"]["volumes"] = json!([{"name": "data", "emptyDir": {}}, {"name": "tmp", "emptyDir": {}}]);
    let spec = json!({
        "serviceName": "peers", "ordinals": {"start": 2}, "template": template,
        "volumeClaimTemplates": [{"metadata": {"name": "data"}}],
    });
    let made = pod(create(&object("apps/v1", "StatefulSet", "db", spec))).pod;
    assert_eq!(made["metadata"]["name"], "db-2");
    assert_eq!(
        made["metadata"]["labels"],
        json!({
            "app": "web", "controller-revision-hash": "db-5d8f7c6b94", "statefulset.kubernetes.io/pod-name": "db-2",
            "apps.kubernetes.io/pod-index": "2",
        })
    );
    assert_eq!([&made["spec"]["hostname"], &made["spec"]["subdomain"]], ["db-2", "peers"]);
    assert_eq!(
        made["spec"]["volumes"],
        json!([
            {"name": "data", "persistentVolumeClaim": {"claimName": "data-db-2"}}, {"name": "tmp", "emptyDir": {}},
        ])
    );
}

#[test]
fn pod_of_a_daemon_set_tolerates_its_node() {
    let mut template = template();
    let own = json!({"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"});
    template["spec"]["tolerations"] = json!([own, {"key": "mine", "operator": "Exists"}]);
    template["spec"]["hostNetwork"] = true.into();
    let made = pod(create(&object("apps/v1", "DaemonSet", "log", json!({"template": template})))).pod;
    assert_eq!(made["spec"]["tolerations"].as_array().map(Vec::len), Some(8));
    let terms = "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms";
    assert_eq!(made.pointer(terms).and_then(Value::as_array).map(Vec::len), Some(1));
}

#[test]
fn pod_of_a_job_has_its_labels_and_an_indexed_one_its_index() {
    let spec = json!({"completionMode": "Indexed", "template": template()});
    let made = pod(create(&object("batch/v1", "Job", "load", spec.clone()))).pod;
    assert_eq!(made["metadata"]["labels"]["batch.kubernetes.io/job-name"], "load");
    assert_eq!(made["metadata"]["finalizers"], json!(["batch.kubernetes.io/job-tracking"]));
    assert_eq!([&made["metadata"]["generateName"], &made["spec"]["hostname"]], ["load-0-", "load-0"]);
    let made = pod(create(&object("batch/v1", "CronJob", "night", json!({"jobTemplate": {"spec": spec}}))));
    assert_eq!(made.pod["metadata"]["labels"]["job-name"], "night-29000000");
    let owner = &made.owned.expect("a second try")["metadata"]["ownerReferences"][0];
    assert_eq!([&owner["kind"], &owner["name"]], ["Job", "night-29000000"]);
}

#[test]
fn hostile_templates_are_no_panic() {
    for template in [
        json!(null),
        json!("x"),
        json!([]),
        json!({"metadata": 1, "spec": 2}),
        json!({"spec": {"tolerations": 1,
        "affinity": "x", "volumes": {}}, "metadata": {"labels": [], "finalizers": 3}}),
        json!({"spec": {"affinity":
        {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": []}}}}),
    ] {
        for (api_version, kind) in [
            ("apps/v1", "Deployment"),
            ("apps/v1", "StatefulSet"),
            ("apps/v1", "DaemonSet"),
            ("batch/v1", "Job"),
            ("v1", "ReplicationController"),
        ] {
            let spec = json!({"template": template, "replicas": "x", "ordinals": {"start": -1}, "volumeClaimTemplates": 1,
                "completionMode": "Indexed", "updateStrategy": 3});
            let broken = object(api_version, kind, "web", spec);
            let other = with(&broken, "/spec/replicas", 1.into());
            for change in [create(&broken), change(Some(&other), Some(&broken))] {
                run(vec![change], refused(PodRefusal::Quota, "exceeded quota: q, requested: x"));
            }
        }
    }
}
