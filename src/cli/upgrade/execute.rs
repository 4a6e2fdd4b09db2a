//! `pushback upgrade run`: runs experiments on a cluster, one after the other, and takes back what they inject.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueEnum};
use pushback_preflight::operator::experiment::{self, DangerLevel, Experiment};
use pushback_preflight::operator::suite::Phase;

use super::recover::PUT_RIGHT;
use super::release::{Upgrade, UpgradeStepArgs};
use super::{ReportFormat, ShownArgs, data_text};
use crate::cli::arguments::{GlobalArgs, duration};
use crate::cli::run::{Run, complete};
use crate::cluster::{Cluster, ErrorKind, Kinds};
use crate::event::{Counts, DiagnosticCode, Event, RunOutcome};
use crate::exit::ExitCode;
use crate::path_safety::check_folder;
use crate::report::experiment_report;
use crate::report::output::Output;
use crate::report::report_file::{ReportFormat as FileFormat, ReportSpec, is_standard_output, write_text};
use crate::report::words::counted;
use crate::run::connect::connect;
use crate::run::error::CommandError;
use crate::run::outcome::End;
use crate::run::pipeline::until_stopped;
use crate::run::signals;
use crate::run::upgrade::experiments::{self, Given};
use crate::upgrade::change::Step;
use crate::upgrade::inject::Site;
use crate::upgrade::lock::{LockError, Locks, Terms};
use crate::upgrade::outcome::{Outcome, RunReport, UpgradeReport, Verdict};
use crate::upgrade::recover;
use crate::upgrade::run::{Begun, Runner, blank, preview};

/// Layout of the report.
const SCHEMA: u32 = 1;

/// Run experiments on a cluster.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pushback upgrade run experiments/ --allow-namespace backup-system --dry-run
  pushback upgrade run experiments/ --allow-namespace backup-system --max-danger high --yes
  pushback upgrade run drift.yaml --allow-namespace shop --report junit=results.xml --yes

Before anything is injected, what is needed to take it back is written to the cluster. What a killed
run has left is taken back by `pushback upgrade recover`.

Exit codes: 0 all resilient or skipped, 1 wrong input, 10 preflight refuses the upgrade, 12 another
run is at work there, 13 no cluster, 20 something could not be taken back, or is not exactly as it
was, 21 not resilient.")]
pub struct RunArgs {
    /// Experiments: files or folders, read recursively
    #[arg(value_name = "PATH", required = true)]
    pub suite: Vec<String>,
    /// Say what would be injected, and send nothing but questions
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub execute: ExecuteArgs,
    #[command(flatten)]
    pub shown: ShownArgs,
}

/// How experiments run.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Run")]
pub struct ExecuteArgs {
    /// Namespace that experiments may inject into; can be given more than once
    #[arg(long, value_name = "NAMESPACE")]
    pub allow_namespace: Vec<String>,
    /// The most dangerous experiments that may run; others are skipped
    #[arg(long, value_name = "LEVEL", default_value = "medium", ignore_case = true)]
    pub max_danger: Danger,
    /// The least bad verdict that makes the command fail
    #[arg(long, value_name = "VERDICT", default_value = "inconclusive", ignore_case = true)]
    pub fail_on_verdict: FailOnVerdict,
    /// Write a report, json=PATH or junit=PATH; the path - is standard output, which then holds that report alone; can be
    /// given more than once
    #[arg(long, value_name = "FORMAT=PATH")]
    pub report: Vec<String>,
    /// Write results.json and suite-results.xml to this folder
    #[arg(long, value_name = "DIR")]
    pub report_dir: Option<PathBuf>,
    #[command(flatten)]
    pub upgrade: UpgradeStepArgs,
    #[command(flatten)]
    pub lock: LockArgs,
}

/// Where the report goes, and how it reads.
#[derive(Clone, Debug)]
pub struct Shown {
    /// The file; `None`: standard output.
    pub path: Option<PathBuf>,
    /// The format.
    pub format: ReportFormat,
}

/// How long other runs are waited for.
#[derive(Clone, Debug, Args)]
pub struct LockArgs {
    /// How long to wait for another run in the same namespaces [default: the lease and 5 seconds]
    #[arg(long, value_parser = duration, value_name = "DURATION")]
    pub lock_wait: Option<Duration>,
    /// How long the lock holds without being renewed
    #[arg(long, value_parser = duration, default_value = "15s", value_name = "DURATION", hide_short_help = true)]
    pub lock_lease: Duration,
}

