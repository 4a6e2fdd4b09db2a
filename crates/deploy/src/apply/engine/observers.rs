//! Whether anything reports on the objects of a kind: a custom resource without a controller never gets a status, and
//! waiting for one costs seconds.

use std::collections::BTreeSet;
use std::sync::Arc;

use pushback_cluster::{Cluster, ErrorKind, Kind, ListQuery};
use pushback_objects::ObjectExt;
use pushback_objects::object::is_custom_group;
use pushback_preflight::Operation;
use pushback_preflight::operator_workloads::{DefinedResource, operator_workloads};
use serde_json::Value;
use tokio::time::Instant;

use super::view::ReadResponse;
use super::{Engine, Progress};

/// How many objects of a kind are looked at. One of them with a status is enough.
const LOOKED_AT: u32 = 50;

/// Who may give an object its first status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Observer {
    /// Nobody, as far as is known.
    Nobody,
    /// Somebody, soon.
    Somebody,
    /// A controller of the app; since when it has been ready.
    Controller(Option<Instant>),
}

/// Whether objects of a kind have a status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reported {
    /// At least one has, or they may not be read.
    Yes,
    /// There are objects from before the run, and none has.
    No,
    /// The run creates the first ones.
    FirstObjects,
}

impl Engine<'_> {
    /// Who may still give the object a status. The cluster is asked once for each kind; until then it may be anybody.
    pub(super) fn observer(&mut self, node: usize, object: &Value) -> Observer {
        let planned = &self.plan.objects[node];
        let kind = &planned.kind;
        if !has_status_subresource(kind) {
            return Observer::Nobody;
        }
        // Only an answer that is waited for may be asked for: the run must not end in the middle of the request.
        let is_unchanged = planned.reported_operation() == Operation::Noop;
        if !is_custom_group(&kind.group) || has_status(object) || is_unchanged {
            return Observer::Somebody;
        }
        let key = (kind.group.clone(), kind.kind.clone());
        match self.view.reporting.get(&key).copied() {
            Some(Some(Reported::Yes) | None) => return Observer::Somebody,
            Some(Some(reported)) => return self.controller(node, reported),
            None => {}
        }
        self.view.reporting.insert(key, None);
        let of_kind = self.plan.objects.iter().filter(|other| *other.kind == **kind);
        let created = of_kind.filter(|other| other.change.live.is_none());
        let created = created.map(|other| (other.change.object.namespace.clone(), other.change.object.name.clone()));
        let created: BTreeSet<(String, String)> = created.collect();
        let (kind, namespace) = (Arc::clone(kind), object.namespace().to_owned());
        let cluster = Arc::clone(&self.writes.writer.cluster);
        self.view.looks.spawn(async move {
            let reported = reported(&*cluster, &kind, &namespace, &created).await;
            ReadResponse::Reporting(kind, reported)
        });
        Observer::Somebody
    }

    /// The controller of an object's kind in the app, if it may give the first status of all. One that was there before, as
    /// were objects of the kind, does not report on them.
    fn controller(&mut self, node: usize, reported: Reported) -> Observer {
        if !self.options.awaits_controllers {
            return Observer::Nobody;
        }
        let controllers = self.controllers_of(node);
        let may_report = |controller: &usize| {
            let planned = &self.plan.objects[*controller];
            let is_new = planned.reported_operation() != Operation::Noop;
            is_new || reported == Reported::FirstObjects
        };
        let is_going_on = |controller: &usize| {
            matches!(
                self.nodes[*controller].progress,
                Progress::Pending | Progress::Writing(_) | Progress::Waiting(_) | Progress::Done
            )
        };
        let mut expected = controllers.iter().filter(|controller| may_report(controller) && is_going_on(controller));
        let Some(first) = expected.next().copied() else { return Observer::Nobody };
        let ready = std::iter::once(first).chain(expected.copied());
        Observer::Controller(ready.filter_map(|node| self.view.ready_controllers.get(&node).copied()).min())
    }

    /// The workloads of the app that are controllers of an object's kind.
    fn controllers_of(&mut self, node: usize) -> Vec<usize> {
        let kind = &self.plan.objects[node].kind;
        let key = (kind.group.clone(), kind.kind.clone());
        if let Some(known) = self.view.controllers.get(&key) {
            return known.clone();
        }
        let staying = self.plan.objects.iter().filter(|planned| planned.change.operation != Operation::Delete);
        let objects =
            staying.filter_map(|planned| planned.change.desired.as_deref().or(planned.change.live.as_deref()));
        let found = operator_workloads(objects, DefinedResource { group: &kind.group, plural: &kind.plural });
        let nodes = found.iter().filter_map(|workload| self.by_key.get(&workload.object.key()).copied());
        let runs = |node: &usize| {
            let desired = self.plan.objects[*node].change.desired.as_deref();
            desired.and_then(|desired| desired.pointer("/spec/replicas")).and_then(Value::as_u64) != Some(0)
        };
        let nodes: Vec<usize> = nodes.filter(runs).collect();
        self.view.controllers.insert(key, nodes.clone());
        nodes
    }

    /// Records that a workload is done, and assesses the custom resources again that may wait for it.
    pub(super) fn note_controller(&mut self, node: usize) {
        let planned = &self.plan.objects[node];
        if !planned.makes_pods() || planned.change.operation == Operation::Delete {
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
            self.unreported.push(planned.change.object.clone());
        }
    }

    /// Takes in whether a kind is reported on, and looks again at the objects that wait.
    pub(super) fn on_reporting(&mut self, kind: &Kind, reported: Reported) {
        self.view.reporting.insert((kind.group.clone(), kind.kind.clone()), Some(reported));
        for node in 0..self.nodes.len() {
            let is_of_kind = *self.plan.objects[node].kind == *kind;
            if is_of_kind && !self.is_deletion(node) && self.nodes[node].waiting().is_some() {
                self.update_readiness(node);
            }
        }
    }
}

/// Whether any object of the kind has a status. What may not be read is taken for reported on.
async fn reported(
    cluster: &dyn Cluster,
    kind: &Arc<Kind>,
    namespace: &str,
    created: &BTreeSet<(String, String)>,
) -> Reported {
    let query =
        |namespace: Option<&str>| ListQuery { limit: LOOKED_AT, ..ListQuery::new(Arc::clone(kind), namespace, "") };
    let page = match cluster.list(&query(None)).await {
        Err(error) if error.kind == ErrorKind::Forbidden && kind.namespaced => {
            cluster.list(&query(Some(namespace))).await
        }
        page => page,
    };
    let Ok(page) = page else { return Reported::Yes };
    let is_older = |object: &Arc<Value>| !created.contains(&(object.namespace().to_owned(), object.name().to_owned()));
    if page.items.iter().any(|object| has_status(object)) {
        Reported::Yes
    } else if page.items.iter().any(is_older) {
        Reported::No
    } else {
        Reported::FirstObjects
    }
}

fn has_status_subresource(kind: &Kind) -> bool {
    kind.subresources.iter().any(|name| name == "status")
}

fn has_status(object: &Value) -> bool {
    object.get("status").and_then(Value::as_object).is_some_and(|status| !status.is_empty())
}
