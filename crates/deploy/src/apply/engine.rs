//! The scheduler: writes each object once its dependencies are done, watches it until it is ready, and stops in order
//! on a failure, a timeout or a signal.

mod conversions;
mod deploy_logs;
mod failure_logs;
mod observers;
mod operators;
mod progress;
mod unfinished;
mod view;
mod waiting;
mod webhook_backends;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use pushback_app::inventory::Entry;
use pushback_app::session::Session;
use pushback_cluster::Cluster;
use pushback_events::stop::Stop;
use pushback_events::{ChangeOutcome, Counts, Event, Events, FailedContainer, UnfinishedLine, WaitOutcome};
use pushback_manifest::config::Config;
use pushback_manifest::config::mask::Masker;
use pushback_objects::{ObjectKey, ObjectRef};
use pushback_preflight::judge::Refused;
use pushback_preflight::{ChangeSet, Operation};
use serde_json::Value;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

pub use self::deploy_logs::LogsOf;
pub use self::progress::Progress;
use self::progress::{PendingUpdates, Waiting, Writing};
use self::unfinished::still_absent;
use self::view::View;
use super::wait_words::WaitWords;
use super::write::{Done, Failure, SuccessfulWrites, Writer};
use crate::check::release_masks::ReleaseMasks;
use crate::check::second_look::SecondLook;
use crate::plan::graph::Order;
use crate::plan::saved::Deletion;
use crate::plan::stored::StoredDifference;
use crate::plan::{Plan, PlanWarning, Planned, refusal};

/// How long running requests may take after a signal.
const STOP_GRACE: Duration = Duration::from_secs(3);

/// How long running requests may take after the run's time limit. A single request may be retried for longer.
const LATE_GRACE: Duration = Duration::from_secs(10);

/// Lines that are told of the log of each container that fails, unless the user says otherwise.
pub const FAILURE_LOG_LINES: usize = 10;

/// User settings for applying a plan.
#[derive(Clone, Debug)]
pub struct Options {
    /// Wait until objects are ready or gone.
    pub wait: bool,
    /// Time limit for retrying one object's write.
    pub apply_timeout: Duration,
    /// Time limit for the whole run.
    pub wait_timeout: Duration,
    /// Time limit for one object; zero: the run's limit.
    pub wait_resource_timeout: Duration,
    /// How long an object's Pods may fail recoverably without progress; zero: until the wait ends.
    pub wait_failure_timeout: Duration,
    /// Whose logs are told.
    pub logs: LogsOf,
    /// How many lines are told of the log of each container that fails; 0: none.
    pub failure_log_lines: usize,
    /// A failed write stops everything not yet started.
    pub exit_early_on_apply_error: bool,
    /// A failed wait stops everything not yet started.
    pub exit_early_on_wait_error: bool,
    /// What is deleted.
    pub deletion: Deletion,
    /// Whether each stored object must be as its dry run showed it; kapp does not compare.
    pub compares_writes: bool,
    /// Waits for the first status of a custom resource if the app contains its controller; kapp does not.
    pub awaits_controllers: bool,
    /// Words for the states of awaited objects, in place of the engine's.
    pub wait_words: Option<Arc<dyn WaitWords>>,
}

/// Scheduling state of one object.
#[derive(Debug)]
struct ObjectState {
    progress: Progress,
    /// Last known state; `None` once nothing more depends on it.
    object: Option<Arc<Value>>,
    /// What the record will say of an object that is done.
    entry: Option<Entry>,
}

impl ObjectState {
    /// Keeps what the record says of the object, and lets go of the rest: of thousands of objects that would be much.
    fn done(&mut self, planned: &Planned) {
        self.progress = Progress::Done;
        if planned.operation().applies()
            && let Some(object) = self.object.take()
        {
            self.entry = Some(planned.entry(&object));
        }
    }

    fn waiting(&self) -> Option<&Waiting> {
        match &self.progress {
            Progress::Waiting(waiting) => Some(waiting),
            _ => None,
        }
    }

