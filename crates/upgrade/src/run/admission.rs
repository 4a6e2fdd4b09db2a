//! WebhookDisrupt: how the webhook admits before its backend is made unreachable, and while it is.

use std::time::Duration;

use pushback_cluster::ClusterError;
use pushback_preflight::experiment::InjectionType;
use tokio::time::Instant;

use super::{ActiveExperiment, Runner};
use crate::outcome::Outcome;
use crate::probe::{self, Admission, Measurements, SLOW_SECONDS};
use crate::steady::POLL;

/// How long the API server may take to hear of a changed configuration.
const HEARS: Duration = Duration::from_secs(15);

impl Runner<'_> {
    /// Measures admission as it is. If it is not answered, there is nothing to disrupt.
    pub(super) async fn measure_before(&self, begun: &mut ActiveExperiment<'_>) {
        if begun.experiment.injection.kind != InjectionType::WebhookDisrupt {
            return;
        }
        match self.measure(begun).await {
            Err(error) => begun.outcome.notes.push(format!("admission could not be measured: {error}")),
            Ok(measured) => {
                note(&measured, &mut begun.outcome);
                let silent = measured.inside.iter().filter(|admission| admission.answer == "unavailable");
                for admission in silent {
                    let detail = format!("webhook {}: {}", admission.webhook, admission.detail);
                    begun.outcome.deviate("admission_unavailable", detail);
                    begun.planned.steps.clear();
                }
                if begun.planned.steps.is_empty() {
                    begun.outcome.changes.clear();
                    begun.outcome.notes.push("nothing is changed: its backend cannot be reached as it is".to_owned());
                }
                if measured.inside.is_empty() {
                    let namespace = begun.experiment.injection_namespace();
                    begun.outcome.unexercised =
                        Some(format!("no write reached the webhook: namespace {namespace} has no object in its scope"));
                }
                begun.outcome.admissions_before = all(measured, &mut begun.outcome.notes);
            }
        }
    }

    /// Measures admission with the backend unreachable, until the server has heard of it.
    pub(super) async fn measure_under_fault(&self, begun: &mut ActiveExperiment<'_>) {
        if begun.experiment.injection.kind != InjectionType::WebhookDisrupt || !begun.is_made {
            return;
        }
        let is_refused = begun.experiment.injection.parameters.get("value").is_some_and(|value| value == "Fail");
        let end = Instant::now() + HEARS;
        let measured = loop {
            match self.measure(begun).await {
                Err(error) => return begun.outcome.notes.push(format!("admission could not be measured: {error}")),
                Ok(measured) => {
                    let as_expected = |admission: &Admission| match is_refused {
                        true => admission.answer == "unavailable",
                        false => !["denied", "unavailable"].contains(&admission.answer),
                    };
                    if measured.inside.iter().all(as_expected) || Instant::now() >= end || self.is_stopped() {
                        break measured;
                    }
                }
            }
            tokio::time::sleep(POLL).await;
        };
        let outcome = &mut begun.outcome;
        note(&measured, outcome);
        for admission in &measured.inside {
            match (is_refused, admission.answer) {
                (true, "unavailable") => {}
                (false, "unavailable") => {
                    let detail = format!("webhook {}: {}", admission.webhook, admission.detail);
                    outcome.deviate("admission_unavailable", detail);
                }
                (true, _) => {
                    let why = format!(
                        "no write reached webhook {}: the {} was {} although its backend could not be reached",
                        admission.webhook, admission.request, admission.answer
                    );
                    outcome.unexercised.get_or_insert(why);
                }
                (false, _) => {}
            }
        }
        outcome.admissions = all(measured, &mut outcome.notes);
    }

    async fn measure(&self, begun: &ActiveExperiment<'_>) -> Result<Measurements, ClusterError> {
        let kinds = self.cluster.kinds().await?;
        let mut whole = Measurements::default();
        for target in &begun.planned.measured {
            if let Some(live) = self.cluster.get(&target.address(&kinds)?).await? {
                let namespace = begun.experiment.injection_namespace();
                let measured = probe::measure(&*self.cluster, &kinds, &live, namespace).await?;
                whole.inside.extend(measured.inside);
                whole.outside.extend(measured.outside);
                whole.notes.extend(measured.notes);
            }
        }
        Ok(whole)
    }
}

/// Adds what is a deviation at any time.
fn note(measured: &Measurements, outcome: &mut Outcome) {
    for admission in measured.inside.iter().filter(|admission| admission.seconds > SLOW_SECONDS) {
        let seconds = admission.seconds;
        outcome.deviate("slow_admission", format!("webhook {} took {seconds:.1} s", admission.webhook));
    }
    let affected = measured.outside.iter().filter(|outside| ["denied", "unavailable"].contains(&outside.answer));
    for outside in affected {
        outcome.deviate("outside_scope_affected", format!("{}: {}", outside.request, outside.detail));
    }
}

/// The requests of a measurement; its remarks are added once.
fn all(measured: Measurements, notes: &mut Vec<String>) -> Vec<Admission> {
    for note in measured.notes {
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
    measured.inside.into_iter().chain(measured.outside).collect()
}
