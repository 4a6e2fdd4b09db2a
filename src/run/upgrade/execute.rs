//! Runs experiments on a cluster one after the other, and reverts what they inject.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use futures::future::join_all;
use pushback_app::lease::LockOptions;
use pushback_cluster::{Cluster, Kinds};
use pushback_events::exit::ExitCode;
use pushback_events::{Counts, DiagnosticCode, Event, RunOutcome};
use pushback_objects::text::counted;
use pushback_preflight::experiment::suite::Phase;
use pushback_preflight::experiment::{Experiment, PREFIX};
use pushback_upgrade::change::Step;
use pushback_upgrade::inject::Site;
use pushback_upgrade::lock::{LEASE, LockError, Locks};
use pushback_upgrade::outcome::{Outcome, RunReport, RunStep, UpgradeReport, Verdict};
use pushback_upgrade::recover;
use pushback_upgrade::run::{ActiveExperiment, Runner, blank};

use super::connect_server;
use super::experiments::{self, LoadedExperiments};
use super::recover::PUT_RIGHT;
use super::simulate::{Simulate, ready};
use super::step::Upgrade;
use crate::run::Run;
use crate::run::answer::Notes;
use crate::run::connect::ClusterOptions;
use crate::run::error::CommandError;
use crate::run::outcome::End;
use crate::run::signals::until_stopped;

/// Options of a run of experiments.
#[derive(Clone, Debug)]
pub struct Execute {
    /// The cluster.
    pub cluster: ClusterOptions,
    /// Limits on injections.
    pub site: Site,
    /// Settings for locking namespaces.
    pub terms: LockOptions,
    /// The upgrade between them, if any.
    pub upgrade: Option<Upgrade>,
    /// Whether to only report what would be injected, without writing.
    pub dry_run: bool,
    /// Lowest verdict that makes the run fail.
    pub fail_on: Option<Verdict>,
    /// Source of the experiments.
    pub source: Source,
    /// Receiver of the report.
    pub reports: Rc<dyn ExperimentReports>,
}

/// Source of experiments.
#[derive(Clone, Debug)]
pub enum Source {
    /// Files and directories.
    Files(Vec<String>),
    /// Generated from what changed between two releases.
    Generated(Box<Simulate>),
}

/// Receives the report of a run of experiments.
pub trait ExperimentReports: fmt::Debug {
    /// Checks, before any injection, that the report can be written.
    ///
    /// # Errors
    /// The report cannot be written.
    fn prepare(&self) -> Result<(), CommandError>;

    /// Receives the report.
    ///
    /// # Errors
    /// The report cannot be written.
    fn take(&self, report: &RunReport) -> Result<(), CommandError>;
}

/// Result of a run of experiments.
#[derive(Debug)]
struct ExecutionResult {
    /// The report.
    report: RunReport,
    /// How the apply ended if the upgrade did not happen.
    unmade: Option<End>,
    /// Whether nothing was written.
    is_untouched: bool,
    /// Exit code of the signal that ended it.
    stopped: Option<ExitCode>,
    fail_on: Option<Verdict>,
}

impl Source {
    /// The experiments in order, and outcomes for those of a suite that cannot run.
    async fn read(&self, notes: &dyn Notes) -> Result<(Vec<Experiment>, Vec<Outcome>), CommandError> {
        match self {
            Self::Files(files) => {
                let LoadedExperiments { experiments, switched_off } = experiments::read(files)?;
                let off = |(experiment, reason)| Outcome { reason, ..blank(&experiment) };
                Ok((experiments, switched_off.into_iter().map(off).collect()))
            }
            Self::Generated(simulate) => Ok(ready(simulate.run(notes).await?)),
        }
    }
}

impl Execute {
    /// Runs the experiments in order, and reports.
    ///
    /// # Errors
    /// No cluster, another run in progress, leftovers of a killed run, or a report that cannot be written.
    pub async fn run(&self, run: &mut Run, notes: &dyn Notes) -> Result<End, CommandError> {
        let (experiments, left_out) = self.source.read(notes).await?;
        self.reports.prepare()?;
        let executed = self.execute(run, experiments, left_out).await?;
        run.settle();
        self.reports.take(&executed.report)?;
        Ok(executed.end())
    }

