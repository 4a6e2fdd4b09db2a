//! The writing part of a run: lock and inventory, history, the engine, the final record.

use std::sync::Arc;
use std::time::Duration;

use pushback_app::history::{self, ChangeSummary, Judged};
use pushback_app::inventory::Inventory;
use pushback_app::moving::Place;
use pushback_app::record::{AppError, Phase};
use pushback_app::session::{Opening, Session};
use pushback_cluster::{ErrorKind, LocalLock, reviews};
use pushback_deploy::apply::engine::{Engine, Outcome, Progress};
use pushback_deploy::check::report::PolicyReport;
use pushback_deploy::plan::Plan;
use pushback_events::stop::Stop;
use pushback_events::{Counts, Event};
use pushback_preflight::Operation;
use serde_json::Value;
use tokio::time::Instant;

use super::error::CommandError;
use super::judging::{self, PreflightResult};
use super::options::WriteOptions;
use super::running::Run;
use super::setup::Setup;
use super::signals::{until_dismissed, until_stopped};

/// How long to keep trying to write the record after a signal.
const GRACE_PERIOD: Duration = Duration::from_secs(5);

/// How the writing part ended.
#[derive(Debug)]
pub enum WriteEnd {
    /// The engine ran.
    Done(Box<Outcome>),
    /// Nothing was written: the cluster has changed since planning.
    ClusterChanged,
    /// Nothing was written: another run has changed the app since planning.
    AppChanged,
}

/// Takes this machine's lock for the app, if the cluster has none of its own. Dropping the lock releases it, and so does
/// the end of a session that holds it.
///
/// # Errors
/// It is held for too long, or the user sent a signal.
pub async fn lock_locally(run: &Run, setup: &Setup, patience: Duration) -> Result<Option<LocalLock>, CommandError> {
    let deadline = Instant::now() + patience;
    let take = async {
        loop {
            match setup.cluster.local_lock(&setup.app.namespace, &setup.app.name).await {
                Ok(lock) => return Ok(lock),
                Err(error) if error.kind == ErrorKind::Locked && Instant::now() < deadline => {
                    tokio::time::sleep(Duration::from_millis(200)).await;
                }
                Err(error) => return Err(error.into()),
            }
        }
    };
    until_stopped(run.stop.clone(), take).await
}

/// Context of the writing part.
#[derive(Debug)]
pub struct Writing<'a> {
    /// The run.
    pub run: &'a Run,
    /// Cluster, app and Config.
    pub setup: &'a Setup,
    /// Writing options.
    pub write: &'a WriteOptions,
    /// Result of preflight: the report is for the history.
    pub judged: &'a PreflightResult,
}

/// What a write has to do with the app's history.
#[derive(Default)]
struct HistoryEntries {
    /// The name of the entry for this change.
    started: Option<String>,
    /// The entries that go with a deleted app.
    deleted: Vec<Arc<Value>>,
}

