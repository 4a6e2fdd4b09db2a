//! What the apps of a group need from each other: an app whose namespace or kind comes with an app before it cannot be
//! planned until that one is applied.

use std::collections::{BTreeMap, BTreeSet};

use pushback_preflight::{Finding, ObjectExt, ObjectRef, Operation};

use super::super::error::CommandError;
use super::super::input;
use super::super::options::{InputOptions, PlanOptions};
use super::members::Member;
use crate::cluster::{Address, Cluster};
use crate::event::PlannedLine;

/// What an app's input needs and brings.
#[derive(Clone, Debug, Default)]
pub(super) struct Input {
    objects: Vec<ObjectRef>,
    namespaces: BTreeSet<String>,
    kinds: BTreeSet<(String, String)>,
}

/// Where the objects of an input go.
#[derive(Clone, Copy, Debug)]
pub(super) struct Places<'a> {
    /// Planning options, with the namespaces that objects are moved to.
    pub plan: &'a PlanOptions,
    /// Namespace of objects that name none.
    pub namespace: &'a str,
}

impl Places<'_> {
    fn of(&self, object: &ObjectRef) -> String {
        let named = if object.namespace.is_empty() { self.namespace } else { &object.namespace };
        let mapped = || self.plan.map_namespaces.iter().find(|(from, _)| from == named).map(|(_, to)| to.clone());
        self.plan.into_namespace.clone().or_else(mapped).unwrap_or_else(|| named.to_owned())
    }
}

/// Reads an app's input.
///
/// # Errors
/// All errors in it.
pub(super) fn read(options: &InputOptions) -> Result<Input, CommandError> {
    let read = input::read(options)?;
    let mut found = Input::default();
    for manifest in &read.input.manifests {
        let object = &manifest.object;
        match (object.group.as_str(), object.kind.as_str()) {
            ("", "Namespace") => {
                found.namespaces.insert(object.name.clone());
            }
            ("apiextensions.k8s.io", "CustomResourceDefinition") => {
                let (group, kind) = (manifest.value.text("/spec/group"), manifest.value.text("/spec/names/kind"));
                found.kinds.insert((group.to_owned(), kind.to_owned()));
            }
            _ => {}
        }
        found.objects.push(object.clone());
    }
    Ok(found)
}

/// Marks the apps that need what is not there, and what an app before them brings.
///
/// # Errors
/// The cluster's error.
pub(super) async fn put_off(
    cluster: &dyn Cluster,
    members: &mut [Member],
    inputs: &[Input],
    places: &Places<'_>,
) -> Result<(), CommandError> {
    let mut kinds: BTreeMap<&(String, String), String> = BTreeMap::new();
    let mut namespaces: BTreeMap<&String, String> = BTreeMap::new();
    if inputs.iter().all(|input| input.kinds.is_empty() && input.namespaces.is_empty()) {
        return Ok(());
    }
    let served = cluster.kinds().await?;
    let mut missing = BTreeSet::new();
    if let Some(namespace) = served.find("", "v1", "Namespace").filter(|_| cluster.capabilities().server) {
        for name in inputs.iter().flat_map(|input| &input.namespaces) {
            if cluster.get(&Address::new(std::sync::Arc::clone(namespace), "", name)).await?.is_none() {
                missing.insert(name.clone());
            }
        }
    }
    for (member, input) in members.iter_mut().zip(inputs) {
        let needed = input.objects.iter().find_map(|object| {
            let kind = (object.group.clone(), object.kind.clone());
            let found = served.find(&object.group, &object.version, &object.kind);
            let of_kind = kinds.get(&kind).filter(|_| found.is_none() && !input.kinds.contains(&kind));
            if let Some(app) = of_kind {
                return Some(format!("planned after app {app}, which brings kind {}", object.kind));
            }
            let place = places.of(object);
            let is_namespaced = found.is_none_or(|kind| kind.namespaced);
            let is_missing = is_namespaced && missing.contains(&place) && !input.namespaces.contains(&place);
            let app = namespaces.get(&place).filter(|_| is_missing)?;
            Some(format!("planned after app {app}, which brings namespace {place}"))
        });
        member.later = needed;
        for kind in &input.kinds {
            kinds.entry(kind).or_insert_with(|| member.name.clone());
        }
        for namespace in &input.namespaces {
            namespaces.entry(namespace).or_insert_with(|| member.name.clone());
        }
    }
    Ok(())
}

/// Objects that the run deletes: API group, and `namespace/name` as findings have it.
#[derive(Debug, Default)]
pub(super) struct Going(BTreeSet<(String, String)>);

impl Going {
    /// Adds what a plan deletes.
    pub(super) fn add(&mut self, changes: &[PlannedLine]) {
        for object in changes.iter().filter(|line| line.operation == Operation::Delete).map(|line| &line.object) {
            let place = match object.namespace.as_str() {
                "" => object.name.clone(),
                namespace => format!("{namespace}/{}", object.name),
            };
            self.0.insert((object.group.clone(), place));
        }
    }

    /// Whether these findings are about nothing but custom resources that go.
    pub(super) fn contain(&self, findings: &[Finding]) -> bool {
        let is_about_them = |finding: &Finding| {
            let Some(affected) = &finding.live_objects else { return false };
            let Some((_, group)) = finding.object.name.split_once('.') else { return false };
            let of_group = self.0.iter().filter(|(known, _)| known == group).count() as u64;
            let is_known = |name: &String| self.0.contains(&(group.to_owned(), name.clone()));
            finding.object.kind == "CustomResourceDefinition"
                && affected.affected <= of_group
                && affected.names.iter().all(is_known)
        };
        !findings.is_empty() && findings.iter().all(is_about_them)
    }
}

#[cfg(test)]
mod tests {
    use pushback_preflight::Verdict;
    use pushback_preflight::finding::LiveObjects;

    use super::*;

    fn reference(group: &str, kind: &str, namespace: &str, name: &str) -> ObjectRef {
        let [group, version, kind, namespace, name] = [group, "v1", kind, namespace, name].map(str::to_owned);
        ObjectRef { group, version, kind, namespace, name }
    }

    #[test]
    fn a_definition_may_go_after_its_objects_and_with_no_others() {
        let line = PlannedLine {
            object: reference("example.com", "Part", "shop", "p"),
            operation: Operation::Delete,
            position: None,
            fields: Vec::new(),
            text: String::new(),
            notes: Vec::new(),
            whole: None,
        };
        let mut going = Going::default();
        going.add(&[line]);
        let finding = |affected, names: &[&str]| {
            let object = reference("apiextensions.k8s.io", "CustomResourceDefinition", "", "parts.example.com");
            let mut finding = Finding::new("CRDUpgradeSafety", "crdDeletion", Verdict::Breaking, object, "m");
            let names = names.iter().map(|&name| name.to_owned()).collect();
            finding.live_objects = Some(LiveObjects { affected, examined: affected, names });
            finding
        };
        assert!(going.contain(&[finding(1, &["shop/p"])]));
        for others in [finding(2, &["shop/p"]), finding(1, &["shop/q"])] {
            assert!(!going.contain(&[others]));
        }
        assert!(!going.contain(&[]));
    }
}
