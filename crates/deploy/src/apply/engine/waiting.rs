//! Waiting: assesses what was written, by what the watches report, until it is ready, gone, failed or timed out.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use pushback_cluster::core_kinds::{self, is_pod};
use pushback_cluster::{Address, ClusterError, ErrorKind, Kind, ListQuery, list_all};
use pushback_events::{Awaited, DiagnosticCode, Event, WaitOutcome};
use pushback_manifest::config::{Config, WaitRule};
use pushback_objects::{ObjectExt, ObjectKey, ObjectRef, object};
use pushback_preflight::Operation;
use serde_json::Value;
use tokio::time::Instant;

use super::observers::Observer;
use super::progress::{Coverage, Explanation, FailedWait, PendingUpdates, Stage, Waiting};
use super::view::ReadResponse;
use super::{Cause, Engine, Progress};
use crate::apply::children::{Below, Children, has_children, is_endpoint_slice, is_older};
use crate::apply::readiness::{self, MatchedCondition, State, Status};
use crate::apply::tree;
use crate::apply::wait_words::WaitedObject;
use crate::apply::watch::WatchUpdate;
use crate::plan::{Planned, UpdateStrategy};

/// How long to wait before watching the events about an object and its Pods.
const SLOW: Duration = Duration::from_secs(5);

impl<'a> Engine<'a> {
    /// Starts to wait for an object; `generation` is the one that its write returned, 0 if nothing was written.
    pub(super) fn wait_for(&mut self, node: usize, generation: i64) {
        let planned = &self.plan.objects[node];
        let is_hidden = self.view.is_hidden(&planned.kind, &planned.object.namespace);
        let coverage = if is_hidden { Coverage::Polled(Instant::now()) } else { Coverage::Watched };
        self.nodes[node].progress = Progress::Waiting(Box::new(Waiting::new(generation, coverage)));
    }

    /// Assesses a written or unchanged object, and releases its dependents if it is ready.
    pub(super) fn update_readiness(&mut self, node: usize) {
        let planned = &self.plan.objects[node];
        if !self.server || !planned.wait || !self.options.wait {
            return self.complete(node);
        }
        let Some(object) = self.nodes[node].object.clone() else { return self.complete(node) };
        let config: &'a Config = self.config;
        let wait_rule = config.wait_rule(&object);
        let Some(status) = self.assess(node, &object, wait_rule) else { return };
        let idle = status.state == State::Ready && wait_rule.is_none() && is_unbound_claim(&object);
        let state = if idle && self.somebody_may_come(node) { State::Unblocked } else { status.state };
        let explanation = Explanation { message: status.message, reasons: status.reasons, matched: status.matched };
        match state {
            State::Ready => match self.unread(node) {
                Some(unread) => {
                    self.watch(node, &object);
                    self.tell(node, Stage::InProgress(unread));
                }
                None => self.complete_by(node, explanation.matched),
            },
            State::Failed => self.never_ready(node, explanation),
            State::InProgress | State::Unblocked => {
                let unblocked = state == State::Unblocked || !blocks_dependents(planned, wait_rule);
                self.watch(node, &object);
                self.tell(node, if idle { Stage::Idle(explanation) } else { Stage::InProgress(explanation) });
                if unblocked {
                    self.release(node);
                }
            }
        }
    }