impl Writing<'_> {
    /// Carries out a plan.
    ///
    /// # Errors
    /// The cluster's error before the first write, or a signal before the cluster accepted the lock.
    pub async fn carry_out(&self, plan: &Plan, local_lock: Option<LocalLock>) -> Result<WriteEnd, CommandError> {
        let settled = plan.observed.record.as_ref().is_some_and(|record| {
            record.own.as_ref().is_some_and(|own| own.phase == Phase::Done) && record.lock.is_none()
        }) && plan.observed.inventory_void.is_none()
            && !plan.forgets
            && plan.observed.record.as_ref().is_none_or(|record| {
                self.setup.record.written.labels.iter().all(|(key, value)| record.labels.get(key) == Some(value))
            });
        if !plan.deletes_app && !self.is_change(plan) && !plan.has_writes() && settled {
            // Nothing to write, not even the record: only readiness is checked.
            let outcome = self.engine(plan, None).await;
            return Ok(WriteEnd::Done(Box::new(outcome)));
        }
        let union = plan.union_inventory();
        let opening = Opening {
            observed: &plan.observed,
            label_value: &plan.label_value,
            labels: &self.setup.record.written.labels,
            record_name: &Place::of(&self.setup.app, self.setup.record.written.fq_configmap_names).record,
            inventory: &union,
            kinds: &plan.kinds(true),
            run: &self.run.id,
            phase: if plan.deletes_app { Phase::Deleting } else { Phase::Applying },
            lease: self.write.lock.lease,
            accepted: self.judged.report.accepted(),
        };
        let opened = Session::open(Arc::clone(&self.setup.cluster), &self.run.environment, opening, local_lock);
        let session = match until_dismissed(self.run.stop.clone(), GRACE_PERIOD, opened).await {
            Ok(Ok(session)) => Arc::new(session),
            Ok(Err(AppError::Changed { .. })) => return Ok(WriteEnd::AppChanged),
            Ok(Err(error)) => return Err(error.into()),
            Err(code) => {
                self.run.warn("record", "the cluster does not answer; if it has given this run the lock, that expires");
                return Err(CommandError::stopped(code));
            }
        };
        let summary = self.summary(plan);
        // The record already contains the run; no need to wait for its history.
        let engine = self.engine(plan, Some(Arc::clone(&session)));
        let history = until_dismissed(self.run.stop.clone(), GRACE_PERIOD, self.history(plan, &summary));
        let (history, outcome) = futures::join!(history, engine);
        let history = history.unwrap_or_default();
        let succeeded = outcome.progress.iter().all(|progress| matches!(progress, Progress::Done | Progress::Going));
        let summary = ChangeSummary { successful: Some(succeeded), finished_at: self.now(), ..summary };
        let finishing = self.finish(plan, session, union, &outcome, &history, summary);
        if outcome.stop == Stop::No {
            finishing.await;
        } else if tokio::time::timeout(GRACE_PERIOD, finishing).await.is_err() {
            self.run
                .warn("record", "the cluster does not answer, so the app's lock is not released: it expires by itself");
        }
        self.report_refusals(plan, &outcome);
        Ok(if outcome.plan_again { WriteEnd::ClusterChanged } else { WriteEnd::Done(Box::new(outcome)) })
    }

    /// Writes history and record and releases the lock, after the last write.
    async fn finish(
        &self,
        plan: &Plan,
        session: Arc<Session>,
        union: Inventory,
        outcome: &Outcome,
        history: &HistoryEntries,
        summary: ChangeSummary,
    ) {
        // Without the lock the record belongs to another run, and waiting for an unavailable server is pointless.
        if outcome.lock_lost {
            return;
        }
        let cluster = &*self.setup.cluster;
        let app = &plan.observed.app;
        let note = async {
            if let Some(name) = &history.started
                && let Err(error) = history::finish(cluster, app, name, &summary).await
            {
                self.run.warn("history", error.to_string());
            }
        };
        let keep = self.write.history;
        let trim = async {
            // The new entry is never among those removed.
            let is_recorded = plan.observed.record.is_some() && app.defining_label().is_none();
            if (history.started.is_some() || keep == 0) && is_recorded {
                let deleted = history::trim(cluster, app, &plan.label_value, keep).await;
                if deleted > 0 {
                    self.run.events.send(Event::HistoryTrimmed { deleted });
                }
            }
        };
        futures::join!(note, self.close(plan, session, union, outcome, history, &summary), trim);
    }

    async fn engine(&self, plan: &Plan, session: Option<Arc<Session>>) -> Outcome {
        let cluster = Arc::clone(&self.setup.cluster);
        let (second_look, events) = (Some(Arc::clone(&self.judged.second_look)), self.run.events.clone());
        let engine = Engine::new(plan, &self.setup.config, &self.write.engine, cluster, session, second_look, events);
        engine.run(self.run.stop.clone()).await
    }

    /// Adds later refusals to the reports, which were written with the verdict.
    fn report_refusals(&self, plan: &Plan, outcome: &Outcome) {
        if outcome.refused.is_empty() {
            return;
        }
        let report = self.judged.report.clone().revised(&outcome.refused);
        if let Err(error) = judging::report(self.run, self.setup, plan, &report) {
            self.run.warn("report", error.message());
        }
    }

    async fn judged(&self) -> Judged<'_> {
        let policy = PolicyReport::of(self.setup.policy_source.clone(), &self.judged.report);
        let around = &self.run.environment;
        let is_server = self.setup.cluster.capabilities().server;
        let mut by = if is_server { format!("{}@{}", around.user, around.host) } else { String::new() };
        // kapp does not ask for it.
        if is_server && self.setup.observer.is_none() {
            let user = reviews::user(&*self.setup.cluster).await;
            by = user.map_or(by.clone(), |user| format!("{user} ({by})"));
        }
        Judged {
            findings: &self.judged.report.findings,
            policy: serde_json::to_value(policy).unwrap_or_default(),
            by,
            revision: self.setup.revision.get().cloned().flatten().filter(|_| is_server),
        }
    }

    async fn start_history(&self, plan: &Plan, summary: &ChangeSummary) -> Option<String> {
        let is_recorded = self.write.history > 0 && plan.observed.app.defining_label().is_none();
        if !self.is_change(plan) || !is_recorded {
            return None;
        }
        let cluster = &*self.setup.cluster;
        let run = if cluster.capabilities().server { self.run.id.as_str() } else { "" };
        match history::start(cluster, &plan.observed.app, &plan.label_value, summary, run, &self.judged().await).await {
            Ok(name) => Some(name),
            Err(error) => {
                self.run.warn("history", error.to_string());
                None
            }
        }
    }

    /// Starts the history entry of a change, or finds the entries that go with a deleted app.
    async fn history(&self, plan: &Plan, summary: &ChangeSummary) -> HistoryEntries {
        if !plan.deletes_app {
            return HistoryEntries { started: self.start_history(plan, summary).await, deleted: Vec::new() };
        }
        let app = &plan.observed.app;
        let entries = match app.defining_label() {
            Some(_) => Ok(Vec::new()),
            None => history::entries(&*self.setup.cluster, app, &plan.label_value).await,
        };
        // Best effort, as their deletion is.
        HistoryEntries { started: None, deleted: entries.unwrap_or_default() }
    }

    /// Writes the final record. If that fails, the union of inventories remains, and the next run corrects it.
    async fn close(
        &self,
        plan: &Plan,
        session: Arc<Session>,
        union: Inventory,
        outcome: &Outcome,
        history: &HistoryEntries,
        summary: &ChangeSummary,
    ) {
        let Some(session) = Arc::into_inner(session) else {
            self.run.warn("record", "a write is still under way; the next run finishes the record");
            return;
        };
        let complete = outcome.progress.iter().all(|progress| *progress == Progress::Done);
        let closed = if plan.deletes_app && complete {
            session.close_deleted(&history.deleted).await
        } else {
            let finished = written(plan, outcome);
            let inventory = final_inventory(plan, union, outcome);
            let phase = match plan.deletes_app {
                // While the record exists, so does something of the app.
                true => Phase::Deleting,
                false if finished => Phase::Done,
                false => Phase::Interrupted,
            };
            let change = summary.to_json();
            // Without history the change has no name; its result is recorded all the same.
            let unnamed = plan.has_changes() && self.write.history == 0;
            let last_change = history.started.as_deref().or(unnamed.then_some("")).map(|name| (name, &change));
            session.close(phase, &inventory, &plan.kinds(!finished || plan.deletes_app), last_change).await
        };
        if let Err(error) = closed {
            self.run.warn("record", format!("{error}; the next run puts the record right"));
        }
    }

    fn now(&self) -> String {
        if self.setup.cluster.capabilities().server { self.run.environment.now() } else { String::new() }
    }

    /// Whether it is a change of the app, for its history.
    fn is_change(&self, plan: &Plan) -> bool {
        plan.has_changes() || self.setup.counts_unwritten(plan)
    }

    fn summary(&self, plan: &Plan) -> ChangeSummary {
        let (mut counts, mut gone, mut ready, mut at_once) = (Counts::default(), 0, 0, 0);
        for planned in &plan.objects {
            let other = self.setup.counted_as(planned);
            let operation = match planned.reported_operation() {
                Operation::Noop => other,
                Operation::Exists => planned.live.is_none().then_some(Operation::Exists),
                operation => Some(operation),
            };
            let Some(operation) = operation else { continue };
            counts.add(operation);
            let waits = self.write.engine.wait && (planned.wait || planned.is_orphaned() || other.is_some());
            *match operation {
                _ if !waits => &mut at_once,
                Operation::Delete => &mut gone,
                _ => &mut ready,
            } += 1;
        }
        let Counts { create, update, replace, delete, noop, exists, .. } = counts;
        ChangeSummary {
            started_at: self.now(),
            description: format!(
                "update: Op: {create} create, {delete} delete, {} update, {noop} noop, {exists} exists / \
                 Wait to: {ready} reconcile, {gone} delete, {at_once} noop",
                update + replace
            ),
            namespaces: plan.namespaces(),
            ..ChangeSummary::default()
        }
    }
}

