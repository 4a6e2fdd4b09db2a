//! Waiting: judges what was written, by what the watches see, until it is ready, gone, failed or late.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use pushback_preflight::{ObjectExt, ObjectKey, ObjectRef, Operation, object};
use serde_json::Value;
use tokio::time::Instant;

use super::{Engine, Progress};
use crate::app::identity::APP_LABEL;
use crate::apply::children::{Below, Children, has_children, is_endpoint_slice, is_older, is_pod};
use crate::apply::readiness::{self, State, Status};
use crate::apply::watch::Seen;
use crate::cluster::{Address, ClusterError, ErrorKind, Kind, ListQuery, list_all};
use crate::config::{Config, WaitRule, matcher};
use crate::event::{Awaited, DiagnosticCode, Event, Millis, WaitOutcome};
use crate::plan::Planned;

/// Between two looks at an object that no watch sees.
const LOOK: Duration = Duration::from_secs(2);

/// How long an object may take until the events about it and its Pods are asked for.
const SLOW: Duration = Duration::from_secs(5);

/// What was asked for beside the watches.
#[derive(Debug)]
pub(super) enum Look {
    /// One object.
    Object(usize, Result<Option<Arc<Value>>, ClusterError>),
    /// One object that the watch saw going, or that a list does not have.
    Gone(usize, Result<Option<Arc<Value>>, ClusterError>),
    /// All StorageClasses; empty where they may not be read.
    StorageClasses(Vec<Arc<Value>>),
}

impl<'a> Engine<'a> {
    /// Whether a written (or unchanged) object is ready.
    pub(super) fn judge(&mut self, node: usize) {
        let planned = &self.plan.objects[node];
        if !self.server || !planned.wait || !self.options.wait {
            return self.complete(node);
        }
        let Some(object) = self.nodes[node].object.clone() else { return self.complete(node) };
        let wait_rule = self.wait_rule(&object);
        let status = self.assess(node, &object, wait_rule);
        self.nodes[node].dirty = false;
        let idle = status.state == State::Ready && wait_rule.is_none() && is_unbound_claim(&object);
        self.nodes[node].idle = idle;
        let state = if idle && self.somebody_may_come() { State::Unblocked } else { status.state };
        match state {
            State::Ready => self.complete(node),
            State::Failed => self.never_ready(node, status.message, status.reasons),
            State::InProgress | State::Unblocked => {
                let unblocked = state == State::Unblocked || !blocks_dependents(planned, wait_rule);
                self.nodes[node].progress = Progress::Waiting;
                self.watch(node, &object);
                self.progress(node, status.message, status.reasons);
                if unblocked {
                    self.release(node);
                }
            }
        }
    }

    fn assess(&mut self, node: usize, object: &Value, wait_rule: Option<&WaitRule>) -> Status {
        let planned = &self.plan.objects[node];
        let unchanged = planned.change.operation == Operation::Noop;
        let below = if planned.strategies.disable_associated_wait {
            Below::default()
        } else if is_claim(&planned.change.object) {
            self.children.around_claim(object)
        } else {
            self.children.of(object)
        };
        let backends = if unchanged { Vec::new() } else { self.backends(object) };
        let state = &mut self.nodes[node];
        let waited = state.written_at.map(|at| at.elapsed()).unwrap_or_default();
        if let Some(rule) = wait_rule {
            state.ages.observe(object, rule, waited);
        }
        let mut related = below.related(self.storage_classes.as_deref().unwrap_or_default());
        related.backends = &backends;
        let context = readiness::Context {
            wait_rule,
            condition_ages: Some(&state.ages),
            troubles: None,
            failure_timeout: self.options.wait_failure_timeout,
            minimum_generation: state.generation,
            waited,
            unchanged,
            status_subresource: Some(planned.kind.subresources.iter().any(|name| name == "status")),
            related,
        };
        state.troubles.observe(object, &context);
        let context = readiness::Context { troubles: Some(&state.troubles), ..context };
        state.due = readiness::next_look(&context).map(|left| Instant::now() + left);
        readiness::assess(object, &context)
    }