    /// Readiness of an awaited object; `None` if it is not awaited.
    fn assess(&mut self, node: usize, object: &Value, wait_rule: Option<&WaitRule>) -> Option<Status> {
        let observer = if wait_rule.is_none() { self.observer(node, object) } else { Observer::None };
        let planned = &self.plan.objects[node];
        let unchanged = planned.reported_operation() == Operation::Noop;
        let below = if planned.strategies.disable_associated_wait {
            Below::default()
        } else if is_claim(&planned.object) {
            self.view.children.around_claim(object)
        } else {
            self.view.children.of(object)
        };
        let backends = if unchanged { Vec::new() } else { self.backends(object) };
        let frees_names = planned.object.is_definition() && self.deletes_crds();
        let waiting = self.nodes[node].waiting_mut()?;
        let waited = waiting.since.elapsed();
        if let Some(rule) = wait_rule {
            waiting.ages.observe(object, rule, waited);
        }
        let mut related = below.related(self.view.storage_classes.as_deref().unwrap_or_default());
        related.backends = &backends;
        related.frees_names = frees_names;
        let context = readiness::Context {
            wait_rule,
            masker: Some(&self.writes.writer.masker),
            condition_ages: Some(&waiting.ages),
            troubles: None,
            failure_timeout: self.options.wait_failure_timeout,
            minimum_generation: waiting.generation,
            waited,
            unchanged,
            status_subresource: Some(!matches!(observer, Observer::None)),
            status_window: match observer {
                Observer::InApp(Some(ready)) => {
                    Some(ready.saturating_duration_since(waiting.since) + readiness::SLOW_OBSERVATION_WINDOW)
                }
                // The wait for the controller itself has limits of its own.
                Observer::InApp(None) => Some(Duration::MAX),
                Observer::None | Observer::External => None,
            },
            related,
        };
        waiting.troubles.observe(object, &context);
        let context = readiness::Context { troubles: Some(&waiting.troubles), ..context };
        waiting.due = readiness::next_look(&context).map(|left| Instant::now() + left);
        Some(readiness::assess(object, &context))
    }

    /// Returns whether the deletion of a CRD is still to come or not complete.
    fn deletes_crds(&self) -> bool {
        self.nodes.iter().zip(&self.plan.objects).any(|(node, planned)| {
            let is_open = matches!(node.progress, Progress::Pending | Progress::Writing(_) | Progress::Waiting(_));
            is_open && planned.operation() == Operation::Delete && planned.object.is_definition()
        })
    }

    /// Whether anything under way may still use a claim. Always true for the first assessment: the consumer may be
    /// about to be written.
    fn somebody_may_come(&self, claim: usize) -> bool {
        self.nodes.iter().enumerate().any(|(node, state)| match &state.progress {
            Progress::Pending | Progress::Writing(_) => true,
            Progress::Waiting(waiting) if node == claim => waiting.explanation().is_none(),
            Progress::Waiting(waiting) => !waiting.is_idle(),
            _ => false,
        })
    }

    /// Makes sure that changes of an object, and of what explains them, are noticed.
    fn watch(&mut self, node: usize, object: &Value) {
        let planned = &self.plan.objects[node];
        let namespace = &planned.object.namespace;
        self.by_uid.insert(object.uid().to_owned(), node);
        let labelled = object.label(self.plan.observed.app.label_key()) == Some(self.plan.label_value.as_str());
        if labelled && planned.kind.offers("list") {
            self.view.watches.ensure(&planned.kind, namespace);
        } else if let Some(waiting) = self.nodes[node].waiting_mut() {
            // The object of another app: the watches select this app's objects only.
            waiting.start_polling();
        }
        if planned.strategies.disable_associated_wait {
            return;
        }
        if has_children(&planned.object) {
            Children::kinds().iter().for_each(|kind| self.view.watches.ensure(kind, namespace));
        }
        if is_claim(&planned.object) {
            self.view.watches.ensure(&core_kinds::pod(), namespace);
            if self.view.storage_classes.is_none() {
                self.view.storage_classes = Some(Vec::new());
                let cluster = Arc::clone(&self.writes.writer.cluster);
                self.view.looks.spawn(async move {
                    let query = ListQuery::new(storage_class_kind(), None, "");
                    ReadResponse::StorageClasses(
                        list_all(&*cluster, &query).await.map(|page| page.items).unwrap_or_default(),
                    )
                });
            }
        }
    }

    pub(super) fn update_deletion(&mut self, node: usize) {
        let message = self.nodes[node].object.as_deref().map(readiness::deletion_blockers).unwrap_or_default();
        let message = if message.is_empty() { "being deleted".to_owned() } else { message };
        self.tell(node, Stage::InProgress(Explanation { message, ..Explanation::default() }));
    }

