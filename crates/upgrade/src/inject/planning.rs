//! The input and the result of the planners.

use pushback_cluster::{Address, Cluster, Kinds};
use pushback_preflight::experiment::Experiment;
use serde_json::{Map, Value};

use super::super::change::{Step, Target};
use super::scope::{Refusal, Site};

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
}

/// Metadata for an object that an experiment creates.
pub(super) fn own_metadata(namespace: &str, name: &str) -> Value {
    Value::Object(Map::from_iter([("namespace".to_owned(), namespace.into()), ("name".to_owned(), name.into())]))
}
