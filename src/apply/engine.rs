//! The scheduler: writes every object as soon as what it waits for is there, watches until it is ready,
//! and stops in order when something fails, time is up, or the user says so.

mod waiting;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use pushback_preflight::judge::Refused;
use pushback_preflight::{ObjectKey, ObjectRef, Operation};
use serde_json::Value;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

use self::waiting::Look;
use super::children::Children;
use super::readiness::{ConditionAges, Troubles};
use super::watch::{Seen, Watches};
use super::write::{Done, Failure, Writer};
use crate::app::identity::APP_LABEL;
use crate::app::session::Session;
use crate::check::second_look::SecondLook;
use crate::cluster::Cluster;
use crate::config::Config;
use crate::config::mask::Masker;
use crate::event::{ChangeOutcome, Counts, Event, Events, Unfinished, UnfinishedLine, WaitOutcome};
use crate::plan::Plan;
use crate::stop::Stop;

/// How long requests that are under way may take after the user said stop.
const STOP_GRACE: Duration = Duration::from_secs(3);

/// How long requests that are under way may take after time is up. A request by itself is repeated for longer.
const LATE_GRACE: Duration = Duration::from_secs(10);

/// What the user decided about applying.
#[derive(Clone, Debug)]
pub struct Options {
    /// Wait until objects are ready or gone.
    pub wait: bool,
    /// How long one object's write may be tried.
    pub apply_timeout: Duration,
    /// How long the run may wait in all.
    pub wait_timeout: Duration,
    /// How long one object may take; zero: as long as the run.
    pub wait_resource_timeout: Duration,
    /// How long an object's Pods may fail, in a way that may heal, without anything moving; zero: as long as it waits.
    pub wait_failure_timeout: Duration,
    /// A failed write stops everything that has not started.
    pub exit_early_on_apply_error: bool,
    /// A failed wait stops everything that has not started.
    pub exit_early_on_wait_error: bool,
}

/// How far one object came.
#[derive(Clone, Debug, PartialEq)]
pub enum Progress {
    /// Not started.
    Pending,
    /// Being written.
    Writing,
    /// Written, not ready or not gone yet.
    Waiting,
    /// Its deletion was requested, and the end of it is not waited for.
    Going,
    /// Done.
    Done,
    /// The write failed.
    WriteFailed(String),
    /// It was written and came to a terminal failure.
    NeverReady(String),
    /// Not started, because of what it depends on.
    Skipped(String),
    /// It was being tried when the run was stopped.
    Stopped(String),
    /// Time is up.
    TimedOut,
}

/// One object's state.
#[derive(Clone, Debug)]
struct Node {
    progress: Progress,
    /// Last known state of the object.
    object: Option<Arc<Value>>,
    started: Option<Instant>,
    written_at: Option<Instant>,
    generation: i64,
    deleting: bool,
    message: String,
    reasons: Vec<String>,
    /// Since when the conditions of its wait rule hold.
    ages: ConditionAges,
    /// Since when its Pods fail.
    troubles: Troubles,
    /// When time alone may change how it is judged.
    due: Option<Instant>,
    /// Something was heard that may change how it is judged.
    dirty: bool,
    /// A claim that nobody uses yet: it is waited for as long as somebody may come.
    idle: bool,
    /// The watch does not see it: it is asked for by itself.
    unwatched: bool,
    looked_at: Option<Instant>,
    /// Events that may explain it are listened to.
    explained: bool,
    /// What the watch saw while the write was under way.
    seen: Option<Arc<Value>>,
    /// uid that the watch saw going while the write was under way.
    gone: String,
    /// Dependents have been let go.
    released: bool,
    announced: bool,
}

/// How a run ended.
#[derive(Debug)]
pub struct Outcome {
    /// Each object's progress, by index in the plan.
    pub progress: Vec<Progress>,
    /// Last known state of each object.
    pub objects: Vec<Option<Arc<Value>>>,
    /// What was really done.
    pub done: Counts,
    /// Objects that are not done, for people.
    pub unfinished: Vec<UnfinishedLine>,
    /// Who stopped it.
    pub stop: Stop,
    /// Time was up before all was done.
    pub late: bool,
    /// The lock was lost.
    pub lock_lost: bool,
    /// The very first write found a changed object: plan again.
    pub plan_again: bool,
    /// What second looks have refused, and what has come to something else than was judged.
    pub refused: Vec<Refused>,
}

