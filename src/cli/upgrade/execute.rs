//! `pushback upgrade run`: runs experiments on a cluster, one after the other, and takes back what they inject.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum};
use pushback_preflight::experiment::{DangerLevel, Experiment};

use super::step::UpgradeStepArgs;
use super::{ReportFormat, ShownArgs, data_text};
use crate::cli::arguments::{GlobalArgs, duration};
use crate::cli::screen::{HeldDocument, complete, start_for_report};
use crate::exit::ExitCode;
use crate::path_safety::check_folder;
use crate::report::check::file::{ReportSpec, is_standard_output, write_text};
use crate::report::check::formats;
use crate::report::output::Output;
use crate::report::release::experiments_text;
use crate::run::Run;
use crate::run::error::CommandError;
use crate::run::outcome::End;
use crate::run::upgrade::execute::Execute;
use crate::run::upgrade::experiments::{self, Given};
use crate::upgrade::inject::Site;
use crate::upgrade::lock::Terms;
use crate::upgrade::outcome::{Outcome, RunReport, Verdict};
use crate::upgrade::run::blank;

/// Renders a report of experiments.
type Render = fn(&RunReport) -> Result<String, CommandError>;

/// The formats of reports of experiments: the word, the file in a folder of reports, what renders it.
const FORMATS: [(&str, &str, Render); 2] = [
    ("json", "results.json", |report| data_text(report, ReportFormat::Json)),
    ("junit", "suite-results.xml", |report| Ok(experiments_text::junit(report))),
];

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
    /// The least bad verdict that makes the command fail.
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
    /// How experiments run.
    ///
    /// # Errors
    /// No namespace is allowed; what [`UpgradeStepArgs::resolve`] refuses.
    pub fn resolve(self, global: &GlobalArgs, dry_run: bool) -> Result<Execute, CommandError> {
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
            upgrade: self.upgrade.resolve(global, &allowed)?,
            site: Site { allowed: allowed.into_iter().collect(), max_danger },
            terms: self.lock.terms(),
            dry_run,
            fail_on: self.fail_on_verdict.least(),
        })
    }
}

/// Runs the command.
pub async fn run(global: &GlobalArgs, arguments: RunArgs) -> ExitCode {
    let RunArgs { suite, dry_run, execute, shown } = arguments;
    complete(global, start_for_report(global, HeldDocument::default()), async |run| {
        let Given { experiments, switched_off } = experiments::read(&suite)?;
        let off = |(experiment, reason)| Outcome { reason, ..blank(&experiment) };
        let left_out = switched_off.into_iter().map(off).collect();
        let (path, format) = shown.place()?;
        let told = Told::of(path, format, &execute)?;
        let execute = execute.resolve(global, dry_run)?;
        execute_and_tell(run, &execute, &told, experiments, left_out).await
    })
    .await
}

/// Runs experiments, and reports; `left_out` are those of the suite that cannot run.
///
/// # Errors
/// No cluster, another run at work, what a killed run has left, or a report that cannot be written.
pub async fn execute_and_tell(
    run: &mut Run,
    execute: &Execute,
    told: &Told,
    experiments: Vec<Experiment>,
    left_out: Vec<Outcome>,
) -> Result<End, CommandError> {
    let executed = execute.run(run, experiments, left_out).await?;
    run.settle();
    told.tell(&executed.report)?;
    Ok(executed.end())
}

/// Where the report of experiments goes, and how it reads.
#[derive(Clone, Debug)]
pub struct Told {
    path: PathBuf,
    format: ReportFormat,
    /// A report drives it from standard output: it is told where progress is.
    on_errors: bool,
    reports: Vec<(Render, PathBuf)>,
}

impl Told {
    /// The report itself, to standard output where no path is given, and those that flags ask for.
    ///
    /// # Errors
    /// One cannot be written, or two go to standard output.
    pub fn of(path: Option<PathBuf>, format: ReportFormat, arguments: &ExecuteArgs) -> Result<Self, CommandError> {
        let path = path.unwrap_or_else(|| PathBuf::from("-"));
        let reports = reports(arguments)?;
        let on_errors = one_document(&path, format, &reports)?;
        Ok(Self { path, format, on_errors, reports })
    }

    fn tell(&self, report: &RunReport) -> Result<(), CommandError> {
        let text = match self.format {
            ReportFormat::Table => experiments_text::table(report),
            ReportFormat::Markdown => experiments_text::markdown(report),
            format @ (ReportFormat::Json | ReportFormat::Yaml) => data_text(report, format)?,
        };
        if self.on_errors {
            Output::standard().progress(&text);
        } else {
            write_text(&self.path, &text)?;
        }
        for (render, path) in &self.reports {
            write_text(path, &render(report)?)?;
        }
        Ok(())
    }
}

/// Standard output holds one document: a report that goes there drives out the table, which is then told where progress
/// is, and nothing else. Returns whether it does.
///
/// # Errors
/// Two documents are asked for.
fn one_document(path: &Path, format: ReportFormat, reports: &[(Render, PathBuf)]) -> Result<bool, CommandError> {
    let on_standard_output = reports.iter().filter(|(_, path)| is_standard_output(path)).count();
    let shown_too = is_standard_output(path) && on_standard_output > 0;
    if on_standard_output > 1 || (shown_too && format != ReportFormat::Table) {
        return Err(CommandError::usage_with_hint("two reports go to standard output", "name a file for one of them"));
    }
    Ok(shown_too)
}

/// Where reports go; whether they can be written is tried before anything is injected.
fn reports(arguments: &ExecuteArgs) -> Result<Vec<(Render, PathBuf)>, CommandError> {
    let mut reports: Vec<(Render, ReportSpec)> = Vec::new();
    for flag in &arguments.report {
        let spec: ReportSpec = flag.parse()?;
        let Some((_, _, render)) = FORMATS.iter().find(|(format, ..)| *format == spec.format.word) else {
            return Err(CommandError::usage(format!(
                "report {flag}: a run of experiments is reported as json or junit"
            )));
        };
        reports.push((*render, spec));
    }
    if let Some(folder) = &arguments.report_dir {
        check_folder(folder).and_then(|()| std::fs::create_dir_all(folder)).map_err(|error| {
            let reason = crate::surroundings::reason(&error);
            CommandError::usage(format!("cannot make folder {}: {reason}", folder.display()))
        })?;
        for (word, file, render) in FORMATS {
            let format = formats::find(word).unwrap_or(&formats::JSON);
            reports.push((render, ReportSpec { format, path: folder.join(file) }));
        }
    }
    reports.iter().try_for_each(|(_, spec)| spec.prepare())?;
    Ok(reports.into_iter().map(|(render, spec)| (render, spec.path)).collect())
}
