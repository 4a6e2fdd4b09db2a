//! What the apps of a group need from each other: an app whose namespace or kind comes with an app before it cannot be
//! planned until that one is applied.

use std::collections::{BTreeMap, BTreeSet};

use pushback_cluster::{Address, Cluster};
use pushback_deploy::plan::desired::Placement;
use pushback_events::PlannedLine;
use pushback_objects::{Finding, ObjectExt, ObjectRef};
use pushback_preflight::Operation;

use super::super::error::CommandError;
use super::super::input;
use super::super::options::InputOptions;
use super::members::Member;

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
    /// Namespaces that objects are moved to.
    pub placement: &'a Placement,
    /// Namespace of objects that name none.
    pub namespace: &'a str,
}

impl Places<'_> {
    fn of(&self, object: &ObjectRef) -> String {
        let named = if object.namespace.is_empty() { self.namespace } else { &object.namespace };
        let mapped = || self.placement.map_namespaces.iter().find(|(from, _)| from == named).map(|(_, to)| to.clone());
        self.placement.into_namespace.clone().or_else(mapped).unwrap_or_else(|| named.to_owned())
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

/// Objects that the run deletes.
#[derive(Debug, Default)]
pub(super) struct Going {
    /// API group, and `namespace/name` as findings about CRDs have it.
    by_group: BTreeSet<(String, String)>,
    /// The objects as findings about namespaces and owners have them, each with its namespace.
    shown: BTreeMap<String, String>,
}

impl Going {
    /// Adds what a plan deletes.
    pub(super) fn add(&mut self, changes: &[PlannedLine]) {
        for object in changes.iter().filter(|line| line.operation == Operation::Delete).map(|line| &line.object) {
            let place = match object.namespace.as_str() {
                "" => object.name.clone(),
                namespace => format!("{namespace}/{}", object.name),
            };
            self.by_group.insert((object.group.clone(), place));
            self.shown.insert(object.to_string(), object.namespace.clone());
        }
    }

    /// Whether these findings are about nothing but objects that the run deletes.
    pub(super) fn contain(&self, findings: &[Finding]) -> bool {
        !findings.is_empty() && findings.iter().all(|finding| self.contains_those_of(finding))
    }

    fn contains_those_of(&self, finding: &Finding) -> bool {
        let Some(live) = &finding.live_objects else { return false };
        let are_shown = || live.names.iter().all(|name| self.shown.contains_key(name));
        match (finding.object.kind.as_str(), finding.check.as_str()) {
            ("CustomResourceDefinition", _) => {
                let Some((_, group)) = finding.object.name.split_once('.') else { return false };
                let of_group = self.by_group.iter().filter(|(known, _)| known == group).count() as u64;
                let is_known = |name: &String| self.by_group.contains(&(group.to_owned(), name.clone()));
                // What the objects of the kind own is judged where these are deleted.
                let counted = finding.old.as_ref().and_then(|old| old.get("objects")?.as_u64());
                counted.unwrap_or(live.affected) <= of_group && live.names.iter().all(is_known)
            }
            ("Namespace", "namespaceDeleted") => {
                let inside = self.shown.values().filter(|namespace| **namespace == finding.object.name).count() as u64;
                live.affected <= inside && are_shown()
            }
            (_, "dependentsDeleted") => live.affected == live.names.len() as u64 && are_shown(),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use pushback_objects::Verdict;
    use pushback_objects::finding::LiveObjects;

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
        };
        let mut going = Going::default();
        going.add(&[line]);
        let finding = |affected, names: &[&str]| {
            let object = reference("apiextensions.k8s.io", "CustomResourceDefinition", "", "parts.example.com");
            let mut finding = Finding::new("CRDUpgradeSafety", "crdDeletion", Verdict::Breaking, object, "m");
            let names = names.iter().map(|&name| name.to_owned()).collect();
            finding.live_objects = Some(LiveObjects::exactly(affected, affected, names));
            finding
        };
        assert!(going.contain(&[finding(1, &["shop/p"])]));
        for others in [finding(2, &["shop/p"]), finding(1, &["shop/q"])] {
            assert!(!going.contain(&[others]));
        }
        assert!(!going.contain(&[]));
        let namespace = |affected, name: &str| {
            let object = reference("", "Namespace", "", "shop");
            let mut finding = Finding::new("DestructiveChange", "namespaceDeleted", Verdict::Breaking, object, "m");
            let names = vec![name.to_owned()];
            finding.live_objects = Some(LiveObjects::exactly(affected, affected, names));
            finding
        };
        assert!(going.contain(&[namespace(1, "Part.example.com shop/p")]));
        assert!(!going.contain(&[namespace(2, "Part.example.com shop/p")]));
        assert!(!going.contain(&[namespace(1, "Secret shop/p")]));
    }
}