    async fn execute(
        &self,
        run: &mut Run,
        experiments: Vec<Experiment>,
        left_out: Vec<Outcome>,
    ) -> Result<ExecutionResult, CommandError> {
        let cluster = connect_server(run, &self.cluster).await?;
        let mut executing = Executing { run, cluster, options: self, unmade: None };
        let mut steps = Vec::new();
        let phases = match executing.refused_upgrade(&experiments).await? {
            Some(refused) => refused,
            None if self.dry_run => {
                let foreseen = until_stopped(executing.run.stop.clone(), executing.foresee(&experiments)).await?;
                steps = foreseen.1;
                Phases { outcomes: foreseen.0, upgrade: None, is_untouched: true, was_stopped: false }
            }
            None => executing.execute(&experiments).await?,
        };
        let Phases { mut outcomes, upgrade, is_untouched, was_stopped } = phases;
        outcomes.extend(left_out);
        let cluster = executing.cluster.description();
        Ok(ExecutionResult {
            report: RunReport {
                steps,
                ..RunReport::of(executing.run.id.clone(), cluster, upgrade, outcomes, was_stopped)
            },
            unmade: executing.unmade,
            is_untouched,
            stopped: executing.run.stop.borrow().exit_code().filter(|_| was_stopped),
            fail_on: self.fail_on,
        })
    }
}

impl ExecutionResult {
    /// The end of the run.
    fn end(self) -> End {
        let Self { report, unmade, is_untouched, stopped, fail_on } = self;
        let worst = report.worst();
        if let Some(end) = unfinished(&report, stopped) {
            return end;
        }
        if let (Some(upgrade), Some(end)) = (report.unmade_upgrade(), unmade) {
            let outcome = if is_untouched { RunOutcome::Refused } else { RunOutcome::Failed };
            let error = format!("the upgrade did not happen: {}", upgrade.reason);
            return End { outcome, error, ..end };
        }
        if fail_on.is_some_and(|least| worst >= least) {
            let is_of_experiment = report.experiments.iter().any(|outcome| outcome.verdict == worst);
            let error = match report.failed_checks().next() {
                Some(check) if !is_of_experiment => format!("the upgrade failed: {}: {}", check.check, check.detail),
                _ => format!("an experiment ended {}", worst.as_str()),
            };
            return End { error, ..End::new(ExitCode::Failed, RunOutcome::Failed, Counts::default()) };
        }
        End::new(ExitCode::Success, RunOutcome::Succeeded, Counts::default())
    }
}

/// The end of a run that has left something behind or was stopped by a signal.
fn unfinished(report: &RunReport, stopped: Option<ExitCode>) -> Option<End> {
    let ended = |code, outcome, error: &str, hint: Option<&str>| {
        let hints = hint.map(str::to_owned).into_iter().collect();
        Some(End { error: error.to_owned(), hints, ..End::new(code, outcome, Counts::default()) })
    };
    if report.experiments.iter().any(|outcome| !outcome.revert_error.is_empty()) {
        let error = "an injection could not be reverted";
        return ended(ExitCode::Partial, RunOutcome::Failed, error, Some("revert it with `pushback upgrade recover`"));
    }
    if report.experiments.iter().any(|outcome| !outcome.is_restored()) {
        let error = "something is not exactly as it was before; its journal is kept";
        return ended(ExitCode::Partial, RunOutcome::Failed, error, Some(PUT_RIGHT));
    }
    stopped
        .and_then(|code| ended(code, RunOutcome::Interrupted, "stopped by a signal; the injections are reverted", None))
}

/// Result of the phases of a run.
struct Phases {
    outcomes: Vec<Outcome>,
    upgrade: Option<UpgradeReport>,
    /// Whether nothing was written.
    is_untouched: bool,
    was_stopped: bool,
}

struct Executing<'a> {
    run: &'a mut Run,
    cluster: Arc<dyn Cluster>,
    options: &'a Execute,
    /// How the apply ended if the upgrade did not happen.
    unmade: Option<End>,
}