    /// The Services of the app that a webhook configuration calls and that have Pods, with whether one of them answers.
    fn backends(&mut self, configuration: &Value) -> Vec<(String, bool)> {
        let mut backends = BTreeMap::new();
        for service in called_services(configuration) {
            let Some(&node) = self.by_key.get(&service.key()) else { continue };
            let is_kept = self.plan.objects[node].change.operation != Operation::Delete;
            let live = self.nodes[node].object.as_deref();
            let desired = self.plan.objects[node].change.desired.as_deref();
            let has_pods = live.or(desired).and_then(|it| it.pointer("/spec/selector")?.as_object());
            if !is_kept || has_pods.is_none_or(serde_json::Map::is_empty) || self.unlisted.contains(&service.namespace)
            {
                continue;
            }
            self.watches.ensure(&Children::endpoint_slice_kind(), &service.namespace);
            let is_ready = self.children.has_endpoint(&service.namespace, &service.name);
            backends.insert(format!("{}/{}", service.namespace, service.name), is_ready);
        }
        backends.into_iter().collect()
    }

    fn wait_rule(&self, object: &Value) -> Option<&'a WaitRule> {
        let config: &'a Config = self.config;
        config.wait_rules.iter().find(|rule| matcher::matches_any(&rule.matchers, object))
    }

    /// Whether anything is under way that may yet use a claim.
    fn somebody_may_come(&self) -> bool {
        self.nodes.iter().any(|node| match node.progress {
            Progress::Pending | Progress::Writing => true,
            Progress::Waiting => !node.idle,
            _ => false,
        })
    }

    /// Sees to it that changes of an object, and of what explains them, are heard of.
    fn watch(&mut self, node: usize, object: &Value) {
        let planned = &self.plan.objects[node];
        let namespace = &planned.change.object.namespace;
        self.by_uid.insert(object.uid().to_owned(), node);
        let labelled = object.label(APP_LABEL) == Some(self.plan.label_value.as_str());
        if labelled && planned.kind.offers("list") {
            self.watches.ensure(&planned.kind, namespace);
        } else {
            // Somebody else's: the watch is for objects of the app.
            self.nodes[node].unwatched = true;
        }
        if planned.strategies.disable_associated_wait {
            return;
        }
        if has_children(&planned.change.object) {
            Children::kinds().iter().for_each(|kind| self.watches.ensure(kind, namespace));
        }
        if is_claim(&planned.change.object) {
            self.watches.ensure(&Children::pod_kind(), namespace);
            if self.storage_classes.is_none() {
                self.storage_classes = Some(Vec::new());
                let cluster = Arc::clone(&self.writer.cluster);
                self.looks.spawn(async move {
                    let query = ListQuery::new(storage_class_kind(), None, "");
                    Look::StorageClasses(list_all(&*cluster, &query).await.map(|page| page.items).unwrap_or_default())
                });
            }
        }
    }

    pub(super) fn judge_deletion(&mut self, node: usize) {
        let message = self.nodes[node].object.as_deref().map(readiness::deletion_blockers).unwrap_or_default();
        let message = if message.is_empty() { "being deleted".to_owned() } else { message };
        self.progress(node, message, Vec::new());
    }

    /// Tells what changed about an object that is waited for.
    fn progress(&mut self, node: usize, message: String, reasons: Vec<String>) {
        let state = &mut self.nodes[node];
        if state.announced && state.message == message && state.reasons == reasons {
            return;
        }
        state.announced = true;
        state.message.clone_from(&message);
        state.reasons.clone_from(&reasons);
        self.events.send(Event::WaitProgress {
            object: self.plan.objects[node].change.object.clone(),
            wanted: wanted(state.deleting),
            message,
            reasons,
            elapsed: since(state.written_at),
        });
    }

    pub(super) fn complete(&mut self, node: usize) {
        if self.nodes[node].announced {
            self.tell_done(node, WaitOutcome::Ok, String::new(), Vec::new());
        }
        if self.plan.objects[node].change.operation == Operation::Noop {
            self.done.add(Operation::Noop);
        }
        if self.nodes[node].deleting && self.nodes[node].progress == Progress::Waiting {
            self.done.gone();
        }
        self.nodes[node].progress = Progress::Done;
        self.release(node);
    }

    pub(super) fn release(&mut self, node: usize) {
        if !std::mem::replace(&mut self.nodes[node].released, true) {
            let ready = self.order.complete(node);
            self.queue.extend(ready);
        }
    }

    fn never_ready(&mut self, node: usize, message: String, reasons: Vec<String>) {
        let state = &mut self.nodes[node];
        state.message.clone_from(&message);
        state.reasons.clone_from(&reasons);
        self.tell_done(node, WaitOutcome::Failed, message.clone(), reasons);
        self.give_up_on(node, Progress::NeverReady(message));
    }

    fn time_out(&mut self, node: usize) {
        let state = &self.nodes[node];
        self.tell_done(node, WaitOutcome::Timeout, state.message.clone(), state.reasons.clone());
        self.give_up_on(node, Progress::TimedOut);
    }

    fn give_up_on(&mut self, node: usize, progress: Progress) {
        self.nodes[node].progress = progress;
        self.skip_dependents(node);
        if self.options.exit_early_on_wait_error {
            self.stop();
        }
    }

    /// Tells how waiting for an object ended.
    pub(super) fn tell_done(&self, node: usize, outcome: WaitOutcome, message: String, reasons: Vec<String>) {
        let state = &self.nodes[node];
        self.events.send(Event::WaitDone {
            object: self.plan.objects[node].change.object.clone(),
            wanted: wanted(state.deleting),
            outcome,
            message,
            reasons,
            elapsed: since(state.written_at),
        });
    }

    pub(super) fn skip_dependents(&mut self, node: usize) {
        let because = self.plan.objects[node].change.object.to_string();
        for dependent in self.order.dependents_of(node) {
            if self.nodes[dependent].progress == Progress::Pending {
                self.nodes[dependent].progress = Progress::Skipped(format!("it waits for {because}"));
            }
        }
    }

    /// Looks at what the watch saw while the write's answer was on its way.
    pub(super) fn catch_up(&mut self, node: usize) {
        let state = &mut self.nodes[node];
        let (seen, gone) = (state.seen.take(), std::mem::take(&mut state.gone));
        if let Some(seen) = seen {
            self.on_object(seen);
        }
        if !gone.is_empty() {
            self.on_gone(node, &gone);
        }
    }

    pub(super) fn on_seen(&mut self, seen: Seen) {
        match seen {
            Seen::Applied(object) => self.on_object(object),
            Seen::Deleted(object) => {
                let above = self.children.remove(&object);
                self.mark(&above, &object);
                // The last state of a Job that removes itself once it is finished says how it ended.
                if readiness::is_over(&object) {
                    self.on_object(Arc::clone(&object));
                }
                if let Some(&node) = self.by_key.get(&ObjectRef::of(&object).key()) {
                    self.on_gone(node, object.uid());
                }
            }
            Seen::All { kind, namespace, objects, listed_at } => self.on_list(&kind, &namespace, objects, listed_at),
            Seen::Hidden { kind, namespace } => {
                if *kind == *Children::endpoint_slice_kind() {
                    self.unlisted.insert(namespace.clone());
                }
                if *kind == *Children::pod_kind() {
                    self.events.send(Event::Diagnostic {
                        code: DiagnosticCode::ReasonsUnknown,
                        message: format!(
                            "Pods in namespace {namespace} may not be listed: why something is not ready cannot be said"
                        ),
                    });
                }
                for (state, planned) in self.nodes.iter_mut().zip(&self.plan.objects) {
                    let object = &planned.change.object;
                    state.unwatched |=
                        *planned.kind == *kind && (namespace.is_empty() || object.namespace == namespace);
                }
            }
        }
    }

    fn on_list(&mut self, kind: &Kind, namespace: &str, objects: Vec<Arc<Value>>, listed_at: Instant) {
        let uids: BTreeSet<&str> = objects.iter().map(|object| object.uid()).collect();
        let above = self.children.keep_listed(kind, namespace, &uids);
        self.mark_owners(&above);
        let listed: BTreeSet<ObjectKey> = objects.iter().map(|object| ObjectRef::of(object).key()).collect();
        let by_key: &BTreeMap<ObjectKey, usize> = &self.by_key;
        let missing: Vec<usize> = by_key
            .values()
            .copied()
            .filter(|&node| {
                let (state, planned) = (&self.nodes[node], &self.plan.objects[node]);
                let object = &planned.change.object;
                state.progress == Progress::Waiting
                    && !state.unwatched
                    && *planned.kind == *kind
                    && (namespace.is_empty() || object.namespace == namespace)
                    // What was written after the list began may be missing in it.
                    && state.written_at.is_some_and(|at| at < listed_at)
                    && !listed.contains(&object.key())
            })
            .collect();
        objects.into_iter().for_each(|object| self.on_object(object));
        for node in missing {
            let uid = self.nodes[node].object.as_deref().map(ObjectExt::uid).unwrap_or_default().to_owned();
            self.on_gone(node, &uid);
        }
    }

    /// Sees to it that what lies above a child is judged anew, soon: a burst of Pods is one look at their owner.
    fn mark(&mut self, above: &[String], child: &Value) {
        self.mark_owners(above);
        self.claims_dirty |= is_pod(child);
        if is_endpoint_slice(child) {
            for (node, planned) in self.nodes.iter_mut().zip(&self.plan.objects) {
                node.dirty |= planned.change.object.group == "admissionregistration.k8s.io";
            }
        }
    }

    fn mark_owners(&mut self, above: &[String]) {
        for uid in above {
            if let Some(&node) = self.by_uid.get(uid) {
                self.nodes[node].dirty = true;
            }
        }
    }

    fn on_object(&mut self, object: Arc<Value>) {
        let above = self.children.insert(&object);
        self.mark(&above, &object);
        let Some(&node) = self.by_key.get(&ObjectRef::of(&object).key()) else { return };
        let state = &mut self.nodes[node];
        match state.progress {
            Progress::Waiting => {}
            Progress::Writing => {
                state.seen = Some(object);
                return;
            }
            _ => return,
        }
        if let Some(known) = state.object.as_deref() {
            // The watch may be behind the write's answer: then it shows what was there before.
            if is_older(&object, known) {
                return;
            }
            if !known.uid().is_empty() && known.uid() != object.uid() {
                return self.gone(node, Some(&object));
            }
        }
        state.object = Some(object);
        if state.deleting { self.judge_deletion(node) } else { self.judge(node) }
    }

    fn on_gone(&mut self, node: usize, uid: &str) {
        let state = &mut self.nodes[node];
        if state.progress == Progress::Writing {
            uid.clone_into(&mut state.gone);
        }
        if state.progress != Progress::Waiting || state.object.as_deref().map(ObjectExt::uid) != Some(uid) {
            return;
        }
        // To a watch by label an object is gone as well that lost the label.
        let address = self.address(node);
        let cluster = Arc::clone(&self.writer.cluster);
        self.looks.spawn(async move { Look::Gone(node, cluster.get(&address).await) });
    }

    fn on_gone_look(&mut self, node: usize, seen: Result<Option<Arc<Value>>, ClusterError>) {
        match seen {
            Ok(Some(object)) => {
                self.nodes[node].unwatched = true;
                self.on_object(object);
            }
            Ok(None) => self.gone(node, None),
            // It may be listed, but not read by itself: then the list's word is all there is.
            Err(error) if error.kind == ErrorKind::Forbidden => self.gone(node, None),
            Err(_) => self.nodes[node].unwatched = true,
        }
    }

    /// The object that was waited for is no more, and perhaps another one has its name.
    fn gone(&mut self, node: usize, successor: Option<&Value>) {
        let state = &mut self.nodes[node];
        if state.progress != Progress::Waiting {
            return;
        }
        if state.deleting {
            state.object = None;
            return self.complete(node);
        }
        let removes_itself = state.object.as_deref().is_some_and(|known| {
            known.text("/kind") == "Job" && known.pointer("/spec/ttlSecondsAfterFinished").is_some()
        });
        let message = match successor {
            Some(object) => format!(
                "it was deleted by somebody else while it was waited for, and created anew (uid {})",
                object.uid()
            ),
            // Only a finished Job does, and it may have failed.
            None if removes_itself => {
                "it is gone before it was seen how it ended (ttlSecondsAfterFinished may be too short)".to_owned()
            }
            None => "it was deleted by somebody else while it was waited for".to_owned(),
        };
        self.never_ready(node, message, Vec::new());
    }

    pub(super) fn on_look(&mut self, look: Look) {
        match look {
            Look::Object(node, Ok(Some(object))) => {
                self.nodes[node].looked_at = Some(Instant::now());
                self.on_object(object);
            }
            Look::Object(node, Ok(None)) => self.gone(node, None),
            Look::Gone(node, seen) => self.on_gone_look(node, seen),
            // Looked at again after a while.
            Look::Object(node, Err(_)) => self.nodes[node].looked_at = Some(Instant::now()),
            Look::StorageClasses(classes) => {
                self.storage_classes = Some(classes);
                for node in 0..self.nodes.len() {
                    let state = &self.nodes[node];
                    let claim = is_claim(&self.plan.objects[node].change.object);
                    if claim && !state.deleting && state.progress == Progress::Waiting {
                        self.judge(node);
                    }
                }
            }
        }
    }

    pub(super) fn on_tick(&mut self, deadline: Instant) {
        let now = Instant::now();
        let limit = self.options.wait_resource_timeout;
        // Time is up for the run as a whole: what has not started does not start.
        if now >= deadline {
            self.late = true;
            self.stop();
        }
        let claims_dirty = std::mem::take(&mut self.claims_dirty);
        for node in 0..self.nodes.len() {
            let state = &self.nodes[node];
            if state.progress != Progress::Waiting {
                continue;
            }
            let late = !limit.is_zero() && state.written_at.is_some_and(|at| now >= at + limit);
            if now >= deadline || late {
                self.time_out(node);
                continue;
            }
            if state.unwatched {
                self.look_at(node, now);
            }
            self.explain(node);
            // Only what something was heard about, or what time alone may change: grace windows pass without an event.
            let state = &self.nodes[node];
            let is_claim = is_claim(&self.plan.objects[node].change.object);
            let is_due = state.dirty || state.due.is_some_and(|due| now >= due) || state.idle;
            if !state.deleting && (is_due || (claims_dirty && is_claim)) {
                self.judge(node);
            }
        }
    }

    /// Has the events listened to that may say why an object takes long: one watch for a whole namespace.
    fn explain(&mut self, node: usize) {
        let (state, planned) = (&self.nodes[node], &self.plan.objects[node]);
        let is_slow = state.written_at.is_some_and(|at| at.elapsed() >= SLOW);
        let object = &planned.change.object;
        if state.explained || !is_slow || state.deleting || planned.strategies.disable_associated_wait {
            return;
        }
        self.nodes[node].explained = true;
        if object.namespace.is_empty() {
            return;
        }
        self.watches.ensure_events(&object.namespace, "type=Warning");
        if is_claim(object) {
            // What keeps a claim unbound is told by events that are no warnings.
            self.watches.ensure_events(&object.namespace, "involvedObject.kind=PersistentVolumeClaim");
        }
    }

    fn address(&self, node: usize) -> Address {
        let planned = &self.plan.objects[node];
        let object = &planned.change.object;
        Address::new(Arc::clone(&planned.kind), &object.namespace, &object.name)
    }

    /// Asks for an object that no watch sees, unless that was done a moment ago.
    fn look_at(&mut self, node: usize, now: Instant) {
        let state = &mut self.nodes[node];
        if state.looked_at.is_some_and(|at| now < at + LOOK) {
            return;
        }
        // Until the answer comes nothing more is asked; a request has a time limit of its own.
        state.looked_at = Some(now + Duration::from_secs(600));
        let address = self.address(node);
        let cluster = Arc::clone(&self.writer.cluster);
        self.looks.spawn(async move { Look::Object(node, cluster.get(&address).await) });
    }
}

