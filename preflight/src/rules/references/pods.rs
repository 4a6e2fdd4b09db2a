//! What a Pod needs: the references of a Pod's spec, wherever the spec is.

use std::collections::BTreeSet;

use pushback_objects::object::{ObjectExt, ObjectKey};
use serde_json::Value;

use super::reference::{At, Part, Reference, Weight, key};

/// The Pod that an object is, or makes: its labels and spec are below it.
pub(super) fn template<'a>(object: &'a Value) -> Option<At<'a>> {
    let root = At::root(object);
    let group = object.text("/apiVersion").split_once('/').map_or("", |(group, _)| group);
    match (group, object.text("/kind")) {
        ("", "Pod") => Some(root),
        ("", "PodTemplate") => root.get("template"),
        ("", "ReplicationController")
        | ("apps", "Deployment" | "StatefulSet" | "DaemonSet" | "ReplicaSet")
        | ("batch", "Job") => root.down(&["spec", "template"]),
        ("batch", "CronJob") => root.down(&["spec", "jobTemplate", "spec", "template"]),
        _ => None,
    }
}

/// The containers of a Pod's spec.
pub(super) fn containers<'a>(spec: &At<'a>) -> Vec<At<'a>> {
    ["initContainers", "containers", "ephemeralContainers"].iter().flat_map(|field| spec.list(field)).collect()
}

/// The ConfigMaps and Secrets that the containers of an object's Pods read, optional ones too.
#[must_use]
pub fn read_by_pods(object: &Value, namespace: &str) -> BTreeSet<ObjectKey> {
    let Some(spec) = template(object).and_then(|template| template.get("spec")) else { return BTreeSet::new() };
    let pod = Pod { namespace, with_optional: true };
    let mut found = configuration(&pod, &spec);
    spec.list("volumes").iter().for_each(|volume| found.extend(pod.volume(volume)));
    let is_read = |key: &ObjectKey| key.group.is_empty() && matches!(key.kind.as_str(), "ConfigMap" | "Secret");
    found.into_iter().map(|reference| reference.target).filter(is_read).collect()
}

/// What the environment of the containers comes from.
fn configuration(pod: &Pod<'_>, spec: &At<'_>) -> Vec<Reference> {
    let mut found = Vec::new();
    for container in containers(spec) {
        for variable in container.list("env") {
            let Some(from) = variable.get("valueFrom") else { continue };
            found.extend(from.get("configMapKeyRef").and_then(|at| pod.key_of("ConfigMap", &at)));
            found.extend(from.get("secretKeyRef").and_then(|at| pod.key_of("Secret", &at)));
        }
        for from in container.list("envFrom") {
            found.extend(from.get("configMapRef").and_then(|at| pod.whole("ConfigMap", &at, "name")));
            found.extend(from.get("secretRef").and_then(|at| pod.whole("Secret", &at, "name")));
        }
    }
    found
}

/// What the Pods of an object need.
pub(super) fn references(object: &Value, namespace: &str) -> Vec<Reference> {
    let Some(spec) = template(object).and_then(|template| template.get("spec")) else { return Vec::new() };
    let pod = Pod { namespace, with_optional: false };
    let mut found = configuration(&pod, &spec);
    spec.list("volumes").iter().for_each(|volume| found.extend(pod.volume(volume)));
    for secret in spec.list("imagePullSecrets") {
        // The kubelet tries without it.
        found.extend(pod.whole("Secret", &secret, "name").map(|secret| secret.weighing(Weight::Tolerated)));
    }
    let account = spec.get("serviceAccountName").or_else(|| spec.get("serviceAccount"));
    found.extend(account.and_then(|at| pod.named("", "ServiceAccount", namespace, &at)));
    let class = spec.get("priorityClassName");
    found.extend(class.and_then(|at| pod.named("scheduling.k8s.io", "PriorityClass", "", &at)));
    let class = spec.get("runtimeClassName");
    found.extend(class.and_then(|at| pod.named("node.k8s.io", "RuntimeClass", "", &at)));
    for claim in spec.list("resourceClaims") {
        for (field, kind) in
            [("resourceClaimName", "ResourceClaim"), ("resourceClaimTemplateName", "ResourceClaimTemplate")]
        {
            found.extend(claim.get(field).and_then(|at| pod.named("resource.k8s.io", kind, namespace, &at)));
        }
    }
    found
}

struct Pod<'n> {
    namespace: &'n str,
    /// Whether what may be missing counts.
    with_optional: bool,
}

impl Pod<'_> {
    fn named(&self, group: &str, kind: &str, namespace: &str, at: &At<'_>) -> Option<Reference> {
        Some(Reference::to(key(group, kind, namespace, at.text()?), at))
    }

    /// A whole ConfigMap or Secret, optional ones only where they count.
    fn whole(&self, kind: &str, at: &At<'_>, field: &str) -> Option<Reference> {
        let name = at.get(field).filter(|_| self.with_optional || !at.is_optional())?;
        self.named("", kind, self.namespace, &name)
    }

    fn key_of(&self, kind: &str, at: &At<'_>) -> Option<Reference> {
        let part = at.get("key").and_then(|key| Some(Part::Key(key.text()?.to_owned())));
        Some(self.whole(kind, at, "name")?.part(part))
    }

    /// A volume of a ConfigMap or Secret: the whole, or the keys that are its items.
    fn files(&self, kind: &str, at: &At<'_>, field: &str) -> Vec<Reference> {
        let Some(whole) = self.whole(kind, at, field) else { return Vec::new() };
        let keys = at.list("items").into_iter().filter_map(|item| {
            let key = item.get("key")?;
            let part = Part::Key(key.text()?.to_owned());
            Some(Reference { part: Some(part), path: key.path, ..whole.clone() })
        });
        let keys: Vec<Reference> = keys.collect();
        if keys.is_empty() { vec![whole] } else { keys }
    }

    fn volume(&self, volume: &At<'_>) -> Vec<Reference> {
        let mut found = Vec::new();
        let files = |kind: &str, source: &At<'_>, field: &str| self.files(kind, source, field);
        found.extend(volume.get("configMap").map(|at| files("ConfigMap", &at, "name")).unwrap_or_default());
        found.extend(volume.get("secret").map(|at| files("Secret", &at, "secretName")).unwrap_or_default());
        for source in volume.get("projected").map(|at| at.list("sources")).unwrap_or_default() {
            found.extend(source.get("configMap").map(|at| files("ConfigMap", &at, "name")).unwrap_or_default());
            found.extend(source.get("secret").map(|at| files("Secret", &at, "name")).unwrap_or_default());
        }
        let claim = volume.down(&["persistentVolumeClaim", "claimName"]);
        found.extend(claim.and_then(|at| self.named("", "PersistentVolumeClaim", self.namespace, &at)));
        found.extend(
            volume.down(&["azureFile", "secretName"]).and_then(|at| self.named("", "Secret", self.namespace, &at)),
        );
        let secrets =
            [["csi", "nodePublishSecretRef"], ["cephfs", "secretRef"], ["rbd", "secretRef"], ["iscsi", "secretRef"]];
        for path in secrets.into_iter().chain([["flexVolume", "secretRef"], ["scaleIO", "secretRef"]]) {
            found.extend(volume.down(&path).and_then(|at| self.whole("Secret", &at, "name")));
        }
        found
    }
}
