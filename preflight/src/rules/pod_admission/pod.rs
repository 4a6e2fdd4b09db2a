//! The Pod that a controller makes from a template, for a dry run: `pkg/controller` of Kubernetes, `GetPodFromTemplate`
//! and what the controllers of StatefulSets, DaemonSets and Jobs add to it.

use pushback_objects::object::ObjectExt;
use serde_json::{Map, Value, json};

use super::template::{WorkloadKind, WorkloadTemplate};
use crate::facts::Operation;

/// Stands for the hash of a template, which only the controller knows: as long as its longest one.
const HASH: &str = "5d8f7c6b94";

/// Most characters of a label's value.
pub(super) const LABEL: usize = 63;

/// Most characters of an object's name.
pub(super) const SUBDOMAIN: usize = 253;

/// Stands for the uid of an owner that does not exist yet.
const NO_UID: &str = "00000000-0000-4000-8000-000000000000";

/// Tolerations that the controller of DaemonSets adds: key and effect.
const DAEMON_TOLERATIONS: [(&str, &str); 6] = [
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
];

/// A Pod for a dry run.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkloadPod {
    /// The Pod as the controller makes it. It has an owner only if that exists.
    pub pod: Value,
    /// The Pod with an owner that does not exist yet, under a made-up uid; `None` if the owner exists. Admission that
    /// refuses Pods without an owner accepts it.
    pub owned: Option<Value>,
}

/// Makes the first Pod of a workload.
pub(super) fn make(of: &WorkloadTemplate<'_>) -> WorkloadPod {
    let object = &of.change.object;
    let mut metadata = Map::new();
    for field in ["labels", "annotations", "finalizers"] {
        metadata.extend(of.template.pointer(&format!("/metadata/{field}")).map(|it| (field.to_owned(), it.clone())));
    }
    metadata.insert("namespace".to_owned(), object.namespace.as_str().into());
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": metadata,
        "spec": of.template.get("spec").cloned().unwrap_or_else(|| json!({})),
    });
    let name = object.name.as_str();
    let controller = match of.kind {
        WorkloadKind::Deployment => replica_set(name),
        WorkloadKind::CronJob => job(name),
        _ => name.to_owned(),
    };
    pod["metadata"]["generateName"] = prefix(&controller).into();
    match of.kind {
        WorkloadKind::Deployment => label(&mut pod, "pod-template-hash", HASH),
        WorkloadKind::StatefulSet => add_identity(&mut pod, of.workload),
        WorkloadKind::DaemonSet => add_node(&mut pod),
        WorkloadKind::Job | WorkloadKind::CronJob => add_job(&mut pod, of),
        WorkloadKind::ReplicaSet | WorkloadKind::ReplicationController => {}
    }
    let owner = owner(of);
    let with_owner = |pod: &Value, owner: Value| {
        let mut pod = pod.clone();
        pod["metadata"]["ownerReferences"] = json!([owner]);
        pod
    };
    if owner["uid"] == NO_UID {
        let owned = Some(with_owner(&pod, owner));
        return WorkloadPod { pod, owned };
    }
    WorkloadPod { pod: with_owner(&pod, owner), owned: None }
}

/// The name of a Deployment's ReplicaSet.
fn replica_set(deployment: &str) -> String {
    let name = format!("{deployment}-{HASH}");
    name.get(..SUBDOMAIN).map_or_else(|| name.clone(), str::to_owned)
}

/// The name of a CronJob's Job, which ends with a time in minutes.
fn job(cron_job: &str) -> String {
    format!("{cron_job}-29000000")
}

/// The start of the Pods' names; a controller leaves the hyphen out where there is no room for it.
fn prefix(controller: &str) -> String {
    if controller.len() < SUBDOMAIN { format!("{controller}-") } else { controller.to_owned() }
}

/// The owner of the Pods. Without `blockOwnerDeletion`: setting that would need another permission of the user.
fn owner(of: &WorkloadTemplate<'_>) -> Value {
    let object = &of.change.object;
    let live = of.change.live.as_deref().filter(|_| of.change.operation == Operation::Update);
    let live = live.map(ObjectExt::uid).filter(|uid| !uid.is_empty());
    let (version, kind, name, uid) = match of.kind {
        WorkloadKind::Deployment => ("apps/v1".to_owned(), "ReplicaSet", replica_set(&object.name), None),
        WorkloadKind::CronJob => ("batch/v1".to_owned(), "Job", job(&object.name), None),
        _ => (object.api_version(), object.kind.as_str(), object.name.clone(), live),
    };
    json!({"apiVersion": version, "kind": kind, "name": name, "uid": uid.unwrap_or(NO_UID), "controller": true})
}

