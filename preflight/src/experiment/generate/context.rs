//! Lookups in a release for generation: components by name, the pods of a component, its checks, and its namespace.

use std::collections::{BTreeMap, BTreeSet};

use pushback_crd::names::is_dns_label;
use pushback_objects::object::{ObjectKey, ObjectRef};
use pushback_releases::model::{CheckKind, Component, Operator, Release, Resource};

use crate::experiment::{Check, DEFAULT_RECOVERY_SECONDS, LONGEST_SECONDS, protected_namespace};

/// Kinds that run pods, the most common first.
const WORKLOADS: [&str; 3] = ["Deployment", "StatefulSet", "DaemonSet"];

/// A component and its operator in one release.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place<'a> {
    pub(super) operator: &'a Operator,
    pub(super) component: &'a Component,
}

impl<'a> Place<'a> {
    /// Names of the operator and of the component.
    pub(super) fn names(self) -> (&'a str, &'a str) {
        (&self.operator.name, &self.component.name)
    }
}

/// The pods of a component.
#[derive(Clone, Debug)]
pub(super) struct Pods {
    /// The label selector, `a=b,c=d`.
    pub(super) selector: String,
    pub(super) namespace: String,
    /// Number of replicas; 1 if unknown.
    pub(super) replicas: u32,
    /// The workload that runs them, `Deployment/web`.
    pub(super) workload: String,
}

/// An index of one release.
#[derive(Debug)]
pub(super) struct Index<'a> {
    release: &'a Release,
    components: BTreeMap<(&'a str, &'a str), Place<'a>>,
    pub(super) objects: BTreeSet<ObjectKey>,
}

impl<'a> Index<'a> {
    pub(super) fn of(release: &'a Release) -> Self {
        let mut index = Self { release, components: BTreeMap::new(), objects: BTreeSet::new() };
        for operator in &release.operators {
            for component in &operator.components {
                index.components.entry((&operator.name, &component.name)).or_insert(Place { operator, component });
                index.objects.extend(component.resources.iter().map(|resource| resource.object.key()));
            }
        }
        index
    }

    pub(super) fn release(&self) -> &'a Release {
        self.release
    }

    pub(super) fn component(&self, operator: &str, component: &str) -> Option<Place<'a>> {
        self.components.get(&(operator, component)).copied()
    }

    /// All components, sorted by operator and name.
    pub(super) fn components(&self) -> impl Iterator<Item = Place<'a>> {
        self.components.values().copied()
    }

    /// The components that a dependency names: one of the same operator, else all of another operator.
    pub(super) fn dependency(&self, operator: &str, name: &str) -> Vec<Place<'a>> {
        match self.component(operator, name) {
            Some(place) => vec![place],
            None => self.components().filter(|place| place.operator.name == name).collect(),
        }
    }
}

impl<'a> Place<'a> {
    /// A resource of the component, by identity.
    pub(super) fn resource(&self, object: &ObjectRef) -> Option<&'a Resource> {
        let key = object.key();
        self.component.resources.iter().find(|resource| resource.object.key() == key)
    }

    /// The namespace of an object of the component.
    pub(super) fn namespace_of(&self, object: &ObjectRef) -> String {
        if object.namespace.is_empty() { self.operator.namespace.clone() } else { object.namespace.clone() }
    }

    /// The pods of its first selectable workload, regardless of the order of its resources.
    pub(super) fn pods(&self) -> Option<Pods> {
        let rank = |resource: &Resource| WORKLOADS.iter().position(|kind| *kind == resource.object.kind);
        let workloads = self.component.resources.iter().filter_map(|resource| Some((rank(resource)?, resource)));
        let first = workloads
            .filter(|(_, resource)| !resource.selector.is_empty())
            .min_by_key(|(rank, resource)| (*rank, resource.object.clone(), resource.selector.clone()));
        first.map(|(_, resource)| self.pods_of(resource))
    }

    pub(super) fn pods_of(&self, resource: &Resource) -> Pods {
        let labels: Vec<String> = resource.selector.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let manifest = resource.manifest.as_deref().and_then(|manifest| manifest.pointer("/spec/replicas"));
        let replicas = resource.expected_spec.get("replicas").or(manifest);
        let replicas = replicas.and_then(serde_json::Value::as_u64).and_then(|count| u32::try_from(count).ok());
        Pods {
            selector: labels.join(","),
            namespace: self.namespace_of(&resource.object),
            // The field in a CustomResourceDefinition is a signed 32-bit integer.
            replicas: replicas.unwrap_or(1).clamp(1, 1 << 30),
            workload: format!("{}/{}", resource.object.kind, resource.object.name),
        }
    }

    /// Recovery time of the operator, in seconds.
    pub(super) fn recovery_seconds(&self) -> u64 {
        self.operator.recovery.reconcile_timeout_seconds.clamp(DEFAULT_RECOVERY_SECONDS, LONGEST_SECONDS)
    }

    /// Checks of the component, restricted to the two types that every runner supports. If its model has none, its
    /// workloads are checked.
    pub(super) fn checks(&self) -> Vec<Check> {
        let written = self.component.steady_state.checks.iter().map(|check| {
            let (kind, condition) = match &check.kind {
                CheckKind::ConditionTrue { condition } if !condition.is_empty() => {
                    ("conditionTrue", condition.as_str())
                }
                _ => ("resourceExists", ""),
            };
            self.check(&check.object, kind, condition)
        });
        let mut checks: BTreeSet<Check> = written.flatten().collect();
        if checks.is_empty() {
            let workloads = self.component.resources.iter().filter(|resource| is_workload(&resource.object));
            checks = workloads
                .filter_map(|resource| match resource.object.kind.as_str() {
                    "Deployment" => self.check(&resource.object, "conditionTrue", "Available"),
                    _ => self.check(&resource.object, "resourceExists", ""),
                })
                .collect();
        }
        checks.into_iter().collect()
    }

    /// `None` if every runner rejects it: no kind or name, or a protected namespace.
    fn check(&self, object: &ObjectRef, kind: &str, condition: &str) -> Option<Check> {
        let namespace = &object.namespace;
        let is_refused = object.kind.is_empty()
            || object.name.is_empty()
            || protected_namespace(namespace, true).is_some()
            || !(namespace.is_empty() || is_dns_label(namespace));
        (!is_refused).then(|| Check {
            kind: kind.to_owned(),
            api_version: object.api_version(),
            object_kind: object.kind.clone(),
            name: object.name.clone(),
            namespace: namespace.clone(),
            condition: condition.to_owned(),
            ..Check::default()
        })
    }
}

/// Whether the object runs pods.
pub(super) fn is_workload(object: &ObjectRef) -> bool {
    WORKLOADS.contains(&object.kind.as_str()) && object.group == "apps"
}
