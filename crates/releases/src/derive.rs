//! Derives models from manifests: operators, components and what belongs to them, so that they need not be described by
//! hand.

mod assign;
mod dependencies;
mod hosts;
mod naming;
mod objects;
mod webhooks;
mod workload;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pushback_objects::object::{ObjectExt, ObjectKey};
use serde_json::Value;

use self::assign::Claims;
use self::naming::OperatorNames;
pub use self::objects::Given;
pub(super) use self::objects::versioned_name;
use self::objects::{Index, Object, list};
use self::workload::Workload;
pub(super) use self::workload::repository;
use super::model::{
    CheckKind, Component, Definition, FactClass, Operator, Origin, Recovery, Release, Resource, SteadyState,
    SteadyStateCheck,
};

/// Recovery time of a component that declares none, in seconds.
const RECOVERY_SECONDS: u64 = 300;
/// Maximum number of reconcile cycles until then.
const RECOVERY_CYCLES: u64 = 10;
/// The API server's default for the deadline of a Deployment; indistinguishable from none.
const DEFAULT_DEADLINE: u64 = 600;
/// Controller of a component without pods: whoever applies its manifests.
const NO_CONTROLLER: &str = "manifests";
/// Ports too common to identify a service.
const COMMON_PORTS: [u64; 5] = [80, 443, 8080, 8443, 9090];

/// Information that the objects themselves do not contain.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Name of the app; if empty, taken from the label `app.kubernetes.io/part-of`.
    pub app: String,
    /// Namespace of objects that name none; if empty, inferred from bindings and webhooks.
    pub namespace: String,
    /// Version of the release if neither labels nor images agree on one; if empty, a digest of the content.
    pub version: String,
    /// Owners in the release that this one is compared with. If several components may own an object, or none claims
    /// it, the owner there is the owner here as well, so that an object does not move because its manifest reveals
    /// more, or less, about its owner.
    pub counterpart: Ownership,
}

/// The owners of a release's objects: operator and component.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ownership(BTreeMap<ObjectKey, (String, String)>);

impl Ownership {
    /// The owners in a release.
    #[must_use]
    pub fn of(release: &Release) -> Self {
        let components = release
            .operators
            .iter()
            .flat_map(|operator| operator.components.iter().map(|component| (&operator.name, component)));
        let owned = components.flat_map(|(operator, component)| {
            let owner = (operator.clone(), component.name.clone());
            component.resources.iter().map(move |resource| (resource.object.key(), owner.clone()))
        });
        Self(owned.collect())
    }

    fn owner(&self, object: &Object) -> Option<(&str, &str)> {
        self.0.get(&object.reference.key()).map(|(operator, component)| (operator.as_str(), component.as_str()))
    }
}

/// Derives the model of a release from its objects, in any order.
#[must_use]
pub fn derive(given: &[Given], settings: &Settings) -> Release {
    let objects = objects::sorted(given);
    let implied = || objects::implied_namespace(&objects);
    let namespace = if settings.namespace.is_empty() { implied() } else { settings.namespace.clone() };
    let index = Index::new(&objects, &namespace);
    let every = objects.iter().enumerate();
    let workloads: Vec<Workload<'_>> = every.filter_map(|(at, object)| Workload::of(at, object)).collect();
    let parts = Parts::new(&index, &workloads, settings);
    let mut operators: BTreeMap<&str, Operator> = BTreeMap::new();
    let needed = dependencies::find(&index, &workloads, &parts.as_seen());
    let mut order: Vec<usize> = (0..parts.names.len()).collect();
    order.sort_by(|one, other| {
        (&parts.operators[*one], &parts.names[*one]).cmp(&(&parts.operators[*other], &parts.names[*other]))
    });
    for place in order {
        let name = &parts.operators[place];
        let operator = operators.entry(name).or_insert_with(|| parts.operator(name));
        let mut component = parts.component(place);
        component.dependencies = parts.dependencies(place, &needed[place]);
        operator.components.push(component);
    }
    let mut operators: Vec<Operator> = operators.into_values().collect();
    operators.iter_mut().for_each(|operator| keep_specific(&mut operator.components));
    let all: Vec<&Workload<'_>> = workloads.iter().collect();
    let version = naming::version(&all, &objects.iter().collect::<Vec<_>>());
    let given_version = || Some(settings.version.clone()).filter(|version| !version.is_empty());
    Release {
        version: version.or_else(given_version).unwrap_or_else(|| naming::content_version(&objects)),
        platform: String::new(),
        origin: Origin::Derived,
        operators,
        definitions: objects.iter().filter(|object| object.is_crd()).map(definition).collect(),
        // The finalizers that an operator sets on its objects appear only in its code.
        unobserved: BTreeSet::from([FactClass::Finalizers]),
    }
}

fn definition(object: &Object) -> Definition {
    Definition { name: object.reference.name.clone(), value: Arc::clone(&object.value), positions: object.positions() }
}