/// A run over a plan.
pub struct Engine<'a> {
    plan: &'a Plan,
    config: &'a Config,
    options: &'a Options,
    events: Events,
    writer: Arc<Writer>,
    nodes: Vec<Node>,
    by_key: BTreeMap<ObjectKey, usize>,
    /// Those that are waited for.
    by_uid: BTreeMap<String, usize>,
    order: crate::plan::graph::Order<'a>,
    queue: VecDeque<usize>,
    writes: JoinSet<(usize, Result<Done, Failure>)>,
    /// Tells writes that wait for their next attempt to give up.
    give_up: watch::Sender<bool>,
    watches: Watches,
    seen: mpsc::UnboundedReceiver<Seen>,
    looks: JoinSet<Look>,
    children: Children,
    /// `None` until a claim that waits asks for them.
    storage_classes: Option<Vec<Arc<Value>>>,
    /// Namespaces whose EndpointSlices may not be listed.
    unlisted: BTreeSet<String>,
    /// Pods have moved, which may use a claim.
    claims_dirty: bool,
    done: Counts,
    stopping: bool,
    late: bool,
    lock_lost: bool,
    plan_again: bool,
    refused: Vec<Refused>,
    server: bool,
}

impl std::fmt::Debug for Engine<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("nodes", &self.nodes.len()).finish_non_exhaustive()
    }
}

impl<'a> Engine<'a> {
    /// Prepares a run.
    #[must_use]
    pub fn new(
        plan: &'a Plan,
        config: &'a Config,
        options: &'a Options,
        cluster: Arc<dyn Cluster>,
        session: Option<Arc<Session>>,
        second_look: Option<Arc<SecondLook>>,
        events: Events,
    ) -> Self {
        let (sender, seen) = mpsc::unbounded_channel();
        let selector = format!("{APP_LABEL}={}", plan.label_value);
        let nodes = plan
            .objects
            .iter()
            .map(|planned| Node {
                progress: Progress::Pending,
                object: planned.change.live.clone(),
                started: None,
                written_at: None,
                generation: 0,
                deleting: planned.change.operation == Operation::Delete,
                message: String::new(),
                reasons: Vec::new(),
                ages: ConditionAges::default(),
                troubles: Troubles::default(),
                due: None,
                dirty: false,
                idle: false,
                unwatched: false,
                looked_at: None,
                explained: false,
                seen: None,
                gone: String::new(),
                released: false,
                announced: false,
            })
            .collect();
        let by_key =
            plan.objects.iter().enumerate().map(|(index, planned)| (planned.change.object.key(), index)).collect();
        let server = cluster.capabilities().server;
        let (give_up, gave_up) = watch::channel(false);
        Self {
            plan,
            config,
            options,
            events: events.clone(),
            watches: Watches::new(Arc::clone(&cluster), selector, sender),
            writer: Arc::new(Writer {
                cluster,
                session,
                second_look,
                events,
                masker: Masker::new(&config.diff_mask_rules),
                timeout: options.apply_timeout,
                gave_up,
                uncertain: AtomicBool::new(false),
            }),
            nodes,
            by_key,
            by_uid: BTreeMap::new(),
            order: plan.graph.order(),
            queue: VecDeque::new(),
            writes: JoinSet::new(),
            give_up,
            seen,
            looks: JoinSet::new(),
            children: Children::default(),
            storage_classes: None,
            unlisted: BTreeSet::new(),
            claims_dirty: false,
            done: Counts::default(),
            stopping: false,
            late: false,
            lock_lost: false,
            plan_again: false,
            refused: Vec::new(),
            server,
        }
    }

