//! What an object needs: the references of every built-in kind that has some.

use pushback_objects::object::{ObjectExt, ObjectRef, split_api_version};
use serde_json::Value;

use super::pods;
use super::reference::{At, Part, Reference, Weight, key};
use crate::parts::port;

const RBAC: &str = "rbac.authorization.k8s.io";

/// What an object needs.
pub(super) fn references(object: &Value) -> Vec<Reference> {
    let of = ObjectRef::of(object);
    let at = At::root(object);
    let namespace = of.namespace.as_str();
    let mut found = pods::references(object, namespace);
    match (of.group.as_str(), of.kind.as_str()) {
        ("", "ServiceAccount") => {
            let secrets = at.list("imagePullSecrets");
            found.extend(secrets.iter().filter_map(|at| named("", "Secret", namespace, at.get("name"))));
            found.iter_mut().for_each(|reference| reference.weight = Weight::Tolerated);
        }
        ("", "Secret") if object.text("/type") == "kubernetes.io/service-account-token" => {
            let account = at.down(&["metadata", "annotations", "kubernetes.io/service-account.name"]);
            found.extend(named("", "ServiceAccount", namespace, account));
        }
        ("", "PersistentVolumeClaim") => found.extend(claim(&at, namespace)),
        ("apps", "StatefulSet") => {
            // Its Pods run without it, and have no names in DNS.
            let service = at.down(&["spec", "serviceName"]);
            found.extend(named("", "Service", namespace, service).map(|it| it.weighing(Weight::Customary)));
            for template in at.get("spec").map(|spec| spec.list("volumeClaimTemplates")).unwrap_or_default() {
                found.extend(claim(&template, namespace));
            }
        }
        ("autoscaling", "HorizontalPodAutoscaler") => found.extend(scaled(&at, namespace)),
        ("networking.k8s.io", "Ingress") => found.extend(ingress(&at, namespace)),
        (RBAC, "RoleBinding" | "ClusterRoleBinding") => found.extend(binding(&at, namespace)),
        ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration") => {
            let hooks = at.list("webhooks");
            found.extend(hooks.iter().filter_map(|hook| called(hook.down(&["clientConfig", "service"])?)));
        }
        (group @ "admissionregistration.k8s.io", kind) => {
            let policy =
                kind.strip_suffix("Binding").map(|policy| named(group, policy, "", at.down(&["spec", "policyName"])));
            found.extend(policy.flatten());
        }
        ("apiextensions.k8s.io", "CustomResourceDefinition") => {
            let service = at.down(&["spec", "conversion", "webhook", "clientConfig", "service"]);
            found.extend(service.and_then(called));
        }
        ("apiregistration.k8s.io", "APIService") => {
            found.extend(at.down(&["spec", "service"]).and_then(called));
        }
        _ => {}
    }
    found
}

fn named(group: &str, kind: &str, namespace: &str, at: Option<At<'_>>) -> Option<Reference> {
    let at = at?;
    Some(Reference::to(key(group, kind, namespace, at.text()?), &at))
}

/// The Service that the API server calls, at 443 if no port is named.
fn called(service: At<'_>) -> Option<Reference> {
    let number = service.value.get("port").and_then(port).unwrap_or_else(|| "443".to_owned());
    let namespace = service.value.text("/namespace");
    Some(named("", "Service", namespace, service.get("name"))?.part(Some(Part::Port(number))))
}

fn claim(at: &At<'_>, namespace: &str) -> Vec<Reference> {
    let Some(spec) = at.get("spec") else { return Vec::new() };
    let mut found = Vec::new();
    let volume = spec.get("volumeName");
    // A bound claim needs no class, and a class of a static volume need not exist.
    if volume.is_none() {
        found.extend(named("storage.k8s.io", "StorageClass", "", spec.get("storageClassName")));
        let class = spec.get("volumeAttributesClassName");
        found.extend(named("storage.k8s.io", "VolumeAttributesClass", "", class));
    }
    found.extend(named("", "PersistentVolume", "", volume));
    if let Some(source) = spec.get("dataSource").filter(|source| source.value.text("/kind") == "PersistentVolumeClaim")
    {
        found.extend(named("", "PersistentVolumeClaim", namespace, source.get("name")));
    }
    found
}

fn scaled(at: &At<'_>, namespace: &str) -> Option<Reference> {
    let target = at.down(&["spec", "scaleTargetRef"])?;
    let (group, _) = split_api_version(target.value.text("/apiVersion"));
    named(group, target.value.text("/kind"), namespace, target.get("name"))
}

fn ingress(at: &At<'_>, namespace: &str) -> Vec<Reference> {
    let Some(spec) = at.get("spec") else { return Vec::new() };
    let class = named("networking.k8s.io", "IngressClass", "", spec.get("ingressClassName"));
    let mut found: Vec<Reference> = class.into_iter().map(|it| it.weighing(Weight::Tolerated)).collect();
    let backend = |backend: At<'_>| {
        let service = backend.get("service")?;
        let ports = service.get("port");
        let number = ports.and_then(|at| at.value.get("number").or_else(|| at.value.get("name")).and_then(port));
        Some(named("", "Service", namespace, service.get("name"))?.part(number.map(Part::Port)))
    };
    found.extend(spec.get("defaultBackend").and_then(backend));
    for rule in spec.list("rules") {
        for path in rule.get("http").map(|http| http.list("paths")).unwrap_or_default() {
            found.extend(path.get("backend").and_then(backend));
        }
    }
    // The controller serves its own certificate instead.
    let certificates = spec.list("tls");
    found.extend(certificates.iter().filter_map(|at| named("", "Secret", namespace, at.get("secretName"))));
    found
}

fn binding(at: &At<'_>, namespace: &str) -> Vec<Reference> {
    let mut found = Vec::new();
    if let Some(role) = at.get("roleRef") {
        let kind = role.value.text("/kind");
        let namespace = if kind == "Role" { namespace } else { "" };
        found.extend(named(RBAC, kind, namespace, role.get("name")));
    }
    for subject in at.list("subjects").iter().filter(|subject| subject.value.text("/kind") == "ServiceAccount") {
        let own = subject.value.text("/namespace");
        let namespace = if own.is_empty() { namespace } else { own };
        // A permission for an account that comes later does no harm.
        let account = named("", "ServiceAccount", namespace, subject.get("name"));
        found.extend(account.map(|it| it.weighing(Weight::Tolerated)));
    }
    found
}
