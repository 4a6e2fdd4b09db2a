//! Containers that leave the Pods of a workload and are a new workload's: told as a move, and not as something that goes
//! and something else that comes.

use std::collections::BTreeSet;

use pushback_objects::object::{ObjectExt, ObjectKey};
use serde_json::{Value, json};

use super::super::derive::repository;
use super::super::difference::{ChangeType, ComponentChange};
use super::super::model::{Component, Release, Resource};

/// Kinds of workloads that a container can be moved to or from.
const WORKLOADS: [&str; 3] = ["Deployment", "StatefulSet", "DaemonSet"];

/// A container that was moved.
struct Moved<'a> {
    container: &'a str,
    from: &'a Resource,
    to: &'a Resource,
    /// The component of the new workload.
    component: &'a Component,
}

/// Says so in the changes of both workloads.
pub(super) fn tell(old: &Release, new: &Release, rows: &mut [ComponentChange]) {
    for Moved { container, from, to, component } in moved(old, new) {
        let (was, is) = (name(from), name(to));
        let path = format!("{was} spec.template.spec.containers.{container}");
        let goes = rows.iter_mut().flat_map(|row| &mut row.changes).find(|change| {
            change.change_type == ChangeType::SpecChanged && change.path == path && change.new.is_none()
        });
        let Some(goes) = goes else { continue };
        goes.message = format!("container {container} moves into a workload of its own, {is}");
        goes.new = Some(json!(is));
        let of_component = rows.iter_mut().filter(|row| row.component_name == component.name);
        let comes = of_component.flat_map(|row| &mut row.changes).find(|change| match change.change_type {
            ChangeType::ComponentAdded => true,
            ChangeType::ResourceAdded => change.object.as_ref().is_some_and(|object| object.key() == to.object.key()),
            _ => false,
        });
        if let Some(comes) = comes {
            comes.message = format!("{is} was container {container} of {was} before");
        }
    }
}

fn moved<'a>(old: &'a Release, new: &'a Release) -> Vec<Moved<'a>> {
    let known: BTreeSet<ObjectKey> = workloads(old).map(|(_, resource)| resource.object.key()).collect();
    let fresh: Vec<_> = workloads(new).filter(|(_, resource)| !known.contains(&resource.object.key())).collect();
    let mut taken = BTreeSet::new();
    let mut found = Vec::new();
    if fresh.is_empty() {
        return found;
    }
    for (_, from) in workloads(old) {
        let key = from.object.key();
        let Some((_, after)) = workloads(new).find(|(_, resource)| resource.object.key() == key) else { continue };
        for gone in containers(from).iter().filter(|gone| !has(after, gone.text("/name"))) {
            let image = repository(gone.text("/image"));
            let is_it = |(_, resource): &&(&Component, &Resource)| {
                !taken.contains(&resource.object.key())
                    && containers(resource).iter().any(|it| !image.is_empty() && repository(it.text("/image")) == image)
            };
            if let Some((component, to)) = fresh.iter().find(is_it) {
                taken.insert(to.object.key());
                found.push(Moved { container: gone.text("/name"), from, to, component });
            }
        }
    }
    found
}

fn workloads(release: &Release) -> impl Iterator<Item = (&Component, &Resource)> {
    let components = release.operators.iter().flat_map(|operator| &operator.components);
    components
        .flat_map(|component| component.resources.iter().map(move |resource| (component, resource)))
        .filter(|(_, resource)| WORKLOADS.contains(&resource.object.kind.as_str()))
}

fn containers(resource: &Resource) -> &[Value] {
    let list = resource.manifest.as_deref().and_then(|it| it.pointer("/spec/template/spec/containers")?.as_array());
    list.map_or(&[], Vec::as_slice)
}

fn has(resource: &Resource, container: &str) -> bool {
    containers(resource).iter().any(|it| it.text("/name") == container)
}

fn name(resource: &Resource) -> String {
    format!("{}/{}", resource.object.kind, resource.object.name)
}
