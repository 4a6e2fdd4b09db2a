//! One write: the requests of each operation, what is retried, and what a conflict means.

mod arrivals;
mod carried;
mod failure;
mod intent;
mod judged;
mod old_object;
mod operators;
mod original;
mod patience;
mod successful;

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pushback_app::identity::{ORPHANED_LABEL, has_own_identity};
use pushback_app::session::Session;
use pushback_cluster::{
    Address, ApplyOptions, Cluster, ClusterError, DeleteOptions, ErrorKind, NOT_FOUND, Patch, Written, guarded,
};
use pushback_crd::definition::CarryOver;
use pushback_objects::ObjectExt;
use pushback_preflight::{Operation, Verification};
use serde_json::{Value, json};
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::{Instant, timeout_at};

pub(super) use failure::Failure;
use intent::Compare;
use patience::{Patience, lags_behind, patience};
use pushback_events::{Event, Events};
use pushback_manifest::config::mask::Masker;
pub(super) use successful::SuccessfulWrites;

use crate::check::second_look::SecondLook;
use crate::plan::annotations::{self, CreateStrategy};
use crate::plan::saved::Deletion;
use crate::plan::saved::digests::set_otherwise_by_app;
use crate::plan::takeover::Takeover;
use crate::plan::{Action, Planned, guard};

/// How long the server may take to serve a changed definition; after that the object itself is wrong.
const DEFINITION_LAG: Duration = Duration::from_secs(15);

/// Most retries of an update after conflicts that left our fields alone.
const CONFLICTS: u32 = 8;

/// Time before the first of them; it doubles with each.
const FIRST_PAUSE: Duration = Duration::from_millis(20);

/// Interval between reads of a terminating object.
const GONE_POLL: Duration = Duration::from_millis(250);

/// Interval between looks for an object that somebody else creates.
const EXISTS_POLL: Duration = Duration::from_secs(1);

/// Why an object that somebody else is to create is not done.
pub(super) const ABSENT: &str =
    "it does not exist (annotation kapp.k14s.io/exists waits for somebody else to create it)";

/// How long to retry an error that passes in a moment or never: a kind not served yet, a missing namespace.
const MOMENT: Duration = Duration::from_secs(60);

/// Extra time for a write that gives up by itself at the time limit: its message says more.
const GRACE_PERIOD: Duration = Duration::from_secs(1);

/// Result of a write.
#[derive(Debug, Default)]
pub(super) struct Done {
    /// The object after the write; `None` if it is gone.
    pub(super) object: Option<Arc<Value>>,
    /// Whether it is being deleted and still exists.
    pub(super) terminating: bool,
    /// Remark for the reader.
    pub(super) message: String,
    pub(super) warnings: Vec<String>,
}

/// Everything that a write needs besides the object.
#[derive(Debug)]
pub(super) struct Writer {
    pub(super) cluster: Arc<dyn Cluster>,
    /// The lock's session; `None` if nothing is to be written.
    pub(super) session: Option<Arc<Session>>,
    /// Key of the label that the app's objects have.
    pub(super) label_key: String,
    /// What judges a change again; `None` if the plan was not judged.
    pub(super) second_look: Option<Arc<SecondLook>>,
    pub(super) events: Events,
    /// Masks secret values in messages.
    pub(super) masker: Masker,
    /// Masks values that rules judge.
    pub(super) policy_masker: Masker,
    /// Time limit for retrying one object's write.
    pub(super) timeout: Duration,
    /// What is deleted.
    pub(super) deletion: Deletion,
    /// True once nothing may be retried.
    pub(super) gave_up: watch::Receiver<bool>,
    /// Whether each stored object must be as its dry run showed it; kapp does not compare.
    pub(super) compares_writes: bool,
    /// The writes that succeeded.
    pub(super) written: SuccessfulWrites,
    /// Whether the lease has run out without an answer and this was reported.
    pub(super) uncertain: AtomicBool,
}

