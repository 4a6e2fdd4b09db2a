//! What became of experiments: verdicts with their evidence, and the report of a run.

use pushback_preflight::Finding;
use serde::Serialize;

use super::probe::Admission;
use super::steady::Looked;

/// Layout of the report.
const SCHEMA: u32 = 1;

/// Verdict on one experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Verdict {
    /// It was not made, for a reason that is no fault of the operator's.
    Skipped,
    /// The steady state held, or came back by itself in time.
    Resilient,
    /// Nothing can be said: no steady state before, no injection, or nothing to judge by.
    Inconclusive,
    /// The steady state came back only once the injection was taken back.
    Degraded,
    /// The steady state did not come back, or something was lost.
    Failed,
}

impl Verdict {
    /// As it is written.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Skipped => "Skipped",
            Self::Resilient => "Resilient",
            Self::Inconclusive => "Inconclusive",
            Self::Degraded => "Degraded",
            Self::Failed => "Failed",
        }
    }
}

/// One thing that was not as it should be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Deviation {
    /// A word for it.
    pub name: &'static str,
    /// What was seen.
    pub detail: String,
}

/// One experiment, from its start to its end.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Outcome {
    /// Name of the experiment.
    pub name: String,
    /// Type of its injection.
    pub injection: String,
    /// Where it was injected.
    pub namespace: String,
    /// Verdict.
    pub verdict: Verdict,
    /// Why, in one sentence.
    pub reason: String,
    /// What was changed, in words without values.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<String>,
    /// The steady state before.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub before: Vec<Looked>,
    /// The steady state while the injection was there, at the end of the observation.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub under_fault: Vec<Looked>,
    /// The steady state after it was taken back.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<Looked>,
    /// How long it took until the cluster was by itself as before; absent where it was not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recovery_seconds: Option<f64>,
    /// Admission requests that were measured.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub admissions: Vec<Admission>,
    /// What was not as it should be.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deviations: Vec<Deviation>,
    /// What the reader should know.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// What is not exactly as it was before; then its journal, which says what was, is still there.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_restored: Vec<String>,
    /// Why it could not be taken back; then its journal is still there.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub revert_error: String,
}

impl Outcome {
    /// Whether all that was changed is as it was.
    #[must_use]
    pub fn is_restored(&self) -> bool {
        self.revert_error.is_empty() && self.not_restored.is_empty()
    }

    /// Adds something that was not as it should be.
    pub fn deviate(&mut self, name: &'static str, detail: impl Into<String>) {
        self.deviations.push(Deviation { name, detail: detail.into() });
    }
}

/// The report of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RunReport {
    /// Layout.
    pub schema_version: u32,
    /// The run.
    pub run: String,
    /// The cluster.
    pub cluster: String,
    /// The worst verdict, or `Interrupted`, or `NotUpgraded` where the upgrade did not happen.
    pub outcome: String,
    /// What the upgrade showed, where one was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upgrade: Option<UpgradeReport>,
    /// The experiments, in the order in which they ran.
    pub experiments: Vec<Outcome>,
}

/// What an upgrade between the injections showed.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UpgradeReport {
    /// How the apply ended: its exit code.
    pub exit_code: u8,
    /// Whether it was made, in part at least.
    pub made: bool,
    /// Why it was not; empty where it was.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Why preflight refused it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Finding>,
    /// Whether all that is judged holds.
    pub passed: bool,
    /// What was judged: data, configuration, restarts, orphans.
    pub checks: Vec<Looked>,
}

impl RunReport {
    /// Of what has come of a run.
    #[must_use]
    pub fn of(
        run: String,
        cluster: String,
        upgrade: Option<UpgradeReport>,
        experiments: Vec<Outcome>,
        was_stopped: bool,
    ) -> Self {
        let report = Self { schema_version: SCHEMA, run, cluster, outcome: String::new(), upgrade, experiments };
        let outcome = match report.unmade_upgrade() {
            _ if was_stopped => "Interrupted",
            Some(_) => "NotUpgraded",
            None => report.worst().word(),
        };
        Self { outcome: outcome.to_owned(), ..report }
    }

    /// The upgrade that should have been made, and was not.
    #[must_use]
    pub fn unmade_upgrade(&self) -> Option<&UpgradeReport> {
        self.upgrade.as_ref().filter(|upgrade| !upgrade.made)
    }

    /// The worst verdict; `Skipped` where nothing ran.
    #[must_use]
    pub fn worst(&self) -> Verdict {
        // One that did not happen says nothing.
        let made = self.upgrade.as_ref().filter(|upgrade| upgrade.made);
        let upgrade = made.map(|upgrade| if upgrade.passed { Verdict::Resilient } else { Verdict::Failed });
        self.experiments.iter().map(|outcome| outcome.verdict).chain(upgrade).max().unwrap_or(Verdict::Skipped)
    }
}
