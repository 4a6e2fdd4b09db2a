//! Dependencies of a component: hosts that it calls, configuration and API groups of other components, and the apply
//! order that its manifests request. A dependency outside the release is `external:NAME`.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use pushback_objects::object::{ObjectExt, is_custom_group};
use serde_json::Value;

use super::hosts::{HostReferences, Hosts};
use super::objects::{Index, list};
use super::workload::Workload;

/// Maximum number of dependencies in a release; more than this is not useful.
const EDGES: usize = 1_000_000;
/// A change group with more components defines an order, and no dependencies.
const ORDERED: usize = 64;

const GROUP: &str = "kapp.k14s.io/change-group";
const RULE: &str = "kapp.k14s.io/change-rule";

/// The components, with the objects and workloads that they own.
#[derive(Debug)]
pub(super) struct Parts<'a> {
    /// Component of each object.
    pub(super) owner: &'a [usize],
    /// Workload of each component; none for unclaimed objects.
    pub(super) workload: &'a [Option<usize>],
    /// For each workload, the ConfigMaps, Secrets and claims that its pods name.
    pub(super) used: &'a [BTreeSet<usize>],
    /// For each workload, the roles bound to its account.
    pub(super) roles: &'a [BTreeSet<usize>],
}

/// The dependencies of one component.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Needed {
    /// Indices of other components.
    pub(super) components: BTreeSet<usize>,
    /// Hosts and API groups outside the release.
    pub(super) external: BTreeSet<String>,
}

/// The dependencies of every component. Components of unclaimed objects have none and are no dependency: they do not
/// run.
pub(super) fn find(index: &Index<'_>, workloads: &[Workload<'_>], parts: &Parts<'_>) -> Vec<Needed> {
    let hosts = Hosts::new(index);
    let definitions = Definitions::new(index);
    let mut configured: HashMap<usize, HostReferences> = HashMap::new();
    let mut granted: HashMap<usize, Needed> = HashMap::new();
    let mut edges = EDGES;
    let mut needed = vec![Needed::default(); parts.workload.len()];
    for (component, number) in parts.workload.iter().enumerate() {
        let Some(number) = *number else { continue };
        let workload = &workloads[number];
        let namespace = index.namespace_of(workload.at);
        let own = &mut needed[component];
        for container in workload.containers() {
            own.note(&hosts.of_container(container, namespace), parts, &mut edges);
        }
        for used in &parts.used[number] {
            own.components.insert(parts.owner[*used]);
            if index.all[*used].is("", "ConfigMap") {
                let found = configured.entry(*used).or_insert_with(|| hosts.of_config_map(*used));
                own.note(found, parts, &mut edges);
            }
        }
        for role in &parts.roles[number] {
            let found = granted.entry(*role).or_insert_with(|| {
                let mut found = Needed::default();
                for rule in list(index.all[*role].value.get("rules")) {
                    definitions.granted(rule, &mut found, parts);
                }
                found
            });
            own.add(found, &mut edges);
        }
    }
    for (at, object) in index.all.iter().enumerate().filter(|(_, object)| object.is_custom()) {
        let own = &mut needed[parts.owner[at]];
        definitions.needed(&object.reference.group, |_, kind| kind == object.reference.kind, own, parts);
    }
    ordered(index, parts, &mut needed);
    for (component, own) in needed.iter_mut().enumerate() {
        own.components.retain(|other| *other != component && parts.workload[*other].is_some());
        if parts.workload[component].is_none() {
            *own = Needed::default();
        }
    }
    needed
}

impl Needed {
    fn note(&mut self, found: &HostReferences, parts: &Parts<'_>, edges: &mut usize) {
        let components = found.services.iter().map(|service| parts.owner[*service]).collect();
        self.add(&Self { components, external: found.others.clone() }, edges);
    }

    /// Adds the dependencies of another set, up to the limit.
    fn add(&mut self, other: &Self, edges: &mut usize) {
        let Some(left) = edges.checked_sub(other.components.len() + other.external.len()) else { return };
        *edges = left;
        self.components.extend(&other.components);
        self.external.extend(other.external.iter().cloned());
    }
}

/// The definitions of a release by group: plural, kind, and index of the object.
struct Definitions<'a>(HashMap<&'a str, Vec<(&'a str, &'a str, usize)>>);

impl<'a> Definitions<'a> {
    fn new(index: &Index<'a>) -> Self {
        let mut groups: HashMap<&str, Vec<(&str, &str, usize)>> = HashMap::new();
        for (at, object) in index.all.iter().enumerate().filter(|(_, object)| object.is_crd()) {
            let names = (object.value.text("/spec/names/plural"), object.value.text("/spec/names/kind"), at);
            groups.entry(object.value.text("/spec/group")).or_default().push(names);
        }
        Self(groups)
    }

    /// Adds the API groups that a role's rule grants access to.
    fn granted(&self, rule: &Value, own: &mut Needed, parts: &Parts<'_>) {
        let resources: BTreeSet<&str> = list(rule.get("resources")).filter_map(Value::as_str).collect();
        let groups: BTreeSet<&str> = list(rule.get("apiGroups")).filter_map(Value::as_str).collect();
        let plurals: BTreeSet<&str> = resources.iter().map(|it| it.split('/').next().unwrap_or_default()).collect();
        for group in groups.into_iter().filter(|group| *group != "*") {
            let is_named = |plural: &str, _: &str| plurals.contains("*") || plurals.contains(plural);
            self.needed(group, is_named, own, parts);
        }
    }

    fn needed(&self, group: &str, is_named: impl Fn(&str, &str) -> bool, own: &mut Needed, parts: &Parts<'_>) {
        match self.0.get(group) {
            Some(defined) => {
                let named = defined.iter().filter(|(plural, kind, _)| is_named(plural, kind));
                own.components.extend(named.map(|(_, _, at)| parts.owner[*at]));
            }
            None if is_custom_group(group) => {
                own.external.insert(group.to_owned());
            }
            None => {}
        }
    }
}

/// Adds the order in change rules: an object depends on those applied before it.
fn ordered(index: &Index<'_>, parts: &Parts<'_>, needed: &mut [Needed]) {
    let mut groups: BTreeMap<&str, BTreeSet<usize>> = BTreeMap::new();
    for (at, object) in index.all.iter().enumerate() {
        for group in annotations(&object.value, GROUP) {
            groups.entry(group.trim()).or_default().insert(parts.owner[at]);
        }
    }
    groups.retain(|_, components| components.len() <= ORDERED);
    for (at, object) in index.all.iter().enumerate() {
        let own = parts.owner[at];
        for rule in annotations(&object.value, RULE) {
            let words: Vec<&str> = rule.split_whitespace().collect();
            let ["upsert", order, "upserting", group] = words[..] else { continue };
            let others: &[usize] = &groups.get(group).into_iter().flatten().copied().collect::<Vec<_>>();
            match order {
                "after" => needed[own].components.extend(others),
                "before" => others.iter().for_each(|other| {
                    needed[*other].components.insert(own);
                }),
                _ => {}
            }
        }
    }
}

/// The values of an annotation, which may repeat with a suffix: `change-rule.db`.
fn annotations<'a>(value: &'a Value, name: &'a str) -> impl Iterator<Item = &'a str> {
    let all = value.pointer("/metadata/annotations").and_then(Value::as_object).into_iter().flatten();
    all.filter(move |(key, _)| {
        key.strip_prefix(name).is_some_and(|suffix| suffix.is_empty() || suffix.starts_with('.'))
    })
    .filter_map(|(_, value)| value.as_str())
}