    /// Runs until everything is done, failed or stopped.
    pub async fn run(mut self, mut stop: watch::Receiver<Stop>) -> Outcome {
        let started = Instant::now();
        let deadline = started + self.options.wait_timeout;
        let mut stop_deadline: Option<Instant> = None;
        let mut stopped_for: Option<Duration> = None;
        let mut tick = tokio::time::interval(Duration::from_secs(1));
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        self.queue.extend(self.order.initial());
        loop {
            let interrupted = *stop.borrow() != Stop::No;
            let grace = match (interrupted, self.late) {
                (true, _) => Some(STOP_GRACE),
                (false, true) => Some(LATE_GRACE),
                (false, false) => None,
            };
            if let Some(grace) = grace
                && stopped_for != Some(grace)
            {
                self.stop();
                stopped_for = Some(grace);
                let end = Instant::now() + grace;
                stop_deadline = Some(stop_deadline.map_or(end, |known: Instant| known.min(end)));
            }
            self.start_writes();
            // Looked through only when nothing else is left to do: there are as many events as objects.
            let waiting = || self.nodes.iter().any(|node| node.progress == Progress::Waiting);
            if self.writes.is_empty() && self.queue.is_empty() && (self.stopping || !waiting()) {
                break;
            }
            tokio::select! {
                Some(written) = self.writes.join_next() => {
                    if let Ok((node, result)) = written {
                        self.on_written(node, result);
                    }
                }
                Some(seen) = self.seen.recv() => {
                    self.on_seen(seen);
                    // A burst of events is one look at the world.
                    while let Ok(seen) = self.seen.try_recv() {
                        self.on_seen(seen);
                    }
                }
                Some(look) = self.looks.join_next() => {
                    if let Ok(look) = look {
                        self.on_look(look);
                    }
                }
                _ = tick.tick() => self.on_tick(deadline),
                Ok(()) = stop.changed() => {}
                () = sleep_until(stop_deadline) => break,
            }
        }
        // Nothing may still be on its way when the record is closed.
        self.writes.shutdown().await;
        self.finish(*stop.borrow())
    }

    /// Starts nothing more, and repeats nothing.
    fn stop(&mut self) {
        self.stopping = true;
        self.give_up.send_replace(true);
        self.writer.cluster.turn_away();
    }

    fn start_writes(&mut self) {
        while let Some(node) = self.queue.pop_front() {
            if self.stopping {
                continue;
            }
            let planned = &self.plan.objects[node];
            if planned.change.operation == Operation::Noop {
                self.nodes[node].written_at = Some(Instant::now());
                self.judge(node);
                continue;
            }
            self.nodes[node].progress = Progress::Writing;
            self.nodes[node].started = Some(Instant::now());
            if planned.change.operation.writes() {
                self.events.send(Event::ChangeStart {
                    object: planned.change.object.clone(),
                    operation: planned.change.operation,
                });
            }
            let writer = Arc::clone(&self.writer);
            let planned = planned.clone();
            self.writes.spawn(async move { (node, writer.write(&planned).await) });
        }
    }

    fn on_written(&mut self, node: usize, result: Result<Done, Failure>) {
        let planned = &self.plan.objects[node];
        let operation = planned.change.operation;
        let elapsed = self.nodes[node].started.map(|started| started.elapsed()).unwrap_or_default();
        let done = match result {
            Ok(done) => done,
            Err(failure) => return self.on_write_failed(node, &failure, elapsed),
        };
        for message in &done.warnings {
            self.warn(&planned.change.object, message);
        }
        let is_going = self.nodes[node].deleting && done.terminating;
        if operation.writes() {
            if is_going {
                self.done.deleting += 1;
            } else {
                self.done.add(operation);
            }
            self.events.send(Event::ChangeDone {
                object: planned.change.object.clone(),
                operation,
                outcome: if is_going { ChangeOutcome::Requested } else { ChangeOutcome::Ok },
                message: done.message,
                elapsed: elapsed.into(),
            });
        }
        let state = &mut self.nodes[node];
        state.written_at = Some(Instant::now());
        state.generation = done.object.as_deref().map(generation).unwrap_or_default();
        if is_going {
            state.object = done.object;
            state.progress = Progress::Going;
            if planned.wait && self.options.wait && self.server {
                state.progress = Progress::Waiting;
                self.watches.ensure(&planned.kind, &planned.change.object.namespace);
                self.judge_deletion(node);
                self.catch_up(node);
            } else {
                self.release(node);
            }
            return;
        }
        if state.deleting {
            state.object = None;
            return self.complete(node);
        }
        state.object = done.object;
        self.judge(node);
        self.catch_up(node);
    }