impl LockArgs {
    /// The terms.
    pub fn terms(&self) -> Terms {
        // A lease has to outlive the requests that renew it.
        let lease = self.lock_lease.max(Duration::from_secs(1));
        Terms { lease, patience: self.lock_wait.unwrap_or(lease + Duration::from_secs(5)) }
    }
}

/// `--max-danger`
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Danger {
    /// Pods are killed.
    Low,
    /// Objects change.
    Medium,
    /// What may hurt others, too.
    High,
}

/// `--fail-on-verdict`
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FailOnVerdict {
    /// Anything but resilient and skipped.
    Inconclusive,
    /// Degraded, and worse.
    Degraded,
    /// Failed alone.
    Failed,
    /// No verdict.
    Never,
}

impl FailOnVerdict {
    fn fails(self, worst: Verdict) -> bool {
        match self {
            Self::Inconclusive => worst >= Verdict::Inconclusive,
            Self::Degraded => worst >= Verdict::Degraded,
            Self::Failed => worst >= Verdict::Failed,
            Self::Never => false,
        }
    }
}

/// Runs the command.
pub async fn run(global: &GlobalArgs, arguments: RunArgs) -> ExitCode {
    let RunArgs { suite, dry_run, execute, shown } = arguments;
    complete(global, Run::start_for_report(global), async |run| {
        let Given { experiments, switched_off } = experiments::read(&suite)?;
        let off = |(experiment, reason)| Outcome { reason, ..blank(&experiment) };
        let left_out = switched_off.into_iter().map(off).collect();
        let (path, format) = shown.place()?;
        let shown = Shown { path, format };
        execute_all(global, run, experiments, left_out, dry_run, &execute, &shown).await
    })
    .await
}

/// Runs experiments in their order, and reports; `left_out` are those of the suite that cannot run.
///
/// # Errors
/// Wrong arguments, no cluster, another run at work, or what a killed run has left.
pub async fn execute_all(
    global: &GlobalArgs,
    run: &mut Run,
    experiments: Vec<Experiment>,
    left_out: Vec<Outcome>,
    dry_run: bool,
    arguments: &ExecuteArgs,
    shown: &Shown,
) -> Result<End, CommandError> {
    let path = shown.path.clone().unwrap_or_else(|| PathBuf::from("-"));
    let reports = reports(arguments)?;
    let told_on_errors = one_document(&path, shown.format, &reports)?;
    let site = site(arguments)?;
    let notices = run.notices();
    let stop = run.stop.clone();
    let connecting = async { connect(global, Some(notices), &|text| run.announce(text)).await };
    let cluster = until_stopped(stop.clone(), connecting).await?.cluster;
    run.uses(&cluster);
    require_server(&*cluster)?;
    let mut executing = Executing { global, run, cluster, site: &site, arguments, unmade: None };
    let executed = match executing.refused_upgrade(&experiments).await? {
        Some(refused) => refused,
        None if dry_run => {
            let outcomes = until_stopped(stop, executing.preview(&experiments)).await?;
            Executed { outcomes, upgrade: None, is_untouched: true, was_stopped: false }
        }
        None => executing.execute(&experiments).await?,
    };
    let Executed { mut outcomes, upgrade, is_untouched, was_stopped } = executed;
    outcomes.extend(left_out);
    let mut report = RunReport {
        schema_version: SCHEMA,
        run: executing.run.id.clone(),
        cluster: executing.cluster.description(),
        outcome: String::new(),
        upgrade,
        experiments: outcomes,
    };
    let (run, unmade) = (executing.run, executing.unmade);
    let worst = report.worst();
    report.outcome = match report.unmade_upgrade() {
        _ if was_stopped => "Interrupted",
        Some(_) => "NotUpgraded",
        None => worst.word(),
    }
    .to_owned();
    run.settle();
    let text = match shown.format {
        ReportFormat::Table => experiment_report::table(&report),
        ReportFormat::Markdown => experiment_report::markdown(&report),
        format @ (ReportFormat::Json | ReportFormat::Yaml) => data_text(&report, format)?,
    };
    let failed = |error: crate::report::report_file::ReportError| CommandError::usage(error.to_string());
    if told_on_errors {
        Output::standard().progress(&text);
    } else {
        write_text(&path, &text).map_err(failed)?;
    }
    for (format, path) in &reports {
        let text = match format {
            FileFormat::Junit => experiment_report::junit(&report),
            _ => data_text(&report, ReportFormat::Json)?,
        };
        write_text(path, &text).map_err(failed)?;
    }
    let stopped = signals::exit_code(*run.stop.borrow()).filter(|_| was_stopped);
    if let Some(end) = unfinished(&report, stopped) {
        return Ok(end);
    }
    if let (Some(upgrade), Some(end)) = (report.unmade_upgrade(), unmade) {
        let outcome = if is_untouched { RunOutcome::Refused } else { RunOutcome::Failed };
        let error = format!("the upgrade did not happen: {}", upgrade.reason);
        return Ok(End { outcome, error, ..end });
    }
    if arguments.fail_on_verdict.fails(worst) {
        let error = format!("an experiment ended {}", worst.word());
        return Ok(End { error, ..End::new(ExitCode::Failed, RunOutcome::Failed, Counts::default()) });
    }
    Ok(End::new(ExitCode::Success, RunOutcome::Succeeded, Counts::default()))
}

