//! `pushback upgrade run`: runs experiments on a cluster, one after the other, and takes back what they inject.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueEnum};
use pushback_preflight::operator::experiment::{self, DangerLevel, Experiment};
use pushback_preflight::operator::suite::Phase;

use super::experiments::{self, Given};
use super::{ReportFormat, ShownArgs, data_text};
use crate::app::record::AppName;
use crate::cli::apply;
use crate::cli::arguments::{GlobalArgs, duration};
use crate::cli::connect::connect;
use crate::cli::error::CommandError;
use crate::cli::outcome::End;
use crate::cli::pipeline::until_stopped;
use crate::cli::run::{Run, complete};
use crate::cli::signals;
use crate::cluster::{Cluster, ErrorKind};
use crate::exit::ExitCode;
use crate::path_safety::check_folder;
use crate::report::Counts;
use crate::report::event::Event;
use crate::report::experiment_report;
use crate::report::output::Output;
use crate::report::report_file::{ReportFormat as FileFormat, ReportSpec, is_standard_output, write_text};
use crate::report::words::counted;
use crate::upgrade::change::Step;
use crate::upgrade::inject::Site;
use crate::upgrade::judge::{self, JudgeError};
use crate::upgrade::lock::{LockError, Locks, Terms};
use crate::upgrade::outcome::{Outcome, RunReport, UpgradeReport, Verdict};
use crate::upgrade::recover;
use crate::upgrade::run::{Begun, Runner, blank, preview};
use crate::upgrade::steady::Looked;

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

Exit codes: 0 all resilient or skipped, 1 wrong input, 12 another run is at work there,
13 no cluster, 20 something could not be taken back, 21 not resilient.")]
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

/// The upgrade between experiments.
#[derive(Clone, Debug, Args)]
pub struct UpgradeStepArgs {
    /// Apply the new release after the injections that belong before it, and judge what it did
    #[arg(long, requires_all = ["app", "file"])]
    pub upgrade: bool,
    /// With --upgrade: the app
    #[arg(long, short = 'a', value_name = "NAME", requires = "upgrade")]
    pub app: Option<String>,
    /// With --upgrade: namespace of the app's record [default: the first that is allowed]
    #[arg(long, short = 'n', value_name = "NAME", requires = "upgrade")]
    pub namespace: Option<String>,
    /// With --upgrade: the new release, as for `pushback apply`; can be given more than once
    #[arg(long, short = 'f', value_name = "PATH", requires = "upgrade")]
    pub file: Vec<String>,
    /// With --upgrade: how long the apply may take
    #[arg(long, value_name = "DURATION", default_value = "15m", value_parser = duration, hide_short_help = true)]
    pub wait_timeout: Duration,
}

impl UpgradeStepArgs {
    fn app(&self, allowed: &BTreeSet<String>) -> AppName {
        let namespace = self.namespace.clone().or_else(|| allowed.first().cloned()).unwrap_or_default();
        AppName { name: self.app.clone().unwrap_or_default(), namespace }
    }