    fn waiting_mut(&mut self) -> Option<&mut Waiting> {
        match &mut self.progress {
            Progress::Waiting(waiting) => Some(waiting),
            _ => None,
        }
    }
}

/// Why the run starts nothing more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Cause {
    /// The user sent a signal.
    Signal,
    /// The run's time limit has passed.
    Late,
    /// The lock was lost.
    LockLost,
    /// The first write found an object that has changed since planning.
    PlanAgain,
    /// Something failed, and the options say to stop then.
    Failure,
}

/// Most objects whose first attempt to be written is under way: as many as the cluster may ever have requests. Each of
/// thousands would only hold a copy of its object in memory.
const SLOTS: usize = 256;

/// Writes under way.
struct Writes {
    /// Objects that can be written, and wait for a slot.
    ready: VecDeque<usize>,
    /// Free slots. What waits for its next attempt has none: it may wait for an object that has not been written yet.
    slots: Arc<Semaphore>,
    writer: Arc<Writer>,
    tasks: JoinSet<(usize, Result<Done, Failure>)>,
    /// Makes writes that wait for their next attempt give up.
    give_up: watch::Sender<bool>,
}

/// Result of a run.
#[derive(Debug)]
pub struct Outcome {
    /// Each object's progress, by index in the plan.
    pub progress: Vec<Progress>,
    /// Last known state of each object that is not done.
    pub objects: Vec<Option<Arc<Value>>>,
    /// What the record says of each object that was written.
    pub entries: Vec<Option<Entry>>,
    /// Number of changes actually made, by operation.
    pub done: Counts,
    /// Objects that are not done, as report lines.
    pub unfinished: Vec<UnfinishedLine>,
    /// The signal that stopped it, if any.
    pub stop: Stop,
    /// The time limit passed before everything was done.
    pub late: bool,
    /// The time limit.
    pub limit: Duration,
    /// The time limit of one object; zero: none.
    pub limit_of_object: Duration,
    /// Number of failed writes that fail again until the input is corrected.
    pub incorrect: usize,
    /// The lock was lost.
    pub lock_lost: bool,
    /// The first write found an object that has changed since planning: plan again.
    pub plan_again: bool,
    /// Custom resources that count as ready although no controller has reported on them.
    pub unreported: Vec<ObjectRef>,
    /// Objects whose second look refused the change, or that became something other than what was judged.
    pub refused: Vec<Refused>,
}