    /// Stores the assessment of an awaited object, and reports what is new in it.
    fn tell(&mut self, node: usize, stage: Stage) {
        let wanted = self.wanted(node);
        let live = self.nodes[node].object.clone();
        let is_parent = has_children(&self.plan.objects[node].object)
            && !self.plan.objects[node].strategies.disable_associated_wait;
        let Some(waiting) = self.nodes[node].waiting_mut() else { return };
        let before = std::mem::replace(&mut waiting.stage, stage);
        let Some(Explanation { message, reasons, matched }) =
            waiting.explanation().filter(|explanation| before.explanation() != Some(*explanation))
        else {
            return;
        };
        let (message, reasons) = match &self.options.wait_words {
            Some(words) => {
                let parent = live.as_deref().filter(|_| is_parent);
                let below = parent.map(|parent| self.view.children.of(parent).into_children()).unwrap_or_default();
                let (live, matched) = (live.as_deref(), matched.as_deref());
                words.in_progress(&WaitedObject { live, matched, message }, &below)
            }
            None => (message.clone(), reasons.clone()),
        };
        self.events.send(Event::WaitProgress {
            object: self.plan.objects[node].object.clone(),
            wanted,
            message,
            reasons,
            elapsed: waiting.since.elapsed().into(),
        });
    }

    pub(super) fn complete(&mut self, node: usize) {
        self.complete_by(node, None);
    }

    /// The same by a condition that a wait rule names.
    fn complete_by(&mut self, node: usize, matched: Option<Box<MatchedCondition>>) {
        let waiting = self.nodes[node].waiting();
        if let Some(waiting) = waiting.filter(|waiting| waiting.explanation().is_some()) {
            let explanation = Explanation { matched, ..Explanation::default() };
            self.tell_done(node, waiting.since, WaitOutcome::Ok, explanation);
        }
        if self.plan.objects[node].reported_operation() == Operation::Noop {
            self.done.add(Operation::Noop);
        }
        if self.is_deletion(node) && self.nodes[node].waiting().is_some() {
            self.done.gone();
        }
        self.note_unreported(node);
        self.nodes[node].done(&self.plan.objects[node]);
        self.note_controller(node);
        self.tell_completed(node);
        self.release(node);
    }

    pub(super) fn tell_completed(&self, node: usize) {
        let planned = &self.plan.objects[node];
        let operation = planned.reported_operation();
        let was_ready = |live: &Value| tree::state(live, self.config.wait_rule(live)).0 == "ok";
        let is_skipped = planned.strategies.update == UpdateStrategy::Skip;
        if operation == Operation::Noop && !is_skipped && planned.live.as_deref().is_none_or(was_ready) {
            return;
        }
        self.events.send(Event::Completed { object: planned.object.clone(), operation });
    }

    /// Releases the dependents of an object.
    pub(super) fn release(&mut self, node: usize) {
        let ready = self.order.complete(node);
        self.queue.extend(ready);
    }

    fn never_ready(&mut self, node: usize, explanation: Explanation) {
        self.give_up_on(node, WaitOutcome::Failed, explanation, Progress::NeverReady);
    }

    fn time_out(&mut self, node: usize) {
        let explanation = self.nodes[node].waiting().and_then(Waiting::explanation).cloned().unwrap_or_default();
        self.give_up_on(node, WaitOutcome::Timeout, explanation, Progress::TimedOut);
    }

    fn give_up_on(
        &mut self,
        node: usize,
        outcome: WaitOutcome,
        explanation: Explanation,
        ended: fn(FailedWait) -> Progress,
    ) {
        let Some(&Waiting { since, .. }) = self.nodes[node].waiting() else { return };
        self.tell_done(node, since, outcome, explanation.clone());
        self.nodes[node].progress = ended(FailedWait { explanation, since });
        self.note_controller(node);
        self.skip_dependents(node);
        if self.options.exit_early_on_wait_error {
            self.stop(Cause::Failure);
        }
    }

    /// Reports how the wait for an object ended.
    pub(super) fn tell_done(&self, node: usize, since: Instant, outcome: WaitOutcome, explanation: Explanation) {
        let Explanation { message, reasons, matched } = explanation;
        let live = self.nodes[node].object.as_deref();
        let waited = WaitedObject { live, matched: matched.as_deref(), message: &message };
        let message = match (&self.options.wait_words, outcome) {
            (Some(words), WaitOutcome::Ok) => words.ready(&waited),
            (Some(words), WaitOutcome::Failed) => words.failed(&waited),
            _ => message,
        };
        self.events.send(Event::WaitDone {
            object: self.plan.objects[node].object.clone(),
            wanted: self.wanted(node),
            outcome,
            message,
            reasons,
            elapsed: since.elapsed().into(),
        });
    }

