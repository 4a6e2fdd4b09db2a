//! Live objects that the plan takes into the app although they belong to somebody else: each is a warning that names the
//! owner.

use pushback_objects::ObjectExt;
use pushback_preflight::Operation;
use serde_json::Value;

use super::{PlanWarning, Planned};

/// Namespaces of the cluster itself.
const SYSTEM_NAMESPACES: [&str; 3] = ["kube-system", "kube-public", "kube-node-lease"];

/// Labels by which tools find their objects, with a name for the owner.
const OWNER_LABELS: [(&str, &str); 5] = [
    ("kustomize.toolkit.fluxcd.io/name", "Flux Kustomization"),
    ("helm.toolkit.fluxcd.io/name", "Flux HelmRelease"),
    ("argocd.argoproj.io/instance", "Argo CD application"),
    ("olm.owner", "Operator Lifecycle Manager"),
    ("addonmanager.kubernetes.io/mode", "the addon manager of the cluster"),
];

/// Returns a warning for each object of another owner that gets the label of the app.
pub(super) fn warnings(objects: &[Planned], label_key: &str) -> Vec<PlanWarning> {
    let mut warnings = Vec::new();
    for (index, planned) in objects.iter().enumerate() {
        let Some(live) = planned.live.as_deref().filter(|live| live.label(label_key).is_none()) else { continue };
        if !matches!(planned.operation(), Operation::Update | Operation::Replace) {
            continue;
        }
        if let Some(owner) = owner(live) {
            warnings.push(PlanWarning {
                code: "adopted",
                message: format!(
                    "{} exists and belongs to {owner}: the app takes it over, and deletes it when it is removed from the \
                     manifests",
                    planned.object
                ),
                object: Some(index),
                position: planned.locate(&[]),
            });
        }
    }
    warnings
}

/// Returns who manages an object besides apps, as far as the object says it.
fn owner(live: &Value) -> Option<String> {
    let helm = live.annotation("meta.helm.sh/release-name").map(|release| {
        match live.annotation("meta.helm.sh/release-namespace") {
            Some(namespace) => format!("Helm release {namespace}/{release}"),
            None => format!("Helm release {release}"),
        }
    });
    let tracked = live.annotation("argocd.argoproj.io/tracking-id");
    let tracked = tracked.map(|id| format!("Argo CD application {}", id.split(':').next().unwrap_or_default()));
    let labelled = || {
        let found = OWNER_LABELS.iter().find_map(|(label, owner)| Some((*label, *owner, live.label(label)?)));
        found.map(|(label, owner, value)| match label {
            "addonmanager.kubernetes.io/mode" => owner.to_owned(),
            _ => format!("{owner} {value}"),
        })
    };
    // The label app.kubernetes.io/managed-by proves nothing: objects that were only rendered by Helm carry it, too.
    helm.or(tracked).or_else(labelled).or_else(|| controller(live)).or_else(|| system(live))
}

/// The controller among the owner references.
fn controller(live: &Value) -> Option<String> {
    let mut owners = live.pointer("/metadata/ownerReferences")?.as_array()?.iter();
    let controller = owners.find(|owner| owner.get("controller") == Some(&Value::Bool(true)))?;
    Some(format!("{} {}, which controls it", controller.text("/kind"), controller.text("/name")))
}

/// The cluster itself, for objects that each cluster has.
fn system(live: &Value) -> Option<String> {
    let is_system = |namespace: &str| SYSTEM_NAMESPACES.contains(&namespace);
    if is_system(live.namespace()) {
        return Some(format!("the cluster itself (namespace {})", live.namespace()));
    }
    let is_namespace = live.text("/apiVersion") == "v1" && live.text("/kind") == "Namespace";
    let is_own = is_namespace && (is_system(live.name()) || live.name() == "default")
        || live.label("kubernetes.io/bootstrapping").is_some();
    is_own.then(|| "the cluster itself".to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn owner_is_named_by_labels_annotations_references_and_namespace() {
        let object = |metadata: Value| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata});
        let labels = |labels: Value| object(json!({"namespace": "shop", "labels": labels}));
        let annotations = |annotations: Value| object(json!({"namespace": "shop", "annotations": annotations}));
        let release = json!({"meta.helm.sh/release-name": "db", "meta.helm.sh/release-namespace": "prod"});
        let references = json!([{"kind": "Kafka", "name": "events", "controller": true}]);
        let namespace = |name: &str| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        for (live, expected) in [
            (annotations(release), Some("Helm release prod/db")),
            (annotations(json!({"meta.helm.sh/release-name": "db"})), Some("Helm release db")),
            (labels(json!({"app.kubernetes.io/managed-by": "Helm"})), None),
            (labels(json!({"kustomize.toolkit.fluxcd.io/name": "infra"})), Some("Flux Kustomization infra")),
            (
                annotations(json!({"argocd.argoproj.io/tracking-id": "web:v1/ConfigMap:a"})),
                Some("Argo CD application web"),
            ),
            (labels(json!({"olm.owner": "csv.v1"})), Some("Operator Lifecycle Manager csv.v1")),
            (labels(json!({"addonmanager.kubernetes.io/mode": "Reconcile"})), Some("the addon manager of the cluster")),
            (
                object(json!({"namespace": "shop", "ownerReferences": references})),
                Some("Kafka events, which controls it"),
            ),
            (object(json!({"namespace": "kube-system"})), Some("the cluster itself (namespace kube-system)")),
            (namespace("kube-public"), Some("the cluster itself")),
            (namespace("default"), Some("the cluster itself")),
            (namespace("shop"), None),
            (labels(json!({"app.kubernetes.io/managed-by": "me"})), None),
            (object(json!({"namespace": "shop"})), None),
        ] {
            assert_eq!(owner(&live).as_deref(), expected, "{live}");
        }
    }
}