/// Carries out one plan.
pub struct Engine<'a> {
    plan: &'a Plan,
    config: &'a Config,
    options: &'a Options,
    events: Events,
    /// Whether controllers make objects ready and finalizers may delay deletion: true for an API server.
    server: bool,
    nodes: Vec<ObjectState>,
    by_key: BTreeMap<ObjectKey, usize>,
    /// Indices of awaited objects by uid.
    by_uid: BTreeMap<String, usize>,
    order: Order<'a>,
    queue: VecDeque<usize>,
    writes: Writes,
    view: View,
    /// Why the run starts nothing more; empty while it proceeds.
    stopped: BTreeSet<Cause>,
    done: Counts,
    /// Number of failed writes that fail again until the input is corrected.
    incorrect: usize,
    refused: Vec<Refused>,
    unreported: Vec<ObjectRef>,
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
        let selector = format!("{}={}", plan.observed.app.label_key(), plan.label_value);
        let node =
            |planned: &Planned| ObjectState { progress: Progress::Pending, object: planned.live.clone(), entry: None };
        let by_key = plan.objects.iter().enumerate().map(|(index, planned)| (planned.object.key(), index)).collect();
        let (give_up, gave_up) = watch::channel(false);
        Self {
            plan,
            config,
            options,
            events: events.clone(),
            server: cluster.capabilities().server,
            nodes: plan.objects.iter().map(node).collect(),
            by_key,
            by_uid: BTreeMap::new(),
            order: plan.graph.order(),
            queue: VecDeque::new(),
            view: View::new(Arc::clone(&cluster), selector),
            writes: Writes {
                writer: Arc::new(Writer {
                    cluster,
                    session,
                    label_key: plan.observed.app.label_key().to_owned(),
                    second_look,
                    events,
                    masker: Masker::new(&config.diff_mask_rules),
                    policy_masker: Masker::new(&config.policy_mask_rules),
                    compares_writes: options.compares_writes,
                    written: SuccessfulWrites::default(),
                    timeout: options.apply_timeout,
                    deletion: options.deletion,
                    gave_up,
                    uncertain: AtomicBool::new(false),
                }),
                ready: VecDeque::new(),
                slots: Arc::new(Semaphore::new(SLOTS)),
                tasks: JoinSet::new(),
                give_up,
            },
            stopped: BTreeSet::new(),
            done: Counts::default(),
            incorrect: 0,
            refused: Vec::new(),
            unreported: Vec::new(),
        }
    }

    /// Runs until every object is done, failed or stopped.
    pub async fn run(mut self, mut stop: watch::Receiver<Stop>) -> Outcome {
        if *stop.borrow() == Stop::No {
            tokio::select! {
                () = self.begin_logs() => {}
                _ = stop.changed() => stop.mark_changed(),
            }
        }
        let started = Instant::now();
        let deadline = started + self.options.wait_timeout;
        let mut stop_deadline: Option<Instant> = None;
        let mut stopped_for: Option<Duration> = None;
        let mut tick = tokio::time::interval(Duration::from_secs(1));
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        self.queue.extend(self.order.initial());
        loop {
            let interrupted = *stop.borrow() != Stop::No;
            let grace = match (interrupted, self.stopped.contains(&Cause::Late)) {
                (true, _) => Some((STOP_GRACE, Cause::Signal)),
                (false, true) => Some((LATE_GRACE, Cause::Late)),
                (false, false) => None,
            };
            if let Some((grace, cause)) = grace
                && stopped_for != Some(grace)
            {
                self.stop(cause);
                stopped_for = Some(grace);
                let end = Instant::now() + grace;
                stop_deadline = Some(stop_deadline.map_or(end, |known: Instant| known.min(end)));
            }
            self.start_writes();
            // Computed only when nothing else is left to do, since there may be as many events as objects.
            let waiting = || self.nodes.iter().any(|node| node.waiting().is_some());
            let is_idle = self.writes.tasks.is_empty() && self.writes.ready.is_empty() && self.queue.is_empty();
            if is_idle && (!self.stopped.is_empty() || !waiting()) {
                break;
            }
            tokio::select! {
                Some(written) = self.writes.tasks.join_next() => {
                    if let Ok((node, result)) = written {
                        self.on_written(node, result);
                    }
                }
                // Before the next turn of the loop starts the write.
                Ok(_) = Arc::clone(&self.writes.slots).acquire_owned(), if !self.writes.ready.is_empty() => {}
                Some(seen) = self.view.seen.recv() => {
                    self.on_seen(seen);
                    // A burst of events leads to one assessment.
                    while let Ok(seen) = self.view.seen.try_recv() {
                        self.on_seen(seen);
                    }
                }
                Some(look) = self.view.looks.join_next() => {
                    if let Ok(look) = look {
                        self.on_look(look);
                    }
                }
                _ = tick.tick() => self.on_tick(deadline),
                Ok(()) = stop.changed() => {}
                () = sleep_until(stop_deadline) => break,
            }
        }
        // No request may be in flight when the record is closed.
        self.writes.tasks.shutdown().await;
        let paused = self.resume_operators().await;
        let is_stopped = *stop.borrow_and_update() != Stop::No;
        let containers = tokio::select! {
            found = self.failed_containers(), if !is_stopped => found,
            _ = stop.changed(), if !is_stopped => BTreeMap::new(),
            else => BTreeMap::new(),
        };
        self.finish(*stop.borrow(), paused, containers)
    }

    /// Makes the run start and retry nothing more.
    fn stop(&mut self, cause: Cause) {
        self.stopped.insert(cause);
        self.writes.give_up.send_replace(true);
        self.writes.writer.cluster.turn_away();
    }

    fn is_deletion(&self, node: usize) -> bool {
        self.plan.objects[node].operation() == Operation::Delete
    }

    fn start_writes(&mut self) {
        while let Some(node) = self.queue.pop_front() {
            if !self.stopped.is_empty() {
                continue;
            }
            let planned = &self.plan.objects[node];
            if planned.operation() == Operation::Noop && !planned.resumes {
                self.wait_for(node, 0);
                self.update_readiness(node);
                continue;
            }
            self.nodes[node].progress =
                Progress::Writing(Writing { started: Instant::now(), heard: PendingUpdates::default() });
            if planned.reported_operation().writes() {
                self.events.send(Event::ChangeStart { object: planned.object.clone(), operation: planned.operation() });
            }
            self.writes.ready.push_back(node);
        }
        while let Some(node) = self.writes.ready.pop_front() {
            if !self.stopped.is_empty() {
                self.on_write_failed(node, &Failure::NotSent, Instant::now());
                continue;
            }
            let Ok(slot) = Arc::clone(&self.writes.slots).try_acquire_owned() else {
                self.writes.ready.push_front(node);
                break;
            };
            let writer = Arc::clone(&self.writes.writer);
            let planned = self.plan.objects[node].clone();
            self.writes.tasks.spawn(async move { (node, writer.write(&planned, slot).await) });
        }
    }

    fn on_written(&mut self, node: usize, result: Result<Done, Failure>) {
        let planned = &self.plan.objects[node];
        let operation = planned.operation();
        // The next state is decided below; nothing reads this one until then.
        let written = std::mem::replace(&mut self.nodes[node].progress, Progress::Pending);
        let Progress::Writing(Writing { started, heard }) = written else { return };
        let elapsed = started.elapsed();
        let done = match result {
            Ok(done) => done,
            Err(failure) => return self.on_write_failed(node, &failure, started),
        };
        for message in &done.warnings {
            self.warn(node, message);
        }
        let is_deletion = self.is_deletion(node);
        let is_going = is_deletion && done.terminating;
        if planned.reported_operation().writes() {
            if is_going {
                self.done.deleting += 1;
            } else {
                self.done.add_change(operation, self.plan.objects[node].is_orphaned());
            }
            self.events.send(Event::ChangeDone {
                object: planned.object.clone(),
                operation,
                outcome: if is_going { ChangeOutcome::Requested } else { ChangeOutcome::Ok },
                message: done.message,
                reason: String::new(),
                elapsed: elapsed.into(),
            });
        }
        let generation = done.object.as_deref().map(generation).unwrap_or_default();
        if is_deletion && !is_going {
            self.nodes[node].object = None;
            return self.complete(node);
        }
        self.nodes[node].object = done.object;
        if is_going && !(planned.wait && self.options.wait && self.server) {
            self.nodes[node].progress = Progress::Going;
            self.tell_completed(node);
            return self.release(node);
        }
        self.wait_for(node, generation);
        if is_going {
            self.view.watches.ensure(&planned.kind, &planned.object.namespace);
            self.update_deletion(node);
        } else {
            self.update_readiness(node);
        }
        self.catch_up(node, heard);
    }

    fn on_write_failed(&mut self, node: usize, failure: &Failure, started: Instant) {
        let planned = &self.plan.objects[node];
        let message = failure.message();
        if matches!(failure, Failure::LockLost) {
            self.stop(Cause::LockLost);
        }
        if matches!(failure, Failure::Changed(_) | Failure::Taken(_))
            && self.done.writes() == 0
            && self.writes.tasks.is_empty()
        {
            self.stop(Cause::PlanAgain);
        }
        match failure {
            Failure::Refused { refused, .. } => {
                let mut refused = (**refused).clone();
                let changes = ChangeSet { changes: vec![planned.change()], ..ChangeSet::default() };
                ReleaseMasks::new(self.config).hide(&changes, &mut refused.findings);
                for finding in &refused.findings {
                    self.events.send(Event::Finding { finding: Box::new(finding.clone()), excerpt: None });
                }
                self.refused.push(refused);
            }
            Failure::Differs { message, differences } => {
                let refused = difference_findings(&planned.object, message, differences);
                for finding in refused.findings.iter().filter(|_| self.options.compares_writes) {
                    self.events.send(Event::Finding { finding: Box::new(finding.clone()), excerpt: None });
                }
                self.refused.push(refused);
            }
            _ => {}
        }
        // It was written, or its old object deleted, and failed afterwards.
        if let Some(operation) = self.writes.writer.written.of(&planned.object) {
            self.done.add(operation);
        }
        self.incorrect += usize::from(failure.is_permanent());
        let stopped = matches!(failure, Failure::Stopped(_) | Failure::NotSent);
        self.events.send(Event::ChangeDone {
            object: planned.object.clone(),
            operation: planned.operation(),
            outcome: if stopped { ChangeOutcome::Skipped } else { ChangeOutcome::Failed },
            message: message.clone(),
            reason: failure.reason().to_owned(),
            elapsed: started.elapsed().into(),
        });
        if stopped {
            let is_unsent = matches!(failure, Failure::NotSent);
            self.nodes[node].progress = match planned.operation() {
                _ if is_unsent => Progress::Pending,
                Operation::Exists => still_absent(started),
                _ => Progress::Stopped(message),
            };
            return;
        }
        self.nodes[node].progress = Progress::WriteFailed(message);
        self.skip_dependents(node);
        if self.options.exit_early_on_apply_error {
            self.stop(Cause::Failure);
        }
    }

    /// Tells a warning of the server, unless the plan has told it.
    fn warn(&self, node: usize, message: &str) {
        let is_told = |warning: &PlanWarning| warning.object == Some(node) && warning.message == message;
        if self.plan.warnings.iter().any(is_told) {
            return;
        }
        let planned = &self.plan.objects[node];
        let given = planned.desired.as_deref().zip(planned.positions.as_ref());
        self.events.send(Event::Warning {
            code: "server".to_owned(),
            message: message.to_owned(),
            object: Some(planned.object.clone()),
            position: given.and_then(|(object, positions)| refusal::place_of_warning(message, object, positions)),
        });
    }

    fn finish(
        mut self,
        stop: Stop,
        paused: Vec<UnfinishedLine>,
        containers: BTreeMap<usize, Vec<FailedContainer>>,
    ) -> Outcome {
        // What was only looked for is no write that was cut off.
        for (state, planned) in self.nodes.iter_mut().zip(&self.plan.objects) {
            if let (Operation::Exists, Progress::Writing(looking)) = (planned.operation(), &state.progress) {
                state.progress = still_absent(looking.started);
            }
        }
        for (node, state) in self.nodes.iter().enumerate() {
            if let Some(waiting) = state.waiting() {
                let explanation = waiting.explanation().cloned().unwrap_or_default();
                self.tell_done(node, waiting.since, WaitOutcome::Interrupted, explanation);
            }
        }
        let mut unfinished = self.unfinished(containers);
        unfinished.extend(paused);
        let (mut progress, mut objects, mut entries) = (Vec::new(), Vec::new(), Vec::new());
        for (state, planned) in self.nodes.into_iter().zip(&self.plan.objects) {
            let written = state.object.as_deref().filter(|_| planned.operation().applies());
            entries.push(state.entry.or_else(|| written.map(|object| planned.entry(object))));
            progress.push(state.progress);
            objects.push(state.object);
        }
        Outcome {
            progress,
            objects,
            entries,
            done: self.done,
            unfinished,
            stop,
            late: self.stopped.contains(&Cause::Late),
            limit: self.options.wait_timeout,
            limit_of_object: self.options.wait_resource_timeout,
            incorrect: self.incorrect,
            lock_lost: self.stopped.contains(&Cause::LockLost),
            plan_again: self.stopped.contains(&Cause::PlanAgain),
            refused: self.refused,
            unreported: self.unreported,
        }
    }
}

/// What the reports show of an object that the server stored otherwise.
fn difference_findings(object: &ObjectRef, message: &str, differences: &[StoredDifference]) -> Refused {
    let differences = differences.iter().map(|it| (it.path.clone(), it.announced.clone(), it.stored.clone()));
    Refused::by_differences(object, message, differences)
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
