//! Injections that create an object of ours: NetworkPartition and QuotaExhaustion.

use std::collections::BTreeMap;

use pushback_cluster::{ListQuery, list_all};
use pushback_objects::ObjectExt;
use pushback_preflight::selector::LabelSelector;
use serde_json::{Value, json};

use super::super::change::{Change, Step, Target};
use super::super::journal::NAME_PREFIX;
use super::planning::{Planned, Planning, own_metadata};
use super::rights::own_pod;
use super::scope::Refusal;

/// Resources that a quota of QuotaExhaustion may limit.
const QUOTAS: [&str; 6] = ["cpu", "memory", "pods", "services", "configmaps", "secrets"];

/// NetworkPartition: a policy that denies all ingress and egress.
pub(super) async fn network_policy(planning: &Planning<'_>, id: &str) -> Result<Planned, Refusal> {
    let text = planning.parameter("labelSelector");
    let selector = LabelSelector::parse(text).map_err(|error| Refusal::Impossible(error.to_string()))?;
    let labels =
        selector.equalities().ok_or_else(|| Refusal::Impossible(format!("a NetworkPolicy cannot select {text:?}")))?;
    let query = ListQuery::new(planning.address("v1", "Pod", "")?.kind, Some(planning.namespace), text);
    let pods = list_all(planning.cluster, &query).await.map_err(Refusal::Cluster)?.items;
    if pods.is_empty() {
        return Err(Refusal::Impossible(format!("no Pod of namespace {} has the labels {text}", planning.namespace)));
    }
    let own = own_pod(planning).await?;
    if let Some(pod) = pods.iter().find(|pod| own.iter().any(|own| own.uid() == pod.uid())) {
        let pod = Target::of(pod);
        return Err(Refusal::Forbidden(format!("{pod} runs these experiments, and could not revert them")));
    }
    let body = json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": own_metadata(planning.namespace, &format!("{NAME_PREFIX}{id}")),
        "spec": {"podSelector": {"matchLabels": labels}, "policyTypes": ["Ingress", "Egress"]},
    });
    Ok(creation(body))
}

/// QuotaExhaustion: a quota that leaves no room for new objects.
pub(super) fn quota(planning: &Planning<'_>) -> Result<Planned, Refusal> {
    let given = |name: &&str| Some(planning.parameter(name)).filter(|value| !value.is_empty());
    let hard: BTreeMap<&str, &str> = QUOTAS.iter().filter_map(|name| given(name).map(|value| (*name, value))).collect();
    if hard.is_empty() {
        return Err(Refusal::Impossible(format!("it limits nothing; expected one of {}", QUOTAS.join(", "))));
    }
    let body = json!({
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": own_metadata(planning.namespace, planning.parameter("quotaName")),
        "spec": {"hard": hard},
    });
    Ok(creation(body))
}

fn creation(body: Value) -> Planned {
    let target = Target::of(&body);
    Planned { steps: vec![Step::new(target, Change::Created(body))], ..Planned::default() }
}