/// Standard output holds one document: a report that goes there drives out the table, which is then told where progress
/// is, and nothing else. Returns whether it does.
///
/// # Errors
/// Two documents are asked for.
fn one_document(path: &Path, format: ReportFormat, reports: &[(FileFormat, PathBuf)]) -> Result<bool, CommandError> {
    let on_standard_output = reports.iter().filter(|(_, path)| is_standard_output(path)).count();
    let shown_too = is_standard_output(path) && on_standard_output > 0;
    if on_standard_output > 1 || (shown_too && format != ReportFormat::Table) {
        return Err(CommandError::usage_with_hint("two reports go to standard output", "name a file for one of them"));
    }
    Ok(shown_too)
}

/// The end of a run that has left something, or was told to stop.
fn unfinished(report: &RunReport, stopped: Option<ExitCode>) -> Option<End> {
    let ended = |code, outcome, error: &str, hint: Option<&str>| {
        let hints = hint.map(str::to_owned).into_iter().collect();
        Some(End { error: error.to_owned(), hints, ..End::new(code, outcome, Counts::default()) })
    };
    if report.experiments.iter().any(|outcome| !outcome.revert_error.is_empty()) {
        let error = "something that was injected could not be taken back";
        return ended(
            ExitCode::Partial,
            RunOutcome::Failed,
            error,
            Some("take it back with `pushback upgrade recover`"),
        );
    }
    if report.experiments.iter().any(|outcome| !outcome.is_restored()) {
        let error = "something is not exactly as it was before; its journal is kept";
        return ended(ExitCode::Partial, RunOutcome::Failed, error, Some(PUT_RIGHT));
    }
    stopped.and_then(|code| {
        ended(code, RunOutcome::Interrupted, "stopped by a signal; what was injected is taken back", None)
    })
}

/// Only a server admits, defaults and has controllers.
pub fn require_server(cluster: &dyn Cluster) -> Result<(), CommandError> {
    if cluster.capabilities().server {
        return Ok(());
    }
    let message = format!("{} is no API server: nothing there reacts to an experiment", cluster.description());
    Err(CommandError::usage_with_hint(message, "run against a cluster: --cluster kube"))
}

fn site(arguments: &ExecuteArgs) -> Result<Site, CommandError> {
    if arguments.allow_namespace.is_empty() {
        return Err(CommandError::usage_with_hint(
            "no namespace may be injected into",
            "name each with --allow-namespace NAMESPACE",
        ));
    }
    let max_danger = match arguments.max_danger {
        Danger::Low => DangerLevel::Low,
        Danger::Medium => DangerLevel::Medium,
        Danger::High => DangerLevel::High,
    };
    Ok(Site { allowed: arguments.allow_namespace.iter().cloned().collect(), max_danger })
}

/// Where reports go; whether they can be written is tried before anything is injected.
fn reports(arguments: &ExecuteArgs) -> Result<Vec<(FileFormat, PathBuf)>, CommandError> {
    let usage = |error: crate::report::report_file::ReportError| CommandError::usage(error.to_string());
    let mut specs = Vec::new();
    for flag in &arguments.report {
        let spec: ReportSpec = flag.parse().map_err(usage)?;
        if !matches!(spec.format, FileFormat::Json | FileFormat::Junit) {
            return Err(CommandError::usage(format!(
                "report {flag}: a run of experiments is reported as json or junit"
            )));
        }
        specs.push(spec);
    }
    if let Some(folder) = &arguments.report_dir {
        check_folder(folder).and_then(|()| std::fs::create_dir_all(folder)).map_err(|error| {
            let reason = crate::surroundings::reason(&error);
            CommandError::usage(format!("cannot make folder {}: {reason}", folder.display()))
        })?;
        specs.push(ReportSpec { format: FileFormat::Json, path: folder.join("results.json") });
        specs.push(ReportSpec { format: FileFormat::Junit, path: folder.join("suite-results.xml") });
    }
    specs.iter().try_for_each(ReportSpec::prepare).map_err(usage)?;
    Ok(specs.into_iter().map(|spec| (spec.format, spec.path)).collect())
}