fn is_claim(object: &ObjectRef) -> bool {
    object.group.is_empty() && object.kind == "PersistentVolumeClaim"
}

fn is_unbound_claim(object: &Value) -> bool {
    is_claim(&ObjectRef::of(object)) && object.text("/status/phase") != "Bound"
}

/// The Services that a webhook configuration cannot do without: those of webhooks that fail closed.
fn called_services(configuration: &Value) -> Vec<ObjectRef> {
    if configuration.text("/apiVersion").split('/').next() != Some("admissionregistration.k8s.io") {
        return Vec::new();
    }
    let webhooks = configuration.pointer("/webhooks").and_then(Value::as_array);
    let closed = webhooks.into_iter().flatten().filter(|webhook| webhook.text("/failurePolicy") != "Ignore");
    let services = closed.filter_map(|webhook| webhook.pointer("/clientConfig/service"));
    let named = services.map(|service| ObjectRef {
        version: "v1".to_owned(),
        kind: "Service".to_owned(),
        namespace: service.text("/namespace").to_owned(),
        name: service.text("/name").to_owned(),
        ..ObjectRef::default()
    });
    named.collect()
}

fn storage_class_kind() -> Arc<Kind> {
    Arc::new(Kind {
        group: "storage.k8s.io".to_owned(),
        version: "v1".to_owned(),
        kind: "StorageClass".to_owned(),
        plural: "storageclasses".to_owned(),
        ..Kind::default()
    })
}

/// Whether what depends on an object waits until it is ready, and not just until it is written.
fn blocks_dependents(planned: &Planned, wait_rule: Option<&WaitRule>) -> bool {
    let object = &planned.change.object;
    // A claim may wait for its first consumer, which may be a dependent; a custom resource's controller may be one too.
    wait_rule.is_some() || (!is_claim(object) && !object::is_custom_group(&object.group))
}

fn wanted(deleting: bool) -> Awaited {
    if deleting { Awaited::Deleted } else { Awaited::Ready }
}

fn since(at: Option<Instant>) -> Millis {
    at.map(|at| at.elapsed()).unwrap_or_default().into()
}