    fn wanted(&self, node: usize) -> Awaited {
        if self.is_deletion(node) { Awaited::Deleted } else { Awaited::Ready }
    }

    pub(super) fn skip_dependents(&mut self, node: usize) {
        let because = self.plan.objects[node].object.to_string();
        for dependent in self.order.dependents_of(node) {
            if self.nodes[dependent].progress == Progress::Pending {
                self.nodes[dependent].progress = Progress::Skipped(format!("it waits for {because}"));
            }
        }
    }

    /// Applies what the watch reported while the write's response was pending.
    pub(super) fn catch_up(&mut self, node: usize, heard: PendingUpdates) {
        if let Some(object) = heard.object {
            self.on_object(object);
        }
        if let Some(uid) = heard.gone {
            self.on_gone(node, &uid);
        }
    }

    pub(super) fn on_seen(&mut self, seen: WatchUpdate) {
        match seen {
            WatchUpdate::Applied(object) => self.on_object(object),
            WatchUpdate::Deleted(object) => {
                let above = self.view.children.remove(&object);
                self.mark(&above, &object);
                // A Job that removes itself when finished says in its last state how it ended.
                if readiness::is_over(&object) {
                    self.on_object(Arc::clone(&object));
                }
                if let Some(&node) = self.by_key.get(&ObjectRef::of(&object).key()) {
                    self.on_gone(node, object.uid());
                }
            }
            WatchUpdate::All { kind, namespace, objects, listed_at } => {
                self.on_list(&kind, &namespace, objects, listed_at);
            }
            WatchUpdate::Hidden { kind, namespace } => {
                if *kind == *core_kinds::pod() {
                    let message = format!(
                        "Pods in namespace {namespace} may not be listed, so the reason why something is not ready is unknown"
                    );
                    self.events.send(Event::diagnostic(DiagnosticCode::ReasonsUnknown, message));
                }
                self.view.hide(kind, namespace);
                for (state, planned) in self.nodes.iter_mut().zip(&self.plan.objects) {
                    if self.view.is_hidden(&planned.kind, &planned.object.namespace)
                        && let Some(waiting) = state.waiting_mut()
                    {
                        waiting.start_polling();
                    }
                }
            }
        }
    }

    fn on_list(&mut self, kind: &Kind, namespace: &str, objects: Vec<Arc<Value>>, listed_at: Instant) {
        let uids: BTreeSet<&str> = objects.iter().map(|object| object.uid()).collect();
        let above = self.view.children.keep_listed(kind, namespace, &uids);
        self.mark_owners(&above);
        let listed: BTreeSet<ObjectKey> = objects.iter().map(|object| ObjectRef::of(object).key()).collect();
        let by_key: &BTreeMap<ObjectKey, usize> = &self.by_key;
        let missing: Vec<usize> = by_key
            .values()
            .copied()
            .filter(|&node| {
                let (state, planned) = (&self.nodes[node], &self.plan.objects[node]);
                let object = &planned.object;
                // The list may lack what was written after it began.
                let is_seen = |waiting: &Waiting| waiting.coverage == Coverage::Watched && waiting.since < listed_at;
                state.waiting().is_some_and(is_seen)
                    && *planned.kind == *kind
                    && (namespace.is_empty() || object.namespace == namespace)
                    && !listed.contains(&object.key())
            })
            .collect();
        objects.into_iter().for_each(|object| self.on_object(object));
        for node in missing {
            let uid = self.nodes[node].object.as_deref().map(ObjectExt::uid).unwrap_or_default().to_owned();
            self.on_gone(node, &uid);
        }
    }

