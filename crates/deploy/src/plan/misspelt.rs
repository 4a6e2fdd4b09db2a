//! The server reports only one unknown field per map, then stops. It is asked again without it until all are known.

use std::sync::Arc;

use pushback_cluster::{Address, ApplyOptions, Cluster, ClusterError, ErrorKind, guarded};
use pushback_manifest::config::path;
use pushback_objects::Finding;
use serde_json::Value;

use super::absent;
use super::compared::Compared;
use super::desired::Desired;
use super::refusal;

/// An object with more misspelt fields than this has the wrong kind.
const QUESTIONS: usize = 20;

/// The findings beyond the first refusal.
pub(super) async fn further(cluster: &dyn Cluster, desired: &Desired, compared: &Compared) -> Vec<Finding> {
    let (Some(refused), Some(body)) = (&compared.refused, &compared.body) else { return Vec::new() };
    let mut body = match &compared.live {
        Some(live) => guarded(body, live),
        None => Value::clone(body),
    };
    let own = || Address::new(Arc::clone(&desired.kind), &desired.object.namespace, &desired.object.name);
    let address = compared.elsewhere.clone().unwrap_or_else(own);
    if compared.elsewhere.is_some() {
        body = absent::moved(&body, &address);
    }
    let options = ApplyOptions::DRY_RUN;
    let mut error: ClusterError = refused.clone();
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
