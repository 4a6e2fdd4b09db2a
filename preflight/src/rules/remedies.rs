//! Remedies that several rules propose: correct the objects, keep what goes; and the commands for them.

use pushback_objects::finding::Finding;
use pushback_objects::invocation::Invocation;
use pushback_objects::object::ObjectExt;
use pushback_objects::remedy::{Remedy, RemedyKind};

use crate::facts::{Facts, Operation};

/// Most objects that a remedy names one by one.
const NAMED: usize = 5;

/// Corrects the stored objects of a definition that a finding names.
#[must_use]
pub(super) fn correct_objects(finding: &Finding, again: &Invocation) -> Option<Remedy> {
    let live = finding.live_objects.as_ref().filter(|live| live.affected > 0)?;
    let objects = if live.affected == 1 { "the affected object" } else { "the affected objects" };
    let field = finding.path.as_deref().filter(|path| !path.is_empty());
    let field = field.map(|field| format!("`{field}` of ")).unwrap_or_default();
    let step = match finding.effect.as_deref() {
        Some("rejected") => format!("correct {field}{objects} first"),
        Some("altered") => format!("set {field}{objects} first, so that no default decides it"),
        _ => format!("move what is in {field}{objects} elsewhere first"),
    };
    let edit = |name: &String| kubectl(again, "edit", &finding.object.name, name, &[]);
    let mut commands: Vec<String> = live.names.iter().take(NAMED).map(edit).collect();
    if live.affected > commands.len() as u64 {
        // The next run names some of those that are left.
        commands.push(again.to_string());
    }
    Some(Remedy::deployer(RemedyKind::CorrectObjects, step).commands(commands))
}

/// Keeps the live object of a deletion, or what is in it.
#[must_use]
pub(super) fn keep(facts: &Facts, finding: &Finding) -> Option<Remedy> {
    let change = facts.changes.find(&finding.object.key()).filter(|change| change.ends_live_object())?;
    if change.operation != Operation::Delete {
        return None;
    }
    let step = "keep it in the input, or have it stay when it leaves the app";
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
