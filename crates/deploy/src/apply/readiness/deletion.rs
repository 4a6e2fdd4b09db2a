//! What blocks the deletion of an object: finalizers, and for a namespace what the namespace controller reports about
//! its contents.

use pushback_objects::ObjectExt;
use serde_json::Value;

use super::conditions::{all, list, short};

/// Conditions of a namespace that report remaining contents.
const NAMESPACE_CONDITIONS: &[&str] = &[
    "NamespaceDeletionDiscoveryFailure",
    "NamespaceDeletionGroupVersionParsingFailure",
    "NamespaceDeletionContentFailure",
    "NamespaceContentRemaining",
    "NamespaceFinalizersRemaining",
];

/// Who removes each of Kubernetes' own finalizers, and when.
const OWNERS: &[(&str, &str)] = &[
    ("kubernetes", "the namespace controller, once nothing is left in the namespace"),
    ("kubernetes.io/pvc-protection", "kube-controller-manager, once no Pod uses the claim"),
    ("kubernetes.io/pv-protection", "kube-controller-manager, once no claim is bound to the volume"),
    ("foregroundDeletion", "the garbage collector, once the objects below it are gone"),
    ("orphan", "the garbage collector, once it has let go of the objects below it"),
    ("service.kubernetes.io/load-balancer-cleanup", "the cloud controller, once the load balancer is gone"),
    ("customresourcecleanup.apiextensions.k8s.io", "the API server, once all objects of the kind are gone"),
    ("batch.kubernetes.io/job-tracking", "the Job controller, once it has counted the Pod"),
];

/// Controllers by finalizer domain, for domains that do not match the controller's usual name.
const DOMAINS: &[(&str, &str)] = &[
    ("argocd.argoproj.io", "Argo CD: see that its application controller runs"),
    ("fluxcd.io", "Flux: see that its controllers run"),
    ("snapshot.storage.kubernetes.io", "the snapshot controller: see that it runs"),
];

/// What blocks a terminating object, in one line; empty if nothing known does.
#[must_use]
pub fn deletion_blockers(object: &Value) -> String {
    let conditions =
        all(object).filter(|condition| NAMESPACE_CONDITIONS.contains(&condition.kind) && condition.is("True")).map(
            |condition| if condition.message.is_empty() { condition.kind.to_owned() } else { short(condition.message) },
        );
    let mut blockers: Vec<String> = conditions.collect();
    let finalizers: Vec<&str> = list(object, "/metadata/finalizers").iter().filter_map(Value::as_str).collect();
    match finalizers.as_slice() {
        [] => {}
        [one] => blockers.push(format!("finalizer {one}")),
        several => blockers.push(format!("finalizers {}", several.join(", "))),
    }
    blockers.join("; ")
}

/// The finalizers of an object, including those in a namespace's spec.
pub fn finalizers(object: &Value) -> impl Iterator<Item = &str> {
    let of_namespace = if object.text("/kind") == "Namespace" { list(object, "/spec/finalizers") } else { &[] };
    list(object, "/metadata/finalizers").iter().chain(of_namespace).filter_map(Value::as_str)
}

/// Who removes a finalizer, and when: known ones by name, others by their domain.
#[must_use]
pub fn finalizer_owner(finalizer: &str) -> String {
    if let Some((_, owner)) = OWNERS.iter().find(|(known, _)| *known == finalizer) {
        return (*owner).to_owned();
    }
    let domain = finalizer.split('/').next().unwrap_or(finalizer);
    if let Some((_, owner)) = DOMAINS.iter().find(|(known, _)| domain.ends_with(known)) {
        return (*owner).to_owned();
    }
    format!(
        "the controller of {domain}: see that it runs. Where it is gone for good, `kubectl patch` can take the finalizer \
         away; what it was to clean up then stays"
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_finalizer_is_traced_to_whoever_removes_it() {
        let claim =
            json!({"kind": "PersistentVolumeClaim", "metadata": {"finalizers": ["kubernetes.io/pvc-protection"]}});
        assert_eq!(finalizers(&claim).collect::<Vec<_>>(), ["kubernetes.io/pvc-protection"]);
        let namespace = json!({"kind": "Namespace", "metadata": {}, "spec": {"finalizers": ["kubernetes"]}});
        assert_eq!(finalizers(&namespace).collect::<Vec<_>>(), ["kubernetes"]);
        assert!(finalizer_owner("kubernetes.io/pvc-protection").contains("once no Pod uses the claim"));
        assert!(finalizer_owner("resources-finalizer.argocd.argoproj.io").starts_with("Argo CD"));
        assert!(finalizer_owner("example.com/hold").starts_with("the controller of example.com: see that it runs"));
    }
}
