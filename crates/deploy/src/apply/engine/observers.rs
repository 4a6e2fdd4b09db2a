//! Finds the controllers that report on custom resources. An object without a controller never gets a status, and waiting
//! for one costs seconds.

use std::collections::BTreeSet;
use std::sync::Arc;

use pushback_cluster::{Cluster, ErrorKind, Kind, ListQuery};
use pushback_objects::ObjectExt;
use pushback_objects::object::is_custom_group;
use pushback_preflight::Operation;
use pushback_preflight::operator_workloads::{DefinedResource, operator_workloads};
use serde_json::Value;
use tokio::time::Instant;

use super::view::{KindStatus, ReadResponse};
use super::{Engine, Progress};

/// Maximum number of objects of a kind that are read. One of them with a status is enough.
const LOOKED_AT: u32 = 50;

/// Expected source of the first status of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Observer {
    /// No controller is known.
    None,
    /// A controller outside the app, within seconds.
    External,
    /// A controller of the app, and the time at which it became ready.
    InApp(Option<Instant>),
}

impl Engine<'_> {
    /// Returns the expected source of the first status. The cluster is asked once for each kind; until it has answered, a
    /// controller outside the app is assumed.
    pub(super) fn observer(&mut self, node: usize, object: &Value) -> Observer {
        let planned = &self.plan.objects[node];
        let kind = &planned.kind;
        if !has_status_subresource(kind) {
            return Observer::None;
        }
        // Only an answer that is waited for may be asked for: the run must not end in the middle of the request.
        let is_unchanged = planned.reported_operation() == Operation::Noop;
        if !is_custom_group(&kind.group) || has_status(object) || is_unchanged {
            return Observer::External;
        }
        let key = (kind.group.clone(), kind.kind.clone());
        match self.view.reporting.get(&key).copied() {
            Some(Some(KindStatus::Present) | None) => return Observer::External,
            Some(Some(status)) => return self.controller(node, status),
            None => {}
        }
        self.view.reporting.insert(key, None);
        let of_kind = self.plan.objects.iter().filter(|other| *other.kind == **kind);
        let created = of_kind.filter(|other| other.live.is_none());
        let created = created.map(|other| (other.object.namespace.clone(), other.object.name.clone()));
        let created: BTreeSet<(String, String)> = created.collect();
        let (kind, namespace) = (Arc::clone(kind), object.namespace().to_owned());
        let cluster = Arc::clone(&self.writes.writer.cluster);
        self.view.looks.spawn(async move {
            let status = read_kind_status(&*cluster, &kind, &namespace, &created).await;
            ReadResponse::Reporting(kind, status)
        });
        Observer::External
    }

    /// Returns the controller of an object's kind in the app, if it may give the first status of all. A controller that is
    /// as old as objects without a status does not report on them.
    fn controller(&mut self, node: usize, status: KindStatus) -> Observer {
        if !self.options.awaits_controllers {
            return Observer::None;
        }
        let controllers = self.controllers_of(node);
        let may_report = |controller: &usize| {
            let planned = &self.plan.objects[*controller];
            let is_new = planned.reported_operation() != Operation::Noop;
            is_new || status == KindStatus::FirstObjects
        };
        let may_become_ready = |controller: &usize| {
            matches!(
                self.nodes[*controller].progress,
                Progress::Pending | Progress::Writing(_) | Progress::Waiting(_) | Progress::Done
            )
        };
        let mut expected =
            controllers.iter().filter(|controller| may_report(controller) && may_become_ready(controller));
        let Some(first) = expected.next().copied() else { return Observer::None };
        let ready = std::iter::once(first).chain(expected.copied());
        Observer::InApp(ready.filter_map(|node| self.view.ready_controllers.get(&node).copied()).min())
    }

    /// Returns the workloads of the app that are controllers of an object's kind.
    fn controllers_of(&mut self, node: usize) -> Vec<usize> {
        let kind = &self.plan.objects[node].kind;
        let key = (kind.group.clone(), kind.kind.clone());
        if let Some(known) = self.view.controllers.get(&key) {
            return known.clone();
        }
        let staying = self.plan.objects.iter().filter(|planned| planned.operation() != Operation::Delete);
        let objects = staying.filter_map(|planned| planned.desired.as_deref().or(planned.live.as_deref()));
        let found = operator_workloads(objects, DefinedResource { group: &kind.group, plural: &kind.plural });
        let nodes = found.iter().filter_map(|workload| self.by_key.get(&workload.object.key()).copied());
        let runs = |node: &usize| {
            let desired = self.plan.objects[*node].desired.as_deref();
            desired.and_then(|desired| desired.pointer("/spec/replicas")).and_then(Value::as_u64) != Some(0)
        };
        let nodes: Vec<usize> = nodes.filter(runs).collect();
        self.view.controllers.insert(key, nodes.clone());
        nodes
    }

    /// Records that a workload is done, and assesses the custom resources again that may wait for it.
    pub(super) fn note_controller(&mut self, node: usize) {
        let planned = &self.plan.objects[node];
        if !planned.makes_pods() || planned.operation() == Operation::Delete {
            return;
        }
        if self.nodes[node].progress == Progress::Done {
            self.view.ready_controllers.insert(node, Instant::now());
        }
        for (state, planned) in self.nodes.iter_mut().zip(&self.plan.objects) {
            if is_custom_group(&planned.kind.group)
                && let Some(waiting) = state.waiting_mut()
            {
                waiting.hear();
            }
        }
    }

    /// Records an object that becomes ready without a status although its kind has one.
    pub(super) fn note_unreported(&mut self, node: usize) {
        let planned = &self.plan.objects[node];
        if !self.server || !self.options.wait || !planned.wait || !planned.reported_operation().applies() {
            return;
        }
        if !is_custom_group(&planned.kind.group) || !has_status_subresource(&planned.kind) {
            return;
        }
        let is_silent = |object: &Arc<Value>| !has_status(object) && self.config.wait_rule(object).is_none();
        if self.nodes[node].object.as_ref().is_some_and(is_silent) {
            self.unreported.push(planned.object.clone());
        }
    }

    /// Records the statuses of a kind, and assesses its waiting objects again.
    pub(super) fn on_reporting(&mut self, kind: &Kind, status: KindStatus) {
        self.view.reporting.insert((kind.group.clone(), kind.kind.clone()), Some(status));
        for node in 0..self.nodes.len() {
            let is_of_kind = *self.plan.objects[node].kind == *kind;
            if is_of_kind && !self.is_deletion(node) && self.nodes[node].waiting().is_some() {
                self.update_readiness(node);
            }
        }
    }
}

