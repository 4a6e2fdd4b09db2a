//! Remedies that several rules propose: correct the objects, keep what goes; and the commands for them.

use pushback_crd::definition::{Crd, listed};
use pushback_objects::finding::Finding;
use pushback_objects::invocation::Invocation;
use pushback_objects::object::ObjectExt;
use pushback_objects::remedy::{Remedy, RemedyKind};
use pushback_objects::source::PathSegment;

use crate::facts::{Change, Facts, Operation};

/// Most objects that a remedy names one by one.
const NAMED: usize = 5;

/// Corrects the stored objects of a CRD that a finding names: on the cluster, or in the manifests where the run itself
/// writes them.
#[must_use]
pub(super) fn correct_objects(facts: &Facts, finding: &Finding) -> Option<Remedy> {
    let live = finding.live_objects.as_ref().filter(|live| live.affected > 0)?;
    let again = &facts.invocation;
    let crd = facts.changes.find(&finding.object.key()).and_then(|change| change.live.as_deref()).map(Crd::of);
    let written = |name: &&String| crd.as_ref().and_then(|crd| manifest_of(facts, crd, name)).is_some();
    let (in_manifests, on_cluster): (Vec<&String>, Vec<&String>) = live.names.iter().partition(written);
    let is_written_only = on_cluster.is_empty() && live.affected == in_manifests.len() as u64;
    let mut steps = Vec::new();
    if !is_written_only {
        let objects = if live.affected == 1 { "the affected object" } else { "the affected objects" };
        steps.push(correction(finding, objects, ""));
    }
    if !in_manifests.is_empty() {
        let places = in_manifests.iter().filter_map(|name| manifest_of(facts, crd.as_ref()?, name));
        let places: Vec<String> = places.filter_map(|change| place_of(change, finding)).collect();
        steps.push(correction(finding, "the manifest", &format!(" ({})", listed(&places, NAMED))));
    }
    let subresource = crd.as_ref().filter(|crd| is_in_status_subresource(crd, finding)).map(|_| "--subresource=status");
    let rest: Vec<&str> = subresource.into_iter().collect();
    let edit = |name: &&String| kubectl(again, "edit", &finding.object.name, name, &rest);
    let mut commands: Vec<String> = on_cluster.iter().take(NAMED).map(edit).collect();
    if live.affected > commands.len() as u64 {
        // The next run names some of those that are left.
        commands.push(again.to_string());
    }
    Some(Remedy { steps, ..Remedy::deployer(RemedyKind::CorrectObjects, "").commands(commands) })
}

/// Step that corrects the field of an object.
fn correction(finding: &Finding, object: &str, place: &str) -> String {
    let field = finding.path.as_deref().filter(|path| !path.is_empty());
    let of = if object == "the manifest" { "in" } else { "of" };
    let field = field.map(|field| format!("`{field}` {of} ")).unwrap_or_default();
    match finding.effect.as_deref() {
        Some("rejected") => format!("correct {field}{object}{place} first"),
        Some("altered") => format!("set {field}{object}{place} first, so that no default decides it"),
        _ => format!("move what is in {field}{object}{place} elsewhere first"),
    }
}

/// The change that writes this object of the kind; `None` if the run does not write it.
fn manifest_of<'f>(facts: &'f Facts, crd: &Crd<'_>, name: &str) -> Option<&'f Change> {
    let (namespace, name) = name.split_once('/').unwrap_or(("", name));
    let of_the_kind = |change: &&Change| {
        let object = &change.object;
        object.group == crd.group() && object.kind == crd.kind() && object.namespace == namespace && object.name == name
    };
    facts.changes.changes.iter().filter(of_the_kind).find(|change| change.desired.is_some())
}

/// `a.yaml:12`: the place of the field in the manifest, or of what it is in.
fn place_of(change: &Change, finding: &Finding) -> Option<String> {
    let path = finding.path.as_deref().unwrap_or_default();
    let keys = path.split(['[', '{']).next().unwrap_or_default().split('.').filter(|key| !key.is_empty());
    let position = change.locate(&keys.map(PathSegment::from).collect::<Vec<_>>())?;
    Some(format!("{}:{}", position.file, position.line))
}

/// Returns whether the field can only be written through the status subresource.
fn is_in_status_subresource(crd: &Crd<'_>, finding: &Finding) -> bool {
    let path = finding.path.as_deref().unwrap_or_default();
    let is_of_status = path.strip_prefix("status").is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']));
    is_of_status && crd.versions.iter().any(|version| version.served && version.status)
}

/// Keeps the live object of a deletion, or what is in it.
#[must_use]
pub(super) fn keep(facts: &Facts, finding: &Finding) -> Option<Remedy> {
    let change = facts.changes.find(&finding.object.key()).filter(|change| change.ends_live_object())?;
    if change.operation != Operation::Delete {
        return None;
    }
    let (is_server, deletes_app) = (facts.are_of_a_server(), facts.changes.deletes_app);
    let annotated = "add the annotation `kapp.k14s.io/delete-strategy: orphan` to its file";
    let step = match (is_server, deletes_app) {
        (true, true) => "have it stay when the app is deleted".to_owned(),
        (true, false) => "keep it in the manifests, or have it stay when it leaves the app".to_owned(),
        (false, true) => format!("to have it stay, {annotated}"),
        (false, false) => format!("keep it in the manifests; or, to have it stay, {annotated}"),
    };
    if !is_server {
        return Some(Remedy::deployer(RemedyKind::Keep, step));
    }
    let resource = join_resource(&change.resource, &change.object.group);
    let name = change.live.as_deref()?.full_name();
    let annotate = kubectl(&facts.invocation, "annotate", &resource, &name, &["kapp.k14s.io/delete-strategy=orphan"]);
    Some(Remedy::deployer(RemedyKind::Keep, step).commands([annotate, facts.invocation.to_string()]))
}

/// `widgets.example.com`, as kubectl and permissions spell a resource.
#[must_use]
pub(super) fn join_resource(resource: &str, group: &str) -> String {
    if group.is_empty() { resource.to_owned() } else { format!("{resource}.{group}") }
}

/// `kubectl annotate widgets.example.com a key=value -n shop`; the name is `namespace/name`, or `name` in no namespace.
#[must_use]
pub(super) fn kubectl(again: &Invocation, verb: &str, resource: &str, name: &str, rest: &[&str]) -> String {
    let (namespace, name) = match name.split_once('/') {
        Some((namespace, name)) => (Some(namespace), name),
        None => (None, name),
    };
    let place = namespace.into_iter().flat_map(|namespace| ["-n", namespace]);
    let words: Vec<&str> = [verb, resource, name].into_iter().chain(rest.iter().copied()).chain(place).collect();
    again.kubectl(&words)
}
