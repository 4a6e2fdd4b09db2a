//! The stages of one experiment: steady state, journal, injection, observation, revert, steady state again. Once the
//! journal is written, every path leads to the end of `finish`.

mod admission;
mod deletion;
mod exercise;
mod foreseen;
mod together;
mod verdict;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use pushback_cluster::{Cluster, ClusterError, ErrorKind, Kinds, ListQuery, list_all};
use pushback_events::stop::Stop;
use pushback_objects::{ObjectExt, ObjectKey};
use pushback_preflight::experiment::{Check, Experiment, InjectionType};
use pushback_system::environment::Environment;
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::Instant;

use super::change::{Change, Step};
use super::inject::{self, Planned, Refusal, Site};
use super::journal::{Draft, Journal, StoredJournal};
use super::lock::Locks;
use super::loss;
use super::outcome::{Outcome, Verdict};
use super::reconciler;
use super::revert::{Requester, RevertOutcome, revert};
use super::steady::{self, POLL, all_pass};

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
    /// Experiments that change other fields of the same object, and were injected together with it.
    companions: Vec<ActiveExperiment<'a>>,
    /// The change of all of them.
    together: Option<Step>,
    journal: Option<StoredJournal>,
    is_made: bool,
    /// Number of ready Pods that a PodKill's selector matched before it.
    ready_before: usize,
    healed: bool,
    /// Each changed object as the injection left it.
    injected: Vec<Option<Arc<Value>>>,
    /// What shows that an operator is at work.
    reconciled: Option<String>,
    /// Why it proves nothing, if so.
    void: Option<String>,
    outcome: Outcome,
}