/// The components of a release, by index: one per workload, then those of unclaimed objects.
struct Parts<'a> {
    index: &'a Index<'a>,
    workloads: &'a [Workload<'a>],
    claims: Claims,
    /// Operator of each component.
    operators: Vec<String>,
    /// Name of each component.
    names: Vec<String>,
    /// Workload of each component.
    centre: Vec<Option<usize>>,
    /// Component of each object.
    owner: Vec<usize>,
    /// Objects of each component.
    members: Vec<Vec<usize>>,
    /// Workloads whose number of replicas is set by an autoscaler or another controller.
    scaled: BTreeSet<usize>,
}

impl<'a> Parts<'a> {
    fn new(index: &'a Index<'a>, workloads: &'a [Workload<'a>], settings: &Settings) -> Self {
        let namer = OperatorNames::new(&settings.app, index.all, workloads);
        let mut operators: Vec<String> = workloads.iter().map(|workload| namer.of(workload.object)).collect();
        let mut names = naming::component_names(index, workloads, &operators);
        let mut centre: Vec<Option<usize>> = (0..workloads.len()).map(Some).collect();
        let claims = assign::assign(index, workloads);
        let named = operators.clone().into_iter().zip(names.clone()).collect::<Vec<_>>();
        let by_name: BTreeMap<(&str, &str), usize> = named
            .iter()
            .enumerate()
            .map(|(number, (operator, name))| ((operator.as_str(), name.as_str()), number))
            .collect();
        let mut remainders: BTreeMap<String, usize> = BTreeMap::new();
        let mut owner = Vec::with_capacity(index.all.len());
        for (at, object) in index.all.iter().enumerate() {
            // Of several claimants, the owner on the other side; else the one with the same labels; else the first in
            // alphabetical order.
            let triple = assign::triple(&object.value);
            let there = settings.counterpart.owner(object);
            let rank = |number: &&usize| {
                let (operator, name) = (&operators[**number], &names[**number]);
                let is_same = there == Some((operator.as_str(), name.as_str()));
                let is_alike = triple != [""; 3] && assign::triple(&workloads[**number].object.value) == triple;
                (!is_same, !is_alike, operator, name)
            };
            let chosen = claims.of[at].iter().min_by_key(rank).copied();
            let chosen = chosen.or_else(|| there.and_then(|owner| by_name.get(&owner).copied()));
            owner.push(chosen.unwrap_or_else(|| {
                let operator = namer.of(object);
                *remainders.entry(operator.clone()).or_insert_with(|| {
                    let taken = operators.iter().zip(&names).filter(|(other, _)| **other == operator);
                    let name = naming::remainder(&operator, &taken.map(|(_, name)| name.clone()).collect());
                    operators.push(operator);
                    names.push(name);
                    centre.push(None);
                    names.len() - 1
                })
            }));
        }
        let mut members = vec![Vec::new(); names.len()];
        for (at, component) in owner.iter().enumerate() {
            members[*component].push(at);
        }
        let autoscaled = index.all.iter().enumerate().filter_map(|(at, object)| {
            assign::scaled(index, &object.reference.kind, &object.value, index.namespace_of(at))
                .filter(|_| object.reference.kind != "VerticalPodAutoscaler")
        });
        let scaled = autoscaled.collect();
        Self { index, workloads, claims, operators, names, centre, owner, members, scaled }
    }

    fn as_seen(&self) -> dependencies::Parts<'_> {
        dependencies::Parts {
            owner: &self.owner,
            workload: &self.centre,
            used: &self.claims.used,
            roles: &self.claims.roles,
        }
    }

    /// An operator without components yet.
    fn operator(&self, name: &str) -> Operator {
        let places: Vec<usize> = (0..self.names.len()).filter(|place| self.operators[*place] == name).collect();
        let workloads: Vec<&Workload<'_>> =
            places.iter().filter_map(|place| self.centre[*place]).map(|number| &self.workloads[number]).collect();
        let members: Vec<usize> = places.iter().flat_map(|place| self.members[*place].iter().copied()).collect();
        let objects: Vec<&Object> = members.iter().map(|at| &self.index.all[*at]).collect();
        let deadlines = workloads.iter().filter_map(|workload| {
            let deadline = workload.object.value.pointer("/spec/progressDeadlineSeconds").and_then(Value::as_u64);
            deadline.filter(|seconds| *seconds != DEFAULT_DEADLINE && *seconds > 0)
        });
        Operator {
            name: name.to_owned(),
            namespace: naming::namespace(self.index, &workloads, &members),
            version: naming::version(&workloads, &objects).unwrap_or_default(),
            recovery: Recovery {
                reconcile_timeout_seconds: deadlines.max().unwrap_or(RECOVERY_SECONDS),
                max_reconcile_cycles: RECOVERY_CYCLES,
            },
            position: workloads.first().map(|workload| workload.object.position(&[])).unwrap_or_default(),
            ..Operator::default()
        }
    }

    fn component(&self, place: usize) -> Component {
        let workload = self.centre[place].map(|number| &self.workloads[number]);
        let mut members = self.members[place].clone();
        // The workload first, then the others in the order of all objects.
        members.sort_by_key(|at| workload.is_none_or(|workload| workload.at != *at));
        let objects: Vec<&Object> = members.iter().map(|at| &self.index.all[*at]).collect();
        let repositories: Vec<&str> = workload.map(|it| it.repositories.iter().copied().collect()).unwrap_or_default();
        let mut finalizers: BTreeSet<&str> = BTreeSet::new();
        for object in &objects {
            let given = list(object.value.pointer("/metadata/finalizers")).filter_map(Value::as_str);
            finalizers.extend(given.filter(|name| !name.trim().is_empty()));
        }
        Component {
            name: self.names[place].clone(),
            controller: if repositories.is_empty() { NO_CONTROLLER.to_owned() } else { repositories.join(",") },
            resources: members.iter().map(|at| self.resource(*at, workload)).collect(),
            dependencies: Vec::new(),
            webhooks: objects.iter().flat_map(|object| webhooks::of(object)).collect(),
            finalizers: finalizers.into_iter().map(ToOwned::to_owned).collect(),
            steady_state: SteadyState {
                checks: objects.iter().filter_map(|it| check(it)).collect(),
                timeout_seconds: 0,
            },
            specific: workload.map(|workload| specific(workload, &objects)).unwrap_or_default(),
            position: objects.first().map(|object| object.position(&[])).unwrap_or_default(),
        }
    }

    fn resource(&self, at: usize, workload: Option<&Workload<'_>>) -> Resource {
        let object = &self.index.all[at];
        let own = workload.filter(|workload| workload.at == at);
        let expected_spec = match own {
            Some(workload) => workload.expected_spec(self.scaled.contains(&at)),
            None if object.is("", "Service") => workload::expected_service(&object.value),
            None if object.is("batch", "Job") => workload::expected_job(&object.value),
            None => workload::expected_limits(&object.reference, &object.value),
        };
        Resource {
            object: object.reference.clone(),
            labels: object.labels(),
            selector: own.map(Workload::selector).unwrap_or_default(),
            owner_kind: objects::owners(&object.value).next().map(|it| it.text("/kind").to_owned()).unwrap_or_default(),
            expected_spec,
            manifest: Some(Arc::clone(&object.value)),
            position: object.position(&[]),
        }
    }

    /// Names of the components of the same operator, and of the operators of other components.
    fn dependencies(&self, place: usize, needed: &dependencies::Needed) -> Vec<String> {
        let own = &self.operators[place];
        let named = needed.components.iter().map(|other| {
            let is_same = self.operators[*other] == *own;
            if is_same { self.names[*other].clone() } else { self.operators[*other].clone() }
        });
        let named: BTreeSet<String> = named.collect();
        named.into_iter().chain(needed.external.iter().map(|name| format!("external:{name}"))).collect()
    }
}

