//! The stages of one experiment: steady state, journal, injection, observation, revert, steady state again. Once the
//! journal is written, every path leads to the end of `finish`.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use pushback_preflight::experiment::{Check, Experiment, InjectionType};
use pushback_preflight::{ObjectExt, ObjectKey};
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::Instant;

use super::change::{Change, Step};
use super::inject::{self, Planned, Refusal, Site};
use super::journal::{Draft, Journal, StoredJournal};
use super::lock::Locks;
use super::outcome::{Outcome, Verdict};
use super::probe::{self, SLOW_SECONDS};
use super::revert::{Requester, RevertOutcome, revert};
use super::steady::{self, POLL, all_pass};
use crate::cluster::{Cluster, ClusterError, ErrorKind, Kinds, ListQuery, list_all};
use crate::environment::Environment;
use crate::stop::Stop;

/// Default time limit for reaching the steady state.
const SETTLE: Duration = Duration::from_secs(30);
/// Most attempts to revert while the cluster does not answer.
const REVERT_ATTEMPTS: u32 = 10;

/// Runs experiments one after the other.
pub struct Runner<'a> {
    /// The cluster.
    pub cluster: Arc<dyn Cluster>,
    /// Source of time and random ids.
    pub environment: &'a Environment,
    /// Id of the run.
    pub run: &'a str,
    /// The user's limits.
    pub site: &'a Site,
    /// Locks that the run holds on the namespaces.
    pub locks: &'a Locks,
    /// Set by a signal, which ends the observation but never the revert.
    pub stop: watch::Receiver<Stop>,
    /// If a new release has been applied since the injection: the objects of the old one that it removed.
    pub released: Option<&'a BTreeSet<ObjectKey>>,
    /// Reports progress, without values.
    pub tell: &'a (dyn Fn(String) + Send + Sync),
}

impl fmt::Debug for Runner<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runner").field("run", &self.run).finish_non_exhaustive()
    }
}

/// An experiment whose injection is in place.
#[derive(Debug)]
pub struct ActiveExperiment<'a> {
    experiment: &'a Experiment,
    planned: Planned,
    journal: Option<StoredJournal>,
    /// Number of ready Pods that a PodKill's selector matched before it.
    ready_before: usize,
    healed: bool,
    /// Why it proves nothing, if so.
    void: Option<String>,
    outcome: Outcome,
}

impl ActiveExperiment<'_> {
    /// The injected changes.
    #[must_use]
    pub fn steps(&self) -> &[Step] {
        self.journal.as_ref().map_or(&[], |stored| &stored.journal.steps)
    }

    /// Marks the experiment as void: what it tests did not happen. It is still reverted.
    pub fn make_void(&mut self, reason: &str) {
        self.void = Some(reason.to_owned());
    }
}

