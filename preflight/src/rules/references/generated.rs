//! Names that are made at run time: by the cluster itself, by controllers for custom resources, by Jobs, and by what a
//! role of the set may create. That nothing of that name is there before says nothing.

use std::collections::{HashMap, HashSet};

use pushback_objects::object::{ObjectExt, ObjectKey, ObjectRef, is_custom_group};
use serde_json::Value;

use super::objects::Objects;
use super::pods;
use super::reference::At;
use crate::facts::Facts;

/// Custom resources that no controller makes objects of their name for.
const PASSIVE: &[(&str, &[&str])] = &[
    ("monitoring.coreos.com", &["ServiceMonitor", "PodMonitor", "PrometheusRule", "Probe", "ScrapeConfig"]),
    ("gateway.networking.k8s.io", &["HTTPRoute", "GRPCRoute", "TLSRoute", "TCPRoute", "ReferenceGrant"]),
    ("snapshot.storage.k8s.io", &["VolumeSnapshotClass"]),
];

/// Annotations of Ingresses that have a controller make their certificates.
const ISSUERS: &[&str] =
    &["cert-manager.io/", "acme.cert-manager.io/", "kubernetes.io/tls-acme", "certmanager.k8s.io/"];

/// Annotations that name a Secret which a controller makes.
const SERVING_CERTIFICATE: &str = "serving-cert-secret-name";

/// Returns whether an object may come to be at run time, so that its absence before the run proves nothing.
pub(in crate::rules) fn is_made_at_run_time(facts: &Facts, target: &ObjectKey) -> bool {
    let objects = Objects::of(&facts.changes, facts.cluster.side);
    is_of_the_cluster(target) || Generated::of(&objects).makes(target)
}

/// The names that objects of the set have made at run time; the namespace is empty if it can be any.
#[derive(Debug, Default)]
pub(super) struct Generated {
    names: HashSet<(String, String)>,
    prefixes: HashMap<String, Vec<String>>,
    of_roles: HashSet<(String, String, String)>,
}

impl Generated {
    pub(super) fn of(objects: &Objects<'_>) -> Self {
        let mut generated = Self::default();
        for (object, _) in &objects.standing {
            let of = ObjectRef::of(object);
            match (of.group.as_str(), of.kind.as_str()) {
                ("rbac.authorization.k8s.io", "Role" | "ClusterRole") => generated.role(object, &of.namespace),
                ("networking.k8s.io", "Ingress") => generated.certificates(object, &of.namespace),
                ("apps", "StatefulSet") => generated.claims(object, &of),
                (group, kind) if is_custom_group(group) && !is_passive(group, kind) => {
                    generated.prefixes.entry(of.namespace.clone()).or_default().push(of.name.clone());
                    generated.strings(object, &of.namespace);
                }
                _ => generated.arguments(object, &of.namespace),
            }
            let annotations = object.pointer("/metadata/annotations").and_then(Value::as_object);
            for (key, value) in annotations.into_iter().flatten() {
                if let Some(name) = value.as_str().filter(|_| key.contains(SERVING_CERTIFICATE)) {
                    generated.names.insert((of.namespace.clone(), name.to_owned()));
                }
            }
        }
        generated
    }