impl Writer {
    /// Writes one object. A request in flight when the lease runs out is cut off, since it might be retried for longer
    /// than the lock holds. Once the lock is confirmed it is sent again, as after a lost response.
    /// The slot is given back where the write waits for something else.
    pub(super) async fn write(&self, planned: &Planned, slot: OwnedSemaphorePermit) -> Result<Done, Failure> {
        let started = Instant::now();
        let mut slot = Some(slot);
        let Some(session) = &self.session else { return self.attempts(planned, started, &mut slot).await };
        loop {
            tokio::select! {
                written = self.attempts(planned, started, &mut slot) => match written {
                    Err(Failure::LockLost) => {}
                    written => return written,
                },
                () = session.lease().until_uncertain() => {}
            }
            self.tell_uncertain();
            tokio::select! {
                confirmed = session.lease().confirmed() => confirmed.map_err(|_| Failure::LockLost)?,
                () = self.given_up() => {
                    return Err(Failure::Stopped("the server did not answer".to_owned()));
                }
            }
            self.uncertain.store(false, Ordering::Release);
        }
    }

    /// Reports once per outage why nothing is written.
    fn tell_uncertain(&self) {
        if !self.uncertain.swap(true, Ordering::AcqRel) {
            self.events.send(Event::Warning {
                code: "lock".to_owned(),
                message:
                    "the app's lock could not be renewed in time; nothing is written until the cluster confirms it"
                        .to_owned(),
                object: None,
                position: None,
            });
        }
    }

    async fn attempts(
        &self,
        planned: &Planned,
        started: Instant,
        slot: &mut Option<OwnedSemaphorePermit>,
    ) -> Result<Done, Failure> {
        let object = &planned.object;
        if waits_for_the_old_object(planned) {
            slot.take();
        }
        let mut kind = Arc::clone(&planned.kind);
        let mut delay = Duration::from_millis(250);
        let mut tried: Option<ClusterError> = None;
        for attempt in 1.. {
            let address = Address::new(Arc::clone(&kind), &object.namespace, &object.name);
            let deadline = started + self.timeout;
            // The cluster retries a request on its own terms and does not know this deadline.
            let failure = match timeout_at(deadline + GRACE_PERIOD, self.once(planned, &address, deadline)).await {
                Ok(Ok(done)) => return Ok(done),
                Ok(Err(failure)) => failure,
                Err(_) => {
                    let message = format!("the server did not accept the write within {} s", self.timeout.as_secs());
                    // What was in the way before is in the way still.
                    return Err(tried.map_or(Failure::Stuck(message), Failure::Cluster));
                }
            };
            if is_unsent(&failure) {
                return Err(tried.map_or(Failure::NotSent, |error| Failure::Stopped(error.message)));
            }
            let Failure::Cluster(error) = &failure else { return Err(failure) };
            let patience = match lags_behind(error, planned) {
                true => Patience::Lag,
                false => patience(error, planned.operation(), planned.kind_from_set),
            };
            let limit = match patience {
                Patience::None => return Err(failure),
                Patience::Moment => self.timeout.min(MOMENT),
                Patience::Lag => self.timeout.min(DEFINITION_LAG),
                Patience::Long => self.timeout,
            };
            let left = (started + limit).saturating_duration_since(Instant::now());
            if planned.operation() == Operation::Exists && !left.is_zero() {
                // Somebody may create it up to the last moment.
                delay = EXISTS_POLL.min(left);
            } else if patience == Patience::Long && !left.is_zero() {
                delay = delay.min(left);
            } else if delay >= left {
                return Err(failure);
            }
            slot.take();
            self.events.send(Event::Retry {
                request: format!("{} {object}", planned.operation().as_str()),
                reason: error.message.clone(),
                attempt,
                delay: delay.into(),
            });
            if self.pause(delay).await.is_break() {
                return Err(Failure::Stopped(failure.message()));
            }
            tried = Some(error.clone());
            delay = (delay * 2).min(Duration::from_secs(5));
            if error.kind == ErrorKind::UnknownKind
                && let Ok(kinds) = self.cluster.rediscover(&object.group).await
                && let Some(served) = kinds.find(&object.group, &object.version, &object.kind)
            {
                kind = Arc::clone(served);
            }
        }
        Err(Failure::Changed("not tried".to_owned()))
    }

