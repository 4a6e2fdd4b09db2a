//! What a component needs of others: hosts that it calls, configuration that another owns, API groups that another
//! defines, and the order that its manifests ask for. What nobody in the release owns is `external:NAME`.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::Value;

use super::hosts::{Found, Hosts};
use super::objects::{Index, list};
use super::workload::Workload;
use crate::object::{ObjectExt, is_custom_group};

/// Dependencies that a whole release is worth looking for; more are no structure that anybody could act on.
const EDGES: usize = 1_000_000;
/// A change group with more components than this orders all of them, and says of none what it needs.
const ORDERED: usize = 64;

const GROUP: &str = "kapp.k14s.io/change-group";
const RULE: &str = "kapp.k14s.io/change-rule";

/// A component as the search sees it: its place, and which objects and workloads are its own.
#[derive(Debug)]
pub(super) struct Parts<'a> {
    /// For every object the component that owns it.
    pub(super) owner: &'a [usize],
    /// For every component its workload; what nobody claims has none.
    pub(super) workload: &'a [Option<usize>],
    /// For every workload the ConfigMaps, Secrets and claims that its pods name.
    pub(super) used: &'a [BTreeSet<usize>],
    /// For every workload the roles that are bound to its account.
    pub(super) roles: &'a [BTreeSet<usize>],
}

/// What one component needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Needed {
    /// Other components, by their places.
    pub(super) components: BTreeSet<usize>,
    /// Hosts and API groups of nobody here.
    pub(super) external: BTreeSet<String>,
}

/// What every component needs. Components of objects that nobody claims neither need nor are needed: they are a
/// remainder, not a part that runs.
pub(super) fn find(index: &Index<'_>, workloads: &[Workload<'_>], parts: &Parts<'_>) -> Vec<Needed> {
    let hosts = Hosts::new(index);
    let definitions = Definitions::new(index);
    let mut configured: HashMap<usize, Found> = HashMap::new();
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
    fn note(&mut self, found: &Found, parts: &Parts<'_>, edges: &mut usize) {
        let components = found.services.iter().map(|service| parts.owner[*service]).collect();
        self.add(&Self { components, external: found.others.clone() }, edges);
    }

    /// Adds what something else needs, while there are edges left.
    fn add(&mut self, other: &Self, edges: &mut usize) {
        let Some(left) = edges.checked_sub(other.components.len() + other.external.len()) else { return };
        *edges = left;
        self.components.extend(&other.components);
        self.external.extend(other.external.iter().cloned());
    }
}

/// The definitions of a release by their group: plural, kind, and where it stands.
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

    /// What a rule of a role lets its bearer use.
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

/// The order that change rules ask for: what is applied after another needs it.
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

/// The values of an annotation, which may be given several times with a suffix: `change-rule.db`.
fn annotations<'a>(value: &'a Value, name: &'a str) -> impl Iterator<Item = &'a str> {
    let all = value.pointer("/metadata/annotations").and_then(Value::as_object).into_iter().flatten();
    all.filter(move |(key, _)| {
        key.strip_prefix(name).is_some_and(|suffix| suffix.is_empty() || suffix.starts_with('.'))
    })
    .filter_map(|(_, value)| value.as_str())
}
