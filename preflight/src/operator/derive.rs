//! Models out of manifests: operators, components and what belongs to them, as the objects of a release show them, so
//! that nobody needs to keep a second copy of them by hand.

mod assign;
mod dependencies;
mod given;
mod hosts;
mod naming;
mod objects;
mod webhooks;
mod workload;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use self::assign::Claims;
use self::naming::OperatorNames;
pub(super) use self::objects::versioned_name;
use self::objects::{Index, Object, list};
use self::workload::Workload;
use super::model::{
    CheckKind, Component, Definition, FactClass, Operator, Origin, Recovery, Release, Resource, SteadyState,
    SteadyStateCheck,
};
use crate::object::{ObjectExt, ObjectKey};
pub use given::Given;

/// How long a component may take to recover, where it says nothing itself.
const RECOVERY_SECONDS: u64 = 300;
/// How often it may be reconciled until then.
const RECOVERY_CYCLES: u64 = 10;
/// What the API server writes into every Deployment without a deadline of its own: it cannot be told from none.
const DEFAULT_DEADLINE: u64 = 600;
/// What reconciles a component without pods: whoever applies its manifests.
const NO_CONTROLLER: &str = "manifests";
/// Ports that say nothing of what listens there.
const COMMON_PORTS: [u64; 5] = [80, 443, 8080, 8443, 9090];

/// What the objects themselves do not say.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Name of the app; the label `app.kubernetes.io/part-of` names it where this is empty.
    pub app: String,
    /// Namespace of objects that name none; where this is empty, the one that bindings and webhooks give away.
    pub namespace: String,
    /// Version of the release where neither labels nor images agree on one; a digest of the content where empty.
    pub version: String,
    /// Which component owns what in the release that this one is compared with. Of several that may own an object the
    /// one that does there owns it here too, and so it is with what nobody claims: no object moves where its manifest
    /// merely says more, or less, of whom it is for.
    pub counterpart: Ownership,
}

/// The owners of a release's objects: operator and component.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ownership(BTreeMap<ObjectKey, (String, String)>);

impl Ownership {
    /// Who owns what in a release.
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

/// The model of a release that consists of these objects. Their order does not matter.
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
        // What an operator puts on the objects that it works on stands in its code.
        unobserved: BTreeSet::from([FactClass::Finalizers]),
    }
}

fn definition(object: &Object) -> Definition {
    Definition { name: object.reference.name.clone(), value: Arc::clone(&object.value), positions: object.positions() }
}

/// The components of a release, by their places: first one for every workload, then what nobody claims.
struct Parts<'a> {
    index: &'a Index<'a>,
    workloads: &'a [Workload<'a>],
    claims: Claims,
    /// For every component its operator.
    operators: Vec<String>,
    /// For every component its name.
    names: Vec<String>,
    /// For every component its workload.
    centre: Vec<Option<usize>>,
    /// For every object its component.
    owner: Vec<usize>,
    /// For every component its objects.
    members: Vec<Vec<usize>>,
    /// Workloads whose number of replicas is somebody else's.
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
            // Of several claimants the one that owns it on the other side too; else the one that is labelled like it;
            // else the first in the alphabet.
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

    /// An operator, still without components.
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
        // The workload first; the rest in the order of all objects.
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

    /// Components of the same operator by their names, others by their operator's.
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

/// How to see that an object does what it is there for. Whether the others exist is asked of all managed resources
/// anyway.
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

/// Facts that tell a component from others.
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

/// Leaves only those facts that one component alone has: an image that all run tells none from another.
fn keep_specific(components: &mut [Component]) {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for fact in components.iter().flat_map(|component| &component.specific) {
        *counts.entry(fact.clone()).or_default() += 1;
    }
    for component in components {
        component.specific.retain(|fact| counts.get(fact) == Some(&1));
    }
}
