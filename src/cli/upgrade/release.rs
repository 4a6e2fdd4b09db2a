//! The upgrade between experiments: `pushback apply` of the new release. Preflight is heard before anything is injected,
//! and again when it is made; what has come of it is judged by what the cluster holds.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use pushback_preflight::ObjectKey;

use crate::app::record::AppName;
use crate::cli::apply::{self, Upto};
use crate::cli::arguments::{GlobalArgs, app_name, duration};
use crate::cli::run::Run;
use crate::cluster::Cluster;
use crate::exit::ExitCode;
use crate::report::words::counted;
use crate::run::connect::connect;
use crate::run::error::CommandError;
use crate::run::outcome::End;
use crate::upgrade::change::Step;
use crate::upgrade::judge::{self, Before, JudgeError};
use crate::upgrade::outcome::UpgradeReport;
use crate::upgrade::steady::Looked;

/// What the run is called in progress.
const COMMAND: &str = "upgrade";

/// The upgrade between experiments.
#[derive(Clone, Debug, Args)]
pub struct UpgradeStepArgs {
    /// Apply the new release after the injections that belong before it, and judge what it did
    #[arg(long, requires_all = ["app", "file"])]
    pub upgrade: bool,
    /// With --upgrade: the app
    #[arg(long, short = 'a', value_name = "NAME", requires = "upgrade", value_parser = app_name)]
    pub app: Option<String>,
    /// With --upgrade: namespace of the app's record [default: the first --allow-namespace]
    #[arg(long, short = 'n', value_name = "NAME", requires = "upgrade")]
    pub namespace: Option<String>,
    /// With --upgrade: the new release, as for `pushback apply`; can be given more than once
    #[arg(long, short = 'f', value_name = "PATH", requires = "upgrade")]
    pub file: Vec<String>,
    /// With --upgrade: file with Config documents, as for `pushback apply`; can be given more than once
    #[arg(long, value_name = "FILE", requires = "upgrade")]
    pub config: Vec<String>,
    /// With --upgrade: run exactly these preflight rules, as for `pushback apply`
    #[arg(long, value_name = "RULES", num_args = 0..=1, default_missing_value = "", require_equals = true,
          requires = "upgrade")]
    pub preflight: Option<Vec<String>>,
    /// With --upgrade: accept one finding of preflight, `FINGERPRINT[@COUNT]=REASON`, as for `pushback apply`; can be given more
    /// than once
    #[arg(long, value_name = "FINGERPRINT[@COUNT]=REASON", requires = "upgrade")]
    pub waive: Vec<String>,
    /// With --upgrade: how long the apply may take
    #[arg(long, value_name = "DURATION", default_value = "15m", value_parser = duration, hide_short_help = true)]
    pub wait_timeout: Duration,
}

impl UpgradeStepArgs {
    fn app(&self, allowed: &[String]) -> AppName {
        let namespace = self.namespace.clone().or_else(|| allowed.first().cloned()).unwrap_or_default();
        AppName { name: self.app.clone().unwrap_or_default(), namespace }
    }

    /// As `pushback apply` takes them.
    fn apply_arguments(&self, app: &AppName) -> Vec<String> {
        let mut arguments = vec![format!("--app={}", app.name), format!("--namespace={}", app.namespace)];
        arguments.extend(self.file.iter().map(|file| format!("--file={file}")));
        arguments.extend(self.config.iter().map(|file| format!("--config={file}")));
        arguments.extend(self.preflight.iter().flatten().map(|rules| format!("--preflight={rules}")));
        arguments.extend(self.waive.iter().map(|waiver| format!("--waive={waiver}")));
        arguments.push(format!("--wait-timeout={}s", self.wait_timeout.as_secs()));
        arguments
    }
}

/// What came of an upgrade.
#[derive(Debug)]
pub struct Upgraded {
    /// What it showed; an error where that could not be read.
    pub report: Result<UpgradeReport, CommandError>,
    /// Whether it was made, in part at least.
    pub made: bool,
    /// What of the old release it has removed.
    pub removed: BTreeSet<ObjectKey>,
    /// How the apply ended, where nothing was made.
    pub unmade: Option<End>,
}