    /// Whether the object may come to be at run time.
    pub(super) fn makes(&self, target: &ObjectKey) -> bool {
        let ObjectKey { kind, namespace, name, .. } = target;
        let places = [namespace.as_str(), ""];
        let named = |place: &&str| self.names.contains(&((*place).to_owned(), name.clone()));
        let of_owner = |place: &&str| {
            let owners = self.prefixes.get(*place).map_or(&[][..], Vec::as_slice);
            owners.iter().any(|owner| {
                name.strip_prefix(owner.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
            })
        };
        let of_claims = kind == "PersistentVolumeClaim"
            && name.rsplit_once('-').is_some_and(|(stem, ordinal)| {
                ordinal.parse::<u32>().is_ok() && self.names.contains(&(namespace.clone(), format!("{stem}-")))
            });
        let of_role = |place: &&str| self.of_roles.contains(&((*place).to_owned(), plural(kind), name.clone()));
        places.iter().any(|place| named(place) || of_owner(place) || of_role(place)) || of_claims
    }

    /// A role that may create objects of a kind, and says by name which of them its holder works with.
    fn role(&mut self, role: &Value, namespace: &str) {
        let rules = role.get("rules").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let texts = |rule: &Value, field: &str| -> Vec<String> {
            let list = rule.get(field).and_then(Value::as_array);
            list.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let creates: HashSet<String> = rules
            .iter()
            .filter(|rule| texts(rule, "verbs").iter().any(|verb| verb == "create" || verb == "*"))
            .flat_map(|rule| texts(rule, "resources"))
            .collect();
        for rule in rules {
            for resource in texts(rule, "resources").into_iter().filter(|resource| creates.contains(resource)) {
                for name in texts(rule, "resourceNames") {
                    self.of_roles.insert((namespace.to_owned(), resource.clone(), name));
                }
            }
        }
    }

    fn certificates(&mut self, ingress: &Value, namespace: &str) {
        let annotations = ingress.pointer("/metadata/annotations").and_then(Value::as_object);
        let is_issued = |key: &String| ISSUERS.iter().any(|issuer| key.starts_with(issuer));
        if !annotations.into_iter().flatten().any(|(key, _)| is_issued(key)) {
            return;
        }
        let tls = ingress.pointer("/spec/tls").and_then(Value::as_array);
        for name in tls.into_iter().flatten().map(|entry| entry.text("/secretName")) {
            self.names.insert((namespace.to_owned(), name.to_owned()));
        }
    }

    /// The claims of a StatefulSet: `data-web-` for `data-web-0`.
    fn claims(&mut self, set: &Value, of: &ObjectRef) {
        let templates = set.pointer("/spec/volumeClaimTemplates").and_then(Value::as_array);
        for template in templates.into_iter().flatten() {
            self.names.insert((of.namespace.clone(), format!("{}-{}-", template.name(), of.name)));
        }
        self.arguments(set, &of.namespace);
    }

    /// Every text of a custom resource may be the name of what its controller makes.
    fn strings(&mut self, value: &Value, namespace: &str) {
        match value {
            Value::String(text) if is_name(text) => {
                self.names.insert((namespace.to_owned(), text.clone()));
            }
            Value::Array(list) => list.iter().for_each(|item| self.strings(item, namespace)),
            Value::Object(map) => map.values().for_each(|item| self.strings(item, namespace)),
            _ => {}
        }
    }

    /// Names that a program is told by an argument: `--secret-name=web-tls`.
    fn arguments(&mut self, object: &Value, namespace: &str) {
        let Some(spec) = pods::template(object).and_then(|template| template.get("spec")) else { return };
        for container in pods::containers(&spec) {
            let texts = ["command", "args"].iter().flat_map(|field| container.list(field));
            for text in texts.filter_map(|at: At<'_>| at.text()) {
                let name = text.rsplit_once('=').map_or(text, |(_, value)| value);
                let name = name.rsplit_once('/').map_or(name, |(_, name)| name);
                let is_path = text.contains("=/") || text.starts_with('/');
                if is_name(name) && !is_path {
                    self.names.insert((namespace.to_owned(), name.to_owned()));
                }
            }
        }
    }
}

fn is_passive(group: &str, kind: &str) -> bool {
    PASSIVE.iter().any(|(of, kinds)| *of == group && kinds.contains(&kind))
}

fn is_name(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.');
    !text.is_empty() && text.len() <= 253 && text.chars().all(plain)
}

/// The resource of a core kind.
fn plural(kind: &str) -> String {
    format!("{}s", kind.to_ascii_lowercase())
}

/// Whether the object is there on every cluster.
pub(super) fn is_of_the_cluster(target: &ObjectKey) -> bool {
    let ObjectKey { kind, namespace, name, .. } = target;
    match (kind.as_str(), name.as_str()) {
        ("ServiceAccount", "default") | ("ConfigMap", "kube-root-ca.crt" | "openshift-service-ca.crt") => true,
        ("ClusterRole", "cluster-admin" | "admin" | "edit" | "view") => true,
        ("ClusterRole" | "Role", name) if name.starts_with("system:") => true,
        ("PriorityClass", "system-cluster-critical" | "system-node-critical") => true,
        ("Service", "kubernetes") => namespace == "default",
        // `web-token-x7k2p`, as older clusters name the token of a ServiceAccount.
        ("Secret", name) if is_token(name) => true,
        _ => namespace == "kube-system",
    }
}

fn is_token(name: &str) -> bool {
    let suffix = name.rsplit_once("-token-").map(|(_, suffix)| suffix).unwrap_or_default();
    suffix.len() == 5 && suffix.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
}
