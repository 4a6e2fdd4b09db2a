//! From an experiment to its planned changes: the planners' input, their result, and the objects that they may read for it.

use std::sync::Arc;

use pushback_cluster::{Address, Cluster, ClusterError, Kinds};
use pushback_objects::ObjectExt;
use pushback_preflight::experiment::Experiment;
use serde_json::{Map, Value};

use super::super::change::{Step, Target};
use super::admission::Site;
use super::{rights, scope};

/// Planned changes of an experiment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Planned {
    /// The changes in order. Empty if the cluster already is as the experiment would make it; then it only measures.
    pub steps: Vec<Step>,
    /// Webhook configurations whose admission is to be measured.
    pub measured: Vec<Target>,
    /// Whether the operator is expected to undo the changes by itself during the experiment.
    pub heals: bool,
    /// Remarks for the reader.
    pub notes: Vec<String>,
}

/// Why an experiment does not run.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Refusal {
    /// This runner does not support it.
    #[error("{0}")]
    NotExecutable(String),
    /// The user's limits or the experiment's own forbid it.
    #[error("{0}")]
    Forbidden(String),
    /// The cluster lacks what it needs.
    #[error("{0}")]
    Impossible(String),
    /// The cluster's error.
    #[error("{0}")]
    Cluster(ClusterError),
}

/// Input of a planner.
pub(super) struct Planning<'a> {
    pub(super) cluster: &'a dyn Cluster,
    pub(super) kinds: &'a Kinds,
    pub(super) experiment: &'a Experiment,
    pub(super) namespace: &'a str,
    pub(super) site: &'a Site,
}

impl Planning<'_> {
    /// A parameter; empty if absent.
    pub(super) fn parameter(&self, name: &str) -> &str {
        self.experiment.injection.parameters.get(name).map(String::as_str).unwrap_or_default()
    }

    /// Address of an object that parameters name.
    pub(super) fn address(&self, api_version: &str, kind: &str, name: &str) -> Result<Address, Refusal> {
        let target = Target {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            namespace: self.namespace.to_owned(),
            name: name.to_owned(),
            ..Target::default()
        };
        target.address(self.kinds).map_err(Refusal::Cluster)
    }

    /// Reads an object that is to be changed; an error if it may not be a target, or does not exist.
    pub(super) async fn target(&self, address: &Address) -> Result<Arc<Value>, Refusal> {
        scope::allow_address(self.site, address)?;
        let found = self.cluster.get(address).await.map_err(Refusal::Cluster)?;
        let live = found.ok_or_else(|| Refusal::Impossible(format!("{address} does not exist")))?;
        if live.is_terminating() {
            return Err(Refusal::Impossible(format!("{address} is being deleted")));
        }
        scope::allow_object(&live)?;
        rights::allow_beside_runner(self, address, &live).await?;
        Ok(live)
    }
}

/// Metadata for an object that an experiment creates.
pub(super) fn own_metadata(namespace: &str, name: &str) -> Value {
    Value::Object(Map::from_iter([("namespace".to_owned(), namespace.into()), ("name".to_owned(), name.into())]))
}
