//! Pods that keep what a ConfigMap or Secret said before: it changes, and nothing in the plan restarts who reads it.

use std::collections::{BTreeMap, BTreeSet};

use pushback_objects::{ObjectKey, ObjectRef, PathSegment};
use pushback_preflight::{Operation, read_by_pods};

use super::{Plan, Planned};

/// Workloads that start their Pods anew when the template changes, and that `kubectl rollout restart` knows.
const RESTARTABLE: [&str; 3] = ["Deployment", "StatefulSet", "DaemonSet"];

/// Annotations by which Stakater's Reloader restarts workloads end in this domain.
const RELOADER: &str = "reloader.stakater.com";

/// A changed ConfigMap or Secret, and who goes on with what it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StalePods {
    /// Its index in the plan.
    pub(super) index: usize,
    /// The workloads, in the order of the plan.
    pub(super) workloads: Vec<ObjectRef>,
}

impl StalePods {
    /// What the plan says beside the changed object.
    #[must_use]
    pub(super) fn note(&self) -> String {
        let names: Vec<String> = self.workloads.iter().map(|it| format!("{} {}", it.kind, it.name)).collect();
        format!("nothing restarts the Pods that read it: {}", names.join(", "))
    }

    /// The command that restarts them: Pods read what is in their own namespace.
    #[must_use]
    pub(super) fn command(&self) -> String {
        let names = self.workloads.iter().map(|it| format!("{}/{}", it.kind.to_lowercase(), it.name));
        let namespace = self.workloads.first().map_or("", |it| it.namespace.as_str());
        format!("kubectl rollout restart -n {namespace} {}", names.collect::<Vec<_>>().join(" "))
    }
}

/// Notes with each change who goes on with what was; without controllers there are no Pods.
pub(super) fn note(objects: &mut [Planned], is_server: bool) {
    for stale in stale_pods(objects).into_iter().filter(|_| is_server) {
        objects[stale.index].notes.push(stale.note());
    }
}

/// Who reads what the plan changes, and is not restarted by it.
#[must_use]
pub(super) fn stale_pods(objects: &[Planned]) -> Vec<StalePods> {
    let changed = |(index, planned): (usize, &Planned)| {
        let object = &planned.object;
        let is_read = object.group.is_empty() && matches!(object.kind.as_str(), "ConfigMap" | "Secret");
        let has_changed = planned.operation() == Operation::Update
            && ["data", "binaryData"].iter().any(|field| changes(planned, &[field]));
        (is_read && has_changed && !is_reloaded(planned)).then(|| (object.key(), index))
    };
    let changed: BTreeMap<ObjectKey, usize> = objects.iter().enumerate().filter_map(changed).collect();
    if changed.is_empty() {
        return Vec::new();
    }
    let mut stale: BTreeMap<usize, Vec<ObjectRef>> = BTreeMap::new();
    for planned in objects.iter().filter(|planned| keeps_its_pods(planned)) {
        let object = &planned.object;
        let Some(manifest) = planned.desired.as_deref() else { continue };
        let read: BTreeSet<usize> = read_by_pods(manifest, &object.namespace)
            .iter()
            .filter_map(|target| changed.get(target).copied())
            .collect();
        for index in read {
            stale.entry(index).or_default().push(object.clone());
        }
    }
    stale.into_iter().map(|(index, workloads)| StalePods { index, workloads }).collect()
}

impl Plan {
    /// What to say after the run of Pods that keep what was: a sentence with the command for each changed object.
    #[must_use]
    pub fn stale_pods_hints(&self) -> Vec<String> {
        let hint = |stale: StalePods| {
            let object = &self.objects[stale.index].object;
            format!("{object} has changed, and nothing restarts the Pods that read it: {}", stale.command())
        };
        stale_pods(&self.objects).into_iter().map(hint).collect()
    }
}

/// A workload that is there and whose Pods the plan leaves alone.
fn keeps_its_pods(planned: &Planned) -> bool {
    let object = &planned.object;
    let is_workload = object.group == "apps" && RESTARTABLE.contains(&object.kind.as_str());
    let stays = match planned.operation() {
        Operation::Noop => true,
        Operation::Update => !changes(planned, &["spec", "template"]),
        Operation::Create | Operation::Replace | Operation::Delete | Operation::Exists => false,
    };
    is_workload && stays && !is_reloaded(planned)
}

/// Whether a field at or below a path changes, or one that it is part of.
fn changes(planned: &Planned, path: &[&str]) -> bool {
    let is_at = |(segment, key): (&PathSegment, &&str)| *segment == PathSegment::from(*key);
    planned.difference().fields.iter().any(|field| field.path.iter().zip(path).all(is_at))
}

/// Whether a controller restarts Pods when what they read changes.
fn is_reloaded(planned: &Planned) -> bool {
    let annotations = planned.desired.as_deref().and_then(|it| it.pointer("/metadata/annotations")?.as_object());
    let is_reloader = |key: &String| key.split('/').next().is_some_and(|domain| domain.ends_with(RELOADER));
    annotations.is_some_and(|annotations| annotations.keys().any(is_reloader))
}