/// Reads the statuses of a kind. Without the right to read it, a status is assumed.
async fn read_kind_status(
    cluster: &dyn Cluster,
    kind: &Arc<Kind>,
    namespace: &str,
    created: &BTreeSet<(String, String)>,
) -> KindStatus {
    let query =
        |namespace: Option<&str>| ListQuery { limit: LOOKED_AT, ..ListQuery::new(Arc::clone(kind), namespace, "") };
    let page = match cluster.list(&query(None)).await {
        Err(error) if error.kind == ErrorKind::Forbidden && kind.namespaced => {
            cluster.list(&query(Some(namespace))).await
        }
        page => page,
    };
    let Ok(page) = page else { return KindStatus::Present };
    let is_older = |object: &Arc<Value>| !created.contains(&(object.namespace().to_owned(), object.name().to_owned()));
    if page.items.iter().any(|object| has_status(object)) {
        KindStatus::Present
    } else if page.items.iter().any(is_older) {
        KindStatus::Absent
    } else {
        KindStatus::FirstObjects
    }
}

fn has_status_subresource(kind: &Kind) -> bool {
    kind.subresources.iter().any(|name| name == "status")
}

fn has_status(object: &Value) -> bool {
    object.get("status").and_then(Value::as_object).is_some_and(|status| !status.is_empty())
}