/// Name, host name and claims of the first Pod of a StatefulSet.
fn add_identity(pod: &mut Value, set: &Value) {
    let ordinal = set.pointer("/spec/ordinals/start").and_then(Value::as_u64).unwrap_or(0);
    let name = format!("{}-{ordinal}", set.name());
    let room = LABEL.saturating_sub(set.name().len() + 1).min(HASH.len());
    label(pod, "controller-revision-hash", &format!("{}-{}", set.name(), &HASH[..room]));
    label(pod, "statefulset.kubernetes.io/pod-name", &name);
    label(pod, "apps.kubernetes.io/pod-index", &ordinal.to_string());
    let claims: Vec<&str> = set
        .pointer("/spec/volumeClaimTemplates")
        .and_then(Value::as_array)
        .map(|claims| claims.iter().map(ObjectExt::name).collect())
        .unwrap_or_default();
    let mut volumes: Vec<Value> = claims
        .iter()
        .map(|claim| json!({"name": claim, "persistentVolumeClaim": {"claimName": format!("{claim}-{name}")}}))
        .collect();
    let others = pod.pointer("/spec/volumes").and_then(Value::as_array).into_iter().flatten();
    volumes.extend(others.filter(|volume| !claims.contains(&volume.text("/name"))).cloned());
    if let Some(metadata) = pod["metadata"].as_object_mut() {
        metadata.shift_remove("generateName");
        metadata.insert("name".to_owned(), name.as_str().into());
    }
    if let Some(spec) = pod["spec"].as_object_mut() {
        spec.insert("hostname".to_owned(), name.into());
        spec.extend(set.pointer("/spec/serviceName").map(|service| ("subdomain".to_owned(), service.clone())));
        if !volumes.is_empty() {
            spec.insert("volumes".to_owned(), volumes.into());
        }
    }
}

/// The Node and tolerations of a DaemonSet's Pod.
fn add_node(pod: &mut Value) {
    label(pod, "controller-revision-hash", HASH);
    label(pod, "pod-template-generation", "1");
    let uses_host_network = pod.pointer("/spec/hostNetwork") == Some(&true.into());
    let on_host = ("node.kubernetes.io/network-unavailable", "NoSchedule");
    let Some(spec) = pod["spec"].as_object_mut() else { return };
    let tolerations = spec.entry("tolerations").or_insert_with(|| json!([]));
    if let Some(tolerations) = tolerations.as_array_mut() {
        for (key, effect) in DAEMON_TOLERATIONS.into_iter().chain(uses_host_network.then_some(on_host)) {
            tolerations.retain(|it| it.text("/key") != key || it.text("/effect") != effect);
            tolerations.push(json!({"key": key, "operator": "Exists", "effect": effect}));
        }
    }
    let terms = json!([{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node"]}]}]);
    let affinity = spec.entry("affinity").or_insert_with(|| json!({}));
    if affinity.is_object() {
        let node = &mut affinity["nodeAffinity"];
        if node.is_null() || node.is_object() {
            let required = &mut node["requiredDuringSchedulingIgnoredDuringExecution"];
            if required.is_null() || required.is_object() {
                required["nodeSelectorTerms"] = terms;
            }
        }
    }
}

/// The labels and finalizer of a Job's Pod; an indexed Job adds the index.
fn add_job(pod: &mut Value, of: &WorkloadTemplate<'_>) {
    let own = &of.change.object.name;
    let name = if of.kind == WorkloadKind::CronJob { job(own) } else { own.clone() };
    for key in ["batch.kubernetes.io/job-name", "job-name"] {
        label(pod, key, &name);
    }
    for key in ["batch.kubernetes.io/controller-uid", "controller-uid"] {
        let is_set = pod.label(key).is_some();
        if !is_set {
            label(pod, key, NO_UID);
        }
    }
    const TRACKING: &str = "batch.kubernetes.io/job-tracking";
    if let Some(metadata) = pod["metadata"].as_object_mut() {
        let finalizers = metadata.entry("finalizers").or_insert_with(|| json!([]));
        if let Some(list) = finalizers.as_array_mut().filter(|list| !list.contains(&TRACKING.into())) {
            list.push(TRACKING.into());
        }
    }
    let mode = if of.kind == WorkloadKind::CronJob { "/spec/jobTemplate/spec" } else { "/spec" };
    if of.workload.text(&format!("{mode}/completionMode")) != "Indexed" {
        return;
    }
    const INDEX: &str = "batch.kubernetes.io/job-completion-index";
    label(pod, INDEX, "0");
    set_in(pod, "annotations", INDEX, "0");
    pod["metadata"]["generateName"] = format!("{name}-0-").into();
    if let Some(spec) = pod["spec"].as_object_mut() {
        spec.insert("hostname".to_owned(), format!("{name}-0").into());
    }
}

fn label(pod: &mut Value, key: &str, value: &str) {
    set_in(pod, "labels", key, value);
}

fn set_in(pod: &mut Value, map: &str, key: &str, value: &str) {
    if let Some(map) = pod.metadata_map_mut(map) {
        map.insert(key.to_owned(), value.into());
    }
}