    /// Schedules a new assessment of what lies above a child, with a short delay: a burst of Pods leads to one.
    fn mark(&mut self, above: &[String], child: &Value) {
        self.mark_owners(above);
        self.view.pods_moved |= is_pod(child);
        if is_endpoint_slice(child) {
            let calls = |planned: &&Planned| planned.object.group == "admissionregistration.k8s.io";
            let callers = self.nodes.iter_mut().zip(&self.plan.objects).filter(|(_, planned)| calls(planned));
            callers.filter_map(|(node, _)| node.waiting_mut()).for_each(Waiting::hear);
        }
    }

    fn mark_owners(&mut self, above: &[String]) {
        for uid in above {
            if let Some(waiting) = self.by_uid.get(uid).and_then(|&node| self.nodes[node].waiting_mut()) {
                waiting.hear();
            }
        }
    }

    fn on_object(&mut self, object: Arc<Value>) {
        if is_pod(&object)
            && let Some(logs) = &mut self.view.logs
        {
            logs.see(&object);
        }
        let above = self.view.children.insert(&object);
        self.mark(&above, &object);
        let Some(&node) = self.by_key.get(&ObjectRef::of(&object).key()) else { return };
        let state = &mut self.nodes[node];
        match &mut state.progress {
            Progress::Waiting(_) => {}
            Progress::Writing(writing) => {
                writing.heard.object = Some(object);
                return;
            }
            _ => return,
        }
        if let Some(known) = state.object.as_deref() {
            // The watch may lag behind the write's response and still show the previous state.
            if is_older(&object, known) {
                return;
            }
            if !known.uid().is_empty() && known.uid() != object.uid() {
                return self.gone(node, Some(&object));
            }
        }
        state.object = Some(object);
        if self.is_deletion(node) { self.update_deletion(node) } else { self.update_readiness(node) }
    }

    fn on_gone(&mut self, node: usize, uid: &str) {
        let state = &mut self.nodes[node];
        if let Progress::Writing(writing) = &mut state.progress {
            writing.heard.gone = Some(uid.to_owned()).filter(|uid| !uid.is_empty());
        }
        if state.waiting().is_none() || state.object.as_deref().map(ObjectExt::uid) != Some(uid) {
            return;
        }
        // A watch by label also reports an object as deleted when it loses the label.
        let address = self.address(node);
        let cluster = Arc::clone(&self.writes.writer.cluster);
        self.view.looks.spawn(async move { ReadResponse::Gone(node, cluster.get(&address).await) });
    }

    fn on_gone_look(&mut self, node: usize, seen: Result<Option<Arc<Value>>, ClusterError>) {
        match seen {
            Ok(Some(object)) => {
                self.start_polling(node);
                self.on_object(object);
            }
            Ok(None) => self.gone(node, None),
            // It may be listed, but not read by itself: then the list decides.
            Err(error) if error.kind == ErrorKind::Forbidden => self.gone(node, None),
            Err(_) => self.start_polling(node),
        }
    }

    fn start_polling(&mut self, node: usize) {
        if let Some(waiting) = self.nodes[node].waiting_mut() {
            waiting.start_polling();
        }
    }

    /// Handles an awaited object that is gone; `successor` is another object of its name, if any.
    fn gone(&mut self, node: usize, successor: Option<&Value>) {
        let is_deletion = self.is_deletion(node);
        let state = &mut self.nodes[node];
        if state.waiting().is_none() {
            return;
        }
        if is_deletion {
            state.object = None;
            return self.complete(node);
        }
        let removes_itself = state.object.as_deref().is_some_and(|known| {
            known.text("/kind") == "Job" && known.pointer("/spec/ttlSecondsAfterFinished").is_some()
        });
        let message = match successor {
            Some(object) => format!(
                "somebody else deleted it while the run was waiting, and created it again (uid {})",
                object.uid()
            ),
            // Only a finished Job removes itself, and it may have failed.
            None if removes_itself => {
                "it was removed before its result was seen (ttlSecondsAfterFinished may be too short)".to_owned()
            }
            None => "somebody else deleted it while the run was waiting".to_owned(),
        };
        self.never_ready(node, Explanation { message, ..Explanation::default() });
    }