impl Runner<'_> {
    /// Runs one experiment from start to end.
    pub async fn execute(&self, experiment: &Experiment, number: usize) -> Outcome {
        match self.begin(experiment, number).await {
            Ok(mut begun) => {
                self.observe(&mut begun).await;
                self.finish(begun).await
            }
            Err(outcome) => *outcome,
        }
    }

    /// Runs the stages up to and including the injection.
    ///
    /// # Errors
    /// The outcome of an experiment that was not made; nothing is left of it unless its journal remains.
    pub async fn begin<'e>(
        &self,
        experiment: &'e Experiment,
        number: usize,
    ) -> Result<ActiveExperiment<'e>, Box<Outcome>> {
        let mut outcome = blank(experiment);
        if let Err(refusal) = inject::admit(experiment, self.site) {
            return Err(refused(outcome, &refusal));
        }
        (self.tell)(format!("{}: checking the steady state", experiment.name));
        outcome.before = steady::settle(&*self.cluster, experiment, &experiment.checks, patience(experiment)).await;
        if !all_pass(&outcome.before) {
            return Err(ended(outcome, Verdict::Inconclusive, "the steady state did not hold before"));
        }
        let kinds = self.cluster.kinds().await.map_err(|error| unasked(outcome.clone(), &error))?;
        let id = format!("{}-{number}", self.run);
        let mut planned = match inject::plan(&*self.cluster, &kinds, experiment, &id).await {
            Ok(planned) => planned,
            Err(refusal) => return Err(refused(outcome, &refusal)),
        };
        if let Err(error) = self.rehearse(&kinds, &mut planned).await {
            let reason = format!("the server would refuse the injection: {error}");
            return Err(ended(outcome, Verdict::Inconclusive, reason));
        }
        outcome.notes.append(&mut planned.notes.clone());
        outcome.changes = planned.steps.iter().map(Step::describe).collect();
        let ready_before = self.ready_pods(&kinds, experiment).await.unwrap_or_default();
        let mut begun =
            ActiveExperiment { experiment, planned, journal: None, ready_before, healed: false, void: None, outcome };
        if begun.planned.steps.is_empty() {
            return Ok(begun);
        }
        let locked = tokio::select! {
            locked = self.locks.confirmed() => locked,
            () = self.stopped() => Ok(()),
        };
        if self.is_stopped() || locked.is_err() {
            let reason = if self.is_stopped() { "interrupted" } else { "the lock of its namespace was lost" };
            return Err(ended(begun.outcome, Verdict::Inconclusive, reason));
        }
        let steps = begun.planned.steps.clone();
        let kind = experiment.injection.kind.as_str();
        let journal = Journal::new(self.run, &experiment.name, kind, &self.environment.now(), steps);
        let written = match Draft::new(&kinds, experiment.injection_namespace(), &id, journal) {
            Ok(draft) => draft.write(&*self.cluster).await,
            Err(error) => Err(error),
        };
        let stored = match written {
            Ok(stored) => stored,
            Err(error) => {
                let reason = format!("its journal could not be written: {error}");
                return Err(ended(begun.outcome, Verdict::Inconclusive, reason));
            }
        };
        (self.tell)(format!("{}: {kind}: {}", experiment.name, begun.outcome.changes.join("; ")));
        let mark = stored.mark.clone();
        begun.journal = Some(stored);
        for step in &begun.planned.steps {
            let Err(error) = inject::make(&*self.cluster, &kinds, step, &mark, false).await else { continue };
            // The response may be lost although the change was made.
            if error.ambiguous && inject::was_made(&*self.cluster, &kinds, step, &mark).await.unwrap_or(true) {
                continue;
            }
            let mut outcome = self.finish(begun).await;
            outcome.verdict = outcome.verdict.max(Verdict::Inconclusive);
            outcome.reason = format!("the injection failed: {error}");
            return Err(Box::new(outcome));
        }
        Ok(begun)
    }

    /// Sends each change as a dry run: a refused one is never made, and the server's resulting value is what the revert
    /// will look for.
    async fn rehearse(&self, kinds: &Kinds, planned: &mut Planned) -> Result<(), ClusterError> {
        for step in &mut planned.steps {
            let Some(made) = inject::make(&*self.cluster, kinds, step, "rehearsal", true).await? else { continue };
            if !step.rehearsed(&made.before, &made.after) {
                let message = format!("the server does not keep the value: {} would stay as before", step.target);
                return Err(ClusterError::new(ErrorKind::Invalid, message));
            }
        }
        Ok(())
    }

    /// Observes the cluster with the injection in place, until it has recovered or the time is over.
    pub async fn observe(&self, begun: &mut ActiveExperiment<'_>) {
        let experiment = begun.experiment;
        let checks = self.checks(experiment);
        let started = Instant::now();
        let end = started + observation(experiment);
        if experiment.injection.kind == InjectionType::WebhookDisrupt {
            self.measure(begun).await;
        }
        let mut stop = self.stop.clone();
        loop {
            begun.outcome.under_fault = steady::look(&*self.cluster, experiment, &checks).await;
            begun.healed = begun.planned.heals && self.has_healed(begun).await;
            if begun.healed && all_pass(&begun.outcome.under_fault) {
                begun.outcome.recovery_seconds = Some((started.elapsed().as_secs_f64() * 10.0).round() / 10.0);
                return;
            }
            // Without an injection there is nothing to wait for.
            if begun.journal.is_none() || Instant::now() >= end || self.is_stopped() {
                return;
            }
            let next = end.min(Instant::now() + POLL);
            tokio::select! {
                () = tokio::time::sleep_until(next) => {}
                // Without a sender there will be no signal.
                Ok(()) = stop.changed() => {}
            }
        }
    }

    /// Reverts everything, waits for the steady state to return, and decides the verdict.
    pub async fn finish(&self, mut begun: ActiveExperiment<'_>) -> Outcome {
        let experiment = begun.experiment;
        let was_stopped = self.is_stopped();
        if let Some(journal) = begun.journal.take() {
            (self.tell)(format!("{}: taking back", experiment.name));
            if let Err(error) = self.take_back(&journal, &mut begun.outcome).await {
                begun.outcome.revert_error = error.to_string();
            }
        }
        let patience = if begun.void.is_some() { Duration::ZERO } else { patience(experiment) };
        begun.outcome.after = steady::settle(&*self.cluster, experiment, &self.checks(experiment), patience).await;
        let (verdict, reason) = verdict(&begun, was_stopped);
        (self.tell)(format!("{}: {}: {reason}", experiment.name, verdict.as_str()));
        Outcome { verdict, reason, ..begun.outcome }
    }

    /// Reverts in reverse order, and deletes the journal once everything is restored: it is the only record of the old
    /// state.
    async fn take_back(&self, journal: &StoredJournal, outcome: &mut Outcome) -> Result<(), ClusterError> {
        let kinds = self.cluster.kinds().await?;
        let (mut failed, mut altered) = (None, Vec::new());
        for step in journal.journal.steps.iter().rev() {
            match self.take_one_back(&kinds, step, &journal.mark).await {
                Ok(reverted) => {
                    if let RevertOutcome::Altered(what) = &reverted {
                        altered.push(what.clone());
                    }
                    self.note_reverted(step, reverted, outcome);
                }
                Err(error) => failed = Some(error),
            }
        }
        journal.note_altered(&*self.cluster, &altered).await?;
        if let Some(error) = failed {
            return Err(error);
        }
        if !outcome.not_restored.is_empty() {
            outcome.notes.push(format!("{} is kept: it says what was there before", journal.address));
            return Ok(());
        }
        journal.remove(&*self.cluster).await
    }

    async fn take_one_back(&self, kinds: &Kinds, step: &Step, mark: &str) -> Result<RevertOutcome, ClusterError> {
        let requester = if self.released.is_some() { Requester::RunAfterUpgrade } else { Requester::Run };
        let mut attempt = 0;
        loop {
            match revert(&*self.cluster, kinds, step, mark, requester).await {
                Err(error) if attempt < REVERT_ATTEMPTS && may_pass(&error) => {
                    attempt += 1;
                    tokio::time::sleep(POLL).await;
                }
                done => return done,
            }
        }
    }

    fn note_reverted(&self, step: &Step, reverted: RevertOutcome, outcome: &mut Outcome) {
        let removes = |released: &BTreeSet<ObjectKey>| released.contains(&step.target.reference().key());
        match reverted {
            RevertOutcome::Restored | RevertOutcome::Nothing | RevertOutcome::Replaced => {}
            RevertOutcome::Released(what) => outcome.deviate("set_by_release", what),
            RevertOutcome::Gone(what) if self.released.is_some_and(removes) => {
                outcome.deviate("removed_by_release", what);
            }
            RevertOutcome::Gone(what) | RevertOutcome::Left(what) | RevertOutcome::Altered(what) => {
                outcome.deviate("changed_by_another", what.clone());
                outcome.not_restored.push(what);
            }
        }
    }

    async fn has_healed(&self, begun: &ActiveExperiment<'_>) -> bool {
        let Ok(kinds) = self.cluster.kinds().await else { return false };
        for step in &begun.planned.steps {
            let Ok(address) = step.target.address(&kinds) else { return false };
            let Ok(live) = self.cluster.get(&address).await else { return false };
            if !is_healed(step, live.as_deref()) {
                return false;
            }
        }
        begun.experiment.injection.kind != InjectionType::PodKill
            || self.ready_pods(&kinds, begun.experiment).await.is_some_and(|ready| ready >= begun.ready_before)
    }

    /// Number of ready Pods that a PodKill targets; `None` if they cannot be listed.
    async fn ready_pods(&self, kinds: &Kinds, experiment: &Experiment) -> Option<usize> {
        if experiment.injection.kind != InjectionType::PodKill {
            return Some(0);
        }
        let selector = experiment.injection.parameters.get("labelSelector")?;
        let kind = kinds.find("", "v1", "Pod")?;
        let query = ListQuery::new(Arc::clone(kind), Some(experiment.injection_namespace()), selector);
        let pods = list_all(&*self.cluster, &query).await.ok()?.items;
        Some(pods.iter().filter(|pod| !pod.is_terminating() && is_ready(pod)).count())
    }

    /// WebhookDisrupt: measures admission under the changed policy.
    async fn measure(&self, begun: &mut ActiveExperiment<'_>) {
        let experiment = begun.experiment;
        let measured = async {
            let kinds = self.cluster.kinds().await?;
            let mut all = Vec::new();
            for target in &begun.planned.measured {
                if let Some(live) = self.cluster.get(&target.address(&kinds)?).await? {
                    all.push(probe::measure(&*self.cluster, &kinds, &live, experiment.injection_namespace()).await?);
                }
            }
            Ok::<_, ClusterError>(all)
        };
        let outcome = &mut begun.outcome;
        match measured.await {
            Err(error) => outcome.notes.push(format!("admission could not be measured: {error}")),
            Ok(all) => all.into_iter().for_each(|measured| note(measured, outcome)),
        }
    }

    /// The steady state of the release that runs now.
    fn checks(&self, experiment: &Experiment) -> Vec<Check> {
        match self.released {
            Some(_) => experiment.checks_after_upgrade(),
            None => experiment.checks.clone(),
        }
    }

    fn is_stopped(&self) -> bool {
        *self.stop.borrow() != Stop::No
    }

    async fn stopped(&self) {
        if self.stop.clone().wait_for(|stop| *stop != Stop::No).await.is_err() {
            // Without a sender there will be no signal.
            std::future::pending::<()>().await;
        }
    }
}

