//! From an experiment to the changes that it makes: what a planner is handed, and what it comes to.
//! Also what no planner may touch.

use std::sync::Arc;

use pushback_preflight::ObjectExt;
use pushback_preflight::experiment::Experiment;
use serde_json::{Map, Value};

use super::super::change::{Step, Target};
use super::super::mark::MARK;
use crate::app::identity::INVENTORY_LABEL;
use crate::cluster::{Address, Cluster, ClusterError, Kinds};

/// What an experiment is going to do.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Planned {
    /// The changes, in their order. None where the cluster is already as the experiment would make it, and it is only
    /// measured.
    pub steps: Vec<Step>,
    /// Webhook configurations whose admission is measured.
    pub measured: Vec<Target>,
    /// Whether the operator is expected to undo them by itself while the experiment waits.
    pub heals: bool,
    /// What the reader should know.
    pub notes: Vec<String>,
}

/// Why an experiment is not made.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Refusal {
    /// Not by this runner.
    #[error("{0}")]
    NotExecutable(String),
    /// The user or the experiment forbids it.
    #[error("{0}")]
    Forbidden(String),
    /// The cluster has not what it needs.
    #[error("{0}")]
    Impossible(String),
    /// The cluster could not be asked.
    #[error("{0}")]
    Cluster(ClusterError),
}

/// What a planner needs.
pub(super) struct Planning<'a> {
    pub(super) cluster: &'a dyn Cluster,
    pub(super) kinds: &'a Kinds,
    pub(super) experiment: &'a Experiment,
    pub(super) namespace: &'a str,
}

impl Planning<'_> {
    /// A parameter; empty where it is not given.
    pub(super) fn parameter(&self, name: &str) -> &str {
        self.experiment.injection.parameters.get(name).map(String::as_str).unwrap_or_default()
    }

    /// The address of an object that parameters name.
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
}

/// Refuses objects that nothing may be injected into: another experiment's, and the records of apps.
pub(super) fn allow_object(object: &Value) -> Result<(), Refusal> {
    let shown = Target::of(object);
    if let Some(mark) = object.annotation(MARK) {
        let journal = mark.split(':').next().unwrap_or_default();
        return Err(Refusal::Forbidden(format!("{shown} is changed by another experiment already ({journal})")));
    }
    let records = ["kapp.k14s.io/is-app", "kapp.k14s.io/is-app-change", INVENTORY_LABEL];
    match records.iter().find(|label| object.label(label).is_some()) {
        Some(_) => Err(Refusal::Forbidden(format!("{shown} is the record of an app"))),
        None => Ok(()),
    }
}

/// Metadata of an object of ours.
pub(super) fn own_metadata(namespace: &str, name: &str) -> Value {
    Value::Object(Map::from_iter([("namespace".to_owned(), namespace.into()), ("name".to_owned(), name.into())]))
}

/// The object at an address, which has to be there.
pub(super) async fn existing(cluster: &dyn Cluster, address: &Address) -> Result<Arc<Value>, Refusal> {
    let found = cluster.get(address).await.map_err(Refusal::Cluster)?;
    let live = found.ok_or_else(|| Refusal::Impossible(format!("{address} does not exist")))?;
    if live.is_terminating() {
        return Err(Refusal::Impossible(format!("{address} is being deleted")));
    }
    Ok(live)
}