/// What came of a run.
struct Executed {
    outcomes: Vec<Outcome>,
    upgrade: Option<UpgradeReport>,
    /// Whether nothing was written.
    is_untouched: bool,
    was_stopped: bool,
}

struct Executing<'a> {
    global: &'a GlobalArgs,
    run: &'a mut Run,
    cluster: Arc<dyn Cluster>,
    site: &'a Site,
    arguments: &'a ExecuteArgs,
    /// How the apply of an upgrade ended that did not happen.
    unmade: Option<End>,
}

impl Executing<'_> {
    async fn preview(&self, experiments: &[Experiment]) -> Result<Vec<Outcome>, CommandError> {
        let mut outcomes = Vec::new();
        for experiment in experiments {
            let mut outcome = blank(experiment);
            match preview(&*self.cluster, self.site, experiment).await {
                Ok(changes) => {
                    outcome.changes = changes;
                    "dry run: it would be made".clone_into(&mut outcome.reason);
                }
                Err(refusal) => outcome.reason = format!("it would not be made: {refusal}"),
            }
            outcomes.push(outcome);
        }
        Ok(outcomes)
    }

    async fn execute(&mut self, experiments: &[Experiment]) -> Result<Executed, CommandError> {
        let count = experiments.len();
        let question = format!("Inject into {}? {}", self.namespaces_text(), counted(count, "experiment"));
        self.run.confirm(self.global, &question).await?;
        let stop = self.run.stop.clone();
        let kinds = until_stopped(stop.clone(), async { Ok(self.cluster.kinds().await?) }).await?;
        let namespaces: BTreeSet<String> = experiments
            .iter()
            .map(|experiment| experiment.injection_namespace().to_owned())
            .filter(|namespace| self.site.allowed.contains(namespace))
            .collect();
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
        let was_stopped = signals::exit_code(*self.run.stop.borrow()).is_some();
        Ok(Executed { outcomes, upgrade, is_untouched: false, was_stopped })
    }

    /// Locks namespaces. Those that are not there yet are returned, where an upgrade is to be made that may create them.
    async fn lock(
        &self,
        kinds: &Kinds,
        namespaces: &BTreeSet<String>,
        locks: &mut Locks,
    ) -> Result<BTreeSet<String>, CommandError> {
        let (around, id, terms) = (&self.run.surroundings, &self.run.id, self.arguments.lock.terms());
        let mut missing = BTreeSet::new();
        for namespace in namespaces {
            match locks.add(kinds, around, id, namespace, terms).await {
                Ok(()) => {}
                Err(error) if self.arguments.upgrade.upgrade && error.is_of_no_namespace() => {
                    missing.insert(namespace.clone());
                }
                Err(error) => return Err(locked(error)),
            }
        }
        Ok(missing)
    }

    /// What preflight says of the upgrade before anything is injected; `None` where it may be made, or there is none.
    async fn refused_upgrade(&mut self, experiments: &[Experiment]) -> Result<Option<Executed>, CommandError> {
        let Some(upgrade) = Upgrade::of(self.global, &self.arguments.upgrade, &self.arguments.allow_namespace) else {
            return Ok(None);
        };
        let Some((report, end)) = upgrade.refusal(self.run).await? else { return Ok(None) };
        self.unmade = Some(end);
        let skipped = |experiment| Outcome {
            reason: "the upgrade is refused; nothing was injected".to_owned(),
            ..blank(experiment)
        };
        let outcomes = experiments.iter().map(skipped).collect();
        Ok(Some(Executed { outcomes, upgrade: Some(report), is_untouched: true, was_stopped: false }))
    }

    fn namespaces_text(&self) -> String {
        self.site.allowed.iter().cloned().collect::<Vec<_>>().join(", ")
    }

    /// What a dead run has left would be part of every steady state.
    async fn require_nothing_left(&self, namespaces: &BTreeSet<String>) -> Result<(), CommandError> {
        let kinds = self.cluster.kinds().await?;
        let names: Vec<String> = namespaces.iter().cloned().collect();
        let left = recover::look(&*self.cluster, &kinds, &self.run.surroundings, Some(&names)).await?;
        if left.is_empty() {
            return Ok(());
        }
        let message = format!("an earlier run has left: {}", left.describe().join("; "));
        Err(CommandError::usage_with_hint(message, "take it back first with `pushback upgrade recover`"))
    }

    fn runner<'r>(&'r self, locks: &'r Locks, tell: &'r (dyn Fn(String) + Send + Sync)) -> Runner<'r> {
        Runner {
            cluster: Arc::clone(&self.cluster),
            surroundings: &self.run.surroundings,
            run: &self.run.id,
            site: self.site,
            locks,
            stop: self.run.stop.clone(),
            released: None,
            tell,
        }
    }

    /// Those that belong before the upgrade inject, the upgrade is made, they are judged and taken back, and then the
    /// others run, one after the other.
    async fn both_phases(
        &mut self,
        experiments: &[Experiment],
        locks: &mut Locks,
        missing: &BTreeSet<String>,
    ) -> Result<(Vec<Outcome>, Option<UpgradeReport>), CommandError> {
        let events = self.run.events.clone();
        let tell = move |message: String| events.send(Event::Diagnostic { code: DiagnosticCode::Experiment, message });
        let numbered: Vec<(usize, &Experiment)> = (1..).zip(experiments).collect();
        let (before, others): (Vec<_>, Vec<_>) =
            numbered.into_iter().partition(|(_, experiment)| is_before(experiment));
        let mut outcomes: Vec<Outcome> = Vec::new();
        let mut report = None;
        let mut unsteady: Option<String> = None;
        if let Some(upgrade) = Upgrade::of(self.global, &self.arguments.upgrade, &self.arguments.allow_namespace) {
            let begun = begin_all(&self.runner(locks, &tell), &before, &mut outcomes).await;
            let steps: Vec<Step> = begun.iter().flat_map(|begun| begun.steps().to_vec()).collect();
            let upgraded = upgrade.make(self.run, &mut self.cluster, &steps).await;
            let released = upgraded.made.then_some(&upgraded.removed);
            let runner = Runner { released, ..self.runner(locks, &tell) };
            for mut begun in begun.into_iter().rev() {
                if upgraded.made {
                    runner.observe(&mut begun).await;
                } else {
                    begun.make_void("the upgrade did not happen; what was injected is taken back");
                }
                outcomes.push(runner.finish(begun).await);
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
            let reason = "needs upgrade: give --upgrade with -a APP and -f NEW";
            outcomes.extend(before.iter().map(|(_, skipped)| Outcome { reason: reason.to_owned(), ..blank(skipped) }));
        }
        let unlocked = if unsteady.is_none() { self.lock_new(locks, missing).await } else { BTreeMap::new() };
        let runner = self.runner(locks, &tell);
        for (number, experiment) in others {
            let failed = outcomes.iter().find(|outcome| outcome.verdict == Verdict::Failed);
            let reason = if signals::exit_code(*self.run.stop.borrow()).is_some() {
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

    /// Locks namespaces that were not there before the upgrade. Why one could not be, by its name.
    async fn lock_new(&self, locks: &mut Locks, missing: &BTreeSet<String>) -> BTreeMap<String, String> {
        let mut unlocked = BTreeMap::new();
        for namespace in missing {
            let (around, id, terms) = (&self.run.surroundings, &self.run.id, self.arguments.lock.terms());
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

/// Injects one after the other, and leaves it there.
async fn begin_all<'e>(
    runner: &Runner<'_>,
    experiments: &[(usize, &'e Experiment)],
    outcomes: &mut Vec<Outcome>,
) -> Vec<Begun<'e>> {
    let mut all = Vec::new();
    for (number, experiment) in experiments {
        match runner.begin(experiment, *number).await {
            Ok(begun) => all.push(begun),
            Err(outcome) => outcomes.push(*outcome),
        }
    }
    all
}

/// Whether an experiment injects before the upgrade.
fn is_before(experiment: &Experiment) -> bool {
    let phase = experiment.annotations.get(&format!("{}phase", experiment::PREFIX));
    phase.and_then(|phase| Phase::of(phase)) == Some(Phase::PreUpgrade)
}

/// Why the lock cannot be had.
pub fn locked(error: LockError) -> CommandError {
    match error {
        LockError::Held { .. } => {
            let mut converted = CommandError::usage_with_hint(
                error.to_string(),
                "wait for it with --lock-wait; a lock that is not renewed expires by itself",
            );
            converted.code = ExitCode::Locked;
            converted
        }
        LockError::Cluster { namespace, error } => {
            let missing = error.kind == ErrorKind::NotFound;
            let mut converted = CommandError::from(error);
            if missing {
                converted.errors[0].message = format!("namespace {namespace} does not exist");
            }
            converted
        }
    }
}