    pub(super) fn on_look(&mut self, look: ReadResponse) {
        match look {
            ReadResponse::Object(node, Ok(Some(object))) => {
                self.answered(node);
                self.on_object(object);
            }
            ReadResponse::Object(node, Ok(None)) => self.gone(node, None),
            ReadResponse::Gone(node, seen) => self.on_gone_look(node, seen),
            // Read again after a while.
            ReadResponse::Object(node, Err(_)) => self.answered(node),
            ReadResponse::Reporting(kind, status) => self.on_reporting(&kind, status),
            ReadResponse::Versions(node, read) => self.on_versions_read(node, read),
            ReadResponse::StorageClasses(classes) => {
                self.view.storage_classes = Some(classes);
                for node in 0..self.nodes.len() {
                    let claim = is_claim(&self.plan.objects[node].object);
                    if claim && !self.is_deletion(node) && self.nodes[node].waiting().is_some() {
                        self.update_readiness(node);
                    }
                }
            }
        }
    }

    fn answered(&mut self, node: usize) {
        if let Some(waiting) = self.nodes[node].waiting_mut() {
            waiting.answered();
        }
    }

    pub(super) fn on_tick(&mut self, deadline: Instant) {
        let now = Instant::now();
        let limit = self.options.wait_resource_timeout;
        // The run's time limit has passed: nothing more starts.
        if now >= deadline {
            self.stop(Cause::Late);
        }
        let pods_moved = std::mem::take(&mut self.view.pods_moved);
        for node in 0..self.nodes.len() {
            let Some(waiting) = self.nodes[node].waiting_mut() else { continue };
            let late = !limit.is_zero() && now >= waiting.since + limit;
            if now >= deadline || late {
                self.time_out(node);
                continue;
            }
            // Assess only objects with news, and those that time alone may change: grace periods pass without an event.
            let is_due = waiting.due.is_some_and(|due| now >= due) || waiting.is_idle();
            if waiting.asks(now) {
                self.look_at(node);
            }
            self.explain(node);
            let is_claim = is_claim(&self.plan.objects[node].object);
            if !self.is_deletion(node) && (is_due || (pods_moved && is_claim)) {
                self.update_readiness(node);
            }
        }
    }

    /// Watches the events that may explain why an object takes long: one watch per namespace.
    fn explain(&mut self, node: usize) {
        let is_deletion = self.is_deletion(node);
        let planned = &self.plan.objects[node];
        let object = &planned.object;
        let Some(waiting) = self.nodes[node].waiting_mut() else { return };
        let is_slow = waiting.since.elapsed() >= SLOW;
        if waiting.explained || !is_slow || is_deletion || planned.strategies.disable_associated_wait {
            return;
        }
        waiting.explained = true;
        if object.namespace.is_empty() {
            return;
        }
        self.view.watches.ensure_events(&object.namespace, "type=Warning");
        if is_claim(object) {
            // Events that explain an unbound claim are not warnings.
            self.view.watches.ensure_events(&object.namespace, "involvedObject.kind=PersistentVolumeClaim");
        }
    }

    fn address(&self, node: usize) -> Address {
        let planned = &self.plan.objects[node];
        let object = &planned.object;
        Address::new(Arc::clone(&planned.kind), &object.namespace, &object.name)
    }

    /// Reads an object that no watch covers.
    fn look_at(&mut self, node: usize) {
        let address = self.address(node);
        let cluster = Arc::clone(&self.writes.writer.cluster);
        self.view.looks.spawn(async move { ReadResponse::Object(node, cluster.get(&address).await) });
    }
}

fn is_claim(object: &ObjectRef) -> bool {
    object.group.is_empty() && object.kind == "PersistentVolumeClaim"
}

fn is_unbound_claim(object: &Value) -> bool {
    is_claim(&ObjectRef::of(object)) && object.text("/status/phase") != "Bound"
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

/// Whether dependents of an object wait until it is ready rather than just written.
fn blocks_dependents(planned: &Planned, wait_rule: Option<&WaitRule>) -> bool {
    let object = &planned.object;
    // A dependent may be a claim's first consumer or a custom resource's controller.
    wait_rule.is_some() || (!is_claim(object) && !object::is_custom_group(&object.group))
}
