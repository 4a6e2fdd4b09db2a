//! Whether an experiment has tried what it is about: a quota in force, a network that enforces policies, a value that
//! met the upgrade. And whether an operator was at work.

use pushback_cluster::Kind;
use pushback_preflight::experiment::InjectionType;

use super::{ActiveExperiment, Runner};
use crate::change::{Change, Step};
use crate::reconciler;

/// API groups of network plugins that enforce NetworkPolicies, and groups below them.
const ENFORCERS: [&str; 6] =
    ["antrea.io", "cilium.io", "k8s.ovn.org", "kubeovn.io", "networking.k8s.aws", "projectcalico.org"];

impl Runner<'_> {
    /// Looks for what shows that the injection has an effect.
    pub(super) async fn look_for_exercise(&self, begun: &mut ActiveExperiment<'_>) {
        let Some(step) = begun.steps().first().cloned() else { return };
        match begun.experiment.injection.kind {
            InjectionType::QuotaExhaustion => begun.outcome.unexercised = self.unenforced_quota(&step).await,
            InjectionType::NetworkPartition => begun.outcome.unexercised = self.unenforced_policy().await,
            _ => {}
        }
    }

    /// Why a quota limits nothing: its controller has not taken it up.
    async fn unenforced_quota(&self, step: &Step) -> Option<String> {
        let kinds = self.cluster.kinds().await.ok()?;
        let live = self.cluster.get(&step.target.address(&kinds).ok()?).await.ok()??;
        (live.pointer("/status/hard") != live.pointer("/spec/hard"))
            .then(|| format!("{} was never in force", step.target))
    }

    /// Why a policy isolates nothing: nobody enforces it.
    async fn unenforced_policy(&self) -> Option<String> {
        let kinds = self.cluster.kinds().await.ok()?;
        (!kinds.iter().any(|kind| is_of_enforcer(kind)))
            .then(|| "nothing shows that this cluster's network enforces NetworkPolicies".to_owned())
    }

    /// Looks for what an operator has done since the injection.
    pub(super) async fn look_for_operator(&self, begun: &mut ActiveExperiment<'_>) {
        if begun.reconciled.is_some() {
            return;
        }
        let checks = self.checks(begun.experiment);
        let mut found = reconciler::ready_workload(&*self.cluster, begun.experiment, &checks).await;
        for (step, injected) in begun.steps().iter().zip(&begun.injected) {
            if found.is_none()
                && let Some(injected) = injected
                && let Ok(kinds) = self.cluster.kinds().await
                && let Ok(address) = step.target.address(&kinds)
                && let Ok(Some(live)) = self.cluster.get(&address).await
            {
                found = reconciler::trace(injected, &live);
            }
        }
        begun.reconciled = found;
    }

    /// Makes an experiment unexercised whose value somebody has changed before the upgrade.
    pub async fn look_before_upgrade(&self, begun: &mut ActiveExperiment<'_>) {
        for companion in &mut begun.companions {
            self.look_at_values(companion).await;
        }
        self.look_at_values(begun).await;
    }

    async fn look_at_values(&self, begun: &mut ActiveExperiment<'_>) {
        let Ok(kinds) = self.cluster.kinds().await else { return };
        for step in begun.steps().to_vec() {
            let Change::Fields(fields) = &step.change else { continue };
            let Ok(address) = step.target.address(&kinds) else { continue };
            let Ok(live) = self.cluster.get(&address).await else { continue };
            let kept = |place: &crate::place::Place| live.as_deref().and_then(|live| place.get(live));
            if let Some(field) = fields.iter().find(|field| kept(&field.place) != field.after.as_ref()) {
                let why = format!("somebody changed {} of {} back before the upgrade", field.place, step.target);
                begun.outcome.unexercised = Some(why);
            }
        }
    }
}

fn is_of_enforcer(kind: &Kind) -> bool {
    let is_below = |end: &str| kind.group.strip_suffix(end).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    ENFORCERS.into_iter().any(is_below)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_plugin_is_known_by_its_groups() {
        let kind = |group: &str| Kind { group: group.to_owned(), ..Kind::default() };
        for group in ["cilium.io", "crd.projectcalico.org", "crd.antrea.io"] {
            assert!(is_of_enforcer(&kind(group)), "{group}");
        }
        for group in ["", "networking.k8s.io", "notcilium.io", "policy.networking.k8s.io"] {
            assert!(!is_of_enforcer(&kind(group)), "{group}");
        }
    }
}
