//! PodKill: deletes pods that a controller replaces.

use pushback_cluster::{ClusterError, ErrorKind, ListQuery, list_all};
use pushback_objects::ObjectExt;
use serde_json::Value;

use super::super::change::{Change, Step, Target};
use super::planning::{Planned, Planning};
use super::rights::own_pod;
use super::scope::Refusal;

pub(super) async fn kill(planning: &Planning<'_>) -> Result<Planned, Refusal> {
    let text = planning.parameter("labelSelector");
    let kind = planning
        .kinds
        .find("", "v1", "Pod")
        .cloned()
        .ok_or_else(|| Refusal::Cluster(ClusterError::new(ErrorKind::UnknownKind, "the cluster serves no Pod")))?;
    let query = ListQuery::new(kind, Some(planning.namespace), text);
    let pods = list_all(planning.cluster, &query).await.map_err(Refusal::Cluster)?.items;
    let mut candidates: Vec<&Value> = pods.iter().map(AsRef::as_ref).filter(|pod| !pod.is_terminating()).collect();
    let all = candidates.len();
    let own = own_pod(planning).await?;
    let is_own = |pod: &Value| own.iter().any(|own| own.uid() == pod.uid());
    let has_own = candidates.iter().any(|pod| is_own(pod));
    candidates.retain(|pod| is_controlled(pod) && !is_own(pod));
    if candidates.is_empty() {
        let message = match all {
            0 => format!("no Pod of namespace {} has the labels {text}", planning.namespace),
            _ if has_own => format!("no Pod with the labels {text} may be killed: one of them runs these experiments"),
            _ => format!("no controller would make the Pods with the labels {text} again"),
        };
        return Err(Refusal::Impossible(message));
    }
    candidates.sort_by_key(|pod| pod.name().to_owned());
    let experiment = planning.experiment;
    let asked = experiment.injection.parameters.get("count").and_then(|count| count.parse().ok());
    let count = asked.unwrap_or(experiment.injection.count).min(experiment.blast_radius.max_pods_affected);
    candidates.truncate(usize::try_from(count.max(1)).unwrap_or(1));
    let steps = candidates.into_iter().map(|pod| Step::new(Target::of(pod), Change::Killed)).collect();
    Ok(Planned { steps, heals: true, ..Planned::default() })
}

/// Whether a controller replaces the pod.
fn is_controlled(pod: &Value) -> bool {
    let owners = pod.pointer("/metadata/ownerReferences").and_then(Value::as_array).into_iter().flatten();
    owners.into_iter().any(|owner| owner.get("controller") == Some(&Value::Bool(true)))
}
