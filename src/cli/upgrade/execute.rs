//! `pushback upgrade run`: runs experiments on a cluster one after the other, and reverts what they inject.

use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use clap::{Args, ValueEnum};
use pushback_app::lease::LockOptions;
use pushback_events::exit::ExitCode;
use pushback_preflight::experiment::DangerLevel;
use pushback_upgrade::inject::{ClusterScoped, Site};
use pushback_upgrade::outcome::Verdict;

use super::arguments::{Place, ShownArgs};
use super::reports::RunReports;
use super::step::UpgradeStepArgs;
use crate::cli::arguments::{GlobalArgs, duration};
use crate::cli::reports::HeldDocument;
use crate::cli::screen::{ProgressNotes, complete, start_for_report};
use crate::run::error::CommandError;
use crate::run::upgrade::execute::{Execute, Source};

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
run is at work there, 13 unreachable, 20 something could not be taken back, or is not exactly as it
was, 21 not resilient.")]
pub struct RunArgs {
    /// Experiments: files or folders, read recursively
    #[arg(value_name = "PATH", required = true)]
    pub suite: Vec<String>,
    /// List every step of the run in its order, and send nothing but questions
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
    /// Cluster-scoped object that experiments may change, such as ClusterRole/backup; can be given more than once
    #[arg(long, value_name = "KIND/NAME")]
    pub allow_cluster_scoped: Vec<ClusterScoped>,
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
    /// Resolves to settings.
    pub fn terms(&self) -> LockOptions {
        // A lease must be longer than the requests that renew it.
        let lease = self.lock_lease.max(Duration::from_secs(1));
        LockOptions::new(lease, self.lock_wait)
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
    /// Lowest verdict that makes the command fail.
    fn least(self) -> Option<Verdict> {
        match self {
            Self::Inconclusive => Some(Verdict::Inconclusive),
            Self::Degraded => Some(Verdict::Degraded),
            Self::Failed => Some(Verdict::Failed),
            Self::Never => None,
        }
    }
}

impl ExecuteArgs {
    /// Resolves to options, with the targets of the report.
    ///
    /// # Errors
    /// No namespace is allowed; an invalid report; the errors of [`UpgradeStepArgs::resolve`].
    pub fn resolve(
        self,
        global: &GlobalArgs,
        source: Source,
        place: Place,
        dry_run: bool,
    ) -> Result<Execute, CommandError> {
        let reports = RunReports::of(place, &self.report, self.report_dir)?;
        let allowed = self.allow_namespace;
        if allowed.is_empty() {
            return Err(CommandError::usage_with_hint(
                "no namespace may be injected into",
                "name each with --allow-namespace NAMESPACE",
            ));
        }
        let max_danger = match self.max_danger {
            Danger::Low => DangerLevel::Low,
            Danger::Medium => DangerLevel::Medium,
            Danger::High => DangerLevel::High,
        };
        Ok(Execute {
            cluster: global.cluster()?,
            source,
            upgrade: self.upgrade.resolve(global, &allowed)?,
            site: Site {
                allowed: allowed.into_iter().collect(),
                max_danger,
                cluster_scoped: self.allow_cluster_scoped.into_iter().collect(),
            },
            terms: self.lock.terms(),
            dry_run,
            fail_on: self.fail_on_verdict.least(),
            reports: Rc::new(reports),
        })
    }
}

/// Runs the command.
pub async fn run(global: &GlobalArgs, arguments: RunArgs) -> ExitCode {
    let RunArgs { suite, dry_run, execute, shown } = arguments;
    complete(global, start_for_report(global, HeldDocument::default()), async |run| {
        let execute = execute.resolve(global, Source::Files(suite), shown.place()?, dry_run)?;
        execute.run(run, &ProgressNotes(global)).await
    })
    .await
}
