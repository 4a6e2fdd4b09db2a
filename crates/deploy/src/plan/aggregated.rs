//! Kinds served by an aggregated API. Its server may ignore dry-run, so nothing is sent to it before the verdict. An
//! APIService that names a Service is aggregated; those of CRDs and of the API server itself name none.

use std::collections::BTreeMap;
use std::sync::Arc;

use pushback_cluster::{Address, Cluster, ClusterError, ErrorKind, Kind, Kinds};
use pushback_objects::object;
use serde_json::Value;
use tokio::sync::OnceCell;

use super::desired::Desired;

/// What is known about the group versions of the desired objects: one request for each, on first use.
#[derive(Debug, Default)]
pub(super) struct Aggregated {
    versions: BTreeMap<(String, String), OnceCell<bool>>,
    api_service: Option<Arc<Kind>>,
}

impl Aggregated {
    /// Prepares the lookups. The API server serves its built-in groups itself, and a CRD of the set covers its group.
    pub(super) fn new(cluster: &dyn Cluster, kinds: &Kinds, desired: &[Desired]) -> Self {
        if !cluster.capabilities().server {
            return Self::default();
        }
        let custom = |wanted: &&Desired| !wanted.kind_from_set && object::is_custom_group(&wanted.kind.group);
        let versions = desired
            .iter()
            .filter(custom)
            .map(|wanted| ((wanted.kind.group.clone(), wanted.kind.version.clone()), OnceCell::new()))
            .collect();
        Self { versions, api_service: kinds.preferred("apiregistration.k8s.io", "APIService").cloned() }
    }

    /// Whether a kind is served by another server than the API server.
    ///
    /// # Errors
    /// The cluster does not respond. Without permission to read APIServices, none are assumed.
    pub(super) async fn serves(&self, cluster: &dyn Cluster, kind: &Kind) -> Result<bool, ClusterError> {
        let version = (kind.group.clone(), kind.version.clone());
        let (Some(known), Some(api_service)) = (self.versions.get(&version), &self.api_service) else {
            return Ok(false);
        };
        let look = || async move {
            let name = format!("{}.{}", kind.version, kind.group);
            match cluster.get(&Address::new(Arc::clone(api_service), "", &name)).await {
                Ok(found) => {
                    Ok(found.is_some_and(|found| found.pointer("/spec/service").is_some_and(Value::is_object)))
                }
                Err(error) if matches!(error.kind, ErrorKind::Forbidden | ErrorKind::UnknownKind) => Ok(false),
                Err(error) => Err(error),
            }
        };
        known.get_or_try_init(look).await.copied()
    }
}

/// Why an object of such a kind is not verified.
pub(super) fn reason(kind: &Kind) -> String {
    format!("{} is served by an aggregated API, which may not know dry-runs", kind.kind)
}