    /// Waits for a delay; breaks if the run is stopped.
    async fn pause(&self, delay: Duration) -> ControlFlow<()> {
        tokio::select! {
            () = tokio::time::sleep(delay) => ControlFlow::Continue(()),
            () = self.given_up() => ControlFlow::Break(()),
        }
    }

    /// Returns when nothing may be retried.
    async fn given_up(&self) {
        let mut gave_up = self.gave_up.clone();
        if gave_up.wait_for(|gave_up| *gave_up).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// A single attempt; secret values are masked in its messages.
    async fn once(&self, planned: &Planned, address: &Address, deadline: Instant) -> Result<Done, Failure> {
        let objects: Vec<&Value> = planned.desired.as_deref().into_iter().chain(planned.live.as_deref()).collect();
        match self.once_unmasked(planned, address, deadline).await {
            Ok(mut done) => {
                done.warnings.iter_mut().for_each(|text| *text = self.masker.hide(&objects, text));
                Ok(done)
            }
            Err(Failure::Cluster(mut error)) => {
                error.rewrite(|text| self.masker.hide(&objects, text));
                Err(Failure::Cluster(error))
            }
            Err(Failure::Refused { message, refused }) => {
                Err(Failure::Refused { message: self.masker.hide(&objects, &message), refused })
            }
            Err(failure) => Err(failure),
        }
    }

    async fn once_unmasked(&self, planned: &Planned, address: &Address, deadline: Instant) -> Result<Done, Failure> {
        // An operation in progress continues, so that it is not left half done.
        if *self.gave_up.borrow() {
            return Err(Failure::NotSent);
        }
        if let Some(refused) = &planned.refused {
            return Err(Failure::RefusedBefore(refused.error.message.clone(), refused.error.reason.clone()));
        }
        match planned.action {
            Action::Create => self.create(planned, address, deadline).await,
            Action::Update(_) => self.update(planned, address).await,
            Action::Replace(_) if !planned.recreated_after.is_empty() => {
                self.recreate(planned, address, deadline).await
            }
            Action::Replace(_) => self.replace(planned, address, deadline).await,
            Action::Delete if planned.strategies.orphan => self.orphan(planned, address).await,
            Action::Delete => self.delete(planned, address).await,
            Action::Keep if planned.strategies.exists => self.exists(address).await,
            Action::Keep if planned.resumes => self.resumed(planned, address).await,
            Action::Keep => Ok(unchanged(planned.live.clone())),
        }
    }

    /// Fails unless the lock is held; called before each writing request.
    fn allowed(&self) -> Result<(), Failure> {
        match &self.session {
            Some(session) if session.lease().holds() => Ok(()),
            Some(_) | None => Err(Failure::LockLost),
        }
    }

    async fn create(&self, planned: &Planned, address: &Address, deadline: Instant) -> Result<Done, Failure> {
        // The old object may still be terminating.
        if planned.live.is_some() {
            self.wait_until_gone(planned, address, deadline).await?;
        }
        self.write_new(planned, address).await
    }

    /// Creates an object, and never takes over one that somebody else has created since planning.
    async fn write_new(&self, planned: &Planned, address: &Address) -> Result<Done, Failure> {
        let body = planned.desired.as_deref().unwrap_or(&Value::Null);
        let only_new = if self.cluster.capabilities().server { guard::only_new(body) } else { body.clone() };
        // If it exists by now, the write itself gives the better error.
        let expected = match self.expected(planned, address, &only_new, None).await {
            Err(Failure::Cluster(error)) if error.kind == ErrorKind::Conflict => planned.result.clone(),
            expected => expected?,
        };
        self.allowed()?;
        let written = match self.cluster.apply(address, &only_new, options(planned)).await {
            Err(error) if error.kind == ErrorKind::Conflict => {
                let Some(seen) = self.cluster.get(address).await.map_err(Failure::Cluster)? else {
                    return Err(Failure::Cluster(error));
                };
                // It may be ours: an earlier attempt succeeded and its response was lost.
                let is_ours = seen.label(&self.label_key) == body.label(&self.label_key) && has_own_identity(&seen);
                // Of a definition preflight has to see what changes.
                let may_be_taken =
                    planned.strategies.create != CreateStrategy::Create && !planned.object.is_definition();
                let is_taken = may_be_taken && seen.label(&self.label_key).is_none();
                if seen.is_terminating() || !(is_ours || is_taken) {
                    return Err(Failure::Taken(format!("{} {:?}", address.kind.resource(), address.name)));
                }
                self.allowed()?;
                self.cluster.apply(address, &guarded(body, &seen), options(planned)).await
            }
            other => other,
        };
        let written = written.map_err(Failure::Cluster)?;
        self.written.note(planned, planned.operation());
        let live = planned.live.as_ref();
        let done = self.done(planned, live, expected.as_deref(), written).await?;
        self.note_original(planned, address, body, done).await
    }

    async fn done(
        &self,
        planned: &Planned,
        live: Option<&Arc<Value>>,
        expected: Option<&Value>,
        written: Written,
    ) -> Result<Done, Failure> {
        self.as_expected(planned, live, expected, &written).await?;
        Ok(Done { object: Some(written.object), warnings: written.warnings, ..Done::default() })
    }

    async fn update(&self, planned: &Planned, address: &Address) -> Result<Done, Failure> {
        let mut state =
            State { live: planned.live.clone(), takeover: planned.difference().takeover.clone(), has_moved: false };
        if let Some(CarryOver::WebhookFirst(first)) = &planned.difference().carry_over {
            return self.write_first(planned, address, first).await;
        }
        if let Some(seen) = self.carry_over(planned, address).await? {
            (state.live, state.has_moved) = (Some(seen), true);
        }
        let mut pause = FIRST_PAUSE;
        for attempt in 0..=CONFLICTS {
            match self.update_once(planned, address, &mut state).await {
                Err(Failure::Cluster(error)) if error.kind == ErrorKind::Conflict && attempt < CONFLICTS => {
                    // Whoever writes so often needs a moment, too.
                    if self.pause(pause).await.is_break() {
                        return Err(Failure::Stopped(error.message));
                    }
                    pause *= 2;
                    state.live = Some(self.seen_again(planned, address).await?);
                    state.has_moved = true;
                }
                Ok(done) => return self.carried_over(planned, address, done).await,
                failed => return failed,
            }
        }
        Err(Failure::Changed("it keeps changing".to_owned()))
    }

    async fn update_once(&self, planned: &Planned, address: &Address, state: &mut State) -> Result<Done, Failure> {
        let body = planned.desired.as_deref().unwrap_or(&Value::Null);
        let is_known = planned.verification == Verification::Server || planned.difference().takeover.is_some();
        if let Some(seen) = state.live.clone().filter(|_| state.has_moved && is_known) {
            state.takeover = self.seen_intent(planned, address, body, &seen, Compare::Values).await?;
            let now = self.still_the_same(planned, address, &seen).await?;
            if let Some(takeover) = &mut state.takeover {
                takeover.keep_status_of(&now);
            }
            state.live = Some(now);
        }
        if let (Some(takeover), Some(live)) = (&state.takeover, &state.live) {
            let rewrite = takeover.rewrite(live.resource_version());
            let expected = self.expected_of_rewrite(planned, address, &rewrite, live).await?;
            self.allowed()?;
            let written = self.cluster.patch(address, &rewrite, false).await.map_err(Failure::Cluster)?;
            Self::as_rewritten(planned, expected.as_deref(), &written.object)?;
            // From here on the server decides what is removed; it must match what was shown.
            self.seen_intent(planned, address, body, &written.object, Compare::Places).await?;
            (state.live, state.takeover) = (Some(written.object), None);
        }
        let guarded = state.live.as_deref().map_or_else(|| body.clone(), |live| guarded(body, live));
        let expected = self.expected(planned, address, &guarded, state.live.as_ref()).await?;
        self.allowed()?;
        let mut written = self.cluster.apply(address, &guarded, options(planned)).await.map_err(Failure::Cluster)?;
        self.written.note(planned, planned.operation());
        written.object = self.go_on(address, written.object).await?;
        let done = self.done(planned, state.live.as_ref(), expected.as_deref(), written).await?;
        self.note_original(planned, address, body, done).await
    }

    async fn replace(&self, planned: &Planned, address: &Address, deadline: Instant) -> Result<Done, Failure> {
        self.can_come_back(planned, address).await?;
        let done = self.delete(planned, address).await?;
        if done.terminating {
            self.wait_until_gone(planned, address, deadline).await?;
        }
        self.write_new(planned, address).await
    }

    async fn delete(&self, planned: &Planned, address: &Address) -> Result<Done, Failure> {
        let live = planned.live.as_deref().unwrap_or(&Value::Null);
        let (uid, mut resource_version) = (live.uid().to_owned(), live.resource_version().to_owned());
        for attempt in 0..=CONFLICTS {
            let arrivals = self.arrivals(planned).await;
            self.goes_alone(planned).await?;
            let options = DeleteOptions {
                uid: uid.clone(),
                resource_version: resource_version.clone(),
                ..DeleteOptions::default()
            };
            self.allowed()?;
            match self.cluster.delete(address, &options).await {
                Ok(last) => {
                    self.written.note(planned, Operation::Delete);
                    let (last, warnings) = last.map(|last| (last.object, last.warnings)).unzip();
                    let pending = last.filter(|last| is_pending(last));
                    if let Some(arrivals) = arrivals {
                        arrivals.none().await?;
                    }
                    self.went_alone(planned).await?;
                    return Ok(Done {
                        terminating: pending.is_some(),
                        object: pending,
                        warnings: warnings.unwrap_or_default(),
                        ..Done::default()
                    });
                }
                Err(error) if error.kind == ErrorKind::Conflict && !uid.is_empty() && attempt < CONFLICTS => {
                    let Some(seen) = self.still_ours(planned, address).await? else { return Ok(gone_already()) };
                    seen.resource_version().clone_into(&mut resource_version);
                }
                Err(error) if matches!(error.kind, ErrorKind::NotFound | ErrorKind::UnknownKind) => {
                    return Ok(Done::default());
                }
                Err(error) => return Err(Failure::Cluster(error)),
            }
        }
        Err(Failure::Changed("it keeps changing".to_owned()))
    }

    /// After a conflict on an object to be deleted: its current state, or `None` if it is gone. Fails if it now belongs
    /// to another app, or its owner wants it kept.
    async fn still_ours(&self, planned: &Planned, address: &Address) -> Result<Option<Arc<Value>>, Failure> {
        let live = planned.live.as_deref().unwrap_or(&Value::Null);
        let seen = self.cluster.get(address).await.map_err(Failure::Cluster)?;
        // Another uid: ours is gone, and the name is taken by a new object.
        let Some(seen) = seen.filter(|seen| seen.uid() == live.uid()) else { return Ok(None) };
        if seen.label(&self.label_key) != live.label(&self.label_key) {
            return Err(Failure::Changed("it no longer belongs to this app".to_owned()));
        }
        let keeps = |object: &Value| {
            let strategies = annotations::read_live(object);
            (strategies.orphan, strategies.kept_by_helm)
        };
        if keeps(&seen) != keeps(live) {
            let message = "its delete-strategy or resource-policy was changed since it was planned";
            return Err(Failure::Changed(message.to_owned()));
        }
        if self.deletion == Deletion::AsPlanned {
            let places = set_otherwise_by_app(live, &seen);
            if !places.is_empty() {
                let message = format!("it was changed since it was planned: {}", places.join(", "));
                return Err(Failure::Changed(message));
            }
        }
        Ok(Some(seen))
    }

    /// Orphans an object: it stays, without the app's label.
    async fn orphan(&self, planned: &Planned, address: &Address) -> Result<Done, Failure> {
        if !self.cluster.capabilities().server {
            return Ok(unchanged(None));
        }
        let live = planned.live.as_deref().unwrap_or(&Value::Null);
        let mut resource_version = live.resource_version().to_owned();
        for attempt in 0..=CONFLICTS {
            let patch = Patch::Merge(json!({"metadata": {
                "uid": live.uid(), "resourceVersion": resource_version,
                "labels": {&self.label_key: null, ORPHANED_LABEL: ""},
            }}));
            self.allowed()?;
            match self.cluster.patch(address, &patch, false).await {
                Ok(_) => {
                    let message = "it stays, and no longer belongs to the app".to_owned();
                    return Ok(Done { message, ..Done::default() });
                }
                Err(error) if error.kind == ErrorKind::Conflict && attempt < CONFLICTS => {
                    let Some(seen) = self.still_ours(planned, address).await? else { return Ok(gone_already()) };
                    seen.resource_version().clone_into(&mut resource_version);
                }
                Err(error) if error.kind == ErrorKind::NotFound => return Ok(unchanged(None)),
                Err(error) => return Err(Failure::Cluster(error)),
            }
        }
        Err(Failure::Changed("it keeps changing".to_owned()))
    }

    async fn exists(&self, address: &Address) -> Result<Done, Failure> {
        match self.cluster.get(address).await {
            Ok(Some(object)) => Ok(unchanged(Some(object))),
            Ok(None) => Err(Failure::Cluster(ClusterError::new(ErrorKind::NotFound, ABSENT).with_reason(NOT_FOUND))),
            Err(error) => Err(Failure::Cluster(error)),
        }
    }
}

/// Whether another object of its name has to go first.
fn waits_for_the_old_object(planned: &Planned) -> bool {
    match planned.action {
        Action::Create => planned.live.is_some(),
        Action::Replace(_) => true,
        Action::Update(_) | Action::Delete | Action::Keep => false,
    }
}

/// Whether the run was stopped before the write was sent.
fn is_unsent(failure: &Failure) -> bool {
    match failure {
        Failure::NotSent => true,
        Failure::Cluster(error) => error.kind == ErrorKind::TurnedAway,
        _ => false,
    }
}

/// State of an update between attempts.
struct State {
    /// The object as last read.
    live: Option<Arc<Value>>,
    /// Takeover from the managers that is still to be done.
    takeover: Option<Takeover>,
    /// Whether somebody has written since planning.
    has_moved: bool,
}

fn gone_already() -> Done {
    Done { message: "it was gone already".to_owned(), ..Done::default() }
}

fn unchanged(object: Option<Arc<Value>>) -> Done {
    Done { object, ..Done::default() }
}

/// Strict field validation for objects that had no server dry-run: an unknown field fails here, and nothing of the
/// object is written.
fn options(planned: &Planned) -> ApplyOptions {
    let strict = matches!(planned.verification, Verification::NotVerified(_));
    ApplyOptions { strict, ..ApplyOptions::WRITE }
}

/// Whether a deleted object still exists: finalizers hold up its deletion.
fn is_pending(last: &Value) -> bool {
    let held = last.pointer("/metadata/finalizers").and_then(Value::as_array).is_some_and(|list| !list.is_empty());
    let grace = last.pointer("/metadata/deletionGracePeriodSeconds").and_then(Value::as_i64).unwrap_or_default();
    last.is_terminating() && (held || grace > 0 || last.text("/kind") == "Namespace")
}
