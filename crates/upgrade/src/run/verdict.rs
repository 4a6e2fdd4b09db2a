//! The verdict on an experiment. Nothing is resilient that was not exercised, and nothing is degraded where no operator
//! is at work.

use pushback_preflight::experiment::InjectionType;

use super::ActiveExperiment;
use crate::outcome::{Outcome, Verdict};
use crate::steady::all_pass;

/// The verdict, and why.
pub(super) fn of(begun: &ActiveExperiment<'_>, was_stopped: bool) -> (Verdict, String) {
    let outcome = &begun.outcome;
    let said = |verdict, reason: &str| (verdict, reason.to_owned());
    if let Some(verdict) = failed(begun) {
        return verdict;
    }
    if was_stopped {
        return said(Verdict::Inconclusive, "interrupted; the injection is reverted");
    }
    if has(outcome, "outside_scope_affected") {
        return said(Verdict::Failed, "a request outside of the webhook's scope was refused");
    }
    if has(outcome, "deletion_not_held") {
        return said(Verdict::Failed, "the deletion was not held: somebody removed the experiment's finalizer");
    }
    // A partition that shows is enforced, by whomever.
    let shows = begun.experiment.injection.kind == InjectionType::NetworkPartition && !all_pass(&outcome.under_fault);
    if let Some(why) = outcome.unexercised.as_ref().filter(|_| !shows) {
        return (Verdict::Inconclusive, format!("not exercised: {why}"));
    }
    if has(outcome, "admission_unavailable") {
        return said(Verdict::Degraded, "requests in the webhook's scope were not answered");
    }
    let degraded = if !all_pass(&outcome.under_fault) {
        Some("the steady state came back only after the injection was reverted")
    } else if begun.planned.heals && !begun.healed {
        Some("nobody undid it in time; the steady state held")
    } else {
        None
    };
    if let Some(reason) = degraded {
        return match &begun.reconciled {
            Some(_) => said(Verdict::Degraded, reason),
            None => (Verdict::Inconclusive, format!("{reason}; nothing shows that an operator is at work there")),
        };
    }
    let has_evidence = begun.planned.heals || !outcome.admissions.is_empty() || outcome.deletion.is_some();
    if outcome.under_fault.is_empty() && !has_evidence {
        return said(Verdict::Inconclusive, "it has no steady-state check: nothing tells whether it held");
    }
    (Verdict::Resilient, resilient(begun))
}

/// What makes an experiment fail or void, whatever was seen.
fn failed(begun: &ActiveExperiment<'_>) -> Option<(Verdict, String)> {
    let outcome = &begun.outcome;
    if !outcome.revert_error.is_empty() {
        let reason = format!("it could not be reverted: {}; its journal is kept", outcome.revert_error);
        return Some((Verdict::Failed, reason));
    }
    if !outcome.lost.is_empty() {
        return Some((Verdict::Failed, format!("lost: {}", outcome.lost.join("; "))));
    }
    if !outcome.not_restored.is_empty() {
        let reason = format!("not everything is as before: {}", outcome.not_restored.join("; "));
        return Some((Verdict::Failed, reason));
    }
    if let Some(reason) = &begun.void {
        return Some((Verdict::Inconclusive, reason.clone()));
    }
    (!all_pass(&outcome.after))
        .then(|| (Verdict::Failed, "the steady state did not come back after the injection was reverted".to_owned()))
}

fn resilient(begun: &ActiveExperiment<'_>) -> String {
    let outcome = &begun.outcome;
    match (outcome.recovery_seconds, &outcome.deletion) {
        (Some(seconds), _) => format!("as before by itself after {seconds} s"),
        (None, Some(deletion)) => {
            let end = if deletion.recreated { ", and its owner made the object again" } else { "" };
            format!("the deletion was held, and went on once the finalizer was gone{end}; the steady state held")
        }
        (None, None) if begun.experiment.injection.kind == InjectionType::WebhookDisrupt => {
            let refused = outcome.admissions.iter().any(|admission| admission.answer == "unavailable");
            let answer = if refused { "refused" } else { "passed over" };
            format!("its backend could not be reached: requests in its scope were {answer}; the steady state held")
        }
        (None, None) => "the steady state held".to_owned(),
    }
}

fn has(outcome: &Outcome, name: &str) -> bool {
    outcome.deviations.iter().any(|deviation| deviation.name == name)
}
