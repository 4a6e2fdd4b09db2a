//! The Pod templates that a run writes: where each is in its manifest, and whether Pods are made of it at once.

use pushback_objects::object::ObjectExt;
use pushback_objects::pod_template::pod_template_path;
use pushback_objects::source::{PathSegment, Position, display_path};
use serde_json::Value;

use crate::facts::{Change, ChangeSet, Operation, Verification};

/// A kind whose controller makes Pods from a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WorkloadKind {
    Deployment,
    ReplicaSet,
    StatefulSet,
    DaemonSet,
    ReplicationController,
    Job,
    CronJob,
}

impl WorkloadKind {
    fn parse(group: &str, kind: &str) -> Option<Self> {
        Some(match (group, kind) {
            ("apps", "Deployment") => Self::Deployment,
            ("apps", "ReplicaSet") => Self::ReplicaSet,
            ("apps", "StatefulSet") => Self::StatefulSet,
            ("apps", "DaemonSet") => Self::DaemonSet,
            ("", "ReplicationController") => Self::ReplicationController,
            ("batch", "Job") => Self::Job,
            ("batch", "CronJob") => Self::CronJob,
            _ => return None,
        })
    }
}

/// The Pod template of a workload that the run writes.
#[derive(Clone, Copy, Debug)]
pub(super) struct WorkloadTemplate<'a> {
    pub(super) kind: WorkloadKind,
    pub(super) change: &'a Change,
    /// The workload after the change.
    pub(super) workload: &'a Value,
    /// The template in it.
    pub(super) template: &'a Value,
    /// Path of the template.
    place: &'static [&'static str],
}

impl<'a> WorkloadTemplate<'a> {
    /// The template of a change; `None` if it writes none.
    pub(super) fn find(change: &'a Change) -> Option<Self> {
        let kind = WorkloadKind::parse(&change.object.group, &change.object.kind)?;
        let is_judged = change.operation.applies() && change.verification != Verification::Refused;
        let workload = change.after().filter(|_| is_judged)?;
        let place = pod_template_path(&change.object.group, &change.object.kind)?;
        let template = down(workload, place)?;
        Some(Self { kind, change, workload, template, place })
    }

    /// Returns whether the run makes new Pods from it: it is new or changed, or the workload made no Pods before.
    fn is_new(&self) -> bool {
        let Some(live) = self.change.live.as_deref().filter(|_| self.change.operation == Operation::Update) else {
            return true;
        };
        let before = down(live, self.place);
        let differs = match &self.change.result {
            Some(_) => before != Some(self.template),
            // The server has not filled in its defaults.
            None => before.is_none_or(|before| !is_part_of(self.template, before)),
        };
        differs || (resting(self.kind, live).is_some() && self.makes_no_pod_now().is_none())
    }

    /// The field or reason by which no Pod is made of the template for now.
    pub(super) fn makes_no_pod_now(&self) -> Option<String> {
        let is_update = self.change.operation == Operation::Update && self.change.live.is_some();
        resting(self.kind, self.workload)
            .map(str::to_owned)
            .or_else(|| is_update.then(|| keeps_old_pods(self.kind, self.workload)).flatten())
    }

    /// The ServiceAccount of the Pods.
    pub(super) fn service_account(&self) -> &'a str {
        let names = ["/spec/serviceAccountName", "/spec/serviceAccount"].map(|field| self.template.text(field));
        names.into_iter().find(|name| !name.is_empty()).unwrap_or("default")
    }

    /// Position of a field of the template in the manifest.
    pub(super) fn locate(&self, fields: &[PathSegment]) -> Option<Position> {
        self.change.locate(&self.path(fields))
    }

    /// Path of a field of the template, for display.
    pub(super) fn display(&self, fields: &[PathSegment]) -> String {
        display_path(&self.path(fields))
    }

    fn path(&self, fields: &[PathSegment]) -> Vec<PathSegment> {
        let of_template = self.place.iter().map(|field| PathSegment::from(*field));
        of_template.chain(fields.iter().cloned()).collect()
    }
}

/// The templates from which the run makes new Pods, in the order of the changes.
pub(super) fn new_templates(changes: &ChangeSet) -> impl Iterator<Item = WorkloadTemplate<'_>> {
    changes.changes.iter().filter_map(WorkloadTemplate::find).filter(WorkloadTemplate::is_new)
}

/// The field by which a workload makes no Pods at all.
fn resting(kind: WorkloadKind, workload: &Value) -> Option<&'static str> {
    let is = |field: &str, value: Value| workload.pointer(&format!("/spec/{field}")) == Some(&value);
    let fields: &[(&str, Value, &str)] = match kind {
        WorkloadKind::Deployment => &[("replicas", 0.into(), "replicas: 0"), ("paused", true.into(), "paused: true")],
        WorkloadKind::ReplicaSet | WorkloadKind::StatefulSet | WorkloadKind::ReplicationController => {
            &[("replicas", 0.into(), "replicas: 0")]
        }
        WorkloadKind::Job => &[
            ("suspend", true.into(), "suspend: true"),
            ("parallelism", 0.into(), "parallelism: 0"),
            ("completions", 0.into(), "completions: 0"),
        ],
        WorkloadKind::CronJob => &[("suspend", true.into(), "suspend: true")],
        WorkloadKind::DaemonSet => &[],
    };
    fields.iter().find(|(field, value, _)| is(field, value.clone())).map(|(_, _, shown)| *shown)
}

/// The field or reason by which an update leaves the existing Pods alone.
fn keeps_old_pods(kind: WorkloadKind, workload: &Value) -> Option<String> {
    let number = |pointer: &str| workload.pointer(pointer).and_then(Value::as_u64);
    match kind {
        WorkloadKind::ReplicaSet | WorkloadKind::ReplicationController => {
            Some("an update replaces no existing Pod".to_owned())
        }
        WorkloadKind::StatefulSet | WorkloadKind::DaemonSet
            if workload.pointer("/spec/updateStrategy/type").and_then(Value::as_str) == Some("OnDelete") =>
        {
            Some("updateStrategy: OnDelete".to_owned())
        }
        WorkloadKind::StatefulSet => {
            let partition = number("/spec/updateStrategy/rollingUpdate/partition")?;
            let end = number("/spec/ordinals/start").unwrap_or(0).saturating_add(number("/spec/replicas").unwrap_or(1));
            (partition >= end).then(|| format!("partition: {partition}"))
        }
        _ => None,
    }
}

pub(super) fn down<'a>(value: &'a Value, path: &[&str]) -> Option<&'a Value> {
    path.iter().try_fold(value, |value, field| value.get(*field)).filter(|value| !value.is_null())
}

/// Returns whether a value sets nothing that another one does not have.
fn is_part_of(part: &Value, whole: &Value) -> bool {
    match (part, whole) {
        (Value::Object(part), Value::Object(whole)) => {
            part.iter().all(|(key, value)| value.is_null() || whole.get(key).is_some_and(|it| is_part_of(value, it)))
        }
        (Value::Array(part), Value::Array(whole)) => {
            part.len() == whole.len() && part.iter().zip(whole).all(|(part, whole)| is_part_of(part, whole))
        }
        (part, whole) => part == whole,
    }
}
