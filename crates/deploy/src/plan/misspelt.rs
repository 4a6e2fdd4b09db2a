//! The server reports only one unknown field per map, then stops. It is asked again without it until all are known.

use pushback_cluster::{ApplyOptions, Cluster, ClusterError, ErrorKind, guarded};
use pushback_manifest::config::path;
use pushback_objects::Finding;
use serde_json::Value;

use super::absent;
use super::desired::Desired;
use super::{Planned, refusal};

/// An object with more misspelt fields than this has the wrong kind.
const QUESTIONS: usize = 20;

/// The findings beyond the first refusal.
pub(super) async fn further(cluster: &dyn Cluster, desired: &Desired, planned: &Planned) -> Vec<Finding> {
    let (Some(refused), Some(body)) = (&planned.refused, &planned.desired) else { return Vec::new() };
    let mut body = match &planned.live {
        Some(live) => guarded(body, live),
        None => Value::clone(body),
    };
    let address = refused.elsewhere.clone().unwrap_or_else(|| planned.address());
    if refused.elsewhere.is_some() {
        body = absent::moved(&body, &address);
    }
    let options = ApplyOptions::DRY_RUN;
    let mut error: ClusterError = refused.error.clone();
    let mut findings = Vec::new();
    for _ in 0..QUESTIONS {
        let unknown = refusal::unknown_fields(&error, &body);
        // All of them must be removed, or the answer would be the same.
        if unknown.is_empty() || !unknown.iter().all(|field| path::remove_at(&mut body, field).is_some()) {
            break;
        }
        match cluster.apply(&address, &body, options).await {
            Err(next) if matches!(next.kind, ErrorKind::Invalid | ErrorKind::Denied) => {
                findings.extend(refusal::findings(desired, &next, false));
                error = next;
            }
            _ => break,
        }
    }
    findings
}