/// The check that an object works. Existence is checked for all managed resources anyway.
fn check(object: &Object) -> Option<SteadyStateCheck> {
    let condition = |name: &str| CheckKind::ConditionTrue { condition: name.to_owned() };
    let kind = match (object.reference.group.as_str(), object.reference.kind.as_str()) {
        ("apps" | "extensions", "Deployment") => condition("Available"),
        ("apps" | "extensions", "StatefulSet" | "DaemonSet") => CheckKind::AllReady,
        ("apiregistration.k8s.io", "APIService") => condition("Available"),
        ("", "Service") => CheckKind::ResourceExists,
        ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration") => {
            CheckKind::ResourceExists
        }
        _ if object.is_crd() => condition("Established"),
        _ => return None,
    };
    Some(SteadyStateCheck { kind, object: object.reference.clone(), position: object.position(&[]) })
}

/// Facts that distinguish a component from others.
fn specific(workload: &Workload<'_>, objects: &[&Object]) -> BTreeSet<String> {
    let mut facts: BTreeSet<String> = workload.repositories.iter().map(|name| format!("image:{name}")).collect();
    facts.extend(workload.service_account().map(|name| format!("account:{name}")));
    for service in objects.iter().filter(|object| object.is("", "Service")) {
        let ports: BTreeSet<u64> =
            list(service.value.pointer("/spec/ports")).filter_map(|port| port.get("port")?.as_u64()).collect();
        if ports.iter().any(|port| !COMMON_PORTS.contains(port)) {
            let ports: Vec<String> = ports.iter().map(ToString::to_string).collect();
            facts.insert(format!("ports:{}", ports.join(",")));
        }
    }
    facts
}

/// Keeps only facts that are unique to one component: a shared image distinguishes none.
fn keep_specific(components: &mut [Component]) {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for fact in components.iter().flat_map(|component| &component.specific) {
        *counts.entry(fact.clone()).or_default() += 1;
    }
    for component in components {
        component.specific.retain(|fact| counts.get(fact) == Some(&1));
    }
}
