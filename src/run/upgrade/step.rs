//! The upgrade between experiments: an apply of the new release. Preflight runs before any injection and again during
//! the apply; the result is judged by the cluster's state.

use std::collections::BTreeSet;
use std::sync::Arc;

use pushback_app::record::AppName;
use pushback_cluster::Cluster;
use pushback_events::exit::ExitCode;
use pushback_objects::ObjectKey;
use pushback_objects::text::counted;
use pushback_upgrade::change::Step;
use pushback_upgrade::outcome::UpgradeReport;
use pushback_upgrade::side_effects::{self, Before, SideEffectsError};
use pushback_upgrade::steady::CheckResult;

use crate::run::Run;
use crate::run::apply::Apply;
use crate::run::connect::connect;
use crate::run::error::CommandError;
use crate::run::outcome::End;
use crate::run::write_loop::StopAfter;

/// Result of an upgrade.
#[derive(Debug)]
pub struct UpgradeResult {
    /// Its report; an error if the effects could not be read.
    pub report: Result<UpgradeReport, CommandError>,
    /// Whether it was applied, at least in part.
    pub made: bool,
    /// Objects of the old release that it removed.
    pub removed: BTreeSet<ObjectKey>,
    /// How the apply ended, if nothing was applied.
    pub unmade: Option<End>,
}

/// The upgrade of one run.
#[derive(Clone, Debug)]
pub struct Upgrade {
    /// The apply of the new release.
    pub apply: Apply,
    /// The app.
    pub app: AppName,
    /// Namespaces that experiments may inject into.
    pub namespaces: BTreeSet<String>,
}

impl Upgrade {
    /// Runs preflight before any injection. Returns the report and the apply's end if it refuses.
    ///
    /// # Errors
    /// The release cannot be read or planned.
    pub async fn refusal(&self, run: &mut Run) -> Result<Option<(UpgradeReport, End)>, CommandError> {
        let end = self.apply.run(run, StopAfter::Verdict).await?;
        Ok((end.code != ExitCode::Success).then(|| (unmade(&end), end)))
    }

    /// Applies the new release, and judges its side effects. `injected` is in place meanwhile.
    pub async fn make(&self, run: &mut Run, cluster: &mut Arc<dyn Cluster>, injected: &[Step]) -> UpgradeResult {
        let failed = |error, made| UpgradeResult { report: Err(error), made, removed: BTreeSet::new(), unmade: None };
        let before = match side_effects::look(&**cluster, &self.app, &self.namespaces).await {
            Ok(before) => before,
            Err(error) => return failed(unread(error), false),
        };
        let end = self.apply.run(run, StopAfter::End).await.unwrap_or_else(|error| End::error(&error));
        if !was_made(&end) {
            let report = Ok(unmade(&end));
            return UpgradeResult { report, made: false, removed: BTreeSet::new(), unmade: Some(end) };
        }
        // The upgrade may have added and removed kinds.
        let notices = run.notices();
        match connect(&self.apply.options.cluster, Some(notices), &|text| run.announce(text)).await {
            Ok(connected) => *cluster = connected.cluster,
            Err(error) => return failed(error, true),
        }
        match judged(&before, &**cluster, injected, &end).await {
            Ok((report, removed)) => UpgradeResult { report: Ok(report), made: true, removed, unmade: None },
            Err(error) => failed(unread(error), true),
        }
    }
}

async fn judged(
    before: &Before,
    cluster: &dyn Cluster,
    injected: &[Step],
    end: &End,
) -> Result<(UpgradeReport, BTreeSet<ObjectKey>), SideEffectsError> {
    let mut checks = vec![CheckResult {
        check: "the new release is applied and ready".to_owned(),
        passed: end.code == ExitCode::Success,
        detail: end.error.clone(),
    }];
    checks.extend(before.check(cluster, injected).await?);
    let passed = checks.iter().all(|check| check.passed);
    let report = UpgradeReport { exit_code: end.code.code(), made: true, passed, checks, ..UpgradeReport::default() };
    Ok((report, before.disowned(cluster).await?))
}

/// Whether an apply reached its first write.
fn was_made(end: &End) -> bool {
    let before_the_first_write = match end.code {
        ExitCode::Usage | ExitCode::Refused | ExitCode::Stale | ExitCode::Locked | ExitCode::Unreachable => true,
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

/// The error if the state that an upgrade must preserve cannot be read.
fn unread(error: SideEffectsError) -> CommandError {
    let unread = match error {
        SideEffectsError::App(error) => CommandError::from(error),
        SideEffectsError::Cluster(error) => CommandError::from(error),
    };
    unread.with_prefix("what the upgrade must keep cannot be read")
}