impl ActiveExperiment<'_> {
    /// The injected changes.
    #[must_use]
    pub fn steps(&self) -> &[Step] {
        if self.is_made { &self.planned.steps } else { &[] }
    }

    /// The injected changes, with those of the experiments that were injected together with it.
    #[must_use]
    pub fn all_steps(&self) -> Vec<Step> {
        let companions = self.companions.iter().flat_map(Self::steps);
        self.steps().iter().chain(companions).cloned().collect()
    }

    /// Marks the experiment as void: what it tests did not happen. It is still reverted.
    pub fn make_void(&mut self, reason: &str) {
        self.void = Some(reason.to_owned());
        self.companions.iter_mut().for_each(|companion| companion.make_void(reason));
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
    async fn begin<'e>(&self, experiment: &'e Experiment, number: usize) -> Result<ActiveExperiment<'e>, Box<Outcome>> {
        let begun = self.prepare(experiment, number, patience(experiment)).await?;
        let id = self.id(number);
        self.inject(begun, &id).await.map_err(|mut outcomes| Box::new(outcomes.swap_remove(0)))
    }

    fn id(&self, number: usize) -> String {
        format!("{}-{number}", self.run)
    }

    /// Runs the stages before the injection: the steady state, the plan, the rehearsal.
    ///
    /// # Errors
    /// The outcome of an experiment that is not made.
    async fn prepare<'e>(
        &self,
        experiment: &'e Experiment,
        number: usize,
        patience: Duration,
    ) -> Result<ActiveExperiment<'e>, Box<Outcome>> {
        let mut outcome = blank(experiment);
        if let Err(refusal) = inject::admit(experiment, self.site) {
            return Err(refused(outcome, &refusal));
        }
        (self.tell)(format!("{}: checking the steady state", experiment.name));
        outcome.before = steady::settle(&*self.cluster, experiment, &experiment.checks, patience).await;
        if !all_pass(&outcome.before) {
            return Err(ended(outcome, Verdict::Inconclusive, "the steady state did not hold before"));
        }
        let kinds = self.cluster.kinds().await.map_err(|error| unasked(outcome.clone(), &error))?;
        let planned = match self.rehearsed(&kinds, experiment, &self.id(number)).await {
            Ok(planned) => planned,
            Err(refusal) => return Err(refused(outcome, &refusal)),
        };
        outcome.notes.append(&mut planned.notes.clone());
        outcome.changes = planned.steps.iter().map(Step::describe).collect();
        let ready_before = self.ready_pods(&kinds, experiment).await.unwrap_or_default();
        let reconciled = match ready_before {
            0 => reconciler::ready_workload(&*self.cluster, experiment, &experiment.checks).await,
            _ => Some("its Pods were ready".to_owned()),
        };
        let mut begun = ActiveExperiment {
            experiment,
            planned,
            companions: Vec::new(),
            together: None,
            journal: None,
            is_made: false,
            ready_before,
            healed: false,
            injected: Vec::new(),
            reconciled,
            void: None,
            outcome,
        };
        self.measure_before(&mut begun).await;
        Ok(begun)
    }

    /// The planned changes, with the server's answers to them.
    async fn rehearsed(&self, kinds: &Kinds, experiment: &Experiment, id: &str) -> Result<Planned, Refusal> {
        let mut planned = inject::plan(&*self.cluster, kinds, experiment, self.site, id).await?;
        match self.rehearse(kinds, &mut planned).await {
            Ok(()) => Ok(planned),
            Err(error) => Err(Refusal::Impossible(format!("the server would refuse the injection: {error}"))),
        }
    }

    /// Writes the journal, and makes the changes.
    ///
    /// # Errors
    /// The outcomes if it was not made; nothing is left of it unless its journal remains.
    async fn inject<'e>(
        &self,
        mut begun: ActiveExperiment<'e>,
        id: &str,
    ) -> Result<ActiveExperiment<'e>, Vec<Outcome>> {
        let steps = begun.together.clone().map_or_else(|| begun.planned.steps.clone(), |step| vec![step]);
        if steps.is_empty() {
            return Ok(begun);
        }
        let (experiment, run) = (begun.experiment, self.run);
        let locked = tokio::select! {
            locked = self.locks.confirmed() => locked,
            () = self.stopped() => Ok(()),
        };
        if self.is_stopped() || locked.is_err() {
            let reason = if self.is_stopped() { "interrupted" } else { "the lock of its namespace was lost" };
            return Err(begun.all_ended(reason));
        }
        let kind = experiment.injection.kind.as_str();
        let names: Vec<&str> = begun.members().map(|member| member.experiment.name.as_str()).collect();
        let names = names.join(", ");
        let journal = Journal::new(run, &names, kind, &self.environment.now(), steps.clone());
        let written = async {
            let kinds = self.cluster.kinds().await?;
            let draft = Draft::new(&kinds, experiment.injection_namespace(), id, journal)?;
            Ok::<_, ClusterError>((draft.write(&*self.cluster).await?, kinds))
        };
        let (stored, kinds) = match written.await {
            Ok(stored) => stored,
            Err(error) => return Err(begun.all_ended(&format!("its journal could not be written: {error}"))),
        };
        let changes: Vec<String> = steps.iter().map(Step::describe).collect();
        (self.tell)(format!("{names}: {kind}: {}", changes.join("; ")));
        let mark = stored.mark.clone();
        begun.journal = Some(stored);
        begun.is_made = true;
        begun.companions.iter_mut().for_each(|companion| companion.is_made = true);
        for step in &steps {
            let error = match inject::make(&*self.cluster, &kinds, step, &mark, false).await {
                Ok(made) => {
                    let after = made.map(|made| made.after);
                    begun.companions.iter_mut().for_each(|companion| companion.injected.push(after.clone()));
                    begun.injected.push(after);
                    continue;
                }
                Err(error) => error,
            };
            // The response may be lost although the change was made.
            if error.ambiguous && inject::was_made(&*self.cluster, &kinds, step, &mark).await.unwrap_or(true) {
                begun.injected.push(None);
                continue;
            }
            let mut outcomes = self.finish_all(begun).await;
            for outcome in &mut outcomes {
                outcome.verdict = outcome.verdict.max(Verdict::Inconclusive);
                outcome.reason = format!("the injection failed: {error}");
            }
            return Err(outcomes);
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
        let mut companions = std::mem::take(&mut begun.companions);
        let watched = companions.iter_mut().chain([&mut *begun]).map(|member| self.watch(member));
        join_all(watched).await;
        begun.companions = companions;
        for member in begun.companions.iter_mut() {
            self.look_for_operator(member).await;
        }
        self.look_for_operator(begun).await;
        self.let_deletion_go_on(begun).await;
    }

    async fn watch(&self, begun: &mut ActiveExperiment<'_>) {
        let experiment = begun.experiment;
        let mut checks = self.checks(experiment);
        // An object in deletion is not as its checks would have it.
        checks.retain(|check| !begun.held().any(|step| reconciler::is_about(check, &step.target, experiment)));
        let started = Instant::now();
        let end = started + observation(experiment);
        self.measure_under_fault(begun).await;
        let mut stop = self.stop.clone();
        loop {
            begun.outcome.under_fault = steady::look(&*self.cluster, experiment, &checks).await;
            self.look_at_deletion(begun).await;
            self.look_for_losses(begun).await;
            self.look_for_exercise(begun).await;
            begun.healed = begun.planned.heals && self.has_healed(begun).await;
            if begun.healed && all_pass(&begun.outcome.under_fault) {
                begun.outcome.recovery_seconds = Some((started.elapsed().as_secs_f64() * 10.0).round() / 10.0);
                return;
            }
            // Without an injection there is nothing to wait for, and a lost value does not come back.
            if !begun.is_made || !begun.outcome.lost.is_empty() || Instant::now() >= end || self.is_stopped() {
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

    /// Records the injected values that are lost. No operator is expected to undo the change of a custom resource, and
    /// nothing that happens later changes the verdict. An object that cannot be read, or is gone, is left to the revert.
    async fn look_for_losses(&self, begun: &mut ActiveExperiment<'_>) {
        if !begun.is_made || begun.planned.heals || !begun.outcome.lost.is_empty() {
            return;
        }
        let Ok(kinds) = self.cluster.kinds().await else { return };
        for step in &begun.planned.steps {
            let Ok(address) = step.target.address(&kinds) else { continue };
            let Ok(Some(live)) = self.cluster.get(&address).await else { continue };
            for place in loss::lost(step, &live) {
                begun.outcome.lost.push(format!("{place} of {}", step.target));
            }
        }
        if !begun.outcome.lost.is_empty() {
            let lost = begun.outcome.lost.join("; ");
            let by = if self.released.is_some() { "after the upgrade" } else { "while it was observed" };
            begun.outcome.deviate("lost", format!("{lost}: not kept {by}"));
        }
    }

    /// Reverts an experiment and those that were injected together with it, and decides all their verdicts.
    pub async fn finish_all(&self, mut begun: ActiveExperiment<'_>) -> Vec<Outcome> {
        let mut companions = std::mem::take(&mut begun.companions);
        let (known, error) = (begun.outcome.deviations.len(), begun.outcome.revert_error.clone());
        debug_assert!(error.is_empty(), "nothing was reverted yet");
        let lead = self.finish(begun).await;
        let mut outcomes = Vec::new();
        for mut companion in companions.drain(..) {
            let outcome = &mut companion.outcome;
            outcome.deviations.extend(lead.deviations.iter().skip(known).cloned());
            outcome.not_restored.clone_from(&lead.not_restored);
            outcome.revert_error.clone_from(&lead.revert_error);
            outcomes.push(self.finish(companion).await);
        }
        outcomes.insert(0, lead);
        outcomes
    }

    /// Reverts everything, waits for the steady state to return, and decides the verdict.
    async fn finish(&self, mut begun: ActiveExperiment<'_>) -> Outcome {
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
        let (verdict, reason) = verdict::of(&begun, was_stopped);
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