/// Whether every write succeeded; objects need not be ready.
fn written(plan: &Plan, outcome: &Outcome) -> bool {
    outcome.progress.iter().zip(&plan.objects).all(|(progress, planned)| match progress {
        Progress::Done | Progress::Going => true,
        Progress::Waiting(_) | Progress::TimedOut(_) | Progress::NeverReady(_) => {
            planned.operation() != Operation::Delete
        }
        Progress::Pending | Progress::Skipped(_) | Progress::Stopped(_) => !planned.operation().writes(),
        Progress::Writing(_) | Progress::WriteFailed(_) => false,
    })
}

/// Objects that exist after the run, as far as is known.
fn final_inventory(plan: &Plan, mut inventory: Inventory, outcome: &Outcome) -> Inventory {
    for ((planned, progress), known) in plan.objects.iter().zip(&outcome.progress).zip(&outcome.entries) {
        let key = planned.object.key();
        let waited =
            matches!(progress, Progress::Done | Progress::Waiting(_) | Progress::TimedOut(_) | Progress::NeverReady(_));
        match planned.operation() {
            Operation::Create | Operation::Update | Operation::Replace if waited => {
                if let Some(entry) = known {
                    inventory.insert(key, entry.clone());
                }
            }
            // The record must not claim what was never created. An object being deleted is the app's until it is gone.
            Operation::Create
                if matches!(progress, Progress::Pending | Progress::Skipped(_))
                    && inventory.get(&key).is_some_and(|entry| entry.uid.is_empty()) =>
            {
                inventory.remove(&key);
            }
            Operation::Delete if *progress == Progress::Done => {
                inventory.remove(&key);
            }
            Operation::Noop => {
                // An object that the server compared and found equal is known from now on.
                let known = inventory.get(&key).is_some_and(|entry| !entry.live_digest.is_empty());
                if let (false, Some(live)) = (known, planned.live.as_deref()) {
                    inventory.insert(key, planned.entry(live));
                }
            }
            _ => {}
        }
    }
    inventory
}