/// Adds measurements to the outcome.
fn note(measured: probe::Measurements, outcome: &mut Outcome) {
    for admission in &measured.inside {
        if admission.answer == "unavailable" {
            outcome.deviate("admission_unavailable", format!("webhook {}: {}", admission.webhook, admission.detail));
        }
        if admission.seconds > SLOW_SECONDS {
            let seconds = admission.seconds;
            outcome.deviate("slow_admission", format!("webhook {} took {seconds:.1} s", admission.webhook));
        }
    }
    if let Some(outside) =
        measured.outside.as_ref().filter(|outside| ["denied", "unavailable"].contains(&outside.answer))
    {
        outcome.deviate("outside_scope_affected", format!("{}: {}", outside.request, outside.detail));
    }
    outcome.admissions.extend(measured.inside);
    outcome.admissions.extend(measured.outside);
    outcome.notes.extend(measured.notes);
}

fn is_healed(step: &Step, live: Option<&Value>) -> bool {
    match (&step.change, live) {
        (Change::Fields(fields), Some(live)) => {
            fields.iter().all(|field| field.place.get(live) == field.before.as_ref())
        }
        (Change::Deleted(_), Some(live)) => live.uid() != step.target.uid && !live.is_terminating(),
        (Change::Killed, live) => live.is_none_or(|live| live.uid() != step.target.uid),
        _ => false,
    }
}