    fn on_write_failed(&mut self, node: usize, failure: &Failure, elapsed: Duration) {
        let planned = &self.plan.objects[node];
        let message = failure.message();
        if matches!(failure, Failure::LockLost) {
            self.lock_lost = true;
            self.stop();
        }
        if matches!(failure, Failure::Changed(_)) && self.done.writes() == 0 && self.writes.is_empty() {
            self.plan_again = true;
            self.stop();
        }
        match failure {
            Failure::Refused { refused, .. } => {
                for finding in &refused.findings {
                    self.events.send(Event::Finding { finding: Box::new(finding.clone()), excerpt: None });
                }
                self.refused.push((**refused).clone());
            }
            Failure::Differs(message) => {
                self.refused.push(Refused::by_difference(planned.change.object.clone(), message));
            }
            _ => {}
        }
        let stopped = matches!(failure, Failure::Stopped(_) | Failure::NotSent);
        self.events.send(Event::ChangeDone {
            object: planned.change.object.clone(),
            operation: planned.change.operation,
            outcome: if stopped { ChangeOutcome::Skipped } else { ChangeOutcome::Failed },
            message: message.clone(),
            elapsed: elapsed.into(),
        });
        if stopped {
            let is_unsent = matches!(failure, Failure::NotSent);
            self.nodes[node].progress = if is_unsent { Progress::Pending } else { Progress::Stopped(message) };
            return;
        }
        self.nodes[node].progress = Progress::WriteFailed(message);
        self.skip_dependents(node);
        if self.options.exit_early_on_apply_error {
            self.stop();
        }
    }

    fn warn(&self, object: &ObjectRef, message: &str) {
        self.events.send(Event::Warning {
            code: "server".to_owned(),
            message: message.to_owned(),
            object: Some(object.clone()),
            position: None,
        });
    }

    fn finish(mut self, stop: Stop) -> Outcome {
        for node in 0..self.nodes.len() {
            let state = &self.nodes[node];
            if state.progress == Progress::Waiting {
                self.tell_done(node, WaitOutcome::Interrupted, state.message.clone(), state.reasons.clone());
            }
        }
        let unfinished = self.unfinished();
        Outcome {
            progress: self.nodes.iter().map(|node| node.progress.clone()).collect(),
            objects: self.nodes.iter_mut().map(|node| node.object.take()).collect(),
            done: self.done,
            unfinished,
            stop,
            late: self.late,
            lock_lost: self.lock_lost,
            plan_again: self.plan_again,
            refused: self.refused,
        }
    }

    fn unfinished(&self) -> Vec<UnfinishedLine> {
        let mut lines = Vec::new();
        for (node, planned) in self.nodes.iter().zip(&self.plan.objects) {
            let (state, message) = match &node.progress {
                Progress::Pending if planned.change.operation.writes() => (Unfinished::NotApplied, String::new()),
                Progress::Done | Progress::Going | Progress::Pending => continue,
                Progress::Writing => (Unfinished::Unknown, "the write was cut off; the next run finds out".to_owned()),
                Progress::Waiting | Progress::TimedOut if node.deleting => {
                    (Unfinished::NotDeleted, node.message.clone())
                }
                Progress::Waiting | Progress::TimedOut => (Unfinished::NotReady, node.message.clone()),
                Progress::WriteFailed(message) | Progress::NeverReady(message) => (Unfinished::Failed, message.clone()),
                Progress::Skipped(_) if !planned.change.operation.writes() => continue,
                Progress::Skipped(message) | Progress::Stopped(message) => (Unfinished::NotApplied, message.clone()),
            };
            lines.push(UnfinishedLine {
                object: planned.change.object.clone(),
                state,
                message,
                reasons: node.reasons.clone(),
                elapsed: node.written_at.map(|at| at.elapsed().into()),
            });
        }
        lines
    }
}

fn generation(object: &Value) -> i64 {
    object.pointer("/metadata/generation").and_then(Value::as_i64).unwrap_or_default()
}

async fn sleep_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