/// The upgrade of one run.
#[derive(Debug)]
pub struct Upgrade<'a> {
    global: &'a GlobalArgs,
    app: AppName,
    arguments: Vec<String>,
    namespaces: BTreeSet<String>,
}

impl<'a> Upgrade<'a> {
    /// `None` where none was asked for.
    pub fn of(global: &'a GlobalArgs, arguments: &UpgradeStepArgs, allowed: &[String]) -> Option<Self> {
        let app = arguments.app(allowed);
        let namespaces = allowed.iter().cloned().collect();
        let of = Self { global, arguments: arguments.apply_arguments(&app), app, namespaces };
        arguments.upgrade.then_some(of)
    }

    /// Asks preflight before anything is injected. The report and the apply's end where it refuses.
    ///
    /// # Errors
    /// The release cannot be read or planned.
    pub async fn refusal(&self, run: &mut Run) -> Result<Option<(UpgradeReport, End)>, CommandError> {
        let end = apply::within(self.global, run, COMMAND, &self.arguments, Upto::Verdict).await?;
        Ok((end.code != ExitCode::Success).then(|| (unmade(&end), end)))
    }

    /// Applies the new release, and judges what it did beside what it was meant to. `injected` is there meanwhile.
    pub async fn make(&self, run: &mut Run, cluster: &mut Arc<dyn Cluster>, injected: &[Step]) -> Upgraded {
        let failed = |error, made| Upgraded { report: Err(error), made, removed: BTreeSet::new(), unmade: None };
        let before = match judge::look(&**cluster, &self.app, &self.namespaces).await {
            Ok(before) => before,
            Err(error) => return failed(unread(error), false),
        };
        let applied = apply::within(self.global, run, COMMAND, &self.arguments, Upto::End).await;
        let end = applied.unwrap_or_else(|error| End::error(&error));
        if !was_made(&end) {
            let report = Ok(unmade(&end));
            return Upgraded { report, made: false, removed: BTreeSet::new(), unmade: Some(end) };
        }
        // Kinds may have come and gone.
        let notices = run.notices();
        match connect(self.global, Some(notices), &|text| run.announce(text)).await {
            Ok(connected) => *cluster = connected.cluster,
            Err(error) => return failed(error, true),
        }
        match judged(&before, &**cluster, injected, &end).await {
            Ok((report, removed)) => Upgraded { report: Ok(report), made: true, removed, unmade: None },
            Err(error) => failed(unread(error), true),
        }
    }
}

async fn judged(
    before: &Before,
    cluster: &dyn Cluster,
    injected: &[Step],
    end: &End,
) -> Result<(UpgradeReport, BTreeSet<ObjectKey>), JudgeError> {
    let mut checks = vec![Looked {
        check: "the new release is applied and ready".to_owned(),
        passed: end.code == ExitCode::Success,
        detail: end.error.clone(),
    }];
    checks.extend(before.judge(cluster, injected).await?);
    let passed = checks.iter().all(|check| check.passed);
    let report = UpgradeReport { exit_code: end.code.code(), made: true, passed, checks, ..UpgradeReport::default() };
    Ok((report, before.disowned(cluster).await?))
}

/// Whether an apply has come as far as its first write.
fn was_made(end: &End) -> bool {
    let before_the_first_write = match end.code {
        ExitCode::Usage | ExitCode::Refused | ExitCode::Locked | ExitCode::Unreachable => true,
        ExitCode::Interrupted | ExitCode::Terminated => end.unfinished.is_empty(),
        _ => false,
    };
    !before_the_first_write || end.done.writes() > 0
}

fn unmade(end: &End) -> UpgradeReport {
    let reason = match (end.error.as_str(), end.refusals.len()) {
        ("", 0) => "preflight could not judge it".to_owned(),
        ("", count) => format!("preflight refused it: {}", counted(count, "finding")),
        (error, _) => error.to_owned(),
    };
    UpgradeReport { exit_code: end.code.code(), reason, findings: end.refusals.clone(), ..UpgradeReport::default() }
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