fn is_ready(pod: &Value) -> bool {
    let conditions = pod.pointer("/status/conditions").and_then(Value::as_array).into_iter().flatten();
    conditions.into_iter().any(|condition| condition.text("/type") == "Ready" && condition.text("/status") == "True")
}

fn verdict(begun: &ActiveExperiment<'_>, was_stopped: bool) -> (Verdict, String) {
    let outcome = &begun.outcome;
    let has = |name: &str| outcome.deviations.iter().any(|deviation| deviation.name == name);
    let said = |verdict, reason: &str| (verdict, reason.to_owned());
    if !outcome.revert_error.is_empty() {
        let reason = format!("it could not be reverted: {}; its journal is kept", outcome.revert_error);
        return (Verdict::Failed, reason);
    }
    if !outcome.not_restored.is_empty() {
        return (Verdict::Failed, format!("not everything is as before: {}", outcome.not_restored.join("; ")));
    }
    if let Some(reason) = &begun.void {
        return said(Verdict::Inconclusive, reason);
    }
    if !all_pass(&outcome.after) {
        return said(Verdict::Failed, "the steady state did not come back after the injection was reverted");
    }
    if was_stopped {
        return said(Verdict::Inconclusive, "interrupted; the injection is reverted");
    }
    if has("outside_scope_affected") {
        return said(Verdict::Failed, "a request outside of the webhook's scope was refused");
    }
    if !all_pass(&outcome.under_fault) {
        return said(Verdict::Degraded, "the steady state came back only after the injection was reverted");
    }
    if begun.planned.heals && !begun.healed {
        return said(Verdict::Degraded, "nobody undid it in time; the steady state held");
    }
    if has("admission_unavailable") {
        return said(Verdict::Degraded, "requests in the webhook's scope were not answered");
    }
    if outcome.under_fault.is_empty() && !begun.planned.heals && outcome.admissions.is_empty() {
        return said(Verdict::Inconclusive, "it has no steady-state check: nothing tells whether it held");
    }
    match outcome.recovery_seconds {
        Some(seconds) => (Verdict::Resilient, format!("as before by itself after {seconds} s")),
        None => said(Verdict::Resilient, "the steady state held"),
    }
}

