//! The ways out of a refused Pod, as data.

use pushback_objects::finding::Finding;
use pushback_objects::remedy::{Remedy, RemedyKind};

use super::words;
use crate::facts::{Answer, Facts, Need, PodAdmission, PodRefusal};
use crate::rules::remedies::kubectl;

/// The ways out of a finding, the best first.
pub(super) fn ways_out(facts: &Facts, finding: &Finding) -> Vec<Remedy> {
    let Some(remedy) = &finding.remedy else { return Vec::new() };
    let change = Remedy::author(remedy);
    let Some((by, message)) = refusal(facts, finding) else { return vec![change] };
    let again = &facts.invocation;
    match by {
        PodRefusal::ServiceAccount => {
            let create = words::service_account(message).map(|account| {
                Remedy::deployer(RemedyKind::CorrectObjects, "create it before")
                    .commands([kubectl(again, "create", "serviceaccount", account, &[]), again.to_string()])
            });
            create.into_iter().chain([change]).collect()
        }
        PodRefusal::Quota => {
            let show = words::quota(message).map(|quota| {
                let name = format!("{}/{quota}", finding.object.namespace);
                kubectl(again, "describe", "resourcequota", &name, &[])
            });
            vec![Remedy::deployer(RemedyKind::CorrectObjects, remedy).commands(show)]
        }
        PodRefusal::Policy => {
            let show = words::policy(message)
                .map(|policy| kubectl(again, "get", "validatingadmissionpolicy", policy, &["-o", "yaml"]));
            vec![change.commands(show)]
        }
        PodRefusal::PodSecurity => {
            let mut change = change;
            change.steps.extend(words::controls(message));
            vec![change]
        }
        _ => vec![change],
    }
}

/// The part of the server that refuses the Pods of a finding, and its words.
fn refusal<'f>(facts: &'f Facts, finding: &Finding) -> Option<(PodRefusal, &'f str)> {
    let need = Need::PodAdmission { workload: finding.object.clone() };
    match facts.answers.get(&need)? {
        Answer::PodAdmission { admission: PodAdmission::Refused { by, message, .. } }
            if by.as_str() == finding.check =>
        {
            Some((*by, message))
        }
        _ => None,
    }
}