    /// As `pushback apply` takes them.
    fn apply_arguments(&self, app: &AppName) -> Vec<String> {
        let mut arguments = vec![format!("--app={}", app.name), format!("--namespace={}", app.namespace)];
        arguments.extend(self.file.iter().map(|file| format!("--file={file}")));
        arguments.push(format!("--wait-timeout={}s", self.wait_timeout.as_secs()));
        arguments
    }
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
    let mut executing = Executing { global, run, cluster, site: &site, arguments };
    let executed = if dry_run {
        let outcomes = until_stopped(stop, executing.preview(&experiments)).await?;
        Executed { outcomes, upgrade: None, was_stopped: false }
    } else {
        executing.execute(&experiments).await?
    };
    let Executed { mut outcomes, upgrade, was_stopped } = executed;
    outcomes.extend(left_out);
    let mut report = RunReport {
        schema_version: SCHEMA,
        run: executing.run.id.clone(),
        cluster: executing.cluster.description(),
        outcome: String::new(),
        upgrade,
        experiments: outcomes,
    };
    let run = executing.run;
    let worst = report.worst();
    report.outcome = if was_stopped { "Interrupted" } else { worst.word() }.to_owned();
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
    Ok(end(&report, worst, stopped, arguments.fail_on_verdict))
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

fn end(report: &RunReport, worst: Verdict, stopped: Option<ExitCode>, fail_on: FailOnVerdict) -> End {
    let recover = "take it back with `pushback upgrade recover`".to_owned();
    if report.experiments.iter().any(|outcome| !outcome.revert_error.is_empty()) {
        let mut end = End::new(ExitCode::Partial, "failed", Counts::default());
        "something that was injected could not be taken back".clone_into(&mut end.error);
        end.hints.push(recover);
        return end;
    }
    if let Some(code) = stopped {
        let mut end = End::new(code, "interrupted", Counts::default());
        "stopped by a signal; what was injected is taken back".clone_into(&mut end.error);
        return end;
    }
    if fail_on.fails(worst) {
        let mut end = End::new(ExitCode::Failed, "failed", Counts::default());
        end.error = format!("an experiment ended {}", worst.word());
        return end;
    }
    End::new(ExitCode::Success, "succeeded", Counts::default())
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
    was_stopped: bool,
}

struct Executing<'a> {
    global: &'a GlobalArgs,
    run: &'a mut Run,
    cluster: Arc<dyn Cluster>,
    site: &'a Site,
    arguments: &'a ExecuteArgs,
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
        let terms = self.arguments.lock.terms();
        let taking = async {
            let (around, id) = (&self.run.surroundings, &self.run.id);
            Locks::take(&self.cluster, &kinds, around, id, &namespaces, terms).await.map_err(locked)
        };
        let locks = until_stopped(stop, taking).await?;
        let executed = match self.require_nothing_left(&namespaces).await {
            Ok(()) => self.both_phases(experiments, &locks).await,
            Err(error) => Err(error),
        };
        locks.release().await;
        let (outcomes, upgrade) = executed?;
        let was_stopped = signals::exit_code(*self.run.stop.borrow()).is_some();
        Ok(Executed { outcomes, upgrade, was_stopped })
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
        let message = format!("a run that was killed has left: {}", left.describe().join("; "));
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
            tell,
        }
    }

    /// Those that belong before the upgrade inject, the upgrade is made, they are judged and taken back, and then the
    /// others run, one after the other.
    async fn both_phases(
        &mut self,
        experiments: &[Experiment],
        locks: &Locks,
    ) -> Result<(Vec<Outcome>, Option<UpgradeReport>), CommandError> {
        let events = self.run.events.clone();
        let tell = move |message: String| events.send(Event::Diagnostic { code: "experiment".to_owned(), message });
        let numbered: Vec<(usize, &Experiment)> = (1..).zip(experiments).collect();
        let (before, others): (Vec<_>, Vec<_>) =
            numbered.into_iter().partition(|(_, experiment)| is_before(experiment));
        let mut outcomes: Vec<Outcome> = Vec::new();
        let mut upgrade = None;
        let mut unsteady: Option<String> = None;
        if self.arguments.upgrade.upgrade {
            let begun = begin_all(&self.runner(locks, &tell), &before, &mut outcomes).await;
            let steps: Vec<Step> = begun.iter().flat_map(|begun| begun.steps().to_vec()).collect();
            let report = self.upgrade(&steps).await;
            let runner = self.runner(locks, &tell);
            for mut begun in begun.into_iter().rev() {
                runner.observe(&mut begun).await;
                outcomes.push(runner.finish(begun).await);
            }
            let report = report?;
            if report.exit_code != 0 {
                unsteady = Some("the upgrade failed".to_owned());
            }
            upgrade = Some(report);
        } else {
            let reason = "needs upgrade: give --upgrade with -a APP and -f NEW";
            outcomes.extend(before.iter().map(|(_, skipped)| Outcome { reason: reason.to_owned(), ..blank(skipped) }));
        }
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
            outcomes.push(match reason {
                Some(reason) => Outcome { reason, ..blank(experiment) },
                None => runner.execute(experiment, number).await,
            });
        }
        Ok((outcomes, upgrade))
    }

    /// Applies the new release, and judges what it did beside what it was meant to.
    async fn upgrade(&mut self, injected: &[Step]) -> Result<UpgradeReport, CommandError> {
        let app = self.arguments.upgrade.app(&self.site.allowed);
        let arguments = self.arguments.upgrade.apply_arguments(&app);
        let before = judge::look(&*self.cluster, &app, &self.site.allowed).await.map_err(unread)?;
        let end = apply::within(self.global, self.run, &arguments).await.unwrap_or_else(|error| End::error(&error));
        // Kinds may have come and gone.
        let notices = self.run.notices();
        self.cluster = connect(self.global, Some(notices), &|text| self.run.announce(text)).await?.cluster;
        let mut checks = vec![Looked {
            check: "the new release is applied and ready".to_owned(),
            passed: end.code == ExitCode::Success,
            detail: end.error,
        }];
        checks.extend(before.judge(&*self.cluster, injected).await.map_err(unread)?);
        Ok(UpgradeReport { exit_code: end.code.code(), passed: checks.iter().all(|check| check.passed), checks })
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

/// What an upgrade must keep cannot be read.
fn unread(error: JudgeError) -> CommandError {
    let mut unread = match error {
        JudgeError::App(error) => CommandError::from(error),
        JudgeError::Cluster(error) => CommandError::from(error),
    };
    for error in &mut unread.errors {
        error.message = format!("what the upgrade must keep cannot be read: {}", error.message);
    }
    unread
}