/// Whether an error may be transient.
fn may_pass(error: &ClusterError) -> bool {
    matches!(
        error.kind,
        ErrorKind::Unreachable
            | ErrorKind::Timeout
            | ErrorKind::Server
            | ErrorKind::Busy
            | ErrorKind::Conflict
            | ErrorKind::WebhookUnavailable
    )
}

/// How long to observe: the recovery time limit, and no longer than an injection may last.
fn observation(experiment: &Experiment) -> Duration {
    let recovery = experiment.recovery_seconds();
    let seconds = match experiment.injection.ttl_seconds {
        0 => recovery,
        ttl => recovery.min(ttl),
    };
    Duration::from_secs(seconds)
}

fn patience(experiment: &Experiment) -> Duration {
    match experiment.steady_state_timeout_seconds {
        0 => SETTLE,
        seconds => Duration::from_secs(seconds),
    }
}

/// An outcome without results.
#[must_use]
pub fn blank(experiment: &Experiment) -> Outcome {
    Outcome {
        name: experiment.name.clone(),
        injection: experiment.injection.kind.as_str().to_owned(),
        namespace: experiment.injection_namespace().to_owned(),
        ..Outcome::default()
    }
}

fn ended(outcome: Outcome, verdict: Verdict, reason: impl Into<String>) -> Box<Outcome> {
    Box::new(Outcome { verdict, reason: reason.into(), ..outcome })
}

fn refused(outcome: Outcome, refusal: &Refusal) -> Box<Outcome> {
    let verdict = match refusal {
        Refusal::NotExecutable(_) | Refusal::Forbidden(_) => Verdict::Skipped,
        Refusal::Impossible(_) | Refusal::Cluster(_) => Verdict::Inconclusive,
    };
    ended(outcome, verdict, refusal.to_string())
}

fn unasked(outcome: Outcome, error: &ClusterError) -> Box<Outcome> {
    ended(outcome, Verdict::Inconclusive, format!("the cluster's kinds could not be read: {error}"))
}

/// Describes what an experiment would do; only reads.
///
/// # Errors
/// The reason why it would not run.
pub async fn preview(cluster: &dyn Cluster, site: &Site, experiment: &Experiment) -> Result<Vec<String>, Refusal> {
    inject::admit(experiment, site)?;
    let kinds: Arc<Kinds> = cluster.kinds().await.map_err(Refusal::Cluster)?;
    let planned = inject::plan(cluster, &kinds, experiment, "dry-run").await?;
    Ok(planned.steps.iter().map(Step::describe).chain(planned.notes).collect())
}