impl Executing<'_> {
    /// What a run would do; nothing is written.
    async fn foresee(&self, experiments: &[Experiment]) -> Result<(Vec<Outcome>, Vec<RunStep>), CommandError> {
        let locks = Locks::none(&self.cluster);
        let quiet = |_: String| {};
        // Stands for the id of the run, which is in the names that it gives.
        let runner = Runner { run: "run", ..self.runner(&locks, &quiet) };
        let (before, others) = by_phase(experiments);
        let lock = |action: &'static str, detail: &'static str| {
            let allowed = self.locked_namespaces(experiments).into_iter();
            allowed.map(move |namespace| RunStep::new("", action, format!("Lease {namespace}/{LEASE}"), detail))
        };
        let mut steps: Vec<RunStep> =
            lock("create", "the lock of the namespace, renewed while the run lasts").collect();
        let (mut outcomes, made) = match &self.options.upgrade {
            Some(upgrade) => {
                let app = format!("app {}/{}", upgrade.app.namespace, upgrade.app.name);
                runner.foresee(&before, Some(&app), &others).await
            }
            None => {
                let (outcomes, made) = runner.foresee(&[], None, &others).await;
                (before.iter().map(|(_, skipped)| without_upgrade(skipped)).chain(outcomes).collect(), made)
            }
        };
        steps.extend(made);
        steps.extend(lock("delete", "the lock of the namespace"));
        outcomes.iter_mut().for_each(|outcome| outcome.verdict = Verdict::Skipped);
        Ok((outcomes, steps))
    }

    async fn execute(&mut self, experiments: &[Experiment]) -> Result<Phases, CommandError> {
        let count = experiments.len();
        let question = format!("Inject into {}? {}", self.namespaces_text(), counted(count, "experiment"));
        self.run.confirm(&question).await?;
        let stop = self.run.stop.clone();
        let kinds = until_stopped(stop.clone(), async { Ok(self.cluster.kinds().await?) }).await?;
        let namespaces = self.locked_namespaces(experiments);
        let mut locks = Locks::none(&self.cluster);
        let executed = match until_stopped(stop, self.lock(&kinds, &namespaces, &mut locks)).await {
            Ok(missing) => match self.require_nothing_left(&namespaces).await {
                Ok(()) => self.both_phases(experiments, &mut locks, &missing).await,
                Err(error) => Err(error),
            },
            Err(error) => Err(error),
        };
        locks.release().await;
        let (outcomes, upgrade) = executed?;
        let was_stopped = self.run.stop.borrow().exit_code().is_some();
        Ok(Phases { outcomes, upgrade, is_untouched: false, was_stopped })
    }

    fn locked_namespaces(&self, experiments: &[Experiment]) -> BTreeSet<String> {
        let namespaces = experiments.iter().map(|experiment| experiment.injection_namespace().to_owned());
        namespaces.filter(|namespace| self.options.site.allowed.contains(namespace)).collect()
    }

    /// Locks namespaces. Returns missing ones if an upgrade may create them.
    async fn lock(
        &self,
        kinds: &Kinds,
        namespaces: &BTreeSet<String>,
        locks: &mut Locks,
    ) -> Result<BTreeSet<String>, CommandError> {
        let (around, id, terms) = (&self.run.environment, &self.run.id, self.options.terms);
        let mut missing = BTreeSet::new();
        for namespace in namespaces {
            match locks.add(kinds, around, id, namespace, terms).await {
                Ok(()) => {}
                Err(error) if self.options.upgrade.is_some() && error.is_of_no_namespace() => {
                    missing.insert(namespace.clone());
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(missing)
    }

    /// Runs preflight on the upgrade before any injection; `None` if it passes or there is no upgrade.
    async fn refused_upgrade(&mut self, experiments: &[Experiment]) -> Result<Option<Phases>, CommandError> {
        let Some(upgrade) = &self.options.upgrade else { return Ok(None) };
        let Some((report, end)) = upgrade.refusal(self.run).await? else { return Ok(None) };
        self.unmade = Some(end);
        let skipped = |experiment| Outcome {
            reason: "the upgrade is refused; nothing was injected".to_owned(),
            ..blank(experiment)
        };
        let outcomes = experiments.iter().map(skipped).collect();
        Ok(Some(Phases { outcomes, upgrade: Some(report), is_untouched: true, was_stopped: false }))
    }

    fn namespaces_text(&self) -> String {
        self.options.site.allowed.iter().cloned().collect::<Vec<_>>().join(", ")
    }

    /// Refuses to start on leftovers of a killed run: they would be part of every steady state.
    async fn require_nothing_left(&self, namespaces: &BTreeSet<String>) -> Result<(), CommandError> {
        let kinds = self.cluster.kinds().await?;
        let names: Vec<String> = namespaces.iter().cloned().collect();
        let left = recover::look(&*self.cluster, &kinds, &self.run.environment, Some(&names)).await?;
        if left.is_empty() {
            return Ok(());
        }
        let message = format!("an earlier run has left: {}", left.describe().join("; "));
        Err(CommandError::usage_with_hint(message, "revert it first with `pushback upgrade recover`"))
    }

    fn runner<'r>(&'r self, locks: &'r Locks, tell: &'r (dyn Fn(String) + Send + Sync)) -> Runner<'r> {
        Runner {
            cluster: Arc::clone(&self.cluster),
            environment: &self.run.environment,
            run: &self.run.id,
            site: &self.options.site,
            locks,
            stop: self.run.stop.clone(),
            released: None,
            tell,
        }
    }

    /// Injects the experiments that start before the upgrade, makes the upgrade, judges and reverts them, and then runs
    /// the others one after the other.
    async fn both_phases(
        &mut self,
        experiments: &[Experiment],
        locks: &mut Locks,
        missing: &BTreeSet<String>,
    ) -> Result<(Vec<Outcome>, Option<UpgradeReport>), CommandError> {
        let events = self.run.events.clone();
        let tell = move |message: String| events.send(Event::diagnostic(DiagnosticCode::Experiment, message));
        let (before, others) = by_phase(experiments);
        let mut outcomes: Vec<Outcome> = Vec::new();
        let mut report = None;
        let mut unsteady: Option<String> = None;
        if let Some(upgrade) = &self.options.upgrade {
            let mut begun = self.runner(locks, &tell).begin_all(&before, &mut outcomes).await;
            for begun in &mut begun {
                self.runner(locks, &tell).look_before_upgrade(begun).await;
            }
            let steps: Vec<Step> = begun.iter().flat_map(ActiveExperiment::all_steps).collect();
            let upgraded = upgrade.make(self.run, &mut self.cluster, &steps).await;
            let released = upgraded.made.then_some(&upgraded.removed);
            let runner = Runner { released, ..self.runner(locks, &tell) };
            if upgraded.made {
                // All at once: they met the same upgrade, and each takes minutes.
                join_all(begun.iter_mut().map(|begun| runner.observe(begun))).await;
            } else {
                let reason = "the upgrade did not happen; the injections are reverted";
                begun.iter_mut().for_each(|begun| begun.make_void(reason));
            }
            for begun in begun.into_iter().rev() {
                outcomes.extend(runner.finish_all(begun).await);
            }
            self.unmade = upgraded.unmade;
            let made = upgraded.report?;
            if !made.made {
                unsteady = Some("the upgrade did not happen".to_owned());
            } else if made.exit_code != 0 {
                unsteady = Some("the upgrade failed".to_owned());
            }
            report = Some(made);
        } else {
            outcomes.extend(before.iter().map(|(_, skipped)| without_upgrade(skipped)));
        }
        let unlocked = if unsteady.is_none() { self.lock_new(locks, missing).await } else { BTreeMap::new() };
        let runner = self.runner(locks, &tell);
        for (number, experiment) in others {
            let failed = outcomes.iter().find(|outcome| !outcome.leaves_steady());
            let reason = if self.run.stop.borrow().exit_code().is_some() {
                Some("interrupted before it began".to_owned())
            } else {
                unsteady
                    .clone()
                    .or_else(|| failed.map(|failed| format!("{} has left the cluster unsteady", failed.name)))
            };
            outcomes.push(match (reason, unlocked.get(experiment.injection_namespace())) {
                (Some(reason), _) => Outcome { reason, ..blank(experiment) },
                (None, Some(why)) => {
                    Outcome { reason: why.clone(), verdict: Verdict::Inconclusive, ..blank(experiment) }
                }
                (None, None) => runner.execute(experiment, number).await,
            });
        }
        Ok((outcomes, report))
    }

    /// Locks namespaces that the upgrade created. Returns the reason for each that could not be locked.
    async fn lock_new(&self, locks: &mut Locks, missing: &BTreeSet<String>) -> BTreeMap<String, String> {
        let mut unlocked = BTreeMap::new();
        for namespace in missing {
            let (around, id, terms) = (&self.run.environment, &self.run.id, self.options.terms);
            let locked = match self.cluster.kinds().await {
                Ok(kinds) => locks.add(&kinds, around, id, namespace, terms).await,
                Err(error) => Err(LockError::Cluster { namespace: namespace.clone(), error }),
            };
            if let Err(error) = locked {
                unlocked.insert(namespace.clone(), error.to_string());
            }
        }
        unlocked
    }
}

/// The outcome of an experiment that needs an upgrade where there is none.
fn without_upgrade(experiment: &Experiment) -> Outcome {
    Outcome { reason: "needs upgrade: give --upgrade with -a APP and -f NEW".to_owned(), ..blank(experiment) }
}

/// Experiments with their numbers.
type Numbered<'e> = Vec<(usize, &'e Experiment)>;

/// Those that inject before the upgrade, and the others.
fn by_phase(experiments: &[Experiment]) -> (Numbered<'_>, Numbered<'_>) {
    (1..).zip(experiments).partition(|(_, experiment)| is_before(experiment))
}

/// Whether an experiment injects before the upgrade.
fn is_before(experiment: &Experiment) -> bool {
    let phase = experiment.annotations.get(&format!("{PREFIX}phase"));
    phase.and_then(|phase| Phase::of(phase)) == Some(Phase::PreUpgrade)
}
