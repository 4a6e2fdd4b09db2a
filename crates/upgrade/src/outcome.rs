//! Results of experiments: verdicts with their evidence, and the report of a run.

use pushback_crd::words;
use pushback_objects::Finding;
use serde::Serialize;

use super::probe::Admission;
use super::steady::{CheckResult, all_pass};

/// Schema version of the report.
const SCHEMA: u32 = 1;

words! {
    /// Verdict on one experiment, from best to worst.
    #[derive(Default)]
    pub enum Verdict {
        /// It did not run, for a reason outside the operator.
        #[default]
        Skipped = "Skipped",
        /// The steady state held, or recovered by itself in time.
        Resilient = "Resilient",
        /// No conclusion: no steady state before, no injection, or no evidence.
        Inconclusive = "Inconclusive",
        /// The steady state recovered only after the revert.
        Degraded = "Degraded",
        /// The steady state did not recover, or something was lost.
        Failed = "Failed",
    }
}

/// A deviation from the expected behaviour.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Deviation {
    /// Its name in reports.
    pub name: &'static str,
    /// What was observed.
    pub detail: String,
}

/// What was seen of a deletion that a finalizer held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HeldDeletion {
    /// Whether the object was there with `deletionTimestamp` and the finalizer.
    pub held: bool,
    /// Whether it was gone once the finalizer was.
    pub went_on: bool,
    /// Whether its owner has made another.
    pub recreated: bool,
}

/// Result of one experiment.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Outcome {
    /// Name of the experiment.
    pub name: String,
    /// Type of its injection.
    pub injection: String,
    /// Namespace that was injected into.
    pub namespace: String,
    /// The verdict.
    pub verdict: Verdict,
    /// Reason for the verdict, in one sentence.
    pub reason: String,
    /// The changes made, described without values.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<String>,
    /// Steady-state checks before the injection.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub before: Vec<CheckResult>,
    /// Steady-state checks at the end of the observation, with the injection in place.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub under_fault: Vec<CheckResult>,
    /// Steady-state checks after the revert.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<CheckResult>,
    /// Time until the cluster recovered by itself; `None` if it did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recovery_seconds: Option<f64>,
    /// Admission requests measured before the injection.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub admissions_before: Vec<Admission>,
    /// Admission requests measured with the injection in place.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub admissions: Vec<Admission>,
    /// What was seen of a deletion that a finalizer held.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletion: Option<HeldDeletion>,
    /// Injected values that the object no longer holds.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<String>,
    /// Why the hypothesis was not exercised, if so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unexercised: Option<String>,
    /// Deviations from the expected behaviour.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deviations: Vec<Deviation>,
    /// Remarks for the reader.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// What the revert did not restore exactly; its journal, which holds the old values, is kept.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_restored: Vec<String>,
    /// Why the revert failed; its journal is kept.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub revert_error: String,
}

impl Outcome {
    /// Whether every change was reverted exactly.
    #[must_use]
    pub fn is_restored(&self) -> bool {
        self.revert_error.is_empty() && self.not_restored.is_empty()
    }

    /// Whether it leaves the cluster as it was, whatever the verdict on the operator is.
    #[must_use]
    pub fn leaves_steady(&self) -> bool {
        self.verdict != Verdict::Failed || (self.is_restored() && !self.lost.is_empty() && all_pass(&self.after))
    }

    /// Adds a deviation.
    pub fn deviate(&mut self, name: &'static str, detail: impl Into<String>) {
        self.deviations.push(Deviation { name, detail: detail.into() });
    }
}

/// One step of a run that a dry run foresees.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RunStep {
    /// The experiments that it belongs to; empty for the run itself.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub experiment: String,
    /// `create`, `patch`, `delete`; `apply`; `ask`, `wait` and `watch`, which write nothing; `plan` for what is known later.
    pub action: &'static str,
    /// The object: `ConfigMap shop/settings`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub object: String,
    /// What it does.
    pub detail: String,
}

impl RunStep {
    /// A step.
    #[must_use]
    pub fn new(experiment: &str, action: &'static str, object: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { experiment: experiment.to_owned(), action, object: object.into(), detail: detail.into() }
    }
}

/// The report of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RunReport {
    /// Schema version.
    pub schema_version: u32,
    /// Id of the run.
    pub run: String,
    /// The cluster, as shown to people.
    pub cluster: String,
    /// The worst verdict; `Interrupted`; or `NotUpgraded` if the upgrade did not happen.
    pub outcome: String,
    /// Result of the upgrade, if there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upgrade: Option<UpgradeReport>,
    /// The experiments, in the order in which they ran.
    pub experiments: Vec<Outcome>,
    /// The steps that a dry run foresees, in their order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<RunStep>,
}

/// Result of an upgrade between the injections.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UpgradeReport {
    /// Exit code of the apply.
    pub exit_code: u8,
    /// Whether it was applied, at least in part.
    pub made: bool,
    /// Why it was not applied; empty if it was.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Findings for which preflight refused it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Finding>,
    /// Whether all checks passed.
    pub passed: bool,
    /// Checks on data, configuration, restarts and orphans.
    pub checks: Vec<CheckResult>,
}

impl RunReport {
    /// The report of a run with these results.
    #[must_use]
    pub fn of(
        run: String,
        cluster: String,
        upgrade: Option<UpgradeReport>,
        experiments: Vec<Outcome>,
        was_stopped: bool,
    ) -> Self {
        let outcome = String::new();
        let report = Self { schema_version: SCHEMA, run, cluster, outcome, upgrade, experiments, steps: Vec::new() };
        let outcome = match report.unmade_upgrade() {
            _ if was_stopped => "Interrupted",
            Some(_) => "NotUpgraded",
            None => report.worst().as_str(),
        };
        Self { outcome: outcome.to_owned(), ..report }
    }

    /// The requested upgrade, if it was not applied.
    #[must_use]
    pub fn unmade_upgrade(&self) -> Option<&UpgradeReport> {
        self.upgrade.as_ref().filter(|upgrade| !upgrade.made)
    }

    /// The worst verdict; `Skipped` if nothing ran.
    #[must_use]
    pub fn worst(&self) -> Verdict {
        // An upgrade that did not happen proves nothing.
        let made = self.upgrade.as_ref().filter(|upgrade| upgrade.made);
        let upgrade = made.map(|upgrade| if upgrade.passed { Verdict::Resilient } else { Verdict::Failed });
        self.experiments.iter().map(|outcome| outcome.verdict).chain(upgrade).max().unwrap_or(Verdict::Skipped)
    }

    /// The checks of the upgrade that failed.
    pub fn failed_checks(&self) -> impl Iterator<Item = &CheckResult> {
        let made = self.upgrade.iter().filter(|upgrade| upgrade.made);
        made.flat_map(|upgrade| &upgrade.checks).filter(|check| !check.passed)
    }
}
