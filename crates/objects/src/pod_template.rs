//! Places of Pods and Pod templates in objects of Kubernetes' own kinds.

/// Returns the path of the Pod template in an object of a kind: empty for a Pod itself, `None` for a kind that makes no Pods.
/// Source: `k8s.io/api` (core/v1, apps/v1, batch/v1).
#[must_use]
pub fn pod_template_path(group: &str, kind: &str) -> Option<&'static [&'static str]> {
    match (group, kind) {
        ("", "Pod") => Some(&[]),
        ("", "ReplicationController")
        | ("apps", "Deployment" | "StatefulSet" | "DaemonSet" | "ReplicaSet")
        | ("batch", "Job") => Some(&["spec", "template"]),
        ("batch", "CronJob") => Some(&["spec", "jobTemplate", "spec", "template"]),
        _ => None,
    }
}
