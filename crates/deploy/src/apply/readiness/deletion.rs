//! What blocks the deletion of an object: finalizers, and for a namespace what the namespace controller reports about
//! its contents.

use pushback_cluster::server_message;
use pushback_objects::{ObjectExt, ObjectRef};
use serde_json::Value;

use super::conditions::{Condition, all, detail, find, list, one_line};

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

/// Reasons of the condition `Terminating` with which the API server cannot finish the deletion of a CRD.
const CRD_REASONS: &[&str] = &["InstanceDeletionFailed", "InstanceDeletionCheck"];

/// Returns the condition of a terminating CRD that names the cause for which its objects are not deleted.
fn failed_cleanup(object: &Value) -> Option<Condition<'_>> {
    let is_crd = ObjectRef::of(object).is_definition();
    let condition = find(object, "Terminating").filter(|condition| is_crd && condition.is("True"))?;
    CRD_REASONS.contains(&condition.reason).then_some(condition)
}

/// Returns the remedy for a stuck deletion of a CRD; `None` if no known cause blocks it.
#[must_use]
pub fn crd_remedy(object: &Value) -> Option<String> {
    let condition = failed_cleanup(object)?;
    let name = object.name();
    Some(if server_message::is_of_conversion(condition.message) {
        format!(
            "the objects of CRD {name} are deleted, so they need no conversion: kubectl patch crd {name} --type=merge \
             -p '{{\"spec\":{{\"conversion\":{{\"strategy\":\"None\",\"webhook\":null}}}}}}'"
        )
    } else if condition.reason == "InstanceDeletionCheck" {
        format!("objects of CRD {name} wait for their finalizers: kubectl get {name} --all-namespaces -o yaml")
    } else {
        format!("correct what keeps the API server from deleting the objects of CRD {name}; it tries again by itself")
    })
}

/// What blocks a terminating object, in one line; empty if nothing known does.
#[must_use]
pub fn deletion_blockers(object: &Value) -> String {
    let conditions =
        all(object).filter(|condition| NAMESPACE_CONDITIONS.contains(&condition.kind) && condition.is("True")).map(
            |condition| {
                if condition.message.is_empty() { condition.kind.to_owned() } else { one_line(condition.message) }
            },
        );
    let mut blockers: Vec<String> = conditions.collect();
    blockers.extend(failed_cleanup(object).map(|condition| detail(&condition)));
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
    fn crd_that_cannot_be_cleaned_up_names_the_condition_and_a_remedy() {
        let crd = |reason: &str, message: &str| {
            json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {
                "name": "cogs.ex.com", "finalizers": ["customresourcecleanup.apiextensions.k8s.io"]},
                "status": {"conditions": [{"type": "Terminating", "status": "True", "reason": reason, "message": message}]}})
        };
        let webhook =
            "could not list instances: conversion webhook for ex.com/v1, Kind=Cog failed: service \"hook\" not found";
        let cases = [
            ("InstanceDeletionFailed", webhook, Some("\"strategy\":\"None\",\"webhook\":null")),
            (
                "InstanceDeletionFailed",
                "could not issue all deletes: admission webhook \"a\" denied",
                Some("by itself"),
            ),
            (
                "InstanceDeletionCheck",
                "could not confirm zero CustomResources remaining",
                Some("kubectl get cogs.ex.com"),
            ),
            ("InstanceDeletionInProgress", "CustomResource deletion is in progress", None),
        ];
        for (reason, message, remedy) in cases {
            let object = crd(reason, message);
            assert_eq!(
                deletion_blockers(&object).contains(&format!("{reason}: {message}")),
                remedy.is_some(),
                "{reason}"
            );
            match (remedy, crd_remedy(&object)) {
                (Some(part), Some(text)) => assert!(text.contains(part), "{text}"),
                (expected, found) => assert_eq!((expected, found), (None, None)),
            }
        }
    }

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
